/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream beside a port's lossy way on the simulated network: a node of its own, which has the name of the lossy one,
 * as TCP's port has the number of UDP's. The network must lose, double, corrupt and reorder nothing between such nodes.
 */
#ifndef RWK_TEST_PACKET_SIM_STREAM_H
#define RWK_TEST_PACKET_SIM_STREAM_H

#include "links/sim/sim.h"

/** The stream of who has that lossy node. 0 and *stream set; what the network says. */
int sim_stream_open(struct rwk_sim *s, const struct rwk_link *lossy, struct rwk_link **stream);
/** Is there something for its progress? */
bool sim_stream_waiting(const struct rwk_link *stream);
/** How packets fare by the stream from one lossy node's owner to another's. */
void sim_stream_set_path(struct rwk_sim *s, uint32_t from, uint32_t to, const struct rwk_sim_path *path);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet service on the simulated network: real machines, real handshake, real frames, and a clock that the test
 * moves. An address's port is its node's number. The nodes are the lossy way (RC), or the stream (UC): then the network
 * must lose, double, corrupt and reorder nothing.
 */
#ifndef RWK_TEST_PACKET_SIM_PACKET_H
#define RWK_TEST_PACKET_SIM_PACKET_H

#include "links/sim/sim.h"
#include "packet/packet.h"

/** Ports are opened on `s` from now on. Close every port before rwk_sim_close; those that linger end with it. */
void sim_packet_use(struct rwk_sim *s);
/** SRC's ports are opened on that host from now on, below SIM_HOSTS; until then on 0 and 1 in turn. */
void sim_packet_host(uint32_t number);

extern const struct rwk_transport sim_packet_transport; /* RC */
extern const struct rwk_transport sim_shared_transport; /* SRC: ports share connections by sim_domain.h */
extern const struct rwk_transport sim_stream_transport; /* UC */
extern const struct rwk_transport sim_both_transport;   /* SRC, and UC where that does not get through (sim_stream.h) */

#endif

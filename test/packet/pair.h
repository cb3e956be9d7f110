/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends on the simulated network, 0 connected to 1, and what they count. */
#ifndef RWK_TEST_PACKET_PAIR_H
#define RWK_TEST_PACKET_PAIR_H

#include "links/ends.h"

/** All messages are that long. The path takes packets of `mtu` bytes, and loses none. */
void pair_open(size_t mtu, size_t length);
/** They have these lengths in turn (none: those of ends_length); path NULL: it loses nothing. */
void pair_open_list(size_t mtu, const size_t *lengths, size_t count, const struct rwk_sim_path *path);
/** So many sends of 0 to 1, and progress soon: the next burst gathers behind its first message. */
void pair_burst(unsigned count);

const struct rwk_packet_counters *pair_counts(unsigned end);
/** Of the machine of that end's channel. */
const struct rwk_qp_counters *pair_qp_counts(unsigned from, unsigned to);

#endif

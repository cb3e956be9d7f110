/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends on a way that becomes narrow: what its tests have in common. */
#ifndef RWK_TEST_PACKET_NARROW_ENDS_H
#define RWK_TEST_PACKET_NARROW_ENDS_H

#include "links/ends.h"

#include "packet/port.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define READ   100000u

const struct rwk_packet_counters *counts(unsigned end);
/** The end's number on the network. */
uint32_t number(unsigned end);
struct rwk_packet_channel *channel(unsigned from, unsigned to);
/** Messages are short and long from now on. */
void use_lengths(void);

#endif

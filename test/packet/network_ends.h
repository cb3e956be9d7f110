/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of the packet service on real sockets share: messages of many lengths, and a stream that is waited for. */
#ifndef RWK_TEST_PACKET_NETWORK_ENDS_H
#define RWK_TEST_PACKET_NETWORK_ENDS_H

#include "links/ends.h"

#include "base/clock.h"
#include "packet/channel.h"

static const size_t network_lengths[] = {
	0, 1, 7, 200, 231, 1000, 1428, 4060, 4076, 4077, 4096, 5000, 16384, 40000, 65536, LENGTH};
#define NETWORK_LENGTHS (sizeof(network_lengths) / sizeof(network_lengths[0]))

static inline void network_use_lengths(void)
{
	ends_lengths = network_lengths;
	ends_lengths_count = NETWORK_LENGTHS - 1; /* LENGTH goes by RC alone */
}

static inline void network_send(struct side *s)
{
	if (ends_send(s) == -EAGAIN)
		assert_in_range(ends_post(s), 0, 1);
}

/* Waits for it, 20 seconds. */
static inline bool network_has_stream(const struct rwk_packet_channel *ch)
{
	rwk_time end = rwk_clock_now() + 20 * 1000000000ull;

	while (!ch->stream_open && rwk_clock_now() < end)
		ends_turn();
	return ch->stream_open;
}

#endif

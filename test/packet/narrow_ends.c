/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/narrow_ends.h"

#include "packet/channel.h"

const struct rwk_packet_counters *counts(unsigned end)
{
	return rwk_packet_counters(ends[end]->port);
}

uint32_t number(unsigned end)
{
	return rwk_sim_number(ends[end]->port->link[RWK_WAY_LOSSY]);
}

struct rwk_packet_channel *channel(unsigned from, unsigned to)
{
	return rwk_packet_channel(ends_side(from, to)->ch);
}

static const size_t lengths[] = {64, 4000, 65536, 9000, 100, 20000};

void use_lengths(void)
{
	ends_lengths = lengths;
	ends_lengths_count = sizeof(lengths) / sizeof(*lengths);
}

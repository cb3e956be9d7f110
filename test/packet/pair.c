/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/pair.h"

#include "packet/packet.h"

void pair_open_list(size_t mtu, const size_t *lengths, size_t count, const struct rwk_sim_path *path)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.mtu = mtu;
	if (path)
		attr.path = *path;
	ends_lengths = lengths;
	ends_lengths_count = count;
	ends_open(&attr, NULL, 2);
	ends_connect(0, 1);
	ends_settle();
}

void pair_open(size_t mtu, size_t length)
{
	static size_t all;

	all = length;
	pair_open_list(mtu, &all, 1, NULL);
}

void pair_burst(unsigned count)
{
	assert_true(count > 4);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_progress(ends[0]);
}

const struct rwk_packet_counters *pair_counts(unsigned end)
{
	return rwk_packet_counters(ends[end]->port);
}

const struct rwk_qp_counters *pair_qp_counts(unsigned from, unsigned to)
{
	return rwk_packet_qp_counters(ends_side(from, to)->ch);
}

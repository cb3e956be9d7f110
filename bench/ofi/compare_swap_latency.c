/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An 8-byte unsigned integer, which starts at 0 in each repeat and is swapped for the next one by each operation. Where
 * the data is touched, every fourth operation asks for the wrong value and must leave it.
 */
#include "bench/ofi/one_sided.h"

#include <rdma/fi_atomic.h>

static uint64_t value_before(const struct bench_run *r, uint64_t seq)
{
	return r->touch == BENCH_TOUCH_NONE ? seq : seq - seq / 4;
}

static void take(struct bench_run *r, size_t at, uint64_t seq)
{
	bench_expect_word(r, r->recv + at, value_before(r, seq));
}

static void inspect(struct bench_run *r, char *memory, uint64_t seq)
{
	bench_expect_word(r, memory, value_before(r, seq + 1));
}

static ssize_t post(struct bench_pair *p, struct bench_run *r, size_t at, uint64_t seq, void *context)
{
	uint64_t *word = (uint64_t *)(r->send + at); /* the new value, and the one asked for */
	bool wrong = r->touch != BENCH_TOUCH_NONE && seq % 4 == 3;

	word[0] = value_before(r, seq) + 1;
	word[1] = value_before(r, seq) + wrong;
	return fi_compare_atomic(p->ep, &word[0], 1, p->reach.send_desc, &word[1], p->reach.send_desc, r->recv + at,
		p->reach.recv_desc, p->peer, p->reach.address + at, p->reach.key, FI_UINT64, FI_CSWAP, context);
}

static const struct bench_pair_test test = {
	.test =
		{
			.name = "compare_swap_latency",
			.what = "Latency of fi_compare_atomic (swap of an 8-byte integer) on bare libfabric: one at a "
				"time, until it is complete.",
			.sizes = "8",
			.unit = BENCH_LATENCY,
			.shape = BENCH_TWO_RANKS,
			.messages = 1,
			.grain = 8,
			.only = 8,
			.run = bench_pair_one_sided_run,
		},
	.caps = FI_ATOMIC,
	.flags = "FI_ATOMIC",
	.post = post,
	.take = take,
	.inspect = inspect,
};

int main(int argc, char **argv)
{
	return bench_pair_one_sided_main(argc, argv, &test);
}

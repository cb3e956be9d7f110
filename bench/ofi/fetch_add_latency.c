/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds to an 8-byte unsigned integer, which starts at 0 in each repeat: operation `seq` adds seq + 1. */
#include "bench/ofi/one_sided.h"

#include <rdma/fi_atomic.h>

static uint64_t sum_before(uint64_t seq)
{
	return seq * (seq + 1) / 2;
}

static void fill(struct bench_run *r, size_t at, uint64_t seq)
{
	*(uint64_t *)(r->send + at) = seq + 1;
}

static void take(struct bench_run *r, size_t at, uint64_t seq)
{
	bench_expect_word(r, r->recv + at, sum_before(seq));
}

static void inspect(struct bench_run *r, char *memory, uint64_t seq)
{
	bench_expect_word(r, memory, sum_before(seq + 1));
}

static ssize_t post(struct bench_pair *p, struct bench_run *r, size_t at, uint64_t seq, void *context)
{
	(void)seq;
	return fi_fetch_atomic(p->ep, r->send + at, 1, p->reach.send_desc, r->recv + at, p->reach.recv_desc, p->peer,
		p->reach.address + at, p->reach.key, FI_UINT64, FI_SUM, context);
}

static const struct bench_pair_test test = {
	.test =
		{
			.name = "fetch_add_latency",
			.what = "Latency of fi_fetch_atomic (sum of an 8-byte integer) on bare libfabric: one at a "
				"time, "
				"until it is complete.",
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
	.fill = fill,
	.take = take,
	.inspect = inspect,
};

int main(int argc, char **argv)
{
	return bench_pair_one_sided_main(argc, argv, &test);
}

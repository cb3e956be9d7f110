/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of one 8-byte unsigned integer, which starts at 0 in each repeat: operation `seq` adds seq + 1. */
#include "bench/common/data.h"
#include "bench/mpi/one_sided.h"

static uint64_t sum_before(uint64_t seq)
{
	return seq * (seq + 1) / 2;
}

static void expect(struct bench_run *r, const void *at, uint64_t value)
{
	uint64_t found = *(const uint64_t *)at;

	if (r->touch == BENCH_TOUCH_CHECK && found != value)
		bench_wrong(r, 0, value, found);
}

static void fill(struct bench_run *r, unsigned slot, uint64_t seq)
{
	(void)slot;
	*(uint64_t *)r->send = seq + 1;
}

static void take(struct bench_run *r, unsigned slot, uint64_t seq)
{
	(void)slot;
	expect(r, r->recv, sum_before(seq));
}

static void inspect(struct bench_run *r, char *window, unsigned slot, uint64_t seq)
{
	(void)slot;
	expect(r, window, sum_before(seq + 1));
}

static void fetch_and_add(struct bench_run *r, MPI_Win window, int target, unsigned slot, uint64_t seq)
{
	(void)slot;
	(void)seq;
	MPI_Fetch_and_op(r->send, r->recv, MPI_UINT64_T, target, 0, MPI_SUM, window);
}

static const struct one_sided_test test = {
	.test =
		{
			.name = "fetch_and_op_latency",
			.what = "Latency of MPI_Fetch_and_op (sum of an 8-byte integer): one operation and its "
				"synchronisation at a time.",
			.sizes = "8",
			.unit = BENCH_LATENCY,
			.shape = BENCH_TWO_RANKS,
			.messages = 1,
			.grain = 8,
			.only = 8,
			.run = bench_one_sided_run,
		},
	.operate = fetch_and_add,
	.fill = fill,
	.take = take,
	.inspect = inspect,
};

int main(int argc, char **argv)
{
	return bench_one_sided_main(argc, argv, &test);
}

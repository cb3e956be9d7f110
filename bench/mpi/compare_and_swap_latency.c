/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One 8-byte unsigned integer, which starts at 0 in each repeat and is swapped for the next one by each operation.
 * Where the data is touched, every fourth operation asks for the wrong value and must leave it.
 */
#include "bench/common/data.h"
#include "bench/mpi/one_sided.h"

static bool is_wrong(const struct bench_run *r, uint64_t seq)
{
	return r->touch != BENCH_TOUCH_NONE && seq % 4 == 3;
}

static uint64_t value_before(const struct bench_run *r, uint64_t seq)
{
	return r->touch == BENCH_TOUCH_NONE ? seq : seq - seq / 4;
}

static void expect(struct bench_run *r, const void *at, uint64_t value)
{
	uint64_t found = *(const uint64_t *)at;

	if (r->touch == BENCH_TOUCH_CHECK && found != value)
		bench_wrong(r, 0, value, found);
}

static void take(struct bench_run *r, unsigned slot, uint64_t seq)
{
	(void)slot;
	expect(r, r->recv, value_before(r, seq));
}

static void inspect(struct bench_run *r, char *window, unsigned slot, uint64_t seq)
{
	(void)slot;
	expect(r, window, value_before(r, seq + 1));
}

static void compare_and_swap(struct bench_run *r, MPI_Win window, int target, unsigned slot, uint64_t seq)
{
	uint64_t *word = (uint64_t *)r->send; /* the new value, and the one asked for */

	(void)slot;
	word[0] = value_before(r, seq) + 1;
	word[1] = value_before(r, seq) + is_wrong(r, seq);
	MPI_Compare_and_swap(&word[0], &word[1], r->recv, MPI_UINT64_T, target, 0, window);
}

static const struct one_sided_test test = {
	.test =
		{
			.name = "compare_and_swap_latency",
			.what = "Latency of MPI_Compare_and_swap (an 8-byte integer): one operation and its "
				"synchronisation at a time.",
			.sizes = "8",
			.unit = BENCH_LATENCY,
			.shape = BENCH_TWO_RANKS,
			.messages = 1,
			.grain = 8,
			.only = 8,
			.run = bench_one_sided_run,
		},
	.operate = compare_and_swap,
	.take = take,
	.inspect = inspect,
};

int main(int argc, char **argv)
{
	return bench_one_sided_main(argc, argv, &test);
}

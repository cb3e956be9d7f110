/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of 8-byte unsigned integers. Element `i` of operation `seq` meets 3 * element(seq, i) in the window. */
#include "bench/common/data.h"
#include "bench/mpi/one_sided.h"

static uint64_t element(uint64_t seq, size_t i)
{
	return (seq + 1) * 0x9e3779b97f4a7c15u + i;
}

static void write_elements(char *at, const struct bench_run *r, uint64_t factor, uint64_t seq)
{
	uint64_t *v = (uint64_t *)at;

	for (size_t i = 0; i < r->size / 8; i++)
		v[i] = factor * element(seq, i);
}

static void fill(struct bench_run *r, unsigned slot, uint64_t seq)
{
	write_elements(r->send + bench_slot(r, slot), r, 1, seq);
}

static void prepare(struct bench_run *r, char *window, unsigned slot, uint64_t seq)
{
	write_elements(window + bench_slot(r, slot), r, 3, seq);
}

static void inspect(struct bench_run *r, char *window, unsigned slot, uint64_t seq)
{
	const uint64_t *v = (uint64_t *)(window + bench_slot(r, slot));

	for (size_t i = 0; i < r->size / 8; i++) {
		if (v[i] != 4 * element(seq, i))
			bench_wrong(r, 8 * i, 4 * element(seq, i), v[i]);
	}
}

static void accumulate(struct bench_run *r, MPI_Win window, int target, unsigned slot, uint64_t seq)
{
	size_t at = bench_slot(r, slot);
	int count = (int)(r->size / 8);

	(void)seq;
	MPI_Accumulate(r->send + at, count, MPI_UINT64_T, target, (MPI_Aint)at, count, MPI_UINT64_T, MPI_SUM, window);
}

static const struct one_sided_test test = {
	.test =
		{
			.name = "accumulate_latency",
			.what = "Latency of MPI_Accumulate (sum of 8-byte integers): one operation and its "
				"synchronisation at a time.",
			.sizes = "8:1M",
			.unit = BENCH_LATENCY,
			.shape = BENCH_TWO_RANKS,
			.messages = 1,
			.grain = 8,
			.run = bench_one_sided_run,
		},
	.operate = accumulate,
	.fill = fill,
	.prepare = prepare,
	.inspect = inspect,
};

int main(int argc, char **argv)
{
	return bench_one_sided_main(argc, argv, &test);
}

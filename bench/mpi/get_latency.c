/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mpi/one_sided.h"

static const struct one_sided_test test = {
	.test =
		{
			.name = "get_latency",
			.what = "Latency of MPI_Get: one operation and its synchronisation at a time.",
			.sizes = "1:4M",
			.unit = BENCH_LATENCY,
			.shape = BENCH_TWO_RANKS,
			.messages = 1,
			.run = bench_one_sided_run,
		},
	.operate = bench_get,
	.prepare = bench_get_prepare,
	.take = bench_get_take,
};

int main(int argc, char **argv)
{
	return bench_one_sided_main(argc, argv, &test);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mpi/one_sided.h"

static const struct one_sided_test test = {
	.test =
		{
			.name = "put_rate",
			.what = "Rate of MPI_Put: windows of operations, then one synchronisation, in one or more "
				"pairs of ranks at once; all pairs together.",
			.sizes = "8:8K",
			.unit = BENCH_RATE,
			.shape = BENCH_PAIRS,
			.messages = 1,
			.windowed = true,
			.per_pair = true,
			.run = bench_one_sided_run,
		},
	.operate = bench_put,
	.fill = bench_put_fill,
	.inspect = bench_put_inspect,
};

int main(int argc, char **argv)
{
	return bench_one_sided_main(argc, argv, &test);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mpi/one_sided.h"

static const struct one_sided_test test = {
	.test =
		{
			.name = "put_bandwidth",
			.what = "Bandwidth of MPI_Put: windows of operations, then one synchronisation.",
			.sizes = "1:4M",
			.unit = BENCH_BANDWIDTH,
			.shape = BENCH_TWO_RANKS,
			.messages = 1,
			.windowed = true,
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

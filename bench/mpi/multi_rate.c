/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mpi/team.h"

static const struct bench_test test = {
	.name = "multi_rate",
	.what = "MPI message rate: windows of messages, one way, in one or more pairs of ranks at once; all pairs "
		"together.",
	.sizes = "8:8K",
	.unit = BENCH_RATE,
	.shape = BENCH_PAIRS,
	.messages = 1,
	.windowed = true,
	.per_pair = true,
	.run = bench_mpi_stream,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mpi/team.h"

static const struct bench_test test = {
	.name = "bandwidth",
	.what = "MPI bandwidth: windows of messages from one rank to another.",
	.sizes = "1:4M",
	.unit = BENCH_BANDWIDTH,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.windowed = true,
	.run = bench_mpi_stream,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

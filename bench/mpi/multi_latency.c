/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mpi/team.h"

static const struct bench_test test = {
	.name = "multi_latency",
	.what = "MPI latency of several pairs at once: half of a ping-pong of the slowest pair.",
	.sizes = "0,1:4M",
	.unit = BENCH_LATENCY,
	.shape = BENCH_PAIRS,
	.messages = 2,
	.run = bench_mpi_pingpong,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

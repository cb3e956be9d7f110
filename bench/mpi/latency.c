/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mpi/team.h"

static const struct bench_test test = {
	.name = "latency",
	.what = "MPI latency: half of a ping-pong between two ranks.",
	.sizes = "0,1:4M",
	.unit = BENCH_LATENCY,
	.shape = BENCH_TWO_RANKS,
	.messages = 2,
	.run = bench_mpi_pingpong,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ofi/pair.h"

static const struct bench_test test = {
	.name = "tagged_latency",
	.what = "Latency of tagged messages on bare libfabric: half of a ping-pong between two processes.",
	.sizes = "0,1:4M",
	.unit = BENCH_LATENCY,
	.shape = BENCH_TWO_RANKS,
	.messages = 2,
	.run = bench_pair_pingpong,
};

int main(int argc, char **argv)
{
	return bench_pair_main(argc, argv, &test);
}

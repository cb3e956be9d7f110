/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ofi/pair.h"

static const struct bench_test test = {
	.name = "tagged_bandwidth",
	.what = "Bandwidth of tagged messages on bare libfabric: windows of messages from one process to another.",
	.sizes = "1:4M",
	.unit = BENCH_BANDWIDTH,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.windowed = true,
	.run = bench_pair_stream,
};

int main(int argc, char **argv)
{
	return bench_pair_main(argc, argv, &test);
}

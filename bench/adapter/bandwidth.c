/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/adapter/adapter.h"

static const struct bench_test test = {
	.name = "adapter_bandwidth",
	.what = "Bandwidth of the channel adapter: messages one way, or with -b both ways.",
	.sizes = "64K",
	.unit = BENCH_BANDWIDTH,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.run = bench_adapter_stream,
	.after = bench_adapter_print_lost,
};

int main(int argc, char **argv)
{
	return bench_adapter_main(argc, argv, &test);
}

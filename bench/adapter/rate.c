/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/adapter/adapter.h"

static const struct bench_test test = {
	.name = "adapter_rate",
	.what = "Messages a second of the channel adapter, one way, or with -b both ways.",
	.sizes = "8",
	.unit = BENCH_RATE,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.run = bench_adapter_stream,
	.after = bench_adapter_print_lost,
};

int main(int argc, char **argv)
{
	return bench_adapter_main(argc, argv, &test);
}

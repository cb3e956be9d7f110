/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/adapter/adapter.h"

static const struct bench_test test = {
	.name = "adapter_latency",
	.what = "Latency of the channel adapter: half of a ping-pong of sends or writes; one read or atomic until it "
		"completes.",
	.sizes = "2",
	.unit = BENCH_LATENCY,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.run = bench_adapter_pingpong,
	.after = bench_adapter_print_times,
};

int main(int argc, char **argv)
{
	return bench_adapter_main(argc, argv, &test);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ofi/one_sided.h"

static const struct bench_pair_test test = {
	.test =
		{
			.name = "rma_write_latency",
			.what = "Latency of fi_write on bare libfabric: one at a time, until it is complete.",
			.sizes = "1:4M",
			.unit = BENCH_LATENCY,
			.shape = BENCH_TWO_RANKS,
			.messages = 1,
			.run = bench_pair_one_sided_run,
		},
	.caps = FI_RMA,
	.flags = "FI_RMA",
	.post = bench_write_post,
	.fill = bench_write_fill,
	.inspect = bench_write_inspect,
};

int main(int argc, char **argv)
{
	return bench_pair_one_sided_main(argc, argv, &test);
}

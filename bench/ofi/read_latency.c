/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ofi/one_sided.h"

static const struct bench_pair_test test = {
	.test =
		{
			.name = "rma_read_latency",
			.what = "Latency of fi_read on bare libfabric: one at a time, until it is complete.",
			.sizes = "1:4M",
			.unit = BENCH_LATENCY,
			.shape = BENCH_TWO_RANKS,
			.messages = 1,
			.run = bench_pair_one_sided_run,
		},
	.caps = FI_RMA,
	.flags = "FI_RMA",
	.post = bench_read_post,
	.prepare = bench_read_prepare,
	.take = bench_read_take,
};

int main(int argc, char **argv)
{
	return bench_pair_one_sided_main(argc, argv, &test);
}

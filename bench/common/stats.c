/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/common/stats.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct bench_stats bench_stats_of(double *sample, size_t samples)
{
	size_t half = samples / 2;

	qsort(sample, samples, sizeof(*sample), ascending);
	return (struct bench_stats){
		.median = samples % 2 ? sample[half] : (sample[half - 1] + sample[half]) / 2,
		.min = sample[0],
		.max = sample[samples - 1],
	};
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said about a handful of samples. */
#ifndef BENCH_COMMON_STATS_H
#define BENCH_COMMON_STATS_H

#include <stddef.h>

struct bench_stats {
	double median, min, max;
};

/** Sorts `sample` (at least one) and sums it up. The median of an even number is the mean of the two in the middle. */
struct bench_stats bench_stats_of(double *sample, size_t samples);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a test over its sizes. */
#ifndef BENCH_COMMON_SWEEP_H
#define BENCH_COMMON_SWEEP_H

#include "bench/common/options.h"

/** Bytes of each of a rank's two buffers: the most that any of the sizes needs. */
size_t bench_buffer_bytes(const struct bench_test *test, const struct bench_options *o, const struct bench_team *team);

/**
 * Runs `test` on every rank of `team`; rank 0 prints the table, the progress of long runs, and the JSON file.
 * Every rank returns the same: 0, a negative errno (reported on stderr), or 1 when data was wrong.
 */
int bench_sweep(const struct bench_test *test, const struct bench_options *o, struct bench_team *team);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job that counts: it goes on without end, and says in a file how far it has come and how long that has taken. Whoever
 * has made the file (bench/slices) stops it, lets it go on, reads both, and ends it.
 */
#ifndef BENCH_COMMON_TICKS_H
#define BENCH_COMMON_TICKS_H

#include "bench/common/bench.h"

#include <stdatomic.h>

#define BENCH_TICKS_RANKS 1000

/** The file, in the byte order of the machine; bench/slices reads it, too. */
struct bench_ticks {
	_Atomic uint64_t messages; /* of all pairs, written by rank 0, */
	_Atomic uint64_t nanoseconds; /* as are those that they took, by what the benchmark itself counts as theirs */
	_Atomic uint32_t pid[BENCH_TICKS_RANKS];
};

/**
 * Maps the file, which must be there and as long as this, and enters this process, which dies with its parent from now
 * on. Returns 0 or a negative errno, reported on stderr; *ticks stays mapped until the process ends.
 */
int bench_ticks_open(const char *path, const struct bench_team *team, struct bench_ticks **ticks);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided MPI operations. Ranks of the lower half (the origins) work on the windows of their partners in the upper
 * half (the targets), which do nothing but what the way of synchronising asks of them.
 *
 * Where the data is touched, each iteration stands alone: the target prepares or checks its window before and after it,
 * and barriers keep the two from each other; neither is timed.
 */
#ifndef BENCH_MPI_ONE_SIDED_H
#define BENCH_MPI_ONE_SIDED_H

#include "bench/mpi/team.h"

#include <mpi.h>

/** What a test does. `seq` counts the messages of a repeat, r->window of them an iteration. */
struct one_sided_test {
	struct bench_test test; /* run: bench_one_sided_run */
	/** At the target, before an iteration and after it, where data is touched; NULL: nothing. */
	void (*prepare)(struct bench_run *r, char *window, unsigned slot, uint64_t seq);
	void (*inspect)(struct bench_run *r, char *window, unsigned slot, uint64_t seq);
	/** At the origin: starts operation number `seq`, whose data is in that slot of the buffers and of the window.
	 */
	void (*operate)(struct bench_run *r, MPI_Win window, int target, unsigned slot, uint64_t seq);
	/** At the origin, before that (if data is touched) and once it has ended; NULL: nothing. */
	void (*fill)(struct bench_run *r, unsigned slot, uint64_t seq);
	void (*take)(struct bench_run *r, unsigned slot, uint64_t seq);
};

/** bench_test.run of all of them. */
int bench_one_sided_run(struct bench_run *r, double *seconds);

/** The main function; returns as bench_mpi_main does. */
int bench_one_sided_main(int argc, char **argv, const struct one_sided_test *test);

/** The parts of puts and gets. Bytes that the origin (or target) writes are seeded by who they are from and to. */
void bench_put(struct bench_run *r, MPI_Win window, int target, unsigned slot, uint64_t seq);
void bench_put_fill(struct bench_run *r, unsigned slot, uint64_t seq);
void bench_put_inspect(struct bench_run *r, char *window, unsigned slot, uint64_t seq);
void bench_get(struct bench_run *r, MPI_Win window, int target, unsigned slot, uint64_t seq);
void bench_get_prepare(struct bench_run *r, char *window, unsigned slot, uint64_t seq);
void bench_get_take(struct bench_run *r, unsigned slot, uint64_t seq);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations on bare libfabric: rank 0 works on memory of rank 1, which only polls its queue meanwhile, as
 * many providers carry out what comes in only then. A completion says that the operation has been carried out
 * (FI_DELIVERY_COMPLETE).
 *
 * Where the data is touched, each iteration stands alone: rank 1 prepares or checks its memory before and after it, and
 * the two wait for each other in between; neither is timed.
 */
#ifndef BENCH_OFI_ONE_SIDED_H
#define BENCH_OFI_ONE_SIDED_H

#include "bench/ofi/pair.h"

/** What a test does. `seq` counts the operations of a repeat, r->window of them an iteration. */
struct bench_pair_test {
	struct bench_test test; /* run: bench_pair_one_sided_run */
	uint64_t caps;          /* of the endpoints */
	const char *flags;      /* the same in words */
	/** On rank 1, before an iteration and after it, where data is touched; NULL: nothing. */
	void (*prepare)(struct bench_run *r, char *memory, uint64_t seq);
	void (*inspect)(struct bench_run *r, char *memory, uint64_t seq);
	/** On rank 0: posts one operation (once; -FI_EAGAIN: it will be tried again), whose data is at `at` in the
	 * buffers and in the memory of rank 1. */
	ssize_t (*post)(struct bench_pair *p, struct bench_run *r, size_t at, uint64_t seq, void *context);
	/** On rank 0, before that (if data is touched) and once it is complete; `at` is in the buffers; NULL: nothing.
	 */
	void (*fill)(struct bench_run *r, size_t at, uint64_t seq);
	void (*take)(struct bench_run *r, size_t at, uint64_t seq);
};

/** bench_test.run of all of them. */
int bench_pair_one_sided_run(struct bench_run *r, double *seconds);

/** Lays out and registers this rank's memory, of so many bytes, and learns of the other's. 0 or a negative errno,
 * reported. bench_pair_conceal undoes it, also after a failure or when there is nothing to undo. */
int bench_pair_expose(struct bench_pair *p, size_t bytes);
void bench_pair_conceal(struct bench_pair *p);

/** The parts of writes and reads. */
ssize_t bench_write_post(struct bench_pair *p, struct bench_run *r, size_t at, uint64_t seq, void *context);
void bench_write_fill(struct bench_run *r, size_t at, uint64_t seq);
void bench_write_inspect(struct bench_run *r, char *memory, uint64_t seq);
ssize_t bench_read_post(struct bench_pair *p, struct bench_run *r, size_t at, uint64_t seq, void *context);
void bench_read_prepare(struct bench_run *r, char *memory, uint64_t seq);
void bench_read_take(struct bench_run *r, size_t at, uint64_t seq);

/** Whether a word of an atomic operation is what it should be; counts it as wrong data if not. */
void bench_expect_word(struct bench_run *r, const void *at, uint64_t value);

#endif

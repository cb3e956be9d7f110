/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contents of messages. With --dirty the sender writes every byte before each send and the receiver reads every
 * byte after each receive, inside the timed loop: memory that is never written stays shared in both caches and flatters
 * whoever copies it. With -c the contents depend on who sends which message, so that an old, foreign or torn message
 * does not go unnoticed.
 */
#ifndef BENCH_COMMON_DATA_H
#define BENCH_COMMON_DATA_H

#include "bench/common/bench.h"

/** The seed of the contents of message number `seq`, of all loops (r->base), from rank `from` to rank `to`. */
static inline uint64_t bench_seed(int from, int to, uint64_t seq)
{
	return (seq << 24 ^ (uint64_t)from << 12 ^ (uint64_t)to) + 1;
}

/** Writes `size` bytes as r->touch (not BENCH_TOUCH_NONE) wants them. */
void bench_write(const struct bench_run *r, void *data, size_t size, uint64_t seed);

/** Reads `size` bytes; with BENCH_TOUCH_CHECK counts what differs in r->errors and prints the first difference of a
 * run. */
void bench_read(struct bench_run *r, const void *data, size_t size, uint64_t seed);

/** Counts one wrong datum of `size` bytes at `offset` of a message, and prints the first of a run. */
void bench_wrong(struct bench_run *r, size_t offset, uint64_t expected, uint64_t found);

static inline void bench_before_send(const struct bench_run *r, void *data, size_t size, uint64_t seed)
{
	if (r->touch != BENCH_TOUCH_NONE)
		bench_write(r, data, size, seed);
}

static inline void bench_after_recv(struct bench_run *r, const void *data, size_t size, uint64_t seed)
{
	if (r->touch != BENCH_TOUCH_NONE)
		bench_read(r, data, size, seed);
}

/** The slot of message `i` of a window. */
static inline size_t bench_slot(const struct bench_run *r, unsigned i)
{
	return (i < r->slots ? i : 0) * r->stride;
}

#endif

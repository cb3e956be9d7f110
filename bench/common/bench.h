/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a benchmark is made of. A test describes itself in a struct bench_test; the team is the processes that run it
 * and how they agree with each other; the sweep (sweep.h) runs the test over the sizes, and the report writes table and
 * JSON.
 *
 *   test       one measurement: latency, bandwidth, ...
 *   team       the processes (ranks) of a run: an MPI job, or two processes over bare libfabric
 *   iteration  one round of a test's loop: a ping-pong, a window of messages, a collective operation
 *   repeat     one timed loop over all iterations of a size; a size's result is the median over its repeats
 *   touch      whether the data is written before each send and read after each receive (--dirty), or also checked (-c)
 */
#ifndef BENCH_COMMON_BENCH_H
#define BENCH_COMMON_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_unit {
	BENCH_LATENCY,   /* microseconds a message or operation */
	BENCH_BANDWIDTH, /* MB (10^6 bytes) a second */
	BENCH_RATE,      /* messages a second */
};

enum bench_shape {
	BENCH_TWO_RANKS, /* exactly two */
	BENCH_PAIRS,     /* an even number; rank i of the lower half talks to rank i of the upper half */
	BENCH_ANY_RANKS, /* two or more */
};

enum bench_touch {
	BENCH_TOUCH_NONE,
	BENCH_TOUCH_DIRTY, /* write before each send, read after each receive */
	BENCH_TOUCH_CHECK, /* the same, with contents that the receiver knows and compares */
};

struct bench_team {
	int rank, ranks;
	const char *library; /* whose implementation runs below, with its version; may hold line feeds */
	/** Gives the largest `value` of all ranks to all of them. Synchronises. Returns 0, or a negative errno when the
	 * team is broken. */
	int (*largest)(struct bench_team *team, double *value);
};

/** One timed loop, as a test's run function sees it. */
struct bench_run {
	struct bench_team *team;
	size_t size;              /* bytes a message */
	unsigned long iterations; /* of the loop */
	unsigned window;          /* messages in flight, of a windowed test */
	uint64_t base;            /* messages of all loops before, on each rank: none's contents come again */
	enum bench_touch touch;
	char *send, *recv; /* the buffers: `slots` of `stride` bytes each */
	size_t stride;
	unsigned slots;       /* 1, or `window` where the data is touched */
	unsigned long errors; /* bytes found wrong so far */
	/* Of this size, where messages may be lost: how many were sent in all loops, and did not arrive. */
	unsigned long sent, lost;
};

struct bench_test {
	const char *name;
	const char *what;  /* one sentence for --help */
	const char *sizes; /* the default sweep, as a user would write it */
	enum bench_unit unit;
	enum bench_shape shape;
	unsigned messages;   /* counted for one iteration: 2 for a ping-pong */
	bool windowed;       /* ... times the window */
	bool per_pair;       /* ... times the number of pairs */
	bool block_per_rank; /* the buffers hold one block of `size` bytes for each rank */
	size_t grain;        /* sizes must be multiples of this; 0: any size */
	size_t only;         /* the one size that there is; 0: any */
	/** Runs the loop and sets the seconds that it took on this rank. Returns 0 or a negative errno, already
	 * reported. */
	int (*run)(struct bench_run *r, double *seconds);
	/** Called on each rank when a size is done and its row printed; may be NULL. */
	void (*after)(struct bench_run *r);
};

#endif

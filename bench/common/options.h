/* SPDX-License-Identifier: BSD-3-Clause */
/* The options that all benchmarks share. */
#ifndef BENCH_COMMON_OPTIONS_H
#define BENCH_COMMON_OPTIONS_H

#include "bench/common/bench.h"

#define BENCH_MAX_SIZES   256
#define BENCH_MAX_SIZE    ((size_t)1 << 30)
#define BENCH_MAX_REPEATS 1000
#define BENCH_PAGE        4096u /* what buffers' places are counted by, bytes */

/** How an MPI program's one-sided operations are brought to their end. */
enum bench_sync {
	BENCH_FLUSH, /* MPI_Win_lock_all before the loop, MPI_Win_flush after each iteration's operations */
	BENCH_LOCK,  /* MPI_Win_lock and MPI_Win_unlock around them */
	BENCH_FENCE, /* MPI_Win_fence before and after, by all */
	BENCH_PSCW,  /* MPI_Win_start and MPI_Win_complete, at the target MPI_Win_post and MPI_Win_wait */
};

struct bench_options {
	size_t size[BENCH_MAX_SIZES];
	size_t sizes;
	unsigned long iterations; /* of each repeat; 0: as many as take `seconds` */
	unsigned long warmup;     /* iterations before the first repeat of a size, at least */
	double seconds;           /* wanted for one repeat */
	unsigned window;
	unsigned repeats;
	size_t send_at, recv_at; /* bytes behind a page's beginning, where the two buffers begin */
	enum bench_touch touch;
	const char *json;     /* file to write; NULL: none */
	const char *ticks;    /* file to count in, without end (ticks.h); NULL: none */
	const char *provider; /* libfabric only */
	bool inject;          /* libfabric only: fi_tinject where the size allows it */
	bool delivered;       /* libfabric only: messages are sent with FI_DELIVERY_COMPLETE */
	bool one_sided;       /* the two below are of use */
	enum bench_sync sync;
	bool own_memory; /* MPI_Win_create over the program's own memory instead of MPI_Win_allocate */
};

extern const char *const bench_sync_names[];

enum bench_option_set { BENCH_OPTIONS_MPI, BENCH_OPTIONS_ONE_SIDED, BENCH_OPTIONS_FABRIC };

/**
 * Fills `o` from the command line of the program for `test`. `talk`: whether this process may print errors and help
 * (one rank of a job does). Returns 0; 1 when help was asked for and printed; -EINVAL when an argument is wrong, with
 * the reason on stderr. Texts in `o` point into `argv`.
 */
int bench_options_parse(int argc, char **argv, const struct bench_test *test, enum bench_option_set set, bool talk,
	struct bench_options *o);

/**
 * Reads a list of sizes: "8", "0,8,4K", "1:4M" (powers of two times the first), or a mixture. Units K, M, G are powers
 * of 1024. Returns 0, or -EINVAL with the reason in `why` (at most `len` bytes, terminated).
 */
int bench_sizes_parse(const char *text, size_t grain, struct bench_options *o, char *why, size_t len);

#endif

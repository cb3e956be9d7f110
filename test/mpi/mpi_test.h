/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI tests are one program, `mpi_tests NAME [option=number...] [until=FILE]`, a test a function, a subject a file;
 * `until` repeats the test, and once more when that file is there: it ends after what it is to meet. Nothing in
 * them knows of ropewalk: they hold over any transport, which is how they were found to be right. A test that sees
 * something wrong says where and what and aborts the job, so that mpirun's exit code is not 0; test/mpi/run limits the
 * time.
 */
#ifndef RWK_TEST_MPI_H
#define RWK_TEST_MPI_H

#include <mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mpi_test {
	const char *name;
	int min_ranks;
	int thread; /* the level of MPI_Init_thread */
	void (*run)(void);
	const char *about;
};

extern const struct mpi_test sizes_tests[], matching_tests[], request_tests[], flood_tests[], communicator_tests[],
	collective_tests[], datatype_tests[], thread_tests[], soak_tests[], one_sided_tests[];

extern int rank, ranks;

/**
 * The value of option `name` (name=number on the command line), or `otherwise`. Every option asked for is known from
 * then on.
 */
long option(const char *name, long otherwise);

_Noreturn void fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/** Unless `cond` holds, says so with the printf-like rest and aborts the job. */
#define EXPECT(cond, ...)                                                                                              \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			fail(__FILE__, __LINE__, __VA_ARGS__);                                                         \
	} while (0)

/**
 * Fills `buf` with bytes that depend on the seed and the place, so that neither a wrong message nor a shifted one
 * passes.
 */
void fill(void *buf, size_t len, uint64_t seed);

/** Expects what fill() wrote; `what` names the message in the complaint. */
void expect_filled(const void *buf, size_t len, uint64_t seed, const char *what);

/** Aligned memory, zeroed, or the end of the job. */
void *allocate(size_t len);

/** A small generator; the same seed gives every rank the same numbers. */
struct dice {
	uint64_t state;
};
uint64_t roll(struct dice *d, uint64_t sides);

/** Some size from 0 to `max`, small ones as likely as large ones. */
size_t roll_size(struct dice *d, size_t max);

/** Resident memory of this process, in bytes. */
size_t resident(void);

/** Spends about that many microseconds computing, without a call into MPI. */
void compute(unsigned usec);

#endif

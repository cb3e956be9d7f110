/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI side of the benchmarks: the job as a team, the main function, and the two loops that several tests share. */
#ifndef BENCH_MPI_TEAM_H
#define BENCH_MPI_TEAM_H

#include "bench/common/bench.h"
#include "bench/common/options.h"

/**
 * The main function of an MPI benchmark. Returns the exit status: 0, 1 when data was wrong, 2 when the run failed or an
 * argument was wrong. Errors inside MPI abort the job, as MPI's default error handler does.
 */
int bench_mpi_main(int argc, char **argv, const struct bench_test *test);

/** Its two halves: from MPI_Init to the options, whose result it returns (bench_options_parse); and from what came out
 * (bench_sweep, or a negative errno) to the exit status. */
int bench_mpi_begin(int argc, char **argv, const struct bench_test *test, enum bench_option_set set,
	struct bench_team *team, struct bench_options *o);
int bench_mpi_end(int rc);

/** The rank that this one is paired with: lower half with upper half. */
int bench_mpi_partner(const struct bench_run *r);

enum { BENCH_MPI_DATA = 1, BENCH_MPI_ANSWER }; /* tags */

/** A message to a rank or from it, written before and read after if data are dirty; `seq` makes what it holds. */
void bench_mpi_send(struct bench_run *r, int peer, unsigned long seq);
void bench_mpi_receive(struct bench_run *r, int peer, unsigned long seq);

/** What one of a pair does for number `seq`. */
typedef void bench_mpi_half(struct bench_run *r, int peer, unsigned long seq);
/** Each pair in turns, begun by the lower half. */
int bench_mpi_turns(struct bench_run *r, double *seconds, bench_mpi_half *send, bench_mpi_half *receive);
/** The lower half of each pair sends, the upper receives. */
int bench_mpi_one_way(struct bench_run *r, double *seconds, bench_mpi_half *send, bench_mpi_half *receive);
/** Ping-pong of each pair: turns of a message each. */
int bench_mpi_pingpong(struct bench_run *r, double *seconds);

/** Windows of messages from the lower half to the upper; each window is answered by one empty message. */
int bench_mpi_stream(struct bench_run *r, double *seconds);

#endif

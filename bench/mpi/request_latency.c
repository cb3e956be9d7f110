/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes one way and is answered shortly, as requests and remote procedure calls do. A ping-pong of equal messages
 * hands its memory back and forth, which hides what it costs to fetch it back.
 */
#include "bench/common/clock.h"
#include "bench/mpi/team.h"

#include <mpi.h>

enum { ANSWER = 8 }; /* bytes */

static void ask(struct bench_run *r, int peer, unsigned long seq)
{
	char answer[ANSWER];

	bench_mpi_send(r, peer, seq);
	MPI_Recv(answer, ANSWER, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void answer(struct bench_run *r, int peer, unsigned long seq)
{
	static const char answer[ANSWER];

	bench_mpi_receive(r, peer, seq);
	MPI_Send(answer, ANSWER, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD);
}

static int run(struct bench_run *r, double *seconds)
{
	int peer = bench_mpi_partner(r);
	double start = bench_now();

	for (unsigned long i = 0; i < r->iterations; i++)
		(r->team->rank < peer ? ask : answer)(r, peer, i);
	*seconds = bench_now() - start;
	return 0;
}

static const struct bench_test test = {
	.name = "request_latency",
	.what = "MPI requests: a message of that size, answered by one of 8 bytes; the time of both.",
	.sizes = "0,1:4M",
	.unit = BENCH_LATENCY,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

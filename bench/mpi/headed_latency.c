/* SPDX-License-Identifier: BSD-3-Clause */
/* A short head before each message, which says what it is: to a transport that looks like a stream, and is none. */
#include "bench/mpi/team.h"

#include <mpi.h>

enum { HEAD = 16 }; /* bytes */

static void send_both(struct bench_run *r, int peer, unsigned long seq)
{
	static const char head[HEAD];

	MPI_Send(head, HEAD, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD);
	bench_mpi_send(r, peer, seq);
}

static void receive_both(struct bench_run *r, int peer, unsigned long seq)
{
	char head[HEAD];

	MPI_Recv(head, HEAD, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	bench_mpi_receive(r, peer, seq);
}

static int run(struct bench_run *r, double *seconds)
{
	return bench_mpi_turns(r, seconds, send_both, receive_both);
}

static const struct bench_test test = {
	.name = "headed_latency",
	.what = "MPI latency of a message behind a head of 16 bytes: half of a ping-pong of both.",
	.sizes = "0,1:4M",
	.unit = BENCH_LATENCY,
	.shape = BENCH_TWO_RANKS,
	.messages = 2,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

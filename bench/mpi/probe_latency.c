/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose length the receiver asks for first, as programs do that do not know what comes. */
#include "bench/mpi/team.h"

#include <mpi.h>
#include <stdio.h>

static void probe_and_receive(struct bench_run *r, int peer, unsigned long seq)
{
	MPI_Status status;
	int length;

	MPI_Probe(peer, BENCH_MPI_DATA, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &length);
	if ((size_t)length != r->size && !r->errors++)
		fprintf(stderr, "rank %d: size %zu: a message of %d bytes\n", r->team->rank, r->size, length);
	bench_mpi_receive(r, peer, seq);
}

static int run(struct bench_run *r, double *seconds)
{
	return bench_mpi_turns(r, seconds, bench_mpi_send, probe_and_receive);
}

static const struct bench_test test = {
	.name = "probe_latency",
	.what = "MPI latency of messages of unknown length: half of a ping-pong of MPI_Send, MPI_Probe and MPI_Recv.",
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

/* SPDX-License-Identifier: BSD-3-Clause */
/* What it costs to ask for a message that has not come, as programs do between two pieces of work. */
#include "bench/common/clock.h"
#include "bench/mpi/team.h"

#include <mpi.h>
#include <stdio.h>

static int run(struct bench_run *r, double *seconds)
{
	int peer = bench_mpi_partner(r), there;
	MPI_Request request;
	double start;

	MPI_Irecv(r->recv, (int)r->size, MPI_BYTE, peer, BENCH_MPI_DATA, MPI_COMM_WORLD, &request);
	start = bench_now();
	for (unsigned long i = 0; i < r->iterations; i++) {
		MPI_Test(&request, &there, MPI_STATUS_IGNORE);
		if (there && !r->errors++)
			fprintf(stderr, "rank %d: size %zu: a message before it was sent\n", r->team->rank, r->size);
	}
	*seconds = bench_now() - start;
	MPI_Barrier(MPI_COMM_WORLD); /* nobody sends while another one still asks */
	MPI_Send(r->send, (int)r->size, MPI_BYTE, peer, BENCH_MPI_DATA, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return 0;
}

static const struct bench_test test = {
	.name = "test_time",
	.what = "The time of an MPI_Test of a receive whose message has not been sent.",
	.sizes = "8",
	.unit = BENCH_LATENCY,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

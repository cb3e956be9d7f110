/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One message after the other, each waited for, one way: what pipelines, gathers and masters that hand out work do.
 * Windows of receives that are posted beforehand hide what it costs when a message is there before its receive.
 */
#include "bench/common/clock.h"
#include "bench/mpi/team.h"

#include <mpi.h>

static void send_all(struct bench_run *r, int peer)
{
	for (unsigned long i = 0; i < r->iterations; i++)
		bench_mpi_send(r, peer, i);
	MPI_Recv(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_all(struct bench_run *r, int peer)
{
	for (unsigned long i = 0; i < r->iterations; i++)
		bench_mpi_receive(r, peer, i);
	MPI_Send(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD);
}

static int run(struct bench_run *r, double *seconds)
{
	int peer = bench_mpi_partner(r);
	double start = bench_now();

	(r->team->rank < peer ? send_all : receive_all)(r, peer);
	*seconds = bench_now() - start;
	return 0;
}

static const struct bench_test test = {
	.name = "blocking_rate",
	.what = "MPI message rate: MPI_Send and MPI_Recv of one message after the other, one way.",
	.sizes = "1:1M",
	.unit = BENCH_RATE,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

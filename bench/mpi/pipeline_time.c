/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pipeline of two: one works on each part for a while and sends it on, the other works on it as long. The sender
 * calls nothing but MPI_Send, so that parts that wait at its end for it to call something else make the whole take
 * twice the time.
 */
#include "bench/common/clock.h"
#include "bench/mpi/team.h"

#include <mpi.h>

#define WORK 10e-6 /* seconds */

static void work(void)
{
	double end = bench_now() + WORK;

	while (bench_now() < end)
		;
}

static void send_parts(struct bench_run *r, int peer, unsigned long iteration)
{
	for (unsigned i = 0; i < r->window; i++) {
		work();
		bench_mpi_send(r, peer, iteration * r->window + i);
	}
	MPI_Recv(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_parts(struct bench_run *r, int peer, unsigned long iteration)
{
	for (unsigned i = 0; i < r->window; i++) {
		bench_mpi_receive(r, peer, iteration * r->window + i);
		work();
	}
	MPI_Send(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD);
}

static int run(struct bench_run *r, double *seconds)
{
	return bench_mpi_one_way(r, seconds, send_parts, receive_parts);
}

static const struct bench_test test = {
	.name = "pipeline_time",
	.what = "MPI pipeline of two ranks that work for 10 us on each message of a window: the time of a message.",
	.sizes = "1:64K",
	.unit = BENCH_LATENCY,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.windowed = true,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

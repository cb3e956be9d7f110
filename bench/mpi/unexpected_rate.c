/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that have come before their receives: what puts them aside, and finds them again. */
#include "bench/common/data.h"
#include "bench/mpi/team.h"

#include <mpi.h>

/* An empty message with another tag goes last: who has it has all the others, too. */
static void send_window(struct bench_run *r, int peer, unsigned long iteration)
{
	MPI_Request request[r->window];

	for (unsigned i = 0; i < r->window; i++) {
		char *data = r->send + bench_slot(r, i);

		bench_before_send(
			r, data, r->size, bench_seed(r->team->rank, peer, r->base + iteration * r->window + i));
		MPI_Isend(data, (int)r->size, MPI_BYTE, peer, BENCH_MPI_DATA, MPI_COMM_WORLD, &request[i]);
	}
	MPI_Send(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD);
	MPI_Waitall((int)r->window, request, MPI_STATUSES_IGNORE);
	MPI_Recv(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_window(struct bench_run *r, int peer, unsigned long iteration)
{
	MPI_Recv(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (unsigned i = 0; i < r->window; i++)
		bench_mpi_receive(r, peer, iteration * r->window + i);
	MPI_Send(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD);
}

static int run(struct bench_run *r, double *seconds)
{
	return bench_mpi_one_way(r, seconds, send_window, receive_window);
}

static const struct bench_test test = {
	.name = "unexpected_rate",
	.what = "MPI message rate: windows of messages that have come before the first of them is received.",
	.sizes = "1:64K",
	.unit = BENCH_RATE,
	.shape = BENCH_TWO_RANKS,
	.messages = 1,
	.windowed = true,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

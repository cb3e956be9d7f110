/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/mpi/team.h"

#include <mpi.h>

static void exchange_windows(struct bench_run *r, int peer, unsigned long iteration, MPI_Request *request)
{
	int me = r->team->rank;
	unsigned i;

	for (i = 0; i < r->window; i++)
		MPI_Irecv(r->recv + bench_slot(r, i), (int)r->size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request[i]);
	for (i = 0; i < r->window; i++) {
		char *data = r->send + bench_slot(r, i);

		bench_before_send(r, data, r->size, bench_seed(me, peer, r->base + iteration * r->window + i));
		MPI_Isend(data, (int)r->size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request[r->window + i]);
	}
	MPI_Waitall(2 * (int)r->window, request, MPI_STATUSES_IGNORE);
	for (i = 0; i < r->window; i++)
		bench_after_recv(r, r->recv + bench_slot(r, i), r->size,
			bench_seed(peer, me, r->base + iteration * r->window + i));
}

static int run(struct bench_run *r, double *seconds)
{
	MPI_Request request[2 * r->window];
	int peer = bench_mpi_partner(r);
	double start = bench_now();

	for (unsigned long i = 0; i < r->iterations; i++)
		exchange_windows(r, peer, i, request);
	*seconds = bench_now() - start;
	return 0;
}

static const struct bench_test test = {
	.name = "bidirectional",
	.what = "MPI bandwidth of both directions together: windows of messages both ways between two ranks.",
	.sizes = "1:4M",
	.unit = BENCH_BANDWIDTH,
	.shape = BENCH_TWO_RANKS,
	.messages = 2,
	.windowed = true,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Both send at once, as neighbours that exchange their borders do: each is busy when the other's message comes. */
#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/mpi/team.h"

#include <mpi.h>

static int run(struct bench_run *r, double *seconds)
{
	int peer = bench_mpi_partner(r);
	double start = bench_now();

	for (unsigned long i = 0; i < r->iterations; i++) {
		bench_before_send(r, r->send, r->size, bench_seed(r->team->rank, peer, r->base + i));
		MPI_Sendrecv(r->send, (int)r->size, MPI_BYTE, peer, 1, r->recv, (int)r->size, MPI_BYTE, peer, 1,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		bench_after_recv(r, r->recv, r->size, bench_seed(peer, r->team->rank, r->base + i));
	}
	*seconds = bench_now() - start;
	return 0;
}

static const struct bench_test test = {
	.name = "exchange_latency",
	.what = "MPI_Sendrecv of two ranks with each other: the time of one, both ways.",
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

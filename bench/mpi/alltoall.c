/* SPDX-License-Identifier: BSD-3-Clause */
/* Timed as bcast.c says. */
#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/mpi/team.h"

#include <mpi.h>

static void one_operation(struct bench_run *r, unsigned long seq)
{
	int me = r->team->rank, rank;

	for (rank = 0; rank < r->team->ranks; rank++)
		bench_before_send(r, r->send + r->size * rank, r->size, bench_seed(me, rank, seq));
	MPI_Alltoall(r->send, (int)r->size, MPI_BYTE, r->recv, (int)r->size, MPI_BYTE, MPI_COMM_WORLD);
	for (rank = 0; rank < r->team->ranks; rank++)
		bench_after_recv(r, r->recv + r->size * rank, r->size, bench_seed(rank, me, seq));
}

static int run(struct bench_run *r, double *seconds)
{
	*seconds = 0;
	for (unsigned long i = 0; i < r->iterations; i++) {
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = bench_now();
		one_operation(r, r->base + i);
		*seconds += bench_now() - start;
	}
	return 0;
}

static const struct bench_test test = {
	.name = "alltoall",
	.what = "Time of MPI_Alltoall, of the slowest rank; the size is that of the block for one rank.",
	.sizes = "1:1M",
	.unit = BENCH_LATENCY,
	.shape = BENCH_ANY_RANKS,
	.messages = 1,
	.block_per_rank = true,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

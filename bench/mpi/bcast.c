/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each operation is timed on its own after a barrier that is not timed: ranks that do not depend on each other, such as
 * the root of a broadcast, would otherwise run ahead, and the loop would measure a pipeline.
 */
#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/mpi/team.h"

#include <mpi.h>

static int run(struct bench_run *r, double *seconds)
{
	bool root = !r->team->rank;
	char *data = root ? r->send : r->recv;

	*seconds = 0;
	for (unsigned long i = 0; i < r->iterations; i++) {
		uint64_t seed = bench_seed(0, 0, r->base + i);
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = bench_now();
		if (root)
			bench_before_send(r, data, r->size, seed);
		MPI_Bcast(data, (int)r->size, MPI_BYTE, 0, MPI_COMM_WORLD);
		if (!root)
			bench_after_recv(r, data, r->size, seed);
		*seconds += bench_now() - start;
	}
	return 0;
}

static const struct bench_test test = {
	.name = "bcast",
	.what = "Time of MPI_Bcast from rank 0, of the slowest rank.",
	.sizes = "1:1M",
	.unit = BENCH_LATENCY,
	.shape = BENCH_ANY_RANKS,
	.messages = 1,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums 4-byte unsigned integers, whose sum is exact in any order. Timed as bcast.c says. */
#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/mpi/team.h"

#include <mpi.h>

/* Element `i` of rank `rank` is element(seq, i) + rank. */
static uint32_t element(unsigned long seq, size_t i)
{
	return (uint32_t)(seq * 2654435761u + i * 40503u);
}

static void write_elements(const struct bench_run *r, unsigned long seq)
{
	uint32_t *v = (uint32_t *)r->send;

	if (r->touch != BENCH_TOUCH_CHECK) {
		bench_before_send(r, v, r->size, bench_seed(0, 0, seq));
		return;
	}
	for (size_t i = 0; i < r->size / 4; i++)
		v[i] = element(seq, i) + (uint32_t)r->team->rank;
}

static void read_sums(struct bench_run *r, unsigned long seq)
{
	const uint32_t *v = (const uint32_t *)r->recv;
	uint32_t ranks = r->team->ranks;

	if (r->touch != BENCH_TOUCH_CHECK) {
		bench_after_recv(r, v, r->size, 0);
		return;
	}
	for (size_t i = 0; i < r->size / 4; i++) {
		uint32_t sum = ranks * element(seq, i) + ranks * (ranks - 1) / 2;

		if (v[i] != sum)
			bench_wrong(r, 4 * i, sum, v[i]);
	}
}

static int run(struct bench_run *r, double *seconds)
{
	*seconds = 0;
	for (unsigned long i = 0; i < r->iterations; i++) {
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = bench_now();
		write_elements(r, r->base + i);
		MPI_Allreduce(r->send, r->recv, (int)(r->size / 4), MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
		read_sums(r, r->base + i);
		*seconds += bench_now() - start;
	}
	return 0;
}

static const struct bench_test test = {
	.name = "allreduce",
	.what = "Time of MPI_Allreduce (sum of 4-byte integers), of the slowest rank; the size is that of the vector.",
	.sizes = "4:1M",
	.unit = BENCH_LATENCY,
	.shape = BENCH_ANY_RANKS,
	.messages = 1,
	.grain = 4,
	.run = run,
};

int main(int argc, char **argv)
{
	return bench_mpi_main(argc, argv, &test);
}

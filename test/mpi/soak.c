/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random traffic between all ranks. Every rank rolls the same dice, so that each knows all messages of a round: source,
 * target, size, tag. It starts its sends and receives in an order of its own, in ways of its own, and checks every
 * byte.
 */
#include "mpi_test.h"

enum { TAGS = 3 };

struct message {
	int from, to, tag, len;
	uint64_t seed;
	char *buf;
};

static void post(struct message *m, struct dice *own, MPI_Request *r)
{
	m->buf = allocate((size_t)m->len);
	if (m->from == rank) {
		fill(m->buf, (size_t)m->len, m->seed);
		if (roll(own, 4))
			MPI_Isend(m->buf, m->len, MPI_BYTE, m->to, m->tag, MPI_COMM_WORLD, r);
		else
			MPI_Issend(m->buf, m->len, MPI_BYTE, m->to, m->tag, MPI_COMM_WORLD, r);
	} else {
		MPI_Irecv(m->buf, m->len, MPI_BYTE, m->from, m->tag, MPI_COMM_WORLD, r);
	}
}

/* Sends, then receives, or the other way, or mixed; within a source and tag in order, because MPI matches in order. */
static void round_of(struct dice *common, struct dice *own, int n, size_t max, uint64_t number)
{
	struct message *all = allocate((size_t)n * sizeof(*all)), *m;
	MPI_Request *r = allocate((size_t)n * sizeof(*r));
	int used = 0, order = (int)roll(own, 3);

	for (int i = 0; i < n; i++) {
		m = &all[i];
		m->from = (int)roll(common, (uint64_t)ranks);
		m->to = (m->from + 1 + (int)roll(common, (uint64_t)ranks - 1)) % ranks;
		m->tag = (int)roll(common, TAGS);
		m->len = (int)roll_size(common, i % 10 ? max / 64 : max);
		m->seed = number * 1000000 + (uint64_t)i;
	}
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < n; i++) {
			bool sends = all[i].from == rank, receives = all[i].to == rank;
			bool now = order == 2 ? pass == 0 : sends == (order == pass);

			if ((sends || receives) && now)
				post(&all[i], own, &r[used++]);
		}
		if (roll(own, 5) == 0)
			compute(2000);
	}
	MPI_Waitall(used, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++) {
		if (all[i].to == rank)
			expect_filled(all[i].buf, (size_t)all[i].len, all[i].seed, "soak");
		free(all[i].buf);
	}
	free(all);
	free(r);
}

static void soak(void)
{
	long seconds = option("seconds", 10), seed = option("seed", 1);
	int n = (int)option("n", 200);
	size_t max = (size_t)option("max", 4 << 20);
	struct dice common = {.state = (uint64_t)seed}, own = {.state = (uint64_t)(seed * 1000 + rank)};
	double start = MPI_Wtime();
	uint64_t rounds = 0;
	int more = 1;

	while (more) {
		round_of(&common, &own, n, max, rounds++);
		more = MPI_Wtime() - start < (double)seconds;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("soak: %llu rounds of %d messages, seed %ld\n", (unsigned long long)rounds, n, seed);
}

const struct mpi_test soak_tests[] = {
	{"soak", 2, MPI_THREAD_SINGLE, soak, "random traffic for seconds=; n= messages a round, max= bytes, seed="},
	{0},
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: threads of one rank send, receive and probe at the same time, each with a tag or communicator of
 * its own.
 */
#include "mpi_test.h"

#include <pthread.h>

struct job {
	pthread_t thread;
	int number, rounds;
	MPI_Comm comm;
};

enum { MOST = 200000, WINDOW = 8 };

/*
 * Several messages under way to the same thread of the neighbour, sizes at random; every second job receives from any
 * source.
 */
static void *stream(void *arg)
{
	struct job *job = arg;
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, tag = 10 + job->number;
	struct dice dice = {.state = (uint64_t)job->number};
	char *out[WINDOW], *in[WINDOW];
	MPI_Request r[2 * WINDOW];
	MPI_Status st[2 * WINDOW];
	int n, len[WINDOW];

	for (int i = 0; i < WINDOW; i++) {
		out[i] = allocate(MOST);
		in[i] = allocate(MOST);
	}
	for (int round = 0; round < job->rounds; round++) {
		for (int i = 0; i < WINDOW; i++) {
			uint64_t seed = (uint64_t)((round * WINDOW + i) * 100 + job->number);

			len[i] = (int)roll_size(&dice, i ? 5000 : MOST);
			MPI_Irecv(
				in[i], MOST, MPI_BYTE, job->number % 2 ? MPI_ANY_SOURCE : left, tag, job->comm, &r[i]);
			fill(out[i], (size_t)len[i], seed * 64 + (uint64_t)rank);
			MPI_Isend(out[i], len[i], MPI_BYTE, right, tag, job->comm, &r[WINDOW + i]);
		}
		MPI_Waitall(2 * WINDOW, r, st);
		for (int i = 0; i < WINDOW; i++) {
			uint64_t seed = (uint64_t)((round * WINDOW + i) * 100 + job->number);

			MPI_Get_count(&st[i], MPI_BYTE, &n);
			EXPECT(n == len[i] && st[i].MPI_SOURCE == left && st[i].MPI_TAG == tag,
				"thread %d: %d bytes from %d tag %d, should be %d from %d tag %d", job->number, n,
				st[i].MPI_SOURCE, st[i].MPI_TAG, len[i], left, tag);
			expect_filled(in[i], (size_t)n, seed * 64 + (uint64_t)left, "between threads");
		}
	}
	for (int i = 0; i < WINDOW; i++) {
		free(out[i]);
		free(in[i]);
	}
	return NULL;
}

/* A matched probe and its receive, while the other threads do theirs: nobody takes another's message. */
static void *prober(void *arg)
{
	struct job *job = arg;
	int right = (rank + 1) % ranks, tag = 10 + job->number, value, n;
	MPI_Message m;
	MPI_Status st;
	MPI_Request r;

	for (int round = 0; round < job->rounds * 4; round++) {
		int sent = round * 64 + job->number, flag = 0;

		MPI_Isend(&sent, 1, MPI_INT, right, tag, job->comm, &r);
		while (!flag)
			MPI_Improbe(MPI_ANY_SOURCE, tag, job->comm, &flag, &m, &st);
		MPI_Get_count(&st, MPI_INT, &n);
		EXPECT(n == 1, "thread %d probed a message of %d integers", job->number, n);
		MPI_Mrecv(&value, 1, MPI_INT, &m, &st);
		EXPECT(value == sent, "thread %d got %d, should be %d", job->number, value, sent);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	return NULL;
}

static void threads(void)
{
	int n = (int)option("threads", 4), rounds = (int)option("rounds", 60);
	struct job *jobs = allocate((size_t)n * sizeof(*jobs));
	MPI_Comm own;

	MPI_Comm_dup(MPI_COMM_WORLD, &own);
	for (int i = 0; i < n; i++) {
		jobs[i] = (struct job){.number = i, .rounds = rounds, .comm = i % 4 < 2 ? MPI_COMM_WORLD : own};
		EXPECT(!pthread_create(&jobs[i].thread, NULL, i % 4 == 3 ? prober : stream, &jobs[i]), "no thread");
	}
	for (int i = 0; i < n; i++)
		pthread_join(jobs[i].thread, NULL);
	if (!option("keep", 0))
		MPI_Comm_free(&own);
	free(jobs);
}

const struct mpi_test thread_tests[] = {
	{"threads", 2, MPI_THREAD_MULTIPLE, threads,
		"threads= threads a rank, rounds= each; keep=1: frees no communicator"},
	{0},
};

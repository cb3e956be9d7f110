/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: synchronous sends, persistent ones, very many at once, and messages to oneself. */
#include "mpi_test.h"

/* A synchronous send is not complete before its receive is posted, whatever its size; afterwards it completes. */
static void ssend(void)
{
	static const int lens[] = {0, 1, 64, 4000, 70000, 1000000};
	char *buf = allocate(1000000);
	MPI_Request r;
	int flag;

	for (size_t i = 0; rank < 2 && i < sizeof(lens) / sizeof(lens[0]); i++) {
		if (rank == 1) {
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Recv(buf, lens[i], MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			expect_filled(buf, (size_t)lens[i], i, "sent synchronously");
			continue;
		}
		fill(buf, (size_t)lens[i], i);
		MPI_Issend(buf, lens[i], MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r);
		for (int k = 0; k < 200; k++) {
			MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
			EXPECT(!flag, "Issend of %d bytes is complete, but nobody has posted a receive", lens[i]);
			compute(20);
		}
		MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	free(buf);
}

/* Persistent requests of each kind, started again and again with new contents. */
static void persistent(void)
{
	enum { N = 6 };
	static const int lens[N] = {0, 8, 500, 5000, 60000, 400000};
	int rounds = (int)option("rounds", 30), left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
	MPI_Request r[2 * N];
	char *out[N], *in[N];

	for (int i = 0; i < N; i++) {
		out[i] = allocate((size_t)lens[i]);
		in[i] = allocate((size_t)lens[i]);
		MPI_Recv_init(in[i], lens[i], MPI_BYTE, left, i, MPI_COMM_WORLD, &r[i]);
		if (i % 2)
			MPI_Send_init(out[i], lens[i], MPI_BYTE, right, i, MPI_COMM_WORLD, &r[N + i]);
		else
			MPI_Ssend_init(out[i], lens[i], MPI_BYTE, right, i, MPI_COMM_WORLD, &r[N + i]);
	}
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < N; i++)
			fill(out[i], (size_t)lens[i], (uint64_t)(round * N + i + right * 7919));
		MPI_Startall(2 * N, r);
		MPI_Waitall(2 * N, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < N; i++)
			expect_filled(in[i], (size_t)lens[i], (uint64_t)(round * N + i + rank * 7919), "persistent");
	}
	for (int i = 0; i < N; i++) {
		MPI_Request_free(&r[i]);
		MPI_Request_free(&r[N + i]);
		free(out[i]);
		free(in[i]);
	}
}

/*
 * n receives and n sends at once with every other rank, posted in opposite orders and by tag, so that matching works
 * hard.
 */
static void outstanding(void)
{
	int n = (int)option("n", 4000), len = (int)option("len", 200), others = ranks - 1;
	size_t all = (size_t)n * (size_t)others;
	char *out = allocate((size_t)n * (size_t)len), *in = allocate(all * (size_t)len);
	MPI_Request *r = allocate(2 * all * sizeof(*r));
	size_t k = 0;

	for (int i = 0; i < n; i++)
		fill(out + (size_t)i * (size_t)len, (size_t)len, (uint64_t)(rank * n + i));
	for (int i = 0; i < n; i++) {
		for (int o = 1; o < ranks; o++, k++)
			MPI_Irecv(in + k * (size_t)len, len, MPI_BYTE, (rank + o) % ranks, i, MPI_COMM_WORLD, &r[k]);
	}
	for (int i = n; i-- > 0;) {
		for (int o = 1; o < ranks; o++, k++)
			MPI_Isend(out + (size_t)i * (size_t)len, len, MPI_BYTE, (rank + o) % ranks, i, MPI_COMM_WORLD,
				&r[k]);
	}
	MPI_Waitall((int)k, r, MPI_STATUSES_IGNORE);
	k = 0;
	for (int i = 0; i < n; i++) {
		for (int o = 1; o < ranks; o++, k++)
			expect_filled(in + k * (size_t)len, (size_t)len, (uint64_t)((rank + o) % ranks * n + i),
				"one of many");
	}
	free(r);
	free(in);
	free(out);
}

/* Messages to oneself: posted, unexpected, probed, synchronous, of every kind of size. */
static void self(void)
{
	static const int lens[] = {0, 1, 100, 9000, 100000, 3000000};
	char *out = allocate(3000000), *in = allocate(3000000);
	MPI_Request r[2];
	MPI_Status st;

	for (int i = 0; i < 6 * 4; i++) {
		int len = lens[i / 4];

		fill(out, (size_t)len, (uint64_t)i);
		memset(in, 0, (size_t)len);
		switch (i % 4) {
		case 0:
			MPI_Irecv(in, len, MPI_BYTE, rank, i, MPI_COMM_WORLD, &r[0]);
			MPI_Isend(out, len, MPI_BYTE, rank, i, MPI_COMM_WORLD, &r[1]);
			break;
		case 1:
			MPI_Isend(out, len, MPI_BYTE, rank, i, MPI_COMM_WORLD, &r[1]);
			MPI_Irecv(in, len, MPI_BYTE, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &r[0]);
			break;
		case 2:
			MPI_Issend(out, len, MPI_BYTE, 0, i, MPI_COMM_SELF, &r[1]);
			MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_SELF, &st);
			MPI_Irecv(in, len, MPI_BYTE, 0, st.MPI_TAG, MPI_COMM_SELF, &r[0]);
			break;
		default:
			MPI_Irecv(in, len, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &r[0]);
			MPI_Isend(out, len, MPI_BYTE, 0, i, MPI_COMM_SELF, &r[1]);
		}
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		expect_filled(in, (size_t)len, (uint64_t)i, "to oneself");
	}
	free(out);
	free(in);
}

const struct mpi_test request_tests[] = {
	{"ssend", 2, MPI_THREAD_SINGLE, ssend, "synchronous sends wait for their receive"},
	{"persistent", 2, MPI_THREAD_SINGLE, persistent, "persistent requests; rounds="},
	{"outstanding", 2, MPI_THREAD_SINGLE, outstanding,
		"n= sends and receives at once with every rank, of len= bytes"},
	{"self", 1, MPI_THREAD_SINGLE, self, "messages to oneself"},
	{0},
};

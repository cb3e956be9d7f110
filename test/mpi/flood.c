/* SPDX-License-Identifier: BSD-3-Clause */
/* More messages than anyone has asked for: legal MPI must neither deadlock nor fill the memory. */
#include "mpi_test.h"

enum { WINDOW = 16 << 20 };

static MPI_Request *begin(char *buf, long n, int len, int peer)
{
	MPI_Request *r = allocate((size_t)n * sizeof(*r));
	size_t step = 64, room = WINDOW - (size_t)len;

	for (long i = 0; i < n; i++)
		MPI_Isend(buf + (size_t)i * step % room, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[i]);
	return r;
}

/*
 * Rank 2k sends n messages of tag 1 to rank 2k+1 (both=1: and the other way), then one of tag 2. The receiver waits for
 * tag 2 first: everything else is unexpected. Its resident memory may grow by `header` bytes a message and `credit`
 * bytes in all, not by the payload (rss=0: not checked). Then the messages are received, each with its own contents, in
 * order.
 */
static void flood(void)
{
	long n = option("n", 300000), header = option("header", 512), credit = option("credit", 64 << 20);
	int len = (int)option("len", 4096), peer = rank ^ 1;
	bool both = option("both", 0), rss = option("rss", 1), sends = both || rank % 2 == 0,
	     receives = both || rank % 2;
	char *buf = allocate(WINDOW), *in = allocate((size_t)len);
	size_t before, after;
	MPI_Request *r = NULL;

	fill(buf, WINDOW, 1);
	before = resident();
	if (peer < ranks && sends) {
		r = begin(buf, n, len, peer);
		MPI_Send(&n, 1, MPI_LONG, peer, 2, MPI_COMM_WORLD);
	}
	if (peer < ranks && receives) {
		size_t step = 64, room = WINDOW - (size_t)len, limit;

		MPI_Recv(&n, 1, MPI_LONG, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		after = resident();
		/* a rank that sends too has its requests, which are Open MPI's to keep */
		limit = (size_t)n * (size_t)(header + (sends ? 1024 : 0)) + (size_t)credit;
		EXPECT(!rss || after < before + limit,
			"%ld unexpected messages of %d bytes: memory grew by %zu KB, limit %zu KB", n, len,
			(after - before) >> 10, limit >> 10);
		for (long i = 0; i < n; i++) {
			MPI_Recv(in, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			EXPECT(!memcmp(in, buf + (size_t)i * step % room, (size_t)len),
				"message %ld is not what was sent", i);
		}
	}
	if (r)
		MPI_Waitall((int)n, r, MPI_STATUSES_IGNORE);
	free(r);
	free(buf);
	free(in);
}

/*
 * Every rank sends n messages to rank 0, which computes for a while without a call into MPI and then takes them from
 * the last rank on.
 */
static void incast(void)
{
	int n = (int)option("n", 5000), len = (int)option("len", 3000);
	char *buf = allocate((size_t)len);
	MPI_Request *r = allocate((size_t)n * sizeof(*r));

	fill(buf, (size_t)len, (uint64_t)rank);
	for (int i = 0; rank && i < n; i++)
		MPI_Isend(buf, len, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &r[i]);
	if (rank == 0) {
		compute(300000);
		for (int source = ranks - 1; source > 0; source--) {
			for (int i = 0; i < n; i++) {
				MPI_Recv(buf, len, MPI_BYTE, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				expect_filled(buf, (size_t)len, (uint64_t)source, "one of an incast");
			}
		}
	} else {
		MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
	}
	free(r);
	free(buf);
}

/*
 * Every rank sends n messages to rank 0, a few at a time; it takes whoever's comes, and computes for a while for each.
 * When the first of them is done the others have come far, too: at least a `least`th of the way.
 */
static void shares(void)
{
	enum { AHEAD = 4 };
	long n = option("n", 2000), least = option("least", 10), busy = option("busy", 20), few = n, most = 0;
	int len = (int)option("len", 60000);
	char *buf = allocate((size_t)len);
	MPI_Request r[AHEAD] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	long *come = allocate((size_t)ranks * sizeof(*come));

	fill(buf, (size_t)len, (uint64_t)rank);
	memset(come, 0, (size_t)ranks * sizeof(*come));
	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = 0; rank && i < n; i++) {
		MPI_Wait(&r[i % AHEAD], MPI_STATUS_IGNORE);
		MPI_Isend(buf, len, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &r[i % AHEAD]);
	}
	for (long i = 0; rank == 0 && i < n * (ranks - 1); i++) {
		MPI_Status status;

		MPI_Recv(buf, len, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
		expect_filled(buf, (size_t)len, (uint64_t)status.MPI_SOURCE, "one of those that share a receiver");
		compute((unsigned)busy);
		if (++come[status.MPI_SOURCE] < n || most)
			continue;
		most = n;
		for (int source = 1; source < ranks; source++)
			few = come[source] < few ? come[source] : few;
		printf("shares: when the first of %d had sent %ld messages, the last had sent %ld\n", ranks - 1, n,
			few);
		EXPECT(few * least >= n, "the slowest of %d senders has come to %ld of %ld", ranks - 1, few, n);
	}
	MPI_Waitall(AHEAD, r, MPI_STATUSES_IGNORE);
	free(come);
	free(buf);
}

/*
 * Rank 2k has n messages under way to rank 2k+1, which waits for them, and now and then computes without a call into
 * MPI. Buffers stay as they are, so that on one node the fastest way is that both sides copy.
 */
static void departures(void)
{
	int n = (int)option("n", 1000), peer = rank ^ 1;
	size_t len = (size_t)option("len", 65536);
	char *buf = allocate((size_t)n * len);
	MPI_Request *r = allocate((size_t)n * sizeof(*r));

	for (int i = 0; rank % 2 == 0 && i < n; i++)
		fill(buf + (size_t)i * len, len, (uint64_t)i);
	for (long round = 0; peer < ranks && round < option("rounds", 20); round++) {
		for (int i = 0; i < n; i++) {
			char *at = buf + (size_t)i * len;

			if (rank % 2)
				MPI_Irecv(at, (int)len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[i]);
			else
				MPI_Isend(at, (int)len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[i]);
		}
		if (rank % 2 == 0 && round % 3 == 2)
			compute((unsigned)option("away", 20000));
		MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
	}
	for (int i = 0; rank % 2 && peer < ranks && i < n; i++)
		expect_filled(buf + (size_t)i * len, len, (uint64_t)i, "one whose sender had left");
	free(r);
	free(buf);
}

const struct mpi_test flood_tests[] = {
	{"flood", 2, MPI_THREAD_SINGLE, flood, "n= unexpected messages of len= bytes; both= rss= header= credit="},
	{"incast", 2, MPI_THREAD_SINGLE, incast, "all send n= messages of len= bytes to one"},
	{"departures", 2, MPI_THREAD_SINGLE, departures, "senders of n= messages of len= bytes compute; away= rounds="},
	{"shares", 2, MPI_THREAD_SINGLE, shares, "the same, who sends gets at it in turn; busy= least="},
	{0},
};

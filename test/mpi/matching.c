/* SPDX-License-Identifier: BSD-3-Clause */
/* Which message meets which receive: wildcards, order, probes, cancel, truncation. */
#include "mpi_test.h"

enum { EAGER = 200, MIDDLE = 20000, LONG = 300000 };

static const int lens[] = {0, 8, EAGER, MIDDLE, LONG};

enum { LENS = sizeof(lens) / sizeof(lens[0]) };

enum { EACH = 40, TAGS = 4 };

/* Receives one message and checks that it is the next of its source and tag. `seen` counts them: [source][tag]. */
static int take(char *buf, int source, int (*seen)[TAGS])
{
	int number, len, n, from, tag;
	MPI_Status st;

	MPI_Recv(buf, LONG, MPI_BYTE, source, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
	from = st.MPI_SOURCE;
	tag = st.MPI_TAG;
	EXPECT(source == MPI_ANY_SOURCE || from == source, "from %d, asked for %d", from, source);
	EXPECT(from > 0 && from < ranks && tag >= 0 && tag < TAGS, "source %d tag %d", from, tag);
	number = seen[from][tag]++ * TAGS + tag;
	len = lens[(number / TAGS) % LENS];
	MPI_Get_count(&st, MPI_BYTE, &n);
	EXPECT(n == len, "message %d of rank %d: %d bytes, should be %d", number, from, n, len);
	expect_filled(buf, (size_t)len, (uint64_t)(from * 1000 + number), "a wildcard receive");
	return from;
}

/*
 * Each rank but 0 sends EACH messages of mixed sizes, numbered in each tag; rank 0 takes half of all from anyone, the
 * rest by source.
 */
static void wildcards(void)
{
	int(*seen)[TAGS] = allocate((size_t)ranks * sizeof(*seen));
	int *from = allocate((size_t)ranks * sizeof(*from));
	char *buf = allocate(LONG);

	for (int i = 0; rank && i < EACH; i++) {
		int len = lens[(i / TAGS) % LENS];

		fill(buf, (size_t)len, (uint64_t)(rank * 1000 + i));
		MPI_Send(buf, len, MPI_BYTE, 0, i % TAGS, MPI_COMM_WORLD);
	}
	for (int i = 0; !rank && i < EACH * (ranks - 1) / 2; i++)
		from[take(buf, MPI_ANY_SOURCE, seen)]++;
	for (int source = 1; !rank && source < ranks; source++) {
		for (; from[source] < EACH; from[source]++)
			take(buf, source, seen);
		for (int t = 0; t < TAGS; t++)
			EXPECT(seen[source][t] == EACH / TAGS, "tag %d of rank %d came %d times", t, source,
				seen[source][t]);
	}
	free(buf);
	free(from);
	free(seen);
}

/* Receives posted with and without wildcards before anything is sent take the messages in the order of posting. */
static void posting_order(void)
{
	enum { N = 6 };
	static const int tags[N] = {5, MPI_ANY_TAG, 5, 7, MPI_ANY_TAG, MPI_ANY_TAG};
	static const int sent[N] = {7, 5, 5, 9, 5, 7};
	/*
	 * 7 takes the first receive that fits, the second one; 5 the first; 5 the third; 9 the fifth; 5 the sixth; 7
	 * the fourth
	 */
	static const int taken_by[N] = {1, 0, 2, 4, 5, 3};
	int buf[N], value;
	MPI_Request r[N];
	MPI_Status st[N];

	if (rank == 0) {
		for (int i = 0; i < N; i++)
			MPI_Irecv(&buf[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 1, tags[i], MPI_COMM_WORLD, &r[i]);
		MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Waitall(N, r, st);
		for (int i = 0; i < N; i++) {
			EXPECT(buf[taken_by[i]] == i, "receive %d took message %d, should be %d", taken_by[i],
				buf[taken_by[i]], i);
			EXPECT(st[taken_by[i]].MPI_TAG == sent[i], "receive %d says tag %d", taken_by[i],
				st[taken_by[i]].MPI_TAG);
		}
	} else if (rank == 1) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < N; i++) {
			value = i;
			MPI_Send(&value, 1, MPI_INT, 0, sent[i], MPI_COMM_WORLD);
		}
	}
}

/* Messages of one envelope never overtake each other, however their sizes make them travel. */
static void ordering(void)
{
	int n = (int)option("n", 2000);
	struct dice dice = {.state = 7};
	int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
	char *in = allocate(LONG);
	MPI_Request *r = calloc((size_t)n, sizeof(*r));
	char **out = calloc((size_t)n, sizeof(*out));
	MPI_Status st;
	int count;

	for (int i = 0; i < n; i++) {
		int len = (int)roll_size(&dice, i % 50 ? MIDDLE : LONG);

		out[i] = allocate((size_t)len);
		fill(out[i], (size_t)len, (uint64_t)i);
		MPI_Isend(out[i], len, MPI_BYTE, right, 3, MPI_COMM_WORLD, &r[i]);
	}
	dice.state = 7;
	for (int i = 0; i < n; i++) {
		int len = (int)roll_size(&dice, i % 50 ? MIDDLE : LONG);

		MPI_Recv(in, LONG, MPI_BYTE, i % 3 ? left : MPI_ANY_SOURCE, i % 2 ? 3 : MPI_ANY_TAG, MPI_COMM_WORLD,
			&st);
		MPI_Get_count(&st, MPI_BYTE, &count);
		EXPECT(count == len, "message %d has %d bytes, should be %d: overtaken", i, count, len);
		expect_filled(in, (size_t)len, (uint64_t)i, "in order");
	}
	MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		free(out[i]);
	free(out);
	free(r);
	free(in);
}

static void probe_one(char *buf, int len, int how)
{
	MPI_Message m = MPI_MESSAGE_NULL;
	MPI_Status st;
	int flag = 0, n;

	memset(buf, 0, (size_t)len);
	switch (how) {
	case 0:
		MPI_Probe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &st);
		break;
	case 1:
		while (!flag)
			MPI_Iprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &st);
		break;
	case 2:
		MPI_Mprobe(1, 4, MPI_COMM_WORLD, &m, &st);
		break;
	default:
		while (!flag)
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, &st);
	}
	MPI_Get_count(&st, MPI_BYTE, &n);
	EXPECT(n == len && st.MPI_SOURCE == 1 && st.MPI_TAG == 4,
		"probe %d: count %d source %d tag %d, should be %d 1 4", how, n, st.MPI_SOURCE, st.MPI_TAG, len);
	if (how < 2)
		MPI_Recv(buf, len, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &st);
	else
		MPI_Mrecv(buf, len, MPI_BYTE, &m, &st);
	MPI_Get_count(&st, MPI_BYTE, &n);
	EXPECT(n == len, "received %d bytes after a probe, should be %d", n, len);
	expect_filled(buf, (size_t)len, (uint64_t)(len + how), "probed");
}

/*
 * Each kind of probe sees size, source and tag; a matched message belongs to its handle, whatever is received in
 * between.
 */
static void probes(void)
{
	char *out[3] = {allocate(LONG), allocate(LONG), allocate(LONG)}, *buf = out[0], *two = out[1];
	MPI_Request r[3];
	MPI_Message m[2];
	MPI_Status st;
	int flag;

	for (int how = 0; how < 4 && rank < 2; how++) {
		for (int i = 0; i < LENS; i++) {
			if (rank == 1) {
				fill(buf, (size_t)lens[i], (uint64_t)(lens[i] + how));
				MPI_Send(buf, lens[i], MPI_BYTE, 0, 4, MPI_COMM_WORLD);
			} else {
				probe_one(buf, lens[i], how);
			}
		}
	}
	for (int i = 0; i < LENS && rank < 2; i++) {
		if (rank == 1) {
			for (int k = 0; k < 3; k++) {
				fill(out[k], (size_t)lens[i], (uint64_t)(lens[i] * 10 + k));
				MPI_Isend(out[k], lens[i], MPI_BYTE, 0, 4, MPI_COMM_WORLD, &r[k]);
			}
			MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
			continue;
		}
		MPI_Mprobe(1, 4, MPI_COMM_WORLD, &m[0], &st);
		MPI_Mprobe(1, 4, MPI_COMM_WORLD, &m[1], &st);
		MPI_Recv(buf, lens[i], MPI_BYTE, 1, 4, MPI_COMM_WORLD, &st); /* the third */
		expect_filled(
			buf, (size_t)lens[i], (uint64_t)(lens[i] * 10 + 2), "received behind two matched messages");
		MPI_Mrecv(two, lens[i], MPI_BYTE, &m[1], &st);
		MPI_Mrecv(buf, lens[i], MPI_BYTE, &m[0], &st);
		expect_filled(buf, (size_t)lens[i], (uint64_t)(lens[i] * 10), "the first matched message");
		expect_filled(two, (size_t)lens[i], (uint64_t)(lens[i] * 10 + 1), "the second matched message");
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, &st);
	EXPECT(!flag, "a probe sees a message of %d that nobody sent", st.MPI_SOURCE);
	for (int k = 0; k < 3; k++)
		free(out[k]);
}

/* A cancelled receive takes nothing; one that was matched before is not cancelled; the messages go where they belong.
 */
static void cancel(void)
{
	int n = (int)option("n", 200), value, flag, second;
	MPI_Request r;
	MPI_Status st;

	for (int i = 0; i < n && rank < 2; i++) {
		if (rank == 1) {
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &st);
			MPI_Send(&i, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
			continue;
		}
		MPI_Irecv(&value, 1, MPI_INT, i % 2 ? 1 : MPI_ANY_SOURCE, i % 3 ? 5 : MPI_ANY_TAG, MPI_COMM_WORLD, &r);
		MPI_Cancel(&r);
		MPI_Wait(&r, &st);
		MPI_Test_cancelled(&st, &flag);
		EXPECT(flag, "a receive that nothing can match was not cancelled (round %d)", i);
		second = -1;
		MPI_Irecv(&second, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &r);
		MPI_Send(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
		if (i % 4 == 3) { /* races with the message on purpose: either outcome is right, but it must be one */
			MPI_Cancel(&r);
			MPI_Wait(&r, &st);
			MPI_Test_cancelled(&st, &flag);
			if (flag)
				MPI_Recv(&second, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &st);
		} else {
			MPI_Wait(&r, &st);
		}
		EXPECT(second == i, "round %d got the message of round %d", i, second);
	}
}

/* A message longer than its receive is an error, writes nothing behind the buffer, and the next message is right. */
static void truncation(void)
{
	enum { ROOM = 100 };
	unsigned char *buf = allocate(LONG);
	MPI_Request r;
	MPI_Status st;
	int class, rc;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 2; i < LENS * 2 && rank < 2; i++) {
		int len = lens[i / 2];
		bool posted = i % 2;

		if (len <= ROOM)
			continue;
		if (rank == 1) {
			fill(buf, (size_t)len, 1);
			if (posted)
				MPI_Recv(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &st);
			MPI_Isend(buf, len, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &r);
			MPI_Send(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
			MPI_Wait(&r, &st);
			MPI_Send("next", 5, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
			continue;
		}
		memset(buf, 0xa5, LONG);
		if (posted) {
			MPI_Irecv(buf, ROOM, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &r);
			MPI_Send(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
			MPI_Recv(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &st);
		} else {
			MPI_Recv(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &st);
			MPI_Irecv(buf, ROOM, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &r);
		}
		rc = MPI_Wait(&r, &st);
		MPI_Error_class(rc, &class);
		EXPECT(class == MPI_ERR_TRUNCATE,
			"%d bytes into %d, %s: error class %d, should be MPI_ERR_TRUNCATE (%d)", len, ROOM,
			posted ? "posted" : "unexpected", class, MPI_ERR_TRUNCATE);
		for (int k = ROOM; k < LONG; k++)
			EXPECT(buf[k] == 0xa5, "%d bytes into %d: byte %d behind the buffer was written", len, ROOM,
				k - ROOM);
		rc = MPI_Recv(buf, ROOM, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &st);
		EXPECT(rc == MPI_SUCCESS && !memcmp(buf, "next", 5), "the message after a truncated one is wrong");
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	free(buf);
}

const struct mpi_test matching_tests[] = {
	{"wildcards", 2, MPI_THREAD_SINGLE, wildcards, "any source, any tag, both"},
	{"posting_order", 2, MPI_THREAD_SINGLE, posting_order, "posted wildcards and exact receives, in posting order"},
	{"ordering", 2, MPI_THREAD_SINGLE, ordering, "n= messages of one envelope do not overtake"},
	{"probes", 2, MPI_THREAD_SINGLE, probes, "probe, iprobe, mprobe, improbe"},
	{"cancel", 2, MPI_THREAD_SINGLE, cancel, "cancelled receives take nothing; n= rounds"},
	{"truncation", 2, MPI_THREAD_SINGLE, truncation, "too long a message is an error and spoils nothing"},
	{0},
};

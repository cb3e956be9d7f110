/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of every size between neighbours, in every mode, each byte checked, and the bytes behind them too. */
#include "mpi_test.h"

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

enum mode { POSTED, UNEXPECTED, SYNCHRONOUS, BLOCKING, MODES };

static const char *const mode_names[] = {"posted", "unexpected", "synchronous", "blocking"};

/* One message each way between this rank and `peer`. `even` is true at one end alone. */
static void exchange(enum mode mode, int peer, bool even, char *out, char *in, int len)
{
	MPI_Request r[2];
	MPI_Status st;
	int n;

	switch (mode) {
	case POSTED: /* the receive is there before the message: a message of no bytes says so */
		MPI_Irecv(in, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[0]);
		MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 2, NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &st);
		MPI_Isend(out, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[1]);
		break;
	case UNEXPECTED: /* the message is there before the receive */
		MPI_Isend(out, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[1]);
		MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 2, NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &st);
		MPI_Irecv(in, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[0]);
		break;
	case SYNCHRONOUS:
		MPI_Irecv(in, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[0]);
		MPI_Issend(out, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[1]);
		break;
	default:
		if (even)
			MPI_Send(out, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(in, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &st);
		if (!even)
			MPI_Send(out, len, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
		MPI_Get_count(&st, MPI_BYTE, &n);
		EXPECT(n == len, "the count is %d, should be %d", n, len);
		return;
	}
	MPI_Wait(&r[0], &st);
	MPI_Get_count(&st, MPI_BYTE, &n);
	EXPECT(n == len && st.MPI_SOURCE == peer && st.MPI_TAG == 1,
		"status: count %d source %d tag %d, should be %d %d 1", n, st.MPI_SOURCE, st.MPI_TAG, len, peer);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
}

static void one_size(int peer, bool even, char *out, char *in, int len)
{
	for (int mode = 0; mode < MODES; mode++) {
		uint64_t seed = (uint64_t)len * MODES + (uint64_t)mode;

		fill(out, (size_t)len, seed * 2 + even);
		memset(in, GUARD_BYTE, (size_t)len + GUARD);
		exchange(mode, peer, even, out, in, len);
		expect_filled(in, (size_t)len, seed * 2 + !even, mode_names[mode]);
		for (int i = 0; i < GUARD; i++)
			EXPECT((unsigned char)in[len + i] == GUARD_BYTE,
				"%s, %d bytes: byte %d behind them was written", mode_names[mode], len, i);
	}
}

/* Every size to 160, then each power of two with its neighbours, and some at random; ranks 2n and 2n+1 are a pair. */
static void sizes(void)
{
	int max = (int)option("max", 4 << 20), randoms = (int)option("randoms", 40);
	struct dice dice = {.state = (uint64_t)option("seed", 1)};
	bool even = rank % 2 == 0;
	int peer = even ? rank + 1 : rank - 1;
	char *out = allocate((size_t)max + GUARD), *in = allocate((size_t)max + GUARD);

	if (peer < ranks) {
		for (int len = 0; len <= 160 && len <= max; len++)
			one_size(peer, even, out, in, len);
		for (int len = 256; len <= max; len *= 2) {
			one_size(peer, even, out, in, len - 1);
			one_size(peer, even, out, in, len);
			if (len < max)
				one_size(peer, even, out, in, len + 1);
		}
		for (int i = 0; i < randoms; i++)
			one_size(peer, even, out, in, (int)roll_size(&dice, (size_t)max));
	}
	free(out);
	free(in);
}

/* The same at addresses that are not aligned to anything, and from memory that may only be read. */
static void alignment(void)
{
	static const int lens[] = {1, 7, 8, 63, 64, 65, 1000, 4096, 9000, 70000, 300000};
	char *out = allocate(400000), *in = allocate(400000);
	int peer = rank ^ 1;
	MPI_Status st;

	for (size_t i = 0; peer < ranks && i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (int shift = 0; shift < 17; shift += 3) {
			int len = lens[i];

			fill(out + shift, (size_t)len, (uint64_t)len + (uint64_t)rank);
			MPI_Sendrecv(out + shift, len, MPI_BYTE, peer, 1, in + 16 - shift, len, MPI_BYTE, peer, 1,
				MPI_COMM_WORLD, &st);
			expect_filled(
				in + 16 - shift, (size_t)len, (uint64_t)len + (uint64_t)peer, "at an odd address");
		}
	}
	free(out);
	free(in);
}

/* A count that does not fit 32 bits of bytes: `mega` MiB in one message from rank 0 to rank 1, both orders of arrival.
 */
static void large(void)
{
	size_t len = (size_t)option("mega", 4100) << 20;
	MPI_Datatype mebibyte;
	MPI_Count n;
	MPI_Status st;
	char *buf;

	MPI_Type_contiguous(1 << 20, MPI_BYTE, &mebibyte);
	MPI_Type_commit(&mebibyte);
	buf = rank < 2 ? allocate(len) : NULL;
	for (int round = 0; round < 2 && rank < 2; round++) {
		bool late = round == rank;

		if (late)
			compute(200000);
		if (rank == 0) {
			fill(buf, len, (uint64_t)round);
			MPI_Send(buf, (int)(len >> 20), mebibyte, 1, 1, MPI_COMM_WORLD);
		} else {
			memset(buf, 0, len);
			MPI_Recv(buf, (int)(len >> 20), mebibyte, 0, 1, MPI_COMM_WORLD, &st);
			MPI_Get_elements_x(&st, MPI_BYTE, &n);
			EXPECT((size_t)n == len, "%lld bytes arrived, should be %zu", (long long)n, len);
			expect_filled(buf, len, (uint64_t)round, "a message beyond 4 GB");
		}
	}
	free(buf);
	MPI_Type_free(&mebibyte);
}

const struct mpi_test sizes_tests[] = {
	{"sizes", 2, MPI_THREAD_SINGLE, sizes, "every size and mode between pairs; max= randoms= seed="},
	{"alignment", 2, MPI_THREAD_SINGLE, alignment, "buffers at odd addresses"},
	{"large", 2, MPI_THREAD_SINGLE, large, "one message of mega= MiB"},
	{0},
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program to start with: nothing in it knows of ropewalk. A token goes once round all ranks, each adding its
 * number; then ranks 0 and 1 play ping-pong with messages of 8 B to 4 MB, every byte of which is checked, and rank 0
 * prints the time one way.
 *
 *     mpirun ... ring_pingpong [seconds for each size]
 *
 * Exits non-zero if anything arrived that was not sent.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 4 << 20, TAG_RING = 1, TAG_PING = 2, TAG_STOP = 3 };

static const int sizes[] = {8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, LARGEST};

static int rank, ranks;

static void wrong(const char *what, long got, long expected)
{
	fprintf(stderr, "rank %d: %s is %ld, should be %ld\n", rank, what, got, expected);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ring(void)
{
	int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
	long token = 0, expected = (long)ranks * (ranks - 1) / 2;

	if (rank > 0)
		MPI_Recv(&token, 1, MPI_LONG, left, TAG_RING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	token += rank;
	MPI_Send(&token, 1, MPI_LONG, right, TAG_RING, MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Recv(&token, 1, MPI_LONG, left, TAG_RING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (token != expected)
			wrong("the token", token, expected);
		printf("# the token came back from %d ranks with the right sum, %ld\n", ranks, token);
	}
}

/* The byte at `i` of round `round`'s message. */
static unsigned char byte_at(size_t i, unsigned round)
{
	return (unsigned char)(i * 31 + (i >> 8) + round);
}

static void fill(unsigned char *buf, size_t len, unsigned round)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = byte_at(i, round);
}

static void check(const unsigned char *buf, size_t len, unsigned round)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != byte_at(i, round))
			wrong("a byte of a ping-pong message", buf[i], byte_at(i, round));
}

/* One ball of `len` bytes, there and back. */
static void rally(unsigned char *buf, int len)
{
	int other = 1 - rank;

	if (rank == 0)
		MPI_Send(buf, len, MPI_BYTE, other, TAG_PING, MPI_COMM_WORLD);
	MPI_Recv(buf, len, MPI_BYTE, other, TAG_PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1)
		MPI_Send(buf, len, MPI_BYTE, other, TAG_PING, MPI_COMM_WORLD);
}

/* Seconds one way of a message of `len` bytes: rounds that are checked first, then as many as fit in `seconds`. */
static double pingpong(unsigned char *buf, int len, double seconds)
{
	unsigned rounds = 0;
	double start, took;
	int more;

	for (unsigned round = 0; round < 20; round++) {
		if (rank == 0)
			fill(buf, (size_t)len, round);
		else
			fill(buf, (size_t)len, ~round);
		rally(buf, len);
		check(buf, (size_t)len, round);
	}
	start = MPI_Wtime();
	do {
		for (int i = 0; i < 20; i++)
			rally(buf, len);
		rounds += 20;
		took = MPI_Wtime() - start;
		more = took < seconds;
		if (rank == 0)
			MPI_Send(&more, 1, MPI_INT, 1, TAG_STOP, MPI_COMM_WORLD);
		else
			MPI_Recv(&more, 1, MPI_INT, 0, TAG_STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} while (more);
	return took / rounds / 2;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.1, one_way;
	unsigned char *buf;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks < 2)
		wrong("the number of ranks", ranks, 2);
	ring();
	buf = malloc(LARGEST);
	if (!buf)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (rank < 2) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			one_way = pingpong(buf, sizes[i], seconds);
			if (rank == 0)
				printf("%8d B %10.2f us %10.0f MB/s\n", sizes[i], one_way * 1e6,
					sizes[i] / one_way / 1e6);
		}
	}
	free(buf);
	MPI_Finalize();
	return 0;
}

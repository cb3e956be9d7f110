/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collectives in common use, blocking and not, for several sizes, roots, types and operations, against sums done by
 * hand.
 */
#include "mpi_test.h"

#include <time.h>

static const int counts[] = {0, 1, 7, 300, 5000, 70000};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

/* What rank `r` contributes at place `i`: small enough for products of doubles to be exact. */
static long given(int r, long i)
{
	return (r * 7 + i * 3) % 11 + 1;
}

static void bcast(void)
{
	char *buf = allocate(8 * 70000);

	for (int k = 0; k < COUNTS; k++) {
		for (int root = 0; root < ranks; root += 1 + ranks / 3) {
			size_t len = 8 * (size_t)counts[k];

			if (rank == root)
				fill(buf, len, (uint64_t)(k * 100 + root));
			else
				memset(buf, 0, len);
			MPI_Bcast(buf, counts[k], MPI_DOUBLE, root, MPI_COMM_WORLD);
			expect_filled(buf, len, (uint64_t)(k * 100 + root), "broadcast");
		}
	}
	free(buf);
}

static long combine(int op, long a, long b)
{
	switch (op) {
	case 0:
		return a + b;
	case 1:
		return a > b ? a : b;
	case 2:
		return a < b ? a : b;
	case 3:
		return a & b;
	case 4:
		return a | b;
	default:
		return a ^ b;
	}
}

static long reduced(int op, int from, int to, long i)
{
	long v = given(from, i);

	for (int r = from + 1; r <= to; r++)
		v = combine(op, v, given(r, i));
	return v;
}

/* reduce, allreduce, reduce_scatter_block, scan and exscan of longs under six operations */
static void reduce(void)
{
	const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR};
	long *out = allocate(sizeof(long) * 70000 * (size_t)ranks), *in = allocate(sizeof(long) * 70000);

	for (int k = 0; k < COUNTS; k++) {
		for (int op = 0; op < 6; op++) {
			int n = counts[k], root = (k + op) % ranks;

			for (long i = 0; i < n; i++)
				out[i] = given(rank, i);
			MPI_Reduce(out, in, n, MPI_LONG, ops[op], root, MPI_COMM_WORLD);
			for (long i = 0; rank == root && i < n; i++)
				EXPECT(in[i] == reduced(op, 0, ranks - 1, i), "reduce, op %d, count %d: element %ld",
					op, n, i);
			MPI_Allreduce(out, in, n, MPI_LONG, ops[op], MPI_COMM_WORLD);
			for (long i = 0; i < n; i++)
				EXPECT(in[i] == reduced(op, 0, ranks - 1, i), "allreduce, op %d, count %d: element %ld",
					op, n, i);
			MPI_Scan(out, in, n, MPI_LONG, ops[op], MPI_COMM_WORLD);
			for (long i = 0; i < n; i++)
				EXPECT(in[i] == reduced(op, 0, rank, i), "scan, op %d, count %d: element %ld", op, n,
					i);
			MPI_Exscan(out, in, n, MPI_LONG, ops[op], MPI_COMM_WORLD);
			for (long i = 0; rank && i < n; i++)
				EXPECT(in[i] == reduced(op, 0, rank - 1, i), "exscan, op %d, count %d: element %ld", op,
					n, i);
			n /= 10;
			for (long i = 0; i < (long)n * ranks; i++)
				out[i] = given(rank, i);
			MPI_Reduce_scatter_block(out, in, n, MPI_LONG, ops[op], MPI_COMM_WORLD);
			for (long i = 0; i < n; i++)
				EXPECT(in[i] == reduced(op, 0, ranks - 1, (long)rank * n + i),
					"reduce_scatter, count %d: %ld", n, i);
		}
	}
	free(out);
	free(in);
}

/* 2x2 matrices do not commute: the order of the ranks must be kept. */
static void multiply(void *a, void *b, int *n, MPI_Datatype *type)
{
	long *x = a, *y = b;

	(void)type;
	for (int i = 0; i < *n; i++, x += 4, y += 4) {
		long p = x[0] * y[0] + x[1] * y[2], q = x[0] * y[1] + x[1] * y[3], r = x[2] * y[0] + x[3] * y[2],
		     s = x[2] * y[1] + x[3] * y[3];

		y[0] = p % 1009, y[1] = q % 1009, y[2] = r % 1009, y[3] = s % 1009;
	}
}

static void reduce_other(void)
{
	enum { N = 500 };
	struct {
		double value;
		int where;
	} pair = {(rank * 5) % 7, rank}, best;
	long mine[4 * N], expected[4], got[4 * N], next[4];
	double d = rank + 0.5, sum;
	float f = 2, product;
	MPI_Datatype matrix;
	MPI_Op op;

	MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
	for (int r = 0, top = -1; r < ranks; r++) {
		if ((r * 5) % 7 > top) {
			top = (r * 5) % 7;
			pair.where = r;
		}
	}
	EXPECT(best.where == pair.where, "maxloc says rank %d, should be %d", best.where, pair.where);
	MPI_Allreduce(&d, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	EXPECT(sum == ranks * (ranks - 1) / 2 + ranks * 0.5, "sum of doubles: %f", sum);
	MPI_Allreduce(&f, &product, 1, MPI_FLOAT, MPI_PROD, MPI_COMM_WORLD);
	EXPECT(product == (float)(1L << ranks), "product of floats: %f", (double)product);

	MPI_Type_contiguous(4, MPI_LONG, &matrix);
	MPI_Type_commit(&matrix);
	MPI_Op_create(multiply, 0, &op);
	for (int i = 0; i < 4 * N; i++)
		mine[i] = given(rank, i % 4);
	MPI_Allreduce(mine, got, N, matrix, op, MPI_COMM_WORLD);
	for (int r = ranks - 1; r >= 0; r--) {
		int one = 1;

		for (int i = 0; i < 4; i++)
			next[i] = given(r, i);
		if (r == ranks - 1)
			memcpy(expected, next, sizeof(next));
		else
			multiply(next, expected, &one, &matrix);
	}
	for (int i = 0; i < 4 * N; i++)
		EXPECT(got[i] == expected[i % 4], "product of matrices: element %d is %ld, should be %ld", i, got[i],
			expected[i % 4]);
	MPI_Op_free(&op);
	MPI_Type_free(&matrix);
}

/* gather, scatter, allgather, alltoall with equal counts, blocking and not; block (from, to) has contents of its own */
static void exchange(void)
{
	size_t most = 8 * 5000 * (size_t)ranks;
	char *out = allocate(most), *in = allocate(most);

	for (int k = 0; k < COUNTS - 1; k++) {
		size_t len = 8 * (size_t)counts[k];
		int n = (int)len, root = k % ranks;
		MPI_Request r;

		for (int to = 0; to < ranks; to++)
			fill(out + len * (size_t)to, len, (uint64_t)(rank * ranks + to));
		for (int again = 0; again < 2; again++) {
			memset(in, 0, most);
			if (again) {
				MPI_Ialltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD, &r);
				MPI_Wait(&r, MPI_STATUS_IGNORE);
			} else {
				MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
			}
			for (int from = 0; from < ranks; from++)
				expect_filled(
					in + len * (size_t)from, len, (uint64_t)(from * ranks + rank), "alltoall");
			memset(in, 0, most);
			if (again) {
				MPI_Iallgather(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD, &r);
				MPI_Wait(&r, MPI_STATUS_IGNORE);
			} else {
				MPI_Allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
			}
			for (int from = 0; from < ranks; from++)
				expect_filled(in + len * (size_t)from, len, (uint64_t)(from * ranks), "allgather");
		}
		memset(in, 0, most);
		MPI_Gather(out, n, MPI_BYTE, in, n, MPI_BYTE, root, MPI_COMM_WORLD);
		for (int from = 0; rank == root && from < ranks; from++)
			expect_filled(in + len * (size_t)from, len, (uint64_t)(from * ranks), "gather");
		memset(in, 0, most);
		MPI_Scatter(out, n, MPI_BYTE, in, n, MPI_BYTE, root, MPI_COMM_WORLD);
		expect_filled(in, len, (uint64_t)(root * ranks + rank), "scatter");
	}
	free(out);
	free(in);
}

/* The bytes that `from` has for `to`: some none, some many. */
static int uneven(int from, int to)
{
	return (from * 3 + to * 5) % 4 * 4000 + (from == to ? 100000 : 0);
}

/* alltoallv, allgatherv, gatherv and scatterv with counts that differ, also zero */
static void vectors(void)
{
	int *out_n = allocate(sizeof(int) * (size_t)ranks), *in_n = allocate(sizeof(int) * (size_t)ranks);
	int *out_at = allocate(sizeof(int) * (size_t)ranks), *in_at = allocate(sizeof(int) * (size_t)ranks);
	size_t most = 120000 * (size_t)ranks;
	char *out = allocate(most), *in = allocate(most);

	for (int i = 0, a = 0, b = 0; i < ranks; i++) {
		out_n[i] = uneven(rank, i);
		in_n[i] = uneven(i, rank);
		out_at[i] = a;
		in_at[i] = b;
		a += out_n[i] + 16;
		b += in_n[i] + 16;
		fill(out + out_at[i], (size_t)out_n[i], (uint64_t)(rank * ranks + i));
	}
	MPI_Alltoallv(out, out_n, out_at, MPI_BYTE, in, in_n, in_at, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		expect_filled(in + in_at[i], (size_t)in_n[i], (uint64_t)(i * ranks + rank), "alltoallv");
	for (int root = 0; root < ranks; root += 1 + ranks / 3) {
		memset(in, 0, most);
		MPI_Scatterv(out, out_n, out_at, MPI_BYTE, in, uneven(root, rank), MPI_BYTE, root, MPI_COMM_WORLD);
		expect_filled(in, (size_t)uneven(root, rank), (uint64_t)(root * ranks + rank), "scatterv");
		memset(in, 0, most);
		MPI_Gatherv(out + out_at[root], out_n[root], MPI_BYTE, in, in_n, in_at, MPI_BYTE, root, MPI_COMM_WORLD);
		for (int i = 0; rank == root && i < ranks; i++)
			expect_filled(in + in_at[i], (size_t)in_n[i], (uint64_t)(i * ranks + root), "gatherv");
	}
	for (int i = 0, b = 0; i < ranks; i++) {
		in_n[i] = uneven(i, 0);
		in_at[i] = b;
		b += in_n[i] + 16;
	}
	memset(in, 0, most);
	MPI_Allgatherv(out, out_n[0], MPI_BYTE, in, in_n, in_at, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		expect_filled(in + in_at[i], (size_t)in_n[i], (uint64_t)(i * ranks), "allgatherv");
	free(out_n), free(in_n), free(out_at), free(in_at), free(out), free(in);
}

/* Of the clock that all processes of a node share; MPI_Wtime need not be. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* No rank leaves a barrier before the last has entered it, and several collectives may be under way at once. */
static void overlapped(void)
{
	enum { N = 20 };
	static long in[N][1000], out[N][1000];
	MPI_Request r[N], b;
	double entered, last;
	int flag;

	for (int i = 0; i < 10; i++) {
		if (i % ranks == rank)
			compute(20000);
		entered = seconds();
		MPI_Barrier(MPI_COMM_WORLD);
		last = seconds();
		MPI_Allreduce(MPI_IN_PLACE, &entered, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		EXPECT(last >= entered, "left a barrier %g s before the last rank entered it", entered - last);
	}
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 1000; k++)
			out[i][k] = given(rank, i + k);
		MPI_Iallreduce(out[i], in[i], i * 50, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r[i]);
	}
	MPI_Ibarrier(MPI_COMM_WORLD, &b);
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
	do {
		MPI_Test(&b, &flag, MPI_STATUS_IGNORE);
	} while (!flag);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < i * 50; k++)
			EXPECT(in[i][k] == reduced(0, 0, ranks - 1, i + k), "iallreduce %d, element %d", i, k);
	}
}

static void collectives(void)
{
	int rounds = (int)option("rounds", 1);

	for (int i = 0; i < rounds; i++) {
		bcast();
		reduce();
		reduce_other();
		exchange();
		vectors();
		overlapped();
	}
}

const struct mpi_test collective_tests[] = {
	{"collectives", 2, MPI_THREAD_SINGLE, collectives, "broadcasts, reductions, gathers, all-to-all; rounds="},
	{0},
};

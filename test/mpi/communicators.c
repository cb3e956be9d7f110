/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators keep their messages apart, however they came to be. */
#include "mpi_test.h"

/* A message round the ring of `comm`, with contents of this communicator alone. */
static void ring(MPI_Comm comm, uint64_t seed, int len)
{
	int me, size;
	char *out = allocate((size_t)len), *in = allocate((size_t)len);

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &size);
	fill(out, (size_t)len, seed * 1000 + (uint64_t)me);
	MPI_Sendrecv(out, len, MPI_BYTE, (me + 1) % size, 1, in, len, MPI_BYTE, (me + size - 1) % size, 1, comm,
		MPI_STATUS_IGNORE);
	expect_filled(in, (size_t)len, seed * 1000 + (uint64_t)((me + size - 1) % size), "round a communicator");
	free(out);
	free(in);
}

/* The same tag sent on many duplicates and received in another order: each message stays in its own. */
static void dup(void)
{
	enum { N = 40 };
	int peer = rank ^ 1, value;
	MPI_Comm c[N];
	MPI_Request r[N];

	for (int i = 0; i < N; i++)
		MPI_Comm_dup(i ? c[i - 1] : MPI_COMM_WORLD, &c[i]);
	if (peer < ranks) {
		static int out[N];

		for (int i = 0; i < N; i++) {
			out[i] = i * 100 + rank;
			MPI_Isend(&out[i], 1, MPI_INT, peer, 1, c[i], &r[i]);
		}
		for (int i = N; i-- > 0;) {
			MPI_Recv(&value, 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : peer, i % 3 ? MPI_ANY_TAG : 1, c[i],
				MPI_STATUS_IGNORE);
			EXPECT(value == i * 100 + peer, "communicator %d: %d arrived, should be %d", i, value,
				i * 100 + peer);
		}
		MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD); /* or the ring's messages meet receives from any source */
	for (int i = 0; i < N; i++) {
		ring(c[i], (uint64_t)i, i * 500);
		MPI_Comm_free(&c[i]);
	}
	for (int i = 0; i < (int)option("churn", 300); i++) { /* identifiers are used again */
		MPI_Comm_dup(MPI_COMM_WORLD, &c[0]);
		ring(c[0], (uint64_t)i, 64);
		MPI_Comm_free(&c[0]);
	}
}

/* Split by colour with the order turned round, split of a split, and a group's communicator. */
static void split(void)
{
	MPI_Comm half, quarter, odd;
	MPI_Group world, group;
	int me, size, sum, members[1024], n = 0;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	MPI_Comm_rank(half, &me);
	MPI_Comm_size(half, &size);
	EXPECT(me == size - 1 - rank / 2, "rank %d in the half, should be %d", me, size - 1 - rank / 2);
	ring(half, 1, 3000);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
	n = 0;
	for (int i = rank % 2; i < ranks; i += 2)
		n += i;
	EXPECT(sum == n, "sum of a half is %d, should be %d", sum, n);
	MPI_Comm_split(half, me % 2 ? MPI_UNDEFINED : 5, me, &quarter);
	EXPECT((quarter == MPI_COMM_NULL) == (me % 2 == 1), "MPI_UNDEFINED was not left out");
	if (quarter != MPI_COMM_NULL) {
		ring(quarter, 2, 100000);
		MPI_Comm_free(&quarter);
	}
	MPI_Comm_free(&half);

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	n = 0;
	for (int i = ranks - 1; i >= 0; i -= 2)
		members[n++] = i;
	MPI_Group_incl(world, n, members, &group);
	MPI_Comm_create(MPI_COMM_WORLD, group, &odd);
	if (odd != MPI_COMM_NULL) {
		ring(odd, 3, 500);
		MPI_Comm_free(&odd);
		MPI_Comm_create_group(MPI_COMM_WORLD, group, 9, &odd);
		ring(odd, 4, 500);
		MPI_Comm_free(&odd);
	}
	MPI_Group_free(&group);
	MPI_Group_free(&world);
}

/* Two halves and the communicator between them: messages, a broadcast across, and the two merged. */
static void intercomm(void)
{
	MPI_Comm half, inter, merged;
	int low = rank < ranks / 2, me, there, value = -1, total;

	MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? ranks / 2 : 0, 77, &inter);
	MPI_Comm_rank(inter, &me);
	MPI_Comm_remote_size(inter, &there);
	EXPECT(there == (low ? ranks - ranks / 2 : ranks / 2), "the other half has %d ranks", there);
	if (me < there && me < ranks - there) {
		MPI_Sendrecv(&rank, 1, MPI_INT, me, 1, &value, 1, MPI_INT, me, 1, inter, MPI_STATUS_IGNORE);
		EXPECT(value == (low ? ranks / 2 + me : me), "rank %d answered across, should be %d", value,
			low ? ranks / 2 + me : me);
	}
	value = low ? -1 : 4711 * (me == 0);
	MPI_Bcast(&value, 1, MPI_INT, low ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
	EXPECT(!low || value == 4711, "%d was broadcast across, should be 4711", value);
	MPI_Intercomm_merge(inter, !low, &merged);
	MPI_Comm_rank(merged, &me);
	EXPECT(me == rank, "rank %d in the merged communicator", me);
	ring(merged, 5, 20000);
	MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, merged);
	EXPECT(total == ranks * (ranks - 1) / 2, "sum in the merged communicator: %d", total);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

/*
 * Two jobs started by MPI_Comm_spawn, the second by parents and children of the first together: all of them reach one
 * another. The children run this test too.
 */
static void spawn(void)
{
	char *program = realpath("/proc/self/exe", NULL), *arguments[] = {"spawn", NULL};
	int generation = 0, size, sum;
	MPI_Comm inter[2] = {MPI_COMM_NULL, MPI_COMM_NULL}, all, more;

	EXPECT(program, "/proc/self/exe cannot be read");
	MPI_Comm_get_parent(&more);
	if (more == MPI_COMM_NULL)
		MPI_Comm_dup(MPI_COMM_WORLD, &all);
	else
		MPI_Intercomm_merge(more, 1, &all);
	for (;; generation++) {
		MPI_Bcast(&generation, 1, MPI_INT, 0, all);
		MPI_Comm_size(all, &size);
		EXPECT(size > ranks || (more == MPI_COMM_NULL && !generation), "generation %d has %d ranks in all",
			generation, size);
		ring(all, (uint64_t)generation, 8);
		ring(all, (uint64_t)generation, 300000);
		MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, all);
		EXPECT(sum == size, "%d ranks of %d took part", sum, size);
		if (generation == 2)
			break;
		MPI_Comm_spawn(program, arguments, generation + 1, MPI_INFO_NULL, 0, all, &inter[generation],
			MPI_ERRCODES_IGNORE);
		MPI_Comm_free(&all);
		MPI_Intercomm_merge(inter[generation], 0, &all);
	}
	MPI_Comm_free(&all);
	for (int i = 2; i-- > 0;) { /* a disconnection waits for all: everyone begins with the last */
		if (inter[i] != MPI_COMM_NULL)
			MPI_Comm_disconnect(&inter[i]);
	}
	if (more != MPI_COMM_NULL)
		MPI_Comm_disconnect(&more);
	free(program);
}

const struct mpi_test communicator_tests[] = {
	{"dup", 2, MPI_THREAD_SINGLE, dup, "duplicates keep their messages apart; churn= further ones in turn"},
	{"split", 2, MPI_THREAD_SINGLE, split, "split, create, create_group"},
	{"intercomm", 2, MPI_THREAD_SINGLE, intercomm, "intercommunicators"},
	{"spawn", 1, MPI_THREAD_SINGLE, spawn, "jobs that spawn jobs, and all of them together"},
	{0},
};

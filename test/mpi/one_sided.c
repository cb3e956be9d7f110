/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations: windows of every kind, every way to synchronise, puts and gets of every size, accumulates that
 * lose nothing whoever makes them at the same time.
 */
#include <time.h>

#include "mpi_test.h"

/* How a window's memory came about. */
static const char *const flavours[] = {"create", "allocate", "dynamic", "shared"};
enum { CREATE, ALLOCATE, DYNAMIC, SHARED, FLAVOURS };

struct window {
	int flavour;
	size_t size;
	char *memory;
	MPI_Aint *base; /* of each rank's memory, as a displacement */
	MPI_Win win;
};

static void window_open(struct window *w, int flavour, size_t size)
{
	MPI_Aint here = 0;

	*w = (struct window){.flavour = flavour, .size = size};
	if (flavour == CREATE) {
		w->memory = allocate(size);
		MPI_Win_create(w->memory, (MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
	} else if (flavour == ALLOCATE) {
		MPI_Win_allocate((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->memory, &w->win);
	} else if (flavour == SHARED) {
		MPI_Win_allocate_shared((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->memory, &w->win);
	} else {
		w->memory = allocate(size);
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
		MPI_Win_attach(w->win, w->memory, (MPI_Aint)size);
		MPI_Get_address(w->memory, &here);
	}
	memset(w->memory, 0, size);
	w->base = allocate((size_t)ranks * sizeof(*w->base));
	MPI_Allgather(&here, 1, MPI_AINT, w->base, 1, MPI_AINT, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void window_close(struct window *w)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (w->flavour == DYNAMIC)
		MPI_Win_detach(w->win, w->memory);
	MPI_Win_free(&w->win);
	if (w->flavour == DYNAMIC || w->flavour == CREATE)
		free(w->memory);
	free(w->base);
}

/* Shared windows are for the ranks of one node. */
static bool one_node(void)
{
	MPI_Comm node;
	int n;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &n);
	MPI_Comm_free(&node);
	return n == ranks;
}

static uint64_t seed_of(int from, int to, int round)
{
	return (uint64_t)from * 1000003 + (uint64_t)to * 1009 + (uint64_t)round;
}

/* Every rank puts a part of its own into every window, itself among them, and gets it back. */
static void put_and_get(struct window *w, size_t part, int round, void (*begin)(MPI_Win), void (*end)(MPI_Win))
{
	char *out = allocate(part * (size_t)ranks + 1), *in = allocate(part * (size_t)ranks + 1);

	begin(w->win);
	for (int i = 0; i < ranks; i++) {
		int to = (rank + i) % ranks;

		fill(out + (size_t)to * part, part, seed_of(rank, to, round));
		MPI_Put(out + (size_t)to * part, (int)part, MPI_BYTE, to, w->base[to] + (MPI_Aint)(part * (size_t)rank),
			(int)part, MPI_BYTE, w->win);
	}
	end(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	begin(w->win);
	for (int to = 0; to < ranks; to++)
		MPI_Get(in + (size_t)to * part, (int)part, MPI_BYTE, to, w->base[to] + (MPI_Aint)(part * (size_t)rank),
			(int)part, MPI_BYTE, w->win);
	end(w->win);
	for (int i = 0; i < ranks; i++) {
		expect_filled(in + (size_t)i * part, part, seed_of(rank, i, round), "get");
		MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w->win);
		expect_filled(w->memory + (size_t)i * part, part, seed_of(i, rank, round), "put");
		MPI_Win_unlock(rank, w->win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	free(out);
	free(in);
}

static void fence_begin(MPI_Win win)
{
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
}

static void fence_end(MPI_Win win)
{
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static void lock_begin(MPI_Win win)
{
	MPI_Win_lock_all(0, win);
}

static void lock_end(MPI_Win win)
{
	MPI_Win_flush_all(win);
	MPI_Win_unlock_all(win);
}

static MPI_Group everybody(void)
{
	MPI_Group group;

	MPI_Comm_group(MPI_COMM_WORLD, &group);
	return group;
}

static void pscw_begin(MPI_Win win)
{
	MPI_Group group = everybody();

	MPI_Win_post(group, 0, win);
	MPI_Win_start(group, 0, win);
	MPI_Group_free(&group);
}

static void pscw_end(MPI_Win win)
{
	MPI_Win_complete(win);
	MPI_Win_wait(win);
}

static void windows(void)
{
	static const struct {
		const char *name;
		void (*begin)(MPI_Win), (*end)(MPI_Win);
	} ways[] = {{"fence", fence_begin, fence_end}, {"lock", lock_begin, lock_end}, {"pscw", pscw_begin, pscw_end}};
	static const size_t parts[] = {1, 7, 8, 64, 1000, 4096, 8191, 65536, 300001};
	size_t max = (size_t)option("max", 300001);
	bool near = one_node();

	for (int flavour = 0; flavour < FLAVOURS; flavour++) {
		struct window w;

		/* Between nodes a dynamic window of Open MPI 4.1.4 waits for a lock of its own (ompi 10328, 10518). */
		if ((flavour == SHARED || flavour == DYNAMIC) && !near)
			continue;
		window_open(&w, flavour, max * (size_t)ranks);
		for (int way = 0; way < 3; way++)
			for (int i = 0; i < 9 && parts[i] <= max; i++)
				put_and_get(&w, parts[i], way * 9 + i, ways[way].begin, ways[way].end);
		window_close(&w);
		if (!rank)
			printf("  %s: well\n", flavours[flavour]);
	}
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* What all ranks have fetched: no value came twice. */
static void expect_distinct(const int64_t *mine, int n)
{
	size_t count = (size_t)n * (size_t)ranks;
	int64_t *all = allocate(count * sizeof(*all));

	MPI_Gather(mine, n, MPI_INT64_T, all, n, MPI_INT64_T, 0, MPI_COMM_WORLD);
	if (!rank) {
		qsort(all, count, sizeof(*all), by_value);
		for (size_t i = 1; i < count; i++)
			EXPECT(all[i] != all[i - 1], "two ranks have fetched %lld", (long long)all[i] / 2);
	}
	free(all);
}

/* Counters that all ranks change at once, by each kind of atomic operation, at rank 0 and at the last: nothing is lost.
 */
static void counters(void)
{
	enum { SUM, FETCH, SWAP, TAKEN, MAX, WORDS };
	int n = (int)option("n", 400), cas = (int)option("cas", 1), max = (int)option("max", 1);
	int64_t *seen = allocate((size_t)n * sizeof(*seen));
	struct window w;

	for (int flavour = 0; flavour < DYNAMIC; flavour++) {
		window_open(&w, flavour, WORDS * sizeof(int64_t));
		MPI_Win_lock_all(0, w.win);
		for (int i = 0; i < n; i++) {
			int to = i % 2 ? 0 : ranks - 1;
			int64_t one = 1, mine = (int64_t)i * ranks + rank, old = -1, none = 0, was;
			/* Who has the lock needs Open MPI's own, which is not fair, to give it back. */
			const struct timespec rest = {.tv_nsec = 50000};

			MPI_Accumulate(&one, 1, MPI_INT64_T, to, SUM * 8, 1, MPI_INT64_T, MPI_SUM, w.win);
			if (max)
				MPI_Accumulate(&mine, 1, MPI_INT64_T, to, MAX * 8, 1, MPI_INT64_T, MPI_MAX, w.win);
			MPI_Fetch_and_op(&one, &old, MPI_INT64_T, to, FETCH * 8, MPI_SUM, w.win);
			MPI_Win_flush(to, w.win);
			EXPECT(old >= 0 && old < (int64_t)n * ranks, "fetch and op brought %lld", (long long)old);
			seen[i] = old * 2 + i % 2;
			do { /* a lock, and a word that it guards */
				if (cas)
					MPI_Compare_and_swap(&one, &none, &was, MPI_INT64_T, to, SWAP * 8, w.win);
				else
					MPI_Fetch_and_op(&one, &was, MPI_INT64_T, to, SWAP * 8, MPI_REPLACE, w.win);
				MPI_Win_flush(to, w.win);
				if (was)
					nanosleep(&rest, NULL);
			} while (was);
			MPI_Get(&old, 1, MPI_INT64_T, to, TAKEN * 8, 1, MPI_INT64_T, w.win);
			MPI_Win_flush(to, w.win);
			old++;
			MPI_Put(&old, 1, MPI_INT64_T, to, TAKEN * 8, 1, MPI_INT64_T, w.win);
			MPI_Win_flush(to, w.win);
			MPI_Fetch_and_op(&none, &was, MPI_INT64_T, to, SWAP * 8, MPI_REPLACE, w.win);
			MPI_Win_flush(to, w.win);
			EXPECT(was == 1, "the lock was %lld", (long long)was);
		}
		MPI_Win_unlock_all(w.win);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w.win);
		if (rank == 0 || rank == ranks - 1) {
			const int64_t *word = (const int64_t *)(void *)w.memory;
			int64_t all = (int64_t)ranks * n / (ranks > 1 ? 2 : 1);

			EXPECT(word[SUM] == all && word[FETCH] == all && word[TAKEN] == all,
				"sums are %lld, %lld, %lld, not %lld", (long long)word[SUM], (long long)word[FETCH],
				(long long)word[TAKEN], (long long)all);
			EXPECT(!max || word[MAX] >= (int64_t)(n - 2) * ranks, "the largest is %lld",
				(long long)word[MAX]);
		}
		MPI_Win_unlock(rank, w.win);
		expect_distinct(seen, n);
		window_close(&w);
	}
	free(seen);
}

/* Vectors of every type that is accumulated often, by all ranks into one window: the sums are right. */
static void accumulate(void)
{
	enum { LENGTH = 3000 };
	static const MPI_Datatype types[] = {MPI_INT, MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T};
	int rounds = (int)option("rounds", 10);
	struct window w;

	for (int t = 0; t < 4; t++) {
		union {
			int i[LENGTH];
			float f[LENGTH];
			double d[LENGTH];
			int64_t l[LENGTH];
		} *v = allocate(sizeof(*v)), *sum;
		int size;

		MPI_Type_size(types[t], &size);
		for (int i = 0; i < LENGTH; i++) {
			if (t == 0)
				v->i[i] = rank + i;
			else if (t == 1)
				v->f[i] = (float)(rank + i);
			else if (t == 2)
				v->d[i] = rank + i;
			else
				v->l[i] = rank + i;
		}
		window_open(&w, t % 2 ? CREATE : ALLOCATE, sizeof(*v));
		for (int i = 0; i < rounds; i++) {
			MPI_Win_fence(0, w.win);
			MPI_Accumulate(v, LENGTH, types[t], 0, 0, LENGTH, types[t], MPI_SUM, w.win);
			MPI_Win_fence(0, w.win);
		}
		sum = (void *)w.memory;
		for (int i = 0; !rank && i < LENGTH; i++) {
			int64_t all = (int64_t)rounds * ((int64_t)ranks * i + (int64_t)ranks * (ranks - 1) / 2);
			int64_t is = t == 0   ? sum->i[i]
				     : t == 1 ? (int64_t)sum->f[i]
				     : t == 2 ? (int64_t)sum->d[i]
					      : sum->l[i];

			EXPECT(is == all, "element %d of %d bytes is %lld, not %lld", i, size, (long long)is,
				(long long)all);
		}
		window_close(&w);
		free(v);
	}
}

/* Requests, and get-accumulates of pieces that do not lie side by side. */
static void scattered(void)
{
	enum { BLOCKS = 50, STRIDE = 4 };
	int *out = allocate(BLOCKS * STRIDE * sizeof(int)), *in = allocate(BLOCKS * STRIDE * sizeof(int));
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Datatype comb;
	MPI_Request r[2];
	struct window w;

	MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &comb);
	MPI_Type_commit(&comb);
	for (int i = 0; i < BLOCKS * STRIDE; i++)
		out[i] = rank * 1000 + i;
	window_open(&w, CREATE, BLOCKS * STRIDE * sizeof(int));
	MPI_Win_lock_all(0, w.win);
	MPI_Rput(out, 1, comb, to, 0, 1, comb, w.win, &r[0]);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	MPI_Win_flush(to, w.win);
	MPI_Rget(in, 1, comb, to, 0, 1, comb, w.win, &r[1]);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	for (int i = 0; i < BLOCKS * STRIDE; i++)
		EXPECT(in[i] == (i % STRIDE ? 0 : rank * 1000 + i), "element %d is %d", i, in[i]);
	MPI_Win_unlock_all(w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, w.win);
	MPI_Get_accumulate(out, 1, comb, MPI_INT, 0, MPI_INT, to, 0, 1, comb, MPI_NO_OP, w.win);
	MPI_Accumulate(out, 1, comb, to, 0, 1, comb, MPI_SUM, w.win);
	MPI_Win_unlock_all(w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w.win);
	for (int i = 0; i < BLOCKS * STRIDE; i++) {
		int is = ((int *)(void *)w.memory)[i];

		EXPECT(is == (i % STRIDE ? 0 : 2 * (from * 1000 + i)), "element %d of the window is %d", i, is);
	}
	MPI_Win_unlock(rank, w.win);
	MPI_Type_free(&comb);
	window_close(&w);
	free(out);
	free(in);
}

/* Several windows at once, with messages between, opened and closed again and again: keys come and go. */
static void churn(void)
{
	int rounds = (int)option("rounds", 40);

	for (int i = 0; i < rounds; i++) {
		struct window w[3];
		int word = -1, to = (rank + 1 + i) % ranks;

		for (int k = 0; k < 3; k++)
			window_open(&w[k], (i + k) % DYNAMIC, 100000u >> (4 * k));
		for (int k = 0; k < 3; k++)
			put_and_get(&w[k], w[k].size / (size_t)ranks, i * 3 + k, lock_begin, lock_end);
		MPI_Sendrecv(&i, 1, MPI_INT, to, 5, &word, 1, MPI_INT, (rank - 1 - i % ranks + 2 * ranks) % ranks, 5,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		EXPECT(word == i, "a message between windows brought %d, not %d", word, i);
		for (int k = 0; k < 3; k++)
			window_close(&w[k]);
	}
}

const struct mpi_test one_sided_tests[] = {
	{"windows", 2, MPI_THREAD_SINGLE, windows, "windows of every kind, synchronised in every way, every size"},
	{"counters", 2, MPI_THREAD_SINGLE, counters, "atomic operations of all ranks on the same words"},
	{"accumulate", 2, MPI_THREAD_SINGLE, accumulate, "accumulates of vectors of several types"},
	{"scattered", 2, MPI_THREAD_SINGLE, scattered, "requests, and data that does not lie side by side"},
	{"churn", 2, MPI_THREAD_SINGLE, churn, "windows that come and go, with messages between"},
	{0},
};

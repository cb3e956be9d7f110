/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process that computes and calls nothing of MPI does to others: messages to a process beside it on its node,
 * and one-sided operations into its own memory. Three ranks, two of them on one node:
 *
 *   far       on the other node; measures
 *   sibling   answers messages
 *   target    has the window; either waits in MPI or computes, a period at a time, without a call
 *
 * Each measurement is taken while the target waits, and again while it computes. A line of JSON for each;
 * bench/progress runs it and makes tables and plots.
 */
#include "bench/common/clock.h"
#include "bench/common/stats.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGEST  (1 << 20)
#define WINDOW   8
#define SAMPLES  200000
#define TAG_DATA 1
#define TAG_END  2 /* of a measurement */
#define TAG_WORK 3 /* seconds for the target to compute; 0: none; below: no more. It answers that it begins */

enum { FAR, SIBLING, TARGET, ROLES };

struct job {
	int me, rank[ROLES];
	char *buf; /* WINDOW * LARGEST */
	char *memory;
	MPI_Win win;
	double period; /* s */
	int spin;      /* the target computes; else it sleeps, where there are fewer cores than ranks */
};

struct samples {
	double *us;
	size_t count;
	double seconds;
};

struct measure {
	const char *name, *unit;
	void (*once)(struct job *j, size_t size);
	size_t size;
	int messages; /* of that size, each time; 0: it is a latency, and half of it counts with `half` */
	int half;
};

/* Roles by who shares a node with whom. False: another job is needed. */
static int find_roles(struct job *j)
{
	int ranks, near, color[3], mine;
	MPI_Comm node;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &j->me);
	if (ranks != 3)
		return 0;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, j->me, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &near);
	MPI_Comm_free(&node);
	mine = near;
	MPI_Allgather(&mine, 1, MPI_INT, color, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0, role = SIBLING; i < 3; i++) {
		if (color[i] == 1)
			j->rank[FAR] = i;
		else if (role < ROLES)
			j->rank[role++] = i;
	}
	return color[0] + color[1] + color[2] == 5;
}

static void pingpong(struct job *j, size_t size)
{
	MPI_Send(j->buf, (int)size, MPI_BYTE, j->rank[SIBLING], TAG_DATA, MPI_COMM_WORLD);
	MPI_Recv(j->buf, (int)size, MPI_BYTE, j->rank[SIBLING], TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void window(struct job *j, size_t size)
{
	MPI_Request request[WINDOW];

	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(j->buf + (size_t)i * LARGEST, (int)size, MPI_BYTE, j->rank[SIBLING], TAG_DATA, MPI_COMM_WORLD,
			&request[i]);
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	MPI_Recv(NULL, 0, MPI_BYTE, j->rank[SIBLING], TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void put(struct job *j, size_t size)
{
	MPI_Put(j->buf, (int)size, MPI_BYTE, j->rank[TARGET], 0, (int)size, MPI_BYTE, j->win);
	MPI_Win_flush(j->rank[TARGET], j->win);
}

static void puts_of_window(struct job *j, size_t size)
{
	for (int i = 0; i < WINDOW; i++)
		MPI_Put(j->buf + (size_t)i * LARGEST, (int)size, MPI_BYTE, j->rank[TARGET], (MPI_Aint)i * LARGEST,
			(int)size, MPI_BYTE, j->win);
	MPI_Win_flush(j->rank[TARGET], j->win);
}

static void get(struct job *j, size_t size)
{
	MPI_Get(j->buf, (int)size, MPI_BYTE, j->rank[TARGET], 0, (int)size, MPI_BYTE, j->win);
	MPI_Win_flush(j->rank[TARGET], j->win);
}

static const struct measure measures[] = {
	{"messages to its sibling, 8 B", "us", pingpong, 8, 0, 1},
	{"messages to its sibling, 4 KB", "us", pingpong, 4096, 0, 1},
	{"messages to its sibling, 64 KB", "MB/s", window, 65536, WINDOW, 0},
	{"messages to its sibling, 1 MB", "MB/s", window, LARGEST, WINDOW, 0},
	{"puts into its memory, 8 B", "us", put, 8, 0, 0},
	{"puts into its memory, 64 KB", "MB/s", puts_of_window, 65536, WINDOW, 0},
	{"gets from its memory, 8 B", "us", get, 8, 0, 0},
};
#define MEASURES (sizeof(measures) / sizeof(measures[0]))

/* The sibling's part: ping-pongs, or windows, until it is told to stop. What it is asked for is in the first message.
 */
static void answer(struct job *j)
{
	for (;;) {
		MPI_Status s;
		int size;

		MPI_Recv(j->buf, LARGEST, MPI_BYTE, j->rank[FAR], MPI_ANY_TAG, MPI_COMM_WORLD, &s);
		if (s.MPI_TAG == TAG_END)
			return;
		MPI_Get_count(&s, MPI_BYTE, &size);
		if (size <= 4096) {
			MPI_Send(j->buf, size, MPI_BYTE, j->rank[FAR], TAG_DATA, MPI_COMM_WORLD);
			continue;
		}
		for (int i = 1; i < WINDOW; i++)
			MPI_Recv(j->buf, LARGEST, MPI_BYTE, j->rank[FAR], TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(NULL, 0, MPI_BYTE, j->rank[FAR], TAG_DATA, MPI_COMM_WORLD);
	}
}

static void compute(double seconds, int spin)
{
	const struct timespec nap = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	double end = bench_now() + seconds;

	if (!spin)
		nanosleep(&nap, NULL);
	while (bench_now() < end)
		;
}

/* The target's part: does as it is told until there is no more to do. */
static void serve(const struct job *j)
{
	double seconds;

	for (;;) {
		MPI_Recv(&seconds, 1, MPI_DOUBLE, j->rank[FAR], TAG_WORK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (seconds < 0)
			return;
		MPI_Send(NULL, 0, MPI_BYTE, j->rank[FAR], TAG_WORK, MPI_COMM_WORLD);
		compute(seconds, j->spin);
	}
}

/* The target computes from now on, for so long. */
static void tell(const struct job *j, double seconds)
{
	MPI_Send(&seconds, 1, MPI_DOUBLE, j->rank[TARGET], TAG_WORK, MPI_COMM_WORLD);
	if (seconds >= 0)
		MPI_Recv(NULL, 0, MPI_BYTE, j->rank[TARGET], TAG_WORK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* For nearly a period: what comes back when the target calls MPI again shows in the longest. */
static void measure(struct job *j, const struct measure *m, struct samples *s)
{
	double start = bench_now(), before = start, now = start;

	for (s->count = 0; s->count < SAMPLES && now - start < 0.8 * j->period; s->count++) {
		m->once(j, m->size);
		now = bench_now();
		s->us[s->count] = (now - before) * 1e6;
		before = now;
	}
	s->seconds = now - start;
}

static void print(const struct measure *m, int computes, struct samples *s)
{
	struct bench_stats stats = bench_stats_of(s->us, s->count);
	double value = m->messages ? (double)m->messages * (double)m->size * (double)s->count / s->seconds / 1e6
				   : stats.median / (m->half ? 2 : 1);
	printf("{\"measure\": \"%s\", \"unit\": \"%s\", \"target\": \"%s\", \"value\": %.3f, \"longest_us\": %.1f, "
	       "\"operations\": %zu}\n",
		m->name, m->unit, computes ? "computes" : "waits", value, stats.max,
		s->count * (size_t)(m->messages ? m->messages : 1));
	fflush(stdout);
}

static void measure_all(struct job *j)
{
	struct samples s = {.us = malloc(SAMPLES * sizeof(*s.us))};

	if (!s.us)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (size_t i = 0; i < MEASURES; i++) {
		for (int n = 0; n < 10; n++)
			measures[i].once(j, measures[i].size);
		for (int computes = 0; computes < 2; computes++) {
			tell(j, computes ? j->period : 0);
			measure(j, &measures[i], &s);
			print(&measures[i], computes, &s);
			if (computes)
				compute(j->period, 0); /* it has ended */
		}
	}
	MPI_Send(NULL, 0, MPI_BYTE, j->rank[SIBLING], TAG_END, MPI_COMM_WORLD);
	tell(j, -1);
	free(s.us);
}

int main(int argc, char **argv)
{
	struct job j = {.period = 1};

	MPI_Init(&argc, &argv);
	if (argc > 1)
		j.period = atof(argv[1]);
	j.spin = argc > 2 && !strcmp(argv[2], "spin");
	if (!find_roles(&j) || j.period <= 0 || j.period > 60) {
		fprintf(stderr, "usage: progress [SECONDS [spin]], by three ranks, two of them on one node\n");
		MPI_Finalize();
		return 2;
	}
	j.buf = malloc((size_t)WINDOW * LARGEST);
	j.memory = malloc((size_t)WINDOW * LARGEST);
	if (!j.buf || !j.memory)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(j.buf, 1, (size_t)WINDOW * LARGEST);
	memset(j.memory, 1, (size_t)WINDOW * LARGEST);
	/*
	 * Of its own: what MPI allocates for a window is shared by the ranks of a node, and another rank
	 * may serve it.
	 */
	MPI_Win_create(j.memory, (MPI_Aint)WINDOW * LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &j.win);
	MPI_Win_lock_all(0, j.win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (j.me == j.rank[FAR])
		measure_all(&j);
	else if (j.me == j.rank[SIBLING])
		answer(&j);
	else
		serve(&j);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(j.win);
	MPI_Win_free(&j.win);
	free(j.memory);
	free(j.buf);
	MPI_Finalize();
	return 0;
}

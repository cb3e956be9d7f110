/* SPDX-License-Identifier: BSD-3-Clause */
/* The window, the ways of synchronising, and the loop. */
#include "bench/mpi/one_sided.h"

#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/common/options.h"
#include "bench/common/sweep.h"

#include <stdio.h>
#include <string.h>

struct one_sided_team {
	struct bench_team team; /* first: a run's team is cast to it */
	const struct one_sided_test *test;
	enum bench_sync sync;
	bool target; /* this rank */
	int partner;
	MPI_Group partner_group;
	MPI_Win window;
	char *memory; /* of the window */
	size_t bytes;
};

/* One epoch of the origin's, around an iteration's operations. */

static void origin_begin(const struct one_sided_team *t)
{
	switch (t->sync) {
	case BENCH_FLUSH:
		return;
	case BENCH_LOCK:
		MPI_Win_lock(MPI_LOCK_SHARED, t->partner, 0, t->window);
		return;
	case BENCH_FENCE:
		MPI_Win_fence(0, t->window);
		return;
	case BENCH_PSCW:
		MPI_Win_start(t->partner_group, 0, t->window);
		return;
	}
}

static void origin_end(const struct one_sided_team *t)
{
	switch (t->sync) {
	case BENCH_FLUSH:
		MPI_Win_flush(t->partner, t->window);
		return;
	case BENCH_LOCK:
		MPI_Win_unlock(t->partner, t->window);
		return;
	case BENCH_FENCE:
		MPI_Win_fence(0, t->window);
		return;
	case BENCH_PSCW:
		MPI_Win_complete(t->window);
		return;
	}
}

/* The target's part in it. */
static void target_takes_part(const struct one_sided_team *t)
{
	switch (t->sync) {
	case BENCH_FLUSH:
	case BENCH_LOCK:
		return;
	case BENCH_FENCE:
		MPI_Win_fence(0, t->window);
		MPI_Win_fence(0, t->window);
		return;
	case BENCH_PSCW:
		MPI_Win_post(t->partner_group, 0, t->window);
		MPI_Win_wait(t->window);
		return;
	}
}

/* Between these the target may read and write its window itself. */

static void local_begin(const struct one_sided_team *t)
{
	if (t->sync == BENCH_LOCK)
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t->team.rank, 0, t->window);
	else if (t->sync == BENCH_FLUSH)
		MPI_Win_sync(t->window);
}

static void local_end(const struct one_sided_team *t)
{
	if (t->sync == BENCH_LOCK)
		MPI_Win_unlock(t->team.rank, t->window);
	else if (t->sync == BENCH_FLUSH)
		MPI_Win_sync(t->window);
}

static void operate_all(struct one_sided_team *t, struct bench_run *r, unsigned long iteration)
{
	uint64_t seq = (uint64_t)iteration * r->window;

	origin_begin(t);
	for (unsigned i = 0; i < r->window; i++)
		t->test->operate(r, t->window, t->partner, i, seq + i);
	origin_end(t);
}

static void run_untouched(struct one_sided_team *t, struct bench_run *r)
{
	for (unsigned long i = 0; i < r->iterations; i++) {
		if (t->target)
			target_takes_part(t);
		else
			operate_all(t, r, i);
	}
}

static void target_looks(struct one_sided_team *t, struct bench_run *r, unsigned long iteration,
	void (*look)(struct bench_run *r, char *window, unsigned slot, uint64_t seq))
{
	if (!look)
		return;
	local_begin(t);
	for (unsigned i = 0; i < r->window; i++)
		look(r, t->memory, i, (uint64_t)iteration * r->window + i);
	local_end(t);
}

static void origin_touches(
	struct bench_run *r, unsigned long iteration, void (*touch)(struct bench_run *r, unsigned slot, uint64_t seq))
{
	for (unsigned i = 0; touch && i < r->window; i++)
		touch(r, i, (uint64_t)iteration * r->window + i);
}

static double run_touched(struct one_sided_team *t, struct bench_run *r)
{
	double seconds = 0;

	for (unsigned long i = 0; i < r->iterations; i++) {
		double start;

		if (t->target)
			target_looks(t, r, i, t->test->prepare);
		MPI_Barrier(MPI_COMM_WORLD);
		start = bench_now();
		if (t->target) {
			target_takes_part(t);
		} else {
			origin_touches(r, i, t->test->fill);
			operate_all(t, r, i);
			origin_touches(r, i, t->test->take);
		}
		seconds += bench_now() - start;
		MPI_Barrier(MPI_COMM_WORLD);
		if (t->target)
			target_looks(t, r, i, t->test->inspect);
	}
	return seconds;
}

int bench_one_sided_run(struct bench_run *r, double *seconds)
{
	struct one_sided_team *t = (struct one_sided_team *)r->team;
	double start;

	if (t->sync == BENCH_FLUSH)
		MPI_Win_lock_all(0, t->window);
	local_begin(t);
	memset(t->memory, 0, t->bytes);
	local_end(t);
	MPI_Barrier(MPI_COMM_WORLD);
	start = bench_now();
	if (r->touch == BENCH_TOUCH_NONE) {
		run_untouched(t, r);
		*seconds = bench_now() - start;
	} else {
		*seconds = run_touched(t, r);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (t->sync == BENCH_FLUSH)
		MPI_Win_unlock_all(t->window);
	/* A target that only waits for the end is no measure. */
	if (t->target && t->sync <= BENCH_LOCK)
		*seconds = 0;
	return 0;
}

static void open_window(struct one_sided_team *t, const struct bench_options *o)
{
	MPI_Group world;

	t->sync = o->sync;
	t->target = t->team.rank >= t->team.ranks / 2;
	t->partner = t->team.rank + (t->target ? -1 : 1) * (t->team.ranks / 2);
	t->bytes = bench_buffer_bytes(&t->test->test, o, &t->team);
	if (o->own_memory) {
		MPI_Alloc_mem((MPI_Aint)t->bytes, MPI_INFO_NULL, &t->memory);
		MPI_Win_create(t->memory, (MPI_Aint)t->bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &t->window);
	} else {
		MPI_Win_allocate((MPI_Aint)t->bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &t->memory, &t->window);
	}
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &t->partner, &t->partner_group);
	MPI_Group_free(&world);
}

static void close_window(struct one_sided_team *t, const struct bench_options *o)
{
	MPI_Group_free(&t->partner_group);
	MPI_Win_free(&t->window);
	if (o->own_memory)
		MPI_Free_mem(t->memory);
}

int bench_one_sided_main(int argc, char **argv, const struct one_sided_test *test)
{
	struct one_sided_team t = {.test = test};
	struct bench_options o;
	int rc = bench_mpi_begin(argc, argv, &test->test, BENCH_OPTIONS_ONE_SIDED, &t.team, &o);

	if (rc)
		return bench_mpi_end(rc < 0 ? rc : 0);
	if (t.team.ranks % 2) /* there are no pairs; the sweep says so */
		return bench_mpi_end(bench_sweep(&test->test, &o, &t.team));
	open_window(&t, &o);
	rc = bench_sweep(&test->test, &o, &t.team);
	close_window(&t, &o);
	return bench_mpi_end(rc);
}

static uint64_t seed_of(const struct bench_run *r, int origin, uint64_t seq)
{
	return bench_seed(origin, origin + r->team->ranks / 2, r->base + seq);
}

void bench_put(struct bench_run *r, MPI_Win window, int target, unsigned slot, uint64_t seq)
{
	size_t at = bench_slot(r, slot);

	(void)seq;
	MPI_Put(r->send + at, (int)r->size, MPI_BYTE, target, (MPI_Aint)at, (int)r->size, MPI_BYTE, window);
}

void bench_put_fill(struct bench_run *r, unsigned slot, uint64_t seq)
{
	bench_before_send(r, r->send + bench_slot(r, slot), r->size, seed_of(r, r->team->rank, seq));
}

void bench_put_inspect(struct bench_run *r, char *window, unsigned slot, uint64_t seq)
{
	bench_after_recv(r, window + bench_slot(r, slot), r->size, seed_of(r, r->team->rank - r->team->ranks / 2, seq));
}

void bench_get(struct bench_run *r, MPI_Win window, int target, unsigned slot, uint64_t seq)
{
	size_t at = bench_slot(r, slot);

	(void)seq;
	MPI_Get(r->recv + at, (int)r->size, MPI_BYTE, target, (MPI_Aint)at, (int)r->size, MPI_BYTE, window);
}

void bench_get_prepare(struct bench_run *r, char *window, unsigned slot, uint64_t seq)
{
	bench_before_send(
		r, window + bench_slot(r, slot), r->size, seed_of(r, r->team->rank - r->team->ranks / 2, seq));
}

void bench_get_take(struct bench_run *r, unsigned slot, uint64_t seq)
{
	bench_after_recv(r, r->recv + bench_slot(r, slot), r->size, seed_of(r, r->team->rank, seq));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Which objects of a domain share a lock, by itself (bindings/libfabric/group.h). Engines are mere numbers. */
#include "rwk_test.h"

#include "bindings/libfabric/group.h"
#include "bindings/libfabric/progress.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define OBJECTS 6
#define ENGINES 8
#define TURNS   20000

/* What others have for it. */
static unsigned stirred;

void rwk_fi_lock_stir(struct rwk_fi_mutex *l)
{
	stirred += l->held;
	rwk_list_pop(&l->asleep);
}

void rwk_fi_progress_stop(struct rwk_fi_progress *p)
{
	(void)p;
}

static unsigned rung;

void rwk_fi_progress_ring(struct rwk_fi_progress *p)
{
	(void)p;
	rung++;
}

int rwk_fi_wait_open(struct rwk_fi_wait *w, enum fi_wait_obj wanted, const char *what)
{
	(void)what;
	*w = (struct rwk_fi_wait){.object = wanted, .engines = calloc(ENGINES, sizeof(struct rwk_engine *))};
	return w->engines ? 0 : -ENOMEM;
}

void rwk_fi_wait_close(struct rwk_fi_wait *w)
{
	free(w->engines);
}

static const struct rwk_engine *refused;

int rwk_fi_wait_attach(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	if (e == refused)
		return -ENOMEM;
	w->engines[w->count++] = e;
	return 0;
}

void rwk_fi_wait_detach(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	unsigned i = 0;

	while (w->engines[i] != e)
		i++;
	w->engines[i] = w->engines[--w->count];
}

static unsigned driven[ENGINES];
static unsigned held; /* of those drives the group's lock was */
static unsigned number_of(const struct rwk_engine *e);

static bool restless; /* they never have nothing to do */

bool rwk_fi_wait_drive(struct rwk_fi_wait *w)
{
	const struct rwk_fi_group *g = rwk_container_of(w, struct rwk_fi_group, engines);

	held += atomic_load(&g->mutex.held);
	for (unsigned i = 0; i < w->count; i++)
		driven[number_of(w->engines[i])]++;
	return !restless;
}

static struct object {
	struct rwk_fi_guard guard;
	struct rwk_fi_member member;
	unsigned inside;
} object[OBJECTS];

static struct rwk_fi_groups all;
static char engine[ENGINES];

static struct rwk_engine *number(unsigned i)
{
	return (struct rwk_engine *)&engine[i];
}

static unsigned number_of(const struct rwk_engine *e)
{
	return (unsigned)((const char *)e - engine);
}

static void join(unsigned i)
{
	assert_int_equal(rwk_fi_join(&all, &object[i].member, &object[i].guard), 0);
}

static void part(unsigned i)
{
	rwk_fi_part(&all, &object[i].member);
}

static int tie(unsigned a, unsigned b)
{
	return rwk_fi_tie(&all, &object[a].member, &object[b].member);
}

static struct rwk_fi_mutex *lock_of(unsigned i)
{
	return rwk_fi_mutex_of(&object[i].guard);
}

static struct rwk_fi_wait *driven_with(unsigned i)
{
	return &object[i].member.group->engines;
}

static int open_all(void **state)
{
	(void)state;
	refused = NULL;
	rung = 0;
	rwk_fi_groups_init(&all, true, false);
	for (unsigned i = 0; i < OBJECTS; i++)
		join(i);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < OBJECTS; i++)
		part(i);
	rwk_fi_groups_close(&all);
	return 0;
}

/* Each object has a lock of its own, and two that are bound to each other one, with all that they were bound to. */
static void binding_shares_a_lock(void **state)
{
	(void)state;
	for (unsigned i = 1; i < OBJECTS; i++)
		assert_ptr_not_equal(lock_of(i), lock_of(i - 1));
	assert_int_equal(tie(0, 1), 0);
	assert_int_equal(tie(2, 3), 0);
	assert_ptr_equal(lock_of(0), lock_of(1));
	assert_ptr_not_equal(lock_of(0), lock_of(2));
	assert_int_equal(tie(3, 1), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_ptr_equal(lock_of(i), lock_of(0));
		assert_ptr_equal(lock_of(i), &object[i].member.group->mutex);
	}
	assert_int_equal(tie(0, 3), 0);
	assert_ptr_not_equal(lock_of(4), lock_of(0));
	assert_ptr_not_equal(lock_of(5), lock_of(4));
}

/* The engines of both are driven together from then on; if that fails, all is as it was. */
static void engines_come_along(void **state)
{
	(void)state;
	assert_int_equal(rwk_fi_group_attach(&all, &object[0].member, number(0)), 0);
	assert_int_equal(rwk_fi_group_attach(&all, &object[1].member, number(1)), 0);
	assert_int_equal(rwk_fi_group_attach(&all, &object[1].member, number(2)), 0);
	refused = number(0);
	assert_int_equal(tie(0, 1), -ENOMEM);
	assert_ptr_not_equal(lock_of(0), lock_of(1));
	assert_int_equal(driven_with(0)->count, 1);
	assert_int_equal(driven_with(1)->count, 2);
	refused = NULL;
	assert_int_equal(tie(0, 1), 0);
	assert_ptr_equal(driven_with(0), driven_with(1));
	assert_int_equal(driven_with(0)->count, 3);
	rwk_fi_group_detach(&object[0].member, number(0));
	assert_int_equal(driven_with(1)->count, 2);
}

/* What many open and close takes no more memory than what is open at a time. */
static void groups_are_used_again(void **state)
{
	unsigned groups = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		part(i % OBJECTS);
		join(i % OBJECTS);
		assert_int_equal(tie(i % OBJECTS, (i + 1) % OBJECTS), 0);
		part((i + 1) % OBJECTS);
		join((i + 1) % OBJECTS);
	}
	for (struct rwk_fi_group *g = &all.first; g; g = atomic_load(&g->next))
		groups++;
	assert_in_range(groups, 1, OBJECTS);
}

/* All have the first one's, and so has who comes later. */
static void unite(void **state)
{
	(void)state;
	part(5);
	assert_int_equal(rwk_fi_group_attach(&all, &object[3].member, number(0)), 0);
	assert_int_equal(rwk_fi_unite(&all), 0);
	join(5);
	for (unsigned i = 0; i < OBJECTS; i++)
		assert_ptr_equal(lock_of(i), &all.first.mutex);
	assert_int_equal(all.first.engines.count, 1);
	rwk_fi_group_detach(&object[0].member, number(0));
	assert_int_equal(rwk_fi_unite(&all), 0);
}

/* While all are stopped nobody has a lock, and afterwards each gets his. */
static void stop(void **state)
{
	(void)state;
	assert_int_equal(tie(0, 1), 0);
	rwk_fi_stop(&all);
	for (unsigned i = 0; i < OBJECTS; i++)
		assert_int_equal(atomic_load(&lock_of(i)->held), 1);
	rwk_fi_go(&all);
	for (unsigned i = 0; i < OBJECTS; i++)
		assert_int_equal(atomic_load(&lock_of(i)->held), 0);
	assert_int_equal(atomic_load(&all.control.held), 0);
}

/* Without locks there is one group, whose guards have none. */
static void no_locks(void **state)
{
	(void)state;
	close_all(NULL);
	rwk_fi_groups_init(&all, false, true);
	for (unsigned i = 0; i < OBJECTS; i++) {
		join(i);
		assert_null(lock_of(i));
	}
	assert_int_equal(tie(0, 1), 0);
	rwk_fi_stop(&all);
	rwk_fi_enter(&object[0].guard);
	rwk_fi_leave(&object[0].guard);
	rwk_fi_go(&all);
}

/* The progress thread is told once of each group that it can sleep on. */
static void progress_hears_of_groups(void **state)
{
	static char thread;

	(void)state;
	all.progress = (struct rwk_fi_progress *)&thread;
	free(driven_with(0)->engines);
	free(driven_with(1)->engines);
	assert_int_equal(rwk_fi_group_attach(&all, &object[0].member, number(0)), 0);
	assert_int_equal(rwk_fi_group_attach(&all, &object[1].member, number(1)), 0);
	assert_int_equal(rwk_fi_group_attach(&all, &object[1].member, number(2)), 0);
	assert_int_equal(driven_with(0)->object, FI_WAIT_FD);
	assert_int_equal(rung, 2);
	all.progress = NULL;
}

static atomic_bool done;
static atomic_uint collisions;

/*
 * Goes through the objects; an object, and all that is tied to it before the threads start, has one of them
 * at a time.
 */
static void *hammer(void *arg)
{
	const unsigned *tied = arg;

	for (unsigned i = 0; i < TURNS; i++) {
		struct object *o = &object[i % OBJECTS], *same = &object[tied[i % OBJECTS]];

		rwk_fi_enter(&o->guard);
		if (++same->inside != 1)
			atomic_fetch_add(&collisions, 1);
		if (i % 64 == 0)
			sched_yield();
		same->inside--;
		rwk_fi_leave(&o->guard);
	}
	return NULL;
}

static void *come_and_go(void *arg)
{
	static struct object more[2];

	while (!atomic_load(&done)) {
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(rwk_fi_join(&all, &more[i].member, &more[i].guard), 0);
		assert_int_equal(rwk_fi_tie(&all, &more[0].member, &more[1].member), 0);
		for (unsigned i = 0; i < 2; i++)
			rwk_fi_part(&all, &more[i].member);
		rwk_fi_stop(&all);
		for (unsigned i = 0; i < OBJECTS; i++)
			assert_int_equal(object[i].inside, 0);
		rwk_fi_go(&all);
		sched_yield();
	}
	return arg;
}

static void hammer_at(const unsigned tied[OBJECTS], const unsigned (*ties)[2], unsigned count)
{
	pthread_t id[3], other;

	atomic_store(&done, false);
	assert_int_equal(pthread_create(&other, NULL, come_and_go, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&id[i], NULL, hammer, (void *)(uintptr_t)tied), 0);
	for (unsigned i = 0; i < count; i++) {
		sched_yield();
		assert_int_equal(tie(ties[i][0], ties[i][1]), 0);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_join(id[i], NULL), 0);
	atomic_store(&done, true);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(atomic_load(&collisions), 0);
}

/* Locks change while they are taken and waited for: who has an object's has it alone. */
static void change_while_in_use(void **state)
{
	static const unsigned apart[OBJECTS] = {0, 1, 2, 3, 4, 5}, tied[OBJECTS] = {0, 0, 2, 2, 0, 0};
	static const unsigned first[][2] = {{0, 1}, {5, 4}, {2, 3}, {1, 5}}, last[][2] = {{2, 0}};

	(void)state;
	atomic_store(&collisions, 0);
	hammer_at(apart, first, 4);
	hammer_at(tied, last, 1);
}

/* Who has been stirred is found under the lock that the objects have from then on. */
static void stirred_come_along(void **state)
{
	struct rwk_list sleeper;

	(void)state;
	assert_int_equal(rwk_fi_group_attach(&all, &object[0].member, number(0)), 0);
	for (unsigned i = 1; i < 3; i++) { /* into its group, and with it into another one */
		assert_int_equal(rwk_fi_group_attach(&all, &object[i].member, number(i)), 0);
		rwk_list_init(&sleeper);
		rwk_list_append(&lock_of(i)->stirred, &sleeper);
		assert_int_equal(tie(0, i), 0);
		assert_ptr_equal(lock_of(i)->stirred.next, &sleeper);
		assert_ptr_equal(sleeper.next, &lock_of(i)->stirred);
		rwk_list_remove(&sleeper);
	}
	for (unsigned i = 0; i < 3; i++)
		rwk_fi_group_detach(&object[i].member, number(i));
}

/*
 * Who closes an endpoint drives all that there are, each under its lock; or leaves that to the progress thread. Those
 * who sleep on one are stirred only if it could not be armed again.
 */
static void all_are_driven(void **state)
{
	struct rwk_list sleeper;

	(void)state;
	memset(driven, 0, sizeof(driven));
	held = 0;
	assert_int_equal(tie(0, 1), 0);
	for (unsigned i = 0; i < OBJECTS; i++)
		assert_int_equal(rwk_fi_group_attach(&all, &object[i].member, number(i)), 0);
	rwk_list_append(&lock_of(1)->asleep, &sleeper);
	stirred = 0;
	rwk_fi_groups_drive(&all);
	assert_int_equal(stirred, 0);
	for (unsigned i = 0; i < OBJECTS; i++)
		assert_int_equal(driven[i], 1);
	assert_int_equal(held, OBJECTS); /* one of these groups is empty */
	assert_false(atomic_load(&lock_of(0)->held));
	restless = true;
	rwk_fi_groups_drive(&all);
	restless = false;
	held -= OBJECTS;
	assert_int_equal(stirred, OBJECTS);
	all.progress = (struct rwk_fi_progress *)&all;
	rwk_fi_groups_drive(&all);
	all.progress = NULL;
	assert_int_equal(held, OBJECTS);
	for (unsigned i = 0; i < OBJECTS; i++)
		rwk_fi_group_detach(&object[i].member, number(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(binding_shares_a_lock, open_all, close_all),
		cmocka_unit_test_setup_teardown(engines_come_along, open_all, close_all),
		cmocka_unit_test_setup_teardown(groups_are_used_again, open_all, close_all),
		cmocka_unit_test_setup_teardown(unite, open_all, close_all),
		cmocka_unit_test_setup_teardown(stop, open_all, close_all),
		cmocka_unit_test_setup_teardown(no_locks, open_all, close_all),
		cmocka_unit_test_setup_teardown(progress_hears_of_groups, open_all, close_all),
		cmocka_unit_test_setup_teardown(change_while_in_use, open_all, close_all),
		cmocka_unit_test_setup_teardown(stirred_come_along, open_all, close_all),
		cmocka_unit_test_setup_teardown(all_are_driven, open_all, close_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

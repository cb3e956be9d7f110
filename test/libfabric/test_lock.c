/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock by itself (bindings/libfabric/lock.h). */
#include "rwk_test.h"

#include "bindings/libfabric/lock.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define TURNS   20000

static struct rwk_fi_mutex lock;
static unsigned stirred;

/* What those who sleep have for it. */
void rwk_fi_lock_stir(struct rwk_fi_mutex *l)
{
	stirred++;
	rwk_list_pop(&l->asleep);
}

static int fresh(void **state)
{
	(void)state;
	rwk_fi_mutex_init(&lock);
	stirred = 0;
	return 0;
}

static unsigned inside, counted;

/* Now and then it is held for so long that others go to sleep on it. */
static void *take_turns(void *arg)
{
	for (unsigned i = 0; i < TURNS; i++) {
		rwk_fi_lock(&lock);
		inside++;
		if (i % 64 == 0)
			sched_yield();
		counted += inside == 1;
		inside--;
		rwk_fi_unlock(&lock);
	}
	return arg;
}

/* One at a time has it, and each gets it in the end; its turns are counted. */
static void excludes(void **state)
{
	pthread_t id[THREADS];

	(void)state;
	inside = counted = 0;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&id[i], NULL, take_turns, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(id[i], NULL), 0);
	assert_int_equal(counted, THREADS * TURNS);
	assert_int_equal(lock.turns, THREADS * TURNS);
	assert_int_equal(atomic_load(&lock.held), 0);
	assert_int_equal(atomic_load(&lock.waiting), 0);
}

static void *wait_for_it(void *arg)
{
	rwk_fi_lock(&lock);
	rwk_fi_unlock(&lock);
	return arg;
}

/* The progress thread takes it from nobody who has it or waits for it, and when it waits, that ends. */
static void goes_after_the_program(void **state)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	pthread_t id;

	(void)state;
	assert_true(rwk_fi_lock_try(&lock));
	assert_false(rwk_fi_lock_try(&lock));
	assert_false(rwk_fi_lock_wait_for(&lock, 5));
	assert_int_equal(pthread_create(&id, NULL, wait_for_it, NULL), 0);
	while (!atomic_load(&lock.waiting))
		nanosleep(&moment, NULL);
	atomic_store(&lock.held, 0); /* open, but nobody is woken: the sleeper finds that by himself */
	assert_int_equal(pthread_join(id, NULL), 0);
	assert_true(rwk_fi_lock_wait_for(&lock, 5));
	rwk_fi_unlock(&lock);
	atomic_store(&lock.waiting, 1);
	assert_false(rwk_fi_lock_try(&lock));
	atomic_store(&lock.waiting, 0);
	assert_true(rwk_fi_lock_try(&lock));
	assert_int_equal(lock.turns, 1);
	rwk_fi_unlock(&lock);
}

/* Who takes it stirs those who sleep, once; not who takes it quietly. */
static void stirs(void **state)
{
	struct rwk_fi_guard guard;
	struct rwk_list sleeper;

	(void)state;
	atomic_init(&guard.mutex, &lock);
	rwk_list_append(&lock.asleep, &sleeper);
	rwk_fi_lock_quietly(&lock);
	rwk_fi_unlock(&lock);
	rwk_fi_enter_quietly(&guard);
	assert_int_equal(atomic_load(&lock.held), 1);
	rwk_fi_leave(&guard);
	assert_int_equal(stirred, 0);
	for (unsigned i = 0; i < 2; i++) {
		rwk_fi_lock(&lock);
		rwk_fi_unlock(&lock);
	}
	assert_int_equal(stirred, 1);
	rwk_fi_lock(NULL);
	rwk_fi_lock_quietly(NULL);
	rwk_fi_unlock(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(excludes, fresh),
		cmocka_unit_test_setup(goes_after_the_program, fresh),
		cmocka_unit_test_setup(stirs, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

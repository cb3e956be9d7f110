/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for counters, and what they cannot count. */
#include "fi_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static struct t_domain domain;

static int open_domain(void **state)
{
	(void)state;
	t_domain_open(&domain, 0, FI_THREAD_SAFE);
	return 0;
}

static int close_domain(void **state)
{
	(void)state;
	t_domain_close(&domain);
	return 0;
}

/* A counter that another thread changes, and how far the one that waits for it is. */
struct changed {
	struct fid_cntr *cntr;
	atomic_bool for_error, over;
	uint64_t errors; /* that were added */
};

/* An error that comes before its wait has begun does not end that: so there is one after the other until it is over. */
static void *change(void *arg)
{
	struct changed *c = arg;
	const struct timespec moment = {0, 20000000};

	nanosleep(&moment, NULL);
	assert_int_equal(fi_cntr_add(c->cntr, 4), 0);
	assert_int_equal(fi_cntr_add(c->cntr, 1), 0);
	while (!atomic_load(&c->for_error))
		nanosleep(&moment, NULL);
	for (; !atomic_load(&c->over); c->errors++) {
		nanosleep(&moment, NULL);
		assert_int_equal(fi_cntr_adderr(c->cntr, 1), 0);
	}
	return NULL;
}

/* Ends at the value, at a new error, or in time; an error that was there before is none to end it. Whatever it sleeps
 * on. */
static void waits(void **state)
{
	static const enum fi_wait_obj objects[] = {FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD};
	static struct changed changed;

	(void)state;
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = objects[i]};
		struct fid_cntr *cntr;
		pthread_t other;
		int64_t start;

		assert_int_equal(fi_cntr_open(domain.domain, &attr, &cntr, NULL), 0);
		assert_int_equal(fi_cntr_seterr(cntr, 2), 0);
		assert_int_equal(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
		start = t_now();
		assert_int_equal(fi_cntr_wait(cntr, 1, 30), -FI_ETIMEDOUT);
		assert_true(t_now() - start >= 29);
		assert_int_equal(fi_cntr_readerr(cntr), 2);
		changed = (struct changed){.cntr = cntr};
		assert_int_equal(pthread_create(&other, NULL, change, &changed), 0);
		assert_int_equal(fi_cntr_wait(cntr, 5, -1), 0);
		assert_int_equal(fi_cntr_wait(cntr, 5, 0), 0);
		atomic_store(&changed.for_error, true);
		assert_int_equal(fi_cntr_wait(cntr, 6, T_PATIENCE), -FI_EAVAIL);
		atomic_store(&changed.over, true);
		assert_int_equal(pthread_join(other, NULL), 0);
		assert_int_equal(fi_cntr_read(cntr), 5);
		assert_int_equal(fi_cntr_readerr(cntr), 2 + changed.errors);
		assert_int_equal(fi_close(&cntr->fid), 0);
	}
}

/* Numbers are set, and added to, each by itself. */
static void numbers(void **state)
{
	struct fid_cntr *cntr;

	(void)state;
	assert_int_equal(fi_cntr_open(domain.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_set(cntr, UINT64_MAX - 1), 0);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_true(fi_cntr_read(cntr) == UINT64_MAX);
	assert_int_equal(fi_cntr_readerr(cntr), 0);
	assert_int_equal(fi_cntr_set(cntr, 3), 0);
	assert_int_equal(fi_cntr_adderr(cntr, 7), 0);
	assert_int_equal(fi_cntr_read(cntr), 3);
	assert_int_equal(fi_cntr_readerr(cntr), 7);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* Completions are counted, not bytes (the second kind of libfabric 2); there are no flags. */
static void refused(void **state)
{
	struct fi_cntr_attr bytes = {.events = (enum fi_cntr_events)(FI_CNTR_EVENTS_COMP + 1)};
	struct fi_cntr_attr flags = {.flags = 1}, mutex = {.wait_obj = FI_WAIT_MUTEX_COND};
	struct fid_cntr *cntr;

	(void)state;
	assert_int_equal(fi_cntr_open(domain.domain, &bytes, &cntr, NULL), -FI_ENOSYS);
	assert_int_equal(fi_cntr_open(domain.domain, &flags, &cntr, NULL), -FI_EBADFLAGS);
	assert_int_equal(fi_cntr_open(domain.domain, &mutex, &cntr, NULL), -FI_ENOSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits),
		cmocka_unit_test(numbers),
		cmocka_unit_test(refused),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, open_domain, close_domain);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* How many threads poll: counted by windows of time (base/crowd.h). */
#include "rwk_test.h"

#include "base/crowd.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 5
#define W       RWK_CROWD_WINDOW

static void *count_at(void *arg)
{
	for (unsigned i = 0; i < 100; i++)
		rwk_crowd_count(*(const uint64_t *)arg);
	return NULL;
}

/* Each counts itself at that time, as often as it likes; all at once. */
static void others(unsigned threads, uint64_t at)
{
	pthread_t id[THREADS];

	for (unsigned i = 0; i < threads; i++)
		assert_int_equal(pthread_create(&id[i], NULL, count_at, &at), 0);
	for (unsigned i = 0; i < threads; i++)
		assert_int_equal(pthread_join(id[i], NULL), 0);
}

/* A thread counts once a window; the fuller of this window and the last one is the answer. */
static void by_windows(void **state)
{
	(void)state;
	assert_int_equal(rwk_crowd_count(10 * W), 1);
	assert_int_equal(rwk_crowd_count(10 * W + 1), 1);
	others(THREADS, 10 * W + 2);
	assert_int_equal(rwk_crowd_count(10 * W + 3), THREADS + 1);
	assert_int_equal(rwk_crowd_count(11 * W), THREADS + 1);
	assert_int_equal(rwk_crowd_count(12 * W), 1);
}

/* After a time without any there is only who comes now. */
static void forgotten(void **state)
{
	(void)state;
	others(THREADS, 20 * W);
	assert_int_equal(rwk_crowd_count(22 * W), 1);
	others(2, 22 * W);
	assert_int_equal(rwk_crowd_count(22 * W), 3);
}

/* Whose clock is behind counts in the window that there is. */
static void late(void **state)
{
	(void)state;
	assert_int_equal(rwk_crowd_count(30 * W), 1);
	others(2, 28 * W);
	assert_int_equal(rwk_crowd_count(30 * W), 3);
	assert_int_equal(rwk_crowd_count(31 * W), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_windows),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

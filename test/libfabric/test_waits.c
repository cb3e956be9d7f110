/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom the engine is told to wait with: who asks again at once for what was not there, and not who asks on and on. */
#include "rwk_test.h"

#include "bindings/libfabric/wait.h"

#define SPIN 200

struct rwk_params rwk_params = {.spin = SPIN};

static bool waited;
static int found;

int rwk_engine_poll(struct rwk_engine *e, bool waits)
{
	(void)e;
	waited = waits;
	return found;
}

int rwk_fi_device_progress(struct rwk_fi_device *d)
{
	(void)d;
	return 0;
}

int rwk_fi_wait_datagrams(struct rwk_fi_wait *w)
{
	(void)w;
	return 0;
}

/* One look; did the engine wait? */
static bool look(struct rwk_fi_wait *w, int finds)
{
	found = finds;
	assert_int_equal(rwk_fi_wait_progress(w), finds);
	return waited;
}

static struct rwk_engine *engines[1];

static struct rwk_fi_wait fresh(void)
{
	return (struct rwk_fi_wait){.engines = engines, .count = 1};
}

static void waits_for_an_answer(void **state)
{
	struct rwk_fi_wait w = fresh();

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		assert_false(look(&w, 0));
		for (unsigned i = 0; i < RWK_FI_WAITS; i++)
			assert_true(look(&w, 0));
		for (unsigned i = 0; i < 1000; i++)
			assert_false(look(&w, 0));
		assert_false(look(&w, 1));
	}
}

/* A program that has found what it wanted in the queue does not wait, whatever it has asked before. */
static void found_without_a_look(void **state)
{
	struct rwk_fi_wait w = fresh();

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		assert_false(look(&w, 0));
		rwk_fi_wait_found(&w);
	}
}

/* Nor does it when it has given its core away. */
static void tires(void **state)
{
	struct rwk_fi_wait w = fresh();

	(void)state;
	for (unsigned i = 1; i < SPIN; i++) {
		look(&w, 0);
		assert_false(rwk_fi_wait_tires(&w));
	}
	look(&w, 0);
	assert_true(rwk_fi_wait_tires(&w));
	for (unsigned i = 0; i < 3; i++) {
		assert_false(look(&w, 0));
		assert_false(rwk_fi_wait_tires(&w));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_an_answer),
		cmocka_unit_test(found_without_a_look),
		cmocka_unit_test(tires),
	};

	return cmocka_run_group_tests_name("libfabric/waits", tests, NULL, NULL);
}

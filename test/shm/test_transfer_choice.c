/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The measured choice against machines of the test's own making: it finds the faster method, follows a change, and
 * costs little.
 */
#include "rwk_test.h"

#include "shm/transfer_choice.h"

#include <stdbool.h>

static const unsigned all = 1u << RWK_SHM_STAGE | 1u << RWK_SHM_PULL | 1u << RWK_SHM_BOTH;

static struct rwk_shm_load of(size_t length)
{
	return (struct rwk_shm_load){.length = length};
}

/*
 * A machine: ns a KB by method; every seventh transfer is disturbed. Returns how often `m` was taken; adds up the
 * time.
 */
static unsigned play(struct rwk_shm_choice *c, const double speed[RWK_SHM_METHODS], struct rwk_shm_load load,
	unsigned rounds, enum rwk_shm_method m, double *spent)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < rounds; i++) {
		enum rwk_shm_method now = rwk_shm_choice_pick(c, load, all);
		double ns = speed[now] * (double)load.length / 1024;

		*spent += ns;
		rwk_shm_choice_record(c, now, load, load.length, (uint64_t)(i % 7 == 3 ? 20 * ns : ns));
		taken += now == m;
	}
	return taken;
}

/*
 * Whichever is fastest is found, in each class by itself, and exploring costs less than 2 % once the trials are over.
 */
static void finds_the_fastest(void **state)
{
	static const double speed[RWK_SHM_METHODS][RWK_SHM_METHODS] = {{20, 70, 35}, {70, 20, 35}, {35, 70, 20}};
	struct rwk_shm_choice c = {0};

	(void)state;
	for (unsigned m = 0; m < RWK_SHM_METHODS; m++) {
		size_t size = (size_t)8192 << m;
		double spent = 0, best = 20000 * 20.0 * (double)size / 1024;

		play(&c, speed[m], of(size), 12, (enum rwk_shm_method)m, &spent);
		spent = 0;
		assert_in_range(play(&c, speed[m], of(size), 20000, (enum rwk_shm_method)m, &spent), 19800, 19990);
		assert_true(spent < best * 1.02);
	}
}

/* The fastest method was slow for its first transfers. Short ones are tried again soon, longer ones much later. */
static void what_was_cold(void **state)
{
	static const double cold[RWK_SHM_METHODS] = {70, 35, 700}, warm[RWK_SHM_METHODS] = {70, 35, 20};
	struct rwk_shm_choice c = {0};
	double spent = 0;

	(void)state;
	assert_int_equal(play(&c, cold, of(64 << 10), 12, RWK_SHM_BOTH, &spent), 4);
	assert_int_equal(play(&c, warm, of(64 << 10), 12, RWK_SHM_BOTH, &spent), 4);
	assert_int_equal(play(&c, warm, of(64 << 10), 100, RWK_SHM_BOTH, &spent), 100);
	assert_int_equal(play(&c, cold, of(65 << 10), 12, RWK_SHM_BOTH, &spent), 4);
	assert_int_equal(play(&c, warm, of(65 << 10), 100, RWK_SHM_PULL, &spent), 100);
}

/* What was fastest becomes slow: the other one is taken before long. */
static void follows_a_change(void **state)
{
	static const double before[] = {20, 70, 70}, after[] = {200, 70, 300};
	struct rwk_shm_choice c = {0};
	double spent = 0;

	(void)state;
	play(&c, before, of(65536), 1000, RWK_SHM_STAGE, &spent);
	assert_true(play(&c, after, of(65536), 200, RWK_SHM_PULL, &spent) > 150);
}

/*
 * Both would be fastest, but is slow for the first transfer after another method, whose lines are in the other caches:
 * found all the same, where many wait one behind the other.
 */
static void first_of_a_trial_is_cold(void **state)
{
	static const uint64_t warm[RWK_SHM_METHODS] = {25, 90, 20}, cold[RWK_SHM_METHODS] = {25, 90, 60};
	const size_t size = 65536;
	enum rwk_shm_method last = RWK_SHM_STAGE;
	struct rwk_shm_pace p = {0};
	uint64_t now = 1000000;
	unsigned both = 0;

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		enum rwk_shm_method m = rwk_shm_choice_pick(&p.choice, of(size), all);
		uint64_t start = now;

		now += (m == last ? warm : cold)[m] * size / 1024;
		rwk_shm_pace_done(&p, m, of(size), start, now, true);
		last = m;
		both += m == RWK_SHM_BOTH;
	}
	assert_in_range(both, 4900, 4999);
}

/*
 * A call that brings several is measured as a whole: those that are told of at its end have not come in no time. Also
 * where a run is long enough in the middle of one, is the first after another method, or ends with the call.
 */
static void several_of_a_call(void **state)
{
	enum { EACH = 5 };
	static const uint64_t cost[RWK_SHM_METHODS] = {40, 30, 20};
	const size_t size = 1 << 20;

	(void)state;
	for (unsigned longer = 0; longer < 2; longer++) {
		struct rwk_shm_pace p = {0};
		uint64_t now = 1000000;

		for (unsigned i = 0; i < 400; i++) {
			enum rwk_shm_method m = i / 7 % RWK_SHM_METHODS;
			uint64_t start = now;

			now += EACH * cost[m] * (size >> 10);
			for (unsigned k = 0; k < EACH; k++) {
				p.of_call = EACH - 1 - k;
				rwk_shm_pace_done(&p, m, of(k % 2 ? size : size / 4), start, now + k, longer);
			}
		}
		for (int m = 0; m < RWK_SHM_METHODS; m++)
			assert_true(rwk_shm_choice_expect(&p.choice, m, of(size / 4), 0) > cost[m] * (size / 4 >> 10));
	}
}

/*
 * Both would be fastest, but eight come together, and the first eight after another method are slow: found all the
 * same.
 */
static void first_call_of_a_trial_is_cold(void **state)
{
	enum { TOGETHER = 8 };
	static const uint64_t warm[RWK_SHM_METHODS] = {90, 30, 20}, cold[RWK_SHM_METHODS] = {90, 30, 60};
	const size_t size = 65536;
	enum rwk_shm_method m, last = RWK_SHM_STAGE;
	struct rwk_shm_pace p = {0};
	uint64_t now = 1000000;
	unsigned both = 0, n = 0;

	(void)state;
	m = rwk_shm_choice_pick(&p.choice, of(size), all);
	for (unsigned i = 0; i < 60000; i++) {
		enum rwk_shm_method next = rwk_shm_choice_pick(&p.choice, of(size), all);

		n++;
		both += m == RWK_SHM_BOTH;
		if (next != m || n == TOGETHER || m != RWK_SHM_BOTH) {
			uint64_t start = now;

			now += n * (m == last ? warm : cold)[m] * size / 1024;
			for (p.of_call = n; p.of_call--;)
				rwk_shm_pace_done(&p, m, of(size), start, now, true);
			p.of_call = 0;
			last = m;
			n = 0;
		}
		m = next;
	}
	assert_in_range(both, 45000, 59999);
}

/*
 * Windows, in which AHEAD transfers have come, all but their last bytes, when the first one is told of. At the end of a
 * window, when nobody waits for anything, the last of them end at once: they have not come in no time.
 */
static void what_comes_ahead(void **state)
{
	enum { WINDOW = 71, AHEAD = 6 };
	const size_t size = 65536;
	const uint64_t cost = 30;
	struct rwk_shm_pace p = {0};
	uint64_t now = 1000000;

	(void)state;
	for (unsigned w = 0; w < 50; w++) {
		uint64_t begun = now;

		for (unsigned i = 0; i < WINDOW; i++) {
			unsigned behind = WINDOW - 1 - i, ahead = behind < AHEAD ? behind : AHEAD;

			now = begun + (i + 1 + ahead) * cost * (size >> 10);
			p.ahead = ahead * size * 9 / 10;
			rwk_shm_pace_done(&p, RWK_SHM_BOTH, of(size), begun, now + i, behind > 0);
			assert_in_range(rwk_shm_choice_expect(&p.choice, RWK_SHM_BOTH, of(size), (float)cost),
				cost * (size >> 10) * 95 / 100, cost * (size >> 10) * 112 / 100);
		}
		now += 5000;
	}
}

/*
 * Where the kernel's copies are slow for where the bytes lie, among others of the same length for which they are quick:
 * each kind by its own way.
 */
static void those_that_collide(void **state)
{
	static const double usual[] = {40, 60, 20}, slow[] = {45, 700, 350};
	const struct rwk_shm_load askew = {.length = 65536, .collides = true};
	struct rwk_shm_choice c = {0};
	double spent = 0;
	unsigned both = 0, stage = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		both += play(&c, usual, of(65536), 3, RWK_SHM_BOTH, &spent);
		stage += play(&c, slow, askew, 1, RWK_SHM_STAGE, &spent);
	}
	assert_true(both > 2900);
	assert_true(stage > 950);
}

/* What is not allowed is never taken, not even to try it; one allowed method needs no knowledge. */
static void only_what_is_allowed(void **state)
{
	struct rwk_shm_choice c = {0};

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		enum rwk_shm_method m = rwk_shm_choice_pick(&c, of(4096), 1u << RWK_SHM_STAGE | 1u << RWK_SHM_BOTH);

		assert_true(m != RWK_SHM_PULL);
		rwk_shm_choice_record(&c, m, of(4096), 4096, 1000);
		assert_int_equal(rwk_shm_choice_pick(&c, of(1 << 20), 1u << RWK_SHM_PULL), RWK_SHM_PULL);
	}
}

/* Who asks for one method gets it once it is the cheapest, except for the other's trials, which go on as before. */
static void taken_if_it_is_known(void **state)
{
	static const unsigned two = 1u << RWK_SHM_PULL | 1u << RWK_SHM_BOTH;
	static const uint64_t ns[RWK_SHM_METHODS] = {[RWK_SHM_PULL] = 5000, [RWK_SHM_BOTH] = 6000};
	struct rwk_shm_choice c = {0}, picked = {0};
	unsigned taken = 0;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		enum rwk_shm_method m = rwk_shm_choice_pick(&picked, of(65536), two), n = RWK_SHM_PULL;

		assert_false(rwk_shm_choice_take(&c, RWK_SHM_BOTH, of(65536), two));
		if (rwk_shm_choice_take(&c, RWK_SHM_PULL, of(65536), two))
			taken++;
		else
			n = rwk_shm_choice_pick(&c, of(65536), two);
		assert_int_equal(m, n);
		rwk_shm_choice_record(&picked, m, of(65536), 65536, ns[m]);
		rwk_shm_choice_record(&c, m, of(65536), 65536, ns[m]);
		assert_true(i >= 4 * 4 || !taken);
	}
	assert_in_range(taken, 19600, 19980);
	assert_memory_equal(&c, &picked, sizeof(c));
}

/* Lengths share a class up to the power of two; the ends are open. */
static void classes(void **state)
{
	(void)state;
	assert_true(rwk_shm_choice_alike(of(1), of(4096)));
	assert_false(rwk_shm_choice_alike(of(4096), of(4097)));
	assert_true(rwk_shm_choice_alike(of(32769), of(65536)));
	assert_false(rwk_shm_choice_alike(of(65536), of(65537)));
	assert_true(rwk_shm_choice_alike(of((size_t)1 << 27), of((size_t)1 << 40)));
	assert_false(rwk_shm_choice_alike(of(65536), (struct rwk_shm_load){.length = 65536, .collides = true}));
}

/* The printed table names the choice and its reasons, and fits whatever room there is. */
static void prints(void **state)
{
	struct rwk_shm_choice c = {0};
	char buf[256], tiny[10];

	(void)state;
	assert_int_equal(rwk_shm_choice_print(&c, buf, sizeof(buf)), 0);
	for (enum rwk_shm_method m = 0; m < RWK_SHM_METHODS; m++) {
		for (int i = 0; i < 3; i++) {
			rwk_shm_choice_pick(&c, of(65536), 1u << m);
			rwk_shm_choice_record(&c, m, of(65536), 65536, 4096u << m);
		}
	}
	rwk_shm_choice_pick(&c, (struct rwk_shm_load){.length = 4096, .collides = true}, 1u << RWK_SHM_PULL);
	rwk_shm_choice_print(&c, buf, sizeof(buf));
	assert_string_equal(buf, "to      64 KB: stage  stage 16.0 GB/s (3)  pull 8.0 GB/s (3)  both 4.0 GB/s (3)\n"
				 "to       4 KB askew: stage\n");
	assert_true(rwk_shm_choice_print(&c, tiny, sizeof(tiny)) < sizeof(tiny));
	assert_string_equal(tiny, "to      6");
}

/* What several have measured adds up: the times chosen, and the best speed of any. */
static void adds_up(void **state)
{
	struct rwk_shm_choice sum = {0}, c[2] = {0};
	char buf[256];

	(void)state;
	for (int i = 0; i < 2; i++) {
		rwk_shm_choice_pick(&c[i], of(65536), 1u << RWK_SHM_PULL);
		rwk_shm_choice_record(&c[i], RWK_SHM_PULL, of(65536), 65536, 8192u >> i);
		rwk_shm_choice_add(&sum, &c[i]);
	}
	rwk_shm_choice_add(&sum, &(struct rwk_shm_choice){0});
	rwk_shm_choice_print(&sum, buf, sizeof(buf));
	assert_string_equal(buf, "to      64 KB: pull   pull 16.0 GB/s (2)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_fastest),
		cmocka_unit_test(what_was_cold),
		cmocka_unit_test(follows_a_change),
		cmocka_unit_test(first_of_a_trial_is_cold),
		cmocka_unit_test(several_of_a_call),
		cmocka_unit_test(first_call_of_a_trial_is_cold),
		cmocka_unit_test(what_comes_ahead),
		cmocka_unit_test(those_that_collide),
		cmocka_unit_test(only_what_is_allowed),
		cmocka_unit_test(taken_if_it_is_known),
		cmocka_unit_test(classes),
		cmocka_unit_test(prints),
		cmocka_unit_test(adds_up),
	};

	return cmocka_run_group_tests_name("shm/transfer_choice", tests, NULL, NULL);
}

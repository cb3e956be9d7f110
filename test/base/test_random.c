/* SPDX-License-Identifier: BSD-3-Clause */
/* Random words: each is given once, and a system that gives few or none is an error, not a word. */
#include "rwk_test.h"

#include "base/random.h"

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

ssize_t getrandom_here(void *to, size_t len, unsigned flags);

/* The system's: what the next call gives, bytes or a negative errno, and how often it has been asked. */
static ssize_t gives;
static unsigned calls;
static unsigned char last;

ssize_t getrandom_here(void *to, size_t len, unsigned flags)
{
	assert_true(flags & GRND_NONBLOCK);
	calls++;
	if (gives < 0) {
		errno = (int)-gives;
		return -1;
	}
	assert_in_range(gives, 0, len);
	for (ssize_t i = 0; i < gives; i += 8)
		memset((char *)to + i, ++last, (size_t)(gives - i < 8 ? gives - i : 8));
	return gives;
}

/* Word n of those that the system has given. */
static uint64_t word(unsigned n)
{
	return n * UINT64_C(0x0101010101010101);
}

static int begin(void **state)
{
	(void)state;
	calls = 0;
	last = 0;
	return 0;
}

static void each_once(void **state)
{
	bool given[65] = {false};
	struct rwk_random r = {0};
	uint64_t got = 0;

	(void)state;
	gives = sizeof(r.word);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(rwk_random_next(&r, &got), 0);
		assert_in_range(got & 0xff, 1, 64);
		assert_true(got == word(got & 0xff) && !given[got & 0xff]);
		given[got & 0xff] = true;
	}
	assert_int_equal(calls, 2);
}

/* A signal may cut it short: what is there is given, and then it is asked again. */
static void few(void **state)
{
	struct rwk_random r = {0};
	uint64_t got = 0;

	(void)state;
	gives = 3 * sizeof(got) + 5;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(rwk_random_next(&r, &got), 0);
		assert_true(got == word(i < 3 ? 3 - i : 7)); /* 4 was no whole one */
	}
	assert_int_equal(calls, 2);
}

static void none(void **state)
{
	static const struct {
		ssize_t gives;
		int says;
	} cases[] = {{-EAGAIN, -EAGAIN}, {-ENOSYS, -EIO}, {-EINTR, -EIO}, {0, -EIO}, {7, -EIO}};
	struct rwk_random r = {0};
	uint64_t got = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		gives = cases[i].gives;
		assert_int_equal(rwk_random_next(&r, &got), cases[i].says);
		assert_int_equal(got, 42);
	}
	gives = sizeof(got);
	last = 8;
	assert_int_equal(rwk_random_next(&r, &got), 0);
	assert_true(got == word(9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_once, begin),
		cmocka_unit_test_setup(few, begin),
		cmocka_unit_test_setup(none, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

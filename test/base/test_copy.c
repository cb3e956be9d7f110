/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies: whatever the length and wherever the two lie, the bytes come and stay, and none beside them changes. */
#include "rwk_test.h"

#include "base/copy.h"
#include "base/demote.h"

#define PAGE 4096u
#define MOST (4 * PAGE)
#define BARE 0xee

static unsigned char source[MOST + PAGE] __attribute__((aligned(PAGE)));
static unsigned char target[MOST + 3 * PAGE] __attribute__((aligned(PAGE)));

typedef void copy_fn(void *to, const void *from, size_t len);

static void away_by_string(void *to, const void *from, size_t len)
{
	rwk_copy_away(to, from, len, rwk_copy_has_string());
}

static void away(void *to, const void *from, size_t len)
{
	rwk_copy_away(to, from, len, false);
}

static void handed_over(void *to, const void *from, size_t len)
{
	rwk_copy_away(to, from, len, false);
	rwk_demote(to, len);
}

static void plain(void *to, const void *from, size_t len)
{
	rwk_copy(to, from, len);
}

static copy_fn *const copies[] = {plain, rwk_copy_pieces, away, away_by_string, handed_over};

static void is_bare(const unsigned char *from, const unsigned char *to)
{
	for (; from < to; from++)
		assert_int_equal(*from, BARE);
}

static void copy_and_look(copy_fn *copy, size_t to_at, size_t from_at, size_t len)
{
	unsigned char *to = target + PAGE + to_at;

	memset(target, BARE, sizeof(target));
	copy(to, source + from_at, len);
	assert_memory_equal(to, source + from_at, len);
	is_bare(target, to);
	is_bare(to + len, target + sizeof(target));
}

static void every_copy(void **state)
{
	static const size_t lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 144, 1000, 1023, 1024, 1025, 1039,
		1087, 2048, 4095, 4096, 4097, 5000, 8191, 8200, MOST};
	static const size_t places[] = {0, 1, 8, 15, 16, 17, 31, 32, 48, 63, 64, 100, 4080, 4095};
	const size_t n = sizeof(places) / sizeof(*places);

	(void)state;
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (unsigned char)(i % 251);
	for (size_t c = 0; c < sizeof(copies) / sizeof(*copies); c++) {
		for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
			for (size_t p = 0; p < n * n; p++)
				copy_and_look(copies[c], places[p / n], places[p % n], lengths[l]);
		}
	}
}

/* Less than a line ahead, pages aside; not where both lie alike, or behind. */
static void collisions(void **state)
{
	const bool has = rwk_copy_collides(source + 1, source);

	(void)state;
#if defined(__x86_64__)
	assert_true(has);
#else
	assert_false(has);
#endif
	for (size_t page = 0; page < 2; page++) {
		const unsigned char *to = target + page * PAGE;

		assert_int_equal(rwk_copy_collides(to + 17, source + 1), has);
		assert_int_equal(rwk_copy_collides(to + 63, source), has);
		assert_int_equal(rwk_copy_collides(to + 15, source + PAGE - 8), has);
		assert_false(rwk_copy_collides(to, source));
		assert_false(rwk_copy_collides(to + 64, source));
		assert_false(rwk_copy_collides(to, source + 16));
		assert_false(rwk_copy_collides(to + 2048, source));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_copy),
		cmocka_unit_test(collisions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

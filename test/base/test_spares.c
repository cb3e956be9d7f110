/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for copies: what is given back comes again, no more is kept than is said, and each piece is somebody's alone.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "base/spares.h"

#include <stdint.h>

#define MOST (64u << 10)

/* One that was given back comes again, for a length of the same size, the last one first. */
static void again(void **state)
{
	struct rwk_spares s;
	void *a, *b, *c;

	(void)state;
	rwk_spares_init(&s, MOST);
	a = rwk_spares_get(&s, 3000);
	b = rwk_spares_get(&s, 4096);
	assert_non_null(a);
	assert_non_null(b);
	assert_ptr_not_equal(a, b);
	rwk_spares_put(&s, a);
	rwk_spares_put(&s, b);
	assert_int_equal(s.kept, 8192);
	c = rwk_spares_get(&s, 4097); /* of another size */
	assert_ptr_not_equal(c, b);
	assert_ptr_equal(rwk_spares_get(&s, 2049), b);
	assert_ptr_equal(rwk_spares_get(&s, 4096), a);
	assert_int_equal(s.kept, 0);
	rwk_spares_put(&s, a);
	rwk_spares_put(&s, b);
	rwk_spares_put(&s, c);
	rwk_spares_put(&s, NULL);
	rwk_spares_close(&s);
}

/* Of many that are given back no more than so many bytes are kept; the others are freed (ASan knows). */
static void bounded(void **state)
{
	struct rwk_spares s;
	void *piece[100];

	(void)state;
	rwk_spares_init(&s, MOST);
	for (unsigned i = 0; i < 100; i++) {
		piece[i] = rwk_spares_get(&s, 1u << i % 16);
		assert_non_null(piece[i]);
	}
	for (unsigned i = 0; i < 100; i++) {
		rwk_spares_put(&s, piece[i]);
		assert_in_range(s.kept, 0, MOST);
	}
	assert_in_range(s.kept, MOST / 2, MOST);
	rwk_spares_close(&s);
	assert_int_equal(s.kept, 0);
}

/* All lengths have room, none, and more than is ever kept, too; all begin at a cache line. */
static void lengths(void **state)
{
	static const size_t length[] = {
		0, 1, 511, 512, 513, 4096, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20};
	enum { N = sizeof(length) / sizeof(length[0]) };
	struct rwk_spares s;
	void *piece[N];

	(void)state;
	rwk_spares_init(&s, (size_t)16 << 20);
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < N; i++) {
			piece[i] = rwk_spares_get(&s, length[i]);
			assert_non_null(piece[i]);
			assert_int_equal((uintptr_t)piece[i] % 64, 0);
			memset(piece[i], (int)i, length[i]);
		}
		for (unsigned i = 0; i < N; i++) {
			for (size_t k = 0; k < length[i]; k++)
				assert_int_equal(((uint8_t *)piece[i])[k], i);
			rwk_spares_put(&s, piece[i]);
		}
	}
	assert_int_equal(s.kept, 3 * 512 + 512 + 1024 + 4096 + 65536 + (2 << 20));
	assert_null(rwk_spares_get(&s, SIZE_MAX));
	rwk_spares_close(&s);
}

/* What is handed out when it is closed can be given back, and is freed. */
static void closed(void **state)
{
	struct rwk_spares s;
	void *piece;

	(void)state;
	rwk_spares_init(&s, MOST);
	piece = rwk_spares_get(&s, 100);
	rwk_spares_close(&s);
	rwk_spares_put(&s, piece);
	assert_int_equal(s.kept, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(again),
		cmocka_unit_test(bounded),
		cmocka_unit_test(lengths),
		cmocka_unit_test(closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

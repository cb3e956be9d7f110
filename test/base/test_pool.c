/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools: each object is somebody's alone, there are no more than the limit, and what nobody has had is not touched. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "base/pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE  16384u
#define CHUNK 64u
#define LIMIT 100u

static void all_of_it(void **state)
{
	struct rwk_pool p;
	void *o[LIMIT];

	(void)state;
	rwk_pool_init(&p, 72, CHUNK, LIMIT);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < LIMIT; i++) {
			o[i] = rwk_pool_get(&p);
			assert_non_null(o[i]);
			memset(o[i], (int)i, 72);
		}
		assert_null(rwk_pool_get(&p));
		assert_int_equal(p.used, LIMIT);
		assert_int_equal(p.total, LIMIT);
		for (unsigned i = 0; i < LIMIT; i++) {
			for (unsigned k = 0; k < 72; k++)
				assert_int_equal(((uint8_t *)o[i])[k], i);
			rwk_pool_put(&p, o[i]);
		}
		assert_int_equal(p.used, 0);
	}
	assert_ptr_equal(rwk_pool_get(&p), o[LIMIT - 1]); /* the last one, which is in the cache */
	rwk_pool_close(&p);
}

/* The page that the object begins in. */
static bool is_resident(const char *object)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char is = 0;

	assert_int_equal(mincore((void *)((uintptr_t)object & ~(page - 1)), 1, &is), 0);
	return is & 1;
}

/* A chunk of a megabyte, of which the kernel gives pages as they are touched. */
static void untouched(void **state)
{
	struct rwk_pool p;
	char *first, *second;

	(void)state;
	rwk_pool_init(&p, SIZE, CHUNK, 0);
	first = rwk_pool_get(&p);
	memset(first, 1, SIZE);
	for (int i = 0; i < 100; i++) { /* one at a time is always the same */
		rwk_pool_put(&p, first);
		assert_ptr_equal(rwk_pool_get(&p), first);
	}
	second = rwk_pool_get(&p);
	assert_ptr_equal(second, first + SIZE);
	assert_true(is_resident(first));
	for (unsigned i = 2; i < CHUNK; i++)
		assert_false(is_resident(first + i * SIZE));
	rwk_pool_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_it), cmocka_unit_test(untouched)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is not there where something is entered into a table: the call fails, or the request goes by messages,
 * and the next one, for which there is memory, goes well. The program goes on.
 */
#include "engine/area.h"

#include "engine/internal.h"
#include "engine/rma_state.h"

#include <limits.h>
#include <stdlib.h>

void *__real_malloc(size_t len);
void *__wrap_malloc(size_t len);
void *__real_calloc(size_t n, size_t len);
void *__wrap_calloc(size_t n, size_t len);

/* How many tables, or lists of one, are refused: what has so many bytes. */
static unsigned refusals, refused;
static size_t least, most;

static bool is_refused(size_t len)
{
	if (!refusals || len < least || len > most)
		return false;
	refusals--;
	refused++;
	return true;
}

void *__wrap_malloc(size_t len)
{
	return is_refused(len) ? NULL : __real_malloc(len);
}

/* Compilers make one of a malloc that is cleared. */
void *__wrap_calloc(size_t n, size_t len)
{
	return is_refused(n * len) ? NULL : __real_calloc(n, len);
}

static void refuse(unsigned count, size_t from, size_t to)
{
	refusals = count;
	refused = 0;
	least = from;
	most = to;
}

/* A region for which there is no room in its table: the first for want of the table, later ones of longer lists. */
static void regions(void **state)
{
	enum { REGIONS = 2000, LISTS = 2 * HASH_INITIAL_NUM_BUCKETS * sizeof(UT_hash_bucket) };
	static struct rwk_region *r[REGIONS];
	unsigned char bytes[8];
	const struct iovec iov = {bytes, sizeof(bytes)};
	struct rwk_region_attr attr = {.iov = &iov, .count = 1, .access = 3, .own_key = true};
	unsigned failed = 0;
	struct rwk_regions *t;

	_Static_assert(sizeof(struct rwk_region) < LISTS, "no region itself is refused");
	(void)state;
	assert_int_equal(rwk_regions_open(&t, false), 0);
	for (unsigned i = 0; i < REGIONS; i++) {
		attr.key = i;
		refuse(1, i ? LISTS : sizeof(UT_hash_table), SIZE_MAX);
		if (rwk_region_add(t, &attr, &r[i])) {
			assert_int_equal(refused, 1);
			failed++;
			assert_int_equal(rwk_region_add(t, &attr, &r[i]), 0);
		}
		refuse(0, 0, 0);
		assert_int_equal(rwk_region_add(t, &attr, &r[i]), -ENOKEY); /* it is in */
	}
	assert_true(failed > 1);
	for (unsigned i = 0; i < REGIONS; i++) {
		struct rwk_region *found;

		assert_int_equal(rwk_region_find(t, NULL, i, &found), 0);
		assert_ptr_equal(found, r[i]);
		rwk_region_remove(t, r[i]);
		assert_int_equal(rwk_region_find(t, NULL, i, &found), -EACCES);
	}
	rwk_regions_close(t);
}

/* One to a region that would go directly. */
static void one(struct world *w, struct area *a, unsigned seed)
{
	unsigned char buf[1000], got[1000];
	struct task t[2] = {{0}};

	world_fill(buf, 1000, seed);
	assert_int_equal(area_simple(w, 0, a, WRITE, buf, 0, 1000, 0, &t[0]), 0);
	world_wait(w, &t[0]);
	assert_int_equal(area_simple(w, 0, a, READ, got, 0, 1000, 0, &t[1]), 0);
	world_wait(w, &t[1]);
	world_check(got, 1000, seed);
	area_check_done(&t[1], RWK_F_RMA | RWK_F_READ);
}

/* Who wants to reach a peer's region directly, and cannot note it, or the peer cannot: it goes by messages. */
static void imports_and_exports(void **state)
{
	struct task t = {0};
	char got[1000];
	struct world w;
	struct area a;

	area_open_world(&w, *state, 2);
	area_open(&a, &w, 1, 1000, 3, false);
	refuse(UINT_MAX, sizeof(UT_hash_table), sizeof(UT_hash_table));
	one(&w, &a, 1);
	assert_true(refused > 0);
	assert_null(w.peer[0][1]->rma->imports);
	refuse(0, 0, 0);
	assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, 1000, 0, &t), 0);
	assert_non_null(w.peer[0][1]->rma->imports);
	refuse(UINT_MAX, sizeof(UT_hash_table), sizeof(UT_hash_table));
	world_wait(&w, &t);
	world_settle(&w);
	assert_true(refused > 0);
	assert_null(w.peer[1][0]->rma->exports);
	refuse(0, 0, 0);
	for (unsigned i = 2; i < 5; i++)
		one(&w, &a, i);
	assert_non_null(w.peer[0][1]->rma->imports);
	assert_non_null(w.peer[1][0]->rma->exports);
	area_close(&a);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions),
		{"imports_and_exports, direct", imports_and_exports, NULL, NULL, (void *)area_direct},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

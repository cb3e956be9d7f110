/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words that a program looks at, or changes, while a peer writes or reads them: one store, so that what it has taken
 * away does not come back, and one load, so that it is never of two values.
 */
#define _GNU_SOURCE /* REG_ERR */
#include "engine/area.h"

#include "engine/rma_state.h"
#include "watched.h"

static const size_t words[] = {1, 2, 4, 8, 16};
enum { WORDS = sizeof(words) / sizeof(words[0]), FAR = 64 };

/* A region in the watched page: of one piece, or of several, of which each takes one word. */
static void open_words(struct area *a, struct world *w, unsigned who, bool several)
{
	const struct iovec iov[] = {{watched.page, several ? FAR : 2 * FAR}, {watched.page + 2 * FAR, FAR}};
	const struct rwk_region_attr attr = {.iov = iov, .count = several ? 2 : 1, .access = 3};

	*a = (struct area){.w = w, .who = who};
	assert_int_equal(rwk_region_add(w->regions[who], &attr, &a->region), 0);
	a->key = rwk_region_key(a->region);
}

static void move_word(struct world *w, struct area *a, enum area_kind kind, size_t at, size_t len)
{
	unsigned char buf[16], *there = watched.page + at + (a->region->attr.count > 1 && at >= FAR ? FAR : 0);
	struct task t = {0};

	memset(watched.page, 0xee, watched.length);
	world_fill(kind == WRITE ? buf : there, len, len);
	watched_begin();
	assert_int_equal(area_simple(w, 0, a, kind, buf, at, len, 0, &t), 0);
	world_wait(w, &t);
	watched_end();
	assert_int_equal(t.c.status, 0);
	world_check(kind == WRITE ? there : buf, len, len);
	assert_int_equal(watched.loads, kind == READ);
	assert_int_equal(watched.stores, kind == WRITE);
}

/* A word is written by one store, and read by one load: of a peer's memory and of one's own. */
static void in_one_step(void **state)
{
	struct world w;

	watched_open();
	if (!watched.page)
		skip();
	area_open_world(&w, *state, 2);
	for (unsigned i = 0; i < 4 * WORDS; i++) {
		size_t len = words[i / 4];
		struct area a;

		open_words(&a, &w, i & 1, i & 2);
		for (size_t at = 0; at <= FAR; at += FAR) {
			move_word(&w, &a, WRITE, at, len);
			move_word(&w, &a, READ, at, len);
		}
		area_remove(&a);
	}
	world_close(&w);
	watched_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(in_one_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash tables: who is in is found, in the order of coming; lists are short where there is memory, and right without. */
#include "rwk_test.h"

#include "base/compiler.h"
#include "base/hash_table.h"

#include <stdbool.h>

#define OBJECTS 1000u

struct object {
	uint32_t key, serial;
	bool in;
	struct rwk_hash_link link;
};

static struct object objects[OBJECTS];
static bool no_memory;

/* The table's memory: local.mk gives calloc this name. */
void *calloc_here(size_t n, size_t size)
{
	void *m = no_memory ? NULL : malloc(n * size);

	return m ? memset(m, 0, n * size) : NULL;
}

static uint32_t key_of(const struct rwk_hash_link *l)
{
	return rwk_container_of(l, struct object, link)->key;
}

/* So many are in the list where those with the key are; of these each came after the one before it. */
static unsigned list_length(const struct rwk_hash_table *t, uint32_t key)
{
	const struct object *last = NULL;
	unsigned n = 0;

	for (const struct rwk_hash_link *l = rwk_hash_list(t, key); l; l = l->next) {
		const struct object *o = rwk_container_of(l, const struct object, link);

		n++;
		assert_true(o->in);
		if (o->key != key)
			continue;
		if (last)
			assert_true(last->serial < o->serial);
		last = o;
	}
	return n;
}

static bool is_in(const struct rwk_hash_table *t, const struct object *o)
{
	const struct rwk_hash_link *l = rwk_hash_list(t, o->key);

	while (l && l != &o->link)
		l = l->next;
	return l;
}

/* Everybody is in the table who should be, and nobody else. */
static void look_at_all(const struct rwk_hash_table *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < OBJECTS; i++) {
		assert_int_equal(is_in(t, &objects[i]), objects[i].in);
		n += objects[i].in;
	}
	assert_int_equal(t->count, n);
}

/* Adds all, with so many keys that differ; takes each third out again; then the rest. */
static void in_and_out(struct rwk_hash_table *t, uint32_t keys)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		objects[i] = (struct object){.key = i % keys, .serial = i, .in = true};
		rwk_hash_add(t, &objects[i].link);
	}
	look_at_all(t);
	for (unsigned i = 0; i < OBJECTS; i += 3) {
		objects[i].in = false;
		rwk_hash_remove(t, &objects[i].link);
	}
	look_at_all(t);
	for (uint32_t key = 0; key < keys; key++)
		list_length(t, key);
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (objects[i].in)
			rwk_hash_remove(t, &objects[i].link);
		objects[i].in = false;
	}
	look_at_all(t);
}

static void each_is_found(void **state)
{
	struct rwk_hash_table t;

	(void)state;
	rwk_hash_init(&t, key_of);
	assert_null(rwk_hash_list(&t, 7));
	in_and_out(&t, OBJECTS);
	in_and_out(&t, 10);
	in_and_out(&t, 1);
	rwk_hash_free(&t);
	assert_null(rwk_hash_list(&t, 7));
}

/* Keys that differ in their last bits have lists of their own, however many have come. */
static void lists_are_short(void **state)
{
	struct rwk_hash_table t;

	(void)state;
	rwk_hash_init(&t, key_of);
	for (unsigned i = 0; i < OBJECTS; i++) {
		objects[i] = (struct object){.key = i, .serial = i, .in = true};
		rwk_hash_add(&t, &objects[i].link);
		assert_int_equal(list_length(&t, 0), 1);
		assert_int_equal(list_length(&t, i), 1);
		assert_in_range(t.mask + 1, i + 1, 2 * i + 1);
	}
	rwk_hash_free(&t);
}

/* Without memory there is one list, and there are more as soon as there is some. */
static void without_memory(void **state)
{
	struct rwk_hash_table t;

	(void)state;
	rwk_hash_init(&t, key_of);
	no_memory = true;
	in_and_out(&t, OBJECTS);
	assert_int_equal(t.mask, 0);
	for (unsigned i = 0; i < OBJECTS; i++) {
		no_memory = i < OBJECTS / 2;
		objects[i] = (struct object){.key = i, .serial = i, .in = true};
		rwk_hash_add(&t, &objects[i].link);
	}
	look_at_all(&t);
	assert_in_range(t.mask, OBJECTS, 2 * OBJECTS);
	rwk_hash_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found),
		cmocka_unit_test(lists_are_short),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests_name("base/hash_table", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single behaviours of matching. Each is looked at with nothing else waiting, and among so many others that never fit
 * that everything is hashed: each test runs twice, alone and among OTHERS. All of them together, against a model:
 * test_match_random.c.
 */
#include "engine/match_inside.h"

#define OTHERS 100
#define CASE(f)                                                  \
	{#f ", alone", f, open_alone, close_scene, NULL},        \
	{#f ", among many", f, open_among_many, close_scene, NULL}

static const char *const alice = &peers[0], *const bob = &peers[1], *const nobody = &peers[127];

struct scene {
	struct rwk_matcher *m;
	struct rwk_posted posted[OTHERS];
	struct rwk_arrived kept[OTHERS];
};

static int open_alone(void **state)
{
	struct scene *b = *state = calloc(1, sizeof(*b));

	return rwk_matcher_open(&b->m);
}

static int open_among_many(void **state)
{
	struct scene *b;

	open_alone(state);
	b = *state;
	for (size_t i = 0; i < OTHERS; i++) {
		b->posted[i] = (struct rwk_posted){.from = nobody, .tag = UINT64_MAX - i};
		b->kept[i] = (struct rwk_arrived){.from = nobody, .tag = 1000000 + i};
		rwk_match_post(b->m, &b->posted[i]);
		rwk_match_keep(b->m, &b->kept[i]);
	}
	return 0;
}

static int close_scene(void **state)
{
	struct scene *b = *state;

	rwk_matcher_close(b->m);
	free(b);
	return 0;
}

/* A message finds the receive that fits, once; another peer's or tag's does not. */
static void exact(void **state)
{
	struct scene *b = *state;
	struct rwk_posted p = {.from = alice, .tag = 7};

	rwk_match_post(b->m, &p);
	assert_null(rwk_match_message(b->m, bob, 7));
	assert_null(rwk_match_message(b->m, alice, 8));
	assert_ptr_equal(rwk_match_message(b->m, alice, 7), &p);
	assert_null(rwk_match_message(b->m, alice, 7));
	check_invariants(b->m);
}

/* Of receives that fit alike the first posted goes first, whatever their classes: every order of four classes. */
static void earliest_posted_across_classes(void **state)
{
	struct scene *b = *state;
	static const struct rwk_posted kinds[4] = {{.from = alice, .tag = 0x107}, {.from = NULL, .tag = 0x107},
		{.from = alice, .tag = 0x1ff, .ignore = 0xff}, {.from = NULL, .ignore = UINT64_MAX}};

	for (unsigned order = 0; order < 256; order++) {
		struct rwk_posted p[4];

		for (unsigned i = 0; i < 4; i++) {
			p[i] = kinds[order >> 2 * i & 3];
			rwk_match_post(b->m, &p[i]);
		}
		for (unsigned i = 0; i < 4; i++)
			assert_ptr_equal(rwk_match_message(b->m, alice, 0x107), &p[i]);
	}
	check_invariants(b->m);
}

/* A receive from anyone takes what came first, from whomever; one from a peer skips the others' messages. */
static void earliest_kept(void **state)
{
	struct scene *b = *state;
	struct rwk_arrived a[3] = {{.from = bob, .tag = 7}, {.from = alice, .tag = 9}, {.from = alice, .tag = 7}};

	for (int i = 0; i < 3; i++)
		rwk_match_keep(b->m, &a[i]);
	assert_ptr_equal(rwk_match_find(b->m, NULL, 7, 0), &a[0]);
	assert_ptr_equal(rwk_match_find(b->m, alice, 7, 0), &a[2]);
	assert_ptr_equal(rwk_match_find(b->m, alice, 0, 0xff), &a[1]);
	assert_null(rwk_match_find(b->m, bob, 9, 0));
	rwk_match_take(b->m, &a[0]);
	assert_ptr_equal(rwk_match_find(b->m, NULL, 7, 0), &a[2]);
	rwk_match_take(b->m, &a[1]);
	rwk_match_take(b->m, &a[2]);
	assert_null(rwk_match_find(b->m, NULL, 7, 0));
	check_invariants(b->m);
}

/* Finding leaves a message where it is. */
static void find_leaves(void **state)
{
	struct scene *b = *state;
	struct rwk_arrived a = {.from = alice, .tag = 7};

	rwk_match_keep(b->m, &a);
	assert_ptr_equal(rwk_match_find(b->m, alice, 7, 0), &a);
	assert_ptr_equal(rwk_match_find(b->m, alice, 7, 0), &a);
	assert_int_equal(rwk_match_kept_count(b->m) % OTHERS, 1);
	rwk_match_take(b->m, &a);
	check_invariants(b->m);
}

/* All bits ignored: any tag, but still only from the peer that was named. */
static void ignore_all_bits(void **state)
{
	struct scene *b = *state;
	struct rwk_posted p = {.from = alice, .tag = 0x1234, .ignore = UINT64_MAX};
	struct rwk_arrived a = {.from = alice, .tag = 42};

	rwk_match_post(b->m, &p);
	assert_null(rwk_match_message(b->m, bob, 0x1234));
	assert_ptr_equal(rwk_match_message(b->m, alice, 0), &p);
	rwk_match_keep(b->m, &a);
	assert_null(rwk_match_find(b->m, bob, 42, UINT64_MAX));
	assert_ptr_equal(rwk_match_find(b->m, alice, 0, UINT64_MAX), &a);
	rwk_match_take(b->m, &a);
	check_invariants(b->m);
}

/* Bits of a receive's tag that it ignores itself say nothing. */
static void ignored_bits_of_the_receive(void **state)
{
	struct scene *b = *state;
	struct rwk_posted p = {.from = alice, .tag = 0xff07, .ignore = 0xff00};
	struct rwk_arrived a = {.from = alice, .tag = 0x2207};

	rwk_match_post(b->m, &p);
	assert_ptr_equal(rwk_match_message(b->m, alice, 0x1107), &p);
	rwk_match_keep(b->m, &a);
	assert_ptr_equal(rwk_match_find(b->m, alice, 0xff07, 0xff00), &a);
	rwk_match_take(b->m, &a);
	check_invariants(b->m);
}

/* A receive unposted in the middle of its like is passed over; the order of the rest stands. */
static void unpost_in_the_middle(void **state)
{
	struct scene *b = *state;
	struct rwk_posted p[3];

	for (int i = 0; i < 3; i++) {
		p[i] = (struct rwk_posted){.from = alice, .tag = 7};
		rwk_match_post(b->m, &p[i]);
	}
	rwk_match_unpost(b->m, &p[1]);
	assert_ptr_equal(rwk_match_message(b->m, alice, 7), &p[0]);
	assert_ptr_equal(rwk_match_message(b->m, alice, 7), &p[2]);
	assert_null(rwk_match_message(b->m, alice, 7));
	check_invariants(b->m);
}

/* A receive that stays takes message after message in its place in the order, until it is unposted. */
static void staying(void **state)
{
	struct scene *b = *state;
	struct rwk_posted before = {.from = alice, .tag = 7}, stays = {.from = NULL, .tag = 7, .stays = 1},
			  after = {.from = alice, .tag = 7};

	rwk_match_post(b->m, &before);
	rwk_match_post(b->m, &stays);
	rwk_match_post(b->m, &after);
	assert_ptr_equal(rwk_match_message(b->m, alice, 7), &before);
	assert_ptr_equal(rwk_match_message(b->m, alice, 7), &stays);
	assert_ptr_equal(rwk_match_message(b->m, bob, 7), &stays);
	rwk_match_unpost(b->m, &stays);
	assert_null(rwk_match_message(b->m, bob, 7));
	assert_ptr_equal(rwk_match_message(b->m, alice, 7), &after);
	check_invariants(b->m);
}

/* More classes than slots: those without one keep the order of posting, among themselves and with the others. */
static void more_classes_than_slots(void **state)
{
	struct scene *b = *state;
	struct rwk_posted p[2 * RWK_MATCH_CLASSES + 1];
	size_t n = sizeof(p) / sizeof(p[0]);

	for (size_t i = 0; i < n; i++) {
		p[i] = (struct rwk_posted){.from = i & 1 ? alice : NULL, .tag = 7, .ignore = 0x100ull << i};
		rwk_match_post(b->m, &p[i]);
	}
	rwk_match_unpost(b->m, &p[n - 2]);
	for (size_t i = 0; i < n; i++)
		if (i != n - 2)
			assert_ptr_equal(rwk_match_message(b->m, alice, 7), &p[i]);
	check_invariants(b->m);
}

/* More classes than slots, in turn: each takes over the slot of an idle one, and finds what was kept before. */
static void idle_class_gives_up_its_slot(void **state)
{
	struct scene *b = *state;
	struct rwk_arrived a[OTHERS];

	for (unsigned i = 0; i < OTHERS; i++) {
		a[i] = (struct rwk_arrived){.from = alice, .tag = i << 8 | 0xff};
		rwk_match_keep(b->m, &a[i]);
	}
	for (unsigned round = 0; round < 8; round++) {
		uint64_t ignore = round + 1;

		for (unsigned i = 0; i < IDLE + 2; i++)
			assert_ptr_equal(rwk_match_find(b->m, alice, a[i % OTHERS].tag, ignore), &a[i % OTHERS]);
		assert_int_not_equal(use_class(b->m, ignore, false), REST);
	}
	check_invariants(b->m);
	for (unsigned i = 0; i < OTHERS; i++)
		rwk_match_take(b->m, &a[i]);
	check_invariants(b->m);
}

/* A class with a receive posted keeps its slot however idle it is, and one that is used keeps it without. */
static void busy_class_keeps_its_slot(void **state)
{
	struct scene *b = *state;
	struct rwk_posted p[3 * FEW];
	unsigned used;

	for (unsigned i = 0; i < 3 * FEW; i++) {
		p[i] = (struct rwk_posted){.from = alice, .tag = i << 8, .ignore = 0x10 << i % 3};
		rwk_match_post(b->m, &p[i]);
	}
	assert_null(rwk_match_message(b->m, bob, 99));
	used = use_class(b->m, 0, false);
	assert_int_not_equal(used, REST);
	for (unsigned i = 0; i < 10 * IDLE; i++) {
		assert_int_equal(use_class(b->m, 0x10000u << i % 10, false), REST);
		assert_int_equal(use_class(b->m, 0, false), used);
	}
	for (unsigned i = 0; i < 3 * FEW; i++) {
		assert_int_not_equal(p[i].slot, REST + 1);
		assert_ptr_equal(rwk_match_message(b->m, alice, p[i].tag | p[i].ignore), &p[i]);
	}
	check_invariants(b->m);
}

static int post_another(struct rwk_posted *p, void *arg)
{
	struct scene *b = arg;
	static struct rwk_posted another;

	if (p->tag != 7)
		return 0;
	rwk_match_unpost(b->m, p);
	another = (struct rwk_posted){.from = bob, .tag = 70};
	rwk_match_post(b->m, &another);
	return 0;
}

/* A visitor may unpost what it visits and post something new, as a program does that is told of a failure. */
static void post_while_visiting(void **state)
{
	struct scene *b = *state;
	struct rwk_posted p[2] = {{.from = alice, .tag = 7}, {.from = alice, .tag = 8}};

	rwk_match_post(b->m, &p[0]);
	rwk_match_post(b->m, &p[1]);
	assert_int_equal(rwk_match_each_posted(b->m, post_another, b), 0);
	assert_null(rwk_match_message(b->m, alice, 7));
	assert_non_null(rwk_match_message(b->m, bob, 70));
	assert_ptr_equal(rwk_match_message(b->m, alice, 8), &p[1]);
	check_invariants(b->m);
}

#define TAGS  50
#define CROWD (100 * TAGS)

/** Receives and messages of a hundred peers, each with the same TAGS tags. */
struct crowd {
	struct rwk_posted posted[CROWD];
	struct rwk_arrived kept[CROWD];
};

static void post_and_keep(struct scene *b, struct crowd *c, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		const char *from = &peers[i / TAGS];
		uint64_t tag = (uint64_t)(i % TAGS) << 32;

		c->posted[i] = (struct rwk_posted){.from = from, .tag = tag, .ignore = 3};
		c->kept[i] = (struct rwk_arrived){.from = from, .tag = tag | 1u << 31};
		rwk_match_post(b->m, &c->posted[i]);
		rwk_match_keep(b->m, &c->kept[i]);
	}
}

static void match_all(struct scene *b, struct crowd *c)
{
	for (size_t i = CROWD; i-- > 0;) {
		struct rwk_arrived *a = &c->kept[i];

		assert_ptr_equal(rwk_match_message(b->m, a->from, c->posted[i].tag | 2), &c->posted[i]);
		assert_ptr_equal(rwk_match_find(b->m, a->from, a->tag, 3), a);
		rwk_match_take(b->m, a);
	}
}

static size_t longest_chain(const struct rwk_list *table, size_t buckets)
{
	size_t longest = 0;

	for (size_t i = 0; i < buckets; i++) {
		size_t n = 0;

		for (const struct rwk_list *l = table[i].next; l != &table[i]; l = l->next)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

static void check_chains_are_short(struct rwk_matcher *m)
{
	assert_in_range(longest_chain(m->posted_table, (size_t)1 << m->posted_bits), 1, 16);
	assert_in_range(longest_chain(m->kept_table, (size_t)RWK_MATCH_CLASSES << m->kept_bits), 1, 16);
}

/* Thousands wait, of many peers and tags: the tables have grown by the time somebody asks, and no chain is long. */
static void growth(void **state)
{
	struct scene *b = *state;
	struct crowd *c = malloc(sizeof(*c));

	post_and_keep(b, c, 0, CROWD);
	assert_null(rwk_match_find(b->m, bob, 99, 3));
	assert_null(rwk_match_message(b->m, bob, 99));
	check_invariants(b->m);
	check_chains_are_short(b->m);
	match_all(b, c);
	check_invariants(b->m);
	free(c);
}

/* The same where the messages are indexed from early on. */
static void growth_of_an_index(void **state)
{
	struct scene *b = *state;
	struct crowd *c = malloc(sizeof(*c));

	post_and_keep(b, c, 0, FEW + 1);
	assert_null(rwk_match_find(b->m, bob, 99, 3));
	assert_null(rwk_match_message(b->m, bob, 99));
	post_and_keep(b, c, FEW + 1, CROWD);
	assert_null(rwk_match_message(b->m, bob, 99));
	check_invariants(b->m);
	check_chains_are_short(b->m);
	match_all(b, c);
	check_invariants(b->m);
	free(c);
}

/* Without memory to grow, all is found all the same; and growth goes on once there is memory again. */
static void growth_without_memory(void **state)
{
	struct scene *b = *state;
	struct crowd *c = malloc(sizeof(*c));
	unsigned bits = b->m->posted_bits;

	allocations_left = 0;
	post_and_keep(b, c, 0, CROWD);
	assert_null(rwk_match_find(b->m, bob, 99, 3));
	match_all(b, c);
	assert_int_equal(b->m->posted_bits, bits);
	allocations_left = -1;
	post_and_keep(b, c, 0, CROWD);
	assert_null(rwk_match_message(b->m, bob, 99));
	assert_true(b->m->posted_bits > bits);
	match_all(b, c);
	check_invariants(b->m);
	free(c);
}

/* Out of memory at opening: an error, no leak, *m as it was. */
static void open_without_memory(void **state)
{
	struct rwk_matcher *const before = (void *)peers, *m = before;
	int allowed = 0;

	(void)state;
	for (;; allowed++) {
		allocations_left = allowed;
		if (rwk_matcher_open(&m) == 0)
			break;
		assert_ptr_equal(m, before);
	}
	allocations_left = -1;
	assert_int_equal(allowed, 3);
	rwk_matcher_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(exact),
		CASE(earliest_posted_across_classes),
		CASE(earliest_kept),
		CASE(find_leaves),
		CASE(ignore_all_bits),
		CASE(ignored_bits_of_the_receive),
		CASE(unpost_in_the_middle),
		CASE(staying),
		CASE(more_classes_than_slots),
		CASE(idle_class_gives_up_its_slot),
		CASE(busy_class_keeps_its_slot),
		CASE(post_while_visiting),
		CASE(growth),
		CASE(growth_of_an_index),
		CASE(growth_without_memory),
		cmocka_unit_test(open_without_memory),
	};

	return cmocka_run_group_tests_name("engine/match", tests, NULL, NULL);
}

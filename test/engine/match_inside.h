/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The matcher from inside: this header includes match.c, so that a test program sees its tables and can have its
 * allocations fail. An index that is never made, or never dropped, gives right answers slowly, which no answer shows;
 * check_invariants does.
 */
#ifndef RWK_TEST_MATCH_INSIDE_H
#define RWK_TEST_MATCH_INSIDE_H

#include "rwk_test.h"

/* Allocations of the matcher fail once this many have succeeded. */
static int allocations_left = -1;

static int allocation_allowed(void)
{
	if (allocations_left < 0)
		return 1;
	if (!allocations_left)
		return 0;
	allocations_left--;
	return 1;
}

#define malloc(n)           (allocation_allowed() ? malloc(n) : NULL)
#define aligned_alloc(a, n) (allocation_allowed() ? aligned_alloc(a, n) : NULL)
#include "engine/match.c"
#undef malloc
#undef aligned_alloc

static char peers[128]; /* addresses to be peers */

/** How many receives stand in a bucket, which must be in order and in the right one. */
static size_t check_posted_bucket(struct rwk_matcher *m, struct rwk_list *bucket)
{
	size_t n = 0;
	uint64_t last = 0;

	for (struct rwk_list *l = bucket->next; l != bucket; l = l->next, n++) {
		struct rwk_posted *p = rwk_container_of(l, struct rwk_posted, chain);
		const struct class *class;

		assert_true(n == 0 || p->order > last);
		last = p->order;
		if (bucket == &m->rest) {
			assert_int_equal(p->slot - 1, REST);
			continue;
		}
		assert_in_range(p->slot, 1, m->classes);
		class = &m->class[p->slot - 1];
		assert_true(class->ignore == p->ignore);
		assert_int_equal(class->anyone, !p->from);
		assert_ptr_equal(bucket, m->posted_table + class_hash(class, p->from, p->tag, m->posted_bits));
	}
	return n;
}

static void check_invariants(struct rwk_matcher *m)
{
	size_t n = check_posted_bucket(m, &m->rest), in_slots = 0, hashed = 0;
	struct rwk_list *l;

	for (size_t i = 0; i < (size_t)1 << m->posted_bits; i++)
		n += check_posted_bucket(m, &m->posted_table[i]);
	for (l = m->head.posted.next; l != &m->head.posted && posted_of(l)->slot; l = l->next, hashed++)
		;
	for (; l != &m->head.posted; l = l->next)
		assert_int_equal(posted_of(l)->slot, 0);
	assert_int_equal(n, hashed);
	assert_true(m->head.hashed ? m->head.posted_count > LEAVE : !hashed);
	for (unsigned i = 0; i <= REST; i++)
		in_slots += m->posted_in[i];
	assert_int_equal(in_slots, n);

	for (unsigned i = 0; i < RWK_MATCH_CLASSES; i++) {
		struct rwk_list *table = m->kept_table + ((size_t)i << m->kept_bits);

		n = 0;
		for (size_t k = 0; k < (size_t)1 << m->kept_bits; k++)
			for (l = table[k].next; l != &table[k]; l = l->next)
				n++;
		assert_int_equal(n, m->indexed >> i & 1 ? m->head.kept_count : 0);
	}
	assert_true(!m->indexed || m->head.kept_count > LEAVE);
}

#endif

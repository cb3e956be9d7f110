/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two halves that mirror each other, posted receives and kept messages. Each has a list in order, which is the truth,
 * and a hash index, which can be made again from the list at any time by walking it in order. The invariants:
 *
 *   - a bucket's chain is in the same order as the list, so the first of a bucket that fits is its earliest
 *   - posted receives are hashed in order, so the ones with a slot come before the ones without: the former are in
 *     their class's bucket, or in `rest` if they found no class. `hashed`: there may be any
 *   - bit i of `indexed`: every kept message is in a bucket of class i
 *   - what is not hashed or indexed has all its buckets empty
 *
 * The indexes are made when more than FEW wait and the first is not the one (posted: for a message; kept: for a class's
 * first question) and dropped when only LEAVE are left. So a program with few messages under way never hashes, nor one
 * whose messages come in the order of its receives, and one that goes up and down around FEW does not pay each time. A
 * class owns a slot until it has nothing posted and has not been used for IDLE uses of the others.
 */
#include "engine/match.h"

#include "base/compiler.h"

#include <errno.h>
#include <stdlib.h>

#define FEW        8                 /* as many are searched in order */
#define LEAVE      (FEW / 2)         /* at so few an index is dropped */
#define IDLE       1024              /* uses of classes after which one that was not among them gives up its slot */
#define REST       RWK_MATCH_CLASSES /* the class of receives that found none */
#define FIRST_BITS 6                 /* log2 of the buckets of a new table */

/** What an index hashes by. */
struct class
{
	uint64_t ignore;
	uint64_t used; /* the value of `uses` when it was last used */
	bool anyone;   /* receives name no peer */
};

struct rwk_matcher {
	/* All that is needed while few wait: one cache line. */
	struct rwk_match_head head;
	unsigned indexed;     /* bit for class: kept messages are in its buckets */
	struct rwk_list kept; /* in order */

	uint64_t order;   /* the next number of a posted receive */
	unsigned classes; /* slots in use, from 0 on */
	unsigned posted_bits, kept_bits;
	uint64_t uses;                 /* of classes, so far */
	size_t posted_in[REST + 1];    /* while hashed: how many posted receives a slot has */
	struct rwk_list *posted_table; /* 1 << posted_bits buckets, shared by the classes */
	struct rwk_list *kept_table;   /* 1 << kept_bits buckets for each class */
	struct class class[RWK_MATCH_CLASSES];
	struct rwk_list rest; /* while hashed: receives without a class, in order */
} rwk_aligned;

static struct rwk_posted *posted_of(struct rwk_list *all)
{
	return rwk_container_of(all, struct rwk_posted, all);
}

static struct rwk_arrived *kept_of(struct rwk_list *all)
{
	return rwk_container_of(all, struct rwk_arrived, all);
}

/** `bits` bits that depend on all of both; `from` is NULL in a class of anyone. */
static size_t hash(uint64_t tag, const void *from, unsigned bits)
{
	uint64_t h = tag * 0x9e3779b97f4a7c15u ^ (uintptr_t)from * 0xc2b2ae3d27d4eb4fu;

	h ^= h >> 32;
	return h * 0xd6e8feb86659fd93u >> (64 - bits);
}

static size_t class_hash(const struct class *c, const void *from, uint64_t tag, unsigned bits)
{
	return hash(tag & ~c->ignore, c->anyone ? NULL : from, bits);
}

/** `count` empty buckets; NULL when out of memory. */
static struct rwk_list *new_buckets(size_t count)
{
	struct rwk_list *b = malloc(count * sizeof(*b));

	for (size_t i = 0; b && i < count; i++)
		rwk_list_init(&b[i]);
	return b;
}

int rwk_matcher_open(struct rwk_matcher **out)
{
	struct rwk_matcher *m = aligned_alloc(RWK_CACHE_LINE, sizeof(*m));

	if (!m)
		return -ENOMEM;
	*m = (struct rwk_matcher){
		.posted_bits = FIRST_BITS,
		.kept_bits = FIRST_BITS,
		.posted_table = new_buckets((size_t)1 << FIRST_BITS),
		.kept_table = new_buckets((size_t)RWK_MATCH_CLASSES << FIRST_BITS),
	};
	if (!m->posted_table || !m->kept_table) {
		rwk_matcher_close(m);
		return -ENOMEM;
	}
	rwk_list_init(&m->head.posted);
	rwk_list_init(&m->kept);
	rwk_list_init(&m->rest);
	*out = m;
	return 0;
}

void rwk_matcher_close(struct rwk_matcher *m)
{
	free(m->posted_table);
	free(m->kept_table);
	free(m);
}

/* Classes */

static void drop_index(struct rwk_matcher *m, unsigned slot)
{
	for (struct rwk_list *l = m->kept.next; l != &m->kept; l = l->next)
		rwk_list_remove(&kept_of(l)->chain[slot]);
	m->indexed &= ~(1u << slot);
}

/** A slot for a new class, its index dropped: an unused one, else the one idle for longest; REST if none is free. */
static rwk_noinline unsigned new_class(struct rwk_matcher *m, uint64_t ignore, bool anyone)
{
	unsigned slot = REST;

	if (m->classes < RWK_MATCH_CLASSES) {
		slot = m->classes++;
	} else {
		uint64_t oldest = m->uses > IDLE ? m->uses - IDLE : 0;

		for (unsigned i = 0; i < RWK_MATCH_CLASSES; i++) {
			if (m->posted_in[i] || m->class[i].used >= oldest)
				continue;
			oldest = m->class[i].used;
			slot = i;
		}
		if (slot == REST)
			return REST;
	}
	if (m->indexed >> slot & 1)
		drop_index(m, slot);
	m->class[slot] = (struct class){.ignore = ignore, .anyone = anyone, .used = m->uses};
	return slot;
}

/** The class's slot, or REST. */
static unsigned use_class(struct rwk_matcher *m, uint64_t ignore, bool anyone)
{
	m->uses++;
	for (unsigned i = 0; i < m->classes; i++) {
		struct class *c = &m->class[i];

		if (c->ignore == ignore && c->anyone == anyone) {
			c->used = m->uses;
			return i;
		}
	}
	return new_class(m, ignore, anyone);
}

/* Posted receives */

/** Appends `p`, whose slot is set, to its bucket. */
static void chain_posted(struct rwk_matcher *m, struct rwk_posted *p)
{
	struct rwk_list *bucket = &m->rest;

	if (p->slot - 1 != REST)
		bucket = &m->posted_table[hash(p->tag & ~p->ignore, p->from, m->posted_bits)];
	rwk_list_append(bucket, &p->chain);
}

static void hash_posted(struct rwk_matcher *m, struct rwk_posted *p)
{
	unsigned class = use_class(m, p->ignore, !p->from);

	p->order = m->order++;
	p->slot = class + 1;
	m->posted_in[class]++;
	chain_posted(m, p);
}

static rwk_noinline void unhash_posted(struct rwk_matcher *m)
{
	for (struct rwk_list *l = m->head.posted.next; l != &m->head.posted && posted_of(l)->slot; l = l->next) {
		rwk_list_remove(&posted_of(l)->chain);
		posted_of(l)->slot = 0;
	}
	for (unsigned i = 0; i <= REST; i++)
		m->posted_in[i] = 0;
	m->head.hashed = false;
	m->order = 0;
}

/** Makes the table fit; only while every posted receive is hashed. */
static rwk_noinline void grow_posted(struct rwk_matcher *m)
{
	unsigned bits = m->posted_bits;
	struct rwk_list *table;

	while (m->head.posted_count >> bits)
		bits++;
	table = new_buckets((size_t)1 << bits);
	if (!table)
		return;
	free(m->posted_table);
	m->posted_table = table;
	m->posted_bits = bits;
	rwk_list_init(&m->rest);
	for (struct rwk_list *l = m->head.posted.next; l != &m->head.posted; l = l->next)
		chain_posted(m, posted_of(l));
}

/** Hashes what has been posted since this was last done. */
static void hash_fresh(struct rwk_matcher *m)
{
	struct rwk_list *l = &m->head.posted;

	while (l->prev != &m->head.posted && !posted_of(l->prev)->slot)
		l = l->prev;
	if (l == &m->head.posted)
		return;
	m->head.hashed = true;
	for (; l != &m->head.posted; l = l->next)
		hash_posted(m, posted_of(l));
	if (rwk_unlikely(m->head.posted_count >> m->posted_bits))
		grow_posted(m);
}

void rwk_match_unpost(struct rwk_matcher *m, struct rwk_posted *p)
{
	rwk_list_remove(&p->all);
	m->head.posted_count--;
	if (!m->head.hashed)
		return;
	if (p->slot) {
		rwk_list_remove(&p->chain);
		m->posted_in[p->slot - 1]--;
	}
	if (rwk_unlikely(m->head.posted_count <= LEAVE))
		unhash_posted(m);
}

/**
 * The earliest receive that fits in the bucket where those of a class would be; NULL if none does. It may be of
 * another class in the same bucket: then it is no less a candidate, and earlier than any of this one.
 */
static struct rwk_posted *search_bucket(struct rwk_matcher *m, const struct class *c, const void *from, uint64_t tag)
{
	struct rwk_list *bucket = &m->posted_table[class_hash(c, from, tag, m->posted_bits)];

	for (struct rwk_list *l = bucket->next; l != bucket; l = l->next) {
		struct rwk_posted *p = rwk_container_of(l, struct rwk_posted, chain);

		if (rwk_match_fits(p->from, p->tag, p->ignore, from, tag))
			return p;
	}
	return NULL;
}

/** The earliest of all classes that fits; NULL if none does. */
static struct rwk_posted *search_hashed(struct rwk_matcher *m, const void *from, uint64_t tag)
{
	struct rwk_posted *best = NULL;

	for (unsigned i = 0; i < m->classes; i++) {
		struct rwk_posted *p = m->posted_in[i] ? search_bucket(m, &m->class[i], from, tag) : NULL;

		if (p && (!best || p->order < best->order))
			best = p;
	}
	for (struct rwk_list *l = m->rest.next; l != &m->rest; l = l->next) {
		struct rwk_posted *p = rwk_container_of(l, struct rwk_posted, chain);

		if (best && best->order < p->order)
			break;
		if (rwk_match_fits(p->from, p->tag, p->ignore, from, tag))
			return p;
	}
	return best;
}

/** Any receive that fits after the first posted, which does not. */
static struct rwk_posted *search_posted(struct rwk_matcher *m, const void *from, uint64_t tag)
{
	if (m->head.hashed || m->head.posted_count > FEW) {
		hash_fresh(m);
		return search_hashed(m, from, tag);
	}
	for (struct rwk_list *l = m->head.posted.next->next; l != &m->head.posted; l = l->next) {
		struct rwk_posted *p = posted_of(l);

		if (rwk_match_fits(p->from, p->tag, p->ignore, from, tag))
			return p;
	}
	return NULL;
}

struct rwk_posted *rwk_match_message(struct rwk_matcher *m, const void *from, uint64_t tag)
{
	struct rwk_posted *p = posted_of(m->head.posted.next);

	if (!m->head.posted_count)
		return NULL;
	if (!rwk_match_fits(p->from, p->tag, p->ignore, from, tag)) {
		p = search_posted(m, from, tag);
		if (!p)
			return NULL;
	}
	if (!p->stays)
		rwk_match_unpost(m, p);
	return p;
}

/* Kept messages */

static void chain_kept(struct rwk_matcher *m, struct rwk_arrived *a, unsigned slot)
{
	struct rwk_list *table = m->kept_table + ((size_t)slot << m->kept_bits);

	rwk_list_append(&table[class_hash(&m->class[slot], a->from, a->tag, m->kept_bits)], &a->chain[slot]);
}

static void index_class(struct rwk_matcher *m, unsigned slot)
{
	m->indexed |= 1u << slot;
	for (struct rwk_list *l = m->kept.next; l != &m->kept; l = l->next)
		chain_kept(m, kept_of(l), slot);
}

static rwk_noinline void grow_kept(struct rwk_matcher *m)
{
	unsigned bits = m->kept_bits;
	struct rwk_list *table;

	while (m->head.kept_count >> bits)
		bits++;
	table = new_buckets((size_t)RWK_MATCH_CLASSES << bits);
	if (!table)
		return;
	free(m->kept_table);
	m->kept_table = table;
	m->kept_bits = bits;
	for (unsigned i = 0; i < m->classes; i++)
		if (m->indexed >> i & 1)
			index_class(m, i);
}

void rwk_match_keep(struct rwk_matcher *m, struct rwk_arrived *a)
{
	rwk_list_append(&m->kept, &a->all);
	m->head.kept_count++;
	if (!m->indexed)
		return;
	for (unsigned i = 0; i < m->classes; i++)
		if (m->indexed >> i & 1)
			chain_kept(m, a, i);
	if (rwk_unlikely(m->head.kept_count >> m->kept_bits))
		grow_kept(m);
}

void rwk_match_take(struct rwk_matcher *m, struct rwk_arrived *a)
{
	rwk_list_remove(&a->all);
	m->head.kept_count--;
	for (unsigned i = 0; m->indexed >> i; i++) {
		if (m->indexed >> i & 1)
			rwk_list_remove(&a->chain[i]);
		if (m->head.kept_count <= LEAVE && m->indexed >> i & 1)
			drop_index(m, i);
	}
}

/** The earliest kept message for such a receive of class `slot`; NULL if there is none. */
static struct rwk_arrived *search_index(struct rwk_matcher *m, unsigned slot, const void *from, uint64_t tag)
{
	const struct class *c = &m->class[slot];
	struct rwk_list *bucket;

	if (rwk_unlikely(!(m->indexed >> slot & 1))) {
		if (m->head.kept_count >> m->kept_bits)
			grow_kept(m);
		index_class(m, slot);
	}
	bucket = m->kept_table + ((size_t)slot << m->kept_bits) + class_hash(c, from, tag, m->kept_bits);
	for (struct rwk_list *l = bucket->next; l != bucket; l = l->next) {
		struct rwk_arrived *a = rwk_container_of(l, struct rwk_arrived, chain[slot]);

		if (rwk_match_fits(from, tag, c->ignore, a->from, a->tag))
			return a;
	}
	return NULL;
}

struct rwk_arrived *rwk_match_find_any(struct rwk_matcher *m, const void *from, uint64_t tag, uint64_t ignore)
{
	struct rwk_arrived *first = kept_of(m->kept.next);

	if (rwk_match_fits(from, tag, ignore, first->from, first->tag))
		return first;
	if (m->head.kept_count > FEW) {
		unsigned slot = use_class(m, ignore, !from);

		if (slot != REST)
			return search_index(m, slot, from, tag);
	}
	for (struct rwk_list *l = first->all.next; l != &m->kept; l = l->next) {
		struct rwk_arrived *a = kept_of(l);

		if (rwk_match_fits(from, tag, ignore, a->from, a->tag))
			return a;
	}
	return NULL;
}

/* Both */

bool rwk_match_rename(struct rwk_matcher *m, const void *from, const void *to)
{
	bool any = false;

	if (m->head.hashed)
		unhash_posted(m);
	for (struct rwk_list *l = m->head.posted.next; l != &m->head.posted; l = l->next) {
		if (posted_of(l)->from != from)
			continue;
		posted_of(l)->from = to;
		any = true;
	}
	return any;
}

int rwk_match_each_posted(struct rwk_matcher *m, int (*visit)(struct rwk_posted *p, void *arg), void *arg)
{
	for (struct rwk_list *l = m->head.posted.next, *next; l != &m->head.posted; l = next) {
		int rc;

		next = l->next;
		rc = visit(posted_of(l), arg);
		if (rc)
			return rc;
	}
	return 0;
}

int rwk_match_each_kept(struct rwk_matcher *m, int (*visit)(struct rwk_arrived *a, void *arg), void *arg)
{
	for (struct rwk_list *l = m->kept.next, *next; l != &m->kept; l = next) {
		int rc;

		next = l->next;
		rc = visit(kept_of(l), arg);
		if (rc)
			return rc;
	}
	return 0;
}

size_t rwk_match_posted_count(const struct rwk_matcher *m)
{
	return m->head.posted_count;
}

size_t rwk_match_kept_count(const struct rwk_matcher *m)
{
	return m->head.kept_count;
}

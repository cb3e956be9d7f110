/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching: which posted receive takes which message. Pure: no transport, no clock, no memory of its own beyond its
 * tables.
 *
 *   posted   a receive that waits: from whom (NULL: from anyone), a tag and the bits of it to ignore
 *   arrived  a message that nobody has asked for yet: from whom, its tag
 *
 * A message takes the earliest posted receive that fits; a receive takes the earliest arrived message that fits. Both
 * hold across wildcards and exact receives alike, whatever the numbers of each.
 *
 * How it is fast: receives and messages each hang in one list in the order of arrival. While few wait the list is all
 * there is; the earliest is looked at first even when many do. Beyond that they are found by hash, by class. A class
 * is a pair (ignored bits, from anyone or from one), and programs use a handful (Open MPI ignores the same two bits
 * in every receive, and more bits with a wildcard). Within a class a receive is found by its tag less the ignored
 * bits, and its peer; each has a number in the order of posting, and the earliest among the classes' candidates wins.
 * Messages hang in one hash chain for each class that has asked for one. Classes beyond RWK_MATCH_CLASSES search in
 * order, until a class that nobody uses any more gives up its place.
 *
 * Nothing here fails once the matcher is open: a table that cannot grow for want of memory is slower, not wrong.
 */
#ifndef RWK_ENGINE_MATCH_H
#define RWK_ENGINE_MATCH_H

#include "base/compiler.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RWK_MATCH_CLASSES 4 /* hashed classes */

struct rwk_matcher;

/**
 * A receive that waits. The caller's memory, embedded in its own object; the matcher's from post until it is returned
 * or unposted. One cache line, if the caller aligns it.
 */
struct rwk_posted {
	struct rwk_list all;   /* every posted receive in the order of posting */
	uint64_t tag;          /* wanted */
	uint64_t ignore;       /* bits of tag that need not agree */
	const void *from;      /* the one peer wanted, compared as a pointer; NULL: anyone */
	uint64_t order : 48;   /* number in the order of posting, while hashed; the matcher's */
	uint64_t stays : 8;    /* not 0: a message that takes it leaves it posted; it waits until it is unposted */
	uint64_t slot : 8;     /* where it is hashed; 0: nowhere. The matcher's */
	struct rwk_list chain; /* in its hash bucket, while hashed */
};

_Static_assert(sizeof(struct rwk_posted) <= 64, "a posted receive is one cache line");

/** A message that waits. The caller's memory; the matcher's from keep until take. */
struct rwk_arrived {
	struct rwk_list all; /* every waiting message in the order of arrival */
	uint64_t tag;
	const void *from;                         /* never NULL */
	struct rwk_list chain[RWK_MATCH_CLASSES]; /* in a hash bucket of each class that is indexed */
};

/** 0 and *m set, or -ENOMEM. */
int rwk_matcher_open(struct rwk_matcher **m);

/** Frees the tables; what is still posted or kept stays its owner's. */
void rwk_matcher_close(struct rwk_matcher *m);

/** The part of a matcher that the inline calls look at: half a cache line. */
struct rwk_match_head {
	struct rwk_list posted; /* in the order of posting */
	size_t posted_count, kept_count;
	bool hashed; /* some posted receives are in buckets too */
};

/** Where the number of posted receives stands. */
static inline const size_t *rwk_match_posted_counter(const struct rwk_matcher *m)
{
	return &((const struct rwk_match_head *)m)->posted_count;
}

/** Does a receive with these wishes take such a message? */
static inline bool rwk_match_fits(
	const void *wanted_from, uint64_t wanted_tag, uint64_t ignore, const void *from, uint64_t tag)
{
	return (!wanted_from || wanted_from == from) && !((wanted_tag ^ tag) & ~ignore);
}

/**
 * The first posted receive, taken out, if that is known at once to be the answer of rwk_match_message; NULL: ask that.
 */
static inline struct rwk_posted *rwk_match_first(struct rwk_matcher *m, const void *from, uint64_t tag)
{
	struct rwk_match_head *head = (struct rwk_match_head *)m;
	struct rwk_list *first = head->posted.next;
	struct rwk_posted *p = rwk_container_of(first, struct rwk_posted, all);

	if (rwk_unlikely(first == &head->posted || head->hashed || p->stays ||
			 !rwk_match_fits(p->from, p->tag, p->ignore, from, tag)))
		return NULL;
	head->posted.next = first->next;
	first->next->prev = &head->posted;
	head->posted_count--;
	return p;
}

/**
 * A message has come: the earliest posted receive that fits, taken out unless it `stays`; NULL if none does (then
 * `keep` it). Not for a message older than one already kept that the same receive would fit: callers always look here
 * first, then keep.
 */
struct rwk_posted *rwk_match_message(struct rwk_matcher *m, const void *from, uint64_t tag);

/** Keeps a message that no posted receive took; *a has tag and from set. */
void rwk_match_keep(struct rwk_matcher *m, struct rwk_arrived *a);

static inline bool rwk_match_any_kept(const struct rwk_matcher *m)
{
	return ((const struct rwk_match_head *)m)->kept_count != 0;
}

/** The slow half of rwk_match_find: messages are kept. */
struct rwk_arrived *rwk_match_find_any(struct rwk_matcher *m, const void *from, uint64_t tag, uint64_t ignore);

/**
 * A receive wants a message: the earliest kept one that fits, left where it is; NULL if there is none.
 * `from` NULL: from anyone.
 */
static inline struct rwk_arrived *rwk_match_find(struct rwk_matcher *m, const void *from, uint64_t tag, uint64_t ignore)
{
	return rwk_match_any_kept(m) ? rwk_match_find_any(m, from, tag, ignore) : NULL;
}

/** Takes a kept message out. */
void rwk_match_take(struct rwk_matcher *m, struct rwk_arrived *a);

/** Posts a receive that found no kept message; *p has tag, ignore, from and stays set. */
static inline void rwk_match_post(struct rwk_matcher *m, struct rwk_posted *p)
{
	struct rwk_match_head *head = (struct rwk_match_head *)m;

	p->slot = 0;
	rwk_list_append(&head->posted, &p->all);
	head->posted_count++;
}

/** Takes a posted receive out: cancelled, or its peer has died. */
void rwk_match_unpost(struct rwk_matcher *m, struct rwk_posted *p);

/** Who wants a message of `from` wants one of `to`, and stands where it stood. Was there any? */
bool rwk_match_rename(struct rwk_matcher *m, const void *from, const void *to);

/**
 * Calls `visit` for each posted receive in the order of posting until it returns non-zero, and returns that (0 at the
 * end). `visit` may unpost the receive it is given, no other; it may post, and what it posts may or may not be
 * visited.
 */
int rwk_match_each_posted(struct rwk_matcher *m, int (*visit)(struct rwk_posted *p, void *arg), void *arg);

/** The same for kept messages in the order of arrival; `visit` may take the one it is given, no other, and may keep. */
int rwk_match_each_kept(struct rwk_matcher *m, int (*visit)(struct rwk_arrived *a, void *arg), void *arg);

/** How many are posted, how many kept. */
size_t rwk_match_posted_count(const struct rwk_matcher *m);
size_t rwk_match_kept_count(const struct rwk_matcher *m);

#endif

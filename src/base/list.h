/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A doubly linked list whose nodes live inside the objects listed. The head is a node too: an empty list is a head that
 * points at itself, so that adding and removing have no special case.
 */
#ifndef RWK_BASE_LIST_H
#define RWK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct rwk_list {
	struct rwk_list *next, *prev;
};

static inline void rwk_list_init(struct rwk_list *l)
{
	l->next = l->prev = l;
}

static inline bool rwk_list_empty(const struct rwk_list *l)
{
	return l->next == l;
}

/** Adds `n` as the last of `head`'s list. */
static inline void rwk_list_append(struct rwk_list *head, struct rwk_list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

/** Takes `n` out of its list and leaves it as an empty list, so that a second removal is harmless. */
static inline void rwk_list_remove(struct rwk_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	rwk_list_init(n);
}

/** Takes the first node out of the list; NULL if there is none. */
static inline struct rwk_list *rwk_list_pop(struct rwk_list *head)
{
	struct rwk_list *n = head->next;

	if (n == head)
		return NULL;
	rwk_list_remove(n);
	return n;
}

/** `to` becomes all that is in `from`, in that order: who goes through it does not meet what is added meanwhile. */
static inline void rwk_list_move_all(struct rwk_list *from, struct rwk_list *to)
{
	struct rwk_list *n;

	rwk_list_init(to);
	while ((n = rwk_list_pop(from)))
		rwk_list_append(to, n);
}

#endif

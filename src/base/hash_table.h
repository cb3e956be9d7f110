/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table whose lists go on in the objects themselves: one pointer an object and table, and about one more for its
 * list, since there are about as many lists as objects. It begins with one list, which is inside it, and grows when
 * there is memory for more: nothing fails, lists only become longer. The user says what an object's hash is, and looks
 * through a list for the object that is meant.
 */
#ifndef RWK_BASE_HASH_TABLE_H
#define RWK_BASE_HASH_TABLE_H

#include <stdint.h>

/** In an object: where the list goes on. */
struct rwk_hash_link {
	struct rwk_hash_link *next;
};

/** Must not be moved. Its last bits choose an object's list, so these must differ. */
struct rwk_hash_table {
	struct rwk_hash_link **first; /* of each list; there are mask + 1 */
	struct rwk_hash_link *only;   /* of the list that it begins with */
	uint32_t mask;
	uint32_t count; /* objects */
	uint32_t (*hash)(const struct rwk_hash_link *l);
};

/** An empty table; `hash` says an object's hash, which stays the same while the object is in the table. */
void rwk_hash_init(struct rwk_hash_table *t, uint32_t (*hash)(const struct rwk_hash_link *l));

/** Frees the lists; the objects that were in them are let alone. */
void rwk_hash_free(struct rwk_hash_table *t);

/** Adds an object behind the others of its list. */
void rwk_hash_add(struct rwk_hash_table *t, struct rwk_hash_link *l);

/** Takes out an object, which is in the table. */
void rwk_hash_remove(struct rwk_hash_table *t, struct rwk_hash_link *l);

/** The list in which all objects of that hash are, among others, the oldest first; NULL: it is empty. */
static inline struct rwk_hash_link *rwk_hash_list(const struct rwk_hash_table *t, uint32_t hash)
{
	return t->first[hash & t->mask];
}

#endif

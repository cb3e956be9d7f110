/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hash_table.h"

#include <stdlib.h>

void rwk_hash_init(struct rwk_hash_table *t, uint32_t (*hash)(const struct rwk_hash_link *l))
{
	*t = (struct rwk_hash_table){.first = &t->only, .hash = hash};
}

void rwk_hash_free(struct rwk_hash_table *t)
{
	if (t->first != &t->only)
		free(t->first);
	rwk_hash_init(t, t->hash);
}

static struct rwk_hash_link **list_of(struct rwk_hash_table *t, const struct rwk_hash_link *l)
{
	return &t->first[t->hash(l) & t->mask];
}

static void put(struct rwk_hash_table *t, struct rwk_hash_link *l)
{
	struct rwk_hash_link **at = list_of(t, l);

	while (*at)
		at = &(*at)->next;
	l->next = NULL;
	*at = l;
}

static void grow(struct rwk_hash_table *t)
{
	uint32_t lists = t->mask + 1;
	struct rwk_hash_link **old = t->first, **more = calloc(lists, 2 * sizeof(*more));

	if (!more)
		return;
	t->first = more;
	t->mask = 2 * lists - 1;
	for (uint32_t i = 0; i < lists; i++) {
		for (struct rwk_hash_link *l = old[i], *next; l; l = next) {
			next = l->next;
			put(t, l);
		}
	}
	if (old != &t->only)
		free(old);
}

void rwk_hash_add(struct rwk_hash_table *t, struct rwk_hash_link *l)
{
	if (t->count > t->mask)
		grow(t);
	put(t, l);
	t->count++;
}

void rwk_hash_remove(struct rwk_hash_table *t, struct rwk_hash_link *l)
{
	struct rwk_hash_link **at = list_of(t, l);

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	t->count--;
}

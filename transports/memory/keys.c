/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key table: an array of slots, each free or a region.
 *
 * The low bits of a key are the number of its slot, the rest is drawn: so a look-up is one cache line, and a key that
 * is not there meets a slot whose key is another one. Free slots wait in a queue, first out first in, which puts off
 * the time when a slot is used again as long as it can be.
 *
 * The regions of a protection domain are in a list, with those of others that have the same low bits: so who takes all
 * of one out looks at hardly any other, though the table has a hundred thousand.
 *
 * Invariants: a free slot's key has low bits that are not its own, so that no key ever fits it; base + length of a
 * region does not wrap; the lengths of its pieces add up to its length.
 */
#include "memory/keys.h"

#include "base/compiler.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define ENTRIES_MAX 0x10000u /* leaves 16 bits of each key to chance */
#define NO_SLOT     UINT32_MAX

struct piece {
	uint64_t address; /* in the process that owns the region */
	uint64_t length;
};

struct slot {
	uint32_t key;
	uint32_t pd;
	uint32_t reach;
	uint32_t count;
	uint64_t base, length;
	struct piece piece[RWK_KEYS_IOV]; /* the first one in the same line as all that is checked */
	uint32_t next, prev;              /* of the list, NO_SLOT: none; free: `next` of the queue */
	uint32_t head;                    /* of the list for protection domains whose low bits are this slot's number */
} rwk_aligned;

struct rwk_keys {
	uint32_t mask; /* the bits of a key that are its slot */
	uint32_t free_first, free_last;
	struct rwk_random random;
	struct slot slot[];
} rwk_aligned;

static_assert(offsetof(struct slot, piece[1]) <= RWK_CACHE_LINE, "one line for a region of one piece");

size_t rwk_keys_size(uint32_t entries)
{
	return sizeof(struct rwk_keys) + (size_t)entries * sizeof(struct slot);
}

static void put_free(struct rwk_keys *t, uint32_t n)
{
	t->slot[n].next = NO_SLOT;
	if (t->free_first == NO_SLOT)
		t->free_first = n;
	else
		t->slot[t->free_last].next = n;
	t->free_last = n;
}

static uint32_t *head_of(struct rwk_keys *t, uint32_t pd)
{
	return &t->slot[pd & t->mask].head;
}

static void list(struct rwk_keys *t, uint32_t n, uint32_t pd)
{
	struct slot *s = &t->slot[n];
	uint32_t *head = head_of(t, pd);

	s->pd = pd;
	s->prev = NO_SLOT;
	s->next = *head;
	if (s->next != NO_SLOT)
		t->slot[s->next].prev = n;
	*head = n;
}

static void unlist(struct rwk_keys *t, const struct slot *s)
{
	if (s->prev == NO_SLOT)
		*head_of(t, s->pd) = s->next;
	else
		t->slot[s->prev].next = s->next;
	if (s->next != NO_SLOT)
		t->slot[s->next].prev = s->prev;
}

int rwk_keys_init(struct rwk_keys *t, uint32_t entries)
{
	uint64_t word;
	int rc;

	if (entries < 2 || entries > ENTRIES_MAX || entries & (entries - 1))
		return -EINVAL;
	memset(t, 0, rwk_keys_size(entries));
	t->mask = entries - 1;
	t->free_first = NO_SLOT;
	for (uint32_t n = 0; n < entries; n++) {
		rc = rwk_random_next(&t->random, &word);
		if (rc)
			return rc;
		t->slot[n].key = (word & ~t->mask) | (~n & t->mask);
		t->slot[n].head = NO_SLOT;
		put_free(t, n);
	}
	return 0;
}

/* Another key than the slot had before; the one that a free slot holds keeps what was drawn for that one. */
static int draw_key(struct rwk_keys *t, uint32_t n, uint32_t *key)
{
	uint64_t word;
	int rc;

	do {
		rc = rwk_random_next(&t->random, &word);
		if (rc)
			return rc;
	} while (!((word ^ t->slot[n].key) & ~t->mask));
	*key = (word & ~t->mask) | n;
	return 0;
}

int rwk_keys_add(struct rwk_keys *t, uint32_t pd, uint64_t base, const struct iovec *iov, uint32_t count,
	unsigned reach, uint32_t *key)
{
	uint32_t n = t->free_first, drawn;
	uint64_t length = 0;
	struct slot *s;
	int rc;

	if (count > RWK_KEYS_IOV)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		if (__builtin_add_overflow(length, iov[i].iov_len, &length))
			return -EINVAL;
	if (length > UINT64_MAX - base)
		return -EINVAL;
	if (n == NO_SLOT)
		return -ENOSPC;
	rc = draw_key(t, n, &drawn);
	if (rc)
		return rc;
	s = &t->slot[n];
	t->free_first = s->next;
	for (uint32_t i = 0; i < count; i++)
		s->piece[i] = (struct piece){(uintptr_t)iov[i].iov_base, iov[i].iov_len};
	list(t, n, pd);
	s->reach = reach;
	s->count = count;
	s->base = base;
	s->length = length;
	s->key = *key = drawn;
	return 0;
}

int rwk_keys_remove(struct rwk_keys *t, uint32_t key)
{
	uint32_t n = key & t->mask;

	if (t->slot[n].key != key)
		return -ENOENT;
	unlist(t, &t->slot[n]);
	t->slot[n].key = key ^ t->mask;
	put_free(t, n);
	return 0;
}

void rwk_keys_remove_all(struct rwk_keys *t, uint32_t pd)
{
	uint32_t next;

	for (uint32_t n = *head_of(t, pd); n != NO_SLOT; n = next) {
		next = t->slot[n].next;
		if (t->slot[n].pd == pd)
			rwk_keys_remove(t, t->slot[n].key);
	}
}

void rwk_keys_move(struct rwk_keys *t, uint32_t from, uint32_t to)
{
	uint32_t next;

	for (uint32_t n = *head_of(t, from); n != NO_SLOT; n = next) {
		next = t->slot[n].next;
		if (t->slot[n].pd == from) {
			unlist(t, &t->slot[n]);
			list(t, n, to);
		}
	}
}

uint32_t rwk_keys_slot(const struct rwk_keys *t, uint32_t key)
{
	return key & t->mask;
}

int rwk_keys_pd(const struct rwk_keys *t, uint32_t key, uint32_t *pd)
{
	const struct slot *s = &t->slot[key & t->mask];

	if (s->key != key)
		return -EACCES;
	*pd = s->pd;
	return 0;
}

/* The region that the key is of, if all of that may be reached in it so; else NULL. */
static inline const struct slot *look(
	const struct rwk_keys *t, uint32_t pd, uint32_t key, uint64_t address, size_t len, unsigned reach)
{
	const struct slot *s = &t->slot[key & t->mask];
	uint64_t at = address - s->base; /* beyond the length if the address is below the base */

	if (rwk_unlikely(s->key != key || s->pd != pd || reach & ~s->reach))
		return NULL;
	if (rwk_unlikely(at > s->length || len > s->length - at))
		return NULL;
	return s;
}

int rwk_keys_check(const struct rwk_keys *t, uint32_t pd, uint32_t key, uint64_t address, size_t len, unsigned reach)
{
	return look(t, pd, key, address, len, reach) ? 0 : -EACCES;
}

/* The same range in a region of several pieces. */
static rwk_outline int scatter(const struct slot *s, uint64_t at, size_t len, struct iovec *iov, int max)
{
	int n = 0;

	for (uint32_t i = 0; len; i++) {
		const struct piece *p = &s->piece[i];
		size_t here = p->length > at ? p->length - at : 0;

		if (!here) {
			at -= p->length;
			continue;
		}
		if (n == max)
			return -EMSGSIZE;
		if (here > len)
			here = len;
		iov[n++] = (struct iovec){(void *)(uintptr_t)(p->address + at), here};
		len -= here;
		at = 0;
	}
	return n;
}

int rwk_keys_find(const struct rwk_keys *t, uint32_t pd, uint32_t key, uint64_t address, size_t len, unsigned reach,
	struct iovec *iov, int max)
{
	const struct slot *s = look(t, pd, key, address, len, reach);

	if (rwk_unlikely(!s))
		return -EACCES;
	if (!len)
		return 0;
	if (rwk_unlikely(s->count > 1 || max < 1))
		return scatter(s, address - s->base, len, iov, max);
	iov[0] = (struct iovec){(void *)(uintptr_t)(s->piece[0].address + (address - s->base)), len};
	return 1;
}

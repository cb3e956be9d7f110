/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool of objects of one size, grown by chunks and never shrunk before it is closed. Getting and putting are a list
 * pop and push; an object's address is stable. Not thread-safe: the owner's lock covers it.
 */
#ifndef RWK_BASE_POOL_H
#define RWK_BASE_POOL_H

#include "base/compiler.h"

#include <stddef.h>

struct rwk_pool {
	void *free;       /* singly linked through the first word of each free object */
	void *chunks;     /* singly linked through the first word of each chunk */
	char *fresh;      /* in the last chunk: the first of those that were never handed out; memory that is not touched */
	size_t untouched; /* how many those are */
	size_t size;      /* bytes of an object, a multiple of a cache line if larger than half of one */
	size_t per_chunk; /* objects a chunk */
	size_t limit;     /* most objects in all; 0: no limit */
	size_t total;     /* objects made so far */
	size_t used;      /* objects handed out */
};

/** An empty pool of objects of `size` bytes (at least a pointer's), `per_chunk` a chunk, `limit` in all (0: none). */
void rwk_pool_init(struct rwk_pool *p, size_t size, size_t per_chunk, size_t limit);

/** Frees every chunk; objects handed out are gone too. */
void rwk_pool_close(struct rwk_pool *p);

/** The slow half of rwk_pool_get: an object that nobody has had yet; NULL when out of memory or at the limit. */
void *rwk_pool_get_slow(struct rwk_pool *p);

/** An object, its content undefined; NULL when out of memory or at the limit. */
static inline void *rwk_pool_get(struct rwk_pool *p)
{
	void *o = p->free;

	if (rwk_unlikely(!o))
		return rwk_pool_get_slow(p);
	p->free = *(void **)o;
	p->used++;
	return o;
}

/** Gives an object back. */
static inline void rwk_pool_put(struct rwk_pool *p, void *o)
{
	*(void **)o = p->free;
	p->free = o;
	p->used--;
}

#endif

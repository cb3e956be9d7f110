/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pool.h"

#include <stdint.h>
#include <stdlib.h>

void rwk_pool_init(struct rwk_pool *p, size_t size, size_t per_chunk, size_t limit)
{
	size_t unit = size > RWK_CACHE_LINE / 2 ? RWK_CACHE_LINE : sizeof(void *);

	*p = (struct rwk_pool){
		.size = (size + unit - 1) / unit * unit,
		.per_chunk = per_chunk,
		.limit = limit,
	};
}

void rwk_pool_close(struct rwk_pool *p)
{
	void *c = p->chunks;

	while (c) {
		void *next = *(void **)c;

		free(c);
		c = next;
	}
	rwk_pool_init(p, p->size, p->per_chunk, p->limit);
}

/* 0: out of memory, or at the limit. */
static size_t make_chunk(struct rwk_pool *p)
{
	size_t n = p->per_chunk;
	char *chunk;

	if (p->limit && p->limit - p->total < n)
		n = p->limit - p->total;
	if (!n)
		return 0;
	chunk = aligned_alloc(
		RWK_CACHE_LINE, (RWK_CACHE_LINE + n * p->size + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1));
	if (!chunk)
		return 0;
	*(void **)chunk = p->chunks;
	p->chunks = chunk;
	p->fresh = chunk + RWK_CACHE_LINE;
	p->total += n;
	return n;
}

void *rwk_pool_get_slow(struct rwk_pool *p)
{
	void *o;

	if (!p->untouched)
		p->untouched = make_chunk(p);
	if (!p->untouched)
		return NULL;
	o = p->fresh;
	p->fresh += p->size;
	p->untouched--;
	p->used++;
	return o;
}

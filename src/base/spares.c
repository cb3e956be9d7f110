/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/spares.h"

#include "base/compiler.h"

#include <stdint.h>
#include <stdlib.h>

/** In front of the memory, in a line of its own. */
struct rwk_spare {
	struct rwk_spare *next;
	unsigned size; /* which one; RWK_SPARES_SIZES: none */
};

static size_t bytes_of(unsigned size)
{
	return (size_t)RWK_SPARES_LEAST << size;
}

static unsigned size_for(size_t len)
{
	unsigned size = 0;

	while (size < RWK_SPARES_SIZES && bytes_of(size) < len)
		size++;
	return size;
}

void rwk_spares_init(struct rwk_spares *s, size_t most)
{
	*s = (struct rwk_spares){.most = most};
}

void rwk_spares_close(struct rwk_spares *s)
{
	for (unsigned i = 0; i < RWK_SPARES_SIZES; i++) {
		for (struct rwk_spare *spare = s->free[i], *next; spare; spare = next) {
			next = spare->next;
			free(spare);
		}
	}
	rwk_spares_init(s, 0);
}

static struct rwk_spare *make(unsigned size, size_t len)
{
	struct rwk_spare *spare;

	if (size < RWK_SPARES_SIZES)
		len = bytes_of(size);
	if (len > SIZE_MAX - 2 * RWK_CACHE_LINE)
		return NULL;
	spare = aligned_alloc(RWK_CACHE_LINE, (len + 2 * RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1));
	if (spare)
		spare->size = size;
	return spare;
}

void *rwk_spares_get(struct rwk_spares *s, size_t len)
{
	unsigned size = size_for(len);
	struct rwk_spare *spare = size < RWK_SPARES_SIZES ? s->free[size] : NULL;

	if (spare) {
		s->free[size] = spare->next;
		s->kept -= bytes_of(size);
	} else {
		spare = make(size, len);
	}
	return spare ? (char *)spare + RWK_CACHE_LINE : NULL;
}

void rwk_spares_put(struct rwk_spares *s, void *memory)
{
	struct rwk_spare *spare;

	if (!memory)
		return;
	spare = (struct rwk_spare *)(void *)((char *)memory - RWK_CACHE_LINE);
	if (spare->size == RWK_SPARES_SIZES || bytes_of(spare->size) > s->most - s->kept) {
		free(spare);
		return;
	}
	spare->next = s->free[spare->size];
	s->free[spare->size] = spare;
	s->kept += bytes_of(spare->size);
}

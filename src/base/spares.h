/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for copies of messages, of whatever length, that is kept when it is given back: a copy is short-lived, and
 * memory that malloc has returned to the system costs a page fault each 4 KB when it comes again, which may be ten
 * times what copying takes. What was given back last, and is in the cache, is handed out first. Not thread-safe: the
 * owner's lock covers it.
 */
#ifndef RWK_BASE_SPARES_H
#define RWK_BASE_SPARES_H

#include <stddef.h>

#define RWK_SPARES_LEAST 512u /* bytes of a piece of the first size; each has twice as many as the one before */
#define RWK_SPARES_SIZES 12u  /* up to 1 MiB; longer pieces are not kept */

struct rwk_spare;

struct rwk_spares {
	struct rwk_spare *free[RWK_SPARES_SIZES];
	size_t kept; /* bytes of all of these, */
	size_t most; /* at most */
};

/** Nothing is kept yet; later no more than `most` bytes are. */
void rwk_spares_init(struct rwk_spares *s, size_t most);

/** Frees what is kept, and keeps nothing any more. What is handed out is to be given back as before. */
void rwk_spares_close(struct rwk_spares *s);

/** At least `len` bytes, 0 too, aligned to a cache line, their content undefined; NULL: out of memory. */
void *rwk_spares_get(struct rwk_spares *s, size_t len);

/** Gives it back. NULL: nothing. */
void rwk_spares_put(struct rwk_spares *s, void *memory);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filling shared memory that the peer has read last and will read next: by ordinary stores, or by such as go past the
 * caches.
 *
 * An ordinary store takes its line out of the peer's cache: a question to the other core for each of them, and its
 * answer. To store past the caches asks for nothing, but the peer reads from memory then. Which is better depends on
 * the processor, and on where the two cores lie: here the one is six times faster, there the other by half. So both are
 * measured as memory is filled, and the faster one is taken; the other is tried now and then, the more seldom the
 * longer it stays the slower one.
 *
 * Not for what this side has read last, as where slabs change hands: those lines are here, and processors that see
 * lines written by who has read them hand them over whole; a measurement of one fill would not show it.
 *
 * Only the filling is measured, not what the peer pays to read: so the new way must be faster by a third.
 */
#ifndef RWK_SHM_FILL_H
#define RWK_SHM_FILL_H

#include "base/compiler.h"
#include "base/copy.h"

#include <stdint.h>

/** From here on it is worth a choice, bytes. */
#define RWK_SHM_FILL_LEAST 2048u

enum rwk_shm_fill_way { RWK_SHM_FILL_ORDINARY, RWK_SHM_FILL_PAST, RWK_SHM_FILL_WAYS };

/** Zero at first, `string` aside. */
struct rwk_shm_fill {
	uint32_t ordinary; /* so many more are filled by ordinary stores before anything else is looked at, */
	uint32_t past;     /* or past the caches; both 0: the next one is measured */
	bool string;       /* rwk_copy_has_string */
	uint8_t way;       /* enum rwk_shm_fill_way: the one in use */
	uint32_t trial_in, trial_gap;     /* measurements until the other one is tried, and from then on */
	uint64_t cost[RWK_SHM_FILL_WAYS]; /* ns for 64 KB, of late; 0: not known */
};

/** The way to fill what is measured next. */
enum rwk_shm_fill_way rwk_shm_fill_next(struct rwk_shm_fill *f);
/** `bytes` have been filled that way, in `ns`. */
void rwk_shm_fill_measured(struct rwk_shm_fill *f, enum rwk_shm_fill_way way, size_t bytes, uint64_t ns);
/** As rwk_shm_fill, when there is something to choose. */
void rwk_shm_fill_chosen(struct rwk_shm_fill *f, void *to, const void *from, size_t len);

/** Copies into shared memory; what is published afterwards is published after it. */
static inline void rwk_shm_fill(struct rwk_shm_fill *f, void *to, const void *from, size_t len)
{
	if (rwk_unlikely(!f->ordinary && len >= RWK_SHM_FILL_LEAST)) {
		rwk_shm_fill_chosen(f, to, from, len);
		return;
	}
	f->ordinary -= f->ordinary != 0;
	rwk_copy_away(to, from, len, f->string);
}

#endif

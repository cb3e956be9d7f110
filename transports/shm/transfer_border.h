/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the border lies between what each side copies of a transfer that both do (transfer_claim.h): where both end at
 * the same time. That is not the middle. The helper begins later, by the time that an ask takes to arrive; a call that
 * writes into another process takes longer for each page than one that reads; and how far the caches of the two
 * processors are from each other depends on the machine, and on a virtual one on the moment.
 *
 * So it is found: when the asker has copied its part it sees whether the helper has, too. Of enough transfers in which
 * nearly always the same side was the later one, that side's part becomes a page shorter. Where the border would go
 * back and forth it stays for longer each time, for a page that changes sides is in the wrong caches once.
 */
#ifndef RWK_SHM_TRANSFER_BORDER_H
#define RWK_SHM_TRANSFER_BORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/transfer_claim.h"

#define RWK_SHM_BORDER_CLASSES 6 /* by length, powers of two: up to 32 KB, ... up to 1 MB */

/** Zero at first. */
struct rwk_shm_border {
	struct rwk_shm_border_class {
		int16_t lead;    /* pages */
		int16_t last;    /* -1, 1: how it moved last; 0: not yet */
		uint16_t looks;  /* since then, or since the last time that nothing was clear, */
		uint16_t early;  /* in so many of which the helper had ended */
		uint16_t wanted; /* looks before it may move; 0: the least */
	} class[RWK_SHM_BORDER_CLASSES];
};

/** By how many pages the border lies before the middle of a transfer of so many bytes; it may be behind it. */
int rwk_shm_border_lead(const struct rwk_shm_border *b, uint64_t length);

/** The asker has copied its part of one of so many bytes, that was by itself; `early`: so had the helper. */
void rwk_shm_border_seen(struct rwk_shm_border *b, uint64_t length, bool early);

#endif

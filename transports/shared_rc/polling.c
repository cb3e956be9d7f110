/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who polls. One word of the header says which member has said so last, and when: the time in ns, but for its low bits,
 * which are that member's seat. It is written now and then by one of those that poll, and read by who goes to sleep.
 * What stands there is believed for a moment only: a sibling that computes, has died or has gone mad, or whose clock is
 * another one (of a time namespace), keeps nobody's packets for longer than a nap.
 */
#include "internal.h"

#define SEAT      (uint64_t)(RWK_SRC_MEMBERS_MAX - 1)
#define SAY_GAP   (250 * 1000ull)  /* ns between two words that somebody polls, */
#define HELD_TRUE (1000 * 1000ull) /* and so long one counts */

static rwk_time age(uint64_t word, rwk_time now)
{
	return (now & ~SEAT) - (word & ~SEAT);
}

void rwk_src_polls(struct rwk_src_view *v, rwk_time now)
{
	_Atomic uint64_t *polled = &v->header->polled;

	if (age(rwk_observe64(polled), now) >= SAY_GAP)
		rwk_publish64(polled, (now & ~SEAT) | v->seat);
}

void rwk_src_polls_no_more(struct rwk_src_view *v)
{
	_Atomic uint64_t *polled = &v->header->polled;
	uint64_t word = rwk_observe64(polled);

	if (word && (word & SEAT) == v->seat)
		atomic_compare_exchange_strong(polled, &word, 0);
}

bool rwk_src_sibling_polls(const struct rwk_src_view *v, rwk_time now)
{
	uint64_t word = rwk_observe64(&v->header->polled);

	return word && (word & SEAT) != v->seat && age(word, now) < HELD_TRUE;
}

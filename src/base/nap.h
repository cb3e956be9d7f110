/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Naps: who leaves work to another that polls is not woken for it, and looks at the end of each nap whether the other
 * still polls. If not, whoever waits for the work has waited no longer than a small part of the time for which it went
 * well; and the longer that was, the more seldom the sleeper was in the way.
 */
#ifndef RWK_BASE_NAP_H
#define RWK_BASE_NAP_H

#include <stdint.h>

#define RWK_NAP_LEAST (1000 * 1000ull)     /* ns */
#define RWK_NAP_MOST  (8 * 1000 * 1000ull) /* ns */
#define RWK_NAP_PART  64

/** The next nap, in ns, when naps have followed each other for so many ns. */
static inline uint64_t rwk_nap(uint64_t so_far)
{
	uint64_t nap = so_far / RWK_NAP_PART;

	return nap < RWK_NAP_LEAST ? RWK_NAP_LEAST : nap < RWK_NAP_MOST ? nap : RWK_NAP_MOST;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random words that nobody guesses, for keys that are drawn often: one system call brings 32, since one for each is most
 * of what a registration costs. None is given twice.
 */
#ifndef RWK_BASE_RANDOM_H
#define RWK_BASE_RANDOM_H

#include "base/cancel.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

/** Zero at first; not for two threads or processes at once. */
struct rwk_random {
	uint32_t left; /* words that have not been given yet */
	uint64_t word[32];
};

/** 0 and *out; -EAGAIN: the system has no randomness yet; -EIO: it gives none. Does not block. */
static inline int rwk_random_next(struct rwk_random *r, uint64_t *out)
{
	if (!r->left) {
		int before = rwk_cancel_hold_off();
		ssize_t n = getrandom(r->word, sizeof(r->word), GRND_NONBLOCK);

		rwk_cancel_as_before(before);
		if (n < (ssize_t)sizeof(r->word[0]))
			return n < 0 && errno == EAGAIN ? -EAGAIN : -EIO;
		r->left = (uint32_t)((size_t)n / sizeof(r->word[0]));
	}
	*out = r->word[--r->left];
	return 0;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a wait, from libfabric's timeouts: milliseconds, negative for none. */
#ifndef RWK_FI_DEADLINE_H
#define RWK_FI_DEADLINE_H

#include "base/clock.h"

#include <stdbool.h>

struct rwk_fi_deadline {
	int64_t at; /* by rwk_clock_now; negative: never */
};

static inline int64_t rwk_fi_now(void)
{
	return (int64_t)rwk_clock_now();
}

static inline struct rwk_fi_deadline rwk_fi_deadline(int timeout)
{
	return (struct rwk_fi_deadline){timeout < 0 ? -1 : rwk_fi_now() + (int64_t)timeout * 1000000};
}

static inline bool rwk_fi_deadline_past(const struct rwk_fi_deadline *d)
{
	return d->at >= 0 && rwk_fi_now() >= d->at;
}

/** Milliseconds left for poll(), rounded up so that a wait does not end too early; -1 for no end. */
static inline int rwk_fi_deadline_left(const struct rwk_fi_deadline *d)
{
	int64_t left;

	if (d->at < 0)
		return -1;
	left = d->at - rwk_fi_now();
	return left <= 0 ? 0 : (int)((left + 999999) / 1000000);
}

#endif

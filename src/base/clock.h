/* SPDX-License-Identifier: BSD-3-Clause */
/* The time. */
#ifndef RWK_BASE_CLOCK_H
#define RWK_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Nanoseconds of a clock that nobody sets; never goes back. */
static inline uint64_t rwk_clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif

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

/**
 * Nanoseconds of a clock that all processes of the machine share, also those in a time namespace of their own. It may
 * be set: no good for deadlines, nor for what must not be wrong once.
 */
static inline uint64_t rwk_clock_shared(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif

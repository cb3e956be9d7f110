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

/**
 * Moments: of a half to two microseconds each, cheaper than the time by half, for what need not be known better. They
 * begin again after half an hour or later. A processor's own count, as on x86, may differ a little from another's.
 */
static inline uint32_t rwk_clock_moments(void)
{
#if defined(__x86_64__)
	return (uint32_t)(__builtin_ia32_rdtsc() >> 11);
#else
	return (uint32_t)(rwk_clock_now() >> 10);
#endif
}

/** Ticks that do not begin again. */
static inline uint64_t rwk_clock_all_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return rwk_clock_now();
#endif
}

/**
 * Ticks: of a quarter of a nanosecond to one, the cheapest and finest there are, for what takes less than a second: then
 * they may begin again. What differs between processors is as with moments.
 */
static inline uint32_t rwk_clock_ticks(void)
{
	return (uint32_t)rwk_clock_all_ticks();
}

#endif

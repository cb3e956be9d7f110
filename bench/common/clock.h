/* SPDX-License-Identifier: BSD-3-Clause */
/* The one clock of the benchmarks, and the pause in their polling loops. */
#ifndef BENCH_COMMON_CLOCK_H
#define BENCH_COMMON_CLOCK_H

#include <time.h>

/** Seconds since some moment in the past; never steps back. No system call where the vDSO has the clock. */
static inline double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/** One pause in a loop that polls memory that another core will write. */
static inline void bench_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif

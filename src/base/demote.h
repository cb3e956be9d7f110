/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines handed over: a line that was just written lies in this core's own cache, and who reads it next has to ask this
 * core for it. Demoted, it lies in the cache that both share and is there sooner (82 ns or 36, measured on Sapphire
 * Rapids). A hint, for processors that have the instruction (CLDEMOTE: Intel's servers since 2023, some small cores).
 */
#ifndef RWK_BASE_DEMOTE_H
#define RWK_BASE_DEMOTE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/** Does this processor demote lines? Ask once and keep the answer. */
static inline bool rwk_demote_possible(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 25 & 1);
#else
	return false;
#endif
}

/**
 * Demotes the lines of `len` bytes, from `at` on, which begins one; what they hold stays. Processors that do not know
 * the instruction take it for one that does nothing. (The compiler has a function for it only where all of the file may
 * be for those that do.)
 */
static inline void rwk_demote(const void *at, size_t len)
{
#if defined(__x86_64__)
	for (size_t i = 0; i < len; i += RWK_CACHE_LINE)
		__asm__ volatile("cldemote %0" : : "m"(*((const char *)at + i)));
#else
	(void)at;
	(void)len;
#endif
}

#endif

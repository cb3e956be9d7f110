/* SPDX-License-Identifier: BSD-3-Clause */
/* The few things that the compiler is asked for by name. */
#ifndef RWK_BASE_COMPILER_H
#define RWK_BASE_COMPILER_H

#include <stddef.h>

#define RWK_CACHE_LINE 64

#define rwk_likely(x)         __builtin_expect(!!(x), 1)
#define rwk_unlikely(x)       __builtin_expect(!!(x), 0)
#define rwk_noinline          __attribute__((noinline, cold)) /* made small, not fast: for what is rare */
#define rwk_outline           __attribute__((noinline))       /* keeps its registers out of a short caller */
#define rwk_aligned           __attribute__((aligned(RWK_CACHE_LINE)))
#define rwk_printf(fmt, args) __attribute__((format(printf, fmt, args)))

/** The object of which `ptr` is the member `member`. */
#define rwk_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/** One pause in a loop that polls memory that another core will write. */
static inline void rwk_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif

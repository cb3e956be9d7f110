/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory order by name. Two processes that share memory agree on what each has seen through these and nothing else; a
 * plain load or store of shared memory outside them is for payload that one of these has already made visible.
 */
#ifndef RWK_BASE_BARRIER_H
#define RWK_BASE_BARRIER_H

#include "base/compiler.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

/**
 * Publishing: everything this core wrote before it is visible to whoever observes the word. One half of a message:
 * payload first, then its word. Free on x86-64 (stores stay in order), a store-release elsewhere.
 */
static inline void rwk_publish64(_Atomic uint64_t *at, uint64_t v)
{
	atomic_store_explicit(at, v, memory_order_release);
}

static inline void rwk_publish32(_Atomic uint32_t *at, uint32_t v)
{
	atomic_store_explicit(at, v, memory_order_release);
}

/**
 * Observing: the other half. What is read after it is at least as new as what the publisher wrote before. Free on
 * x86-64, a load-acquire elsewhere.
 */
static inline uint64_t rwk_observe64(const _Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_acquire);
}

static inline uint32_t rwk_observe32(const _Atomic uint32_t *at)
{
	return atomic_load_explicit(at, memory_order_acquire);
}

/**
 * Glancing: one untorn load without any order, and never read twice by the compiler. For hints that are checked
 * again, and for words of a peer that is not trusted: glance once into a local, check the local, use the local.
 */
#define rwk_glance(at)                                                                                                 \
	_Generic((at), uint32_t *: rwk_glance32, const uint32_t *: rwk_glance32, uint64_t *: rwk_glance64,             \
		const uint64_t *: rwk_glance64, _Atomic uint32_t *: rwk_glance_atomic32,                               \
		const _Atomic uint32_t *: rwk_glance_atomic32, _Atomic uint64_t *: rwk_glance_atomic64,                \
		const _Atomic uint64_t *: rwk_glance_atomic64)(at)

static inline uint32_t rwk_glance32(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline uint64_t rwk_glance64(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline uint32_t rwk_glance_atomic32(const _Atomic uint32_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static inline uint64_t rwk_glance_atomic64(const _Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

/**
 * Both ways: no store before it is still on its way when a load after it is done. The one order that x86-64 does not
 * give by itself; needed where each side writes one word and then reads the other's ("I sleep" against "there is a
 * message"). Some 20 ns.
 */
static inline void rwk_barrier_full(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/**
 * The same behind an atomic read-modify-write of memory_order_seq_cst. That is a full barrier itself on x86-64, where
 * this is free; elsewhere it may be a pair of instructions whose store a later load that is no such operation passes
 * (AArch64 without LSE).
 */
static inline void rwk_barrier_behind_atomic(void)
{
#ifdef __x86_64__
	atomic_signal_fence(memory_order_seq_cst);
#else
	rwk_barrier_full();
#endif
}

/**
 * The same as rwk_barrier_full on behalf of everybody: a full barrier on every core that now runs a process which has
 * joined. It lets the side that acts often (the sender) do without a barrier because the side that acts rarely (who
 * goes to sleep) pays for both. A few microseconds. False: the system denies it, then both sides must use
 * rwk_barrier_full.
 */
static inline bool rwk_barrier_everywhere(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/** Joins those on whose behalf others may call rwk_barrier_everywhere. Lasts as long as the process. False: denied. */
static inline bool rwk_barrier_join(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/** Asks for the line to read it. Only a hint. */
static inline void rwk_prefetch(const void *line)
{
	__builtin_prefetch(line, 0, 3);
	/* A function that does nothing else has no effect to gcc, which drops the calls of it. */
	__asm__ volatile("");
}

/**
 * Asks for the line to write into it: the other core's copy is taken away in the meantime. Only a hint. On x86-64 as an
 * instruction, since compilers for the processors of every kind make a prefetch to read of the builtin, and writing
 * then waits for the line a second time; processors that do not know it take it for none.
 */
static inline void rwk_prefetch_write(const void *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1, 3);
#endif
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain's lock. The program's threads take it with rwk_fi_lock and go before the thread that makes progress by
 * itself (progress.c), which takes it only when nobody else wants it, and is told of their turns: what a program does
 * may leave something to be moved on, and takes back what had been armed before a sleep.
 */
#ifndef RWK_FI_LOCK_H
#define RWK_FI_LOCK_H

#include "base/compiler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rwk_fi_wait;

struct rwk_fi_mutex {
	pthread_mutex_t mutex;
	atomic_uint waiting; /* threads of the program that wait for it */
	/* Under the lock. */
	uint64_t turns;             /* how often the program has had it */
	struct rwk_fi_wait *asleep; /* what the progress thread sleeps on; NULL: it is awake, or there is none */
};

void rwk_fi_mutex_init(struct rwk_fi_mutex *lock);
void rwk_fi_mutex_destroy(struct rwk_fi_mutex *lock);

/** Waits for it. */
void rwk_fi_lock_wait(struct rwk_fi_mutex *lock);

/** Wakes the progress thread. Under the lock. */
void rwk_fi_lock_rouse(struct rwk_fi_mutex *lock);

/** The domain's lock, or NULL where none is needed. */
static inline void rwk_fi_lock(struct rwk_fi_mutex *lock)
{
	if (rwk_likely(!lock))
		return;
	if (rwk_unlikely(pthread_mutex_trylock(&lock->mutex)))
		rwk_fi_lock_wait(lock);
	lock->turns++;
	if (rwk_unlikely(lock->asleep != NULL))
		rwk_fi_lock_rouse(lock);
}

static inline void rwk_fi_unlock(struct rwk_fi_mutex *lock)
{
	if (rwk_unlikely(lock != NULL))
		pthread_mutex_unlock(&lock->mutex);
}

/** For the progress thread: takes it unless somebody has it or waits for it. */
static inline bool rwk_fi_lock_try(struct rwk_fi_mutex *lock)
{
	return !atomic_load_explicit(&lock->waiting, memory_order_relaxed) && !pthread_mutex_trylock(&lock->mutex);
}

#endif

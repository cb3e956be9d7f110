/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain's lock. The program's threads take it with rwk_fi_lock and go before the thread that makes progress by
 * itself (progress.c), which takes it only when nobody else wants it, and is told of their turns: what a program does
 * may leave something to be moved on, and takes back what had been armed before a sleep.
 *
 * Each call of a program takes it, mostly from nobody, so that costs one atomic exchange, and giving it back a store.
 * That store and the look at `sleeping` after it are not ordered against a waiter's; who sleeps is mostly saved by the
 * kernel, which looks at `held` once more, and always by the end of his sleep (lock.c).
 */
#ifndef RWK_FI_LOCK_H
#define RWK_FI_LOCK_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rwk_fi_wait;

struct rwk_fi_mutex {
	atomic_uint held;     /* 0 or 1; what waiters sleep on */
	atomic_uint sleeping; /* not 0: somebody may sleep on it */
	atomic_uint waiting;  /* threads of the program that wait for it */
	/* Under the lock. */
	uint64_t turns;             /* how often the program has had it */
	struct rwk_fi_wait *asleep; /* what the progress thread sleeps on; NULL: it is awake, or there is none */
};

void rwk_fi_mutex_init(struct rwk_fi_mutex *lock);

/** Waits for it. */
void rwk_fi_lock_wait(struct rwk_fi_mutex *lock);

/** For the progress thread: waits for it for some milliseconds, and says whether it has got it. */
bool rwk_fi_lock_wait_for(struct rwk_fi_mutex *lock, unsigned ms);

/** Wakes one who sleeps on it. */
void rwk_fi_lock_wake(struct rwk_fi_mutex *lock);

/** Wakes the progress thread. Under the lock. In progress.c. */
void rwk_fi_lock_rouse(struct rwk_fi_mutex *lock);

/** The domain's lock, or NULL where none is needed. */
static inline void rwk_fi_lock(struct rwk_fi_mutex *lock)
{
	if (rwk_likely(!lock))
		return;
	if (rwk_unlikely(atomic_exchange_explicit(&lock->held, 1, memory_order_acquire)))
		rwk_fi_lock_wait(lock);
	lock->turns++;
	if (rwk_unlikely(lock->asleep != NULL))
		rwk_fi_lock_rouse(lock);
}

static inline void rwk_fi_unlock(struct rwk_fi_mutex *lock)
{
	if (rwk_likely(!lock))
		return;
	atomic_store_explicit(&lock->held, 0, memory_order_release);
	if (rwk_unlikely(atomic_load_explicit(&lock->sleeping, memory_order_relaxed)))
		rwk_fi_lock_wake(lock);
}

/** For the progress thread: takes it unless somebody has it or waits for it. */
static inline bool rwk_fi_lock_try(struct rwk_fi_mutex *lock)
{
	return !atomic_load_explicit(&lock->waiting, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}

#endif

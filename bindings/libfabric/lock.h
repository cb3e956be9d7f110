/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks. Objects of a domain that are bound to one another share a lock, others do not: group.h says which, and what
 * more than one object has in common. A call that moves data takes the lock of its object, and no second one; what
 * changes something that several groups look at takes all of them (rwk_fi_stop).
 *
 * An object says where its lock is (its guard), since a bind may give it another one. That happens under both, so
 * whoever has taken a lock looks whether it is still that of the object: then it stays so until he gives it back.
 * Memory that was a lock stays one until the domain is closed, so one that comes late takes the wrong lock for a moment
 * and finds out. The guard of a domain that needs no lock has none, and a guard that has one always has one.
 *
 * The program's threads take a lock with rwk_fi_lock or rwk_fi_enter and go before the thread that makes progress by
 * itself (progress.c), which takes it only when nobody else wants it, and is told of their turns: what a program does
 * may leave something to be moved on, and takes back what had been armed before a sleep. Where there is no such thread
 * those of the program's that sleep are told (sleepers.c).
 *
 * Each call of a program takes it, mostly from nobody, so that costs one atomic exchange, and giving it back a store.
 * That store and the look at `sleeping` after it are not ordered against a waiter's; who sleeps is mostly saved by the
 * kernel, which looks at `held` once more, and always by the end of his sleep (lock.c).
 */
#ifndef RWK_FI_LOCK_H
#define RWK_FI_LOCK_H

#include "base/compiler.h"
#include "base/list.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rwk_fi_mutex {
	atomic_uint held;     /* 0 or 1; what waiters sleep on */
	atomic_uint sleeping; /* not 0: somebody may sleep on it */
	atomic_uint waiting;  /* threads of the program that wait for it */
	/* Under the lock. */
	uint64_t turns;          /* how often the program has had it */
	struct rwk_list asleep;  /* rwk_fi_wait.of_lock: what the progress thread, or else the program's, sleep on */
	struct rwk_list stirred; /* those of the program's that look again soon */
};

void rwk_fi_mutex_init(struct rwk_fi_mutex *lock);

/** Waits for it. */
void rwk_fi_lock_wait(struct rwk_fi_mutex *lock);

/** For the progress thread: waits for it for some milliseconds, and says whether it has got it. */
bool rwk_fi_lock_wait_for(struct rwk_fi_mutex *lock, unsigned ms);

/** Wakes one who sleeps on it. */
void rwk_fi_lock_wake(struct rwk_fi_mutex *lock);

/** Those who are asleep look again, soon. Under the lock. In sleepers.c. */
void rwk_fi_lock_stir(struct rwk_fi_mutex *lock);

/** NULL where none is needed. */
static inline void rwk_fi_lock(struct rwk_fi_mutex *lock)
{
	if (rwk_likely(!lock))
		return;
	if (rwk_unlikely(atomic_exchange_explicit(&lock->held, 1, memory_order_acquire)))
		rwk_fi_lock_wait(lock);
	lock->turns++;
	if (rwk_unlikely(!rwk_list_empty(&lock->asleep)))
		rwk_fi_lock_stir(lock);
}

/**
 * Stirs nobody: for who arms again all that he disarms, or stirs them before he gives it back. NULL: none is needed.
 */
static inline void rwk_fi_lock_quietly(struct rwk_fi_mutex *lock)
{
	if (lock && atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))
		rwk_fi_lock_wait(lock);
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

/** For the progress thread, when it has had to leave it for long: takes it unless somebody has it. */
static inline bool rwk_fi_lock_insist(struct rwk_fi_mutex *lock)
{
	return !atomic_load_explicit(&lock->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}

/** Where an object's lock is; it changes under the lock that it was and the one that it becomes. */
struct rwk_fi_guard {
	struct rwk_fi_mutex *_Atomic mutex;
};

/** NULL: none is needed. */
static inline struct rwk_fi_mutex *rwk_fi_mutex_of(const struct rwk_fi_guard *g)
{
	return atomic_load_explicit(&g->mutex, memory_order_relaxed);
}

/** It is not `taken` any more, which is given back. */
void rwk_fi_enter_again(const struct rwk_fi_guard *g, struct rwk_fi_mutex *taken);

/** Takes an object's lock. */
static inline void rwk_fi_enter(const struct rwk_fi_guard *g)
{
	struct rwk_fi_mutex *m = rwk_fi_mutex_of(g);

	if (rwk_likely(!m))
		return;
	rwk_fi_lock(m);
	if (rwk_unlikely(rwk_fi_mutex_of(g) != m))
		rwk_fi_enter_again(g, m);
}

/** The same as rwk_fi_lock_quietly. */
void rwk_fi_enter_quietly(const struct rwk_fi_guard *g);

static inline void rwk_fi_leave(const struct rwk_fi_guard *g)
{
	rwk_fi_unlock(rwk_fi_mutex_of(g));
}

#endif

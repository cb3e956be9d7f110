/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* syscall */

#include "bindings/libfabric/lock.h"

#include "bindings/libfabric/deadline.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS 50      /* looks at it before a sleep: it is mostly held for less than that takes */
#define SLEEP 1000000 /* ns at most, until it is looked at again */

void rwk_fi_mutex_init(struct rwk_fi_mutex *lock)
{
	atomic_init(&lock->held, 0);
	atomic_init(&lock->sleeping, 0);
	atomic_init(&lock->waiting, 0);
	lock->turns = 0;
	rwk_list_init(&lock->asleep);
	rwk_list_init(&lock->stirred);
}

static bool take(struct rwk_fi_mutex *lock)
{
	return !atomic_load_explicit(&lock->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}

/*
 * Whoever has been asleep takes the lock with `sleeping` set, since others may sleep on: so each who lets go wakes the
 * next. False: it is past `end` (NULL: never).
 */
static bool sleep_for(struct rwk_fi_mutex *lock, const struct rwk_fi_deadline *end)
{
	const struct timespec limit = {.tv_nsec = SLEEP};

	for (;;) {
		atomic_store(&lock->sleeping, 1);
		if (take(lock))
			return true;
		syscall(SYS_futex, &lock->held, FUTEX_WAIT_PRIVATE, 1, &limit, NULL, 0);
		if (take(lock)) {
			atomic_store_explicit(&lock->sleeping, 1, memory_order_relaxed);
			return true;
		}
		if (end && rwk_fi_deadline_past(end))
			return false;
	}
}

static bool spin(struct rwk_fi_mutex *lock)
{
	for (unsigned i = 0; i < SPINS; i++) {
		if (take(lock))
			return true;
		rwk_cpu_relax();
	}
	return false;
}

rwk_noinline void rwk_fi_lock_wait(struct rwk_fi_mutex *lock)
{
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	if (!spin(lock))
		sleep_for(lock, NULL);
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
}

bool rwk_fi_lock_wait_for(struct rwk_fi_mutex *lock, unsigned ms)
{
	struct rwk_fi_deadline end = rwk_fi_deadline((int)ms);

	return sleep_for(lock, &end);
}

rwk_noinline void rwk_fi_lock_wake(struct rwk_fi_mutex *lock)
{
	if (atomic_exchange_explicit(&lock->sleeping, 0, memory_order_relaxed))
		syscall(SYS_futex, &lock->held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

rwk_noinline void rwk_fi_enter_again(const struct rwk_fi_guard *g, struct rwk_fi_mutex *taken)
{
	struct rwk_fi_mutex *m;

	for (; (m = rwk_fi_mutex_of(g)) != taken; taken = m) {
		rwk_fi_unlock(taken);
		rwk_fi_lock(m);
	}
}

rwk_noinline void rwk_fi_enter_quietly(const struct rwk_fi_guard *g)
{
	struct rwk_fi_mutex *m = rwk_fi_mutex_of(g);

	rwk_fi_lock_quietly(m);
	if (rwk_unlikely(rwk_fi_mutex_of(g) != m))
		rwk_fi_enter_again(g, m);
}

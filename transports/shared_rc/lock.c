/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks between processes that may die or be stopped while they hold one: the C library's robust mutexes, which the
 * kernel releases when the thread that holds one ends, whatever PID namespace it is in. Nothing has to be mended then
 * (internal.h says why), so that who takes one over from the dead only has to say that it is in order. They are never
 * waited for: a holder is done within a microsecond, or it does not run, and then there is no telling for how long.
 *
 * What a robust mutex does not give: a thread must not end within a step without its process; and of two threads with
 * the same number in two PID namespaces, one that dies within the few instructions of a try for a lock that the other
 * holds releases it.
 */
#include "internal.h"

/* Some tens of microseconds in all. */
#define TRIES  64
#define PAUSES 16

int rwk_src_lock_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t a;
	int rc = pthread_mutexattr_init(&a);

	if (rc)
		return -rc;
	rc = pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	if (!rc)
		rc = pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	if (!rc)
		rc = pthread_mutex_init(m, &a);
	pthread_mutexattr_destroy(&a);
	return -rc;
}

bool rwk_src_try_lock(struct rwk_src_view *v, pthread_mutex_t *m)
{
	int rc = pthread_mutex_trylock(m);

	if (rc == EOWNERDEAD) {
		pthread_mutex_consistent(m);
		v->counters.recovered++;
	}
	return !rc || rc == EOWNERDEAD;
}

bool rwk_src_lock(struct rwk_src_view *v, pthread_mutex_t *m)
{
	for (int i = 0; i < TRIES; i++) {
		if (rwk_src_try_lock(v, m))
			return true;
		for (int j = 0; j < PAUSES; j++)
			rwk_cpu_relax();
	}
	return false;
}

void rwk_src_unlock(pthread_mutex_t *m)
{
	pthread_mutex_unlock(m);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/forked.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rwk_forked *watched; /* under the lock; NULL: fork is not watched yet */

void rwk_fork_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rwk_fork_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void child(void)
{
	for (const struct rwk_forked *f = watched; f; f = f->next)
		f->in_child();
	rwk_fork_unlock();
}

int rwk_fork_watch(struct rwk_forked *forked)
{
	int rc = 0;

	rwk_fork_lock();
	if (!watched)
		rc = -pthread_atfork(rwk_fork_lock, rwk_fork_unlock, child);
	if (!rc && !forked->watched) {
		forked->watched = true;
		forked->next = watched;
		watched = forked;
	}
	rwk_fork_unlock();
	return rc;
}

bool rwk_forked_free(pthread_mutex_t *held)
{
	static const pthread_mutex_t as_new = PTHREAD_MUTEX_INITIALIZER;
	bool was_held = pthread_mutex_trylock(held);

	*held = as_new;
	return was_held;
}

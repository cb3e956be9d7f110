/* SPDX-License-Identifier: BSD-3-Clause */
#include "shared_rc/forked.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*clean_up)(void); /* under the lock; NULL: not watched yet */

void rwk_src_fork_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rwk_src_fork_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void child(void)
{
	clean_up();
	rwk_src_fork_unlock();
}

int rwk_src_fork_watch(void (*in_child)(void))
{
	int rc = 0;

	rwk_src_fork_lock();
	if (!clean_up)
		rc = -pthread_atfork(rwk_src_fork_lock, rwk_src_fork_unlock, child);
	if (!rc)
		clean_up = in_child;
	rwk_src_fork_unlock();
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* pthread_setname_np */

#include "bindings/libfabric/progress.h"

#include "base/list.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLLS_BEFORE_SLEEP 100 /* a sleep and its wake-up cost several microseconds on both sides */
#define NAP                1   /* ms, while the program has or wants the lock */
#define REFUSALS           10  /* naps in a row without having had the lock, after which it is waited for */
#define PATIENCE           10  /* ms, then */

struct rwk_fi_progress {
	struct rwk_fi_mutex *lock;
	struct rwk_fi_wait *engines;
	atomic_bool stop;
	pthread_t thread;
	pid_t process;
	struct rwk_list link; /* running */
};

/* All that run in the process `owner`, of whatever domain; under the mutex. In a forked child there are none. */
static struct rwk_list running = {&running, &running};
static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(pid_t) owner;

rwk_noinline void rwk_fi_lock_rouse(struct rwk_fi_mutex *lock)
{
	rwk_fi_wait_ring(lock->asleep);
	lock->asleep = NULL;
}

/* Drives the engines once and arms them after enough empty polls: true, if it is time to sleep. Under the lock. */
static bool turn(struct rwk_fi_progress *p, unsigned *empty)
{
	p->lock->asleep = NULL;
	*empty = rwk_fi_wait_progress(p->engines) ? 0 : *empty + 1;
	if (*empty < POLLS_BEFORE_SLEEP || rwk_fi_wait_arm(p->engines))
		return false;
	p->lock->asleep = p->engines;
	return true;
}

/* Takes the lock if the program leaves it alone, or has not for long: threads that try the same call again and again
 * wait for what only progress gives them. */
static bool take_lock(struct rwk_fi_mutex *lock, unsigned *refusals)
{
	if (!rwk_fi_lock_try(lock) && (++*refusals < REFUSALS || !rwk_fi_lock_wait_for(lock, PATIENCE)))
		return false;
	*refusals = 0;
	return true;
}

static void *run(void *arg)
{
	struct rwk_fi_progress *p = arg;
	unsigned empty = 0, refusals = 0;
	uint64_t turns = 0;

	while (!atomic_load(&p->stop)) {
		struct pollfd wake = {.fd = p->engines->epoll_fd, .events = POLLIN};
		bool sleep = false, nap = true;

		if (take_lock(p->lock, &refusals)) {
			nap = p->lock->turns != turns;
			turns = p->lock->turns;
			empty = nap ? 0 : empty;
			sleep = turn(p, &empty);
			rwk_fi_unlock(p->lock);
		}
		/* Who stops us rings after setting `stop`: seen here, or by the descriptor. */
		if (sleep && !atomic_load(&p->stop))
			poll(&wake, 1, -1);
		else if (nap)
			poll(NULL, 0, NAP);
	}
	return NULL;
}

/* With all signals blocked: they are for the program's own threads. */
static int start_thread(struct rwk_fi_progress *p)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&p->thread, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_setname_np(p->thread, "rwk-progress");
	return err;
}

int rwk_fi_progress_start(struct rwk_fi_mutex *lock, struct rwk_fi_wait *engines, struct rwk_fi_progress **out)
{
	struct rwk_fi_progress *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->lock = lock;
	p->engines = engines;
	p->process = getpid();
	pthread_mutex_lock(&running_lock);
	if (atomic_load(&owner) != p->process)
		rwk_list_init(&running); /* what a parent has left there does not run here */
	atomic_store(&owner, p->process);
	err = start_thread(p);
	if (!err)
		rwk_list_append(&running, &p->link);
	pthread_mutex_unlock(&running_lock);
	if (err) {
		rwk_warn("automatic progress: no thread can be started: %s", strerror(-err));
		free(p);
		return err;
	}
	*out = p;
	return 0;
}

static void end_thread(struct rwk_fi_progress *p)
{
	const uint64_t one = 1;

	atomic_store(&p->stop, true);
	if (write(p->engines->event_fd, &one, sizeof(one)) < 0)
		rwk_debug("automatic progress: the descriptor is full, so the thread is awake");
	pthread_join(p->thread, NULL);
	rwk_list_remove(&p->link);
}

void rwk_fi_progress_stop(struct rwk_fi_progress *p)
{
	if (!p)
		return;
	if (p->process == getpid()) {
		pthread_mutex_lock(&running_lock);
		end_thread(p);
		pthread_mutex_unlock(&running_lock);
	}
	free(p);
}

void rwk_fi_progress_stop_all(void)
{
	if (atomic_load(&owner) != getpid())
		return;
	pthread_mutex_lock(&running_lock);
	while (!rwk_list_empty(&running))
		end_thread(rwk_container_of(running.next, struct rwk_fi_progress, link));
	pthread_mutex_unlock(&running_lock);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* pthread_setname_np, syscall */

#include "bindings/libfabric/progress.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/forked.h"
#include "base/list.h"
#include "base/log.h"
#include "base/nap.h"
#include "base/this_process.h"
#include "bindings/libfabric/group.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLLS_BEFORE_SLEEP 100                /* a sleep and its wake-up cost several microseconds on both sides */
#define PATIENCE           (10 * 1000 * 1000) /* ns that a group is left to the program; then its lock is insisted on */

struct rwk_fi_progress {
	struct rwk_fi_group *first;
	int event_fd; /* to be rung */
	atomic_bool stop;
	/* The thread's own: what it sleeps on, event_fd first. */
	struct pollfd *fds;
	unsigned count, room;
	struct rwk_fi_group *starving; /* has been left to the program longest; NULL: none, for long */
	uint64_t busy_since;           /* ns: since then there has been nothing but naps; 0: the last turn was none */
	pthread_t thread;
	uint64_t process;
	struct rwk_list link; /* running */
};

/* All that run in the process `owner`, of whatever domain; under the mutex. In a forked child there are none. */
static struct rwk_list running = {&running, &running};
static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t owner;

/* Whether a group that is left to the program has been for too long: threads that try the same call again and again
 * wait for what only progress gives them. */
static bool is_starving(struct rwk_fi_group *g)
{
	uint64_t now = rwk_clock_now();

	if (!g->left_since)
		g->left_since = now;
	return now - g->left_since >= PATIENCE;
}

/* Takes a group's lock if the program leaves it alone, or has not for long. Never waits: others have work. */
static bool take_lock(struct rwk_fi_group *g)
{
	if (!rwk_fi_lock_try(&g->mutex) && !(is_starving(g) && rwk_fi_lock_insist(&g->mutex)))
		return false;
	g->left_since = 0;
	return true;
}

/* When a group wants its next visit. */
enum next { NOW, SOON, WHEN_RUNG };

/* With its lock, which it gives back. One that has had no endpoints has nothing to sleep on. */
static enum next drive(struct rwk_fi_group *g)
{
	bool busy = g->mutex.turns != g->turns;

	g->turns = g->mutex.turns;
	rwk_list_remove(&g->engines.of_lock);
	g->empty = rwk_fi_wait_progress(&g->engines) || busy ? 0 : g->empty + 1;
	if (g->engines.object != FI_WAIT_FD)
		g->empty = POLLS_BEFORE_SLEEP;
	rwk_fi_unlock(&g->mutex);
	return busy ? SOON : g->empty < POLLS_BEFORE_SLEEP ? NOW : WHEN_RUNG;
}

/* Sleeps on that, too; false: no memory. */
static bool watch(struct rwk_fi_progress *p, int fd)
{
	unsigned room = p->room ? 2 * p->room : 8;
	struct pollfd *fds;

	if (p->count == p->room) {
		fds = realloc(p->fds, room * sizeof(*fds));
		if (!fds)
			return false;
		p->fds = fds;
		p->room = room;
	}
	p->fds[p->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
	return true;
}

/* Prepares to sleep on a group that has had nothing for long. */
static enum next arm(struct rwk_fi_progress *p, struct rwk_fi_group *g)
{
	enum next next = SOON;

	if (!rwk_fi_lock_try(&g->mutex))
		return next;
	if (g->engines.object != FI_WAIT_FD) {
		next = WHEN_RUNG;
	} else if (g->mutex.turns == g->turns) {
		next = rwk_fi_wait_arm(&g->engines) ? NOW : watch(p, g->engines.epoll_fd) ? WHEN_RUNG : SOON;
		rwk_list_remove(&g->engines.of_lock);
		if (next == WHEN_RUNG)
			rwk_list_append(&g->mutex.asleep, &g->engines.of_lock);
	}
	rwk_fi_unlock(&g->mutex);
	return next;
}

/* In ms. */
static int nap_length(struct rwk_fi_progress *p)
{
	uint64_t now = rwk_clock_now();

	if (!p->busy_since)
		p->busy_since = now;
	return (int)(rwk_nap(now - p->busy_since) / (1000 * 1000));
}

/* No group has anything, but the program has or wants the lock of one: if that one is starving, the nap is a wait for
 * its lock. */
static void nap(struct rwk_fi_progress *p)
{
	struct rwk_fi_group *g = p->starving;
	int length = nap_length(p);

	p->fds->revents = 0;
	if (!g) {
		poll(p->fds, p->count, length);
	} else if (rwk_fi_lock_wait_for(&g->mutex, length)) {
		g->left_since = 0;
		drive(g);
	}
}

static enum next sooner(enum next a, enum next b)
{
	return a < b ? a : b;
}

/* To arm a group takes system calls: that is done when no group has anything. */
static enum next visit_all(struct rwk_fi_progress *p)
{
	enum next next = WHEN_RUNG;
	struct rwk_fi_group *g;

	p->count = 1;
	p->starving = NULL;
	for (g = p->first; g; g = rwk_fi_group_after(g)) {
		next = sooner(next, take_lock(g) ? drive(g) : SOON);
		if (g->left_since && is_starving(g) && (!p->starving || g->left_since < p->starving->left_since))
			p->starving = g;
	}
	for (g = p->first; g && next != NOW; g = rwk_fi_group_after(g)) {
		if (g->empty >= POLLS_BEFORE_SLEEP)
			next = sooner(next, arm(p, g));
	}
	return next;
}

static void *run(void *arg)
{
	struct rwk_fi_progress *p = arg;
	uint64_t rung;

	while (!atomic_load(&p->stop)) {
		enum next next = visit_all(p);

		if (next == SOON)
			nap(p);
		else
			p->busy_since = 0;
		if (next == WHEN_RUNG)
			poll(p->fds, p->count, -1);
		if (next != NOW && p->fds->revents && read(p->event_fd, &rung, sizeof(rung)) < 0)
			rwk_debug("automatic progress: the descriptor was empty");
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

static void give_up(struct rwk_fi_progress *p)
{
	if (p->event_fd >= 0)
		close(p->event_fd);
	free(p->fds);
	free(p);
}

/* What is in the list does not run there: start sees to it. */
static void in_child(void)
{
	rwk_forked_free(&running_lock);
}

static int start(struct rwk_fi_progress *p)
{
	static struct rwk_forked forked = {.in_child = in_child};
	int err;

	if (p->event_fd < 0)
		return -errno;
	if (!watch(p, p->event_fd))
		return -ENOMEM;
	err = rwk_fork_watch(&forked);
	if (err)
		return err;
	pthread_mutex_lock(&running_lock);
	if (atomic_load(&owner) != p->process)
		rwk_list_init(&running); /* what a parent has left there does not run here */
	atomic_store(&owner, p->process);
	err = start_thread(p);
	if (!err)
		rwk_list_append(&running, &p->link);
	pthread_mutex_unlock(&running_lock);
	return err;
}

int rwk_fi_progress_start(struct rwk_fi_group *first, struct rwk_fi_progress **out)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_progress *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->first = first;
	p->process = rwk_this_process();
	p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = start(p);
	if (err) {
		rwk_warn("automatic progress: no thread can be started: %s", strerror(-err));
		give_up(p);
		return err;
	}
	*out = p;
	return 0;
}

void rwk_fi_progress_ring(struct rwk_fi_progress *p)
{
	const uint64_t one = 1;

	if (syscall(SYS_write, p->event_fd, &one, sizeof(one)) < 0) /* base/cancel.h */
		rwk_debug("automatic progress: the descriptor is full, so the thread is awake");
}

static void end_thread(struct rwk_fi_progress *p)
{
	atomic_store(&p->stop, true);
	rwk_fi_progress_ring(p);
	pthread_join(p->thread, NULL);
	rwk_list_remove(&p->link);
}

void rwk_fi_progress_stop(struct rwk_fi_progress *p)
{
	int before;

	if (!p)
		return;
	before = rwk_cancel_hold_off();
	if (p->process == rwk_this_process()) {
		pthread_mutex_lock(&running_lock);
		end_thread(p);
		pthread_mutex_unlock(&running_lock);
	}
	give_up(p);
	rwk_cancel_as_before(before);
}

void rwk_fi_progress_stop_all(void)
{
	if (atomic_load(&owner) != rwk_this_process())
		return;
	pthread_mutex_lock(&running_lock);
	while (!rwk_list_empty(&running))
		end_thread(rwk_container_of(running.next, struct rwk_fi_progress, link));
	pthread_mutex_unlock(&running_lock);
}

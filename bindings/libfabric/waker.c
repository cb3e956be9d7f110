/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* syscall */

#include "bindings/libfabric/waker.h"

#include "base/log.h"
#include "base/this_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

void rwk_fi_waker_watch(struct rwk_fi_waker *w)
{
	const uint64_t one = 1;

	if (syscall(SYS_write, w->kick, &one, sizeof(one)) < 0) /* base/cancel.h */
		rwk_debug("wait set: its thread has been rung already");
}

/* Sleeps on the descriptor from each ring until it has something, and then wakes those who sleep on the condition. */
static void *wake(void *arg)
{
	struct rwk_fi_waker *w = arg;
	bool wanted = false;
	uint64_t kicks;

	while (!atomic_load(&w->stop)) {
		struct pollfd p[2] = {{.fd = w->kick, .events = POLLIN},
			{.fd = wanted ? w->fd : -1, .events = POLLIN}};

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents) {
			wanted = read(w->kick, &kicks, sizeof(kicks)) > 0;
			continue;
		}
		wanted = false;
		pthread_mutex_lock(&w->mutex);
		pthread_cond_broadcast(&w->cond);
		pthread_mutex_unlock(&w->mutex);
	}
	return NULL;
}

/* With all signals blocked: they are for the program's own threads. */
int rwk_fi_waker_start(struct rwk_fi_waker *w, int fd)
{
	sigset_t all, before;
	int err;

	w->kick = eventfd(0, EFD_CLOEXEC);
	if (w->kick < 0)
		return -errno;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_cond_init(&w->cond, NULL);
	w->process = rwk_this_process();
	w->fd = fd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&w->thread, NULL, wake, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		rwk_warn("fi_wait_open: no thread can be started: %s", strerror(-err));
		close(w->kick);
	}
	return err;
}

void rwk_fi_waker_stop(struct rwk_fi_waker *w)
{
	if (w->process == rwk_this_process()) { /* a child of fork has no such thread */
		atomic_store(&w->stop, true);
		rwk_fi_waker_watch(w);
		pthread_join(w->thread, NULL);
	}
	close(w->kick);
	pthread_cond_destroy(&w->cond);
	pthread_mutex_destroy(&w->mutex);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A condition variable that follows a descriptor: a thread sleeps on the descriptor for those who sleep on the
 * condition, from each rwk_fi_waker_watch until it has woken them. They hold the mutex from before that call on.
 */
#ifndef RWK_FI_WAKER_H
#define RWK_FI_WAKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rwk_fi_waker {
	pthread_mutex_t mutex; /* the program's, as the next one */
	pthread_cond_t cond;
	pthread_t thread;
	uint64_t process; /* in which the thread runs */
	int fd;           /* what it sleeps on; not ours */
	int kick;         /* eventfd: rings it, to begin or to end */
	atomic_bool stop;
};

/** 0, or negative errno, logged. */
int rwk_fi_waker_start(struct rwk_fi_waker *w, int fd);
void rwk_fi_waker_stop(struct rwk_fi_waker *w);

/** When the descriptor is readable, those who sleep are woken, once. */
void rwk_fi_waker_watch(struct rwk_fi_waker *w);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancellation (pthread_cancel) of a thread of the host's. Within a call of ours it holds locks, and half of what it
 * changes is changed. So our calls are no points where it can be cancelled, but for sleeps, in which it holds nothing.
 *
 * What a message takes on its usual way makes its system calls by syscall(2), which is no such point, and costs
 * nothing. What is slow anyway is done with cancellation held off, whatever it calls.
 */
#ifndef RWK_CANCEL_H
#define RWK_CANCEL_H

#include <pthread.h>

/** What rwk_cancel_as_before wants to know. They nest. */
static inline int rwk_cancel_hold_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void rwk_cancel_as_before(int before)
{
	pthread_setcancelstate(before, NULL);
}

static inline void rwk_cancel_scope_over(const int *before)
{
	rwk_cancel_as_before(*before);
}

/** Among the declarations of a function that is slow anyway: held off from there on until the function returns. */
#define RWK_CANCEL_HELD_OFF                                                                                            \
	const int rwk_cancel_before __attribute__((cleanup(rwk_cancel_scope_over), unused)) = rwk_cancel_hold_off()

#endif

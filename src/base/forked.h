/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of descriptors by which others know this process, in a child of fork, which has them all until it execs:
 * the name of a socket would stay taken as long as the child lives, and who comes would wait in the queue of a socket
 * that nobody looks at. So the child closes them at once, by a handler (pthread_atfork; gone with the library that set
 * it). A child of a bare clone or of vfork runs no handlers: it keeps them until it execs or ends.
 *
 * For the child to know them all, they are opened, noted and closed with the lock held, which fork takes too.
 *
 * Other locks fork does not take: one may be held for long, or be that of the thread which forks. A thread that the
 * child does not have may have held one; the child makes it free, and begins anew with what may be half changed.
 */
#ifndef RWK_BASE_FORKED_H
#define RWK_BASE_FORKED_H

#include <pthread.h>
#include <stdbool.h>

/** What a part of the library does in each forked child; static. */
struct rwk_forked {
	void (*in_child)(void); /* called with the lock held */
	bool watched;           /* this and the next are forked.c's, under the lock */
	struct rwk_forked *next;
};

/** The lock of all such descriptors in this process. Not for waits. */
void rwk_fork_lock(void);
void rwk_fork_unlock(void);
/** From now on forked->in_child is called in each forked child; once, however often this is said. 0; -ENOMEM. */
int rwk_fork_watch(struct rwk_forked *forked);

/** For in_child: makes the lock free. Was it held at the fork? Then what it guards may be half changed. */
bool rwk_forked_free(pthread_mutex_t *held);

#endif

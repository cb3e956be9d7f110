/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of the descriptors of a domain in a child of fork, which has them all until it execs: the domain would
 * live as long as the child, its name would stay taken, and who comes would wait in the queue of a socket that nobody
 * looks at. So the child closes them at once, by a handler (pthread_atfork; gone with the library that set it). A child
 * of a bare clone or of vfork runs no handlers: it keeps the domain alive until it execs or ends.
 *
 * For the child to know them all, they are opened, noted and closed with the lock held, which fork takes too.
 */
#ifndef RWK_SHARED_RC_FORKED_H
#define RWK_SHARED_RC_FORKED_H

/** The lock of all descriptors of all domains in this process. Not for waits. */
void rwk_src_fork_lock(void);
void rwk_src_fork_unlock(void);
/** From now on `in_child` is called in each forked child, with the lock held; there is one for the whole process. 0;
 * -ENOMEM. */
int rwk_src_fork_watch(void (*in_child)(void));

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Automatic progress: a thread that a domain has from its first endpoint on if it was opened with FI_PROGRESS_AUTO, and
 * only then. It drives the endpoints under the domain's lock while the program calls nothing, and sleeps on their
 * descriptors when nothing comes. While the program itself is at work it looks in now and then, no more.
 *
 * A child that the program forks has no such thread, and nothing is done there in its stead.
 */
#ifndef RWK_FI_PROGRESS_H
#define RWK_FI_PROGRESS_H

#include "bindings/libfabric/lock.h"
#include "bindings/libfabric/wait.h"

struct rwk_fi_progress;

/**
 * Starts the thread: 0, or negative errno. `engines` is what it drives and sleeps on, opened with FI_WAIT_FD; it is the
 * domain's, and changes under `lock`.
 */
int rwk_fi_progress_start(struct rwk_fi_mutex *lock, struct rwk_fi_wait *engines, struct rwk_fi_progress **progress);

/** Ends it and waits for its end. NULL: there is none. The lock is not held. */
void rwk_fi_progress_stop(struct rwk_fi_progress *progress);

/** Ends those that a program has left running, before its exit takes our code away. */
void rwk_fi_progress_stop_all(void);

#endif

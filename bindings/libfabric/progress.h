/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Automatic progress: a thread that a domain has from its first endpoint on if it was opened with FI_PROGRESS_AUTO, and
 * only then. It visits one group of endpoints (group.h) after the other, and drives it under its lock while the program
 * has nothing to do with that group; it sleeps on the descriptors of all groups when nothing comes. Where the program
 * itself is at work it looks in now and then, no more: after 1 ms, or, if that has gone on for long, after a 64th of
 * that time, 8 ms at most. So long may what comes then wait if the program stops.
 *
 * A child that the program forks has no such thread, and nothing is done there in its stead.
 */
#ifndef RWK_FI_PROGRESS_H
#define RWK_FI_PROGRESS_H


struct rwk_fi_group;
struct rwk_fi_progress;

/**
 * Starts the thread: 0, or negative errno. It visits that group and those that come to follow it, of which it sleeps on
 * those whose engines were opened with FI_WAIT_FD; what was not is not driven.
 */
int rwk_fi_progress_start(struct rwk_fi_group *first, struct rwk_fi_progress **progress);

/** There is a group more to sleep on. */
void rwk_fi_progress_ring(struct rwk_fi_progress *progress);

/** Ends it and waits for its end. NULL: there is none. No lock is held. */
void rwk_fi_progress_stop(struct rwk_fi_progress *progress);

/** Ends those that a program has left running, before its exit takes our code away. */
void rwk_fi_progress_stop_all(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a poll set or wait set: a completion queue, a counter or an event queue, and how to ask it whether it has
 * something. A queue has while it is not empty; a counter when it is not what it was at the last look at it through the
 * same set.
 */
#ifndef RWK_FI_WATCHED_H
#define RWK_FI_WATCHED_H

#include "bindings/libfabric/cntr.h"

#include <stdbool.h>

struct rwk_fi_watched {
	struct fid *fid;
	struct rwk_fi_told told; /* a counter's numbers at the last look */
};

/** Drives what is behind it; has it something? `waits`: fi_cq_signal is something, and over then. Takes its lock. */
bool rwk_fi_watched_look(struct rwk_fi_watched *w, bool waits);

/** For fi_trywait and before a sleep: 0: its descriptor will tell; -FI_EAGAIN: look first. Takes its lock. */
int rwk_fi_watched_trywait(struct rwk_fi_watched *w);

/** A growing list of them; zeroed at first. */
struct rwk_fi_watched_list {
	struct rwk_fi_watched *all;
	size_t count, room;
};

/** 0 or -FI_ENOMEM. */
int rwk_fi_watched_add(struct rwk_fi_watched_list *list, struct fid *fid);
/** The reverse: false if it is not in the list. */
bool rwk_fi_watched_remove(struct rwk_fi_watched_list *list, const struct fid *fid);

#endif

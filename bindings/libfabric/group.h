/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: which objects of a domain share a lock. An endpoint, a queue, a counter, a shared receive context opens as a
 * group of its own; what is bound to one another becomes one group, for good. So threads that drive endpoints with
 * queues of their own do not meet, and within a group all is as if the domain had one lock.
 *
 * What several groups touch, and why they may:
 *
 *   address vector     read by all; changed while all are stopped. A shared one (av_shared.h) tells its endpoints of
 *                      what other processes have removed, in whichever call that is seen: it is of the group of its
 *                      endpoints
 *   registrations      looked up by all, changed while all are stopped; what engines note in them has a mutex
 *                      (region.h)
 *   counters of        drive all endpoints of the domain, deferred and triggered work moves what is bound to none of
 *   registrations,     its own, and an owner of peer objects (peer.h) need not be called by several at a time: the
 *   work, peer objects first of these makes the domain one group, also of what is opened later (rwk_fi_unite)
 *   event queues, sets have mutexes of their own, taken before these
 *   reference counts   are atomic
 *   the rest           of what endpoints of a process share (job map, ports of the node, captures, logs) is that of
 *                      several domains, too, and they have never had a lock in common
 *
 * Locks are taken in this order: `control`, groups. Who has not got `control` takes one group at most. Under it groups
 * come and objects get and leave theirs; the program's threads alone take it, never while they hold a group.
 * test/models/group.pml is this, with what goes wrong without one part or the other.
 *
 * FI_THREAD_DOMAIN is one group from the start, without lock unless there is a progress thread; so is a domain of
 * datagram endpoints, with one. Connected endpoints have the lock of their device (device.h), which is a group, too.
 */
#ifndef RWK_FI_GROUP_H
#define RWK_FI_GROUP_H

#include "base/list.h"
#include "bindings/libfabric/lock.h"
#include "bindings/libfabric/wait.h"

struct rwk_fi_progress;

struct rwk_fi_group {
	struct rwk_fi_mutex mutex;
	struct rwk_fi_wait engines; /* of its enabled endpoints, under the mutex: what the progress thread drives, and
				       sleeps on */
	struct rwk_fi_group *_Atomic next;
	struct rwk_list members; /* under `control` */
	struct rwk_list vacant;  /* rwk_fi_groups.vacant, while it has none */
	/* The progress thread's own (progress.c). */
	uint64_t turns;
	uint64_t left_since; /* since when it has been left to the program, ns; 0: it had its last visit */
	unsigned empty;
};

/** An object's part in a group. */
struct rwk_fi_member {
	struct rwk_fi_group *group; /* read under its lock, or `control` */
	struct rwk_fi_guard *guard;
	struct rwk_list link; /* rwk_fi_group.members */
};

/** Those of a domain. */
struct rwk_fi_groups {
	struct rwk_fi_mutex control;
	struct rwk_fi_group first;        /* others follow it, and stay until the end */
	struct rwk_fi_group *last;        /* under `control`, as */
	struct rwk_list vacant;           /* rwk_fi_group.vacant: free for the next objects */
	bool locked;                      /* else no guard has a lock */
	bool one;                         /* all that there is and comes is in the first; under `control` */
	struct rwk_fi_progress *progress; /* NULL: the program makes it, or there has been no endpoint */
	int cancel;                       /* while all are stopped: what rwk_cancel_hold_off said */
};

void rwk_fi_group_init(struct rwk_fi_group *g);

/** The next one of the domain; NULL: there is none. With or without `control`. */
static inline struct rwk_fi_group *rwk_fi_group_after(const struct rwk_fi_group *g)
{
	return atomic_load_explicit(&g->next, memory_order_acquire);
}

void rwk_fi_groups_init(struct rwk_fi_groups *all, bool locked, bool one);
/** All objects have left. Stops the progress thread. */
void rwk_fi_groups_close(struct rwk_fi_groups *all);

/** An object opens: it gets a group, and its guard the lock. 0 or -FI_ENOMEM. */
int rwk_fi_join(struct rwk_fi_groups *all, struct rwk_fi_member *m, struct rwk_fi_guard *guard);
/** It closes. One that has never joined: nothing. Its lock is not held. */
void rwk_fi_part(struct rwk_fi_groups *all, struct rwk_fi_member *m);

/** Two objects are bound to each other: they have one lock from now on. Without it. 0 or negative errno. */
int rwk_fi_tie(struct rwk_fi_groups *all, struct rwk_fi_member *a, struct rwk_fi_member *b);

/** All objects have one lock from now on, that of the first group. Without a lock. 0 or negative errno. */
int rwk_fi_unite(struct rwk_fi_groups *all);

/** Takes all locks, and gives them back. */
void rwk_fi_stop(struct rwk_fi_groups *all);
void rwk_fi_go(struct rwk_fi_groups *all);

/**
 * Moves on what the endpoints of the domain have under way, for who closes one of them and waits. Where there is a
 * progress thread nothing is done. Without a lock.
 */
void rwk_fi_groups_drive(struct rwk_fi_groups *all);

/** The progress thread, if there is one, can sleep on that group. Under its lock. 0 or negative errno. */
int rwk_fi_group_watch(struct rwk_fi_groups *all, struct rwk_fi_group *g);

/** The engine of an object is driven with its group: 0 or negative errno. Under the object's lock, as the reverse. */
int rwk_fi_group_attach(struct rwk_fi_groups *all, struct rwk_fi_member *m, struct rwk_engine *e);
static inline void rwk_fi_group_detach(struct rwk_fi_member *m, struct rwk_engine *e)
{
	rwk_fi_wait_detach(&m->group->engines, e);
}

#endif

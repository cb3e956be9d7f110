/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a completion queue and a counter have in common: the engines whose completions come to it, which it must drive,
 * and how to sleep until one of them has something. In a domain of connected endpoints they have no engine, but the
 * device (device.h).
 *
 * Sleeping: an epoll descriptor holds each engine's descriptors and an eventfd of our own.
 * Arm the engines, set `armed`, and sleep; what arrives from a peer wakes through the engine, what another thread's
 * call completes, and fi_cq_signal, wake through the eventfd. What another thread's call takes back of the arming, or
 * leaves to be moved on, wakes a moment later (sleepers.c). All members are under the lock of the queue or counter
 * (group.h), which is not held while asleep.
 *
 * Several threads may sleep in calls on one wait, each for something else. A ring is for all of them: the eventfd stays
 * readable until the last one is back, and who is back first cannot sleep again before that. So while `sleeping` counts
 * somebody who has been rung for, that is while `armed` is not set, nobody new falls asleep.
 *
 * Of who polls a descriptor that FI_GETWAIT has given away nobody knows whether he is back. So he has another epoll
 * descriptor and another eventfd, made when they are first asked for, or with a wait in a set. A ring writes that one,
 * which stays readable until his next fi_trywait, whoever sleeps and wakes in calls meanwhile; and the first one if
 * somebody sleeps in a call (who is about to has armed and is counted under the lock, as a ring is). Without a second
 * one the first is always written: the progress thread, which sleeps on it, is not counted.
 *
 * The kernel does not let any number of sets hear of one socket. Those that would be too many do not hear what engines
 * and the device have, they are deaf, and have an alarm in its place, as those that are stirred.
 */
#ifndef RWK_FI_WAIT_H
#define RWK_FI_WAIT_H

#include "base/compiler.h"
#include "base/list.h"
#include "base/param.h"
#include "bindings/libfabric/deadline.h"
#include "bindings/libfabric/lock.h"
#include "engine/engine.h"

#include <rdma/fi_eq.h>
#include <stdatomic.h>
#include <stdbool.h>

struct rwk_fi_device;
struct rwk_fi_wait;
struct rwk_fi_wait_set;
struct rwk_ud;

/** A datagram endpoint (dgram.h) that a wait drives, beside its engines. */
struct rwk_fi_datagrams {
	struct rwk_fi_datagrams *next; /* of the same wait */
	struct rwk_fi_wait *wait;      /* NULL: none */
	struct rwk_ud *ud;
};

/**
 * How many waits of a domain may still hear what its endpoints have, or waits or event queues of a fabric what its
 * device has: Linux lets a descriptor be in 100 sets of sets of sets (epoll), 50 of one level more, and 10 of the last.
 * Others are deaf.
 */
struct rwk_fi_ears {
	atomic_int called; /* in calls, */
	atomic_int given;  /* by descriptors that the program may put into a set of its own, */
	atomic_int in_set; /* and by those that are in a wait set, which it may put into one */
};

void rwk_fi_ears_init(struct rwk_fi_ears *ears, int called, int given, int in_set);
/** One of those that are left; false: none is. And the reverse. */
bool rwk_fi_ear_take(atomic_int *left);
void rwk_fi_ear_return(atomic_int *left);

struct rwk_fi_wait {
	struct rwk_engine **engines; /* each once */
	unsigned *uses;              /* how often each was attached: an endpoint may bind a queue for both directions */
	unsigned count, room;
	unsigned vain;                /* times in a row that nothing was found */
	bool armed;                   /* somebody sleeps, or may: an arrival writes the eventfd */
	bool rung;                    /* event_fd is readable */
	struct rwk_completions *done; /* gets nothing without a call while armed; NULL: there is no such queue */
	bool signaled;                /* the next wait ends at once */
	unsigned waiting;             /* threads in rwk_fi_wait_for, */
	unsigned sleeping;            /* and those of them that have not come back from a sleep */
	unsigned signals;             /* that have ended the waits of all of them */
	enum fi_wait_obj object;      /* FI_WAIT_NONE, FI_WAIT_FD or FI_WAIT_YIELD */
	int epoll_fd, event_fd;       /* -1 without FI_WAIT_FD */
	int given_fd, told_fd;        /* the same for who polls outside of calls; -1: nobody does */
	int alarm_fd;                 /* -1: none has been needed */
	struct rwk_list of_lock;      /* rwk_fi_mutex.asleep, .stirred, or neither */
	struct rwk_fi_wait_set *set;  /* in which it was opened, and which it holds; NULL: in none */
	struct rwk_fi_device *device; /* NULL: engines */
	struct rwk_list of_device;    /* its waits */
	struct rwk_fi_datagrams *datagrams;
	struct rwk_fi_ears *ears;     /* NULL: it hears in any case */
	bool hears, given_hears;      /* epoll_fd, and given_fd, have what they should */
	bool deaf;                    /* one of them has not: who sleeps looks again a moment later */
};

/**
 * `wanted` FI_WAIT_NONE, FI_WAIT_UNSPEC (it becomes FI_WAIT_FD), FI_WAIT_FD or FI_WAIT_YIELD: 0. Others: -FI_ENOSYS,
 * logged with `what` ("fi_cq_open"). Or the errno of epoll or eventfd.
 */
int rwk_fi_wait_open(struct rwk_fi_wait *w, enum fi_wait_obj wanted, const char *what);
/** Under its lock, if others may take that. */
void rwk_fi_wait_close(struct rwk_fi_wait *w);

/** It hears only if there is an ear left. To be called before there is anything to hear. */
void rwk_fi_wait_share_ears(struct rwk_fi_wait *w, struct rwk_fi_ears *ears);

/** Makes the descriptors for who polls, if there are none and it has any: 0, or the errno of epoll or eventfd. */
int rwk_fi_wait_give(struct rwk_fi_wait *w);

/** From now on its descriptors are readable whenever that one is, deaf or not: 0, or the errno of epoll. */
int rwk_fi_wait_hear(struct rwk_fi_wait *w, int fd);

/** Adds an engine, or counts it once more: 0, -FI_ENOMEM, or the errno of epoll. */
int rwk_fi_wait_attach(struct rwk_fi_wait *w, struct rwk_engine *e);
/** The reverse. */
void rwk_fi_wait_detach(struct rwk_fi_wait *w, struct rwk_engine *e);

/** Is the engine attached? */
bool rwk_fi_wait_has(const struct rwk_fi_wait *w, const struct rwk_engine *e);

/** From now on it drives the device: 0, or the errno of epoll. Under the device's lock, as the reverse. */
int rwk_fi_wait_join(struct rwk_fi_wait *w, struct rwk_fi_device *device);
/** The device's adapter has been opened since: its descriptors wake who waits. */
int rwk_fi_wait_watch(struct rwk_fi_wait *w, struct rwk_fi_device *device);
/** The reverse, if it does. */
void rwk_fi_wait_part(struct rwk_fi_wait *w);

/**
 * Opens a wait that drives that engine, or the device, under its lock, for who closes what it carries: with descriptors,
 * or where there are none to be had (the program has opened as many as it may) without, and it looks again and again.
 */
void rwk_fi_wait_open_last(struct rwk_fi_wait *w, struct rwk_engine *engine, struct rwk_fi_device *device);

/** From now on it drives that datagram endpoint, too: 0, or the errno of epoll. */
int rwk_fi_wait_take(struct rwk_fi_wait *w, struct rwk_fi_datagrams *d, struct rwk_ud *ud);
/** The reverse, if it does. */
void rwk_fi_wait_leave(struct rwk_fi_datagrams *d);
/** Drives them. */
int rwk_fi_wait_datagrams(struct rwk_fi_wait *w);

/** In device.c. */
int rwk_fi_device_progress(struct rwk_fi_device *device);

/* Of times in a row that nothing is found these are taken for a wait, but for the first. */
enum { RWK_FI_WAITS = 16 };

/**
 * Drives every engine once, or the device: how much there was. Who asks again at once waits, as for an answer, and the
 * engine looks again before he has to; not who asks on and on: he may have work to do in between.
 */
static inline int rwk_fi_wait_progress(struct rwk_fi_wait *w)
{
	bool waits = w->vain - 1 < RWK_FI_WAITS;
	int n = 0;

	for (unsigned i = 0; i < w->count; i++)
		n += rwk_engine_poll(w->engines[i], waits);
	if (rwk_unlikely(w->device != NULL))
		n += rwk_fi_device_progress(w->device);
	if (rwk_unlikely(w->datagrams != NULL))
		n += rwk_fi_wait_datagrams(w);
	w->vain = n ? 0 : w->vain + 1;
	return n;
}

/** The program has something to read: it does not wait. */
static inline void rwk_fi_wait_found(struct rwk_fi_wait *w)
{
	w->vain = 0;
}

/**
 * A look of the program found nothing; true: it is time for rwk_fi_rest, without the lock, which gives the core away if
 * there are more threads that look like this than processors. (Of ranks that are more than these the job map tells, and
 * the transports do it.)
 */
static inline bool rwk_fi_wait_tires(struct rwk_fi_wait *w)
{
	if (rwk_likely(w->vain < rwk_params.spin))
		return false;
	w->vain = RWK_FI_WAITS + 1;
	return true;
}

void rwk_fi_rest(void);

/** Makes the descriptors readable until the next arm. */
void rwk_fi_wait_ring(struct rwk_fi_wait *w);

/** To be called after each arrival. */
static inline void rwk_fi_wait_arrived(struct rwk_fi_wait *w)
{
	if (rwk_unlikely(w->armed))
		rwk_fi_wait_ring(w);
}

/** Ends the waits under way, or if there are none the next one. */
void rwk_fi_wait_signal(struct rwk_fi_wait *w);

/**
 * Prepares to sleep: 0, or -FI_EAGAIN if an engine has something already, or somebody has been rung for and is not back
 * yet. The caller has looked at its own state before.
 */
int rwk_fi_wait_arm(struct rwk_fi_wait *w);
/** The same for who polls. */
int rwk_fi_wait_arm_given(struct rwk_fi_wait *w);

/** Its descriptors become readable a moment later, by themselves; false: it has no timer. In sleepers.c. */
bool rwk_fi_wait_set_alarm(struct rwk_fi_wait *w);

/**
 * After rwk_fi_wait_arm has said 0: whoever takes the lock now wakes who sleeps on it a moment later. False: there is
 * no lock, or the progress thread sees to it. In sleepers.c.
 */
bool rwk_fi_wait_sleeps(struct rwk_fi_wait *w, const struct rwk_fi_guard *guard);

/**
 * Drives every engine until it has nothing to do, and arms it: whoever was asleep on it, or is just about to be, hears
 * of what comes later. False: one has never had nothing, and is not armed.
 */
bool rwk_fi_wait_drive(struct rwk_fi_wait *w);

/**
 * Drives the engines until ready(arg), asleep in between where there is a descriptor, else yielding the core (with
 * FI_WAIT_YIELD after each look). `lock` (or NULL) is held on entry and return. `timeout` in ms, negative for none.
 * 0: ready; -FI_ETIMEDOUT; -FI_EAGAIN: signaled; -FI_EINTR: a signal of the system has come into the sleep.
 */
int rwk_fi_wait_for(struct rwk_fi_wait *w, const struct rwk_fi_guard *lock, int timeout, bool (*ready)(const void *arg),
	const void *arg);

/**
 * FI_GETWAIT (in a set: what the set has) and FI_GETWAITOBJ; -FI_ENOSYS for the rest. Without the lock, which the first
 * takes.
 */
int rwk_fi_wait_control(struct rwk_fi_wait *w, const struct rwk_fi_guard *lock, int command, void *arg);

#endif

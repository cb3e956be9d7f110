/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* syscall */

#include "bindings/libfabric/wait.h"

#include "base/cancel.h"
#include "base/crowd.h"
#include "base/log.h"
#include "bindings/libfabric/device.h"
#include "bindings/libfabric/provider.h"
#include "bindings/libfabric/wait_set.h"
#include "engine/job.h"
#include "ud/ud.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DRIVES             1000 /* progresses of an endpoint in a row, beside one that waits for its end */
#define POLLS_BEFORE_SLEEP 1000 /* a sleep and its wake-up cost several microseconds on both sides */

static int add(int epoll_fd, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int rwk_fi_wait_hear(struct rwk_fi_wait *w, int fd)
{
	int err = add(w->epoll_fd, fd);

	if (!err && w->given_fd >= 0) {
		err = add(w->given_fd, fd);
		if (err)
			epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	}
	return err;
}

/* What comes from peers, in one of its sets, if that may. */
static int hear_in(struct rwk_fi_wait *w, int epoll_fd, bool may, int fd)
{
	int err = may ? add(epoll_fd, fd) : -EINVAL;

	if (err != -EINVAL && err != -ELOOP)
		return err;
	w->deaf = true;
	return 0;
}

static int hear_peers(struct rwk_fi_wait *w, int fd)
{
	int err = hear_in(w, w->epoll_fd, w->hears, fd);

	return err || w->given_fd < 0 ? err : hear_in(w, w->given_fd, w->given_hears, fd);
}

static void hear_no_more(struct rwk_fi_wait *w, int fd)
{
	epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	if (w->given_fd >= 0)
		epoll_ctl(w->given_fd, EPOLL_CTL_DEL, fd, NULL);
}

int rwk_fi_wait_open(struct rwk_fi_wait *w, enum fi_wait_obj wanted, const char *what)
{
	int err;

	*w = (struct rwk_fi_wait){
		.object = FI_WAIT_NONE, .epoll_fd = -1, .event_fd = -1, .alarm_fd = -1, .given_fd = -1, .told_fd = -1};
	w->hears = w->given_hears = true;
	rwk_list_init(&w->of_device);
	rwk_list_init(&w->of_lock);
	if (wanted == FI_WAIT_NONE)
		return 0;
	if (wanted == FI_WAIT_YIELD) {
		w->object = wanted;
		return 0;
	}
	if (wanted != FI_WAIT_UNSPEC && wanted != FI_WAIT_FD) {
		rwk_warn("%s: wait object %d; there is FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD and FI_WAIT_YIELD",
			what, wanted);
		return -FI_ENOSYS;
	}
	w->object = FI_WAIT_FD;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll_fd < 0)
		return -errno;
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = w->event_fd < 0 ? -errno : add(w->epoll_fd, w->event_fd);
	if (err)
		rwk_fi_wait_close(w);
	return err;
}

void rwk_fi_ears_init(struct rwk_fi_ears *ears, int called, int given, int in_set)
{
	atomic_init(&ears->called, called);
	atomic_init(&ears->given, given);
	atomic_init(&ears->in_set, in_set);
}

bool rwk_fi_ear_take(atomic_int *left)
{
	if (atomic_fetch_sub(left, 1) > 0)
		return true;
	atomic_fetch_add(left, 1);
	return false;
}

void rwk_fi_ear_return(atomic_int *left)
{
	atomic_fetch_add(left, 1);
}

static atomic_int *given_ears(struct rwk_fi_wait *w)
{
	return w->set ? &w->ears->in_set : &w->ears->given;
}

void rwk_fi_wait_share_ears(struct rwk_fi_wait *w, struct rwk_fi_ears *ears)
{
	if (w->object != FI_WAIT_FD)
		return;
	w->ears = ears;
	w->hears = rwk_fi_ear_take(&ears->called);
	w->given_hears = false;
}

static void close_given(struct rwk_fi_wait *w)
{
	RWK_CANCEL_HELD_OFF;

	if (w->ears && w->given_hears) {
		rwk_fi_ear_return(given_ears(w));
		w->given_hears = false;
	}
	if (w->told_fd >= 0)
		close(w->told_fd);
	if (w->given_fd >= 0)
		close(w->given_fd);
	w->told_fd = w->given_fd = -1;
}

void rwk_fi_wait_close(struct rwk_fi_wait *w)
{
	int before = rwk_cancel_hold_off();

	rwk_list_remove(&w->of_lock);
	close_given(w);
	if (w->ears && w->hears)
		rwk_fi_ear_return(&w->ears->called);
	if (w->alarm_fd >= 0)
		close(w->alarm_fd);
	if (w->event_fd >= 0)
		close(w->event_fd);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->set)
		rwk_fi_wait_set_drop(w->set);
	free(w->engines);
	free(w->uses);
	rwk_cancel_as_before(before);
}

static unsigned find(const struct rwk_fi_wait *w, const struct rwk_engine *e)
{
	unsigned i = 0;

	while (i < w->count && w->engines[i] != e)
		i++;
	return i;
}

bool rwk_fi_wait_has(const struct rwk_fi_wait *w, const struct rwk_engine *e)
{
	return find(w, e) < w->count;
}

static int grow(struct rwk_fi_wait *w)
{
	unsigned room = w->room ? 2 * w->room : 4;
	struct rwk_engine **engines = realloc(w->engines, room * sizeof(*engines));
	unsigned *uses;

	if (!engines)
		return -FI_ENOMEM;
	w->engines = engines;
	uses = realloc(w->uses, room * sizeof(*uses));
	if (!uses)
		return -FI_ENOMEM;
	w->uses = uses;
	w->room = room;
	return 0;
}

static void hear_engine_no_more(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	for (int i = 0, fd; (fd = rwk_engine_wait_fd(e, i)) >= 0; i++)
		hear_no_more(w, fd);
}

static int hear_engine(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	int err = 0;

	for (int i = 0, fd; !err && (fd = rwk_engine_wait_fd(e, i)) >= 0; i++)
		err = hear_peers(w, fd);
	if (err)
		hear_engine_no_more(w, e);
	return err;
}

int rwk_fi_wait_attach(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	unsigned i = find(w, e);
	int err = 0;

	if (i == w->count) {
		if (w->count == w->room)
			err = grow(w);
		if (!err && w->object == FI_WAIT_FD)
			err = hear_engine(w, e);
		if (err)
			return err;
		w->engines[i] = e;
		w->uses[i] = 0;
		w->count++;
	}
	w->uses[i]++;
	return 0;
}

void rwk_fi_wait_detach(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	unsigned i = find(w, e);

	if (i == w->count || --w->uses[i])
		return;
	if (w->object == FI_WAIT_FD)
		hear_engine_no_more(w, e);
	w->count--;
	w->engines[i] = w->engines[w->count];
	w->uses[i] = w->uses[w->count];
}

int rwk_fi_wait_watch(struct rwk_fi_wait *w, struct rwk_fi_device *device)
{
	int err = 0;

	for (int i = 0; i < 3 && w->object == FI_WAIT_FD && !err; i++)
		err = hear_peers(w, device->fd[i]);
	return err;
}

int rwk_fi_wait_join(struct rwk_fi_wait *w, struct rwk_fi_device *device)
{
	int err = device->adapter ? rwk_fi_wait_watch(w, device) : 0;

	if (err)
		return err;
	w->device = device;
	rwk_list_append(&device->waits, &w->of_device);
	return 0;
}

void rwk_fi_wait_part(struct rwk_fi_wait *w)
{
	rwk_list_remove(&w->of_device);
	w->device = NULL;
}

static int open_with(
	struct rwk_fi_wait *w, enum fi_wait_obj object, struct rwk_engine *engine, struct rwk_fi_device *device)
{
	int err = rwk_fi_wait_open(w, object, "fi_close");

	if (err)
		return err;
	err = engine ? rwk_fi_wait_attach(w, engine) : rwk_fi_wait_join(w, device);
	if (err && object != FI_WAIT_NONE)
		rwk_fi_wait_close(w);
	return err;
}

void rwk_fi_wait_open_last(struct rwk_fi_wait *w, struct rwk_engine *engine, struct rwk_fi_device *device)
{
	if (open_with(w, FI_WAIT_FD, engine, device) && open_with(w, FI_WAIT_NONE, engine, device))
		rwk_debug("fi_close: no memory; the engine is driven with the others");
}

int rwk_fi_wait_take(struct rwk_fi_wait *w, struct rwk_fi_datagrams *d, struct rwk_ud *ud)
{
	int err = w->object == FI_WAIT_FD ? rwk_fi_wait_hear(w, rwk_ud_fd(ud)) : 0;

	if (err)
		return err;
	*d = (struct rwk_fi_datagrams){.next = w->datagrams, .wait = w, .ud = ud};
	w->datagrams = d;
	return 0;
}

void rwk_fi_wait_leave(struct rwk_fi_datagrams *d)
{
	struct rwk_fi_datagrams **at;

	if (!d->wait)
		return;
	if (d->wait->object == FI_WAIT_FD)
		hear_no_more(d->wait, rwk_ud_fd(d->ud));
	for (at = &d->wait->datagrams; *at != d;)
		at = &(*at)->next;
	*at = d->next;
	d->wait = NULL;
}

static int give_engine(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	int err = 0;

	for (int i = 0, fd; !err && (fd = rwk_engine_wait_fd(e, i)) >= 0; i++)
		err = hear_in(w, w->given_fd, w->given_hears, fd);
	return err;
}

/* All that a wait hears of by now. */
static int give_all(struct rwk_fi_wait *w)
{
	int err = w->alarm_fd >= 0 ? add(w->given_fd, w->alarm_fd) : 0;

	for (unsigned i = 0; i < w->count && !err; i++)
		err = give_engine(w, w->engines[i]);
	for (const struct rwk_fi_datagrams *d = w->datagrams; d && !err; d = d->next)
		err = add(w->given_fd, rwk_ud_fd(d->ud));
	if (err || !w->device || !w->device->adapter)
		return err;
	for (int i = 0; i < 3 && !err; i++)
		err = hear_in(w, w->given_fd, w->given_hears, w->device->fd[i]);
	return err;
}

static void ring(int fd)
{
	const uint64_t one = 1;

	if (fd >= 0 && syscall(SYS_write, fd, &one, sizeof(one)) < 0) /* base/cancel.h */
		rwk_debug("wake-up: the descriptor is full, so its reader is awake");
}

int rwk_fi_wait_give(struct rwk_fi_wait *w)
{
	int err;

	if (w->given_fd >= 0 || w->object != FI_WAIT_FD)
		return 0;
	w->told_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->given_fd = w->told_fd < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
	err = w->given_fd < 0 ? -errno : add(w->given_fd, w->told_fd);
	if (!err && w->ears)
		w->given_hears = rwk_fi_ear_take(given_ears(w));
	if (!err)
		err = give_all(w);
	if (err)
		close_given(w);
	else if (!w->armed)
		ring(w->told_fd); /* what has come since the last fi_trywait rang the other one alone */
	return err;
}

int rwk_fi_wait_datagrams(struct rwk_fi_wait *w)
{
	int n = 0;

	for (struct rwk_fi_datagrams *d = w->datagrams; d; d = d->next)
		n += rwk_ud_progress(d->ud);
	return n;
}

rwk_noinline void rwk_fi_rest(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	if (rwk_job_is_crowd(rwk_crowd_count((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000)))
		sched_yield();
}

void rwk_fi_wait_ring(struct rwk_fi_wait *w)
{
	w->armed = false;
	if (w->sleeping || w->given_fd < 0) {
		w->rung = true;
		ring(w->event_fd);
	}
	ring(w->told_fd);
}

void rwk_fi_wait_signal(struct rwk_fi_wait *w)
{
	if (w->waiting)
		w->signals++;
	else
		w->signaled = true;
	rwk_fi_wait_ring(w);
}

int rwk_fi_wait_arm(struct rwk_fi_wait *w)
{
	uint64_t rung;

	if (w->signaled)
		return -FI_EAGAIN;
	if (w->sleeping && !w->armed)
		return -FI_EAGAIN; /* the ring is for them, too */
	if (w->rung && w->event_fd >= 0 && syscall(SYS_read, w->event_fd, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		return -errno;
	w->rung = false;
	w->armed = true; /* also if it does not come to a sleep: another thread may be asleep */
	if (w->done)
		w->done->limit = w->done->tail;
	for (unsigned i = 0; i < w->count; i++) {
		if (rwk_engine_arm(w->engines[i]))
			return -FI_EAGAIN;
	}
	if (w->device && rwk_fi_device_arm(w->device))
		return -FI_EAGAIN;
	for (struct rwk_fi_datagrams *d = w->datagrams; d; d = d->next) {
		if (rwk_ud_arm(d->ud))
			return -FI_EAGAIN;
	}
	return w->deaf && !rwk_fi_wait_set_alarm(w) ? -FI_EAGAIN : 0;
}

int rwk_fi_wait_arm_given(struct rwk_fi_wait *w)
{
	uint64_t rung;

	if (w->told_fd >= 0 && syscall(SYS_read, w->told_fd, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		return -errno;
	return rwk_fi_wait_arm(w);
}

/*
 * An endpoint that always has something to do has had enough after some time. It is armed first so that it looks at the
 * network, at which it looks seldom when it has been quiet.
 */
static bool drive(struct rwk_engine *e)
{
	rwk_engine_arm(e);
	for (unsigned i = 0; i < DRIVES; i++) {
		rwk_engine_progress(e);
		if (!rwk_engine_arm(e))
			return true;
	}
	return false;
}

bool rwk_fi_wait_drive(struct rwk_fi_wait *w)
{
	bool armed = true;

	for (unsigned i = 0; i < w->count; i++)
		armed &= drive(w->engines[i]);
	return armed;
}

struct sleeper {
	struct rwk_fi_wait *wait;
	const struct rwk_fi_guard *lock;
};

/* A sleeping thread is cancelled: nobody waits here any more. Others look again, as what was armed may not be. */
static void leave_bed(void *arg)
{
	const struct sleeper *s = arg;

	rwk_fi_enter(s->lock);
	s->wait->sleeping--;
	s->wait->waiting--;
	rwk_fi_leave(s->lock);
}

/* Without the lock; the one place where a call of ours can be cancelled. */
static int sleep_on(struct rwk_fi_wait *w, const struct rwk_fi_guard *lock, int timeout)
{
	struct pollfd p = {.fd = w->epoll_fd, .events = POLLIN};
	struct sleeper me = {w, lock};
	int n;

	pthread_cleanup_push(leave_bed, &me);
	n = poll(&p, 1, timeout);
	pthread_cleanup_pop(0);
	return n;
}

/*
 * Gives the core away with the lock open: until the descriptor is readable, or for a moment. False: a signal of the
 * system has ended that.
 */
static bool rest(struct rwk_fi_wait *w, const struct rwk_fi_guard *lock, const struct rwk_fi_deadline *end)
{
	bool sleep = w->object == FI_WAIT_FD && !rwk_fi_wait_arm(w);
	bool quiet = sleep && rwk_fi_wait_sleeps(w, lock);
	bool interrupted = false;

	w->sleeping += sleep;
	rwk_fi_leave(lock);
	if (sleep)
		interrupted = sleep_on(w, lock, rwk_fi_deadline_left(end)) < 0 && errno == EINTR;
	else
		sched_yield();
	if (quiet)
		rwk_fi_enter_quietly(lock);
	else
		rwk_fi_enter(lock);
	w->sleeping -= sleep;
	return !interrupted;
}

/* Who goes on after a quiet return leaves others asleep on what he has disarmed. */
static void stir_others(const struct rwk_fi_guard *lock)
{
	struct rwk_fi_mutex *m = rwk_fi_mutex_of(lock);

	if (m && !rwk_list_empty(&m->asleep))
		rwk_fi_lock_stir(m);
}

static int wait_until(struct rwk_fi_wait *w, const struct rwk_fi_guard *lock, int timeout,
	bool (*ready)(const void *arg), const void *arg)
{
	struct rwk_fi_deadline end = rwk_fi_deadline(timeout);
	unsigned signals = w->signals;
	bool rested = true;

	for (unsigned polls = 0;; polls++) {
		rwk_fi_wait_progress(w);
		if (ready(arg))
			return 0;
		if (w->signaled || w->signals != signals) {
			w->signaled = false;
			return -FI_EAGAIN;
		}
		if (!rested)
			return -FI_EINTR;
		if (polls < POLLS_BEFORE_SLEEP && timeout && w->object != FI_WAIT_YIELD)
			continue;
		if (rwk_fi_deadline_past(&end))
			return -FI_ETIMEDOUT;
		rested = rest(w, lock, &end);
	}
}

int rwk_fi_wait_for(struct rwk_fi_wait *w, const struct rwk_fi_guard *lock, int timeout, bool (*ready)(const void *arg),
	const void *arg)
{
	int err;

	w->waiting++;
	err = wait_until(w, lock, timeout, ready, arg);
	w->waiting--;
	stir_others(lock);
	return err;
}

static int getwait(struct rwk_fi_wait *w, const struct rwk_fi_guard *lock, int *fd)
{
	int err;

	if (w->object != FI_WAIT_FD)
		return -FI_ENODATA;
	rwk_fi_enter_quietly(lock);
	err = rwk_fi_wait_give(w);
	if (!err)
		*fd = w->given_fd;
	rwk_fi_leave(lock);
	return err;
}

int rwk_fi_wait_control(struct rwk_fi_wait *w, const struct rwk_fi_guard *lock, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		return w->set ? rwk_fi_wait_set_control(w->set, command, arg) : getwait(w, lock, arg);
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = w->set ? FI_WAIT_SET : w->object;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

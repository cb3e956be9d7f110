/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What wakes a sleeper: a descriptor that is readable when the sleeper has something to do.
 *
 *     sleeper's epoll ---- bell: an eventfd; what it sleeps for has come, by the work of another thread
 *                     `--- adapter's epoll ---- the links' descriptors: packets have come
 *                                          `--- timer: a qp waits for a time; a link is full, or has more
 *
 * Nobody works while all sleep: so a sleeper is woken by packets, and by the time, that may turn out to be for somebody
 * else; it does the adapter's work then, arms again and sleeps on. A few do for that, and more cannot: the kernel
 * allows a socket so many ways to wake somebody (50, of four sets each, the program's among them), and refuses sockets,
 * and the program's own sets, beyond that. So of all sleepers HEARING_MAX *hear*, which is to say have the adapter's
 * epoll in their sets. The others have the bell alone, which is rung by the work of those who hear. All of these are
 * levels, not edges: what comes between arming and sleeping makes the descriptor readable just as well, so no wake-up
 * is lost.
 *
 * Nobody says that he has given up sleeping: he stays armed, and does no work. So those hear who were armed last: who
 * arms takes the place of the one that was armed longest ago, and gets it back when another is woken. Invariants:
 *
 *   armed with a descriptor   it is in `hear` or in `deaf`; each list in the order of arming, and all of `deaf` was
 *                             armed before all of `hear`
 *   not armed                 it is in `idle` as long as nobody wants its place: if some are deaf, nobody is idle and
 *                             `hear` is full, but for the time from rwk_ca_before_arm to rwk_ca_arm, or rwk_ca_disarm
 *
 * The links' descriptors are in the set only while somebody is armed: a socket that is watched costs whoever sends to
 * it a microsecond for each packet.
 */
#define _GNU_SOURCE /* ppoll, syscall */
#include "channel_adapter/internal.h"

#include "base/bell.h"
#include "base/clock.h"
#include "base/compiler.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000u /* ns */

/* ns: how long until a link without room is tried again. That a stream has room its descriptor tells. */
#define LINK_FULL   100000u
#define STREAM_FULL 10000000u

#define HEARING_MAX 8u

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int add_fd(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

/* ---- the adapter's ---- */

void rwk_ca_open_sleep(struct sleep *s)
{
	*s = (struct sleep){.epoll = -1, .timer = -1, .alarm = RWK_NEVER};
	rwk_list_init(&s->hear);
	rwk_list_init(&s->idle);
	rwk_list_init(&s->deaf);
	rwk_list_init(&s->called);
}

void rwk_ca_close_sleep(struct sleep *s)
{
	close_fd(&s->epoll);
	close_fd(&s->timer);
}

static int open_fds(struct sleep *s)
{
	int rc;

	if (s->epoll >= 0)
		return 0;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	rc = s->epoll < 0 || s->timer < 0 ? -errno : add_fd(s->epoll, s->timer);
	if (rc)
		rwk_ca_close_sleep(s);
	return rc;
}

static void unwatch_link(int epoll, struct rwk_link *l)
{
	for (int i = 0, fd; l && (fd = l->ops->wait_fd(l, i)) >= 0; i++)
		epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
}

static int watch_link(int epoll, struct rwk_link *l)
{
	int rc = 0;

	for (int i = 0, fd; !rc && l && (fd = l->ops->wait_fd(l, i)) >= 0; i++)
		rc = add_fd(epoll, fd);
	return rc;
}

static void unwatch(struct rwk_adapter *a)
{
	if (!a->sleep.watching)
		return;
	a->sleep.watching = false;
	unwatch_link(a->sleep.epoll, a->link);
	unwatch_link(a->sleep.epoll, a->streams);
}

static int watch(struct rwk_adapter *a)
{
	int rc;

	if (a->sleep.epoll < 0 || a->sleep.watching)
		return 0;
	a->sleep.watching = true;
	rc = watch_link(a->sleep.epoll, a->link);
	if (!rc)
		rc = watch_link(a->sleep.epoll, a->streams);
	if (rc)
		unwatch(a);
	return rc;
}

void rwk_ca_watch_again(struct rwk_adapter *a)
{
	if (!a->sleep.watching)
		return;
	unwatch(a);
	watch(a);
}

/* When there is something to do, if no packet comes. */
static rwk_time next_time(const struct rwk_adapter *a)
{
	rwk_time next = a->next, full = a->now + (a->sleep.full ? LINK_FULL : STREAM_FULL);

	if (!rwk_list_empty(&a->due) && full < next)
		next = full;
	return a->sleep.unread || next < a->now ? a->now : next;
}

void rwk_ca_set_alarm(struct rwk_adapter *a)
{
	rwk_time at = next_time(a), in = at - a->now;
	struct itimerspec when = {{0, 0}, {0, 0}};

	if (a->sleep.epoll < 0 || at == a->sleep.alarm)
		return;
	a->sleep.alarm = at;
	if (at != RWK_NEVER) {
		when.it_value.tv_sec = (time_t)(in / SECOND);
		when.it_value.tv_nsec = (long)(in % SECOND) + !in; /* all zero would stop it */
	}
	timerfd_settime(a->sleep.timer, 0, &when, NULL);
}

void rwk_ca_call_back(struct rwk_adapter *a)
{
	if (a->sleep.calling)
		return;
	a->sleep.calling = true;
	while (!rwk_list_empty(&a->sleep.called)) {
		struct sleeper *s = rwk_container_of(a->sleep.called.next, struct sleeper, called);

		if (!--s->calls)
			rwk_list_remove(&s->called);
		if (s->call_back) /* it may have been taken away since the sleeper was woken */
			s->call_back(s);
	}
	a->sleep.calling = false;
}

/* ---- a sleeper ---- */

void rwk_ca_open_sleeper(struct sleeper *s, struct rwk_adapter *a)
{
	*s = (struct sleeper){.fd = -1, .bell = -1, .adapter = a};
	rwk_list_init(&s->link);
	rwk_list_init(&s->called);
}

static void enter(struct rwk_list *list, struct sleeper *s)
{
	rwk_list_remove(&s->link);
	rwk_list_append(list, &s->link);
}

static struct sleeper *oldest(const struct rwk_list *list)
{
	return rwk_container_of(list->next, struct sleeper, link);
}

/* There is a place for it: 0 or negative errno. */
static int begin_to_hear(struct sleeper *s)
{
	struct sleep *of = &s->adapter->sleep;
	int rc = add_fd(s->fd, of->epoll);

	if (rc)
		return rc;
	s->hears = true;
	of->hear_count++;
	return 0;
}

static void end_to_hear(struct sleeper *s)
{
	struct sleep *of = &s->adapter->sleep;

	if (!s->hears)
		return;
	epoll_ctl(s->fd, EPOLL_CTL_DEL, of->epoll, NULL);
	s->hears = false;
	of->hear_count--;
	rwk_list_remove(&s->link);
	if (s->armed)
		rwk_list_append(&of->deaf, &s->link);
}

/* It has a descriptor. The last to be armed, if it is: 0 or negative errno. */
static int hear(struct sleeper *s)
{
	struct sleep *of = &s->adapter->sleep;
	int rc = 0;

	if (!s->hears && of->hear_count == HEARING_MAX)
		end_to_hear(oldest(rwk_list_empty(&of->idle) ? &of->hear : &of->idle));
	if (!s->hears)
		rc = begin_to_hear(s);
	if (!rc)
		enter(s->armed ? &of->hear : &of->idle, s);
	return rc;
}

static void leave_armed(struct sleeper *s)
{
	struct rwk_adapter *a = s->adapter;

	if (!s->armed)
		return;
	s->armed = false;
	rwk_list_remove(&s->link);
	if (s->hears)
		rwk_list_append(&a->sleep.idle, &s->link);
	if (!--a->sleep.armed)
		unwatch(a);
}

/* What it sleeps for has come, or it cannot sleep. */
static void ring(struct sleeper *s)
{
	leave_armed(s);
	s->rung = true;
	if (s->bell >= 0)
		rwk_bell_ring(s->bell);
	if (s->call_back && !s->calls++)
		rwk_list_append(&s->adapter->sleep.called, &s->called);
}

/* Places that are not needed, or free, are for the deaf. Who cannot hear wakes up instead, and will see that. */
static void pass_hearing_on(struct sleep *of)
{
	while (!rwk_list_empty(&of->deaf) && (of->hear_count < HEARING_MAX || !rwk_list_empty(&of->idle))) {
		struct sleeper *last = rwk_container_of(of->deaf.prev, struct sleeper, link);

		if (of->hear_count == HEARING_MAX)
			end_to_hear(oldest(&of->idle));
		if (begin_to_hear(last))
			ring(last);
		else
			enter(of->hear.next, last); /* before those who were armed after it */
	}
}

void rwk_ca_close_sleeper(struct sleeper *s)
{
	struct sleep *of = &s->adapter->sleep;

	rwk_ca_before_arm(s);
	end_to_hear(s);
	pass_hearing_on(of);
	rwk_list_remove(&s->called); /* nobody is there to be called */
	close_fd(&s->fd);
	close_fd(&s->bell);
}

int rwk_ca_sleeper_fd(struct sleeper *s)
{
	struct rwk_adapter *a = s->adapter;
	int rc;

	if (s->fd >= 0)
		return s->fd;
	rc = open_fds(&a->sleep);
	if (rc)
		return rc;
	s->fd = epoll_create1(EPOLL_CLOEXEC);
	s->bell = eventfd(s->rung, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = s->fd < 0 || s->bell < 0 ? -errno : add_fd(s->fd, s->bell);
	if (!rc && (s->armed || a->sleep.hear_count < HEARING_MAX))
		rc = hear(s);
	if (!rc && a->sleep.armed)
		rc = watch(a);
	if (rc) {
		end_to_hear(s);
		rwk_list_remove(&s->link);
		close_fd(&s->fd);
		close_fd(&s->bell);
		pass_hearing_on(&a->sleep);
		return rc;
	}
	if (a->sleep.armed)
		rwk_ca_set_alarm(a);
	return s->fd;
}

void rwk_ca_before_arm(struct sleeper *s)
{
	leave_armed(s);
	if (s->rung && s->bell >= 0)
		rwk_bell_quiet(s->bell);
	s->rung = false;
}

void rwk_ca_disarm(struct sleeper *s)
{
	rwk_ca_before_arm(s);
	pass_hearing_on(&s->adapter->sleep);
}

int rwk_ca_arm(struct sleeper *s)
{
	struct rwk_adapter *a = s->adapter;

	if (a->link->ops->arm(a->link) || (a->streams && a->streams->ops->arm(a->streams)))
		return -EAGAIN;
	a->sleep.unread = false;
	if (next_time(a) <= a->now || watch(a))
		return -EAGAIN; /* who cannot sleep polls */
	s->armed = true;
	a->sleep.armed++;
	if (s->fd >= 0 && hear(s))
		return -EAGAIN;
	rwk_ca_set_alarm(a);
	return 0;
}

void rwk_ca_wake(struct sleeper *s)
{
	ring(s);
	pass_hearing_on(&s->adapter->sleep);
}

/* ---- time ---- */

rwk_time rwk_ca_deadline(uint64_t timeout_ns)
{
	rwk_time now = rwk_clock_now();

	return timeout_ns < RWK_NEVER - now ? now + timeout_ns : RWK_NEVER;
}

int rwk_ca_sleep(int fd, bool asleep, rwk_time until)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	rwk_time now = rwk_clock_now(), left;
	struct timespec t;

	if (now >= until)
		return -ETIMEDOUT;
	left = asleep ? until - now : 0;
	t = (struct timespec){.tv_sec = (time_t)(left / SECOND), .tv_nsec = (long)(left % SECOND)};
	return ppoll(&p, 1, &t, NULL) < 0 ? -errno : 0;
}

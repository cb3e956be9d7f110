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
 * epoll in their sets; those who asked first, but while some are armed one of these does. The others have the bell
 * alone, which is rung by the work of those who hear. All of these are levels, not edges: what comes between arming and
 * sleeping makes the descriptor readable just as well, so no wake-up is lost.
 *
 * The links' descriptors are in the set only while somebody is armed: a socket that is watched costs whoever sends to
 * it a microsecond for each packet.
 */
#define _GNU_SOURCE /* ppoll */
#include "channel_adapter/internal.h"

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
	rwk_list_init(&s->armed);
	rwk_list_init(&s->hear);
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
	rwk_list_init(&s->hear);
	rwk_list_init(&s->called);
}

static int begin_to_hear(struct sleeper *s)
{
	struct sleep *of = &s->adapter->sleep;
	int rc = add_fd(s->fd, of->epoll);

	if (rc)
		return rc;
	s->hears = true;
	rwk_list_append(&of->hear, &s->hear);
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
	rwk_list_remove(&s->hear);
	of->hear_count--;
}

static bool somebody_hears(const struct sleep *of)
{
	return !rwk_list_empty(&of->armed) && rwk_container_of(of->armed.next, struct sleeper, link)->hears;
}

/* Nobody who is armed hears. One that is to hear, in the place of another if need be: 0 or negative errno. */
static int hear_instead(struct sleeper *s)
{
	struct sleep *of = &s->adapter->sleep;

	if (of->hear_count == HEARING_MAX)
		end_to_hear(rwk_container_of(of->hear.next, struct sleeper, hear));
	return begin_to_hear(s);
}

/* Also one that is armed already, and may hear by now. */
static void enter_armed(struct sleeper *s)
{
	struct rwk_list *armed = &s->adapter->sleep.armed;

	s->armed = true;
	rwk_list_remove(&s->link);
	rwk_list_append(s->hears ? armed->next : armed, &s->link);
}

void rwk_ca_close_sleeper(struct sleeper *s)
{
	rwk_ca_disarm(s);
	end_to_hear(s);
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
	if (!rc && a->sleep.hear_count < HEARING_MAX)
		rc = begin_to_hear(s);
	else if (!rc && s->armed && !somebody_hears(&a->sleep))
		rc = hear_instead(s);
	if (!rc && !rwk_list_empty(&a->sleep.armed))
		rc = watch(a);
	if (rc) {
		end_to_hear(s);
		close_fd(&s->fd);
		close_fd(&s->bell);
		return rc;
	}
	if (s->armed)
		enter_armed(s);
	if (!rwk_list_empty(&a->sleep.armed))
		rwk_ca_set_alarm(a);
	return s->fd;
}

/* One of those who stay armed is to hear: who cannot wakes up instead, and will see that it cannot sleep. */
static void pass_hearing_on(struct sleep *of)
{
	struct rwk_list *next;

	for (struct rwk_list *l = of->armed.next; l != &of->armed && !somebody_hears(of); l = next) {
		struct sleeper *s = rwk_container_of(l, struct sleeper, link);

		next = l->next;
		if (s->fd < 0)
			continue;
		if (hear_instead(s))
			rwk_ca_wake(s);
		else
			enter_armed(s);
	}
}

static void leave_armed(struct sleeper *s)
{
	struct rwk_adapter *a = s->adapter;
	bool heard = s->armed && s->hears;

	s->armed = false;
	rwk_list_remove(&s->link);
	if (rwk_list_empty(&a->sleep.armed))
		unwatch(a);
	else if (heard)
		pass_hearing_on(&a->sleep);
}

void rwk_ca_disarm(struct sleeper *s)
{
	eventfd_t count;

	leave_armed(s);
	if (s->rung && s->bell >= 0)
		eventfd_read(s->bell, &count);
	s->rung = false;
}

int rwk_ca_arm(struct sleeper *s)
{
	struct rwk_adapter *a = s->adapter;

	if (a->link->ops->arm(a->link) || (a->streams && a->streams->ops->arm(a->streams)))
		return -EAGAIN;
	a->sleep.unread = false;
	if (next_time(a) <= a->now || watch(a))
		return -EAGAIN; /* who cannot sleep polls */
	if (s->fd >= 0 && !s->hears && !somebody_hears(&a->sleep) && hear_instead(s))
		return -EAGAIN;
	enter_armed(s);
	rwk_ca_set_alarm(a);
	return 0;
}

void rwk_ca_wake(struct sleeper *s)
{
	leave_armed(s);
	s->rung = true;
	if (s->bell >= 0)
		eventfd_write(s->bell, 1);
	if (s->call_back && !s->calls++)
		rwk_list_append(&s->adapter->sleep.called, &s->called);
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

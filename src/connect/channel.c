/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event channels: what is done when one is polled. All sockets of listeners and of connections that are being made are
 * in one epoll set, which is the channel's descriptor; and with them the adapter's streams, a timer that is set to the
 * earliest deadline, and the bell, for what no socket tells of: events that wait, streams with more to deliver.
 *
 * `due` is never later than the earliest deadline, but may be earlier: then it is found anew.
 */
#define _GNU_SOURCE /* syscall */
#include "connect/internal.h"

#include "base/bell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS 32

int rwk_cm_watch(struct rwk_event_channel *ch, int fd, void *source, unsigned events, unsigned before)
{
	struct epoll_event e = {.events = events, .data.ptr = source};
	int what = !before ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	return events != before && epoll_ctl(ch->epoll, what, fd, &e) ? -errno : 0;
}

static void set_timer(struct rwk_event_channel *ch)
{
	struct itimerspec t = {.it_value = {0, 0}};

	if (ch->due != NEVER) {
		t.it_value.tv_sec = (time_t)(ch->due / 1000000000u);
		t.it_value.tv_nsec = (long)(ch->due % 1000000000u);
	}
	timerfd_settime(ch->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

void rwk_cm_due(struct rwk_event_channel *ch, rwk_time due)
{
	if (due >= ch->due)
		return;
	ch->due = due;
	set_timer(ch);
}

void rwk_cm_ring(struct rwk_event_channel *ch)
{
	if (!ch->rung)
		rwk_bell_ring(ch->bell);
	ch->rung = true;
}

static void quiet_bell(struct rwk_event_channel *ch)
{
	if (!ch->rung || !rwk_list_empty(&ch->ready) || !rwk_list_empty(&ch->lost))
		return;
	rwk_bell_quiet(ch->bell);
	ch->rung = false;
}

void rwk_cm_free_dead(struct rwk_event_channel *ch)
{
	struct rwk_list *n;

	while ((n = rwk_list_pop(&ch->dead)))
		rwk_cm_free(rwk_container_of(n, struct rwk_connection, all));
}

static void tick(struct rwk_event_channel *ch)
{
	rwk_time now = rwk_clock_now();
	struct rwk_list *next;

	if (now < ch->due)
		return;
	ch->due = NEVER;
	for (struct rwk_list *n = ch->listeners.next; n != &ch->listeners; n = n->next)
		rwk_cm_listener_due(rwk_container_of(n, struct rwk_listener, all), now);
	for (struct rwk_list *n = ch->connections.next; n != &ch->connections; n = next) {
		struct rwk_connection *c = rwk_container_of(n, struct rwk_connection, all);

		next = n->next;
		if (c->due <= now)
			rwk_cm_expired(c);
		else if (c->due < ch->due)
			ch->due = c->due;
	}
	set_timer(ch);
}

/*
 * Those who are in before those who come: a client that was accepted, and connects once more at once, is established
 * before it asks again, in whatever order the kernel found that out.
 */
static void take_events(const struct epoll_event *event, int n)
{
	for (int i = 0; i < n; i++) {
		enum source *source = event[i].data.ptr;

		if (*source == CONNECTION)
			rwk_cm_event(rwk_container_of(source, struct rwk_connection, source));
	}
	for (int i = 0; i < n; i++) {
		enum source *source = event[i].data.ptr;

		if (*source == LISTENER)
			rwk_cm_accept(rwk_container_of(source, struct rwk_listener, source));
	}
}

/* Before the events of their sockets: there is nothing to go on with. */
static void bury_lost(struct rwk_event_channel *ch)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(&ch->lost))) {
		struct rwk_connection *c = rwk_container_of(l, struct rwk_connection, lost);

		rwk_cm_over(c, RWK_CONNECTION_DISCONNECTED, c->status);
	}
}

static void work(struct rwk_event_channel *ch)
{
	struct epoll_event event[EVENTS];
	int n;

	rwk_ca_work(ch->adapter);
	bury_lost(ch);
	n = epoll_wait(ch->epoll, event, EVENTS, 0);
	take_events(event, n);
	if (ch->due != NEVER)
		tick(ch);
	rwk_cm_free_dead(ch);
}

static void fill_private(const struct rwk_connection *c, struct rwk_connection_event *e)
{
	e->private_length = c->theirs.private_length;
	if (e->private_length)
		memcpy(e->private_data, c->theirs.private_data, e->private_length);
}

static void fill_event(struct rwk_connection *c, enum rwk_connection_event_type type, struct rwk_connection_event *e)
{
	memset(e, 0, offsetof(struct rwk_connection_event, private_data));
	e->type = type;
	e->connection = c;
	e->user = c->attr.user;
	memcpy(e->peer_ip, c->peer_ip, 16);
	e->peer_port = c->peer_port;
	if (type == RWK_CONNECTION_REQUEST) {
		e->listener = c->listener;
		e->service = c->theirs.service;
		e->transport = c->theirs.transport;
		e->deferred = c->theirs.deferred;
	}
	if (type >= RWK_CONNECTION_REJECTED)
		e->status = c->status;
	if (c->answer == 1u << type)
		fill_private(c, e);
}

/* The first event of the first connection that has one. */
static int give(struct rwk_event_channel *ch, struct rwk_connection_event *e)
{
	struct rwk_connection *c;
	unsigned type;

	if (rwk_list_empty(&ch->ready))
		return 0;
	c = rwk_container_of(ch->ready.next, struct rwk_connection, ready);
	type = (unsigned)__builtin_ctz(c->events);
	c->events &= c->events - 1;
	rwk_list_remove(&c->ready);
	if (c->events)
		rwk_list_append(&ch->ready, &c->ready);
	fill_event(c, (enum rwk_connection_event_type)type, e);
	if (!c->known)
		ch->children++;
	c->known = true;
	return 1;
}

int rwk_event_channel_poll(struct rwk_event_channel *ch, struct rwk_connection_event *event)
{
	int n;

	rwk_ca_use(ch, RWK_CA_EVENT_CHANNEL, __func__);
	work(ch);
	n = give(ch, event);
	quiet_bell(ch);
	if (rwk_ca_streams_busy(ch->adapter))
		rwk_cm_ring(ch);
	return n;
}

static int open_descriptors(struct rwk_event_channel *ch)
{
	int rc;

	ch->epoll = epoll_create1(EPOLL_CLOEXEC);
	ch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	ch->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ch->epoll < 0 || ch->timer < 0 || ch->bell < 0)
		return -errno;
	rc = rwk_ca_streams_open(ch->adapter);
	if (!rc)
		rc = rwk_cm_watch(ch, ch->timer, &ch->timer_source, EPOLLIN, 0);
	if (!rc)
		rc = rwk_cm_watch(ch, ch->bell, &ch->bell_source, EPOLLIN, 0);
	if (!rc)
		rc = rwk_cm_watch(ch, rwk_ca_streams_fd(ch->adapter), &ch->streams_source, EPOLLIN, 0);
	return rc;
}

static void free_channel(struct rwk_event_channel *ch)
{
	if (ch->bell >= 0)
		close(ch->bell);
	if (ch->timer >= 0)
		close(ch->timer);
	if (ch->epoll >= 0)
		close(ch->epoll);
	rwk_ca_free(ch);
}

int rwk_event_channel_create(struct rwk_adapter *a, struct rwk_event_channel **out)
{
	struct rwk_event_channel *ch;
	int rc;

	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	*ch = (struct rwk_event_channel){.kind = RWK_CA_EVENT_CHANNEL,
		.adapter = a,
		.due = NEVER,
		.timer_source = TIMER,
		.bell_source = BELL,
		.streams_source = STREAMS};
	rwk_list_init(&ch->listeners);
	rwk_list_init(&ch->connections);
	rwk_list_init(&ch->ready);
	rwk_list_init(&ch->lost);
	rwk_list_init(&ch->dead);
	rc = open_descriptors(ch);
	if (rc) {
		free_channel(ch);
		return rc;
	}
	rwk_ca_count_channels(a, 1);
	*out = ch;
	return 0;
}

int rwk_event_channel_destroy(struct rwk_event_channel *ch)
{
	rwk_ca_use(ch, RWK_CA_EVENT_CHANNEL, __func__);
	if (ch->children)
		return -EBUSY;
	rwk_ca_count_channels(ch->adapter, -1);
	free_channel(ch);
	return 0;
}

int rwk_event_channel_fd(const struct rwk_event_channel *ch)
{
	rwk_ca_use(ch, RWK_CA_EVENT_CHANNEL, __func__);
	return ch->epoll;
}

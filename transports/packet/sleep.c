/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port's sleep: one descriptor that tells of packets and of what the clock will demand. It is an epoll set with a
 * timer in it, and the links' descriptors while the port is armed.
 */
#include "packet/channel.h"
#include "packet/port.h"
#include "packet/streams.h"

#include "base/nap.h"
#include "machine.h"
#include "shared_rc/shared_rc.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/** Is that way left to who polls? */
static bool is_left(const struct rwk_port *port, int way)
{
	return way == RWK_WAY_DOMAIN && port->left_since;
}

/** What comes for this process a sibling that polls puts into its inbox, and rings. */
static void leave_to_sibling(struct rwk_port *port, rwk_time now)
{
	if (!port->view || !rwk_src_sibling_polls(port->view, now))
		port->left_since = 0;
	else if (!port->left_since)
		port->left_since = now;
}

/**
 * Puts the links' descriptors among those that a sleeper waits for, or takes them out: a socket that is watched costs
 * whoever sends to it a microsecond for each packet.
 */
static int watch_links(struct rwk_port *port, int operation)
{
	int rc = 0;

	for (int way = 0; way < RWK_WAYS; way++) {
		/* Of all who sleep on a domain's socket one is enough: it takes what comes, and rings for the others.
		 */
		struct epoll_event e = {.events = EPOLLIN | (way == RWK_WAY_DOMAIN ? EPOLLEXCLUSIVE : 0u)};
		struct rwk_link *l = port->link[way];

		if (operation == EPOLL_CTL_ADD && is_left(port, way))
			continue;
		for (int i = 0, fd; l && (fd = l->ops->wait_fd(l, i)) >= 0; i++) {
			if (epoll_ctl(port->epoll, operation, fd, &e) && errno != EEXIST && errno != ENOENT)
				rc = -errno;
		}
	}
	return rc;
}

void rwk_packet_disarm(struct rwk_port *port)
{
	port->armed = false;
	port->woken_epoch = port->epoch;
	leave_to_sibling(port, rwk_packet_now(port));
	port->stream_at = 0; /* it may be what has woken us */
	watch_links(port, EPOLL_CTL_DEL);
}

rwk_time rwk_packet_next(const struct rwk_port *port)
{
	rwk_time at = port->deadline < port->seek_at ? port->deadline : port->seek_at;
	rwk_time evidence = rwk_packet_evidence_next(port);

	for (struct rwk_list *l = port->connecting.next; l != &port->connecting; l = l->next) {
		const struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, timed);

		if (ch->ask_at < at)
			at = ch->ask_at;
	}
	return evidence < at ? evidence : at;
}

/** When the domain is to be looked at, though nobody rings, if that is before `at`. */
static rwk_time domain_next(const struct rwk_port *port, rwk_time at, rwk_time now)
{
	if (!port->view)
		return at;
	if (port->left_since && now + rwk_nap(now - port->left_since) < at)
		at = now + rwk_nap(now - port->left_since);
	/* Who has put something into our inbox may have died before it rang: nobody tells of that but the clock. */
	if (port->bury_at < at)
		at = port->bury_at;
	if (port->attend_at < at && port->ways->expects && port->ways->expects(&port->domain))
		at = port->attend_at;
	return at;
}

int rwk_packet_arm(struct rwk_port *port)
{
	struct itimerspec when = {{0, 0}, {0, 0}};
	rwk_time at = rwk_packet_next(port), now;

	if (!rwk_list_empty(&port->dirty) || !rwk_list_empty(&port->dirty_initiators) || port->doomed)
		return -EAGAIN;
	if (port->joining || (port->view && rwk_src_sleep(port->view)))
		return -EAGAIN;
	port->now = 0;
	now = rwk_packet_now(port);
	leave_to_sibling(port, now);
	for (int i = 0; i < RWK_WAYS; i++) {
		if (port->link[i] && !is_left(port, i) && port->link[i]->ops->arm(port->link[i]))
			return -EAGAIN;
	}
	if (at <= now)
		return -EAGAIN;
	at = domain_next(port, at, now);
	if (at <= now)
		at = now + 1;
	if (at != RWK_NEVER) {
		when.it_value.tv_sec = (time_t)((at - now) / 1000000000u);
		when.it_value.tv_nsec = (long)((at - now) % 1000000000u);
	}
	timerfd_settime(port->timer, 0, &when, NULL);
	port->armed = true;
	return watch_links(port, EPOLL_CTL_ADD) ? -EAGAIN : 0; /* who cannot sleep polls */
}

int rwk_packet_wait_fd(struct rwk_port *port)
{
	return port->epoll;
}

int rwk_packet_open_waiting(struct rwk_port *port)
{
	struct epoll_event e = {.events = EPOLLIN};
	int rc;

	port->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (port->timer < 0)
		return -errno;
	port->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (port->epoll < 0) {
		rc = -errno;
		goto close_timer;
	}
	if (!epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->timer, &e))
		return 0;
	rc = -errno;
	close(port->epoll);
close_timer:
	close(port->timer);
	return rc;
}

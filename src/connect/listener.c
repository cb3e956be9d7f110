/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners. Who connects is a stranger until his whole REQUEST is here: he has `timeout` for that, and of more than
 * `backlog` of them at once the oldest is hung up on. Then the client is asked, and has as long to answer.
 *
 * A listener for which there is no descriptor left is deaf for a moment, lest it be asked again at once.
 */
#include "connect/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TIMEOUT_MS 10000u
#define BACKLOG    128u
#define A_TURN     32 /* that are accepted at once */
#define DEAF       (100 * MS)
#define NOTHING    EPOLLERR /* comes unasked: to listen again takes no memory, as the socket stays in the set */

static struct rwk_connection *visitor_of(struct rwk_list *n)
{
	return rwk_container_of(n, struct rwk_connection, visitor);
}

void rwk_cm_leave_listener(struct rwk_connection *c)
{
	struct rwk_listener *l = c->listener;

	if (!l)
		return;
	if (c->state == STRANGER)
		l->stranger_count--;
	else
		l->asked--;
	rwk_list_remove(&c->visitor);
	c->listener = NULL;
}

static void silent(struct rwk_connection *c)
{
	c->listener->counters.silent++;
	rwk_cm_drop(c);
}

static void welcome(struct rwk_listener *l, int fd, const uint8_t ip[16], uint16_t port)
{
	struct rwk_connection *c;

	if (l->stranger_count == l->backlog)
		silent(visitor_of(l->strangers.next));
	c = rwk_cm_new(l->channel, STRANGER, fd);
	if (!c) {
		l->counters.refused++;
		close(fd);
		return;
	}
	c->listener = l;
	memcpy(c->peer_ip, ip, 16);
	c->peer_port = port;
	l->stranger_count++;
	rwk_list_append(&l->strangers, &c->visitor);
	rwk_cm_set_due(c, rwk_clock_now() + l->timeout);
	if (rwk_cm_watch_socket(c, EPOLLIN)) {
		l->counters.refused++;
		rwk_cm_drop(c);
		return;
	}
	rwk_cm_event(c); /* it may be here already */
}

void rwk_cm_accept(struct rwk_listener *l)
{
	uint8_t ip[16];
	uint16_t port;

	for (int i = 0; i < A_TURN; i++) {
		int fd = rwk_socket_accept(l->fd, ip, &port);

		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
			l->deaf_until = rwk_clock_now() + DEAF;
			rwk_cm_watch(l->channel, l->fd, &l->source, NOTHING, EPOLLIN);
			rwk_cm_due(l->channel, l->deaf_until);
		}
		if (fd == -EAGAIN || l->deaf_until != NEVER)
			return;
		if (fd < 0) /* gone before it was taken */
			continue;
		l->counters.connected++;
		welcome(l, fd, ip, port);
	}
}

void rwk_cm_listener_due(struct rwk_listener *l, rwk_time now)
{
	if (l->deaf_until <= now) {
		l->deaf_until = NEVER;
		rwk_cm_watch(l->channel, l->fd, &l->source, EPOLLIN, NOTHING);
	} else if (l->deaf_until < l->channel->due) {
		l->channel->due = l->deaf_until;
	}
}

void rwk_cm_request(struct rwk_connection *c)
{
	struct rwk_listener *l = c->listener;

	if (l->asked == l->backlog) {
		l->counters.refused++;
		rwk_cm_drop(c);
		return;
	}
	l->counters.requests++;
	l->stranger_count--;
	l->asked++;
	rwk_list_remove(&c->visitor);
	rwk_list_append(&l->asking, &c->visitor);
	c->state = ASKED;
	rwk_cm_await(c, l->patient, l->timeout);
	rwk_cm_watch_socket(c, EPOLLRDHUP); /* what he says before he is answered stays where it is */
	rwk_cm_tell(c, RWK_CONNECTION_REQUEST);
}

int rwk_listen(struct rwk_event_channel *ch, const struct rwk_listen_attr *attr, struct rwk_listener **out)
{
	static const uint8_t none[16];
	bool own = !memcmp(attr->ip, none, sizeof(none));
	struct rwk_listener *l;
	int rc;

	rwk_ca_use(ch, RWK_CA_EVENT_CHANNEL, __func__);
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct rwk_listener){.kind = RWK_CA_LISTENER,
		.source = LISTENER,
		.channel = ch,
		.deaf_until = NEVER,
		.timeout = (attr->timeout_ms ? attr->timeout_ms : TIMEOUT_MS) * MS,
		.patient = attr->patient,
		.backlog = attr->backlog ? attr->backlog : BACKLOG};
	rwk_list_init(&l->strangers);
	rwk_list_init(&l->asking);
	rc = l->fd = rwk_socket_listen(own ? rwk_ca_adapter_ip(ch->adapter) : attr->ip, attr->port, &l->port);
	if (rc < 0)
		goto free_listener;
	rc = rwk_cm_watch(ch, l->fd, &l->source, EPOLLIN, 0);
	if (rc)
		goto close_socket;
	rwk_list_append(&ch->listeners, &l->all);
	ch->children++;
	*out = l;
	return 0;

close_socket:
	close(l->fd);
free_listener:
	free(l);
	return rc;
}

uint16_t rwk_listener_port(const struct rwk_listener *l)
{
	rwk_ca_use(l, RWK_CA_LISTENER, __func__);
	return l->port;
}

void rwk_listener_get_counters(const struct rwk_listener *l, struct rwk_listener_counters *c)
{
	rwk_ca_use(l, RWK_CA_LISTENER, __func__);
	*c = l->counters;
}

void rwk_listener_close(struct rwk_listener *l)
{
	struct rwk_event_channel *ch = l->channel;
	struct rwk_list *n;

	rwk_ca_use(l, RWK_CA_LISTENER, __func__);
	while ((n = rwk_list_pop(&l->strangers)))
		rwk_cm_drop(visitor_of(n));
	while ((n = rwk_list_pop(&l->asking))) {
		struct rwk_connection *c = visitor_of(n);

		if (c->known)
			rwk_cm_leave_listener(c);
		else
			rwk_cm_drop(c);
	}
	rwk_cm_free_dead(ch);
	rwk_cm_watch(ch, l->fd, &l->source, 0, EPOLLIN);
	/* Not by closing alone: while a forked child holds the socket too, others would come in there, and wait. */
	shutdown(l->fd, SHUT_RDWR);
	close(l->fd);
	rwk_list_remove(&l->all);
	ch->children--;
	rwk_ca_free(l);
}

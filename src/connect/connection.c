/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection's way: its messages, one function a state, its end. In the states in which a message is awaited its
 * bytes are read one message at a time, exactly: what is behind the last one is left to whoever reads the socket then.
 */
#include "connect/internal.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* s: a peer's kernel is asked after so much silence, each, and so often in vain. */
#define KEEP_IDLE     5
#define KEEP_INTERVAL 1
#define KEEP_COUNT    5
#define KEPT          (KEEP_IDLE + KEEP_INTERVAL * KEEP_COUNT)

/*
 * Beginning and end.
 */

static void on_ended(struct rwk_ca_stream *s, int status)
{
	struct rwk_connection *c = rwk_container_of(s, struct rwk_connection, stream);
	bool failed = !rwk_list_empty(&c->lost); /* that is why, then */

	rwk_cm_over(c, RWK_CONNECTION_DISCONNECTED, failed ? c->status : status);
}

/* Nothing may be done about it from here. */
static void on_failed(struct rwk_ca_stream *s, int err)
{
	struct rwk_connection *c = rwk_container_of(s, struct rwk_connection, stream);

	c->status = err;
	rwk_list_remove(&c->lost);
	rwk_list_append(&c->channel->lost, &c->lost);
	rwk_cm_ring(c->channel);
}

struct rwk_connection *rwk_cm_new(struct rwk_event_channel *ch, enum state state, int fd)
{
	struct rwk_connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = RWK_CA_CONNECTION;
	c->source = CONNECTION;
	c->state = state;
	c->channel = ch;
	c->fd = fd;
	c->due = NEVER;
	c->stream.ended = on_ended;
	c->stream.failed = on_failed;
	rwk_list_init(&c->visitor);
	rwk_list_init(&c->ready);
	rwk_list_init(&c->lost);
	rwk_list_append(&ch->connections, &c->all);
	return c;
}

void rwk_cm_free(struct rwk_connection *c)
{
	rwk_list_remove(&c->all);
	rwk_list_remove(&c->ready);
	rwk_list_remove(&c->lost);
	rwk_ca_free(c);
}

void rwk_cm_set_due(struct rwk_connection *c, rwk_time due)
{
	c->due = due;
	rwk_cm_due(c->channel, due);
}

/*
 * So long may what we say stay unacknowledged; 0: as long as the kernel likes, minutes. Not behind a program's own
 * bytes, a GREETING: they may fill the window until the peer's program reads them.
 */
static void set_patience(struct rwk_connection *c, int seconds)
{
	if (c->state != GREETING && c->mine.type != RWK_CM_GREETING)
		rwk_socket_set(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * seconds);
}

/* The kernel asks a peer that is silent, but only while all it was sent is acknowledged. */
void rwk_cm_await(struct rwk_connection *c, bool patient, rwk_time timeout)
{
	if (patient) {
		rwk_socket_keep_alive(c->fd, KEEP_IDLE, KEEP_INTERVAL, KEEP_COUNT);
		set_patience(c, KEPT);
	}
	rwk_cm_set_due(c, patient ? NEVER : rwk_clock_now() + timeout);
}

int rwk_cm_watch_socket(struct rwk_connection *c, unsigned events)
{
	int rc = rwk_cm_watch(c->channel, c->fd, &c->source, events, c->watched);

	if (!rc)
		c->watched = events;
	return rc;
}

void rwk_cm_tell(struct rwk_connection *c, enum rwk_connection_event_type type)
{
	c->events |= 1u << type;
	if (rwk_list_empty(&c->ready))
		rwk_list_append(&c->channel->ready, &c->ready);
	rwk_cm_ring(c->channel);
}

/* Not by closing alone: while a forked child holds the socket too, that would tell the peer nothing. */
static void close_socket(struct rwk_connection *c)
{
	if (c->fd < 0)
		return;
	rwk_cm_watch_socket(c, 0);
	shutdown(c->fd, SHUT_RDWR);
	close(c->fd);
	c->fd = -1;
}

/* Nothing is left but what is to be told of it. */
static void end(struct rwk_connection *c)
{
	rwk_cm_leave_listener(c);
	close_socket(c);
	c->due = NEVER;
	rwk_list_remove(&c->lost);
	rwk_cm_give_back_qp(c);
	rwk_ca_stream_leave(&c->stream);
}

void rwk_cm_over(struct rwk_connection *c, enum rwk_connection_event_type type, int status)
{
	bool asked = c->events & 1u << RWK_CONNECTION_REQUEST;

	if (asked) { /* of whom the client never heard */
		rwk_cm_drop(c);
		return;
	}
	end(c);
	c->state = OVER;
	c->status = status;
	rwk_cm_tell(c, type);
}

void rwk_cm_drop(struct rwk_connection *c)
{
	end(c);
	c->state = DEAD;
	rwk_list_remove(&c->ready);
	rwk_list_remove(&c->all);
	rwk_list_append(&c->channel->dead, &c->all);
}

void rwk_connection_destroy(struct rwk_connection *c)
{
	rwk_ca_use(c, RWK_CA_CONNECTION, __func__);
	end(c);
	c->channel->children--;
	rwk_cm_free(c);
}

/*
 * Messages.
 */

/* The other end has hung up, has said what it may not say, or cannot be reached. */
static void broken(struct rwk_connection *c, int err)
{
	switch (c->state) {
	case STRANGER:
		if (err == -EPROTO || err == -EPROTONOSUPPORT)
			c->listener->counters.strangers++;
		else
			c->listener->counters.silent++;
		rwk_cm_drop(c);
		return;
	case CONNECTING:
	case REQUESTING:
		rwk_cm_over(c, RWK_CONNECTION_UNREACHABLE, err);
		return;
	default:
		rwk_cm_over(c, RWK_CONNECTION_DISCONNECTED, err);
		return;
	}
}

void rwk_cm_expired(struct rwk_connection *c)
{
	if (c->state == STRANGER)
		broken(c, -ETIMEDOUT);
	else
		rwk_cm_over(c, RWK_CONNECTION_TIMED_OUT, -ETIMEDOUT);
}

/* All that is to go has gone: 0. -EAGAIN: not yet; else it never will, which reading will say, too, where one reads. */
static int send_rest(struct rwk_connection *c)
{
	ssize_t n = 0;
	int err = EAGAIN;

	if (c->out_at < c->out_end)
		n = send(c->fd, c->out + c->out_at, c->out_end - c->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EINTR && errno != ENOBUFS)
		err = errno == EPIPE ? ECONNRESET : errno;
	if (n > 0)
		c->out_at += (size_t)n;
	rwk_cm_watch_socket(c, EPOLLIN | (c->out_at < c->out_end ? EPOLLOUT : 0u));
	return c->out_at < c->out_end ? -err : 0;
}

void rwk_cm_send(struct rwk_connection *c, enum rwk_cm_type type)
{
	struct rwk_cm bare = {.type = type,
		.private_length = type == RWK_CM_READY ? 0 : c->mine.private_length,
		.private_data = c->mine.private_data};
	bool terms = type != RWK_CM_READY && type != RWK_CM_REJECT;

	c->mine.type = type;
	c->out_at = 0;
	c->out_end = rwk_cm_pack(terms ? &c->mine : &bare, c->out);
	send_rest(c);
}

/* All that had to be said was said: the transition to RDMA mode, now or later (S4-9). */
static void confirm(struct rwk_connection *c)
{
	int rc = send_rest(c);

	if (rc == -EAGAIN)
		return;
	if (rc) { /* nobody reads any more who would find it */
		broken(c, rc);
		return;
	}
	/* By UDP only what has been said may be on its way still, which keeps the kernel from asking. */
	set_patience(c, c->mine.transport == RWK_TRANSPORT_UDP ? KEPT : 0);
	if (c->mine.deferred) {
		rwk_cm_watch_socket(c, 0);
		c->state = STREAMING;
		rwk_cm_set_due(c, NEVER);
		rwk_cm_tell(c, RWK_CONNECTION_STREAMING);
		return;
	}
	rc = rwk_cm_enter(c);
	if (rc)
		rwk_cm_over(c, RWK_CONNECTION_DISCONNECTED, rc);
}

static void on_answer(struct rwk_connection *c, const struct rwk_cm *m)
{
	if (m->type == RWK_CM_REJECT) {
		c->theirs = *m;
		c->answer = 1u << RWK_CONNECTION_REJECTED;
		rwk_cm_over(c, RWK_CONNECTION_REJECTED, 0);
		return;
	}
	if (m->type != RWK_CM_ACCEPT || !rwk_cm_agrees(c, m)) {
		broken(c, -EPROTO);
		return;
	}
	c->theirs = *m;
	c->answer = 1u << (m->deferred ? RWK_CONNECTION_STREAMING : RWK_CONNECTION_ESTABLISHED);
	c->state = CONFIRMING;
	rwk_cm_send(c, RWK_CM_READY);
	confirm(c);
}

static void on_greeting(struct rwk_connection *c, const struct rwk_cm *m)
{
	if (m->type != RWK_CM_GREETING || m->service != c->mine.service) {
		broken(c, -EPROTO);
		return;
	}
	c->theirs = *m;
	c->answer = 1u << RWK_CONNECTION_ESTABLISHED;
	c->state = CONFIRMING;
	confirm(c);
}

static void on_message(struct rwk_connection *c, const struct rwk_cm *m)
{
	switch (c->state) {
	case STRANGER:
		if (m->type != RWK_CM_REQUEST) {
			broken(c, -EPROTO);
			return;
		}
		c->theirs = *m;
		c->answer = 1u << RWK_CONNECTION_REQUEST;
		rwk_cm_request(c);
		return;
	case REQUESTING:
		on_answer(c, m);
		return;
	case GREETING:
		on_greeting(c, m);
		return;
	default: /* ANSWERED */
		if (m->type != RWK_CM_READY) {
			broken(c, -EPROTO);
			return;
		}
		c->answer = 0;
		c->state = CONFIRMING;
		confirm(c);
		return;
	}
}

static void receive(struct rwk_connection *c)
{
	struct rwk_cm m;
	size_t whole = 0;
	ssize_t n;
	int err;

	while ((err = rwk_cm_unpack(&m, c->in, c->got, &whole)) == -EAGAIN) {
		n = recv(c->fd, c->in + c->got, whole - c->got, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			broken(c, n ? -errno : -ECONNRESET);
			return;
		}
		c->got += (size_t)n;
	}
	c->got = 0;
	if (err)
		broken(c, err);
	else
		on_message(c, &m);
}

static void connected(struct rwk_connection *c)
{
	int rc = rwk_socket_connected(c->fd);

	if (rc == -EAGAIN)
		return;
	if (!rc) { /* who was asked for at no address in particular is at one; if it is gone already, reading says so */
		rwk_socket_peer(c->fd, c->peer_ip, &c->peer_port);
		rc = rwk_cm_make_terms(c);
	}
	if (rc) {
		broken(c, rc);
		return;
	}
	c->state = REQUESTING;
	if (c->attr.patient)
		rwk_cm_await(c, true, 0);
	rwk_cm_send(c, RWK_CM_REQUEST);
}

void rwk_cm_event(struct rwk_connection *c)
{
	switch (c->state) {
	case CONNECTING:
		connected(c);
		return;
	case REQUESTING:
	case STRANGER:
	case ANSWERED:
	case GREETING:
		if (c->out_at < c->out_end)
			send_rest(c);
		receive(c);
		return;
	case CONFIRMING:
		confirm(c);
		return;
	case ASKED: /* asked for nothing but this */
		broken(c, -ECONNRESET);
		return;
	default:
		return;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open stream: the frames of framing.h.
 *
 * Out: what send takes lies in pieces until flush, which gives them to the socket at once; what the socket has no room
 * for is copied, and goes when the socket says that there is room. Whoever cannot write any more leaves it to reading
 * to say why: a goodbye may be there to be read.
 *
 * In: framing.h's reader.
 */
#define _GNU_SOURCE /* syscall */
#include "links/tcp/internal.h"

#include "base/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Out.
 */

/* Copies to the end of what waits for the socket; rwk_carry_send has seen to it that there is room. */
static void keep(struct stream *s, const void *from, size_t len)
{
	struct outbox *o = s->out;

	if (!o->bytes)
		o->bytes = malloc(OUT_BYTES);
	if (!o->bytes) {
		s->broke = ENOMEM;
		shutdown(s->fd, SHUT_RDWR); /* reading finds the end */
		return;
	}
	if (o->end + len > OUT_BYTES) {
		memmove(o->bytes, o->bytes + o->at, o->end - o->at);
		o->end -= o->at;
		o->at = 0;
	}
	memcpy(o->bytes + o->end, from, len);
	o->end += len;
}

static void keep_pieces(struct stream *s, size_t written)
{
	struct outbox *o = s->out;

	for (int i = 0; i < o->pieces; i++) {
		const struct iovec *v = &o->piece[i];

		if (written < v->iov_len)
			keep(s, (const char *)v->iov_base + written, v->iov_len - written);
		written -= written < v->iov_len ? written : v->iov_len;
	}
	o->pieces = 0;
	o->in_pieces = o->copied = 0;
}

/* Bytes written, 0 if there is no room. A stream that is broken takes everything: it goes nowhere any more. */
static size_t put(struct stream *s, const struct iovec *iov, int count, size_t len)
{
	struct msghdr m = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
	ssize_t n;

	if (s->broke)
		return len;
	n = syscall(SYS_sendmsg, s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT); /* base/cancel.h */
	if (n >= 0)
		return (size_t)n;
	if (rwk_frame_no_room(errno))
		return 0;
	s->broke = errno;
	return len;
}

/* Writes what the socket had no room for before; true if all of it has gone. */
static bool put_kept(struct outbox *o, struct stream *s)
{
	struct iovec v = {o->bytes, o->end - o->at};

	if (v.iov_len) {
		v.iov_base = o->bytes + o->at;
		o->at += put(s, &v, 1, v.iov_len);
	}
	if (o->at < o->end)
		return false;
	o->at = o->end = 0;
	return true;
}

static void watch_time(struct stream *s)
{
	if (s->due == NEVER)
		rwk_stream_set_due(s, rwk_clock_now() + LOOK_EVERY);
}

/* NULL: no memory. */
static struct outbox *outbox_of(struct stream *s)
{
	struct outbox *o = s->out ? s->out : s->link->spare;

	if (!o) {
		o = malloc(sizeof(*o));
		if (o)
			memset(o, 0, offsetof(struct outbox, piece)); /* the rest is touched as it is used */
	} else if (!s->out) {
		s->link->spare = o->next;
	}
	if (o)
		o->next = NULL;
	s->out = o;
	return o;
}

void rwk_carry_free(struct outbox *o)
{
	while (o) {
		struct outbox *next = o->next;

		free(o->bytes);
		free(o);
		o = next;
	}
}

void rwk_carry_flush(struct stream *s)
{
	struct outbox *o = s->out;

	rwk_list_remove(&s->dirty);
	if (!o)
		return;
	if (put_kept(o, s))
		keep_pieces(s, o->pieces ? put(s, o->piece, o->pieces, o->in_pieces) : 0);
	else
		keep_pieces(s, 0);
	watch_time(s);
	rwk_stream_watch(s, o->end > o->at);
	if (o->end == o->at) { /* most streams carry a few greetings, ever */
		s->out = NULL;
		o->next = s->link->spare;
		s->link->spare = o;
	}
}

/* Adds to the last piece where that is one of ours and ends where this one begins. */
static void add_piece(struct outbox *o, void *base, size_t len)
{
	struct iovec *last = o->pieces ? &o->piece[o->pieces - 1] : NULL;

	o->in_pieces += len;
	if (last && (uint8_t *)base > o->copy && (uint8_t *)base < o->copy + OUT_COPIES &&
		(uint8_t *)last->iov_base + last->iov_len == (uint8_t *)base)
		last->iov_len += len;
	else
		o->piece[o->pieces++] = (struct iovec){base, len};
}

static void copy_piece(struct outbox *o, const void *from, size_t len)
{
	uint8_t *to = o->copy + o->copied;

	memcpy(to, from, len);
	o->copied += len;
	add_piece(o, to, len);
}

static bool has_room(const struct outbox *o, int count, size_t copies, size_t len)
{
	return o->pieces + count + 1 <= OUT_PIECES && o->copied + copies <= OUT_COPIES &&
	       o->end - o->at + o->in_pieces + RWK_FRAME_HEAD + len <= OUT_BYTES;
}

int rwk_carry_send(struct stream *s, const struct iovec *iov, int count)
{
	struct outbox *o;
	size_t len = 0, copies = RWK_FRAME_HEAD;
	uint32_t head;

	for (int i = 0; i < count; i++) {
		len += iov[i].iov_len;
		copies += iov[i].iov_len <= RWK_LINK_COPIED ? iov[i].iov_len : 0;
	}
	if (len > RWK_FRAME_MAX || count >= OUT_PIECES)
		return -EMSGSIZE;
	o = outbox_of(s);
	if (!o)
		return -ENOMEM;
	if (!has_room(o, count, copies, len)) {
		rwk_carry_flush(s);
		o = outbox_of(s);
		if (!o || !has_room(o, count, copies, len)) {
			s->link->counts.full++;
			return -EAGAIN;
		}
	}
	s->wrote = true;
	head = (uint32_t)len;
	copy_piece(o, &head, RWK_FRAME_HEAD);
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > RWK_LINK_COPIED)
			add_piece(o, iov[i].iov_base, iov[i].iov_len);
		else if (iov[i].iov_len)
			copy_piece(o, iov[i].iov_base, iov[i].iov_len);
	}
	if (rwk_list_empty(&s->dirty))
		rwk_list_append(&s->link->dirty, &s->dirty);
	s->link->counts.packets_out++;
	s->link->counts.bytes_out += len;
	return 0;
}

/*
 * In.
 */

int rwk_carry_deliver(struct link *l, int budget)
{
	struct stream *s = NULL;
	const uint8_t *packet;
	int done = 0, err = 0;
	size_t len;

	while (l->in.part && done < budget) {
		s = rwk_container_of(l->in.part, struct stream, part);
		err = rwk_frame_next(&l->in, &packet, &len);
		if (err)
			break;
		l->counts.packets_in++;
		l->counts.bytes_in += len;
		done++;
		l->pub.packet(l->pub.user, &s->who, packet, len);
	}
	if (err == -ESHUTDOWN) {
		rwk_stream_end(s, err);
	} else if (err && err != -EAGAIN) {
		rwk_stream_tell(s, err);
		rwk_stream_part(s);
	}
	return done;
}

static void ended(struct stream *s, int err)
{
	int status = rwk_tcp_broken(s->broke && s->broke != EPIPE ? s->broke : err);

	s->link->counts.broken++;
	rwk_list_remove(&s->dirty);
	if (status == -ECONNRESET)
		rwk_meet_ask(s);
	else
		rwk_stream_end(s, status);
}

static int receive(struct stream *s, int budget)
{
	ssize_t n = rwk_frame_read(&s->link->in, &s->part, s->fd);

	if (n > 0)
		return rwk_carry_deliver(s->link, budget);
	if (n != -EAGAIN)
		ended(s, (int)-n);
	return 0;
}

int rwk_carry_event(struct stream *s, int budget)
{
	if (s->wants_out)
		rwk_carry_flush(s);
	return receive(s, budget);
}

/*
 * Leaving, and watching.
 */

void rwk_carry_leaving(struct stream *s)
{
	static const uint32_t goodbye = RWK_FRAME_GOODBYE;
	struct iovec v = {(void *)&goodbye, RWK_FRAME_HEAD};

	if (s->say_goodbye && (!s->out || put_kept(s->out, s))) {
		/* A socket takes four bytes or none, but for one that is broken. */
		s->say_goodbye = put(s, &v, 1, RWK_FRAME_HEAD) == 0;
		if (!s->say_goodbye)
			shutdown(s->fd, SHUT_WR);
	}
	rwk_stream_watch(s, s->say_goodbye);
	if (rwk_frame_drain(&s->link->in, s->fd))
		rwk_stream_drop(s);
}

/* One that is left may keep an outbox in which nothing waits any more. */
static bool waits(const struct outbox *o)
{
	return o && (o->pieces || o->end > o->at);
}

bool rwk_carry_all_sent(const struct stream *s)
{
	return !s->wrote || s->broke || (!waits(s->out) && rwk_socket_all_sent(s->fd));
}

void rwk_carry_due(struct stream *s)
{
	if (rwk_socket_all_sent(s->fd) && !waits(s->out)) {
		rwk_stream_set_due(s, NEVER);
	} else if (rwk_tcp_silent(s->fd)) {
		rwk_stream_tell(s, -ETIMEDOUT);
		rwk_stream_part(s);
	} else {
		rwk_stream_set_due(s, rwk_clock_now() + LOOK_EVERY);
	}
}

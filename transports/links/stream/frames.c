/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is on a stream: frames (STREAM.md).
 *
 * Out: send copies frames behind one another into the stream's buffer. Which of them share a segment is found when they
 * are written, by their lengths: so what had to wait for room in the socket is not fixed to segments before it goes.
 *
 * In: the link has one buffer. What was read into it from one stream is delivered before anything else is read; the
 * beginning of a frame whose rest has not come is kept with its stream.
 */
#define _GNU_SOURCE /* sendmmsg */
#include "links/stream/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define AT_ONCE 32 /* segments that one call gives to the socket */

/*
 * Out.
 */

/* Bytes of the frame that begins there. */
static size_t frame_at(const struct stream *s, size_t at)
{
	uint32_t len;

	memcpy(&len, s->out + at, FRAME_HEAD);
	return FRAME_HEAD + (len == GOODBYE ? 0 : len);
}

/* Bytes of the segment that begins there: whole frames (S2-13), one at least, and what fits beside it (S4-12). */
static size_t segment_at(const struct stream *s, size_t at)
{
	size_t len = frame_at(s, at);

	while (!s->alone && at + len < s->out_end && len + frame_at(s, at + len) <= s->segment)
		len += frame_at(s, at + len);
	return len;
}

static bool is_no_room(int err)
{
	return err == EAGAIN || err == EINTR || err == ENOBUFS || err == ENOMEM;
}

/* Gives the next segments to the socket; false: it takes no more now. */
static bool put_segments(struct stream *s)
{
	struct mmsghdr m[AT_ONCE];
	struct iovec v[AT_ONCE];
	size_t at = s->out_at;
	unsigned n = 0;
	int sent;

	for (; n < AT_ONCE && at < s->out_end; n++) {
		v[n] = (struct iovec){s->out + at, n == 0 && s->rest ? s->rest : segment_at(s, at)};
		m[n] = (struct mmsghdr){.msg_hdr = {.msg_iov = &v[n], .msg_iovlen = 1}};
		at += v[n].iov_len;
	}
	sent = sendmmsg(s->fd, m, n, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_EOR);
	if (sent < 0) {
		s->broken = !is_no_room(errno);
		return false;
	}
	for (int i = 0; i < sent; i++) {
		s->out_at += m[i].msg_len;
		s->rest = v[i].iov_len - m[i].msg_len;
	}
	return (unsigned)sent == n && !s->rest;
}

void rwk_frames_flush(struct stream *s)
{
	rwk_list_remove(&s->dirty);
	while (s->out_at < s->out_end && !s->broken && put_segments(s))
		;
	if (s->broken || s->out_at == s->out_end)
		s->out_at = s->out_end = s->rest = 0;
	rwk_streams_watch_out(s, s->out_end > 0);
}

static void put(struct stream *s, const void *from, size_t len)
{
	memcpy(s->out + s->out_end, from, len);
	s->out_end += len;
}

/* Is there room for so many bytes more, what is left to go being moved to the front if need be? */
static bool make_room(struct stream *s, size_t len)
{
	if (s->out_end - s->out_at + len > OUT_BYTES)
		return false;
	if (s->out_end + len > OUT_BYTES) {
		memmove(s->out, s->out + s->out_at, s->out_end - s->out_at);
		s->out_end -= s->out_at;
		s->out_at = 0;
	}
	return true;
}

int rwk_frames_put(struct stream *s, const struct iovec *iov, int count)
{
	uint32_t len = 0;

	for (int i = 0; i < count; i++)
		len += (uint32_t)iov[i].iov_len;
	if (len > RWK_STREAMS_MTU)
		return -EMSGSIZE;
	if (!make_room(s, FRAME_HEAD + len)) {
		rwk_frames_flush(s);
		if (!make_room(s, FRAME_HEAD + len))
			return -EAGAIN;
	}
	put(s, &len, FRAME_HEAD);
	for (int i = 0; i < count; i++)
		put(s, iov[i].iov_base, iov[i].iov_len);
	if (rwk_list_empty(&s->dirty))
		rwk_list_append(&s->link->dirty, &s->dirty);
	return 0;
}

void rwk_frames_put_goodbye(struct stream *s)
{
	static const uint32_t goodbye = GOODBYE;

	put(s, &goodbye, FRAME_HEAD);
}

/*
 * In.
 */

/* The rest, which is no whole frame, waits with its stream for what follows. */
static void keep_part(struct link *l, struct stream *s)
{
	size_t len = l->read_end - l->read_at;

	l->reading = NULL;
	if (len && !s->part)
		s->part = malloc(FRAME_HEAD + RWK_STREAMS_MTU);
	if (len && !s->part) {
		rwk_streams_end(s, -ENOMEM);
		return;
	}
	if (len)
		memcpy(s->part, l->bytes + l->read_at, len);
	s->part_len = len;
}

/* What is wrong with the stream, or -EAGAIN: no whole frame is here; 0 and its length. */
static int next_frame(const struct link *l, uint32_t *len)
{
	size_t here = l->read_end - l->read_at;

	if (here < FRAME_HEAD)
		return -EAGAIN;
	memcpy(len, l->bytes + l->read_at, FRAME_HEAD);
	if (*len == GOODBYE)
		return -ESHUTDOWN;
	if (*len > RWK_STREAMS_MTU)
		return -EPROTO;
	return here - FRAME_HEAD < *len ? -EAGAIN : 0;
}

int rwk_frames_deliver(struct link *l, int budget)
{
	struct stream *s = l->reading;
	int done = 0, err = 0;
	uint32_t len;

	while (s && l->reading == s && done < budget) {
		err = next_frame(l, &len);
		if (err)
			break;
		l->read_at += FRAME_HEAD + len;
		done++;
		l->pub.packet(l->pub.user, &s->at, l->bytes + l->read_at - len, len);
	}
	if (err == -EAGAIN)
		keep_part(l, s);
	else if (err)
		rwk_streams_end(s, err);
	return done;
}

static int status_of(int err)
{
	return err == 0 || err == EPIPE || err == ECONNRESET ? -ECONNRESET : -err;
}

int rwk_frames_read(struct stream *s, int budget)
{
	struct link *l = s->link;
	ssize_t n = recv(s->fd, l->bytes + s->part_len, READ_BYTES, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		rwk_streams_end(s, status_of(n ? errno : 0));
		return 0;
	}
	if (s->part_len)
		memcpy(l->bytes, s->part, s->part_len);
	l->reading = s;
	l->read_at = 0;
	l->read_end = s->part_len + (size_t)n;
	s->part_len = 0;
	return rwk_frames_deliver(l, budget);
}

void rwk_frames_drain(struct stream *s)
{
	ssize_t n;
	int rounds = 16; /* the rest another time */

	do
		n = recv(s->fd, s->link->bytes, READ_BYTES, MSG_DONTWAIT | MSG_TRUNC);
	while (n > 0 && --rounds);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		rwk_streams_drop(s);
}

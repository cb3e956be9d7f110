/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is on a stream: frames (STREAM.md).
 *
 * Out: send copies frames behind one another into the stream's buffer. Which of them share a segment is found when they
 * are written, by their lengths: so what had to wait for room in the socket is not fixed to segments before it goes.
 *
 * In: framing.h's reader.
 */
#define _GNU_SOURCE /* struct mmsghdr, syscall */
#include "links/stream/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AT_ONCE 32 /* segments that one call gives to the socket */

/*
 * Out.
 */

/* Bytes of the frame that begins there. */
static size_t frame_at(const struct stream *s, size_t at)
{
	uint32_t len;

	memcpy(&len, s->out + at, RWK_FRAME_HEAD);
	return RWK_FRAME_HEAD + (len == RWK_FRAME_GOODBYE ? 0 : len);
}

/* Bytes of the segment that begins there: whole frames (S2-13), one at least, and what fits beside it (S4-12). */
static size_t segment_at(const struct stream *s, size_t at)
{
	size_t len = frame_at(s, at);

	while (!s->alone && at + len < s->out_end && len + frame_at(s, at + len) <= s->segment)
		len += frame_at(s, at + len);
	return len;
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
	sent = (int)syscall(SYS_sendmmsg, s->fd, m, n, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_EOR); /* base/cancel.h */
	if (sent < 0) {
		s->broke = rwk_frame_no_room(errno) ? 0 : errno;
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
	while (s->out_at < s->out_end && !s->broke && put_segments(s))
		;
	if (s->broke || s->out_at == s->out_end)
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
	if (len > RWK_FRAME_MAX)
		return -EMSGSIZE;
	if (!make_room(s, RWK_FRAME_HEAD + len)) {
		rwk_frames_flush(s);
		if (!make_room(s, RWK_FRAME_HEAD + len))
			return -EAGAIN;
	}
	put(s, &len, RWK_FRAME_HEAD);
	for (int i = 0; i < count; i++)
		put(s, iov[i].iov_base, iov[i].iov_len);
	if (rwk_list_empty(&s->dirty))
		rwk_list_append(&s->link->dirty, &s->dirty);
	return 0;
}

void rwk_frames_put_goodbye(struct stream *s)
{
	static const uint32_t goodbye = RWK_FRAME_GOODBYE;

	put(s, &goodbye, RWK_FRAME_HEAD);
}

/*
 * In.
 */

int rwk_frames_deliver(struct link *l, int budget)
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
		done++;
		l->pub.packet(l->pub.user, &s->at, packet, len);
	}
	if (err && err != -EAGAIN)
		rwk_streams_end(s, err);
	return done;
}

/* Why it ended: the kernel says it once, and may have said it to a write; then reading finds no more than an end. */
static int why(const struct stream *s, int err)
{
	if (err && err != -EPIPE && err != -ECONNRESET)
		return err;
	return s->broke && s->broke != EPIPE ? -s->broke : -ECONNRESET;
}

int rwk_frames_read(struct stream *s, int budget)
{
	ssize_t n = rwk_frame_read(&s->link->in, &s->part, s->fd);

	if (n > 0)
		return rwk_frames_deliver(s->link, budget);
	if (n != -EAGAIN)
		rwk_streams_end(s, why(s, (int)n));
	return 0;
}

void rwk_frames_drain(struct stream *s)
{
	if (rwk_frame_drain(&s->link->in, s->fd))
		rwk_streams_drop(s);
}

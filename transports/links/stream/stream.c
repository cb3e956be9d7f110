/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream link: its streams and their ends. A stream is in `all` until it is freed, which is at the end of progress,
 * so that an upcall may end any stream, that which calls included; in the table while it is open.
 *
 * Timer: `due` of a stream that leaves; its socket is closed then. Looked at by progress, and nobody is woken for it:
 * what is late there keeps a descriptor a little longer. The link's close alone waits for it.
 */
#include "links/stream/internal.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS        32
#define LINGER        2000000000ull /* ns */
#define LOOK          1             /* ms: how often close looks whether all has come there; no event tells */
#define KEEP_IDLE     5             /* s */
#define KEEP_INTERVAL 1             /* s */
#define KEEP_COUNT    5

static struct link *link_of(struct rwk_link *l)
{
	return rwk_container_of(l, struct link, pub);
}

/*
 * Streams.
 */

static struct stream *find(struct link *l, const struct rwk_link_address *at)
{
	struct stream *s = l->last;

	if (rwk_likely(s && !memcmp(&s->at, at, sizeof(*at))))
		return s;
	HASH_FIND(hh, l->table, at, sizeof(*at), s);
	if (s)
		l->last = s;
	return s;
}

/* By an address that no other has had. */
static int enter_table(struct stream *s)
{
	struct link *l = s->link;

	l->taken++;
	memcpy(s->at.byte, &l->taken, sizeof(l->taken));
	rwk_list_init(&s->dirty);
	HASH_ADD(hh, l->table, at, sizeof(s->at), s);
	return rwk_keyed_is_in(&s->hh) ? 0 : -ENOMEM;
}

static void leave_table(struct stream *s)
{
	struct link *l = s->link;

	HASH_DELETE(hh, l->table, s);
	rwk_list_remove(&s->dirty);
	if (l->last == s)
		l->last = NULL;
	rwk_frame_forget(&l->in, &s->part);
}

static int watch(struct stream *s, int what, bool out)
{
	struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data.ptr = s};

	return epoll_ctl(s->link->epoll, what, s->fd, &e) ? -errno : 0;
}

void rwk_streams_watch_out(struct stream *s, bool wanted)
{
	if (s->wants_out == wanted)
		return;
	s->wants_out = wanted;
	if (watch(s, EPOLL_CTL_MOD, wanted))
		rwk_warn("stream: a socket cannot be watched: %s", strerror(errno));
}

/*
 * Not by closing alone: a forked child may hold the socket too, and then it would stay in the set, and the peer would
 * hear of nothing.
 */
static void close_socket(struct stream *s)
{
	epoll_ctl(s->link->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	shutdown(s->fd, SHUT_RDWR);
	close(s->fd);
	s->fd = -1;
}

void rwk_streams_end(struct stream *s, int status)
{
	leave_table(s);
	close_socket(s);
	s->state = ENDED;
	s->status = status;
	rwk_list_append(&s->link->words, &s->word);
}

void rwk_streams_drop(struct stream *s)
{
	close_socket(s);
	s->state = DEAD;
	s->link->leaving--;
	s->link->any_dead = true;
}

static void free_stream(struct stream *s)
{
	if (s->fd >= 0)
		close_socket(s);
	rwk_list_remove(&s->all);
	free(s->out);
	rwk_frame_part_close(&s->part);
	free(s);
}

/* Those that are dead, and those whose time to leave is over. */
static void clear_away(struct link *l)
{
	rwk_time t = l->leaving ? rwk_clock_now() : 0;
	struct rwk_list *next;

	for (struct rwk_list *n = l->all.next; n != &l->all; n = next) {
		struct stream *s = rwk_container_of(n, struct stream, all);

		next = n->next;
		if (s->state == LEAVING && s->due <= t)
			rwk_streams_drop(s);
		if (s->state == DEAD)
			free_stream(s);
	}
	l->any_dead = false;
}

static void go_on_leaving(struct stream *s)
{
	if (s->out_end) {
		rwk_frames_flush(s);
		if (!s->out_end)
			shutdown(s->fd, SHUT_WR);
	}
	rwk_frames_drain(s);
}

static void tell_words(struct link *l)
{
	struct rwk_list *n;

	while ((n = rwk_list_pop(&l->words))) {
		struct stream *s = rwk_container_of(n, struct stream, word);

		l->telling = s;
		if (l->pub.word)
			l->pub.word(l->pub.user, &s->at, s->status);
		l->telling = NULL;
		s->state = DEAD;
		l->any_dead = true;
	}
}

/*
 * The calls of a link.
 */

static int stream_event(struct stream *s, unsigned events, int budget)
{
	if (s->state == LEAVING)
		go_on_leaving(s);
	if (s->state != OPEN)
		return 0;
	if (events & EPOLLOUT)
		rwk_frames_flush(s);
	return budget > 0 && !s->link->in.part ? rwk_frames_read(s, budget) : 0;
}

static int link_progress(struct rwk_link *pub, int budget)
{
	struct link *l = link_of(pub);
	struct epoll_event event[EVENTS];
	int done = l->in.part ? rwk_frames_deliver(l, budget) : 0;
	int n = epoll_wait(l->epoll, event, EVENTS, 0);

	for (int i = 0; i < n; i++)
		done += stream_event(event[i].data.ptr, event[i].events, budget - done);
	tell_words(l);
	if (rwk_unlikely(l->any_dead || l->leaving))
		clear_away(l);
	return done;
}

static size_t link_mtu(struct rwk_link *pub, const struct rwk_link_address *to)
{
	const struct stream *s = find(link_of(pub), to);
	size_t most = s && s->segment > RWK_FRAME_HEAD ? s->segment - RWK_FRAME_HEAD : 0;

	return most < RWK_STREAMS_MTU ? most : RWK_STREAMS_MTU;
}

static int link_send(struct rwk_link *pub, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	struct stream *s = find(link_of(pub), to);

	return rwk_likely(s) ? rwk_frames_put(s, iov, count) : -ENOTCONN;
}

static void link_flush(struct rwk_link *pub)
{
	struct link *l = link_of(pub);
	struct rwk_list *n;

	while ((n = rwk_list_pop(&l->dirty)))
		rwk_frames_flush(rwk_container_of(n, struct stream, dirty));
}

static rwk_time link_now(struct rwk_link *l)
{
	(void)l;
	return rwk_clock_now();
}

static int link_arm(struct rwk_link *pub)
{
	return link_of(pub)->in.part ? -EAGAIN : 0;
}

static int link_wait_fd(struct rwk_link *pub, int i)
{
	return i ? -1 : link_of(pub)->epoll;
}

/*
 * Is there one that leaves, and whose peer's kernel has not all? Our kernel drops what it has not sent when anything
 * comes to a socket that is closed.
 */
static bool is_sending(const struct link *l)
{
	for (const struct rwk_list *n = l->all.next; n != &l->all; n = n->next) {
		const struct stream *s = rwk_container_of(n, const struct stream, all);

		if (s->state == LEAVING && (s->out_end || !rwk_socket_all_sent(s->fd)))
			return true;
	}
	return false;
}

/* All that were open have left. */
static void linger(struct link *l)
{
	struct epoll_event event[EVENTS];
	int before = rwk_cancel_hold_off();

	while (is_sending(l)) {
		int n = epoll_wait(l->epoll, event, EVENTS, LOOK);

		for (int i = 0; i < n; i++)
			stream_event(event[i].data.ptr, event[i].events, 0);
		clear_away(l);
	}
	rwk_cancel_as_before(before);
}

static void link_close(struct rwk_link *pub)
{
	struct link *l = link_of(pub);

	for (struct rwk_list *n = l->all.next; n != &l->all; n = n->next)
		rwk_streams_leave(pub, &rwk_container_of(n, struct stream, all)->at);
	linger(l);
	while (!rwk_list_empty(&l->all))
		free_stream(rwk_container_of(l->all.next, struct stream, all));
	close(l->epoll);
	free(l);
}

static const struct rwk_link_ops stream_ops = {
	.name = "stream",
	.traits = RWK_LINK_IS_STREAM,
	.mtu = link_mtu,
	.send = link_send,
	.flush = link_flush,
	.progress = link_progress,
	.now = link_now,
	.arm = link_arm,
	.wait_fd = link_wait_fd,
	.close = link_close,
};

/*
 * stream.h.
 */

int rwk_streams_open(struct rwk_link **out)
{
	struct link *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->pub.ops = &stream_ops;
	rwk_list_init(&l->all);
	rwk_list_init(&l->dirty);
	rwk_list_init(&l->words);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		err = -errno;
		free(l);
		return err;
	}
	*out = &l->pub;
	return 0;
}

/* 0 and the bytes of a segment; negative errno: it is no socket that we can use. */
static int look_at(int fd, size_t *segment)
{
	uint8_t ip[16];
	uint16_t port;
	int bytes = 0, err = rwk_socket_peer(fd, ip, &port);
	socklen_t len = sizeof(bytes);

	if (err)
		return err;
	getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &bytes, &len);
	*segment = bytes > 0 ? (size_t)bytes : 0;
	return rwk_socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

int rwk_streams_take(struct rwk_link *pub, int fd, bool alone, void *owner, struct rwk_link_address *at)
{
	struct link *l = link_of(pub);
	struct stream *s;
	size_t segment;
	int err = look_at(fd, &segment);

	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct stream){.link = l, .fd = fd, .owner = owner, .segment = segment, .alone = alone};
	s->out = malloc(OUT_BYTES + RWK_FRAME_HEAD);
	err = s->out ? enter_table(s) : -ENOMEM;
	if (err)
		goto release;
	err = watch(s, EPOLL_CTL_ADD, false);
	if (err)
		goto leave_table;
	rwk_socket_keep_alive(fd, KEEP_IDLE, KEEP_INTERVAL, KEEP_COUNT);
	rwk_list_append(&l->all, &s->all);
	rwk_list_init(&s->word);
	*at = s->at;
	return 0;

leave_table:
	leave_table(s);
release:
	free(s->out);
	free(s);
	return err;
}

void rwk_streams_give_back(struct rwk_link *pub, const struct rwk_link_address *at)
{
	struct stream *s = find(link_of(pub), at);

	epoll_ctl(s->link->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->fd = -1;
	leave_table(s);
	free_stream(s);
}

void *rwk_streams_owner(struct rwk_link *pub, const struct rwk_link_address *at)
{
	struct stream *s = link_of(pub)->telling;

	if (!s || memcmp(&s->at, at, sizeof(*at)))
		s = find(link_of(pub), at);
	return s ? s->owner : NULL;
}

void rwk_streams_leave(struct rwk_link *pub, const struct rwk_link_address *at)
{
	struct stream *s = find(link_of(pub), at);

	if (!s)
		return;
	leave_table(s);
	s->state = LEAVING;
	s->due = rwk_clock_now() + LINGER;
	s->link->leaving++;
	rwk_frames_put_goodbye(s);
	go_on_leaving(s);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP link: its streams, their timers, their words.
 *
 * A stream is in `all` until it is freed; in the table while it is begun by this end or open, so that there is one at
 * an address. It is freed at the end of progress, so that an upcall may end any stream, that which calls included.
 * Timers: a stream's `due`; what it is for depends on its state:
 *
 *   WAITING      connect                           STRANGER, CHALLENGED, HELD   drop it
 *   CONNECTING   there is no way through           OPEN   see whether what was sent is acknowledged
 *
 * A socket that the kernel does not let the epoll set have (a user may have so many in all sets, and memory ends) wakes
 * nobody: its stream is unheard. Who sleeps wakes each millisecond while there are such streams, asks the set again,
 * and looks at them itself.
 */
#include "links/tcp/internal.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <sodium.h>

#define EVENTS     32
#define LOOK_AGAIN MS /* at what is unheard */

static struct link *link_of(struct rwk_link *l)
{
	return rwk_container_of(l, struct link, pub);
}

/*
 * Streams.
 */

struct stream *rwk_stream_new(struct link *l, enum state state)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->link = l;
	s->state = state;
	s->fd = s->watch = s->hung = -1;
	s->due = NEVER;
	rwk_list_init(&s->timed);
	rwk_list_init(&s->half);
	rwk_list_init(&s->dirty);
	rwk_list_init(&s->word);
	rwk_list_init(&s->unheard);
	rwk_list_init(&s->all);
	rwk_list_append(&l->all, &s->all);
	return s;
}

struct stream *rwk_stream_find(struct link *l, const struct rwk_link_address *who)
{
	struct stream *s = l->last;

	if (rwk_likely(s && !memcmp(&s->who, who, sizeof(*who))))
		return s;
	HASH_FIND(hh, l->table, who, sizeof(*who), s);
	if (s)
		l->last = s;
	return s;
}

int rwk_stream_enter(struct stream *s)
{
	struct link *l = s->link;

	if (!rwk_list_empty(&s->half)) {
		rwk_list_remove(&s->half);
		l->half_count--;
	}
	if (s->in_table)
		return 0;
	HASH_ADD(hh, l->table, who, sizeof(s->who), s);
	s->in_table = rwk_keyed_is_in(&s->hh);
	return s->in_table ? 0 : -ENOMEM;
}

void rwk_stream_leave_table(struct stream *s)
{
	struct link *l = s->link;

	if (!s->in_table)
		return;
	s->in_table = false;
	if (l->last == s)
		l->last = NULL;
	HASH_DELETE(hh, l->table, s);
}

void rwk_stream_set_due(struct stream *s, rwk_time due)
{
	struct link *l = s->link;

	s->due = due;
	rwk_list_remove(&s->timed);
	if (due == NEVER)
		return;
	rwk_list_append(&l->timed, &s->timed);
	if (due < l->due)
		l->due = due;
}

void rwk_stream_tell(struct stream *s, int status)
{
	s->status = status;
	rwk_list_remove(&s->word);
	rwk_list_append(&s->link->words, &s->word);
}

static void be_unheard(struct stream *s, int err)
{
	struct link *l = s->link;
	rwk_time due = rwk_clock_now() + LOOK_AGAIN;

	rwk_list_append(&l->unheard, &s->unheard);
	if (due < l->due)
		l->due = due;
	if (l->warned_unheard)
		return;
	l->warned_unheard = true;
	rwk_warn("tcp: a socket cannot be watched, and is looked at each millisecond: %s", strerror(err));
}

/* Asks the epoll set for what wants_out says. False: it is unheard. */
static bool ask_for(struct stream *s)
{
	struct epoll_event e = {.events = EPOLLIN | (s->wants_out ? EPOLLOUT : 0u), .data.ptr = s};

	rwk_list_remove(&s->unheard);
	if (epoll_ctl(s->link->epoll, s->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &e)) {
		be_unheard(s, errno);
		return false;
	}
	s->watched = true;
	return true;
}

void rwk_stream_watch(struct stream *s, bool out)
{
	if (s->watched && s->wants_out == out)
		return;
	s->wants_out = out;
	ask_for(s);
}

/* Not by closing alone: if a forked child holds the socket too, it would stay in the set, and the peer would wait. */
void rwk_stream_close_socket(struct stream *s)
{
	if (s->fd < 0)
		return;
	if (s->watched)
		epoll_ctl(s->link->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->watched = s->wants_out = false;
	rwk_list_remove(&s->unheard);
	shutdown(s->fd, SHUT_RDWR);
	if (s->watch >= 0 && s->hung < 0)
		s->hung = s->fd; /* who looks into that set is to find it there until the word is told */
	else
		close(s->fd);
	s->fd = -1;
}

void rwk_stream_unwatch(struct stream *s)
{
	if (s->watch < 0)
		return;
	epoll_ctl(s->watch, EPOLL_CTL_DEL, s->hung < 0 ? s->fd : s->hung, NULL);
	if (s->hung >= 0)
		close(s->hung);
	s->watch = s->hung = -1;
}

/* Out of the table and the lists of work. */
static void retire(struct stream *s)
{
	struct link *l = s->link;

	rwk_stream_leave_table(s);
	rwk_stream_set_due(s, NEVER);
	rwk_list_remove(&s->dirty);
	if (!rwk_list_empty(&s->half)) {
		rwk_list_remove(&s->half);
		l->half_count--;
	}
	rwk_frame_forget(&l->in, &s->part);
}

void rwk_stream_drop(struct stream *s)
{
	retire(s);
	rwk_stream_close_socket(s);
	if (s->state == LEAVING && !rwk_list_empty(&s->word)) {
		s->state = ENDED;
		return;
	}
	rwk_list_remove(&s->word);
	s->state = DEAD;
	s->link->any_dead = true;
}

void rwk_stream_end(struct stream *s, int status)
{
	retire(s);
	rwk_stream_close_socket(s);
	s->state = ENDED;
	rwk_stream_tell(s, status);
}

void rwk_stream_part(struct stream *s)
{
	if (s->state == OPEN)
		rwk_carry_flush(s);
	retire(s);
	s->state = LEAVING;
	s->say_goodbye = true;
	rwk_carry_leaving(s);
}

static void free_stream(struct stream *s)
{
	rwk_stream_unwatch(s);
	rwk_stream_close_socket(s);
	rwk_list_remove(&s->all);
	rwk_carry_free(s->out);
	rwk_frame_part_close(&s->part);
	free(s);
}

static void free_dead(struct link *l)
{
	struct rwk_list *next;

	l->any_dead = false;
	for (struct rwk_list *n = l->all.next; n != &l->all; n = next) {
		struct stream *s = rwk_container_of(n, struct stream, all);

		next = n->next;
		if (s->state == DEAD)
			free_stream(s);
	}
}

/*
 * Progress.
 */

/* Those that are to be told now; what an upcall adds waits, or an owner that is never content would keep us here. */
static void tell_words(struct link *l)
{
	struct rwk_list *n;

	rwk_list_move_all(&l->words, &l->told);
	while ((n = rwk_list_pop(&l->told))) {
		struct stream *s = rwk_container_of(n, struct stream, word);
		struct rwk_link_address who = s->who;
		int status = s->status;

		if (s->state == ENDED) {
			s->state = DEAD;
			l->any_dead = true;
		}
		l->telling = s;
		if (l->pub.word)
			l->pub.word(l->pub.user, &who, status);
		l->telling = NULL;
	}
}

static void stream_due(struct stream *s)
{
	if (s->state == OPEN)
		rwk_carry_due(s);
	else
		rwk_meet_due(s);
}

static int stream_event(struct stream *s, int budget)
{
	switch (s->state) {
	case OPEN:
		return budget > 0 && !s->link->in.part ? rwk_carry_event(s, budget) : 0;
	case LEAVING:
		rwk_carry_leaving(s);
		return 0;
	default:
		rwk_meet_event(s);
		return 0;
	}
}

/* The epoll set tells of those that it takes now. */
static int look_at_unheard(struct link *l, int budget)
{
	struct rwk_list unheard, *n;
	int done = 0;

	rwk_list_move_all(&l->unheard, &unheard);
	while ((n = rwk_list_pop(&unheard))) {
		struct stream *s = rwk_container_of(n, struct stream, unheard);

		if (ask_for(s))
			continue;
		done += stream_event(s, budget - done);
		tell_words(l);
	}
	return done;
}

/* How many packets were delivered. */
static int tick(struct link *l, rwk_time now, int budget)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = &l->listener};
	struct rwk_list timed, *n;

	l->due = NEVER;
	if (l->deaf && l->listen_due <= now) {
		l->deaf = false;
		epoll_ctl(l->epoll, EPOLL_CTL_MOD, l->listener, &e);
	} else if (l->deaf) {
		l->due = l->listen_due;
	}
	rwk_list_move_all(&l->timed, &timed);
	while ((n = rwk_list_pop(&timed))) {
		struct stream *s = rwk_container_of(n, struct stream, timed);

		if (s->due > now) {
			rwk_stream_set_due(s, s->due);
			continue;
		}
		s->due = NEVER;
		stream_due(s);
	}
	return look_at_unheard(l, budget);
}

static int one_event(struct link *l, void *what, int budget)
{
	uint64_t times;

	if (what == &l->listener) {
		rwk_meet_accept(l);
		return 0;
	}
	if (what == &l->timer) {
		if (read(l->timer, &times, sizeof(times)) < 0)
			return 0;
		return 0;
	}
	return stream_event(what, budget);
}

static int link_progress(struct rwk_link *pub, int budget)
{
	struct link *l = link_of(pub);
	struct epoll_event event[EVENTS];
	int done = 0, n;

	if (l->in.part) {
		done = rwk_carry_deliver(l, budget);
		tell_words(l);
	}
	n = epoll_wait(l->epoll, event, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		done += one_event(l, event[i].data.ptr, budget - done);
		tell_words(l);
	}
	if (l->due != NEVER) {
		rwk_time now = rwk_clock_now();

		if (now >= l->due)
			done += tick(l, now, budget - done);
	}
	tell_words(l);
	if (rwk_unlikely(l->any_dead))
		free_dead(l);
	return done;
}

/*
 * The other calls of a link.
 */

static size_t link_mtu(struct rwk_link *l, const struct rwk_link_address *to)
{
	(void)l;
	(void)to;
	return RWK_TCP_MTU;
}

static int link_send(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	struct stream *s = rwk_stream_find(link_of(l), to);

	if (rwk_unlikely(!s || s->state != OPEN))
		return -ENOTCONN;
	return rwk_carry_send(s, iov, count);
}

static void link_flush(struct rwk_link *pub)
{
	struct link *l = link_of(pub);
	struct rwk_list *n;

	while ((n = rwk_list_pop(&l->dirty)))
		rwk_carry_flush(rwk_container_of(n, struct stream, dirty));
}

static rwk_time link_now(struct rwk_link *l)
{
	(void)l;
	return rwk_clock_now();
}

static int link_arm(struct rwk_link *pub)
{
	struct link *l = link_of(pub);
	struct itimerspec t = {.it_value = {0, 0}};

	if (l->in.part || !rwk_list_empty(&l->words))
		return -EAGAIN;
	if (l->due != NEVER) {
		t.it_value.tv_sec = (time_t)(l->due / 1000000000u);
		t.it_value.tv_nsec = (long)(l->due % 1000000000u);
	}
	return timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &t, NULL) ? -errno : 0;
}

static int link_wait_fd(struct rwk_link *l, int i)
{
	return i ? -1 : link_of(l)->epoll;
}

static void close_descriptors(struct link *l)
{
	close(l->epoll);
	shutdown(l->listener, SHUT_RDWR); /* a forked child may hold it too: others would come in there, and wait */
	close(l->listener);
	close(l->timer);
}

static void link_close(struct rwk_link *pub)
{
	struct link *l = link_of(pub);
	struct rwk_list *next;

	for (struct rwk_list *n = l->all.next; n != &l->all; n = next) {
		struct stream *s = rwk_container_of(n, struct stream, all);

		next = n->next;
		if (s->state == OPEN || s->state == PROVEN)
			rwk_stream_part(s);
		else if (s->state == LEAVING)
			rwk_carry_leaving(s);
		rwk_stream_leave_table(s);
		free_stream(s);
	}
	rwk_carry_free(l->spare);
	close_descriptors(l);
	free(l);
}

static bool link_sent(struct rwk_link *pub)
{
	const struct link *l = link_of(pub);

	for (const struct rwk_list *n = l->all.next; n != &l->all; n = n->next) {
		const struct stream *s = rwk_container_of(n, struct stream, all);

		if ((s->state == OPEN || s->state == LEAVING) && !rwk_carry_all_sent(s))
			return false;
	}
	return true;
}

static const struct rwk_link_ops tcp_ops = {
	.name = "tcp",
	.traits = RWK_LINK_IS_STREAM,
	.mtu = link_mtu,
	.send = link_send,
	.flush = link_flush,
	.progress = link_progress,
	.now = link_now,
	.arm = link_arm,
	.wait_fd = link_wait_fd,
	.sent = link_sent,
	.close = link_close,
};

/*
 * tcp.h.
 */

static int watch_own(struct link *l, int fd, void *what)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_descriptors(struct link *l)
{
	int err;

	l->listener = rwk_tcp_listen(l);
	if (l->listener < 0)
		return l->listener;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		err = -errno;
		goto close_listener;
	}
	l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (l->timer < 0) {
		err = -errno;
		goto close_epoll;
	}
	err = watch_own(l, l->listener, &l->listener);
	if (!err)
		err = watch_own(l, l->timer, &l->timer);
	if (!err)
		return 0;
	close(l->timer);
close_epoll:
	close(l->epoll);
close_listener:
	close(l->listener);
	return err;
}

int rwk_tcp_open(const struct rwk_tcp_attr *attr, struct rwk_link **out)
{
	struct link *l;
	int err;

	if (!attr->nonce)
		return -EINVAL;
	if (sodium_init() < 0)
		return -ENOSYS;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->pub.ops = &tcp_ops;
	l->attr = *attr;
	l->attr.connect_ms = attr->connect_ms ? attr->connect_ms : 5000;
	l->attr.stranger_ms = attr->stranger_ms ? attr->stranger_ms : 5000;
	l->attr.strangers = attr->strangers ? attr->strangers : 128;
	l->due = NEVER;
	rwk_list_init(&l->all);
	rwk_list_init(&l->timed);
	rwk_list_init(&l->half);
	rwk_list_init(&l->dirty);
	rwk_list_init(&l->words);
	rwk_list_init(&l->told);
	rwk_list_init(&l->unheard);
	err = open_descriptors(l);
	if (err) {
		free(l);
		return err;
	}
	*out = &l->pub;
	return 0;
}

uint16_t rwk_tcp_port(const struct rwk_link *l)
{
	return rwk_container_of(l, struct link, pub)->port;
}

struct rwk_link_address rwk_tcp_address(const uint8_t ip[16], uint16_t port)
{
	struct rwk_link_address a = {{0}};

	memcpy(a.byte, ip, 16);
	a.byte[16] = (uint8_t)(port >> 8); /* as it goes over the wire */
	a.byte[17] = (uint8_t)port;
	return a;
}

int rwk_tcp_reach(struct rwk_link *pub, const struct rwk_link_address *to, uint64_t nonce)
{
	struct link *l = link_of(pub);
	struct stream *s = rwk_stream_find(l, to);

	if (s) {
		uint64_t there = s->state == OPEN ? s->nonce : s->meant;

		if (nonce && there && nonce != there)
			return -EEXIST;
		if (s->state == OPEN)
			rwk_stream_tell(s, 0);
		else if (nonce)
			s->meant = nonce;
		return 0;
	}
	if (nonce == l->attr.nonce || (!to->byte[16] && !to->byte[17]))
		return -EINVAL;
	s = rwk_stream_new(l, WAITING);
	if (!s)
		return -ENOMEM;
	s->who = *to;
	s->meant = nonce;
	if (rwk_stream_enter(s)) {
		rwk_stream_drop(s);
		return -ENOMEM;
	}
	rwk_meet_begin(s);
	return 0;
}

/* What was to be told about the address needs to be told no more. */
static void forget_words(struct rwk_list *words, const struct rwk_link_address *to)
{
	struct rwk_list *next;

	for (struct rwk_list *n = words->next; n != words; n = next) {
		struct stream *s = rwk_container_of(n, struct stream, word);

		next = n->next;
		if (memcmp(&s->who, to, sizeof(*to)))
			continue;
		rwk_list_remove(n);
		if (s->state == ENDED)
			rwk_stream_drop(s);
	}
}

void rwk_tcp_leave(struct rwk_link *pub, const struct rwk_link_address *to)
{
	struct link *l = link_of(pub);
	struct stream *s = rwk_stream_find(l, to);

	forget_words(&l->words, to);
	forget_words(&l->told, to);
	if (!s)
		return;
	rwk_stream_unwatch(s);
	if (s->state == OPEN || s->state == PROVEN)
		rwk_stream_part(s);
	else
		rwk_stream_drop(s);
}

int rwk_tcp_watch(struct rwk_link *pub, const struct rwk_link_address *to, int epoll, uint64_t key)
{
	struct epoll_event e = {.events = EPOLLRDHUP, .data.u64 = key};
	struct stream *s = rwk_stream_find(link_of(pub), to);

	if (!s || s->state != OPEN)
		return -ENOTCONN;
	if (epoll_ctl(epoll, s->watch < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, s->fd, &e))
		return -errno;
	s->watch = epoll;
	return 0;
}

uint64_t rwk_tcp_nonce(struct rwk_link *l, const struct rwk_link_address *to)
{
	struct stream *s = link_of(l)->telling;

	if (s && !memcmp(&s->who, to, sizeof(*to)))
		return s->nonce ? s->nonce : s->meant;
	s = rwk_stream_find(link_of(l), to);
	return s && s->state == OPEN ? s->nonce : 0;
}

const struct rwk_tcp_counts *rwk_tcp_counts(const struct rwk_link *l)
{
	return &rwk_container_of(l, struct link, pub)->counts;
}

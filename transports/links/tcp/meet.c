/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Until a stream is open: connecting, the four messages of hello.h, strangers.
 *
 * Both ends may begin at the same time; one stream must remain, and nobody may send on the other. An end commits itself
 * to a stream that it began by sending its proof (PROVEN): from then on the peer may take it as open. Whoever listens
 * decides when the proof has come:
 *
 *   it has begun one to that process itself, and is not committed: it gives that one up and takes the peer's
 *   it is committed as well: the stream of the smaller nonce is kept. Who has the smaller says LATER; who has the
 *   larger holds the peer's until it has the verdict on its own. That need not be LATER: an end that began one to
 *   whoever is at some address may not know yet that this is the same process, and has taken what it was offered.
 *   a stream with that process, or at that address, is open: LATER. If that is an older stream that has just broken, it
 *   is soon noticed here, and the peer comes again; if it is alive, the peer finds it under the nonce that it was told.
 *
 * Who connected and loses the connection before the verdict has no evidence of anything: the other end lets go of those
 * that take too long, and this end may have been stopped. It tries again; a process that has ended refuses then.
 *
 * When an open stream ends without a goodbye, its process has ended, or a kernel has given the stream up for silence.
 * So whoever sees it asks (rwk_meet_ask): it goes through the same states once more, with `asks` in its proof. Who
 * listens answers that with its nonce and opens nothing.
 */
#include "links/tcp/internal.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TRIES          9u
#define FIRST_DELAY    (20 * MS)  /* then twice as long each time, to 64 times that */
#define STRANGERS_TIME (250 * MS) /* undisturbed by those who come after */
#define DEAF_TIME      (100 * MS)
#define ASK_TIME       (1500 * MS)
#define ACCEPTS        64 /* of one progress */

static bool is_half_open(const struct stream *s)
{
	return s->state == STRANGER || s->state == CHALLENGED || s->state == HELD;
}

static bool is_beginning(const struct stream *s)
{
	return s->state <= PROVEN;
}

/* A message of the hello; on a socket that has sent next to nothing there is room for it. */
static bool say(struct stream *s, const void *message, size_t len)
{
	return send(s->fd, message, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/* 0: all of the next message is in s->in; -EAGAIN: not yet; else errno of a broken connection, -EPIPE at its end. */
static int hear(struct stream *s, size_t len)
{
	ssize_t n = recv(s->fd, s->in + s->got, len - s->got, MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (!n)
		return -EPIPE;
	s->got += (size_t)n;
	if (s->got < len)
		return -EAGAIN;
	s->got = 0;
	return 0;
}

/*
 * Both: the stream is open.
 */

static void open_stream(struct stream *s)
{
	s->state = OPEN;
	rwk_stream_set_due(s, NEVER);
	if (rwk_stream_enter(s)) {
		rwk_warn("tcp: out of memory for a stream that somebody has opened");
		rwk_stream_drop(s);
		return;
	}
	s->link->counts.opened++;
	rwk_stream_tell(s, 0);
}

/*
 * Who connects.
 */

/* Whoever asks what became of a process and gets no answer from it has seen its stream end: that stands. */
static void fail(struct stream *s, int status)
{
	rwk_stream_end(s, s->asks ? -ECONNRESET : status);
}

static void lacks_descriptors(struct link *l, const char *effect)
{
	if (l->warned)
		return;
	l->warned = true;
	rwk_warn("tcp: no file descriptor is left, %s; raise the limit (ulimit -n)", effect);
}

static void wait_and_begin(struct stream *s, unsigned doublings)
{
	rwk_stream_close_socket(s);
	s->state = WAITING;
	rwk_stream_set_due(s, rwk_clock_now() + (FIRST_DELAY << (doublings < 6 ? doublings : 6)));
}

/* No socket. What this end lacks is no answer to what became of the peer: that is asked again, and then left open. */
static void no_socket(struct stream *s, int status)
{
	if (!s->asks || status == -ECONNREFUSED || status == -EHOSTUNREACH)
		fail(s, status);
	else if (++s->tries < TRIES)
		wait_and_begin(s, s->tries - 1);
	else
		rwk_stream_end(s, status);
}

void rwk_meet_begin(struct stream *s)
{
	int fd = rwk_tcp_connect(s->link, &s->who);

	if (fd == -EMFILE || fd == -ENFILE) {
		lacks_descriptors(s->link, "a peer is done without a stream to it");
		fd = -EMFILE;
	}
	if (fd < 0) {
		no_socket(s, fd);
		return;
	}
	s->fd = fd;
	s->state = CONNECTING;
	s->got = 0;
	rwk_stream_set_due(s, rwk_clock_now() + (s->asks ? ASK_TIME : s->link->attr.connect_ms * MS));
	rwk_stream_watch(s, true);
}

void rwk_meet_ask(struct stream *s)
{
	rwk_stream_close_socket(s);
	s->asks = true;
	s->meant = s->nonce;
	s->nonce = 0;
	s->tries = s->laters = 0;
	rwk_meet_begin(s);
}

static void try_again(struct stream *s)
{
	s->link->counts.again++;
	if (++s->tries >= TRIES)
		fail(s, -EACCES); /* whoever is there does not want us */
	else
		wait_and_begin(s, s->tries - 1);
}

static void lost_while_meeting(struct stream *s, int err)
{
	if (err == -EPIPE || err == -ECONNRESET)
		try_again(s);
	else
		fail(s, rwk_tcp_broken(-err));
}

static void connecting(struct stream *s)
{
	int err = rwk_tcp_connected(s->fd);
	struct knock k;

	if (err == -EAGAIN)
		return;
	if (err) {
		if (err == -ECONNRESET)
			try_again(s);
		else
			fail(s, err);
		return;
	}
	rwk_tcp_keep_alive(s->fd);
	rwk_hello_knock(&k);
	if (!say(s, &k, sizeof(k))) {
		try_again(s);
		return;
	}
	s->state = KNOCKED;
	rwk_stream_set_due(s, NEVER);
	rwk_stream_watch(s, false);
}

static void knocked(struct stream *s)
{
	struct link *l = s->link;
	int err = hear(s, sizeof(s->challenge));

	if (err == -EAGAIN)
		return;
	if (err) {
		lost_while_meeting(s, err);
		return;
	}
	memcpy(&s->challenge, s->in, sizeof(s->challenge));
	err = rwk_hello_check_challenge(&s->challenge);
	if (err) {
		fail(s, err == -EPROTO ? -EACCES : err);
		return;
	}
	s->proof = (struct proof){.nonce = l->attr.nonce, .meant = s->meant, .port = l->port, .asks = s->asks};
	rwk_hello_prove(l->attr.secret, &s->challenge, &s->proof);
	if (say(s, &s->proof, sizeof(s->proof)))
		s->state = PROVEN;
	else
		try_again(s);
}

static struct stream *open_with(struct link *l, uint64_t nonce)
{
	for (struct rwk_list *n = l->all.next; n != &l->all; n = n->next) {
		struct stream *o = rwk_container_of(n, struct stream, all);

		if (o->state == OPEN && o->nonce == nonce)
			return o;
	}
	return NULL;
}

/* The peer has another stream with us. If it is open here, that is the one; the owner knows it by this address now. */
static void come_later(struct stream *s, uint64_t nonce)
{
	struct stream *other = open_with(s->link, nonce);

	if (!other) {
		wait_and_begin(s, s->laters++);
		return;
	}
	rwk_stream_leave_table(other);
	other->who = s->who;
	rwk_stream_drop(s);
	if (rwk_stream_enter(other))
		rwk_stream_end(other, -ENOMEM);
	else
		rwk_stream_tell(other, 0);
}

static void verdict(struct stream *s)
{
	struct verdict v;
	int err = hear(s, sizeof(v));

	if (err == -EAGAIN)
		return;
	if (err) {
		lost_while_meeting(s, err);
		return;
	}
	memcpy(&v, s->in, sizeof(v));
	if (rwk_hello_check_verdict(s->link->attr.secret, &s->challenge, &s->proof, &v)) {
		fail(s, -EACCES);
	} else if (s->asks) {
		rwk_stream_end(s, v.nonce == s->meant ? -ETIMEDOUT : -ECONNRESET);
	} else if (v.answer == LATER) {
		come_later(s, v.nonce);
	} else if (v.answer != WELCOME) {
		rwk_stream_end(s, -ESTALE);
	} else if (s->meant && s->meant != v.nonce) {
		rwk_stream_tell(s, -ESTALE);
		rwk_stream_part(s);
	} else {
		s->nonce = v.nonce;
		open_stream(s);
	}
}

/*
 * Who listens.
 */

static void no_friend(struct stream *s)
{
	s->link->counts.strangers++;
	rwk_stream_drop(s);
}

static void stranger(struct stream *s)
{
	int err = hear(s, sizeof(struct knock));
	struct knock k;

	if (err == -EAGAIN)
		return;
	memcpy(&k, s->in, sizeof(k));
	if (err || rwk_hello_check_knock(&k)) {
		no_friend(s);
		return;
	}
	rwk_hello_challenge(&s->challenge);
	if (!say(s, &s->challenge, sizeof(s->challenge))) {
		no_friend(s);
		return;
	}
	s->state = CHALLENGED;
	rwk_stream_set_due(s, rwk_clock_now() + s->link->attr.stranger_ms * MS);
}

static bool answer(struct stream *s, enum answer what)
{
	struct verdict v = {.answer = what, .nonce = s->link->attr.nonce};

	rwk_hello_answer(s->link->attr.secret, &s->challenge, &s->proof, &v);
	return say(s, &v, sizeof(v));
}

static bool same_address(const struct stream *a, const struct stream *b)
{
	return !memcmp(&a->who, &b->who, sizeof(a->who));
}

/* Is `o`, which this end begins, meant for the process at the other end of s? */
static bool same_process(const struct stream *o, const struct stream *s)
{
	return o->meant ? o->meant == s->nonce : same_address(o, s);
}

/* Is this end committed to one with that process? Whoever only asks has nothing to open. */
static bool is_committed(const struct stream *s)
{
	const struct link *l = s->link;

	for (const struct rwk_list *n = l->all.next; n != &l->all; n = n->next) {
		const struct stream *o = rwk_container_of(n, struct stream, all);

		if (o->state == PROVEN && !o->asks && same_process(o, s))
			return true;
	}
	return false;
}

static bool must_wait(const struct stream *s)
{
	const struct link *l = s->link;

	for (const struct rwk_list *n = l->all.next; n != &l->all; n = n->next) {
		const struct stream *o = rwk_container_of(n, struct stream, all);

		if (o->state == OPEN && (o->nonce == s->nonce || same_address(o, s)))
			return true;
		if (o->state == PROVEN && same_process(o, s) && l->attr.nonce < s->nonce)
			return true;
	}
	return false;
}

/* What this end had begun is given up for s, which is known by the name that the owner uses. */
static void take_place(struct stream *s)
{
	struct link *l = s->link;
	struct rwk_list *next;

	for (struct rwk_list *n = l->all.next; n != &l->all; n = next) {
		struct stream *o = rwk_container_of(n, struct stream, all);

		next = n->next;
		if (!is_beginning(o))
			continue;
		if (same_process(o, s)) {
			l->counts.meetings++;
			s->who = o->who;
			if (o->asks)
				rwk_stream_end(o, -ETIMEDOUT);
			else
				rwk_stream_drop(o);
		} else if (same_address(o, s)) {
			fail(o, -ESTALE);
		}
	}
}

static void decide(struct stream *s)
{
	struct link *l = s->link;

	if (s->proof.meant && s->proof.meant != l->attr.nonce) {
		answer(s, STALE);
		rwk_stream_drop(s);
		return;
	}
	s->nonce = s->proof.nonce;
	s->who = rwk_tcp_address(s->who.byte, s->proof.port);
	if (s->proof.asks || must_wait(s)) {
		answer(s, LATER);
		rwk_stream_drop(s);
		return;
	}
	if (is_committed(s)) {
		s->state = HELD;
		return;
	}
	take_place(s);
	if (answer(s, WELCOME))
		open_stream(s);
	else
		rwk_stream_drop(s);
}

static void challenged(struct stream *s)
{
	struct link *l = s->link;
	int err = hear(s, sizeof(s->proof));

	if (err == -EAGAIN)
		return;
	memcpy(&s->proof, s->in, sizeof(s->proof));
	if (err || rwk_hello_check_proof(l->attr.secret, &s->challenge, &s->proof) || !s->proof.nonce ||
		s->proof.nonce == l->attr.nonce || !s->proof.port)
		no_friend(s);
	else
		decide(s);
}

/* Before the verdict the other end says nothing, but that it has given the stream up. */
static void held(struct stream *s)
{
	if (hear(s, 1) == -EAGAIN)
		decide(s);
	else
		rwk_stream_drop(s);
}

/* This end has the verdict on a stream of its own. */
static void decide_held(struct link *l)
{
	for (struct rwk_list *n = l->all.next; n != &l->all; n = n->next) {
		struct stream *s = rwk_container_of(n, struct stream, all);

		if (s->state == HELD)
			held(s);
	}
}

/* For a while nobody is let in: what waits, waits in the kernel. */
static void be_deaf(struct link *l, rwk_time until)
{
	struct epoll_event e = {.events = 0, .data.ptr = &l->listener};

	l->deaf = true;
	l->listen_due = until;
	if (until < l->due)
		l->due = until;
	epoll_ctl(l->epoll, EPOLL_CTL_MOD, l->listener, &e);
}

/* Is there room for one more stranger? The oldest goes for it, if it has had its time. */
static bool make_room(struct link *l)
{
	struct stream *oldest;
	rwk_time until;

	if (l->half_count < l->attr.strangers)
		return true;
	oldest = rwk_container_of(l->half.next, struct stream, half);
	rwk_meet_event(oldest); /* what it has sent is looked at first: it is this end that may have been away */
	if (l->half_count < l->attr.strangers)
		return true;
	oldest = rwk_container_of(l->half.next, struct stream, half);
	until = oldest->due - l->attr.stranger_ms * MS + STRANGERS_TIME;
	if (rwk_clock_now() < until) {
		be_deaf(l, until);
		return false;
	}
	l->counts.silent++;
	rwk_stream_drop(oldest);
	return true;
}

static void let_in(struct link *l, int fd, const struct rwk_link_address *from)
{
	struct stream *s = rwk_stream_new(l, STRANGER);

	if (!s) {
		close(fd);
		return;
	}
	s->fd = fd;
	s->who = *from;
	rwk_list_append(&l->half, &s->half);
	l->half_count++;
	rwk_stream_set_due(s, rwk_clock_now() + l->attr.stranger_ms * MS);
	rwk_stream_watch(s, false);
	rwk_meet_event(s);
}

void rwk_meet_accept(struct link *l)
{
	struct rwk_link_address from;

	for (int i = 0; i < ACCEPTS && make_room(l); i++) {
		int fd = rwk_tcp_accept(l, &from);

		if (fd >= 0) {
			let_in(l, fd, &from);
		} else if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
			lacks_descriptors(l, "peers who connect have to wait");
			l->counts.accept_full++;
			be_deaf(l, rwk_clock_now() + DEAF_TIME);
			return;
		} else if (fd == -EAGAIN) {
			return;
		}
	}
}

/*
 * Both.
 */

void rwk_meet_event(struct stream *s)
{
	if (s->state == CONNECTING)
		connecting(s);
	if (s->state == KNOCKED)
		knocked(s);
	if (s->state == PROVEN) {
		verdict(s);
		if (s->state != PROVEN)
			decide_held(s->link);
	} else if (s->state == HELD) {
		held(s);
	}
	if (s->state == STRANGER)
		stranger(s);
	if (s->state == CHALLENGED)
		challenged(s);
}

void rwk_meet_due(struct stream *s)
{
	if (s->state == WAITING) {
		rwk_meet_begin(s);
		return;
	}
	rwk_meet_event(s); /* this end may have been away: what has come since comes first */
	if (s->state == CONNECTING && s->due == NEVER) {
		fail(s, -ETIMEDOUT);
	} else if (is_half_open(s) && s->due == NEVER) {
		s->link->counts.silent++;
		rwk_stream_drop(s);
	}
}

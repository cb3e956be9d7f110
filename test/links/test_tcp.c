/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP link between two ends of one process: opening, carrying, leaving, meeting each other half-way. */
#include "full_sets.h"
#include "links/tcp/internal.h"
#include "links/tcp_peers.h"

#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* An address is laid out as on the udp link: 16 bytes IP, port little-endian, zeros. */
static void address(void **state)
{
	struct rwk_link_address a = rwk_tcp_address(loopback4, 0x1234), zero = {{0}};

	(void)state;
	assert_memory_equal(a.byte, loopback4, 16);
	assert_int_equal(a.byte[16], 0x12);
	assert_int_equal(a.byte[17], 0x34);
	assert_memory_equal(a.byte + 18, zero.byte, 6);
}

/* What cannot be is refused at once: no nonce, no port, oneself, a foreign IP, a taken port. */
static void refusals(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(0), foreign = tcp_attr(7);
	struct rwk_link_address nowhere = rwk_tcp_address(loopback4, 0);
	struct iovec iov = {&nowhere, 4};
	struct rwk_link *l;
	struct peer *p;

	(void)state;
	assert_int_equal(rwk_tcp_open(&attr, &l), -EINVAL);
	attr = tcp_attr(5);
	p = open_peer(&attr);
	assert_int_equal(rwk_tcp_reach(p->l, &nowhere, 1), -EINVAL);
	assert_int_equal(rwk_tcp_reach(p->l, &p->at, 5), -EINVAL);
	assert_int_equal(p->l->ops->send(p->l, &p->at, &iov, 1), -ENOTCONN);
	attr.port = rwk_tcp_port(p->l);
	assert_int_equal(rwk_tcp_open(&attr, &l), -EADDRINUSE);
	foreign.ip[12] = 192;
	assert_int_equal(rwk_tcp_open(&foreign, &l), -EADDRNOTAVAIL);
	assert_int_equal(p->l->ops->traits, RWK_LINK_IS_STREAM);
	assert_int_equal(p->l->ops->mtu(p->l, &nowhere), RWK_TCP_MTU);
	close_peer(p);
}

/* The port is one of the range; when all of it is taken, that is said. */
static void port_range(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(1);
	struct peer *p[3];
	struct rwk_link *l;
	uint32_t seen = 0;

	(void)state;
	attr.port_first = 23450;
	attr.port_last = 23452;
	for (int i = 0; i < 3; i++) {
		p[i] = open_peer(&attr);
		assert_in_range(rwk_tcp_port(p[i]->l), 23450, 23452);
		seen |= 1u << (rwk_tcp_port(p[i]->l) - 23450);
	}
	assert_int_equal(seen, 7);
	assert_int_equal(rwk_tcp_open(&attr, &l), -EADDRINUSE);
	for (int i = 0; i < 3; i++)
		close_peer(p[i]);
}

/* `count` packets in both directions, with flushes here and there, all there and in order. */
static void exchange(struct peer *a, struct peer *b, uint32_t count)
{
	uint32_t sent_a = 0, sent_b = 0;
	uint64_t got_a = a->got, got_b = b->got, end = now_ms() + 20000;

	a->next = b->next = 0;
	while (a->got - got_a < count || b->got - got_b < count) {
		assert_true(now_ms() < end);
		for (int i = 0; i < 20; i++) {
			if (sent_a < count && !send_number(a, &b->at, sent_a))
				sent_a++;
			if (sent_b < count && i % 3 == 0 && !send_number(b, &a->at, sent_b))
				sent_b++;
		}
		a->l->ops->flush(a->l);
		b->l->ops->flush(b->l);
		a->l->ops->progress(a->l, 7);
		b->l->ops->progress(b->l, 7);
	}
	assert_memory_equal(&b->from, &a->at, sizeof(a->at));
}

static void one_family(const uint8_t ip[16])
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a, *b;

	memcpy(attr_a.ip, ip, 16);
	memcpy(attr_b.ip, ip, 16);
	a = open_peer(&attr_a);
	b = open_peer(&attr_b);
	connect_peers(a, b);
	assert_memory_equal(&b->word_of[0], &a->at, sizeof(a->at));
	assert_int_equal(rwk_tcp_nonce(a->l, &b->at), 22);
	assert_int_equal(rwk_tcp_nonce(b->l, &a->at), 11);
	exchange(a, b, 20000);
	assert_int_equal(rwk_tcp_counts(a->l)->opened, 1);
	assert_int_equal(rwk_tcp_counts(a->l)->packets_out, 20000);
	close_peer(a);
	close_peer(b);
}

/* Packets of all lengths arrive whole, in order, once, both ways, over IPv4 and IPv6. */
static void carrying(void **state)
{
	(void)state;
	one_family(loopback4);
	one_family(loopback6);
}

/* A link bound to no address is reached by both families; a nonce of 0 reaches whoever is there. */
static void any_address(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a, *b;
	struct rwk_link_address by6;

	(void)state;
	memset(attr_b.ip, 0, 16);
	a = open_peer(&attr_a);
	b = open_peer(&attr_b);
	b->nonce = 0;
	connect_peers(a, b);
	assert_int_equal(rwk_tcp_nonce(a->l, &b->at), 22);
	exchange(a, b, 100);
	close_peer(a);

	memcpy(attr_a.ip, loopback6, 16);
	a = open_peer(&attr_a);
	by6 = rwk_tcp_address(loopback6, rwk_tcp_port(b->l));
	b->at = by6;
	connect_peers(a, b);
	exchange(a, b, 100);
	close_peer(a);
	close_peer(b);
}

/* A packet beyond the mtu is refused, and so is one of too many pieces; nothing of them is sent. */
static void too_long(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);
	static uint8_t bytes[RWK_TCP_MTU + 1];
	struct iovec iov = {bytes, sizeof(bytes)};

	(void)state;
	connect_peers(a, b);
	assert_int_equal(a->l->ops->send(a->l, &b->at, &iov, 1), -EMSGSIZE);
	exchange(a, b, 10);
	close_peer(a);
	close_peer(b);
}

/*
 * A reader that does not read: send says -EAGAIN after a bounded number of bytes, and goes on when there is room;
 * pieces are not looked at after flush, though they still wait. Until they have come there, not all is sent.
 */
static void full(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);
	uint32_t sent = 0, before;
	uint64_t end = now_ms() + 20000;
	int err;

	(void)state;
	connect_peers(a, b);
	do {
		err = send_number(a, &b->at, sent);
		sent += !err;
		a->l->ops->flush(a->l); /* send_number uses its memory again after 64 packets */
		assert_true(sent < 100000);
	} while (!err);
	assert_int_equal(err, -EAGAIN);
	assert_false(a->l->ops->sent(a->l));
	before = sent;
	while (b->got < before + 1000u) {
		assert_true(now_ms() < end);
		if (sent < before + 1000u && !send_number(a, &b->at, sent))
			sent++;
		a->l->ops->flush(a->l);
		a->l->ops->progress(a->l, 1);
		b->l->ops->progress(b->l, 64);
	}
	assert_true(rwk_tcp_counts(a->l)->full > 0);
	while (b->got < sent || !a->l->ops->sent(a->l)) {
		assert_true(now_ms() < end);
		a->l->ops->progress(a->l, 64);
		b->l->ops->progress(b->l, 64);
	}
	close_peer(a);
	close_peer(b);
}

static unsigned outboxes(const struct rwk_link *pub)
{
	const struct link *l = rwk_container_of(pub, struct link, pub);
	unsigned n = 0;

	for (const struct outbox *o = l->spare; o; o = o->next)
		n++;
	for (const struct rwk_list *i = l->all.next; i != &l->all; i = i->next)
		n += rwk_container_of(i, struct stream, all)->out != NULL;
	return n;
}

/* Streams need memory for what they send only while it waits: all together for as many as send at once. */
static void few_outboxes(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11);
	struct peer *a = open_peer(&attr_a), *b[6];
	unsigned i;

	(void)state;
	for (i = 0; i < 6; i++) {
		struct rwk_tcp_attr attr_b = tcp_attr(22 + i);

		b[i] = open_peer(&attr_b);
		connect_peers(a, b[i]);
	}
	assert_int_equal(outboxes(a->l), 0);
	for (i = 0; i < 6; i++) {
		assert_int_equal(send_number(a, &b[i]->at, 0), 0);
		a->l->ops->flush(a->l);
		assert_int_equal(outboxes(a->l), 1);
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(send_number(a, &b[i]->at, 1), 0);
	a->l->ops->flush(a->l);
	assert_int_equal(outboxes(a->l), 3);
	for (i = 0; i < 6; i++) {
		while (b[i]->got < (i < 3 ? 2 : 1))
			run_for(a, b[i], 1);
		close_peer(b[i]);
	}
	close_peer(a);
}

/* Who leaves hears nothing more; the other hears -ESHUTDOWN, after all packets sent before. Both may begin anew. */
static void leaving(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);

	(void)state;
	for (unsigned i = 1; i <= 3; i++) {
		connect_peers(a, b);
		b->next = 0;
		for (uint32_t n = 0; n < 50; n++)
			assert_int_equal(send_number(a, &b->at, n), 0);
		assert_int_equal(send_number(b, &a->at, 0), 0);
		b->l->ops->flush(b->l);
		rwk_tcp_leave(a->l, &b->at);
		until_words(b, a, 2 * i);
		assert_int_equal(last_word(b), -ESHUTDOWN);
		assert_int_equal(b->got, 50 * i);
		assert_int_equal(send_number(a, &b->at, 0), -ENOTCONN);
		assert_int_equal(send_number(b, &a->at, 0), -ENOTCONN);
		run_for(a, b, 20);
		assert_int_equal(a->word_count, i);
		assert_int_equal(a->got, 0);
	}
	close_peer(a);
	close_peer(b);
}

/* Leaving with more under way than fits into sockets: all of it still arrives, then the goodbye. */
static void leaving_full(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);
	uint32_t sent = 0;

	(void)state;
	connect_peers(a, b);
	while (!send_number(a, &b->at, sent)) {
		a->l->ops->flush(a->l);
		sent++;
	}
	rwk_tcp_leave(a->l, &b->at);
	until_words(b, a, 2);
	assert_int_equal(last_word(b), -ESHUTDOWN);
	assert_int_equal(b->got, sent);
	close_peer(a);
	close_peer(b);
}

/*
 * Leaving with more under way than fits into sockets: it is sent when the peer's kernel has it, though the peer itself
 * does not end the stream.
 */
static void leaving_full_sent(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);
	uint64_t end = now_ms() + 20000;
	static uint8_t drained[65536];
	const struct link *there;
	uint32_t sent = 0;
	int fd;

	(void)state;
	connect_peers(a, b);
	while (!send_number(a, &b->at, sent)) {
		a->l->ops->flush(a->l);
		sent++;
	}
	there = rwk_container_of(b->l, struct link, pub);
	fd = rwk_container_of(there->all.next, struct stream, all)->fd;
	rwk_tcp_leave(a->l, &b->at);
	assert_false(a->l->ops->sent(a->l));
	while (!a->l->ops->sent(a->l)) {
		assert_true(now_ms() < end);
		a->l->ops->progress(a->l, 1);
		recv(fd, drained, sizeof(drained), MSG_DONTWAIT);
	}
	close_peer(a);
	close_peer(b);
}

/* A link that is closed leaves its streams in good order. */
static void closing(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);

	(void)state;
	connect_peers(a, b);
	assert_int_equal(send_number(a, &b->at, 0), 0);
	close_peer(a);
	until_words(b, NULL, 2);
	assert_int_equal(last_word(b), -ESHUTDOWN);
	assert_int_equal(b->got, 1);
	close_peer(b);
}

/* Nobody listens: refused. Another nonce is there: stale, and nothing opens at either end. */
static void nobody_and_another(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);

	(void)state;
	assert_int_equal(rwk_tcp_reach(a->l, &b->at, 23), 0);
	assert_int_equal(rwk_tcp_reach(a->l, &b->at, 24), -EEXIST);
	until_words(a, b, 1);
	assert_int_equal(last_word(a), -ESTALE);
	assert_memory_equal(&a->word_of[0], &b->at, sizeof(b->at));
	run_for(a, b, 20);
	assert_int_equal(b->word_count, 0);
	close_peer(b);
	b = NULL;
	assert_int_equal(rwk_tcp_reach(a->l, &a->word_of[0], 22), 0);
	until_words(a, NULL, 2);
	assert_int_equal(last_word(a), -ECONNREFUSED);
	close_peer(a);
}

/*
 * An end that was away for longer than its patience, with more that has happened than one look at its sockets shows:
 * what has happened counts, not that time has passed.
 */
static void away(void **state)
{
	enum { MANY = 80 };
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	uint64_t end = now_ms() + 20000;
	struct peer *a, *b[MANY];
	unsigned opened = 0;

	(void)state;
	attr_a.connect_ms = 50;
	a = open_peer(&attr_a);
	for (int i = 0; i < MANY; i++) {
		attr_b.nonce = 100 + (unsigned)i;
		b[i] = open_peer(&attr_b);
		assert_int_equal(rwk_tcp_reach(a->l, &b[i]->at, attr_b.nonce), 0);
	}
	usleep(100000);
	while (opened < MANY) {
		assert_true(now_ms() < end);
		a->word_count = 0;
		a->l->ops->progress(a->l, 16);
		for (unsigned i = 0; i < a->word_count; i++)
			assert_int_equal(a->words[i], 0);
		opened += a->word_count;
		for (int i = 0; i < MANY; i++)
			b[i]->l->ops->progress(b[i]->l, 16);
	}
	close_peer(a);
	for (int i = 0; i < MANY; i++)
		close_peer(b[i]);
}

/* Reaching again what is open tells that it is; another nonce at its address is refused while it is. */
static void reach_again(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);

	(void)state;
	connect_peers(a, b);
	assert_int_equal(rwk_tcp_reach(b->l, &a->at, 11), 0);
	until_words(b, a, 2);
	assert_int_equal(last_word(b), 0);
	assert_int_equal(rwk_tcp_reach(b->l, &a->at, 12), -EEXIST);
	assert_int_equal(rwk_tcp_counts(a->l)->opened, 1);
	assert_int_equal(rwk_tcp_counts(b->l)->opened, 1);
	close_peer(a);
	close_peer(b);
}

/*
 * A stream that the peer began is known by the address that it came from. Reached under another of the peer's addresses
 * it is the same stream, and known by that from then on.
 */
static void another_address(void **state)
{
	static const uint8_t second[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};

	(void)state;
	for (uint64_t nonce = 0; nonce <= 11; nonce += 11) {
		struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
		struct rwk_link_address by_first;
		struct peer *a, *b;

		memset(attr_a.ip, 0, 16);
		a = open_peer(&attr_a);
		b = open_peer(&attr_b);
		connect_peers(a, b);
		by_first = a->at;
		a->at = rwk_tcp_address(second, rwk_tcp_port(a->l));
		assert_int_equal(rwk_tcp_reach(b->l, &a->at, nonce), 0);
		until_words(b, a, 2);
		assert_int_equal(b->words[1], 0);
		assert_memory_equal(&b->word_of[1], &a->at, sizeof(a->at));
		assert_int_equal(rwk_tcp_counts(b->l)->opened, 1);
		assert_int_equal(send_number(b, &by_first, 0), -ENOTCONN);
		exchange(a, b, 100);
		assert_int_equal(a->word_count, 1);
		close_peer(a);
		close_peer(b);
	}
}

/*
 * Both begin at the same time, and each knows the other by an address that it does not come from: by its nonce it is
 * found all the same, and each keeps the name that it asked for.
 */
static void meeting_elsewhere(void **state)
{
	static const uint8_t second[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
		struct peer *a, *b;

		memset(attr_a.ip, 0, 16);
		memset(attr_b.ip, 0, 16);
		a = open_peer(&attr_a);
		b = open_peer(&attr_b);
		a->at = rwk_tcp_address(second, rwk_tcp_port(a->l));
		assert_int_equal(rwk_tcp_reach(a->l, &b->at, 22), 0);
		assert_int_equal(rwk_tcp_reach(b->l, &a->at, 11), 0);
		until_words(a, b, 1);
		until_words(b, a, 1);
		assert_int_equal(rwk_tcp_nonce(a->l, &b->at), 22);
		assert_int_equal(rwk_tcp_nonce(b->l, &a->at), 11);
		assert_int_equal(rwk_tcp_counts(a->l)->opened, 1);
		exchange(a, b, 10);
		close_peer(a);
		close_peer(b);
	}
}

/*
 * Both begin at the same time, at every offset of their progress: one stream remains, nobody hears of the other, and
 * packets sent the moment that a stream is open arrive.
 */
static void meeting(void **state)
{
	unsigned meetings = 0;

	(void)state;
	for (unsigned i = 0; i < 600; i++) {
		struct rwk_tcp_attr attr_a = tcp_attr(i & 1 ? 33 : 11), attr_b = tcp_attr(22);
		struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);
		bool sent_a = false, sent_b = false;
		uint64_t end = now_ms() + 20000;

		assert_int_equal(rwk_tcp_reach(a->l, &b->at, i & 2 ? 22 : 0), 0);
		for (unsigned n = 0; n < i / 4 % 5; n++)
			a->l->ops->progress(a->l, 16);
		for (unsigned n = 0; n < i / 20 % 5; n++)
			b->l->ops->progress(b->l, 16);
		assert_int_equal(rwk_tcp_reach(b->l, &a->at, i & 2 ? a->nonce : 0), 0);
		for (unsigned n = 0; n < i / 100 % 3; n++)
			b->l->ops->progress(b->l, 16);
		while (!a->got || !b->got) {
			assert_true(now_ms() < end);
			a->l->ops->progress(a->l, 16);
			if (a->word_count && !sent_a)
				sent_a = send_number(a, &b->at, 0) == 0;
			a->l->ops->flush(a->l);
			b->l->ops->progress(b->l, 16);
			if (b->word_count && !sent_b)
				sent_b = send_number(b, &a->at, 0) == 0;
			b->l->ops->flush(b->l);
		}
		run_for(a, b, 2);
		for (unsigned n = 0; n < a->word_count; n++)
			assert_int_equal(a->words[n], 0);
		for (unsigned n = 0; n < b->word_count; n++)
			assert_int_equal(b->words[n], 0);
		assert_int_equal(rwk_tcp_counts(a->l)->opened, 1);
		assert_int_equal(rwk_tcp_counts(b->l)->opened, 1);
		meetings += rwk_tcp_counts(a->l)->meetings + rwk_tcp_counts(b->l)->meetings;
		close_peer(a);
		close_peer(b);
	}
	assert_true(meetings > 100);
}

/* To sleep: nothing readable while nothing happens; a packet makes wait_fd readable, a timer of the link as well. */
static void sleeping(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);
	struct pollfd p;

	(void)state;
	connect_peers(a, b);
	run_for(a, b, 20);
	p = (struct pollfd){.fd = b->l->ops->wait_fd(b->l, 0), .events = POLLIN};
	assert_int_equal(b->l->ops->arm(b->l), 0);
	assert_int_equal(poll(&p, 1, 50), 0);
	assert_int_equal(send_number(a, &b->at, 0), 0);
	a->l->ops->flush(a->l);
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(b->l->ops->progress(b->l, 16), 1);

	/* What was read and not delivered, and a word not told yet, are something to do. */
	for (uint32_t n = 1; n < 20; n++)
		assert_int_equal(send_number(a, &b->at, n), 0);
	a->l->ops->flush(a->l);
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(b->l->ops->progress(b->l, 1), 1);
	assert_int_equal(b->l->ops->arm(b->l), -EAGAIN);
	run_for(a, b, 20);
	assert_int_equal(b->got, 20);
	assert_int_equal(rwk_tcp_reach(b->l, &a->at, 0), 0);
	assert_int_equal(b->l->ops->arm(b->l), -EAGAIN);
	close_peer(a);
	close_peer(b);
}

static int warnings;

static void count_warnings(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	(void)text;
	warnings += level == RWK_LOG_WARN;
}

static const struct stream *only_stream(const struct peer *p)
{
	const struct link *l = rwk_container_of(p->l, struct link, pub);

	assert_true(l->all.next != &l->all && l->all.next->next == &l->all);
	return rwk_container_of(l->all.next, struct stream, all);
}

/* b sleeps; a packet to it wakes it, though maybe only because it looks from time to time. */
static void assert_woken(struct peer *a, struct peer *b)
{
	struct pollfd p = {.fd = b->l->ops->wait_fd(b->l, 0), .events = POLLIN};
	uint64_t before = b->got, end = now_ms() + 20000;

	b->next = 0;
	run_for(a, b, 5);
	assert_int_equal(send_number(a, &b->at, 0), 0);
	a->l->ops->flush(a->l);
	while (b->got == before) {
		assert_true(now_ms() < end);
		if (b->l->ops->arm(b->l))
			continue;
		assert_int_equal(poll(&p, 1, 20000), 1);
		b->l->ops->progress(b->l, 16);
	}
}

/*
 * Sockets that no epoll set takes are served all the same, and who sleeps wakes for them; once there is room again they
 * wake at once. One line of log for a link.
 */
static void unheard(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);

	(void)state;
	rwk_log_set_sink(count_warnings);
	warnings = 0;
	sets_are_full = true;
	connect_peers(a, b);
	assert_woken(a, b);
	exchange(a, b, 200);
	assert_false(only_stream(a)->watched || only_stream(b)->watched);
	sets_are_full = false;
	for (uint64_t end = now_ms() + 20000; !only_stream(a)->watched || !only_stream(b)->watched; run_for(a, b, 1))
		assert_true(now_ms() < end);
	assert_int_equal(b->l->ops->arm(b->l), 0);
	assert_woken(a, b);
	rwk_tcp_leave(a->l, &b->at);
	until_words(b, a, 2);

	sets_are_full = true;
	connect_peers(a, b);
	rwk_tcp_leave(a->l, &b->at);
	until_words(b, a, 4);
	assert_int_equal(last_word(b), -ESHUTDOWN);
	run_for(a, b, 20);
	sets_are_full = false;
	assert_int_equal(warnings, 2);
	rwk_log_set_sink(NULL);
	close_peer(a);
	close_peer(b);
}

static int epoll;
static uint64_t seen_with_word;
static int word_seen;

/* What an epoll set of the caller's says: the key of the stream that has ended; 0: none has. */
static uint64_t watched(void)
{
	struct epoll_event e[2];
	int n = epoll_wait(epoll, e, 2, 0);

	assert_in_range(n, 0, 1);
	return n ? e[0].data.u64 : 0;
}

static void on_word(void *user, const struct rwk_link_address *who, int status)
{
	(void)user;
	(void)who;
	word_seen = status;
	seen_with_word = watched();
}

/*
 * A watched stream shows its end until the word is told, whatever comes by it before; one that is
 * left shows nothing.
 */
static void watching(void **state)
{
	struct rwk_tcp_attr one = tcp_attr(1), two = tcp_attr(2);
	struct peer *a = open_peer(&one), *b = open_peer(&two);
	void (*word)(void *, const struct rwk_link_address *, int) = a->l->word;

	(void)state;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(rwk_tcp_watch(a->l, &b->at, epoll, 7), -ENOTCONN);
	connect_peers(a, b);
	assert_int_equal(rwk_tcp_watch(a->l, &b->at, epoll, 7), 0);
	assert_int_equal(rwk_tcp_watch(a->l, &b->at, epoll, 8), 0);
	assert_int_equal(send_number(b, &a->at, 0), 0);
	b->l->ops->flush(b->l);
	run_for(b, NULL, 20);
	assert_int_equal(watched(), 0);
	run_for(a, b, 20);
	assert_int_equal(a->got, 1);
	rwk_tcp_leave(b->l, &a->at);
	assert_int_equal(watched(), 8);
	assert_int_equal(watched(), 8);
	a->l->word = on_word;
	run_for(a, b, 20);
	assert_int_equal(word_seen, -ESHUTDOWN);
	assert_int_equal(seen_with_word, 8);
	assert_int_equal(watched(), 0);

	a->l->word = word;
	connect_peers(a, b);
	assert_int_equal(rwk_tcp_watch(a->l, &b->at, epoll, 9), 0);
	rwk_tcp_leave(a->l, &b->at);
	run_for(b, a, 20);
	assert_int_equal(watched(), 0);
	close_peer(a);
	close_peer(b);
	close(epoll);
}

static struct rwk_link_address nowhere(uint16_t port)
{
	static const uint8_t everybody[16] = {[10] = 0xff, [11] = 0xff, [12] = 255, [13] = 255, [14] = 255, [15] = 255};

	return rwk_tcp_address(everybody, port);
}

static unsigned discontents;

/* Leaves the other, whose word is the next, and tries again, as long as that is not a loop for ever. */
static void never_content(void *user, const struct rwk_link_address *who, int status)
{
	struct rwk_link_address other = nowhere(2);
	struct rwk_link *l = user;

	assert_true(status < 0);
	assert_memory_not_equal(who, &other, sizeof(other));
	rwk_tcp_leave(l, &other);
	if (++discontents < 100)
		assert_int_equal(rwk_tcp_reach(l, who, 33), 0);
}

/* What is begun in a word, and fails at once, is told by the next progress; what is left in a word, not at all. */
static void words_of_words(void **state)
{
	struct rwk_link_address first = nowhere(1), second = nowhere(2);
	struct rwk_tcp_attr attr = tcp_attr(11);
	struct rwk_link *l;

	(void)state;
	assert_int_equal(rwk_tcp_open(&attr, &l), 0);
	l->word = never_content;
	l->user = l;
	discontents = 0;
	assert_int_equal(rwk_tcp_reach(l, &first, 33), 0);
	assert_int_equal(rwk_tcp_reach(l, &second, 44), 0);
	l->ops->progress(l, 16);
	assert_int_equal(discontents, 1);
	l->ops->progress(l, 16);
	assert_int_equal(discontents, 2);
	l->ops->close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address),
		cmocka_unit_test(refusals),
		cmocka_unit_test(port_range),
		cmocka_unit_test(carrying),
		cmocka_unit_test(any_address),
		cmocka_unit_test(too_long),
		cmocka_unit_test(full),
		cmocka_unit_test(few_outboxes),
		cmocka_unit_test(leaving),
		cmocka_unit_test(leaving_full),
		cmocka_unit_test(leaving_full_sent),
		cmocka_unit_test(closing),
		cmocka_unit_test(nobody_and_another),
		cmocka_unit_test(away),
		cmocka_unit_test(reach_again),
		cmocka_unit_test(another_address),
		cmocka_unit_test(meeting),
		cmocka_unit_test(meeting_elsewhere),
		cmocka_unit_test(sleeping),
		cmocka_unit_test(unheard),
		cmocka_unit_test(words_of_words),
		cmocka_unit_test(watching),
	};

	return cmocka_run_group_tests_name("links/tcp", tests, NULL, NULL);
}

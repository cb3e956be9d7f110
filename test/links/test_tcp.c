/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP link between two ends of one process: opening, carrying and leaving. */
#include "links/tcp/internal.h"
#include "links/tcp_peers.h"
#include "own_port.h"
#include "warnings.h"

#include <sys/socket.h>

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

/* With that error, and a line that says where. */
static void check_refused(const struct rwk_tcp_attr *attr, int err, unsigned first, unsigned last)
{
	struct rwk_link *l;
	char ports[64];

	snprintf(ports, sizeof(ports), "port %u to %u", first, last);
	warnings_begin();
	assert_int_equal(rwk_tcp_open(attr, &l), err);
	warnings_end();
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(last_warning, ports));
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
	check_refused(&attr, -EADDRINUSE, attr.port, attr.port);
	foreign.ip[12] = 192;
	check_refused(&foreign, -EADDRNOTAVAIL, 0, 0);
	assert_int_equal(p->l->ops->traits, RWK_LINK_IS_STREAM);
	assert_int_equal(p->l->ops->mtu(p->l, &nowhere), RWK_TCP_MTU);
	close_peer(p);
}

/* The port is one of the range; when all of it is taken, that is said. */
static void port_range(void **state)
{
	struct rwk_tcp_attr attr = tcp_attr(1);
	struct peer *p[3];
	uint32_t seen = 0;

	(void)state;
	attr.port_first = own_port();
	attr.port_last = attr.port_first + 2;
	for (int i = 0; i < 3; i++) {
		p[i] = open_peer(&attr);
		assert_in_range(rwk_tcp_port(p[i]->l), attr.port_first, attr.port_last);
		seen |= 1u << (rwk_tcp_port(p[i]->l) - attr.port_first);
	}
	assert_int_equal(seen, 7);
	check_refused(&attr, -EADDRINUSE, attr.port_first, attr.port_last);
	for (int i = 0; i < 3; i++)
		close_peer(p[i]);
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
	};

	return cmocka_run_group_tests_name("links/tcp", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP link between hosts that are namespaces of this test's own (as root; skipped otherwise):
 *
 *   host 0                      host 1                      host 2
 *   v0 10.9.0.1, fd09::1  ----  v1 10.9.0.2, fd09::2
 *                               w1 10.9.1.2, fd19::2  ----  w2 10.9.1.3, fd19::3
 *
 * Host 1 is a router. The cables are of 9000 bytes, unless a test makes them narrower for its time.
 */
#define _GNU_SOURCE /* CLONE_NEWNET */
#include "udp_hosts.h"
#include "udp_pair.h"

#include "base/log.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIPPED 77

static struct {
	const char *near, *router, *far; /* of host 0, of host 1 on that side, of host 2 */
	unsigned headers;
} const families[] = {{"10.9.0.1", "10.9.0.2", "10.9.1.3", 28}, {"fd09::1", "fd09::2", "fd19::3", 48}};

static struct udp_end *open_with(int host, const char *ip, struct rwk_udp_attr attr)
{
	struct udp_end *e;

	udp_host_enter(host);
	udp_ip(ip, attr.ip);
	e = udp_end_open_with(&attr);
	udp_host_enter(0);
	return e;
}

static struct udp_end *open_at(int host, const char *ip, int receive_buffer)
{
	return open_with(host, ip, (struct rwk_udp_attr){.receive_buffer = receive_buffer});
}

static size_t mtu_to(struct udp_end *a, const struct udp_end *b)
{
	return a->link->ops->mtu(a->link, &b->here);
}

static void set_mtu(int mtu)
{
	udp_host_run(0, "ip link set v0 mtu %d", mtu);
	udp_host_run(1, "ip link set v1 mtu %d", mtu);
}

/* Sends packets of that length in a batch and alone; all arrive. */
static void check_arrives(struct udp_end *a, struct udp_end *b, size_t len)
{
	b->arrived = 0;
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(udp_send(a, &b->here, i, len), 0);
	udp_flush(a);
	assert_int_equal(udp_send(a, &b->here, 20, len), 0);
	udp_flush(a);
	udp_receive(b, 21);
	assert_int_equal(b->arrived, 21);
	assert_int_equal(b->damaged, 0);
	for (unsigned i = 0; i < 21; i++)
		assert_int_equal(b->length[i], len);
}

/* The largest packet is the interface's MTU less the headers, arrives, and one byte more is refused. */
static void test_mtu(void **state)
{
	static const int mtus[] = {9000, 1500, 2048};

	(void)state;
	for (int m = 0; m < 3; m++) {
		set_mtu(mtus[m]);
		for (int f = 0; f < 2; f++) {
			struct udp_end *a = open_at(0, families[f].near, 0), *b = open_at(1, families[f].router, 0);
			size_t mtu = mtu_to(a, b);

			assert_int_equal(mtu, mtus[m] - families[f].headers);
			check_arrives(a, b, mtu);
			assert_int_equal(udp_send(a, &b->here, 1, mtu + 1), -EMSGSIZE);
			udp_flush(a);
			assert_int_equal(udp_counters(a).too_long, 0);
			udp_end_close(a);
			udp_end_close(b);
		}
	}
	set_mtu(9000);
}

/*
 * An interface that becomes narrower, towards peers of any kind: what no longer fits is dropped and counted, and then
 * the MTU is the new one.
 */
static void test_narrower_strict(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++)
		for (unsigned batch = 1; batch <= 3; batch += 2) {
			struct udp_end *a = open_with(0, families[f].near, (struct rwk_udp_attr){.strict = true});
			struct udp_end *b = open_at(1, families[f].router, 0);

			assert_int_equal(mtu_to(a, b), 9000 - families[f].headers);
			set_mtu(1500);
			for (unsigned i = 0; i < batch; i++)
				assert_int_equal(udp_send(a, &b->here, i, 5000), 0);
			udp_flush(a);
			assert_int_equal(udp_counters(a).too_long, batch);
			assert_int_equal(mtu_to(a, b), 1500 - families[f].headers);
			assert_int_equal(udp_send(a, &b->here, 0, 5000), -EMSGSIZE);
			check_arrives(a, b, mtu_to(a, b));
			udp_drain(a);
			assert_int_equal(udp_counters(a).notices, 0);
			udp_end_close(a);
			udp_end_close(b);
			set_mtu(9000);
		}
}

/*
 * The same between our own ends: nothing is dropped, alone or in batches. What fits goes whole and in batches as
 * before; what never did is refused as before.
 */
static void test_narrower_interface(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++)
		for (unsigned batch = 1; batch <= 60;
			batch += batch == 1 ? 2 : 57) { /* 60: the link gives some to the kernel before flush */
			struct udp_end *a = open_at(0, families[f].near, 0), *b = open_at(1, families[f].router, 0);

			assert_int_equal(mtu_to(a, b), 9000 - families[f].headers);
			set_mtu(1500);
			for (unsigned i = 0; i < batch; i++)
				assert_int_equal(udp_send(a, &b->here, i, 5000), 0);
			udp_flush(a);
			udp_receive(b, batch);
			assert_int_equal(b->arrived, batch);
			assert_int_equal(mtu_to(a, b), 1500 - families[f].headers);
			udp_end_close(b);
			b = open_at(1, families[f].router, 0);
			check_arrives(a, b, 9000 - families[f].headers);
			assert_int_equal(udp_counters(a).batches_out, 0);
			udp_end_close(b);
			b = open_at(1, families[f].router, 0);
			check_arrives(a, b, mtu_to(a, b));
			assert_true(udp_counters(a).batches_out > 0);
			assert_int_equal(udp_send(a, &b->here, 0, 9001 - families[f].headers), -EMSGSIZE);
			assert_int_equal(udp_counters(a).too_long + udp_counters(a).failed, 0);
			udp_end_close(a);
			udp_end_close(b);
			set_mtu(9000);
		}
}

/* The same for who shares a socket, and has never asked how long packets may be. */
static void test_narrower_adopted(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct udp_end *first = open_at(0, families[f].near, 0), *b = open_at(1, families[f].router, 0);
		struct udp_end *a = udp_end_adopt(first, -1);
		size_t len = 9000 - families[f].headers;

		udp_end_close(first);
		for (int i = 0; i < 3; i++) {
			set_mtu(i ? 1500 : 9000);
			check_arrives(a, b, len);
			check_arrives(a, b, 1000);
		}
		assert_int_equal(udp_counters(a).too_long + udp_counters(a).failed, 0);
		udp_end_close(a);
		udp_end_close(b);
		set_mtu(9000);
	}
}

static bool sends_in_batches(struct udp_end *a, struct udp_end *b)
{
	uint64_t before = udp_counters(a).batches_out;

	check_arrives(a, b, 5000);
	return udp_counters(a).batches_out != before;
}

static bool sends_at_all(struct udp_end *a, struct udp_end *b)
{
	int rc = udp_send(a, &b->here, 0, 5000);

	udp_flush(a);
	udp_drain(b);
	return !rc;
}

static void wait_for_wider(bool (*is_wider)(struct udp_end *a, struct udp_end *b), struct udp_end *a, struct udp_end *b)
{
	for (int i = 0; i < 200 && !is_wider(a, b); i++)
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	assert_true(is_wider(a, b));
}

/*
 * An interface that becomes narrower and as wide again: so do the packets after a while, those to peers of any kind and
 * the batches of our own ends, whose favourites have lines again. It may become narrower once more.
 */
static void test_wider(void **state)
{
	struct udp_end *strict[2], *a[2], *b[2];

	(void)state;
	for (int f = 0; f < 2; f++) {
		strict[f] = open_with(0, families[f].near, (struct rwk_udp_attr){.strict = true});
		a[f] = open_at(0, families[f].near, 0);
		b[f] = open_at(1, families[f].router, 0);
		assert_int_equal(mtu_to(strict[f], b[f]), 9000 - families[f].headers);
		assert_int_equal(mtu_to(a[f], b[f]), 9000 - families[f].headers);
	}
	set_mtu(1500);
	for (int f = 0; f < 2; f++) {
		sends_at_all(strict[f], b[f]);
		assert_false(sends_at_all(strict[f], b[f]));
		assert_false(sends_in_batches(a[f], b[f]));
	}
	set_mtu(9000);
	for (int f = 0; f < 2; f++) {
		wait_for_wider(sends_in_batches, a[f], b[f]);
		wait_for_wider(sends_at_all, strict[f], b[f]);
		check_arrives(strict[f], b[f], 9000 - families[f].headers);
		a[f]->favour = true;
		check_arrives(b[f], a[f], 1000);
		assert_int_equal(udp_counters(a[f]).lines, 1);
	}
	set_mtu(1500);
	for (int f = 0; f < 2; f++) {
		assert_false(sends_in_batches(a[f], b[f]));
		assert_int_equal(udp_counters(a[f]).too_long + udp_counters(a[f]).failed, 0);
		udp_end_close(strict[f]);
		udp_end_close(a[f]);
		udp_end_close(b[f]);
	}
	set_mtu(9000);
}

/* A way is as wide again as it was for one who shares a socket; another's is not, whose packets go on in fragments. */
static void test_wider_for_one(void **state)
{
	struct udp_end *first = open_at(0, "10.9.0.1", 0);
	struct udp_end *a = udp_end_adopt(first, -1), *c = udp_end_adopt(first, -1);
	struct udp_end *b = open_at(1, "10.9.0.2", 0), *d = open_at(2, "10.9.1.3", 0);

	(void)state;
	udp_end_close(first);
	assert_int_equal(mtu_to(a, b), 8972);
	assert_int_equal(mtu_to(c, d), 8972);
	udp_host_run(0, "ip route add 10.9.0.2/32 dev v0 mtu 1500; ip route replace 10.9.1.0/24 via 10.9.0.2 mtu 1500");
	assert_false(sends_in_batches(a, b));
	assert_false(sends_in_batches(c, d));
	udp_host_run(0, "ip route del 10.9.0.2/32 dev v0");
	wait_for_wider(sends_in_batches, a, b);
	assert_false(sends_in_batches(c, d));
	assert_int_equal(udp_counters(c).too_long + udp_counters(c).failed, 0);
	udp_end_close(a);
	udp_end_close(b);
	udp_end_close(c);
	udp_end_close(d);
	udp_host_run(0, "ip route replace 10.9.1.0/24 via 10.9.0.2");
}

/* A narrow place behind a router: what meets it is lost, its ICMP message makes the MTU smaller, and then all passes.
 */
static void test_narrow_path(void **state)
{
	(void)state;
	udp_host_run(1, "ip link set w1 mtu 1400");
	for (int f = 0; f < 2; f++)
		for (int strict = 0; strict < 2; strict++) {
			struct udp_end *a = open_with(0, families[f].near, (struct rwk_udp_attr){.strict = strict});
			struct udp_end *b = open_at(2, families[f].far, 0);

			assert_int_equal(mtu_to(a, b), 9000 - families[f].headers);
			assert_int_equal(udp_send(a, &b->here, 1, 4000), 0);
			udp_flush(a);
			assert_true(udp_wait(a, 2000));
			udp_drain(a);
			assert_int_equal(udp_counters(a).notices, 1);
			assert_int_equal(a->words, 0);
			assert_int_equal(mtu_to(a, b), 1400 - families[f].headers);
			if (strict)
				assert_int_equal(udp_send(a, &b->here, 2, 4000), -EMSGSIZE);
			check_arrives(a, b, strict ? mtu_to(a, b) : 4000);
			udp_end_close(a);
			udp_end_close(b);
			udp_host_run(0, "ip route flush cache");
			udp_host_run(0, "ip -6 route flush cache");
		}
	udp_host_run(1, "ip link set w1 mtu 9000");
}

/*
 * A neighbour that does not answer yet and a small send buffer: the kernel keeps what it waits with, and has no room
 * for more. send says so; what it has taken, in batches and alone, all arrives once the neighbour is there.
 */
static void test_no_room(void **state)
{
	struct udp_end *a = open_at(0, "10.9.0.1", 0), *b;
	struct rwk_link_address to;
	uint8_t ip[16];
	uint32_t sent = 0;
	int small = 4608, fd = a->link->ops->wait_fd(a->link, 0);

	(void)state;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	udp_ip("10.9.0.77", ip);
	to = rwk_udp_address(ip, 4791);
	while (udp_send(a, &to, sent, sent % 7 == 6 ? 300 : 1200) == 0) {
		assert_true(sent < 2000);
		if (++sent % 10 == 0)
			udp_flush(a);
	}
	assert_int_equal(udp_send(a, &to, sent, 1), -EAGAIN);
	udp_flush(a);
	assert_true(udp_counters(a).refused >= 2);
	assert_true(udp_counters(a).no_room >= 1);
	assert_true(udp_counters(a).packets_out < sent);
	assert_int_equal(a->link->ops->arm(a->link), -EAGAIN);

	udp_host_run(1, "ip addr add 10.9.0.77/24 dev v1");
	udp_host_enter(1);
	b = udp_end_open_with(&(struct rwk_udp_attr){.ip = {[10] = 0xff, 0xff, 10, 9, 0, 77}, .port = 4791});
	udp_host_enter(0);
	for (int i = 0; i < 5000 && b->arrived < sent; i++) {
		a->link->ops->progress(a->link, 64);
		b->link->ops->progress(b->link, 64);
		udp_wait(b, 1);
	}
	assert_int_equal(b->arrived, sent);
	assert_int_equal(b->damaged, 0);
	for (uint32_t i = 0; i < sent; i++) {
		assert_int_equal(b->number[i], i);
		assert_int_equal(b->length[i], i % 7 == 6 ? 300 : 1200);
	}
	assert_int_equal(udp_counters(a).packets_out, sent);
	assert_int_equal(a->link->ops->arm(a->link), 0);
	assert_int_equal(udp_send(a, &to, sent, 64), 0);
	udp_flush(a);
	udp_receive(b, sent + 1);
	assert_int_equal(b->arrived, sent + 1);
	udp_host_run(1, "ip addr del 10.9.0.77/24 dev v1");
	udp_end_close(a);
	udp_end_close(b);
}

/* What rwk_udp_room says fits over a cable too. */
static void test_room(void **state)
{
	static const size_t lengths[] = {100, 1044, 1629, 4136, 8900};

	(void)state;
	for (int f = 0; f < 2; f++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			struct udp_end *a = open_at(0, families[f].near, 0);
			struct udp_end *b = open_at(1, families[f].router, 106496);

			udp_check_room(a, b, lengths[i], false);
			udp_check_room(a, b, lengths[i], true);
			udp_end_close(a);
			udp_end_close(b);
		}
}

/* Routes that lead nowhere: the packets are dropped and counted, batches too, and other peers still get batches. */
static void test_dead_ends(void **state)
{
	static const char *const kinds[] = {"unreachable", "prohibit", "blackhole"};

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct udp_end *a, *b;
		struct rwk_link_address nowhere;
		uint8_t ip[16];

		udp_host_run(0, "ip route add %s 10.66.0.0/16", kinds[k]);
		a = open_at(0, "10.9.0.1", 0);
		b = open_at(1, "10.9.0.2", 0);
		udp_ip("10.66.1.1", ip);
		nowhere = rwk_udp_address(ip, 4791);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(udp_send(a, &nowhere, i, 1400), 0);
		assert_int_equal(udp_send(a, &b->here, 9, 400), 0);
		udp_flush(a);
		udp_receive(b, 1);
		assert_int_equal(b->arrived, 1);
		assert_int_equal(udp_counters(a).failed, 3);
		check_arrives(a, b, 1000);
		assert_int_equal(udp_counters(a).batches_out, 1);
		udp_end_close(a);
		udp_end_close(b);
		udp_host_run(0, "ip route del %s 10.66.0.0/16", kinds[k]);
	}
}

/* The way becomes narrower for a favourite: its packets go on as anybody's do, and there is no line any more. */
static void test_line_narrower(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct udp_end *a = open_at(0, families[f].near, 0), *b = open_at(1, families[f].router, 0);

		a->favour = true;
		check_arrives(b, a, 1000);
		assert_int_equal(udp_counters(a).lines, 1);
		assert_int_equal(mtu_to(a, b), 9000 - families[f].headers);
		set_mtu(1500);
		check_arrives(a, b, 5000);
		assert_int_equal(udp_counters(a).too_long + udp_counters(a).failed, 0);
		a->favour = true;
		check_arrives(b, a, 1000);
		check_arrives(a, b, 5000);
		assert_int_equal(udp_counters(a).lines, 1);
		udp_end_close(a);
		udp_end_close(b);
		set_mtu(9000);
	}
}

/*
 * Our address is gone, and with it the line from it: the peer would not know us by the one that is there instead.
 * Packets are dropped and counted until the first one is back.
 */
static void test_line_loses_address(void **state)
{
	struct udp_end *a, *b = open_at(1, "10.9.0.2", 0);
	uint8_t ip[16];

	(void)state;
	udp_host_enter(0);
	a = udp_end_open_with(&(struct rwk_udp_attr){.port = 0});
	udp_ip("10.9.0.1", ip);
	a->here = rwk_udp_address(ip, rwk_udp_port(a->link));
	check_arrives(b, a, 1000);
	a->favour = true;
	check_arrives(b, a, 1000);
	assert_int_equal(udp_counters(a).lines, 1);
	check_arrives(a, b, 1000);
	assert_memory_equal(&b->from, &a->here, sizeof(b->from));
	udp_host_run(0, "ip addr del 10.9.0.1/24 dev v0 && ip addr add 10.9.0.5/24 dev v0");
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(udp_send(a, &b->here, i, 1000), 0);
	udp_flush(a);
	udp_drain(b);
	assert_int_equal(b->arrived, 21);
	assert_int_equal(udp_counters(a).failed, 3);
	udp_host_run(0, "ip addr del 10.9.0.5/24 dev v0 && ip addr add 10.9.0.1/24 dev v0");
	udp_host_run(0, "ip route replace 10.9.1.0/24 via 10.9.0.2");
	check_arrives(a, b, 1000);
	assert_memory_equal(&b->from, &a->here, sizeof(b->from));
	check_arrives(b, a, 1000);
	assert_int_equal(udp_counters(a).failed, 3);
	udp_end_close(a);
	udp_end_close(b);
}

/* The last packet has come from where a is known to be, and a knows it. */
static void check_source(struct udp_end *a, struct udp_end *b, size_t len)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];

	assert_memory_equal(&b->from, &a->here, sizeof(b->from));
	assert_int_equal(a->link->ops->pseudo(a->link, &b->here, true, len, 0, pseudo), b->pseudo_len);
	assert_memory_equal(pseudo, b->pseudo, b->pseudo_len);
}

/* Packets of every kind, each in a call of its own, and batches. */
static void check_source_of_all(struct udp_end *a, struct udp_end *b)
{
	uint8_t bytes[1000];
	struct iovec half[2] = {{bytes, 500}, {bytes + 500, 500}};

	check_arrives(a, b, 1000);
	check_source(a, b, 1000);
	b->arrived = 0;
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(udp_send(a, &b->here, i, 5000), 0);
	udp_flush(a);
	udp_receive(b, 20);
	assert_int_equal(b->arrived, 20);
	check_source(a, b, 5000);
	udp_fill(bytes, sizeof(bytes), 7);
	b->arrived = 0;
	assert_int_equal(a->link->ops->hasten(a->link, &b->here, bytes, sizeof(bytes)), 0);
	udp_receive(b, 1);
	assert_int_equal(b->arrived, 1);
	check_source(a, b, sizeof(bytes));
	assert_int_equal(a->link->ops->send(a->link, &b->here, half, 2), 0);
	udp_flush(a);
	udp_receive(b, 2);
	assert_int_equal(b->arrived, 2);
	assert_int_equal(b->damaged, 0);
	check_source(a, b, sizeof(bytes));
}

static void route_from(int f, const char *source)
{
	udp_host_run(0, "ip %s route replace %s dev v0 src %s", f ? "-6" : "-4", families[f].router, source);
}

/*
 * The kernel's choice of our address changes for an end that has all of them: packets leave from the first one as
 * before, also when the way has become narrower, and when they were for a line.
 */
static void test_source_stays(void **state)
{
	static const char *const other[] = {"10.9.0.11", "fd09::11"};

	(void)state;
	udp_host_run(0, "ip addr add 10.9.0.11/32 dev v0 && ip addr add fd09::11/128 dev v0 nodad");
	for (int f = 0; f < 2; f++)
		for (int way = 0; way < 3; way++) { /* of a's own socket, one that it has adopted, a line */
			struct udp_end *a, *b = open_at(1, families[f].router, 0);
			uint8_t ip[16];

			a = udp_end_open_with(&(struct rwk_udp_attr){.port = 0});
			udp_ip(families[f].near, ip);
			a->here = rwk_udp_address(ip, rwk_udp_port(a->link));
			if (way == 1) {
				struct udp_end *first = a;

				a = udp_end_adopt(first, -1);
				udp_end_close(first);
			}
			route_from(f, families[f].near);
			assert_int_equal(mtu_to(a, b), 9000 - families[f].headers);
			check_source_of_all(a, b);
			route_from(f, other[f]);
			check_source_of_all(a, b);
			a->favour = way == 2;
			check_arrives(b, a, 1000);
			assert_int_equal(udp_counters(a).lines, way == 2);
			set_mtu(1500);
			check_source_of_all(a, b);
			assert_int_equal(mtu_to(a, b), 1500 - families[f].headers);
			assert_int_equal(udp_counters(a).too_long + udp_counters(a).failed, 0);
			udp_end_close(a);
			udp_end_close(b);
			set_mtu(9000);
		}
	udp_host_run(0, "ip route del 10.9.0.2 dev v0 && ip -6 route del fd09::2 dev v0");
	udp_host_run(0, "ip addr del 10.9.0.11/32 dev v0 && ip addr del fd09::11/128 dev v0");
}

static struct rwk_link_address host_of(int f, unsigned i)
{
	uint8_t ip[16];

	udp_ip(f ? "fd40::" : "10.64.0.0", ip);
	ip[13] += (uint8_t)(i >> 16);
	ip[14] = (uint8_t)(i >> 8);
	ip[15] = (uint8_t)i;
	return rwk_udp_address(ip, 4791);
}

/* What a says of packets to each of so many hosts of one network: they leave from `source`. */
static void check_sources(struct udp_end *a, int f, unsigned hosts, const char *source)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX], ip[16];

	udp_ip(source, ip);
	for (unsigned i = 0; i < hosts; i++) {
		struct rwk_link_address to = host_of(f, i);

		assert_int_equal(a->link->ops->pseudo(a->link, &to, true, 100, 0, pseudo), f ? 56 : 36);
		assert_memory_equal(pseudo + (f ? 16 : 20), f ? ip : ip + 12, f ? 16 : 4);
	}
}

static void route_to_many(int f, const char *source)
{
	udp_host_run(0, "ip %s route replace %s via %s src %s", f ? "-6" : "-4", f ? "fd40::/16" : "10.64.0.0/15",
		families[f].router, source);
}

/*
 * Many hosts of one network, for each of which the kernel's choice of our address changes: packets leave from the first
 * one. What is known costs no descriptor. Of more hosts than are kept the old ones are asked for again.
 */
static void test_sources_of_many(void **state)
{
	static const char *const other[] = {"10.9.0.11", "fd09::11"};
	struct rlimit old, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	udp_host_run(0, "ip addr add 10.9.0.11/32 dev v0 && ip addr add fd09::11/128 dev v0 nodad");
	for (int f = 0; f < 2; f++) {
		struct udp_end *a = udp_end_open_with(&(struct rwk_udp_attr){.port = 0});

		route_to_many(f, families[f].near);
		check_sources(a, f, 1000, families[f].near);
		route_to_many(f, other[f]);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		check_sources(a, f, 1000, families[f].near);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		route_to_many(f, families[f].near);
		check_sources(a, f, f ? 1000 : 33000, families[f].near);
		udp_end_close(a);
		udp_host_run(0, "ip %s route del %s", f ? "-6" : "-4", f ? "fd40::/16" : "10.64.0.0/15");
	}
	udp_host_run(0, "ip addr del 10.9.0.11/32 dev v0 && ip addr del fd09::11/128 dev v0");
}

/* A real firewall. */
static void test_firewall(void **state)
{
	struct udp_end *a = open_at(0, "10.9.0.1", 0), *b = open_at(1, "10.9.0.2", 0);

	(void)state;
	udp_host_run(0, "iptables -w 20 -A OUTPUT -p udp -j DROP");
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(udp_send(a, &b->here, i, 400), 0);
	udp_flush(a);
	udp_drain(b);
	assert_int_equal(b->arrived, 0);
	assert_int_equal(udp_counters(a).failed, 3);
	udp_host_run(0, "iptables -w 20 -D OUTPUT -p udp -j DROP");
	check_arrives(a, b, 1000);
	udp_end_close(a);
	udp_end_close(b);
}

/* The address by which a peer is reached is that of the interface towards it. */
static void test_route_ip(void **state)
{
	static const struct {
		const char *peer, *source;
	} cases[] = {{"10.9.0.1", "10.9.0.2"}, {"10.9.1.3", "10.9.1.2"}, {"127.0.0.1", "127.0.0.1"},
		{"fd19::3", "fd19::2"}, {"10.9.1.2", "10.9.1.2"}, {"::1", "::1"}};
	uint8_t peer[16], source[16], expected[16];

	(void)state;
	udp_host_enter(1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		udp_ip(cases[i].peer, peer);
		udp_ip(cases[i].source, expected);
		assert_int_equal(rwk_udp_route_ip(peer, source), 0);
		assert_memory_equal(source, expected, 16);
	}
	udp_ip("10.200.0.1", peer);
	assert_int_equal(rwk_udp_route_ip(peer, source), -ENETUNREACH);
	udp_host_enter(0);
}

static void check_own_ip(int host, const char *include, const char *exclude, const char *expected)
{
	uint8_t ip[16], wanted[16];
	char why[600] = "";

	udp_host_enter(host);
	assert_int_equal(rwk_udp_own_ip(include, exclude, ip, why, sizeof(why)), 0);
	udp_host_enter(0);
	udp_ip(expected, wanted);
	if (memcmp(ip, wanted, 16))
		fail_msg("include '%s' exclude '%s': not %s", include ? include : "", exclude ? exclude : "", expected);
}

/* The kernel takes up to a second to say so. */
static void wait_for_carrier(int host, const char *name)
{
	udp_host_run(host,
		"for i in $(seq 100); do ip link show %s | grep -q 'state UP' && exit 0; sleep 0.1; done; exit 1",
		name);
}

/*
 * Host 2 gets a bridge whose name and index come first, and an interface without a carrier: neither is told to others
 * while there is an ordinary one, unless it is asked for; the default route decides among several.
 */
static void test_own_ip(void **state)
{
	(void)state;
	check_own_ip(0, NULL, NULL, "10.9.0.1");
	udp_host_run(2, "ip link set abr0 up");
	udp_host_run(2, "ip link add d2 type veth peer name e2 && ip link set d2 master abr0 up && ip link set e2 up");
	udp_host_run(2, "ip addr add 172.17.0.1/16 dev abr0");
	check_own_ip(2, NULL, NULL, "10.9.1.3");
	check_own_ip(2, NULL, "w2", "172.17.0.1");
	check_own_ip(2, NULL, "w2,abr0", "127.0.0.1");
	udp_host_run(2, "ip link add x2 type veth peer name y2 && ip link set x2 up");
	udp_host_run(2, "ip addr add 10.10.0.1/24 dev x2");
	check_own_ip(2, NULL, NULL, "10.9.1.3");
	udp_host_run(2,
		"ip link set y2 up && ip link add z2 type veth peer name q2 && ip link set z2 up && ip link set q2 up");
	udp_host_run(2, "ip addr add 10.11.0.1/24 dev z2");
	wait_for_carrier(2, "x2");
	wait_for_carrier(2, "z2");
	check_own_ip(2, NULL, NULL, "10.9.1.3");
	check_own_ip(2, NULL, "w2", "10.10.0.1");
	check_own_ip(2, "z2,x2", NULL, "10.11.0.1");
	check_own_ip(2, "10.10.0.0/16", NULL, "10.10.0.1");
	check_own_ip(2, "10.8.0.0/13", "10.9.0.0/16", "10.10.0.1");
	check_own_ip(2, "fd00::/8", NULL, "fd19::3");
	check_own_ip(2, "abr0", NULL, "172.17.0.1");
	check_own_ip(2, "lo", NULL, "127.0.0.1");
	udp_host_run(2, "ip route add default via 10.11.0.9");
	check_own_ip(2, NULL, NULL, "10.11.0.1");
	check_own_ip(2, NULL, "10.11.0.1", "10.9.1.3");
	udp_host_run(2, "ip route replace default via 172.17.0.9");
	check_own_ip(2, NULL, NULL, "172.17.0.1");
	udp_host_run(2, "ip route del default; ip link del abr0; ip link del d2; ip link del x2; ip link del z2");
	udp_host_run(2, "ip addr del 10.9.1.3/24 dev w2");
	check_own_ip(2, NULL, NULL, "fd19::3");
	udp_host_run(2, "ip addr add 10.9.1.3/24 dev w2");
}

static void plug_in(void)
{
	udp_host_run(2, "ip link add abr0 type bridge"); /* for test_own_ip: it is the first in every list */
	udp_host_cable(0, "v0", 1, "v1", 9000);
	udp_host_cable(1, "w1", 2, "w2", 9000);
	udp_host_run(0, "ip addr add 10.9.0.1/24 dev v0 && ip addr add fd09::1/64 dev v0 nodad");
	udp_host_run(1, "ip addr add 10.9.0.2/24 dev v1 && ip addr add fd09::2/64 dev v1 nodad");
	udp_host_run(1, "ip addr add 10.9.1.2/24 dev w1 && ip addr add fd19::2/64 dev w1 nodad");
	udp_host_run(2, "ip addr add 10.9.1.3/24 dev w2 && ip addr add fd19::3/64 dev w2 nodad");
	wait_for_carrier(0, "v0");
	wait_for_carrier(2, "w2");
	udp_host_run(1, "echo 1 >/proc/sys/net/ipv4/ip_forward && echo 1 >/proc/sys/net/ipv6/conf/all/forwarding");
	udp_host_run(0, "ip route add 10.9.1.0/24 via 10.9.0.2 && ip route add fd19::/64 via fd09::2");
	udp_host_run(2, "ip route add 10.9.0.0/24 via 10.9.1.2 && ip route add fd09::/64 via fd19::2");
}

static int setup(void **state)
{
	(void)state;
	plug_in();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_narrower_strict),
		cmocka_unit_test(test_narrower_interface),
		cmocka_unit_test(test_narrower_adopted),
		cmocka_unit_test(test_wider),
		cmocka_unit_test(test_wider_for_one),
		cmocka_unit_test(test_narrow_path),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_dead_ends),
		cmocka_unit_test(test_line_narrower),
		cmocka_unit_test(test_line_loses_address),
		cmocka_unit_test(test_source_stays),
		cmocka_unit_test(test_sources_of_many),
		cmocka_unit_test(test_firewall),
		cmocka_unit_test(test_route_ip),
		cmocka_unit_test(test_own_ip),
	};

	if (udp_hosts_make()) {
		puts("no network namespaces of our own here: skipped");
		return EXIT_SKIPPED;
	}
	return cmocka_run_group_tests(tests, setup, NULL);
}

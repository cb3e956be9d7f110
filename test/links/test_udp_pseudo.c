/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the UDP link says of the headers below BTH, against the packets themselves, as a packet socket at host 1 sees
 * them (as root; skipped otherwise):
 *
 *   host 0                      host 1
 *   v0 10.9.0.1, fd09::1  ----  v1 10.9.0.2, fd09::2 and as second addresses 10.9.0.3, fd09::3
 */
#include "udp_hosts.h"
#include "udp_pair.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXIT_SKIPPED 77

struct captured {
	uint8_t bytes[256];
	bool ip4;
	size_t headers; /* bytes of IP and UDP */
};

static int capture;

static void open_capture(void)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

	udp_host_enter(1);
	capture = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	assert_true(capture >= 0);
	at.sll_ifindex = (int)if_nametoindex("v1");
	assert_int_equal(bind(capture, (struct sockaddr *)&at, sizeof(at)), 0);
	udp_host_enter(0);
}

/* The next UDP packet on the cable to or from that port. */
static void next_captured(uint16_t port, struct captured *c)
{
	struct pollfd p = {.fd = capture, .events = POLLIN};

	for (;;) {
		size_t at;

		assert_true(poll(&p, 1, 20000) > 0);
		assert_true(recv(capture, c->bytes, sizeof(c->bytes), 0) > 0);
		c->ip4 = c->bytes[0] >> 4 == 4;
		if (c->bytes[c->ip4 ? 9 : 6] != IPPROTO_UDP)
			continue;
		at = c->ip4 ? 20 : 40;
		c->headers = at + 8;
		if (c->bytes[at] == port >> 8 && c->bytes[at + 1] == (port & 0xff))
			return;
		if (c->bytes[at + 2] == port >> 8 && c->bytes[at + 3] == (port & 0xff))
			return;
	}
}

/* As the ICRC sees it: what a router may change is all ones. */
static void mask(struct captured *c)
{
	uint8_t *b = c->bytes;

	memset(b + c->headers - 2, 0xff, 2); /* UDP checksum */
	if (c->ip4) {
		b[1] = b[8] = 0xff;
		memset(b + 10, 0xff, 2);
	} else {
		b[0] = 0x6f;
		memset(b + 1, 0xff, 3);
		b[7] = 0xff;
	}
}

static void check_pseudo(const struct captured *c, const uint8_t *pseudo, size_t len)
{
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	assert_int_equal(len, 8 + c->headers);
	assert_memory_equal(pseudo, ones, 8);
	assert_memory_equal(pseudo + 8, c->bytes, c->headers);
}

static struct udp_end *open_at(int host, const char *ip)
{
	struct rwk_udp_attr attr = {.strict = true};
	struct udp_end *e;

	udp_host_enter(host);
	if (ip)
		udp_ip(ip, attr.ip);
	e = udp_end_open_with(&attr);
	udp_host_enter(0);
	return e;
}

/* Sends one packet to that IP of b, and compares what both links say with what was on the cable. */
static void check_packet(struct udp_end *a, struct udp_end *b, const char *ip, size_t len)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX], target[16];
	struct rwk_link_address to;
	struct captured c;
	size_t n;

	udp_ip(ip, target);
	to = rwk_udp_address(target, rwk_udp_port(b->link));
	assert_int_equal(udp_send(a, &to, 3, len), 0);
	udp_flush(a);
	next_captured(rwk_udp_port(b->link), &c);
	if (c.ip4) {
		assert_int_equal(c.bytes[4] << 8 | c.bytes[5], 0);       /* identification */
		assert_int_equal(c.bytes[6] << 8 | c.bytes[7], 1 << 14); /* DF alone */
	}
	mask(&c);
	n = a->link->ops->pseudo(a->link, &to, true, len, 0, pseudo);
	check_pseudo(&c, pseudo, n);
	b->arrived = 0;
	udp_host_enter(1);
	udp_receive(b, 1);
	udp_host_enter(0);
	assert_int_equal(b->arrived, 1);
	check_pseudo(&c, b->pseudo, b->pseudo_len);
}

/* Both ends, bound and not, both families; a packet to the second address too, which the route does not tell. */
static void test_packets(void **state)
{
	static const char *const near[] = {"10.9.0.1", "fd09::1", NULL};
	static const char *const far[] = {"10.9.0.2", "fd09::2", "10.9.0.3", "fd09::3"};

	(void)state;
	for (int n = 0; n < 3; n++)
		for (int f = 0; f < 8; f++) {
			struct udp_end *a, *b;
			bool ip6 = f & 1;

			if (near[n] && (n == 1) != ip6)
				continue;
			a = open_at(0, near[n]);
			b = open_at(1, f < 4 ? far[f] : NULL);
			check_packet(a, b, far[f % 4], 1);
			check_packet(a, b, far[f % 4], 24);
			check_packet(a, b, far[f % 4], 1100);
			udp_end_close(a);
			udp_end_close(b);
		}
}

/* The identification is written as it is given. */
static void test_identification(void **state)
{
	uint8_t zero[RWK_LINK_PSEUDO_MAX], other[RWK_LINK_PSEUDO_MAX];
	struct udp_end *a = open_at(0, "10.9.0.1"), *b = open_at(1, "10.9.0.2");

	(void)state;
	assert_int_equal(a->link->ops->pseudo(a->link, &b->here, true, 100, 0, zero), 36);
	assert_int_equal(a->link->ops->pseudo(a->link, &b->here, true, 100, 0x1234, other), 36);
	assert_int_equal(other[12], 0x12);
	assert_int_equal(other[13], 0x34);
	zero[12] = 0x12;
	zero[13] = 0x34;
	assert_memory_equal(zero, other, 36);
	udp_end_close(a);
	udp_end_close(b);
}

/* Without a way to the peer an end that is bound to no IP cannot say the headers, and says so; with one it can. */
static void test_no_way(void **state)
{
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX], target[16];
	struct udp_end *a = open_at(0, NULL), *bound = open_at(0, "10.9.0.1");
	struct rwk_link_address to;

	(void)state;
	udp_ip("10.8.0.2", target);
	to = rwk_udp_address(target, 4791);
	udp_host_enter(0);
	assert_int_equal(a->link->ops->pseudo(a->link, &to, true, 100, 0, pseudo), 0);
	assert_int_equal(bound->link->ops->pseudo(bound->link, &to, true, 100, 0, pseudo), 36);
	udp_host_run(0, "ip route add 10.8.0.0/24 dev v0");
	assert_int_equal(a->link->ops->pseudo(a->link, &to, true, 100, 0, pseudo), 36);
	udp_host_run(0, "ip route del 10.8.0.0/24 dev v0");
	udp_end_close(a);
	udp_end_close(bound);
}

/* Many packets of one size, which is where batches would have numbered them: a strict link's have identification 0. */
static void test_strict(void **state)
{
	struct udp_end *a = open_at(0, "10.9.0.1"), *b = open_at(1, "10.9.0.2");
	struct captured c;

	(void)state;
	for (uint32_t i = 0; i < 30; i++)
		assert_int_equal(udp_send(a, &b->here, i, 200), 0);
	udp_flush(a);
	for (uint32_t i = 0; i < 30; i++) {
		next_captured(rwk_udp_port(b->link), &c);
		assert_int_equal(c.bytes[4] << 8 | c.bytes[5], 0);
		assert_int_equal(c.bytes[2] << 8 | c.bytes[3], 228);
	}
	udp_end_close(a);
	udp_end_close(b);
}

static int setup(void **state)
{
	(void)state;
	udp_host_cable(0, "v0", 1, "v1", 1500);
	udp_host_run(0, "ip addr add 10.9.0.1/24 dev v0 && ip addr add fd09::1/64 dev v0 nodad");
	udp_host_run(1, "ip addr add 10.9.0.2/24 dev v1 && ip addr add fd09::2/64 dev v1 nodad");
	udp_host_run(1, "ip addr add 10.9.0.3/24 dev v1 && ip addr add fd09::3/64 dev v1 nodad");
	open_capture();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(capture);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_identification),
		cmocka_unit_test(test_no_way),
		cmocka_unit_test(test_strict),
	};

	if (udp_hosts_make()) {
		puts("no network namespaces of our own here: skipped");
		return EXIT_SKIPPED;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}

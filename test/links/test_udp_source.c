/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP link between hosts (udp_cables.h): by which of a host's addresses packets leave, and which one is told to
 * others.
 */
#include "udp_cables.h"

#include <sys/resource.h>
#include <unistd.h>

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

/* No new descriptor from now on. */
static struct rlimit no_descriptors(void)
{
	struct rlimit before, none;
	int lowest = dup(0);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return before;
}

/*
 * A process that has no descriptor left knows all the same whence its packets leave, also to hosts that it has never
 * sent to, of both families, one after the other; and where there is no way, that the next host has one.
 */
static void test_without_descriptor(void **state)
{
	(void)state;
	for (int adopted = 0; adopted < 2; adopted++) {
		struct udp_end *a = udp_end_open_with(&(struct rwk_udp_attr){.port = 0}), *b[2];
		struct rwk_link_address nowhere = host_of(0, 1);
		uint8_t pseudo[RWK_LINK_PSEUDO_MAX];
		struct rlimit before;

		if (adopted) {
			struct udp_end *first = a;

			a = udp_end_adopt(first, -1);
			udp_end_close(first);
		}
		for (int f = 0; f < 2; f++)
			b[f] = open_at(1, families[f].router, 0);
		before = no_descriptors();
		assert_int_equal(a->link->ops->pseudo(a->link, &nowhere, true, 100, 0, pseudo), 0);
		for (int f = 0; f < 2; f++) {
			uint8_t ip[16];

			udp_ip(families[f].near, ip);
			a->here = rwk_udp_address(ip, rwk_udp_port(a->link));
			assert_int_equal(mtu_to(a, b[f]), 9000 - families[f].headers);
			check_source_of_all(a, b[f]);
			check_arrives(b[f], a, 1000);
		}
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		for (int f = 0; f < 2; f++)
			udp_end_close(b[f]);
		udp_end_close(a);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_loses_address),
		cmocka_unit_test(test_source_stays),
		cmocka_unit_test(test_sources_of_many),
		cmocka_unit_test(test_without_descriptor),
		cmocka_unit_test(test_route_ip),
		cmocka_unit_test(test_own_ip),
	};

	if (udp_hosts_make()) {
		puts("no network namespaces of our own here: skipped");
		return EXIT_SKIPPED;
	}
	return cmocka_run_group_tests_name("links/udp_source", tests, plug_in, NULL);
}

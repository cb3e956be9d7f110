/* SPDX-License-Identifier: BSD-3-Clause */
/* The UDP link between hosts (udp_cables.h): how long packets may be, on a way that becomes narrower and wider. */
#include "udp_cables.h"

#include <time.h>

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
		cmocka_unit_test(test_line_narrower),
	};

	if (udp_hosts_make()) {
		puts("no network namespaces of our own here: skipped");
		return EXIT_SKIPPED;
	}
	return cmocka_run_group_tests_name("links/udp_narrow", tests, plug_in, NULL);
}

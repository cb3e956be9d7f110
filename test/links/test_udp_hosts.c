/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP link between hosts (udp_cables.h): packets for which there is no room, no way, or no leave. None is lost
 * silently, and those for others go on.
 */
#include "udp_cables.h"

#include <sys/socket.h>

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
	for (int i = 0; i < 20000 && b->arrived < sent; i++) {
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_dead_ends),
		cmocka_unit_test(test_firewall),
	};

	if (udp_hosts_make()) {
		puts("no network namespaces of our own here: skipped");
		return EXIT_SKIPPED;
	}
	return cmocka_run_group_tests_name("links/udp_hosts", tests, plug_in, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP link and ways that are closed, cut and open again:
 *
 *     a 127.0.0.1:A ---- lo of a network namespace of our own, iptables in between ---- b 127.0.0.1:B
 *
 * Needs root and iptables; skipped without.
 */
#define _GNU_SOURCE
#include "links/tcp_peers.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SKIPPED 77

static struct peer *a, *b;

static void filter(const char *how)
{
	char command[200];

	snprintf(command, sizeof(command), "iptables %s", how);
	assert_int_equal(system(command), 0);
}

static void cut(void)
{
	filter("-A INPUT -p tcp -j DROP");
}

static void heal(void)
{
	filter("-F");
}

static int set_up(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);

	(void)state;
	attr_a.connect_ms = 500;
	memset(attr_a.ip, 0, 16);
	a = open_peer(&attr_a);
	b = open_peer(&attr_b);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	heal();
	close_peer(a);
	close_peer(b);
	return 0;
}

/* No answer at all: no way through. Rejections by a router, or no route: the same at once. */
static void closed(void **state)
{
	static const uint8_t far[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [14] = 2, [15] = 3};
	struct rwk_link_address nowhere = rwk_tcp_address(far, 5000);

	(void)state;
	cut();
	assert_int_equal(rwk_tcp_reach(a->l, &b->at, 22), 0);
	until_words(a, b, 1);
	assert_int_equal(last_word(a), -ETIMEDOUT);
	heal();
	filter("-A INPUT -p tcp -j REJECT --reject-with icmp-host-unreachable");
	assert_int_equal(rwk_tcp_reach(a->l, &b->at, 22), 0);
	until_words(a, b, 2);
	assert_int_equal(last_word(a), -EHOSTUNREACH);
	heal();
	assert_int_equal(rwk_tcp_reach(a->l, &nowhere, 22), 0);
	until_words(a, b, 3);
	assert_int_equal(last_word(a), -EHOSTUNREACH);
	connect_peers(a, b);
}

/* A cut while nothing moves is told at both ends, as silence and not as a death. */
static void cut_idle(void **state)
{
	uint64_t start;

	(void)state;
	connect_peers(a, b);
	run_for(a, b, 200);
	cut();
	start = now_ms();
	until_words(a, b, 2);
	print_message("idle: told after %u ms\n", (unsigned)(now_ms() - start));
	until_words(b, a, 2);
	assert_int_equal(last_word(a), -ETIMEDOUT);
	assert_int_equal(last_word(b), -ETIMEDOUT);
}

/* The same with packets under way. */
static void cut_busy(void **state)
{
	uint64_t start;
	uint32_t n = 0;

	(void)state;
	connect_peers(a, b);
	run_for(a, b, 200);
	cut();
	start = now_ms();
	while (a->word_count < 2) {
		assert_true(now_ms() < start + 20000);
		n += send_number(a, &b->at, n) == 0;
		a->l->ops->flush(a->l);
		a->l->ops->progress(a->l, 16);
		usleep(500);
	}
	print_message("busy: told after %u ms\n", (unsigned)(now_ms() - start));
	assert_int_equal(last_word(a), -ETIMEDOUT);
	until_words(b, a, 2);
	assert_int_equal(last_word(b), -ETIMEDOUT);
}

/* The same with a stream that is full, because its reader does not read. */
static void cut_full(void **state)
{
	uint64_t start;

	(void)state;
	connect_peers(a, b);
	for (uint32_t n = 0; !send_number(a, &b->at, n); n++)
		a->l->ops->flush(a->l);
	run_for(a, NULL, 1500);
	assert_int_equal(a->word_count, 1);
	cut();
	start = now_ms();
	until_words(a, NULL, 2);
	print_message("full for 1500 ms: told after %u ms\n", (unsigned)(now_ms() - start));
	assert_int_equal(last_word(a), -ETIMEDOUT);
}

/* A cut that heals in time loses nothing and is no word. */
static void healed(void **state)
{
	uint64_t end = now_ms() + 1000;
	uint32_t n = 0;

	(void)state;
	connect_peers(a, b);
	cut();
	while (now_ms() < end) {
		n += send_number(a, &b->at, n) == 0;
		a->l->ops->flush(a->l);
		run_for(a, b, 1);
	}
	heal();
	end = now_ms() + 20000;
	while (b->got < n) {
		assert_true(now_ms() < end);
		run_for(a, b, 1);
	}
	assert_int_equal(a->word_count, 1);
	assert_int_equal(b->word_count, 1);
}

/*
 * The way is cut in one direction: a hears nothing more, and its kernel resets the stream. That reset arrives; b asks,
 * and hears that a is alive: no death at either end.
 */
static void one_direction(void **state)
{
	char how[100];

	(void)state;
	connect_peers(a, b);
	snprintf(how, sizeof(how), "-A INPUT -p tcp --sport %u -j DROP", rwk_tcp_port(b->l));
	filter(how);
	until_words(a, b, 2);
	until_words(b, a, 2);
	assert_int_equal(last_word(a), -ETIMEDOUT);
	assert_int_equal(last_word(b), -ETIMEDOUT);
	assert_int_equal(rwk_tcp_counts(b->l)->broken, 1);
}

/* A socket that comes to have the port that nobody listens at connects to itself: nobody is there, all the same. */
static void oneself(void **state)
{
	struct rwk_link_address to = rwk_tcp_address(loopback4, 45678);
	int fd = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "45678 45678", 11), 11);
	assert_int_equal(rwk_tcp_reach(a->l, &to, 33), 0);
	until_words(a, b, 1);
	assert_int_equal(last_word(a), -ECONNREFUSED);
	assert_int_equal(rwk_tcp_counts(a->l)->again, 0);
	assert_int_equal(write(fd, "32768 60999", 11), 11);
	close(fd);
}

/* A network of our own, with loopback up and a filter that takes rules. */
static bool alone(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	int fd;

	if (unshare(CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r))
		return false;
	r.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &r))
		return false;
	close(fd);
	return !system("iptables -L >/dev/null 2>&1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(closed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cut_idle, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cut_busy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cut_full, set_up, tear_down),
		cmocka_unit_test_setup_teardown(healed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_direction, set_up, tear_down),
		cmocka_unit_test_setup_teardown(oneself, set_up, tear_down),
	};

	if (!alone()) {
		fprintf(stderr, "skipped: needs a network namespace and iptables\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests_name("links/tcp ways", tests, NULL, NULL);
}

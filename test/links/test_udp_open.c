/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening a UDP link: ports, addresses, lists of interfaces; and a kernel that lacks something, which is played by
 * system calls of this program's own in place of the C library's.
 */
#define _GNU_SOURCE /* struct mmsghdr */
#include "udp_pair.h"
#include "warnings.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernel refuses, by errno; 0: nothing. */
static int no_ip6, no_batches, no_sending;
static unsigned batches; /* that the kernel was asked to cut */

int socket(int family, int type, int protocol)
{
	if (no_ip6 && family == AF_INET6) {
		errno = no_ip6;
		return -1;
	}
	return (int)syscall(SYS_socket, family, type, protocol);
}

ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
	if (no_sending) {
		errno = no_sending;
		return -1;
	}
	return syscall(SYS_sendto, fd, buf, n, flags, to, len);
}

ssize_t sendmsg(int fd, const struct msghdr *h, int flags)
{
	batches += h->msg_controllen != 0;
	if (no_sending || (no_batches && h->msg_controllen)) {
		errno = no_sending ? no_sending : no_batches;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, h, flags);
}

/* Up to the first that is refused, as the kernel does. */
int sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	for (unsigned i = 0; i < n; i++) {
		ssize_t r = sendmsg(fd, &m[i].msg_hdr, flags);

		if (r < 0)
			return i ? (int)i : -1;
		m[i].msg_len = (unsigned)r;
	}
	return (int)n;
}

static int setup(void **state)
{
	(void)state;
	warnings_begin();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_ip6 = no_batches = no_sending = 0;
	warnings_end();
	return 0;
}

/* An IP whose ports nobody else uses, another run of this test included. */
static void own_loopback(uint8_t ip[16])
{
	pid_t pid = getpid();

	memcpy(ip, udp_ip4, 16);
	ip[13] = (uint8_t)(64 + (pid >> 16));
	ip[14] = (uint8_t)(pid >> 8);
	ip[15] = (uint8_t)pid;
}

/* The port asked for is the link's; asked for twice, the second is refused, with a line that says where. */
static void test_port(void **state)
{
	struct rwk_udp_attr attr = {.receive_buffer = 65536};
	struct udp_end *first;
	struct rwk_link *second = NULL;
	char port[16];

	(void)state;
	own_loopback(attr.ip);
	first = udp_end_open_with(&attr);
	attr.port = rwk_udp_port(first->link);
	assert_int_not_equal(attr.port, 0);
	assert_int_equal(warnings, 0);
	assert_int_equal(rwk_udp_open(&attr, &second), -EADDRINUSE);
	assert_null(second);
	assert_int_equal(warnings, 1);
	snprintf(port, sizeof(port), "%u", attr.port);
	assert_non_null(strstr(last_warning, port));
	udp_end_close(first);
	assert_int_equal(rwk_udp_open(&attr, &second), 0);
	assert_int_equal(rwk_udp_port(second), attr.port);
	second->ops->close(second);
}

/* A range is used up to its last port, and no further. The ports are above the kernel's choice. */
static void test_range(void **state)
{
	struct rwk_udp_attr attr = {.port_first = 61000, .port_last = 61003};
	struct udp_end *end[4];
	struct rwk_link *l;
	unsigned seen = 0;

	(void)state;
	own_loopback(attr.ip);
	for (int i = 0; i < 4; i++) {
		end[i] = udp_end_open_with(&attr);
		seen |= 1u << (rwk_udp_port(end[i]->link) - attr.port_first);
	}
	assert_int_equal(seen, 0xf);
	assert_int_equal(rwk_udp_open(&attr, &l), -EADDRINUSE);
	assert_non_null(strstr(last_warning, "61000 to 61003"));
	for (int i = 0; i < 4; i++)
		udp_end_close(end[i]);
	attr.port_last = 60999;
	assert_int_equal(rwk_udp_open(&attr, &l), -EINVAL);
	assert_non_null(strstr(last_warning, "61000 to 60999"));
	attr.port_first = 0;
	assert_int_equal(rwk_udp_open(&attr, &l), -EINVAL);
}

/* An IP that is none of this host's. */
static void test_not_ours(void **state)
{
	struct rwk_udp_attr attr = {.port = 0};
	struct rwk_link *l;

	(void)state;
	udp_ip("2001:db8::1", attr.ip);
	assert_int_equal(rwk_udp_open(&attr, &l), -EADDRNOTAVAIL);
	assert_non_null(strstr(last_warning, "2001:db8::1"));
}

/* An address and its parts; two addresses are the same bytes if and only if IP and port are the same. */
static void test_address(void **state)
{
	struct rwk_link_address a, b;
	uint8_t ip[16], back[16];
	uint16_t port;

	(void)state;
	udp_ip("10.1.2.3", ip);
	a = rwk_udp_address(ip, 4791);
	rwk_udp_split(&a, back, &port);
	assert_memory_equal(ip, back, 16);
	assert_int_equal(port, 4791);
	b = rwk_udp_address(back, port);
	assert_memory_equal(&a, &b, sizeof(a));
	b = rwk_udp_address(ip, 4792);
	assert_memory_not_equal(&a, &b, sizeof(a));
}

/* The room follows from the buffer that the kernel gives, not from what was asked for. */
static void test_room(void **state)
{
	struct udp_end *small = udp_end_open(udp_ip4, 106496), *large = udp_end_open(udp_ip4, 0);
	int size, fd = small->link->ops->wait_fd(small->link, 0);
	socklen_t len = sizeof(size);

	(void)state;
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len), 0);
	assert_int_equal(size, 212992);
	assert_int_equal(rwk_udp_room(small->link), 53248);
	fd = large->link->ops->wait_fd(large->link, 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len), 0);
	assert_int_equal(rwk_udp_room(large->link), size / 4);
	udp_end_close(small);
	udp_end_close(large);
}

/* A buffer for less than a burst is not asked for: the kernel may drop what comes to it each time. */
static void test_least_room(void **state)
{
	struct udp_end *least = udp_end_open(udp_ip4, RWK_UDP_RECEIVE_LEAST), *less = udp_end_open(udp_ip4, 1);

	(void)state;
	assert_int_equal(rwk_udp_room(less->link), rwk_udp_room(least->link));
	udp_end_close(least);
	udp_end_close(less);
}

static void carry(struct udp_end *a, struct udp_end *b, const struct rwk_link_address *to)
{
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(udp_send(a, to, i, i % 10 == 9 ? 77 : 700), 0);
	udp_flush(a);
	udp_receive(b, 100);
	assert_int_equal(b->arrived, 100);
	assert_int_equal(b->damaged, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(b->number[i], i);
}

/* A host without IPv6: a link on all addresses and one on an IPv4 address carry IPv4; a packet to IPv6 is dropped. */
static void test_without_ip6(void **state)
{
	struct rwk_link_address far = rwk_udp_address(udp_ip6, 9);
	struct rwk_udp_attr attr = {.port = 0};
	struct udp_end *a, *b, *any;
	struct rwk_link *l;

	(void)state;
	no_ip6 = EAFNOSUPPORT;
	memcpy(attr.ip, udp_ip6, 16);
	assert_int_equal(rwk_udp_open(&attr, &l), -EADDRNOTAVAIL);
	a = udp_end_open(udp_ip4, 0);
	b = udp_end_open(udp_ip4, 0);
	any = udp_end_open((uint8_t[16]){0}, 0);
	carry(a, b, &b->here);
	assert_memory_equal(&b->from, &a->here, sizeof(a->here));
	carry(b, any, &any->here);
	assert_int_equal(udp_send(a, &far, 1, 100), 0);
	udp_flush(a);
	assert_int_equal(udp_counters(a).failed, 1);
	udp_end_close(a);
	udp_end_close(b);
	udp_end_close(any);
}

/* A device for which the kernel cuts no batches (EIO; EINVAL on kernels without): all arrives, one by one. */
static void test_without_batches(void **state)
{
	static const int say[] = {EIO, EINVAL};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct udp_end *a = udp_end_open(udp_ip4, 0), *b = udp_end_open(udp_ip4, 0);

		no_batches = say[i];
		carry(a, b, &b->here);
		b->arrived = 0;
		batches = 0;
		carry(a, b, &b->here);
		assert_int_equal(batches, 0);
		assert_int_equal(udp_counters(a).batches_out, 0);
		assert_int_equal(udp_counters(a).packets_out, 200);
		assert_int_equal(udp_counters(a).failed, 0);
		udp_end_close(a);
		udp_end_close(b);
		no_batches = 0;
	}
}

/* A firewall: what it stops is dropped and counted, a line says so once, and when it is gone packets go again. */
static void test_firewall(void **state)
{
	struct udp_end *a = udp_end_open(udp_ip4, 0), *b = udp_end_open(udp_ip4, 0);

	(void)state;
	no_sending = EPERM;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(udp_send(a, &b->here, i, 100), 0);
		udp_flush(a);
	}
	assert_int_equal(udp_send(a, &b->here, 3, 100), 0);
	assert_int_equal(udp_send(a, &b->here, 4, 100), 0);
	udp_flush(a);
	assert_int_equal(udp_counters(a).failed, 5);
	assert_int_equal(udp_counters(a).packets_out, 0);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(last_warning, "127.0.0.1"));
	assert_non_null(strstr(last_warning, strerror(EPERM)));
	no_sending = 0;
	carry(a, b, &b->here);
	assert_true(udp_counters(a).batches_out > 0);
	udp_end_close(a);
	udp_end_close(b);
}

/*
 * A kernel without room: the link takes what it can keep, copies it when it is flushed, says -EAGAIN to the rest, and
 * sends all of it, in order, when there is room; the first progress tries.
 */
static void test_full_kernel(void **state)
{
	static const int say[] = {EAGAIN, ENOBUFS};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct udp_end *a = udp_end_open(udp_ip4, 0), *b = udp_end_open(udp_ip4, 0);
		uint32_t taken = 0;
		int err = 0;

		no_sending = say[i];
		while (!(err = udp_send(a, &b->here, taken, 200 + taken * 7 % 1200)) && taken < 5000)
			taken++;
		assert_int_equal(err, -EAGAIN);
		udp_flush(a);
		assert_int_equal(udp_send(a, &b->here, 1, 1), -EAGAIN);
		assert_int_equal(a->link->ops->progress(a->link, 10), 0);
		assert_int_equal(a->link->ops->arm(a->link), -EAGAIN);
		assert_int_equal(udp_counters(a).refused, 2);
		assert_int_equal(udp_counters(a).packets_out, 0);
		no_sending = 0;
		assert_int_equal(a->link->ops->progress(a->link, 10), 0);
		assert_int_equal(udp_counters(a).packets_out, taken);
		assert_int_equal(udp_send(a, &b->here, taken, 50), 0);
		udp_flush(a);
		udp_receive(b, taken + 1);
		assert_int_equal(b->arrived, taken + 1);
		assert_int_equal(b->damaged, 0);
		for (uint32_t n = 0; n <= taken; n++)
			assert_int_equal(b->number[n], n);
		udp_end_close(a);
		udp_end_close(b);
	}
}

/* Once the kernel has refused, nothing more is taken, though there is place for it: its long pieces would not be
 * copied. */
static void test_nothing_taken_meanwhile(void **state)
{
	struct udp_end *a = udp_end_open(udp_ip4, 0), *b = udp_end_open(udp_ip4, 0);

	(void)state;
	no_sending = EAGAIN;
	assert_int_equal(udp_send(a, &b->here, 0, 1000), 0);
	assert_int_equal(udp_send(a, &b->here, 1, 1000), 0);
	udp_flush(a);
	assert_int_equal(udp_send(a, &b->here, 2, 1000), -EAGAIN);
	no_sending = 0;
	assert_int_equal(udp_send(a, &b->here, 2, 1000), 0);
	udp_flush(a);
	udp_receive(b, 3);
	assert_int_equal(b->arrived, 3);
	assert_int_equal(b->damaged, 0);
	udp_end_close(a);
	udp_end_close(b);
}

/* Lists that make no sense are refused with a sentence that names the entry, or what there is. */
static void test_lists(void **state)
{
	static const struct {
		const char *include, *exclude;
		int err;
		const char *says;
	} cases[] = {
		{"10.0.0.0/33", NULL, -EINVAL, "include list has '10.0.0.0/33'"},
		{"fd00::/129", NULL, -EINVAL, "'fd00::/129'"},
		{"lo,10.0.0.0/x", NULL, -EINVAL, "'10.0.0.0/x'"},
		{"10.0.0.0/", NULL, -EINVAL, "'10.0.0.0/'"},
		{"eth0 eth1", NULL, -EINVAL, "'eth0 eth1'"},
		{"a-name-that-is-too-long", NULL, -EINVAL, "a-name-that-is-too-long"},
		{NULL, "lo,1.2.3.4.5/8", -EINVAL, "exclude list has '1.2.3.4.5/8'"},
		{"nosuch0", NULL, -EADDRNOTAVAIL, "include list 'nosuch0'"},
		{"240.1.2.0/24", NULL, -EADDRNOTAVAIL, "lo 127.0.0.1"},
		{"lo", "127.0.0.0/8,::/0", -EADDRNOTAVAIL, "exclude list '127.0.0.0/8,::/0'"},
		{"127.128.0.0/9", NULL, -EADDRNOTAVAIL, "include list '127.128.0.0/9'"},
		{"lo", NULL, 0, NULL},
		{"126.0.0.0/7", NULL, 0, NULL},
		{" lo , nosuch0", "", 0, NULL},
		{"127.0.0.0/8", "nosuch0,10.0.0.0/8", 0, NULL},
		{"127.0.0.1", NULL, 0, NULL},
	};
	uint8_t ip[16];
	char why[600];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		why[0] = '\0';
		memset(ip, 0xaa, 16);
		assert_int_equal(
			rwk_udp_own_ip(cases[i].include, cases[i].exclude, ip, why, sizeof(why)), cases[i].err);
		if (!cases[i].err) {
			assert_memory_equal(ip, udp_ip4, 16);
			continue;
		}
		if (!strstr(why, cases[i].says))
			fail_msg("'%s' does not say %s", why, cases[i].says);
		for (int k = 0; k < 16; k++)
			assert_int_equal(ip[k], 0xaa);
	}
}

/*
 * A socket of two links: each packet comes to one of them, what either sends comes from the one port, its
 * pseudo-headers are the same, and the socket lives until the last has closed. Bound to one IP, and to all.
 */
static void share_socket(const uint8_t bound_to[16])
{
	struct rwk_udp_attr attr = {.receive_buffer = 65536};
	struct udp_end *first, *second, *other = udp_end_open(udp_ip4, 65536);
	uint8_t pseudo[2][RWK_LINK_PSEUDO_MAX];
	size_t len;

	memcpy(attr.ip, bound_to, 16);
	first = udp_end_open_with(&attr);
	second = udp_end_adopt(first, -1);
	assert_int_equal(rwk_udp_port(second->link), rwk_udp_port(first->link));
	len = first->link->ops->pseudo(first->link, &other->here, true, 100, 0, pseudo[0]);
	assert_int_equal(second->link->ops->pseudo(second->link, &other->here, true, 100, 0, pseudo[1]), len);
	assert_memory_equal(pseudo[0], pseudo[1], len);

	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(udp_send(other, &first->here, i, 100 + i), 0);
		udp_flush(other);
	}
	for (int i = 0; i < 1000 && first->arrived + second->arrived < 20; i++) {
		struct udp_end *e = i & 1 ? second : first;

		e->link->ops->progress(e->link, 1);
	}
	assert_int_equal(first->arrived + second->arrived, 20);
	assert_true(first->arrived && second->arrived);
	assert_int_equal(first->damaged + second->damaged, 0);

	udp_end_close(first);
	assert_int_equal(udp_send(second, &other->here, 1, 5000), 0);
	udp_flush(second);
	udp_receive(other, 1);
	assert_int_equal(other->arrived, 1);
	assert_int_equal(other->damaged, 0);
	assert_memory_equal(&other->from, &second->here, sizeof(other->from));
	udp_end_close(second);
	udp_end_close(other);
}

static void test_adopted(void **state)
{
	static const uint8_t all[16];

	(void)state;
	share_socket(udp_ip4);
	share_socket(all);
}

/* What is no bound UDP socket is refused. */
static void test_adopted_what(void **state)
{
	int fd[] = {-1, open("/dev/null", O_RDWR), socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET6, SOCK_DGRAM, 0),
		socket(AF_UNIX, SOCK_DGRAM, 0)};
	struct rwk_link *l = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(fd) / sizeof(*fd); i++) {
		assert_int_equal(rwk_udp_adopt(fd[i], -1, &l), -EINVAL);
		assert_null(l);
		if (fd[i] >= 0)
			close(fd[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_port, setup, teardown),
		cmocka_unit_test_setup_teardown(test_range, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_least_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_ip6, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_batches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_firewall, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_taken_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(test_adopted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_adopted_what, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

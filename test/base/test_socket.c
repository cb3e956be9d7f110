/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP sockets: addresses of both families, listening, connecting, and what a descriptor turns out to be. */
#include "rwk_test.h"

#include "base/socket.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

static const uint8_t any[16], any_v4[16] = {[10] = 0xff, [11] = 0xff};
static const uint8_t local_v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, local_v6[16] = {[15] = 1};

/* What is put into an address comes out again, and each family has the length that the kernel wants. */
static void addresses(void **state)
{
	static const struct {
		const char *text;
		int family;
		bool any;
	} cases[] = {
		{"::ffff:10.1.2.3", AF_INET, false},
		{"::ffff:0.0.0.0", AF_INET, false},
		{"::", AF_INET6, true},
		{"::1", AF_INET6, false},
		{"fd00::fffe:a01:203", AF_INET6, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union rwk_socket_address a;
		uint8_t ip[16], back[16];
		uint16_t port = 0;
		socklen_t len;

		assert_int_equal(inet_pton(AF_INET6, cases[i].text, ip), 1);
		len = rwk_socket_address(&a, ip, 0x1234);
		assert_int_equal(len, cases[i].family == AF_INET ? sizeof(a.v4) : sizeof(a.v6));
		assert_int_equal(a.any.sa_family, cases[i].family);
		assert_int_equal(rwk_ip_is_v4(ip), cases[i].family == AF_INET);
		assert_int_equal(rwk_ip_is_any(ip), cases[i].any);
		assert_true(rwk_socket_address_parts(&a.any, back, &port));
		assert_memory_equal(ip, back, 16);
		assert_int_equal(port, 0x1234);
	}
	assert_false(rwk_socket_address_parts(&(struct sockaddr){.sa_family = AF_UNIX}, NULL, NULL));
}

/* A reserved port is nobody else's by chance; who reserved it can listen there, and connect from there. */
static void reserves(void **state)
{
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	uint16_t port, got, from_port, other;
	uint8_t from[16];
	int fd = rwk_socket_reserve(loopback, 0, &port), second, listener, client;

	(void)state;
	assert_true(fd >= 0);
	assert_int_not_equal(port, 0);
	second = rwk_socket_reserve(loopback, 0, &other);
	assert_true(second >= 0);
	assert_int_not_equal(other, port);
	listener = rwk_socket_listen(loopback, other, &got);
	assert_true(listener >= 0);
	assert_int_equal(got, other);
	assert_int_equal(rwk_socket_reserve(loopback, other, &got), -EADDRINUSE);
	client = rwk_socket_connect(loopback, port, loopback, other);
	assert_true(client >= 0);
	assert_int_equal(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 20000), 1);
	close(second);
	second = rwk_socket_accept(listener, from, &from_port);
	assert_true(second >= 0);
	assert_int_equal(from_port, port);
	close(second);
	close(client);
	close(listener);
	close(fd);
}

/* From a port of choice, and from the address that the route has. */
static void port_by_the_route(void **state)
{
	static const uint8_t *const to[] = {local_v4, local_v6};
	uint16_t port, wanted, got;
	uint8_t from[16];
	int listener = rwk_socket_listen(any, 0, &port), reserved = rwk_socket_reserve(any, 0, &wanted), client, fd;

	(void)state;
	assert_true(listener >= 0 && reserved >= 0);
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		client = rwk_socket_connect(NULL, wanted, to[i], port);
		assert_true(client >= 0);
		assert_int_equal(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 5000), 1);
		fd = rwk_socket_accept(listener, from, &got);
		assert_true(fd >= 0);
		assert_memory_equal(from, to[i], 16);
		assert_int_equal(got, wanted);
		close(client);
		close(fd);
	}
	close(listener);
	close(reserved);
}

/* Connects, waits until that is done, and says what became of it; *other: the end at the listener. */
static int meet(int listener, const uint8_t source[16], const uint8_t to[16], uint16_t port, int *other)
{
	struct pollfd p = {.events = POLLIN};
	uint8_t from[16], peer[16];
	uint16_t from_port, peer_port;
	int fd = rwk_socket_connect(source, 0, to, port), rc;

	if (fd < 0)
		return fd;
	poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 20000);
	rc = rwk_socket_connected(fd);
	if (!rc && other) {
		p.fd = listener;
		assert_int_equal(poll(&p, 1, 20000), 1);
		*other = rwk_socket_accept(listener, from, &from_port);
		assert_true(*other >= 0);
		assert_memory_equal(from, to, 16);
		assert_int_equal(rwk_socket_peer(fd, peer, &peer_port), 0);
		assert_memory_equal(peer, to, 16);
		assert_int_equal(peer_port, port);
		close(*other);
	}
	close(fd);
	return rc;
}

/* Any hears both families; an address of one of them hears that one alone. */
static void listening(void **state)
{
	uint16_t port = 0, taken = 0;
	int other, fd = rwk_socket_listen(any, 0, &port);

	(void)state;
	assert_true(fd >= 0 && port);
	assert_int_equal(rwk_socket_accept(fd, (uint8_t[16]){0}, &taken), -EAGAIN);
	assert_int_equal(meet(fd, NULL, local_v4, port, &other), 0);
	assert_int_equal(meet(fd, local_v4, local_v4, port, &other), 0);
	assert_int_equal(meet(fd, NULL, local_v6, port, &other), 0);
	assert_int_equal(rwk_socket_listen(any, port, &taken), -EADDRINUSE);
	close(fd);
	fd = rwk_socket_listen(local_v6, 0, &port);
	assert_true(fd >= 0);
	assert_int_equal(meet(fd, NULL, local_v4, port, NULL), -ECONNREFUSED);
	close(fd);
	fd = rwk_socket_listen(any_v4, 0, &port);
	assert_true(fd >= 0);
	assert_int_equal(meet(fd, NULL, local_v4, port, &other), 0);
	assert_int_equal(meet(fd, NULL, local_v6, port, NULL), -ECONNREFUSED);
	close(fd);
	assert_int_equal(rwk_socket_listen((const uint8_t[16]){0x20, 0x01, 0x0d, 0xb8, [15] = 1}, 0, &port),
		-EADDRNOTAVAIL);
}

/* A socket that has connected to itself has found nobody. */
static void itself(void **state)
{
	union rwk_socket_address a;
	socklen_t len = rwk_socket_address(&a, local_v4, 0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(bind(fd, &a.any, len), 0);
	assert_int_equal(getsockname(fd, &a.any, &len), 0);
	assert_int_equal(connect(fd, &a.any, len), 0);
	assert_int_equal(rwk_socket_connected(fd), -ECONNREFUSED);
	close(fd);
}

/* What is no connected TCP socket is known for what it is. */
static void no_connection(void **state)
{
	uint8_t ip[16];
	uint16_t port;
	int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET6, SOCK_STREAM, 0), closed = dup(tcp);

	(void)state;
	close(closed);
	assert_int_equal(rwk_socket_peer(udp, ip, &port), -EINVAL);
	assert_int_equal(rwk_socket_peer(tcp, ip, &port), -ENOTCONN);
	assert_int_equal(rwk_socket_peer(closed, ip, &port), -EINVAL);
	close(udp);
	close(tcp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(listening),
		cmocka_unit_test(itself),
		cmocka_unit_test(no_connection),
		cmocka_unit_test(reserves),
		cmocka_unit_test(port_by_the_route),
	};

	return cmocka_run_group_tests_name("base/socket", tests, NULL, NULL);
}

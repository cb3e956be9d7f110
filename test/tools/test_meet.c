/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs meet (src/tools/meet.h): at whichever of a host's addresses one of them waits, and without IPv6; and the
 * places that they tell each other.
 */
#include "rwk_test.h"

#include "tools/meet.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 20
#define LINE    64

static bool no_ip6, own_port;
static unsigned port; /* not likely to be another's at the same time; the kernel gives it out to nobody */

static struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
static struct sockaddr_in four = {.sin_family = AF_INET};
static struct addrinfo second = {.ai_family = AF_INET, .ai_addr = (struct sockaddr *)&four, .ai_addrlen = sizeof(four)};
static struct addrinfo first = {
	.ai_family = AF_INET6, .ai_addr = (struct sockaddr *)&six, .ai_addrlen = sizeof(six), .ai_next = &second};

/* As the C library's, on a kernel with or without IPv6; with own_port the kernel's choice for a client is that port. */
int socket(int family, int type, int protocol)
{
	bool v6 = family == AF_INET6;
	int fd, on = 1;

	if (v6 && no_ip6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	fd = (int)syscall(SYS_socket, family, type, protocol);
	if (own_port && fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		assert_int_equal(bind(fd, v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four,
					 v6 ? sizeof(six) : sizeof(four)),
			0);
	}
	return fd;
}

/* Every host has two addresses, ::1 and 127.0.0.1. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	(void)host;
	(void)hints;
	four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	four.sin_port = six.sin6_port = htons((uint16_t)atoi(service));
	*found = &first;
	return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
	(void)found;
}

#define PLACE "10.0.0.1,4791,1,2,3,4"

/* One waits at all addresses that there are, the other goes there; each learns the other's. */
static void meet(bool without_ip6)
{
	char line[LINE];
	uint8_t ip[16];
	int fd, status;
	pid_t child;

	no_ip6 = without_ip6;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		fd = rwk_meet("a host", port, SECONDS);
		_exit(fd < 0 || dprintf(fd, PLACE " and more\r\nx") < 0);
	}
	fd = rwk_meet_await(port, SECONDS, line, sizeof(line));
	assert_true(fd >= 0);
	assert_string_equal(line, PLACE " and more");
	assert_int_equal(read(fd, line, sizeof(line)), 1);
	assert_int_equal(rwk_meet_peer(fd, ip), 0);
	assert_int_equal(ip[15], 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);
}

static void both_families(void **state)
{
	(void)state;
	meet(false);
}

static void without_ip6(void **state)
{
	(void)state;
	meet(true);
}

static int listen_at(const struct sockaddr *at, socklen_t len, int backlog)
{
	int fd = socket(at->sa_family, SOCK_STREAM, 0), on = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, at, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static int listen_at_the_second(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	at.sin_port = htons((uint16_t)port);
	return listen_at((struct sockaddr *)&at, sizeof(at), 1);
}

/* Somebody waits at the second address alone. */
static void at_the_second(void **state)
{
	int listener, fd;

	(void)state;
	no_ip6 = false;
	listener = listen_at_the_second();
	fd = rwk_meet("a host", port, 1);
	assert_true(fd >= 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);
	close(listener);
}

static bool has_ip6(void)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = (int)syscall(SYS_socket, AF_INET6, SOCK_STREAM, 0);
	bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at));

	if (fd >= 0)
		close(fd);
	return has;
}

/* The first address does not answer at all, as who listens there has no room for another: the second has its turn. */
static void silent_first(void **state)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int full, listener, fd, crowd[4];

	(void)state;
	if (!has_ip6())
		skip();
	no_ip6 = false;
	at.sin6_port = htons((uint16_t)port);
	full = listen_at((struct sockaddr *)&at, sizeof(at), 0);
	listener = listen_at_the_second();
	for (int i = 0; i < 4; i++) {
		crowd[i] = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_true(!connect(crowd[i], (struct sockaddr *)&at, sizeof(at)) || errno == EINPROGRESS);
	}
	alarm(60); /* the kernel would try for two minutes */
	fd = rwk_meet("a host", port, SECONDS);
	alarm(0);
	assert_true(fd >= 0);
	close(fd);
	for (int i = 0; i < 4; i++)
		close(crowd[i]);
	close(listener);
	close(full);
}

/* Nobody waits at a port that a client is given as its own: what it connects to is no peer. */
static void itself(void **state)
{
	(void)state;
	no_ip6 = !has_ip6();
	own_port = true;
	assert_int_equal(rwk_meet("a host", port, 0), -ECONNREFUSED);
	own_port = false;
}

/* Nobody waits at either, after all the time that there is. */
static void nobody(void **state)
{
	(void)state;
	no_ip6 = false;
	assert_int_equal(rwk_meet("a host", port, 0), -ECONNREFUSED);
	no_ip6 = true;
	assert_int_equal(rwk_meet("a host", port, 0), -ECONNREFUSED);
}

/* Each number of a place has its bits, and no more; what stands behind is given back. */
static void places(void **state)
{
	static const char *const bad[] = {
		"",
		"10.0.0.1",
		"10.0.0.1,4791,1,2,3",
		"10.0.0.1,4791,1,2,3,",
		"10.0.0.1,65536,1,2,3,4",
		"10.0.0.1,70327,1,2,3,4",
		"10.0.0.1,-1,1,2,3,4",
		"10.0.0.1,4791,0x1000000,2,3,4",
		"10.0.0.1,4791,-1,2,3,4",
		"10.0.0.1,4791,1,0x1000000,3,4",
		"10.0.0.1,4791,1,2,0x100000000,4",
		"10.0.0.1,4791,1,2,3,0x10000000000000000",
		"10.0.0,4791,1,2,3,4",
		"10.0.0.1;4791,1,2,3,4",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001,4791,1,2,3,4",
	};
	const struct rwk_place before = {.port = 7, .key = 8};
	struct rwk_place p = before;
	char text[RWK_PLACE_LENGTH];
	const char *rest;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(rwk_place_parse(bad[i], &p));
		assert_memory_equal(&p, &before, sizeof(p));
	}
	rest = rwk_place_parse("10.0.0.1,65535,0xffffff,0xffffff,0xffffffff,0xffffffffffffffff send", &p);
	assert_string_equal(rest, " send");
	assert_int_equal(p.port, 65535);
	rwk_place_print(text, &p);
	assert_string_equal(text, "10.0.0.1,65535,0xffffff,0xffffff,0xffffffff,0xffffffffffffffff");
	assert_string_equal(rwk_place_parse("fe80::1,08,010,9,0x10,0", &p), "");
	assert_true(p.port == 8 && p.qpn == 8 && p.psn == 9 && p.key == 16 && p.address == 0 && p.ip[0] == 0xfe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(both_families),
		cmocka_unit_test(without_ip6),
		cmocka_unit_test(at_the_second),
		cmocka_unit_test(silent_first),
		cmocka_unit_test(nobody),
		cmocka_unit_test(itself),
	};

	port = 14000 + (unsigned)getpid() % 2000;
	return cmocka_run_group_tests_name("tools/meet", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Two programs meet over TCP. */
#include "tools/meet.h"

#include "base/socket.h"
#include "tools/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 20   /* between two rounds of tries */
#define LEAST_MS 100  /* that a try waits, however little time is left, */
#define MOST_MS  1000 /* and at most: then another address has its turn, or the same again */

/* Of both families, or of IPv4 where the kernel has no other. */
static int listen_at(unsigned port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in at4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, SOCK_STREAM, 0), on = 1, off = 0, err;
	bool old = fd < 0 && errno == EAFNOSUPPORT;

	if (old)
		fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		(!old && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off))) ||
		bind(fd, old ? (struct sockaddr *)&at4 : (struct sockaddr *)&at, old ? sizeof(at4) : sizeof(at)) ||
		listen(fd, 16)) {
		err = errno;
		error(0, err, "TCP port %u", port);
		if (fd >= 0)
			close(fd);
		return -err;
	}
	return fd;
}

static int next_there(int listener, unsigned port, unsigned seconds)
{
	int fd = -ETIMEDOUT;

	if (poll(&(struct pollfd){listener, POLLIN, 0}, 1, (int)seconds * 1000) == 1) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			fd = -errno;
	}
	if (fd < 0)
		error(0, 0, "nobody came to TCP port %u within %u s", port, seconds);
	return fd;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void rwk_meet_read_line(int fd, unsigned seconds, char *line, size_t len)
{
	int64_t until = now_ms() + (int64_t)seconds * 1000, left;
	size_t n = 0;

	while (n < len - 1 && (left = until - now_ms()) > 0) {
		if (poll(&(struct pollfd){fd, POLLIN, 0}, 1, (int)left) != 1 || recv(fd, &line[n], 1, 0) != 1 ||
			line[n] == '\n')
			break;
		n++;
	}
	line[n] = '\0';
	line[strcspn(line, "\r")] = '\0';
	rwk_text_make_safe(line);
}

int rwk_meet_await(unsigned port, unsigned seconds, char *line, size_t len)
{
	int listener = listen_at(port), fd;
	struct rwk_place ignored;

	if (listener < 0)
		return listener;
	for (;;) {
		fd = next_there(listener, port, seconds);
		if (fd < 0)
			break;
		rwk_meet_read_line(fd, seconds, line, len);
		if (rwk_place_parse(line, &ignored))
			break;
		error(0, 0, "who came to TCP port %u is not the other program, and says: %s", port,
			*line ? line : "(nothing)");
		close(fd);
	}
	close(listener);
	return fd;
}

/* Waits until it has connected: 0, or why it has not. */
static int await_connection(int fd, int ms)
{
	return poll(&(struct pollfd){fd, POLLOUT, 0}, 1, ms) == 1 ? rwk_socket_connected(fd) : -ETIMEDOUT;
}

static int try_at(const struct addrinfo *at, int ms)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	if (connect(fd, at->ai_addr, at->ai_addrlen) && errno != EINPROGRESS)
		rc = -errno;
	else
		rc = await_connection(fd, ms);
	if (!rc && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Somebody may be there a moment later. */
static bool may_change(int rc)
{
	return rc == -ECONNREFUSED || rc == -ETIMEDOUT;
}

/* The first address where somebody listens. One that is silent leaves the others their part of the time. */
static int try_all(const struct addrinfo *all, int64_t until)
{
	int rc = -EHOSTUNREACH, addresses = 0;

	for (const struct addrinfo *at = all; at; at = at->ai_next)
		addresses++;
	for (const struct addrinfo *at = all; at; at = at->ai_next) {
		int64_t ms = (until - now_ms()) / addresses--;
		int fd = try_at(at, ms > MOST_MS ? MOST_MS : ms < LEAST_MS ? LEAST_MS : (int)ms);

		if (fd >= 0)
			return fd;
		rc = may_change(rc) ? rc : fd;
	}
	return rc;
}

/* While one of the host's addresses refuses, or is silent, nobody listens there yet. */
static int go_there(const struct addrinfo *all, const char *host, unsigned port, unsigned seconds)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	int64_t until = now_ms() + (int64_t)seconds * 1000;

	for (;;) {
		int rc = try_all(all, until);

		if (rc >= 0)
			return rc;
		if (!may_change(rc) || now_ms() >= until) {
			error(0, -rc, "%s, TCP port %u", host, port);
			return rc;
		}
		nanosleep(&pause, NULL);
	}
}

int rwk_meet(const char *host, unsigned port, unsigned seconds)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *at;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &at);
	if (rc) {
		error(0, 0, "%s: %s", host, gai_strerror(rc));
		return -EHOSTUNREACH;
	}
	rc = go_there(at, host, port, seconds);
	freeaddrinfo(at);
	return rc;
}

int rwk_meet_peer(int fd, uint8_t ip[16])
{
	struct sockaddr_in6 a = {0};
	socklen_t len = sizeof(a);
	char text[INET_ADDRSTRLEN];

	if (getpeername(fd, (struct sockaddr *)&a, &len))
		return -errno;
	memcpy(ip, &a.sin6_addr, 16);
	if (a.sin6_family != AF_INET)
		return 0;
	inet_ntop(AF_INET, &((struct sockaddr_in *)&a)->sin_addr, text, sizeof(text));
	return rwk_ip_from_text(text, ip);
}

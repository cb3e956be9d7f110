/* SPDX-License-Identifier: BSD-3-Clause */
/* Two programs meet over TCP. */
#include "tools/meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <error.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TRIES_A_SECOND 50

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

static int wait_there(unsigned port, unsigned seconds)
{
	int listener = listen_at(port), fd = -ETIMEDOUT;

	if (listener < 0)
		return listener;
	if (poll(&(struct pollfd){listener, POLLIN, 0}, 1, (int)seconds * 1000) == 1) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			fd = -errno;
	}
	if (fd < 0)
		error(0, 0, "nobody came to TCP port %u within %u s", port, seconds);
	close(listener);
	return fd;
}

static int try_at(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM, 0), err;

	if (fd >= 0 && !connect(fd, at->ai_addr, at->ai_addrlen))
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	return -err;
}

/* The first of the host's addresses where somebody listens; while one of them refuses, nobody does so yet. */
static int go_there(const struct addrinfo *all, const char *host, unsigned port, unsigned seconds)
{
	const struct timespec pause = {.tv_nsec = 1000000000 / TRIES_A_SECOND};

	for (unsigned tries = seconds * TRIES_A_SECOND;; tries--) {
		int rc = -EHOSTUNREACH;

		for (const struct addrinfo *at = all; at; at = at->ai_next) {
			int fd = try_at(at);

			if (fd >= 0)
				return fd;
			rc = rc == -ECONNREFUSED ? rc : fd;
		}
		if (rc != -ECONNREFUSED || !tries) {
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

	if (!host)
		return wait_there(port, seconds);
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

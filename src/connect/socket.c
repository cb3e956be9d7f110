/* SPDX-License-Identifier: BSD-3-Clause */
/* What the connection layer wants of the kernel. IPs are 16 bytes, as in ropewalk.h. */
#define _GNU_SOURCE
#include "connect/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096 /* the kernel takes its own limit if that is less */

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static const uint8_t any[16], any_v4[16] = {[10] = 0xff, [11] = 0xff};

static bool is_v4(const uint8_t ip[16])
{
	return !memcmp(ip, any_v4, 12);
}

static socklen_t fill(union address *a, const uint8_t ip[16], uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (is_v4(ip)) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(port);
		memcpy(&a->v4.sin_addr, ip + 12, 4);
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(port);
	memcpy(&a->v6.sin6_addr, ip, 16);
	return sizeof(a->v6);
}

static void take_apart(const union address *a, uint8_t ip[16], uint16_t *port)
{
	*port = ntohs(a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
	memcpy(ip, any_v4, 16);
	if (a->sa.sa_family == AF_INET6)
		memcpy(ip, &a->v6.sin6_addr, 16);
	else
		memcpy(ip + 12, &a->v4.sin_addr, 4);
}

static void set(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

static int close_and(int fd, int err)
{
	close(fd);
	return err;
}

static int listen_at(const uint8_t ip[16], uint16_t port, uint16_t *got)
{
	union address a;
	socklen_t len = fill(&a, ip, port);
	int fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	uint8_t own[16];

	if (fd < 0)
		return -errno;
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* what is left of connections of a process before does not matter */
	if (a.sa.sa_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, memcmp(ip, any, 16) != 0);
	if (bind(fd, &a.sa, len) || listen(fd, BACKLOG) || getsockname(fd, &a.sa, &len))
		return close_and(fd, -errno);
	take_apart(&a, own, got);
	return fd;
}

int rwk_cm_listen(const uint8_t ip[16], uint16_t port, uint16_t *got)
{
	int fd = listen_at(ip, port, got);

	if ((fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) && !memcmp(ip, any, 16))
		fd = listen_at(any_v4, port, got);
	return fd;
}

int rwk_cm_accept_one(int listener, uint8_t ip[16], uint16_t *port)
{
	union address a = {.sa = {.sa_family = AF_UNSPEC}};
	socklen_t len = sizeof(a);
	int fd = accept4(listener, &a.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	take_apart(&a, ip, port);
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return fd;
}

int rwk_cm_connect(const uint8_t source[16], const uint8_t ip[16], uint16_t port)
{
	union address own, to;
	socklen_t own_len = fill(&own, source, 0), to_len = fill(&to, ip, port);
	int fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	if (bind(fd, &own.sa, own_len) || (connect(fd, &to.sa, to_len) && errno != EINPROGRESS))
		return close_and(fd, -errno);
	return fd;
}

int rwk_cm_connected(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int err = 0;
	socklen_t len = sizeof(err);

	if (poll(&p, 1, 0) == 0)
		return -EAGAIN;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}

int rwk_cm_peer(int fd, uint8_t ip[16], uint16_t *port)
{
	union address a = {.sa = {.sa_family = AF_UNSPEC}};
	int segment;
	socklen_t len = sizeof(a), segment_len = sizeof(segment);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &segment_len))
		return errno == EBADF ? -EBADF : -EINVAL;
	if (getpeername(fd, &a.sa, &len))
		return -ENOTCONN;
	take_apart(&a, ip, port);
	return 0;
}

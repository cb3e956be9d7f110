/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* accept4 */
#include "base/socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BACKLOG 4096 /* the kernel takes its own limit if that is less */

static const uint8_t any[16], any_v4[16] = {[10] = 0xff, [11] = 0xff};

/*
 * Addresses.
 */

bool rwk_ip_is_v4(const uint8_t ip[16])
{
	return !memcmp(ip, any_v4, 12);
}

bool rwk_ip_is_any(const uint8_t ip[16])
{
	return !memcmp(ip, any, sizeof(any));
}

socklen_t rwk_socket_address(union rwk_socket_address *a, const uint8_t ip[16], uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (rwk_ip_is_v4(ip)) {
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

bool rwk_socket_address_parts(const struct sockaddr *a, uint8_t ip[16], uint16_t *port)
{
	const union rwk_socket_address *u = (const void *)a;

	if (a->sa_family == AF_INET) {
		memcpy(ip, any_v4, 12);
		memcpy(ip + 12, &u->v4.sin_addr, 4);
		*port = ntohs(u->v4.sin_port);
	} else if (a->sa_family == AF_INET6) {
		memcpy(ip, &u->v6.sin6_addr, 16);
		*port = ntohs(u->v6.sin6_port);
	}
	return a->sa_family == AF_INET || a->sa_family == AF_INET6;
}

/*
 * Sockets.
 */

int rwk_socket_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

void rwk_socket_keep_alive(int fd, int idle, int interval, int count)
{
	rwk_socket_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
	rwk_socket_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval);
	rwk_socket_set(fd, IPPROTO_TCP, TCP_KEEPCNT, count);
	rwk_socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

static int close_and(int fd, int err)
{
	close(fd);
	return err;
}

static int open_at(const uint8_t ip[16], uint16_t port, bool listening, uint16_t *got)
{
	union rwk_socket_address a;
	socklen_t len = rwk_socket_address(&a, ip, port);
	int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	uint8_t own[16];

	if (fd < 0)
		return -errno;
	rwk_socket_set(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* connections of a process before do not matter */
	if (a.any.sa_family == AF_INET6)
		rwk_socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !rwk_ip_is_any(ip));
	if (bind(fd, &a.any, len) || (listening && listen(fd, BACKLOG)) || getsockname(fd, &a.any, &len))
		return close_and(fd, -errno);
	rwk_socket_address_parts(&a.any, own, got);
	return fd;
}

static int open_somewhere(const uint8_t ip[16], uint16_t port, bool listening, uint16_t *got)
{
	int fd = open_at(ip, port, listening, got);

	if ((fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) && rwk_ip_is_any(ip))
		fd = open_at(any_v4, port, listening, got);
	return fd;
}

int rwk_socket_listen(const uint8_t ip[16], uint16_t port, uint16_t *got)
{
	return open_somewhere(ip, port, true, got);
}

int rwk_socket_reserve(const uint8_t ip[16], uint16_t port, uint16_t *got)
{
	return open_somewhere(ip, port, false, got);
}

int rwk_socket_accept(int listener, uint8_t ip[16], uint16_t *port)
{
	union rwk_socket_address a = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t len = sizeof(a);
	int fd = accept4(listener, &a.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	rwk_socket_address_parts(&a.any, ip, port);
	rwk_socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return fd;
}

int rwk_socket_connect(const uint8_t source[16], uint16_t source_port, const uint8_t ip[16], uint16_t port)
{
	union rwk_socket_address own, to;
	socklen_t own_len, to_len = rwk_socket_address(&to, ip, port);
	int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	rwk_socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (source || source_port) {
		own_len = rwk_socket_address(&own, source ? source : rwk_ip_is_v4(ip) ? any_v4 : any, source_port);
		if (source_port)
			rwk_socket_set(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* it may be reserved */
		else
			rwk_socket_set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
		if (bind(fd, &own.any, own_len))
			return close_and(fd, -errno);
	}
	if (connect(fd, &to.any, to_len) && errno != EINPROGRESS)
		return close_and(fd, -errno);
	return fd;
}

static bool is_itself(int fd)
{
	union rwk_socket_address own, peer;
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
	uint8_t own_ip[16], peer_ip[16];
	uint16_t own_port, peer_port;

	if (getsockname(fd, &own.any, &own_len) || getpeername(fd, &peer.any, &peer_len))
		return false;
	return rwk_socket_address_parts(&own.any, own_ip, &own_port) &&
	       rwk_socket_address_parts(&peer.any, peer_ip, &peer_port) && own_port == peer_port &&
	       !memcmp(own_ip, peer_ip, 16);
}

int rwk_socket_connected(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int err = 0;
	socklen_t len = sizeof(err);

	if (poll(&p, 1, 0) == 0)
		return -EAGAIN;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	if (err)
		return -err;
	return is_itself(fd) ? -ECONNREFUSED : 0;
}

int rwk_socket_peer(int fd, uint8_t ip[16], uint16_t *port)
{
	union rwk_socket_address a;
	int segment;
	socklen_t len = sizeof(a), segment_len = sizeof(segment);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &segment_len))
		return -EINVAL;
	if (getpeername(fd, &a.any, &len))
		return -ENOTCONN;
	return rwk_socket_address_parts(&a.any, ip, port) ? 0 : -EINVAL;
}

bool rwk_socket_all_sent(int fd)
{
	int bytes;

	return !ioctl(fd, SIOCOUTQ, &bytes) && !bytes;
}

int rwk_socket_own_ip(int fd, uint8_t ip[16])
{
	union rwk_socket_address a;
	socklen_t len = sizeof(a);
	uint16_t port;

	if (getsockname(fd, &a.any, &len))
		return -errno;
	return rwk_socket_address_parts(&a.any, ip, &port) ? 0 : -EINVAL;
}

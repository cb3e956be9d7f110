/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the link wants of the kernel. Which silence ends a stream, and when:
 *
 *   nothing under way:  keepalive. A probe after one second of silence and another a second later; three seconds
 *                       without an answer end the stream with ETIMEDOUT. The kernel of a stopped process answers.
 *
 *   data under way:     no keepalive then. The link looks every 250 ms (rwk_socket_silent): data sent again three
 *                       times and not one acknowledgement for 2.5 s.
 *
 *   window closed:      (the reader is stopped, or slow) the kernel asks at growing intervals whether there is room;
 *                       three such questions without an answer. They are asked less and less often: the interval is
 *                       about as long as the window has been closed.
 *
 * TCP_USER_TIMEOUT would do the first two in one stroke, but it also ends a stream whose window is closed while the
 * peer's kernel answers every probe: that is how a stopped process looks, so it must not be set.
 */
#define _GNU_SOURCE
#include "links/tcp/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#define BACKLOG        4096 /* the kernel takes its own limit if that is less */
#define KEEP_IDLE      1    /* s */
#define KEEP_INTERVAL  1    /* s */
#define KEEP_COUNT     2
#define SILENT_MS      2500
#define SILENT_REPEATS 3

union any_address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_v4(const uint8_t ip[16])
{
	return !memcmp(ip, mapped, sizeof(mapped));
}

static bool is_zero(const uint8_t ip[16])
{
	static const uint8_t zero[16];

	return !memcmp(ip, zero, sizeof(zero));
}

static socklen_t fill(union any_address *a, const uint8_t ip[16], uint16_t port)
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

static uint16_t port_of(const union any_address *a)
{
	return ntohs(a->sa.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port);
}

static void ip_of(const union any_address *a, uint8_t ip[16])
{
	if (a->sa.sa_family == AF_INET6) {
		memcpy(ip, &a->v6.sin6_addr, 16);
		return;
	}
	memcpy(ip, mapped, sizeof(mapped));
	memcpy(ip + 12, &a->v4.sin_addr, 4);
}

static void set(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

rwk_time rwk_socket_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (rwk_time)t.tv_sec * 1000000000u + (rwk_time)t.tv_nsec;
}

/*
 * Listening.
 */

/* A socket that listens at that port, or negative errno. */
static int listen_at(const uint8_t ip[16], uint16_t port, uint16_t *got)
{
	union any_address a;
	socklen_t len = fill(&a, ip, port);
	int fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* what is left of streams of a process before does not matter */
	if (a.sa.sa_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !is_zero(ip));
	if (bind(fd, &a.sa, len) || listen(fd, BACKLOG) || getsockname(fd, &a.sa, &len)) {
		err = -errno;
		close(fd);
		return err;
	}
	*got = port_of(&a);
	return fd;
}

/* Any: both families by one socket, or IPv4 alone where there is no IPv6. */
static int listen_anywhere(const uint8_t ip[16], uint16_t port, uint16_t *got)
{
	static const uint8_t any_v4[16] = {[10] = 0xff, [11] = 0xff};
	int fd = listen_at(ip, port, got);

	if (is_zero(ip) && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL))
		fd = listen_at(any_v4, port, got);
	return fd;
}

int rwk_socket_listen(struct link *l)
{
	const struct rwk_tcp_attr *a = &l->attr;
	uint32_t count, start;
	int fd;

	if (a->port || !a->port_first || a->port_last < a->port_first)
		return listen_anywhere(a->ip, a->port, &l->port);
	count = a->port_last - a->port_first + 1u;
	start = randombytes_uniform(count);
	for (uint32_t i = 0; i < count; i++) {
		fd = listen_anywhere(a->ip, (uint16_t)(a->port_first + (start + i) % count), &l->port);
		if (fd != -EADDRINUSE)
			return fd;
	}
	return -EADDRINUSE;
}

int rwk_socket_accept(struct link *l, struct rwk_link_address *from)
{
	union any_address a = {.sa = {.sa_family = AF_UNSPEC}};
	socklen_t len = sizeof(a);
	int fd = accept4(l->listener, &a.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	memset(from, 0, sizeof(*from));
	ip_of(&a, from->byte);
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	rwk_socket_keep_alive(fd);
	return fd;
}

/*
 * Connecting.
 */

int rwk_socket_connect(const struct link *l, const struct rwk_link_address *to)
{
	union any_address a;
	uint16_t port = (uint16_t)(to->byte[16] << 8 | to->byte[17]);
	socklen_t len = fill(&a, to->byte, port);
	int fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return errno == EAFNOSUPPORT ? -EHOSTUNREACH : -errno;
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!is_zero(l->attr.ip) && is_v4(l->attr.ip) == is_v4(to->byte)) {
		union any_address own;
		socklen_t own_len = fill(&own, l->attr.ip, 0);

		set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
		if (bind(fd, &own.sa, own_len)) {
			err = -errno;
			close(fd);
			return err;
		}
	}
	if (connect(fd, &a.sa, len) && errno != EINPROGRESS) {
		err = errno;
		close(fd);
		return err == ECONNREFUSED || err == EADDRNOTAVAIL || err == ENOBUFS || err == ENOMEM ? -err
												      : -EHOSTUNREACH;
	}
	return fd;
}

/*
 * A socket whose own port happens to be the one that nobody listens at any more connects to itself: a thing that TCP
 * allows.
 */
static bool is_itself(int fd)
{
	union any_address own, peer;
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
	uint8_t own_ip[16], peer_ip[16];

	if (getsockname(fd, &own.sa, &own_len) || getpeername(fd, &peer.sa, &peer_len))
		return false;
	ip_of(&own, own_ip);
	ip_of(&peer, peer_ip);
	return port_of(&own) == port_of(&peer) && !memcmp(own_ip, peer_ip, 16);
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
	if (!err)
		return is_itself(fd) ? -ECONNREFUSED : 0;
	if (err == ECONNREFUSED || err == ECONNRESET || err == ETIMEDOUT)
		return -err;
	return -EHOSTUNREACH;
}

/*
 * Keeping.
 */

void rwk_socket_keep_alive(int fd)
{
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

static bool look(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

bool rwk_socket_all_sent(int fd)
{
	struct tcp_info info;

	return look(fd, &info) && !info.tcpi_unacked && !info.tcpi_notsent_bytes;
}

bool rwk_socket_silent(int fd)
{
	struct tcp_info info;

	if (!look(fd, &info) || info.tcpi_last_ack_recv < SILENT_MS)
		return false;
	return info.tcpi_unacked ? info.tcpi_retransmits >= SILENT_REPEATS : info.tcpi_probes >= SILENT_REPEATS;
}

int rwk_socket_broken(int err)
{
	switch (err) {
	case 0: /* it has just ended */
	case EPIPE:
	case ECONNRESET:
		return -ECONNRESET;
	case ETIMEDOUT:
	case ENOMEM:
	case ENOBUFS:
		return -err;
	default: /* what routers said while nobody answered; a refusal too says nothing here about the process */
		return -EHOSTUNREACH;
	}
}

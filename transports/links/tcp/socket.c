/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the link wants of the kernel. Which silence ends a stream, and when:
 *
 *   nothing under way:  keepalive. A probe after one second of silence and another a second later; three seconds
 *                       without an answer end the stream with ETIMEDOUT. The kernel of a stopped process answers.
 *
 *   data under way:     no keepalive then. The link looks every 250 ms (rwk_tcp_silent): data sent again three
 *                       times and not one acknowledgement for 2.5 s.
 *
 *   window closed:      (the reader is stopped, or slow) the kernel asks at growing intervals whether there is room;
 *                       three such questions without an answer. They are asked less and less often: the interval is
 *                       about as long as the window has been closed.
 *
 * TCP_USER_TIMEOUT would do the first two in one stroke, but it also ends a stream whose window is closed while the
 * peer's kernel answers every probe: that is how a stopped process looks, so it must not be set.
 */
#include "links/tcp/internal.h"

#include "base/log.h"
#include "base/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <sodium.h>

#define KEEP_IDLE      1    /* s */
#define KEEP_INTERVAL  1    /* s */
#define KEEP_COUNT     2
#define SILENT_MS      2500
#define SILENT_REPEATS 3

/*
 * Listening.
 */

static int listen_in_range(struct link *l, uint16_t first, uint16_t last)
{
	uint32_t count = last - first + 1u, start = randombytes_uniform(count);
	int fd = -EADDRINUSE;

	for (uint32_t i = 0; i < count && fd == -EADDRINUSE; i++)
		fd = rwk_socket_listen(l->attr.ip, (uint16_t)(first + (start + i) % count), &l->port);
	return fd;
}

int rwk_tcp_listen(struct link *l)
{
	const struct rwk_tcp_attr *a = &l->attr;
	bool has_range = !a->port && a->port_first && a->port_last >= a->port_first;
	uint16_t first = has_range ? a->port_first : a->port, last = has_range ? a->port_last : a->port;
	int fd = listen_in_range(l, first, last);
	char text[INET6_ADDRSTRLEN];

	if (fd < 0 && !(fd == -EADDRINUSE && a->another))
		rwk_warn("tcp: nobody can listen at %s, port %u to %u: %s",
			inet_ntop(AF_INET6, a->ip, text, sizeof(text)), first, last, strerror(-fd));
	return fd;
}

int rwk_tcp_accept(struct link *l, struct rwk_link_address *from)
{
	uint16_t port;
	int fd;

	memset(from, 0, sizeof(*from));
	fd = rwk_socket_accept(l->listener, from->byte, &port);
	if (fd >= 0)
		rwk_tcp_keep_alive(fd);
	return fd;
}

/*
 * Connecting.
 */

int rwk_tcp_connect(const struct link *l, const struct rwk_link_address *to)
{
	const uint8_t *ip = l->attr.ip;
	uint16_t port = (uint16_t)(to->byte[16] << 8 | to->byte[17]);
	bool bound = !rwk_ip_is_any(ip) && rwk_ip_is_v4(ip) == rwk_ip_is_v4(to->byte);
	int fd = rwk_socket_connect(bound ? ip : NULL, 0, to->byte, port);

	switch (fd) {
	case -ECONNREFUSED:
	case -EADDRNOTAVAIL:
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM:
		return fd;
	default:
		return fd < 0 ? -EHOSTUNREACH : fd;
	}
}

int rwk_tcp_connected(int fd)
{
	int err = rwk_socket_connected(fd);

	switch (err) {
	case 0:
	case -EAGAIN:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ETIMEDOUT:
		return err;
	default:
		return -EHOSTUNREACH;
	}
}

/*
 * Keeping.
 */

void rwk_tcp_keep_alive(int fd)
{
	rwk_socket_keep_alive(fd, KEEP_IDLE, KEEP_INTERVAL, KEEP_COUNT);
}

bool rwk_tcp_silent(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) || info.tcpi_last_ack_recv < SILENT_MS)
		return false;
	return info.tcpi_unacked ? info.tcpi_retransmits >= SILENT_REPEATS : info.tcpi_probes >= SILENT_REPEATS;
}

int rwk_tcp_broken(int err)
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

/* SPDX-License-Identifier: BSD-3-Clause */
/* The UDP link as a whole: the socket and its options, addresses, sleep. */
#define _GNU_SOURCE /* sendmmsg, in6_pktinfo */

#include "links/udp/internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const uint8_t any_ip[16], any_ip4[16] = {[10] = 0xff, [11] = 0xff};

#define SEND_BUFFER (1 << 20) /* bytes: a few batches; more would wait in the kernel, where nobody can take it back */

/*
 * Addresses.
 */

struct rwk_link_address rwk_udp_address(const uint8_t ip[16], uint16_t port)
{
	struct place p = {.port = htons(port)};
	struct rwk_link_address a;

	memcpy(p.ip, ip, 16);
	memcpy(&a, &p, sizeof(a));
	return a;
}

void rwk_udp_split(const struct rwk_link_address *a, uint8_t ip[16], uint16_t *port)
{
	struct place p = rwk_udp_place(a);

	memcpy(ip, p.ip, 16);
	*port = ntohs(p.port);
}

socklen_t rwk_udp_to_name(int family, const struct rwk_link_address *a, union socket_name *name)
{
	struct place p = rwk_udp_place(a);

	if (family == AF_INET && rwk_udp_is_ip4(p.ip)) {
		name->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = p.port};
		memcpy(&name->in.sin_addr, p.ip + 12, 4);
		return sizeof(name->in);
	}
	name->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = p.port, .sin6_scope_id = p.scope};
	memcpy(&name->in6.sin6_addr, p.ip, 16);
	return sizeof(name->in6);
}

struct rwk_link_address rwk_udp_from_name(const union socket_name *name)
{
	struct place p = {.ip = {[10] = 0xff, [11] = 0xff}};
	struct rwk_link_address a;

	if (name->any.sa_family == AF_INET) {
		memcpy(p.ip + 12, &name->in.sin_addr, 4);
		p.port = name->in.sin_port;
	} else {
		memcpy(p.ip, &name->in6.sin6_addr, 16);
		p.port = name->in6.sin6_port;
		p.scope = name->in6.sin6_scope_id;
	}
	memcpy(&a, &p, sizeof(a));
	return a;
}

/*
 * The socket.
 */

/* Of the two bits for ECN: congestion may be marked on our packets, they need not be dropped (RFC 3168). */
#define ECT 2

/* DF and errors of the path are what the link stands on; the kernel can do without the others. */
static const struct option {
	bool ip6, needed;
	int level, name, value;
} options[] = {
	{false, true, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO},
	{false, true, IPPROTO_IP, IP_RECVERR, 1},
	{true, true, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO},
	{true, true, IPPROTO_IPV6, IPV6_RECVERR, 1},
	{true, true, IPPROTO_IPV6, IPV6_V6ONLY, 0},
	{true, false, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1}, /* RoCEv2 of other makers has no UDP checksum */
	{false, false, IPPROTO_UDP, UDP_GRO, 1},
	{false, false, IPPROTO_IP, IP_TOS, ECT},
	{false, false, IPPROTO_IP, IP_RECVTOS, 1},
	{true, false, IPPROTO_IPV6, IPV6_TCLASS, ECT},
	{true, false, IPPROTO_IPV6, IPV6_RECVTCLASS, 1},
	{false, false, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER},
};

int rwk_udp_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

int rwk_udp_set_options(int fd, int family, int receive_buffer)
{
	int err;

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		const struct option *o = &options[i];

		if (o->ip6 && family != AF_INET6)
			continue;
		err = rwk_udp_set(fd, o->level, o->name, o->value);
		if (err && o->needed)
			return err;
	}
	return rwk_udp_set(fd, SOL_SOCKET, SO_RCVBUF, receive_buffer);
}

static int set_options(struct udp *u)
{
	socklen_t len = sizeof(int);
	int segment, err = rwk_udp_set_options(u->main.fd, u->family, u->receive_buffer);

	u->gso = !getsockopt(u->main.fd, IPPROTO_UDP, UDP_SEGMENT, &segment, &len);
	if (err || !u->wildcard)
		return err;
	return u->family == AF_INET6 ? rwk_udp_set(u->main.fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
				     : rwk_udp_set(u->main.fd, IPPROTO_IP, IP_PKTINFO, 1);
}

static int make_socket(struct udp *u)
{
	u->family = AF_INET6;
	u->main.fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (u->main.fd < 0 && errno == EAFNOSUPPORT) {
		u->family = AF_INET;
		u->main.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	return u->main.fd < 0 ? -errno : 0;
}

static int bind_port(struct udp *u, uint16_t port)
{
	struct rwk_link_address a = rwk_udp_address(u->ip, port);
	union socket_name name;
	socklen_t size = rwk_udp_to_name(u->family, &a, &name);

	if (u->family == AF_INET && !u->wildcard && !rwk_udp_is_ip4(u->ip))
		return -EADDRNOTAVAIL;
	if (u->family == AF_INET && u->wildcard) {
		name.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
		size = sizeof(name.in);
	}
	if (bind(u->main.fd, &name.any, size))
		return -errno;
	size = sizeof(name);
	if (getsockname(u->main.fd, &name.any, &size))
		return -errno;
	a = rwk_udp_from_name(&name);
	u->port = ntohs(rwk_udp_place(&a).port);
	return 0;
}

/* The processes of a node start together: each begins at another place of the range. */
static int bind_range(struct udp *u, unsigned first, unsigned last)
{
	unsigned count = last - first + 1, start = (unsigned)getpid() % count;
	int err = -EADDRINUSE;

	for (unsigned i = 0; i < count && err == -EADDRINUSE; i++)
		err = bind_port(u, (uint16_t)(first + (start + i) % count));
	return err;
}

static int bind_socket(struct udp *u, const struct rwk_udp_attr *attr)
{
	char text[INET6_ADDRSTRLEN];
	unsigned first = attr->port_first, last = attr->port_last;
	int err;

	if (attr->port || !last) {
		first = last = attr->port;
		err = bind_port(u, attr->port);
	} else {
		err = bind_range(u, first, last);
	}
	if (err)
		rwk_warn("udp: no socket can be bound to %s, port %u to %u: %s",
			inet_ntop(AF_INET6, u->ip, text, sizeof(text)), first, last, strerror(-err));
	return err;
}

/*
 * Operations.
 */

static rwk_time udp_now(struct rwk_link *l)
{
	(void)l;
	return rwk_clock_now();
}

/** What waits for room is among `messages`: no descriptor tells of room, so whoever has some does not sleep. */
static int udp_arm(struct rwk_link *l)
{
	struct udp *u = rwk_udp_of(l);
	struct pollfd p[] = {{.fd = u->main.fd, .events = POLLIN}, {.fd = u->line.fd, .events = POLLIN}};

	if (u->messages || u->notice || u->slot < u->filled)
		return -EAGAIN;
	if (poll(p, 2, 0) <= 0)
		return 0;
	u->notice |= ((p[0].revents | p[1].revents) & POLLERR) != 0;
	return -EAGAIN;
}

static int udp_wait_fd(struct rwk_link *l, int i)
{
	return i == 0 ? rwk_udp_of(l)->main.fd : i == 1 ? rwk_udp_of(l)->line.fd : -1;
}

static void free_link(struct udp *u)
{
	rwk_udp_free_routes(u);
	free(u->pool);
	free(u->held);
	free(u);
}

static void udp_close(struct rwk_link *l)
{
	struct udp *u = rwk_udp_of(l);

	rwk_udp_line_end(u);
	close(u->main.fd);
	free_link(u);
}

static const struct rwk_link_ops udp_ops = {
	.name = "udp",
	.traits = RWK_LINK_MAY_LOSE | RWK_LINK_MAY_DUPLICATE | RWK_LINK_MAY_REORDER,
	.mtu = rwk_udp_mtu,
	.send = rwk_udp_send,
	.reserve = rwk_udp_reserve,
	.hasten = rwk_udp_hasten,
	.flush = rwk_udp_flush,
	.progress = rwk_udp_progress,
	.now = udp_now,
	.pseudo = rwk_udp_pseudo,
	.favour = rwk_udp_favour,
	.arm = udp_arm,
	.wait_fd = udp_wait_fd,
	.close = udp_close,
};

static int open_socket(struct udp *u, const struct rwk_udp_attr *attr)
{
	int err = make_socket(u);

	if (err) {
		rwk_warn("udp: no socket: %s", strerror(-err));
		return err;
	}
	err = set_options(u);
	if (err)
		rwk_warn("udp: the socket lacks an option that is needed: %s", strerror(-err));
	else
		err = bind_socket(u, attr);
	if (!err)
		err = rwk_udp_open_asking(u);
	if (err)
		close(u->main.fd);
	return err;
}

/* A link that has no socket yet. */
static struct udp *new_link(void)
{
	struct udp *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->pub.ops = &udp_ops;
	u->line.fd = u->asking = -1;
	u->agreed = &u->alone;
	rwk_udp_init_routes(u);
	u->pool = aligned_alloc(RWK_COPY_PAGE, POOL_BYTES);
	u->held = malloc(STAGED_MAX);
	if (u->pool && u->held)
		return u;
	free_link(u);
	return NULL;
}

int rwk_udp_open(const struct rwk_udp_attr *attr, struct rwk_link **l)
{
	struct udp *u;
	int err;

	if (attr->port_last < attr->port_first || (attr->port_last && !attr->port_first)) {
		rwk_warn("udp: %u to %u is no range of ports: it begins at 1 or above and ends at the same or above",
			attr->port_first, attr->port_last);
		return -EINVAL;
	}
	u = new_link();
	if (!u)
		return -ENOMEM;
	u->strict = attr->strict;
	u->receive_buffer = attr->receive_buffer ? attr->receive_buffer : (int)RWK_UDP_RECEIVE_BUFFER;
	if (u->receive_buffer < RWK_UDP_RECEIVE_LEAST)
		u->receive_buffer = RWK_UDP_RECEIVE_LEAST;
	memcpy(u->ip, attr->ip, 16);
	u->wildcard = !memcmp(u->ip, any_ip, 16);
	err = open_socket(u, attr);
	if (err) {
		free_link(u);
		return err;
	}
	rwk_udp_init_receive(u);
	*l = &u->pub;
	return 0;
}

/* What a socket that was bound elsewhere is. */
static int read_socket(struct udp *u)
{
	socklen_t size = sizeof(union socket_name), len = sizeof(int);
	struct rwk_link_address a;
	union socket_name name;
	int value;

	if (getsockname(u->main.fd, &name.any, &size) ||
		(name.any.sa_family != AF_INET && name.any.sa_family != AF_INET6))
		return -EINVAL;
	if (getsockopt(u->main.fd, SOL_SOCKET, SO_TYPE, &value, &len) || value != SOCK_DGRAM)
		return -EINVAL;
	u->family = name.any.sa_family;
	a = rwk_udp_from_name(&name);
	memcpy(u->ip, rwk_udp_place(&a).ip, 16);
	u->port = ntohs(rwk_udp_place(&a).port);
	u->wildcard = !memcmp(u->ip, any_ip, 16) || !memcmp(u->ip, any_ip4, 16);
	u->gso = !getsockopt(u->main.fd, IPPROTO_UDP, UDP_SEGMENT, &value, &len);
	return u->port ? 0 : -EINVAL;
}

int rwk_udp_adopt(int fd, int line, struct rwk_link **l)
{
	struct udp *u = new_link();
	int err;

	if (!u)
		return -ENOMEM;
	u->main.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	err = u->main.fd < 0 ? -errno : read_socket(u);
	if (!err)
		err = rwk_udp_open_asking(u);
	if (err) {
		if (u->main.fd >= 0)
			close(u->main.fd);
		free_link(u);
		return err == -EBADF ? -EINVAL : err;
	}
	rwk_udp_init_receive(u);
	u->shared = true;
	u->longest = PACKET_MAX; /* what peers send and get was agreed by another link: what does not fit is cut */
	rwk_udp_adopt_line(u, line);
	*l = &u->pub;
	return 0;
}

/*
 * Questions.
 */

uint16_t rwk_udp_port(const struct rwk_link *l)
{
	return rwk_udp_of(l)->port;
}

size_t rwk_udp_room(const struct rwk_link *l)
{
	int size = 0;
	socklen_t len = sizeof(size);

	getsockopt(rwk_udp_of(l)->main.fd, SOL_SOCKET, SO_RCVBUF, &size, &len);
	return (size_t)size / 4;
}

void rwk_udp_read_drops(const struct inlet *in, uint64_t *drops)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);

	if (in->fd >= 0 && !getsockopt(in->fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		*drops += info[SK_MEMINFO_DROPS];
}

void rwk_udp_get_counters(const struct rwk_link *l, struct rwk_udp_counters *c)
{
	const struct udp *u = rwk_udp_of(l);

	*c = u->counters;
	rwk_udp_read_drops(&u->main, &c->overruns);
	rwk_udp_read_drops(&u->line, &c->overruns);
}

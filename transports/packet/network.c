/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet service on the real network: udp, and tcp at the same port number, so that one address names both.
 */
#include "packet/packet.h"
#include "packet/port.h"

#include "base/interfaces.h"
#include "base/log.h"
#include "base/param.h"
#include "links/tcp/tcp.h"
#include "links/udp/udp.h"
#include "shared_rc/join.h"
#include "wire/wire.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PORT_TRIES    32
#define SEATS_LEAST   64u
#define TARGETS_LEAST 256u
#define INBOX         (1u << 20) /* bytes */
#define LOOKS         64

static_assert(RWK_TCP_MTU >= RWK_WIRE_OWN_MAX + RWK_PACKET_OVERHEAD, "a stream carries the longest packets");

static const uint8_t any_ip[16];

/** Which of this host's addresses peers are told, unless the user has named one. */
static int publish_ip(struct rwk_address *a)
{
	size_t room = rwk_params.interfaces ? strlen(rwk_params.interfaces) + 1 : 1;
	char *lists, why[700];
	int rc;

	if (memcmp(a->ip, any_ip, sizeof(any_ip)))
		return 0;
	lists = malloc(2 * room);
	if (!lists)
		return -ENOMEM;
	rwk_interfaces_split(rwk_params.interfaces, lists, lists + room);
	rc = rwk_udp_own_ip(lists, lists + room, a->ip, why, sizeof(why));
	free(lists);
	if (!rc)
		return 0;
	/* A host without a network is what it is; a list that leaves none is seldom what was meant. */
	if (rwk_params.interfaces)
		rwk_warn("FI_ROPEWALK_INTERFACES=%.100s: %s; peers on other nodes cannot be reached",
			rwk_params.interfaces, why);
	else
		rwk_info("network: %s; peers on other nodes cannot be reached", why);
	return -ENETDOWN;
}

static int open_stream(
	const struct rwk_port_attr *attr, const uint8_t ip[16], uint16_t port, bool another, struct rwk_link **stream)
{
	struct rwk_tcp_attr tcp = {
		.port = port,
		.port_first = rwk_params.ports.first,
		.port_last = rwk_params.ports.last,
		.another = another,
		.nonce = attr->address.nonce_port >> 16,
	};

	memcpy(tcp.ip, ip, sizeof(tcp.ip));
	memcpy(tcp.secret, attr->key, sizeof(tcp.secret));
	return rwk_tcp_open(&tcp, stream);
}

static int open_lossy(const struct rwk_port_attr *attr, const uint8_t ip[16], struct rwk_link **lossy)
{
	struct rwk_udp_attr udp = {
		.port = rwk_address_port(&attr->address),
		.port_first = rwk_params.ports.first,
		.port_last = rwk_params.ports.last,
		.receive_buffer = (int)rwk_params.receive_buffer,
	};

	memcpy(udp.ip, ip, sizeof(udp.ip));
	return rwk_udp_open(&udp, lossy);
}

/** Opens what is wanted, both at one number; -EAGAIN: any would do, and what comes second has not that of the first. */
static int open_wanted(const struct rwk_port_attr *attr, const uint8_t ip[16], struct rwk_link **lossy,
	struct rwk_link **stream, uint16_t *port)
{
	bool udp = rwk_param_opens_udp(&rwk_params);
	bool another = udp && !rwk_address_port(&attr->address);
	int rc = 0;

	*lossy = *stream = NULL;
	*port = rwk_address_port(&attr->address);
	if (udp) {
		rc = open_lossy(attr, ip, lossy);
		if (rc)
			return rc;
		*port = rwk_udp_port(*lossy);
	}
	if (!rwk_params.tcp)
		return 0;
	rc = open_stream(attr, ip, *port, another, stream);
	if (!rc)
		*port = rwk_tcp_port(*stream);
	else if (udp)
		(*lossy)->ops->close(*lossy);
	return rc == -EADDRINUSE && another ? -EAGAIN : rc;
}

static int open_links(struct rwk_port_attr *attr, struct rwk_link **lossy, struct rwk_link **stream)
{
	uint8_t ip[16];
	uint16_t port = 0;
	int rc;

	if (!rwk_params.tcp && !rwk_param_opens_udp(&rwk_params))
		return -ENETDOWN;
	memcpy(ip, attr->address.ip, sizeof(ip));
	rc = publish_ip(&attr->address);
	if (rc)
		return rc;
	rc = open_wanted(attr, ip, lossy, stream, &port);
	for (int i = 0; rc == -EAGAIN && i < PORT_TRIES; i++)
		rc = open_wanted(attr, ip, lossy, stream, &port);
	if (rc == -EAGAIN) {
		rwk_warn("network: of %d ports that were free for udp tcp had none, such as %u", PORT_TRIES + 1, port);
		rc = -EADDRINUSE;
	}
	if (!rc)
		attr->address.nonce_port = (attr->address.nonce_port & ~0xffffull) | port;
	return rc;
}

/*
 * SRC. The domain's socket listens to all addresses, since processes that were told different ones share it.
 */

static int domain_sockets(void *user, int fd[2])
{
	const struct rwk_port_attr *attr = user;
	const struct rwk_udp_attr udp = {
		.port_first = rwk_params.ports.first,
		.port_last = rwk_params.ports.last,
		.receive_buffer = (int)rwk_params.receive_buffer,
	};
	struct rwk_link *l;
	int rc = rwk_udp_open(&udp, &l);

	if (rc)
		return rc;
	fd[0] = fcntl(l->ops->wait_fd(l, 0), F_DUPFD_CLOEXEC, 0);
	fd[1] = rwk_udp_spare(l, attr->address.ip);
	if (fd[1] < 0) /* then nobody is favoured */
		fd[1] = fcntl(l->ops->wait_fd(l, 0), F_DUPFD_CLOEXEC, 0);
	l->ops->close(l);
	if (fd[0] >= 0 && fd[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	return -EMFILE;
}

static uint32_t clamp(uint32_t v, uint32_t least, uint32_t most)
{
	return v < least ? least : v > most ? most : v;
}

/**
 * Room for who is expected twice over: endpoints come and go, and their seats are not taken again at once. And for many
 * endpoints of few processes: each context of a SHMEM program is one. What nobody uses takes no memory.
 */
static struct rwk_src_size domain_size(const struct rwk_port_attr *attr)
{
	struct rwk_src_size size = {
		.members = clamp(2 * (attr->local_peers + 1), SEATS_LEAST, RWK_SRC_MEMBERS_MAX),
		.targets = TARGETS_LEAST,
		.inbox_bytes = INBOX,
	};

	while (size.targets < 2 * attr->remote_peers && size.targets < RWK_SRC_TARGETS_MAX)
		size.targets *= 2;
	return size;
}

/* We have a seat in it. */
static int enter_domain(struct rwk_packet_domain *d)
{
	int rc = rwk_udp_adopt(rwk_src_seat_socket(d->seat), rwk_src_seat_line(d->seat), &d->link);

	d->memory = rwk_src_seat_memory(d->seat);
	d->id = rwk_src_seat_id(d->seat);
	if (!rc)
		d->port = rwk_udp_port(d->link);
	return rc;
}

static int join_domain(const struct rwk_port_attr *attr, struct rwk_packet_domain *d)
{
	struct rwk_src_join_attr join = {.size = domain_size(attr), .socket = domain_sockets, .user = (void *)attr};
	struct rwk_src_seat *seat = d->seat;
	int rc;

	if (seat) {
		rc = rwk_src_join_go_on(seat);
	} else {
		memcpy(join.key, attr->key, sizeof(join.key));
		rc = rwk_src_join(&join, &seat);
		d->seat = rc ? NULL : seat;
		if (!rc)
			rc = rwk_src_join_go_on(seat);
	}
	return rc ? rc : enter_domain(d);
}

static int join_alone(const struct rwk_port_attr *attr, struct rwk_packet_domain *d, int *why)
{
	int rc;

	(void)attr;
	*why = rwk_src_why_not_taken(d->seat);
	rc = rwk_src_join_alone(d->seat);
	return rc ? rc : enter_domain(d);
}

static int sit_in_domain(const struct rwk_packet_domain *d, uint32_t seat)
{
	return rwk_src_seat_sit(d->seat, seat);
}

static void agree_in_domain(const struct rwk_packet_domain *d, _Atomic uint32_t *word)
{
	rwk_udp_agree(d->link, word);
}

static void attend_domain(const struct rwk_packet_domain *d)
{
	rwk_src_attend(d->seat);
}

static bool expects_in_domain(const struct rwk_packet_domain *d)
{
	return rwk_src_expects(d->seat);
}

static void leave_domain(const struct rwk_packet_domain *d)
{
	rwk_src_leave(d->seat);
}

static int watch_stream(
	struct rwk_link *stream, const struct rwk_link_address *to, const struct rwk_packet_domain *d, uint64_t key)
{
	return rwk_tcp_watch(stream, to, rwk_src_seat_watch(d->seat), key);
}

static int look_at_streams(const struct rwk_packet_domain *d, uint64_t *key, int max)
{
	struct epoll_event event[LOOKS];
	int n = epoll_wait(rwk_src_seat_watch(d->seat), event, max < LOOKS ? max : LOOKS, 0);

	for (int i = 0; i < n; i++)
		key[i] = event[i].data.u64;
	return n < 0 ? 0 : n;
}

static struct rwk_link_address link_address(const struct rwk_address *a)
{
	return rwk_udp_address(a->ip, rwk_address_port(a));
}

static const struct rwk_packet_ways network_ways = {
	.open = open_links,
	.address = link_address,
	.split = rwk_udp_split,
	.reach = rwk_tcp_reach,
	.nonce = rwk_tcp_nonce,
	.leave = rwk_tcp_leave,
	.room = rwk_udp_room,
	.join = join_domain,
	.join_alone = join_alone,
	.sit = sit_in_domain,
	.same_source = rwk_udp_same_source,
	.agree = agree_in_domain,
	.attend = attend_domain,
	.expects = expects_in_domain,
	.watch = watch_stream,
	.look = look_at_streams,
	.depart = leave_domain,
};

static int network_open(
	struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **port)
{
	return rwk_packet_open(&network_ways, &rwk_network_transport, attr, client, cookie, port);
}

const struct rwk_transport rwk_network_transport = {
	.name = "RC/udp",
	.open = network_open,
	RWK_PACKET_CALLS,
	.leave = rwk_packet_leave,
	.linger = rwk_packet_linger,
	.progress = rwk_packet_progress,
};

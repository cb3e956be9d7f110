/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of the way to a peer, asked by connecting a socket that sends nothing. The answers are kept in
 * `routes`, by IP: a hash and the three entries behind it, of which one makes way if all are taken. So addresses that
 * strangers make up cost system calls, and never memory.
 *
 * The MTU is asked for again when it has changed. The source is not, nor when another address becomes the kernel's
 * choice: a peer takes packets only from where the first ones came, and their ICRC covers it. An address that has gone
 * stays the source; packets are dropped until it is back.
 */
#define _GNU_SOURCE /* sendmmsg, in6_pktinfo */

#include "links/udp/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#define ANY_PORT 4791 /* a port to connect to where none is given: nothing is sent there */
#define WAYS     4
#define MIN4     (576 - 20 - 8) /* what every host takes, RFC 1122 and RFC 8200 */
#define MIN6     (1280 - 40 - 8)

static void address_to_ip(const union socket_name *name, uint8_t ip[16])
{
	struct rwk_link_address a = rwk_udp_from_name(name);

	memcpy(ip, a.byte, 16);
}

/* Bytes of the largest packet on the way that the connected socket has. */
static uint32_t ask_mtu(int fd, bool ip4)
{
	int mtu = 0;
	socklen_t size = sizeof(mtu);
	uint32_t headers = ip4 ? 28 : 48, least = ip4 ? MIN4 : MIN6, most = ip4 ? PACKET_MAX - 20 : PACKET_MAX;

	if (getsockopt(fd, ip4 ? IPPROTO_IP : IPPROTO_IPV6, ip4 ? IP_MTU : IPV6_MTU, &mtu, &size) ||
		mtu <= (int)(least + headers))
		return least;
	return (uint32_t)mtu - headers < most ? (uint32_t)mtu - headers : most;
}

/* From `own`, NULL: from whichever address the kernel chooses. 0 and source, mtu of r set; negative errno. */
static int ask(const uint8_t *own, const struct rwk_link_address *to, struct route *r)
{
	bool ip4 = rwk_udp_is_ip4(to->byte);
	union socket_name name;
	socklen_t size = sizeof(name);
	socklen_t len = rwk_udp_to_name(ip4 ? AF_INET : AF_INET6, to, &name);
	int fd = socket(name.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (own) {
		struct place at = {.scope = rwk_udp_place(to).scope};
		struct rwk_link_address bound;
		union socket_name own_name;
		socklen_t own_len;

		memcpy(at.ip, own, 16);
		memcpy(&bound, &at, sizeof(bound));
		own_len = rwk_udp_to_name(name.any.sa_family, &bound, &own_name);
		if (bind(fd, &own_name.any, own_len))
			err = -errno;
	}
	if (!err && (connect(fd, &name.any, len) || getsockname(fd, &name.any, &size)))
		err = -errno;
	if (!err) {
		address_to_ip(&name, r->source);
		r->mtu = ask_mtu(fd, ip4);
	}
	close(fd);
	return err;
}

int rwk_udp_route_ip(const uint8_t peer[16], uint8_t source[16])
{
	struct rwk_link_address to = rwk_udp_address(peer, ANY_PORT);
	struct route r;
	int err = ask(NULL, &to, &r);

	if (!err)
		memcpy(source, r.source, 16);
	return err;
}

static uint32_t hash(const struct place *p)
{
	uint64_t a, b;

	memcpy(&a, p->ip, 8);
	memcpy(&b, p->ip + 8, 8);
	a = (a ^ (b + p->scope)) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(a >> 40);
}

static struct route *find(struct udp *u, const struct place *p)
{
	uint32_t at = hash(p);

	for (uint32_t i = 0; i < WAYS; i++) {
		struct route *r = &u->routes[(at + i) % ROUTES];

		if (r->mtu && r->scope == p->scope && !memcmp(r->ip, p->ip, 16))
			return r;
	}
	return NULL;
}

/* A free entry, or one whose turn it is to make way. */
static struct route *entry_for(struct udp *u, const struct place *p)
{
	uint32_t at = hash(p);

	for (uint32_t i = 0; i < WAYS; i++)
		if (!u->routes[(at + i) % ROUTES].mtu)
			return &u->routes[(at + i) % ROUTES];
	return &u->routes[(at + u->route_next++ % WAYS) % ROUTES];
}

const struct route *rwk_udp_route(struct udp *u, const struct rwk_link_address *to)
{
	struct place p = rwk_udp_place(to);
	struct route *r = find(u, &p);
	struct route fresh;
	int err;

	if (r && !r->changed)
		return r;
	if (r) {
		r->changed = ask(r->source, to, &fresh) != 0;
		r->mtu = r->changed ? r->mtu : fresh.mtu;
		return r;
	}
	err = ask(u->wildcard ? NULL : u->ip, to, &fresh);
	if (err) {
		errno = -err;
		return NULL;
	}
	fresh.changed = false;
	memcpy(fresh.ip, p.ip, 16);
	fresh.scope = p.scope;
	r = entry_for(u, &p);
	*r = fresh;
	return r;
}

void rwk_udp_forget_route(struct udp *u, const struct rwk_link_address *to)
{
	struct place p = rwk_udp_place(to);
	struct route *r = find(u, &p);

	if (r)
		r->changed = true;
	memset(&u->to, 0, sizeof(u->to));
}

size_t rwk_udp_mtu(struct rwk_link *l, const struct rwk_link_address *to)
{
	struct udp *u = rwk_udp_of(l);
	const struct route *r = rwk_udp_route(u, to);
	/* No way now: there may be one later, and this much every way carries. */
	uint32_t mtu = r ? r->mtu : rwk_udp_is_ip4(to->byte) ? MIN4 : MIN6;

	if (mtu > u->longest) {
		u->longest = mtu;
		memset(&u->to, 0, sizeof(u->to));
	}
	return mtu;
}

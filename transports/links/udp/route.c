/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of the way to a peer, asked by connecting a socket that sends nothing. The answers are kept in
 * `routes`, by IP: one for each host, of whatever number of peers there. Only beyond ROUTES_MAX hosts an old one makes
 * way: more than a job has, and addresses that strangers make up cost system calls, and memory up to that only.
 *
 * On all addresses it is the answer that says which source an ICRC covers: without it no packet arrives. So the socket
 * that asks is open as long as the link is, and a process that has no descriptor left reaches new hosts all the same.
 * Where the source is known, only the MTU is asked for, which can wait until there is a descriptor.
 *
 * The MTU is asked for again when it has changed, and, as long as it is less than it was, from time to time while the
 * way is used: nobody says that a way has become wider. The source is not, nor when another address becomes the
 * kernel's choice: a peer takes packets only from where the first ones came, and their ICRC covers it. An address that
 * has gone stays the source; packets are dropped until it is back.
 */
#define _GNU_SOURCE /* sendmmsg, in6_pktinfo */

#include "links/udp/internal.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ANY_PORT   4791           /* a port to connect to where none is given: nothing is sent there */
#define ROUTES_MAX 32768u         /* of 80 bytes, the lists among them */
#define WIDER_IN   2000000000u    /* ns */
#define MIN4       (576 - 20 - 8) /* what every host takes, RFC 1122 and RFC 8200 */
#define MIN6       (1280 - 40 - 8)

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

/* By a socket of that family, which is connected to nothing. 0 and source, mtu of r set; negative errno. */
static int ask_by(int fd, int family, const struct rwk_link_address *to, struct route *r)
{
	union socket_name name;
	socklen_t size = sizeof(name), len = rwk_udp_to_name(family, to, &name);

	if (connect(fd, &name.any, len) || getsockname(fd, &name.any, &size))
		return -errno;
	address_to_ip(&name, r->source);
	r->mtu = ask_mtu(fd, rwk_udp_is_ip4(to->byte));
	return 0;
}

/* From `own`, with the scope that `to` has. 0; negative errno. */
static int bind_to(int fd, int family, const uint8_t own[16], const struct rwk_link_address *to)
{
	struct place at = {.scope = rwk_udp_place(to).scope};
	struct rwk_link_address bound;
	union socket_name name;
	socklen_t len;

	memcpy(at.ip, own, 16);
	memcpy(&bound, &at, sizeof(bound));
	len = rwk_udp_to_name(family, &bound, &name);
	return bind(fd, &name.any, len) ? -errno : 0;
}

/* By a socket of its own; from `own`, NULL: from whichever address the kernel chooses. As ask_by. */
static int ask(const uint8_t *own, const struct rwk_link_address *to, struct route *r)
{
	int before = rwk_cancel_hold_off();
	int family = rwk_udp_is_ip4(to->byte) ? AF_INET : AF_INET6, err = 0;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		err = -errno;
		goto as_before;
	}
	if (own)
		err = bind_to(fd, family, own, to);
	if (!err)
		err = ask_by(fd, family, to, r);
	close(fd);
as_before:
	rwk_cancel_as_before(before);
	return err;
}

/*
 * By the socket that is kept for it, which has no port between two questions: whatever comes to a port that nobody
 * reads would stay in memory.
 */
static int ask_unbound(struct udp *u, const struct rwk_link_address *to, struct route *r)
{
	static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
	int before = rwk_cancel_hold_off();
	int err = ask_by(u->asking, u->family, to, r);

	connect(u->asking, &nowhere, sizeof(nowhere));
	rwk_cancel_as_before(before);
	return err;
}

int rwk_udp_open_asking(struct udp *u)
{
	int err = 0;

	if (!u->wildcard)
		return 0;
	u->asking = socket(u->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (u->asking >= 0 && u->family == AF_INET6)
		err = rwk_udp_set(u->asking, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	else if (u->asking < 0)
		err = -errno;
	if (err)
		rwk_warn("udp: no socket: %s", strerror(-err));
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

static struct route *of_link(const struct rwk_hash_link *l)
{
	return l ? rwk_container_of(l, struct route, in_table) : NULL;
}

/* Hosts of a network differ in the last bytes alone, which are the upper ones of `b` and have to reach the low bits. */
static uint32_t hash(const uint8_t ip[16], uint32_t scope)
{
	uint64_t a, b;

	memcpy(&a, ip, 8);
	memcpy(&b, ip + 8, 8);
	a = (a ^ scope) * 0x9e3779b97f4a7c15u ^ b;
	a = (a ^ a >> 32) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(a >> 32);
}

static uint32_t hash_of(const struct rwk_hash_link *l)
{
	const struct route *r = of_link(l);

	return hash(r->ip, r->scope);
}

static struct route *find(struct udp *u, const struct place *p)
{
	struct route *r = of_link(rwk_hash_list(&u->routes, hash(p->ip, p->scope)));

	while (r && (r->scope != p->scope || memcmp(r->ip, p->ip, 16)))
		r = of_link(r->in_table.next);
	return r;
}

/* Takes out an old entry: the first of that hash's list, or of the next that has one. There is one. */
static struct route *make_way(struct udp *u, uint32_t at)
{
	struct route *r;

	while (!(r = of_link(rwk_hash_list(&u->routes, at))))
		at++;
	rwk_hash_remove(&u->routes, &r->in_table);
	return r;
}

/* Keeps what was said of the way to a place; NULL: there is no memory. */
static struct route *keep(struct udp *u, const struct place *p, const struct route *fresh)
{
	struct route *r = u->routes.count < ROUTES_MAX ? malloc(sizeof(*r)) : make_way(u, hash(p->ip, p->scope));

	if (!r)
		return NULL;
	*r = *fresh;
	r->widest = r->mtu;
	r->changed = false;
	memcpy(r->ip, p->ip, 16);
	r->scope = p->scope;
	rwk_hash_add(&u->routes, &r->in_table);
	return r;
}

void rwk_udp_init_routes(struct udp *u)
{
	rwk_hash_init(&u->routes, hash_of);
}

void rwk_udp_free_routes(struct udp *u)
{
	for (uint32_t i = 0; i <= u->routes.mask; i++) {
		for (struct route *r = of_link(u->routes.first[i]), *next; r; r = next) {
			next = of_link(r->in_table.next);
			free(r);
		}
	}
	rwk_hash_free(&u->routes);
	if (u->asking >= 0)
		close(u->asking);
}

/* May its MTU be another than is known? */
static bool is_due(const struct route *r)
{
	return r->changed || (r->mtu < r->widest && rwk_clock_now() - r->asked_at >= WIDER_IN);
}

/* If that cannot be asked now, what was known stays. */
static rwk_noinline void ask_again(struct udp *u, const struct rwk_link_address *to, struct route *r)
{
	bool narrow = r->mtu < r->widest;
	struct route fresh;

	r->asked_at = rwk_clock_now();
	if (ask(r->source, to, &fresh))
		return;
	r->changed = false;
	if (fresh.mtu == r->mtu)
		return;
	r->mtu = fresh.mtu;
	r->widest = r->mtu > r->widest ? r->mtu : r->widest;
	memset(&u->to, 0, sizeof(u->to));
	if (narrow && r->mtu == r->widest)
		rwk_udp_forbid_fragments(u);
}

const struct route *rwk_udp_route(struct udp *u, const struct rwk_link_address *to)
{
	struct place p = rwk_udp_place(to);
	struct route *r = find(u, &p);
	struct route fresh;
	int err;

	if (r) {
		if (rwk_unlikely(is_due(r)))
			ask_again(u, to, r);
		return r;
	}
	err = u->wildcard ? ask_unbound(u, to, &fresh) : ask(u->ip, to, &fresh);
	if (err) {
		errno = -err;
		return NULL;
	}
	return keep(u, &p, &fresh);
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

static void drop_route(struct udp *u, const struct rwk_link_address *to)
{
	struct place p = rwk_udp_place(to);
	struct route *r = find(u, &p);

	if (!r)
		return;
	rwk_hash_remove(&u->routes, &r->in_table);
	free(r);
	memset(&u->to, 0, sizeof(u->to));
}

int rwk_udp_source(struct rwk_link *l, const uint8_t peer[16], bool anew, uint8_t source[16])
{
	struct rwk_link_address to = rwk_udp_address(peer, ANY_PORT);
	struct udp *u = rwk_udp_of(l);
	const struct route *r;

	if (anew)
		drop_route(u, &to);
	r = rwk_udp_route(u, &to);
	if (!r)
		return -errno;
	memcpy(source, r->source, 16);
	return 0;
}

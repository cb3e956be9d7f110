/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers below BTH as an ICRC sees them: with all that a router may change set to ones. */
#define _GNU_SOURCE /* sendmmsg, in6_pktinfo */

#include "links/udp/internal.h"

#include <arpa/inet.h>

#define ONES   8u /* bytes in front */
#define UDP    8u
#define IP4    20u
#define DF     0x4000u
#define UDP_IS 17 /* protocol number */

static uint8_t *put16(uint8_t *out, size_t v)
{
	out[0] = (uint8_t)(v >> 8);
	out[1] = (uint8_t)v;
	return out + 2;
}

static uint8_t *put_ip4(uint8_t *out, const uint8_t source[16], const uint8_t target[16], size_t len, uint16_t id)
{
	*out++ = 0x45;
	*out++ = 0xff; /* TOS */
	out = put16(out, IP4 + UDP + len);
	out = put16(out, id);
	out = put16(out, DF);
	*out++ = 0xff; /* TTL */
	*out++ = UDP_IS;
	out = put16(out, 0xffff); /* checksum */
	memcpy(out, source + 12, 4);
	memcpy(out + 4, target + 12, 4);
	return out + 8;
}

static uint8_t *put_ip6(uint8_t *out, const uint8_t source[16], const uint8_t target[16], size_t len)
{
	out = put16(out, 0x6fff); /* traffic class and flow label */
	out = put16(out, 0xffff);
	out = put16(out, UDP + len);
	*out++ = UDP_IS;
	*out++ = 0xff; /* hop limit */
	memcpy(out, source, 16);
	memcpy(out + 16, target, 16);
	return out + 32;
}

/*
 * This end's IP as the packet has it. A packet that is just being delivered has said it; else it is the one bound to,
 * or the one by which the peer is reached. False: there is no way there now, and nobody knows.
 */
static bool own_ip(struct udp *u, const struct rwk_link_address *peer, bool outgoing, uint8_t ip[16])
{
	const struct route *r;

	if (!u->wildcard) {
		memcpy(ip, u->ip, 16);
	} else if (!outgoing && u->arrived && !memcmp(peer, &u->from, sizeof(*peer))) {
		memcpy(ip, u->at, 16);
	} else {
		r = rwk_udp_route(u, peer);
		if (!r)
			return false;
		memcpy(ip, r->source, 16);
	}
	return true;
}

bool rwk_udp_same_source(struct rwk_link *l, struct rwk_link *other, const struct rwk_link_address *to)
{
	struct udp *u = rwk_udp_of(l), *o = rwk_udp_of(other);
	uint8_t from[16], from_other[16];

	if (u->wildcard && o->wildcard)
		return true;
	return own_ip(u, to, true, from) && own_ip(o, to, true, from_other) && !memcmp(from, from_other, sizeof(from));
}

size_t rwk_udp_pseudo(
	struct rwk_link *l, const struct rwk_link_address *peer, bool outgoing, size_t len, uint16_t id, uint8_t *out)
{
	struct udp *u = rwk_udp_of(l);
	struct place there = rwk_udp_place(peer);
	uint8_t own[16], *p = out + ONES;
	const uint8_t *source = outgoing ? own : there.ip, *target = outgoing ? there.ip : own;
	size_t source_port = outgoing ? u->port : ntohs(there.port),
	       target_port = outgoing ? ntohs(there.port) : u->port;

	if (!own_ip(u, peer, outgoing, own))
		return 0;
	memset(out, 0xff, ONES);
	p = rwk_udp_is_ip4(there.ip) ? put_ip4(p, source, target, len, id) : put_ip6(p, source, target, len);
	p = put16(p, source_port);
	p = put16(p, target_port);
	p = put16(p, UDP + len);
	p = put16(p, 0xffff); /* checksum */
	return (size_t)(p - out);
}

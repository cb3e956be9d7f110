/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port: its links, its clock, the client's calls about it and its channels, and the datagrams of the handshake.
 */
#include "packet/capture.h"
#include "packet/channel.h"
#include "packet/domain.h"
#include "packet/handshake.h"
#include "packet/initiator.h"
#include "packet/numbers.h"
#include "packet/path.h"
#include "packet/port.h"
#include "packet/pull.h"
#include "packet/reach.h"
#include "packet/regions.h"
#include "packet/request.h"
#include "packet/streams.h"

#include "base/iov.h"
#include "base/log.h"
#include "base/param.h"
#include "rc/rc.h"
#include "uc/uc.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int rwk_packet_random(void *to, size_t len)
{
	return getrandom(to, len, 0) == (ssize_t)len ? 0 : -EIO;
}

const char *rwk_packet_name(const struct rwk_address *a)
{
	static _Thread_local char text[INET6_ADDRSTRLEN + 32];
	char ip[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)a->ip))
		inet_ntop(AF_INET, a->ip + 12, ip, sizeof(ip));
	else
		inet_ntop(AF_INET6, a->ip, ip, sizeof(ip));
	if (rwk_address_rank(a) == RWK_ADDR_NO_RANK || a->flags_rank & RWK_ADDR_PARTIAL)
		snprintf(text, sizeof(text), "%s port %u", ip, rwk_address_port(a));
	else
		snprintf(text, sizeof(text), "rank %u (%s port %u)", rwk_address_rank(a), ip, rwk_address_port(a));
	return text;
}

rwk_time rwk_packet_now(struct rwk_port *port)
{
	struct rwk_link *l = port->link[RWK_WAY_LOSSY] ? port->link[RWK_WAY_LOSSY] : port->link[RWK_WAY_STREAM];

	if (!port->now)
		port->now = l->ops->now(l);
	return port->now;
}

uint32_t rwk_packet_pmtu(struct rwk_port *port, int way, const struct rwk_link_address *to)
{
	struct rwk_link *l = port->link[way];
	size_t room = l->ops->mtu(l, to);
	uint32_t most = rwk_param_pmtu(&rwk_params) ? rwk_param_pmtu(&rwk_params) : RWK_WIRE_OWN_MAX;

	if (room < RWK_PACKET_LEAST + RWK_PACKET_OVERHEAD)
		return RWK_PACKET_LEAST;
	room -= RWK_PACKET_OVERHEAD;
	return room < most ? (uint32_t)(room - room % RWK_WIRE_OWN_STEP) : most;
}

/* The link's word is for the worst case, and the machines notice when it comes to that: twice as much. */
uint16_t rwk_packet_window(const struct rwk_port *port, uint32_t pmtu)
{
	uint32_t window = 2 * port->room / (pmtu + RWK_PACKET_COST);

	if (rwk_params.window)
		return (uint16_t)rwk_params.window;
	if (window < 4)
		return 4;
	return (uint16_t)(window < RWK_RC_WINDOW_MAX ? window : RWK_RC_WINDOW_MAX);
}

void rwk_packet_flush(struct rwk_port *port)
{
	for (int i = 0; i < RWK_WAYS; i++) {
		if (port->link[i])
			port->link[i]->ops->flush(port->link[i]);
	}
}

rwk_noinline void rwk_packet_capture(struct rwk_port *port, int way, bool outgoing,
	const struct rwk_link_address *peer, const struct iovec *iov, int count)
{
	struct rwk_capture_end me = {.port = rwk_address_port(&port->address)}, it = {.port = 0};
	enum rwk_capture_link link = way == RWK_WAY_STREAM ? RWK_CAPTURE_TCP : RWK_CAPTURE_UDP;

	if (way == RWK_WAY_DOMAIN)
		me.port = port->domain.port;
	memcpy(me.ip, port->address.ip, sizeof(me.ip));
	port->ways->split(peer, it.ip, &it.port);
	rwk_capture_packet(port->capture, port->ways->simulated ? RWK_CAPTURE_SIM : link, outgoing,
		outgoing ? &me : &it, outgoing ? &it : &me, iov, count, 0);
}

void rwk_packet_sent(
	struct rwk_port *port, int way, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	port->count.packets_out++;
	if (rwk_unlikely(port->capture != NULL))
		rwk_packet_capture(port, way, true, to, iov, count);
}

void rwk_packet_greet(struct rwk_port *port, int way, const struct rwk_link_address *to, const struct rwk_greeting *g)
{
	struct rwk_wire w = {
		.opcode = RWK_WIRE_UD | RWK_WIRE_SEND_ONLY,
		.migrated = true,
		.pkey = RWK_WIRE_PKEY,
		.qpn = RWK_WIRE_GSI_QPN,
		.psn = (uint32_t)port->count.greetings_out & RWK_PSN_MASK,
		.deth = {RWK_PACKET_GSI_QKEY, RWK_WIRE_GSI_QPN},
	};
	uint8_t bytes[RWK_WIRE_HEADER_MAX + RWK_WIRE_OWN_MAX + RWK_WIRE_ICRC], pseudo[RWK_LINK_PSEUDO_MAX];
	struct rwk_link *l = port->link[way];
	size_t size = RWK_GREETING_SIZE + g->pad, len = rwk_wire_pack(&w, size, bytes);
	struct iovec iov;
	uint32_t icrc;

	if (rwk_greeting_pack(g, port->key, bytes + len)) {
		rwk_warn("packets: a greeting of ours is not valid; nothing was sent");
		return;
	}
	len += size;
	icrc = rwk_icrc_begin(RWK_CRC_32, pseudo, rwk_link_pseudo(l, to, true, len + RWK_WIRE_ICRC, 0, pseudo));
	icrc = rwk_icrc_bytes(RWK_CRC_32, icrc, bytes, len);
	memcpy(bytes + len, &icrc, sizeof(icrc));
	iov = (struct iovec){bytes, len + RWK_WIRE_ICRC};
	port->count.greetings_out++;
	if (!l->ops->send(l, to, &iov, 1)) /* what is lost is sent again */
		rwk_packet_sent(port, way, to, &iov, 1);
	l->ops->flush(l);
}

static void lossy_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	rwk_packet_arrived(user, RWK_WAY_LOSSY, from, bytes, len);
}

static void stream_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	rwk_packet_arrived(user, RWK_WAY_STREAM, from, bytes, len);
}

static void lossy_word(void *user, const struct rwk_link_address *who, int status)
{
	if (status == -ECONNREFUSED)
		rwk_packet_hint(user, who);
}

static void stream_word(void *user, const struct rwk_link_address *who, int status)
{
	rwk_packet_word(user, who, status);
}

static void join_links(struct rwk_port *port)
{
	struct rwk_link *lossy = port->link[RWK_WAY_LOSSY], *stream = port->link[RWK_WAY_STREAM];
	size_t room = lossy ? port->ways->room(lossy) : 0;

	if (lossy) {
		lossy->packet = lossy_packet;
		lossy->word = lossy_word;
		lossy->user = port;
	}
	if (stream) {
		stream->packet = stream_packet;
		stream->word = stream_word;
		stream->user = port;
	}
	port->room = room > UINT32_MAX ? UINT32_MAX : (uint32_t)room;
}

int rwk_packet_open(const struct rwk_packet_ways *ways, const struct rwk_transport *transport,
	struct rwk_port_attr *attr, const struct rwk_client *client, void *cookie, struct rwk_port **out)
{
	struct rwk_port *port = calloc(1, sizeof(*port));
	uint64_t nonce;
	int rc = -ENOMEM;

	if (!port)
		return rc;
	port->ways = ways;
	port->transport = transport;
	port->client = client;
	port->cookie = cookie;
	port->deadline = RWK_NEVER;
	port->seek_at = port->again_at = RWK_NEVER;
	port->wider_at = RWK_NEVER;
	memcpy(port->key, attr->key, sizeof(port->key));
	port->machine = attr->machine;
	port->processors = attr->processors;
	port->crowd = 1 + attr->local_peers;
	rwk_list_init(&port->all);
	rwk_list_init(&port->dirty);
	rwk_list_init(&port->lent);
	rwk_list_init(&port->active);
	rwk_list_init(&port->connecting);
	rwk_list_init(&port->all_initiators);
	rwk_list_init(&port->dirty_initiators);
	rwk_packet_numbers_init(port);
	rwk_pool_init(&port->requests, sizeof(struct rwk_request) + RWK_FRAME_HEAD + RWK_RECORD_MAX, 16, 0);
	rwk_spares_init(&port->spares, RWK_RELIEF_MAX);
	rwk_pool_init(&port->frames, sizeof(struct rwk_request) + RWK_WIRE_OWN_MAX, 16, 0);
	rc = 0;
	if (!(attr->address.nonce_port >> 16)) {
		rc = rwk_packet_random(&nonce, sizeof(nonce));
		attr->address.nonce_port = (nonce | 1) << 16 | (uint16_t)attr->address.nonce_port;
	}
	if (!rc)
		rc = ways->open(attr, &port->link[RWK_WAY_LOSSY], &port->link[RWK_WAY_STREAM]);
	if (rc)
		goto free_port;
	port->address = attr->address;
	join_links(port);
	rwk_packet_domain_join(port, attr);
	rc = rwk_packet_open_waiting(port);
	if (rc)
		goto close_links;
	port->capture = rwk_capture_open(rwk_params.pcap, rwk_address_rank(&port->address));
	*out = port;
	return 0;

close_links:
	rwk_packet_domain_leave(port);
	rwk_packet_close_links(port);
free_port:
	free(port);
	return rc;
}

int rwk_packet_connect(struct rwk_port *port, const struct rwk_address *to, void *peer, struct rwk_channel **out)
{
	struct rwk_packet_channel *ch;

	if (!rwk_address_port(to)) {
		rwk_info("packets cannot reach %s: its address has no port", rwk_packet_name(to));
		return -EHOSTUNREACH;
	}
	ch = rwk_packet_channel_new(port, to);
	if (!ch)
		return -ENOMEM;
	ch->base.peer = peer;
	port->now = 0;
	if (to->flags_rank & RWK_ADDR_PARTIAL)
		ch->give_up_at = rwk_packet_now(port) + rwk_params.connect_wait * 1000000000ull;
	rwk_list_append(&port->connecting, &ch->timed);
	rwk_packet_ask(ch, rwk_packet_now(port));
	*out = &ch->base;
	return 0;
}

/**
 * Is the good-bye to be said apart from its frame? By RC nobody is there to send that again, nor what is before it, nor
 * anything in the place of a Read that the peer refuses, behind which it would stay. By SRC its initiator is, unless
 * the frame is taken out of the queue.
 */
static bool says_bye_apart(struct rwk_packet_channel *ch)
{
	if (ch->shared)
		return rwk_packet_release(ch, -ECANCELED) || ch->frame;
	return ch->rc;
}

void rwk_packet_disconnect(struct rwk_channel *c)
{
	struct rwk_packet_channel *ch = rwk_packet_channel(c);

	rwk_packet_farewell(ch);
	if (ch->state == RWK_CH_OPEN) {
		rwk_packet_pump(ch); /* what arrives of it, arrives */
		if (says_bye_apart(ch))
			rwk_packet_say_bye(ch);
		rwk_packet_flush(ch->port);
	}
	rwk_packet_stop(ch, -ECANCELED);
	rwk_packet_channel_free(ch);
}

int rwk_packet_expose(
	struct rwk_channel *c, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key)
{
	struct rwk_packet_channel *ch = rwk_packet_channel(c);
	size_t length;
	uint32_t k;
	int rc;

	if (c->error)
		return c->error;
	if (ch->shared && !(access & RWK_EXPOSE_READ))
		return -EOPNOTSUPP; /* the siblings do both or nothing */
	if (count == 1 && !iov->iov_base && iov->iov_len)
		return -EOPNOTSUPP; /* all memory: of what we take ourselves we would touch what is not mapped */
	rc = rwk_packet_region_add(ch, iov, count,
		(access & RWK_EXPOSE_READ ? RWK_REACH_READ : 0u) | (access & RWK_EXPOSE_WRITE ? RWK_REACH_WRITE : 0u),
		&k);
	if (rc)
		return rc;
	length = rwk_iov_length(iov, count);
	*key = (struct rwk_rkey){
		{k, RWK_RKEY_MARK, 0, length < RWK_RKEY_LENGTH_MAX ? length : RWK_RKEY_LENGTH_MAX}};
	rc = access & RWK_EXPOSE_WRITE && ch->shared && c->direct_min ? rwk_packet_publish(ch, iov, count, key) : 0;
	if (rc)
		rwk_packet_region_remove(ch, k);
	return rc;
}

void rwk_packet_conceal(struct rwk_channel *c, const struct rwk_rkey *key)
{
	struct rwk_packet_channel *ch = rwk_packet_channel(c);

	rwk_packet_withdraw_key(ch, (uint32_t)key->word[0]);
	rwk_packet_region_remove(ch, (uint32_t)key->word[0]);
	rwk_packet_pulls_conceal(ch, (uint32_t)key->word[0]);
}

const struct rwk_packet_counters *rwk_packet_counters(const struct rwk_port *port)
{
	return &port->count;
}

const struct rwk_qp_counters *rwk_packet_qp_counters(const struct rwk_channel *c)
{
	const struct rwk_packet_channel *ch = (const struct rwk_packet_channel *)c;

	if (ch->shared)
		return ch->by->rc ? rwk_rc_counters(ch->by->rc) : NULL;
	return ch->rc ? rwk_rc_counters(ch->rc) : ch->uc ? rwk_uc_counters(ch->uc) : NULL;
}

bool rwk_packet_by_stream(const struct rwk_channel *c)
{
	return ((const struct rwk_packet_channel *)c)->path.way == RWK_WAY_STREAM;
}

bool rwk_packet_is_shared(const struct rwk_channel *c)
{
	return ((const struct rwk_packet_channel *)c)->shared;
}

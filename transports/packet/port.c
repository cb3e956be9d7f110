/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port: its links, and what is done with each packet that comes.
 *
 * Timers: each active channel has the machine's next deadline; the port keeps the earliest of all, and looks at the
 * clock only after packets and every few polls. Connecting channels are asked again by the same clock. Streams without
 * channels on them are looked at every few milliseconds: they only carry evidence.
 */
#include "packet/internal.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <sys/random.h>

#define BUDGET     64                   /* packets a progress and link */
#define DRAIN      256                  /* such rounds after a death: more than a receive buffer holds */
#define STREAM_GAP (5 * 1000 * 1000ull) /* ns between looks at streams that carry nothing */
#define SAY_AGAIN  (1000 * 1000ull)     /* ns between good-byes to who has not heard of the end */
#define LATE_WORD  (50 * 1000 * 1000ull) /* ns that a peer's being late is held for news */
#define OWN_BUSY   1024                 /* progresses after a packet for a channel, while which all look for more, */
#define OWN_GAP    4                    /* and then each so many */
#define FAVOUR     512                  /* packets ahead of all others that make a favourite, */
#define UNSEAT     (64 * FAVOUR)        /* if there is none yet, else */
#define RING       1                    /* bytes: a sibling rings, and the inbox is looked into anyway */

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
	uint32_t pmtu = rwk_param_pmtu(&rwk_params) ? rwk_param_pmtu(&rwk_params) : RWK_WIRE_PMTU_MAX;

	while (pmtu > 256 && pmtu + RWK_PACKET_OVERHEAD > room)
		pmtu /= 2;
	return pmtu;
}

void rwk_packet_flush(struct rwk_port *port)
{
	for (int i = 0; i < RWK_WAYS; i++) {
		if (port->link[i])
			port->link[i]->ops->flush(port->link[i]);
	}
}

static rwk_noinline void capture(struct rwk_port *port, int way, bool outgoing, const struct rwk_link_address *peer,
	const struct iovec *iov, int count)
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
		capture(port, way, true, to, iov, count);
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
	uint8_t bytes[RWK_WIRE_HEADER_MAX + RWK_WIRE_PMTU_MAX + RWK_WIRE_ICRC], pseudo[RWK_LINK_PSEUDO_MAX];
	struct rwk_link *l = port->link[way];
	size_t size = RWK_GREETING_SIZE + g->pad, len = rwk_wire_pack(&w, size, bytes);
	struct iovec iov;
	uint32_t icrc;

	if (rwk_greeting_pack(g, port->key, bytes + len)) {
		rwk_warn("packets: a greeting of ours is not valid; nothing was sent");
		return;
	}
	len += size;
	icrc = rwk_icrc_bytes(
		rwk_icrc_begin(pseudo, rwk_link_pseudo(l, to, true, len + RWK_WIRE_ICRC, 0, pseudo)), bytes, len);
	memcpy(bytes + len, &icrc, sizeof(icrc));
	iov = (struct iovec){bytes, len + RWK_WIRE_ICRC};
	port->count.greetings_out++;
	if (!l->ops->send(l, to, &iov, 1)) /* what is lost is sent again */
		rwk_packet_sent(port, way, to, &iov, 1);
	l->ops->flush(l);
}

/** The ICRC of a packet between our own ends, where IPv4's identification counts as 0. */
static bool icrc_right(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const uint8_t *bytes, size_t len)
{
	struct rwk_link *l = port->link[way];
	uint8_t pseudo[RWK_LINK_PSEUDO_MAX];
	uint32_t icrc;

	if (way == RWK_WAY_STREAM)
		return true; /* TCP has its own */
	memcpy(&icrc, bytes + len - RWK_WIRE_ICRC, sizeof(icrc));
	if (len == port->begun.len && !memcmp(from, &port->begun.from, sizeof(*from)) &&
		rwk_icrc_bytes(port->begun.crc, bytes, len - RWK_WIRE_ICRC) == icrc)
		return true;
	/* Another sender or length, or another address of ours; or it is wrong. */
	port->begun.from = *from;
	port->begun.len = len;
	port->begun.crc = rwk_icrc_begin(pseudo, rwk_link_pseudo(l, from, false, len, 0, pseudo));
	return rwk_icrc_bytes(port->begun.crc, bytes, len - RWK_WIRE_ICRC) == icrc;
}

static void management(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const uint8_t *payload, size_t len)
{
	struct rwk_greeting g;
	uint8_t version;
	int rc;

	if (rwk_packet_is_piece(payload, len)) {
		rwk_packet_piece(port, way, from, payload, len);
		return;
	}
	rc = rwk_greeting_unpack(payload, len, port->key, &g, &version);
	if (!rc) {
		rwk_packet_greeted(port, way, from, &g);
		return;
	}
	if (rc == -EPROTONOSUPPORT)
		rwk_warn("packets: a peer of this job speaks version %u of the handshake, this is version %u", version,
			RWK_GREETING_VERSION);
	port->count.wrong_key++;
}

static struct rwk_packet_channel *find_qp(struct rwk_port *port, uint32_t qpn)
{
	struct rwk_packet_channel *ch = port->last;

	if (rwk_likely(ch && ch->qpn == qpn))
		return ch;
	HASH_FIND(by_qpn, port->by_qpn, &qpn, sizeof(qpn), ch);
	if (ch)
		port->last = ch;
	return ch;
}

/** Whom most packets are from becomes the link's favourite. */
static rwk_noinline void favour(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct rwk_link_address *seen)
{
	const struct rwk_link_ops *ops = port->link[RWK_WAY_LOSSY]->ops;

	port->favourite = path;
	if (!ops->favour || memcmp(&path->to, seen, sizeof(*seen)))
		return;
	port->count.favourites++;
	ops->favour(port->link[RWK_WAY_LOSSY], &path->to);
}

void rwk_packet_vote(
	struct rwk_port *port, const struct rwk_packet_path *path, const struct rwk_link_address *seen, bool eligible)
{
	uint32_t enough = port->favourite ? UNSEAT : FAVOUR;

	if (!port->lead)
		port->leader = path;
	if (path != port->leader) {
		port->lead--;
		return;
	}
	port->lead += port->lead < enough;
	if (rwk_unlikely(port->lead >= enough && path != port->favourite && eligible))
		favour(port, path, seen);
}

void rwk_packet_vote_ends(struct rwk_port *port, const struct rwk_packet_path *path)
{
	if (port->leader == path)
		port->lead = 0;
	if (port->favourite == path)
		port->favourite = NULL;
}

static void enlist(struct rwk_packet_channel *ch)
{
	if (rwk_list_empty(&ch->dirty) && ch->state != RWK_CH_FAILED)
		rwk_list_append(&ch->port->dirty, &ch->dirty);
}

/**
 * What is left to do about a packet can wait for the next progress if it was a message, which the client has now, and
 * what is left is that each end hears what the other has got. The client's answer goes out sooner.
 */
void rwk_packet_stir_for_message(struct rwk_packet_channel *ch)
{
	const struct rwk_rc *rc = rwk_packet_requester(ch);

	enlist(ch);
	if (!rc || ch->running || !rwk_list_empty(&ch->queue) || !rwk_rc_at_rest(rc))
		ch->port->pressing = true;
}

static void deliver(struct rwk_packet_channel *ch, const struct rwk_wire *w, const uint8_t *payload, size_t len)
{
	ch->port->own_epoch = ch->port->epoch;
	if (ch->state == RWK_CH_ACCEPTING)
		rwk_packet_confirmed(ch);
	if (rwk_unlikely(ch->heard_in != ch->port->period && len > RWK_ROOM_PACKET))
		rwk_packet_heard(ch);
	if (rwk_likely(ch->rc))
		rwk_rc_packet(ch->rc, w, payload, len, rwk_packet_now(ch->port));
	else
		rwk_uc_packet(ch->uc, w, payload, len);
	if (ch->running) /* the client hears of its operations in the order in which the peer has seen to them */
		rwk_packet_take_ack(ch);
	rwk_packet_stir_for_message(ch);
}

/** The peer has not heard that the connection has ended: what told it was lost. Once a millisecond at most. */
static void say_again(struct rwk_packet_channel *ch, int way, const struct rwk_link_address *from)
{
	rwk_time now = rwk_packet_now(ch->port);

	if (ch->path.way != way || memcmp(&ch->seen, from, sizeof(*from)) || now < ch->ask_at)
		return;
	ch->ask_at = now + SAY_AGAIN;
	rwk_packet_say_bye(ch);
}

void rwk_packet_arrived(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct rwk_packet_channel *ch;
	const uint8_t *payload;
	struct rwk_wire w;
	size_t payload_len;

	if (rwk_unlikely(len == RING && port->view))
		return;
	port->count.packets_in++;
	if (rwk_unlikely(port->capture != NULL)) {
		const struct iovec iov = {(void *)bytes, len};

		capture(port, way, false, from, &iov, 1);
	}
	if (rwk_wire_unpack(&w, bytes, len, &payload, &payload_len)) {
		port->count.malformed++;
		return;
	}
	if (!icrc_right(port, way, from, bytes, len)) {
		port->count.wrong_icrc++;
		return;
	}
	if (rwk_unlikely(way == RWK_WAY_DOMAIN)) {
		rwk_packet_domain_packet(port, from, &w, payload, payload_len);
		return;
	}
	if (w.qpn == RWK_WIRE_GSI_QPN) {
		management(port, way, from, payload, payload_len);
		return;
	}
	ch = find_qp(port, w.qpn);
	if (!ch && way == RWK_WAY_LOSSY && rwk_packet_initiator_packet(port, from, &w, payload, payload_len))
		return;
	if (!ch || ch->state == RWK_CH_CONNECTING || ch->state == RWK_CH_FAILED || ch->deaf) {
		port->count.unknown_qp++;
		if (ch && ch->state == RWK_CH_FAILED)
			say_again(ch, way, from);
		return;
	}
	if (ch->path.way != way || memcmp(&ch->seen, from, sizeof(*from))) {
		port->count.wrong_sender++;
		return;
	}
	if (rwk_likely(way == RWK_WAY_LOSSY))
		rwk_packet_vote(port, &ch->path, &ch->seen, ch->state == RWK_CH_OPEN);
	deliver(ch, &w, payload, payload_len);
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

void rwk_packet_stir(struct rwk_packet_channel *ch)
{
	ch->port->pressing = true;
	enlist(ch);
}

void rwk_packet_deadline(struct rwk_packet_channel *ch, rwk_time at)
{
	struct rwk_port *port = ch->port;

	if (at == RWK_NEVER)
		return;
	if (rwk_list_empty(&ch->active))
		rwk_list_append(&port->active, &ch->active);
	if (at < port->deadline)
		port->deadline = at;
}

static bool is_late(const struct rwk_packet_channel *ch)
{
	const struct rwk_rc *rc = rwk_packet_requester(ch);

	return rc && rwk_rc_is_late(rc);
}

/** Pumps all that is dirty now; what becomes so meanwhile is pumped too, but each channel once. */
static int pump_dirty(struct rwk_port *port)
{
	struct rwk_list mine, *l;
	int n = 0;

	port->pressing = false;
	rwk_list_init(&mine);
	while ((l = rwk_list_pop(&port->dirty)))
		rwk_list_append(&mine, l);
	while ((l = rwk_list_pop(&mine))) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, dirty);

		rwk_packet_pulls_answer(ch);
		n += rwk_packet_pump(ch);
		if (!is_late(ch))
			continue;
		if (port->processors && port->crowd > port->processors)
			port->late_until = rwk_packet_now(port) + LATE_WORD;
		if (ch->running)
			rwk_packet_relieve(ch);
	}
	return n;
}

/** What the clock demands of machines; the earliest next time is found anew. */
static void ring(struct rwk_port *port, rwk_time now)
{
	port->deadline = RWK_NEVER;
	for (struct rwk_list *l = port->active.next, *next; l != &port->active; l = next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, active);
		rwk_time at = ch->rc ? rwk_rc_next(ch->rc) : 0;

		next = l->next;
		if (at == RWK_NEVER)
			rwk_list_remove(&ch->active);
		else if (at <= now)
			rwk_packet_stir(ch);
		else
			rwk_packet_deadline(ch, at);
		if (!ch->rc)
			rwk_list_remove(&ch->active);
	}
	rwk_packet_initiators_ring(port, now);
	if (port->view && rwk_src_next(port->view) < port->deadline)
		port->deadline = rwk_src_next(port->view);
}

static void by_clock(struct rwk_port *port)
{
	rwk_time now = rwk_packet_now(port);

	if (now >= port->deadline)
		ring(port, now);
	if (now >= port->period_end)
		rwk_packet_period(port, now);
	if (now >= port->seek_at)
		rwk_packet_seek(port);
	if (rwk_unlikely(!rwk_list_empty(&port->connecting))) {
		for (struct rwk_list *l = port->connecting.next, *next; l != &port->connecting; l = next) {
			next = l->next;
			rwk_packet_ask(rwk_container_of(l, struct rwk_packet_channel, connecting), now);
		}
	}
	if (port->link[RWK_WAY_STREAM] && now >= port->stream_at) {
		struct rwk_link *s = port->link[RWK_WAY_STREAM];

		port->stream_at = now + STREAM_GAP;
		s->ops->progress(s, BUDGET);
	}
	if (port->wants_shared)
		rwk_packet_domain_by_clock(port, now);
}

/** Takes all that has arrived. */
static void drain(struct rwk_port *port)
{
	struct rwk_link *lossy = port->link[RWK_WAY_LOSSY];

	for (int i = 0; lossy && i < DRAIN && (lossy->ops->progress(lossy, BUDGET) > 0 || lossy->ops->arm(lossy)); i++)
		;
	for (int i = 0; port->view && i < DRAIN && rwk_packet_domain_progress(port) > 0; i++)
		;
}

/** Ends the channels that are doomed. What a dead peer had sent before has been taken by now. */
static void fail_doomed(struct rwk_port *port)
{
	port->doomed = false;
	rwk_packet_flush(port); /* an acknowledgement gives back what the link may have to send again */
	drain(port);
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (!ch->doom || ch->state == RWK_CH_FAILED)
			continue;
		rwk_packet_stop(ch, ch->doom);
		if (ch->base.peer)
			port->client->failed(port->cookie, &ch->base, ch->doom);
	}
}

/**
 * Whether to look at this process's own socket. As long as all that comes there is acknowledgements for the initiators,
 * these can wait a little, and what somebody waits for comes to the domain's: a call that brings nothing is dear.
 */
static bool asks_own(const struct rwk_port *port)
{
	return !port->view || port->epoch - port->own_epoch < OWN_BUSY || port->epoch % OWN_GAP == 0;
}

/**
 * Nothing has come, and a peer was late a moment ago: it lacks a CPU. That may be this one, for the job has more
 * processes on this machine than there are processors, though the job map may not show it: each may be in a container
 * of its own. Where each can have a processor it is not yielded: it is others who have the peer's then, and would have
 * this one, too.
 */
static rwk_noinline void wait_for_late(struct rwk_port *port)
{
	if (rwk_packet_now(port) >= port->late_until) {
		port->late_until = 0;
		return;
	}
	port->count.yields++;
	sched_yield();
}

/** Packets have come: can what is left to do about them wait once, until the client has had its turn? */
static bool may_wait(const struct rwk_port *port)
{
	return !port->waited && !port->pressing && !port->doomed && rwk_list_empty(&port->dirty_initiators);
}

int rwk_packet_progress(struct rwk_port *port)
{
	struct rwk_link *lossy = port->link[RWK_WAY_LOSSY], *stream = port->link[RWK_WAY_STREAM];
	int n = 0;

	port->epoch++;
	port->now = 0;
	port->inside = true;
	if (rwk_unlikely(port->armed)) {
		rwk_packet_disarm(port);
		port->own_epoch = port->epoch;
		by_clock(port);
	}
	if (lossy && asks_own(port))
		n += lossy->ops->progress(lossy, BUDGET);
	if (rwk_unlikely(port->by_stream))
		n += stream->ops->progress(stream, BUDGET);
	if (port->view)
		n += rwk_packet_domain_progress(port);
	port->waited = n && may_wait(port);
	if (port->waited) {
		port->inside = false;
		return n;
	}
	if (n || port->late_until || port->epoch % RWK_CLOCK_GAP == 0)
		by_clock(port);
	if (!rwk_list_empty(&port->dirty))
		n += pump_dirty(port);
	if (!rwk_list_empty(&port->dirty_initiators))
		n += rwk_packet_initiators_pump(port);
	if (rwk_unlikely(port->doomed))
		fail_doomed(port);
	port->inside = false;
	if (n)
		rwk_packet_flush(port);
	else if (rwk_unlikely(port->late_until))
		wait_for_late(port);
	return n;
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
	/* The link's word is for the worst case, and the machines notice when it comes to that: twice as much. */
	port->window = 2 * port->room / (RWK_WIRE_PMTU_MAX + RWK_PACKET_COST);
	if (port->window < 4)
		port->window = 4;
	if (rwk_params.window)
		port->window = (uint32_t)rwk_params.window;
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
	port->seek_at = RWK_NEVER;
	port->wider_at = RWK_NEVER;
	memcpy(port->key, attr->key, sizeof(port->key));
	port->machine = attr->machine;
	port->processors = attr->processors;
	port->crowd = 1 + attr->local_peers;
	rwk_list_init(&port->all);
	rwk_list_init(&port->dirty);
	rwk_list_init(&port->active);
	rwk_list_init(&port->connecting);
	rwk_list_init(&port->all_initiators);
	rwk_list_init(&port->dirty_initiators);
	rwk_pool_init(&port->requests, sizeof(struct rwk_request) + RWK_FRAME_HEAD + RWK_RECORD_MAX, 16, 0);
	rwk_pool_init(&port->frames, sizeof(struct rwk_request) + RWK_WIRE_PMTU_MAX, 16, 0);
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
	rwk_list_append(&port->connecting, &ch->connecting);
	rwk_packet_ask(ch, rwk_packet_now(port));
	*out = &ch->base;
	return 0;
}

void rwk_packet_disconnect(struct rwk_channel *c)
{
	struct rwk_packet_channel *ch = rwk_packet_channel(c);

	rwk_packet_farewell(ch);
	if (ch->state == RWK_CH_OPEN) {
		rwk_packet_pump(ch); /* what arrives of it, arrives */
		rwk_packet_flush(ch->port);
	}
	rwk_packet_stop(ch, -ECANCELED);
	rwk_packet_channel_free(ch);
}

int rwk_packet_expose(
	struct rwk_channel *c, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key)
{
	struct rwk_packet_channel *ch = rwk_packet_channel(c);
	uint32_t k;
	int rc;

	if (c->error)
		return c->error;
	if (ch->shared && !(access & RWK_EXPOSE_READ))
		return -EOPNOTSUPP; /* the siblings do both or nothing */
	rc = rwk_packet_region_add(ch, iov, count,
		(access & RWK_EXPOSE_READ ? RWK_REACH_READ : 0u) | (access & RWK_EXPOSE_WRITE ? RWK_REACH_WRITE : 0u),
		&k);
	if (rc)
		return rc;
	*key = (struct rwk_rkey){{k, RWK_RKEY_MARK}};
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

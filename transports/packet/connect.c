/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake, and which way a channel goes. HANDSHAKE.md tells it in prose.
 *
 *   CONNECTING  CONNECT goes out, again and again, later and later; on the stream too once that is open and UDP has
 *               not answered a few times. ACCEPT --> OPEN, and an ACCEPT back, so that the peer knows.
 *   ACCEPTING   a CONNECT has come: ACCEPT goes out, for each CONNECT anew. A packet of the peer's QP, or an ACCEPT,
 *               shows that it has heard --> OPEN.
 *
 * Evidence: once a channel is open, one end (that with the smaller nonce) starts a stream. The other does so too if
 * none has come after a second: the peer may have ended before. (If it is shared, evidence.c sees to that.) If the
 * stream breaks or leads to another process, the peer is dead. Where there can be none (a firewall, no descriptors
 * left), the kernel's word that nobody listens on the port must do.
 */
#include "packet/internal.h"

#define ASK_FIRST      (10 * 1000 * 1000ull)   /* ns: until the second greeting, */
#define ASK_LAST       (500 * 1000 * 1000ull)  /* and between greetings at most */
#define STREAM_TRY     2                       /* greetings without an answer before the stream is tried */
#define NARROW         2                       /* greetings that an open stream outlives before short ones go too, */
#define FALL_BACK      4                       /* and before UDP counts as blocked */
#define PMTU_LEAST     256                     /* bytes */
#define SEEK_AFTER     (1000 * 1000 * 1000ull) /* ns that an end waits for the stream that the peer is to start */
#define WITHOUT_STREAM (30 * 1000 * 1000 * 1000ull) /* ns: neither answers: the peer cannot be reached */

static uint64_t nonce_of(const struct rwk_address *a)
{
	return a->nonce_port >> 16;
}

static bool is_partial(const struct rwk_address *a)
{
	return a->flags_rank & RWK_ADDR_PARTIAL;
}

/** SRC: which initiator serves the peer hangs on its node, and where it is alone does not tell that. */
static bool lacks_name(const struct rwk_packet_channel *ch, int way)
{
	return ch->port->view && is_partial(&ch->address) && way == RWK_WAY_LOSSY;
}

/**
 * SRC: may the connection go by it? Decided before the first greeting about it is written that knows the peer's name,
 * and said in each: both ends go by what both have said, and no is final.
 */
static bool may_share(struct rwk_packet_channel *ch, int way)
{
	if (lacks_name(ch, way))
		return false;
	if (!ch->decided)
		ch->may_share = ch->port->view && ch->address.job == ch->port->address.job;
	ch->decided = true;
	return ch->may_share && way == RWK_WAY_LOSSY;
}

uint32_t rwk_packet_path_pmtu(const struct rwk_packet_channel *ch, int way)
{
	uint32_t pmtu = rwk_packet_pmtu(ch->port, way, &ch->path.to);

	return way == RWK_WAY_LOSSY && ch->pmtu_most && ch->pmtu_most < pmtu ? ch->pmtu_most : pmtu;
}

/** What makes a greeting as long as a packet. */
static uint16_t pad_to(uint32_t pmtu)
{
	return pmtu > RWK_GREETING_SIZE ? (uint16_t)(pmtu - RWK_GREETING_SIZE) : 0;
}

/** `g` has its type. */
static void terms(struct rwk_packet_channel *ch, int way, struct rwk_greeting *g)
{
	struct rwk_port *port = ch->port;

	g->qpn = ch->qpn;
	g->psn = ch->psn;
	g->pmtu = (uint16_t)rwk_packet_path_pmtu(ch, way);
	g->window = (uint16_t)(port->window < RWK_RC_WINDOW_MAX ? port->window : RWK_RC_WINDOW_MAX);
	g->reads = RWK_RC_READS_MAX;
	g->features = RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_DENIES | RWK_RC_BUSY |
		      RWK_GREETING_MASKED_ID | RWK_GREETING_RDMA_READ | RWK_GREETING_RDMA_WRITE | RWK_GREETING_PIECES;
	g->room = port->room;
	g->machine = port->machine;
	if (lacks_name(ch, way))
		g->features |= RWK_GREETING_UNNAMED;
	else if (may_share(ch, way) && rwk_packet_domain_terms(ch, (enum rwk_greeting_type)g->type, &g->shared))
		g->features |= RWK_GREETING_SHARED;
}

/** `whole`: as long as a packet. */
static void send_connect(struct rwk_packet_channel *ch, int way, bool whole)
{
	struct rwk_greeting g = {
		.type = RWK_GREETING_CONNECT, .from = ch->port->address, .to = ch->address, .echo = ch->token};

	terms(ch, way, &g);
	g.pad = whole ? pad_to(g.pmtu) : 0;
	rwk_packet_greet(ch->port, way, &ch->path.to, &g);
}

/** `echo`: our peer's token in an answer to its CONNECT; ours, to say that we have heard its answer. */
static void send_accept(struct rwk_packet_channel *ch, uint64_t echo)
{
	struct rwk_greeting g = {
		.type = RWK_GREETING_ACCEPT, .from = ch->port->address, .to = ch->address, .echo = echo};

	terms(ch, ch->path.way, &g);
	g.pad = pad_to(ch->pmtu);
	if (g.pad > ch->peer_pad)
		g.pad = ch->peer_pad;
	rwk_packet_greet(ch->port, ch->path.way, &ch->path.to, &g);
}

/**
 * Where to answer: to the address that the MAC covers, whatever the datagram's own source was; on a stream to where it
 * leads.
 */
static struct rwk_link_address answer_to(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	return way == RWK_WAY_STREAM ? *from : port->ways->address(&g->from);
}

static void refuse(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g, int reason)
{
	struct rwk_link_address to = answer_to(port, way, from, g);
	struct rwk_greeting a;

	rwk_greeting_answer(&a, g, RWK_GREETING_REFUSE, &port->address);
	a.reason = (int16_t)reason;
	port->count.refused++;
	rwk_packet_greet(port, way, &to, &a);
}

static void channel_word(struct rwk_packet_channel *ch, int status);

/**
 * There is a stream to another process at that address: one of the two has ended, and which is not known before that
 * stream ends, or our peer answers otherwise. We try again.
 */
static void stream_taken(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;

	ch->stream_asked = false;
	if (ch->state == RWK_CH_CONNECTING && !ch->give_up_at)
		ch->give_up_at = rwk_packet_now(port) + WITHOUT_STREAM;
	if (port->seek_at == RWK_NEVER)
		port->seek_at = rwk_packet_now(port) + SEEK_AFTER;
}

const struct rwk_link_address *rwk_packet_stream(const struct rwk_packet_channel *ch)
{
	static const struct rwk_link_address none;

	return memcmp(&ch->stream_to, &none, sizeof(none)) ? &ch->stream_to : &ch->path.to;
}

void rwk_packet_reach(struct rwk_packet_channel *ch)
{
	int rc;

	if (ch->stream_asked || ch->stream_open || ch->stream_lost)
		return;
	ch->stream_asked = true;
	rc = ch->port->ways->reach(ch->port->link[RWK_WAY_STREAM], &ch->path.to, ch->nonce);
	if (rc == -EEXIST)
		stream_taken(ch);
	else if (rc)
		channel_word(ch, rc);
}

/** SRC was wanted, and it is not to be had for this channel. */
static void unshared(struct rwk_packet_channel *ch)
{
	const struct rwk_client *client = ch->port->client;

	if (rwk_params.service == RWK_SERVICE_SRC) {
		rwk_warn("packets: no connection can be shared with %s, and FI_ROPEWALK_SERVICE=src allows no other: "
			 "one of "
			 "the two ends is in no domain, or is known by several addresses",
			rwk_packet_name(&ch->address));
		rwk_packet_doom(ch, -EOPNOTSUPP);
	} else if (client->unshared) {
		client->unshared(ch->port->cookie, &ch->base);
	}
}

static void say_narrow(const struct rwk_packet_channel *ch)
{
	rwk_warn("packets: those of %u bytes do not get through to %s, and nobody says why (an MTU is too large for "
		 "the way, or a firewall drops ICMP): they have %u",
		rwk_packet_pmtu(ch->port, RWK_WAY_LOSSY, &ch->path.to), rwk_packet_name(&ch->address), ch->pmtu);
}

/** The peer has the channel too. Who asks for the stream is the same at both ends. */
static void established(struct rwk_packet_channel *ch)
{
	rwk_packet_opened(ch);
	if (ch->path.way == RWK_WAY_LOSSY && ch->pmtu_most)
		say_narrow(ch);
	if (ch->path.way == RWK_WAY_STREAM && ch->port->client->by_stream)
		ch->port->client->by_stream(ch->port->cookie, &ch->base);
	else if (ch->port->wants_shared && !ch->shared)
		unshared(ch);
	if (ch->shared)
		rwk_packet_evidence_begin(ch);
	else if (nonce_of(&ch->port->address) < ch->nonce)
		rwk_packet_reach(ch);
	else if (!ch->stream_open && !ch->stream_lost && ch->port->seek_at == RWK_NEVER)
		ch->port->seek_at = rwk_packet_now(ch->port) + SEEK_AFTER;
}

void rwk_packet_seek(struct rwk_port *port)
{
	port->seek_at = RWK_NEVER;
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->state == RWK_CH_OPEN && !ch->shared)
			rwk_packet_reach(ch);
	}
}

void rwk_packet_confirmed(struct rwk_packet_channel *ch)
{
	if (ch->state == RWK_CH_ACCEPTING)
		established(ch);
}

/** Asks anew, for a connection of our own: what answers what we asked before is not believed any more. */
static int ask_alone(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;
	uint32_t qpn = rwk_packet_new_qpn(port);

	if (!qpn || rwk_packet_random(&ch->token, sizeof(ch->token)))
		return -EIO;
	HASH_DELETE(by_qpn, port->by_qpn, ch);
	ch->qpn = qpn;
	HASH_ADD(by_qpn, port->by_qpn, qpn, sizeof(ch->qpn), ch);
	ch->may_share = false;
	return 0;
}

/**
 * A short greeting has been answered, and those as long as a packet have not, nor was the answer long: the way swallows
 * what is long. We ask anew for a connection with shorter packets.
 */
static bool narrowed(struct rwk_packet_channel *ch, int way, const struct rwk_greeting *g)
{
	uint32_t pmtu = rwk_packet_path_pmtu(ch, way);

	if (way != RWK_WAY_LOSSY || g->pad || ch->tries_with_stream < NARROW || pmtu <= PMTU_LEAST || ask_alone(ch))
		return false;
	ch->pmtu_most = pmtu / 4 > PMTU_LEAST ? pmtu / 4 : PMTU_LEAST;
	ch->tries_with_stream = 0;
	ch->ask_at = 0;
	return true;
}

/** A greeting more has had no answer, though a stream is open. */
static bool may_fall_back(struct rwk_packet_channel *ch)
{
	if (!ch->port->link[RWK_WAY_LOSSY])
		return true;
	if (rwk_params.link == RWK_LINK_UDP || rwk_params.service == RWK_SERVICE_RC)
		return false;
	return ch->tries_with_stream > FALL_BACK;
}

void rwk_packet_ask(struct rwk_packet_channel *ch, rwk_time now)
{
	rwk_time pause = ASK_FIRST << (ch->tries < 6 ? ch->tries : 6);

	if (now < ch->ask_at || ch->port->joining)
		return;
	ch->tries++;
	ch->ask_at = now + (pause < ASK_LAST ? pause : ASK_LAST);
	if (ch->state == RWK_CH_ACCEPTING) {
		send_accept(ch, ch->peer_token);
		if (ch->tries >= STREAM_TRY)
			rwk_packet_reach(ch); /* perhaps it has ended since it asked */
		return;
	}
	if (ch->give_up_at && now >= ch->give_up_at) {
		rwk_warn("packets: nobody answers at %s within the time to wait (FI_ROPEWALK_CONNECT_WAIT)",
			rwk_packet_name(&ch->address));
		rwk_packet_doom(ch, -ECONNREFUSED);
		return;
	}
	ch->tries_with_stream += ch->stream_open;
	if (ch->port->link[RWK_WAY_LOSSY])
		send_connect(ch, RWK_WAY_LOSSY, true);
	if (ch->port->link[RWK_WAY_LOSSY] && ch->tries_with_stream >= NARROW)
		send_connect(ch, RWK_WAY_LOSSY, false);
	if (ch->tries >= STREAM_TRY || !ch->port->link[RWK_WAY_LOSSY])
		rwk_packet_reach(ch);
	if (ch->stream_open && may_fall_back(ch))
		send_connect(ch, RWK_WAY_STREAM, false);
}

/** The channel to who has sent this greeting: by its nonce, or by where it is while that is all we know. */
static struct rwk_packet_channel *find_channel(
	struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_link_address told = port->ways->address(&g->from);
	uint64_t nonce = nonce_of(&g->from);

	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->nonce ? ch->nonce == nonce
			      : ch->token == g->echo || !memcmp(&ch->path.to, from, sizeof(*from)) ||
					!memcmp(&ch->path.to, &told, sizeof(told)))
			return ch;
	}
	return NULL;
}

/** The peer's full address is known now. 0, or why the client does not want it. */
static int acquainted(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	if (ch->nonce)
		return 0;
	ch->nonce = nonce_of(&g->from);
	ch->address = g->from;
	return ch->port->client->connected(ch->port->cookie, &ch->base, &g->from);
}

/**
 * SRC: what the greeting has added to the decision. A peer that has more than one address, and greets from one that it
 * did not name, is not shared: a target hears one address. Nor is one of another domain than the initiator for its node
 * is aimed at; there an asker has been promised it already, and finds out when it aims.
 */
static void decide(struct rwk_packet_channel *ch, int way, const struct rwk_greeting *g)
{
	bool asked = g->type == RWK_GREETING_CONNECT;

	if (!may_share(ch, way) || !(g->features & RWK_GREETING_SHARED) ||
		(asked && memcmp(&ch->seen, &ch->path.to, sizeof(ch->seen))) ||
		(asked && ch->by && ch->by->domain && ch->by->domain != g->shared.domain))
		ch->may_share = false;
	if (ch->may_share && !ch->by)
		ch->by = rwk_packet_initiator(ch->port, ch->address.node, g->shared.domain);
	if (!ch->by)
		ch->may_share = false;
}

/**
 * The peer may be in another container of this machine. The job map shows that to nobody: the kernel's name does. Those
 * of this node are counted already, as local_peers.
 */
static void place(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	bool here = g->machine && g->machine == ch->port->machine && g->from.node != ch->port->address.node;

	ch->port->crowd += here - ch->on_this_machine;
	ch->on_this_machine = here;
}

/** Goes over to the way that the peer has come by, and makes the machine. */
static int agree(
	struct rwk_packet_channel *ch, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	int rc;

	ch->path.way = (uint8_t)way;
	ch->path.to = answer_to(ch->port, way, from, g);
	ch->seen = *from;
	ch->path.begun_len = 0;
	if (way == RWK_WAY_STREAM) {
		ch->port->count.fell_back++;
		ch->stream_open = true;
	}
	ch->peer_token = g->type == RWK_GREETING_CONNECT ? g->echo : 0;
	ch->peer_pad = g->type == RWK_GREETING_CONNECT ? g->pad : 0;
	place(ch, g);
	decide(ch, way, g);
	rc = rwk_packet_machine(ch, g);
	if (!rc && ch->shared && g->type == RWK_GREETING_ACCEPT)
		rc = rwk_packet_aim(ch->by, from, g, ch->pmtu);
	return rc;
}

/** The peer has accepted what we had accepted: SRC has to learn where to aim, or that the peer has said no. */
static int settle(
	struct rwk_packet_channel *ch, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	if (!ch->shared)
		return g->qpn == ch->peer_qpn ? 0 : agree(ch, way, from, g); /* it had asked anew meanwhile */
	if (!(g->features & RWK_GREETING_SHARED))
		return agree(ch, way, from, g);
	return rwk_packet_aim(ch->by, from, g, ch->pmtu);
}

static struct rwk_packet_channel *new_from(struct rwk_port *port, const struct rwk_greeting *g, int *rc)
{
	struct rwk_packet_channel *ch = rwk_packet_channel_new(port, &g->from);

	*rc = -ENOMEM;
	if (!ch)
		return NULL;
	*rc = port->client->connected(port->cookie, &ch->base, &g->from);
	if (!*rc)
		return ch;
	rwk_packet_channel_free(ch);
	return NULL;
}

static void take_connect(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = find_channel(port, from, g);
	int rc = 0;

	if (port->joining && g->features & (RWK_GREETING_SHARED | RWK_GREETING_UNNAMED))
		return; /* it will ask again, and we shall know whether we can */
	if (port->view && g->features & RWK_GREETING_UNNAMED) {
		refuse(port, way, from, g, -EDESTADDRREQ);
		return;
	}
	if (ch && ch->state == RWK_CH_OPEN) {
		if (ch->peer_qpn == g->qpn)
			send_accept(ch, g->echo); /* it has not heard the first */
		else
			refuse(port, way, from, g, -EALREADY);
		return;
	}
	if (ch && ch->state == RWK_CH_FAILED)
		rc = ch->base.error;
	else if (ch && ch->state == RWK_CH_ACCEPTING && ch->path.way == way && ch->peer_qpn == g->qpn) {
		ch->peer_pad = g->pad;
		send_accept(ch, g->echo);
		return;
	} else if (ch) {
		rc = acquainted(ch, g);
	} else {
		ch = new_from(port, g, &rc);
	}
	if (!rc)
		rc = agree(ch, way, from, g);
	if (ch && rc == -EAGAIN) { /* the domain is busy: what is asked again is answered then, and we ask too */
		if (rwk_list_empty(&ch->connecting))
			rwk_list_append(&port->connecting, &ch->connecting);
		return;
	}
	if (rc) {
		refuse(port, way, from, g, rc);
		if (ch && ch->state != RWK_CH_FAILED)
			rwk_packet_doom(ch, rc);
		return;
	}
	ch->state = RWK_CH_ACCEPTING;
	ch->tries = 0;
	ch->ask_at = rwk_packet_now(port) + ASK_FIRST;
	rwk_list_remove(&ch->connecting);
	rwk_list_append(&port->connecting, &ch->connecting);
	send_accept(ch, g->echo);
}

/** An ACCEPT in answer to what we had asked. 0, or why the channel cannot be. */
static int take_answer(
	struct rwk_packet_channel *ch, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	int rc = acquainted(ch, g);

	if (!rc && narrowed(ch, way, g))
		return 0;
	if (!rc)
		rc = agree(ch, way, from, g);
	if (rc == -ESTALE) {
		ch->ask_at = 0;
		return ask_alone(ch);
	}
	if (rc == -EAGAIN) /* the domain is busy: we ask again */
		return 0;
	if (!rc)
		established(ch);
	return rc;
}

/** One that says that our own was heard; its packets leave by the way to us, which its CONNECT need not have taken. */
static int take_echo(
	struct rwk_packet_channel *ch, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	int rc = settle(ch, way, from, g);

	if (rc)
		return rc;
	if (ch->path.way == way)
		ch->seen = *from;
	established(ch);
	return 0;
}

static void take_accept(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = find_channel(port, from, g);
	bool ours = ch && g->echo == ch->token;
	int rc = 0;

	if (!ch || ch->state == RWK_CH_FAILED || (!ours && g->echo != ch->peer_token)) {
		port->count.stale++;
		return;
	}
	if (ch->state == RWK_CH_CONNECTING)
		rc = ours ? take_answer(ch, way, from, g) : -EPROTO;
	else if (ch->state == RWK_CH_ACCEPTING)
		rc = take_echo(ch, way, from, g);
	if (rc)
		rwk_packet_doom(ch, rc);
	else if (ours && ch->state == RWK_CH_OPEN)
		send_accept(ch, g->echo);
}

void rwk_packet_say_bye(struct rwk_packet_channel *ch)
{
	const struct rwk_greeting g = {.type = RWK_GREETING_BYE,
		.from = ch->port->address,
		.to = ch->address,
		.qpn = ch->qpn,
		.echo = ch->peer_token};

	rwk_packet_greet(ch->port, ch->path.way, &ch->path.to, &g);
}

/** The peer has heard our good-bye, so all before it too. */
static void take_bye(struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = find_channel(port, from, g);

	if (ch && ch->peer_qpn == g->qpn)
		rwk_packet_doom(ch, -ECONNRESET);
}

/** SRC: the peer does not need the stream that it has sent this by. */
static void take_release(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = find_channel(port, from, g);

	if (!ch || !ch->shared || way != RWK_WAY_STREAM || ch->peer_qpn != g->qpn)
		return;
	ch->release_came = true;
	ch->stream_open = true; /* it may have opened before we knew the peer */
	ch->stream_to = *from;
}

/** Only of a connection that stands, and by the way that it is about. */
static void take_probe(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = find_channel(port, from, g);

	if (!ch || ch->state != RWK_CH_OPEN || ch->peer_qpn != g->qpn || way != RWK_WAY_LOSSY || ch->path.way != way)
		port->count.stale++;
	else if (g->type == RWK_GREETING_PROBE)
		rwk_packet_probe_came(ch, g);
	else
		rwk_packet_probed(ch, g);
}

/** Where we ask somebody is, who takes us by SRC if we ask for him by name: there is somebody, and that is the name. */
static void take_name(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	int rc;

	if (ch->nonce)
		return; /* we ask so already */
	rc = acquainted(ch, g);
	if (rc) {
		rwk_packet_doom(ch, rc);
		return;
	}
	ch->give_up_at = 0;
	ch->ask_at = 0;
}

static void take_refuse(struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = NULL;

	for (struct rwk_list *l = port->connecting.next; l != &port->connecting; l = l->next) {
		struct rwk_packet_channel *c = rwk_container_of(l, struct rwk_packet_channel, connecting);

		if (g->echo == (c->state == RWK_CH_CONNECTING ? c->token : c->peer_token))
			ch = c;
	}
	(void)from;
	if (!ch) {
		port->count.stale++;
		return;
	}
	if (g->reason == -EDESTADDRREQ && ch->state == RWK_CH_CONNECTING) {
		take_name(ch, g);
		return;
	}
	if (g->reason == -EALREADY && ch->state == RWK_CH_CONNECTING) {
		/* It has not heard yet that the connection before this one has ended. */
		if (!ch->give_up_at)
			ch->give_up_at = rwk_packet_now(port) + WITHOUT_STREAM;
		return;
	}
	rwk_warn("packets: %s refuses the connection: %s", rwk_packet_name(&ch->address),
		g->reason == -ESTALE ? "the process that had this address is gone" : strerror(-g->reason));
	rwk_packet_doom(ch, g->reason == -ESTALE ? -ECONNRESET : g->reason);
}

void rwk_packet_greeted(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	port->count.greetings_in++;
	if (rwk_greeting_meant(g, &port->address)) {
		port->count.stale++;
		if (g->type == RWK_GREETING_CONNECT || g->type == RWK_GREETING_ACCEPT)
			refuse(port, way, from, g, -ESTALE);
		return;
	}
	switch (g->type) {
	case RWK_GREETING_CONNECT:
		take_connect(port, way, from, g);
		break;
	case RWK_GREETING_ACCEPT:
		take_accept(port, way, from, g);
		break;
	case RWK_GREETING_REFUSE:
		take_refuse(port, from, g);
		break;
	case RWK_GREETING_BYE:
		take_bye(port, from, g);
		break;
	case RWK_GREETING_PROBE:
	case RWK_GREETING_PROBED:
		take_probe(port, way, from, g);
		break;
	case RWK_GREETING_RELEASE:
		take_release(port, way, from, g);
		break;
	default:
		break;
	}
}

/** No stream will come: what that means for a channel. */
static void without_stream(struct rwk_packet_channel *ch, int status)
{
	ch->stream_lost = true;
	if (ch->path.way == RWK_WAY_STREAM && ch->state == RWK_CH_OPEN) {
		rwk_packet_doom(ch, -ECONNRESET);
	} else if (ch->state == RWK_CH_CONNECTING) {
		if (!ch->port->link[RWK_WAY_LOSSY])
			rwk_packet_doom(ch, -EHOSTUNREACH);
		else if (!ch->give_up_at)
			ch->give_up_at = rwk_packet_now(ch->port) + WITHOUT_STREAM;
	} else {
		rwk_info("packets: no stream to %s (%s): its death can be told only by its kernel's refusals",
			rwk_packet_name(&ch->address), strerror(-status));
	}
}

static void channel_word(struct rwk_packet_channel *ch, int status)
{
	bool partial = is_partial(&ch->address);

	if (status)
		rwk_info("packets: the stream to %s: %s", rwk_packet_name(&ch->address), strerror(-status));
	ch->stream_asked = false;
	ch->stream_open = !status;
	if (status && ch->shared)
		rwk_packet_evidence_lost(ch);
	if (status == -ESHUTDOWN && ch->shared)
		return; /* the peer does not need it any more; what its process does, evidence.c finds out */
	ch->gone = status == -ESTALE || status == -ECONNRESET || status == -ECONNREFUSED;
	switch (status) {
	case 0:
		ch->ask_at = 0;
		if (ch->state == RWK_CH_CONNECTING)
			rwk_packet_stir(ch);
		break;
	case -EACCES:
	case -EPROTONOSUPPORT:
		if (ch->state != RWK_CH_CONNECTING)
			break;
		rwk_warn("packets: %s does not know this job's key: it is of another job or user, or of another "
			 "version (FI_ROPEWALK_JOB_KEY makes jobs one)",
			rwk_packet_name(&ch->address));
		rwk_packet_doom(ch, -EACCES);
		break;
	case -ECONNREFUSED:
		if (!partial)
			rwk_packet_doom(ch, -ECONNRESET); /* it had an address, so it was there */
		break;
	case -ESTALE:
	case -ECONNRESET:
	case -ESHUTDOWN:
	case -EPROTO:
		if (ch->state != RWK_CH_CONNECTING || !partial)
			rwk_packet_doom(ch, -ECONNRESET);
		break;
	default:
		without_stream(ch, status);
	}
}

void rwk_packet_word(struct rwk_port *port, const struct rwk_link_address *who, int status)
{
	uint64_t nonce = port->ways->nonce ? port->ways->nonce(port->link[RWK_WAY_STREAM], who) : 0;

	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->state == RWK_CH_FAILED)
			continue;
		if (nonce && ch->nonce && ch->nonce != nonce)
			continue; /* one was there, and another is there now */
		if (!status && nonce && ch->nonce == nonce)
			ch->stream_to = *who; /* it may have come from another of its IPs */
		if (!memcmp(&ch->path.to, who, sizeof(*who)) || !memcmp(&ch->stream_to, who, sizeof(*who)))
			channel_word(ch, status);
	}
}

/** To its process, or to the domain that it is in. */
static bool goes_to(const struct rwk_packet_channel *ch, const struct rwk_link_address *who)
{
	return !memcmp(&ch->path.to, who, sizeof(*who)) || (ch->shared && !memcmp(&ch->by->path.to, who, sizeof(*who)));
}

void rwk_packet_hint(struct rwk_port *port, const struct rwk_link_address *who)
{
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (ch->state == RWK_CH_FAILED || ch->path.way != RWK_WAY_LOSSY || !goes_to(ch, who))
			continue;
		if (!ch->stream_lost) {
			rwk_packet_reach(ch); /* which tells for sure */
		} else if (!is_partial(&ch->address)) {
			ch->gone = true;
			rwk_packet_doom(ch, -ECONNRESET);
		}
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake, and which way a channel goes. HANDSHAKE.md tells it in prose.
 *
 *   CONNECTING  CONNECT goes out, again and again, later and later; on the stream too once that is open and UDP has
 *               not answered a few times. ACCEPT --> OPEN, and an ACCEPT back, so that the peer knows.
 *   ACCEPTING   a CONNECT has come: ACCEPT goes out, for each CONNECT anew. A packet of the peer's QP, or an ACCEPT,
 *               shows that it has heard --> OPEN.
 */
#include "packet/channel.h"
#include "packet/domain.h"
#include "packet/handshake.h"
#include "packet/initiator.h"
#include "packet/narrow.h"
#include "packet/numbers.h"
#include "packet/port.h"
#include "packet/regions.h"
#include "packet/streams.h"

#include "base/log.h"
#include "base/param.h"

#include <errno.h>
#include <string.h>

#define ASK_FIRST      (10 * 1000 * 1000ull)   /* ns: until the second greeting, */
#define ASK_LAST       (500 * 1000 * 1000ull)  /* and between greetings at most */
#define STREAM_TRY     2                       /* greetings without an answer before the stream is tried */
#define NARROW         2                       /* greetings that an open stream outlives before short ones go too, */
#define FALL_BACK      4                       /* and before UDP counts as blocked */
#define SILENT         20                      /* and before the user is told that UDP alone may carry this */
#define ASKED_ANEW     255                     /* times at most; echoes that were drawn lie further apart */
#define GIVEN_UP       6                       /* ACCEPTs without an answer show that the asker may have done so */
#define ASK_ON         (30 * 1000 * 1000 * 1000ull) /* ns: who may not be there is asked as long */

/** What makes a greeting as long as a packet. */
static uint16_t pad_to(uint32_t pmtu)
{
	return pmtu > RWK_GREETING_SIZE ? (uint16_t)(pmtu - RWK_GREETING_SIZE) : 0;
}

/** `whole`: as long as a packet. */
static void send_connect(struct rwk_packet_channel *ch, int way, bool whole)
{
	struct rwk_greeting g = {
		.type = RWK_GREETING_CONNECT, .from = ch->port->address, .to = ch->address, .echo = ch->token};

	rwk_packet_terms(ch, way, &g);
	g.pad = whole ? pad_to(g.pmtu) : 0;
	rwk_packet_greet(ch->port, way, way == RWK_WAY_STREAM ? rwk_packet_stream(ch) : &ch->path.to, &g);
}

/** `echo`: our peer's token in an answer to its CONNECT; ours, to say that we have heard its answer. */
static void send_accept(struct rwk_packet_channel *ch, uint64_t echo)
{
	struct rwk_greeting g = {
		.type = RWK_GREETING_ACCEPT, .from = ch->port->address, .to = ch->address, .echo = echo};

	rwk_packet_terms(ch, ch->path.way, &g);
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

/** SRC was wanted, and it is not to be had for this channel. */
static void unshared(struct rwk_packet_channel *ch)
{
	const struct rwk_client *client = ch->port->client;

	if (rwk_params.service == RWK_SERVICE_SRC) {
		rwk_warn(
			"packets: no connection can be shared with %s, and FI_ROPEWALK_SERVICE=src allows no other: %s",
			rwk_packet_name(&ch->address),
			ch->port->view ? "it is in no domain, or one of the two is known by several addresses"
				       : "this end is in no domain (FI_LOG_LEVEL=info says why)");
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

/** The peer has the channel too. */
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
	else
		rwk_packet_stream_begin(ch);
}

void rwk_packet_confirmed(struct rwk_packet_channel *ch)
{
	if (ch->state == RWK_CH_ACCEPTING)
		established(ch);
}

/**
 * Asks anew, for a connection of our own: what answers what we asked before is not believed any more. By the next
 * number, so that the peer can tell what it hears late.
 */
static int ask_alone(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;
	uint32_t qpn = rwk_packet_new_qpn(port);

	if (!qpn)
		return -EIO;
	ch->token++;
	rwk_packet_regions_move(ch, qpn); /* messages that wait for the connection */
	rwk_hash_remove(&port->by_qpn, &ch->by_qpn);
	ch->qpn = qpn;
	rwk_hash_add(&port->by_qpn, &ch->by_qpn);
	ch->said = 0;
	ch->may_share = false;
	return 0;
}

/**
 * A short greeting has been answered, and those as long as a packet have not, nor was the answer long: the way swallows
 * what is long. We ask anew for a connection with shorter packets. But where many ask at once a buffer is full now and
 * then, and has room for a short one alone: that counts from the second time on.
 */
static bool narrowed(struct rwk_packet_channel *ch, int way, const struct rwk_greeting *g)
{
	uint32_t pmtu = rwk_packet_path_pmtu(ch, way);

	if (way != RWK_WAY_LOSSY || g->pad || ch->tries_with_stream < NARROW || pmtu <= RWK_PACKET_LEAST)
		return false;
	if (!ch->asked_since) {
		ch->answered_short = true;
		ch->tries_with_stream = NARROW; /* UDP does get through */
		return true;
	}
	if (ask_alone(ch))
		return false;
	ch->pmtu_most = (uint16_t)rwk_packet_narrower(pmtu);
	ch->answered_short = ch->asked_since = false;
	ch->tries_with_stream = 0;
	ch->ask_at = 0;
	return true;
}

/** If UDP does not get through, or there is none. */
static bool may_go_by_stream(const struct rwk_port *port)
{
	return !port->link[RWK_WAY_LOSSY] ||
	       (rwk_params.link != RWK_LINK_UDP && rwk_params.service != RWK_SERVICE_RC &&
		       rwk_params.service != RWK_SERVICE_SRC);
}

/** A greeting more has had no answer, though a stream is open. */
static bool may_fall_back(const struct rwk_packet_channel *ch)
{
	if (!ch->port->link[RWK_WAY_LOSSY])
		return true;
	return may_go_by_stream(ch->port) && ch->tries_with_stream > FALL_BACK;
}

/**
 * UDP does not get through: from now on the stream alone asks, for a connection of its own. An answer to what was asked
 * by UDP may yet come, and must not be believed: the peer has gone over to the stream then.
 */
static bool falls_back(struct rwk_packet_channel *ch)
{
	if (!ch->stream_open)
		ch->asks_by_stream = false;
	else if (!ch->asks_by_stream && may_fall_back(ch))
		ch->asks_by_stream = !ask_alone(ch);
	return ch->asks_by_stream;
}

void rwk_packet_ask_on(struct rwk_packet_channel *ch)
{
	if (!ch->give_up_at)
		ch->give_up_at = rwk_packet_now(ch->port) + ASK_ON;
}

void rwk_packet_ask_there(struct rwk_packet_channel *ch)
{
	if (may_go_by_stream(ch->port))
		ch->give_up_at = 0; /* who does not answer by the stream either computes, or ends it */
}

static void say_silent(const struct rwk_packet_channel *ch)
{
	rwk_warn("packets: %s is there, and does not answer by UDP: it computes, or a firewall drops UDP; "
		 "FI_ROPEWALK_SERVICE or FI_ROPEWALK_LINK allows nothing else",
		rwk_packet_name(&ch->address));
}

static void say_too_late(const struct rwk_packet_channel *ch)
{
	const char *name = rwk_packet_name(&ch->address);

	if (ch->stream_open)
		rwk_warn("packets: %s is there, but answers nothing by UDP within the time to wait "
			 "(FI_ROPEWALK_CONNECT_WAIT)", name);
	else
		rwk_warn("packets: nobody answers at %s within the time to wait (FI_ROPEWALK_CONNECT_WAIT)", name);
}

static void ask_by_udp(struct rwk_packet_channel *ch)
{
	if (!ch->port->link[RWK_WAY_LOSSY])
		return;
	if (ch->stream_open && ch->tries_with_stream == SILENT && !may_go_by_stream(ch->port))
		say_silent(ch);
	if (rwk_packet_said_too_much(ch))
		ask_alone(ch); /* if that cannot be, what was said stays right: longer packets go in fragments */
	send_connect(ch, RWK_WAY_LOSSY, true);
	if (ch->tries_with_stream >= NARROW)
		send_connect(ch, RWK_WAY_LOSSY, false);
}

void rwk_packet_ask(struct rwk_packet_channel *ch, rwk_time now)
{
	rwk_time pause = ASK_FIRST << (ch->tries < 6 ? ch->tries : 6);

	if (now < ch->ask_at || ch->port->joining)
		return;
	ch->tries += ch->tries < UINT8_MAX;
	ch->ask_at = now + (pause < ASK_LAST ? pause : ASK_LAST);
	if (ch->state == RWK_CH_ACCEPTING) {
		send_accept(ch, ch->peer_token);
		if (ch->tries >= STREAM_TRY)
			rwk_packet_reach(ch); /* perhaps it has ended since it asked */
		return;
	}
	if (ch->give_up_at && now >= ch->give_up_at) {
		say_too_late(ch);
		rwk_packet_doom(ch, -ECONNREFUSED);
		return;
	}
	ch->tries_with_stream += ch->stream_open && ch->tries_with_stream < UINT8_MAX;
	ch->asked_since = ch->answered_short;
	if (ch->tries >= STREAM_TRY || !ch->port->link[RWK_WAY_LOSSY])
		rwk_packet_reach(ch);
	if (falls_back(ch))
		send_connect(ch, RWK_WAY_STREAM, false);
	else
		ask_by_udp(ch);
}

/** SRC: all channels by one initiator send packets as long as its target takes. */
static int aim(struct rwk_packet_channel *ch, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	int rc = rwk_packet_aim(ch->by, from, g);

	if (!rc)
		ch->pmtu = ch->by->pmtu;
	return rc;
}

/** Goes over to the way that the peer has come by, and makes the machine. */
static int agree(
	struct rwk_packet_channel *ch, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_link_address to = answer_to(ch->port, way, from, g);
	int rc = rwk_packet_goes(ch, &to, from);

	if (rc)
		return rc;
	ch->path.way = (uint8_t)way;
	if (way == RWK_WAY_STREAM) {
		ch->port->count.fell_back++;
		ch->stream_open = true;
	}
	ch->peer_token = g->type == RWK_GREETING_CONNECT ? g->echo : 0;
	ch->peer_pad = g->type == RWK_GREETING_CONNECT ? g->pad : 0;
	rwk_packet_place(ch, g);
	rwk_packet_decide(ch, way, g);
	rc = rwk_packet_machine(ch, g);
	if (!rc && ch->shared && g->type == RWK_GREETING_ACCEPT)
		rc = aim(ch, from, g);
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
	ch->peer_qpn = g->qpn; /* it may have asked anew; of what is shared that is but a name */
	return aim(ch, from, g);
}

/**
 * Both ends ask by short greetings. If each took the other's, nobody would ask any more, and none would find out whether
 * long packets get through: the one with the lesser nonce goes on asking.
 */
static bool crosses(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	return !g->pad && ch->tries_with_stream >= NARROW &&
	       rwk_packet_path_pmtu(ch, RWK_WAY_LOSSY) > RWK_PACKET_LEAST &&
	       rwk_packet_nonce(&ch->port->address) < rwk_packet_nonce(&g->from);
}

/**
 * The peer asks by another channel. Either it has given up that which we have answered, or it asks by two addresses of
 * ours, and that one is about to open: then this is no time to go over to the other.
 */
static bool too_soon(const struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	return g->echo - ch->peer_token > ASKED_ANEW && ch->tries < GIVEN_UP;
}

/** Nothing comes of this CONNECT: who sent it has asked anew since, or is about to hear what we ask. */
static bool passed_over(struct rwk_packet_channel *ch, int way, const struct rwk_greeting *g)
{
	if (ch->state == RWK_CH_ACCEPTING)
		return ch->peer_token - g->echo - 1 < ASKED_ANEW || too_soon(ch, g);
	return ch->state == RWK_CH_CONNECTING && way == RWK_WAY_LOSSY && (ch->asks_by_stream || crosses(ch, g));
}

static void take_connect(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = rwk_packet_find(port, from, g);
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
	if (ch && passed_over(ch, way, g))
		return;
	if (ch && ch->state == RWK_CH_FAILED)
		rc = ch->base.error;
	else if (ch && ch->state == RWK_CH_ACCEPTING && ch->path.way == way && ch->peer_qpn == g->qpn) {
		ch->peer_pad = g->pad;
		send_accept(ch, g->echo);
		return;
	} else if (ch) {
		rc = rwk_packet_acquainted(ch, g);
	} else {
		ch = rwk_packet_channel_from(port, g, &rc);
	}
	if (!rc)
		rc = agree(ch, way, from, g);
	if (ch && rc == -EAGAIN) { /* the domain is busy: what is asked again is answered then, and we ask too */
		if (rwk_list_empty(&ch->timed))
			rwk_list_append(&port->connecting, &ch->timed);
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
	rwk_list_remove(&ch->timed);
	rwk_list_append(&port->connecting, &ch->timed);
	send_accept(ch, g->echo);
}

/** An ACCEPT in answer to what we had asked. 0, or why the channel cannot be. */
static int take_answer(
	struct rwk_packet_channel *ch, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	int rc = rwk_packet_acquainted(ch, g);

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
		rc = rwk_packet_set_seen(ch, from);
	if (rc)
		return rc;
	established(ch);
	return 0;
}

/** The one under way whose CONNECT, or ACCEPT, a greeting with that echo answers; NULL: none. */
static struct rwk_packet_channel *answered(struct rwk_port *port, uint64_t echo)
{
	for (struct rwk_list *l = port->connecting.next; l != &port->connecting; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, timed);

		if (echo == (ch->state == RWK_CH_CONNECTING ? ch->token : ch->peer_token))
			return ch;
	}
	return NULL;
}

/**
 * Of two channels to one process, which of them has the connection? We asked it at one place, and meanwhile it asked
 * us, by the other channel: both ends keep what the lesser nonce asked for. But if the peer has one channel for both of
 * ours, that goes with ours that has its QPN already.
 */
static bool yields(const struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	return ch->state == RWK_CH_ACCEPTING && ch->peer_qpn != g->qpn &&
	       rwk_packet_nonce(&g->from) > rwk_packet_nonce(&ch->port->address);
}

/** The channel that an ACCEPT is for; NULL: none, or none yet. */
static struct rwk_packet_channel *accepted(
	struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = rwk_packet_find(port, from, g), *asker;

	if (!ch || !port->unnamed || g->echo == ch->token || g->echo == ch->peer_token)
		return ch;
	asker = answered(port, g->echo);
	if (!asker || asker->state != RWK_CH_CONNECTING)
		return ch;
	if (!yields(ch, g))
		return rwk_packet_doubles(asker, rwk_packet_nonce(&g->from), RWK_CH_CONNECTING) ? NULL : ch;
	rwk_packet_give_way(ch, asker);
	asker->ask_at = 0; /* that one is gone when the answer comes */
	return NULL;
}

static void take_accept(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = accepted(port, from, g);
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
	struct rwk_packet_channel *ch = rwk_packet_find(port, from, g);

	if (ch && ch->peer_qpn == g->qpn)
		rwk_packet_doom(ch, -ECONNRESET);
}

/** SRC: the peer does not need the stream that it has sent this by. */
static void take_release(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = rwk_packet_find(port, from, g);

	if (!ch || !ch->shared || way != RWK_WAY_STREAM || ch->peer_qpn != g->qpn || rwk_packet_set_stream(ch, from))
		return;
	ch->release_came = true;
	ch->stream_open = true; /* it may have opened before we knew the peer */
}

/** Only of a connection that stands, and by the way that it is about. */
static void take_probe(
	struct rwk_port *port, int way, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = rwk_packet_find(port, from, g);

	if (!ch || ch->state != RWK_CH_OPEN || ch->peer_qpn != g->qpn || way != RWK_WAY_LOSSY || ch->path.way != way)
		port->count.stale++;
	else if (g->type == RWK_GREETING_PROBE)
		rwk_packet_probe_came(ch, g);
	else
		rwk_packet_probed(ch, g);
}

static void take_refuse(struct rwk_port *port, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *ch = answered(port, g->echo);

	if (!ch) {
		port->count.stale++;
		return;
	}
	if (g->reason == -EDESTADDRREQ && ch->state == RWK_CH_CONNECTING) {
		rwk_packet_take_name(ch, g);
		return;
	}
	if (g->reason == -EALREADY && ch->state == RWK_CH_CONNECTING) {
		if (!rwk_packet_doubles(ch, rwk_packet_nonce(&g->from), RWK_CH_CONNECTING))
			rwk_packet_ask_on(ch); /* it has not heard yet that the connection before this one has ended */
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
	if (way == RWK_WAY_DOMAIN || g->type == RWK_GREETING_CEASE) { /* for whichever process of the node takes it */
		rwk_packet_domain_greeted(port, way, g);
		return;
	}
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
		take_refuse(port, g);
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
	case RWK_GREETING_CEASED:
		rwk_packet_initiator_ceased(port, g);
		break;
	default:
		break;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel's life. What is under way ends with the channel: requests by their machine, what waits by stop. */
#include "packet/channel.h"
#include "packet/domain.h"
#include "packet/handshake.h"
#include "packet/inbound.h"
#include "packet/initiator.h"
#include "packet/numbers.h"
#include "packet/path.h"
#include "packet/port.h"
#include "packet/pull.h"
#include "packet/reach.h"
#include "packet/regions.h"
#include "packet/request.h"

#include "base/log.h"
#include "base/param.h"
#include "uc/uc.h"
#include "wire/psn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where the machines between our own ends start from. */
#define TIMEOUT   (2 * 1000 * 1000ull) /* ns, until there are measurements */
#define ACK_DELAY (60 * 1000ull)       /* ns */
#define ACK_EVERY 32                   /* packets; who has a small window asks for each half of it */

uint32_t rwk_packet_new_qpn(struct rwk_port *port)
{
	struct rwk_packet_initiator *initiator;
	uint32_t qpn;

	do {
		if (rwk_packet_random(&qpn, sizeof(qpn)))
			return 0;
		qpn &= RWK_PSN_MASK;
		HASH_FIND(by_qpn, port->initiators, &qpn, sizeof(qpn), initiator);
	} while (qpn <= RWK_WIRE_GSI_QPN || qpn == RWK_PSN_MASK || initiator || rwk_packet_by_qpn(port, qpn));
	return qpn;
}

struct rwk_packet_channel *rwk_packet_channel_new(struct rwk_port *port, const struct rwk_address *to)
{
	struct rwk_packet_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->base.port = port;
	ch->address = *to;
	ch->qpn = rwk_packet_new_qpn(port);
	if (!ch->qpn || rwk_packet_random(&ch->psn, sizeof(ch->psn)) ||
		rwk_packet_random(&ch->token, sizeof(ch->token))) {
		free(ch);
		return NULL;
	}
	ch->psn &= RWK_PSN_MASK;
	ch->base.transport = port->transport;
	ch->state = RWK_CH_CONNECTING;
	ch->path.way = port->link[RWK_WAY_LOSSY] ? RWK_WAY_LOSSY : RWK_WAY_STREAM;
	ch->base.send_max = ch->path.way == RWK_WAY_LOSSY && !port->wants_shared ? RWK_SEND_MAX : RWK_SEND_MAX_LESS;
	ch->path.to = port->ways->address(to);
	ch->stream_lost = !port->link[RWK_WAY_STREAM];
	rwk_list_init(&ch->queue);
	rwk_list_init(&ch->requests);
	rwk_list_init(&ch->asked);
	rwk_list_init(&ch->dirty);
	rwk_list_init(&ch->timed);
	rwk_list_append(&port->all, &ch->all);
	rwk_hash_add(&port->by_qpn, &ch->by_qpn);
	rwk_packet_name_add(ch);
	return ch;
}

static void drop_machine(struct rwk_packet_channel *ch)
{
	void *rc = ch->rc, *uc = ch->uc;

	/* What the machine flushes comes to rwk_packet_done, which still finds the channel as it is. */
	if (rc) {
		rwk_rc_close(rc);
		ch->rc = NULL;
		free(rc);
	}
	if (uc) {
		rwk_uc_close(uc);
		ch->uc = NULL;
		free(uc);
		ch->port->by_stream--;
	}
	if (ch->shared) {
		rwk_packet_release(ch, ch->base.error ? ch->base.error : -ECANCELED);
		rwk_packet_domain_forget(ch);
		ch->shared = false;
		rwk_packet_initiator_left(ch->by, ch->gone);
		ch->by = NULL;
	}
}

void rwk_packet_channel_free(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;

	drop_machine(ch);
	rwk_packet_regions_drop(ch);
	port->crowd -= ch->on_this_machine;
	rwk_packet_kept_free(ch);
	free(ch->narrow);
	rwk_hash_remove(&port->by_qpn, &ch->by_qpn);
	rwk_packet_name_remove(ch);
	if (ch->stream_open || ch->stream_asked)
		port->ways->leave(port->link[RWK_WAY_STREAM], &ch->path.to);
	if (ch->stream_open)
		port->ways->leave(port->link[RWK_WAY_STREAM], rwk_packet_stream(ch));
	if (port->last == ch)
		port->last = NULL;
	rwk_packet_vote_ends(port, &ch->path);
	rwk_list_remove(&ch->dirty);
	rwk_list_remove(&ch->timed);
	rwk_list_remove(&ch->all);
	free(ch->elsewhere);
	free(ch);
}

void *rwk_packet_machine_memory(size_t size, size_t responder, void **responder_at)
{
	size_t first = (size + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1);
	size_t all = (first + responder + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1);
	unsigned char *m = aligned_alloc(RWK_CACHE_LINE, all);

	if (!m)
		return NULL;
	memset(m, 0, all);
	*responder_at = m + first;
	return m;
}

static uint32_t at_most(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int make_rc(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	struct rwk_port *port = ch->port;
	uint32_t window = rwk_params.window ? (uint32_t)rwk_params.window : RWK_RC_WINDOW_MAX;
	const struct rwk_rc_attr attr = {
		.peer_qpn = g->qpn,
		.send_psn = ch->psn,
		.receive_psn = g->psn,
		.pmtu = (uint16_t)ch->pmtu,
		.window = (uint16_t)at_most(g->window, window),
		.read_window = rwk_packet_window(port, ch->pmtu),
		.reads = g->reads,
		.peer_reads = RWK_RC_READS_MAX,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 1,
		.service = RWK_WIRE_RC,
		.own = (RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_DENIES) & g->features,
		.reach = RWK_REACH_READ | RWK_REACH_WRITE,
		.timeout = TIMEOUT,
		.ack_delay = ACK_DELAY,
		.ack_every = ACK_EVERY,
		.read_chunk = rwk_packet_read_chunk(ch->pmtu),
	};
	void *machine, *responder;
	int rc;

	machine = rwk_packet_machine_memory(rwk_rc_size(), rwk_rc_responder_size(), &responder);
	if (!machine)
		return -ENOMEM;
	ch->rc = rwk_rc_open(machine, responder, &rwk_packet_host, ch);
	rc = rwk_rc_modify(ch->rc, RWK_QP_INIT, NULL);
	if (!rc)
		rc = rwk_rc_modify(ch->rc, RWK_QP_RTR, &attr);
	ch->port->count.queue_pairs += !rc;
	return rc;
}

static int make_uc(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	const struct rwk_uc_attr attr = {
		.peer_qpn = g->qpn,
		.send_psn = ch->psn,
		.receive_psn = g->psn,
		.pmtu = (uint16_t)ch->pmtu,
		.reach = RWK_REACH_WRITE,
		.stream = true,
	};
	void *machine, *responder;
	int rc;

	machine = rwk_packet_machine_memory(rwk_uc_size(), rwk_uc_responder_size(), &responder);
	if (!machine)
		return -ENOMEM;
	ch->uc = rwk_uc_open(machine, responder, &rwk_packet_host, ch);
	ch->port->by_stream++;
	rc = rwk_uc_modify(ch->uc, RWK_QP_INIT, NULL);
	if (!rc)
		rc = rwk_uc_modify(ch->uc, RWK_QP_RTR, &attr);
	ch->port->count.queue_pairs += !rc;
	return rc;
}

int rwk_packet_machine(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	int rc;

	drop_machine(ch);
	ch->state = RWK_CH_CONNECTING; /* what was accepted went with the machine, and there may be no other */
	ch->peer_qpn = g->qpn;
	ch->takes_pieces = g->features & RWK_GREETING_PIECES;
	ch->denies = g->features & RWK_RC_DENIES;
	ch->pmtu = at_most(g->pmtu, rwk_packet_path_pmtu(ch, ch->path.way));
	if (ch->may_share) {
		rc = rwk_packet_domain_take(ch, g);
		if (rc != -EEXIST && rc != -ENOSPC)
			return rc;
		/*
		 * An earlier initiator of its process has the place, all are taken, or ours has failed: it gets a
		 * connection of its own.
		 */
		ch->may_share = false;
	}
	if (g->type == RWK_GREETING_ACCEPT && g->features & RWK_GREETING_SHARED)
		return -ESTALE; /* what it says is the target's PMTU, not the peer's own */
	return ch->path.way == RWK_WAY_LOSSY ? make_rc(ch, g) : make_uc(ch, g);
}

void rwk_packet_opened(struct rwk_packet_channel *ch)
{
	if (ch->rc)
		rwk_rc_modify(ch->rc, RWK_QP_RTS, NULL);
	else if (ch->uc)
		rwk_uc_modify(ch->uc, RWK_QP_RTS, NULL);
	ch->base.send_max = ch->rc ? RWK_SEND_MAX : RWK_SEND_MAX_LESS;
	rwk_packet_reach_begin(ch);
	ch->state = RWK_CH_OPEN;
	ch->base.answered = true;
	rwk_list_remove(&ch->timed);
	rwk_packet_stir(ch);
}

void rwk_packet_doom(struct rwk_packet_channel *ch, int err)
{
	if (ch->doom || ch->state == RWK_CH_FAILED)
		return;
	ch->doom = (int16_t)err;
	ch->port->doomed = true;
}

void rwk_packet_breach(struct rwk_packet_channel *ch, const char *what)
{
	if (!ch->doom)
		rwk_warn("packets: rank %u broke the protocol: %s; the connection is given up",
			rwk_address_rank(&ch->address), what);
	ch->deaf = true;
	rwk_packet_doom(ch, -EPROTO);
}

static void drop_queue(struct rwk_list *ops, int status)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(ops))) {
		struct rwk_op *op = rwk_container_of(l, struct rwk_op, link);

		op->done(op, status);
	}
}

void rwk_packet_stop(struct rwk_packet_channel *ch, int status)
{
	struct rwk_port *port = ch->port;
	struct rwk_place *place = ch->place;

	if (rwk_params.stats && !port->linger_until) /* else the port has told of it */
		rwk_packet_summary_of(ch);
	ch->state = RWK_CH_FAILED;
	ch->base.error = status;
	rwk_list_remove(&ch->timed);
	rwk_list_remove(&ch->dirty);
	if (ch->shared && !ch->gone && status != -EALREADY)
		rwk_packet_domain_ended(ch);
	drop_machine(ch);
	if (ch->frame)
		rwk_pool_put(&port->frames, ch->frame);
	ch->frame = NULL;
	rwk_packet_pulls_stop(ch, status);
	drop_queue(&ch->queue, status);
	ch->place = NULL;
	if (place)
		port->client->end(port->cookie, &ch->base, place, status);
}

bool rwk_packet_idle(const struct rwk_packet_channel *ch)
{
	if (!rwk_list_empty(&ch->queue) || ch->frame || !rwk_list_empty(&ch->requests))
		return false;
	return !ch->rc || rwk_rc_idle(ch->rc);
}

void rwk_packet_farewell(struct rwk_packet_channel *ch)
{
	const struct rwk_envelope env = {.kind = RWK_KIND_BYE};

	if (ch->state == RWK_CH_FAILED)
		return;
	drop_queue(&ch->queue, -ECANCELED);
	ch->has_taken = true; /* the good-bye says so: for the peer what is not acknowledged before it has failed */
	if (ch->state == RWK_CH_OPEN && !ch->doom && rwk_packet_detach(ch) && rwk_packet_control(ch, &env, NULL, 0))
		return;
	if (ch->state != RWK_CH_CONNECTING)
		rwk_packet_say_bye(ch);
	rwk_packet_stop(ch, -ECANCELED);
}

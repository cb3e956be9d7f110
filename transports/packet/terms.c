/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The terms of a connection: what a greeting says of our end, and what follows for a channel from what both have said.
 */
#include "packet/channel.h"
#include "packet/domain.h"
#include "packet/handshake.h"
#include "packet/initiator.h"
#include "packet/numbers.h"
#include "packet/port.h"

#include <string.h>

/** SRC: which initiator serves the peer hangs on its node, and where it is alone does not tell that. */
static bool lacks_name(const struct rwk_packet_channel *ch, int way)
{
	return ch->port->view && rwk_packet_is_partial(&ch->address) && way == RWK_WAY_LOSSY;
}

/**
 * SRC: do the domain's acknowledgements leave from the IP that the peer knows us by? It takes no others. The domain's
 * socket is bound to no IP; ours may be, and to one that the kernel would not have chosen.
 */
static bool answers_from_here(const struct rwk_packet_channel *ch)
{
	const struct rwk_port *port = ch->port;
	const struct rwk_link_address to = port->ways->address(&ch->address);

	return !port->ways->same_source ||
	       port->ways->same_source(port->link[RWK_WAY_LOSSY], port->link[RWK_WAY_DOMAIN], &to);
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
		ch->may_share = ch->port->view && ch->address.job == ch->port->address.job && answers_from_here(ch);
	ch->decided = true;
	return ch->may_share && way == RWK_WAY_LOSSY;
}

static uint32_t pmtu_now(const struct rwk_packet_channel *ch, int way)
{
	uint32_t pmtu = rwk_packet_pmtu(ch->port, way, &ch->path.to);

	return way == RWK_WAY_LOSSY && ch->pmtu_most && ch->pmtu_most < pmtu ? ch->pmtu_most : pmtu;
}

uint32_t rwk_packet_path_pmtu(struct rwk_packet_channel *ch, int way)
{
	if (way != RWK_WAY_LOSSY)
		return pmtu_now(ch, way);
	if (!ch->said)
		ch->said = (uint16_t)pmtu_now(ch, way);
	return ch->said;
}

bool rwk_packet_said_too_much(const struct rwk_packet_channel *ch)
{
	return pmtu_now(ch, RWK_WAY_LOSSY) < ch->said;
}

void rwk_packet_terms(struct rwk_packet_channel *ch, int way, struct rwk_greeting *g)
{
	struct rwk_port *port = ch->port;

	g->qpn = ch->qpn;
	g->psn = ch->psn;
	g->pmtu = (uint16_t)rwk_packet_path_pmtu(ch, way);
	g->window = rwk_packet_window(port, g->pmtu);
	g->reads = RWK_RC_READS_MAX;
	g->features = RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_DENIES | RWK_RC_BUSY |
		      RWK_GREETING_MASKED_ID | RWK_GREETING_RDMA_READ | RWK_GREETING_RDMA_WRITE | RWK_GREETING_PIECES;
	g->room = port->room;
	g->machine = port->machine;
	if (lacks_name(ch, way))
		g->features |= RWK_GREETING_UNNAMED;
	else if (may_share(ch, way) && rwk_packet_domain_terms(ch, g))
		g->features |= RWK_GREETING_SHARED;
}

void rwk_packet_decide(struct rwk_packet_channel *ch, int way, const struct rwk_greeting *g)
{
	bool asked = g->type == RWK_GREETING_CONNECT;

	if (!may_share(ch, way) || !(g->features & RWK_GREETING_SHARED) ||
		memcmp(rwk_packet_seen(ch), &ch->path.to, sizeof(ch->path.to)) ||
		(asked && ch->by && ch->by->domain && ch->by->domain != g->shared.domain))
		ch->may_share = false;
	if (ch->may_share && !ch->by)
		ch->by = rwk_packet_initiator(ch->port, ch->address.node, g->shared.domain);
	if (!ch->by)
		ch->may_share = false;
}

void rwk_packet_place(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	bool here = g->machine && g->machine == ch->port->machine && g->from.node != ch->port->address.node;

	ch->port->crowd += here - ch->on_this_machine;
	ch->on_this_machine = here;
}

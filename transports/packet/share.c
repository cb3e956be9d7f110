/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All who send to this port share its receive buffer, and so do those of whom it reads. A sender alone may fill it. As
 * soon as there are several, each is told a share of its own (rwk_rc_share), and one share stays free for who comes
 * next: without it the buffer would be full of those who are at it, and a newcomer's packets, or those of one that has
 * lost all, would be dropped time and again. Of what is read no more is asked for than such a share.
 *
 * SRC's targets are their domain's, which tells nobody a share. So an initiator bounds itself where its packets go in
 * pieces, which take more of the domain's buffer than was thought when the window was agreed.
 *
 *   sender   a channel from which a long packet has come in this period or the last
 *   period   a few milliseconds: longer than the pauses of somebody who sends all the time
 */
#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/narrow.h"
#include "packet/port.h"

#include "rc/rc.h"

#define PERIOD (2 * 1000 * 1000ull) /* ns */
#define MOMENT (100 * 1000 * 1000ull) /* ns from one moment of the client's to the next */

static uint32_t senders(const struct rwk_port *port)
{
	return port->heard > port->senders ? port->heard : port->senders;
}

/* Of one that comes in pieces, each counts for itself, and in memory for about twice as much as it is long. */
static uint32_t cost_of(uint32_t pmtu, uint32_t cut)
{
	return cut ? pmtu / cut * (cut + 2 * RWK_PACKET_COST) : pmtu + RWK_PACKET_COST;
}

/* Packets of the channel that the receive buffer holds; port.c says why twice as many as the link says. */
static uint32_t all_of(const struct rwk_packet_channel *ch)
{
	return 2 * ch->port->room / cost_of(ch->pmtu, ch->path.cut);
}

static uint32_t at_least_one(uint32_t packets)
{
	return packets ? packets : 1;
}

void rwk_packet_heard(struct rwk_packet_channel *ch)
{
	struct rwk_port *port = ch->port;
	uint32_t n, share;

	ch->heard_in = port->period;
	port->heard++;
	n = senders(port);
	if (!ch->rc)
		return;
	share = n == 1 ? (ch->path.cut ? all_of(ch) : 0) : all_of(ch) / (n + 1);
	rwk_rc_share(ch->rc, n > 1 || ch->path.cut ? at_least_one(share) : 0);
}

/* What was agreed was said of whole packets. */
void rwk_packet_recount(struct rwk_packet_initiator *by)
{
	uint32_t whole = cost_of(by->pmtu, 0), cost = cost_of(by->pmtu, by->path.cut);

	rwk_rc_bound(by->rc, by->path.cut ? at_least_one(by->window * whole / cost) : 0);
}

void rwk_packet_period(struct rwk_port *port, rwk_time now)
{
	port->senders = port->heard;
	port->heard = 0;
	port->period++;
	port->period_end = now + PERIOD;
	if (now >= port->wider_at)
		rwk_packet_wider(port, now);
	if (now >= port->moment_at && port->client->moment) {
		port->moment_at = now + MOMENT;
		port->client->moment(port->cookie);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A way that carries less than it did when the connection was made, and swallows what is longer without a word: an MTU
 * was lowered somewhere, or a route changed, and no ICMP gets through. (What the kernel knows of, it cuts by itself:
 * ../links/udp.) Nobody hears of that but by packets that stay away; the peer may as well compute. So who waits in vain
 * asks by PROBE, as long as a packet, and shorter, and the peer answers each by a PROBED of the same length. If only
 * short ones come back, twice in a row, packets are cut in pieces of that length from then on (pieces.c), at both ends.
 *
 *   size    bytes of payload of the packets that pass whole: what was agreed, 1024, or 256
 *   round   probes of some sizes, at each time-out in a row from the second on; judged at the next. What came to nothing
 *           in an earlier silence does not count in this one: then packets were lost, and the peer was late
 *
 * From time to time a long probe finds out whether the way is as wide again as it was.
 *
 * SRC: what is known is an initiator's, and it asks one process of that node for all of them: who has answered is asked
 * again, else the next in turn, since some may compute. Each PROBE also says to the domain there (rwk_src_target_cut)
 * how long the answers to this initiator may be, whichever process sends them; it is said again until it was heard.
 */
#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/narrow.h"
#include "packet/numbers.h"
#include "packet/port.h"

#include "base/log.h"
#include "machine.h"
#include "shared_rc/shared_rc.h"

#include <stdlib.h>

#define ROUNDS   2                               /* that say the same */
#define WIDER_IN (10 * 1000 * 1000 * 1000ull) /* ns */
#define TELL_IN  (1000 * 1000 * 1000ull) /* ns; the same, as long as it is not known that the peer's domain was told */

static struct rwk_packet_path *path_of(struct rwk_packet_channel *ch)
{
	return ch->shared ? &ch->by->path : &ch->path;
}

static struct rwk_packet_narrow **place_of(struct rwk_packet_channel *ch)
{
	return ch->shared ? &ch->by->narrow : &ch->narrow;
}

/** What was agreed; 0: nothing yet. */
static uint32_t agreed(const struct rwk_packet_channel *ch)
{
	return ch->shared ? ch->by->pmtu : ch->pmtu;
}

static uint32_t size_of(struct rwk_packet_channel *ch)
{
	uint32_t cut = path_of(ch)->cut;

	return cut && cut < agreed(ch) ? cut : agreed(ch);
}

static bool can_probe(const struct rwk_packet_channel *ch)
{
	return ch->takes_pieces && ch->state == RWK_CH_OPEN && ch->path.way == RWK_WAY_LOSSY &&
	       agreed(ch) > RWK_PACKET_LEAST;
}

/** NULL: out of memory, and all stays as it is. */
static struct rwk_packet_narrow *known_of(struct rwk_packet_channel *ch)
{
	struct rwk_packet_narrow **n = place_of(ch);

	if (!*n)
		*n = calloc(1, sizeof(**n));
	return *n;
}

/** As long as a packet of that size; it says what we believe. */
static void probe(struct rwk_packet_channel *ch, uint32_t size)
{
	const struct rwk_greeting g = {.type = RWK_GREETING_PROBE,
		.from = ch->port->address,
		.to = ch->address,
		.qpn = ch->qpn,
		.pmtu = (uint16_t)size_of(ch),
		.pad = size > RWK_GREETING_SIZE ? (uint16_t)(size - RWK_GREETING_SIZE) : 0,
		.echo = (*place_of(ch))->token};

	rwk_packet_greet(ch->port, ch->path.way, &ch->path.to, &g);
}

/** A new question: what answers an earlier one counts no more. It grows, so that the peer can tell which is later. */
static void begin(struct rwk_packet_channel *ch)
{
	struct rwk_packet_narrow *n = *place_of(ch);
	rwk_time now = rwk_packet_now(ch->port);

	n->token = now > n->token ? now : n->token + 1;
	n->best = 0;
	n->whom = ch->qpn;
}

/** Nothing is held against the way. */
static void acquit(struct rwk_packet_narrow *n)
{
	n->rounds = 0;
	n->widest = 0;
}

static void believe(struct rwk_packet_channel *ch, uint32_t size)
{
	struct rwk_packet_narrow *n = *place_of(ch);
	struct rwk_packet_path *path = path_of(ch);
	struct rwk_port *port = ch->port;
	bool wider = path->cut && size > path->cut;

	acquit(n);
	n->untold = ch->shared;
	n->wider_at = rwk_packet_now(port) + (n->untold ? TELL_IN : WIDER_IN);
	if (n->wider_at < port->wider_at)
		port->wider_at = n->wider_at;
	path->cut = size < agreed(ch) ? (uint16_t)size : 0;
	if (ch->shared && ch->by->rc)
		rwk_packet_recount(ch->by);
	begin(ch);
	if (!path->cut) {
		rwk_info("packets: those to %s get through whole again", rwk_packet_name(&ch->address));
		return;
	}
	if (wider) {
		rwk_info("packets: those of %u bytes get through to %s, too", size, rwk_packet_name(&ch->address));
		return;
	}
	port->count.narrowed++;
	rwk_warn("packets: those of %u bytes do not get through to %s any more, and nobody says why (an MTU on the way "
		 "was lowered, and ICMP does not get through): they go in shorter pieces, which is slow. Raise the MTU "
		 "again, or start the job with FI_ROPEWALK_PMTU=%u",
		agreed(ch), rwk_packet_name(&ch->address), size);
}

/** A round counts if long ones were asked. One of a middle length may be lost, as any: each round has tried it. */
static void judge(struct rwk_packet_channel *ch)
{
	struct rwk_packet_narrow *n = *place_of(ch);

	if (n->best >= size_of(ch)) {
		acquit(n);
	} else if (n->best && n->asked <= ROUNDS) {
		if (n->best > n->widest)
			n->widest = n->best;
		if (++n->rounds >= ROUNDS)
			believe(ch, n->widest);
	}
}

void rwk_packet_silent(struct rwk_packet_channel *ch, bool anew)
{
	struct rwk_packet_narrow *n;
	uint32_t size;
	bool answered;

	if (!can_probe(ch))
		return;
	n = known_of(ch);
	if (!n)
		return;
	answered = anew || n->best;
	if (anew)
		acquit(n);
	else
		judge(ch);
	begin(ch);
	/* Who answers nothing is not there, or computes: its buffer is not to be filled with long ones. */
	n->asked = answered ? 1 : (uint8_t)(n->asked + (n->asked < UINT8_MAX));
	for (size = size_of(ch); size > RWK_PACKET_LEAST; size = rwk_packet_narrower(size))
		if (n->asked <= ROUNDS)
			probe(ch, size);
	probe(ch, RWK_PACKET_LEAST);
}

static bool goes_by(const struct rwk_packet_channel *ch, const struct rwk_packet_initiator *by)
{
	return ch->shared && ch->by == by;
}

/** Whom to ask for all who go by that initiator: who has answered, or else the next one; NULL: nobody can be. */
static struct rwk_packet_channel *whom(const struct rwk_packet_initiator *by)
{
	struct rwk_port *port = by->port;
	struct rwk_packet_channel *last = by->narrow ? rwk_packet_by_qpn(port, by->narrow->whom) : NULL;
	struct rwk_list *from = last ? &last->all : &port->all;
	bool again = last && goes_by(last, by) && can_probe(last);

	if (again && by->narrow->best)
		return last;
	for (struct rwk_list *l = from->next; l != from; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (l != &port->all && goes_by(ch, by) && can_probe(ch))
			return ch;
	}
	return again ? last : NULL;
}

void rwk_packet_node_silent(struct rwk_packet_initiator *by, bool anew)
{
	struct rwk_packet_channel *ch = whom(by);

	if (ch)
		rwk_packet_silent(ch, anew);
}

void rwk_packet_probe_came(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	struct rwk_packet_narrow *n;
	struct rwk_greeting a;

	if (ch->shared && rwk_src_target_cut(ch->port->view, ch->target,
				  g->pmtu < ch->pmtu ? g->pmtu : 0, g->echo))
		return; /* it asks again */
	rwk_greeting_answer(&a, g, RWK_GREETING_PROBED, &ch->port->address);
	a.qpn = ch->qpn;
	a.pad = g->pad;
	rwk_packet_greet(ch->port, ch->path.way, &ch->path.to, &a);
	if (!can_probe(ch) || g->pmtu == size_of(ch) || g->pmtu > agreed(ch))
		return;
	/* That it is narrow is believed at once; that it is wide, if what says so is as long. */
	if (g->pmtu > size_of(ch) && RWK_GREETING_SIZE + g->pad < g->pmtu)
		return;
	n = known_of(ch);
	if (!n || g->echo < n->heard)
		return;
	n->heard = g->echo;
	believe(ch, g->pmtu);
}

void rwk_packet_probed(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	struct rwk_packet_narrow *n = *place_of(ch);
	uint32_t size = g->pad ? RWK_GREETING_SIZE + g->pad : RWK_PACKET_LEAST;

	if (!can_probe(ch) || !n || g->echo != n->token || size > agreed(ch))
		return;
	n->untold = false;
	if (size > n->best)
		n->best = (uint16_t)size;
	if (size <= size_of(ch))
		return;
	believe(ch, size);
	probe(ch, size); /* so the peer hears of it */
}

/** Asks, if it is time, and says when it is to be asked again. */
static void widen(struct rwk_packet_channel *ch, rwk_time now)
{
	struct rwk_packet_narrow *n = *place_of(ch);
	uint32_t all = agreed(ch);

	if (size_of(ch) == all && !n->untold)
		return;
	if (now >= n->wider_at) {
		n->wider_at = now + (n->untold ? TELL_IN : WIDER_IN);
		begin(ch);
		probe(ch, all);
		probe(ch, rwk_packet_narrower(all));
	}
	if (n->wider_at < ch->port->wider_at)
		ch->port->wider_at = n->wider_at;
}

void rwk_packet_wider(struct rwk_port *port, rwk_time now)
{
	port->wider_at = RWK_NEVER;
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (!ch->shared && ch->narrow && can_probe(ch))
			widen(ch, now);
	}
	for (struct rwk_list *l = port->all_initiators.next; l != &port->all_initiators; l = l->next) {
		struct rwk_packet_initiator *by = rwk_container_of(l, struct rwk_packet_initiator, all);
		struct rwk_packet_channel *ch = by->narrow ? whom(by) : NULL;

		if (ch)
			widen(ch, now);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A way that carries less than it did when the connection was made, and swallows what is longer without a word: an MTU
 * was lowered somewhere, or a route changed, and no ICMP gets through. (What the kernel knows of, it cuts by itself:
 * ../links/udp.) Nobody hears of that but by packets that stay away; the peer may as well compute. So who waits in vain
 * asks by PROBE, as long as a packet, and shorter, and the peer answers each by a PROBED of the same length. If only
 * short ones come back, twice in a row, packets are cut in pieces of that length from then on (pieces.c), at both ends.
 *
 *   size    bytes of payload of the packets that pass whole: what was agreed, a quarter of it, a sixteenth, down to 256
 *   round   probes of some sizes, at each time-out from the second on; judged at the next
 *
 * From time to time a long probe finds out whether the way is as wide again as it was.
 */
#include "packet/internal.h"

#include <stdlib.h>

#define LEAST    256u                            /* bytes */
#define ROUNDS   2                               /* that say the same */
#define WIDER_IN (10 * 1000 * 1000 * 1000ull) /* ns */

static struct rwk_packet_path *path_of(struct rwk_packet_channel *ch)
{
	return ch->shared ? &ch->by->path : &ch->path;
}

static uint32_t size_of(struct rwk_packet_channel *ch)
{
	uint32_t cut = path_of(ch)->cut;

	return cut && cut < ch->pmtu ? cut : ch->pmtu;
}

static bool can_probe(const struct rwk_packet_channel *ch)
{
	return ch->takes_pieces && ch->state == RWK_CH_OPEN && ch->path.way == RWK_WAY_LOSSY && ch->pmtu > LEAST;
}

/** False: out of memory, and all stays as it is. */
static bool remember(struct rwk_packet_channel *ch)
{
	if (!ch->narrow)
		ch->narrow = calloc(1, sizeof(*ch->narrow));
	return ch->narrow;
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
		.echo = ch->narrow->token};

	rwk_packet_greet(ch->port, ch->path.way, &ch->path.to, &g);
}

/** A new question: what answers an earlier one counts no more. It grows, so that the peer can tell which is later. */
static void begin(struct rwk_packet_channel *ch)
{
	rwk_time now = rwk_packet_now(ch->port);

	ch->narrow->token = now > ch->narrow->token ? now : ch->narrow->token + 1;
	ch->narrow->best = 0;
}

static void believe(struct rwk_packet_channel *ch, uint32_t size)
{
	struct rwk_packet_path *path = path_of(ch);
	struct rwk_port *port = ch->port;

	ch->narrow->rounds = 0;
	path->cut = size < ch->pmtu ? (uint16_t)size : 0;
	port->answer = (struct rwk_packet_path){.cut = 0}; /* found anew with the next acknowledgement */
	if (!path->cut) {
		rwk_info("packets: those to %s get through whole again", rwk_packet_name(&ch->address));
		return;
	}
	ch->narrow->wider_at = rwk_packet_now(port) + WIDER_IN;
	if (ch->narrow->wider_at < port->wider_at)
		port->wider_at = ch->narrow->wider_at;
	port->count.narrowed++;
	rwk_warn("packets: those of %u bytes do not get through to %s any more, and nobody says why (an MTU on the way "
		 "was lowered, and ICMP does not get through): %s. Raise the MTU again, or start the job with "
		 "FI_ROPEWALK_PMTU=%u",
		ch->pmtu, rwk_packet_name(&ch->address),
		ch->shared ? "this connection is a shared one, and stands still until they do"
			   : "they go in shorter pieces, which is slow",
		size);
}

uint16_t rwk_packet_cut(const struct rwk_port *port, const struct rwk_link_address *to)
{
	for (struct rwk_list *l = port->all.next; port->count.narrowed && l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (can_probe(ch) && path_of(ch)->cut && !memcmp(&ch->path.to, to, sizeof(*to)))
			return path_of(ch)->cut;
	}
	return 0;
}

static void judge(struct rwk_packet_channel *ch)
{
	uint32_t best = ch->narrow->best;

	if (best >= size_of(ch))
		ch->narrow->rounds = 0;
	else if (best && ++ch->narrow->rounds >= ROUNDS)
		believe(ch, best);
}

void rwk_packet_silent(struct rwk_packet_channel *ch)
{
	uint32_t size;
	bool answered;

	if (!can_probe(ch) || !remember(ch))
		return;
	answered = ch->narrow->best;
	judge(ch);
	begin(ch);
	/* Who answers nothing is not there, or computes: its buffer is not to be filled with long ones. */
	ch->narrow->asked = answered ? 1 : (uint8_t)(ch->narrow->asked + (ch->narrow->asked < UINT8_MAX));
	for (size = size_of(ch); size > LEAST; size = size / 4 > LEAST ? size / 4 : LEAST)
		if (ch->narrow->asked <= ROUNDS)
			probe(ch, size);
	probe(ch, LEAST);
}

void rwk_packet_probe_came(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	struct rwk_greeting a;

	rwk_greeting_answer(&a, g, RWK_GREETING_PROBED, &ch->port->address);
	a.qpn = ch->qpn;
	a.pad = g->pad;
	rwk_packet_greet(ch->port, ch->path.way, &ch->path.to, &a);
	if (!can_probe(ch) || g->pmtu == size_of(ch) || g->pmtu > ch->pmtu)
		return;
	/* That it is narrow is believed at once; that it is wide, if what says so is as long. */
	if (g->pmtu > size_of(ch) && RWK_GREETING_SIZE + g->pad < g->pmtu)
		return;
	if (!remember(ch) || g->echo < ch->narrow->heard)
		return;
	ch->narrow->heard = g->echo;
	believe(ch, g->pmtu);
}

void rwk_packet_probed(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	uint32_t size = g->pad ? RWK_GREETING_SIZE + g->pad : LEAST;

	if (!can_probe(ch) || !ch->narrow || g->echo != ch->narrow->token || size > ch->pmtu)
		return;
	if (size > ch->narrow->best)
		ch->narrow->best = (uint16_t)size;
	if (size <= size_of(ch))
		return;
	believe(ch, size);
	begin(ch);
	probe(ch, size); /* so the peer hears of it */
}

void rwk_packet_wider(struct rwk_port *port, rwk_time now)
{
	port->wider_at = RWK_NEVER;
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (!can_probe(ch) || !ch->narrow || size_of(ch) == ch->pmtu)
			continue;
		if (now >= ch->narrow->wider_at) {
			ch->narrow->wider_at = now + WIDER_IN;
			begin(ch);
			probe(ch, ch->pmtu);
			probe(ch, ch->pmtu / 4 > LEAST ? ch->pmtu / 4 : LEAST);
		}
		if (ch->narrow->wider_at < port->wider_at)
			port->wider_at = ch->narrow->wider_at;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that are at more than one place. Packets of most come from where ours go, and their streams lead there; of one
 * that has several IPs, or sits behind a translation of addresses, each may be another. Only such a peer's places are
 * written down beside its path.
 */
#include "packet/channel.h"
#include "packet/numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool same(const struct rwk_link_address *a, const struct rwk_link_address *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static int set(struct rwk_packet_channel *ch, struct rwk_packet_elsewhere places)
{
	if (!ch->elsewhere && same(&places.seen, &ch->path.to) && same(&places.stream, &ch->path.to))
		return 0;
	if (!ch->elsewhere)
		ch->elsewhere = malloc(sizeof(*ch->elsewhere));
	if (!ch->elsewhere)
		return -ENOMEM;
	*ch->elsewhere = places;
	return 0;
}

int rwk_packet_set_seen(struct rwk_packet_channel *ch, const struct rwk_link_address *from)
{
	return set(ch, (struct rwk_packet_elsewhere){.seen = *from, .stream = *rwk_packet_stream(ch)});
}

int rwk_packet_set_stream(struct rwk_packet_channel *ch, const struct rwk_link_address *at)
{
	return set(ch, (struct rwk_packet_elsewhere){.seen = *rwk_packet_seen(ch), .stream = *at});
}

int rwk_packet_goes(
	struct rwk_packet_channel *ch, const struct rwk_link_address *to, const struct rwk_link_address *from)
{
	struct rwk_link_address stream = *rwk_packet_stream(ch);

	/* One that is open stays where it is, if it is known to be the peer's. */
	if (same(&stream, &ch->path.to) && !(ch->stream_open && rwk_packet_peer_nonce(ch)))
		stream = *to;
	ch->path.to = *to;
	ch->path.begun_len = 0;
	return set(ch, (struct rwk_packet_elsewhere){.seen = *from, .stream = stream});
}

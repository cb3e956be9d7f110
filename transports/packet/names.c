/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Greetings about names: which channel a greeting is about, and what it tells of a peer that was known by place alone.
 * A peer's name is its full address; its nonce tells it from another process at the same place.
 */
#include "packet/channel.h"
#include "packet/handshake.h"
#include "packet/numbers.h"
#include "packet/port.h"
#include "packet/streams.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool lives(const struct rwk_packet_channel *ch)
{
	return ch->state != RWK_CH_FAILED && !ch->doom;
}

/** The oldest that lives of those whose peer has that nonce, or else the oldest; NULL: none has. */
static struct rwk_packet_channel *with_name(const struct rwk_port *port, uint64_t nonce)
{
	struct rwk_packet_channel *first = rwk_packet_by_nonce(port, nonce), *ch = first;

	while (ch && !lives(ch))
		ch = rwk_packet_next_by_nonce(ch);
	return ch ? ch : first;
}

struct rwk_packet_channel *rwk_packet_find(
	struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_packet_channel *named = with_name(port, rwk_packet_nonce(&g->from)), *there = NULL;
	struct rwk_link_address told;

	if (!port->unnamed || (named && lives(named)))
		return named;
	told = port->ways->address(&g->from);
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);

		if (rwk_packet_peer_nonce(ch))
			continue;
		if (ch->token == g->echo)
			return ch;
		if (!memcmp(&ch->path.to, from, sizeof(*from)) || !memcmp(&ch->path.to, &told, sizeof(told)))
			there = ch;
	}
	return there ? there : named;
}

void rwk_packet_give_way(struct rwk_packet_channel *ch, struct rwk_packet_channel *to)
{
	const struct rwk_client *client = ch->port->client;
	char name[80];
	int rc = -EALREADY;

	if (!lives(ch))
		return;
	snprintf(name, sizeof(name), "%s", rwk_packet_name(&ch->address));
	rwk_info("packets: %s is the same process as %s, and has one connection", name, rwk_packet_name(&to->address));
	rwk_packet_stream_over(ch, to);
	if (client->merge)
		rc = client->merge(ch->port->cookie, &ch->base, &to->base);
	rwk_packet_doom(ch, rc ? rc : -EALREADY);
}

bool rwk_packet_doubles(struct rwk_packet_channel *ch, uint64_t nonce, enum rwk_channel_state least)
{
	struct rwk_packet_channel *other = with_name(ch->port, nonce);

	if (rwk_packet_peer_nonce(ch) || !other || !lives(other) || other->state < least)
		return false;
	rwk_packet_give_way(ch, other);
	return true;
}

int rwk_packet_acquainted(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	if (rwk_packet_peer_nonce(ch))
		return 0;
	if (rwk_packet_doubles(ch, rwk_packet_nonce(&g->from), RWK_CH_CONNECTING))
		return -EALREADY;
	rwk_packet_name_remove(ch);
	ch->address = g->from;
	rwk_packet_name_add(ch);
	return ch->port->client->connected(ch->port->cookie, &ch->base, &g->from);
}

struct rwk_packet_channel *rwk_packet_channel_from(struct rwk_port *port, const struct rwk_greeting *g, int *rc)
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

void rwk_packet_take_name(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	int rc;

	if (rwk_packet_peer_nonce(ch))
		return; /* we ask so already */
	rc = rwk_packet_acquainted(ch, g);
	if (rc) {
		rwk_packet_doom(ch, rc);
		return;
	}
	ch->give_up_at = 0;
	ch->ask_at = 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Greetings about names: which channel a greeting is about, and what it tells of a peer that was known by place alone.
 * A peer's name is its full address; its nonce tells it from another process at the same place.
 */
#include "packet/channel.h"
#include "packet/handshake.h"
#include "packet/numbers.h"
#include "packet/port.h"

#include <errno.h>
#include <string.h>

struct rwk_packet_channel *rwk_packet_find(
	struct rwk_port *port, const struct rwk_link_address *from, const struct rwk_greeting *g)
{
	struct rwk_link_address told;
	uint64_t nonce = rwk_packet_nonce(&g->from);

	if (!port->unnamed)
		return rwk_packet_by_nonce(port, nonce);
	told = port->ways->address(&g->from);
	for (struct rwk_list *l = port->all.next; l != &port->all; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, all);
		uint64_t known = rwk_packet_peer_nonce(ch);

		if (known ? known == nonce
			  : ch->token == g->echo || !memcmp(&ch->path.to, from, sizeof(*from)) ||
				    !memcmp(&ch->path.to, &told, sizeof(told)))
			return ch;
	}
	return NULL;
}

int rwk_packet_acquainted(struct rwk_packet_channel *ch, const struct rwk_greeting *g)
{
	if (rwk_packet_peer_nonce(ch))
		return 0;
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

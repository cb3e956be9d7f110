/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which channel has a number: its QPN; with SRC, the number of the target that takes for it; its peer's nonce. QPNs and
 * nonces are drawn, and targets are numbered in turn from the lowest bits on (shared_rc), so the last bits tell
 * channels apart as they are.
 */
#include "packet/channel.h"
#include "packet/numbers.h"
#include "packet/port.h"

static uint32_t qpn_of(const struct rwk_hash_link *l)
{
	return rwk_container_of(l, struct rwk_packet_channel, by_qpn)->qpn;
}

static uint32_t target_of(const struct rwk_hash_link *l)
{
	return rwk_container_of(l, struct rwk_packet_channel, by_target)->target;
}

static uint32_t nonce_of(const struct rwk_hash_link *l)
{
	return (uint32_t)rwk_packet_peer_nonce(rwk_container_of(l, struct rwk_packet_channel, by_nonce));
}

void rwk_packet_numbers_init(struct rwk_port *port)
{
	rwk_hash_init(&port->by_qpn, qpn_of);
	rwk_hash_init(&port->by_target, target_of);
	rwk_hash_init(&port->by_nonce, nonce_of);
}

void rwk_packet_numbers_free(struct rwk_port *port)
{
	rwk_hash_free(&port->by_qpn);
	rwk_hash_free(&port->by_target);
	rwk_hash_free(&port->by_nonce);
}

void rwk_packet_name_add(struct rwk_packet_channel *ch)
{
	ch->named = rwk_packet_peer_nonce(ch);
	ch->port->unnamed += !ch->named;
	if (ch->named)
		rwk_hash_add(&ch->port->by_nonce, &ch->by_nonce);
}

void rwk_packet_name_remove(struct rwk_packet_channel *ch)
{
	ch->port->unnamed -= !ch->named;
	if (ch->named)
		rwk_hash_remove(&ch->port->by_nonce, &ch->by_nonce);
	ch->named = false;
}

/** From `l` on, in its list. */
static struct rwk_packet_channel *with_nonce(struct rwk_hash_link *l, uint64_t nonce)
{
	for (; l; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, by_nonce);

		if (rwk_packet_peer_nonce(ch) == nonce)
			return ch;
	}
	return NULL;
}

struct rwk_packet_channel *rwk_packet_by_nonce(const struct rwk_port *port, uint64_t nonce)
{
	return with_nonce(rwk_hash_list(&port->by_nonce, (uint32_t)nonce), nonce);
}

struct rwk_packet_channel *rwk_packet_next_by_nonce(const struct rwk_packet_channel *ch)
{
	return with_nonce(ch->by_nonce.next, rwk_packet_peer_nonce(ch));
}

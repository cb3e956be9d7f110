/* SPDX-License-Identifier: BSD-3-Clause */
/* Which channel has a QPN, a target or a nonce: numbers.c. */
#ifndef RWK_PACKET_NUMBERS_H
#define RWK_PACKET_NUMBERS_H

#include "packet/channel.h"
#include "packet/port.h"

static inline uint64_t rwk_packet_nonce(const struct rwk_address *a)
{
	return a->nonce_port >> 16;
}
/** Is that all that is known: where it is? */
static inline bool rwk_packet_is_partial(const struct rwk_address *a)
{
	return a->flags_rank & RWK_ADDR_PARTIAL;
}
/** The peer's nonce; 0: not known yet. */
static inline uint64_t rwk_packet_peer_nonce(const struct rwk_packet_channel *ch)
{
	return rwk_packet_is_partial(&ch->address) ? 0 : rwk_packet_nonce(&ch->address);
}

/** The channel that has that QPN; NULL: none has. */
static inline struct rwk_packet_channel *rwk_packet_by_qpn(const struct rwk_port *port, uint32_t qpn)
{
	for (struct rwk_hash_link *l = rwk_hash_list(&port->by_qpn, qpn); l; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, by_qpn);

		if (rwk_likely(ch->qpn == qpn))
			return ch;
	}
	return NULL;
}
/** The same by its target. */
static inline struct rwk_packet_channel *rwk_packet_by_target(const struct rwk_port *port, uint32_t target)
{
	for (struct rwk_hash_link *l = rwk_hash_list(&port->by_target, target); l; l = l->next) {
		struct rwk_packet_channel *ch = rwk_container_of(l, struct rwk_packet_channel, by_target);

		if (rwk_likely(ch->target == target))
			return ch;
	}
	return NULL;
}
/** The oldest channel whose peer has that nonce; NULL: none has, or it is not known. */
struct rwk_packet_channel *rwk_packet_by_nonce(const struct rwk_port *port, uint64_t nonce);
/** The next one with the same; NULL: none. */
struct rwk_packet_channel *rwk_packet_next_by_nonce(const struct rwk_packet_channel *ch);
/** The channel is found by its peer's nonce from now on, if that is known; else it is one of rwk_port.unnamed. */
void rwk_packet_name_add(struct rwk_packet_channel *ch);
void rwk_packet_name_remove(struct rwk_packet_channel *ch);
void rwk_packet_numbers_init(struct rwk_port *port);
void rwk_packet_numbers_free(struct rwk_port *port);

#endif

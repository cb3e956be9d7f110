/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which channel has a number: its QPN; with SRC, the number of the target that takes for it; its peer's nonce. QPNs and
 * nonces are drawn, and targets are numbered in turn from the lowest bits on (shared_rc), so the last bits tell channels
 * apart as they are. There are about as many lists as channels; each list goes on in rwk_packet_channel.next.
 */
#include "packet/internal.h"

#define FIRST 16u /* lists of a table when it gets its first channel */

static uint32_t number_of(const struct rwk_packet_channel *ch, enum rwk_packet_number kind)
{
	return kind == RWK_BY_NONCE ? (uint32_t)rwk_packet_peer_nonce(ch) : ch->number[kind];
}

static struct rwk_packet_channel **list_of(
	const struct rwk_packet_numbers *n, const struct rwk_packet_channel *ch, enum rwk_packet_number kind)
{
	return &n->first[number_of(ch, kind) & n->mask];
}

static void put(const struct rwk_packet_numbers *n, struct rwk_packet_channel *ch, enum rwk_packet_number kind)
{
	struct rwk_packet_channel **at = list_of(n, ch, kind);

	while (*at)
		at = &(*at)->next[kind];
	ch->next[kind] = NULL;
	*at = ch;
}

/** More lists; without memory for them those that there are become longer. */
static void grow(struct rwk_packet_numbers *n, enum rwk_packet_number kind)
{
	uint32_t lists = n->first ? 2 * (n->mask + 1) : FIRST;
	struct rwk_packet_numbers more = {.mask = lists - 1, .count = n->count};

	more.first = calloc(lists, sizeof(struct rwk_packet_channel *));
	if (!more.first)
		return;
	for (uint32_t i = 0; n->first && i <= n->mask; i++) {
		for (struct rwk_packet_channel *ch = n->first[i], *next; ch; ch = next) {
			next = ch->next[kind];
			put(&more, ch, kind);
		}
	}
	free(n->first);
	*n = more;
}

int rwk_packet_number_add(struct rwk_packet_channel *ch, enum rwk_packet_number kind)
{
	struct rwk_packet_numbers *n = &ch->port->numbers[kind];

	if (!n->first || n->count > n->mask)
		grow(n, kind);
	if (!n->first)
		return -ENOMEM;
	put(n, ch, kind);
	n->count++;
	return 0;
}

void rwk_packet_number_remove(struct rwk_packet_channel *ch, enum rwk_packet_number kind)
{
	struct rwk_packet_numbers *n = &ch->port->numbers[kind];
	struct rwk_packet_channel **at = list_of(n, ch, kind);

	while (*at != ch)
		at = &(*at)->next[kind];
	*at = ch->next[kind];
	n->count--;
}

int rwk_packet_name_add(struct rwk_packet_channel *ch)
{
	int rc = rwk_packet_peer_nonce(ch) ? rwk_packet_number_add(ch, RWK_BY_NONCE) : 0;

	ch->named = !rc && rwk_packet_peer_nonce(ch);
	ch->port->unnamed += !ch->named;
	return rc;
}

void rwk_packet_name_remove(struct rwk_packet_channel *ch)
{
	ch->port->unnamed -= !ch->named;
	if (ch->named)
		rwk_packet_number_remove(ch, RWK_BY_NONCE);
	ch->named = false;
}

/** From `ch` on, in its list. */
static struct rwk_packet_channel *with_nonce(struct rwk_packet_channel *ch, uint64_t nonce)
{
	while (ch && rwk_packet_peer_nonce(ch) != nonce)
		ch = ch->next[RWK_BY_NONCE];
	return ch;
}

struct rwk_packet_channel *rwk_packet_by_nonce(const struct rwk_port *port, uint64_t nonce)
{
	const struct rwk_packet_numbers *n = &port->numbers[RWK_BY_NONCE];

	return n->first ? with_nonce(n->first[(uint32_t)nonce & n->mask], nonce) : NULL;
}

struct rwk_packet_channel *rwk_packet_next_by_nonce(const struct rwk_packet_channel *ch)
{
	return with_nonce(ch->next[RWK_BY_NONCE], rwk_packet_peer_nonce(ch));
}

void rwk_packet_numbers_free(struct rwk_port *port)
{
	for (int kind = 0; kind < RWK_NUMBERS; kind++)
		free(port->numbers[kind].first);
}

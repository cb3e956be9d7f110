/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which channel has a number: its QPN or, with SRC, the number of the target that takes for it. QPNs are drawn, and
 * targets are numbered in turn from the lowest bits on (shared_rc), so the last bits tell channels apart as they are.
 * There are about as many lists as channels; each list goes on in rwk_packet_channel.next.
 */
#include "packet/internal.h"

#define FIRST 16u /* lists of a table when it gets its first channel */

static struct rwk_packet_channel **list_of(const struct rwk_packet_numbers *n, uint32_t number)
{
	return &n->first[number & n->mask];
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
			struct rwk_packet_channel **list = list_of(&more, ch->number[kind]);

			next = ch->next[kind];
			ch->next[kind] = *list;
			*list = ch;
		}
	}
	free(n->first);
	*n = more;
}

int rwk_packet_number_add(struct rwk_packet_channel *ch, enum rwk_packet_number kind)
{
	struct rwk_packet_numbers *n = &ch->port->numbers[kind];
	struct rwk_packet_channel **list;

	if (!n->first || n->count > n->mask)
		grow(n, kind);
	if (!n->first)
		return -ENOMEM;
	list = list_of(n, ch->number[kind]);
	ch->next[kind] = *list;
	*list = ch;
	n->count++;
	return 0;
}

void rwk_packet_number_remove(struct rwk_packet_channel *ch, enum rwk_packet_number kind)
{
	struct rwk_packet_numbers *n = &ch->port->numbers[kind];
	struct rwk_packet_channel **at = list_of(n, ch->number[kind]);

	while (*at != ch)
		at = &(*at)->next[kind];
	*at = ch->next[kind];
	n->count--;
}

void rwk_packet_numbers_free(struct rwk_port *port)
{
	for (int kind = 0; kind < RWK_NUMBERS; kind++)
		free(port->numbers[kind].first);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What FI_ROPEWALK_STATS tells of transfers: how much was copied, and in which ways what of which length was. */
#include "shm/transfer_area.h"

#include "base/param.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of all channels that have ended. */
struct rwk_shm_summary {
	struct rwk_shm_arrivals arrival;
	struct rwk_shm_choice read, direct[2];
};

void rwk_shm_summary_add(const struct rwk_shm_transfers *t)
{
	struct rwk_shm_summary *s = t->port->summary;

	if (!rwk_params.stats)
		return;
	if (!s)
		s = t->port->summary = calloc(1, sizeof(*s));
	if (!s)
		return;
	rwk_shm_arrival_add(&s->arrival, &t->arrival);
	rwk_shm_choice_add(&s->read, &t->pace.choice);
	for (int write = 0; write < 2; write++)
		rwk_shm_choice_add(&s->direct[write], &t->direct_pace[write].choice);
}

/* Each line of a table. */
static void print(unsigned rank, const char *what, char *table)
{
	char *rest = NULL;

	for (char *line = strtok_r(table, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		fprintf(stderr, "ropewalk: rank %u: %s on this node %s\n", rank, what, line);
}

static void print_choice(unsigned rank, const char *what, const struct rwk_shm_choice *c)
{
	char table[4096];

	rwk_shm_choice_print(c, table, sizeof(table));
	print(rank, what, table);
}

void rwk_shm_transfer_summary(struct rwk_port *port, unsigned rank)
{
	const struct rwk_shm_port_transfers *p = *rwk_shm_transfer_port_state(port);
	const struct rwk_shm_transfer_counts *n = rwk_shm_transfer_counters(port);
	char table[1024];

	if (n->pulled + n->pushed + n->fetched + n->written + n->staged + n->unstaged)
		fprintf(stderr,
			"ropewalk: rank %u: memory of this node: bytes copied for reads of its own %" PRIu64
			", writes %" PRIu64 ", for reads of peers %" PRIu64 ", writes %" PRIu64
			"; through shared memory out %" PRIu64 ", in %" PRIu64 "\n",
			rank, n->pulled, n->written, n->pushed, n->fetched, n->staged, n->unstaged);
	if (!p || !p->summary)
		return;
	rwk_shm_arrival_print(&p->summary->arrival, table, sizeof(table));
	print(rank, "messages", table);
	print_choice(rank, "messages fetched", &p->summary->read);
	print_choice(rank, "reads", &p->summary->direct[0]);
	print_choice(rank, "writes", &p->summary->direct[1]);
}

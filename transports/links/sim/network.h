/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the simulated network share. sim.c: the network, its nodes, what happens there; path.c: what
 * becomes of a packet on its way, and when it arrives; events.c: what is to happen, by time. (internal.h is of the
 * service on it.)
 */
#ifndef RWK_SIM_NETWORK_H
#define RWK_SIM_NETWORK_H

#include "base/list.h"
#include "links/sim/sim.h"

#include <stdlib.h>

enum event_kind { PACKET, GONE, ALARM };

struct event {
	struct rwk_list link; /* in the inbox, once it has happened */
	rwk_time at;
	uint64_t order;
	enum event_kind kind;
	uint32_t from, to;
	size_t len;
	uint8_t bytes[];
};

struct rule {
	struct rwk_list link;
	uint64_t number;
	enum rwk_sim_fate fate;
};

struct path {
	struct rwk_sim_path how;
	uint64_t sent;
	rwk_time last; /* arrival of the latest packet in order */
	struct rwk_list rules;
};

struct node {
	struct rwk_link pub;
	struct rwk_sim *sim;
	struct rwk_sim_hooks hooks;
	uint32_t number;
	uint32_t under_way; /* packets sent and not arrived */
	bool alive;
	struct rwk_list inbox;
	size_t waiting;      /* bytes of packets in it */
	struct path **paths; /* by the number of the other node; NULL: not used yet */
	uint32_t path_count;
};

struct rwk_sim {
	struct rwk_sim_attr attr;
	rwk_time now;
	uint64_t random;
	uint64_t order;
	uint64_t trace;
	struct rwk_sim_counts counts;
	struct rwk_list held; /* packets */
	unsigned held_count;
	bool hold;
	struct event **heap;
	size_t events, heap_size;
	struct node **nodes; /* number - 1 */
	uint32_t node_count;
};

/** A test cannot go on without memory. */
static inline void *rwk_sim_must(void *p)
{
	if (!p)
		abort();
	return p;
}

/** NULL: no such node. */
static inline struct node *rwk_sim_find(const struct rwk_sim *s, uint32_t number)
{
	return number && number <= s->node_count ? s->nodes[number - 1] : NULL;
}

/* events.c */
struct event *rwk_sim_event(enum event_kind kind, uint32_t from, uint32_t to, size_t len);
void rwk_sim_schedule(struct rwk_sim *s, struct event *e, rwk_time at);
struct event *rwk_sim_pop(struct rwk_sim *s); /* the next; NULL: nothing is to happen any more */

/* path.c */
struct path *rwk_sim_find_path(struct rwk_sim *s, uint32_t from, uint32_t to); /* made when it is first used */
enum rwk_sim_fate rwk_sim_decide(struct rwk_sim *s, struct path *p);           /* of the next packet */
rwk_time rwk_sim_arrival(struct rwk_sim *s, struct path *p, enum rwk_sim_fate fate);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths: what becomes of the packets from one node to another, by rule or by chance, and when they arrive. Chance is
 * the network's: one seed, the same answers.
 */
#include "links/sim/network.h"

#include "base/compiler.h"

#include <string.h>

#define MILLION 1000000u

/* splitmix64 */
static uint64_t next_random(struct rwk_sim *s)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t rwk_sim_random(struct rwk_sim *s, uint64_t bound)
{
	return bound ? next_random(s) % bound : 0;
}

static bool chance(struct rwk_sim *s, uint32_t parts)
{
	return parts && rwk_sim_random(s, MILLION) < parts;
}

struct path *rwk_sim_find_path(struct rwk_sim *s, uint32_t from, uint32_t to)
{
	struct node *n = rwk_sim_find(s, from);

	if (to >= n->path_count) {
		n->paths = rwk_sim_must(realloc(n->paths, (to + 1) * sizeof(*n->paths)));
		memset(n->paths + n->path_count, 0, (to + 1 - n->path_count) * sizeof(*n->paths));
		n->path_count = to + 1;
	}
	if (!n->paths[to]) {
		n->paths[to] = rwk_sim_must(calloc(1, sizeof(*n->paths[to])));
		n->paths[to]->how = s->attr.path;
		rwk_list_init(&n->paths[to]->rules);
	}
	return n->paths[to];
}

/* The fate that a rule has for the packet of that number. */
static enum rwk_sim_fate rule_for(struct path *p, uint64_t number)
{
	for (struct rwk_list *l = p->rules.next; l != &p->rules; l = l->next) {
		struct rule *r = rwk_container_of(l, struct rule, link);

		if (r->number == number) {
			enum rwk_sim_fate fate = r->fate;

			rwk_list_remove(&r->link);
			free(r);
			return fate;
		}
	}
	return RWK_SIM_PASS;
}

enum rwk_sim_fate rwk_sim_decide(struct rwk_sim *s, struct path *p)
{
	enum rwk_sim_fate fate = rule_for(p, ++p->sent);

	if (fate != RWK_SIM_PASS)
		return fate;
	if (chance(s, p->how.drop))
		return RWK_SIM_DROP;
	if (chance(s, p->how.duplicate))
		return RWK_SIM_DUPLICATE;
	if (chance(s, p->how.corrupt))
		return RWK_SIM_CORRUPT;
	return RWK_SIM_PASS;
}

rwk_time rwk_sim_arrival(struct rwk_sim *s, struct path *p, enum rwk_sim_fate fate)
{
	rwk_time at = s->now + p->how.delay + rwk_sim_random(s, p->how.jitter + 1);

	if (at < p->last)
		at = p->last;
	if (fate == RWK_SIM_DELAY || chance(s, p->how.reorder)) {
		s->counts.reordered++;
		return at + (fate == RWK_SIM_DELAY ? p->how.reorder_by : 1 + rwk_sim_random(s, p->how.reorder_by));
	}
	p->last = at;
	return at;
}

void rwk_sim_set_path(struct rwk_sim *s, uint32_t from, uint32_t to, const struct rwk_sim_path *path)
{
	rwk_sim_find_path(s, from, to)->how = *path;
}

void rwk_sim_set_paths(struct rwk_sim *s, const struct rwk_sim_path *path)
{
	s->attr.path = *path;
	for (uint32_t i = 0; i < s->node_count; i++)
		for (uint32_t j = 0; j < s->nodes[i]->path_count; j++)
			if (s->nodes[i]->paths[j])
				s->nodes[i]->paths[j]->how = *path;
}

void rwk_sim_rule(struct rwk_sim *s, uint32_t from, uint32_t to, uint64_t nth, enum rwk_sim_fate fate)
{
	struct path *p = rwk_sim_find_path(s, from, to);
	struct rule *r = rwk_sim_must(calloc(1, sizeof(*r)));

	r->number = p->sent + nth;
	r->fate = fate;
	rwk_list_append(&p->rules, &r->link);
}

uint64_t rwk_sim_sent(const struct rwk_sim *s, uint32_t from, uint32_t to)
{
	const struct node *n = rwk_sim_find(s, from);

	return n && to < n->path_count && n->paths[to] ? n->paths[to]->sent : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/rma_choice.h"

#define UNIT      (64u << 10) /* bytes */
#define RUN_BYTES (4u << 20)  /* a run without a pause is measured in parts of so much */
#define GAP_LEAST 8u
#define GAP_MOST  1024u

static enum rwk_rma_way faster(const struct rwk_rma_choice *c)
{
	return c->way[RWK_DIRECTLY].cost <= c->way[RWK_BY_MESSAGES].cost ? RWK_DIRECTLY : RWK_BY_MESSAGES;
}

enum rwk_rma_way rwk_rma_choose(struct rwk_rma_choice *c)
{
	if (!c->way[RWK_DIRECTLY].cost)
		return RWK_DIRECTLY;
	if (!c->way[RWK_BY_MESSAGES].cost)
		return RWK_BY_MESSAGES;
	if (c->trial_in) {
		c->trial_in--;
		return faster(c);
	}
	c->trial_gap = c->trial_gap < GAP_LEAST ? GAP_LEAST : c->trial_gap < GAP_MOST ? 2 * c->trial_gap : GAP_MOST;
	c->trial_in = c->trial_gap;
	return faster(c) == RWK_DIRECTLY ? RWK_BY_MESSAGES : RWK_DIRECTLY;
}

void rwk_rma_way_taken(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now)
{
	if (c->way[way].under_way++)
		return;
	c->way[way].since = now;
	c->way[way].bytes = 0;
}

/** A run, or a part of one, is over. */
static void measured(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now)
{
	uint64_t cost = (now - c->way[way].since) * UNIT / c->way[way].bytes + 1, before = c->way[way].cost;
	enum rwk_rma_way was = faster(c);

	/* What has become much faster is believed at once: else it would take a trial for each step down. */
	c->way[way].cost = before && cost > before / 2 ? (3 * before + cost) / 4 : cost;
	c->way[way].since = now;
	c->way[way].bytes = 0;
	if (faster(c) != was)
		c->trial_in = c->trial_gap = GAP_LEAST; /* something has changed, and may change back */
}

void rwk_rma_way_ended(struct rwk_rma_choice *c, enum rwk_rma_way way, size_t bytes, uint64_t now)
{
	c->way[way].bytes += bytes;
	if ((!--c->way[way].under_way || c->way[way].bytes >= RUN_BYTES) && c->way[way].bytes)
		measured(c, way, now);
}

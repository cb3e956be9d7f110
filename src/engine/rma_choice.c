/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/rma_choice.h"

#define UNIT        (64u << 10) /* bytes */
#define RUN_BYTES   (4u << 20)  /* a run without a pause is measured in parts of so much */
#define EACH        8u          /* direct runs, of which one is measured */
#define TRIAL       8u          /* requests at least, */
#define TRIAL_MOST  128u        /* and at most, if there is no pause before */
#define PAUSE_LEAST 16u         /* between two trials, as a multiple of the first one's requests */
#define PAUSE_MOST  1024u
#define PATIENCE    1024u       /* requests that a trial waits for those of the other way to end */
#define DEAR        4u          /* times the other way's cost: enough is known */

static enum rwk_rma_way faster(const struct rwk_rma_choice *c)
{
	return c->way[RWK_DIRECTLY].cost <= c->way[RWK_BY_MESSAGES].cost ? RWK_DIRECTLY : RWK_BY_MESSAGES;
}

static enum rwk_rma_way other_than(enum rwk_rma_way way)
{
	return way == RWK_DIRECTLY ? RWK_BY_MESSAGES : RWK_DIRECTLY;
}

static enum rwk_rma_way trial_begin(struct rwk_rma_choice *c, enum rwk_rma_way way)
{
	c->trial = way;
	c->trial_taken = 1;
	c->late = 0;
	return way;
}

static bool trial_goes_on(const struct rwk_rma_choice *c)
{
	uint64_t cost = c->way[c->trial].cost, other = c->way[other_than(c->trial)].cost;

	if (other && cost > DEAR * other)
		return false;
	return c->trial_taken < TRIAL || (c->way[c->trial].under_way && c->trial_taken < TRIAL_MOST);
}

static void trial_end(struct rwk_rma_choice *c)
{
	c->pause = c->pause < PAUSE_LEAST ? PAUSE_LEAST : c->pause < PAUSE_MOST ? 2 * c->pause : PAUSE_MOST;
	c->trial_in = c->pause * c->trial_taken;
	c->trial_taken = 0;
}

enum rwk_rma_way rwk_rma_choose(struct rwk_rma_choice *c)
{
	if (c->trial_taken && trial_goes_on(c)) {
		c->trial_taken++;
		return c->trial;
	}
	if (c->trial_taken)
		trial_end(c);
	if (!c->way[RWK_DIRECTLY].cost)
		return trial_begin(c, RWK_DIRECTLY);
	if (!c->way[RWK_BY_MESSAGES].cost)
		return trial_begin(c, RWK_BY_MESSAGES);
	if (c->trial_in) {
		c->trial_in--;
		return faster(c);
	}
	if (c->way[faster(c)].under_way && c->late++ < PATIENCE)
		return faster(c);
	return trial_begin(c, other_than(faster(c)));
}

bool rwk_rma_way_begins(struct rwk_rma_choice *c, enum rwk_rma_way way)
{
	if (c->way[way].under_way)
		return false;
	return way == RWK_BY_MESSAGES || c->trial_taken || c->runs++ % EACH == 0;
}

void rwk_rma_way_taken(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now)
{
	if (c->way[way].under_way++)
		return;
	c->way[way].since = now;
	c->way[way].bytes = 0;
}

/**
 * A run, or a part of one, is over. One that is slow alone says nothing: a clock's tick, or another process, has
 * interrupted it, hundreds of times a second. So the shorter of the last two counts.
 */
static void measured(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now)
{
	uint64_t whole = (now - c->way[way].since) * UNIT / c->way[way].bytes + 1, last = c->way[way].last;
	uint64_t cost = last && last < whole ? last : whole, before = c->way[way].cost;
	enum rwk_rma_way was = faster(c);

	c->way[way].last = whole;
	/* What has become much faster is believed at once: else it would take a trial for each step down. */
	c->way[way].cost = before && cost > before / 2 ? (3 * before + cost) / 4 : cost;
	c->way[way].since = now;
	c->way[way].bytes = 0;
	if (faster(c) != was) { /* something has changed, and may change back */
		c->pause = 0;
		c->trial_in = c->trial_in < PAUSE_LEAST * TRIAL ? c->trial_in : PAUSE_LEAST * TRIAL;
	}
}

bool rwk_rma_way_ends(const struct rwk_rma_choice *c, enum rwk_rma_way way, size_t bytes)
{
	return (c->way[way].since && c->way[way].under_way == 1) || c->way[way].bytes + bytes >= RUN_BYTES;
}

void rwk_rma_way_ended(struct rwk_rma_choice *c, enum rwk_rma_way way, size_t bytes, uint64_t now)
{
	bool last = !--c->way[way].under_way;

	c->way[way].bytes += bytes;
	if (!c->way[way].bytes || (!last && c->way[way].bytes < RUN_BYTES))
		return;
	if (c->way[way].since) {
		measured(c, way, now);
	} else { /* its next part is */
		c->way[way].since = now;
		c->way[way].bytes = 0;
	}
}

bool rwk_rma_goes_directly(const struct rwk_rma_choice *c)
{
	if (c->way[RWK_DIRECTLY].under_way)
		return false;
	if (c->trial_taken)
		return c->trial == RWK_DIRECTLY && trial_goes_on(c);
	return c->trial_in && c->way[RWK_DIRECTLY].cost && faster(c) == RWK_DIRECTLY;
}

bool rwk_rma_is_measured(const struct rwk_rma_choice *c)
{
	return c->trial_taken || c->runs % EACH == 0;
}

void rwk_rma_went_directly(struct rwk_rma_choice *c, size_t bytes, uint64_t begun, uint64_t now)
{
	if (c->trial_taken) {
		c->trial_taken++;
	} else {
		c->trial_in--;
		c->runs++;
	}
	if (!begun)
		return;
	c->way[RWK_DIRECTLY].since = begun;
	c->way[RWK_DIRECTLY].bytes = bytes;
	c->alone = now - begun + 1;
}

void rwk_rma_next(struct rwk_rma_choice *c, bool behind, uint64_t now)
{
	measured(c, RWK_DIRECTLY, behind ? now : c->way[RWK_DIRECTLY].since + c->alone);
	c->alone = 0;
}

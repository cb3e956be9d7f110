/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much credit a peer has (src/engine/credit.c): more, if it lacks some while its messages are awaited; no more than
 * before, once they have had to wait; bounded for one peer and for all together.
 */
#include "engine/world.h"

#include <stdlib.h>

/* As many messages as four times the credit allows take 112,800 bytes of it, and twice as many do not fit. */
enum { COUNT = 200, TWICE = 2 * COUNT, LENGTH = 500, CREDIT = 32 << 10, TAG = 5, SENDERS = WORLD_MAX - 1 };

static unsigned char out[TWICE][LENGTH], in[TWICE][LENGTH];
static struct task sent[SENDERS + 1][TWICE], got[TWICE];
static uint32_t flags; /* of what is sent */

static uint64_t kept(struct world *w)
{
	return rwk_engine_counters(w->e[0])->unexpected_bytes_now;
}

static void post(struct world *w, unsigned from, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		got[i] = (struct task){0};
		assert_int_equal(world_recv(w, 0, from, RWK_TAGGED, in[i], LENGTH, TAG, 0, 0, &got[i]), 0);
	}
}

static void start(struct world *w, unsigned from, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		sent[from][i] = (struct task){0};
		world_fill(out[i], LENGTH, i);
		assert_int_equal(world_send(w, from, 0, RWK_TAGGED, out[i], LENGTH, TAG, flags, &sent[from][i]), 0);
	}
}

static void finish(struct world *w, unsigned from, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		world_wait(w, &got[i]);
		world_wait(w, &sent[from][i]);
		assert_int_equal(got[i].c.status, 0);
		world_check(in[i], LENGTH, i);
	}
	world_settle(w);
}

/* So many messages at once whose receives are posted: how many of them had no credit. */
static unsigned awaited(struct world *w, unsigned from, unsigned count)
{
	const struct rwk_engine_counters *c = rwk_engine_counters(w->e[from]);
	uint64_t before = c->sent_rendezvous;

	post(w, from, count);
	start(w, from, count);
	finish(w, from, count);
	return (unsigned)(c->sent_rendezvous - before);
}

/* So often that who can have more credit has it. */
static void grow(struct world *w, unsigned from)
{
	for (unsigned i = 0; i < 4; i++)
		awaited(w, from, TWICE);
}

static void receive_kept(struct world *w, unsigned from)
{
	post(w, from, TWICE);
	finish(w, from, TWICE);
	assert_int_equal(kept(w), 0);
}

static void open_world(struct world *w, const void *transport, unsigned senders)
{
	world_open(w, &(struct world_attr){.transport = transport, .count = senders + 1, .eager_credit = CREDIT});
}

static void grows(void **state)
{
	struct world w;

	open_world(&w, *state, 1);
	assert_in_range(awaited(&w, 1, COUNT), COUNT / 2, COUNT);
	grow(&w, 1);
	assert_int_equal(awaited(&w, 1, COUNT), 0);
	world_close(&w);
}

/* Of messages, too, whose senders wait for the match. */
static void grows_matched(void **state)
{
	flags = RWK_F_MATCHED;
	grows(state);
	flags = 0;
}

/* What is kept because of it is bounded, and comes once: who is not awaited has what it began with. */
static void is_taken_back(void **state)
{
	struct world w;

	open_world(&w, *state, 1);
	grow(&w, 1);
	start(&w, 1, TWICE);
	world_settle(&w);
	assert_in_range(kept(&w), 2 * CREDIT, 4 * CREDIT);
	receive_kept(&w, 1);
	start(&w, 1, TWICE);
	world_settle(&w);
	assert_in_range(kept(&w), CREDIT / 2, CREDIT);
	receive_kept(&w, 1);
	assert_in_range(awaited(&w, 1, COUNT), COUNT / 2, COUNT);
	world_close(&w);
}

/* All together are given no more than sixteen times what one begins with, though each grows. */
static void is_bounded(void **state)
{
	struct world w;

	open_world(&w, *state, SENDERS);
	for (unsigned i = 1; i <= SENDERS; i++)
		grow(&w, i);
	for (unsigned i = 1; i <= SENDERS; i++)
		start(&w, i, TWICE);
	world_settle(&w);
	assert_in_range(kept(&w), 15 * CREDIT, (16 + SENDERS) * CREDIT);
	for (unsigned i = 1; i <= SENDERS; i++) {
		post(&w, i, TWICE);
		finish(&w, i, TWICE);
	}
	assert_int_equal(kept(&w), 0);
	world_close(&w);
}

/* What the dead had others may have. */
static void is_inherited(void **state)
{
	struct world w;

	open_world(&w, *state, SENDERS);
	for (unsigned i = 1; i <= SENDERS; i++)
		grow(&w, i);
	assert_true(awaited(&w, SENDERS, COUNT) > 0);
	world_kill(&w, 1);
	world_settle(&w);
	grow(&w, SENDERS);
	assert_int_equal(awaited(&w, SENDERS, COUNT), 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(grows),
		WORLD_EACH(grows_matched),
		WORLD_EACH(is_taken_back),
		WORLD_EACH(is_bounded),
		WORLD_EACH(is_inherited),
	};

	setenv("FI_ROPEWALK_CMA", "off", 1); /* what is copied across is not sent late, whatever the credit */
	return cmocka_run_group_tests_name("engine credit", tests, NULL, NULL);
}

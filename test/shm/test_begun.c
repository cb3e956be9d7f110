/* SPDX-License-Identifier: BSD-3-Clause */
/* Of messages in pieces the sender tells now and then when they were begun, so that their receiver can measure them. */
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"
#include "shm/transfer_state.h"

#define LONG (24u << 10)

struct pair {
	struct end *from, *to;
	struct end_peer *there, *here;
};

static void push(struct pair *x, size_t len)
{
	uint64_t goal = x->here->received + 1;

	assert_int_equal(end_send(x->from, x->there, len, 0, false), 0);
	assert_true(turn_both(x->from, x->to, &x->here->received, goal));
}

static void answer(struct pair *x)
{
	uint64_t goal = x->there->received + 1;

	assert_int_equal(end_send(x->to, x->here, 8, 0, false), 0);
	assert_true(turn_both(x->from, x->to, &x->there->received, goal));
}

static void connect_pair(struct pair *x)
{
	x->from = end_open(0, false);
	x->to = end_open(0, false);
	x->there = end_meet(x->from, x->to);
	x->here = &x->to->peer[0];
	answer(x);
}

static void close_pair(struct pair *x)
{
	assert_int_equal(x->from->wrong + x->to->wrong, 0);
	end_close(x->from);
	end_close(x->to);
}

/* Messages in pieces of which the sender may tell when they were begun; of some it does. */
static uint32_t told_of(const struct pair *x)
{
	return rwk_shm_channel(x->there->ch)->in_pieces[rwk_fetched_class(LONG)];
}

/* Does their receiver take them for a stream, in which nothing goes back? */
static bool is_stream(const struct pair *x)
{
	return rwk_shm_transfers_of(rwk_shm_channel(x->here->ch))->arrival.class[rwk_fetched_class(LONG)].silence;
}

static void answered(void **state)
{
	struct pair x;

	(void)state;
	connect_pair(&x);
	for (uint32_t i = 1; i <= 60; i++) {
		push(&x, LONG);
		answer(&x);
		assert_int_equal(told_of(&x), i);
	}
	assert_false(is_stream(&x));
	close_pair(&x);
}

/* As the head of a message, or what says that another one has come, goes before it: at first. */
static void behind_short_ones(void **state)
{
	struct pair x;

	(void)state;
	connect_pair(&x);
	for (uint32_t i = 1; i <= 60; i++) {
		push(&x, 8);
		push(&x, 100);
		push(&x, LONG);
		answer(&x);
		assert_int_equal(told_of(&x), i < 40 ? i : 40);
	}
	close_pair(&x);
}

/* There is no answer that could come late. */
static void stream(void **state)
{
	struct pair x;

	(void)state;
	connect_pair(&x);
	for (unsigned i = 0; i < 100; i++)
		push(&x, LONG);
	assert_in_range(told_of(&x), 40, 60); /* now and then slabs come back, which is something that has come */
	assert_true(is_stream(&x));
	close_pair(&x);
}

static void give_back(
	struct end *e, struct end_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	(void)env, (void)payload;
	if (len == LONG)
		assert_int_equal(end_send(e, p, 8, 0, false), 0);
}

/* What goes back from within the upcall is credit: nobody's answer. */
static void credited(void **state)
{
	struct pair x;

	(void)state;
	connect_pair(&x);
	x.to->seen = give_back;
	for (unsigned i = 0; i < 100; i++)
		push(&x, LONG);
	assert_true(is_stream(&x));
	close_pair(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answered),
		cmocka_unit_test(behind_short_ones),
		cmocka_unit_test(stream),
		cmocka_unit_test(credited),
	};

	return cmocka_run_group_tests_name("shm/begun", tests, NULL, NULL);
}

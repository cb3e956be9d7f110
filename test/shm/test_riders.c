/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two short messages in one line: which of them share one, and that the second is found whenever it comes, once and in
 * order, whatever its receiver has looked at before. Two ports of this process, turned by hand.
 */
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"

struct pair {
	struct end *a, *b;
	struct end_peer *p;
};

static uint64_t lines_of(const struct end_peer *p)
{
	struct rwk_shm_channel_counters count;

	rwk_shm_channel_counters(p->ch, &count);
	return count.lines_sent;
}

/* Everything that b does afterwards, it does when it is told to. */
static struct pair pair_open(void)
{
	struct pair c = {.a = end_open(0, false), .b = end_open(0, false)};

	c.p = end_meet(c.a, c.b);
	all_there(c.a, c.p, c.b);
	return c;
}

static void pair_close(struct pair *c)
{
	end_close(c->a);
	end_close(c->b);
}

static void push(const struct pair *c, size_t len, uint8_t flags)
{
	assert_int_equal(end_send(c->a, c->p, len, flags, false), 0);
}

/* Of a stream each two that are short enough share a line; its first message had one of its own. */
static void two_in_a_line(void **state)
{
	struct pair c = pair_open();

	(void)state;
	for (unsigned data = 0; data < 2; data++) {
		size_t most = data ? RWK_SHM_RIDER_DATA : RWK_SHM_RIDER;

		for (size_t len = 0; len <= RWK_SHM_BODY_DATA; len++) {
			uint64_t before = lines_of(c.p), lines;

			for (int i = 0; i < 20; i++)
				push(&c, len, data ? RWK_ENV_DATA : 0);
			lines = lines_of(c.p) - before;
			/* Where the ring is looked at for room one goes alone, or a record that it grows. */
			if (len <= most)
				assert_in_range(lines, 10, 11);
			else
				assert_in_range(lines, 20, 21);
			all_there(c.a, c.p, c.b);
		}
	}
	pair_close(&c);
}

/* What may be answered has a line of its own, so that nobody looks for a second message in it. */
static void each_its_own(void **state)
{
	struct pair c = pair_open();
	uint64_t before = lines_of(c.p);

	(void)state;
	for (unsigned i = 1; i <= 200; i++) {
		push(&c, 8, 0);
		all_there(c.a, c.p, c.b);
		assert_int_equal(end_send(c.b, &c.b->peer[0], 8, 0, false), 0);
		assert_true(turn_both(c.a, c.b, &c.p->received, i));
	}
	/* The first one came behind the one that connected. */
	assert_int_equal(lines_of(c.p) - before, 200);
	assert_false(rwk_shm_channel(c.b->peer[0].ch)->rx.open);
	pair_close(&c);
}

/* Sends until a line has room for another message, and has b send one. */
static void leave_room(const struct pair *c)
{
	while (!rwk_shm_channel(c->p->ch)->tx.open)
		push(c, 8, 0);
	all_there(c->a, c->p, c->b);
	assert_int_equal(end_send(c->b, &c->b->peer[0], 8, 0, false), 0);
}

/* Nor does it share one with what was sent before the question, also if it is sent from within the upcall. */
static void not_with_a_question(void **state)
{
	struct pair c = pair_open();
	uint64_t before;

	(void)state;
	leave_room(&c);
	assert_true(turn_both(c.a, c.b, &c.p->received, 1));
	before = lines_of(c.p);
	push(&c, 8, 0);
	assert_int_equal(lines_of(c.p) - before, 1);
	all_there(c.a, c.p, c.b);

	leave_room(&c);
	before = lines_of(c.p);
	c.a->echo = true;
	assert_true(turn_both(c.a, c.b, &c.p->received, 2));
	assert_int_equal(lines_of(c.p) - before, 1);
	all_there(c.a, c.p, c.b);
	pair_close(&c);
}

/* As if so many lines had come and gone that stamps begin again soon. */
static void skip_stamps(const struct pair *c)
{
	struct rwk_shm_channel *a = rwk_shm_channel(c->p->ch), *b = rwk_shm_channel(c->b->peer[0].ch);
	uint32_t skip = 0u - 1000 * RWK_SHM_STAMP_STEP;

	a->tx.stamp += skip;
	b->rx.stamp += skip;
	*b->rx.consumed += skip;
}

/*
 * Every sequence of short and longer messages, with every choice of places where the receiver looks in between, at
 * every place of the ring.
 */
static void whenever_it_looks(void **state)
{
	enum { MESSAGES = 7, CHOICES = 1 << MESSAGES };
	static const size_t longer[] = {RWK_SHM_RIDER + 1, RWK_SHM_BODY + 1, 300}; /* a line, two, a slab */
	struct pair c = pair_open();

	(void)state;
	skip_stamps(&c);
	for (unsigned shorts = 0; shorts < CHOICES; shorts++) {
		for (unsigned looks = 0; looks < CHOICES; looks++) {
			for (unsigned i = 0; i < MESSAGES; i++) {
				size_t len = shorts >> i & 1 ? i : longer[i % 3];

				assert_int_equal(end_send(c.a, c.p, len, 0, true), 0);
				if (looks >> i & 1)
					rwk_shm_transport.progress(c.b->port);
			}
			all_there(c.a, c.p, c.b);
		}
	}
	assert_int_equal(c.b->peer[0].received, 1 + (uint64_t)CHOICES * CHOICES * MESSAGES);
	pair_close(&c);
}

/* A ring that stays as short as it is at first. */
static struct pair short_open(void)
{
	size_t was = rwk_params.ring_lines;
	struct pair c;

	rwk_params.ring_lines = RWK_SHM_RING_MIN;
	c = pair_open();
	rwk_params.ring_lines = was;
	return c;
}

/*
 * The receiver has read the first message of a line and then looks no more, at each line of the ring: the second comes,
 * and as many after it as there is room for. The line is not written again before it has read the second.
 */
static void not_overwritten(void **state)
{
	struct pair c = short_open();

	(void)state;
	for (unsigned i = 0; i < 4 * RWK_SHM_RING_MIN + 1; i++) {
		for (unsigned k = 0; k <= i % (RWK_SHM_RING_MIN / 4); k++)
			push(&c, RWK_SHM_RIDER + 1, 0);
		push(&c, 8, 0);
		all_there(c.a, c.p, c.b);
		push(&c, 8, 0);
		while (!end_send(c.a, c.p, RWK_SHM_BODY, 0, false))
			;
		all_there(c.a, c.p, c.b);
	}
	pair_close(&c);
}

static uint32_t in_flight(const struct pair *c)
{
	const struct rwk_shm_tx *tx = &rwk_shm_channel(c->p->ch)->tx;

	return (tx->stamp - *tx->consumed) / RWK_SHM_STAMP_STEP;
}

/* The last line there was has room for another, but the writer has been at the start of the ring to look for more. */
static void full_ring(void **state)
{
	struct pair c = short_open();

	(void)state;
	for (unsigned i = 0; i < RWK_SHM_RING_MIN; i++) {
		push(&c, RWK_SHM_BODY, 0); /* from round to round a line further */
		all_there(c.a, c.p, c.b);
		while (in_flight(&c) < RWK_SHM_RING_MIN - 1)
			push(&c, RWK_SHM_BODY, 0);
		push(&c, 8, 0);
		assert_int_equal(end_send(c.a, c.p, RWK_SHM_BODY, 0, false), -EAGAIN);
		end_send(c.a, c.p, 8, 0, false);
		all_there(c.a, c.p, c.b);
	}
	pair_close(&c);
}

/* What lay in the other half a lap before is not taken for a message, though it looks like one of this lap. */
static void not_what_lay_there(void **state)
{
	struct pair c = short_open();
	struct rwk_shm_channel *ch = rwk_shm_channel(c.p->ch);
	const struct rwk_envelope env = {.kind = 1};
	uint64_t sent = c.p->sent;

	(void)state;
	c.b->tolerant = true;
	for (unsigned i = 0; i < 4 * RWK_SHM_RING_MIN; i++) {
		uint64_t body[RWK_SHM_BODY / 8] = {0};

		body[2] = ch->tx.stamp + RWK_SHM_RING_MIN * RWK_SHM_STAMP_STEP; /* where a rider's word would lie */
		assert_int_equal(
			rwk_shm_transport.send(c.p->ch, &env, body, i / RWK_SHM_RING_MIN % 2 ? 8 : sizeof(body)), 0);
		assert_true(turn_both(c.a, c.b, &c.b->peer[0].received, ++sent));
		ch->tx.open = false; /* one a line: the other half stays empty */
	}
	for (int i = 0; i < 1000; i++)
		rwk_shm_transport.progress(c.b->port);
	assert_int_equal(c.b->peer[0].received, sent);
	pair_close(&c);
}

/* One that has come by the time its sender ends is delivered with the rest. */
static void last_words(void **state)
{
	struct pair c = pair_open();

	(void)state;
	for (int i = 0; i < 3; i++)
		push(&c, 8, 0);
	end_close(c.a);
	assert_true(end_until_failed(c.b, &c.b->peer[0], 10000));
	assert_int_equal(c.b->peer[0].received, 4);
	assert_int_equal(c.b->wrong, 0);
	end_close(c.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_in_a_line),
		cmocka_unit_test(each_its_own),
		cmocka_unit_test(not_with_a_question),
		cmocka_unit_test(whenever_it_looks),
		cmocka_unit_test(not_overwritten),
		cmocka_unit_test(full_ring),
		cmocka_unit_test(not_what_lay_there),
		cmocka_unit_test(last_words),
	};

	return cmocka_run_group_tests_name("shm/riders", tests, NULL, NULL);
}

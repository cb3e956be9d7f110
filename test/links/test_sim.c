/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated network: the same seed gives the same packets, rules hit the packet they name, time is what the paths
 * say.
 */
#include "rwk_test.h"

#include "links/sim/sim.h"

#define GOT_MAX 20000

struct end {
	struct rwk_link *link;
	struct rwk_sim *sim;
	unsigned count, gone, wakes;
	uint32_t got[GOT_MAX];
	rwk_time at[GOT_MAX];
	uint32_t who_is_gone;
};

static void on_packet(void *user, const struct rwk_link_address *from, const void *bytes, size_t len)
{
	struct end *e = user;

	(void)from;
	assert_int_equal(len, sizeof(uint32_t));
	assert_true(e->count < GOT_MAX);
	memcpy(&e->got[e->count], bytes, sizeof(uint32_t));
	e->at[e->count++] = rwk_sim_now(e->sim);
}

static void on_gone(void *user, const struct rwk_link_address *who)
{
	struct end *e = user;

	e->gone++;
	e->who_is_gone = rwk_sim_address_number(who);
}

static void on_wake(void *user)
{
	((struct end *)user)->wakes++;
}

static struct end *open_end(struct rwk_sim *s)
{
	struct end *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->sim = s;
	assert_int_equal(rwk_sim_node(s, &e->link), 0);
	e->link->packet = on_packet;
	e->link->user = e;
	rwk_sim_set_hooks(e->link, &(struct rwk_sim_hooks){.gone = on_gone, .wake = on_wake});
	return e;
}

static void close_end(struct end *e)
{
	e->link->ops->close(e->link);
	free(e);
}

static int put(struct end *from, struct end *to, uint32_t value)
{
	struct rwk_link_address a = rwk_sim_address(rwk_sim_number(to->link));
	struct iovec iov = {&value, sizeof(value)};

	return from->link->ops->send(from->link, &a, &iov, 1);
}

/* Lets all happen, and both ends take what has come at the time that it came. */
static void settle(struct rwk_sim *s, struct end *a, struct end *b)
{
	do {
		a->link->ops->progress(a->link, GOT_MAX);
		b->link->ops->progress(b->link, GOT_MAX);
	} while (rwk_sim_step(s));
}

static struct rwk_sim *open_sim(const struct rwk_sim_attr *attr)
{
	struct rwk_sim *s;

	assert_int_equal(rwk_sim_open(attr, &s), 0);
	return s;
}

static const struct rwk_sim_attr still = {
	.seed = 1, .mtu = 512, .word = 50000, .path = {.delay = 1000, .reorder_by = 5000}};

static uint64_t run_lossy(uint64_t seed, struct rwk_sim_counts *counts)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;
	struct rwk_sim *s;
	struct end *a, *b;
	uint64_t trace;

	attr.seed = seed;
	attr.path.drop = attr.path.duplicate = attr.path.corrupt = attr.path.reorder = 100000;
	s = open_sim(&attr);
	a = open_end(s);
	b = open_end(s);
	for (uint32_t i = 0; i < 10000; i++) {
		assert_int_equal(put(a, b, i), 0);
		if (i % 3 == 0)
			assert_int_equal(put(b, a, i), 0);
		rwk_sim_run_until(s, rwk_sim_now(s) + rwk_sim_random(s, 500));
	}
	settle(s, a, b);
	*counts = *rwk_sim_counts(s);
	assert_int_equal(a->count + b->count, counts->delivered);
	trace = rwk_sim_trace(s);
	for (uint32_t i = 0; i < b->count; i++)
		trace = trace * 31 + b->got[i] + b->at[i];
	close_end(a);
	close_end(b);
	rwk_sim_close(s);
	return trace;
}

/* The same seed gives the same packets at the same times with the same faults; another seed others. */
static void determinism(void **state)
{
	struct rwk_sim_counts first, again, other;
	uint64_t trace = run_lossy(7, &first);

	(void)state;
	assert_int_equal(run_lossy(7, &again), trace);
	assert_memory_equal(&first, &again, sizeof(first));
	assert_int_not_equal(run_lossy(8, &other), trace);
}

/* A chance of one in ten is met about once in ten; nothing is lost or doubled beyond what is counted. */
static void chances(void **state)
{
	struct rwk_sim_counts c;

	(void)state;
	run_lossy(3, &c);
	assert_int_equal(c.delivered, c.sent - c.dropped + c.duplicated);
	assert_in_range(c.dropped, c.sent / 13, c.sent / 8);
	assert_in_range(c.duplicated, c.sent / 14, c.sent / 8);
	assert_in_range(c.corrupted, c.sent / 16, c.sent / 8);
	assert_in_range(c.reordered, c.sent / 13, c.sent / 8);
}

/* A rule hits the packet it names on the path it names, and no other. */
static void rules(void **state)
{
	static const struct {
		enum rwk_sim_fate fate;
		unsigned count;
		uint32_t got[6];
	} cases[] = {
		{RWK_SIM_DROP, 4, {0, 1, 3, 4}},
		{RWK_SIM_DUPLICATE, 6, {0, 1, 2, 2, 3, 4}},
		{RWK_SIM_DELAY, 5, {0, 1, 3, 4, 2}},
		{RWK_SIM_PASS, 5, {0, 1, 2, 3, 4}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_sim *s = open_sim(&still);
		struct end *a = open_end(s), *b = open_end(s);

		assert_int_equal(put(a, b, 77), 0); /* numbers count from the rule's making */
		rwk_sim_rule(s, 1, 2, 3, cases[i].fate);
		for (uint32_t n = 0; n < 5; n++) {
			assert_int_equal(put(a, b, n), 0);
			assert_int_equal(put(b, a, n), 0);
		}
		settle(s, a, b);
		assert_int_equal(b->count, 1 + cases[i].count);
		assert_memory_equal(b->got + 1, cases[i].got, cases[i].count * sizeof(uint32_t));
		assert_int_equal(a->count, 5);
		assert_int_equal(rwk_sim_sent(s, 1, 2), 6);
		close_end(a);
		close_end(b);
		rwk_sim_close(s);
	}
}

/* A corrupt packet differs in one bit. */
static void corruption(void **state)
{
	struct rwk_sim *s = open_sim(&still);
	struct end *a = open_end(s), *b = open_end(s);

	(void)state;
	rwk_sim_rule(s, 1, 2, 1, RWK_SIM_CORRUPT);
	assert_int_equal(put(a, b, 0x55aa00ff), 0);
	settle(s, a, b);
	assert_int_equal(b->count, 1);
	assert_int_equal(__builtin_popcount(b->got[0] ^ 0x55aa00ff), 1);
	close_end(a);
	close_end(b);
	rwk_sim_close(s);
}

/* A packet arrives after the path's delay; the clock goes where run_until says, and no further than events in between.
 */
static void virtual_time(void **state)
{
	struct rwk_sim *s = open_sim(&still);
	struct end *a = open_end(s), *b = open_end(s);
	struct rwk_sim_path slow = {.delay = 1000000};

	(void)state;
	rwk_sim_set_path(s, 2, 1, &slow);
	assert_int_equal(put(a, b, 1), 0);
	assert_int_equal(put(b, a, 2), 0);
	rwk_sim_run_until(s, 999);
	assert_int_equal(rwk_sim_now(s), 999);
	assert_false(rwk_sim_waiting(b->link));
	rwk_sim_run_until(s, 1000);
	assert_true(rwk_sim_waiting(b->link));
	assert_int_equal(b->wakes, 1);
	rwk_sim_alarm(b->link, 5000);
	assert_true(rwk_sim_step(s));
	assert_int_equal(b->link->ops->now(b->link), 5000);
	assert_int_equal(b->wakes, 2);
	assert_true(rwk_sim_step(s));
	assert_int_equal(rwk_sim_now(s), 1000000);
	assert_false(rwk_sim_step(s));
	assert_int_equal(a->link->ops->progress(a->link, 1), 1);
	assert_int_equal(a->got[0], 2);
	close_end(a);
	close_end(b);
	rwk_sim_close(s);
}

/* Jitter spreads arrivals and overtakes nothing; reordering overtakes. */
static void jitter_and_order(void **state)
{
	(void)state;
	for (int reorder = 0; reorder < 2; reorder++) {
		struct rwk_sim_attr attr = still;
		struct rwk_sim *s;
		struct end *a, *b;
		unsigned overtaken = 0, spread = 0;

		attr.path.jitter = 3000;
		attr.path.reorder = reorder ? 200000 : 0;
		s = open_sim(&attr);
		a = open_end(s);
		b = open_end(s);
		for (uint32_t n = 0; n < 200; n++) {
			assert_int_equal(put(a, b, n), 0);
			rwk_sim_run_until(s, rwk_sim_now(s) + 1000);
			b->link->ops->progress(b->link, GOT_MAX);
		}
		settle(s, a, b);
		assert_int_equal(b->count, 200);
		for (unsigned i = 1; i < b->count; i++) {
			overtaken += b->got[i] < b->got[i - 1];
			spread += b->at[i] - b->at[i - 1] != 1000;
		}
		assert_true(spread > 50);
		assert_int_equal(overtaken > 0, reorder);
		close_end(a);
		close_end(b);
		rwk_sim_close(s);
	}
}

/*
 * Room is counted in packets under way: beyond it -EAGAIN, an arrival makes some; a packet larger than the mtu is
 * refused.
 */
static void limits(void **state)
{
	struct rwk_sim_attr attr = still;
	struct rwk_sim *s;
	struct end *a, *b;
	uint8_t big[513];
	struct iovec iov = {big, sizeof(big)};
	struct rwk_link_address to = rwk_sim_address(2);

	(void)state;
	attr.room = 2;
	s = open_sim(&attr);
	a = open_end(s);
	b = open_end(s);
	assert_int_equal(a->link->ops->mtu(a->link, &to), 512);
	assert_int_equal(a->link->ops->send(a->link, &to, &iov, 1), -EMSGSIZE);
	assert_int_equal(put(a, b, 1), 0);
	assert_int_equal(put(a, b, 2), 0);
	assert_int_equal(put(a, b, 3), -EAGAIN);
	assert_int_equal(put(b, a, 1), 0);
	assert_true(rwk_sim_step(s));
	assert_int_equal(put(a, b, 3), 0);
	settle(s, a, b);
	assert_int_equal(b->count, 3);
	close_end(a);
	close_end(b);
	rwk_sim_close(s);
}

/*
 * A death loses the inbox, spares what is under way, and is told to all after `word`; who sends to the dead hears it,
 * too.
 */
static void death(void **state)
{
	struct rwk_sim *s = open_sim(&still);
	struct end *a = open_end(s), *b = open_end(s), *c;

	(void)state;
	assert_int_equal(put(b, a, 1), 0);
	rwk_sim_run_until(s, 1000);
	assert_int_equal(put(a, b, 2), 0);
	rwk_sim_kill(s, rwk_sim_number(a->link));
	assert_false(rwk_sim_alive(s, 1));
	assert_int_equal(a->link->ops->progress(a->link, 10), 0);
	rwk_sim_run_until(s, 50999);
	b->link->ops->progress(b->link, 10);
	assert_int_equal(b->count, 1);
	assert_int_equal(b->gone, 0);
	rwk_sim_run_until(s, 51000);
	b->link->ops->progress(b->link, 10);
	assert_int_equal(b->gone, 1);
	assert_int_equal(b->who_is_gone, 1);
	c = open_end(s);
	assert_int_equal(put(c, a, 3), 0);
	settle(s, c, b);
	assert_int_equal(c->gone, 1);
	assert_int_equal(put(a, b, 4), 0);
	settle(s, c, b);
	assert_int_equal(b->count, 1);
	close_end(a);
	close_end(b);
	close_end(c);
	rwk_sim_close(s);
}

/* A rule kills at an exact packet: the sender with it under way, the receiver before it comes. */
static void death_by_rule(void **state)
{
	struct rwk_sim *s = open_sim(&still);
	struct end *a = open_end(s), *b = open_end(s), *c = open_end(s);

	(void)state;
	rwk_sim_rule(s, 1, 2, 2, RWK_SIM_KILL_SENDER);
	rwk_sim_rule(s, 2, 3, 1, RWK_SIM_KILL_RECEIVER);
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(put(a, b, n), 0);
	assert_int_equal(put(b, c, 9), 0);
	settle(s, b, c);
	assert_int_equal(b->count, 2);
	assert_int_equal(c->count, 0);
	assert_false(rwk_sim_alive(s, 1));
	assert_false(rwk_sim_alive(s, 3));
	close_end(a);
	close_end(b);
	close_end(c);
	rwk_sim_close(s);
}

/* What is held goes nowhere until it is let go, in any order; those left over are freed with the network. */
static void held(void **state)
{
	struct rwk_sim *s;
	struct end *a, *b;

	(void)state;
	assert_int_equal(rwk_sim_open(&rwk_sim_attr_default, &s), 0);
	a = open_end(s);
	b = open_end(s);
	rwk_sim_hold(s);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(put(a, b, n), 0);
	settle(s, a, b);
	assert_int_equal(b->count, 0);
	assert_int_equal(rwk_sim_held(s), 4);
	rwk_sim_release(s, 2, RWK_SIM_PASS);
	rwk_sim_release(s, 0, RWK_SIM_DROP);
	rwk_sim_release(s, 0, RWK_SIM_PASS);
	settle(s, a, b);
	assert_int_equal(b->count, 2);
	assert_int_equal(b->got[0], 2);
	assert_int_equal(b->got[1], 1);
	assert_int_equal(rwk_sim_counts(s)->dropped, 1);
	assert_int_equal(rwk_sim_held(s), 1);
	close_end(a);
	close_end(b);
	rwk_sim_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(determinism),
		cmocka_unit_test(chances),
		cmocka_unit_test(rules),
		cmocka_unit_test(corruption),
		cmocka_unit_test(virtual_time),
		cmocka_unit_test(jitter_and_order),
		cmocka_unit_test(limits),
		cmocka_unit_test(death),
		cmocka_unit_test(death_by_rule),
		cmocka_unit_test(held),
	};

	return cmocka_run_group_tests_name("links/sim", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way a long request takes: by a clock of the test's own. */
#include "rwk_test.h"

#include "engine/rma_choice.h"

#define LENGTH (64u << 10)

static unsigned looks; /* at the clock */

static void taken(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now)
{
	bool wanted = rwk_rma_way_begins(c, way);

	looks += wanted;
	rwk_rma_way_taken(c, way, wanted ? now : 0);
}

static void ended(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now)
{
	bool wanted = rwk_rma_way_ends(c, way, LENGTH);

	looks += wanted;
	rwk_rma_way_ended(c, way, LENGTH, wanted ? now : 0);
}

/* Requests one after the other, for which the ways take so long; how many went directly. */
static unsigned serve(struct rwk_rma_choice *c, uint64_t *now, unsigned requests, unsigned messages, unsigned direct)
{
	unsigned n = 0;

	for (unsigned i = 0; i < requests; i++) {
		enum rwk_rma_way way = rwk_rma_choose(c);

		taken(c, way, *now);
		*now += way == RWK_DIRECTLY ? direct : messages;
		ended(c, way, *now);
		*now += 1000000; /* a pause counts for nothing */
		n += way == RWK_DIRECTLY;
	}
	return n;
}

/* Both are tried; then the faster one, and the other more and more seldom. */
static void faster_one(void **state)
{
	struct rwk_rma_choice c = {0}, d = {0};
	uint64_t now = 5;
	unsigned n;

	(void)state;
	assert_int_equal(serve(&c, &now, 8, 1500, 6000), 8);
	assert_int_equal(serve(&c, &now, 8, 1500, 6000), 0);
	n = serve(&c, &now, 10000, 1500, 6000);
	assert_in_range(n, 5 * 8, 7 * 8);
	n = serve(&d, &now, 10000, 9000, 6000);
	assert_in_range(n, 10000 - 8 * 8, 10000 - 6 * 8);
}

/* A target that does not poll any more: after a few slow requests the other way is taken, and back when it polls. */
static void changes(void **state)
{
	struct rwk_rma_choice c = {0};
	uint64_t now = 5;

	(void)state;
	serve(&c, &now, 5000, 1500, 6000);
	assert_in_range(serve(&c, &now, 1000, 1000000, 6000), 980, 1000);
	assert_in_range(serve(&c, &now, 5000, 1500, 6000), 0, 1100);
	assert_in_range(serve(&c, &now, 1000, 1500, 6000), 0, 16);
}

/* Now and then one is interrupted, which says nothing of its way. */
static void interruptions(void **state)
{
	struct rwk_rma_choice c = {0};
	unsigned direct = 0;
	uint64_t now = 5;

	(void)state;
	serve(&c, &now, 5000, 3000, 5000);
	for (int i = 0; i < 200; i++) {
		direct += serve(&c, &now, 1, 30000, 50000);
		direct += serve(&c, &now, 99, 3000, 5000);
	}
	assert_in_range(direct, 0, 400);
}

/* Direct ones would be faster, but not the first after messages, which finds the data in the wrong caches. */
static void first_of_a_trial_is_cold(void **state)
{
	struct rwk_rma_choice c = {0};
	enum rwk_rma_way last = RWK_BY_MESSAGES;
	unsigned direct = 0;
	uint64_t now = 5;

	(void)state;
	serve(&c, &now, 200, 3000, 30000); /* as long as the target had not touched its memory, say */
	for (unsigned i = 0; i < 5000; i++) {
		enum rwk_rma_way way = rwk_rma_choose(&c);

		taken(&c, way, now);
		now += way == RWK_BY_MESSAGES ? 3000 : last == way ? 2000 : 6000;
		ended(&c, way, now);
		last = way;
		direct += way == RWK_DIRECTLY;
	}
	assert_in_range(direct, 4000, 5000);
}

/* Many under way at once are measured by what they move together, and no trial begins among them. */
static void windows(void **state)
{
	struct rwk_rma_choice c = {0};
	uint64_t now = 5;

	(void)state;
	for (int run = 0; run < 200; run++) {
		enum rwk_rma_way way[16];

		for (int i = 0; i < 16; i++) {
			way[i] = rwk_rma_choose(&c);
			assert_true(way[i] == RWK_BY_MESSAGES || !i || way[i - 1] == RWK_DIRECTLY);
			taken(&c, way[i], now);
			if (way[i] == RWK_DIRECTLY) { /* at once */
				now += 6000;
				ended(&c, way[i], now);
			}
		}
		for (int i = 0; i < 16; i++) { /* the others wait for each other, though each takes 1.5 us */
			if (way[i] == RWK_DIRECTLY)
				continue;
			now += 1500;
			ended(&c, way[i], now);
		}
	}
	assert_in_range(serve(&c, &now, 500, 1500, 6000), 0, 8);
}

/* The clock is looked at for all that go by messages, for one of eight that go directly, and now and then in a stream. */
static void seldom(void **state)
{
	struct rwk_rma_choice c = {0}, d = {0};
	uint64_t now = 5;

	(void)state;
	looks = 0;
	serve(&c, &now, 1000, 1500, 6000);
	assert_in_range(looks, 1900, 2000);
	serve(&d, &now, 100, 9000, 6000);
	looks = 0;
	serve(&d, &now, 8000, 9000, 6000);
	assert_in_range(looks, 2000, 2200);
	d = (struct rwk_rma_choice){0};
	looks = 0;
	taken(&d, RWK_DIRECTLY, now);
	for (unsigned i = 0; i < 1024; i++) { /* 64 MB */
		taken(&d, RWK_DIRECTLY, now);
		ended(&d, RWK_DIRECTLY, now += 6000);
	}
	assert_in_range(looks, 16, 18);
	assert_in_range(d.way[RWK_DIRECTLY].cost, 5900, 6100);
}

/*
 * The same where direct ones are over in the call, which takes so long, and the program comes with the next one after
 * `between`; how many went directly.
 */
static unsigned serve_at_once(struct rwk_rma_choice *c, uint64_t *now, unsigned requests, unsigned messages,
	unsigned direct, unsigned between, bool behind)
{
	unsigned n = 0;

	for (unsigned i = 0; i < requests; i++) {
		uint64_t begun;

		if (c->alone) {
			looks++;
			rwk_rma_next(c, behind, *now);
		}
		if (!rwk_rma_goes_directly(c)) {
			n += serve(c, now, 1, messages + between, direct);
			continue;
		}
		begun = rwk_rma_is_measured(c) ? *now : 0;
		looks += begun ? 2 : 0;
		*now += direct;
		rwk_rma_went_directly(c, LENGTH, begun, begun ? *now : 0);
		*now += between;
		n++;
	}
	return n;
}

/* What is over in the call is tried and measured as the rest, and no more often looked at. */
static void at_once(void **state)
{
	struct rwk_rma_choice c = {0}, d = {0};
	uint64_t now = 5;
	unsigned n;

	(void)state;
	n = serve_at_once(&c, &now, 10000, 1500, 6000, 100, false);
	assert_in_range(n, 6 * 8, 8 * 8);
	n = serve_at_once(&d, &now, 10000, 9000, 6000, 100, false);
	assert_in_range(n, 10000 - 8 * 8, 10000 - 6 * 8);
	assert_in_range(d.way[RWK_DIRECTLY].cost, 6000, 6002);
	looks = 0;
	serve_at_once(&d, &now, 8000, 9000, 6000, 100, false);
	assert_in_range(looks, 3000, 3400);
	serve_at_once(&d, &now, 20000, 1500, 6000, 100, false); /* messages become better, which a trial shows */
	assert_in_range(serve_at_once(&d, &now, 1000, 1500, 6000, 100, false), 0, 16);
}

/* In a window that which lies between two counts, as where they go by messages; of what comes alone it does not. */
static void between(void **state)
{
	struct rwk_rma_choice c = {0}, d = {0};
	uint64_t now = 5;

	(void)state;
	serve_at_once(&c, &now, 1000, 2000, 3000, 1500, true);
	assert_in_range(c.way[RWK_DIRECTLY].cost, 4000, 4502); /* the first of a trial is measured by itself */
	assert_in_range(serve_at_once(&c, &now, 1000, 2000, 3000, 1500, true), 0, 16);
	serve_at_once(&d, &now, 1000, 4000, 3000, 1500, false);
	assert_in_range(d.way[RWK_DIRECTLY].cost, 3000, 3002);
	assert_in_range(serve_at_once(&d, &now, 1000, 4000, 3000, 1500, false), 984, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faster_one),
		cmocka_unit_test(changes),
		cmocka_unit_test(interruptions),
		cmocka_unit_test(first_of_a_trial_is_cold),
		cmocka_unit_test(windows),
		cmocka_unit_test(seldom),
		cmocka_unit_test(at_once),
		cmocka_unit_test(between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is bounded: operations by tx_limit and rx_limit, payload that nobody has asked for by credit, regions by the
 * transport. Whoever comes to a bound waits, nobody is forgotten, and legal programs get through.
 */
#include "engine/world.h"

/* tx_limit and rx_limit: -EAGAIN at the limit, room again once something has completed. */
static void limits(void **state)
{
	static unsigned char out[5000], in[20][5000];
	struct task s[20] = {0}, r[20] = {0};
	unsigned sent = 0, posted = 0;
	struct world w;

	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .tx_limit = 7, .rx_limit = 9});
	while (sent < 20 && !rwk_engine_send1(w.e[0], out, sizeof(out), RWK_F_TAGGED | RWK_F_MATCHED, 0, w.peer[0][1],
				    1, &s[sent]))
		sent++;
	assert_int_equal(sent, 7);
	assert_int_equal(
		rwk_engine_send1(w.e[0], out, 10, RWK_F_TAGGED | RWK_F_MATCHED, 0, w.peer[0][1], 1, &s[7]), -EAGAIN);
	while (posted < 20 && !world_recv(&w, 1, 0, RWK_TAGGED, in[posted], sizeof(in[0]), 99, 0, 0, &r[posted]))
		posted++;
	assert_int_equal(posted, 9);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[9], sizeof(in[0]), 1, 0, 0, &r[9]), -EAGAIN);
	assert_int_equal(rwk_engine_cancel(w.e[1], &r[0]), 0);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[9], sizeof(in[0]), 1, 0, 0, &r[9]), 0);
	world_wait(&w, &r[9]);
	world_wait(&w, &s[0]);
	world_settle(&w);
	assert_int_equal(
		rwk_engine_send1(w.e[0], out, 10, RWK_F_TAGGED | RWK_F_MATCHED, 0, w.peer[0][1], 1, &s[7]), 0);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[10], sizeof(in[0]), 1, 0, 0, &r[10]), 0);
	world_wait(&w, &r[10]);
	world_close(&w);
}

/*
 * A transport that exposes few regions at once: rendezvous wait for their turn with -EAGAIN, each gets one, and gives
 * it back.
 */
static void few_regions(void **state)
{
	enum { COUNT = 30 };
	static unsigned char out[COUNT][100000], in[COUNT][100000];
	struct world_attr a = {.transport = &rwk_sim_transport, .count = 2, .service = rwk_sim_service_default};
	struct task s[COUNT] = {0}, r[COUNT] = {0};
	struct world w;

	(void)state;
	a.service.regions = 3;
	world_open(&w, &a);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[i], sizeof(in[i]), 1, 0, 0, &r[i]), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		world_fill(out[i], sizeof(out[i]), i);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[i], sizeof(out[i]), 1, 0, &s[i]), 0);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		world_wait(&w, &s[i]);
		world_wait(&w, &r[i]);
		world_check(in[i], sizeof(in[i]), i);
	}
	world_close(&w);
}

/* Messages to myself that nobody receives are bounded by credit and tx_limit, and all arrive once received. */
static void self_flood(void **state)
{
	enum { COUNT = 500 };
	static unsigned char out[1000], in[1000];
	static struct task s[COUNT], r[COUNT];
	unsigned sent = 0;
	struct world w;

	memset(s, 0, sizeof(s)), memset(r, 0, sizeof(r));
	world_open(&w, &(struct world_attr){.transport = *state, .count = 1, .tx_limit = 50, .eager_credit = 32 << 10});
	while (sent < COUNT &&
		!rwk_engine_send1(w.e[0], out, sizeof(out), RWK_F_TAGGED, 0, w.peer[0][0], sent, &s[sent]))
		sent++;
	assert_in_range(sent, 50 + 16, 50 + 33);
	assert_true(rwk_engine_counters(w.e[0])->unexpected_bytes_peak <= 33 << 10);
	for (unsigned i = 0; i < sent; i++)
		assert_int_equal(world_recv(&w, 0, 0, RWK_TAGGED, in, sizeof(in), i, 0, 0, &r[i]), 0);
	for (unsigned i = 0; i < sent; i++) {
		world_wait(&w, &r[i]);
		world_wait(&w, &s[i]);
	}
	assert_int_equal(rwk_engine_counters(w.e[0])->unexpected_bytes_now, 0);
	assert_int_equal(rwk_engine_send1(w.e[0], out, sizeof(out), RWK_F_TAGGED, 0, w.peer[0][0], 0, &s[0]), 0);
	world_close(&w);
}

/* Messages from 0 to 1 that are received as they come go eagerly, so many that this takes credit that has come back. */
static void check_all_eager(struct world *w)
{
	uint64_t before = rwk_engine_counters(w->e[0])->sent_eager;
	static unsigned char out[500], in[500];

	for (unsigned i = 0; i < 200; i++) {
		struct task r = {0}, t = {0};

		assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r), 0);
		assert_int_equal(world_send(w, 0, 1, RWK_TAGGED, out, sizeof(out), 1, 0, &t), 0);
		world_wait(w, &r);
		world_wait(w, &t);
	}
	assert_int_equal(rwk_engine_counters(w->e[0])->sent_eager - before, 200);
}

/*
 * Without end messages of one tag to a receiver that waits for another: what it keeps stays below the credit, later
 * ones wait at the sender as rendezvous, the awaited message gets through, and all arrive in order in the end.
 */
static void flood(void **state)
{
	enum { COUNT = 3000, CREDIT = 64 << 10 };
	static unsigned char out[COUNT][500], in[500];
	static struct task s[COUNT];
	struct task wanted = {0}, last = {0};
	const struct rwk_engine_counters *c;
	uint32_t got = 0;
	struct world w;

	memset(s, 0, sizeof(s));
	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .eager_credit = CREDIT});
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &got, 4, 2, 0, 0, &wanted), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		world_fill(out[i], sizeof(out[i]), i);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[i], sizeof(out[i]), 1, 0, &s[i]), 0);
		if (i % 10 == 0)
			world_poll(&w);
	}
	world_settle(&w);
	assert_int_equal(wanted.times, 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, &(uint32_t){4711}, 4, 2, RWK_F_INJECT, &last), 0);
	world_wait(&w, &wanted);
	assert_int_equal(got, 4711);
	c = rwk_engine_counters(w.e[1]);
	assert_true(c->unexpected_bytes_peak <= CREDIT + sizeof(out[0]));
	assert_true(c->unexpected_bytes_peak >= CREDIT / 2);
	assert_true(rwk_engine_counters(w.e[0])->credits_waited > COUNT / 2);
	for (unsigned i = 0; i < COUNT; i++) {
		struct task r = {0};

		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r), 0);
		world_wait(&w, &r);
		world_wait(&w, &s[i]);
		world_check(in, sizeof(in), i);
	}
	assert_int_equal(c->unexpected_bytes_now, 0);
	check_all_eager(&w);
	world_close(&w);
}

/* Everyone floods one receiver that takes from anyone: nobody starves while the others go on. */
static void fairness(void **state)
{
	enum { SENDERS = 4, EACH = 300, WINDOW = 32 };
	static unsigned char in[2000], out[2000];
	static struct task s[SENDERS][EACH];
	unsigned got[SENDERS + 1] = {0}, sent[SENDERS] = {0}, least = 0;
	struct world w;

	memset(s, 0, sizeof(s));
	world_open(&w, &(struct world_attr){.transport = *state, .count = SENDERS + 1, .tx_limit = WINDOW});
	for (unsigned n = 0; n < SENDERS * EACH / 2; n++) {
		struct task r = {0};

		for (unsigned i = 0; i < SENDERS; i++)
			while (sent[i] < EACH &&
				!rwk_engine_send1(w.e[i + 1], out, sizeof(out), RWK_F_TAGGED | RWK_F_MATCHED, 0,
					w.peer[i + 1][0], 1, &s[i][sent[i]]))
				sent[i]++;
		assert_int_equal(world_recv(&w, 0, WORLD_ANY, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r), 0);
		world_wait(&w, &r);
		for (unsigned i = 1; i <= SENDERS; i++)
			got[i] += r.c.peer == w.peer[0][i];
	}
	least = got[1];
	for (unsigned i = 2; i <= SENDERS; i++)
		least = got[i] < least ? got[i] : least;
	assert_true(least >= EACH / 4);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_regions),
		WORLD_EACH(limits),
		WORLD_EACH(self_flood),
		WORLD_EACH(flood),
		WORLD_EACH(fairness),
	};

	return cmocka_run_group_tests_name("engine bounds", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between our own ends (RWK_RC_BUSY): an SRQ that turns Sends away holds up those that are for it. All others on the
 * same QP arrive, and when it takes again, so do its own: each once, and in the order of posting.
 *
 *   test_busy [full | SEED]
 */
#include "rc/run.h"

#define SRQS   6u
#define SENDS  400u
#define LENGTH 2000u /* of one, at most */

static uint8_t data[SENDS][LENGTH];
static unsigned posted[SRQS + 1][SENDS], posted_count[SRQS + 1], heard[SRQS + 1];
static unsigned sends; /* work requests in use */
static uint64_t seed, only, running;

static uint32_t pick(uint32_t bound)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % bound);
}

static void begin_busy(struct run *r)
{
	struct rwk_rc_attr attr = end_own();

	attr.service = RWK_WIRE_SRC;
	attr.own |= RWK_RC_BUSY;
	begin(r, &attr);
	memset(posted_count, 0, sizeof(posted_count));
	memset(heard, 0, sizeof(heard));
	sends = 0;
}

/* One for that SRQ, from 1 on; its first two bytes say which it is. */
static void post_send(struct run *r, uint32_t srqn, size_t len)
{
	unsigned i = sends++;

	for (size_t k = 0; k < len; k++)
		data[i][k] = (uint8_t)(k * 3 + i * 5);
	data[i][0] = (uint8_t)i;
	data[i][1] = (uint8_t)(i >> 8);
	wrs[i] = end_wr(RWK_WR_SEND, &iovs[i], data[i], len);
	wrs[i].srqn = srqn;
	posted[srqn][posted_count[srqn]++] = i;
	assert_int_equal(rwk_rc_post(r->a->qp, &wrs[i]), 0);
}

/* What has come so far: for each SRQ the next that was posted to it. */
static void hear(struct run *r)
{
	struct end_message *m;

	while ((m = end_take(r->b))) {
		unsigned i = m->bytes[0] | m->bytes[1] << 8;

		assert_in_range(m->srqn, 1, SRQS);
		if (heard[m->srqn] == posted_count[m->srqn] || i != posted[m->srqn][heard[m->srqn]])
			fail_msg("seed %lu: SRQ %u gets number %u, its message %u", (unsigned long)running, m->srqn, i,
				heard[m->srqn]);
		assert_int_equal(m->len, wrs[i].length);
		assert_memory_equal(m->bytes, data[i], m->len);
		heard[m->srqn]++;
		free(m);
	}
}

static void check_heard(struct run *r)
{
	hear(r);
	for (unsigned i = 1; i <= SRQS; i++)
		assert_int_equal(heard[i], posted_count[i]);
	assert_int_equal(r->a->done_count, sends);
	for (unsigned i = 0; i < sends; i++)
		assert_int_equal(r->a->done_status[i], 0);
	assert_int_equal(r->a->failed_count + r->b->failed_count, 0);
	assert_int_equal(r->a->kept_now + r->b->kept_now, 0);
}

static void go_on(struct run *r, rwk_time time)
{
	rwk_time until = rwk_sim_now(r->sim) + time;

	while (end_step(r->a, r->b, until))
		;
}

/* One does not take for long: what is for the others arrives meanwhile, and of its own nothing; packet `lost` is. */
static void others_go_on(void **state)
{
	(void)state;
	for (unsigned from = 1; from <= 2; from++)
		for (unsigned lost = 0; lost < 90; lost++) {
			struct run r;

			begin_busy(&r);
			rwk_sim_rule(r.sim, from, 3 - from, lost, RWK_SIM_DROP);
			r.b->busy = 1 << 2;
			for (unsigned i = 0; i < 60; i++)
				post_send(&r, 1 + i % 3, i % 7 ? 40 : 900);
			end_pump(r.a);
			go_on(&r, 50 * MS);
			hear(&r);
			assert_int_equal(heard[1], 20);
			assert_int_equal(heard[2], 0);
			assert_int_equal(heard[3], 20);
			assert_int_equal(r.a->done_count, 40);
			assert_false(rwk_rc_idle(r.a->qp));
			r.b->busy = 0;
			if (!end_settle(r.a, r.b, SEC))
				fail_msg("packet %u from %u lost: no end", lost, from);
			check_heard(&r);
			end(&r);
		}
}

/* Any of them busy at any time, any network. */
static void random_sends(uint64_t run_seed)
{
	static const uint32_t chances[] = {0, 1000, 20000, 100000};
	struct rwk_sim_path p;
	struct run r;

	seed = running = run_seed;
	begin_busy(&r);
	p = (struct rwk_sim_path){.delay = 1000 + pick(20000), .jitter = pick(3000), .reorder_by = 1000 + pick(60000)};
	p.drop = chances[pick(4)];
	p.duplicate = chances[pick(4)];
	p.reorder = chances[pick(4)];
	rwk_sim_set_paths(r.sim, &p);
	for (unsigned i = 0; i < SENDS; i++) {
		post_send(&r, 1 + pick(SRQS), pick(4) ? 2 + pick(200) : 2 + pick(LENGTH - 2));
		if (!pick(20))
			r.b->busy = pick(3) ? 1u << (1 + pick(SRQS)) : pick(1 << (SRQS + 1));
		if (pick(2))
			end_pump(r.a);
		for (unsigned k = pick(20); k; k--)
			end_step(r.a, r.b, RWK_NEVER);
		hear(&r);
	}
	end_pump(r.a);
	go_on(&r, pick(20) * MS);
	r.b->busy = 0;
	if (!end_settle(r.a, r.b, 200 * SEC))
		fail_msg("seed %lu: no end", (unsigned long)run_seed);
	check_heard(&r);
	end(&r);
}

static unsigned runs = 300;

static void any_network(void **state)
{
	(void)state;
	for (uint64_t s = 1; s <= runs && !only; s++)
		random_sends(s);
	if (only)
		random_sends(only);
}

/*
 * What is turned away goes by its number as an empty Write, the first of which says how far; what else was sent to that
 * SRQ too, and nothing else. Then one is tried.
 */
static void packets(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct iovec iov[5];
	struct rwk_wr wr[5];
	struct end *e;

	(void)state;
	attr.service = RWK_WIRE_SRC;
	attr.own |= RWK_RC_BUSY;
	e = end_alone(&attr);
	for (unsigned i = 0; i < 5; i++) {
		wr[i] = end_wr(RWK_WR_SEND, &iov[i], data[i], 8);
		wr[i].srqn = 7 + i % 2;
		end_post(e, &wr[i]);
	}
	assert_int_equal(end_sent(e), 5);
	for (unsigned i = 0; i < 3; i++) {
		end_give_ack(e, attr.send_psn + 1, RWK_RC_NAK_BUSY);
		assert_int_equal(end_sent(e), i ? 0 : 2); /* it is said once */
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(e->out[i].w.opcode, RWK_WIRE_SRC | RWK_WIRE_WRITE_ONLY);
		assert_int_equal(e->out[i].w.psn, attr.send_psn + 1 + 2 * i);
		assert_int_equal(e->out[i].w.srqn, 8);
		assert_int_equal(e->out[i].w.reth.length + e->out[i].len, 0);
		assert_int_equal(e->out[i].w.reth.address, i ? 0 : 1u << 24 | (attr.send_psn + 5));
	}
	assert_int_equal(e->done_count, 1);
	end_give_ack(e, attr.send_psn + 4, RWK_WIRE_ACK_NO_LIMIT);
	assert_int_equal(e->done_count, 3);
	assert_int_equal(rwk_rc_withdraw(e->qp, &wr[1]), -EBUSY);
	e->now = rwk_rc_next(e->qp);
	end_pump(e);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.psn, attr.send_psn + 5);
	assert_int_equal(e->out[0].w.srqn, 8);
	end_give_ack(e, attr.send_psn + 5, RWK_WIRE_ACK_NO_LIMIT);
	assert_int_equal(end_sent(e), 1);
	end_give_ack(e, attr.send_psn + 6, RWK_WIRE_ACK_NO_LIMIT);
	assert_int_equal(e->done_count, 5);
	assert_true(e->done_last == &wr[3]);
	end_close(e);
}

/* A QP that ends ends with it what waits, and a responder that has not agreed says that it is not ready. */
static void ends(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct run r;

	(void)state;
	begin_busy(&r);
	r.b->busy = 1 << 1;
	for (unsigned i = 0; i < 10; i++)
		post_send(&r, 1, 100);
	end_pump(r.a);
	go_on(&r, MS);
	rwk_rc_fail(r.a->qp, -ECONNRESET);
	assert_true(rwk_rc_idle(r.a->qp));
	assert_int_equal(r.a->done_count, 10);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(r.a->done_status[i], -ECANCELED);
	end(&r);

	attr.service = RWK_WIRE_SRC;
	begin(&r, &attr);
	memset(heard, 0, sizeof(heard));
	memset(posted_count, 0, sizeof(posted_count));
	sends = 0;
	r.b->busy = 1 << 1;
	post_send(&r, 1, 100);
	post_send(&r, 2, 100);
	end_pump(r.a);
	go_on(&r, 5 * MS);
	assert_int_equal(r.b->message_count, 0);
	r.b->busy = 0;
	assert_true(end_settle(r.a, r.b, SEC));
	check_heard(&r);
	end(&r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_go_on),
		cmocka_unit_test(any_network),
		cmocka_unit_test(packets),
		cmocka_unit_test(ends),
	};

	if (argc > 1 && !strcmp(argv[1], "full"))
		runs = 3000;
	else if (argc > 1)
		only = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

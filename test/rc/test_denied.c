/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between our own ends (RWK_RC_DENIES): a request that may not reach what it names ends with -EACCES, alone. What was
 * posted before and behind it is done, and nothing of it is.
 *
 *   test_denied [full | SEED]
 */
#include "rc/run.h"

#define OPS    24u
#define LENGTH 3000u /* of an op, at most */

static uint8_t local[OPS][LENGTH], want[END_REGION];
static bool bad[OPS];

static uint64_t seed;

static uint32_t pick(uint32_t bound)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % bound);
}

static void begin_denying(struct run *r)
{
	struct rwk_rc_attr attr = end_own();

	attr.own |= RWK_RC_DENIES;
	begin(r, &attr);
}

/* Op i of LENGTH bytes at most, to its own part of the region. */
static void post_op(struct run *r, unsigned i, unsigned type, size_t len, bool wrong_key)
{
	bad[i] = wrong_key;
	for (size_t k = 0; k < len; k++)
		local[i][k] = (uint8_t)(k * 7 + i);
	if (type == RWK_WR_READ)
		memset(local[i], 0xee, len);
	wrs[i] = end_wr(type, &iovs[i], local[i], len);
	wrs[i].remote += i * LENGTH;
	wrs[i].key += wrong_key;
	if (type == RWK_WR_WRITE && !wrong_key)
		memcpy(want + i * LENGTH, local[i], len);
	assert_int_equal(rwk_rc_post(r->a->qp, &wrs[i]), 0);
}

static void fill_region(struct run *r)
{
	for (size_t k = 0; k < END_REGION; k++)
		want[k] = r->b->region[k] = (uint8_t)(k * 3 + k / 251);
}

static void check_ops(struct run *r, unsigned n)
{
	assert_int_equal(r->a->done_count, n);
	assert_int_equal(r->a->failed_count + r->b->failed_count, 0);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(r->a->done_status[i], bad[i] ? -EACCES : 0);
		for (size_t k = 0; wrs[i].type == RWK_WR_READ && k < wrs[i].length; k++)
			assert_int_equal(local[i][k], bad[i] ? 0xee : want[i * LENGTH + k]);
	}
	assert_memory_equal(r->b->region, want, END_REGION);
	assert_int_equal(r->a->kept_now + r->b->kept_now, 0);
}

/* Three ops, the middle one denied, and packet `lost` from the one end or the other lost: no matter. */
static void each_place(void **state)
{
	(void)state;
	for (unsigned type = RWK_WR_WRITE; type <= RWK_WR_READ; type++)
		for (unsigned from = 1; from <= 2; from++)
			for (unsigned lost = 0; lost < 40; lost++) {
				struct run r;

				begin_denying(&r);
				fill_region(&r);
				rwk_sim_rule(r.sim, from, 3 - from, lost, RWK_SIM_DROP);
				for (unsigned i = 0; i < 3; i++)
					post_op(&r, i, type, 10 * PMTU - 5, i == 1);
				end_pump(r.a);
				if (!end_settle(r.a, r.b, SEC))
					fail_msg("type %u, packet %u from %u lost: no end", type, lost, from);
				check_ops(&r, 3);
				assert_in_range(counters(r.b)->bad_access, 1, 12);
				assert_int_equal(counters(r.a)->timeouts, 0);
				end(&r);
			}
}

/* Any ops, any network. */
static void random_ops(uint64_t run_seed)
{
	static const uint32_t chances[] = {0, 1000, 20000, 100000};
	struct rwk_sim_path p;
	struct run r;

	seed = run_seed;
	begin_denying(&r);
	fill_region(&r);
	p = (struct rwk_sim_path){.delay = 1000 + pick(20000), .jitter = pick(3000), .reorder_by = 1000 + pick(60000)};
	p.drop = chances[pick(4)];
	p.duplicate = chances[pick(4)];
	p.reorder = chances[pick(4)];
	rwk_sim_set_paths(r.sim, &p);
	for (unsigned i = 0; i < OPS; i++) {
		post_op(&r, i, pick(2) ? RWK_WR_WRITE : RWK_WR_READ, pick(3) ? 1 + pick(LENGTH) : 1 + pick(8),
			!pick(3));
		if (pick(2))
			end_pump(r.a);
		for (unsigned k = pick(30); k; k--)
			end_step(r.a, r.b, RWK_NEVER);
	}
	end_pump(r.a);
	if (!end_settle(r.a, r.b, 100 * SEC))
		fail_msg("seed %lu: no end", (unsigned long)run_seed);
	check_ops(&r, OPS);
	end(&r);
}

static unsigned runs = 300;
static uint64_t only;

static void any_network(void **state)
{
	(void)state;
	for (uint64_t s = 1; s <= runs && !only; s++)
		random_ops(s);
	if (only)
		random_ops(only);
}

/* The region goes while it is written to, or read from: from then on nothing is touched, and what is asked later ends
 * well. */
static void gone_in_the_middle(void **state)
{
	(void)state;
	for (unsigned type = RWK_WR_WRITE; type <= RWK_WR_READ; type++)
		for (unsigned steps = 0; steps < 60; steps++) {
			struct run r;

			begin_denying(&r);
			fill_region(&r);
			for (unsigned i = 0; i < 8; i++)
				post_op(&r, i, type, LENGTH, false);
			end_pump(r.a);
			for (unsigned k = 0; k < steps; k++)
				end_step(r.a, r.b, RWK_NEVER);
			r.b->revoked = true;
			memcpy(want, r.b->region, END_REGION);
			assert_true(end_settle(r.a, r.b, SEC));
			assert_int_equal(r.a->done_count, 8);
			for (unsigned i = 0; i < 8; i++) {
				assert_true(!r.a->done_status[i] || r.a->done_status[i] == -EACCES);
				assert_true(i == 0 || r.a->done_status[i] || !r.a->done_status[i - 1]);
			}
			assert_memory_equal(r.b->region, want, END_REGION);
			r.b->revoked = false;
			r.a->done_count = 0;
			post_op(&r, 0, type, LENGTH, false);
			end_pump(r.a);
			assert_true(end_settle(r.a, r.b, SEC));
			check_ops(&r, 1);
			end(&r);
		}
}

/* A NAK that comes again, and others of old, end nothing more. */
static void nak_again(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct iovec iov[2];
	struct rwk_wr wr[2];
	struct end *e;

	(void)state;
	attr.own |= RWK_RC_DENIES;
	e = end_alone(&attr);
	wr[0] = end_wr(RWK_WR_WRITE, &iov[0], local[0], 8);
	wr[1] = end_wr(RWK_WR_WRITE, &iov[1], local[1], 8);
	end_post(e, &wr[0]);
	end_post(e, &wr[1]);
	assert_int_equal(end_sent(e), 2);
	for (unsigned i = 0; i < 3; i++) {
		end_give_ack(e, attr.send_psn, RWK_WIRE_NAK_ACCESS);
		assert_int_equal(end_sent(e), i == 0);
		if (!i) {
			assert_int_equal(e->out[0].w.opcode, RWK_WIRE_WRITE_ONLY);
			assert_int_equal(e->out[0].w.psn, attr.send_psn);
			assert_int_equal(e->out[0].w.reth.length + e->out[0].len, 0);
		}
	}
	assert_int_equal(e->done_count, 0);
	end_give_ack(e, attr.send_psn + 1, RWK_WIRE_ACK_NO_LIMIT);
	end_give_ack(e, attr.send_psn, RWK_WIRE_NAK_ACCESS);
	assert_int_equal(e->done_count, 2);
	assert_int_equal(e->done_status[0], -EACCES);
	assert_int_equal(e->done_status[1], 0);
	assert_int_equal(e->failed_count, 0);
	end_close(e);
}

/* An end by itself that denies, and the first Write to it, of 8 bytes. */
static struct end *denying_end(struct rwk_wire *w)
{
	struct rwk_rc_attr attr = end_own();
	struct end *e;

	attr.own |= RWK_RC_DENIES;
	e = end_alone(&attr);
	*w = (struct rwk_wire){.opcode = RWK_WIRE_RC | RWK_WIRE_WRITE_ONLY, .migrated = true, .pkey = RWK_WIRE_PKEY};
	w->psn = attr.receive_psn;
	w->reth.address = e->base;
	w->reth.key = END_KEY;
	w->reth.length = 8;
	return e;
}

/*
 * As long as the peer has not said that it knows of the refusal, each answer to it is one, whatever it answers: the
 * last may have been lost.
 */
static void said_again(void **state)
{
	uint8_t eight[8] = "refused";
	struct rwk_wire w;
	struct end *e = denying_end(&w);
	uint32_t first = w.psn;

	(void)state;
	w.ack_request = true;
	for (unsigned i = 0; i < 4; i++) {
		e->revoked = i == 0;
		end_give(e, &w, eight, 8);
		assert_int_equal(end_sent(e), 1);
		assert_int_equal(e->out[0].w.aeth.syndrome, RWK_WIRE_NAK_ACCESS);
		assert_int_equal(e->out[0].w.psn, first);
		w.psn = rwk_psn_add(w.psn, 1);
	}
	end_close(e);
}

/* What is refused stays so until the peer knows, although it could be reached by now. */
static void stays_denied(void **state)
{
	uint8_t eight[8] = "refused", before[8];
	struct rwk_wire w;
	struct end *e = denying_end(&w);

	(void)state;
	memcpy(before, e->region, 8);
	e->revoked = true;
	for (unsigned i = 0; i < 3; i++) {
		end_give(e, &w, eight, 8);
		assert_int_equal(end_sent(e), 1);
		assert_int_equal(e->out[0].w.aeth.syndrome, RWK_WIRE_NAK_ACCESS);
		assert_int_equal(e->out[0].w.psn, w.psn);
		e->revoked = false;
	}
	assert_memory_equal(e->region, before, 8);
	w.reth.length = 0;
	end_give(e, &w, NULL, 0);
	w.psn = rwk_psn_add(w.psn, 1);
	w.reth.length = 8;
	w.ack_request = true;
	end_give(e, &w, eight, 8);
	assert_true(end_sent(e) > 0);
	assert_memory_equal(e->region, eight, 8);
	end_close(e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_place),
		cmocka_unit_test(gone_in_the_middle),
		cmocka_unit_test(nak_again),
		cmocka_unit_test(said_again),
		cmocka_unit_test(stays_denied),
		cmocka_unit_test(any_network),
	};

	if (argc > 1 && !strcmp(argv[1], "full"))
		runs = 50000;
	else if (argc > 1)
		only = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

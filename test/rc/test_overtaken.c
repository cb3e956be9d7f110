/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between our own ends, on networks that let packets overtake each other: what is only late is taken for lost a few
 * times at most, and the window is not smaller for it; what is lost is found all the same.
 *
 * Links: sim.
 */
#include "rc/run.h"

#define DELAY (10 * US)

static uint32_t first_psn = 1000;

/* `reads`: the data goes from b to a. */
static void paths(struct run *r, bool reads, rwk_time reorder_by, uint32_t reorder, uint32_t drop)
{
	struct rwk_sim_path data = {.delay = DELAY, .reorder_by = reorder_by, .reorder = reorder, .drop = drop};
	struct rwk_sim_path answers = {.delay = DELAY};

	rwk_sim_set_path(r->sim, 1, 2, reads ? &answers : &data);
	rwk_sim_set_path(r->sim, 2, 1, reads ? &data : &answers);
}

static void begin_own(struct run *r, bool reads, rwk_time reorder_by, uint32_t reorder, uint32_t drop)
{
	struct rwk_rc_attr attr = end_own();

	attr.send_psn = first_psn;
	begin(r, &attr);
	paths(r, reads, reorder_by, reorder, drop);
	for (size_t i = 0; i < sizeof(bytes); i++)
		r->b->region[i] = (uint8_t)(i * 3 + i / PMTU * 7);
}

static void more(struct run *r, unsigned type, unsigned n)
{
	r->a->done_count = r->b->message_count = 0;
	post(r->a, type, n);
	assert_true(end_settle(r->a, r->b, 20 * SEC));
	check_all_came(r, type, n);
}

static uint64_t again(const struct run *r)
{
	return counters(r->a)->sent_again;
}

/* A packet is overtaken by many. It is sent again, for nothing, and costs the window nothing in the end; soon it is
 * known how far they overtake. */
static void as_far_as_before_from(uint32_t psn)
{
	const struct rwk_rc_requester *q;
	struct run r;

	first_psn = psn;
	begin_own(&r, false, DELAY / 2, 0, 0);
	q = &r.a->qp->req;
	more(&r, RWK_WR_SEND, 30); /* the round trip is known */
	for (unsigned round = 0; round < 8; round++) {
		uint16_t cwnd = q->cwnd, reach = q->reach;
		uint64_t before = again(&r);

		rwk_sim_rule(r.sim, 1, 2, 5, RWK_SIM_DELAY);
		more(&r, RWK_WR_SEND, 28);
		while (end_step(r.a, r.b, rwk_sim_now(r.sim) + MS))
			; /* what came twice is said */
		assert_true(q->cwnd >= cwnd);
		if (again(&r) == before) {
			assert_true(round > 0 && reach > 3);
			end(&r);
			return;
		}
		assert_true(q->reach > reach);
	}
	fail_msg("packets are sent again each time");
}

static void as_far_as_before(void **state)
{
	(void)state;
	as_far_as_before_from(0xa00000);
	as_far_as_before_from(0xfffff0);
	as_far_as_before_from(1000);
}

struct figures {
	uint64_t again;
	double mbyte; /* a second of the virtual clock */
};

/* So many Sends in a row. */
static struct figures stream(unsigned type, rwk_time reorder_by, uint32_t reorder, uint32_t drop)
{
	struct figures f;
	struct run r;

	begin_own(&r, type == RWK_WR_READ, reorder_by, reorder, drop);
	for (unsigned i = 0; i < 20; i++)
		more(&r, type, MOST);
	f.again = again(&r);
	f.mbyte = 20.0 * MOST * PMTU * 1000 / (double)(rwk_sim_now(r.sim) - r.began);
	end(&r);
	return f;
}

/* Half of the packets are late by up to two round trips: hardly any is sent again, and the stream is not slowed down by
 * more than they are late. */
static void far_apart(void **state)
{
	static const struct {
		const char *name;
		rwk_time by;
		uint32_t reorder, drop;
	} networks[] = {
		{"in order", 0, 0, 0},
		{"in order, 1 % lost", 0, 0, 10000},
		{"half late by up to 2 us", 2 * US, 500000, 0},
		{"half late by up to 20 us", 20 * US, 500000, 0},
		{"half late by up to 40 us", 40 * US, 500000, 0},
		{"half late by up to 40 us, 1 % lost", 40 * US, 500000, 10000},
		{"half late by up to 200 us", 200 * US, 500000, 0},
	};

	(void)state;
	for (unsigned type = RWK_WR_SEND; type <= RWK_WR_READ; type++)
		for (unsigned i = 0; i < sizeof(networks) / sizeof(*networks); i++) {
			struct figures f = stream(type, networks[i].by, networks[i].reorder, networks[i].drop);

			print_message("%s of %u packets, %s: %lu sent again, %.0f MB/s\n",
				type == RWK_WR_SEND    ? "Sends"
				: type == RWK_WR_WRITE ? "Writes"
						       : "Reads",
				20 * MOST, networks[i].name, (unsigned long)f.again, f.mbyte);
			if (!networks[i].drop)
				assert_in_range(f.again, 0, networks[i].by <= 40 * US ? 20 * MOST / 20 : 20 * MOST / 4);
		}
}

/* Packets go on overtaking each other while others are lost: however many that are, what is late is waited for. */
static void late_and_lost(void **state)
{
	uint64_t before = 0;
	struct run r;

	(void)state;
	first_psn = 1000;
	begin_own(&r, false, DELAY / 2, 0, 0);
	for (unsigned i = 0; i < 48; i++) {
		if (i == 8) /* it is known by now how far they overtake */
			before = again(&r);
		rwk_sim_rule(r.sim, 1, 2, 5, RWK_SIM_DELAY);
		if (i >= 8)
			rwk_sim_rule(r.sim, 1, 2, 150, RWK_SIM_DROP);
		more(&r, RWK_WR_SEND, MOST);
		while (end_step(r.a, r.b, rwk_sim_now(r.sim) + MS))
			; /* what came twice is said */
	}
	print_message("40 lost among 40 late: %lu sent again\n", (unsigned long)(again(&r) - before));
	assert_in_range(again(&r) - before, 40, 42);
	end(&r);
}

#define LONG 4000u

/* LONG packets, all posted at once: MB a second of the virtual clock. */
static double goodput(unsigned type, uint32_t reorder, uint32_t drop)
{
	static struct rwk_wr all[LONG];
	static struct iovec iov[LONG];
	unsigned each = type == RWK_WR_READ ? MOST : 1;
	double mbyte;
	struct run r;

	first_psn = 1000;
	begin_own(&r, type == RWK_WR_READ, 200 * US, reorder, drop);
	for (unsigned i = 0; i < LONG / each; i++) {
		all[i] = end_wr(type, &iov[i], type == RWK_WR_READ ? back : bytes, each * PMTU);
		assert_int_equal(rwk_rc_post(r.a->qp, &all[i]), 0);
	}
	end_pump(r.a);
	assert_true(end_settle(r.a, r.b, 20 * SEC));
	assert_int_equal(r.a->done_count, LONG / each);
	mbyte = (double)LONG * PMTU * 1000 / (double)(rwk_sim_now(r.sim) - r.began);
	print_message("%s: %2u %% late by up to 200 us, %u %% lost: %.0f MB/s\n",
		type == RWK_WR_READ ? "Reads" : "Sends", reorder / 10000, drop / 10000, mbyte);
	end(&r);
	return mbyte;
}

/*
 * Some packets are late by up to ten round trips, longer than anybody waits for them. That slows a stream down as it
 * must: what is behind waits for them at the other end. But the window is not smaller for it.
 */
static void far_too_late(void **state)
{
	static const uint32_t drop[] = {0, 10000, 50000};

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned type = RWK_WR_SEND; type <= RWK_WR_READ; type += RWK_WR_READ - RWK_WR_SEND) {
			double least = drop[i] == 50000 ? 25 : 120;

			assert_true(goodput(type, 50000, drop[i]) > least);
			assert_true(goodput(type, 500000, drop[i]) > least);
		}
}

/* A network that has been put in order again: sixteen losses later one is found by three packets, as ever. */
static void in_order_again(void **state)
{
	struct run r;

	(void)state;
	begin_own(&r, false, 40 * US, 500000, 0);
	more(&r, RWK_WR_SEND, MOST);
	more(&r, RWK_WR_SEND, MOST);
	assert_true(r.a->qp->req.reach > 3 && r.a->qp->req.patience > 1);
	paths(&r, false, 0, 0, 0);
	for (unsigned i = 0; i < 17; i++) {
		uint64_t before = again(&r);

		rwk_sim_rule(r.sim, 1, 2, 5, RWK_SIM_DROP);
		more(&r, RWK_WR_SEND, 20);
		assert_int_equal(again(&r), before + 1);
	}
	assert_true(r.a->qp->req.reach == 3 && r.a->qp->req.patience == 1);
	end(&r);
}

/* A tail that was not lost, its acknowledgement was: the probe comes twice, and says nothing of overtaking. */
static void probe_is_no_guess(void **state)
{
	struct run r;

	(void)state;
	begin_own(&r, false, 0, 0, 0);
	more(&r, RWK_WR_SEND, 20);
	rwk_sim_rule(r.sim, 1, 2, 5, RWK_SIM_DROP);
	more(&r, RWK_WR_SEND, 20); /* a guess, and right */
	for (unsigned i = 0; i < 4; i++) {
		uint64_t before = counters(r.a)->probes;

		rwk_sim_rule(r.sim, 2, 1, 1, RWK_SIM_DROP);
		more(&r, RWK_WR_SEND, 1);
		assert_int_equal(counters(r.a)->probes, before + 1);
	}
	assert_int_equal(r.a->qp->req.reach, 3);
	assert_true(counters(r.b)->duplicates >= 4);
	end(&r);
}

/* What has come twice is said once, and not by a message of the client's, which has no room for it. */
static void said_once(void **state)
{
	struct rwk_wire w = {.opcode = RWK_WIRE_RC | RWK_WIRE_SEND_ONLY, .migrated = true, .pkey = RWK_WIRE_PKEY};
	struct rwk_rc_attr attr = end_own();
	struct end *e;
	uint32_t word;

	(void)state;
	e = end_alone(&attr);
	w.psn = attr.receive_psn;
	w.ack_request = true;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].payload[e->out[0].len - 4] & 1, 0);
	rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
	assert_false(rwk_rc_take_ack(e->qp, false, &word));
	end_pump(e);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].payload[e->out[0].len - 4] & 1, 1);
	w.psn = rwk_psn_add(w.psn, 1);
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].payload[e->out[0].len - 4] & 1, 0);
	end_close(e);
}

/* The pieces of one message in each order: it is there when all of them are, and whole. */
static void early_pieces(bool write)
{
	static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	static const unsigned opcodes[2][3] = {{RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE, RWK_WIRE_SEND_LAST},
		{RWK_WIRE_WRITE_FIRST, RWK_WIRE_WRITE_MIDDLE, RWK_WIRE_WRITE_LAST_IMM}};
	struct rwk_rc_attr attr = end_own();

	for (unsigned o = 0; o < 6; o++) {
		struct end *e = end_alone(&attr);
		struct end_message *m;

		for (unsigned i = 0; i < 3; i++) {
			unsigned k = orders[o][i];
			struct rwk_wire w = {.opcode = (uint8_t)opcodes[write][k], .psn = attr.receive_psn + k};

			w.reth.address = e->base;
			w.reth.key = END_KEY;
			w.reth.length = 2 * PMTU + 10;
			assert_null(e->first);
			end_give(e, &w, bytes + k * PMTU, k == 2 ? 10 : PMTU);
		}
		m = end_take(e);
		assert_non_null(m);
		assert_int_equal(m->written, write);
		assert_memory_equal(write ? e->region : m->bytes, bytes, 2 * PMTU + 10);
		assert_true(write || m->len == 2 * PMTU + 10);
		assert_null(e->first);
		assert_int_equal(e->kept_now, 0);
		free(m);
		end_close(e);
	}
}

/* S4-14, of a Send and of a Write with immediate data. */
static void early_pieces_wait(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3 * PMTU; i++)
		bytes[i] = (uint8_t)(i * 3 + i / PMTU * 7 + 1);
	early_pieces(false);
	early_pieces(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_far_as_before),
		cmocka_unit_test(far_apart),
		cmocka_unit_test(late_and_lost),
		cmocka_unit_test(far_too_late),
		cmocka_unit_test(in_order_again),
		cmocka_unit_test(probe_is_no_guess),
		cmocka_unit_test(said_once),
		cmocka_unit_test(early_pieces_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

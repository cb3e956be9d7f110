/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between our own ends: silence, the window, lazy acknowledgements, what an acknowledgement says. Two ends over the
 * simulated network, or one alone.
 *
 * Links: sim.
 */
#include "rc/run.h"

/* A peer that is stopped for a minute under load costs a few probes that back off to a second; nothing is lost. */
static void stopped_for_a_minute(void **state)
{
	struct rwk_rc_attr attr = end_own();
	uint64_t first;
	struct run r;

	(void)state;
	begin(&r, &attr);
	post(r.a, RWK_WR_SEND, 10);
	assert_true(end_settle(r.a, r.b, SEC));
	post(r.a, RWK_WR_SEND, 200);
	first = counters(r.a)->packets_out;
	while (rwk_sim_now(r.sim) < r.began + 60 * SEC) {
		rwk_sim_run_until(r.sim, rwk_rc_next(r.a->qp) < 61 * SEC ? rwk_rc_next(r.a->qp) : 61 * SEC);
		end_pump(r.a);
	}
	assert_int_equal(r.a->failed_count, 0);
	assert_in_range(counters(r.a)->packets_out - first, 10, 80);
	assert_true(end_settle(r.a, r.b, 5 * SEC));
	assert_int_equal(r.a->done_count, 210);
	assert_int_equal(r.b->message_count, 210);
	/* What had only been waiting there is not sent again when it is back, and the window is as it was. */
	assert_in_range(counters(r.a)->sent_again, 10, 81);
	assert_true(r.a->qp->req.cwnd >= 32);
	end(&r);
}

/* Without ENDLESS the retries end: the first one's status says why, the others are flushed. */
static void retries_end(void **state)
{
	struct rwk_rc_attr attr = end_own();

	(void)state;
	attr.own = RWK_RC_SELECTIVE;
	for (unsigned retry = 0; retry <= 7; retry++) {
		struct run r;

		attr.retry = (uint8_t)retry;
		begin(&r, &attr);
		rwk_sim_set_path(r.sim, 1, 2, &(struct rwk_sim_path){.drop = 1000000});
		post(r.a, RWK_WR_SEND, 3);
		end_settle(r.a, r.b, 100 * SEC);
		assert_int_equal(r.a->failed_count, 1);
		assert_int_equal(r.a->failed_err, -ETIMEDOUT);
		assert_int_equal(r.a->done_count, 3);
		assert_int_equal(r.a->done_status[0], -ETIMEDOUT);
		assert_int_equal(r.a->done_status[2], -ECANCELED);
		assert_int_equal(counters(r.a)->timeouts, retry + 1);
		assert_int_equal(rwk_rc_state(r.a->qp), RWK_QP_ERR);
		end(&r);
	}
}

/*
 * Without ENDLESS, when round trips are known, which are shorter than the time-out by far: a peer that is silent for
 * less than all retries' time-outs is not given up, and heard of a second after it is back; one that stays away is.
 */
static void retries_last(void **state)
{
	static const rwk_time timeouts[] = {MS, 67 * MS, 3 * SEC, 7200 * SEC};
	struct rwk_rc_attr attr = end_own();
	const struct rwk_sim_path none = {.drop = 1000000}, all = {.delay = 1000};

	(void)state;
	attr.own = RWK_RC_SELECTIVE | RWK_RC_UNORDERED;
	for (unsigned i = 0; i < 16; i++) {
		rwk_time timeout = timeouts[i / 4], silent;
		struct run r;

		attr.timeout = timeout;
		attr.retry = (uint8_t)(i % 4 * 7 / 3);
		begin(&r, &attr);
		post(r.a, RWK_WR_SEND, 10);
		assert_true(end_settle(r.a, r.b, SEC));
		rwk_sim_set_path(r.sim, 1, 2, &none);
		post(r.a, RWK_WR_SEND, 3);
		silent = rwk_sim_now(r.sim) + timeout * (attr.retry + 1u) - timeout / 10;
		while (end_step(r.a, r.b, silent))
			;
		assert_int_equal(r.a->failed_count, 0);
		rwk_sim_set_path(r.sim, 1, 2, &all);
		assert_true(end_settle(r.a, r.b, 2 * SEC));
		assert_int_equal(r.a->done_count, 13);
		rwk_sim_set_path(r.sim, 1, 2, &none);
		post(r.a, RWK_WR_SEND, 3);
		end_settle(r.a, r.b, (timeout + 2 * SEC) * (attr.retry + 1u));
		assert_int_equal(r.a->failed_err, -ETIMEDOUT);
		end(&r);
	}
}

/* The window: never more under way than attr.window; grown by acknowledgements, halved by a loss once a round trip. */
static void window(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct run r;
	unsigned was;

	(void)state;
	attr.own = RWK_RC_SELECTIVE;
	attr.window = 100;
	begin(&r, &attr);
	rwk_sim_set_path(r.sim, 1, 2, &(struct rwk_sim_path){.delay = 100 * US});
	post(r.a, RWK_WR_SEND, 200);
	was = r.a->qp->req.cwnd;
	assert_int_equal(was, 32);
	assert_int_equal(counters(r.a)->packets_out, 32);
	while (r.a->done_count < 200) {
		assert_true(end_step(r.a, r.b, SEC));
		assert_in_range(rwk_rc_span(&r.a->qp->req), 0, 100);
	}
	assert_int_equal(r.a->qp->req.cwnd, 100);
	/* Two of one burst are lost: one round trip, one halving. */
	r.a->done_count = 0;
	rwk_sim_rule(r.sim, 1, 2, 3, RWK_SIM_DROP);
	rwk_sim_rule(r.sim, 1, 2, 40, RWK_SIM_DROP);
	post(r.a, RWK_WR_SEND, 90);
	while (r.a->done_count < 90)
		assert_true(end_step(r.a, r.b, 2 * SEC));
	assert_int_equal(r.a->qp->req.ssthresh, 50);
	assert_in_range(r.a->qp->req.cwnd, 50, 55);
	end(&r);
}

/* Reads with never more packets of responses under way than that, but with as many as half of what may be. */
static void read_within(struct run *r, uint32_t most)
{
	uint32_t asked = r->a->qp->req.reads * r->a->qp->req.chunk, seen = 0;

	r->a->done_count = 0;
	memset(back, 0, sizeof(back));
	post(r->a, RWK_WR_READ, MOST);
	memcpy(r->b->region, bytes, sizeof(bytes));
	while (!r->a->done_count) {
		assert_in_range(rwk_rc_span(&r->a->qp->req), 0, most);
		seen = rwk_rc_span(&r->a->qp->req) > seen ? rwk_rc_span(&r->a->qp->req) : seen;
		assert_true(end_step(r->a, r->b, 3 * SEC));
	}
	assert_true(seen > (most < asked ? most : asked) / 2);
	check_all_came(r, RWK_WR_READ, MOST);
	assert_int_equal(r->a->qp->req.reads_out, 0);
	assert_in_range(counters(r->a)->sent_again, 0, 0);
}

/*
 * It is the reader who has to have room for what it reads: its own read_window counts beside the peer's, and its share
 * of a buffer that others fill too. Where there is not even room for one request, parts of it are asked for, also from
 * a peer that answers one request at a time: they are one.
 */
static void read_window(void **state)
{
	static const uint16_t windows[] = {1, 3, 31, 32, 33, 70, 100};
	struct rwk_rc_attr attr = end_own();
	struct run r;

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(windows) / sizeof(*windows); i++) {
		attr.read_window = windows[i / 2];
		attr.reads = i % 2 ? end_own().reads : 1;
		begin(&r, &attr);
		read_within(&r, windows[i / 2]);
		rwk_rc_share(r.a->qp, 2);
		read_within(&r, windows[i / 2] < 2 ? windows[i / 2] : 2);
		rwk_rc_share(r.a->qp, 9);
		read_within(&r, windows[i / 2] < 9 ? windows[i / 2] : 9);
		rwk_rc_share(r.a->qp, 0);
		read_within(&r, windows[i / 2]);
		end(&r);
	}
}

/*
 * The peer's receive buffer is for others too: its acknowledgements say what our share of it is, those that travel with
 * messages as well. An old one says nothing any more.
 */
static void share(void **state)
{
	struct rwk_rc_attr attr = end_own();
	uint32_t word;
	struct run r;

	(void)state;
	attr.window = 100;
	begin(&r, &attr);
	rwk_rc_share(r.b->qp, 3);
	post(r.a, RWK_WR_SEND, 200);
	while (!r.a->done_count)
		assert_true(end_step(r.a, r.b, SEC));
	rwk_rc_share(r.b->qp, 3);
	while (r.a->done_count < 200) {
		assert_true(end_step(r.a, r.b, SEC));
		if (r.a->done_count > 40)
			assert_in_range(rwk_rc_under_way(&r.a->qp->req), 0, 3);
	}
	assert_int_equal(r.a->qp->req.cwnd, 3);
	rwk_rc_share(r.b->qp, 1000);
	post(r.a, RWK_WR_SEND, 1);
	while (r.b->message_count < 201)
		assert_true(end_step(r.a, r.b, SEC));
	assert_true(rwk_rc_take_ack(r.b->qp, false, &word));
	assert_int_equal(word, rwk_psn_add(attr.send_psn, 200) | 127u << 25);
	rwk_rc_acked(r.a->qp, rwk_psn_add(attr.send_psn, 100) | 2u << 25, rwk_sim_now(r.sim));
	assert_int_equal(r.a->qp->req.limit, 3);
	rwk_rc_acked(r.a->qp, word, rwk_sim_now(r.sim));
	assert_int_equal(r.a->qp->req.limit, 100);
	rwk_rc_share(r.b->qp, 0);
	post(r.a, RWK_WR_SEND, 200);
	assert_true(end_settle(r.a, r.b, 3 * SEC));
	assert_int_equal(r.a->qp->req.cwnd, 100);
	end(&r);
}

/* Congestion that the network marks (FECN) comes back as BECN, and halves the window once. */
static void congestion_marked(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire w = {.opcode = RWK_WIRE_SEND_ONLY, .psn = attr.receive_psn, .ack_request = true, .fecn = true};
	struct end *e;

	(void)state;
	attr.own = RWK_RC_SELECTIVE;
	e = end_alone(&attr);
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_true(e->out[0].w.becn);
	w.fecn = false;
	w.psn++;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_false(e->out[0].w.becn);
	post(e, RWK_WR_SEND, 20);
	for (unsigned i = 0; i < 3; i++) {
		struct rwk_wire ack = {.opcode = RWK_WIRE_ACK,
			.psn = attr.send_psn + i,
			.becn = true,
			.aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT};

		end_give(e, &ack, NULL, 0);
	}
	assert_in_range(e->qp->req.cwnd, 16, 20);
	end_close(e);
}

/* A message could take the acknowledgement along, but not the mark: so both go in a packet of their own. */
static void congestion_is_no_passenger(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire w = {.opcode = RWK_WIRE_SEND_ONLY, .psn = attr.receive_psn, .ack_request = true};
	struct end *e;
	uint32_t word;

	(void)state;
	e = end_alone(&attr);
	rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
	assert_true(rwk_rc_take_ack(e->qp, false, &word));
	w.fecn = true;
	w.psn++;
	rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
	assert_false(rwk_rc_take_ack(e->qp, false, &word));
	end_pump(e);
	assert_int_equal(end_sent(e), 1);
	assert_true(e->out[0].w.becn);
	end_close(e);
}

/* A lazy peer: a stream one way never waits for its delay, but at the end; and a message takes the ACK along. */
static void lazy_stream(void **state)
{
	struct rwk_rc_attr attr = end_own();
	unsigned taken = 0;
	uint32_t psn;
	struct run r;

	(void)state;
	for (unsigned window = 1; window <= 64; window += 3) {
		attr.window = (uint16_t)window;
		attr.ack_delay = SEC;
		attr.ack_every = 50000;
		attr.timeout = 4 * SEC;
		begin(&r, &attr);
		post(r.a, RWK_WR_SEND, 200);
		while (r.a->done_count < 200 - window)
			assert_true(end_step(r.a, r.b, r.began + SEC / 2));
		while (r.b->message_count < 200)
			if (!end_step(r.a, r.b, r.began + SEC / 2) && r.b->message_count < 200)
				fail_msg("window %u: %u of 200", window, r.b->message_count);
		if (rwk_rc_take_ack(r.b->qp, false, &psn)) {
			assert_int_equal(psn, attr.send_psn + 199);
			assert_false(rwk_rc_take_ack(r.b->qp, false, &psn));
			rwk_rc_acked(r.a->qp, psn, rwk_sim_now(r.sim));
			assert_true(rwk_rc_idle(r.a->qp));
			taken++;
		}
		assert_true(end_settle(r.a, r.b, 3 * SEC));
		assert_int_equal(counters(r.a)->sent_again, 0);
		/* Few acknowledgements: one for half a window. */
		if (window >= 16)
			assert_in_range(counters(r.b)->acks_out, 1, 2 * 200 / (window / 2) + 8);
		rwk_rc_acked(r.a->qp, rwk_psn_add(attr.send_psn, 200), rwk_sim_now(r.sim));
		assert_int_equal(counters(r.a)->too_far, 1);
		end(&r);
	}
	assert_true(taken > 5);
}

/* A lazy requester asks when half its window is used up, and when the last of it is; not for each message. */
static void lazy_requester(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct end *e = end_alone(&attr);
	unsigned asked = 0;

	(void)state;
	post(e, RWK_WR_SEND, 100);
	assert_int_equal(end_sent(e), 32);
	for (unsigned i = 0; i < 32; i++) {
		asked += e->out[i].w.ack_request;
		if (i == 8 || i == 17 || i == 31)
			assert_int_equal(asked, i == 8 ? 0 : i == 17 ? 1 : 2);
	}
	assert_true(e->out[31].w.ack_request);
	end_close(e);
}

/* One whose sender waits for its end asks, and those around it do not. */
static void lazy_but_prompt(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct end *e = end_alone(&attr);
	struct rwk_wr wr[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		wr[i] = (struct rwk_wr){.type = RWK_WR_SEND, .flags = i == 1 ? RWK_WR_PROMPT : 0};
		end_post(e, &wr[i]);
	}
	assert_int_equal(end_sent(e), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(e->out[i].w.ack_request, i == 1);
	end_close(e);
}

/* Nobody waits for the end of a message that is short in bytes, of however many packets. */
static void many_packets_are_not_long(void **state)
{
	enum { PACKETS = 12 };
	struct rwk_rc_attr attr = end_own();
	struct end *e = end_alone(&attr);
	static const uint8_t payload[PACKETS * PMTU];
	const struct iovec iov = {(void *)payload, sizeof(payload)};
	struct rwk_wr wr = {.type = RWK_WR_SEND, .iov = &iov, .iov_count = 1, .length = sizeof(payload)};

	(void)state;
	end_post(e, &wr);
	assert_int_equal(end_sent(e), PACKETS);
	for (unsigned i = 0; i < PACKETS; i++)
		assert_false(e->out[i].w.ack_request);
	end_close(e);
}

/* One of more than 68 KB asks at its end, one of as much does not. */
static void long_asks(void **state)
{
	static const uint8_t payload[8 * RWK_WIRE_OWN_MAX + 1];

	(void)state;
	for (unsigned more = 0; more < 2; more++) {
		struct rwk_rc_attr attr = end_own();
		const struct iovec iov = {(void *)payload, sizeof(payload) - 1 + more};
		struct rwk_wr wr = {.type = RWK_WR_SEND, .iov = &iov, .iov_count = 1, .length = iov.iov_len};
		struct end *e;

		attr.pmtu = 8192;
		e = end_alone(&attr);
		end_post(e, &wr);
		assert_int_equal(end_sent(e), 9);
		for (unsigned i = 0; i < 9; i++)
			assert_int_equal(e->out[i].w.ack_request, more && i == 8);
		end_close(e);
	}
}

/* A lazy responder by itself: silent up to ack_every packets or ack_delay, at once when asked. */
static void lazy_responder(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire w = {.opcode = RWK_WIRE_SEND_ONLY, .psn = attr.receive_psn};
	struct end *e;

	(void)state;
	attr.ack_every = 4;
	e = end_alone(&attr);
	for (unsigned i = 1; i <= 12; i++, w.psn++) {
		end_give(e, &w, NULL, 0);
		assert_int_equal(end_sent(e), i % 4 == 0);
	}
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 0);
	assert_int_equal(rwk_rc_next(e->qp), e->now + attr.ack_delay);
	e->now += attr.ack_delay;
	end_pump(e);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.psn, w.psn);
	/* The delay that it tells, in the last four bytes. */
	assert_int_equal(e->out[0].len, 4);
	assert_int_equal(e->out[0].payload[2] << 8 | e->out[0].payload[3], attr.ack_delay / US);
	w.psn++;
	w.ack_request = true;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	end_close(e);
}

/* In the middle of a message it is silent for twice as many: the last packet will ask. */
static void lazy_in_the_middle(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire w = {.opcode = RWK_WIRE_SEND_FIRST, .psn = attr.receive_psn};
	const uint8_t full[PMTU] = {0};
	struct end *e;

	(void)state;
	attr.ack_every = 4;
	e = end_alone(&attr);
	for (unsigned i = 1; i <= 20; i++, w.psn++) {
		end_give(e, &w, full, sizeof(full));
		assert_int_equal(end_sent(e), i % 8 == 0);
		w.opcode = RWK_WIRE_SEND_MIDDLE;
	}
	w.opcode = RWK_WIRE_SEND_LAST; /* which this one does not */
	end_give(e, &w, full, 1);
	assert_int_equal(end_sent(e), 1);
	end_close(e);
}

/* What an acknowledgement of our own says: the bitmap of what is kept, of a Read all its packets. */
static void bitmap(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire w = {.opcode = RWK_WIRE_SEND_ONLY};
	struct end *e = end_alone(&attr);

	(void)state;
	w.psn = attr.receive_psn + 2;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.opcode, 0xd1);
	assert_int_equal(e->out[0].w.psn, attr.receive_psn - 1);
	assert_int_equal(e->out[0].len, 1 + 4);
	assert_int_equal(e->out[0].payload[0], 1 << 2);
	w.opcode = RWK_WIRE_READ_REQUEST;
	w.psn = attr.receive_psn + 6;
	w.reth.address = e->base;
	w.reth.key = END_KEY;
	w.reth.length = 3 * PMTU + 1;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].len, 2 + 4);
	assert_int_equal(e->out[0].payload[0], 1 << 2 | 3 << 6);
	assert_int_equal(e->out[0].payload[1], 3);
	/* Once more: it is kept once, and acknowledged again. */
	w.opcode = RWK_WIRE_SEND_ONLY;
	w.psn = attr.receive_psn + 2;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(counters(e)->duplicates, 1);
	/* Beyond the window: not kept. */
	w.psn = attr.receive_psn + RWK_RC_WINDOW_MAX;
	end_give(e, &w, NULL, 0);
	w.psn += 44;
	end_give(e, &w, NULL, 0);
	assert_int_equal(counters(e)->too_far, 2);
	assert_int_equal(e->kept_now, 2);
	end_close(e);
}

/* A late duplicate of a Read whose region has gone meanwhile: its client has the data, and the QP lives on. */
static void late_read(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire w = {.opcode = RWK_WIRE_READ_REQUEST, .psn = attr.receive_psn};
	struct end *e = end_alone(&attr);

	(void)state;
	w.reth.address = e->base;
	w.reth.key = END_KEY;
	w.reth.length = 2 * PMTU;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 2);
	e->room = 0;
	end_give(e, &w, NULL, 0); /* one that waits for the link */
	e->revoked = true;
	end_give(e, &w, NULL, 0); /* and one that comes afterwards */
	e->room = 10;
	end_pump(e);
	assert_int_equal(end_sent(e), 0);
	assert_int_equal(rwk_rc_state(e->qp), RWK_QP_RTS);
	/* A new one is refused. */
	w.psn = rwk_psn_add(w.psn, 2);
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.aeth.syndrome, RWK_WIRE_NAK_ACCESS);
	end_close(e);
}

/* S4-14: what has come early is kept; a receive completes only when its message is delivered in order. */
static void early_waits(void **state)
{
	struct rwk_rc_attr attr = end_own();
	static const uint32_t order[] = {3, 1, 4, 2, 0};
	struct end *e = end_alone(&attr);

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct rwk_wire w = {.opcode = RWK_WIRE_SEND_ONLY, .psn = attr.receive_psn + order[i]};
		uint8_t mark = (uint8_t)order[i];

		assert_int_equal(e->message_count, 0);
		end_give(e, &w, &mark, 1);
	}
	assert_int_equal(e->message_count, 5);
	assert_int_equal(e->kept_now, 0);
	for (unsigned i = 0; i < 5; i++) {
		struct end_message *m = end_take(e);

		assert_int_equal(m->bytes[0], i);
		free(m);
	}
	/* One acknowledgement for each early one, and one for all. */
	assert_int_equal(end_sent(e), 5);
	assert_int_equal(e->out[4].w.psn, attr.receive_psn + 4);
	assert_int_equal(e->out[4].len, 4);
	end_close(e);
}

/* The oldest packet is sent again at once, though the window is full of what the peer keeps and cannot take before. */
static void oldest_first(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire ack = {.opcode = RWK_WIRE_OWN | RWK_WIRE_ACK,
		.psn = attr.send_psn - 1,
		.aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT};
	static const uint8_t bits[] = {0xfe, 0, 0, 0, 0};
	struct end *e;

	(void)state;
	attr.window = 8;
	attr.reads = 8;
	e = end_alone(&attr);
	for (unsigned i = 0; i < 8; i++) {
		wrs[i] = end_wr(i ? RWK_WR_READ : RWK_WR_SEND, &iovs[i], i ? back : bytes, 8);
		end_post(e, &wrs[i]);
	}
	assert_int_equal(end_sent(e), 8);
	end_give(e, &ack, bits, sizeof(bits));
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.psn, attr.send_psn);
	end_close(e);
}

/* A Read asked for in other parts than before: what was there is run again, the rest is new. */
static void read_in_other_parts(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire w = {.opcode = RWK_WIRE_READ_REQUEST, .psn = attr.receive_psn};
	struct end *e = end_alone(&attr);

	(void)state;
	for (unsigned i = 0; i < 5 * PMTU; i++)
		e->region[i] = (uint8_t)(i / PMTU + 1);
	w.reth.address = e->base;
	w.reth.key = END_KEY;
	w.reth.length = 2 * PMTU;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 2);
	w.psn++;
	w.reth.address += PMTU;
	w.reth.length = 3 * PMTU + 7;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(e->out[i].w.psn, attr.receive_psn + 1 + i);
		assert_int_equal(e->out[i].payload[0], i + 2);
		assert_int_equal(e->out[i].len, i < 3 ? PMTU : 7);
	}
	w.opcode = RWK_WIRE_SEND_ONLY;
	w.psn = attr.receive_psn + 5;
	w.ack_request = true;
	end_give(e, &w, NULL, 0);
	assert_int_equal(e->message_count, 1);
	end_close(e);
}

/* A receiver that is not ready between our own ends: the one packet waits, what came behind it is kept. */
static void not_ready(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct run r;

	(void)state;
	begin(&r, &attr);
	r.b->receives = 3;
	post(r.a, RWK_WR_SEND, 10);
	for (int i = 0; i < 2000; i++)
		end_step(r.a, r.b, r.began + MS);
	assert_int_equal(r.b->message_count, 3);
	r.b->receives = 100;
	assert_true(end_settle(r.a, r.b, SEC));
	check_all_came(&r, RWK_WR_SEND, 10);
	assert_int_equal(counters(r.a)->sent_again, counters(r.a)->rnr_in);
	end(&r);
}

/*
 * The peer has kept what is now the oldest, was not ready when its turn came, and dropped it; the word of that is lost.
 * A time-out sends it again, whatever else is open: nothing else would.
 */
static void not_ready_unheard(void **state)
{
	struct rwk_rc_attr attr = end_own();
	struct rwk_wire ack = {.opcode = RWK_WIRE_OWN | RWK_WIRE_ACK,
		.psn = attr.send_psn - 1,
		.aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT};
	static const uint8_t second_kept[] = {1 << 1, 0, 0, 0, 0}, none_kept[] = {0, 0, 0, 0};
	struct end *e = end_alone(&attr);
	bool again = false;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		wrs[i] = end_wr(RWK_WR_SEND, &iovs[i], bytes, 8);
		end_post(e, &wrs[i]);
	}
	end_give(e, &ack, second_kept, sizeof(second_kept));
	ack.psn = attr.send_psn;
	end_give(e, &ack, none_kept, sizeof(none_kept));
	assert_int_equal(e->done_count, 1);
	end_sent(e);
	for (unsigned i = 0; i < 5 && !again; i++) {
		e->now = rwk_rc_next(e->qp);
		end_pump(e);
		for (unsigned k = 0, n = end_sent(e); k < n; k++)
			again |= e->out[k].w.psn == attr.send_psn + 1;
	}
	assert_true(again);
	end_close(e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_for_a_minute),
		cmocka_unit_test(retries_end),
		cmocka_unit_test(retries_last),
		cmocka_unit_test(window),
		cmocka_unit_test(read_window),
		cmocka_unit_test(share),
		cmocka_unit_test(congestion_marked),
		cmocka_unit_test(congestion_is_no_passenger),
		cmocka_unit_test(lazy_stream),
		cmocka_unit_test(lazy_requester),
		cmocka_unit_test(lazy_but_prompt),
		cmocka_unit_test(many_packets_are_not_long),
		cmocka_unit_test(long_asks),
		cmocka_unit_test(lazy_responder),
		cmocka_unit_test(lazy_in_the_middle),
		cmocka_unit_test(bitmap),
		cmocka_unit_test(late_read),
		cmocka_unit_test(early_waits),
		cmocka_unit_test(oldest_first),
		cmocka_unit_test(read_in_other_parts),
		cmocka_unit_test(not_ready),
		cmocka_unit_test(not_ready_unheard),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

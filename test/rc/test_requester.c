/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC's rules on the wire for a requester, one by one, of a strict end by itself: the test is its peer, and looks at
 * every packet.
 *
 * Links: sim.
 */
#include "rc/alone.h"

/* S3-2, S3-8: what a message of each kind looks like, packet by packet. */
static void packets_of_a_message(void **state)
{
	static const struct {
		unsigned type, flags, len, first, middle, last;
	} cases[] = {
		{RWK_WR_SEND, 0, 0, 0, 0, RWK_WIRE_SEND_ONLY},
		{RWK_WR_SEND, RWK_WR_IMM, 5, 0, 0, RWK_WIRE_SEND_ONLY_IMM},
		{RWK_WR_SEND, RWK_WR_INVALIDATE, PMTU, 0, 0, RWK_WIRE_SEND_ONLY_INV},
		{RWK_WR_SEND, 0, PMTU + 1, RWK_WIRE_SEND_FIRST, 0, RWK_WIRE_SEND_LAST},
		{RWK_WR_SEND, RWK_WR_IMM, 4 * PMTU, RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE, RWK_WIRE_SEND_LAST_IMM},
		{RWK_WR_SEND, RWK_WR_INVALIDATE, 2 * PMTU + 1, RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE,
			RWK_WIRE_SEND_LAST_INV},
		{RWK_WR_WRITE, 0, 0, 0, 0, RWK_WIRE_WRITE_ONLY},
		{RWK_WR_WRITE, RWK_WR_IMM, 1, 0, 0, RWK_WIRE_WRITE_ONLY_IMM},
		{RWK_WR_WRITE, 0, 2 * PMTU, RWK_WIRE_WRITE_FIRST, 0, RWK_WIRE_WRITE_LAST},
		{RWK_WR_WRITE, RWK_WR_IMM, 5 * PMTU - 1, RWK_WIRE_WRITE_FIRST, RWK_WIRE_WRITE_MIDDLE,
			RWK_WIRE_WRITE_LAST_IMM},
	};

	(void)state;
	for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		struct end *e = end_alone(&attr);
		unsigned n, count = cases[k].len ? (cases[k].len - 1) / PMTU + 1 : 1;

		wrs[0] = end_wr(cases[k].type, &iovs[0], bytes, cases[k].len);
		wrs[0].flags = (uint8_t)(cases[k].flags | RWK_WR_SOLICITED);
		wrs[0].imm = 0x12345678;
		wrs[0].remote = 0xabc;
		end_post(e, &wrs[0]);
		n = end_sent(e);
		assert_int_equal(n, count);
		for (unsigned i = 0; i < n; i++) {
			const struct end_packet *p = &e->out[i];
			bool last = i + 1 == n;

			assert_int_equal(p->w.opcode, last ? cases[k].last : i ? cases[k].middle : cases[k].first);
			assert_int_equal(p->w.psn, attr.send_psn + i);
			assert_int_equal(p->w.ack_request, last);
			assert_int_equal(p->w.solicited, last);
			assert_int_equal(p->len, last ? cases[k].len - i * PMTU : PMTU);
			assert_memory_equal(p->payload, bytes + i * PMTU, p->len);
			if (last && cases[k].flags & RWK_WR_IMM)
				assert_int_equal(p->w.imm, 0x12345678);
			if (last && cases[k].flags & RWK_WR_INVALIDATE)
				assert_int_equal(p->w.invalidate, 0x12345678);
			if (!i && cases[k].type == RWK_WR_WRITE) {
				assert_int_equal(p->w.reth.address, 0xabc);
				assert_int_equal(p->w.reth.key, END_KEY);
				assert_int_equal(p->w.reth.length, cases[k].len);
			}
		}
		assert_int_equal(e->done_count, 0);
		end_give_ack(e, attr.send_psn + count - 1, RWK_WIRE_ACK_NO_LIMIT);
		assert_int_equal(e->done_count, 1);
		end_close(e);
	}
}

/* S1-4: an SRC request carries its class and SRQ number, Middle and Last included. */
static void src_requests(void **state)
{
	struct end *e;

	(void)state;
	attr.service = RWK_WIRE_SRC;
	e = end_alone(&attr);
	wrs[0] = end_wr(RWK_WR_SEND, &iovs[0], bytes, 3 * PMTU);
	wrs[0].srqn = 0x4711;
	end_post(e, &wrs[0]);
	wrs[1] = end_wr(RWK_WR_READ, &iovs[1], back, 8);
	wrs[1].srqn = 0x815;
	end_post(e, &wrs[1]);
	assert_int_equal(end_sent(e), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(RWK_WIRE_CLASS(e->out[i].w.opcode), RWK_WIRE_SRC);
		assert_int_equal(e->out[i].w.srqn, i < 3 ? 0x4711 : 0x815);
	}
	end_close(e);
}

/* AckReq: on the last packet of a message, and at least every 64 packets. */
static void ack_requests(void **state)
{
	unsigned since = 0;
	struct end *e;

	(void)state;
	attr.window = 256;
	e = end_alone(&attr);
	post(e, 0, RWK_WR_SEND, 200 * PMTU);
	assert_int_equal(end_sent(e), 200);
	for (unsigned i = 0; i < 200; i++) {
		since++;
		if (e->out[i].w.ack_request)
			since = 0;
		assert_in_range(since, 0, 63);
	}
	assert_true(e->out[199].w.ack_request);
	assert_false(e->out[0].w.ack_request);
	end_close(e);
}

/* And within each window, however small: else nothing would come of a long message but silence. */
static void ack_requests_small_window(void **state)
{
	struct end *e;

	(void)state;
	for (attr.window = 1; attr.window < 40; attr.window++) {
		unsigned asks = 0;

		e = end_alone(&attr);
		post(e, 0, RWK_WR_SEND, 40 * PMTU);
		assert_int_equal(end_sent(e), attr.window);
		for (unsigned i = 0; i < attr.window; i++)
			asks += e->out[i].w.ack_request;
		assert_true(asks > 0);
		end_close(e);
	}
}

/* S4-13: a Send ends when it is acknowledged. One acknowledgement for many; it ends the requests up to it, in order,
 * and no other. */
static void coalesced(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		post(e, i, RWK_WR_SEND, PMTU + 1);
	end_give_ack(e, attr.send_psn + 7, RWK_WIRE_ACK_NO_LIMIT);
	assert_int_equal(e->done_count, 4);
	assert_ptr_equal(e->done_last, &wrs[3]);
	end_give_ack(e, attr.send_psn + 8, RWK_WIRE_ACK_NO_LIMIT); /* the first half of the fifth */
	assert_int_equal(e->done_count, 4);
	end_give_ack(e, attr.send_psn + 2, RWK_WIRE_ACK_NO_LIMIT); /* an old one */
	assert_int_equal(e->done_count, 4);
	end_give_ack(e, attr.send_psn + 20, RWK_WIRE_ACK_NO_LIMIT); /* never sent */
	assert_int_equal(e->done_count, 4);
	assert_int_equal(counters(e)->too_far, 1);
	end_give_ack(e, attr.send_psn + 19, RWK_WIRE_ACK_NO_LIMIT);
	assert_int_equal(e->done_count, 10);
	assert_true(rwk_rc_idle(e->qp));
	assert_int_equal(rwk_rc_next(e->qp), RWK_NEVER);
	end_close(e);
}

/* A sequence NAK acknowledges all before it, and everything from its PSN on is sent again, once. */
static void nak_sequence(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		post(e, i, RWK_WR_SEND, 16);
	end_sent(e);
	end_give_ack(e, attr.send_psn + 4, RWK_WIRE_NAK_SEQUENCE);
	assert_int_equal(e->done_count, 4);
	assert_int_equal(end_sent(e), 6);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(e->out[i].w.psn, attr.send_psn + 4 + i);
	end_give_ack(e, attr.send_psn + 2, RWK_WIRE_NAK_SEQUENCE); /* an old one */
	assert_int_equal(end_sent(e), 0);
	assert_int_equal(e->done_count, 4);
	end_give_ack(e, attr.send_psn + 10, RWK_WIRE_NAK_SEQUENCE); /* of a packet never sent */
	assert_int_equal(end_sent(e), 0);
	assert_int_equal(counters(e)->too_far, 1);
	end_close(e);
}

/* An answer with the number of the i-th packet arrives. */
static void give_response(struct end *e, unsigned opcode, unsigned i, const uint8_t *payload, size_t len)
{
	struct rwk_wire w = {.opcode = (uint8_t)opcode, .psn = attr.send_psn + i};

	end_give(e, &w, payload, len);
}

/* The requester, too, has no more of them under way than attr.reads, and cuts a Read by read_chunk. */
static void reads_under_way(void **state)
{
	static const unsigned opcodes[] = {
		RWK_WIRE_READ_FIRST, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_LAST};
	struct end *e;

	(void)state;
	attr.reads = 2;
	attr.read_chunk = 4 * PMTU;
	e = end_alone(&attr);
	post(e, 0, RWK_WR_READ, 10 * PMTU + 3);
	post(e, 1, RWK_WR_FETCH_ADD, 8);
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(e->out[0].w.reth.length, 4 * PMTU);
	assert_int_equal(e->out[1].w.psn, attr.send_psn + 4);
	assert_int_equal(e->out[1].w.reth.address, 0x100000000000ull + 4 * PMTU);
	for (unsigned i = 0; i < 11; i++) {
		give_response(e, opcodes[i % 4 + (i == 10)], i, bytes + i * PMTU, i < 10 ? PMTU : 3);
		assert_int_equal(end_sent(e), i == 3 || i == 7);
		if (i == 3)
			assert_int_equal(e->out[0].w.reth.length, 2 * PMTU + 3);
		if (i == 7)
			assert_int_equal(e->out[0].w.opcode, RWK_WIRE_FETCH_ADD);
	}
	assert_int_equal(e->done_count, 1);
	assert_memory_equal(back, bytes, 10 * PMTU + 3);
	end_close(e);
}

/* A response that is none to that request is not placed: `wrong` counts it. */
static void not_placed(struct end *e, const uint64_t *wrong, unsigned opcode, unsigned i, size_t len)
{
	uint64_t before = *wrong;
	unsigned done = e->done_count;

	memset(back, 0xee, sizeof(back));
	give_response(e, opcode, i, bytes, len);
	if (*wrong != before + 1)
		fail_msg("opcode %#x, packet %u, %zu bytes", opcode, i, len);
	assert_int_equal(e->done_count, done);
	for (unsigned k = 0; k < 4 * PMTU; k++)
		assert_int_equal(back[k], 0xee);
}

/* S3-8, S3-11: a response of a wrong length or kind, or to nothing that was asked. */
static void responses_that_lie(void **state)
{
	struct end *e = end_alone(&attr);
	const struct rwk_qp_counters *c = counters(e);

	(void)state;
	post(e, 0, RWK_WR_READ, 2 * PMTU);
	post(e, 1, RWK_WR_SEND, 4);
	end_sent(e);
	not_placed(e, &c->bad_length, RWK_WIRE_READ_FIRST, 0, PMTU - 1);
	not_placed(e, &c->bad_length, RWK_WIRE_READ_FIRST, 0, 0);
	not_placed(e, &c->bad_opcode, RWK_WIRE_ATOMIC_ACK, 0, 0);
	not_placed(e, &c->bad_opcode, RWK_WIRE_READ_ONLY, 2, 4); /* the Send's */
	not_placed(e, &c->too_far, RWK_WIRE_READ_ONLY, 4, 4);
	end_close(e);

	e = end_alone(&attr);
	c = counters(e);
	wrs[0] = end_wr(RWK_WR_FETCH_ADD, &iovs[0], back, 8);
	end_post(e, &wrs[0]);
	end_sent(e);
	not_placed(e, &c->bad_opcode, RWK_WIRE_READ_ONLY, 0, 8);
	end_close(e);

	attr = end_own();
	e = end_alone(&attr);
	post(e, 0, RWK_WR_READ, 2 * PMTU);
	end_sent(e);
	not_placed(e, &counters(e)->bad_opcode, RWK_WIRE_READ_LAST, 0, PMTU);
	not_placed(e, &counters(e)->bad_opcode, RWK_WIRE_READ_FIRST, 1, PMTU);
	give_response(e, RWK_WIRE_READ_ONLY, 0, bytes, PMTU);
	give_response(e, RWK_WIRE_READ_ONLY, 1, bytes + PMTU, PMTU);
	assert_int_equal(e->done_count, 1);
	end_close(e);
}

/* S3-8: a Last has what is left, 1 byte to PMTU, and so has an Only, down to nothing. */
static void responses_that_end(void **state)
{
	static const size_t lasts[] = {9, 11, 0, PMTU}, onlies[] = {0, 6, PMTU};
	struct end *e = end_alone(&attr);

	(void)state;
	post(e, 0, RWK_WR_READ, PMTU + 10);
	give_response(e, RWK_WIRE_READ_FIRST, 0, bytes, PMTU);
	for (unsigned k = 0; k < 4; k++)
		not_placed(e, &counters(e)->bad_length, RWK_WIRE_READ_LAST, 1, lasts[k]);
	give_response(e, RWK_WIRE_READ_LAST, 1, bytes + PMTU, 10);
	assert_int_equal(e->done_count, 1);
	assert_memory_equal(back + PMTU, bytes + PMTU, 10);
	assert_int_equal(back[PMTU + 10], 0xee);

	post(e, 1, RWK_WR_READ, 5);
	for (unsigned k = 0; k < 3; k++)
		not_placed(e, &counters(e)->bad_length, RWK_WIRE_READ_ONLY, 2, onlies[k]);
	give_response(e, RWK_WIRE_READ_ONLY, 2, bytes, 5);
	assert_int_equal(e->done_count, 2);
	post(e, 2, RWK_WR_READ, 0);
	not_placed(e, &counters(e)->bad_opcode, RWK_WIRE_READ_LAST, 3, 0);
	give_response(e, RWK_WIRE_READ_ONLY, 3, bytes, 0);
	assert_int_equal(e->done_count, 3);
	end_close(e);
}

/* S3-8: each of the four stands in its own place alone, in each Read Request of a Read; its length may be right. */
static void responses_out_of_place(void **state)
{
	static const unsigned opcodes[] = {
		RWK_WIRE_READ_FIRST, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_LAST, RWK_WIRE_READ_ONLY};
	static const uint8_t place[] = {0, 1, 2, 0, 1, 2, 3}; /* of each packet that will come */
	struct end *e;

	(void)state;
	attr.read_chunk = 3 * PMTU;
	e = end_alone(&attr);
	post(e, 0, RWK_WR_READ, 7 * PMTU);
	end_sent(e);
	for (unsigned i = 0; i < 7; i++) {
		for (unsigned k = 0; k < 4; k++) /* First, where a Middle should be: see asked_again */
			if (k != place[i] && !(k == 0 && place[i] == 1) && !(k == 3 && place[i] == 2))
				not_placed(e, &counters(e)->bad_opcode, opcodes[k], i, PMTU);
		give_response(e, opcodes[place[i]], i, bytes + i * PMTU, PMTU);
	}
	assert_int_equal(e->done_count, 1);
	end_close(e);
}

/* The response to what is left of a Read begins with a First or an Only of its own, or goes on where it was. */
static void asked_again(void **state)
{
	static const unsigned opcodes[2][4] = {
		{RWK_WIRE_READ_FIRST, RWK_WIRE_READ_FIRST, RWK_WIRE_READ_FIRST, RWK_WIRE_READ_ONLY},
		{RWK_WIRE_READ_FIRST, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_LAST}};

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct end *e = end_alone(&attr);

		memset(back, 0xee, sizeof(back));
		post(e, 0, RWK_WR_READ, 3 * PMTU + 7);
		end_sent(e);
		for (unsigned i = 0; i < 4; i++) {
			give_response(e, opcodes[k][i], i, bytes + i * PMTU, i < 3 ? PMTU : 7);
			end_sent(e);
			e->now += attr.timeout;
			end_pump(e);
			assert_int_equal(end_sent(e), i < 3);
			if (i < 3)
				assert_int_equal(e->out[0].w.reth.length, (2 - i) * PMTU + 7);
		}
		assert_int_equal(e->done_count, 1);
		assert_memory_equal(back, bytes, 3 * PMTU + 7);
		end_close(e);
	}
}

/* An ACK behind a Read whose responses have not come is an implied NAK; the Sends before it are acknowledged. */
static void implied_by_ack(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	post(e, 0, RWK_WR_SEND, 4);
	post(e, 1, RWK_WR_READ, 3 * PMTU);
	post(e, 2, RWK_WR_SEND, 4);
	end_sent(e);
	end_give_ack(e, attr.send_psn + 4, RWK_WIRE_ACK_NO_LIMIT);
	assert_int_equal(e->done_count, 1);
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_READ_REQUEST);
	assert_int_equal(e->out[0].w.psn, attr.send_psn + 1);
	assert_int_equal(e->out[1].w.opcode, RWK_WIRE_SEND_ONLY);
	end_give_ack(e, attr.send_psn + 4, RWK_WIRE_ACK_NO_LIMIT); /* once, not for every such ACK */
	assert_int_equal(end_sent(e), 0);
	give_response(e, RWK_WIRE_READ_FIRST, 1, bytes, PMTU);
	give_response(e, RWK_WIRE_READ_MIDDLE, 2, bytes, PMTU);
	give_response(e, RWK_WIRE_READ_LAST, 3, bytes, PMTU);
	assert_int_equal(e->done_count, 3); /* the Send behind it was acknowledged long ago */
	end_close(e);
}

/* S2-5: a fence waits for Reads and atomics to end; without it a Send or a Write does not wait for a Read before it. */
static void fence(void **state)
{
	struct rwk_wire w = {.opcode = RWK_WIRE_READ_ONLY, .psn = attr.send_psn};
	struct end *e = end_alone(&attr);

	(void)state;
	post(e, 0, RWK_WR_READ, 4);
	post(e, 1, RWK_WR_SEND, 4);
	post(e, 2, RWK_WR_WRITE, 4);
	assert_int_equal(end_sent(e), 3);
	wrs[3] = end_wr(RWK_WR_SEND, &iovs[3], bytes, 4);
	wrs[3].flags = RWK_WR_FENCE;
	end_post(e, &wrs[3]);
	assert_int_equal(end_sent(e), 0);
	end_give(e, &w, bytes, 4);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.psn, attr.send_psn + 3);
	end_close(e);
}

/* The requester waits as long as the code says, then goes on from that PSN; nothing is sent meanwhile. */
static void not_ready_requester(void **state)
{
	static const struct {
		unsigned code;
		rwk_time time;
	} codes[] = {{0, 655360 * US}, {1, 10 * US}, {2, 20 * US}, {5, 60 * US}, {12, 640 * US}, {14, 1280 * US},
		{20, 10240 * US}, {31, 491520 * US}};

	(void)state;
	attr.timeout = 5000 * MS;
	for (unsigned k = 0; k < sizeof(codes) / sizeof(*codes); k++) {
		struct end *e = end_alone(&attr);

		for (unsigned i = 0; i < 5; i++)
			post(e, i, RWK_WR_SEND, 4);
		end_sent(e);
		end_give_ack(e, attr.send_psn + 2, (uint8_t)(RWK_WIRE_RNR | codes[k].code));
		assert_int_equal(e->done_count, 2);
		post(e, 5, RWK_WR_SEND, 4);
		assert_int_equal(rwk_rc_next(e->qp), e->now + codes[k].time);
		e->now += codes[k].time - 1;
		end_pump(e);
		assert_int_equal(end_sent(e), 0);
		e->now++;
		end_pump(e);
		assert_int_equal(end_sent(e), 4);
		assert_int_equal(e->out[0].w.psn, attr.send_psn + 2);
		assert_int_equal(e->out[3].w.psn, attr.send_psn + 5);
		end_close(e);
	}
}

/* rnr_retry: so many attempts more, 7: for ever. */
static void not_ready_retries(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= 7; n++) {
		unsigned naks = 0;
		struct end *e;

		attr.rnr_retry = (uint8_t)n;
		e = end_alone(&attr);
		post(e, 0, RWK_WR_SEND, 4);
		while (naks < 100 && !e->failed_count) {
			end_give_ack(e, attr.send_psn, RWK_WIRE_RNR | 1);
			naks++;
			e->now += 10 * US;
			end_pump(e);
		}
		assert_int_equal(naks, n == 7 ? 100 : n + 1);
		assert_int_equal(e->failed_count, n != 7);
		if (n != 7) {
			assert_int_equal(e->done_status[0], -EAGAIN);
			assert_int_equal(e->failed_err, -EAGAIN);
		}
		end_close(e);
	}
}

/* retry 0 to 7: so many times again, then the QP fails; progress gives them all back. */
static void retries(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= 7; n++) {
		struct end *e;

		attr.retry = (uint8_t)n;
		e = end_alone(&attr);
		post(e, 0, RWK_WR_SEND, 4);
		post(e, 1, RWK_WR_SEND, 4);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(rwk_rc_next(e->qp), e->now + attr.timeout);
			e->now += attr.timeout;
			end_pump(e);
		}
		end_give_ack(e, attr.send_psn, RWK_WIRE_ACK_NO_LIMIT);
		end_sent(e);
		for (unsigned i = 0; i < n; i++) {
			e->now += attr.timeout;
			end_pump(e);
			assert_int_equal(end_sent(e), 1);
			assert_int_equal(e->failed_count, 0);
		}
		e->now += attr.timeout;
		end_pump(e);
		assert_int_equal(end_sent(e), 0);
		assert_int_equal(e->failed_count, 1);
		assert_int_equal(e->failed_err, -ETIMEDOUT);
		assert_int_equal(e->done_status[1], -ETIMEDOUT);
		assert_int_equal(counters(e)->timeouts, 2 * n + 1);
		assert_int_equal(rwk_rc_next(e->qp), RWK_NEVER);
		end_close(e);
	}
}

/* NAK 0x61, 0x62, 0x63: that request's status, the later ones flushed, the earlier ones done; the QP in error. */
static void naks_that_end(void **state)
{
	static const struct {
		uint8_t syndrome;
		int status;
	} naks[] = {{RWK_WIRE_NAK_INVALID, -EINVAL}, {RWK_WIRE_NAK_ACCESS, -EACCES}, {RWK_WIRE_NAK_OPERATIONAL, -EIO}};

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct end *e = end_alone(&attr);

		for (unsigned i = 0; i < 4; i++)
			post(e, i, RWK_WR_SEND, 4);
		end_give_ack(e, attr.send_psn + 1, naks[k].syndrome);
		assert_int_equal(e->done_count, 4);
		assert_int_equal(e->done_status[0], 0);
		assert_int_equal(e->done_status[1], naks[k].status);
		assert_int_equal(e->done_status[2], -ECANCELED);
		assert_int_equal(e->done_status[3], -ECANCELED);
		assert_int_equal(e->failed_count, 1);
		assert_int_equal(e->failed_err, naks[k].status);
		assert_int_equal(rwk_rc_state(e->qp), RWK_QP_ERR);
		assert_int_equal(rwk_rc_next(e->qp), RWK_NEVER);
		end_close(e);
	}
}

/* Who is told that a request has ended posts another one each time, and takes the last of the old ones out. */
static void post_instead(struct end *e, struct rwk_wr *wr, int status)
{
	assert_int_equal(status, -ECANCELED);
	if (e->done_count == 1)
		assert_int_equal(rwk_rc_withdraw(e->qp, &wrs[3]), 0);
	assert_true(e->done_count <= 3); /* or it would go on for ever */
	assert_int_equal(rwk_rc_post(e->qp, wr), 0);
}

/* One flush ends what was there before it: what is posted meanwhile ends with the next. */
static void flushed_once(void **state)
{
	struct end *e;

	(void)state;
	attr.window = 1;
	e = end_alone(&attr);
	for (unsigned i = 0; i < 4; i++)
		post(e, i, RWK_WR_SEND, 4);
	e->on_done = post_instead;
	assert_int_equal(rwk_rc_modify(e->qp, RWK_QP_ERR, NULL), 0);
	assert_int_equal(e->done_count, 3);
	e->on_done = NULL;
	rwk_rc_pump(e->qp, e->now);
	assert_int_equal(e->done_count, 6);
	end_close(e);
}

/* The window: so many packets without an acknowledgement, then none. */
static void window(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 256; n *= 2) {
		struct end *e;

		attr.window = (uint16_t)n;
		e = end_alone(&attr);
		post(e, 0, RWK_WR_SEND, 300 * PMTU);
		assert_int_equal(end_sent(e), n);
		end_give_ack(e, attr.send_psn, RWK_WIRE_ACK_NO_LIMIT);
		assert_int_equal(end_sent(e), 1);
		end_close(e);
	}
}

/* A long Write goes out in one burst, as far as the window and the link have room; a full link loses nothing. */
static void bursts(void **state)
{
	struct end *e;
	unsigned n = 0;

	(void)state;
	attr.window = 256;
	e = end_alone(&attr);
	e->room = 0;
	post(e, 0, RWK_WR_WRITE, 200 * PMTU);
	assert_int_equal(rwk_rc_next(e->qp), 0);
	for (unsigned i = 0; i < 20; i++) {
		e->room = 10;
		n += (unsigned)rwk_rc_pump(e->qp, e->now);
	}
	assert_int_equal(n, 200);
	assert_int_equal(end_sent(e), 200);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(e->out[i].w.psn, attr.send_psn + i);
	end_close(e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(packets_of_a_message, setup),
		cmocka_unit_test_setup(src_requests, setup),
		cmocka_unit_test_setup(ack_requests, setup),
		cmocka_unit_test_setup(ack_requests_small_window, setup),
		cmocka_unit_test_setup(coalesced, setup),
		cmocka_unit_test_setup(nak_sequence, setup),
		cmocka_unit_test_setup(reads_under_way, setup),
		cmocka_unit_test_setup(responses_that_lie, setup),
		cmocka_unit_test_setup(responses_that_end, setup),
		cmocka_unit_test_setup(responses_out_of_place, setup),
		cmocka_unit_test_setup(asked_again, setup),
		cmocka_unit_test_setup(implied_by_ack, setup),
		cmocka_unit_test_setup(fence, setup),
		cmocka_unit_test_setup(not_ready_requester, setup),
		cmocka_unit_test_setup(not_ready_retries, setup),
		cmocka_unit_test_setup(retries, setup),
		cmocka_unit_test_setup(naks_that_end, setup),
		cmocka_unit_test_setup(flushed_once, setup),
		cmocka_unit_test_setup(window, setup),
		cmocka_unit_test_setup(bursts, setup),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

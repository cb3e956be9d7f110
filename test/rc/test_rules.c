/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC's rules on the wire, one by one, of a strict end by itself: the test is its peer, and looks at every packet.
 */
#include "rwk_test.h"

#include "rc/end.h"

#define PMTU 256u
#define US   1000ull
#define MS   1000000ull

static uint8_t bytes[400 * PMTU], back[400 * PMTU];
static struct rwk_wr wrs[400];
static struct iovec iovs[400];
static struct rwk_rc_attr attr;

static int setup(void **state)
{
	(void)state;
	attr = end_strict();
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 13 + i / 255);
	return 0;
}

static const struct rwk_qp_counters *counters(const struct end *e)
{
	return rwk_rc_counters(e->qp);
}

static void post(struct end *e, unsigned i, unsigned type, size_t len)
{
	wrs[i] = end_wr(type, &iovs[i], type == RWK_WR_READ ? back : bytes, len);
	end_post(e, &wrs[i]);
}

static struct rwk_wire request(unsigned operation, uint32_t ahead)
{
	return (struct rwk_wire){.opcode = (uint8_t)(attr.service | operation),
		.psn = rwk_psn_add(attr.receive_psn, ahead),
		.reth = {.address = 0x100000000000ull, .key = END_KEY},
		.atomic = {.address = 0x100000000000ull, .key = END_KEY}};
}

static void give(struct end *e, unsigned operation, uint32_t ahead, size_t len, bool ask)
{
	struct rwk_wire w = request(operation, ahead);

	w.ack_request = ask;
	w.reth.length = (uint32_t)len;
	end_give(e, &w, bytes, len);
}

static void give_read(struct end *e, uint32_t ahead, uint32_t at, uint32_t len)
{
	struct rwk_wire w = request(RWK_WIRE_READ_REQUEST, ahead);

	w.reth.address += at;
	w.reth.length = len;
	end_give(e, &w, NULL, 0);
}

/* Exactly one packet has been sent: an ACK or NAK. */
static void check_ack(struct end *e, uint32_t ahead, unsigned syndrome, uint32_t msn)
{
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.opcode, attr.service | RWK_WIRE_ACK);
	assert_int_equal(e->out[0].w.psn, rwk_psn_add(attr.receive_psn, ahead));
	assert_int_equal(e->out[0].w.aeth.syndrome, syndrome);
	assert_int_equal(e->out[0].w.aeth.msn, msn);
	assert_int_equal(e->out[0].w.pkey, RWK_WIRE_PKEY);
	assert_true(e->out[0].w.migrated);
	assert_int_equal(e->out[0].len, 0);
}

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

/* S1-5, S1-6: an SRQ of another domain: NAK 0x62, and the QP is in error; transport checks come first. */
static void src_domain(void **state)
{
	struct rwk_wire w;
	struct end *e;

	(void)state;
	attr.service = RWK_WIRE_SRC;
	e = end_alone(&attr);
	e->domain = 7;
	w = request(RWK_WIRE_SEND_ONLY, 0);
	w.srqn = 7;
	end_give(e, &w, NULL, 0);
	assert_int_equal(e->message_count, 1);
	w = request(RWK_WIRE_SEND_ONLY, 2);
	w.srqn = 8;
	end_give(e, &w, NULL, 0); /* a gap: the SRQ is not looked at */
	check_ack(e, 1, RWK_WIRE_NAK_SEQUENCE, 1);
	w.psn--;
	end_give(e, &w, NULL, 0);
	check_ack(e, 1, RWK_WIRE_NAK_ACCESS, 1);
	assert_int_equal(rwk_rc_state(e->qp), RWK_QP_ERR);
	assert_int_equal(e->failed_err, -EACCES);
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

/* One acknowledgement for many; it ends the requests up to it, in order, and no other. */
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

/* The responder acknowledges when asked; MSN grows by one a finished message, Reads and atomics included. */
static void acknowledges(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	give(e, RWK_WIRE_SEND_FIRST, 0, PMTU, false);
	give(e, RWK_WIRE_SEND_MIDDLE, 1, PMTU, true);
	check_ack(e, 1, RWK_WIRE_ACK_NO_LIMIT, 0);
	give(e, RWK_WIRE_SEND_LAST, 2, 1, true);
	check_ack(e, 2, RWK_WIRE_ACK_NO_LIMIT, 1);
	give(e, RWK_WIRE_SEND_ONLY, 3, 1, false);
	assert_int_equal(end_sent(e), 0);
	give(e, RWK_WIRE_WRITE_ONLY, 4, 10, true);
	check_ack(e, 4, RWK_WIRE_ACK_NO_LIMIT, 3);
	give_read(e, 5, 0, PMTU + 1);
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(e->out[1].w.aeth.msn, 4);
	give(e, RWK_WIRE_FETCH_ADD, 7, 0, true);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_ATOMIC_ACK);
	assert_int_equal(e->out[0].w.aeth.msn, 5);
	/* Several packets before one pump: one acknowledgement. */
	for (uint32_t i = 8; i < 12; i++) {
		struct rwk_wire w = request(RWK_WIRE_SEND_ONLY, i);

		w.ack_request = true;
		rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
	}
	end_pump(e);
	check_ack(e, 11, RWK_WIRE_ACK_NO_LIMIT, 9);
	end_close(e);
}

/* A gap: one NAK with the expected PSN, then silence until that comes; then all goes on. */
static void gap(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	give(e, RWK_WIRE_SEND_ONLY, 0, 1, false);
	give(e, RWK_WIRE_SEND_ONLY, 3, 1, true);
	check_ack(e, 1, RWK_WIRE_NAK_SEQUENCE, 1);
	give(e, RWK_WIRE_SEND_ONLY, 4, 1, true);
	give(e, RWK_WIRE_SEND_ONLY, 5, 1, true);
	give(e, RWK_WIRE_SEND_ONLY, 3, 1, true);
	assert_int_equal(end_sent(e), 0);
	assert_int_equal(e->message_count, 1);
	give(e, RWK_WIRE_SEND_ONLY, 1, 1, true);
	check_ack(e, 1, RWK_WIRE_ACK_NO_LIMIT, 2);
	give(e, RWK_WIRE_SEND_ONLY, 3, 1, true);
	check_ack(e, 2, RWK_WIRE_NAK_SEQUENCE, 2);
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

/* Duplicates: a Send or Write is acknowledged again and not done again. */
static void duplicates(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	give(e, RWK_WIRE_SEND_ONLY, 0, 1, false);
	give(e, RWK_WIRE_WRITE_ONLY, 1, 8, false);
	give(e, RWK_WIRE_SEND_ONLY, 2, 1, false);
	assert_int_equal(end_sent(e), 0);
	give(e, RWK_WIRE_SEND_ONLY, 0, 1, false);
	check_ack(e, 2, RWK_WIRE_ACK_NO_LIMIT, 3);
	give(e, RWK_WIRE_WRITE_ONLY, 1, 8, false);
	check_ack(e, 2, RWK_WIRE_ACK_NO_LIMIT, 3);
	assert_int_equal(e->message_count, 2);
	assert_int_equal(e->writes, 1);
	assert_int_equal(counters(e)->duplicates, 2);
	end_close(e);
}

/* S3-3: a Read: its responses take its PSNs; the next request's PSN is behind them. */
static void reads(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	memcpy(e->region, bytes, sizeof(bytes));
	give_read(e, 0, 100, 3 * PMTU + 10);
	assert_int_equal(end_sent(e), 4);
	for (unsigned i = 0; i < 4; i++) {
		static const uint8_t opcodes[] = {
			RWK_WIRE_READ_FIRST, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_LAST};

		assert_int_equal(e->out[i].w.opcode, opcodes[i]);
		assert_int_equal(e->out[i].w.psn, attr.receive_psn + i);
		assert_int_equal(e->out[i].len, i < 3 ? PMTU : 10);
		assert_memory_equal(e->out[i].payload, bytes + 100 + i * PMTU, e->out[i].len);
	}
	give_read(e, 4, 0, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_READ_ONLY);
	assert_int_equal(e->out[0].w.psn, attr.receive_psn + 4);
	assert_int_equal(e->out[0].len, 0);
	/* Again, and a part of it: run again, at the PSN where that part was. */
	give_read(e, 0, 100, 3 * PMTU + 10);
	assert_int_equal(end_sent(e), 4);
	memset(e->region + 100 + 2 * PMTU, 0x77, PMTU);
	give_read(e, 2, 100 + 2 * PMTU, PMTU + 10);
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_READ_FIRST);
	assert_int_equal(e->out[0].w.psn, attr.receive_psn + 2);
	assert_int_equal(e->out[0].payload[5], 0x77);
	/* More than was ever asked for is not run. */
	give_read(e, 2, 0, 4 * PMTU);
	assert_int_equal(end_sent(e), 0);
	assert_int_equal(counters(e)->bad_length, 1);
	give(e, RWK_WIRE_SEND_ONLY, 5, 0, true);
	check_ack(e, 5, RWK_WIRE_ACK_NO_LIMIT, 3);
	end_close(e);
}

/* S3-10, S3-11: atomics are always answered, each by one packet, and a duplicate from the saved result. */
static void atomics(void **state)
{
	struct end *e;
	uint64_t word = 5;

	(void)state;
	attr.peer_reads = RWK_RC_READS_MAX;
	e = end_alone(&attr);
	memcpy(e->region, &word, 8);
	for (uint32_t i = 0; i < 40; i++) {
		struct rwk_wire w = request(RWK_WIRE_FETCH_ADD, i);

		w.atomic.swap_add = 1;
		end_give(e, &w, NULL, 0);
		assert_int_equal(end_sent(e), 1);
		assert_int_equal(e->out[0].w.opcode, RWK_WIRE_ATOMIC_ACK);
		assert_int_equal(e->out[0].w.psn, attr.receive_psn + i);
		assert_int_equal(e->out[0].w.atomic_ack, 5 + i);
	}
	/* The last sixteen can be asked for again. */
	for (uint32_t i = 24; i < 40; i++) {
		give(e, RWK_WIRE_FETCH_ADD, i, 0, true);
		assert_int_equal(end_sent(e), 1);
		assert_int_equal(e->out[0].w.atomic_ack, 5 + i);
		assert_int_equal(e->out[0].w.psn, attr.receive_psn + i);
	}
	assert_int_equal(e->atomics, 40);
	memcpy(&word, e->region, 8);
	assert_int_equal(word, 45);
	give(e, RWK_WIRE_FETCH_ADD, 0, 0, true); /* too long ago: no answer rather than a wrong one */
	assert_int_equal(end_sent(e), 0);
	assert_int_equal(e->atomics, 40);
	end_close(e);
}

/* Compare and Swap swaps only if equal (S3-5); one that is not aligned is refused, and nothing is touched. */
static void compare_swap(void **state)
{
	struct end *e = end_alone(&attr);
	struct rwk_wire w = request(RWK_WIRE_COMPARE_SWAP, 0);
	uint64_t word = 5;

	(void)state;
	memcpy(e->region, &word, 8);
	w.atomic.compare = 4;
	w.atomic.swap_add = 9;
	end_give(e, &w, NULL, 0);
	assert_int_equal(e->out[0].w.atomic_ack, 5);
	memcpy(&word, e->region, 8);
	assert_int_equal(word, 5);
	w.psn++;
	w.atomic.compare = 5;
	end_give(e, &w, NULL, 0);
	assert_int_equal(e->out[1].w.atomic_ack, 5);
	memcpy(&word, e->region, 8);
	assert_int_equal(word, 9);
	end_sent(e);
	w.psn++;
	w.atomic.address += 4;
	end_give(e, &w, NULL, 0);
	check_ack(e, 2, RWK_WIRE_NAK_INVALID, 2);
	assert_int_equal(e->atomics, 2);
	end_close(e);
}

/* Answers in the order of the requests: an ACK for what is behind a Read follows its responses. */
static void answers_in_order(void **state)
{
	struct rwk_wire w = request(RWK_WIRE_READ_REQUEST, 0);
	struct end *e = end_alone(&attr);

	(void)state;
	w.reth.length = 2 * PMTU;
	rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
	w = request(RWK_WIRE_FETCH_ADD, 2);
	rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
	w = request(RWK_WIRE_SEND_ONLY, 3);
	w.ack_request = true;
	rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
	w = request(RWK_WIRE_SEND_ONLY, 5);
	rwk_rc_packet(e->qp, &w, NULL, 0, e->now);
	e->room = 1;
	end_pump(e);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_READ_FIRST);
	assert_int_equal(rwk_rc_next(e->qp), 0);
	e->room = 10;
	end_pump(e);
	assert_int_equal(end_sent(e), 3);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_READ_LAST);
	assert_int_equal(e->out[1].w.opcode, RWK_WIRE_ATOMIC_ACK);
	assert_int_equal(e->out[2].w.opcode, RWK_WIRE_ACK);
	assert_int_equal(e->out[2].w.aeth.syndrome, RWK_WIRE_NAK_SEQUENCE);
	assert_int_equal(e->out[2].w.psn, attr.receive_psn + 4);
	end_close(e);
}

/* No more Reads and atomics at a time than agreed: the next is an invalid request. */
static void reads_limited(void **state)
{
	struct end *e;

	(void)state;
	attr.peer_reads = 2;
	e = end_alone(&attr);
	e->room = 0;
	give_read(e, 0, 0, 1);
	give_read(e, 1, 0, 1);
	assert_int_equal(rwk_rc_state(e->qp), RWK_QP_RTS);
	give_read(e, 2, 0, 1);
	e->room = 10;
	end_pump(e);
	assert_int_equal(end_sent(e), 3);
	assert_int_equal(e->out[2].w.aeth.syndrome, RWK_WIRE_NAK_INVALID);
	assert_int_equal(rwk_rc_state(e->qp), RWK_QP_ERR);
	end_close(e);
}

/* The requester, too, has no more of them under way than attr.reads, and cuts a Read by read_chunk. */
static void reads_under_way(void **state)
{
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
		struct rwk_wire w = {.opcode = RWK_WIRE_READ_MIDDLE, .psn = attr.send_psn + i};

		end_give(e, &w, bytes + i * PMTU, i < 10 ? PMTU : 3);
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

/* A response of a wrong length or kind is not placed. */
static void responses_that_lie(void **state)
{
	struct end *e = end_alone(&attr);
	struct rwk_wire w = {.opcode = RWK_WIRE_READ_FIRST, .psn = attr.send_psn};

	(void)state;
	memset(back, 0xee, sizeof(back));
	post(e, 0, RWK_WR_READ, 2 * PMTU);
	post(e, 1, RWK_WR_SEND, 4);
	end_sent(e);
	end_give(e, &w, bytes, PMTU - 1);
	end_give(e, &w, bytes, 0);
	assert_int_equal(counters(e)->bad_length, 2);
	w.opcode = RWK_WIRE_ATOMIC_ACK;
	end_give(e, &w, NULL, 0);
	assert_int_equal(counters(e)->bad_opcode, 1);
	w.opcode = RWK_WIRE_READ_ONLY;
	w.psn += 2; /* the Send's */
	end_give(e, &w, bytes, 4);
	assert_int_equal(counters(e)->bad_opcode, 2);
	w.psn += 2;
	end_give(e, &w, bytes, 4);
	assert_int_equal(counters(e)->too_far, 1);
	assert_int_equal(e->done_count, 0);
	for (unsigned i = 0; i < 2 * PMTU; i++)
		assert_int_equal(back[i], 0xee);
	end_close(e);
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
	for (unsigned i = 0; i < 3; i++) {
		struct rwk_wire w = {.opcode = RWK_WIRE_READ_MIDDLE, .psn = attr.send_psn + 1 + i};

		end_give(e, &w, bytes, PMTU);
	}
	assert_int_equal(e->done_count, 3); /* the Send behind it was acknowledged long ago */
	end_close(e);
}

/* A fence waits for Reads and atomics to end; without it nothing waits. */
static void fence(void **state)
{
	struct rwk_wire w = {.opcode = RWK_WIRE_READ_ONLY, .psn = attr.send_psn};
	struct end *e = end_alone(&attr);

	(void)state;
	post(e, 0, RWK_WR_READ, 4);
	post(e, 1, RWK_WR_SEND, 4);
	assert_int_equal(end_sent(e), 2);
	wrs[2] = end_wr(RWK_WR_SEND, &iovs[2], bytes, 4);
	wrs[2].flags = RWK_WR_FENCE;
	end_post(e, &wrs[2]);
	assert_int_equal(end_sent(e), 0);
	end_give(e, &w, bytes, 4);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.psn, attr.send_psn + 2);
	end_close(e);
}

/* Not ready: the NAK has the PSN refused and our timer; silence till it comes again; then it is taken. */
static void not_ready_responder(void **state)
{
	struct end *e;

	(void)state;
	attr.rnr_timer = 14;
	e = end_alone(&attr);
	e->receives = 0;
	give(e, RWK_WIRE_SEND_ONLY, 0, 3, true);
	check_ack(e, 0, RWK_WIRE_RNR | 14, 0);
	give(e, RWK_WIRE_SEND_ONLY, 1, 3, true);
	assert_int_equal(end_sent(e), 0);
	give(e, RWK_WIRE_SEND_ONLY, 0, 3, true);
	check_ack(e, 0, RWK_WIRE_RNR | 14, 0);
	e->receives = 1;
	give(e, RWK_WIRE_SEND_ONLY, 0, 3, true);
	check_ack(e, 0, RWK_WIRE_ACK_NO_LIMIT, 1);
	/* A Write needs no receive (S4-15), one with immediate does. */
	give(e, RWK_WIRE_WRITE_ONLY, 1, 3, true);
	check_ack(e, 1, RWK_WIRE_ACK_NO_LIMIT, 2);
	give(e, RWK_WIRE_WRITE_ONLY_IMM, 2, 3, true);
	check_ack(e, 2, RWK_WIRE_RNR | 14, 2);
	e->receives = 1;
	give(e, RWK_WIRE_WRITE_ONLY_IMM, 2, 3, true);
	check_ack(e, 2, RWK_WIRE_ACK_NO_LIMIT, 3);
	assert_int_equal(e->written_count, 1);
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

/* What a responder must refuse: the syndrome, and that nothing was touched. S3-6, S3-8. */
static void refusals(void **state)
{
	static const struct {
		const char *what;
		bool in_send; /* a Send's First has come */
		unsigned operation, len, reth_len, access, says;
		uint8_t syndrome;
	} cases[] = {
		{"Middle without First", false, RWK_WIRE_SEND_MIDDLE, PMTU, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Last without First", false, RWK_WIRE_SEND_LAST, 1, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Write Last without First", false, RWK_WIRE_WRITE_LAST, 1, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"First in a message", true, RWK_WIRE_SEND_FIRST, PMTU, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Only in a message", true, RWK_WIRE_SEND_ONLY, 1, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Write Middle in a Send", true, RWK_WIRE_WRITE_MIDDLE, PMTU, 0, 7, 0,
			RWK_WIRE_NAK_INVALID},
		{"Read in a message", true, RWK_WIRE_READ_REQUEST, 0, 4, 7, 0, RWK_WIRE_NAK_INVALID},
		{"atomic in a message", true, RWK_WIRE_FETCH_ADD, 0, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"First of less than a PMTU", false, RWK_WIRE_SEND_FIRST, PMTU - 1, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Middle of less", true, RWK_WIRE_SEND_MIDDLE, PMTU - 4, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Last of nothing", true, RWK_WIRE_SEND_LAST, 0, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Only of more than a PMTU", false, RWK_WIRE_SEND_ONLY, PMTU + 1, 0, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Write longer than it says", false, RWK_WIRE_WRITE_ONLY, 9, 8, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Write shorter than it says", false, RWK_WIRE_WRITE_ONLY, 7, 8, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Write First that is all", false, RWK_WIRE_WRITE_FIRST, PMTU, PMTU, 7, 0, RWK_WIRE_NAK_INVALID},
		{"Write without permission", false, RWK_WIRE_WRITE_ONLY, 8, 8, RWK_REACH_READ, 0, RWK_WIRE_NAK_ACCESS},
		{"Write out of range", false, RWK_WIRE_WRITE_FIRST, PMTU, END_REGION + 1, 7, 0, RWK_WIRE_NAK_ACCESS},
		{"Read without permission", false, RWK_WIRE_READ_REQUEST, 0, 8, RWK_REACH_WRITE, 0, RWK_WIRE_NAK_ACCESS},
		{"Read out of range", false, RWK_WIRE_READ_REQUEST, 0, END_REGION + 1, 7, 0, RWK_WIRE_NAK_ACCESS},
		{"Read beyond 2 GB", false, RWK_WIRE_READ_REQUEST, 0, RWK_WIRE_LENGTH_MAX + 1, 7, 0, RWK_WIRE_NAK_INVALID},
		{"atomic without permission", false, RWK_WIRE_FETCH_ADD, 0, 0, RWK_REACH_READ | RWK_REACH_WRITE, 0,
			RWK_WIRE_NAK_ACCESS},
		{"Send longer than the receive", false, RWK_WIRE_SEND_ONLY, 9, 0, 7, EMSGSIZE, RWK_WIRE_NAK_INVALID},
		{"Send that the host cannot take", false, RWK_WIRE_SEND_ONLY, 9, 0, 7, EIO, RWK_WIRE_NAK_OPERATIONAL},
	};

	(void)state;
	for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++)
		for (unsigned by_attr = 0; by_attr < 2; by_attr++) {
			struct rwk_wire w;
			struct end *e;
			uint32_t at = 0;

			attr.reach = by_attr ? cases[k].access : 7;
			e = end_alone(&attr);
			e->reach = by_attr ? 7 : cases[k].access;
			if (cases[k].in_send)
				give(e, RWK_WIRE_SEND_FIRST, at++, PMTU, false);
			assert_int_equal(end_sent(e), 0);
			e->receive_says = -(int)cases[k].says;
			w = request(cases[k].operation, at);
			w.reth.length = cases[k].reth_len;
			end_give(e, &w, bytes, cases[k].len);
			if (end_sent(e) != 1 || e->out[0].w.aeth.syndrome != cases[k].syndrome ||
				e->out[0].w.psn != attr.receive_psn + at)
				fail_msg("%s: syndrome %x", cases[k].what, e->out[0].w.aeth.syndrome);
			assert_int_equal(e->failed_count, 1);
			assert_int_equal(rwk_rc_state(e->qp), RWK_QP_ERR);
			assert_int_equal(e->message_count + e->writes + e->reads + e->atomics, 0);
			give(e, RWK_WIRE_SEND_ONLY, at, 1, true); /* nothing is taken any more */
			assert_int_equal(end_sent(e), 0);
			assert_int_equal(e->message_count, 0);
			end_close(e);
		}
}

/* A region that goes away while a Read of it waits: the NAK has the PSN of the response that failed. */
static void region_gone(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	e->room = 1;
	give_read(e, 0, 0, 3 * PMTU);
	e->revoked = true;
	e->room = 10;
	end_pump(e);
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(e->out[1].w.aeth.syndrome, RWK_WIRE_NAK_ACCESS);
	assert_int_equal(e->out[1].w.psn, attr.receive_psn + 1);
	end_close(e);
	/* And a requester takes that for its Read's end. */
	e = end_alone(&attr);
	post(e, 0, RWK_WR_READ, 3 * PMTU);
	end_give_ack(e, attr.send_psn + 1, RWK_WIRE_NAK_ACCESS);
	assert_int_equal(e->done_status[0], -EACCES);
	end_close(e);
}

/* PSNs wrap, both ways, in every kind of message. */
static void psn_wraps(void **state)
{
	struct end *e;

	(void)state;
	attr.send_psn = attr.receive_psn = RWK_PSN_MASK - 1;
	e = end_alone(&attr);
	post(e, 0, RWK_WR_SEND, 4 * PMTU);
	post(e, 1, RWK_WR_READ, 2 * PMTU);
	assert_int_equal(end_sent(e), 5);
	assert_int_equal(e->out[1].w.psn, RWK_PSN_MASK);
	assert_int_equal(e->out[2].w.psn, 0);
	assert_int_equal(e->out[4].w.psn, 2);
	end_give_ack(e, 0, RWK_WIRE_NAK_SEQUENCE);
	assert_int_equal(end_sent(e), 3);
	assert_int_equal(e->out[0].w.psn, 0);
	end_give_ack(e, 1, RWK_WIRE_ACK_NO_LIMIT);
	assert_int_equal(e->done_count, 1);
	give_read(e, 0, 0, 4 * PMTU);
	assert_int_equal(end_sent(e), 4);
	assert_int_equal(e->out[3].w.psn, 1);
	give(e, RWK_WIRE_SEND_ONLY, 4, 1, true);
	check_ack(e, 4, RWK_WIRE_ACK_NO_LIMIT, 2);
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

/* Classes and opcodes that are not this QP's are dropped and counted. */
static void foreign(void **state)
{
	static const uint8_t opcodes[] = {RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, RWK_WIRE_UD | RWK_WIRE_SEND_ONLY,
		RWK_WIRE_SRC | RWK_WIRE_SEND_ONLY, RWK_WIRE_OWN | RWK_WIRE_ACK, RWK_WIRE_CNP | 1, 0x15, 0x18, 0x1f};
	struct end *e = end_alone(&attr);

	(void)state;
	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		struct rwk_wire w = {.opcode = opcodes[i], .psn = attr.receive_psn, .ack_request = true};

		end_give(e, &w, NULL, 0);
		assert_int_equal(end_sent(e), 0);
		assert_int_equal(counters(e)->bad_opcode, i + 1);
	}
	for (unsigned syndrome = 0x40; syndrome < 0x100; syndrome++) {
		if (syndrome >= 0x60 && syndrome <= 0x63)
			continue;
		post(e, 0, RWK_WR_SEND, 1);
		end_give_ack(e, attr.send_psn, (uint8_t)syndrome);
		assert_int_equal(e->done_count, 0);
		assert_int_equal(rwk_rc_withdraw(e->qp, &wrs[0]), -EBUSY);
		end_close(e);
		e = end_alone(&attr);
	}
	end_close(e);
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
		cmocka_unit_test_setup(src_domain, setup),
		cmocka_unit_test_setup(ack_requests, setup),
		cmocka_unit_test_setup(coalesced, setup),
		cmocka_unit_test_setup(acknowledges, setup),
		cmocka_unit_test_setup(gap, setup),
		cmocka_unit_test_setup(nak_sequence, setup),
		cmocka_unit_test_setup(duplicates, setup),
		cmocka_unit_test_setup(reads, setup),
		cmocka_unit_test_setup(atomics, setup),
		cmocka_unit_test_setup(compare_swap, setup),
		cmocka_unit_test_setup(answers_in_order, setup),
		cmocka_unit_test_setup(reads_limited, setup),
		cmocka_unit_test_setup(reads_under_way, setup),
		cmocka_unit_test_setup(responses_that_lie, setup),
		cmocka_unit_test_setup(implied_by_ack, setup),
		cmocka_unit_test_setup(fence, setup),
		cmocka_unit_test_setup(not_ready_responder, setup),
		cmocka_unit_test_setup(not_ready_requester, setup),
		cmocka_unit_test_setup(not_ready_retries, setup),
		cmocka_unit_test_setup(retries, setup),
		cmocka_unit_test_setup(naks_that_end, setup),
		cmocka_unit_test_setup(refusals, setup),
		cmocka_unit_test_setup(region_gone, setup),
		cmocka_unit_test_setup(psn_wraps, setup),
		cmocka_unit_test_setup(window, setup),
		cmocka_unit_test_setup(foreign, setup),
		cmocka_unit_test_setup(bursts, setup),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC's rules on the wire for a responder, one by one, of a strict end by itself: the test is its peer, and looks at
 * every packet.
 *
 * Links: sim.
 */
#include "rc/alone.h"

#include <limits.h>

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

/* S1-6: so it is with requests of no bytes, which need no key: their SRQ is looked at all the same. */
static void src_domain_of_nothing(void **state)
{
	static const uint8_t operations[] = {RWK_WIRE_WRITE_ONLY, RWK_WIRE_WRITE_ONLY_IMM, RWK_WIRE_READ_REQUEST};

	(void)state;
	attr.service = RWK_WIRE_SRC;
	for (unsigned i = 0; i < sizeof(operations); i++) {
		struct rwk_wire w = request(operations[i], 0);
		struct end *e = end_alone(&attr);

		e->domain = 7;
		w.ack_request = true;
		w.srqn = 7;
		w.reth.key = 0;
		end_give(e, &w, NULL, 0);
		assert_int_equal(end_sent(e), 1);
		assert_int_equal(rwk_rc_state(e->qp), RWK_QP_RTS);
		w.psn = rwk_psn_add(w.psn, 1);
		w.srqn = 8;
		end_give(e, &w, NULL, 0);
		check_ack(e, 1, RWK_WIRE_NAK_ACCESS, 1);
		assert_int_equal(rwk_rc_state(e->qp), RWK_QP_ERR);
		end_close(e);
	}
}

/* S1-6: the same Read again, but of an SRQ that may not be named. */
static void src_domain_again(void **state)
{
	struct rwk_wire w = request(RWK_WIRE_READ_REQUEST, 0);
	struct end *e;

	(void)state;
	attr.service = RWK_WIRE_SRC;
	w.opcode = RWK_WIRE_SRC | RWK_WIRE_READ_REQUEST;
	e = end_alone(&attr);
	e->domain = 7;
	w.srqn = 7;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	w.srqn = 8;
	end_give(e, &w, NULL, 0);
	check_ack(e, 0, RWK_WIRE_NAK_ACCESS, 1);
	end_close(e);
}

/* S1-5: more Reads than were agreed are refused as such, whatever SRQ they name. */
static void src_transport_first(void **state)
{
	struct rwk_wire w;
	struct end *e;

	(void)state;
	attr.service = RWK_WIRE_SRC;
	attr.peer_reads = 1;
	e = end_alone(&attr);
	e->domain = 7;
	e->room = 0; /* so that the first is not answered yet */
	w = request(RWK_WIRE_READ_REQUEST, 0);
	w.srqn = 7;
	end_give(e, &w, NULL, 0);
	w = request(RWK_WIRE_READ_REQUEST, 1);
	w.reth.length = 4;
	w.srqn = 8;
	end_give(e, &w, NULL, 0);
	e->room = UINT_MAX;
	end_pump(e);
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(e->out[1].w.aeth.syndrome, RWK_WIRE_NAK_INVALID);
	end_close(e);
}

/* S3-10: the responder acknowledges when asked; MSN grows by one a finished message, Reads and atomics included. */
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

/* S3-4, S3-10, S3-11: atomics are always answered, each by one packet, and a duplicate from the saved result. */
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
		{"Write Middle in a Send", true, RWK_WIRE_WRITE_MIDDLE, PMTU, 0, 7, 0, RWK_WIRE_NAK_INVALID},
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
		{"Read without permission", false, RWK_WIRE_READ_REQUEST, 0, 8, RWK_REACH_WRITE, 0,
			RWK_WIRE_NAK_ACCESS},
		{"Read out of range", false, RWK_WIRE_READ_REQUEST, 0, END_REGION + 1, 7, 0, RWK_WIRE_NAK_ACCESS},
		{"Read beyond 2 GB", false, RWK_WIRE_READ_REQUEST, 0, RWK_WIRE_LENGTH_MAX + 1, 7, 0,
			RWK_WIRE_NAK_INVALID},
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(src_domain, setup),
		cmocka_unit_test_setup(src_domain_of_nothing, setup),
		cmocka_unit_test_setup(src_domain_again, setup),
		cmocka_unit_test_setup(src_transport_first, setup),
		cmocka_unit_test_setup(acknowledges, setup),
		cmocka_unit_test_setup(gap, setup),
		cmocka_unit_test_setup(duplicates, setup),
		cmocka_unit_test_setup(reads, setup),
		cmocka_unit_test_setup(atomics, setup),
		cmocka_unit_test_setup(compare_swap, setup),
		cmocka_unit_test_setup(answers_in_order, setup),
		cmocka_unit_test_setup(reads_limited, setup),
		cmocka_unit_test_setup(not_ready_responder, setup),
		cmocka_unit_test_setup(refusals, setup),
		cmocka_unit_test_setup(region_gone, setup),
		cmocka_unit_test_setup(psn_wraps, setup),
		cmocka_unit_test_setup(foreign, setup),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

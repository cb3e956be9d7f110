/* SPDX-License-Identifier: BSD-3-Clause */
/* What the unreliable connection does not take, from its client and from the wire; it never answers. Links: sim. */
#include "uc/ends.h"

#define PMTU 256u
#define A    0u /* first numbers */

/* S0-1, S3-10: whatever the responder is given, also what asks for an answer, it never sends an ACK or a NAK. */
static void s0_1(void **state)
{
	static const uint8_t bytes[PMTU];
	struct rwk_wire w;

	(void)state;
	ends_open(1, PMTU, NULL);
	receiver.blind = true;
	receiver.refuse = -EACCES;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		for (unsigned i = 0; i < 3; i++) {
			size_t len = i * PMTU / 2;

			w = ends_wire(0, rwk_psn_add(FIRST_PSN, opcode * 4 + i)); /* a gap for each opcode */
			w.opcode = (uint8_t)opcode;
			w.ack_request = true;
			w.reth.key = opcode & 1 ? KEY : 0;
			w.reth.address = BASE;
			w.reth.length = (uint32_t)len;
			receiver.receives = opcode % 3;
			ends_inject(&receiver, &w, bytes, len);
		}
	}
	assert_true(ends_counters(&receiver)->bad_opcode > 200);
	assert_true(ends_counters(&receiver)->bad_access > 0);
	assert_true(ends_counters(&receiver)->gaps > 0);
	assert_int_equal(receiver.failed, 0);
	assert_int_equal(rwk_uc_state(receiver.qp), RWK_QP_RTS);
	assert_int_equal(ends_counters(&receiver)->acks_out, 0);
	assert_int_equal(ends_counters(&receiver)->naks_out, 0);
	assert_int_equal(ends_counters(&receiver)->rnr_out, 0);
	ends_close();
}

/* S0-7: a Read or an atomic is refused when it is posted, in each state, and nothing of it is sent. */
static void s0_7(void **state)
{
	static const uint8_t types[] = {RWK_WR_READ, RWK_WR_COMPARE_SWAP, RWK_WR_FETCH_ADD};
	struct rwk_uc_attr attr;
	struct message *m;

	(void)state;
	ends_open(6, PMTU, NULL);
	attr = ends_attr(&sender, PMTU);
	m = ends_make(RWK_WR_SEND, 0, 8);
	rwk_uc_modify(sender.qp, RWK_QP_RESET, NULL);
	for (unsigned s = RWK_QP_RESET; s <= RWK_QP_ERR; s++) {
		if (s != RWK_QP_RESET)
			assert_int_equal(rwk_uc_modify(sender.qp, s, s == RWK_QP_RTR ? &attr : NULL), 0);
		assert_int_equal(rwk_uc_state(sender.qp), s);
		for (unsigned i = 0; i < 3; i++) {
			m->wr.type = types[i];
			assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EOPNOTSUPP);
		}
		assert_int_equal(rwk_uc_pump(sender.qp), 0);
		assert_int_equal(m->done, 0);
	}
	m->wr.type = RWK_WR_FETCH_ADD + 1;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EINVAL);
	m->wr.type = RWK_WR_SEND;
	m->wr.flags = RWK_WR_INVALIDATE;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EINVAL);
	ends_close();
}

/*
 * S3-6: a Write with a wrong key, or beyond the region, or on a QP that is not to be written by, or whose key goes
 * while it is under way: nothing (more) is touched, nothing is said, and what follows is not harmed.
 */
static void s3_6(void **state)
{
	struct rwk_uc_attr attr;
	struct message *m;

	(void)state;
	ends_open(17, PMTU, NULL);
	m = ends_make(RWK_WR_WRITE, IMM, 3 * PMTU);
	m->wr.key = KEY + 1;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), 0);
	m = ends_make(RWK_WR_WRITE, IMM, 10);
	m->wr.remote += 1;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), 0);
	ends_post(RWK_WR_SEND, 0, 10);
	ends_settle();
	assert_log(A + 2);
	assert_int_equal(receiver.writes, 0);
	assert_int_equal(ends_counters(&receiver)->bad_access, 2);
	m = ends_post(RWK_WR_WRITE, IMM, 3 * PMTU);
	sender.room = 1;
	ends_settle();
	receiver.refuse = -EACCES;
	sender.room = -1;
	ends_settle();
	receiver.refuse = 0;
	assert_int_equal(m->placed, PMTU);
	assert_int_equal(m->ended, 0);
	assert_int_equal(ends_counters(&receiver)->bad_access, 3);

	attr = ends_attr(&receiver, PMTU);
	attr.receive_psn = rwk_psn_add(FIRST_PSN, sender.emitted);
	attr.reach = RWK_REACH_READ;
	assert_int_equal(rwk_uc_modify(receiver.qp, RWK_QP_RESET, NULL), 0);
	assert_int_equal(rwk_uc_modify(receiver.qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_uc_modify(receiver.qp, RWK_QP_RTR, &attr), 0);
	m = ends_post(RWK_WR_WRITE, IMM, 3 * PMTU);
	ends_post(RWK_WR_SEND, 0, 10);
	ends_settle();
	assert_int_equal(m->placed, 0);
	assert_log(A + 2, A + 5);
	assert_int_equal(ends_counters(&receiver)->bad_access, 4);
	assert_int_equal(receiver.lost, 0);
	ends_close();
}

/* S3-8: packets whose length does not fit their opcode, or that do not add up to what RETH says, drop their message. */
static void s3_8(void **state)
{
	static const struct {
		unsigned op[2]; /* plus one; 0: none */
		size_t len[2];
		uint32_t reth;
	} cases[] = {
		{{RWK_WIRE_SEND_FIRST + 1, RWK_WIRE_SEND_LAST + 1}, {PMTU - 4, 4}, 0},
		{{RWK_WIRE_SEND_FIRST + 1, RWK_WIRE_SEND_LAST + 1}, {PMTU, 0}, 0},
		{{RWK_WIRE_SEND_FIRST + 1, RWK_WIRE_SEND_LAST + 1}, {PMTU, PMTU + 4}, 0},
		{{RWK_WIRE_SEND_FIRST + 1, RWK_WIRE_SEND_MIDDLE + 1}, {PMTU, 4}, 0},
		{{RWK_WIRE_SEND_ONLY + 1, 0}, {PMTU + 4, 0}, 0},
		{{RWK_WIRE_WRITE_FIRST + 1, RWK_WIRE_WRITE_LAST_IMM + 1}, {PMTU, 8}, PMTU + 4},
		{{RWK_WIRE_WRITE_FIRST + 1, RWK_WIRE_WRITE_LAST_IMM + 1}, {PMTU, 4}, PMTU + 8},
		{{RWK_WIRE_WRITE_FIRST + 1, RWK_WIRE_WRITE_LAST_IMM + 1}, {PMTU, 4}, PMTU},
		{{RWK_WIRE_WRITE_FIRST + 1, RWK_WIRE_WRITE_MIDDLE + 1}, {PMTU, PMTU}, 2 * PMTU},
		{{RWK_WIRE_WRITE_FIRST + 1, RWK_WIRE_WRITE_LAST_IMM + 1}, {PMTU, 4}, 0x80000001u},
		{{RWK_WIRE_WRITE_ONLY_IMM + 1, 0}, {8, 0}, 9},
		{{RWK_WIRE_WRITE_ONLY_IMM + 1, 0}, {8, 0}, 7},
		{{RWK_WIRE_WRITE_ONLY_IMM + 1, 0}, {8, 0}, 0},
		{{RWK_WIRE_WRITE_ONLY_IMM + 1, 0}, {0, 0}, 8},
	};
	static const uint8_t bytes[PMTU + 4];
	struct rwk_wire w;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ends_open(18, PMTU, NULL);
		receiver.blind = true;
		for (unsigned k = 0; k < 2 && cases[i].op[k]; k++) {
			w = ends_wire(cases[i].op[k] - 1, rwk_psn_add(FIRST_PSN, k));
			w.reth.address = BASE;
			w.reth.key = KEY;
			w.reth.length = cases[i].reth;
			ends_inject(&receiver, &w, bytes, cases[i].len[k]);
		}
		if (ends_counters(&receiver)->bad_length != 1 || receiver.blind_ends || receiver.failed)
			fail_msg("case %u is let through", i);
		w = ends_wire(RWK_WIRE_SEND_ONLY, rwk_psn_add(FIRST_PSN, 2));
		ends_inject(&receiver, &w, bytes, PMTU);
		assert_int_equal(receiver.blind_ends, 1);
		ends_close();
	}
}

/* A Send that is longer than its receive: the client says so, the rest is dropped, the next one is fine. */
static void too_long_for_receive(void **state)
{
	(void)state;
	ends_open(19, PMTU, NULL);
	receiver.receive_length = 2 * PMTU;
	ends_post(RWK_WR_SEND, 0, 4 * PMTU);
	ends_post(RWK_WR_SEND, 0, 2 * PMTU);
	ends_settle();
	assert_log(A + 1);
	assert_int_equal(ends_counters(&receiver)->bad_length, 1);
	assert_int_equal(receiver.lost, 0);
	ends_close();
}

/* Packets in order that make no sense one after the other: what does not fit is dropped, a First or Only begins anew.
 */
static void senseless(void **state)
{
	static const uint8_t bytes[PMTU];
	static const struct {
		unsigned op, breaches, ends; /* so far */
	} packets[] = {
		{RWK_WIRE_SEND_MIDDLE, 1, 0},
		{RWK_WIRE_SEND_LAST, 1, 0},
		{RWK_WIRE_SEND_LAST, 2, 0},
		{RWK_WIRE_SEND_FIRST, 2, 0},
		{RWK_WIRE_WRITE_LAST, 3, 0},
		{RWK_WIRE_SEND_FIRST, 3, 0},
		{RWK_WIRE_SEND_FIRST, 4, 0},
		{RWK_WIRE_SEND_LAST, 4, 1},
		{RWK_WIRE_WRITE_FIRST, 4, 1},
		{RWK_WIRE_SEND_MIDDLE, 5, 1},
		{RWK_WIRE_WRITE_LAST_IMM, 5, 1},
		{RWK_WIRE_WRITE_FIRST, 5, 1},
		{RWK_WIRE_SEND_ONLY, 6, 2},
		{RWK_WIRE_WRITE_LAST_IMM, 7, 2},
	};
	struct rwk_wire w;

	(void)state;
	ends_open(20, PMTU, NULL);
	receiver.blind = true;
	for (unsigned i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		w = ends_wire(packets[i].op, rwk_psn_add(FIRST_PSN, i));
		w.reth.key = KEY;
		w.reth.length = 2 * PMTU;
		ends_inject(&receiver, &w, bytes, PMTU);
		if (ends_counters(&receiver)->bad_opcode != packets[i].breaches ||
			receiver.blind_ends != packets[i].ends)
			fail_msg("packet %u", i);
	}
	assert_int_equal(receiver.failed, 0);
	assert_int_equal(receiver.lost, 0);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s0_1),
		cmocka_unit_test(s0_7),
		cmocka_unit_test(s3_6),
		cmocka_unit_test(s3_8),
		cmocka_unit_test(too_long_for_receive),
		cmocka_unit_test(senseless),
	};

	return cmocka_run_group_tests_name("uc/refused", tests, NULL, NULL);
}

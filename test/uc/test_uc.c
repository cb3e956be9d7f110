/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The unreliable connection, row by row of the acceptance list, on the simulated link (S0-9 to S0-11 can occur there
 * and on udp; on shm and tcp nothing is lost). S0-1 is asserted at the end of every test: the receiver has sent
 * nothing. S0-2 and S0-3, who may send to a QP, are the channel adapter's: test/channel_adapter.
 */
#include "uc/ends.h"

#define PMTU 256u
#define A    0u /* first numbers */

static const struct rwk_qp_counters *counters(struct end *e)
{
	return rwk_uc_counters(e->qp);
}

/* S0-1: whatever the responder is given, also what asks for an answer, it never sends an ACK or a NAK. */
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
	assert_true(counters(&receiver)->bad_opcode > 200);
	assert_true(counters(&receiver)->bad_access > 0);
	assert_true(counters(&receiver)->gaps > 0);
	assert_int_equal(receiver.failed, 0);
	assert_int_equal(rwk_uc_state(receiver.qp), RWK_QP_RTS);
	assert_int_equal(
		counters(&receiver)->acks_out + counters(&receiver)->naks_out + counters(&receiver)->rnr_out, 0);
	ends_close();
}

/* S0-4, S3-8, S3-9: messages around every boundary arrive whole, in so many packets, at each PMTU. */
static void s0_4(void **state)
{
	static const uint16_t pmtus[] = {256, 512, 1024, 2048, 4096};

	(void)state;
	for (unsigned p = 0; p < 5; p++) {
		uint32_t pmtu = pmtus[p];
		const uint32_t lengths[] = {
			0, 1, 2, 3, 4, 5, pmtu - 1, pmtu, pmtu + 1, 2 * pmtu - 1, 2 * pmtu, 2 * pmtu + 1, 1000003};

		for (unsigned type = RWK_WR_SEND; type <= RWK_WR_WRITE; type++) {
			ends_open(2, (uint16_t)pmtu, NULL);
			for (unsigned i = 0; i < 13; i++) {
				unsigned before = sender.emitted;
				struct message *m = ends_post(type, IMM, lengths[i]);

				ends_settle();
				assert_int_equal(m->done, 1);
				assert_int_equal(m->status, 0);
				assert_int_equal(m->ended, 1);
				assert_int_equal(
					type == RWK_WR_WRITE ? m->placed : 0, type == RWK_WR_WRITE ? lengths[i] : 0);
				assert_int_equal(
					sender.emitted - before, lengths[i] ? (lengths[i] + pmtu - 1) / pmtu : 1);
			}
			assert_int_equal(counters(&receiver)->bytes_in, counters(&sender)->bytes_out);
			ends_close();
		}
	}
}

/* S0-4: more than 2 GB is refused at once. 2 GB itself: test_uc_large. */
static void s0_4_too_long(void **state)
{
	struct message *m;

	(void)state;
	ends_open(3, 4096, NULL);
	m = ends_make(RWK_WR_SEND, 0, 0x80000001u);
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EMSGSIZE);
	m->wr.type = RWK_WR_WRITE;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EMSGSIZE);
	assert_true(rwk_uc_idle(sender.qp));
	ends_close();
}

static unsigned empty_seen;

static void see_empty(const struct rwk_wire *w, size_t len)
{
	assert_int_equal(len, 0);
	if (RWK_WIRE_OPERATION(w->opcode) >= RWK_WIRE_WRITE_FIRST)
		assert_int_equal(w->reth.length, 0);
	empty_seen++;
}

/* S0-5: a Send and a Write of 0 bytes are one packet; the Write needs no key, touches nothing, and its immediate comes.
 */
static void s0_5(void **state)
{
	struct message *m;

	(void)state;
	ends_open(4, PMTU, NULL);
	receiver.seen = see_empty;
	empty_seen = 0;
	ends_post(RWK_WR_SEND, 0, 0);
	m = ends_make(RWK_WR_WRITE, 0, 0);
	m->wr.flags = 0;
	m->wr.key = 0;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), 0);
	m = ends_make(RWK_WR_WRITE, IMM, 0);
	m->wr.key = 1;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), 0);
	ends_settle();
	assert_int_equal(empty_seen, 3);
	assert_log(A, A + 2);
	assert_int_equal(messages[1].done, 1);
	assert_int_equal(receiver.writes + receiver.reaches, 0);
	assert_int_equal(counters(&receiver)->bad_access, 0);
	ends_close();
}

/* S0-6: done with the last packet's sending, not before, and whether or not a packet arrives. */
static void s0_6(void **state)
{
	struct message *m;

	(void)state;
	ends_open(5, PMTU, NULL);
	m = ends_post(RWK_WR_SEND, 0, 3 * PMTU);
	for (unsigned i = 0; i < 3; i++) {
		ends_rule(1, RWK_SIM_DROP);
		sender.room = 1;
		assert_int_equal(m->done, 0);
		assert_int_equal(rwk_uc_pump(sender.qp), 1);
	}
	assert_int_equal(m->done, 1);
	assert_int_equal(m->status, 0);
	assert_true(rwk_uc_idle(sender.qp));
	assert_int_equal(rwk_sim_counts(net)->dropped, 3);
	ends_close();
}

/* S0-7: a Read or an atomic is refused when it is posted, in each state, and nothing of it is sent. */
static void s0_7(void **state)
{
	static const uint8_t types[] = {RWK_WR_READ, RWK_WR_COMPARE_SWAP, RWK_WR_FETCH_ADD};
	struct message *m;

	(void)state;
	ends_open(6, PMTU, NULL);
	m = ends_make(RWK_WR_SEND, 0, 8);
	for (unsigned i = 0; i < 3; i++) {
		m->wr.type = types[i];
		assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EOPNOTSUPP);
	}
	assert_int_equal(rwk_uc_pump(sender.qp), 0);
	assert_int_equal(m->done, 0);
	m->wr.type = RWK_WR_LOCAL + 1;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EINVAL);
	m->wr.type = RWK_WR_SEND;
	m->wr.flags = RWK_WR_INVALIDATE;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EINVAL);
	ends_close();
}

static uint32_t next_psn;

static void see_numbers(const struct rwk_wire *w, size_t len)
{
	(void)len;
	assert_int_equal(w->psn, next_psn);
	assert_int_equal(RWK_WIRE_CLASS(w->opcode), RWK_WIRE_UC);
	assert_true(w->migrated && !w->ack_request);
	assert_int_equal(w->pkey, RWK_WIRE_PKEY);
	next_psn = rwk_psn_add(next_psn, 1);
}

/* S0-8: every packet carries the number after the one before, over the wrap too. */
static void s0_8_numbers(void **state)
{
	(void)state;
	ends_open(7, PMTU, NULL);
	receiver.seen = see_numbers;
	next_psn = FIRST_PSN;
	for (unsigned i = 0; i < 20; i++)
		ends_post(i & 1 ? RWK_WR_WRITE : RWK_WR_SEND, 0, i * 100);
	ends_settle();
	assert_int_equal(rwk_psn_diff(next_psn, FIRST_PSN), sender.emitted);
	assert_true(next_psn < FIRST_PSN);
	ends_close();
}

/* S0-8: each packet of a run once in two copies: processed at most once, and nothing else is different. */
static void s0_8_twice(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth <= 12; nth++) {
		ends_open(8, PMTU, NULL);
		ends_rule(nth, RWK_SIM_DUPLICATE);
		for (unsigned i = 0; i < 6; i++)
			ends_post(i & 1 ? RWK_WR_WRITE : RWK_WR_SEND, IMM, (i % 3 + 1) * PMTU);
		ends_settle();
		assert_int_equal(sender.emitted, 12);
		assert_log(A, A + 1, A + 2, A + 3, A + 4, A + 5);
		for (unsigned i = 0; i < 6; i++)
			assert_int_equal(messages[i].ended, 1);
		assert_int_equal(counters(&receiver)->duplicates, 1);
		assert_int_equal(counters(&receiver)->gaps, 0);
		ends_close();
	}
}

/* S0-8: late copies of all packets of before, in any order, touch nothing. */
static void s0_8_old(void **state)
{
	static const uint8_t bytes[PMTU];
	struct rwk_wire w;

	(void)state;
	ends_open(9, PMTU, NULL);
	for (unsigned i = 0; i < 4; i++)
		ends_post(RWK_WR_SEND, 0, 3 * PMTU);
	ends_settle();
	for (unsigned back = 1; back <= 0x800000; back += back < 30 ? 1 : 99991) {
		w = ends_wire(RWK_WIRE_SEND_ONLY_IMM, rwk_psn_add(FIRST_PSN, 12 - back));
		ends_inject(&receiver, &w, bytes, 3);
	}
	assert_int_equal(logged, 4);
	assert_int_equal(messages[0].begun, 1);
	assert_int_equal(counters(&receiver)->gaps, 0);
	ends_post(RWK_WR_SEND, 0, 5);
	ends_settle();
	assert_int_equal(logged, 5);
	ends_close();
}

/*
 * S0-9, S0-10, S0-11: of messages of three packets the nth packet is lost, for every n: its message is dropped, all
 * others arrive, one loss is counted and told.
 */
static void s0_9(void **state)
{
	(void)state;
	for (unsigned type = RWK_WR_SEND; type <= RWK_WR_WRITE; type++) {
		for (unsigned nth = 1; nth <= 27; nth++) {
			unsigned hit = (nth - 1) / 3;

			ends_open(10, PMTU, NULL);
			ends_rule(nth, RWK_SIM_DROP);
			for (unsigned i = 0; i < 10; i++)
				ends_post(type, IMM, 3 * PMTU - 1);
			ends_settle();
			assert_int_equal(logged, 9);
			for (unsigned i = 0; i < 10; i++) {
				assert_int_equal(messages[i].ended, i != hit);
				assert_int_equal(messages[i].status, 0);
			}
			/* What came before the gap is in place, nothing behind it. */
			assert_int_equal(messages[hit].placed, type == RWK_WR_WRITE ? (nth - 1) % 3 * PMTU : 0);
			assert_int_equal(counters(&receiver)->gaps, 1);
			assert_int_equal(receiver.lost, 1);
			ends_close();
		}
	}
}

/* S0-10: whatever the last n packets of a message and the first m of the next are lost: it goes on with the one after.
 */
static void s0_10(void **state)
{
	(void)state;
	for (unsigned from = 4; from <= 6; from++) {
		for (unsigned to = from; to <= 9; to++) {
			ends_open(11, PMTU, NULL);
			for (unsigned i = 0; i < 4; i++)
				ends_post(RWK_WR_SEND, 0, 3 * PMTU);
			for (unsigned nth = from; nth <= to; nth++)
				ends_rule(nth, RWK_SIM_DROP);
			ends_settle();
			assert_int_equal(messages[0].ended, 1);
			assert_int_equal(messages[1].ended, 0);
			assert_int_equal(messages[2].ended, to <= 6);
			assert_int_equal(messages[3].ended, 1);
			assert_int_equal(counters(&receiver)->gaps, 1);
			assert_int_equal(receiver.lost, 1);
			ends_close();
		}
	}
}

/* S0-10: an Only follows at once; a Send is dropped for a Write and the other way round. */
static void s0_10_only(void **state)
{
	(void)state;
	for (unsigned first = RWK_WR_SEND; first <= RWK_WR_WRITE; first++) {
		for (unsigned then = RWK_WR_SEND; then <= RWK_WR_WRITE; then++) {
			ends_open(12, PMTU, NULL);
			ends_rule(2, RWK_SIM_DROP);
			ends_post(first, IMM, 2 * PMTU);
			ends_post(then, IMM, 0);
			ends_post(then, IMM, PMTU);
			ends_settle();
			assert_log(A + 1, A + 2);
			assert_int_equal(receiver.lost, 1);
			ends_close();
		}
	}
}

/* S0-11: the loss of the very last packets is not noticed until another comes; without a callback it is only counted.
 */
static void s0_11(void **state)
{
	(void)state;
	ends_open(13, PMTU, NULL);
	ends_rule(2, RWK_SIM_DROP);
	ends_post(RWK_WR_SEND, 0, 2 * PMTU);
	ends_settle();
	assert_int_equal(receiver.lost, 0);
	assert_int_equal(counters(&receiver)->gaps, 0);
	ends_post(RWK_WR_SEND, 0, 9);
	ends_settle();
	assert_int_equal(receiver.lost, 1);
	rwk_uc_on_loss(receiver.qp, NULL);
	ends_rule(1, RWK_SIM_DROP);
	ends_post(RWK_WR_SEND, 0, 9);
	ends_post(RWK_WR_SEND, 0, 9);
	ends_settle();
	assert_int_equal(receiver.lost, 1);
	assert_int_equal(counters(&receiver)->gaps, 2);
	assert_log(A + 1, A + 3);
	ends_close();
}

/* S0-11: a Send, or a Write with immediate, that finds no receive is dropped without a word, and that is a loss too. */
static void s0_11_no_receive(void **state)
{
	(void)state;
	ends_open(14, PMTU, NULL);
	receiver.receives = 1;
	ends_post(RWK_WR_SEND, 0, 2 * PMTU);
	ends_post(RWK_WR_SEND, 0, 3 * PMTU);
	ends_post(RWK_WR_WRITE, IMM, 2 * PMTU);
	ends_post(RWK_WR_WRITE, 0, 2 * PMTU);
	ends_settle();
	assert_int_equal(receiver.lost, 2);
	receiver.receives = 1;
	ends_post(RWK_WR_SEND, 0, 100);
	ends_settle();
	assert_log(A, A + 4);
	assert_int_equal(messages[3].placed, 2 * PMTU);
	assert_int_equal(counters(&receiver)->gaps, 2);
	ends_close();
}

/* S0-12: a damaged packet is as good as lost, by its ICRC; so each packet of a run, one at a time. */
static void s0_12(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth <= 9; nth++) {
		ends_open(100 + nth, PMTU, NULL);
		ends_rule(nth, RWK_SIM_CORRUPT);
		for (unsigned i = 0; i < 4; i++)
			ends_post(RWK_WR_SEND, 0, 3 * PMTU);
		ends_settle();
		assert_int_equal(receiver.bad_icrc, 1);
		assert_int_equal(logged, 3);
		assert_int_equal(messages[(nth - 1) / 3].ended, 0);
		assert_int_equal(receiver.lost, 1);
		ends_close();
	}
}

/* S0-13: Send, Write, and local work that a client binds a window with: done in its turn, and nothing of it goes out.
 */
static void s0_13(void **state)
{
	struct message *m;

	(void)state;
	ends_open(15, PMTU, NULL);
	ends_post(RWK_WR_SEND, 0, 2 * PMTU);
	m = ends_make(RWK_WR_LOCAL, 0, 0);
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), 0);
	ends_post(RWK_WR_WRITE, IMM, 10);
	sender.room = 1;
	rwk_uc_pump(sender.qp);
	assert_int_equal(m->done, 0);
	sender.room = 1;
	rwk_uc_pump(sender.qp);
	assert_int_equal(m->done, 1);
	assert_int_equal(messages[2].done, 0);
	sender.room = -1;
	ends_settle();
	assert_int_equal(sender.emitted, 3);
	assert_log(A, A + 2);
	ends_close();
}

static unsigned reths;

static void see_reth(const struct rwk_wire *w, size_t len)
{
	unsigned operation = RWK_WIRE_OPERATION(w->opcode);
	bool first = operation == RWK_WIRE_WRITE_FIRST || operation >= RWK_WIRE_WRITE_ONLY;

	(void)len;
	reths += first;
	assert_int_equal(rwk_wire_header_size(w->opcode) >= 28, first);
	if (first)
		assert_int_equal(w->reth.key, KEY);
}

/* S3-2: where a Write goes is in its First or Only packet alone, and is looked up once. */
static void s3_2(void **state)
{
	(void)state;
	ends_open(16, PMTU, NULL);
	receiver.seen = see_reth;
	reths = 0;
	for (unsigned i = 0; i < 10; i++)
		ends_post(RWK_WR_WRITE, 0, 1 + i * 200);
	ends_settle();
	assert_int_equal(reths, 10);
	assert_int_equal(receiver.reaches, 10);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(messages[i].placed, messages[i].wr.length);
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
	assert_int_equal(counters(&receiver)->bad_access, 2);
	m = ends_post(RWK_WR_WRITE, IMM, 3 * PMTU);
	sender.room = 1;
	ends_settle();
	receiver.refuse = -EACCES;
	sender.room = -1;
	ends_settle();
	receiver.refuse = 0;
	assert_int_equal(m->placed, PMTU);
	assert_int_equal(m->ended, 0);
	assert_int_equal(counters(&receiver)->bad_access, 3);

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
	assert_int_equal(counters(&receiver)->bad_access, 4);
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
		if (counters(&receiver)->bad_length != 1 || receiver.blind_ends || receiver.failed)
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
	assert_int_equal(counters(&receiver)->bad_length, 1);
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
		if (counters(&receiver)->bad_opcode != packets[i].breaches || receiver.blind_ends != packets[i].ends)
			fail_msg("packet %u", i);
	}
	assert_int_equal(receiver.failed, 0);
	assert_int_equal(receiver.lost, 0);
	ends_close();
}

/* What the link says it has no room for waits, and goes out in order when there is some. */
static void no_room(void **state)
{
	struct message *m;

	(void)state;
	ends_open(21, PMTU, NULL);
	sender.room = 0;
	for (unsigned i = 0; i < 5; i++)
		ends_post(RWK_WR_SEND, 0, 700);
	assert_int_equal(rwk_uc_pump(sender.qp), 0);
	assert_false(rwk_uc_idle(sender.qp));
	assert_int_equal(rwk_uc_withdraw(sender.qp, &messages[2].wr), 0);
	sender.room = 1;
	assert_int_equal(rwk_uc_pump(sender.qp), 1);
	assert_int_equal(rwk_uc_withdraw(sender.qp, &messages[0].wr), -EBUSY);
	m = ends_make(RWK_WR_SEND, 0, 10);
	m->wr.iov_count = RWK_MACHINE_IOV + 1;
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EINVAL);
	for (unsigned i = 0; i < 20; i++) {
		sender.room = 1;
		ends_settle();
	}
	assert_log(A, A + 1, A + 3, A + 4);
	assert_int_equal(messages[2].done, 0);
	ends_close();
}

/* The states and their steps; what may be posted and taken in each. */
static void states(void **state)
{
	struct rwk_uc_attr good, bad;
	struct message *m;
	struct rwk_wire w;

	(void)state;
	ends_open(22, PMTU, NULL);
	good = ends_attr(&sender, PMTU);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RTR, &good), -EINVAL);
	m = ends_post(RWK_WR_SEND, 0, 10);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RESET, NULL), 0);
	assert_int_equal(m->done, 1);
	assert_int_equal(m->status, -ECANCELED);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RTS, NULL), -EINVAL);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RTR, &good), -EINVAL);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_INIT, NULL), 0);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RTS, NULL), -EINVAL);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RTR, NULL), -EINVAL);
	for (unsigned i = 0; i < 5; i++) {
		bad = good;
		*(i == 0 ? &bad.peer_qpn : i == 1 ? &bad.send_psn : &bad.receive_psn) |= i < 3 ? 1 << 24 : 0;
		bad.pmtu = i == 3 ? 255 : i == 4 ? 4097 : PMTU;
		assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RTR, &bad), -EINVAL);
	}
	w = ends_wire(RWK_WIRE_SEND_ONLY_IMM, 77);
	ends_inject(&sender, &w, NULL, 0);
	assert_int_equal(counters(&sender)->bad_state, 1);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RTR, &good), 0);
	m = ends_make(RWK_WR_SEND, 0, 10);
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), -EINVAL);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_RTS, NULL), 0);
	assert_int_equal(rwk_uc_post(sender.qp, &m->wr), 0);
	ends_settle();
	assert_log(A + 1);
	m = ends_post(RWK_WR_SEND, 0, 10);
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_ERR, NULL), 0);
	assert_int_equal(m->status, -ECANCELED);
	m = ends_post(RWK_WR_SEND, 0, 10);
	assert_int_equal(m->done, 0);
	rwk_uc_pump(sender.qp);
	assert_int_equal(m->status, -ECANCELED);
	ends_inject(&sender, &w, NULL, 0);
	assert_int_equal(counters(&sender)->bad_state, 2);
	assert_int_equal(sender.failed, 0);
	ends_close();
}

/* On a stream nothing is lost: a gap, a copy, or a packet that does not fit is a breach, and the QP fails, once. */
static void stream(void **state)
{
	static const struct {
		unsigned op;
		int32_t ahead;
		size_t len;
	} cases[] = {
		{RWK_WIRE_SEND_ONLY_IMM, 1, 0},
		{RWK_WIRE_SEND_ONLY_IMM, -1, 0},
		{RWK_WIRE_SEND_MIDDLE, 0, PMTU},
		{RWK_WIRE_SEND_FIRST, 0, PMTU - 1},
		{RWK_WIRE_READ_REQUEST, 0, 0},
		{RWK_WIRE_ACK, 0, 0},
	};
	static const uint8_t bytes[PMTU];
	struct rwk_uc_attr attr;
	struct message *m;
	struct rwk_wire w;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ends_open(23, PMTU, NULL);
		attr = ends_attr(&receiver, PMTU);
		attr.stream = true;
		assert_int_equal(rwk_uc_modify(receiver.qp, RWK_QP_RESET, NULL), 0);
		assert_int_equal(rwk_uc_modify(receiver.qp, RWK_QP_INIT, NULL), 0);
		assert_int_equal(rwk_uc_modify(receiver.qp, RWK_QP_RTR, &attr), 0);
		m = ends_post(RWK_WR_SEND, 0, 3 * PMTU);
		receiver.receives = i % 2; /* one that is refused is dropped whole, and no breach */
		ends_settle();
		assert_int_equal(m->ended, i % 2);
		assert_int_equal(receiver.failed, 0);
		w = ends_wire(cases[i].op, rwk_psn_add(FIRST_PSN, 3 + (uint32_t)cases[i].ahead));
		ends_inject(&receiver, &w, bytes, cases[i].len);
		ends_inject(&receiver, &w, bytes, cases[i].len);
		assert_int_equal(receiver.failed, 1);
		assert_int_equal(receiver.error, -EPROTO);
		assert_int_equal(rwk_uc_state(receiver.qp), RWK_QP_ERR);
		ends_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s0_1),
		cmocka_unit_test(s0_4),
		cmocka_unit_test(s0_4_too_long),
		cmocka_unit_test(s0_5),
		cmocka_unit_test(s0_6),
		cmocka_unit_test(s0_7),
		cmocka_unit_test(s0_8_numbers),
		cmocka_unit_test(s0_8_twice),
		cmocka_unit_test(s0_8_old),
		cmocka_unit_test(s0_9),
		cmocka_unit_test(s0_10),
		cmocka_unit_test(s0_10_only),
		cmocka_unit_test(s0_11),
		cmocka_unit_test(s0_11_no_receive),
		cmocka_unit_test(s0_12),
		cmocka_unit_test(s0_13),
		cmocka_unit_test(s3_2),
		cmocka_unit_test(s3_6),
		cmocka_unit_test(s3_8),
		cmocka_unit_test(too_long_for_receive),
		cmocka_unit_test(senseless),
		cmocka_unit_test(no_room),
		cmocka_unit_test(states),
		cmocka_unit_test(stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

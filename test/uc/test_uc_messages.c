/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the unreliable connection sends, packet by packet, and when that is done. Of the acceptance list; S0-1 is
 * asserted at the end of every test: the receiver has sent nothing. S0-2 and S0-3, who may send to a QP, are the
 * channel adapter's: test/channel_adapter.
 *
 * Links: sim.
 */
#include "uc/ends.h"

#define PMTU 256u
#define A    0u /* first numbers */

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
			assert_int_equal(ends_counters(&receiver)->bytes_in, ends_counters(&sender)->bytes_out);
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
	assert_int_equal(ends_counters(&receiver)->bad_access, 0);
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

/* The client posts another whenever one has ended, and with the first takes back what was last. */
static void post_another(const struct message *m)
{
	if (m == &messages[0])
		assert_int_equal(rwk_uc_withdraw(sender.qp, &messages[2].wr), 0);
	if (message_count < 20)
		ends_post(RWK_WR_SEND, 0, 10);
}

static void post_three(void)
{
	sender.told = post_another;
	for (unsigned i = 0; i < 3; i++)
		ends_post(RWK_WR_SEND, 0, 10);
}

/* What `done` posts waits for the next pump, whatever it takes back. */
static void posted_within_done(void **state)
{
	(void)state;
	ends_open(25, PMTU, NULL);
	post_three();
	assert_int_equal(rwk_uc_pump(sender.qp), 2);
	assert_int_equal(message_count, 5);
	assert_int_equal(messages[2].done, 0);
	assert_int_equal(rwk_uc_pump(sender.qp), 2);
	assert_int_equal(message_count, 7);
	sender.told = NULL;
	ends_settle();
	assert_true(rwk_uc_idle(sender.qp));
	assert_log(A, A + 1, A + 3, A + 4, A + 5, A + 6);
	ends_close();
}

/* And for the next flush. */
static void posted_within_flush(void **state)
{
	(void)state;
	ends_open(26, PMTU, NULL);
	post_three();
	assert_int_equal(rwk_uc_modify(sender.qp, RWK_QP_ERR, NULL), 0);
	assert_int_equal(message_count, 5);
	assert_int_equal(messages[0].done + messages[1].done, 2);
	assert_int_equal(messages[1].status, -ECANCELED);
	assert_int_equal(messages[2].done + messages[3].done + messages[4].done, 0);
	assert_int_equal(rwk_uc_pump(sender.qp), 0);
	assert_int_equal(messages[3].done + messages[4].done, 2);
	assert_int_equal(message_count, 7);
	sender.told = NULL;
	ends_settle();
	assert_true(rwk_uc_idle(sender.qp));
	assert_int_equal(logged, 0);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s0_4),
		cmocka_unit_test(s0_4_too_long),
		cmocka_unit_test(s0_5),
		cmocka_unit_test(s0_6),
		cmocka_unit_test(s0_8_numbers),
		cmocka_unit_test(s3_2),
		cmocka_unit_test(no_room),
		cmocka_unit_test(posted_within_done),
		cmocka_unit_test(posted_within_flush),
	};

	return cmocka_run_group_tests_name("uc/messages", tests, NULL, NULL);
}

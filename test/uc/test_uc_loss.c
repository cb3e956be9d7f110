/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of the unreliable connection that are lost, damaged, late or doubled. On the simulated link: S0-9 to S0-11
 * can occur there and on udp; on shm and tcp nothing is lost.
 *
 * Links: sim.
 */
#include "uc/ends.h"

#define PMTU 256u
#define A    0u /* first numbers */

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
		assert_int_equal(ends_counters(&receiver)->duplicates, 1);
		assert_int_equal(ends_counters(&receiver)->gaps, 0);
		ends_close();
	}
}

/* S0-8: late copies of the packets of before, in any order, touch nothing. */
static void s0_8_old(void **state)
{
	static const uint8_t bytes[PMTU];
	struct rwk_wire w;

	(void)state;
	ends_open(9, PMTU, NULL);
	for (unsigned i = 0; i < 4; i++)
		ends_post(RWK_WR_SEND, 0, 3 * PMTU);
	ends_settle();
	for (unsigned back = 1; back <= 65536; back += back < 31 ? 1 : 1985) {
		w = ends_wire(RWK_WIRE_SEND_ONLY_IMM, rwk_psn_add(FIRST_PSN, 12 - back));
		ends_inject(&receiver, &w, bytes, 3);
	}
	assert_int_equal(logged, 4);
	assert_int_equal(messages[0].begun, 1);
	assert_int_equal(ends_counters(&receiver)->gaps, 0);
	ends_post(RWK_WR_SEND, 0, 5);
	ends_settle();
	assert_int_equal(logged, 5);
	ends_close();
}

/* S0-9: however many packets are lost, half of all PSNs and more, the next message arrives, and what follows it. */
static void s0_9_millions(void **state)
{
	static const uint32_t lost[] = {1, 0x7fffff, 0x800000, 0x900000, 0xfeffff};
	static const uint8_t bytes[PMTU];
	struct rwk_wire w;

	(void)state;
	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		ends_open(12, PMTU, NULL);
		receiver.blind = true;
		for (uint32_t n = 0; n < 3; n++) {
			w = ends_wire(RWK_WIRE_SEND_ONLY, rwk_psn_add(FIRST_PSN, lost[i] + n));
			ends_inject(&receiver, &w, bytes, 3);
		}
		assert_int_equal(receiver.blind_ends, 3);
		assert_int_equal(ends_counters(&receiver)->gaps, 1);
		assert_int_equal(ends_counters(&receiver)->duplicates, 0);
		ends_close();
	}
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
			assert_int_equal(ends_counters(&receiver)->gaps, 1);
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
			assert_int_equal(ends_counters(&receiver)->gaps, 1);
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
	assert_int_equal(ends_counters(&receiver)->gaps, 0);
	ends_post(RWK_WR_SEND, 0, 9);
	ends_settle();
	assert_int_equal(receiver.lost, 1);
	rwk_uc_on_loss(receiver.qp, NULL);
	ends_rule(1, RWK_SIM_DROP);
	ends_post(RWK_WR_SEND, 0, 9);
	ends_post(RWK_WR_SEND, 0, 9);
	ends_settle();
	assert_int_equal(receiver.lost, 1);
	assert_int_equal(ends_counters(&receiver)->gaps, 2);
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
	assert_int_equal(ends_counters(&receiver)->gaps, 2);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s0_8_twice),
		cmocka_unit_test(s0_8_old),
		cmocka_unit_test(s0_9_millions),
		cmocka_unit_test(s0_9),
		cmocka_unit_test(s0_10),
		cmocka_unit_test(s0_10_only),
		cmocka_unit_test(s0_11),
		cmocka_unit_test(s0_11_no_receive),
		cmocka_unit_test(s0_12),
	};

	return cmocka_run_group_tests_name("uc/loss", tests, NULL, NULL);
}

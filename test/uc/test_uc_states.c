/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of an unreliable connection, and how it fails on a stream. */
#include "uc/ends.h"

#define PMTU 256u
#define A    0u /* first numbers */

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
	assert_int_equal(ends_counters(&sender)->bad_state, 1);
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
	assert_int_equal(ends_counters(&sender)->bad_state, 2);
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
		cmocka_unit_test(states),
		cmocka_unit_test(stream),
	};

	return cmocka_run_group_tests_name("uc/states", tests, NULL, NULL);
}

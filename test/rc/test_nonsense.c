/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What no end of ours sends to another, but somebody may who can guess its numbers: it is counted, does nothing, and
 * the connection goes on. One end between our own ends, alone.
 */
#include "rc/alone.h"

/* An acknowledgement of our own is 4 bytes and a bitmap of at most the window: shorter or longer ones say nothing. */
static void acknowledgement_of_no_length(void **state)
{
	static const uint8_t payload[RWK_RC_WINDOW_MAX / 8 + 5];
	const size_t wrong[] = {0, 3, sizeof(payload)};
	struct rwk_wire w = {.opcode = 0xd1};
	struct end *e;

	(void)state;
	attr = end_own();
	e = end_alone(&attr);
	post(e, 0, RWK_WR_SEND, 1);
	w.psn = attr.send_psn;
	for (size_t i = 0; i < 3; i++) {
		end_give(e, &w, payload, wrong[i]);
		assert_int_equal(counters(e)->bad_length, i + 1);
		assert_int_equal(e->done_count, 0);
	}
	end_give(e, &w, payload, sizeof(payload) - 1);
	assert_int_equal(counters(e)->bad_length, 3);
	assert_int_equal(e->done_count, 1);
	assert_int_equal(e->failed_count, 0);
	end_close(e);
}

/* Reads that name numbers of before and are longer than any message, or reach beyond the window: no byte is sent. */
static void old_read_of_no_length(void **state)
{
	struct rwk_wire w = {.opcode = RWK_WIRE_READ_REQUEST};
	struct end *e;

	(void)state;
	attr = end_own();
	e = end_alone(&attr);
	w.psn = attr.receive_psn;
	w.reth.address = e->base;
	w.reth.key = END_KEY;
	w.reth.length = 2 * PMTU;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 2);
	w.reth.length = RWK_WIRE_LENGTH_MAX + 1u;
	end_give(e, &w, NULL, 0);
	assert_int_equal(counters(e)->bad_length, 1);
	w.reth.length = (RWK_RC_WINDOW_MAX + 3) * PMTU;
	end_give(e, &w, NULL, 0);
	assert_int_equal(counters(e)->too_far, 1);
	assert_int_equal(end_sent(e), 0);
	w.psn = attr.receive_psn + 2; /* the next one in its turn */
	w.reth.length = PMTU;
	end_give(e, &w, NULL, 0);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->failed_count, 0);
	end_close(e);
}

/* A state that does not exist is refused, and changes nothing. */
static void no_such_state(void **state)
{
	struct end *e;

	(void)state;
	attr = end_own();
	e = end_alone(&attr);
	assert_int_equal(rwk_rc_modify(e->qp, (enum rwk_qp_state)(RWK_QP_ERR + 1), NULL), -EINVAL);
	assert_int_equal(rwk_rc_state(e->qp), RWK_QP_RTS);
	end_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(acknowledgement_of_no_length, setup),
		cmocka_unit_test_setup(old_read_of_no_length, setup),
		cmocka_unit_test_setup(no_such_state, setup),
	};

	return cmocka_run_group_tests_name("rc, nonsense", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S0-4: messages of 2 GB, by Send and by Write. All bytes are compared; no memory of that size is allocated.
 *
 * Links: sim.
 */
#include "uc/ends.h"

static void large(unsigned type)
{
	struct message *m;

	ends_open(1, 4096, NULL);
	m = ends_post(type, IMM, RWK_WIRE_LENGTH_MAX);
	ends_post(RWK_WR_SEND, 0, 1);
	ends_settle();
	assert_int_equal(m->done, 1);
	assert_int_equal(m->status, 0);
	assert_log(0, 1);
	assert_int_equal(sender.emitted, 0x80000000u / 4096 + 1);
	assert_int_equal(rwk_uc_counters(receiver.qp)->bytes_in, 0x80000001u);
	assert_int_equal(m->placed, type == RWK_WR_WRITE ? 0x80000000u : 0);
	ends_close();
}

static void s0_4_send(void **state)
{
	(void)state;
	large(RWK_WR_SEND);
}

static void s0_4_write(void **state)
{
	(void)state;
	large(RWK_WR_WRITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s0_4_send),
		cmocka_unit_test(s0_4_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC: reads and writes of a region that stays exposed, by the domain's word that they were carried out (S1-8).
 *
 * Links: sim.
 */
#include "packet/pair.h"

#include "packet/port.h"

#include <errno.h>
#include <string.h>

#define LENGTH_OF 30000u /* bytes: answered in several packets */

static uint8_t there[LENGTH_OF], here[LENGTH_OF];
static struct rwk_rkey key;
static struct ends_op op;

/* Two ends, and a region of the second one's. */
static int open_region(void **state)
{
	struct iovec iov = {there, LENGTH_OF};

	(void)state;
	ends_transport = &sim_shared_transport;
	pair_open(4224, 8);
	memset(there, 1, LENGTH_OF);
	memset(here, 0, LENGTH_OF);
	assert_int_equal(ends_transport->expose(
				 ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &key), 0);
	return 0;
}

static int close_ends(void **state)
{
	(void)state;
	ends_close();
	return 0;
}

static void lose_answer(uint64_t nth)
{
	rwk_sim_rule(ends_net, ends[1]->port->domain.port, rwk_address_port(&ends[0]->address), nth, RWK_SIM_DROP);
}

static void post(enum rwk_op_type type)
{
	ends_make_op(&op, type, here, LENGTH_OF);
	op.op.rkey = key;
	assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
}

static void until_done(void)
{
	while (!op.done) {
		ends_progress_all();
		assert_true(op.done || rwk_sim_step(ends_net));
	}
}

/* The data and the word that it is right come in one round trip. */
static void read_is_one_trip(void **state)
{
	const struct rwk_sim_path path = {.delay = 1000};
	rwk_time begun;

	(void)state;
	rwk_sim_set_paths(ends_net, &path);
	begun = rwk_sim_now(ends_net);
	post(RWK_OP_READ);
	until_done();
	assert_int_equal(op.status, 0);
	assert_memory_equal(here, there, LENGTH_OF);
	assert_in_range(rwk_sim_now(ends_net) - begun, 2000, 2999);
}

/* A piece is lost, and the region withdrawn before it is asked for again: what came then is not taken for the data. */
static void lost_then_withdrawn(void **state)
{
	(void)state;
	lose_answer(2);
	post(RWK_OP_READ);
	while (!here[LENGTH_OF - 1] && !here[0]) { /* the first piece has come */
		ends_progress_all();
		assert_true(rwk_sim_step(ends_net));
	}
	ends_transport->conceal(ends_side(1, 0)->ch, &key);
	until_done();
	assert_int_equal(op.status, -EACCES);
}

/* A piece is lost, and comes again: that is no error. */
static void lost_and_there(void **state)
{
	(void)state;
	for (uint64_t nth = 1; nth <= 9; nth++) { /* the last is the region's word */
		memset(here, 0, LENGTH_OF);
		lose_answer(nth);
		post(RWK_OP_READ);
		until_done();
		assert_int_equal(op.status, 0);
		assert_memory_equal(here, there, LENGTH_OF);
		ends_settle();
	}
}

/* A region that is gone refuses reads and writes. */
static void withdrawn(void **state)
{
	(void)state;
	ends_transport->conceal(ends_side(1, 0)->ch, &key);
	for (int write = 0; write < 2; write++) {
		post(write ? RWK_OP_WRITE : RWK_OP_READ);
		until_done();
		assert_int_equal(op.status, -EACCES);
	}
	assert_int_equal(there[0], 1);
}

/* All memory, however long it is said to be, is not exposed: who takes a packet itself copies without asking. */
static void all_memory(void **state)
{
	struct iovec all[] = {{NULL, SIZE_MAX}, {NULL, (size_t)1 << 46}, {NULL, 4096}};
	struct rwk_rkey k;

	(void)state;
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_int_equal(
			ends_transport->expose(ends_side(1, 0)->ch, &all[i], 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &k),
			-EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(read_is_one_trip, open_region, close_ends),
		cmocka_unit_test_setup_teardown(lost_then_withdrawn, open_region, close_ends),
		cmocka_unit_test_setup_teardown(lost_and_there, open_region, close_ends),
		cmocka_unit_test_setup_teardown(withdrawn, open_region, close_ends),
		cmocka_unit_test_setup_teardown(all_memory, open_region, close_ends),
	};

	return cmocka_run_group_tests_name("packet/reach", tests, NULL, NULL);
}

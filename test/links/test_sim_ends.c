/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How channels of the simulated service and the packet service end: a death, a failure, a close. Ops are done and
 * places given back before it is told, and what was sent before arrives.
 */
#include "links/ends.h"

/*
 * The peer's process ends after each number of packets: every op is done before `failed`, a place in use is given back,
 * `failed` is called once, and later calls return the error.
 */
static void peer_dies(void **state)
{
	unsigned places = 0;

	(void)state;
	for (unsigned nth = 1; nth < 60; nth++) {
		struct side *a, *b;

		ends_open(NULL, NULL, 2);
		ends_connect(0, 1);
		ends_settle();
		a = ends_side(0, 1);
		b = ends_side(1, 0);
		rwk_sim_rule(ends_net, 1, 2, nth, RWK_SIM_KILL_SENDER);
		for (int i = 0; i < 30; i++) {
			assert_int_equal(ends_post(a), 0);
			assert_int_equal(ends_post(b), 0);
		}
		ends_settle();
		assert_false(rwk_sim_alive(ends_net, 1));
		assert_int_equal(b->failed, 1);
		assert_int_equal(b->error, -ECONNRESET);
		assert_int_equal(b->ops, 0);
		places += b->ended_badly;
		assert_int_equal(ends_post(b), -ECONNRESET);
		assert_int_equal(ends_send(b), -ECONNRESET);
		ends_transport->disconnect(b->ch);
		ends_close();
	}
	assert_true(places > 20);
}

/* An injected failure takes one channel down and no other. */
static void broken_channel(void **state)
{
	(void)state;
	ends_open(NULL, NULL, 3);
	ends_connect(0, 1);
	ends_connect(0, 2);
	ends_settle();
	assert_true(rwk_sim_break(&ends[0]->address, &ends[1]->address, -EPROTO));
	assert_int_equal(ends_post(ends_side(0, 2)), 0);
	ends_settle();
	assert_int_equal(ends_side(0, 1)->error, -EPROTO);
	assert_int_equal(ends_side(0, 2)->failed, 0);
	assert_int_equal(ends_side(2, 0)->received, 1);
	assert_false(rwk_sim_break(&ends[0]->address, &ends[1]->address, -EPROTO));
	ends_close();
}

/*
 * What send took before close arrives though packets are lost; ops are cancelled in close; then the peer hears that we
 * are gone.
 */
static void close_keeps_what_was_sent(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct rwk_sim_attr attr = rwk_sim_attr_default;
		struct side *s;
		unsigned taken;

		attr.seed = seed;
		attr.mtu = 256 + 80; /* few messages fill a frame, and a good-bye may find no room in the last */
		attr.path = ends_lossy;
		if (ends_packets()) /* not one that is longer than a packet: as much as there is room for */
			ends_longest = seed % 2 ? 64 : 4096;
		ends_open(&attr, NULL, 2);
		ends_connect(0, 1);
		ends_settle();
		s = ends_side(0, 1);
		taken = 0;
		while (!ends_send(s))
			taken++;
		assert_true(ends_packets() || taken == rwk_sim_service_default.room);
		for (unsigned i = 0; i < 5; i++)
			assert_int_equal(ends_post(s), 0);
		for (unsigned i = 0; i < seed; i++)
			rwk_sim_step(ends_net);
		ends_close_port(0);
		assert_int_equal(s->ops, 0);
		ends_settle();
		assert_in_range(ends_side(1, 0)->received, taken, s->sent);
		assert_int_equal(ends_side(1, 0)->failed, 1);
		assert_int_equal(ends_side(1, 0)->error, -ECONNRESET);
		ends_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_EACH(peer_dies),
		ENDS_SIM(broken_channel),
		ENDS_EACH(close_keeps_what_was_sent),
	};

	return cmocka_run_group_tests_name("channel services, ends", tests, NULL, NULL);
}

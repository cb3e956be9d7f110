/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts of short messages: what goes within its send and what gathers, for how long (transports/packet/outbound.c). */
#include "packet/pair.h"

#include "packet/packet.h"
#include "packet/port.h"

#define US 1000u
#define MS (1000 * US)

static uint64_t packets(void)
{
	return rwk_sim_sent(ends_net, 1, 2);
}

static void pass(rwk_time time)
{
	rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + time);
}

/* A send of who makes progress if he is told to; returns how often he was. */
static unsigned send_patiently(void)
{
	unsigned refused = 0;

	while (ends_send(ends_side(0, 1))) {
		assert_true(++refused < 3);
		ends_progress(ends[0]);
	}
	return refused;
}

static void send_some(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(ends_send(ends_side(0, 1)), 0);
}

/* The messages of the first burst go within their sends: it is not known yet when the client will make progress. */
static void first(void **state)
{
	uint64_t before;

	(void)state;
	pair_open(4224, 8);
	before = packets();
	for (unsigned i = 1; i <= 20; i++) {
		send_some(1);
		assert_int_equal(packets(), before + i);
	}
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 20);
	ends_close();
}

/*
 * Of a client that makes progress soon after a burst the first message of the next goes within its send, the others
 * share a packet; a few alone go each by itself again.
 */
static void shared(void **state)
{
	uint64_t before;

	(void)state;
	pair_open(4224, 8);
	pair_burst(5);
	for (int round = 0; round < 3; round++) {
		before = packets();
		send_some(100);
		assert_int_equal(packets(), before + 1);
		pass(30 * US);
		ends_progress(ends[0]);
		assert_int_equal(packets(), before + 2);
		ends_settle();
	}
	before = packets();
	send_some(1);
	ends_progress(ends[0]);
	assert_int_equal(packets(), before + 1);
	send_some(4);
	assert_int_equal(packets(), before + 5);
	send_some(10);
	assert_int_equal(packets(), before + 5);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 5 + 300 + 1 + 14);
	ends_close();
}

/* What has gathered goes with the next send after a few microseconds, however seldom there is progress. */
static void not_for_long(void **state)
{
	uint64_t before;

	(void)state;
	pair_open(4224, 8);
	pair_burst(5);
	send_some(1);
	before = packets();
	for (unsigned round = 1; round <= 10; round++) {
		send_some(9);
		assert_int_equal(packets(), before + round - 1);
		pass(40 * US);
		send_some(1);
		assert_int_equal(packets(), before + round);
	}
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 106);
	ends_close();
}

/* Who made progress late after a burst may do so again: nothing gathers, until it comes soon. */
static void late(void **state)
{
	uint64_t before;

	(void)state;
	pair_open(4224, 8);
	pair_burst(5);
	for (int round = 0; round < 3; round++) {
		send_some(10);
		pass(MS);
		ends_progress(ends[0]);
		ends_settle();
		before = packets();
		send_some(10);
		assert_int_equal(packets(), before + 10);
		ends_progress(ends[0]);
		ends_settle();
	}
	before = packets();
	send_some(10);
	assert_int_equal(packets(), before + 1);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 5 + 60 + 10);
	ends_close();
}

static const struct rwk_link_ops *under;

static int one_a_look(struct rwk_link *l, int budget)
{
	return under->progress(l, budget < 1 ? budget : 1);
}

/*
 * Who sends and does nothing else reads no acknowledgements, until the machine's window is full. It is told to make
 * progress, and all of them are taken in one, though each look at the link brings one. If there are none it may go on,
 * and is asked again later.
 */
static void nothing_but_sends(void **state)
{
	struct rwk_link_ops ops;
	struct rwk_link *l;
	uint64_t before;
	unsigned sent = 0, refused = 0;

	(void)state;
	pair_open(4224, 8);
	l = ends[0]->port->link[RWK_WAY_LOSSY];
	under = l->ops;
	ops = *under;
	ops.progress = one_a_look;
	l->ops = &ops;
	before = packets();
	for (int i = 0; i < 300; i++) {
		pass(MS);
		ends_progress(ends[1]);
		refused += send_patiently();
		sent++;
		assert_int_equal(packets() - before, sent);
	}
	assert_in_range(refused, 3, 12);
	refused = 0;
	for (int i = 0; i < 300; i++) { /* the peer computes */
		pass(MS);
		refused += send_patiently();
	}
	assert_in_range(refused, 100, 300);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 600);
	l->ops = under;
	ends_close();
}

/* Who ends the connection behind a full window is heard all the same. */
static void good_bye(void **state)
{
	(void)state;
	pair_open(4224, 8);
	send_some(200);
	ends_transport->disconnect(ends_side(0, 1)->ch);
	ends_side(0, 1)->ch = NULL;
	ends_settle();
	assert_int_equal(ends_side(1, 0)->failed, 1);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(first),
		ENDS_UC(first),
		ENDS_RC(shared),
		ENDS_UC(shared),
		ENDS_RC(not_for_long),
		ENDS_UC(not_for_long),
		ENDS_RC(late),
		ENDS_UC(late),
		ENDS_RC(nothing_but_sends),
		ENDS_RC(good_bye),
		ENDS_UC(good_bye),
	};

	return cmocka_run_group_tests_name("packet/bursts", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* How channels of the simulated service and the packet service come to be, are refused, and come again. */
#include "links/ends.h"

/*
 * Both sides connect at once: one channel at each end, nobody is told of a new peer, even if greetings and answers are
 * lost.
 */
static void both_connect(void **state)
{
	(void)state;
	for (int lost = 0; lost < 3; lost++) {
		ends_open(NULL, NULL, 2);
		if (lost > 0)
			rwk_sim_rule(ends_net, 1, 2, 1, RWK_SIM_DROP);
		if (lost > 1)
			rwk_sim_rule(ends_net, 2, 1, 1, RWK_SIM_DROP);
		ends_connect(0, 1);
		ends_connect(1, 0);
		assert_int_equal(ends_send(ends_side(0, 1)), -EAGAIN);
		assert_int_equal(ends_post(ends_side(0, 1)), 0);
		assert_int_equal(ends_post(ends_side(1, 0)), 0);
		ends_settle();
		assert_int_equal(ends_side(0, 1)->received, 1);
		assert_int_equal(ends_side(1, 0)->received, 1);
		assert_int_equal(ends[0]->connects + ends[1]->connects, 0);
		ends_close();
	}
}

/* A partial address (IP and port) reaches the peer, and its full address is told through `connected`. */
static void partial_address(void **state)
{
	struct rwk_address to = {.flags_rank = RWK_ADDR_PARTIAL};

	(void)state;
	ends_open(NULL, NULL, 2);
	to.nonce_port = rwk_address_port(&ends[1]->address);
	assert_int_equal(ends_transport->connect(ends[0]->port, &to, ends_side(0, 1), &ends_side(0, 1)->ch), 0);
	ends_settle();
	assert_int_equal(ends[0]->connects, 1);
	assert_int_equal(ends[1]->connects, 1);
	to.nonce_port = 9;
	if (!ends_packets())
		assert_int_equal(ends_transport->connect(ends[0]->port, &to, ends_side(0, 1), &ends_side(0, 1)->ch),
			-EHOSTUNREACH);
	ends_close();
}

/* A peer that refuses, one whose port has another nonce, one that is gone: the channel fails, its queued op first. */
static void refusals(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		int err;

		ends_open(NULL, NULL, 2);
		if (how == 0)
			ends[1]->refuse = -EPERM;
		if (how == 1)
			ends[1]->address.nonce_port ^= 1u << 20;
		if (how == 2)
			ends_close_port(1);
		ends_connect(0, 1);
		assert_int_equal(ends_post(ends_side(0, 1)), 0);
		ends_settle();
		err = how == 0 && ends_packets() ? -EPERM : -ECONNRESET;
		assert_int_equal(ends_side(0, 1)->failed, 1);
		assert_int_equal(ends_side(0, 1)->error, err);
		assert_int_equal(ends_post(ends_side(0, 1)), err);
		assert_int_equal(ends_send(ends_side(0, 1)), err);
		ends_transport->disconnect(ends_side(0, 1)->ch);
		ends_close();
	}
}

/* Port numbers: the one asked for, -EADDRINUSE while its owner lives. */
static void port_numbers(void **state)
{
	struct rwk_port_attr attr = {.address.nonce_port = 4242};
	struct rwk_port *p, *q;

	(void)state;
	ends_open(NULL, NULL, 0);
	assert_int_equal(ends_transport->open(&attr, &ends_client, NULL, &p), 0);
	assert_int_equal(rwk_address_port(&attr.address), 4242);
	assert_int_not_equal(attr.address.nonce_port >> 16, 0);
	assert_int_equal(ends_transport->open(&attr, &ends_client, NULL, &q), -EADDRINUSE);
	ends_transport->close(p);
	assert_int_equal(ends_transport->open(&attr, &ends_client, NULL, &q), 0);
	ends_transport->close(q);
	ends_close();
}

/* A channel that was ended can be made again; what the first one had taken comes first. */
static void disconnect_and_return(void **state)
{
	struct side *a, *b;

	(void)state;
	ends_open_two();
	a = ends_side(0, 1);
	b = ends_side(1, 0);
	assert_int_equal(ends_send(a), 0);
	rwk_sim_rule(ends_net, 1, 2, 1, RWK_SIM_DELAY);
	ends_transport->disconnect(a->ch);
	ends_connect(0, 1);
	assert_int_equal(ends_post(a), 0);
	for (unsigned steps = 0; !b->failed && steps < 1000; steps++) {
		ends_progress_all();
		rwk_sim_step(ends_net);
	}
	assert_int_equal(b->failed, 1);
	assert_int_equal(b->received, 1);
	ends_transport->disconnect(b->ch);
	b->failed = 0;
	ends_settle();
	assert_int_equal(b->received, 2);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_EACH(both_connect),
		ENDS_EACH(partial_address),
		ENDS_EACH(refusals),
		ENDS_SIM(port_numbers),
		ENDS_SIM(disconnect_and_return),
	};

	return cmocka_run_group_tests_name("channel services, connect", tests, NULL, NULL);
}

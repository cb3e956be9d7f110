/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC: how many connections there are when each process sends to each process of every other node. Real ports on the
 * simulated network, those of a node with a domain in common:
 *
 *   node 0: ends 0 to J-1; node 1: ends J to 2J-1; ...; each end one initiator for a node, each node one target for it
 *
 * Links: sim.
 */
#include "links/ends.h"

#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/port.h"
#include "packet/sim_domain.h"

static unsigned nodes, per_node; /* N and J */

static const struct rwk_packet_channel *channel(unsigned from, unsigned to)
{
	return (const struct rwk_packet_channel *)ends_side(from, to)->ch;
}

static bool is_elsewhere(unsigned a, unsigned b)
{
	return a / per_node != b / per_node;
}

/* All ends, each connected to each on another node, at once or one after the other. */
static void open_all(bool at_once)
{
	ends_open(NULL, NULL, 0);
	for (unsigned e = 0; e < nodes * per_node; e++) {
		sim_packet_host(e / per_node);
		ends_add();
	}
	for (unsigned b = 0; b < nodes * per_node; b++)
		for (unsigned a = 0; a < b; a++) {
			if (!is_elsewhere(a, b))
				continue;
			ends_connect((a + b) % 2 ? a : b, (a + b) % 2 ? b : a);
			if (!at_once)
				ends_settle();
		}
	ends_settle();
}

static void each_sends_to_each(void)
{
	for (unsigned a = 0; a < nodes * per_node; a++)
		for (unsigned b = 0; b < nodes * per_node; b++)
			if (is_elsewhere(a, b))
				assert_in_range(ends_post(ends_side(a, b)), 0, 1);
	ends_settle();
	for (unsigned a = 0; a < nodes * per_node; a++)
		for (unsigned b = 0; b < nodes * per_node; b++)
			if (is_elsewhere(a, b))
				assert_int_equal(ends_side(a, b)->received, 1);
}

/* The end's packets for that node: all by one initiator, and there, whoever they are for, by one target. */
static void goes_by_one(unsigned from, unsigned node)
{
	unsigned first = node * per_node;

	for (unsigned to = first; to < first + per_node; to++) {
		assert_true(rwk_packet_is_shared(ends_side(from, to)->ch));
		assert_ptr_equal(channel(from, to)->by, channel(from, first)->by);
		assert_int_equal(channel(to, from)->target, channel(first, from)->target);
		assert_int_equal(channel(to, from)->target, channel(from, to)->by->target);
	}
}

/* S1-9: an end has N - 1 queue pairs, not (N - 1) J: N (N - 1) J in all, and as many targets. */
static void s1_9_counted(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 8; c++) {
		nodes = 2 + c % 2;
		per_node = 2 + c / 2 % 2 * 2;
		open_all(c / 4);
		each_sends_to_each();
		for (unsigned e = 0; e < nodes * per_node; e++) {
			const struct rwk_packet_counters *n = rwk_packet_counters(ends[e]->port);

			assert_int_equal(n->initiators, nodes - 1);
			assert_int_equal(n->targets, (nodes - 1) * per_node);
			assert_int_equal(n->queue_pairs, 0);
			for (unsigned node = 0; node < nodes; node++)
				if (node != e / per_node)
					goes_by_one(e, node);
		}
		ends_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_ON(s1_9_counted, "SRC", sim_shared_transport),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

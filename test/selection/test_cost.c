/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a job takes, by formula: against pairs counted one by one, and against the real sizes. That the machines which
 * exist are as many is for test/rc/test_scale.c.
 */
#include "rwk_test.h"

#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/numbers.h"
#include "packet/port.h"
#include "rc/rc.h"
#include "selection/cost.h"

#include <malloc.h>

/* The bytes are those of the structures. */
static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(rwk_rc_size(), RWK_COST_REQUESTER);
	assert_int_equal(rwk_rc_responder_size(), RWK_COST_RESPONDER);
	/* What malloc adds comes to it. */
	assert_in_range(sizeof(struct rwk_packet_initiator), RWK_COST_INITIATOR - 64, RWK_COST_INITIATOR);
}

static struct rwk_link_address nowhere(const struct rwk_address *a)
{
	(void)a;
	return (struct rwk_link_address){{0}};
}

/*
 * As many peers as the tables of numbers hold before they grow, each found by its QPN, its target and its nonce: what
 * malloc has given for all of them, with what it keeps of tables that had become too short.
 */
static void test_channels(void **state)
{
	enum { PEERS = 4096 };
	static struct rwk_packet_channel *channels[PEERS];
	const struct rwk_packet_ways ways = {.address = nowhere};
	struct rwk_port *port = calloc(1, sizeof(*port));
	size_t before = mallinfo2().uordblks, each;

	(void)state;
	assert_non_null(port);
	port->ways = &ways;
	rwk_list_init(&port->all);
	rwk_packet_numbers_init(port);
	for (uint32_t i = 0; i < PEERS; i++) {
		const struct rwk_address to = {
			.version_srq = RWK_ADDR_VERSION << 24, .nonce_port = (uint64_t)(1 << 20 | i) << 16 | 1};

		channels[i] = rwk_packet_channel_new(port, &to);
		assert_non_null(channels[i]);
		channels[i]->target = 1 << 20 | i;
		rwk_hash_add(&port->by_target, &channels[i]->by_target);
	}
	each = (mallinfo2().uordblks - before) / PEERS;
	if (each) /* a sanitizer's malloc does not say */
		assert_in_range(each, RWK_COST_CHANNEL - 16, RWK_COST_CHANNEL + 2);
	for (uint32_t i = 0; i < PEERS; i++) {
		assert_ptr_equal(rwk_packet_by_qpn(port, channels[i]->qpn), channels[i]);
		assert_ptr_equal(rwk_packet_by_target(port, channels[i]->target), channels[i]);
		assert_null(rwk_packet_by_target(port, 2 << 20 | i));
		assert_ptr_equal(rwk_packet_by_nonce(port, 1 << 20 | i), channels[i]);
		assert_null(rwk_packet_by_nonce(port, 2 << 20 | i));
		rwk_hash_remove(&port->by_target, &channels[i]->by_target);
		assert_null(rwk_packet_by_target(port, channels[i]->target));
		rwk_packet_channel_free(channels[i]);
	}
	rwk_packet_numbers_free(port);
	free(port);
}

/* Node 0 of a job, its queue pairs counted one by one. */
static struct rwk_cost counted(uint32_t nodes, uint32_t ranks, bool src)
{
	struct rwk_cost c = {0};

	for (uint32_t me = 0; me < ranks; me++) {
		for (uint32_t peer = ranks; peer < nodes * ranks; peer++) {
			bool first = peer % ranks == 0;

			c.queue_pairs += src ? 1 + first : 1; /* a target for the peer, and an initiator to its node */
			c.initiators += src ? first : 1;
			c.targets += !src || me == 0;
			c.queue_pairs -= src && me > 0; /* the target is the node's, not each rank's */
			c.sockets += src ? first : 1;
		}
		c.sockets += 2;
	}
	c.sockets += src ? 2 : 0;
	c.timers = c.initiators + (src ? 0 : c.targets);
	c.machines = c.initiators * RWK_COST_REQUESTER + c.targets * RWK_COST_RESPONDER;
	return c;
}

static void test_formulas(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes < 7; nodes++) {
		for (uint32_t ranks = 1; ranks < 9; ranks++) {
			for (int src = 0; src < 2; src++) {
				struct rwk_cost c = rwk_cost_of_node(nodes, ranks, src), k = counted(nodes, ranks, src);
				struct rwk_cost r = rwk_cost_of_rank(nodes, ranks, src);
				uint64_t own = src && nodes > 1 ? ranks * (RWK_COST_REQUESTER + RWK_COST_RESPONDER) : 0;

				assert_int_equal(c.queue_pairs, k.queue_pairs);
				assert_int_equal(c.initiators, k.initiators);
				assert_int_equal(c.targets, k.targets);
				assert_int_equal(c.sockets, k.sockets);
				assert_int_equal(c.timers, k.timers);
				assert_int_equal(c.machines, k.machines + own);
				assert_true(c.bytes >= c.machines);
				assert_int_equal(rwk_cost_queue_pairs(nodes, ranks, src), nodes * c.queue_pairs);
				assert_in_range(r.machines * ranks, c.machines, c.machines + ranks - 1);
				assert_in_range(r.bytes * ranks, c.bytes, c.bytes + ranks - 1);
			}
		}
	}
}

/*
 * A process that has talked to all of 4,096 ranks, 64 to a node, has a tenth of RC's machines and less, of its
 * streams, and of all that they and the channels take; and so has one of 131,072 ranks, 128 to a node.
 */
static void test_share(void **state)
{
	struct rwk_cost rc = rwk_cost_of_rank(64, 64, false), src = rwk_cost_of_rank(64, 64, true);
	struct rwk_cost more = rwk_cost_of_rank(1024, 128, false), less = rwk_cost_of_rank(1024, 128, true);

	(void)state;
	assert_int_equal(rc.queue_pairs, 4032);
	assert_int_equal(src.initiators, 63);
	assert_int_equal(src.targets, 63);
	assert_true(src.machines * 10 <= rc.machines);
	assert_true(src.sockets * 10 <= rc.sockets);
	assert_true(src.bytes * 10 <= rc.bytes);
	assert_true(less.bytes * 10 <= more.bytes);
}

static void test_bytes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {{0, "0 bytes"}, {1, "1 byte"}, {1023, "1023 bytes"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"},
		{102400, "100 KiB"}, {1048000, "1023 KiB"}, {1048300, "1.0 MiB"}, {UINT64_C(3) << 30, "3.0 GiB"},
		{UINT64_MAX, "16.0 EiB"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[RWK_COST_TEXT];

		assert_string_equal(rwk_cost_bytes(cases[i].bytes, text), cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_channels),
		cmocka_unit_test(test_formulas),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

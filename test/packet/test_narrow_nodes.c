/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A way between nodes that becomes narrow while connections are up, and says nothing (test_narrow.c is of two ends).
 *
 * SRC: two nodes with a domain each. Whoever looks first takes what has come to its node's domain, so that of a
 * packet's pieces each member has some.
 *
 *   ends 0 and 2, node 0 ---- what is longer than `most` is lost ----> ends 1 and 3, node 1
 *                        <--- the same, or not ---------------------
 */
#include "packet/narrow_ends.h"

#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/regions.h"
#include "shared_rc/internal.h"

#define MEMBERS 4u

static void settle_in_turn(void)
{
	for (unsigned steps = 0; steps < 4000000; steps++) {
		for (unsigned i = 0; i < MEMBERS; i++)
			ends_progress(ends[(steps + i) % MEMBERS]);
		if (!rwk_sim_step(ends_net))
			return;
	}
	fail_msg("the network does not come to rest");
}

static bool on_first_node(unsigned end)
{
	return ends[end]->address.node == ends[0]->address.node;
}

/* What gets through from now on between the nodes, from one's processes and domain to the other's; 0: all. */
static void node_width(bool from_first, size_t most, uint32_t drop)
{
	const struct rwk_sim_path path = {.delay = 5000, .jitter = 2000, .most = most, .drop = drop};

	for (unsigned i = 0; i < MEMBERS; i++) {
		for (unsigned j = 0; j < MEMBERS; j++) {
			uint32_t from = number(i), to = number(j);

			if (on_first_node(i) != from_first || on_first_node(j) == from_first)
				continue;
			rwk_sim_set_path(ends_net, from, to, &path);
			rwk_sim_set_path(ends_net, from, ends[j]->port->domain.port, &path);
			rwk_sim_set_path(ends_net, ends[i]->port->domain.port, to, &path);
		}
	}
}

/* Each node holds so many bytes of packets that wait, of which each counts as a kernel counts it; 0: no limit. */
static void open_nodes_holding(size_t inbox)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.mtu = RWK_WIRE_OWN_MAX + RWK_PACKET_OVERHEAD;
	attr.inbox = inbox;
	attr.cost = inbox ? 400 : 0;
	attr.path = (struct rwk_sim_path){.delay = 5000, .jitter = 2000};
	ends_open(&attr, NULL, MEMBERS);
	for (unsigned i = 0; i < MEMBERS; i++)
		for (unsigned j = i + 1; j < MEMBERS; j++)
			if (on_first_node(i) != on_first_node(j))
				ends_connect(i, j);
	settle_in_turn();
	for (unsigned i = 0; i < MEMBERS; i++)
		for (unsigned j = 0; j < MEMBERS; j++)
			if (on_first_node(i) != on_first_node(j))
				assert_true(channel(i, j)->shared);
}

static void open_nodes(void)
{
	open_nodes_holding(0);
}

/* From each process of one node, or of both, to each of the other. */
static void all_send(bool from_first, bool both, unsigned n)
{
	uint64_t before[MEMBERS][MEMBERS];

	for (unsigned i = 0; i < MEMBERS; i++) {
		for (unsigned j = 0; j < MEMBERS; j++) {
			if (on_first_node(i) == on_first_node(j))
				continue;
			before[i][j] = ends_side(j, i)->received;
			for (unsigned k = 0; k < n && (both || on_first_node(i) == from_first); k++)
				assert_in_range(ends_post(ends_side(i, j)), 0, 1);
		}
	}
	settle_in_turn();
	for (unsigned i = 0; i < MEMBERS; i++) {
		for (unsigned j = 0; j < MEMBERS; j++) {
			if (on_first_node(i) == on_first_node(j))
				continue;
			assert_int_equal(ends_side(j, i)->received,
				before[i][j] + (both || on_first_node(i) == from_first ? n : 0));
			assert_int_equal(ends_side(i, j)->failed, 0);
		}
	}
}

static uint32_t cut_of_initiator(unsigned from, unsigned to)
{
	return channel(from, to)->by->path.cut;
}

/* Of the answers to `to` from the domain of `from`. */
static uint32_t cut_of_target(unsigned from, unsigned to)
{
	struct rwk_src_view *v = ends[from]->port->view;

	return rwk_src_target(v, rwk_src_place(v, channel(from, to)->target))->cut;
}

/* Of who sends from that node, and of the answers that it gets. */
static void assert_cut(bool from_first, uint32_t cut)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		for (unsigned j = 0; j < MEMBERS; j++)
			if (on_first_node(i) == from_first && on_first_node(j) != from_first) {
				assert_int_equal(cut_of_initiator(i, j), cut);
				assert_int_equal(cut_of_target(j, i), cut);
			}
}

static void assert_cut_as(unsigned ways, uint32_t cut)
{
	if (ways & 1)
		assert_cut(true, cut);
	if (ways & 2)
		assert_cut(false, cut);
}

static void pass_in_turn(rwk_time time)
{
	for (rwk_time until = rwk_sim_now(ends_net) + time; rwk_sim_now(ends_net) < until;) {
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + SECOND);
		for (unsigned i = 0; i < MEMBERS; i++) {
			ends[i]->port->armed = true; /* as after a sleep: the clock is looked at */
			ends_progress(ends[i]);
		}
		settle_in_turn();
	}
}

static void nodes_messages(void **state)
{
	(void)state;
	for (unsigned ways = 1; ways < 4; ways++) {
		use_lengths();
		open_nodes();
		all_send(true, true, 12);
		assert_cut_as(3, 0);
		node_width(true, ways & 1 ? 1472 : 0, 0);
		node_width(false, ways & 2 ? 1472 : 0, 0);
		all_send(true, false, 24);
		all_send(false, false, 24);
		pass_in_turn(2 * SECOND); /* who has heard it of others tells the domain later */
		assert_cut_as(ways, 1024);
		for (unsigned i = 0; i < MEMBERS; i++)
			if (ways & (on_first_node(i) ? 1 : 2))
				assert_true(counts(i)->pieces_out);
			else
				assert_true(counts(i)->pieces_in);
		node_width(true, ways & 1 ? 548 : 0, 0);
		node_width(false, ways & 2 ? 548 : 0, 0);
		all_send(true, true, 24);
		all_send(true, false, 12);
		all_send(false, false, 12);
		pass_in_turn(30 * SECOND); /* what was lost of it is said again */
		assert_cut_as(ways, 256);
		node_width(true, 0, 0);
		node_width(false, 0, 0);
		for (unsigned i = 0; i < 30; i++) {
			all_send(true, true, 6);
			pass_in_turn(SECOND);
		}
		assert_cut_as(3, 0);
		ends_close();
	}
}

/* Time passes: those of that node look one time of twenty. */
static void look_rarely(bool first_node, unsigned time)
{
	for (unsigned k = 0; k < MEMBERS; k++)
		if (time % 20 == 0 || on_first_node(k) != first_node)
			ends_progress(ends[k]);
	rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + MS / 100);
}

/* One streams to another node and reads from there, and whoever takes that looks rarely: nothing is overrun. */
static void stream_and_read(void)
{
	static const size_t longest = 65536;
	uint64_t overrun = rwk_sim_counts(ends_net)->overrun, received = ends_side(1, 0)->received;
	uint8_t *there = calloc(1, READ), *here = calloc(1, READ);
	struct iovec iov = {there, READ};
	struct rwk_rkey key;
	struct ends_op op;

	assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ, &key), 0);
	ends_lengths = &longest;
	ends_lengths_count = 1;
	for (unsigned i = 0; i < 20; i++)
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	for (unsigned i = 0; i < 100000 && ends_side(1, 0)->received < received + 20; i++)
		look_rarely(false, i);
	settle_in_turn();
	assert_int_equal(rwk_sim_counts(ends_net)->overrun, overrun);

	ends_make_op(&op, RWK_OP_READ, here, READ);
	op.op.rkey = key;
	assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
	for (unsigned i = 0; i < 100000 && !op.done; i++)
		look_rarely(true, i);
	settle_in_turn();
	assert_int_equal(op.done, 1);
	assert_int_equal(rwk_sim_counts(ends_net)->overrun, overrun);
	ends_transport->conceal(ends_side(1, 0)->ch, &key);
	free(there);
	free(here);
	use_lengths();
}

/* Pieces take more room than the packet would: as many are under way as there is room for. */
static void nodes_room(void **state)
{
	(void)state;
	use_lengths();
	open_nodes_holding(104 * 1024);
	stream_and_read();
	for (unsigned cut = 1024; cut >= 256; cut /= 4) {
		node_width(true, cut == 1024 ? 1472 : 548, 0);
		node_width(false, cut == 1024 ? 1472 : 548, 0);
		all_send(true, true, 24);
		all_send(true, false, 12);
		all_send(false, false, 12);
		pass_in_turn(5 * SECOND);
		assert_cut_as(3, cut);
		stream_and_read();
	}
	ends_close();
}

/* Reads and Writes that any process of the other node carries out, and such as its own does. */
static void nodes_access(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 10; how++) {
		bool to_first = how & 1, writes = how & 2, published = how < 8; /* else its owner answers */
		struct ends_op op;
		struct rwk_rkey key;
		uint8_t *there = calloc(1, READ), *here = calloc(1, READ);
		struct iovec iov = {there, READ};

		for (uint32_t i = 0; i < READ; i++)
			(writes ? here : there)[i] = (uint8_t)(i * 7 + i / 251);
		open_nodes();
		assert_int_equal(ends_transport->expose(ends_side(1, 2)->ch, &iov, 1,
				 RWK_EXPOSE_READ | (writes || published ? RWK_EXPOSE_WRITE : 0u), &key), 0);
		assert_int_equal(published, key.word[2] == RWK_RKEY_PUBLISHED);
		node_width(!to_first, 1472, how & 4 ? 20000 : 0);
		ends_make_op(&op, writes ? RWK_OP_WRITE : RWK_OP_READ, here, READ);
		op.op.rkey = key;
		assert_int_equal(ends_transport->post(ends_side(2, 1)->ch, &op.op), 0);
		settle_in_turn();
		assert_int_equal(op.done, 1);
		assert_int_equal(op.status, 0);
		assert_memory_equal(here, there, READ);
		ends_close();
		free(there);
		free(here);
	}
}

/* Nobody there answers: one of them is asked for all, in turn, and never by many. */
static void nodes_silence(void **state)
{
	(void)state;
	use_lengths();
	open_nodes();
	all_send(true, true, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
		assert_in_range(ends_post(ends_side(0, 3)), 0, 1);
	}
	for (unsigned i = 0; i < 20000; i++) {
		ends_progress(ends[0]);
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + MS);
	}
	assert_true(counts(0)->greetings_out > 10);
	assert_true(counts(0)->greetings_out < 60);
	settle_in_turn();
	assert_int_equal(ends_side(1, 0)->received, 8);
	assert_int_equal(ends_side(3, 0)->received, 8);
	all_send(true, true, 12);
	assert_int_equal(counts(0)->narrowed, 0);
	ends_close();
}

/* One of the processes there computes: the others are asked, and take what comes for themselves. */
static void nodes_one_computes(void **state)
{
	(void)state;
	for (unsigned computes = 1; computes < MEMBERS; computes += 2) {
		unsigned other = computes ^ 2;
		uint64_t before;

		use_lengths();
		open_nodes();
		all_send(true, true, 4);
		node_width(true, 1472, 0);
		node_width(false, 1472, 0);
		before = ends_side(other, 0)->received;
		for (unsigned i = 0; i < 12; i++)
			assert_in_range(ends_post(ends_side(0, other)), 0, 1);
		for (unsigned i = 0; i < 60000 && ends_side(other, 0)->received < before + 12; i++) {
			ends_progress(ends[0]);
			ends_progress(ends[2]);
			ends_progress(ends[other]);
			rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + MS / 10);
		}
		assert_int_equal(ends_side(other, 0)->received, before + 12);
		settle_in_turn();
		ends_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_ON(nodes_messages, "SRC", sim_shared_transport),
		ENDS_ON(nodes_room, "SRC", sim_shared_transport),
		ENDS_ON(nodes_access, "SRC", sim_shared_transport),
		ENDS_ON(nodes_silence, "SRC", sim_shared_transport),
		ENDS_ON(nodes_one_computes, "SRC", sim_shared_transport),
	};

	return cmocka_run_group_tests_name("packet/narrow_nodes", tests, NULL, NULL);
}

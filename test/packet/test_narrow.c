/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A way that becomes narrow while a connection is up, and says nothing, on the simulated network:
 *
 *   end 0 ---- what is longer than `most` is lost ----> end 1
 *         <--- the same, or not ---------------------
 *
 * Everything comes all the same, once and whole; the ends find out how much gets through, and send no more at once
 * until the way is wide again (transports/packet/narrow.c, pieces.c). And a way that is gone for a moment (put.c).
 */
#include "packet/hand.h"

#include "packet/channel.h"
#include "packet/initiator.h"
#include "packet/narrow.h"
#include "packet/port.h"
#include "packet/regions.h"
#include "shared_rc/internal.h"
#include "wire/icrc.h"

#include "base/param.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define READ   100000u

static const struct rwk_packet_counters *counts(unsigned end)
{
	return rwk_packet_counters(ends[end]->port);
}

static uint32_t number(unsigned end)
{
	return rwk_sim_number(ends[end]->port->link[RWK_WAY_LOSSY]);
}

static struct rwk_packet_channel *channel(unsigned from, unsigned to)
{
	return rwk_packet_channel(ends_side(from, to)->ch);
}

/* What gets through from now on; 0: all. */
static void width(unsigned from, unsigned to, size_t most, uint32_t drop)
{
	const struct rwk_sim_path path = {.delay = 5000, .most = most, .drop = drop};

	rwk_sim_set_path(ends_net, number(from), number(to), &path);
}

static void open_two_by(uint64_t seed, uint32_t drop)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.seed = seed;
	attr.mtu = RWK_WIRE_OWN_MAX + RWK_PACKET_OVERHEAD;
	attr.path = (struct rwk_sim_path){.delay = 5000, .drop = drop};
	ends_open(&attr, NULL, 2);
	ends_connect(0, 1);
	ends_settle();
}

static void open_two(uint32_t drop)
{
	open_two_by(rwk_sim_attr_default.seed, drop);
}

static void send_some(unsigned from, unsigned to, unsigned n)
{
	uint64_t before = ends_side(to, from)->received;

	for (unsigned i = 0; i < n; i++)
		assert_in_range(ends_post(ends_side(from, to)), 0, 1);
	ends_settle();
	assert_int_equal(ends_side(to, from)->received, before + n);
	assert_int_equal(ends_side(from, to)->failed + ends_side(to, from)->failed, 0);
}

/* Lets so much time pass, with a little traffic. */
static void pass(rwk_time time)
{
	for (rwk_time until = rwk_sim_now(ends_net) + time; rwk_sim_now(ends_net) < until;) {
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + SECOND);
		ends_progress_all();
		ends_settle();
	}
}

static const size_t lengths[] = {64, 4000, 65536, 9000, 100, 20000};

static void use_lengths(void)
{
	ends_lengths = lengths;
	ends_lengths_count = sizeof(lengths) / sizeof(*lengths);
}

#define ALIKE 1000u /* bytes of a message in a packet of its own */

static size_t no_way_at; /* the ICRC of one longer packet out is asked for when there is no way; 0: not any more */

/* As of a link on which packets have headers below, which it can tell only as long as there is a way. */
static size_t pseudo(
	struct rwk_link *l, const struct rwk_link_address *peer, bool outgoing, size_t len, uint16_t id, uint8_t *out)
{
	(void)l;
	(void)peer;
	(void)id;
	if (outgoing && no_way_at && len >= no_way_at) {
		no_way_at = 0;
		return 0;
	}
	memset(out, 0x45, 36);
	out[35] = (uint8_t)len;
	return 36;
}

/*
 * There is no way at the moment at which a packet's ICRC is begun: that one is lost. Those of its length that go when
 * there is one again arrive.
 */
static void no_way(void **state)
{
	static const size_t alike[] = {ALIKE};
	struct rwk_link_ops ops[2];

	(void)state;
	ends_lengths = alike;
	ends_lengths_count = 1;
	open_two(0);
	for (unsigned i = 0; i < 2; i++) {
		struct rwk_link *l = ends[i]->port->link[RWK_WAY_LOSSY];

		ops[i] = *l->ops;
		ops[i].pseudo = pseudo;
		l->ops = &ops[i];
	}
	send_some(0, 1, 3);
	send_some(1, 0, 1);
	assert_int_equal(counts(1)->wrong_icrc, 0);
	no_way_at = ALIKE;
	channel(0, 1)->path.begun_len = 0;
	send_some(0, 1, 3);
	assert_int_equal(no_way_at, 0);
	assert_int_equal(counts(1)->wrong_icrc, 1);
	ends_close();
}

/* Long messages, in one direction or both, over a way that becomes narrow, narrower, and wide again. */
static void messages(void **state)
{
	(void)state;
	for (unsigned ways = 1; ways < 4; ways++) {
		use_lengths();
		open_two(0);
		send_some(0, 1, 12);
		send_some(1, 0, 12);
		assert_int_equal(counts(0)->narrowed + counts(1)->narrowed, 0);
		width(0, 1, ways & 1 ? 1472 : 0, 0);
		width(1, 0, ways & 2 ? 1472 : 0, 0);
		send_some(0, 1, 24);
		send_some(1, 0, 24);
		assert_int_equal(channel(0, 1)->path.cut, 1024);
		assert_int_equal(channel(1, 0)->path.cut, 1024);
		send_some(0, 1, 6);
		assert_true(counts(0)->pieces_out && counts(1)->pieces_out);
		width(0, 1, ways & 1 ? 548 : 0, 0);
		width(1, 0, ways & 2 ? 548 : 0, 0);
		send_some(0, 1, 24);
		send_some(1, 0, 24);
		assert_int_equal(channel(0, 1)->path.cut, 256);
		assert_int_equal(channel(1, 0)->path.cut, 256);
		width(0, 1, 0, 0);
		width(1, 0, 0, 0);
		for (unsigned i = 0; i < 30; i++) {
			send_some(0, 1, 6);
			pass(SECOND);
		}
		assert_int_equal(channel(0, 1)->path.cut, 0);
		assert_int_equal(channel(1, 0)->path.cut, 0);
		ends_close();
	}
}

/* What is lost beside changes nothing of that. */
static void and_lossy(void **state)
{
	(void)state;
	use_lengths();
	open_two(50000);
	send_some(0, 1, 12);
	width(0, 1, 1472, 50000);
	width(1, 0, 1472, 50000);
	send_some(0, 1, 60);
	send_some(1, 0, 60);
	assert_int_equal(channel(0, 1)->path.cut, 1024);
	ends_close();
}

/* An answer of middle length is lost in the round that decides: the one before has shown that so much gets through. */
static void middle_lost(void **state)
{
	(void)state;
	use_lengths();
	open_two(0);
	send_some(0, 1, 12);
	width(0, 1, 1472, 0);
	for (unsigned i = 0; i < 6; i++)
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	while (!counts(0)->narrowed) {
		const struct rwk_packet_narrow *n = channel(0, 1)->narrow;

		width(1, 0, n && n->rounds == 1 ? 548 : 0, 0);
		ends_progress_all();
		assert_true(rwk_sim_step(ends_net));
	}
	width(1, 0, 0, 0);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 18);
	assert_int_equal(channel(0, 1)->path.cut, 1024);
	ends_close();
}

/* A Read: who waits sends only what is short, and its peer what is long. And a Write that the reader asks for. */
static void reads(void **state)
{
	(void)state;
	for (int way = RWK_RENDEZVOUS_READ; way <= RWK_RENDEZVOUS_WRITE; way++) {
		struct ends_op op;
		struct rwk_rkey key;
		uint8_t *there = malloc(READ), *here = calloc(1, READ);
		struct iovec iov = {there, READ};

		rwk_params.rendezvous = way;
		for (uint32_t i = 0; i < READ; i++)
			there[i] = (uint8_t)(i * 7 + i / 251);
		open_two(0);
		send_some(0, 1, 1);
		assert_int_equal(ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ, &key), 0);
		width(1, 0, 1472, 0);
		ends_make_op(&op, RWK_OP_READ, here, READ);
		op.op.rkey = key;
		assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
		ends_settle();
		assert_int_equal(op.done, 1);
		assert_int_equal(op.status, 0);
		assert_memory_equal(here, there, READ);
		assert_int_equal(channel(1, 0)->path.cut, 1024);
		ends_close();
		free(there);
		free(here);
	}
	rwk_params.rendezvous = RWK_RENDEZVOUS_AUTO;
}

/* A peer that does not answer, because it computes, makes no way narrow; nor does one that loses its long packets for
 * a while. */
static void silence(void **state)
{
	(void)state;
	use_lengths();
	open_two(0);
	send_some(0, 1, 12);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
	for (unsigned i = 0; i < 20000; i++) { /* end 1 takes nothing */
		ends_progress(ends[0]);
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + MS);
	}
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 16);
	send_some(0, 1, 12);
	assert_int_equal(counts(0)->narrowed + counts(1)->narrowed, 0);
	assert_true(counts(0)->greetings_out < 60);
	ends_close();
}

/*
 * A peer that runs seldom, and a way that loses one packet of ten: there are silences, and rounds of probes that only a
 * short one comes back from, but with this seed no two of one silence.
 */
static void late_and_lossy(void **state)
{
	(void)state;
	use_lengths();
	open_two_by(7, 100000);
	for (unsigned i = 0; i < 4000; i++) {
		assert_in_range(ends_post(ends_side(0, 1)), 0, 1);
		for (unsigned k = 0; k < 10; k++) {
			ends_progress(ends[0]);
			rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + MS);
		}
		ends_progress(ends[1]);
	}
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 4000);
	assert_int_equal(counts(0)->narrowed + counts(1)->narrowed, 0);
	ends_close();
}

static void put_head(uint8_t *to, uint32_t serial, uint16_t at, uint16_t of, uint16_t unit)
{
	memcpy(to, "RWKP", 4);
	memcpy(to + 4, &serial, 4);
	memcpy(to + 8, &at, 2);
	memcpy(to + 10, &of, 2);
	memcpy(to + 12, &unit, 2);
	memset(to + 14, 0, 2);
}

/* Pieces that fit nowhere are dropped and counted, and so is what is no packet in the end. */
static void nonsense(void **state)
{
	static const struct {
		uint16_t at, of, unit;
		size_t len;
	} wrong[] = {
		{0, 100, 0, 50},       /* no unit */
		{25, 100, 50, 50},     /* between two */
		{100, 100, 50, 50},    /* behind the end */
		{50, 100, 50, 49},     /* too short */
		{0, 100, 50, 51},      /* too long */
		{0, 60, 100, 100},     /* longer than the packet */
		{0, 8776, 400, 400},   /* a packet that is too long */
		{0, 60000, 300, 300},  /* the same */
		{0, 4096, 60, 60},     /* too many */
		{0, 0, 1, 1},          /* of nothing */
	};
	uint8_t bytes[5000] = {0};
	struct hand h;

	(void)state;
	ends_open(NULL, NULL, 1);
	hand_open(&h, 0);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		uint64_t before = counts(0)->malformed;

		put_head(bytes, i, wrong[i].at, wrong[i].of, wrong[i].unit);
		if (16 + wrong[i].len > 480)
			continue;
		hand_greet_bytes(&h, bytes, 16 + wrong[i].len);
		hand_pass(&h, MS);
		assert_int_equal(counts(0)->malformed, before + 1);
	}
	assert_int_equal(counts(0)->pieces_in, 0);
	hand_close(&h);
	ends_close();
}

/* A whole packet with that payload for QPN 1, with a right ICRC; its length. */
static size_t make_packet(uint8_t opcode, const uint8_t *payload, size_t len, uint8_t *to)
{
	const struct rwk_wire w = {.opcode = opcode, .migrated = true, .pkey = RWK_WIRE_PKEY, .qpn = RWK_WIRE_GSI_QPN};
	size_t size = rwk_wire_pack(&w, len, to);
	uint32_t icrc;

	memcpy(to + size, payload, len);
	size += len;
	icrc = rwk_icrc_bytes(RWK_CRC_32, 0, to, size);
	memcpy(to + size, &icrc, sizeof(icrc));
	return size + sizeof(icrc);
}

/* The payload of the only piece of such a packet; its length. */
static size_t make_piece(uint8_t opcode, uint32_t serial, uint8_t *to)
{
	uint8_t zeros[100] = {0};
	size_t len = make_packet(opcode, zeros, sizeof(zeros), to + 16);

	put_head(to, serial, 0, (uint16_t)len, (uint16_t)len);
	return 16 + len;
}

/*
 * Of pieces no pieces are made, or a stranger would choose how deep they nest: a packet in pieces is none for QPN 1,
 * and what comes to QPN 1 is a datagram.
 */
static void nested(void **state)
{
	static const uint8_t opcodes[] = {RWK_WIRE_UD | RWK_WIRE_SEND_ONLY, RWK_WIRE_RC | RWK_WIRE_SEND_ONLY,
		RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, RWK_WIRE_RC | RWK_WIRE_SEND_MIDDLE};
	const unsigned n = sizeof(opcodes) / sizeof(*opcodes);
	const struct rwk_packet_counters *c;
	uint8_t piece[200], packet[300];
	struct hand h;

	(void)state;
	ends_open(NULL, NULL, 1);
	hand_open(&h, 0);
	c = counts(0);
	for (unsigned i = 0; i < n; i++) {
		hand_greet_bytes(&h, piece, make_piece(opcodes[i], i, piece));
		hand_pass(&h, MS);
		assert_int_equal(c->pieces_in, i + 1);
		assert_int_equal(c->malformed, i + 1);
	}
	for (unsigned i = 1; i < n; i++) {
		hand_raw(&h, packet, make_packet(opcodes[i], piece, make_piece(opcodes[i], n + i, piece), packet));
		hand_pass(&h, MS);
		assert_int_equal(c->pieces_in, n);
		assert_int_equal(c->malformed, n + i);
	}
	assert_int_equal(c->wrong_key + c->wrong_icrc, 0);
	hand_close(&h);
	ends_close();
}

/*
 * SRC: two nodes with a domain each. Whoever looks first takes what has come to its node's domain, so that of a
 * packet's pieces each member has some.
 *
 *   ends 0 and 2, node 0 ---- what is longer than `most` is lost ----> ends 1 and 3, node 1
 *                        <--- the same, or not ---------------------
 */
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
		ENDS_RC(no_way),
		ENDS_RC(messages),
		ENDS_RC(and_lossy),
		ENDS_RC(middle_lost),
		ENDS_RC(reads),
		ENDS_RC(silence),
		ENDS_RC(late_and_lossy),
		ENDS_RC(nonsense),
		ENDS_RC(nested),
		ENDS_ON(nodes_messages, "SRC", sim_shared_transport),
		ENDS_ON(nodes_room, "SRC", sim_shared_transport),
		ENDS_ON(nodes_access, "SRC", sim_shared_transport),
		ENDS_ON(nodes_silence, "SRC", sim_shared_transport),
		ENDS_ON(nodes_one_computes, "SRC", sim_shared_transport),
	};

	return cmocka_run_group_tests_name("packet/narrow", tests, NULL, NULL);
}

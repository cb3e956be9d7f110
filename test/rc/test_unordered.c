/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two hints of a work request, and the un-ordered types, packet by packet: which type a requester takes, and what a
 * responder does before its turn. (What comes of it under every order of packets: test_order.)
 *
 * The machines know no link. The ids hold on links that lose or reorder packets (udp, sim); on tcp and shm packets come
 * in order, so that nothing is ever done before its turn there.
 *
 * Links: sim.
 */
#include "rc/alone.h"

#define U RWK_WR_UNORDERED
#define H RWK_WR_HALF

static const uint8_t services[] = {RWK_WIRE_RC, RWK_WIRE_SRC};

static int setup_own(void **state)
{
	setup(state);
	attr.own = RWK_RC_SELECTIVE | RWK_RC_UNORDERED;
	attr.window = 64;
	return 0;
}

static void post_as(struct end *e, unsigned i, unsigned type, size_t len, unsigned flags)
{
	static uint64_t value;

	wrs[i] = end_wr(type, &iovs[i],
		type >= RWK_WR_COMPARE_SWAP ? (void *)&value
		: type == RWK_WR_READ       ? back
					    : bytes,
		len);
	wrs[i].flags = (uint8_t)flags;
	end_post(e, &wrs[i]);
}

/* The acknowledgement of our own, of everything up to psn. */
static void acknowledge(struct end *e, uint32_t psn)
{
	static const uint8_t own[4];
	struct rwk_wire w = {.opcode = RWK_WIRE_OWN | RWK_WIRE_ACK, .psn = psn, .aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT};

	end_give(e, &w, own, sizeof(own));
}

/* Packet `ahead` packets behind the one that the end expects first, of that operation in its un-ordered type. */
static struct rwk_wire unordered(unsigned operation, uint32_t ahead)
{
	uint8_t class = attr.service == RWK_WIRE_SRC ? RWK_WIRE_OWN_SRC : RWK_WIRE_OWN;

	return (struct rwk_wire){
		.opcode = (uint8_t)(class | operation), .psn = attr.receive_psn + ahead, .ack_request = true};
}

static void give_send(struct end *e, unsigned operation, uint32_t ahead, const void *from, size_t len)
{
	struct rwk_wire w = unordered(operation, ahead);

	end_give(e, &w, from, len);
}

/* A packet of an un-ordered Write of `all` bytes to the beginning of the region. */
static void give_write(struct end *e, unsigned operation, uint32_t ahead, uint32_t all, uint32_t offset, size_t len)
{
	struct rwk_wire w = unordered(operation, ahead);

	w.reth.address = e->base;
	w.reth.key = END_KEY;
	w.reth.length = all;
	w.offset = offset;
	w.imm = 77;
	end_give(e, &w, bytes + offset, len);
}

static void give_read(struct end *e, uint32_t ahead, uint32_t length)
{
	struct rwk_wire w = unordered(RWK_WIRE_READ_REQUEST, ahead);

	w.reth.address = e->base;
	w.reth.key = END_KEY;
	w.reth.length = length;
	end_give(e, &w, NULL, 0);
}

/* What ends a request of that type, the one with psn: a Read's response, an atomic's value, or an acknowledgement. */
static void answer(struct end *e, unsigned type, uint32_t psn)
{
	struct rwk_wire w = {.opcode = attr.service, .psn = psn, .aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT};

	w.opcode |= type == RWK_WR_READ ? RWK_WIRE_READ_ONLY : RWK_WIRE_ATOMIC_ACK;
	if (type < RWK_WR_READ)
		acknowledge(e, psn);
	else
		end_give(e, &w, bytes, type == RWK_WR_READ ? 4 : 0);
}

/* A plain Send of one byte. */
static void give_plain(struct end *e, uint32_t ahead, char name)
{
	struct rwk_wire w = {
		.opcode = attr.service | RWK_WIRE_SEND_ONLY, .psn = attr.receive_psn + ahead, .ack_request = true};

	end_give(e, &w, &name, 1);
}

static void check_message(struct end *e, const void *expected, size_t len)
{
	struct end_message *m = end_take(e);

	assert_non_null(m);
	assert_int_equal(m->len, len);
	assert_memory_equal(m->bytes, expected, len);
	free(m);
}

/* The last of the packets that e has sent is an acknowledgement of all before so many, and says that n more are here.
 */
static void check_own_ack(struct end *e, uint32_t before, unsigned n)
{
	unsigned count = end_sent(e), bits = 0;
	const struct end_packet *p = &e->out[count - 1];

	assert_true(count > 0);
	assert_int_equal(p->w.opcode, RWK_WIRE_OWN | RWK_WIRE_ACK);
	assert_int_equal(p->w.psn, attr.receive_psn + before - 1);
	for (unsigned i = 0; i < p->len - 4; i++)
		bits += (unsigned)__builtin_popcount(p->payload[i]);
	assert_int_equal(bits, n);
}

/* S2-6: of fence, un-ordered and half-ordered at most one; any two, or all, are refused at post. */
static void s2_6_at_most_one(void **state)
{
	static const uint8_t bits[] = {RWK_WR_FENCE, U, H};

	(void)state;
	for (unsigned own = 0; own < 2; own++)
		for (unsigned type = RWK_WR_SEND; type <= RWK_WR_FETCH_ADD; type++)
			for (unsigned set = 0; set < 8; set++) {
				struct end *e;
				uint64_t value;

				setup(NULL);
				attr.own = own ? RWK_RC_SELECTIVE | RWK_RC_UNORDERED : 0;
				e = end_alone(&attr);
				wrs[0] = end_wr(type, &iovs[0], &value, 8);
				for (unsigned i = 0; i < 3; i++)
					wrs[0].flags |= set >> i & 1 ? bits[i] : 0;
				assert_int_equal(
					rwk_rc_post(e->qp, &wrs[0]), __builtin_popcount(set) > 1 ? -EINVAL : 0);
				end_pump(e);
				assert_int_equal(end_sent(e), __builtin_popcount(set) <= 1);
				end_close(e);
			}
}

/* S2-9: Send, Write and Read Request have an un-ordered type each, of all their packets; atomics have none. */
static void s2_9_types(void **state)
{
	static const uint8_t operations[][3] = {
		{RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE, RWK_WIRE_SEND_LAST},
		{RWK_WIRE_WRITE_FIRST, RWK_WIRE_WRITE_MIDDLE, RWK_WIRE_WRITE_LAST},
		{RWK_WIRE_READ_REQUEST},
	};

	for (unsigned s = 0; s < 2; s++)
		for (unsigned type = RWK_WR_SEND; type <= RWK_WR_FETCH_ADD; type++) {
			unsigned n = type < RWK_WR_READ ? 3 : 1;
			struct end *e;

			setup_own(state);
			attr.service = services[s];
			e = end_alone(&attr);
			post_as(e, 0, type, type > RWK_WR_READ ? 8 : 3 * PMTU, U);
			assert_int_equal(end_sent(e), n);
			for (unsigned i = 0; i < n; i++) {
				const struct rwk_wire *w = &e->out[i].w;

				if (type > RWK_WR_READ) {
					assert_int_equal(RWK_WIRE_CLASS(w->opcode), attr.service);
					continue;
				}
				assert_int_equal(w->opcode, unordered(operations[type][i], 0).opcode);
				if (type == RWK_WR_WRITE)
					assert_true(w->reth.address == wrs[0].remote && w->reth.key == END_KEY &&
						    w->reth.length == 3 * PMTU && w->offset == i * PMTU);
			}
			end_close(e);
		}
}

/* What is posted, and the type that the last of it is to have. */
static const struct {
	const char *what;
	unsigned flags[4];
	unsigned count;
	bool acknowledged; /* all but the last, before it is posted */
	bool unordered;
} choices[] = {
	{"nothing before", {U}, 1, false, true},
	{"ordered", {0}, 1, false, false},
	{"half-ordered", {H}, 1, false, false},
	{"behind an ordered one", {0, U}, 2, false, false},
	{"behind an ordered one that is acknowledged", {0, U}, 2, true, true},
	{"S2-10: behind a half-ordered one", {H, U}, 2, false, true},
	{"S2-10: a half-ordered one does not make up for the ordered one before it", {0, H, U}, 3, false, false},
	{"behind one that waited itself", {0, U, U}, 3, false, false},
	{"behind un-ordered ones", {U, U, U}, 3, false, true},
	{"behind a fence", {RWK_WR_FENCE, U}, 2, false, false},
	{"an ordered one between", {U, 0, H, U}, 4, false, false},
	{"all acknowledged", {U, 0, H, U}, 4, true, true},
};

/* What can be posted: atomics and Reads have no immediate data. */
static const struct {
	unsigned type, length, flag;
} kinds[] = {{RWK_WR_SEND, 4, 0}, {RWK_WR_SEND, 4, RWK_WR_IMM}, {RWK_WR_WRITE, 4, 0}, {RWK_WR_WRITE, 4, RWK_WR_IMM},
	{RWK_WR_READ, 4, 0}, {RWK_WR_COMPARE_SWAP, 8, 0}, {RWK_WR_FETCH_ADD, 8, 0}};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void post_kind(struct end *e, unsigned i, unsigned kind, unsigned flags)
{
	post_as(e, i, kinds[kind].type, kinds[kind].length, flags | kinds[kind].flag);
}

/* All choices: all but the last request of the kind `before`, that one of the kind `kind`. */
static void choose_all(uint8_t service, unsigned before, unsigned kind)
{
	struct end *e;

	setup_own(NULL);
	attr.service = service;
	e = end_alone(&attr);
	for (unsigned c = 0; c < sizeof(choices) / sizeof(*choices); c++) {
		unsigned last = choices[c].count - 1;
		uint8_t class;

		for (unsigned i = 0; i < last; i++)
			post_kind(e, i, before, choices[c].flags[i]);
		end_sent(e);
		for (unsigned i = 0; choices[c].acknowledged && i < last; i++)
			answer(e, kinds[before].type, attr.send_psn + i);
		post_kind(e, last, kind, choices[c].flags[last]);
		assert_int_equal(end_sent(e), 1);
		class = choices[c].unordered ? unordered(0, 0).opcode : service;
		if (RWK_WIRE_CLASS(e->out[0].w.opcode) != class)
			fail_msg("%s, kind %u behind kind %u: opcode 0x%02x", choices[c].what, kind, before,
				e->out[0].w.opcode);
		end_renew(e);
	}
	end_close(e);
}

/* S2-9, S2-10: the un-ordered type only if the bit is set and nothing ordered before it waits for its acknowledgement.
 */
static void s2_9_s2_10_when(void **state)
{
	(void)state;
	for (unsigned s = 0; s < 2; s++)
		for (unsigned before = 0; before < KINDS; before++)
			for (unsigned last = 0; last < KINDS; last++)
				if (kinds[last].type <= RWK_WR_READ)
					choose_all(services[s], before, last);
}

/* S2-9: what is sent again has the type that it had, though by then it might have the other. */
static void s2_9_again(void **state)
{
	struct end *e = end_alone(&attr);
	struct rwk_wire ack = {.opcode = RWK_WIRE_OWN | RWK_WIRE_ACK, .psn = attr.send_psn};
	uint8_t bitmap[5] = {0x1e}; /* all but the first behind it */

	(void)state;
	post_as(e, 0, RWK_WR_SEND, 4, 0);
	for (unsigned i = 1; i < 6; i++)
		post_as(e, i, RWK_WR_SEND, 4, U);
	post_as(e, 6, RWK_WR_SEND, 4, 0);
	end_sent(e);
	end_give(e, &ack, bitmap, sizeof(bitmap));
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.psn, attr.send_psn + 1);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_SEND_ONLY);
	end_close(e);
}

/* S2-1: where it was not agreed the hints change no packet, and a packet of such a type is dropped. */
static void s2_1_not_agreed(void **state)
{
	static const unsigned owns[] = {0, RWK_RC_SELECTIVE};

	(void)state;
	for (unsigned o = 0; o < 2; o++)
		for (unsigned type = RWK_WR_SEND; type <= RWK_WR_READ; type++)
			for (unsigned flags = U; flags <= H; flags *= 2) {
				struct end *e;

				attr.own = owns[o];
				e = end_alone(&attr);
				post_as(e, 0, type, 10, flags);
				assert_int_equal(end_sent(e), 1);
				assert_int_equal(RWK_WIRE_CLASS(e->out[0].w.opcode), RWK_WIRE_RC);
				give_send(e, RWK_WIRE_SEND_ONLY, 0, "x", 1);
				give_write(e, RWK_WIRE_WRITE_ONLY, 0, 1, 0, 1);
				give_read(e, 0, 1);
				assert_int_equal(counters(e)->bad_opcode, 3);
				assert_int_equal(e->message_count + e->writes + e->reads + end_sent(e), 0);
				end_close(e);
			}
}

/* S2-11: each packet of an un-ordered Write is placed as it comes, in any order, and once; its turn comes and passes.
 */
static void s2_11_write(void **state)
{
	static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	static const unsigned operations[] = {RWK_WIRE_WRITE_FIRST, RWK_WIRE_WRITE_MIDDLE, RWK_WIRE_WRITE_LAST};

	for (unsigned s = 0; s < 2; s++)
		for (unsigned o = 0; o < 6; o++) {
			struct end *e;

			setup_own(state);
			attr.service = services[s];
			e = end_alone(&attr);
			for (unsigned i = 0; i < 3; i++) {
				unsigned k = orders[o][i];
				size_t len = k == 2 ? 10 : PMTU;

				for (unsigned twice = 0; twice < 2; twice++) {
					give_write(e, operations[k], 1 + k, 2 * PMTU + 10, k * PMTU, len);
					assert_int_equal(e->writes, i + 1);
					check_own_ack(e, 0, i + 1);
				}
				assert_memory_equal(e->region + k * PMTU, bytes + k * PMTU, len);
			}
			assert_int_equal(counters(e)->before_turn, 3);
			give_plain(e, 0, 'a');
			assert_int_equal(e->writes, 3);
			check_own_ack(e, 4, 0);
			assert_int_equal(e->kept_now, 0);
			give_plain(e, 4, 'b');
			check_own_ack(e, 5, 0);
			assert_int_equal(e->message_count, 2);
			end_close(e);
		}
}

/* S2-11: an un-ordered Read is executed before its turn. Its responses acknowledge nothing, and come behind the
 * acknowledgement that says what is missing. */
static void s2_11_read(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	memcpy(e->region, bytes, 3 * PMTU);
	give_read(e, 1, 2 * PMTU + 1);
	assert_int_equal(end_sent(e), 4);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_OWN | RWK_WIRE_ACK);
	assert_int_equal(e->out[0].w.psn, attr.receive_psn - 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(e->out[1 + i].w.opcode, RWK_WIRE_OWN | RWK_WIRE_READ_ONLY);
		assert_int_equal(e->out[1 + i].w.psn, attr.receive_psn + 1 + i);
		assert_memory_equal(e->out[1 + i].payload, bytes + i * PMTU, e->out[1 + i].len);
	}
	give_read(e, 1, 2 * PMTU + 1); /* its answer was lost */
	assert_int_equal(end_sent(e), 4);
	assert_int_equal(e->reads, 6);
	give_plain(e, 0, 'a');
	check_own_ack(e, 4, 0);
	assert_int_equal(e->reads, 6);
	give_read(e, 1, 2 * PMTU + 1); /* and again, when its turn has passed */
	assert_int_equal(end_sent(e), 3);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_READ_ONLY);
	end_close(e);
}

/* The requester: such a response is placed, and ends nothing before its turn. */
static void response_before_turn(void **state)
{
	struct rwk_wire w = {.opcode = RWK_WIRE_OWN | RWK_WIRE_READ_ONLY, .psn = attr.send_psn + 1};
	struct end *e = end_alone(&attr);

	(void)state;
	memset(back, 0, sizeof(back));
	post_as(e, 0, RWK_WR_WRITE, 4, U);
	post_as(e, 1, RWK_WR_READ, 4, U);
	post_as(e, 2, RWK_WR_SEND, 4, 0);
	post_as(e, 3, RWK_WR_SEND, 4, U);
	end_give(e, &w, "read", 4);
	assert_memory_equal(back, "read", 4);
	assert_int_equal(e->done_count, 0);
	assert_int_equal(counters(e)->sent_again, 0);
	acknowledge(e, attr.send_psn);
	assert_int_equal(e->done_count, 1);
	acknowledge(e, attr.send_psn + 1);
	assert_int_equal(e->done_count, 2);
	end_sent(e);
	post_as(e, 4, RWK_WR_SEND, 4, U); /* the ordered Send was not acknowledged by it */
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.opcode, RWK_WIRE_SEND_ONLY);
	end_close(e);
}

/* S2-8: the responses to a Read are placed in the order in which they come, whatever that is; it ends with the last. */
static void s2_8_responses(void **state)
{
	static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	static const unsigned operations[] = {RWK_WIRE_READ_FIRST, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_LAST};

	for (unsigned flags = 0; flags <= U; flags += U)
		for (unsigned o = 0; o < 6; o++) {
			struct end *e;

			setup_own(state);
			e = end_alone(&attr);
			memset(back, 0, 3 * PMTU);
			post_as(e, 0, RWK_WR_READ, 3 * PMTU, flags);
			for (unsigned i = 0; i < 3; i++) {
				unsigned k = orders[o][i];
				struct rwk_wire w = {.opcode = (uint8_t)operations[k], .psn = attr.send_psn + k};

				assert_int_equal(e->done_count, 0);
				end_give(e, &w, bytes + k * PMTU, PMTU);
				assert_memory_equal(back + k * PMTU, bytes + k * PMTU, PMTU);
			}
			assert_int_equal(e->done_count, 1);
			end_close(e);
		}
}

/* S2-7: of two un-ordered Sends the second comes first, and takes the first receive; the first takes the second. */
static void s2_7_swapped(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	e->receives = 2;
	give_send(e, RWK_WIRE_SEND_ONLY, 1, "S", 1);
	check_own_ack(e, 0, 1);
	assert_int_equal(e->receives, 1);
	check_message(e, "S", 1);
	give_send(e, RWK_WIRE_SEND_ONLY, 0, "R", 1);
	check_own_ack(e, 2, 0);
	assert_int_equal(e->receives, 0);
	check_message(e, "R", 1);
	end_close(e);
}

static void swap(unsigned *a, unsigned *b)
{
	unsigned t = *a;

	*a = *b;
	*b = t;
}

/* Two Sends of three packets each, behind one that is missing; their packets in that order. */
static void give_two(const unsigned *order)
{
	static const unsigned operations[] = {RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE, RWK_WIRE_SEND_LAST};
	struct end *e = end_alone(&attr);
	unsigned here[2] = {0}, whole = 0;

	for (unsigned i = 0; i < 6; i++) {
		unsigned k = order[i], m = k / 3, at = k % 3;

		give_send(e, operations[at], 1 + k, bytes + k * PMTU, at == 2 ? 10 : PMTU);
		if (++here[m] == 3) {
			whole++;
			check_message(e, bytes + 3 * m * PMTU, 2 * PMTU + 10);
		}
		assert_int_equal(e->message_count, whole);
	}
	give_plain(e, 0, 'a');
	check_message(e, "a", 1);
	check_own_ack(e, 7, 0);
	assert_int_equal(e->message_count, 3);
	assert_int_equal(e->kept_now, 0);
	end_close(e);
}

/* All orders of the packets from `from` on. */
static void permute(unsigned *order, unsigned from)
{
	if (from == 6) {
		give_two(order);
		return;
	}
	for (unsigned i = from; i < 6; i++) {
		swap(&order[from], &order[i]);
		permute(order, from + 1);
		swap(&order[from], &order[i]);
	}
}

/* S2-12: all 720 orders of the packets of two Sends of three: each Send is delivered in one piece, when it is whole. */
static void s2_12_segments(void **state)
{
	unsigned order[6] = {0, 1, 2, 3, 4, 5};

	(void)state;
	permute(order, 0);
}

/* S2-12: a Send that is being received in its turn is not broken by a whole one that has come before its turn. */
static void s2_12_not_inside_another(void **state)
{
	for (unsigned s = 0; s < 2; s++) {
		struct end *e;

		setup_own(state);
		attr.service = services[s];
		e = end_alone(&attr);
		give_send(e, RWK_WIRE_SEND_FIRST, 0, bytes, PMTU);
		give_send(e, RWK_WIRE_SEND_ONLY, 2, "S", 1);
		assert_int_equal(e->message_count, 0);
		give_write(e, RWK_WIRE_WRITE_ONLY, 3, 5, 0, 5); /* but a Write is placed */
		assert_int_equal(e->writes, 1);
		give_send(e, RWK_WIRE_SEND_LAST, 1, bytes + PMTU, 5);
		check_message(e, bytes, PMTU + 5);
		check_message(e, "S", 1);
		check_own_ack(e, 4, 0);
		end_close(e);
	}
}

/*
 * S2-11, S2-12: nor does a Write with immediate data take a receive while a Send has one: with one
 * packet, too, it waits then.
 */
static void immediate_not_inside_a_send(void **state)
{
	for (unsigned s = 0; s < 2; s++) {
		struct end_message *m;
		struct end *e;

		setup_own(state);
		attr.service = services[s];
		e = end_alone(&attr);
		e->receives = 2;
		give_send(e, RWK_WIRE_SEND_FIRST, 0, bytes, PMTU);
		give_write(e, RWK_WIRE_WRITE_ONLY_IMM, 2, 5, 0, 5);
		assert_int_equal(e->receives, 1);
		assert_int_equal(e->written_count, 0);
		check_own_ack(e, 1, 1);
		give_send(e, RWK_WIRE_SEND_LAST, 1, bytes + PMTU, 5);
		check_message(e, bytes, PMTU + 5);
		m = end_take(e);
		assert_true(m && m->written);
		assert_int_equal(m->imm, 77);
		free(m);
		assert_int_equal(e->receives, 0);
		assert_memory_equal(e->region, bytes, 5);
		check_own_ack(e, 3, 0);
		assert_int_equal(e->kept_now, 0);
		end_close(e);
	}
}

/* S2-2, S2-3: ordered and half-ordered ones (their types are the same) wait for all before them, though those behind
 * are taken. */
static void s2_2_s2_3_waits(void **state)
{
	struct rwk_wire write = {.opcode = RWK_WIRE_WRITE_ONLY,
		.psn = attr.receive_psn + 4,
		.reth = {0x100000000000ull, END_KEY, 5},
		.ack_request = true};
	struct end *e = end_alone(&attr);

	(void)state;
	give_plain(e, 2, 'h');
	end_give(e, &write, bytes, 5);
	assert_int_equal(e->writes, 0);
	give_send(e, RWK_WIRE_SEND_ONLY, 3, "u", 1);
	check_message(e, "u", 1);
	give_send(e, RWK_WIRE_SEND_ONLY, 1, "v", 1);
	check_message(e, "v", 1);
	assert_int_equal(e->message_count, 2);
	give_plain(e, 0, 'a');
	check_message(e, "a", 1);
	check_message(e, "h", 1);
	check_own_ack(e, 5, 0);
	assert_int_equal(e->writes, 1);
	end_close(e);
}

/* A Write with immediate data: with several packets its last one waits for the others, with one it need not. */
static void immediate(void **state)
{
	struct end *e = end_alone(&attr);
	struct end_message *m;

	(void)state;
	give_write(e, RWK_WIRE_WRITE_LAST_IMM, 2, PMTU + 5, PMTU, 5);
	give_write(e, RWK_WIRE_WRITE_ONLY_IMM, 3, 5, 0, 5);
	assert_int_equal(e->written_count, 1);
	e->receives = 0;
	give_write(e, RWK_WIRE_WRITE_ONLY_IMM, 4, 5, 0, 5);
	e->receives = UINT32_MAX;
	assert_int_equal(e->written_count, 1);
	give_write(e, RWK_WIRE_WRITE_FIRST, 1, PMTU + 5, 0, PMTU);
	assert_int_equal(e->written_count, 1);
	give_plain(e, 0, 'a');
	assert_int_equal(e->written_count, 3);
	assert_memory_equal(e->region + PMTU, bytes + PMTU, 5);
	while ((m = end_take(e)))
		free(m);
	check_own_ack(e, 5, 0);
	end_close(e);
}

/* No receive is posted: the Send is kept, and its turn is as that of any other. */
static void not_ready(void **state)
{
	struct end *e = end_alone(&attr);

	(void)state;
	e->receives = 0;
	give_send(e, RWK_WIRE_SEND_ONLY, 1, "S", 1);
	check_own_ack(e, 0, 1);
	assert_int_equal(e->message_count, 0);
	e->receives = 1;
	give_plain(e, 0, 'a');
	check_message(e, "a", 1);
	assert_int_equal(end_sent(e), 1);
	assert_int_equal(e->out[0].w.aeth.syndrome & 0xe0, RWK_WIRE_RNR);
	assert_int_equal(e->out[0].w.psn, attr.receive_psn + 1);
	e->receives = 1;
	give_send(e, RWK_WIRE_SEND_ONLY, 1, "S", 1);
	check_message(e, "S", 1);
	check_own_ack(e, 2, 0);
	end_close(e);
}

/* What is wrong before its turn is said in its turn: those before it are acknowledged, and the NAK has its number. */
static void refused_in_turn(void **state)
{
	for (unsigned k = 0; k < 5; k++) {
		struct end *e;

		setup_own(state);
		e = end_alone(&attr);
		e->receive_size = 3;
		e->revoked = k < 2;
		if (k == 0)
			give_write(e, RWK_WIRE_WRITE_ONLY, 1, 5, 0, 5);
		else if (k == 1)
			give_read(e, 1, 5);
		else if (k == 2)
			give_send(e, RWK_WIRE_SEND_ONLY, 1, "long", 4);
		else if (k == 3)
			give_write(e, RWK_WIRE_WRITE_LAST, 1, PMTU + 5, PMTU + 1, 5); /* beyond its end */
		else {
			e->room = 1; /* the acknowledgement; then the region goes */
			give_read(e, 1, 5);
			e->revoked = true;
			e->room = 100;
			end_pump(e);
		}
		assert_int_equal(rwk_rc_state(e->qp), RWK_QP_RTS);
		check_own_ack(e, 0, 1);
		give_plain(e, 0, 'a');
		assert_int_equal(end_sent(e), 1);
		assert_int_equal(
			e->out[0].w.aeth.syndrome, k == 2 || k == 3 ? RWK_WIRE_NAK_INVALID : RWK_WIRE_NAK_ACCESS);
		assert_int_equal(e->out[0].w.psn, attr.receive_psn + 1);
		assert_int_equal(e->message_count, 1);
		assert_int_equal(e->writes, 0);
		assert_int_equal(rwk_rc_state(e->qp), RWK_QP_ERR);
		end_close(e);
	}
}

/* So many Reads wait for their answers that there is no place for one more: it waits for its turn. */
static void reads_full(void **state)
{
	struct end *e = end_alone(&attr);
	unsigned n = RWK_RC_READS_MAX + 2;

	(void)state;
	e->room = 0;
	for (unsigned i = 1; i <= n; i++)
		give_read(e, i, 1);
	assert_int_equal(counters(e)->before_turn, RWK_RC_READS_MAX);
	give_plain(e, 0, 'a');
	e->room = 100;
	end_pump(e);
	check_own_ack(e, RWK_RC_READS_MAX + 1, 1); /* one was dropped when its turn came, one is kept */
	give_read(e, RWK_RC_READS_MAX + 1, 1);
	assert_int_equal(end_sent(e), 2);
	assert_int_equal(e->out[1].w.psn, attr.receive_psn + n);
	end_close(e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(s2_1_not_agreed, setup_own),
		cmocka_unit_test_setup(s2_2_s2_3_waits, setup_own),
		cmocka_unit_test_setup(s2_6_at_most_one, setup_own),
		cmocka_unit_test_setup(s2_7_swapped, setup_own),
		cmocka_unit_test_setup(s2_8_responses, setup_own),
		cmocka_unit_test_setup(s2_9_types, setup_own),
		cmocka_unit_test_setup(s2_9_s2_10_when, setup_own),
		cmocka_unit_test_setup(s2_9_again, setup_own),
		cmocka_unit_test_setup(s2_11_write, setup_own),
		cmocka_unit_test_setup(s2_11_read, setup_own),
		cmocka_unit_test_setup(response_before_turn, setup_own),
		cmocka_unit_test_setup(s2_12_segments, setup_own),
		cmocka_unit_test_setup(s2_12_not_inside_another, setup_own),
		cmocka_unit_test_setup(immediate_not_inside_a_send, setup_own),
		cmocka_unit_test_setup(immediate, setup_own),
		cmocka_unit_test_setup(not_ready, setup_own),
		cmocka_unit_test_setup(refused_in_turn, setup_own),
		cmocka_unit_test_setup(reads_full, setup_own),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

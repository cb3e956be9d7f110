/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ordering hints on udp, packet by packet, RC and SRC: which types a requester puts on the wire, and what a
 * responder makes of packets by hand that overtake each other. The qp at far knows the un-ordered types.
 *
 *     sender, a bare socket  ------ packets by hand ------>  far
 *                            <---- what it has to say -----
 *
 * Links: udp.
 */
#include "channel_adapter/by_hand.h"

#include "wire/psn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEND_PSN 7u /* the first of far's */

static const enum rwk_qp_type types[] = {RWK_QP_RC, RWK_QP_SRC};

static struct sender sender;
static bool src;
static struct job job; /* SRC: whose receives and memory */
static uint8_t *memory;
static uint64_t packets; /* sent to far */
static uint8_t bytes[4 * PMTU];

static void open_for(enum rwk_qp_type type)
{
	src = type == RWK_QP_SRC;
	ends_unordered = true;
	ends_open_one(&far, 2, type);
	if (src)
		ends_open_job(&job, &far, far.domain, 0);
	memory = src ? job.in : far.in;
	sender = open_sender(1);
	connect_with(&sender, SEND_PSN);
	packets = 0;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 5 + i / 256);
}

static void close_all(void)
{
	ends_unordered = false;
	close(sender.fd);
	if (src)
		ends_close_job(&job);
	ends_close_one(&far);
}

static void receive(uint64_t id, size_t len)
{
	if (src)
		ends_receive_job(&job, id, len);
	else
		ends_receive(&far, id, len);
}

/* far has received that into the receive with this id. */
static void received(uint64_t id, size_t len)
{
	struct rwk_wc wc;

	assert_int_equal(rwk_cq_poll(src ? job.cq : far.receive_cq, &wc, 1), 1);
	assert_int_equal(wc.status, 0);
	assert_int_equal(wc.id, id);
	assert_int_equal(wc.length, len);
}

static void nothing_received(void)
{
	struct rwk_wc wc;

	assert_int_equal(rwk_cq_poll(src ? job.cq : far.receive_cq, &wc, 1), 0);
}

static uint8_t plain(unsigned operation)
{
	return (uint8_t)((src ? RWK_WIRE_SRC : RWK_WIRE_RC) | operation);
}

static uint8_t unordered(unsigned operation)
{
	return (uint8_t)((src ? RWK_WIRE_OWN_SRC : RWK_WIRE_OWN) | operation);
}

/* A packet of a request that is `ahead` of the first one; of a Write or Read, of the first `all` bytes of memory. */
static void give(uint8_t opcode, uint32_t ahead, size_t all, uint32_t offset, const void *payload, size_t len)
{
	struct rwk_wire w = to_far(opcode, rwk_psn_add(PSN, ahead));

	w.ack_request = true;
	w.srqn = job.number;
	w.reth.address = (uintptr_t)memory;
	w.reth.key = rwk_mr_key(src ? job.mr : far.in_mr);
	w.reth.length = (uint32_t)all;
	w.offset = offset;
	send_packet(&sender, &w, payload, len);
	await_packets(++packets);
}

static void give_send(uint8_t opcode, uint32_t ahead, const void *payload, size_t len)
{
	give(opcode, ahead, 0, 0, payload, len);
}

/* An answer to far's packet with that PSN. */
static void answer(uint8_t opcode, uint32_t psn, const void *payload, size_t len)
{
	struct rwk_wire w = to_far(opcode, psn);

	w.aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT;
	send_packet(&sender, &w, payload, len);
	await_packets(++packets);
}

/* far's next packet of that operation; its payload is in `into`. */
static size_t next(unsigned operation, struct rwk_wire *w, uint8_t into[PACKET])
{
	size_t len;

	do
		len = take_packet(&sender, w, into);
	while (RWK_WIRE_OPERATION(w->opcode) != operation);
	return len;
}

static void post(enum rwk_request_type type, unsigned flags, size_t len)
{
	struct rwk_sge sge = {far.out, len, rwk_mr_key(far.out_mr)};
	struct rwk_request r = {.type = type, .flags = flags, .sge = &sge, .sge_count = 1, .srqn = src ? 1 : 0};

	assert_int_equal(rwk_qp_post(far.qp, &r), 0);
}

/* S2-7: of two un-ordered Sends the second comes first and takes the first receive; the first takes the second. */
static void s2_7_swapped(void **state)
{
	(void)state;
	for (unsigned t = 0; t < 2; t++) {
		open_for(types[t]);
		receive('X', 10);
		receive('Y', 10);
		give_send(unordered(RWK_WIRE_SEND_ONLY), 1, "S", 1);
		received('X', 1);
		assert_int_equal(memory[0], 'S');
		give_send(unordered(RWK_WIRE_SEND_ONLY), 0, "R", 1);
		received('Y', 1);
		assert_int_equal(memory[0], 'R');
		assert_int_equal(info().before_turn, 1);
		close_all();
	}
}

/* S2-12: a Send of three packets, which come in another order, and before their turn: it is delivered when it is whole.
 */
static void s2_12_one_piece(void **state)
{
	size_t len = 2 * PMTU + 5;

	(void)state;
	for (unsigned t = 0; t < 2; t++) {
		open_for(types[t]);
		receive(1, len);
		receive(2, len);
		give_send(unordered(RWK_WIRE_SEND_LAST), 3, bytes + 2 * PMTU, 5);
		give_send(unordered(RWK_WIRE_SEND_FIRST), 1, bytes, PMTU);
		nothing_received();
		give_send(unordered(RWK_WIRE_SEND_MIDDLE), 2, bytes + PMTU, PMTU);
		received(1, len);
		assert_memory_equal(memory, bytes, len);
		give_send(unordered(RWK_WIRE_SEND_ONLY), 0, "R", 1);
		received(2, 1);
		close_all();
	}
}

/* S2-11: packets of a Write are placed as they come, though those before them are missing. */
static void s2_11_write(void **state)
{
	(void)state;
	for (unsigned t = 0; t < 2; t++) {
		open_for(types[t]);
		give(unordered(RWK_WIRE_WRITE_LAST), 2, PMTU + 5, PMTU, bytes + PMTU, 5);
		assert_memory_equal(memory + PMTU, bytes + PMTU, 5);
		assert_int_equal(memory[0], 0xee);
		give(unordered(RWK_WIRE_WRITE_FIRST), 1, PMTU + 5, 0, bytes, PMTU);
		assert_memory_equal(memory, bytes, PMTU + 5);
		assert_int_equal(info().before_turn, 2);
		close_all();
	}
}

/* S2-11: a Read is executed though the packet before it is missing, and says so: nothing before it is acknowledged. */
static void s2_11_read(void **state)
{
	uint8_t got[PACKET];
	struct rwk_wire w;

	(void)state;
	for (unsigned t = 0; t < 2; t++) {
		open_for(types[t]);
		memcpy(memory, bytes, 100);
		give(unordered(RWK_WIRE_READ_REQUEST), 1, 100, 0, NULL, 0);
		assert_int_equal(next(RWK_WIRE_READ_ONLY, &w, got), 100);
		assert_int_equal(w.opcode, RWK_WIRE_OWN | RWK_WIRE_READ_ONLY);
		assert_int_equal(w.psn, rwk_psn_add(PSN, 1));
		assert_memory_equal(got, bytes, 100);
		assert_int_equal(info().before_turn, 1);
		close_all();
	}
}

/* S2-2, S2-3: ordered and half-ordered ones have the plain types, and wait for those before them. */
static void s2_2_s2_3_waits(void **state)
{
	(void)state;
	for (unsigned t = 0; t < 2; t++) {
		open_for(types[t]);
		receive(1, 10);
		receive(2, 10);
		give_send(plain(RWK_WIRE_SEND_ONLY), 1, "S", 1);
		give(plain(RWK_WIRE_WRITE_ONLY), 2, 8, 0, bytes, 8);
		nothing_received();
		assert_int_equal(memory[0], 0xee);
		give_send(unordered(RWK_WIRE_SEND_ONLY), 0, "R", 1);
		received(1, 1);
		received(2, 1);
		assert_memory_equal(memory, bytes, 8);
		close_all();
	}
}

/* S2-9, S2-10: an un-ordered type for what is un-ordered, if no ordered one before it waits for its acknowledgement. */
static void s2_9_s2_10_types(void **state)
{
	static const struct {
		unsigned hint;
		bool unordered;
	} posts[] = {
		{RWK_REQUEST_UNORDERED, true},
		{RWK_REQUEST_HALF_ORDERED, false},
		{RWK_REQUEST_UNORDERED, true},
		{0, false}, /* until it is acknowledged */
		{RWK_REQUEST_UNORDERED, false},
	};
	static const uint8_t own[4];
	enum { COUNT = sizeof(posts) / sizeof(posts[0]) };
	uint8_t got[PACKET];
	struct rwk_wire w;

	(void)state;
	for (unsigned t = 0; t < 2; t++)
		for (unsigned imm = 0; imm < 2; imm++) {
			unsigned operation = imm ? RWK_WIRE_SEND_ONLY_IMM : RWK_WIRE_SEND_ONLY;

			open_for(types[t]);
			for (unsigned i = 0; i < COUNT; i++) {
				post(RWK_REQUEST_SEND, posts[i].hint | (imm ? RWK_REQUEST_IMM : 0), 10);
				assert_int_equal(take_packet(&sender, &w, got), 10);
				assert_int_equal(w.psn, SEND_PSN + i);
				assert_int_equal(
					w.opcode, posts[i].unordered ? unordered(operation) : plain(operation));
			}
			answer(RWK_WIRE_OWN | RWK_WIRE_ACK, SEND_PSN + COUNT - 1, own, sizeof(own));
			post(RWK_REQUEST_SEND, RWK_REQUEST_UNORDERED, 10);
			next(RWK_WIRE_SEND_ONLY, &w, got);
			while (w.psn != SEND_PSN + COUNT) /* what was sent again before the answer came */
				next(RWK_WIRE_SEND_ONLY, &w, got);
			assert_int_equal(w.opcode, unordered(RWK_WIRE_SEND_ONLY));
			close_all();
		}
}

/* S2-8: a response is placed though the one before it is missing. */
static void s2_8_responses(void **state)
{
	(void)state;
	for (unsigned t = 0; t < 2; t++) {
		struct rwk_wc wc;

		open_for(types[t]);
		post(RWK_REQUEST_READ, 0, 2 * PMTU);
		answer(plain(RWK_WIRE_READ_LAST), SEND_PSN + 1, bytes + PMTU, PMTU);
		assert_memory_equal(far.out + PMTU, bytes + PMTU, PMTU);
		assert_int_equal(rwk_cq_poll(far.send_cq, &wc, 1), 0);
		answer(plain(RWK_WIRE_READ_FIRST), SEND_PSN, bytes, PMTU);
		assert_memory_equal(far.out, bytes, 2 * PMTU);
		assert_int_equal(rwk_cq_poll(far.send_cq, &wc, 1), 1);
		assert_int_equal(wc.status, 0);
		close_all();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s2_2_s2_3_waits),
		cmocka_unit_test(s2_7_swapped),
		cmocka_unit_test(s2_8_responses),
		cmocka_unit_test(s2_9_s2_10_types),
		cmocka_unit_test(s2_11_write),
		cmocka_unit_test(s2_11_read),
		cmocka_unit_test(s2_12_one_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets made by hand, from ordinary sockets, to an adapter: which it takes, and what it drops, counted by reason,
 * with nothing touched.
 *
 * Links: udp.
 */
#include "channel_adapter/by_hand.h"

#include "wire/psn.h"

#include <sys/socket.h>
#include <unistd.h>

/* A packet by hand is taken: from another port of the peer's address, and with any identification of IPv4. */
static void taken(void **state)
{
	static const uint16_t ids[] = {0, 1, 0x100, 0x8000, 0xffff, 0x1234};
	uint8_t packet[PACKET];
	struct sender s;
	struct rwk_wire w;

	(void)state;
	ends_open(RWK_QP_UC);
	s = open_sender(1);
	for (unsigned i = 0; i < 6; i++) {
		ends_receive(&far, i, 100);
		w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, rwk_psn_add(PSN, i));
		send_bytes(&s, packet, make(&s, &w, near.out + i, 5 + i, ids[i], packet));
		assert_int_equal(ends_await(&far, far.receive_cq).length, 5 + i);
		assert_memory_equal(far.in, near.out + i, 5 + i);
	}
	assert_int_equal(counters().id_solved, 5);
	assert_int_equal(counters().bad_icrc, 0);
	close(s.fd);
	ends_close();
}

/*
 * S0-12: every bit of a packet is changed, one at a time: it is dropped, unless no CRC covers that bit (what routers
 * may set). The identification is not known, so a damage could pass as one; of these none does.
 */
static void damaged(void **state)
{
	uint8_t packet[PACKET];
	struct sender s;
	struct rwk_wire w;
	size_t len;

	(void)state;
	ends_open(RWK_QP_UC);
	s = open_sender(1);
	ends_receive(&far, 1, 100);
	w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, PSN);
	len = make(&s, &w, near.out, 21, 0, packet);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		if (bit / 8 == 4)
			continue;
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		send_bytes(&s, packet, len);
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (bit % 64 == 0) /* no more at once than its socket has room for */
			await_packets(bit + 1 - (bit > 39 ? 8 : 0));
	}
	await_packets(8 * len - 8);
	untouched();
	assert_true(counters().bad_icrc > 200);
	assert_int_equal(counters().id_solved, 0);
	assert_int_equal(info().packets_in, 0);
	send_bytes(&s, packet, len);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 21);
	close(s.fd);
	ends_close();
}

/* What is not for this qp, or is no packet: each is dropped and counted where it should be. */
static void misdirected(void **state)
{
	struct sender s, other;
	struct rwk_wire w;

	(void)state;
	ends_open(RWK_QP_UC);
	s = open_sender(1);
	other = open_sender(3);
	ends_receive(&far, 1, 100);

	w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, PSN);
	w.pkey = 0x7ffe;
	send_packet(&s, &w, near.out, 8);
	await_packets(1);
	assert_int_equal(counters().wrong_pkey, 1);

	w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, PSN);
	w.qpn ^= 0x400; /* the same place in the table */
	send_packet(&s, &w, near.out, 8);
	w.qpn ^= 0x401;
	send_packet(&s, &w, near.out, 8);
	await_packets(3);
	assert_int_equal(counters().unknown_qp, 2);

	w = to_far(RWK_WIRE_RC | RWK_WIRE_SEND_ONLY, PSN);
	send_packet(&s, &w, near.out, 8);
	await_packets(4);
	assert_int_equal(counters().wrong_service, 1);

	/* S0-3: a UC qp takes packets from its peer alone; this one is right in all but where it comes from. */
	w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, PSN);
	send_packet(&other, &w, near.out, 8);
	await_packets(5);
	assert_int_equal(counters().stranger, 1);

	send_bytes(&s, near.out, 3);
	send_bytes(&s, (const uint8_t *)"\xff\x40\xff\xff 0123456789abcdef", 20);
	await_packets(7);
	assert_int_equal(counters().malformed, 2);

	assert_int_equal(info().packets_in, 0);
	untouched();
	w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, PSN);
	send_packet(&s, &w, near.out, 8);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 8);
	close(s.fd);
	close(other.fd);
	ends_close();
}

/* far has sent nothing, nor has anything come to the sender. */
static void silent(const struct sender *s)
{
	uint8_t byte;

	ends_quiet();
	assert_int_equal(counters().packets_out, 0);
	assert_int_equal(recv(s->fd, &byte, 1, MSG_DONTWAIT), -1);
}

/* S0-1, S0-8, S0-11: numbers behind and ahead, told through the adapter; far says nothing to either. */
static void wrong_psn(void **state)
{
	struct sender s;
	struct rwk_wire w;

	(void)state;
	ends_open(RWK_QP_UC);
	s = open_sender(1);
	ends_receive(&far, 1, 100);
	w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, rwk_psn_add(PSN, 0xffffff));
	send_packet(&s, &w, near.out, 8);
	await_packets(1);
	assert_int_equal(info().duplicates, 1);
	untouched();
	w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, rwk_psn_add(PSN, 3));
	send_packet(&s, &w, near.out, 8);
	assert_int_equal(ends_await(&far, far.receive_cq).status, 0);
	assert_int_equal(info().lost, 1);
	assert_int_equal(ends_lost(&far), 1);
	silent(&s);
	close(s.fd);
	ends_close();
}

/*
 * S0-9, S0-10: a packet of a message is missing: what came before is in place, nothing of the rest is, and nobody is
 * told; the next Only completes, with its own bytes. S0-1: to all of that far says nothing.
 */
static void gap(void **state)
{
	static const uint8_t pieces[] = {RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE, RWK_WIRE_SEND_LAST};
	static const uint32_t ahead[] = {0, 2, 3};
	struct sender s;
	struct rwk_wire w;

	(void)state;
	for (unsigned type = RWK_WIRE_SEND_FIRST; type <= RWK_WIRE_WRITE_FIRST; type += RWK_WIRE_WRITE_FIRST) {
		ends_open(RWK_QP_UC);
		s = open_sender(1);
		ends_receive(&far, 1, REGION);
		for (unsigned i = 0; i < 3; i++) {
			w = to_far(RWK_WIRE_UC | (type + pieces[i]), rwk_psn_add(PSN, ahead[i]));
			w.ack_request = true;
			w.reth.address = (uintptr_t)far.in;
			w.reth.key = rwk_mr_key(far.in_mr);
			w.reth.length = 3 * PMTU + 7;
			send_packet(&s, &w, near.out + ahead[i] * PMTU, i < 2 ? PMTU : 7);
		}
		await_packets(3);
		ends_quiet();
		assert_memory_equal(far.in, near.out, PMTU);
		for (size_t i = PMTU; i < REGION; i++)
			assert_int_equal(far.in[i], 0xee);
		w = to_far(RWK_WIRE_UC | RWK_WIRE_SEND_ONLY, rwk_psn_add(PSN, 4));
		send_packet(&s, &w, near.out + 50, 9);
		assert_int_equal(ends_await(&far, far.receive_cq).length, 9);
		assert_memory_equal(far.in, near.out + 50, 9);
		assert_memory_equal(far.in + 9, near.out + 9, PMTU - 9);
		assert_int_equal(ends_lost(&far), 1);
		silent(&s);
		close(s.fd);
		ends_close();
	}
}

/*
 * S0-1 on the wire, and what answers look like: to the same wrong requests an RC qp sends packets, which go to the
 * peer's port and not to the sender's, and a UC qp sends none.
 */
static void answers(void **state)
{
	struct sender s;
	struct rwk_wire w;

	(void)state;
	for (unsigned type = RWK_QP_RC; type <= RWK_QP_UC; type++) {
		unsigned class = type == RWK_QP_RC ? RWK_WIRE_RC : RWK_WIRE_UC;

		ends_open(type);
		s = open_sender(1);
		w = to_far(class | RWK_WIRE_WRITE_ONLY, PSN);
		w.ack_request = true;
		w.reth.address = (uintptr_t)far.in;
		w.reth.key = rwk_mr_key(far.in_mr) ^ 0x80000000;
		w.reth.length = 8;
		send_packet(&s, &w, near.out, 8);
		await_packets(1);
		untouched();
		assert_int_equal(counters().packets_out, type == RWK_QP_RC);
		assert_int_equal(info().naks_out, type == RWK_QP_RC);
		assert_int_equal(info().bad_access, 1);
		assert_int_equal(recv(s.fd, &w, sizeof(w), MSG_DONTWAIT), -1);
		close(s.fd);
		ends_close();
	}
}

/* A Send with invalidate: the key of a region is not the peer's to invalidate. */
static void invalidate(void **state)
{
	struct sender s;
	struct rwk_wire w;

	(void)state;
	ends_open(RWK_QP_RC);
	s = open_sender(1);
	ends_receive(&far, 1, 100);
	w = to_far(RWK_WIRE_RC | RWK_WIRE_SEND_ONLY_INV, PSN);
	w.ack_request = true;
	w.invalidate = rwk_mr_key(far.in_mr);
	send_packet(&s, &w, near.out, 8);
	assert_int_equal(ends_await(&far, far.receive_cq).status, -ECANCELED);
	assert_int_equal(info().naks_out, 1);
	assert_int_equal(info().state, RWK_QPS_ERR);
	untouched();
	close(s.fd);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),
		cmocka_unit_test(damaged),
		cmocka_unit_test(misdirected),
		cmocka_unit_test(wrong_psn),
		cmocka_unit_test(gap),
		cmocka_unit_test(answers),
		cmocka_unit_test(invalidate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

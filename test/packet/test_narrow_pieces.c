/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of packets, of which too long ones consist on a narrow way, made by hand: what is wrong is dropped. */
#include "packet/hand.h"

#include "packet/narrow_ends.h"
#include "wire/icrc.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(nonsense),
		ENDS_RC(nested),
	};

	return cmocka_run_group_tests_name("packet/narrow_pieces", tests, NULL, NULL);
}

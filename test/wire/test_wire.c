/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of our own making, and what is not a packet. Those of others are in test_golden.
 *
 * Links: none: bytes alone.
 */
#include "rwk_test.h"

#include "wire/wire.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Every opcode that there is, and the bytes of its headers, as the standard has them. All others do not exist. */
static const struct {
	uint8_t opcode, size;
} opcodes[] = {
	/* RC */
	{0x00, 12},
	{0x01, 12},
	{0x02, 12},
	{0x03, 16},
	{0x04, 12},
	{0x05, 16},
	{0x06, 28},
	{0x07, 12},
	{0x08, 12},
	{0x09, 16},
	{0x0a, 28},
	{0x0b, 32},
	{0x0c, 28},
	{0x0d, 16},
	{0x0e, 12},
	{0x0f, 16},
	{0x10, 16},
	{0x11, 16},
	{0x12, 24},
	{0x13, 40},
	{0x14, 40},
	{0x16, 16},
	{0x17, 16},
	/* UC */
	{0x20, 12},
	{0x21, 12},
	{0x22, 12},
	{0x23, 16},
	{0x24, 12},
	{0x25, 16},
	{0x26, 28},
	{0x27, 12},
	{0x28, 12},
	{0x29, 16},
	{0x2a, 28},
	{0x2b, 32},
	/* UD */
	{0x64, 20},
	{0x65, 24},
	/* CNP */
	{0x81, 28},
	/* SRC: requests are four bytes longer than RC's, answers are not */
	{0xa0, 16},
	{0xa1, 16},
	{0xa2, 16},
	{0xa3, 20},
	{0xa4, 16},
	{0xa5, 20},
	{0xa6, 32},
	{0xa7, 16},
	{0xa8, 16},
	{0xa9, 20},
	{0xaa, 32},
	{0xab, 36},
	{0xac, 32},
	{0xad, 16},
	{0xae, 12},
	{0xaf, 16},
	{0xb0, 16},
	{0xb1, 16},
	{0xb2, 24},
	{0xb3, 44},
	{0xb4, 44},
	{0xb6, 20},
	{0xb7, 20},
	/* between our own ends: un-ordered requests of RC, each packet of a Write with RETH and OffsetETH; Read
	 * responses; ACK with a bitmap */
	{0xc0, 12},
	{0xc1, 12},
	{0xc2, 12},
	{0xc3, 16},
	{0xc4, 12},
	{0xc5, 16},
	{0xc6, 32},
	{0xc7, 32},
	{0xc8, 32},
	{0xc9, 36},
	{0xca, 32},
	{0xcb, 36},
	{0xcc, 28},
	{0xcd, 16},
	{0xce, 12},
	{0xcf, 16},
	{0xd0, 16},
	{0xd1, 16},
	{0xd6, 16},
	{0xd7, 16},
	/* un-ordered requests of SRC */
	{0xe0, 16},
	{0xe1, 16},
	{0xe2, 16},
	{0xe3, 20},
	{0xe4, 16},
	{0xe5, 20},
	{0xe6, 36},
	{0xe7, 36},
	{0xe8, 36},
	{0xe9, 40},
	{0xea, 36},
	{0xeb, 40},
	{0xec, 32},
	{0xf6, 20},
	{0xf7, 20},
};

static size_t size_of(unsigned opcode)
{
	for (size_t i = 0; i < COUNT(opcodes); i++)
		if (opcodes[i].opcode == opcode)
			return opcodes[i].size;
	return 0;
}

/* All 256 opcodes: those that exist have headers of the right size, the others none; and pack says the same. */
static void header_sizes(void **state)
{
	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		uint8_t out[RWK_WIRE_HEADER_MAX];
		struct rwk_wire w = {.opcode = opcode};

		assert_int_equal(rwk_wire_header_size(opcode), size_of(opcode));
		assert_int_equal(rwk_wire_pack(&w, 0, out), size_of(opcode));
	}
}

/* Not memcmp: a structure has gaps. */
static bool same(const struct rwk_wire *a, const struct rwk_wire *b)
{
	return a->opcode == b->opcode && a->solicited == b->solicited && a->migrated == b->migrated &&
	       a->ack_request == b->ack_request && a->fecn == b->fecn && a->becn == b->becn && a->pad == b->pad &&
	       a->pkey == b->pkey && a->qpn == b->qpn && a->psn == b->psn && a->reth.address == b->reth.address &&
	       a->reth.key == b->reth.key && a->reth.length == b->reth.length &&
	       a->atomic.address == b->atomic.address && a->atomic.key == b->atomic.key &&
	       a->atomic.swap_add == b->atomic.swap_add && a->atomic.compare == b->atomic.compare &&
	       a->aeth.syndrome == b->aeth.syndrome && a->aeth.msn == b->aeth.msn && a->atomic_ack == b->atomic_ack &&
	       a->imm == b->imm && a->invalidate == b->invalidate && a->srqn == b->srqn && a->offset == b->offset &&
	       a->deth.qkey == b->deth.qkey && a->deth.qpn == b->deth.qpn;
}

/* Headers byte by byte, written down from the standard: above all SRC and the notification, which no capture has. */
static void byte_by_byte(void **state)
{
	static const struct {
		const char *what;
		struct rwk_wire w;
		size_t payload, size;
		const char *bytes;
	} cases[] = {
		{"SRC Send Middle: XRCETH right behind BTH",
			{.opcode = 0xa1,
				.migrated = true,
				.pkey = 0xffff,
				.qpn = 0x123456,
				.psn = 0xfedcba,
				.srqn = 0xabcdef},
			1024, 16, "\xa1\x40\xff\xff\x00\x12\x34\x56\x00\xfe\xdc\xba\x00\xab\xcd\xef"},
		{"SRC Write Only with immediate: XRCETH, RETH, ImmDt; pad of 3",
			{.opcode = 0xab,
				.solicited = true,
				.ack_request = true,
				.pkey = 0x8001,
				.qpn = 1,
				.psn = 2,
				.srqn = 3,
				.reth = {0x0102030405060708, 0x090a0b0c, 0x0d0e0f10},
				.imm = 0x11121314},
			1, 36,
			"\xab\xb0\x80\x01\x00\x00\x00\x01\x80\x00\x00\x02\x00\x00\x00\x03"
			"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14"},
		{"SRC Compare and Swap: XRCETH, AtomicETH with the new value first",
			{.opcode = 0xb3,
				.pkey = 0xffff,
				.qpn = 9,
				.psn = 8,
				.srqn = 7,
				.atomic = {0x1011121314151617, 0x18191a1b, 0x1c1d1e1f20212223, 0x2425262728292a2b}},
			0, 44,
			"\xb3\x00\xff\xff\x00\x00\x00\x09\x00\x00\x00\x08\x00\x00\x00\x07"
			"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x20\x21\x22\x23"
			"\x24\x25\x26\x27\x28\x29\x2a\x2b"},
		{"SRC Send Last with Invalidate: XRCETH, IETH; pad of 1",
			{.opcode = 0xb6,
				.pkey = 0xffff,
				.qpn = 9,
				.psn = 8,
				.srqn = 0xffffff,
				.invalidate = 0xa1a2a3a4},
			3, 20, "\xb6\x10\xff\xff\x00\x00\x00\x09\x00\x00\x00\x08\x00\xff\xff\xff\xa1\xa2\xa3\xa4"},
		{"SRC Read Response Middle: nothing but BTH",
			{.opcode = 0xae, .pkey = 0xffff, .qpn = 9, .psn = 8, .srqn = 0}, 1024, 12,
			"\xae\x00\xff\xff\x00\x00\x00\x09\x00\x00\x00\x08"},
		{"SRC Atomic Acknowledge: AETH, AtomicAckETH, no XRCETH",
			{.opcode = 0xb2,
				.pkey = 0xffff,
				.qpn = 9,
				.psn = 8,
				.aeth = {0x1f, 0x010203},
				.atomic_ack = 0x3132333435363738},
			0, 24,
			"\xb2\x00\xff\xff\x00\x00\x00\x09\x00\x00\x00\x08\x1f\x01\x02\x03\x31\x32\x33\x34\x35\x36\x37"
			"\x38"},
		{"RC Send Last with Invalidate: IETH; pad of 2",
			{.opcode = 0x16, .pkey = 0xffff, .qpn = 9, .psn = 8, .invalidate = 0xa1a2a3a4}, 2, 16,
			"\x16\x20\xff\xff\x00\x00\x00\x09\x00\x00\x00\x08\xa1\xa2\xa3\xa4"},
		{"RC Acknowledge: a NAK of sequence, FECN and BECN",
			{.opcode = 0x11,
				.fecn = true,
				.becn = true,
				.pkey = 0xffff,
				.qpn = 9,
				.psn = 8,
				.aeth = {0x60, 5}},
			0, 16, "\x11\x00\xff\xff\xc0\x00\x00\x09\x00\x00\x00\x08\x60\x00\x00\x05"},
		{"UD Send Only with immediate: DETH, ImmDt",
			{.opcode = 0x65,
				.pkey = 0xffff,
				.qpn = 1,
				.psn = 8,
				.deth = {0x80010000, 0x654321},
				.imm = 0xfffefdfc},
			4, 24,
			"\x65\x00\xff\xff\x00\x00\x00\x01\x00\x00\x00\x08\x80\x01\x00\x00\x00\x65\x43\x21\xff\xfe\xfd"
			"\xfc"},
		{"un-ordered SRC Write Last with immediate: XRCETH, RETH, OffsetETH, ImmDt; pad of 3",
			{.opcode = 0xe9,
				.pkey = 0xffff,
				.qpn = 1,
				.psn = 2,
				.srqn = 3,
				.reth = {0x0102030405060708, 0x090a0b0c, 0x0d0e0f10},
				.offset = 0x15161718,
				.imm = 0x11121314},
			1, 40,
			"\xe9\x30\xff\xff\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"
			"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x15\x16\x17\x18"
			"\x11\x12\x13\x14"},
		{"un-ordered RC Send Middle: nothing but BTH", {.opcode = 0xc1, .pkey = 0xffff, .qpn = 9, .psn = 8},
			1024, 12, "\xc1\x00\xff\xff\x00\x00\x00\x09\x00\x00\x00\x08"},
		{"CNP: BTH with BECN, 16 bytes reserved", {.opcode = 0x81, .becn = true, .pkey = 0xffff, .qpn = 9}, 0,
			28, "\x81\x00\xff\xff\x40\x00\x00\x09\x00\x00\x00\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t packet[RWK_WIRE_HEADER_MAX + 1024 + 4] = {0};
		size_t pad = -cases[i].payload & 3, payload_len;
		struct rwk_wire again, wanted = cases[i].w;
		const uint8_t *payload;

		assert_int_equal(rwk_wire_pack(&cases[i].w, cases[i].payload, packet), cases[i].size);
		if (memcmp(packet, cases[i].bytes, cases[i].size))
			fail_msg("%s: other bytes", cases[i].what);
		assert_int_equal(rwk_wire_unpack(&again, packet, cases[i].size + cases[i].payload + pad + 4, &payload,
					 &payload_len),
			0);
		assert_ptr_equal(payload, packet + cases[i].size);
		assert_int_equal(payload_len, cases[i].payload);
		wanted.pad = pad;
		if (!same(&again, &wanted))
			fail_msg("%s: read differently", cases[i].what);
	}
}

static uint64_t random64(void)
{
	static uint64_t r = 88172645463325252u;

	r ^= r << 13;
	r ^= r >> 7;
	return r ^= r << 17;
}

/*
 * Any bytes that are a packet come out of unpack and pack again as they were, but for reserved bits, which are sent as
 * zero.
 */
static void round_trips(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 200000; n++) {
		uint8_t packet[256], out[RWK_WIRE_HEADER_MAX], again[RWK_WIRE_HEADER_MAX];
		uint8_t opcode = opcodes[random64() % COUNT(opcodes)].opcode;
		size_t size = size_of(opcode), payload_len, wanted = random64() % 100, pad = -wanted & 3;
		struct rwk_wire w, w2;
		const uint8_t *payload;

		for (size_t i = 0; i < sizeof(packet); i += 8) {
			uint64_t r = random64();

			memcpy(packet + i, &r, 8);
		}
		packet[0] = opcode;
		packet[1] = (packet[1] & 0xc0) | pad << 4;
		assert_int_equal(rwk_wire_unpack(&w, packet, size + wanted + pad + 4, &payload, &payload_len), 0);
		assert_int_equal(payload_len, wanted);
		assert_int_equal(rwk_wire_pack(&w, payload_len, out), size);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(out[i] & ~packet[i], 0);
		assert_int_equal(out[0], packet[0]);
		assert_int_equal(out[1], packet[1]);
		assert_memory_equal(out + 5, packet + 5, 3);
		assert_memory_equal(out + 9, packet + 9, 3);
		memcpy(packet, out, size);
		assert_int_equal(rwk_wire_unpack(&w2, packet, size + wanted + pad + 4, &payload, &payload_len), 0);
		assert_true(same(&w, &w2));
		assert_int_equal(rwk_wire_pack(&w2, payload_len, again), size);
		assert_memory_equal(out, again, size);
	}
}

/* What is not set in struct rwk_wire cannot spoil its neighbours: fields of 24 bits are cut, not spilled. */
static void fields_stay_apart(void **state)
{
	struct rwk_wire w = {.opcode = RWK_WIRE_SRC | RWK_WIRE_SEND_ONLY,
				.qpn = 0xff000001,
				.psn = 0xff000002,
				.srqn = 0xff000003},
			ack = {.opcode = RWK_WIRE_ACK, .aeth = {0x1f, 0xff000004}},
			ud = {.opcode = RWK_WIRE_UD | RWK_WIRE_SEND_ONLY, .deth = {0, 0xff000005}};
	uint8_t out[RWK_WIRE_HEADER_MAX];

	(void)state;
	assert_int_equal(rwk_wire_pack(&w, 0, out), 16);
	assert_memory_equal(out, "\xa4\0\0\0\0\0\0\1\0\0\0\2\0\0\0\3", 16);
	assert_int_equal(rwk_wire_pack(&ack, 0, out), 16);
	assert_memory_equal(out + 12, "\x1f\0\0\4", 4);
	assert_int_equal(rwk_wire_pack(&ud, 0, out), 20);
	assert_memory_equal(out + 12, "\0\0\0\0\0\0\0\5", 8);
}

/* unpack of a copy that ends where the packet ends, so that a sanitizer sees the first byte behind it. */
static int unpack(const uint8_t *bytes, size_t len)
{
	static const uint8_t nothing;
	const uint8_t *payload = &nothing;
	struct rwk_wire w, before;
	uint8_t *copy = malloc(len ? len : 1);
	size_t payload_len = 4711;
	int rc;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	memset(&w, 0x5a, sizeof(w));
	memcpy(&before, &w, sizeof(w));
	rc = rwk_wire_unpack(&w, copy, len, &payload, &payload_len);
	if (rc) {
		assert_memory_equal(&w, &before, sizeof(w));
		assert_ptr_equal(payload, &nothing);
		assert_int_equal(payload_len, 4711);
	}
	free(copy);
	return rc;
}

/* Cut off at every length, every packet is refused, and nothing is set; so is one that is not of whole words. */
static void bad_truncated(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(opcodes); i++) {
		uint8_t packet[RWK_WIRE_HEADER_MAX + 8] = {0};
		struct rwk_wire w = {.opcode = opcodes[i].opcode};
		size_t size = rwk_wire_pack(&w, 0, packet);

		for (size_t len = 0; len < size + RWK_WIRE_ICRC; len++)
			assert_int_equal(unpack(packet, len), -EBADMSG);
		assert_int_equal(unpack(packet, size + 4), 0);
		for (size_t len = size + 5; len < size + 8; len++)
			assert_int_equal(unpack(packet, len), -EBADMSG);
		assert_int_equal(unpack(packet, size + 8), 0);
	}
}

/* S3-7 among them. Everything else that is wrong with a packet, one by one. */
static void bad_fields(void **state)
{
	static const struct {
		const char *what;
		uint8_t opcode, flags;
		size_t payload_and_pad;
		int rc;
	} cases[] = {
		{"version 1", 0x04, 0x01, 4, -EBADMSG},
		{"version 15", 0x04, 0x0f, 4, -EBADMSG},
		{"version 8", 0x04, 0x08, 4, -EBADMSG},
		{"pad 1 of nothing", 0x04, 0x10, 0, -EBADMSG},
		{"pad 3 of nothing", 0x11, 0x30, 0, -EBADMSG},
		{"pad 3 of 4", 0x04, 0x30, 4, 0},
		{"8704 bytes", 0x04, 0x00, 8704, 0},
		{"8704 bytes and 4", 0x04, 0x00, 8708, -EBADMSG},
		{"8705 bytes and a pad of 3", 0x04, 0x30, 8708, -EBADMSG},
		{"RC 0x15", 0x15, 0x00, 4, -EOPNOTSUPP},
		{"RC Flush", 0x1c, 0x00, 4, -EOPNOTSUPP},
		{"RC 0x1f", 0x1f, 0x00, 4, -EOPNOTSUPP},
		{"UC Read Request", 0x2c, 0x00, 16, -EOPNOTSUPP},
		{"UC Acknowledge", 0x31, 0x00, 4, -EOPNOTSUPP},
		{"RD Send Only", 0x44, 0x00, 12, -EOPNOTSUPP},
		{"UD Send First", 0x60, 0x00, 8, -EOPNOTSUPP},
		{"UD Write Only", 0x6a, 0x00, 28, -EOPNOTSUPP},
		{"0x80", 0x80, 0x00, 16, -EOPNOTSUPP},
		{"CNP without the bytes reserved", 0x81, 0x00, 12, -EBADMSG},
		{"0x91", 0x91, 0x00, 16, -EOPNOTSUPP},
		{"SRC 0xb5", 0xb5, 0x00, 16, -EOPNOTSUPP},
		{"un-ordered Compare and Swap", 0xd3, 0x00, 40, -EOPNOTSUPP},
		{"un-ordered SRC Acknowledge", 0xf1, 0x00, 16, -EOPNOTSUPP},
		{"another", 0xff, 0x00, 16, -EOPNOTSUPP},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t packet[9000] = {cases[i].opcode, cases[i].flags};
		size_t size = cases[i].opcode == 0x81 ? 12 : size_of(cases[i].opcode);
		int rc = unpack(packet, (size ? size : 12) + cases[i].payload_and_pad + 4);

		if (rc != cases[i].rc)
			fail_msg("%s: %d, not %d", cases[i].what, rc, cases[i].rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_sizes),
		cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(round_trips),
		cmocka_unit_test(fields_stay_apart),
		cmocka_unit_test(bad_truncated),
		cmocka_unit_test(bad_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

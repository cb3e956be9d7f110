/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages cut into packets, and PSNs; the rules of chapter 3 of the acceptance list by their ids.
 *
 * Links: none: bytes alone.
 */
#include "rwk_test.h"

#include "wire/psn.h"
#include "wire/segment.h"
#include "wire/wire.h"

static const uint32_t pmtus[] = {256, 512, 1024, 2048, 4096};
static const uint8_t services[] = {RWK_WIRE_RC, RWK_WIRE_UC, RWK_WIRE_SRC};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What a packet of each kind is called, by where it stands. */
static const struct kind {
	enum rwk_segment_kind kind;
	uint8_t first, middle, last, only;
} kinds[] = {
	{RWK_SEGMENT_SEND, 0x00, 0x01, 0x02, 0x04},
	{RWK_SEGMENT_SEND_IMM, 0x00, 0x01, 0x03, 0x05},
	{RWK_SEGMENT_SEND_INV, 0x00, 0x01, 0x16, 0x17},
	{RWK_SEGMENT_WRITE, 0x06, 0x07, 0x08, 0x0a},
	{RWK_SEGMENT_WRITE_IMM, 0x06, 0x07, 0x09, 0x0b},
	{RWK_SEGMENT_READ, 0x0d, 0x0e, 0x0f, 0x10},
};

/*
 * S3-7. The largest PMTU for an interface: of each the narrowest one that has it, and one byte less. Never
 * above 4 KB.
 */
static void s3_7_path_mtu(void **state)
{
	static const struct {
		size_t interface;
		uint32_t pmtu;
	} cases[] = {{0, 0}, {68, 0}, {351, 0}, {352, 256}, {576, 256}, {607, 256}, {608, 512}, {1119, 512},
		{1120, 1024}, {1280, 1024}, {1500, 1024}, {2143, 1024}, {2144, 2048}, {4191, 2048}, {4192, 4096},
		{9000, 4096}, {65536, 4096}, {SIZE_MAX, 4096}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(rwk_segment_pmtu(cases[i].interface), cases[i].pmtu);
}

/* With the PMTU of an interface, no packet of any opcode is longer than what the interface takes, over IPv6 too. */
static void s3_7_every_packet_fits(void **state)
{
	(void)state;
	for (size_t interface = 352; interface < 9000; interface++) {
		uint32_t pmtu = rwk_segment_pmtu(interface);

		for (unsigned opcode = 0; opcode < 256; opcode++) {
			size_t size = rwk_wire_header_size(opcode);

			if (size && rwk_segment_fits(opcode, pmtu, pmtu))
				assert_true(40 + 8 + size + pmtu + RWK_WIRE_ICRC <= interface);
		}
	}
}

/* The packets of one message, against what the rule says in words. */
static void look(uint8_t service, const struct kind *k, uint32_t length, uint32_t pmtu)
{
	uint32_t count = rwk_segment_count(length, pmtu), at = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct rwk_segment s = rwk_segment_at(service, k->kind, length, pmtu, i);

		assert_int_equal(s.offset, at);
		if (count == 1) {
			assert_int_equal(s.opcode, service | k->only);
			assert_true(s.length <= pmtu);
		} else if (i == 0) {
			assert_int_equal(s.opcode, service | k->first);
			assert_int_equal(s.length, pmtu);
		} else if (i < count - 1) {
			assert_int_equal(s.opcode, service | k->middle);
			assert_int_equal(s.length, pmtu);
		} else {
			assert_int_equal(s.opcode, service | k->last);
			assert_true(s.length >= 1 && s.length <= pmtu);
		}
		if (service != RWK_WIRE_UC || (k->kind != RWK_SEGMENT_READ && k->kind != RWK_SEGMENT_SEND_INV))
			assert_true(rwk_segment_fits(s.opcode, s.length, pmtu));
		at += s.length;
	}
	assert_int_equal(at, length);
}

/* First and Middle carry one PMTU, Last 1 to PMTU, Only 0 to PMTU; together they are the message. */
static void s3_8_payload_of_each_packet(void **state)
{
	(void)state;
	for (size_t s = 0; s < COUNT(services); s++)
		for (size_t k = 0; k < COUNT(kinds); k++)
			for (size_t p = 0; p < COUNT(pmtus); p++)
				for (uint32_t length = 0; length < 5 * pmtus[p]; length += 1 + length / 16)
					look(services[s], &kinds[k], length, pmtus[p]);
}

/* A packet that breaks the rule is known for it. */
static void s3_8_what_does_not_fit(void **state)
{
	static const struct {
		uint8_t operation;
		uint32_t least, most;
	} cases[] = {{0x00, 1024, 1024}, {0x01, 1024, 1024}, {0x02, 1, 1024}, {0x03, 1, 1024}, {0x04, 0, 1024},
		{0x05, 0, 1024}, {0x06, 1024, 1024}, {0x07, 1024, 1024}, {0x08, 1, 1024}, {0x09, 1, 1024},
		{0x0a, 0, 1024}, {0x0b, 0, 1024}, {0x0c, 0, 0}, {0x0d, 1024, 1024}, {0x0e, 1024, 1024}, {0x0f, 1, 1024},
		{0x10, 0, 1024}, {0x11, 0, 0}, {0x12, 0, 0}, {0x13, 0, 0}, {0x14, 0, 0}, {0x16, 1, 1024},
		{0x17, 0, 1024}, {0x64, 0, 1024}, {0x65, 0, 1024}, {0x81, 0, 0}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (uint32_t payload = 0; payload <= 1100; payload++) {
			bool fits = payload >= cases[i].least && payload <= cases[i].most;

			assert_int_equal(rwk_segment_fits(cases[i].operation, payload, 1024), fits);
			if (cases[i].operation < 0x20)
				assert_int_equal(
					rwk_segment_fits(RWK_WIRE_SRC | cases[i].operation, payload, 1024), fits);
			if (cases[i].operation <= RWK_WIRE_READ_REQUEST)
				assert_int_equal(
					rwk_segment_fits(RWK_WIRE_OWN | cases[i].operation, payload, 1024), fits);
		}
	assert_false(rwk_segment_fits(RWK_WIRE_UC | RWK_WIRE_READ_ONLY, 0, 1024));
	assert_false(rwk_segment_fits(RWK_WIRE_RC | 0x15, 0, 1024));
	assert_false(rwk_segment_fits(RWK_WIRE_OWN | RWK_WIRE_COMPARE_SWAP, 0, 1024));
}

/* S3-9. The bounds, by hand: 0, 1, PMTU, PMTU + 1, 2 PMTU, 2 PMTU + 1. */
static void s3_9_bounds(void **state)
{
	(void)state;
	for (size_t p = 0; p < COUNT(pmtus); p++) {
		uint32_t pmtu = pmtus[p];
		const struct {
			uint32_t length, packets, in_last;
			uint8_t last;
		} cases[] = {{0, 1, 0, RWK_WIRE_SEND_ONLY}, {1, 1, 1, RWK_WIRE_SEND_ONLY},
			{pmtu, 1, pmtu, RWK_WIRE_SEND_ONLY}, {pmtu + 1, 2, 1, RWK_WIRE_SEND_LAST},
			{2 * pmtu, 2, pmtu, RWK_WIRE_SEND_LAST}, {2 * pmtu + 1, 3, 1, RWK_WIRE_SEND_LAST}};

		for (size_t i = 0; i < COUNT(cases); i++) {
			uint32_t length = cases[i].length, packets = cases[i].packets;
			struct rwk_segment last =
				rwk_segment_at(RWK_WIRE_RC, RWK_SEGMENT_SEND, length, pmtu, packets - 1);

			assert_int_equal(rwk_segment_count(length, pmtu), packets);
			assert_int_equal(last.opcode, cases[i].last);
			assert_int_equal(last.length, cases[i].in_last);
			for (size_t k = 0; k < COUNT(kinds); k++)
				look(RWK_WIRE_RC, &kinds[k], length, pmtu);
		}
	}
}

/* The longest message, 2 GB, of the smallest packets: nothing overflows, and it has half of all PSNs. */
static void longest_message(void **state)
{
	uint32_t count = rwk_segment_count(RWK_WIRE_LENGTH_MAX, 256);
	struct rwk_segment s;

	(void)state;
	assert_int_equal(count, 1u << 23);
	s = rwk_segment_at(RWK_WIRE_RC, RWK_SEGMENT_WRITE, RWK_WIRE_LENGTH_MAX, 256, count - 1);
	assert_int_equal(s.opcode, RWK_WIRE_WRITE_LAST);
	assert_int_equal(s.offset, RWK_WIRE_LENGTH_MAX - 256);
	assert_int_equal(s.length, 256);
	s = rwk_segment_at(RWK_WIRE_RC, RWK_SEGMENT_WRITE, RWK_WIRE_LENGTH_MAX - 1, 256, count - 1);
	assert_int_equal(s.length, 255);
}

/* PSNs are numbers of 24 bits that wrap; what is less than half of them ahead is ahead, the rest is behind. */
static void psn_wraps(void **state)
{
	static const uint32_t starts[] = {0, 1, 0x7fffff, 0x800000, 0xfffffe, 0xffffff};
	static const int32_t steps[] = {0, 1, 2, 255, 0x7ffffe, 0x7fffff, -1, -2, -0x7fffff, -0x800000};

	(void)state;
	for (size_t i = 0; i < COUNT(starts); i++)
		for (size_t k = 0; k < COUNT(steps); k++) {
			uint32_t there = rwk_psn_add(starts[i], (uint32_t)steps[k]);

			assert_true(there <= RWK_PSN_MASK);
			assert_int_equal(rwk_psn_diff(there, starts[i]), steps[k]);
			assert_int_equal(rwk_psn_add(there, -(uint32_t)steps[k]), starts[i]);
		}
	assert_int_equal(rwk_psn_add(0xffffff, 1), 0);
	assert_int_equal(rwk_psn_add(0, 0xffffff), 0xffffff);
	assert_int_equal(rwk_psn_diff(0, 0xffffff), 1);
	assert_int_equal(rwk_psn_diff(0xffffff, 0), -1);
	assert_int_equal(rwk_psn_diff(0x800000, 0), -0x800000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s3_7_path_mtu),
		cmocka_unit_test(s3_7_every_packet_fits),
		cmocka_unit_test(s3_8_payload_of_each_packet),
		cmocka_unit_test(s3_8_what_does_not_fit),
		cmocka_unit_test(s3_9_bounds),
		cmocka_unit_test(longest_message),
		cmocka_unit_test(psn_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets captured between two kernels' soft RoCE (pcap/README.md): what they mean here is what they are there.
 * With arguments: of these files too.
 */
#include "rwk_test.h"

#include <sys/uio.h>

#include "pcap.h"
#include "wire/icrc.h"
#include "wire/segment.h"
#include "wire/wire.h"

static char **more_files;

static uint32_t little32(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Calls `look` for each packet of each capture; returns how many there are. */
static unsigned each(void (*look)(const struct pcap_packet *p))
{
	struct pcap_packet p;
	struct pcap_file f;
	unsigned count = 0;

	for (int i = 0; pcap_names[i]; i++) {
		for (pcap_open(&f, pcap_names[i]); pcap_next(&f, &p); count++)
			look(&p);
		pcap_close(&f);
	}
	for (char **name = more_files; *name; name++) {
		for (pcap_open(&f, *name); pcap_next(&f, &p); count++)
			look(&p);
		pcap_close(&f);
	}
	return count;
}

static unsigned seen[256], seen_v6, seen_4096, seen_wrap;

static void same_again(const struct pcap_packet *p)
{
	uint8_t out[RWK_WIRE_HEADER_MAX];
	const uint8_t *payload;
	size_t payload_len, size;
	struct rwk_wire w;

	assert_int_equal(rwk_wire_unpack(&w, p->bytes, p->len, &payload, &payload_len), 0);
	seen[w.opcode]++;
	seen_v6 += p->is_v6;
	seen_4096 += payload_len == 4096;
	seen_wrap += w.psn == 0;
	size = rwk_wire_pack(&w, payload_len, out);
	assert_int_equal(size, rwk_wire_header_size(w.opcode));
	assert_int_equal(size, payload - p->bytes);
	assert_int_equal(size + payload_len + w.pad + RWK_WIRE_ICRC, p->len);
	assert_memory_equal(out, p->bytes, size);
	assert_int_equal(w.pkey, RWK_WIRE_PKEY);
}

/*
 * Each packet, taken apart and put together again, is the same bytes; every opcode that was to be in there is, and
 * IPv6, the longest packets and PSNs that wrap.
 */
static void decoded_and_encoded(void **state)
{
	static const uint8_t wanted[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 23,
		32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 100, 101};

	(void)state;
	assert_true(each(same_again) >= 260 + 260 + 73);
	for (size_t i = 0; i < sizeof(wanted); i++)
		assert_true(seen[wanted[i]] > 0);
	assert_true(seen_v6 > 0 && seen_4096 > 0 && seen_wrap > 0);
}

static void icrc_is_right(const struct pcap_packet *p)
{
	uint32_t begun = rwk_icrc_begin(RWK_CRC_32, p->pseudo, p->pseudo_len), expected = little32(p->bytes + p->len - 4);
	const uint8_t *payload;
	size_t payload_len;
	struct rwk_wire w;

	assert_int_equal(rwk_icrc_bytes(RWK_CRC_32, begun, p->bytes, p->len - 4), expected);
	assert_int_equal(rwk_wire_unpack(&w, p->bytes, p->len, &payload, &payload_len), 0);
	for (size_t cut = 0; cut <= payload_len; cut += payload_len / 3 + 1) {
		struct iovec iov[] = {{(void *)payload, cut}, {(void *)(payload + cut), payload_len - cut}};

		assert_int_equal(rwk_icrc_packet(RWK_CRC_32, begun, p->bytes, payload - p->bytes, iov, 2, w.pad), expected);
	}
}

static void carries_a_pmtu(const struct pcap_packet *p)
{
	const uint8_t *payload;
	size_t payload_len;
	struct rwk_wire w;
	bool fits = false;

	assert_int_equal(rwk_wire_unpack(&w, p->bytes, p->len, &payload, &payload_len), 0);
	for (uint32_t pmtu = 256; pmtu <= 4096; pmtu *= 2)
		fits |= rwk_segment_fits(w.opcode, payload_len, pmtu);
	assert_true(fits);
}

/* What the kernels put into First, Middle, Last and Only packets is what the rule says. */
static void s3_8_payloads(void **state)
{
	(void)state;
	assert_true(each(carries_a_pmtu) > 0);
}

/* The ICRC that we compute is the one that came, whether the packet lies in one piece or in several. */
static void icrc(void **state)
{
	(void)state;
	assert_true(each(icrc_is_right) > 0);
}

static void id_is_found(const struct pcap_packet *p)
{
	uint32_t received = little32(p->bytes + p->len - 4), computed;
	struct pcap_packet without = *p;
	uint16_t id = 0;

	if (p->is_v6)
		return;
	without.pseudo[8 + 4] = without.pseudo[8 + 5] = 0;
	computed = rwk_icrc_bytes(RWK_CRC_32, rwk_icrc_begin(RWK_CRC_32, without.pseudo, p->pseudo_len), p->bytes, p->len - 4);
	assert_int_equal(rwk_icrc_solve_id(computed, received, 14 + 8 + p->len - 4, &id), 0);
	assert_int_equal(id, p->id);
}

/* The kernel's IPv4 identifications, which a datagram socket does not show, come out of the ICRC. */
static void identification(void **state)
{
	(void)state;
	assert_true(each(id_is_found) > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoded_and_encoded),
		cmocka_unit_test(s3_8_payloads),
		cmocka_unit_test(icrc),
		cmocka_unit_test(identification),
	};

	(void)argc;
	more_files = argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a packet. What must hold whatever they are: nothing outside of them is read (the sanitizers see to
 * that), what unpack takes, pack gives back but for reserved bits, and all ways to the ICRC lead to the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "wire/crc32.h"
#include "wire/icrc.h"
#include "wire/segment.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int holds)
{
	if (!holds)
		abort();
}

/* The bits of a header's byte that mean nothing: unpack ignores them, pack makes them zero. */
static uint8_t reserved(uint8_t opcode, size_t at)
{
	if (at == 4)
		return 0x3f;
	if (at == 8)
		return 0x7f;
	switch (RWK_WIRE_CLASS(opcode)) {
	case RWK_WIRE_SRC: /* XRCETH, where RC has none */
		return at == 12 && rwk_wire_header_size(opcode) != rwk_wire_header_size(opcode & 0x1f) ? 0xff : 0;
	case RWK_WIRE_OWN_SRC: /* requests alone, each with XRCETH */
		return at == 12 ? 0xff : 0;
	case RWK_WIRE_UD:
		return at == 16 ? 0xff : 0;
	case RWK_WIRE_CNP:
		return at >= 12 ? 0xff : 0;
	default:
		return 0;
	}
}

/* The ICRC of the whole and of its pieces; and that one with another identification is found out. */
static void look_at_icrc(
	const struct rwk_wire *w, const uint8_t *bytes, size_t len, const uint8_t *payload, size_t payload_len)
{
	uint32_t whole = rwk_icrc_bytes(RWK_CRC_32, 0, bytes, len - RWK_WIRE_ICRC);
	struct iovec iov[] = {{(void *)payload, payload_len / 2},
		{(void *)(payload + payload_len / 2), payload_len - payload_len / 2}};
	uint8_t id[] = {bytes[6], bytes[7]};
	size_t covered = len - RWK_WIRE_ICRC;
	uint32_t with_id = rwk_crc32(RWK_CRC_32, rwk_crc32(RWK_CRC_32, 0, id, 2), bytes, covered);
	uint32_t without = rwk_crc32(RWK_CRC_32, rwk_crc32(RWK_CRC_32, 0, (const uint8_t *)"\0", 2), bytes, covered);
	uint16_t found = 0;

	for (size_t i = 0; i < w->pad; i++)
		if (payload[payload_len + i])
			return; /* not what pack would have made */
	must(rwk_icrc_packet(RWK_CRC_32, 0, bytes, payload - bytes, iov, 2, w->pad) == whole);
	must(rwk_icrc_solve_id(without, with_id, covered, &found) == 0);
	must(found == (id[0] << 8 | id[1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t out[RWK_WIRE_HEADER_MAX];
	const uint8_t *payload;
	size_t payload_len, size;
	struct rwk_wire w;

	must(rwk_crc32(RWK_CRC_32, 0, bytes, len) == rwk_crc32_portable(RWK_CRC_32, 0, bytes, len));
	if (rwk_wire_unpack(&w, bytes, len, &payload, &payload_len))
		return 0;
	size = payload - bytes;
	must(size == rwk_wire_header_size(w.opcode) && size <= sizeof(out));
	must(payload_len <= RWK_WIRE_OWN_MAX && size + payload_len + w.pad + RWK_WIRE_ICRC == len);
	must(rwk_wire_pack(&w, payload_len, out) == size);
	for (size_t i = 0; i < size; i++)
		must(out[i] == (bytes[i] & ~reserved(w.opcode, i)));
	rwk_segment_fits(w.opcode, payload_len, 1024);
	look_at_icrc(&w, bytes, len, payload, payload_len);
	return 0;
}

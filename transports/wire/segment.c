/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages cut into packets: which opcode stands where, and who carries how much. */
#include "wire/segment.h"

#include "wire/wire.h"

enum place { NOWHERE, FIRST, MIDDLE, LAST, ONLY }; /* NOWHERE: what is never cut */

enum {
	PMTU_MIN = 256,
	AROUND = 40 + 8 + 12 + 4 + 28 + RWK_WIRE_ICRC, /* IPv6, UDP, BTH, XRCETH, AtomicETH, ICRC */
};

static const uint8_t operations[][ONLY + 1] = {
	[RWK_SEGMENT_SEND] = {0, RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE, RWK_WIRE_SEND_LAST, RWK_WIRE_SEND_ONLY},
	[RWK_SEGMENT_SEND_IMM] = {0, RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE, RWK_WIRE_SEND_LAST_IMM,
		RWK_WIRE_SEND_ONLY_IMM},
	[RWK_SEGMENT_SEND_INV] = {0, RWK_WIRE_SEND_FIRST, RWK_WIRE_SEND_MIDDLE, RWK_WIRE_SEND_LAST_INV,
		RWK_WIRE_SEND_ONLY_INV},
	[RWK_SEGMENT_WRITE] = {0, RWK_WIRE_WRITE_FIRST, RWK_WIRE_WRITE_MIDDLE, RWK_WIRE_WRITE_LAST,
		RWK_WIRE_WRITE_ONLY},
	[RWK_SEGMENT_WRITE_IMM] = {0, RWK_WIRE_WRITE_FIRST, RWK_WIRE_WRITE_MIDDLE, RWK_WIRE_WRITE_LAST_IMM,
		RWK_WIRE_WRITE_ONLY_IMM},
	[RWK_SEGMENT_READ] = {0, RWK_WIRE_READ_FIRST, RWK_WIRE_READ_MIDDLE, RWK_WIRE_READ_LAST, RWK_WIRE_READ_ONLY},
};

/* The same, the other way round. */
static const uint8_t place_of[32] = {
	[RWK_WIRE_SEND_FIRST] = FIRST,
	[RWK_WIRE_SEND_MIDDLE] = MIDDLE,
	[RWK_WIRE_SEND_LAST] = LAST,
	[RWK_WIRE_SEND_LAST_IMM] = LAST,
	[RWK_WIRE_SEND_LAST_INV] = LAST,
	[RWK_WIRE_SEND_ONLY] = ONLY,
	[RWK_WIRE_SEND_ONLY_IMM] = ONLY,
	[RWK_WIRE_SEND_ONLY_INV] = ONLY,
	[RWK_WIRE_WRITE_FIRST] = FIRST,
	[RWK_WIRE_WRITE_MIDDLE] = MIDDLE,
	[RWK_WIRE_WRITE_LAST] = LAST,
	[RWK_WIRE_WRITE_LAST_IMM] = LAST,
	[RWK_WIRE_WRITE_ONLY] = ONLY,
	[RWK_WIRE_WRITE_ONLY_IMM] = ONLY,
	[RWK_WIRE_READ_FIRST] = FIRST,
	[RWK_WIRE_READ_MIDDLE] = MIDDLE,
	[RWK_WIRE_READ_LAST] = LAST,
	[RWK_WIRE_READ_ONLY] = ONLY,
};

uint32_t rwk_segment_count(uint32_t length, uint32_t pmtu)
{
	return length ? (length - 1) / pmtu + 1 : 1;
}

struct rwk_segment rwk_segment_at(
	uint8_t service, enum rwk_segment_kind kind, uint32_t length, uint32_t pmtu, uint32_t i)
{
	uint32_t offset = i * pmtu, left = length - offset;
	bool first = i == 0, last = left <= pmtu;
	enum place place = first ? last ? ONLY : FIRST : last ? LAST : MIDDLE;

	return (struct rwk_segment){
		.opcode = service | operations[kind][place],
		.offset = offset,
		.length = last ? left : pmtu,
	};
}

bool rwk_segment_fits(uint8_t opcode, size_t payload, uint32_t pmtu)
{
	if (!rwk_wire_header_size(opcode))
		return false;
	switch (RWK_WIRE_CLASS(opcode) == RWK_WIRE_CNP ? NOWHERE : place_of[RWK_WIRE_OPERATION(opcode)]) {
	case FIRST:
	case MIDDLE:
		return payload == pmtu;
	case LAST:
		return payload >= 1 && payload <= pmtu;
	case ONLY:
		return payload <= pmtu;
	default:
		return payload == 0;
	}
}

uint32_t rwk_segment_pmtu(size_t interface_mtu)
{
	for (uint32_t pmtu = RWK_WIRE_PMTU_MAX; pmtu >= PMTU_MIN; pmtu /= 2)
		if (interface_mtu >= pmtu + AROUND)
			return pmtu;
	return 0;
}

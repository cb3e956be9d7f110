/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segmentation: a message longer than the path's MTU (PMTU: 256, 512, 1024, 2048 or 4096 bytes of payload) is cut into
 * First, Middle and Last packets; a shorter one is an Only packet. First and Middle carry exactly one PMTU, Last 1 byte
 * to one PMTU, Only nothing to one PMTU. All functions are pure.
 */
#ifndef RWK_WIRE_SEGMENT_H
#define RWK_WIRE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What is cut: a Send or an RDMA Write, as it is, with immediate data or a key to invalidate; the answer to a Read. */
enum rwk_segment_kind {
	RWK_SEGMENT_SEND,
	RWK_SEGMENT_SEND_IMM,
	RWK_SEGMENT_SEND_INV,
	RWK_SEGMENT_WRITE,
	RWK_SEGMENT_WRITE_IMM,
	RWK_SEGMENT_READ,
};

/** One packet of a message: its opcode, and its payload as a range of the message. */
struct rwk_segment {
	uint8_t opcode;
	uint32_t offset, length; /* bytes */
};

/** Packets of a message, and PSNs: 1 for an empty one. `length` is at most RWK_WIRE_LENGTH_MAX. */
uint32_t rwk_segment_count(uint32_t length, uint32_t pmtu);

/** Packet `i` (below rwk_segment_count) of a message; `service` is RWK_WIRE_RC, RWK_WIRE_UC or RWK_WIRE_SRC. */
struct rwk_segment rwk_segment_at(
	uint8_t service, enum rwk_segment_kind kind, uint32_t length, uint32_t pmtu, uint32_t i);

/**
 * May a packet of that opcode carry `payload` bytes? By the rule above for Sends, Writes and answers to Reads; all
 * others carry none, but for a datagram (UD), whose bound is the PMTU. False for an opcode that does not exist.
 */
bool rwk_segment_fits(uint8_t opcode, size_t payload, uint32_t pmtu);

/**
 * The largest PMTU of which any packet fits an interface with that MTU: IPv6 (40 bytes), UDP (8), BTH (12), XRCETH (4),
 * the longest header after it (28) and the ICRC (4) are taken off, as by Linux' connection manager (iboe_get_mtu), so
 * that both ends come to the same. 1500 gives 1024. 0: the interface is too narrow for any (below 352).
 */
uint32_t rwk_segment_pmtu(size_t interface_mtu);

#endif

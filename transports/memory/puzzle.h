/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet that comes in pieces (../packet/HANDSHAKE.md), in any order and perhaps more than once. Fixed-size and
 * without a pointer, so that it can lie in a segment where several processes put in what each has received; under a
 * lock of theirs. What somebody gone mad writes there makes a wrong packet at most: its place in memory follows from
 * the piece alone.
 */
#ifndef RWK_MEMORY_PUZZLE_H
#define RWK_MEMORY_PUZZLE_H

#include "machine.h"

/** Bytes of a packet at most, from BTH to ICRC. */
#define RWK_PUZZLE_MAX    (RWK_WIRE_HEADER_MAX + RWK_WIRE_OWN_MAX + 3 + RWK_WIRE_ICRC)
#define RWK_PUZZLE_PIECES 64u /* of a packet, at most */

/** A piece: `len` bytes at `at` of the packet with that serial number, which has `of`; all but the last have `unit`. */
struct rwk_piece {
	uint32_t serial;
	uint16_t at, of, unit;
	uint16_t len;
	const void *bytes;
};

/** All zeros: it has nothing. */
struct rwk_puzzle {
	struct rwk_link_address from;
	uint64_t have; /* a bit for each piece; 0: this one is free */
	uint32_t serial;
	uint16_t of, unit;
	uint8_t bytes[RWK_PUZZLE_MAX];
};

/** Can that be a piece of a packet? */
bool rwk_piece_is_sound(const struct rwk_piece *piece);
/** Has it pieces of the same packet of that sender? */
bool rwk_puzzle_is_of(const struct rwk_puzzle *p, const struct rwk_link_address *from, const struct rwk_piece *piece);
/**
 * Puts a sound piece in; if it has pieces of another packet, these are dropped. The packet's length, if that was the
 * last piece that was missing: it lies in p->bytes until the next one comes; else 0.
 */
size_t rwk_puzzle_put(struct rwk_puzzle *p, const struct rwk_link_address *from, const struct rwk_piece *piece);

#endif

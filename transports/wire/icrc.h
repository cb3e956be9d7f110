/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC: over what no router may change. It begins with the masked headers below BTH, which only the link
 * knows (rwk_link_ops.pseudo); FORMAT.md says what is masked, and which packets have which CRC. Pure, and safe from any
 * thread.
 */
#ifndef RWK_WIRE_ICRC_H
#define RWK_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/crc32.h"

/** How the CRC begins for packets of one length between two ends: continue from this with rwk_icrc_packet. */
uint32_t rwk_icrc_begin(enum rwk_crc kind, const uint8_t *pseudo, size_t len);

/**
 * The ICRC of a packet: `header` of `header_len` bytes (12 or more) begins with BTH, of which byte 4 is taken as 0xff;
 * then the payload as it lies in iov, and `pad` (0 to 3) zero bytes. What it returns is stored least significant byte
 * first.
 */
uint32_t rwk_icrc_packet(enum rwk_crc kind, uint32_t begun, const uint8_t *header, size_t header_len,
	const struct iovec *iov, int count, unsigned pad);

/** The same of `len` bytes (8 or more) in one piece, from BTH to the last byte before the ICRC. */
uint32_t rwk_icrc_bytes(enum rwk_crc kind, uint32_t begun, const uint8_t *bytes, size_t len);

/**
 * An IPv4 packet of another maker, whose identification is covered by the ICRC but is not shown to a datagram socket:
 * which identification makes the CRC-32 right? `computed` is the ICRC with identification 0, `received` the one in the
 * packet, as a number; `covered` are the bytes between the identification and the ICRC: 14 of IP, 8 of UDP, and the
 * packet from BTH on without its ICRC. 0 and *id set; -EBADMSG: none does, the packet is damaged. This leaves a check
 * of 16 bits.
 */
int rwk_icrc_solve_id(uint32_t computed, uint32_t received, size_t covered, uint16_t *id);

/**
 * Is there one for a packet of `covered` bytes from BTH on, less its ICRC, before which that many of `pseudo` were
 * covered? Never over IPv6, which has no identification.
 */
bool rwk_icrc_has_id(uint32_t computed, uint32_t received, size_t pseudo, size_t covered);

#endif

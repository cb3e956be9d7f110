/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 of the Ethernet (reflected, polynomial 0xedb88320, inverted before and after; the CRC of "123456789" is
 * 0xcbf43926). Begin with 0; of two pieces one after the other: the CRC of the first goes into the call for the second.
 * Safe from any thread.
 */
#ifndef RWK_WIRE_CRC32_H
#define RWK_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/** By ISA-L, which multiplies without carry where the processor can, or by rwk_crc32_portable when built without. */
uint32_t rwk_crc32(uint32_t crc, const uint8_t *bytes, size_t len);

/** By tables, in C alone. Always built, so that a test can hold one against the other. */
uint32_t rwk_crc32_portable(uint32_t crc, const uint8_t *bytes, size_t len);

#endif

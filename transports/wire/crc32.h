/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRCs of 32 bits, reflected, and inverted before and after. Begin with 0; of two pieces one after the other: the CRC of
 * the first goes into the call for the second. Safe from any thread.
 */
#ifndef RWK_WIRE_CRC32_H
#define RWK_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/** Which one: its polynomial, and what it is of "123456789". */
enum rwk_crc {
	RWK_CRC_32,  /* Ethernet's: 0xedb88320, 0xcbf43926 */
	RWK_CRC_32C, /* Castagnoli's: 0x82f63b78, 0xe3069283. Processors have an instruction for it */
};
#define RWK_CRC_KINDS 2

/** By ISA-L, which does it as this processor can, or by rwk_crc32_portable when built without. */
uint32_t rwk_crc32(enum rwk_crc kind, uint32_t crc, const uint8_t *bytes, size_t len);

/** By tables, in C alone. Always built, so that a test can hold one against the other. */
uint32_t rwk_crc32_portable(enum rwk_crc kind, uint32_t crc, const uint8_t *bytes, size_t len);

#endif

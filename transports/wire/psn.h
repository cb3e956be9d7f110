/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sequence numbers: 24 bits that wrap. Half of them are behind any one, half before it. */
#ifndef RWK_WIRE_PSN_H
#define RWK_WIRE_PSN_H

#include <stdint.h>

#define RWK_PSN_MASK 0xffffffu

static inline uint32_t rwk_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & RWK_PSN_MASK;
}

/** How far `a` is ahead of `b`: -2^23 to 2^23 - 1; negative: behind. */
static inline int32_t rwk_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHA-256 (FIPS 180-4), for the job's key alone: some hundred bytes, once in the life of a process. Not in constant
 * time.
 */
#ifndef RWK_TOPOLOGY_SHA256_H
#define RWK_TOPOLOGY_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define RWK_SHA256_SIZE  32u
#define RWK_SHA256_BLOCK 64u

struct rwk_sha256 {
	uint32_t h[8];
	uint64_t bytes; /* taken so far */
	uint8_t block[RWK_SHA256_BLOCK];
};

void rwk_sha256_begin(struct rwk_sha256 *s);
void rwk_sha256_add(struct rwk_sha256 *s, const void *bytes, size_t len);
/** Writes the digest; `s` is to be begun anew after that. */
void rwk_sha256_end(struct rwk_sha256 *s, uint8_t digest[RWK_SHA256_SIZE]);

#endif

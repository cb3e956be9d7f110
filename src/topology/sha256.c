/* SPDX-License-Identifier: BSD-3-Clause */
#include "topology/sha256.h"

#include <endian.h>
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes; below, of the square roots of
 * the first 8. */
static const uint32_t rounds[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152,
	0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138,
	0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70,
	0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
	0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
	0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static const uint32_t start[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void spread(const uint8_t *block, uint32_t w[64])
{
	for (int t = 0; t < 16; t++) {
		memcpy(&w[t], block + 4 * t, 4);
		w[t] = be32toh(w[t]);
	}
	for (int t = 16; t < 64; t++) {
		uint32_t a = w[t - 15], b = w[t - 2];

		w[t] = w[t - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[t - 7] +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

static void mix(uint32_t h[8], const uint8_t *block)
{
	uint32_t w[64], v[8];

	spread(block, w);
	memcpy(v, h, sizeof(v));
	for (int t = 0; t < 64; t++) {
		uint32_t a = v[0], e = v[4];
		uint32_t one = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
			       rounds[t] + w[t];
		uint32_t two =
			(rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

void rwk_sha256_begin(struct rwk_sha256 *s)
{
	memcpy(s->h, start, sizeof(start));
	s->bytes = 0;
}

void rwk_sha256_add(struct rwk_sha256 *s, const void *bytes, size_t len)
{
	const uint8_t *b = bytes;

	for (size_t i = 0; i < len; i++) {
		s->block[s->bytes++ % RWK_SHA256_BLOCK] = b[i];
		if (s->bytes % RWK_SHA256_BLOCK == 0)
			mix(s->h, s->block);
	}
}

void rwk_sha256_end(struct rwk_sha256 *s, uint8_t digest[RWK_SHA256_SIZE])
{
	uint64_t bits = htobe64(8 * s->bytes);

	rwk_sha256_add(s, "\x80", 1);
	while (s->bytes % RWK_SHA256_BLOCK != RWK_SHA256_BLOCK - sizeof(bits))
		rwk_sha256_add(s, "", 1);
	rwk_sha256_add(s, &bits, sizeof(bits));
	for (int i = 0; i < 8; i++) {
		uint32_t word = htobe32(s->h[i]);

		memcpy(digest + 4 * i, &word, 4);
	}
}

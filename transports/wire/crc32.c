/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eight bytes a step ("slicing by 8": M. Kounavis, F. Berry, "A Systematic Approach to Building High Performance
 * Software-Based CRC Generators", ISCC 2005). Table k gives what a byte does to the register k bytes further on. The
 * tables are made on the first call, and only where ISA-L is not there.
 */
#include "config.h"

#include "wire/crc32.h"

#include <pthread.h>

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#define SLICES 8

typedef uint32_t slices[SLICES][256];

static slices of_kind[RWK_CRC_KINDS];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_tables(slices tables, uint32_t polynomial)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t r = i;

		for (int bit = 0; bit < 8; bit++)
			r = r >> 1 ^ (r & 1 ? polynomial : 0);
		tables[0][i] = r;
	}
	for (int k = 1; k < SLICES; k++)
		for (int i = 0; i < 256; i++) {
			uint32_t r = tables[k - 1][i];

			tables[k][i] = r >> 8 ^ tables[0][r & 0xff];
		}
}

static void make_all(void)
{
	make_tables(of_kind[RWK_CRC_32], 0xedb88320);
	make_tables(of_kind[RWK_CRC_32C], 0x82f63b78);
}

uint32_t rwk_crc32_portable(enum rwk_crc kind, uint32_t crc, const uint8_t *bytes, size_t len)
{
	const uint32_t (*tables)[256] = of_kind[kind];
	uint32_t r = ~crc;

	pthread_once(&made, make_all);
	for (; len >= SLICES; len -= SLICES, bytes += SLICES) {
		r ^= (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
		r = tables[7][r & 0xff] ^ tables[6][r >> 8 & 0xff] ^ tables[5][r >> 16 & 0xff] ^ tables[4][r >> 24] ^
		    tables[3][bytes[4]] ^ tables[2][bytes[5]] ^ tables[1][bytes[6]] ^ tables[0][bytes[7]];
	}
	while (len--)
		r = r >> 8 ^ tables[0][(r ^ *bytes++) & 0xff];
	return ~r;
}

#if defined(HAVE_ISAL) && defined(__x86_64__)
/*
 * ISA-L's loops for AVX-512 return without clearing the upper parts of the vector registers. From then on each SSE
 * instruction has to keep what is there: a host program that was built without AVX, as distributions build theirs,
 * computed at a third of its speed after every packet.
 */
__attribute__((target("avx"))) static void zero_upper(void)
{
	__builtin_ia32_vzeroupper();
}

static void clean_vectors(void)
{
	if (__builtin_cpu_supports("avx"))
		zero_upper();
}
#elif defined(HAVE_ISAL)
static void clean_vectors(void)
{
}
#endif

uint32_t rwk_crc32(enum rwk_crc kind, uint32_t crc, const uint8_t *bytes, size_t len)
{
#ifdef HAVE_ISAL
	if (kind == RWK_CRC_32)
		crc = crc32_gzip_refl(crc, bytes, len);
	else /* it inverts nothing, and only reads */
		crc = ~crc32_iscsi((unsigned char *)bytes, (int)len, ~crc);
	clean_vectors();
	return crc;
#else
	return rwk_crc32_portable(kind, crc, bytes, len);
#endif
}

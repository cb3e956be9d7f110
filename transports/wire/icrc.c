/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ICRC of a packet, piece by piece, and which IPv4 identification it was made with.
 *
 * A CRC is linear: two packets of one length that differ in some bits have CRCs whose exclusive or depends on those
 * bits alone. In terms of polynomials over GF(2), modulo the CRC's: bits that stand n bits before the end of what is
 * covered, as a polynomial m, change the CRC by m * x^(n + 32). So the difference, divided by that power of x, is the
 * identification, if nothing else differs.
 */
#include "wire/icrc.h"

#include "base/compiler.h"

#include <errno.h>

#include "wire/wire.h"

enum {
	MASKED_BYTE = 4,    /* FECN and BECN are for routers to set */
	IP4_PSEUDO = 36,    /* of what is covered before BTH over IPv4, */
	IP4_BEHIND_ID = 22, /* and of them behind the identification: 14 of IP, 8 of UDP */
};

/* Polynomials modulo the CRC's: the coefficient of x^0 is the highest bit. */
#define ONE 0x80000000u

static const struct field {
	uint32_t polynomial;
	uint32_t x_inverse; /* times x it is one */
	/*
	 * What the register is to begin with otherwise, so that BTH with 0 in the byte that is masked leads to the CRC
	 * that it has with 0xff there: those bits, times x^-32 for the four bytes before it. Neither a copy of the
	 * packet is needed then nor a second call for its beginning.
	 */
	uint32_t x_inverse_32, mask_of_zero;
} fields[RWK_CRC_KINDS] = {
	[RWK_CRC_32] = {0xedb88320, 0xdb710641, 0x5b358fd3, 0x0f6a70d9},
	[RWK_CRC_32C] = {0x82f63b78, 0x05ec76f1, 0xd610d67e, 0x56bd19bc},
};

uint32_t rwk_icrc_begin(enum rwk_crc kind, const uint8_t *pseudo, size_t len)
{
	return rwk_crc32(kind, 0, pseudo, len);
}

static uint32_t times(const struct field *f, uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = ONE; bit; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? f->polynomial : 0);
	}
	return product;
}

/* Where the CRC begins for a packet whose masked byte is `byte`. Few have a mark there. */
static uint32_t mask(enum rwk_crc kind, uint32_t begun, uint8_t byte)
{
	const struct field *f = &fields[kind];

	return begun ^ (rwk_likely(!byte) ? f->mask_of_zero : times(f, byte ^ 0xffu, f->x_inverse_32));
}

uint32_t rwk_icrc_bytes(enum rwk_crc kind, uint32_t begun, const uint8_t *bytes, size_t len)
{
	return rwk_crc32(kind, mask(kind, begun, bytes[MASKED_BYTE]), bytes, len);
}

uint32_t rwk_icrc_packet(enum rwk_crc kind, uint32_t begun, const uint8_t *header, size_t header_len,
	const struct iovec *iov, int count, unsigned pad)
{
	static const uint8_t zeros[3];
	uint32_t crc = rwk_icrc_bytes(kind, begun, header, header_len);

	for (int i = 0; i < count; i++)
		crc = rwk_crc32(kind, crc, iov[i].iov_base, iov[i].iov_len);
	return pad ? rwk_crc32(kind, crc, zeros, pad) : crc;
}

/* x^-n, by squaring. */
static uint32_t inverse_power(const struct field *f, size_t n)
{
	uint32_t power = ONE;

	for (uint32_t square = f->x_inverse; n; n >>= 1) {
		if (n & 1)
			power = times(f, power, square);
		square = times(f, square, square);
	}
	return power;
}

int rwk_icrc_solve_id(uint32_t computed, uint32_t received, size_t covered, uint16_t *id)
{
	const struct field *f = &fields[RWK_CRC_32];
	uint32_t m = times(f, computed ^ received, inverse_power(f, 8 * covered + 32));

	/* Two bytes are x^0 to x^15. The lowest bit of a byte comes first, so it has the highest power. */
	if (m & 0xffff)
		return -EBADMSG;
	*id = (uint16_t)((m >> 16 & 0xff) << 8 | m >> 24);
	return 0;
}

bool rwk_icrc_has_id(uint32_t computed, uint32_t received, size_t pseudo, size_t covered)
{
	uint16_t id;

	return pseudo == IP4_PSEUDO && !rwk_icrc_solve_id(computed, received, covered + IP4_BEHIND_ID, &id);
}

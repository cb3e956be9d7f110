/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 and what is made of it. That the ICRC is the one of others, test_golden shows. */
#include "rwk_test.h"

#include <stdbool.h>
#include <sys/uio.h>

#include "wire/crc32.h"
#include "wire/icrc.h"

#define LONGEST 4500

static uint8_t bytes[LONGEST];

static int fill(void **state)
{
	uint32_t r = 12345;

	(void)state;
	for (size_t i = 0; i < LONGEST; i++) {
		r = r * 1664525 + 1013904223;
		bytes[i] = r >> 24;
	}
	return 0;
}

/* The check value that the catalogues give for each. */
static void known(void **state)
{
	static const uint32_t values[] = {[RWK_CRC_32] = 0xcbf43926, [RWK_CRC_32C] = 0xe3069283};

	(void)state;
	for (enum rwk_crc k = 0; k < RWK_CRC_KINDS; k++) {
		assert_int_equal(rwk_crc32(k, 0, (const uint8_t *)"123456789", 9), values[k]);
		assert_int_equal(rwk_crc32_portable(k, 0, (const uint8_t *)"123456789", 9), values[k]);
	}
}

/* The tables in C and whatever is built in agree, at any length and place, in one piece and in two. */
static void both_agree(void **state)
{
	enum rwk_crc kind = *(const enum rwk_crc *)*state;

	for (size_t len = 0; len <= LONGEST - 16; len += len < 600 ? 1 : 331)
		for (size_t from = 0; from < 16; from++) {
			uint32_t one = rwk_crc32(kind, 0, bytes + from, len), portable;

			portable = rwk_crc32_portable(kind, 0, bytes + from, len / 3);
			portable = rwk_crc32_portable(kind, portable, bytes + from + len / 3, len - len / 3);
			assert_int_equal(one, portable);
		}
}

/* The upper halves of the vector registers are as the rest of the process must find them: zero, or each SSE instruction
 * of a program built without AVX has to keep what is there. */
#ifdef __x86_64__
__attribute__((target("avx"))) static bool has_clean_vectors(enum rwk_crc kind, size_t len)
{
	uint8_t upper[8][16];
	uint32_t crc;

	__builtin_ia32_vzeroupper();
	crc = rwk_crc32(kind, 0, bytes, len);
	__asm__ volatile("vextractf128 $1, %%ymm0, (%0)\n\tvextractf128 $1, %%ymm1, 16(%0)\n\t"
			 "vextractf128 $1, %%ymm2, 32(%0)\n\tvextractf128 $1, %%ymm3, 48(%0)\n\t"
			 "vextractf128 $1, %%ymm4, 64(%0)\n\tvextractf128 $1, %%ymm5, 80(%0)\n\t"
			 "vextractf128 $1, %%ymm6, 96(%0)\n\tvextractf128 $1, %%ymm7, 112(%0)"
			 :
			 : "r"(upper)
			 : "memory");
	for (size_t i = 0; i < sizeof(upper); i++)
		if (upper[i / 16][i % 16])
			return false;
	return crc == rwk_crc32_portable(kind, 0, bytes, len);
}

static void leaves_vectors_clean(void **state)
{
	enum rwk_crc kind = *(const enum rwk_crc *)*state;

	if (!__builtin_cpu_supports("avx"))
		skip();
	for (size_t len = 8; len <= 4096; len *= 2)
		assert_true(has_clean_vectors(kind, len));
}
#else
static void leaves_vectors_clean(void **state)
{
	(void)state;
	skip();
}
#endif

/* In pieces, empty ones among them, and with the pad apart: the same as in one. */
static void pieces(void **state)
{
	static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 63, 64, 65, 1023, 1024, 4095, 4096};
	enum rwk_crc kind = *(const enum rwk_crc *)*state;
	uint8_t whole[LONGEST] = {0};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t head = 12; head <= 64; head += 4) {
			size_t len = lengths[i], cut = len / 2, pad = -len & 3;
			struct iovec iov[] = {{bytes + head, cut}, {bytes, 0}, {bytes + head + cut, len - cut}};

			memcpy(whole, bytes, head + len);
			memset(whole + head + len, 0, pad);
			assert_int_equal(rwk_icrc_packet(kind, 77, bytes, head, iov, 3, pad),
				rwk_icrc_bytes(kind, 77, whole, head + len + pad));
		}
}

/* Byte 4, where routers mark congestion, is taken as 0xff, whatever it is; each other bit is covered. */
static void what_is_covered(void **state)
{
	enum rwk_crc kind = *(const enum rwk_crc *)*state;
	uint8_t packet[40];
	uint32_t right;

	memcpy(packet, bytes, sizeof(packet));
	packet[4] = 0xff;
	right = rwk_crc32(kind, 77, packet, sizeof(packet));
	for (unsigned byte = 0; byte < 256; byte++) {
		packet[4] = (uint8_t)byte;
		assert_int_equal(rwk_icrc_bytes(kind, 77, packet, sizeof(packet)), right);
	}
	right = rwk_icrc_bytes(kind, 0, packet, sizeof(packet));
	for (size_t bit = 0; bit < sizeof(packet) * 8; bit++) {
		packet[bit / 8] ^= 1 << bit % 8;
		if (bit / 8 == 4)
			assert_int_equal(rwk_icrc_bytes(kind, 0, packet, sizeof(packet)), right);
		else
			assert_int_not_equal(rwk_icrc_bytes(kind, 0, packet, sizeof(packet)), right);
		packet[bit / 8] ^= 1 << bit % 8;
	}
}

static uint32_t with_id(uint8_t *datagram, size_t len, uint16_t id)
{
	datagram[4] = id >> 8;
	datagram[5] = id;
	return rwk_crc32(RWK_CRC_32, 0, datagram, len);
}

/* Every identification is found, and at every length of a packet. */
static void every_id(void **state)
{
	uint8_t datagram[LONGEST];
	uint16_t id;

	(void)state;
	memcpy(datagram, bytes, LONGEST);
	for (uint32_t i = 0; i <= 0xffff; i++) {
		uint32_t zero = with_id(datagram, 60, 0);

		assert_int_equal(rwk_icrc_solve_id(zero, with_id(datagram, 60, i), 60 - 6, &id), 0);
		assert_int_equal(id, i);
	}
	for (size_t len = 6; len <= LONGEST; len++) {
		uint32_t zero = with_id(datagram, len, 0);

		assert_int_equal(rwk_icrc_solve_id(zero, with_id(datagram, len, 0x1234 + len), len - 6, &id), 0);
		assert_int_equal(id, 0x1234 + len);
	}
}

/* One bit that is wrong anywhere else is no identification. */
static void damage(void **state)
{
	uint8_t datagram[1100];
	uint32_t received;
	uint16_t id = 4711;

	(void)state;
	memcpy(datagram, bytes, sizeof(datagram));
	received = with_id(datagram, sizeof(datagram), 0xbeef);
	with_id(datagram, sizeof(datagram), 0);
	for (size_t bit = 0; bit < sizeof(datagram) * 8; bit++) {
		uint32_t computed;

		if (bit / 8 == 4 || bit / 8 == 5)
			continue;
		datagram[bit / 8] ^= 1 << bit % 8;
		computed = rwk_crc32(RWK_CRC_32, 0, datagram, sizeof(datagram));
		assert_int_equal(rwk_icrc_solve_id(computed, received, sizeof(datagram) - 6, &id), -EBADMSG);
		datagram[bit / 8] ^= 1 << bit % 8;
	}
	assert_int_equal(id, 4711);
}

static enum rwk_crc kinds[] = {RWK_CRC_32, RWK_CRC_32C};

#define EACH_KIND(test)                                                                                                \
	{#test ", CRC-32", test, NULL, NULL, &kinds[0]},                                                               \
	{                                                                                                              \
#test ", CRC-32C", test, NULL, NULL, &kinds[1]                                                         \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known),
		EACH_KIND(both_agree),
		EACH_KIND(leaves_vectors_clean),
		EACH_KIND(pieces),
		EACH_KIND(what_is_covered),
		cmocka_unit_test(every_id),
		cmocka_unit_test(damage),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}

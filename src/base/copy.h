/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of short messages, of long ones, and into memory whose lines another core holds. An ordinary copy fetches each
 * line before it overwrites it; the processor's own string copy knows that whole lines will be written and only takes
 * them away. From 1 KB up, on processors that say that it is quick (FSRM), it wins on both counts; the C library uses
 * it by itself, but only from several KB up.
 *
 * But where the target's address is less than a line above the source's, but for whole pages, a string copy takes each
 * store for one into what it is about to read, and some processors (Zen 3 and 4) slow down to a twentieth. A long block
 * of malloc begins 16 bytes behind a page, so this is no rare case. There memcpy is called for a piece at a time.
 */
#ifndef RWK_BASE_COPY_H
#define RWK_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define RWK_COPY_SHORT_MAX 64u
#define RWK_COPY_PAGE      4096u /* where the low bits of two addresses are alike */

/** Copies at most RWK_COPY_SHORT_MAX bytes by overlapping moves of fixed size: no call, and no loop to be guessed. */
static inline void rwk_copy_short(void *to_, const void *from_, size_t len)
{
	unsigned char *to = to_;
	const unsigned char *from = from_;

	if (len >= 16) {
		memcpy(to, from, 16);
		if (len > 32) {
			memcpy(to + 16, from + 16, 16);
			if (len > 48)
				memcpy(to + 32, from + 32, 16);
		}
		memcpy(to + len - 16, from + len - 16, 16);
	} else if (len >= 8) {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(to, from, 4);
		memcpy(to + len - 4, from + len - 4, 4);
	} else if (len) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		to[len - 1] = from[len - 1];
	}
}

#define RWK_COPY_WORD_MAX 16u

/**
 * Copies a word of 1, 2, 4, 8 or 16 bytes by one load and one store, which no other copy promises: somebody may look at
 * it, or change it, meanwhile. Where it is aligned none of 8 bytes or less is ever seen in parts. False: it is none.
 */
static inline bool rwk_copy_word(void *to, const void *from, size_t len)
{
	typedef long long sixteen __attribute__((vector_size(16), aligned(1), may_alias)); /* memcpy may make two */
	uint64_t eight;
	uint32_t four;
	uint16_t two;

	switch (len) {
	case 1:
		*(uint8_t *)to = *(const uint8_t *)from;
		return true;
	case 2:
		memcpy(&two, from, 2);
		memcpy(to, &two, 2);
		return true;
	case 4:
		memcpy(&four, from, 4);
		memcpy(to, &four, 4);
		return true;
	case 8:
		memcpy(&eight, from, 8);
		memcpy(to, &eight, 8);
		return true;
	case RWK_COPY_WORD_MAX:
		*(sixteen *)to = *(const sixteen *)from;
		return true;
	default:
		return false;
	}
}

/** Is a string copy slow for where these two lie? */
static inline bool rwk_copy_collides(const void *to, const void *from)
{
#if defined(__x86_64__)
	return ((uintptr_t)to - (uintptr_t)from) % RWK_COPY_PAGE - 1 < 63;
#else
	(void)to;
	(void)from;
	return false;
#endif
}

/** As memcpy, in pieces so short that none is copied by a string copy. */
void rwk_copy_pieces(void *to, const void *from, size_t len);

#define RWK_COPY_PIECES_MIN 2048u

/** As memcpy, for what may be long. */
static inline void rwk_copy(void *to, const void *from, size_t len)
{
	if (len >= RWK_COPY_PIECES_MIN && rwk_copy_collides(to, from))
		rwk_copy_pieces(to, from, len);
	else
		memcpy(to, from, len);
}

#define RWK_COPY_AWAY_MIN 1024u

/** Is the string copy quick here? Ask once and keep the answer. */
static inline bool rwk_copy_has_string(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 4 & 1);
#else
	return false;
#endif
}

/** As memcpy, for bytes that another core will read next and whose lines it holds now. `string`: see above. */
static inline void rwk_copy_away(void *to, const void *from, size_t len, bool string)
{
#if defined(__x86_64__)
	if (string && len >= RWK_COPY_AWAY_MIN && !rwk_copy_collides(to, from)) {
		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
		return;
	}
#endif
	(void)string;
	rwk_copy(to, from, len);
}

#endif

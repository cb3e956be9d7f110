/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that show whether they are where they belong: each is seven more than the one before. Written and compared in
 * vectors: tests do that with most of what they send.
 */
#ifndef RWK_TEST_PATTERN_H
#define RWK_TEST_PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PATTERN_STEP = 7 };

typedef uint8_t pattern_vector __attribute__((vector_size(16)));

static inline pattern_vector pattern_begin(uint8_t first)
{
	pattern_vector v = {0};

	for (size_t i = 0; i < sizeof(v); i++)
		v[i] = (uint8_t)(first + PATTERN_STEP * i);
	return v;
}

/** Fills `len` bytes; the first is `first`. */
static inline void pattern_fill(void *buf, size_t len, uint8_t first)
{
	pattern_vector v = pattern_begin(first);
	uint8_t *to = buf;
	size_t i;

	for (i = 0; len - i >= sizeof(v); i += sizeof(v)) {
		memcpy(to + i, &v, sizeof(v));
		v += (uint8_t)(PATTERN_STEP * sizeof(v));
	}
	memcpy(to + i, &v, len - i);
}

/** Returns how many bytes are right before the first that is wrong; len: all. */
static inline size_t pattern_right(const void *buf, size_t len, uint8_t first)
{
	pattern_vector v = pattern_begin(first);
	const uint8_t *from = buf;
	size_t i;

	for (i = 0; len - i >= sizeof(v) && !memcmp(from + i, &v, sizeof(v)); i += sizeof(v))
		v += (uint8_t)(PATTERN_STEP * sizeof(v));
	while (i < len && from[i] == (uint8_t)(first + PATTERN_STEP * i))
		i++;
	return i;
}

#endif

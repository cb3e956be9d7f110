/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/common/data.h"

#include <stdio.h>
#include <string.h>

/* Keeps the compiler from dropping reads whose result nobody needs. */
static volatile uint64_t sink;

static uint64_t word_at(uint64_t seed, size_t index)
{
	uint64_t x = (seed + index) * 0x9e3779b97f4a7c15u;

	return x ^ x >> 29;
}

void bench_write(const struct bench_run *r, void *data, size_t size, uint64_t seed)
{
	char *p = data;
	size_t i, words = size / 8;
	uint64_t word;

	if (r->touch == BENCH_TOUCH_DIRTY) {
		memset(data, (int)(seed >> 24), size);
		return;
	}
	for (i = 0; i < words; i++) {
		word = word_at(seed, i);
		memcpy(p + 8 * i, &word, 8);
	}
	word = word_at(seed, words);
	memcpy(p + 8 * words, &word, size % 8);
}

void bench_wrong(struct bench_run *r, size_t offset, uint64_t expected, uint64_t found)
{
	if (!r->errors++)
		fprintf(stderr, "rank %d: size %zu: wrong data at byte %zu: 0x%llx instead of 0x%llx\n", r->team->rank,
			r->size, offset, (unsigned long long)found, (unsigned long long)expected);
}

static void check(struct bench_run *r, const char *p, size_t size, uint64_t seed)
{
	for (size_t done = 0; done < size; done += 8) {
		size_t n = size - done < 8 ? size - done : 8;
		uint64_t want = word_at(seed, done / 8), masked = 0, found = 0;

		memcpy(&masked, &want, n);
		memcpy(&found, p + done, n);
		if (found != masked)
			bench_wrong(r, done, masked, found);
	}
}

void bench_read(struct bench_run *r, const void *data, size_t size, uint64_t seed)
{
	const char *p = data;
	uint64_t word, sum = 0;
	size_t i;

	if (r->touch == BENCH_TOUCH_CHECK) {
		check(r, p, size, seed);
		return;
	}
	for (i = 0; i + 8 <= size; i += 8) {
		memcpy(&word, p + i, 8);
		sum += word;
	}
	for (; i < size; i++)
		sum += (unsigned char)p[i];
	sink = sum;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies: by one core within its own memory, and from process to process through memory that both map. */
#include "bench/machine/mate.h"

#include <string.h>

#define CHUNK    ((size_t)8 << 10)
#define RING     ((size_t)256 << 10) /* streams need this much, see README.md */
#define SMALLEST 64

static void warm_copy(struct mate *m, size_t size, uint64_t iterations)
{
	for (uint64_t i = 0; i < iterations; i++) {
		memcpy(m->private_data, m->private_data + MATE_LARGEST, size);
		__asm__ volatile("" ::: "memory");
	}
}

void measure_copy(struct mate *m)
{
	for (size_t size = SMALLEST; size <= MATE_LARGEST; size *= 4)
		mate_measure(m, &(struct mate_measurement){.name = "memcpy, one core, warm",
					.size = size,
					.unit = MATE_MB_S,
					.operations = 1,
					.alone = warm_copy});
}

/* Copies a message into the ring of side `to`, from byte `at` of the stream on; publishes each chunk. */
static void put(struct mate *m, int to, uint64_t at, size_t size, size_t chunk, size_t ring)
{
	struct mate_shared *s = m->shared;

	for (size_t done = 0, n; done < size; done += n) {
		size_t offset = (at + done) % ring;

		n = size - done < chunk ? size - done : chunk;
		n = n < ring - offset ? n : ring - offset;
		if (at + done + n > ring)
			mate_await(m, &s->taken[to].word, at + done + n - ring);
		memcpy(s->data[to] + offset, m->private_data + done, n);
		__atomic_store_n(&s->sent[to].word, at + done + n, __ATOMIC_RELEASE);
	}
}

/* Copies a message out of this side's ring. */
static void take(struct mate *m, uint64_t at, size_t size, size_t chunk, size_t ring)
{
	struct mate_shared *s = m->shared;

	for (size_t done = 0, n; done < size; done += n) {
		size_t offset = (at + done) % ring;

		n = size - done < chunk ? size - done : chunk;
		n = n < ring - offset ? n : ring - offset;
		mate_await(m, &s->sent[m->side].word, at + done + n);
		memcpy(m->private_data + MATE_LARGEST + done, s->data[m->side] + offset, n);
		__atomic_store_n(&s->taken[m->side].word, at + done + n, __ATOMIC_RELEASE);
	}
}

static void pingpong(struct mate *m, size_t size, uint64_t iterations, size_t chunk, size_t ring)
{
	for (uint64_t i = 0; i < iterations; i++) {
		if (m->side)
			take(m, i * size, size, chunk, ring);
		put(m, !m->side, i * size, size, chunk, ring);
		if (!m->side)
			take(m, i * size, size, chunk, ring);
	}
}

/* The receiver begins when all of the message is there. */
static void in_sequence(struct mate *m, size_t size, uint64_t iterations)
{
	pingpong(m, size, iterations, size, size);
}

/* The receiver copies one chunk while the sender copies the next. */
static void pipelined(struct mate *m, size_t size, uint64_t iterations)
{
	pingpong(m, size, iterations, CHUNK, RING);
}

static void stream(struct mate *m, size_t size, uint64_t iterations)
{
	for (uint64_t i = 0; i < iterations; i++) {
		if (m->side)
			take(m, i * size, size, CHUNK, RING);
		else
			put(m, 1, i * size, size, CHUNK, RING);
	}
	if (!m->side)
		mate_await(m, &m->shared->taken[1].word, iterations * size);
}

void measure_ring(struct mate *m)
{
	size_t size;

	for (size = SMALLEST; size <= MATE_LARGEST; size *= 4)
		mate_measure(m, &(struct mate_measurement){.name = "one way by two copies in sequence",
					.size = size,
					.unit = MATE_US,
					.operations = 2,
					.run = in_sequence});
	for (size = 4 * CHUNK; size <= MATE_LARGEST; size *= 2)
		mate_measure(m, &(struct mate_measurement){.name = "one way by two copies, 8 KB chunks",
					.size = size,
					.unit = MATE_US,
					.operations = 2,
					.run = pipelined});
	for (size = SMALLEST; size <= MATE_LARGEST; size *= 4)
		mate_measure(m, &(struct mate_measurement){.name = "stream through a 256 KB ring",
					.size = size,
					.unit = MATE_MB_S,
					.operations = 1,
					.run = stream});
}

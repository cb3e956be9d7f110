/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a cache line that one core has written takes to reach the other core. Nothing that exchanges messages can be
 * quicker. */
#include "base/demote.h"
#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "bench/machine/mate.h"

#include <string.h>

#define BLOCK 1024 /* bytes */

/* The same line goes there and back: each side takes it over, writes it, and gives it away. */
static void one_line(struct mate *m, size_t size, uint64_t iterations)
{
	uint64_t *word = &m->shared->line[0].word;

	(void)size;
	for (uint64_t i = 0; i < iterations; i++) {
		if (m->side)
			mate_await(m, word, 2 * i + 1);
		__atomic_store_n(word, 2 * i + 1 + m->side, __ATOMIC_RELEASE);
		if (!m->side)
			mate_await(m, word, 2 * i + 2);
	}
}

/* Each direction has its own line: what a pair of rings does. */
static void two_lines(struct mate *m, size_t size, uint64_t iterations)
{
	uint64_t *mine = &m->shared->line[m->side].word, *theirs = &m->shared->line[!m->side].word;

	(void)size;
	for (uint64_t i = 1; i <= iterations; i++) {
		if (m->side)
			mate_await(m, theirs, i);
		__atomic_store_n(mine, i, __ATOMIC_RELEASE);
		if (!m->side)
			mate_await(m, theirs, i);
	}
}

/*
 * A line says that a block of others is there. The reader wants all of it, and answers in the same one, as where slabs
 * change hands.
 */
static void block_there(struct mate *m, size_t size, uint64_t number, bool demote)
{
	char *to = m->shared->data[0];

	memset(to, (int)number, size);
	__atomic_store_n(&m->shared->line[m->side].word, number, __ATOMIC_RELEASE);
	if (demote)
		rwk_demote(to, size);
}

static void block_here(struct mate *m, size_t size, uint64_t number)
{
	mate_await(m, &m->shared->line[!m->side].word, number);
	memcpy(m->private_data, m->shared->data[0], size);
	__asm__ volatile("" : : "r"(m->private_data) : "memory"); /* it is wanted */
}

static void blocks(struct mate *m, size_t size, uint64_t iterations, bool demote)
{
	for (uint64_t i = 1; i <= iterations; i++) {
		if (m->side)
			block_here(m, size, i);
		block_there(m, size, i, demote);
		if (!m->side)
			block_here(m, size, i);
	}
}

static void kept(struct mate *m, size_t size, uint64_t iterations)
{
	blocks(m, size, iterations, false);
}

static void handed_over(struct mate *m, size_t size, uint64_t iterations)
{
	blocks(m, size, iterations, true);
}

/* Counts on one line: alone, or both sides as fast as they get it, which is what an atomic operation on a word that
 * others want takes at least. */
static void add(struct mate *m, size_t size, uint64_t iterations)
{
	(void)size;
	for (uint64_t i = 0; i < iterations; i++)
		__atomic_fetch_add(&m->shared->line[0].word, 1, __ATOMIC_SEQ_CST);
}

void measure_line(struct mate *m)
{
	mate_measure(
		m, &(struct mate_measurement){
			   .name = "one way, one line both ways", .unit = MATE_NS, .operations = 2, .run = one_line});
	mate_measure(
		m, &(struct mate_measurement){
			   .name = "one way, a line for each way", .unit = MATE_NS, .operations = 2, .run = two_lines});
	mate_measure(m, &(struct mate_measurement){.name = "one way, one block both ways",
				.size = BLOCK,
				.unit = MATE_NS,
				.operations = 2,
				.run = kept});
	if (rwk_demote_possible())
		mate_measure(m, &(struct mate_measurement){.name = "one way, one block both ways, demoted",
					.size = BLOCK,
					.unit = MATE_NS,
					.operations = 2,
					.run = handed_over});
	mate_measure(m, &(struct mate_measurement){
				.name = "fetch-add, one side alone", .unit = MATE_NS, .operations = 1, .alone = add});
	mate_measure(m, &(struct mate_measurement){.name = "fetch-add on one line by both sides, each of all",
				.unit = MATE_NS,
				.operations = 2,
				.run = add});
}

#define PROBE_ROUNDS 90
#define PROBE_TRIPS  200
#define PROBE_LONG   1.0 /* s, after which no further round begins: on busy cores a trip takes milliseconds */

double measure_probe(struct mate *m)
{
	double sample[PROBE_ROUNDS], begun = bench_now(), start;
	int rounds = 0;

	do {
		if (!m->side)
			m->shared->line[0].word = 0;
		mate_meet(m);
		start = bench_now();
		one_line(m, 0, PROBE_TRIPS);
		sample[rounds++] = (bench_now() - start) * 1e9 / (2 * PROBE_TRIPS);
	} while (mate_agree(m, rounds < PROBE_ROUNDS && bench_now() - begun < PROBE_LONG));
	return bench_stats_of(sample, rounds).median;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What matching costs by itself, with everything in this core's caches: nanoseconds for a receive and its message
 * together. Every answer is looked at; a wrong one ends the program.
 */
#include "bench/common/clock.h"
#include "bench/common/cpu.h"
#include "bench/common/report.h"
#include "bench/common/stats.h"
#include "engine/match.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEPTH 4096
#define REPEATS   7
#define PAIRS     (256 * MAX_DEPTH) /* a repeat */
#define IGNORED   (3ull << 62)      /* as Open MPI does in every receive */

/** As many as `depth` receives or messages wait, each with its tag, and are matched in the order given. */
struct table {
	struct rwk_matcher *m;
	unsigned depth;
	struct rwk_posted *posted;
	struct rwk_arrived *kept;
	unsigned *order; /* of 0 to depth - 1 */
	bool one_tag;
};

static char peers[16];

static const void *peer_of(const struct table *t, unsigned i)
{
	return &peers[t->one_tag ? 0 : i % sizeof(peers)];
}

static uint64_t tag_of(const struct table *t, unsigned i)
{
	return t->one_tag ? 0 : i;
}

static void expect(const void *found, const void *wanted)
{
	if (found == wanted)
		return;
	fprintf(stderr, "match: the matcher gave a wrong answer; the times mean nothing\n");
	exit(1);
}

/** Receives are posted, then the messages come. */
static void receives_first(struct table *t)
{
	for (unsigned i = 0; i < t->depth; i++) {
		t->posted[i].from = peer_of(t, i);
		t->posted[i].tag = tag_of(t, i);
		t->posted[i].ignore = IGNORED;
		rwk_match_post(t->m, &t->posted[i]);
	}
	for (unsigned i = 0; i < t->depth; i++) {
		unsigned k = t->order[i];

		expect(rwk_match_message(t->m, peer_of(t, k), tag_of(t, k)), &t->posted[k]);
	}
}

/** Messages come and are kept, then they are asked for. */
static void messages_first(struct table *t)
{
	for (unsigned i = 0; i < t->depth; i++) {
		t->kept[i].from = peer_of(t, i);
		t->kept[i].tag = tag_of(t, i);
		rwk_match_keep(t->m, &t->kept[i]);
	}
	for (unsigned i = 0; i < t->depth; i++) {
		unsigned k = t->order[i];

		expect(rwk_match_find(t->m, peer_of(t, k), tag_of(t, k), IGNORED), &t->kept[k]);
		rwk_match_take(t->m, &t->kept[k]);
	}
}

static void measure(struct table *t, const char *name, void (*round)(struct table *t))
{
	double sample[REPEATS];
	struct bench_stats s;

	for (unsigned r = 0; r < REPEATS; r++) {
		double start = bench_now();

		for (unsigned i = 0; i < PAIRS / t->depth; i++)
			round(t);
		sample[r] = (bench_now() - start) * 1e9 / PAIRS;
	}
	s = bench_stats_of(sample, REPEATS);
	printf("%-16s %-14s %6u  %6.1f  (%.1f to %.1f)\n", name, t->one_tag ? "one tag" : "distinct tags", t->depth,
		s.median, s.min, s.max);
}

/** Tags of their own are matched in a random order, equal ones in the only order there is. */
static void set_order(struct table *t)
{
	for (unsigned i = 0; i < t->depth; i++)
		t->order[i] = i;
	for (unsigned i = t->depth; !t->one_tag && i-- > 1;) {
		unsigned k = (unsigned)rand() % (i + 1), swap = t->order[i];

		t->order[i] = t->order[k];
		t->order[k] = swap;
	}
}

int main(int argc, char **argv)
{
	static const unsigned depths[] = {1, 8, 64, 512, MAX_DEPTH};
	struct table t = {
		.posted = aligned_alloc(64, MAX_DEPTH * sizeof(*t.posted)),
		.kept = aligned_alloc(64, MAX_DEPTH * sizeof(*t.kept)),
		.order = malloc(MAX_DEPTH * sizeof(*t.order)),
	};

	if (argc > 1) {
		fprintf(stderr, "match: '%s': it takes no arguments\n", argv[1]);
		return 2;
	}
	if (!t.posted || !t.kept || !t.order || rwk_matcher_open(&t.m)) {
		fprintf(stderr, "match: out of memory\n");
		return 1;
	}
	for (unsigned i = 0; i < MAX_DEPTH; i++)
		t.posted[i].stays = 0;
	bench_bind_to_cpu(0);
	printf("%-16s %-14s %6s  ns a receive and its message\n", "", "", "depth");
	for (int tags = 0; tags < 2; tags++) {
		for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
			t.depth = depths[i];
			t.one_tag = !tags;
			set_order(&t);
			measure(&t, "receives first", receives_first);
			measure(&t, "messages first", messages_first);
		}
	}
	rwk_matcher_close(t.m);
	free(t.order);
	free(t.kept);
	free(t.posted);
	return bench_printed("match") ? 2 : 0;
}

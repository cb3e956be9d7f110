/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/arrival.h"
#include "shm/transfer_claim.h"

#include <stdio.h>

#define EACH       64u  /* of so many messages in pieces */
#define MEASURED   8u   /* so many are measured */
#define KNOWN      32u  /* messages before the first trial: the first ones meet with memory that nobody has touched */
#define TRIAL      16u  /* messages: reads have three methods to try */
#define WARM       144u /* messages in pieces of a stream, whose sender is ahead: so long all slabs come from afar */
#define READS      4u   /* fetched ones of a stream are measured so many at a time */
#define ASIDE_PART 128  /* 1/128 of the time goes into trials */
#define DEAR       4    /* times the way in use: dearer than that no trial is taken for */

enum circumstances { AWAITED, AWAITED_SHARED, STREAM };

/* To be fetched a message must take less than this part of its time in pieces; and to go on so, than that one. */
static const struct {
	float begin, go_on;
} worth[] = {[AWAITED] = {0.85f, 0.9f}, [AWAITED_SHARED] = {0.7f, 0.75f}, [STREAM] = {0.9f, 1.1f}};

/* Are all messages of the class long enough to be read by both sides? */
static bool shared(unsigned class)
{
	return (uint64_t)RWK_FETCHED_MIN << class >= RWK_SHM_BOTH_LEAST;
}

static float kilobytes(size_t length)
{
	return (float)length / 1024;
}

/* The way that the sender has been told, or is about to be. */
static enum rwk_shm_arrival_way way_in_use(const struct rwk_shm_arrival *a, unsigned class)
{
	return a->wanted >> class & 1 ? RWK_SHM_FETCHED : RWK_SHM_IN_PIECES;
}

/* ns a KB; 0: not known. Of a stream that others come between only what the reads take is. */
static float cost_of(const struct rwk_shm_arrival_class *k, enum rwk_shm_arrival_way way)
{
	return way == RWK_SHM_FETCHED && k->stream && k->passing > 0 ? k->passing : k->cost[way];
}

/* The better way where that one has been in use; in pieces as long as too little is known. */
static enum rwk_shm_arrival_way better(const struct rwk_shm_arrival *a, unsigned class, enum rwk_shm_arrival_way way)
{
	const struct rwk_shm_arrival_class *k = &a->class[class];
	enum circumstances c = k->stream ? STREAM : shared(class) ? AWAITED_SHARED : AWAITED;
	float part = way == RWK_SHM_FETCHED ? worth[c].go_on : worth[c].begin;
	float fetched = cost_of(k, RWK_SHM_FETCHED);

	return fetched > 0 && fetched < part * k->cost[RWK_SHM_IN_PIECES] ? RWK_SHM_FETCHED : RWK_SHM_IN_PIECES;
}

/* Messages of a trial of that way. */
static uint32_t trial_of(const struct rwk_shm_arrival_class *k, enum rwk_shm_arrival_way way)
{
	return way == RWK_SHM_IN_PIECES && k->stream ? WARM : TRIAL;
}

/* What has to be put aside for one, in ns a KB. A way that seemed to be much slower may have been disturbed. */
static float price(uint32_t trial, float cost, float instead)
{
	return (float)trial * (instead < DEAR * cost ? instead : DEAR * cost);
}

static bool change(struct rwk_shm_arrival *a, unsigned class)
{
	a->wanted ^= (uint8_t)(1u << class);
	return true;
}

/* A message has come this way: is the other one to be taken? */
static bool decide(struct rwk_shm_arrival *a, unsigned class, enum rwk_shm_arrival_way way, size_t length)
{
	struct rwk_shm_arrival_class *k = &a->class[class];
	enum rwk_shm_arrival_way other = way == RWK_SHM_FETCHED ? RWK_SHM_IN_PIECES : RWK_SHM_FETCHED;
	float cost = cost_of(k, way), instead = cost_of(k, other);
	bool tried = k->trial || way != way_in_use(a, class);

	if (tried && instead > 0 && cost > instead)
		k->aside -= (cost - instead) * kilobytes(length);
	if (way != way_in_use(a, class))
		return false; /* the sender has not heard of it yet */
	if (k->trial && --k->trial)
		return false;
	if (tried)
		return better(a, class, other) != way && change(a, class);
	k->aside += cost * kilobytes(length) / ASIDE_PART;
	if (instead > 0 && better(a, class, way) != way)
		return change(a, class);
	if (instead > 0 ? k->aside < price(trial_of(k, other), cost, instead) * kilobytes(length)
			: k->count[RWK_SHM_IN_PIECES] < (k->stream ? WARM : KNOWN))
		return false;
	k->trial = trial_of(k, other);
	k->aside = 0;
	return change(a, class);
}

/* Another run; returns the least cost of the last ones. */
static float record(struct rwk_shm_runs *r, float cost)
{
	uint32_t known;

	r->cost[r->n++ % RWK_SHM_RUNS_KEPT] = cost;
	known = r->n < RWK_SHM_RUNS_KEPT ? r->n : RWK_SHM_RUNS_KEPT;
	for (uint32_t i = 0; i < known; i++)
		cost = r->cost[i] < cost ? r->cost[i] : cost;
	return cost;
}

bool rwk_shm_arrival_measures(const struct rwk_shm_arrival *a, size_t length)
{
	uint64_t come = a->class[rwk_fetched_class(length)].count[RWK_SHM_IN_PIECES];

	/* Of a stream the first of them only says when the second one can have begun. */
	return come % EACH <= MEASURED || (a->run.start && !a->run.stream);
}

void rwk_shm_arrival_begins(struct rwk_shm_arrival *a, size_t length, bool stream, uint32_t begun, uint64_t now)
{
	unsigned class = rwk_fetched_class(length);

	/* A stream is still one when the client gives credit, or the like, now and then. */
	stream |= a->run.stream && a->class[class].count[RWK_SHM_IN_PIECES] % EACH;
	a->run.stream = stream;
	if (stream && a->run.start && a->run.class == class)
		return;
	a->run.start = stream ? a->last_done : now;
	a->run.late = stream ? 0 : (uint32_t)now - begun;
	a->run.bytes = 0;
	a->run.class = class;
}

static void measured(struct rwk_shm_arrival *a, unsigned class, size_t length, uint64_t now, bool last)
{
	struct rwk_shm_arrival_class *k = &a->class[class];
	uint64_t took;

	a->last_done = last ? 0 : now;
	if (!a->run.start)
		return;
	a->run.bytes += length;
	if (a->run.stream && !last)
		return;
	k->stream = a->run.stream;
	took = now - a->run.start;
	if (a->run.late > took / 2)
		took += a->run.late;
	k->cost[RWK_SHM_IN_PIECES] = record(&k->pieces, (float)took / kilobytes(a->run.bytes));
	a->run.start = 0;
}

bool rwk_shm_arrival_whole(struct rwk_shm_arrival *a, size_t length, uint64_t now)
{
	unsigned class = rwk_fetched_class(length), at = a->class[class].count[RWK_SHM_IN_PIECES]++ % EACH;

	a->reads.start = 0;
	if (now)
		measured(a, class, length, now, at >= MEASURED);
	return decide(a, class, RWK_SHM_IN_PIECES, length);
}

/* Reads that one call has brought end at the same time. */
static void passed(struct rwk_shm_arrival *a, unsigned class, size_t length, uint64_t now)
{
	struct rwk_shm_arrival_class *k = &a->class[class];

	if (a->reads.start && a->reads.class == class) {
		a->reads.bytes += length;
		if (++a->reads.messages < READS || now == a->reads.start)
			return;
		k->passing = record(&k->reads, (float)(now - a->reads.start) / kilobytes(a->reads.bytes));
	}
	a->reads.start = now;
	a->reads.class = class;
	a->reads.messages = 0;
	a->reads.bytes = 0;
}

bool rwk_shm_arrival_fetched(struct rwk_shm_arrival *a, size_t length, float cost, uint64_t now)
{
	unsigned class = rwk_fetched_class(length);

	a->last_done = a->run.start = 0;
	a->class[class].count[RWK_SHM_FETCHED]++;
	a->class[class].cost[RWK_SHM_FETCHED] = cost;
	passed(a, class, length, now);
	return decide(a, class, RWK_SHM_FETCHED, length);
}

void rwk_shm_arrival_add(struct rwk_shm_arrival *all, const struct rwk_shm_arrival *a)
{
	for (unsigned i = 0; i < RWK_SHM_ARRIVAL_CLASSES; i++) {
		for (int way = 0; way < RWK_SHM_ARRIVAL_WAYS; way++) {
			float *to = &all->class[i].cost[way];

			all->class[i].count[way] += a->class[i].count[way];
			*to = rwk_shm_cost_least(*to, a->class[i].cost[way]);
		}
	}
}

static size_t print_class(const struct rwk_shm_arrival_class *k, unsigned class, char *buf, size_t len)
{
	static const char *const names[RWK_SHM_ARRIVAL_WAYS] = {"in pieces", "fetched"};
	bool fetched = k->count[RWK_SHM_FETCHED] > k->count[RWK_SHM_IN_PIECES];
	size_t at =
		(size_t)snprintf(buf, len, "to %7u KB: %-9s", (RWK_FETCHED_MIN << (class + 1)) / 1024, names[fetched]);

	for (int way = 0; way < RWK_SHM_ARRIVAL_WAYS && at < len; way++)
		at += rwk_shm_cost_print(buf + at, len - at, names[way], k->cost[way], k->count[way]);
	if (at < len)
		at += (size_t)snprintf(buf + at, len - at, "\n");
	return at;
}

size_t rwk_shm_arrival_print(const struct rwk_shm_arrival *a, char *buf, size_t len)
{
	size_t at = 0;

	if (len)
		buf[0] = 0;
	for (unsigned i = 0; i < RWK_SHM_ARRIVAL_CLASSES && at < len; i++) {
		if (a->class[i].count[RWK_SHM_IN_PIECES] + a->class[i].count[RWK_SHM_FETCHED])
			at += print_class(&a->class[i], i, buf + at, len - at);
	}
	return at < len ? at : len ? len - 1 : 0;
}

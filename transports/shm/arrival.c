/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/arrival.h"

#include <stdio.h>

#define FLOW       64u /* so many messages of a stream are measured as one */
#define KNOWN      5u  /* measured before the first trial: the first ones meet with memory that nobody has touched */
#define TRIAL      16u /* messages: reads have three methods to try */
#define TRIAL_FLOW (2 * FLOW + 1) /* of a stream: another flow behind one in which slabs come from afar */
#define SILENT     4u  /* one of so many has come in silence: it is a stream */
#define ASIDE_PART 128 /* 1/128 of the time goes into trials */
#define DEAR       4   /* times the way in use: dearer than that no trial is taken for */

enum circumstances { AWAITED, STREAM };

/* To be fetched a message must take less than this part of its time in pieces; and to go on so, than that one. */
static const struct {
	float begin, go_on;
} worth[] = {[AWAITED] = {0.7f, 0.75f}, [STREAM] = {0.9f, 1.1f}};

static float kilobytes(size_t length)
{
	return (float)length / 1024;
}

/* The way that the sender has been told, or is about to be. */
static enum rwk_shm_arrival_way way_in_use(const struct rwk_shm_arrival *a, unsigned class)
{
	return a->wanted >> class & 1 ? RWK_SHM_FETCHED : RWK_SHM_IN_PIECES;
}

static enum circumstances circumstances_of(const struct rwk_shm_arrival *a, unsigned class)
{
	return a->class[class].silence ? STREAM : AWAITED;
}

static void record(struct rwk_shm_runs *r, uint64_t took, uint64_t bytes)
{
	uint32_t known;

	r->recent[r->n++ % RWK_SHM_RUNS_KEPT] = (float)took / kilobytes(bytes);
	known = r->n < RWK_SHM_RUNS_KEPT ? r->n : RWK_SHM_RUNS_KEPT;
	r->least = 0;
	for (uint32_t i = 0; i < known; i++)
		r->least = rwk_shm_cost_least(r->least, r->recent[i]);
}

/* ns a KB under the circumstances; 0: not known. */
static float cost_of(const struct rwk_shm_arrival_class *k, enum rwk_shm_arrival_way way)
{
	if (k->silence)
		return k->flows[way].least;
	return way == RWK_SHM_FETCHED ? k->read : k->pieces.least;
}

/* Is so much known of the way in use that another one can be tried? */
static bool known(const struct rwk_shm_arrival_class *k, enum rwk_shm_arrival_way way)
{
	if (k->silence)
		return k->flows[way].n >= KNOWN;
	return way == RWK_SHM_FETCHED ? k->read > 0 : k->pieces.n >= KNOWN;
}

/* The better way where that one has been in use; in pieces as long as too little is known. */
static enum rwk_shm_arrival_way better(const struct rwk_shm_arrival *a, unsigned class, enum rwk_shm_arrival_way way)
{
	const struct rwk_shm_arrival_class *k = &a->class[class];
	enum circumstances c = circumstances_of(a, class);
	float part = way == RWK_SHM_FETCHED ? worth[c].go_on : worth[c].begin;
	float fetched = cost_of(k, RWK_SHM_FETCHED);

	return fetched > 0 && fetched < part * cost_of(k, RWK_SHM_IN_PIECES) ? RWK_SHM_FETCHED : RWK_SHM_IN_PIECES;
}

/* What has to be put aside for a trial, in ns a KB. A way that seemed to be much slower may have been disturbed. */
static float price(uint32_t trial, float cost, float instead)
{
	return (float)trial * (instead < DEAR * cost ? instead : DEAR * cost);
}

static bool change(struct rwk_shm_arrival *a, unsigned class)
{
	a->wanted ^= (uint8_t)(1u << class);
	a->class[class].flow.start = 0;
	return true;
}

/* Nothing speaks for the other way: is it to be tried? */
static bool try(struct rwk_shm_arrival *a, unsigned class, float cost, float instead, size_t length)
{
	struct rwk_shm_arrival_class *k = &a->class[class];
	uint32_t trial = k->silence ? TRIAL_FLOW : TRIAL;
	uint8_t under = (uint8_t)(1u << circumstances_of(a, class));

	k->aside += cost * kilobytes(length) / ASIDE_PART;
	if (k->tried & under && k->aside < price(trial, cost, instead > 0 ? instead : cost) * kilobytes(length))
		return false;
	k->tried |= under;
	k->trial = trial;
	k->aside = 0;
	return change(a, class);
}

/* What a message has cost more than by the other way is paid out of what is put aside. */
static void pay(struct rwk_shm_arrival_class *k, float cost, float instead, size_t length)
{
	if (instead > 0 && cost > instead)
		k->aside -= (cost - instead) * kilobytes(length);
}

/* A message has come: is another way to be taken? */
static bool decide(struct rwk_shm_arrival *a, unsigned class, size_t length)
{
	struct rwk_shm_arrival_class *k = &a->class[class];
	enum rwk_shm_arrival_way way = way_in_use(a, class);
	enum rwk_shm_arrival_way other = way == RWK_SHM_FETCHED ? RWK_SHM_IN_PIECES : RWK_SHM_FETCHED;
	float cost = cost_of(k, way), instead = cost_of(k, other);

	if (!k->flow.start) {
		pay(k, instead, cost, length); /* the sender has not heard of it yet */
		return false;
	}
	if (k->trial) {
		pay(k, cost, instead, length);
		return !--k->trial && better(a, class, other) != way && change(a, class);
	}
	if (!known(k, way))
		return false;
	if (instead > 0 && better(a, class, way) != way)
		return change(a, class);
	return try(a, class, cost, instead, length);
}

bool rwk_shm_arrival_measures(const struct rwk_shm_arrival *a, size_t length)
{
	const struct rwk_shm_flow *f = &a->class[rwk_fetched_class(length)].flow;

	return a->answered.start || !f->start || f->messages + 1 == FLOW;
}

void rwk_shm_arrival_begins(struct rwk_shm_arrival *a, size_t length, bool silent, uint32_t late, uint64_t now)
{
	struct rwk_shm_arrival_class *k = &a->class[rwk_fetched_class(length)];
	bool was_stream = k->silence;

	k->silence = silent ? SILENT : k->silence - was_stream;
	if (was_stream != !!k->silence)
		k->flow.start = 0;
	a->answered.start = silent ? 0 : now;
	a->answered.late = late;
}

/* One that may be answered is whole. */
static void answered(struct rwk_shm_arrival *a, struct rwk_shm_arrival_class *k, size_t length, uint64_t now)
{
	uint64_t took = now - a->answered.start;

	record(&k->pieces, took + (a->answered.late > took / 2 ? a->answered.late : 0), length);
	a->answered.start = 0;
}

/*
 * One more of a class is whole, at `now` if that is wanted. What comes the other way, as the sender lacked credit, is
 * part of it; and so are messages of other classes, which take their time.
 */
static void flows(struct rwk_shm_arrival *a, unsigned class, enum rwk_shm_arrival_way came, uint64_t now)
{
	struct rwk_shm_arrival_class *k = &a->class[class];
	struct rwk_shm_flow *f = &k->flow;
	enum rwk_shm_arrival_way way = way_in_use(a, class);

	if (!f->start && came != way)
		return;
	if (f->start && ++f->messages < FLOW)
		return;
	if (f->start && k->silence)
		record(&k->flows[way], now - f->start, a->bytes - f->bytes);
	*f = (struct rwk_shm_flow){.start = now, .bytes = a->bytes};
}

static bool whole(struct rwk_shm_arrival *a, size_t length, enum rwk_shm_arrival_way way, uint64_t now)
{
	unsigned class = rwk_fetched_class(length);

	a->class[class].count[way]++;
	a->bytes += length;
	flows(a, class, way, now);
	return decide(a, class, length);
}

bool rwk_shm_arrival_whole(struct rwk_shm_arrival *a, size_t length, uint64_t now)
{
	if (a->answered.start)
		answered(a, &a->class[rwk_fetched_class(length)], length, now);
	return whole(a, length, RWK_SHM_IN_PIECES, now);
}

bool rwk_shm_arrival_fetched(struct rwk_shm_arrival *a, size_t length, float cost, uint64_t now)
{
	a->class[rwk_fetched_class(length)].read = cost;
	return whole(a, length, RWK_SHM_FETCHED, now);
}

void rwk_shm_arrival_add(struct rwk_shm_arrivals *all, const struct rwk_shm_arrival *a)
{
	for (unsigned i = 0; i < RWK_SHM_ARRIVAL_CLASSES; i++) {
		for (int way = 0; way < RWK_SHM_ARRIVAL_WAYS; way++) {
			float *to = &all->class[i].cost[way];

			all->class[i].count[way] += a->class[i].count[way];
			*to = rwk_shm_cost_least(*to, cost_of(&a->class[i], way));
		}
	}
}

static size_t print_class(const struct rwk_shm_arrivals_class *k, unsigned class, char *buf, size_t len)
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

size_t rwk_shm_arrival_print(const struct rwk_shm_arrivals *a, char *buf, size_t len)
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

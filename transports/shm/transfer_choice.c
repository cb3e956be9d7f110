/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/transfer_choice.h"

#include <assert.h>
#include <stdio.h>

#define TRIAL_BYTES   ((size_t)1 << 20) /* of a trial, */
#define TRIAL_LEAST   4                 /* in transfers, one after the other */
#define TRIAL_MOST    16
#define ASIDE_PART    128               /* 1/128 of the time goes into trying others */
#define RUN_BYTES     ((size_t)2 << 20) /* a run that goes on is measured after so many bytes */
#define RUN_TRANSFERS 8                 /* and transfers */

static unsigned class_of(struct rwk_shm_load load)
{
	unsigned first = load.collides ? RWK_SHM_CLASSES : 0,
		 log = load.length > 1 ? 64u - (unsigned)__builtin_clzll(load.length - 1) : 0;

	if (log < RWK_SHM_CLASS_FIRST)
		return first;
	log -= RWK_SHM_CLASS_FIRST;
	return first + (log < RWK_SHM_CLASSES ? log : RWK_SHM_CLASSES - 1);
}

static float kilobytes(size_t length)
{
	return (float)length / 1024;
}

/* The cheapest whose cost is known; if none is, the first allowed. */
static enum rwk_shm_method cheapest(const struct rwk_shm_choice_class *k, unsigned allowed)
{
	int best = -1;

	for (int m = 0; m < RWK_SHM_METHODS; m++) {
		if (!(allowed & 1u << m))
			continue;
		if (best < 0 || (k->method[m].cost > 0 &&
					(k->method[best].cost <= 0 || k->method[m].cost < k->method[best].cost)))
			best = m;
	}
	return (enum rwk_shm_method)best;
}

/* The one that has been taken least often, `but` aside; `but` if there is no other. */
static enum rwk_shm_method rarest(const struct rwk_shm_choice_class *k, unsigned allowed, int but)
{
	int rare = -1;

	for (int m = 0; m < RWK_SHM_METHODS; m++) {
		if (m != but && allowed & 1u << m && (rare < 0 || k->method[m].taken < k->method[rare].taken))
			rare = m;
	}
	return (enum rwk_shm_method)(rare < 0 ? but : rare);
}

static unsigned trial_of(size_t length)
{
	size_t n = TRIAL_BYTES / (length ? length : 1);

	return n < TRIAL_LEAST ? TRIAL_LEAST : n < TRIAL_MOST ? (unsigned)n : TRIAL_MOST;
}

/* So many transfers at first by each method, in turns of TRIAL_LEAST. */
static unsigned first_of(size_t length)
{
	return length <= TRIAL_BYTES / TRIAL_MOST ? 2 * TRIAL_LEAST : TRIAL_LEAST;
}

static enum rwk_shm_method trial_begin(struct rwk_shm_choice_class *k, enum rwk_shm_method m, unsigned transfers)
{
	k->trial = m;
	k->trial_left = transfers - 1;
	return m;
}

/* What there is for trials after one more transfer of `best`, in ns. */
static float aside_after(const struct rwk_shm_choice_class *k, enum rwk_shm_method best, size_t length)
{
	return k->aside + k->method[best].cost * kilobytes(length) / ASIDE_PART;
}

/* What a trial of `other` takes, by what is known, in ns. */
static float price_of(const struct rwk_shm_choice_class *k, enum rwk_shm_method other, size_t length)
{
	return (float)trial_of(length) * k->method[other].cost * kilobytes(length);
}

/* The cheapest, or another one for which enough has been put aside. */
static enum rwk_shm_method known_or_trial(struct rwk_shm_choice_class *k, size_t length, unsigned allowed)
{
	enum rwk_shm_method best = cheapest(k, allowed), other = rarest(k, allowed, (int)best);
	float price = price_of(k, other, length);

	if (other == best)
		return best;
	k->aside = aside_after(k, best, length);
	if (k->aside < price)
		return best;
	k->aside -= price;
	return trial_begin(k, other, trial_of(length));
}

bool rwk_shm_choice_take(struct rwk_shm_choice *c, enum rwk_shm_method m, struct rwk_shm_load load, unsigned allowed)
{
	struct rwk_shm_choice_class *k = &c->class[class_of(load)];
	enum rwk_shm_method other = rarest(k, allowed, (int)m);
	float aside = aside_after(k, m, load.length);
	unsigned first = first_of(load.length);

	if (k->trial_left || k->method[m].taken < first || k->method[other].taken < first ||
		cheapest(k, allowed) != m || aside >= price_of(k, other, load.length))
		return false;
	k->aside = aside;
	k->method[m].taken++;
	return true;
}

enum rwk_shm_method rwk_shm_choice_pick(struct rwk_shm_choice *c, struct rwk_shm_load load, unsigned allowed)
{
	struct rwk_shm_choice_class *k = &c->class[class_of(load)];
	enum rwk_shm_method m = rarest(k, allowed, -1);

	if (k->trial_left && allowed & 1u << k->trial) {
		k->trial_left--;
		m = k->trial;
	} else if (k->method[m].taken < first_of(load.length)) {
		m = trial_begin(k, m, TRIAL_LEAST);
	} else {
		m = known_or_trial(k, load.length, allowed);
	}
	k->method[m].taken++;
	return m;
}

void rwk_shm_choice_record(
	struct rwk_shm_choice *c, enum rwk_shm_method m, struct rwk_shm_load load, size_t bytes, uint64_t ns)
{
	struct rwk_shm_choice_method *k = &c->class[class_of(load)].method[m];
	uint32_t known;

	assert(m < RWK_SHM_METHODS);
	k->recent[k->runs++ % RWK_SHM_RUNS_KEPT] = (float)(ns ? ns : 1) / kilobytes(bytes ? bytes : 1);
	known = k->runs < RWK_SHM_RUNS_KEPT ? k->runs : RWK_SHM_RUNS_KEPT;
	k->cost = k->recent[0];
	for (uint32_t i = 1; i < known; i++)
		k->cost = k->recent[i] < k->cost ? k->recent[i] : k->cost;
}

bool rwk_shm_choice_alike(struct rwk_shm_load a, struct rwk_shm_load b)
{
	return class_of(a) == class_of(b);
}

/* Of a run of which most had come before it began nothing can be said. */
static void run_close(struct rwk_shm_pace *p, uint64_t end, size_t ahead)
{
	size_t bytes = p->run.bytes + ahead;

	if (bytes > p->run.ahead && bytes - p->run.ahead >= p->run.bytes / 2)
		rwk_shm_choice_record(&p->choice, p->run.method, p->run.load, bytes - p->run.ahead, end - p->run.start);
	p->run.bytes = 0;
}

void rwk_shm_pace_done(struct rwk_shm_pace *p, enum rwk_shm_method m, struct rwk_shm_load load, uint64_t started,
	uint64_t now, bool more)
{
	bool alike = p->inside || (p->run.method == m && rwk_shm_choice_alike(p->run.load, load));

	if (p->run.bytes && !alike)
		run_close(p, p->last_done, p->ahead_then);
	if (!p->run.bytes) {
		p->run.first = p->run.method != m; /* that of the run before */
		p->run.start = started > p->last_done ? started : p->last_done;
		p->run.ahead = started > p->last_done ? 0 : p->ahead_then;
		p->run.method = m;
		p->run.load = load;
		p->run.transfers = 0;
	}
	p->run.bytes += load.length;
	p->run.transfers++;
	p->last_done = now;
	p->inside = p->of_call;
	if (p->inside)
		return;
	p->ahead_then = p->ahead;
	if ((p->run.bytes >= RUN_BYTES && p->run.transfers >= RUN_TRANSFERS) || !more || p->run.first)
		run_close(p, now, p->ahead);
}

uint64_t rwk_shm_choice_expect(
	const struct rwk_shm_choice *c, enum rwk_shm_method m, struct rwk_shm_load load, float otherwise)
{
	float cost = c->class[class_of(load)].method[m].cost;

	return (uint64_t)((cost > 0 ? cost : otherwise) * kilobytes(load.length));
}

float rwk_shm_choice_least(const struct rwk_shm_choice *c, struct rwk_shm_load load)
{
	const struct rwk_shm_choice_class *k = &c->class[class_of(load)];

	return k->method[cheapest(k, (1u << RWK_SHM_METHODS) - 1)].cost;
}

const char *rwk_shm_method_name(enum rwk_shm_method m)
{
	static const char *const names[RWK_SHM_METHODS] = {"stage", "pull", "both"};

	return m < RWK_SHM_METHODS ? names[m] : "?";
}

float rwk_shm_cost_least(float a, float b)
{
	return a > 0 && (b <= 0 || a < b) ? a : b;
}

size_t rwk_shm_cost_print(char *buf, size_t len, const char *name, float cost, uint64_t times)
{
	if (cost <= 0)
		return 0;
	return (size_t)snprintf(
		buf, len, "  %s %.1f GB/s (%llu)", name, (double)(1024 / cost), (unsigned long long)times);
}

void rwk_shm_choice_add(struct rwk_shm_choice *all, const struct rwk_shm_choice *c)
{
	for (int i = 0; i < 2 * (int)RWK_SHM_CLASSES; i++) {
		for (int m = 0; m < RWK_SHM_METHODS; m++) {
			struct rwk_shm_choice_method *to = &all->class[i].method[m];
			const struct rwk_shm_choice_method *from = &c->class[i].method[m];

			to->taken += from->taken;
			to->cost = rwk_shm_cost_least(to->cost, from->cost);
		}
	}
}

static size_t print_class(const struct rwk_shm_choice_class *k, unsigned log, const char *what, char *buf, size_t len)
{
	size_t at = (size_t)snprintf(buf, len, "to %7zu KB%s: %-5s", ((size_t)1 << log) / 1024, what,
		rwk_shm_method_name(cheapest(k, (1u << RWK_SHM_METHODS) - 1)));

	for (int m = 0; m < RWK_SHM_METHODS && at < len; m++) {
		at += rwk_shm_cost_print(buf + at, len - at, rwk_shm_method_name((enum rwk_shm_method)m),
			k->method[m].cost, k->method[m].taken);
	}
	if (at < len)
		at += (size_t)snprintf(buf + at, len - at, "\n");
	return at < len ? at : len;
}

size_t rwk_shm_choice_print(const struct rwk_shm_choice *c, char *buf, size_t len)
{
	size_t at = 0;

	if (len)
		buf[0] = 0;
	for (unsigned i = 0; i < 2 * RWK_SHM_CLASSES && at < len; i++) {
		const struct rwk_shm_choice_class *k = &c->class[i];

		if (k->method[RWK_SHM_STAGE].taken || k->method[RWK_SHM_PULL].taken || k->method[RWK_SHM_BOTH].taken)
			at += print_class(k, i % RWK_SHM_CLASSES + RWK_SHM_CLASS_FIRST,
				i < RWK_SHM_CLASSES ? "" : " askew", buf + at, len - at);
	}
	return at < len ? at : len ? len - 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations by several threads on one word: for each type and operation that leaves a trace if one of them gets
 * lost, that trace; and short random histories of all operations, for which an order must be found that explains every
 * result and keeps what was over before what began after. What an operation makes of two values: test_atomic.c.
 */
#include "rwk_test.h"

#include "engine/atomic.h"

#include <elf.h>
#include <float.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/auxv.h>

#define THREADS 3
#define WIDEST  16
#define ROUNDS  60000 /* operations of each thread on one word; even */

/* The word has its cache line to itself. */
struct shared {
	_Alignas(128) unsigned char word[128];
	atomic_uint ready;
	unsigned type, op;
	atomic_uint wrong;
	atomic_uint seen[THREADS * ROUNDS + 1];
	uint64_t guarded; /* by the word as a lock */
};

struct worker {
	struct shared *s;
	unsigned number;
	unsigned char token[WIDEST];
};

/* A small number as an element of any type, and back. */
static void put(unsigned type, int value, void *bytes)
{
	const float f[2] = {value, 0};
	const double d[2] = {value, 0};
	const long double ld = value;
	const int64_t i[2] = {value, value < 0 ? -1 : 0};

	if (type == RWK_FLOAT || type == RWK_FLOAT_COMPLEX)
		memcpy(bytes, f, rwk_atomic_size(type));
	else if (type == RWK_DOUBLE || type == RWK_DOUBLE_COMPLEX)
		memcpy(bytes, d, rwk_atomic_size(type));
	else if (type == RWK_LONG_DOUBLE)
		memcpy(bytes, &ld, sizeof(ld));
	else
		memcpy(bytes, i, rwk_atomic_size(type));
}

static int64_t get(unsigned type, const void *bytes)
{
	uint64_t i = 0;
	float f;
	double d;
	long double ld;

	if (type == RWK_FLOAT || type == RWK_FLOAT_COMPLEX)
		return (int64_t) * (float *)memcpy(&f, bytes, sizeof(f));
	if (type == RWK_DOUBLE || type == RWK_DOUBLE_COMPLEX)
		return (int64_t) * (double *)memcpy(&d, bytes, sizeof(d));
	if (type == RWK_LONG_DOUBLE)
		return (int64_t) * (long double *)memcpy(&ld, bytes, sizeof(ld));
	memcpy(&i, bytes, rwk_atomic_size(type) < 8 ? rwk_atomic_size(type) : 8);
	return (int64_t)i;
}

/* One operation with small numbers. Returns what stood there before. */
static int64_t act(struct shared *s, unsigned op, int operand, int comparand)
{
	unsigned char v[WIDEST], c[WIDEST], r[WIDEST];

	put(s->type, operand, v);
	put(s->type, comparand, c);
	rwk_atomic_do(op, s->type, s->word, v, c, r, 1);
	return get(s->type, r);
}

static void expect(struct shared *s, bool right)
{
	if (!right)
		atomic_fetch_add(&s->wrong, 1);
}

/* Waits for the others, so that all begin together. */
static void meet(struct shared *s)
{
	atomic_fetch_add(&s->ready, 1);
	while (atomic_load(&s->ready) < THREADS)
		sched_yield();
}

/* Runs the threads on a word that starts with that number, and returns the last one. */
static int64_t run(struct shared *s, unsigned type, unsigned op, int start, void *(*work)(void *), struct worker *w)
{
	pthread_t id[THREADS];

	memset(s, 0, sizeof(*s));
	s->type = type;
	s->op = op;
	put(type, start, s->word);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i].s = s;
		w[i].number = i;
		assert_int_equal(pthread_create(&id[i], NULL, work, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(id[i], NULL), 0);
	if (s->wrong)
		fail_msg("operation %u on type %u: %u results are wrong", op, type, s->wrong);
	return get(type, s->word);
}

static struct shared shared;
static struct worker workers[THREADS];

/* The first type from `type` on that knows the operation. */
static unsigned next(unsigned op, unsigned type)
{
	while (type < RWK_ATOMIC_TYPES && !rwk_atomic_valid(op, type))
		type++;
	return type;
}

static bool is_integer(unsigned type)
{
	return type <= RWK_UINT64 || type >= RWK_INT128;
}

/* Sums that a type can tell from each other: floats count to 2^24. */
static unsigned sums(unsigned type)
{
	size_t size = rwk_atomic_size(type);

	return !is_integer(type) || size >= 4 ? THREADS * ROUNDS : 1u << 8 * size;
}

static void *add_one(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->s;

	meet(s);
	for (unsigned i = 0; i < ROUNDS; i++) {
		int64_t before = act(s, RWK_SUM, 1, 0);

		if (before >= 0 && before < THREADS * ROUNDS)
			atomic_fetch_add(&s->seen[before], 1);
		else
			expect(s, false);
	}
	return NULL;
}

/* Each number is fetched once; in narrow words as often as they have gone round. */
static void sum(void **state)
{
	(void)state;
	for (unsigned type = next(RWK_SUM, 0); type < RWK_ATOMIC_TYPES; type = next(RWK_SUM, type + 1)) {
		unsigned n = sums(type), all = THREADS * ROUNDS;

		assert_int_equal(run(&shared, type, RWK_SUM, 0, add_one, workers), n == all ? all : all % n);
		for (unsigned i = 0; i < n && i < all; i++)
			assert_int_equal(shared.seen[i], all / n + (i < all % n));
	}
}

static void *flip(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->s;
	int operand = s->op == RWK_PROD ? -1 : 1;

	meet(s);
	for (unsigned i = 0; i < ROUNDS; i++)
		expect(s, atomic_fetch_add(&s->seen[act(s, s->op, operand, 0) == 1], 1) < THREADS * ROUNDS);
	return NULL;
}

/* 1, -1, 1, -1, ... or 1, 0, 1, 0, ...: half of the results are 1, and so is the end. */
static void flips(void **state)
{
	static const unsigned ops[] = {RWK_PROD, RWK_LXOR};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned type = next(ops[i], 0); type < RWK_ATOMIC_TYPES; type = next(ops[i], type + 1)) {
			assert_int_equal(run(&shared, type, ops[i], 1, flip, workers), 1);
			assert_int_equal(shared.seen[0], THREADS * ROUNDS / 2);
			assert_int_equal(shared.seen[1], THREADS * ROUNDS / 2);
		}
	}
}

static void *hand_on(void *arg)
{
	struct worker *w = arg;

	meet(w->s);
	for (unsigned i = 0; i < ROUNDS; i++)
		rwk_atomic_do(RWK_ATOMIC_WRITE, w->s->type, w->s->word, w->token, NULL, w->token, 1);
	return NULL;
}

/* Each thread has a token, and one lies in the word: however often they are exchanged, they are the same four. */
static void exchange(void **state)
{
	(void)state;
	for (unsigned type = next(RWK_ATOMIC_WRITE, 0); type < RWK_ATOMIC_TYPES;
		type = next(RWK_ATOMIC_WRITE, type + 1)) {
		unsigned found = 0;

		for (unsigned i = 0; i < THREADS; i++)
			put(type, (int)i, workers[i].token);
		found = 1u << run(&shared, type, RWK_ATOMIC_WRITE, THREADS, hand_on, workers);
		for (unsigned i = 0; i < THREADS; i++)
			found |= 1u << get(type, workers[i].token);
		assert_int_equal(found, (1u << (THREADS + 1)) - 1);
	}
}

static bool is_uniform(unsigned type, const unsigned char *bytes)
{
	size_t size = type == RWK_LONG_DOUBLE && LDBL_MANT_DIG == 64 ? 10 : rwk_atomic_size(type);

	return size == 1 || !memcmp(bytes, bytes + 1, size - 1);
}

static void *write_and_read(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->s;
	unsigned char v[WIDEST], r[WIDEST];

	meet(s);
	for (unsigned i = 0; i < ROUNDS; i++) {
		memset(v, (int)(i * THREADS + w->number), sizeof(v));
		rwk_atomic_do(RWK_ATOMIC_WRITE, s->type, s->word, v, NULL, i % 4 ? r : NULL, 1);
		expect(s, i % 4 == 0 || is_uniform(s->type, r));
		rwk_atomic_do(RWK_ATOMIC_READ, s->type, s->word, NULL, NULL, r, 1);
		expect(s, is_uniform(s->type, r));
	}
	memset(v, 0, sizeof(v)); /* a number again */
	rwk_atomic_do(RWK_ATOMIC_WRITE, s->type, s->word, v, NULL, NULL, 1);
	return NULL;
}

/* Elements are written and read in one piece: all bytes of each that is written are the same. */
static void in_one_piece(void **state)
{
	(void)state;
	for (unsigned type = next(RWK_ATOMIC_READ, 0); type < RWK_ATOMIC_TYPES; type = next(RWK_ATOMIC_READ, type + 1))
		run(&shared, type, RWK_ATOMIC_READ, 0, write_and_read, workers);
}

static void *count_guarded(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->s;

	meet(s);
	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		while (act(s, s->op, 1, s->op == RWK_CSWAP ? 0 : 1) != 0)
			sched_yield();
		/* Two steps, between which another may come if the lock does not keep it out. */
		__atomic_store_n(&s->guarded, __atomic_load_n(&s->guarded, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
		expect(s, act(s, RWK_ATOMIC_WRITE, 0, 0) == 1);
	}
	return NULL;
}

/* A lock: 0 is swapped for 1, if it is there (CSWAP) or if 1 is not (CSWAP_NE). */
static void lock(void **state)
{
	static const unsigned ops[] = {RWK_CSWAP, RWK_CSWAP_NE};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned type = next(ops[i], 0); type < RWK_ATOMIC_TYPES; type = next(ops[i], type + 1)) {
			assert_int_equal(run(&shared, type, ops[i], 0, count_guarded, workers), 0);
			assert_int_equal(shared.guarded, THREADS * (ROUNDS / 4));
		}
	}
}

static int bound(struct worker *w, unsigned i)
{
	int step = (int)(i / (ROUNDS / 40)) * THREADS + (int)w->number;

	return w->s->op == RWK_MIN || w->s->op == RWK_CSWAP_LT ? 127 - step : step;
}

static void *push(void *arg)
{
	struct worker *w = arg;
	bool down = w->s->op == RWK_MIN || w->s->op == RWK_CSWAP_LT;
	int64_t last = down ? 127 : 0;

	meet(w->s);
	for (unsigned i = 0; i < ROUNDS; i++) {
		int64_t before = act(w->s, w->s->op, bound(w, i), bound(w, i));

		expect(w->s, down ? before <= last : before >= last);
		last = bound(w, i);
		if (down ? before < last : before > last)
			last = before;
	}
	return NULL;
}

/* The word goes up (or down) alone, past what each thread has seen and set; the end is the utmost. */
static void bounds(void **state)
{
	static const unsigned ops[] = {RWK_MIN, RWK_MAX, RWK_CSWAP_LT, RWK_CSWAP_GT};
	const int utmost = 39 * THREADS + THREADS - 1;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool down = ops[i] == RWK_MIN || ops[i] == RWK_CSWAP_LT;

		for (unsigned type = next(ops[i], 0); type < RWK_ATOMIC_TYPES; type = next(ops[i], type + 1))
			assert_int_equal(run(&shared, type, ops[i], down ? 127 : 0, push, workers),
				down ? 127 - utmost : utmost);
	}
}

/* Writes two bits of its own, and finds in each result what it wrote last. */
static void *own_bits(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->s;
	int shift = 2 * (int)w->number, mask = 3 << shift, value = 0;

	meet(s);
	for (unsigned i = 0; i < ROUNDS; i++) {
		int bits = (int)(i * 7 / 3 % 4) << shift;
		int64_t before;

		if (s->op == RWK_MSWAP)
			before = act(s, RWK_MSWAP, bits | ~mask, mask);
		else if (s->op == RWK_BXOR)
			before = act(s, RWK_BXOR, bits ^ value, 0);
		else if (i % 2)
			before = act(s, RWK_BOR, bits |= value, 0);
		else
			before = act(s, RWK_BAND, (bits &= value) | ~mask, 0);
		expect(s, (before & mask) == value);
		value = bits;
	}
	s->seen[w->number] = (unsigned)value;
	return NULL;
}

/* Bits of one word that belong to different threads. */
static void bits(void **state)
{
	static const unsigned ops[] = {RWK_BXOR, RWK_BOR, RWK_MSWAP};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned type = next(ops[i], 0); type < RWK_ATOMIC_TYPES; type = next(ops[i], type + 1)) {
			int64_t last = run(&shared, type, ops[i], 0, own_bits, workers);

			assert_int_equal(last, shared.seen[0] | shared.seen[1] | shared.seen[2]);
		}
	}
}

/*
 * Histories. Each thread makes a few random operations and notes what it got, and when it began and ended by a clock
 * that all share.
 */
#define STEPS     4
#define HISTORIES 1000 /* of each type */

struct step {
	unsigned op, began, ended;
	unsigned char operand[WIDEST], comparand[WIDEST], result[WIDEST];
};

struct history {
	unsigned type;
	_Alignas(64) unsigned char first[WIDEST], last[WIDEST]; /* last: the word that they work on */
	struct step step[THREADS][STEPS];
};

/* May this thread's next step be the next of all? Not if another's, not taken yet, was over before it began. */
static bool may_be_next(const struct history *h, const unsigned *taken, unsigned thread)
{
	for (unsigned i = 0; i < THREADS; i++) {
		if (taken[i] < STEPS && h->step[i][taken[i]].ended < h->step[thread][taken[thread]].began)
			return false;
	}
	return true;
}

/* Whether what is left of the history can have happened to a word with that value. */
static bool explained(const struct history *h, const unsigned *taken, const unsigned char *value)
{
	size_t size = rwk_atomic_size(h->type);
	bool all_taken = true;

	for (unsigned i = 0; i < THREADS; i++) {
		const struct step *s = &h->step[i][taken[i]];
		_Alignas(WIDEST) unsigned char word[WIDEST];
		unsigned char result[WIDEST];
		unsigned next[THREADS];

		if (taken[i] == STEPS)
			continue;
		all_taken = false;
		if (!may_be_next(h, taken, i))
			continue;
		memcpy(word, value, WIDEST);
		rwk_atomic_do(s->op, h->type, word, s->operand, s->comparand, result, 1);
		if (memcmp(result, s->result, size))
			continue;
		memcpy(next, taken, sizeof(next));
		next[i]++;
		if (explained(h, next, word))
			return true;
	}
	return all_taken && !memcmp(value, h->last, size);
}

static bool is_linearizable(const struct history *h)
{
	static const unsigned none[THREADS];

	return explained(h, none, h->first);
}

/* The judge finds what is wrong: with a result, with the end, with the time. */
static void judge_is_strict(void **state)
{
	struct history h = {.type = RWK_UINT64};

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned k = 0; k < STEPS; k++) {
			struct step *s = &h.step[i][k];

			/* Thread after thread, but all of them within one span. */
			*s = (struct step){.op = RWK_SUM, .began = 0, .ended = 100};
			put(h.type, 1, s->operand);
			put(h.type, (int)(i * STEPS + k), s->result);
		}
	}
	put(h.type, THREADS * STEPS, h.last);
	assert_true(is_linearizable(&h));
	put(h.type, THREADS * STEPS - 1, h.last);
	assert_false(is_linearizable(&h));
	put(h.type, THREADS * STEPS, h.last);
	put(h.type, 0, h.step[1][0].result);
	assert_false(is_linearizable(&h));
	put(h.type, STEPS, h.step[1][0].result);
	h.step[1][0].ended = 2;
	assert_true(is_linearizable(&h));
	h.step[0][3].began = 3;
	assert_false(is_linearizable(&h));
}

struct player {
	struct history *h; /* HISTORIES of them, each with a word of its own */
	unsigned number;
	uint64_t seed;
	const unsigned *ops;
	unsigned count;
};

static atomic_uint arrived, clock_;

static unsigned draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*seed >> 40);
}

static void play_one(struct player *p, struct history *h)
{
	for (unsigned i = 0; i < STEPS; i++) {
		struct step *s = &h->step[p->number][i];

		s->op = p->ops[draw(&p->seed) % p->count];
		put(h->type, (int)(draw(&p->seed) % 4), s->operand);
		put(h->type, (int)(draw(&p->seed) % 4), s->comparand);
		s->began = atomic_fetch_add(&clock_, 1);
		if (draw(&p->seed) % 64 == 0)
			sched_yield(); /* there are more players than cores */
		rwk_atomic_do(s->op, h->type, h->last, s->operand, s->comparand, s->result, 1);
		s->ended = atomic_fetch_add(&clock_, 1);
	}
}

/* Begins each history with the others, but waits only a moment: nobody has to be there. */
static void *play(void *arg)
{
	struct player *p = arg;

	for (unsigned i = 0; i < HISTORIES; i++) {
		atomic_fetch_add(&arrived, 1);
		for (unsigned spins = 0; spins < 500 && atomic_load(&arrived) < (i + 1) * THREADS; spins++)
			;
		play_one(p, &p->h[i]);
	}
	return NULL;
}

static bool has_overlap(const struct history *h)
{
	for (unsigned i = 0; i < THREADS * STEPS; i++) {
		if (h->step[i / STEPS][i % STEPS].ended > h->step[i / STEPS][i % STEPS].began + 1)
			return true;
	}
	return false;
}

/* HISTORIES of that type. Returns how many had steps of different threads within each other's time. */
static unsigned play_histories(unsigned type, struct history *h)
{
	unsigned ops[RWK_ATOMIC_OPS], count = 0, overlapping = 0, wrong = 0;
	struct player player[THREADS];
	pthread_t id[THREADS];

	for (unsigned op = 0; op < RWK_ATOMIC_OPS; op++) {
		if (rwk_atomic_valid(op, type))
			ops[count++] = op;
	}
	arrived = 0;
	clock_ = 0;
	memset(h, 0, HISTORIES * sizeof(*h));
	for (unsigned i = 0; i < HISTORIES; i++) {
		h[i].type = type;
		put(type, 1, h[i].first);
		put(type, 1, h[i].last);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		player[i] = (struct player){h, i, 100 * type + i, ops, count};
		assert_int_equal(pthread_create(&id[i], NULL, play, &player[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(id[i], NULL), 0);
	for (unsigned i = 0; i < HISTORIES; i++) {
		wrong += !is_linearizable(&h[i]);
		overlapping += has_overlap(&h[i]);
	}
	if (wrong)
		fail_msg("type %u: no order explains %u of %u histories", type, wrong, HISTORIES);
	return overlapping;
}

static void histories(void **state)
{
	static struct history h[HISTORIES];
	unsigned overlapping = 0;

	(void)state;
	for (unsigned type = next(RWK_ATOMIC_READ, 0); type < RWK_ATOMIC_TYPES; type = next(RWK_ATOMIC_READ, type + 1))
		overlapping += play_histories(type, h);
	print_message("%u histories with steps at the same time\n", overlapping);
	assert_true(overlapping > 0);
}

#if defined(__x86_64__)

/*
 * cmpxchg16b: REX.W 0f c7 /1 with an operand in memory. What is missing without its prefix shows only where two
 * processors are at it at the same moment, and a busy machine may not have two for us: so its code is looked at.
 */
static bool is_swap_of_16(const unsigned char *code)
{
	return (code[0] & 0xf8) == 0x48 && code[1] == 0x0f && code[2] == 0xc7 && (code[3] & 0x38) == 0x08 &&
	       code[3] < 0xc0;
}

static unsigned swaps_of_16_in(const unsigned char *code, size_t len)
{
	unsigned found = 0;

	for (size_t at = 1; at + 4 <= len; at++) {
		if (!is_swap_of_16(code + at))
			continue;
		assert_int_equal(code[at - 1], 0xf0);
		found++;
	}
	return found;
}

static void swaps_of_16_are_locked(void **state)
{
	const Elf64_Phdr *segment = (const Elf64_Phdr *)getauxval(AT_PHDR);
	const unsigned char *program = NULL;
	unsigned found = 0;

	(void)state;
	for (unsigned i = 0; i < getauxval(AT_PHNUM); i++) {
		if (segment[i].p_type == PT_PHDR)
			program = (const unsigned char *)segment - segment[i].p_vaddr;
		if (segment[i].p_type == PT_LOAD && segment[i].p_flags & PF_X)
			found += swaps_of_16_in(program + segment[i].p_vaddr, segment[i].p_filesz);
	}
	assert_true(found > 0);
}

#else

static void swaps_of_16_are_locked(void **state)
{
	(void)state; /* an exclusive pair either succeeds or does not */
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sum),
		cmocka_unit_test(flips),
		cmocka_unit_test(exchange),
		cmocka_unit_test(in_one_piece),
		cmocka_unit_test(lock),
		cmocka_unit_test(bounds),
		cmocka_unit_test(bits),
		cmocka_unit_test(swaps_of_16_are_locked),
		cmocka_unit_test(judge_is_strict),
		cmocka_unit_test(histories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

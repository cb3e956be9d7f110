/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One word, changed by all at once: by ranks that reach it over each link, a target a link, whose progress is
 * automatic, and by a thread of one target with the CPU's own instructions. The targets have the word mapped, as the
 * processes of a node may. What each operation fetched shows that there is an order of them all: none is lost, none
 * done twice.
 */
#include "fi_target.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINKS  3 /* t_links: shm, udp, tcp */
#define ACTORS (LINKS + 1)
#define TURNS  256 /* operations of each actor */
#define BATCH  16  /* of these under way */
#define ALL    (ACTORS * TURNS)
#define KEY    77

enum what { ADD, EXCHANGE, COUNT_UP };

static const struct {
	enum what what;
	enum fi_datatype type;
} rounds[] = {{ADD, FI_INT8}, {ADD, FI_UINT16}, {ADD, FI_INT32}, {ADD, FI_UINT64}, {ADD, FI_FLOAT}, {ADD, FI_DOUBLE},
	{EXCHANGE, FI_UINT16}, {EXCHANGE, FI_INT32}, {EXCHANGE, FI_UINT64}, {EXCHANGE, FI_DOUBLE},
	{COUNT_UP, FI_UINT16}, {COUNT_UP, FI_INT32}, {COUNT_UP, FI_UINT64}, {COUNT_UP, FI_FLOAT}};

#define ROUNDS (sizeof(rounds) / sizeof(rounds[0]))

/* In memory that all processes share. */
struct board {
	_Alignas(128) uint64_t word;
	_Alignas(128) atomic_uint arrived;
	atomic_uint seen[ROUNDS][ALL + 1]; /* how often a value was fetched */
	uint64_t left[ROUNDS];             /* what stood there in the end */
};

static struct board *board;

static unsigned width_of(enum fi_datatype type)
{
	static const unsigned width[] = {[FI_INT8] = 1, [FI_UINT16] = 2, [FI_INT32] = 4, [FI_UINT64] = 8,
		[FI_FLOAT] = 4, [FI_DOUBLE] = 8};

	return width[type];
}

/* A number as an element of a type, and back. */
static uint64_t element_of(enum fi_datatype type, uint64_t n)
{
	float f = (float)n;
	double d = (double)n;
	uint64_t bits = 0;

	if (type == FI_FLOAT)
		memcpy(&bits, &f, sizeof(f));
	else if (type == FI_DOUBLE)
		memcpy(&bits, &d, sizeof(d));
	else
		memcpy(&bits, &n, width_of(type));
	return bits;
}

static uint64_t number_of(enum fi_datatype type, uint64_t bits)
{
	float f;
	double d;

	memcpy(&f, &bits, sizeof(f));
	memcpy(&d, &bits, sizeof(d));
	return type == FI_FLOAT ? (uint64_t)f : type == FI_DOUBLE ? (uint64_t)d : bits;
}

/* All actors have come to this place for the n-th time. Nothing of theirs is under way. */
static void meet(unsigned n)
{
	int64_t end = t_now() + T_PATIENCE;

	atomic_fetch_add(&board->arrived, 1);
	while (atomic_load(&board->arrived) < n * ACTORS) {
		sched_yield();
		assert_true(t_now() < end);
	}
}

static void saw(unsigned round, uint64_t bits)
{
	uint64_t n = number_of(rounds[round].type, bits);

	assert_true(n <= ALL);
	atomic_fetch_add(&board->seen[round][n], 1);
}

/* What an actor of that number writes in its turn. */
static uint64_t operand_of(unsigned round, unsigned actor, unsigned turn)
{
	return element_of(rounds[round].type, rounds[round].what == EXCHANGE ? 1 + actor * TURNS + turn : 1);
}

/* The CPU's thread: as the provider should do it, on words of each width. */
static bool swap(unsigned width, uint64_t *expected, uint64_t desired)
{
	const int order = __ATOMIC_SEQ_CST;
	void *at = &board->word, *was = expected;

	switch (width) {
	case 1:
		return __atomic_compare_exchange_n((uint8_t *)at, (uint8_t *)was, (uint8_t)desired, 0, order, order);
	case 2:
		return __atomic_compare_exchange_n((uint16_t *)at, (uint16_t *)was, (uint16_t)desired, 0, order, order);
	case 4:
		return __atomic_compare_exchange_n((uint32_t *)at, (uint32_t *)was, (uint32_t)desired, 0, order, order);
	default:
		return __atomic_compare_exchange_n((uint64_t *)at, expected, desired, 0, order, order);
	}
}

static void by_hand(unsigned round)
{
	enum fi_datatype type = rounds[round].type;

	for (unsigned turn = 0; turn < TURNS; turn++) {
		uint64_t old = 0, operand = operand_of(round, LINKS, turn), fresh = operand;

		do {
			if (rounds[round].what != EXCHANGE)
				fresh = element_of(type, number_of(type, old) + 1);
		} while (!swap(width_of(type), &old, fresh));
		saw(round, old);
		if (turn % 8 == 0)
			sched_yield(); /* there are more actors than cores */
	}
}

static void batch(struct t_end *e, fi_addr_t to, unsigned round, unsigned actor, unsigned turn)
{
	uint64_t operand[BATCH], was[BATCH] = {0};

	for (unsigned i = 0; i < BATCH; i++) {
		operand[i] = operand_of(round, actor, turn + i);
		t_post(fi_fetch_atomic(e->ep, &operand[i], 1, NULL, &was[i], NULL, to, 0, KEY, rounds[round].type,
			       rounds[round].what == ADD ? FI_SUM : FI_ATOMIC_WRITE, NULL),
			e->cq, NULL);
	}
	for (unsigned i = 0; i < BATCH; i++)
		t_wait(e->cq, NULL, NULL);
	for (unsigned i = 0; i < BATCH; i++)
		saw(round, was[i]);
}

/* Adds one by comparing, until it has succeeded so often. */
static void count_up(struct t_end *e, fi_addr_t to, unsigned round)
{
	enum fi_datatype type = rounds[round].type;
	uint64_t old = 0, was, fresh;

	for (unsigned turn = 0; turn < TURNS;) {
		fresh = element_of(type, number_of(type, old) + 1);
		was = 0;
		t_post(fi_compare_atomic(e->ep, &fresh, 1, NULL, &old, NULL, &was, NULL, to, 0, KEY, type, FI_CSWAP,
			       NULL),
			e->cq, NULL);
		t_wait(e->cq, NULL, NULL);
		if (was == old) {
			saw(round, was);
			turn++;
		}
		old = was;
	}
}

static void play(struct t_end *e, fi_addr_t to, unsigned actor)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		meet(2 * round + 1);
		if (!e)
			by_hand(round);
		else if (rounds[round].what == COUNT_UP)
			count_up(e, to, round);
		else
			for (unsigned turn = 0; turn < TURNS; turn += BATCH)
				batch(e, to, round, actor, turn);
		meet(2 * round + 2);
		if (!e) { /* the others wait at the next round's beginning */
			board->left[round] = board->word;
			board->word = 0;
		}
	}
}

static void open_end(struct t_domain *d, struct t_end *e)
{
	struct fi_info *hints = t_hints();

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	t_domain_open_with(d, hints);
	t_end_open(e, d, &(struct t_options){0});
}

/* That of the first link has the thread that does it by hand. */
static void target(struct t_process *p)
{
	struct t_domain d;
	struct fid_mr *mr;
	struct t_end e;

	open_end(&d, &e);
	assert_int_equal(fi_mr_reg(d.domain, &board->word, sizeof(board->word), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
				 KEY, 0, &mr, NULL),
		0);
	t_greet(p, &e);
	if (p->link == t_links[0])
		play(NULL, 0, LINKS);
	t_meet(p, NULL);
	assert_int_equal(fi_close(&mr->fid), 0);
	t_end_close(&e);
	t_domain_close(&d);
}

static void initiator(struct t_process *p)
{
	unsigned actor = 0;
	struct t_domain d;
	struct t_end e;
	fi_addr_t to;

	while (p->link != t_links[actor])
		actor++;
	open_end(&d, &e);
	to = t_greet(p, &e);
	play(&e, to, actor);
	t_meet(p, e.cq);
	t_end_close(&e);
	t_domain_close(&d);
}

/* Every value that there has been was fetched as often as it has been there. */
static void check_round(unsigned round)
{
	unsigned values = rounds[round].type == FI_INT8 ? 256 : ALL;
	bool exchange = rounds[round].what == EXCHANGE;

	if (exchange) /* the last one was fetched by nobody */
		board->seen[round][number_of(rounds[round].type, board->left[round])]++;
	else
		assert_int_equal(board->left[round], element_of(rounds[round].type, values == 256 ? 0 : ALL));
	for (unsigned n = 0; n < values + exchange; n++) {
		if (board->seen[round][n] != (exchange ? 1 : ALL / values))
			fail_msg("round %u: %u was fetched %u times", round, n, board->seen[round][n]);
	}
}

static void one_word(void **state)
{
	pid_t pids[LINKS];
	int status;

	(void)state;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(board != MAP_FAILED);
	for (unsigned i = 0; i < LINKS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i])
			continue;
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		t_two(t_links[i], target, initiator, NULL);
		_exit(0);
	}
	for (unsigned i = 0; i < LINKS; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		check_round(round);
	munmap(board, sizeof(*board));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_word)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The explorer: two requests, posted one right behind the other, and everything that a network can do to their packets.
 *
 *     a (posts A, B) ---- the test holds every packet ----> b
 *                    <----- and lets go of any --------
 *
 * Wherever something may happen next, it does: each packet that is held arrives, or is lost (as often as there are
 * losses left), or a clock rings before any of them does (as often as there are rings left; when nothing is held, it
 * rings in any case). A run is one way through all these choices; all of them are tried, one after the other, from the
 * start. (When A and B have ended, what is still under way arrives in order: it changes nothing of them.) In some runs
 * b's link takes no packet until all that a has sent has come.
 *
 * For each cell of the matrix of S2-4, and each pair of Send and Write (with immediate data and without), and Read, and
 * an atomic as A, it counts the runs, and those in which B was done at b before A: where that is forbidden there is
 * none, where it is allowed there are some. And in each run each request is done once, whole, and ends in its turn.
 *
 *   test_order           one packet each; then two for one of them, with fewer losses
 *   test_order full      more losses and rings; three requests. Takes minutes
 *
 * Links: sim.
 */
#include "rwk_test.h"

#include "rc/end.h"

#include <limits.h>

#define PMTU    256u
#define OPS_MAX 3u
#define DEPTH   512u
#define AREA    (4 * PMTU) /* bytes of the region that one request has for itself */
#define MS      1000000ull

enum order { ORDERED, HALF, UN };

static const char *const order_names[] = {"ordered", "half-ordered", "un-ordered"};
static const char *const type_names[] = {"Send", "Write", "Read", "Compare and Swap", "Fetch and Add"};
static const uint8_t hints[] = {[HALF] = RWK_WR_HALF, [UN] = RWK_WR_UNORDERED};

struct op {
	enum order order;
	unsigned type, packets;
	bool fence, imm;
};

/* What a run may have. */
struct bounds {
	unsigned losses, rings;
};

/* A request as a run has it. */
static struct {
	struct rwk_wr wr;
	struct iovec iov;
	uint8_t bytes[AREA];
	unsigned pieces; /* of it that are done at b; immediate data of a Write is the last */
	bool done, ended;
} ops[OPS_MAX];

static unsigned count, ended;
static bool overtaken[OPS_MAX][OPS_MAX];    /* [i][j]: j was done before i, in this run */
static bool begun[OPS_MAX][OPS_MAX];        /* something of j was */
static bool ended_before[OPS_MAX][OPS_MAX]; /* i had ended when something of j was done */

/* ---- choices ---- */

static unsigned taken[DEPTH], options[DEPTH], chosen, depth;

static unsigned choose(unsigned n)
{
	if (n < 2)
		return 0;
	if (chosen == depth) {
		assert_true(depth < DEPTH);
		taken[depth] = 0;
		options[depth++] = n;
	}
	assert_int_equal(options[chosen], n); /* the same choices lead to the same place */
	return taken[chosen++];
}

static bool another(void)
{
	chosen = 0;
	while (depth && taken[depth - 1] + 1 == options[depth - 1])
		depth--;
	if (depth)
		taken[depth - 1]++;
	return depth > 0;
}

/* ---- a run ---- */

static unsigned pieces_of(unsigned i)
{
	if (ops[i].wr.type == RWK_WR_SEND)
		return 1;
	return (unsigned)((ops[i].wr.length + PMTU - 1) / PMTU) +
	       (ops[i].wr.type == RWK_WR_WRITE && ops[i].wr.flags & RWK_WR_IMM);
}

static void piece_done(unsigned i)
{
	assert_false(ops[i].done); /* once */
	for (unsigned k = 0; k < i; k++) {
		begun[k][i] |= !ops[k].done;
		ended_before[k][i] = ops[k].ended;
	}
	if (++ops[i].pieces < pieces_of(i))
		return;
	ops[i].done = true;
	for (unsigned k = 0; k < i; k++)
		overtaken[k][i] = !ops[k].done;
}

static void on_effect(struct end *e, unsigned type, uint64_t address, const void *bytes, size_t len)
{
	unsigned i =
		type == RWK_WR_SEND ? *(const uint8_t *)bytes - (unsigned)'A' : (unsigned)((address - e->base) / AREA);

	assert_in_range(i, 0, count - 1);
	assert_int_equal(ops[i].wr.type, type);
	if (type == RWK_WR_SEND) { /* S2-12: whole, and nobody else's */
		assert_int_equal(len, ops[i].wr.length);
		assert_memory_equal(bytes, ops[i].bytes, len);
	}
	if (type != RWK_WR_READ || !ops[i].done) /* else the answer was lost, it is fetched again */
		piece_done(i);
}

/* All of the Write is there by then. */
static void on_written(struct end *e, uint32_t imm)
{
	(void)e;
	assert_in_range(imm, 0, count - 1);
	assert_int_equal(ops[imm].pieces, pieces_of(imm) - 1);
	piece_done(imm);
}

static void on_done(struct end *e, struct rwk_wr *wr, int status)
{
	(void)e;
	assert_int_equal(status, 0);
	assert_ptr_equal(wr, &ops[ended].wr);
	assert_true(ops[ended].done);
	if (wr->type >= RWK_WR_READ)
		for (size_t k = 0; k < wr->length; k++)
			assert_int_equal(ops[ended].bytes[k], 'a' + ended);
	ops[ended++].ended = true;
}

static void post_all(struct end *a, struct end *b, const struct op *o)
{
	ended = 0;
	memset(overtaken, 0, sizeof(overtaken));
	memset(begun, 0, sizeof(begun));
	memset(ended_before, 0, sizeof(ended_before));
	for (unsigned i = 0; i < count; i++) {
		size_t len = o[i].type > RWK_WR_READ ? 8 : o[i].packets * PMTU - 7;

		memset(&ops[i], 0, sizeof(ops[i]));
		memset(ops[i].bytes, 'A' + (int)i, len);
		memset(b->region + i * AREA, 'a' + (int)i, AREA);
		ops[i].wr = end_wr(o[i].type, &ops[i].iov, ops[i].bytes, len);
		ops[i].wr.remote = b->base + i * AREA;
		ops[i].wr.flags = hints[o[i].order] | (o[i].fence ? RWK_WR_FENCE : 0) | (o[i].imm ? RWK_WR_IMM : 0);
		ops[i].wr.imm = i;
		assert_int_equal(rwk_rc_post(a->qp, &ops[i].wr), 0);
	}
}

static rwk_time next_ring(struct end *a, struct end *b)
{
	return rwk_rc_next(a->qp) < rwk_rc_next(b->qp) ? rwk_rc_next(a->qp) : rwk_rc_next(b->qp);
}

/* Both do what they have to at this time. */
static void settle_now(struct end *a, struct end *b)
{
	a->link->ops->progress(a->link, INT_MAX);
	b->link->ops->progress(b->link, INT_MAX);
	do {
		end_pump(a);
		end_pump(b);
	} while (b->room && next_ring(a, b) <= rwk_sim_now(a->sim));
}

/* One thing happens: a packet that is held arrives, or is lost, or a clock rings. */
static void happen(struct end *a, struct end *b, struct bounds *left)
{
	unsigned held = rwk_sim_held(a->sim), n = held, which;
	rwk_time ring = next_ring(a, b), now = rwk_sim_now(a->sim);
	bool rings = ring != RWK_NEVER && ring > now && (!held || left->rings);

	if (left->losses)
		n += held;
	which = choose(n + rings);
	if (which < held) {
		rwk_sim_release(a->sim, which, RWK_SIM_PASS);
	} else if (which < n) {
		left->losses--;
		rwk_sim_release(a->sim, which - held, RWK_SIM_DROP);
	} else {
		left->rings -= held > 0;
		assert_int_not_equal(ring, RWK_NEVER); /* nothing would ever happen again */
		rwk_sim_run_until(a->sim, ring);
	}
}

static void run(struct end *a, struct end *b, const struct op *o, struct bounds left)
{
	struct rwk_sim *sim = a->sim;
	bool full;

	end_renew(a);
	end_renew(b);
	while (rwk_sim_held(sim))
		rwk_sim_release(sim, 0, RWK_SIM_DROP);
	post_all(a, b, o);
	full = o[0].type == RWK_WR_READ && choose(2);
	for (settle_now(a, b); ended < count; settle_now(a, b)) {
		b->room = full && rwk_sim_held(sim) ? 0 : UINT_MAX;
		full = full && !b->room;
		if (b->room || rwk_sim_held(sim))
			happen(a, b, &left);
	}
	assert_int_equal(a->failed_count + b->failed_count, 0);
}

/* ---- what is allowed ---- */

/* S2-4: may the second be done before the first? S2-5: a Read holds up no Send and no Write, unless they are fenced. */
static bool is_allowed(const struct op *first, const struct op *second)
{
	if (first->type == RWK_WR_READ && second->type != RWK_WR_READ && !second->fence)
		return true;
	return first->order != ORDERED && second->order == UN;
}

struct result {
	uint64_t runs, reversed;
};

/* All runs of those requests. reversed: in which the last was done before the one before it. */
static struct result explore(const struct op *o, unsigned n, struct bounds bounds)
{
	struct rwk_sim_attr sim_attr = rwk_sim_attr_default;
	struct rwk_rc_attr attr = end_strict();
	struct result r = {0};
	struct rwk_sim *sim;
	struct end *a, *b;

	sim_attr.mtu = 8192;
	attr.own = RWK_RC_SELECTIVE | RWK_RC_UNORDERED;
	assert_int_equal(rwk_sim_open(&sim_attr, &sim), 0);
	rwk_sim_hold(sim);
	end_pair(sim, &attr, &a, &b);
	a->on_done = on_done;
	b->on_effect = on_effect;
	b->on_written = on_written;
	count = n;
	depth = 0;
	do {
		run(a, b, o, bounds);
		r.runs++;
		r.reversed += overtaken[n - 2][n - 1];
		for (unsigned j = 1; j < n; j++)
			for (unsigned i = 0; i < j; i++) {
				if (begun[i][j] && !is_allowed(&o[i], &o[j]))
					fail_msg("%s %s, then %s %s: the second was done before the first",
						order_names[o[i].order], type_names[o[i].type], order_names[o[j].order],
						type_names[o[j].type]);
				if (o[j].fence && o[i].type == RWK_WR_READ)
					assert_true(ended_before[i][j]);
			}
	} while (another());
	end_close(a);
	end_close(b);
	rwk_sim_close(sim);
	return r;
}

static bool is_full;

/* What A and B are tried as. No atomic is done before its turn, but others wait for it, or pass it: it is A alone. */
static const struct {
	unsigned type;
	bool imm;
} kinds[] = {{RWK_WR_SEND, false}, {RWK_WR_SEND, true}, {RWK_WR_WRITE, false}, {RWK_WR_WRITE, true},
	{RWK_WR_READ, false}, {RWK_WR_FETCH_ADD, false}};

enum { SECONDS = 5, PAIRS = 6 * SECONDS };

/* One cell of the matrix, all pairs of kinds; `packets` of A and of B. Prints a line. */
static void cell(enum order first, enum order second, unsigned a, unsigned b, struct bounds bounds)
{
	struct result sum = {0};

	for (unsigned i = 0; i < PAIRS; i++) {
		struct op o[2] = {{first, kinds[i / SECONDS].type, a, false, kinds[i / SECONDS].imm},
			{second, kinds[i % SECONDS].type, b, false, kinds[i % SECONDS].imm}};
		struct result r = explore(o, 2, bounds);
		bool exempt = o[0].type == RWK_WR_READ && o[1].type != RWK_WR_READ;
		/* The last of several packets says that all of them are there: it waits for its turn. */
		bool waits = o[1].type == RWK_WR_WRITE && o[1].imm && b > 1;

		if (is_allowed(&o[0], &o[1]) && !waits && !r.reversed)
			fail_msg("%s %s, then %s %s: the second was never done before the first", order_names[first],
				type_names[o[0].type], order_names[second], type_names[o[1].type]);
		sum.runs += r.runs;
		sum.reversed += exempt ? 0 : r.reversed;
	}
	print_message("S2-4 %12s, %12s; packets %u, %u: %8llu interleavings, second first in %llu\n",
		order_names[first], order_names[second], a, b, (unsigned long long)sum.runs,
		(unsigned long long)sum.reversed);
}

static void all_cells(unsigned a, unsigned b, struct bounds bounds)
{
	for (unsigned c = 0; c < 9; c++)
		cell(c / 3, c % 3, a, b, bounds);
}

/* S2-4: every cell, one packet each. S2-2, S2-3 are its rows and columns; S2-9 is why what is ordered is waited for. */
static void s2_4_short(void **state)
{
	(void)state;
	all_cells(1, 1, (struct bounds){1 + is_full, 0});
	if (is_full)
		all_cells(1, 1, (struct bounds){1, 1});
}

/* S2-4, S2-12: every cell, with two packets of one of them. */
static void s2_4_segmented(void **state)
{
	(void)state;
	all_cells(2, 1, (struct bounds){1 + is_full, 0});
	all_cells(1, 2, (struct bounds){1 + is_full, 0});
	if (is_full)
		all_cells(2, 2, (struct bounds){1, 0});
}

/* S2-5: a Read holds up no Send or Write, whatever their order: they are seen to be done before it; but with a fence
 * they begin when it has ended. */
static void s2_5_read(void **state)
{
	(void)state;
	for (unsigned type = RWK_WR_SEND; type <= RWK_WR_WRITE; type++)
		for (unsigned fence = 0; fence < 2; fence++) {
			struct op o[2] = {{ORDERED, RWK_WR_READ, 1, false, false}, {ORDERED, type, 1, fence, false}};
			struct result r = explore(o, 2, (struct bounds){1 + is_full, 0});

			assert_true(fence ? !r.reversed : r.reversed > 0);
			print_message("S2-5 Read, then %s%s: %llu interleavings, second first in %llu\n",
				type_names[type], fence ? " with fence" : "", (unsigned long long)r.runs,
				(unsigned long long)r.reversed);
		}
}

/* S2-9, S2-10: three in all 27 orders: a third that may pass the second does not, if that would be past an ordered
 * first one that is not acknowledged. */
static void s2_10_three(void **state)
{
	struct result sum = {0};

	(void)state;
	for (unsigned c = 0; c < 27; c++) {
		struct op o[3] = {{c / 9, RWK_WR_SEND, 1, false, false}, {c / 3 % 3, RWK_WR_WRITE, 1, false, false},
			{c % 3, RWK_WR_SEND, 1, false, false}};
		struct result r = explore(o, 3, (struct bounds){is_full, 0});

		assert_int_equal(r.reversed > 0, is_allowed(&o[1], &o[2]) && o[0].order != ORDERED);
		sum.runs += r.runs;
	}
	print_message("three requests: %llu interleavings\n", (unsigned long long)sum.runs);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s2_4_short),
		cmocka_unit_test(s2_4_segmented),
		cmocka_unit_test(s2_5_read),
		cmocka_unit_test(s2_10_three),
	};

	is_full = argc > 1 && !strcmp(argv[1], "full");
	if (argc > 1 && !is_full)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random operations both ways between two ends, over a network that loses, repeats, reorders, delays and damages
 * packets, and links that are full now and then; against a model of what RC promises: every operation is done once, in
 * order, and whole; a Read brings what was there after all before it.
 *
 * Each end has three areas in the other's region: one that only it writes (a Write after a Read of it is fenced), one
 * with constants, and words for atomics. The model is applied when an operation is posted: so executing anything twice,
 * or out of order, shows.
 *
 * A failure prints its seed: RWK_TEST_SEED=<seed> runs it alone; RWK_TEST_STEPS=<number> of operations for each seed;
 * RWK_TEST_SEEDS=<number> of seeds for each pair of ends.
 *
 * Links: sim.
 */
#include "rwk_test.h"

#include "rc/end.h"
#include "seeded.h"

#include <limits.h>

#define AREA        65536u /* bytes: written, constants, atomics */
#define WORDS       64u
#define OUTSTANDING 40
#define MS          1000000ull

struct op {
	struct rwk_wr wr;
	struct iovec iov[3];
	struct op *next; /* a message that the peer has not taken */
	uint64_t number;
	uint64_t before; /* an atomic's value, expected; also its buffer */
	uint64_t found;
	bool is_message, awaited; /* awaited: in the peer's queue still */
	bool ended;
	uint8_t *expect; /* a Read's bytes */
	uint8_t *bytes;
};

/* One direction: what an end does to the other, and the model of it. */
struct side {
	struct end *e, *peer;
	struct side *other;
	uint8_t written[AREA];
	uint64_t words[WORDS];
	uint64_t posted, ended;
	struct op *ops[OUTSTANDING * 4];
	unsigned under_way;
	struct op *first, **last; /* messages, in the order of posting */
	bool unfenced;            /* a Read of `written` may still be executed */
	bool carries_acks;
};

static uint8_t constant(size_t i)
{
	return (uint8_t)(i * 31 + i / 257);
}

static void pattern(uint8_t *bytes, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(seed * 131 + i * 7 + i / 253);
}

static size_t pick_length(const struct end *e)
{
	switch (pick(12)) {
	case 0:
		return pick(3);
	case 1:
	case 2:
		return pick(3 * e->attr.pmtu) + 1;
	case 3:
		return pick(20 * e->attr.pmtu) + 1;
	case 4:
		return (size_t)e->attr.pmtu * (1 + pick(4));
	default:
		return pick(64) + 8;
	}
}

static void op_free(struct op *o)
{
	free(o->bytes);
	free(o->expect);
	free(o);
}

static void on_done(struct end *e, struct rwk_wr *wr, int status)
{
	struct side *s = e->user;
	struct op *o = (struct op *)wr;

	check(status == 0);
	check(o->number == s->ended);
	s->ended++;
	s->under_way--;
	if (wr->type == RWK_WR_READ)
		check(!memcmp(o->expect, o->bytes, wr->length));
	if (wr->type >= RWK_WR_COMPARE_SWAP)
		check(o->found == o->before);
	o->ended = true;
	if (!o->awaited)
		op_free(o);
}

/* The source or target in one to three pieces. */
static void spread(struct op *o)
{
	size_t at = 0, len = o->wr.length;
	unsigned pieces = len > 2 ? 1 + pick(3) : 1;

	for (unsigned i = 0; i < pieces; i++) {
		size_t n = i + 1 == pieces ? len - at : pick(len - at + 1);

		o->iov[i] = (struct iovec){o->bytes + at, n};
		at += n;
	}
	o->wr.iov = o->iov;
	o->wr.iov_count = (uint16_t)pieces;
}

static void make_message(struct side *s, struct op *o)
{
	uint32_t ack[2] = {0, 0};

	if (s->carries_acks && o->wr.length >= 8 && o->wr.type == RWK_WR_SEND) {
		ack[0] = rwk_rc_take_ack(s->e->qp, false, &ack[1]);
		memcpy(o->bytes, ack, 8);
	} else if (o->wr.length >= 8) {
		memset(o->bytes, 0, 8);
	}
	if (pick(3) == 0 || o->wr.type == RWK_WR_WRITE) {
		o->wr.flags |= RWK_WR_IMM;
		o->wr.imm = (uint32_t)(o->number * 77);
	} else if (pick(5) == 0) {
		o->wr.flags |= RWK_WR_INVALIDATE;
		o->wr.imm = (uint32_t)(o->number * 99);
	}
	o->is_message = o->awaited = true;
	*s->last = o;
	s->last = &o->next;
}

static void make_write(struct side *s, struct op *o)
{
	size_t at = pick(AREA - o->wr.length);

	o->wr.remote = s->peer->base + at;
	memcpy(s->written + at, o->bytes, o->wr.length);
	if (s->unfenced) {
		o->wr.flags |= RWK_WR_FENCE;
		s->unfenced = false;
	}
	if (pick(4) == 0)
		make_message(s, o), memcpy(s->written + at, o->bytes, o->wr.length);
}

static void make_read(struct side *s, struct op *o)
{
	size_t at = pick(AREA - o->wr.length);

	o->expect = malloc(o->wr.length + 1);
	check(o->expect);
	if (pick(2)) {
		memcpy(o->expect, s->written + at, o->wr.length);
		o->wr.remote = s->peer->base + at;
		s->unfenced = true;
	} else {
		for (size_t i = 0; i < o->wr.length; i++)
			o->expect[i] = constant(at + i);
		o->wr.remote = s->peer->base + AREA + at;
	}
}

static void make_atomic(struct side *s, struct op *o)
{
	uint64_t *word = &s->words[pick(WORDS)];

	o->wr.remote = s->peer->base + 2 * AREA + (word - s->words) * 8;
	o->before = *word;
	if (o->wr.type == RWK_WR_FETCH_ADD) {
		o->wr.swap_add = pick(1000);
		*word += o->wr.swap_add;
	} else {
		o->wr.compare = pick(2) ? *word : *word + 1;
		o->wr.swap_add = pick(1u << 30);
		if (o->wr.compare == *word)
			*word = o->wr.swap_add;
	}
}

static void post(struct side *s)
{
	static const uint8_t types[] = {RWK_WR_SEND, RWK_WR_SEND, RWK_WR_SEND, RWK_WR_WRITE, RWK_WR_WRITE, RWK_WR_READ,
		RWK_WR_READ, RWK_WR_COMPARE_SWAP, RWK_WR_FETCH_ADD};
	struct op *o = calloc(1, sizeof(*o));

	check(o);
	o->number = s->posted++;
	o->wr.type = types[pick(sizeof(types))];
	o->wr.length = o->wr.type >= RWK_WR_COMPARE_SWAP ? 8 : pick_length(s->e);
	o->wr.key = END_KEY;
	o->bytes = malloc(o->wr.length + 1);
	check(o->bytes);
	pattern(o->bytes, o->wr.length, o->number);
	if (o->wr.type >= RWK_WR_COMPARE_SWAP) {
		make_atomic(s, o);
		o->iov[0] = (struct iovec){&o->found, 8};
		o->wr.iov = o->iov;
		o->wr.iov_count = 1;
	} else {
		if (o->wr.type == RWK_WR_SEND)
			make_message(s, o);
		else if (o->wr.type == RWK_WR_WRITE)
			make_write(s, o);
		else
			make_read(s, o);
		spread(o);
	}
	s->under_way++;
	check(rwk_rc_post(s->e->qp, &o->wr) == 0);
}

/* What has come from the other side, in order. */
static void take_messages(struct side *s)
{
	struct end_message *m;

	while ((m = end_take(s->peer))) {
		struct op *o = s->first;

		check(o);
		s->first = o->next;
		if (!s->first)
			s->last = &s->first;
		check(m->written == (o->wr.type == RWK_WR_WRITE));
		check(m->has_imm == !!(o->wr.flags & RWK_WR_IMM));
		check(!m->has_imm || m->imm == o->wr.imm);
		check(m->has_invalidate == !!(o->wr.flags & RWK_WR_INVALIDATE));
		if (o->wr.type == RWK_WR_SEND) {
			uint32_t ack[2] = {0, 0};

			check(m->len == o->wr.length && !memcmp(m->bytes, o->bytes, m->len));
			if (m->len >= 8)
				memcpy(ack, m->bytes, 8);
			if (ack[0])
				rwk_rc_acked(s->peer->qp, ack[1], rwk_sim_now(s->peer->sim));
		}
		o->awaited = false;
		if (o->ended)
			op_free(o);
		free(m);
	}
}

static void open_side(struct side *s, struct end *e, struct side *other)
{
	memset(s, 0, sizeof(*s));
	s->e = e;
	s->other = other;
	s->last = &s->first;
	e->on_done = on_done;
	e->user = s;
	for (size_t i = 0; i < AREA; i++)
		e->region[AREA + i] = constant(i);
}

static void now_and_then(struct side *s)
{
	struct end *e = s->e;

	if (e->room != UINT_MAX && pick(4) == 0)
		e->room = UINT_MAX;
	else if (pick(60) == 0)
		e->room = pick(20);
	if (e->receives != UINT_MAX && pick(3) == 0)
		e->receives += pick(6);
}

static struct rwk_sim_path pick_path(void)
{
	static const uint32_t chances[] = {0, 0, 1000, 10000, 50000};
	struct rwk_sim_path p = {.delay = 1000 + pick(50000), .jitter = pick(3000), .reorder_by = 1000 + pick(60000)};

	p.drop = chances[pick(5)];
	p.duplicate = chances[pick(5)];
	p.corrupt = chances[pick(4)];
	p.reorder = chances[pick(5)];
	return p;
}

static uint64_t packets, run_again, run_probes, run_timeouts;

static void count(const struct end *e)
{
	const struct rwk_qp_counters *c = rwk_rc_counters(e->qp);

	packets += c->packets_out;
	run_again += c->sent_again;
	run_probes += c->probes;
	run_timeouts += c->timeouts;
	check(c->bad_opcode == 0);
	check(c->bad_length == 0);
	check(c->bad_access == 0);
	check(c->bad_state == 0);
	check(c->too_far == 0);
}

static void run(const struct rwk_rc_attr *base, uint64_t seed, uint64_t steps)
{
	static struct side sides[2];
	struct rwk_sim_attr sim = rwk_sim_attr_default;
	struct rwk_rc_attr attr = *base;
	struct rwk_sim *s;
	struct end *a, *b;
	uint64_t idle = 0, quiet = 0, ended = 0;

	begin_with(seed);
	sim.seed = seed;
	sim.mtu = 8192;
	sim.path = pick_path();
	attr.service = pick(4) ? RWK_WIRE_RC : RWK_WIRE_SRC; /* S1-5: the same rules */
	attr.pmtu = (uint16_t)(256 + RWK_WIRE_OWN_STEP * pick(13));
	attr.send_psn = pick(2) ? RWK_PSN_MASK - pick(2000) : pick(RWK_PSN_MASK);
	attr.receive_psn = pick(2) ? RWK_PSN_MASK - pick(2000) : pick(RWK_PSN_MASK);
	attr.window = (uint16_t)(1 + pick(pick(2) ? 256 : 16));
	attr.reads = (uint8_t)(1 + pick(16));
	attr.peer_reads = (uint8_t)(1 + pick(16));
	attr.read_chunk = pick(2) ? attr.pmtu * (1 + pick(20)) : 0;
	check(rwk_sim_open(&sim, &s) == 0);
	end_pair(s, &attr, &a, &b);
	open_side(&sides[0], a, &sides[1]);
	open_side(&sides[1], b, &sides[0]);
	sides[0].peer = b;
	sides[1].peer = a;
	for (int i = 0; i < 2; i++) {
		sides[i].carries_acks = attr.own & RWK_RC_LAZY && pick(2);
		if (pick(3) == 0)
			sides[i].e->receives = 0;
	}
	for (;;) {
		bool all = sides[0].posted + sides[1].posted >= steps;

		for (int i = 0; i < 2 && !all; i++)
			while (sides[i].under_way < OUTSTANDING && pick(4) == 0)
				post(&sides[i]);
		now_and_then(&sides[0]);
		now_and_then(&sides[1]);
		if (all && rwk_rc_idle(a->qp) && rwk_rc_idle(b->qp))
			break;
		if (!end_step(a, b, rwk_sim_now(s) + 2000 * MS))
			check(++idle <
				100000); /* nothing is under way and nobody waits for a time: only a full link does */
		else
			idle = 0;
		check(++quiet < 1000000);
		if (sides[0].ended + sides[1].ended != ended)
			quiet = 0;
		ended = sides[0].ended + sides[1].ended;
		take_messages(&sides[0]);
		take_messages(&sides[1]);
	}
	for (int i = 0; i < 2; i++) {
		struct side *x = &sides[i];

		check(x->ended == x->posted && !x->first && !x->under_way);
		check(!memcmp(x->peer->region, x->written, AREA));
		check(!memcmp(x->peer->region + 2 * AREA, x->words, sizeof(x->words)));
		check(!x->e->failed_count);
		count(x->e);
	}
	end_close(a);
	end_close(b);
	rwk_sim_close(s);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void runs(const struct rwk_rc_attr *attr, const char *what)
{
	uint64_t steps = number("RWK_TEST_STEPS", 2000), seeds = number("RWK_TEST_SEEDS", 40);

	packets = run_again = run_probes = run_timeouts = 0;
	if (getenv("RWK_TEST_SEED")) {
		run(attr, number("RWK_TEST_SEED", 0), steps);
		return;
	}
	for (uint64_t seed = 1; seed <= seeds; seed++)
		run(attr, seed, steps);
	print_message("%s: %llu packets, %llu sent again, %llu probes, %llu time-outs\n", what,
		(unsigned long long)packets, (unsigned long long)run_again, (unsigned long long)run_probes,
		(unsigned long long)run_timeouts);
}

static void strict(void **state)
{
	struct rwk_rc_attr attr = end_strict();

	(void)state;
	attr.timeout = 2 * MS;
	attr.retry = 7;
	runs(&attr, "strict");
}

static void lazy(void **state)
{
	struct rwk_rc_attr attr = end_own();

	(void)state;
	attr.own = RWK_RC_LAZY | RWK_RC_ENDLESS;
	attr.timeout = 2 * MS;
	runs(&attr, "lazy");
}

static void selective(void **state)
{
	struct rwk_rc_attr attr = end_own();

	(void)state;
	attr.own = RWK_RC_SELECTIVE | RWK_RC_ENDLESS;
	runs(&attr, "selective");
}

static void own(void **state)
{
	struct rwk_rc_attr attr = end_own();

	(void)state;
	runs(&attr, "own");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict),
		cmocka_unit_test(lazy),
		cmocka_unit_test(selective),
		cmocka_unit_test(own),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

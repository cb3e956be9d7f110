/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends, Writes and Reads of any length and any order, with immediate data and without, many at once, over networks
 * that lose, repeat and reorder packets: each is done once and whole, none before one that it has to wait for (S2-4,
 * S2-5), and they end in the order of posting.
 *
 * A failure prints its seed: RWK_TEST_SEED=<seed> runs it alone; RWK_TEST_SEEDS=<number> of seeds.
 *
 * Links: sim.
 */
#include "rwk_test.h"

#include "rc/end.h"
#include "seeded.h"

#define OPS  200u
#define AREA 4096u /* bytes of the region that one request has for itself */

struct op {
	struct rwk_wr wr;
	struct iovec iov;
	uint8_t bytes[AREA];
	size_t there;               /* bytes of it that are done at the peer */
	unsigned began_at, done_at; /* counting what is done; 0: it is not */
};

static struct op ops[OPS];
static unsigned effects, ended;

static uint8_t byte_of(unsigned i, size_t at)
{
	return at ? (uint8_t)(i * 7 + at * 13 + at / 256) : (uint8_t)i;
}

static void on_effect(struct end *e, unsigned type, uint64_t address, const void *bytes, size_t len)
{
	unsigned i = type == RWK_WR_SEND ? *(const uint8_t *)bytes : (unsigned)((address - e->base) / AREA);
	struct op *o = &ops[i];

	check(i < OPS && o->wr.type == type);
	if (type == RWK_WR_READ && o->done_at)
		return;
	if (type == RWK_WR_READ) /* its parts may be fetched again: what counts is the last byte, and the first fetch */
		o->there = address + len - e->base - i * AREA;
	else
		o->there += len;
	check(!o->done_at && o->there <= o->wr.length);
	check(type != RWK_WR_SEND || (len == o->wr.length && !memcmp(bytes, o->bytes, len)));
	effects++;
	if (!o->began_at)
		o->began_at = effects;
	if (o->there == o->wr.length && !(type == RWK_WR_WRITE && o->wr.flags & RWK_WR_IMM))
		o->done_at = effects;
}

/* All of the Write is there by then. */
static void on_written(struct end *e, uint32_t imm)
{
	struct op *o = &ops[imm];

	(void)e;
	check(imm < OPS && !o->done_at && o->there == o->wr.length);
	o->done_at = ++effects;
}

static void on_done(struct end *e, struct rwk_wr *wr, int status)
{
	const struct op *o = &ops[ended];

	(void)e;
	check(status == 0 && wr == &o->wr && o->done_at);
	for (size_t k = 0; wr->type == RWK_WR_READ && k < wr->length; k++)
		check(o->bytes[k] == byte_of(ended, k));
	ended++;
}

/* Must the second wait for the first? */
static bool waits(const struct op *first, const struct op *second)
{
	if (first->wr.type == RWK_WR_READ && second->wr.type != RWK_WR_READ && !(second->wr.flags & RWK_WR_FENCE))
		return false;
	return !(first->wr.flags & (RWK_WR_UNORDERED | RWK_WR_HALF)) || !(second->wr.flags & RWK_WR_UNORDERED);
}

static void post(struct end *a, struct end *b, unsigned i)
{
	static const uint8_t flags[] = {
		0, RWK_WR_FENCE, RWK_WR_HALF, RWK_WR_UNORDERED, RWK_WR_UNORDERED, RWK_WR_UNORDERED};
	struct op *o = &ops[i];
	size_t len = 1 + pick(pick(2) ? AREA : 100);
	unsigned type = pick(3);

	memset(o, 0, sizeof(*o));
	o->wr = end_wr(type, &o->iov, o->bytes, len);
	o->wr.remote = b->base + i * AREA;
	o->wr.flags = flags[pick(sizeof(flags))] | (type < RWK_WR_READ && pick(2) ? RWK_WR_IMM : 0);
	o->wr.imm = i;
	for (size_t k = 0; k < len; k++)
		*(type == RWK_WR_READ ? &b->region[i * AREA + k] : &o->bytes[k]) = byte_of(i, k);
	check(rwk_rc_post(a->qp, &o->wr) == 0);
}

static uint64_t run(uint64_t seed)
{
	static const uint32_t chances[] = {0, 1000, 20000, 60000};
	struct rwk_sim_attr sim_attr = rwk_sim_attr_default;
	struct rwk_rc_attr attr = end_own();
	struct rwk_sim *sim;
	struct end *a, *b;
	uint64_t before_turn;
	unsigned posted = 0;

	begin_with(seed);
	sim_attr.seed = seed;
	sim_attr.mtu = 8192;
	sim_attr.path = (struct rwk_sim_path){.delay = 5000, .jitter = pick(3000), .reorder_by = 1000 + pick(40000)};
	sim_attr.path.drop = chances[pick(4)];
	sim_attr.path.duplicate = chances[pick(4)];
	sim_attr.path.reorder = chances[pick(4)];
	attr.own = RWK_RC_SELECTIVE | RWK_RC_ENDLESS | RWK_RC_UNORDERED | (pick(2) ? RWK_RC_LAZY : 0);
	attr.service = pick(2) ? RWK_WIRE_RC : RWK_WIRE_SRC;
	attr.window = (uint16_t)(20 + pick(237));
	attr.send_psn = RWK_PSN_MASK - pick(300);
	attr.reads = attr.peer_reads = (uint8_t)(1 + pick(16));
	attr.read_chunk = attr.pmtu * (1 + pick(20));
	effects = ended = 0;
	check(rwk_sim_open(&sim_attr, &sim) == 0);
	end_pair(sim, &attr, &a, &b);
	a->on_done = on_done;
	b->on_effect = on_effect;
	b->on_written = on_written;
	while (ended < OPS) {
		while (posted < OPS && posted - ended < 60 && pick(3))
			post(a, b, posted++);
		end_step(a, b, rwk_sim_now(sim) + 2000000000ull); /* further than any clock of theirs */
		check(rwk_sim_now(sim) < 1000000000000ull);
	}
	for (unsigned j = 1; j < OPS; j++)
		for (unsigned i = j > 60 ? j - 60 : 0; i < j; i++)
			check(!waits(&ops[i], &ops[j]) || ops[j].began_at > ops[i].done_at);
	for (unsigned i = 0; i < OPS; i++)
		check(ops[i].wr.type != RWK_WR_WRITE || !memcmp(b->region + i * AREA, ops[i].bytes, ops[i].wr.length));
	check(!a->failed_count && !b->failed_count);
	before_turn = counters(b)->before_turn;
	end_close(a);
	end_close(b);
	rwk_sim_close(sim);
	return before_turn;
}

static void s2_4_many(void **state)
{
	const char *one = getenv("RWK_TEST_SEED"), *seeds = getenv("RWK_TEST_SEEDS");
	uint64_t count = seeds ? strtoull(seeds, NULL, 0) : 150, before_turn = 0;

	(void)state;
	if (one) {
		run(strtoull(one, NULL, 0));
		return;
	}
	for (uint64_t seed = 1; seed <= count; seed++)
		before_turn += run(seed);
	print_message("%llu packets taken before their turn\n", (unsigned long long)before_turn);
	assert_true(before_turn > 10 * count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s2_4_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

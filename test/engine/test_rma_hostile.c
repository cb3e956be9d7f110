/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile peer (hostile.h) that asks: for what it may not have, wrongly, and without taking what it gets.
 */
#include "engine/hostile.h"

#include "engine/internal.h"
#include "engine/rma_state.h"

enum whose { AREA, READ_ONLY, WRITE_ONLY, NONE, NOBODY };

/* What becomes of it: a positive errno it is refused with, or */
enum { DONE = -1, DATA = -2, ENDED = -3, NOTHING = -4, EITHER = -5 /* refused for its length, or ended */ };

#define ATOM(op, type) ((op) << 8 | (type))

static const struct asked {
	const char *what;
	uint8_t kind, flags;
	enum whose whose;
	uint64_t at;
	uint16_t small;
	size_t len;
	uint64_t word; /* the first bytes of the payload */
	int becomes;
} asked[] = {
	{"check", RWK_RMA_CHECK, 0, AREA, 0, 3, 8, LENGTH, DONE},
	{"check, short", RWK_RMA_CHECK, 0, AREA, 0, 3, 7, LENGTH, EMSGSIZE},
	{"check, without a length", RWK_RMA_CHECK, 0, AREA, 0, 3, 0, 0, EMSGSIZE},
	{"check, long", RWK_RMA_CHECK, 0, AREA, 0, 3, 9, 8, EMSGSIZE},
	{"check, in pieces", RWK_RMA_CHECK, 0, AREA, 0, 3, 2000, 8, EMSGSIZE},
	{"check, longer than any", RWK_RMA_CHECK, 0, AREA, 0, 3, 3000, 8, EITHER},
	{"check of too much", RWK_RMA_CHECK, 0, AREA, 1, 3, 8, LENGTH, EACCES},
	{"check that wraps", RWK_RMA_CHECK, 0, AREA, 1, 3, 8, UINT64_MAX, EACCES},
	{"check of unknown kinds of access", RWK_RMA_CHECK, 0, AREA, 0, 0xffff, 8, 8, EACCES},
	{"write beyond", RWK_RMA_WRITE, RWK_RMA_END, AREA, LENGTH - 7, 0, 8, 0, EACCES},
	{"write behind", RWK_RMA_WRITE, RWK_RMA_END, AREA, LENGTH + 1, 0, 0, 0, EACCES},
	{"write before", RWK_RMA_WRITE, RWK_RMA_END, AREA, UINT64_MAX, 0, 8, 0, EACCES},
	{"write at the end of all", RWK_RMA_WRITE, RWK_RMA_END, READ_ONLY, UINT64_MAX - 3, 0, 8, 0, EACCES},
	{"write beyond, in pieces", RWK_RMA_WRITE, RWK_RMA_END, AREA, 97, 0, 4000, 0, EACCES},
	{"write, read-only", RWK_RMA_WRITE, RWK_RMA_END, READ_ONLY, 0, 0, 8, 0, EACCES},
	{"write, read-only, in pieces", RWK_RMA_WRITE, RWK_RMA_END, READ_ONLY, 0, 0, 4000, 0, EACCES},
	{"write, no such key", RWK_RMA_WRITE, RWK_RMA_END, NOBODY, 0, 0, 8, 0, EACCES},
	{"write, no such key, in pieces", RWK_RMA_WRITE, RWK_RMA_END, NOBODY, 0, 0, 4000, 0, EACCES},
	{"read of a piece", RWK_RMA_READ, RWK_RMA_END, AREA, 0, 0, 8, SHORT, DATA},
	{"read, short", RWK_RMA_READ, RWK_RMA_END, AREA, 0, 0, 3, 8, EMSGSIZE},
	{"read, long", RWK_RMA_READ, RWK_RMA_END, AREA, 0, 0, 16, 8, EMSGSIZE},
	{"read, in pieces", RWK_RMA_READ, RWK_RMA_END, AREA, 0, 0, 2000, 8, EMSGSIZE},
	{"read of more than a piece", RWK_RMA_READ, RWK_RMA_END, AREA, 0, 0, 8, RWK_RMA_PIECE + 1, EMSGSIZE},
	{"read of all there is", RWK_RMA_READ, RWK_RMA_END, AREA, 0, 0, 8, UINT64_MAX, EMSGSIZE},
	{"read beyond", RWK_RMA_READ, RWK_RMA_END, AREA, 1, 0, 8, LENGTH, EACCES},
	{"read that wraps", RWK_RMA_READ, RWK_RMA_END, AREA, UINT64_MAX - 7, 0, 8, 16, EACCES},
	{"read, write-only", RWK_RMA_READ, RWK_RMA_END, WRITE_ONLY, 0, 0, 8, 8, EACCES},
	{"read, no such key", RWK_RMA_READ, RWK_RMA_END, NOBODY, 0, 0, 8, 8, EACCES},
	{"atomic of no words", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, 0, ATOM(RWK_SUM, RWK_UINT64), 0, 0, DONE},
	{"atomic operation out of range", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, 0, ATOM(RWK_ATOMIC_OPS, RWK_UINT64), 8, 1,
		EOPNOTSUPP},
	{"atomic operation 255", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, 0, ATOM(255, RWK_UINT64), 16, 1, EOPNOTSUPP},
	{"atomic type out of range", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, 0, ATOM(RWK_SUM, RWK_ATOMIC_TYPES), 8, 1,
		EOPNOTSUPP},
	{"atomic type 255", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, 0, ATOM(RWK_SUM, 255), 8, 1, EOPNOTSUPP},
	{"atomic of half a word", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, 0, ATOM(RWK_SUM, RWK_UINT64), 12, 1, EOPNOTSUPP},
	{"atomic, a comparand lacks", RWK_RMA_ATOMIC, RWK_RMA_END | RWK_RMA_RESULT, AREA, 0,
		ATOM(RWK_CSWAP, RWK_UINT64), 8, 1, EOPNOTSUPP},
	{"atomic of too much", RWK_RMA_ATOMIC, RWK_RMA_END | RWK_RMA_RESULT, AREA, 0, ATOM(RWK_SUM, RWK_UINT64),
		RWK_ATOMIC_BYTES + 8, 1, EOPNOTSUPP},
	{"atomic longer than any", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, 0, ATOM(RWK_CSWAP, RWK_UINT64), 3000, 1, EITHER},
	{"atomic beyond", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, LENGTH - 8, ATOM(RWK_SUM, RWK_UINT64), 16, 1, EACCES},
	{"atomic, crooked", RWK_RMA_ATOMIC, RWK_RMA_END, AREA, 4, ATOM(RWK_SUM, RWK_UINT64), 8, 1, EINVAL},
	{"atomic, read-only", RWK_RMA_ATOMIC, RWK_RMA_END, READ_ONLY, 0, ATOM(RWK_SUM, RWK_UINT64), 8, 1, EACCES},
	{"atomic that fetches, write-only", RWK_RMA_ATOMIC, RWK_RMA_END | RWK_RMA_RESULT, WRITE_ONLY, 0,
		ATOM(RWK_SUM, RWK_UINT64), 8, 1, EACCES},
	{"atomic read, write-only", RWK_RMA_ATOMIC, RWK_RMA_END | RWK_RMA_RESULT, WRITE_ONLY, 0,
		ATOM(RWK_ATOMIC_READ, RWK_UINT64), 8, 1, EACCES},
	{"atomic read of nothing, no access", RWK_RMA_ATOMIC, RWK_RMA_END, NONE, 0, ATOM(RWK_ATOMIC_READ, RWK_UINT64),
		8, 1, EACCES},
	{"a word behind nothing", RWK_RMA_TELL, RWK_RMA_END, AREA, 0, 0, 0, 0, DONE},
	{"a word with a payload", RWK_RMA_TELL, RWK_RMA_END, AREA, 0, 0, 2000, 0, DONE},
	{"data that nobody asked for", RWK_RMA_DATA, RWK_RMA_END, NOBODY, 0, 0, SHORT, 0, ENDED},
	{"data, in pieces", RWK_RMA_DATA, RWK_RMA_END, NOBODY, 0, 0, 4000, 0, ENDED},
	{"a refusal", RWK_RMA_REFUSED, 0, NOBODY, 0, EACCES, 0, 0, ENDED},
	{"a refusal, in pieces", RWK_RMA_REFUSED, 0, NOBODY, 0, EACCES, 2000, 0, ENDED},
	{"all is done", RWK_RMA_DONE, 0, NOBODY, UINT64_MAX, 0, 0, 0, ENDED},
	{"nothing is done", RWK_RMA_DONE, 0, NOBODY, 0, 0, 0, 0, ENDED},
	{"an account of nothing", RWK_RMA_ACCESSED, RWK_RMA_END, NOBODY, 0, 0, 0, 0, ENDED},
	{"an account without ranges", RWK_RMA_ACCESSED, RWK_RMA_END, NOBODY, 0, 0, 8, RWK_REGION_WRITE, DONE},
	{"an account of many", RWK_RMA_ACCESSED, RWK_RMA_END, NOBODY, 0, 0, 8 + 24, RWK_REGION_WRITE | UINT64_MAX << 32,
		ENDED},
	{"an account of too many", RWK_RMA_ACCESSED, RWK_RMA_END, NOBODY, 0, 0, 8 + 24 * (RWK_ENGINE_IOV_MAX + 1),
		RWK_REGION_WRITE | (uint64_t)(RWK_ENGINE_IOV_MAX + 1) << 32, ENDED},
	{"an account of another kind of access", RWK_RMA_ACCESSED, RWK_RMA_END, NOBODY, 0, 0, 8 + 24, 7 | 1ull << 32,
		ENDED},
	{"an account of a region that is not", RWK_RMA_ACCESSED, RWK_RMA_END, NOBODY, 0, 0, 8 + 24,
		RWK_REGION_WRITE | 1ull << 32, DONE},
	{"an account of more than memory has", RWK_RMA_ACCESSED, RWK_RMA_END, NOBODY, SIZE_MAX / 2 + 1, 0, 8 + 24,
		RWK_REGION_WRITE | 1ull << 32, ENDED},
	{"how is nothing reached", RWK_RMA_IMPORT, 0, NOBODY, 1, 0, 0, 0, RWK_RMA_EXPORT << 16 | EACCES},
	{"an answer to no question", RWK_RMA_EXPORT, 0, NOBODY, 1, 0, 56, 1, NOTHING},
	{"an answer, short", RWK_RMA_EXPORT, 0, NOBODY, 1, 0, 0, 0, NOTHING},
	{"what was not there is gone", RWK_RMA_REVOKE, 0, NOBODY, 1, 0, 0, 0, NOTHING},
	{"a kind that is none", RWK_KINDS, RWK_RMA_END, AREA, 0, 0, 8, 0, NOTHING},
	{"a kind that is none, in pieces", RWK_KIND_SERVICE - 1, RWK_RMA_END, AREA, 0, 0, 4000, 0, NOTHING},
};

static void ask(struct scene *s, const struct asked *a)
{
	const struct area *areas[] = {&s->area, &s->read_only, &s->write_only, &s->none};
	struct rwk_envelope env = {
		.kind = a->kind, .flags = RWK_ENV_DATA | a->flags, .small = a->small, .tag = a->at, .data = 0x1234};
	unsigned char payload[4096] = {0};

	if (a->whose != NOBODY) {
		env.tag += areas[a->whose]->base;
		env.data = areas[a->whose]->key;
	}
	memcpy(payload, &a->word, sizeof(a->word));
	if (a->kind == RWK_RMA_ACCESSED)
		memcpy(payload + 16, &a->at, sizeof(a->at)); /* the length of its first range */
	say(&s->raw, &env, payload, a->len);
	settle(&s->raw);
}

static void check_heard(const struct raw *r, const struct asked *a)
{
	const struct heard *h = r->count == 1 ? &r->heard[0] : NULL;
	int becomes = a->becomes;

	if (becomes == EITHER)
		becomes = r->failed ? ENDED : a->kind == RWK_RMA_CHECK ? EMSGSIZE : EOPNOTSUPP;
	if ((becomes == ENDED) != (r->failed == -ECONNRESET) || r->count > 1)
		fail_msg("%s: the channel is at %d, and %u messages have come", a->what, r->failed, r->count);
	if (!h) {
		if (becomes != ENDED && becomes != NOTHING)
			fail_msg("%s: no answer", a->what);
		return;
	}
	if (becomes == DONE)
		assert_int_equal(h->env.kind, RWK_RMA_DONE);
	else if (becomes == DATA)
		assert_int_equal(h->env.kind, RWK_RMA_DATA);
	else if (becomes > 0)
		assert_int_equal(
			h->env.kind << 16 | h->env.small, becomes >> 16 ? becomes : RWK_RMA_REFUSED << 16 | becomes);
	else
		fail_msg("%s: it is answered, by kind %d", a->what, h->env.kind);
}

/* Each message to a victim that waits for nothing. */
static void asking(void **state)
{
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct scene s;

		scene_open(&s, *state);
		ask(&s, &asked[i]);
		check_heard(&s.raw, &asked[i]);
		area_check_filled(s.area.bytes, LENGTH);
		assert_int_equal(s.none.reached + s.read_only.reached + s.write_only.reached, 0);
		scene_close(&s);
	}
}

/* All of them but those that end it by one channel: a refusal is no reason to misread what follows. */
static void asking_on(void **state)
{
	const struct rwk_envelope env = {.kind = RWK_RMA_READ, .flags = RWK_ENV_DATA | RWK_RMA_END};
	const uint64_t word = SHORT;
	struct scene s;

	scene_open(&s, *state);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct rwk_envelope good = env;

		if (asked[i].becomes == ENDED || asked[i].becomes == EITHER)
			continue;
		s.raw.count = 0;
		ask(&s, &asked[i]);
		if (!(asked[i].flags & RWK_RMA_END)) /* what was refused is over with its last piece */
			ask(&s, &(struct asked){
					.kind = RWK_RMA_TELL, .flags = RWK_RMA_END, .whose = NOBODY, .small = 1});
		s.raw.count = 0;
		good.tag = s.area.base;
		good.data = s.area.key;
		say(&s.raw, &good, &word, sizeof(word));
		settle(&s.raw);
		assert_int_equal(s.raw.count, 1);
		assert_int_equal(s.raw.heard[0].env.kind, RWK_RMA_DATA);
		assert_int_equal(s.raw.heard[0].len, SHORT);
	}
	area_check_filled(s.area.bytes, LENGTH);
	scene_close(&s);
}

/* What is asked is asked before the first answer is there to be taken. */
static void answers_take_long(const struct world *w)
{
	for (uint32_t to = 1; rwk_sim_alive(w->net, to); to++)
		rwk_sim_set_path(w->net, w->node[0], to, &(struct rwk_sim_path){.delay = 5000000});
}

/* It asks again and again and takes no answer: at last it is refused, and what it has been given comes all the same. */
static void never_takes(void **state)
{
	enum { MANY = 2000 };
	const uint64_t length = LENGTH;
	struct rwk_envelope env = {.kind = RWK_RMA_READ, .flags = RWK_ENV_DATA | RWK_RMA_END};
	struct rwk_peer *p;
	struct scene s;

	scene_open(&s, *state);
	env.tag = s.other.base;
	env.data = s.other.key;
	s.raw.count = 0;
	if (s.w.net)
		answers_take_long(&s.w);
	for (int i = 0; i < MANY; i++) {
		say(&s.raw, &env, &length, sizeof(length));
		world_poll(&s.w);
		if (s.w.net)
			rwk_sim_step(s.w.net);
	}
	for (int i = 0; i < 100 && s.raw.count < MANY; i++)
		settle(&s.raw);
	assert_int_equal(s.raw.count, MANY);
	assert_in_range(s.raw.no_room, 1, MANY - 1);
	p = rwk_engine_peer(s.w.e[0], &s.raw.address);
	for (int i = 0; i < 100 && p->rma->answering; i++)
		settle(&s.raw);
	assert_int_equal(p->rma->answering, 0); /* it has taken all */
	scene_close(&s);
}

/*
 * The same with what is refused, or asks for regions: it goes on for longer than a peer of ours could, and is given up
 * before its answers fill our memory.
 */
static void never_takes_refusals(void **state)
{
	enum { HONEST = 65536, MANY = 1000000 };
	static const enum rwk_kind kinds[] = {RWK_RMA_READ, RWK_RMA_IMPORT};
	const uint64_t length = 8;

	for (unsigned k = 0; k < 2; k++) {
		struct rwk_envelope env = {.kind = kinds[k], .flags = RWK_ENV_DATA | RWK_RMA_END};
		struct rwk_peer *p;
		struct scene s;

		scene_open(&s, *state);
		env.tag = env.data = s.area.key ^ 1;
		p = rwk_engine_peer(s.w.e[0], &s.raw.address);
		for (unsigned i = 0; i < MANY && !p->error; i++) {
			say(&s.raw, &env, &length, k ? 0 : sizeof(length));
			world_progress(&s.w, 0);
			assert_true(i > HONEST || !p->error);
		}
		assert_int_equal(p->error, -ENOBUFS);
		scene_close(&s);
	}
}

/*
 * A program may begin as many writes as it likes before it looks, each of many pieces. Whether they are refused or
 * done, the words on them take little memory, and who has begun them is not given up. It hears of all when it looks.
 */
static void looks_late(void **state)
{
	enum { WRITES = 15000, PIECES = 24, MOST = RWK_RMA_GIVING + WRITES * sizeof(struct rwk_rma_piece) };
	static const unsigned char byte;

	for (unsigned refused = 0; refused < 2; refused++) {
		struct rwk_envelope env = {.kind = RWK_RMA_WRITE};
		struct heard last = {0};
		struct rwk_peer *p;
		struct scene s;

		scene_open(&s, *state);
		env.tag = s.area.base;
		env.data = s.area.key ^ refused;
		p = rwk_engine_peer(s.w.e[0], &s.raw.address);
		s.raw.count = 0;
		for (unsigned i = 1; i <= WRITES * PIECES; i++) {
			env.flags = (uint8_t)(RWK_ENV_DATA | (i % PIECES ? 0 : RWK_RMA_END));
			say(&s.raw, &env, &byte, 1);
			world_progress(&s.w, 0);
		}
		assert_int_equal(p->error, 0);
		assert_in_range(p->rma->answering, RWK_RMA_GIVING, MOST);
		while (s.raw.t->progress(s.raw.port) + world_progress(&s.w, 0)) {
			if (s.raw.count)
				last = s.raw.heard[s.raw.count - 1];
			s.raw.count = 0;
		}
		assert_int_equal(p->rma->told, WRITES * PIECES);
		assert_int_equal(last.env.kind, RWK_RMA_DONE);
		assert_int_equal(last.env.tag, WRITES * PIECES);
		scene_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(asking),
		WORLD_EACH(asking_on),
		WORLD_EACH(never_takes),
		{"looks_late, shared memory", looks_late, NULL, NULL, (void *)&rwk_shm_transport},
		{"never_takes_refusals, shared memory", never_takes_refusals, NULL, NULL, (void *)&rwk_shm_transport},
	};

	rwk_log_set_sink(no_log);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer with the job's key that says what it likes: raw messages to a real engine. What must hold (under sanitizers as
 * well): no byte outside what was granted is touched, a request of ours ends once and never as if all were well, and
 * another peer's requests go on.
 *
 *   engine 0   the victim: its regions are asked for, its requests are answered
 *   engine 1   another peer of the victim's
 *   raw        a port of the same service whose messages the test makes up
 */
#include "engine/area.h"

#include "base/log.h"
#include "engine/internal.h"
#include "engine/job.h"
#include "engine/rma_state.h"

#include <unistd.h>

#define LENGTH  4096u
#define SHORT   100u
#define HEARD   64u
#define CONTACT 10 /* milliseconds that a first contact may take on shared memory */

struct heard {
	struct rwk_envelope env;
	size_t len;
};

struct raw {
	struct world *w;
	const struct rwk_transport *t;
	struct rwk_port *port;
	struct rwk_address address;
	struct rwk_channel *ch;
	int failed;
	struct heard heard[HEARD];
	unsigned count, no_room; /* of these, refusals because it takes too few answers */
	struct heard coming;
	struct rwk_place nowhere;
};

struct scene {
	struct world w;
	struct raw raw;
	struct area area, read_only, write_only, none, other;
};

static void no_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	(void)text;
}

/*
 * The raw port.
 */

static int on_connected(void *client, struct rwk_channel *ch, const struct rwk_address *from)
{
	struct raw *r = client;

	(void)from;
	ch->peer = r;
	r->ch = ch;
	return 0;
}

static void on_message(
	void *client, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct raw *r = client;

	(void)payload;
	if (env->kind == RWK_RMA_IMPORT && ch->direct == RWK_DIRECT_ALONE)
		return; /* comes with the first request, whatever that is */
	r->no_room += env->kind == RWK_RMA_REFUSED && env->small == ENOBUFS;
	if (r->count < HEARD)
		r->heard[r->count] = (struct heard){*env, len};
	r->count++;
}

static struct rwk_place *on_begin(void *client, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	struct raw *r = client;

	(void)ch;
	r->coming = (struct heard){*env, len};
	r->nowhere = (struct rwk_place){0};
	return &r->nowhere;
}

static void on_end(void *client, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	struct raw *r = client;

	(void)place;
	if (!status)
		on_message(r, ch, &r->coming.env, NULL, r->coming.len);
}

static void on_failed(void *client, struct rwk_channel *ch, int err)
{
	struct raw *r = client;

	(void)ch;
	r->failed = err;
}

static const struct rwk_client raw_client = {
	.connected = on_connected, .message = on_message, .begin = on_begin, .end = on_end, .failed = on_failed};

/*
 * Goes on until nobody does anything any more: on shared memory, for so many polls. Not for ever: a port whose peer has
 * given it up while much was under way need not hear of it on the simulated network, where no stream ends, and goes on
 * asking.
 */
static void settle(struct raw *r)
{
	unsigned quiet = 0;

	for (int i = 0; i < 20000 && quiet++ < 500; i++) {
		bool any = r->t->progress(r->port) > 0;

		any |= world_poll(r->w) > 0;
		if (r->w->net && !rwk_sim_step(r->w->net) && !any)
			return;
		if (any)
			quiet = 0;
	}
}

static void raw_open(struct raw *r, struct world *w)
{
	struct rwk_port_attr attr = {0};

	*r = (struct raw){.w = w, .t = w->attr.transport};
	rwk_job_describe(&attr);
	memcpy(attr.address.ip, rwk_engine_address(w->e[0])->ip, sizeof(attr.address.ip));
	assert_int_equal(r->t->open(&attr, &raw_client, r, &r->port), 0);
	r->address = attr.address;
	assert_int_equal(r->t->connect(r->port, rwk_engine_address(w->e[0]), r, &r->ch), 0);
	for (int i = 0; i < CONTACT; i++) {
		settle(r);
		if (!w->net)
			usleep(1000);
	}
}

static void raw_close(struct raw *r)
{
	r->t->disconnect(r->ch);
	r->t->close(r->port);
}

static void on_done(struct rwk_op *op, int status)
{
	(void)status;
	free(op);
}

/* One who is given up may have learned of it already. */
static void say(struct raw *r, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct {
		struct rwk_op op;
		struct iovec iov;
		unsigned char bytes[4096];
	} *m = malloc(sizeof(*m));

	assert_non_null(m);
	memset(&m->op, 0, sizeof(m->op));
	if (len)
		memcpy(m->bytes, payload, len);
	m->iov = (struct iovec){m->bytes, len};
	m->op.type = RWK_OP_SEND;
	m->op.env = *env;
	m->op.iov = &m->iov;
	m->op.iov_count = 1;
	m->op.length = len;
	m->op.done = on_done;
	if (r->t->post(r->ch, &m->op))
		free(m);
}

/*
 * The scene.
 */

static void scene_open(struct scene *s, void *state)
{
	area_open_world(&s->w, state, 2);
	raw_open(&s->raw, &s->w);
	area_open(&s->area, &s->w, 0, LENGTH, 3, false);
	area_open(&s->read_only, &s->w, 0, LENGTH, RWK_REGION_READ, true);
	area_open(&s->write_only, &s->w, 0, LENGTH, RWK_REGION_WRITE, true);
	area_open(&s->none, &s->w, 0, LENGTH, 0, true);
	area_open(&s->other, &s->w, 0, 3 * LENGTH, 3, true);
}

/* Another peer's requests are carried out, before and behind what the hostile one does. */
static void check_other(struct scene *s)
{
	unsigned char out[3 * LENGTH], in[3 * LENGTH];
	struct task t[2] = {{0}};

	world_fill(out, sizeof(out), 7);
	memset(in, 0, sizeof(in));
	assert_int_equal(area_simple(&s->w, 1, &s->other, WRITE, out, 0, sizeof(out), 0, &t[0]), 0);
	assert_int_equal(area_simple(&s->w, 1, &s->other, READ, in, 0, sizeof(in), RWK_F_FENCE, &t[1]), 0);
	world_wait(&s->w, &t[0]);
	world_wait(&s->w, &t[1]);
	assert_int_equal(t[0].c.status, 0);
	assert_int_equal(t[1].c.status, 0);
	world_check(in, sizeof(in), 7);
}

static void scene_close(struct scene *s)
{
	struct area *untouched[] = {&s->read_only, &s->write_only, &s->none};

	check_other(s);
	for (int i = 0; i < 3; i++) {
		area_check_filled(untouched[i]->bytes, LENGTH);
		area_close(untouched[i]);
	}
	area_close(&s->area);
	area_close(&s->other);
	raw_close(&s->raw);
	world_close(&s->w);
}

/*
 * It asks.
 */

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

/*
 * It answers.
 */

enum request { ONE_READ, TWO_RANGES, ONE_WRITE, FETCH, ADD, REQUESTS };

struct said {
	uint8_t kind, flags;
	uint64_t piece;
	uint16_t small;
	size_t len;
};

#define END_ RWK_RMA_END
#define D    RWK_RMA_DATA

static const struct answered {
	const char *what;
	enum request request;
	struct said said[5];
	int status;  /* of the request */
	bool broken; /* the channel ends */
} answered[] = {
	{"read", ONE_READ, {{D, END_, 0, 0, SHORT}}, 0, false},
	{"read, in two parts", ONE_READ, {{D, 0, 0, 0, 60}, {D, END_, 0, 0, 40}}, 0, false},
	{"refused", ONE_READ, {{RWK_RMA_REFUSED, 0, 0, EACCES, 0}}, -EACCES, false},
	{"refused for no reason", ONE_READ, {{RWK_RMA_REFUSED, 0, 0, 0, 0}}, -EPROTO, false},
	{"ends early", ONE_READ, {{D, END_, 0, 0, SHORT - 1}}, -EPROTO, true},
	{"ends with nothing", ONE_READ, {{D, END_, 0, 0, 0}}, -EPROTO, true},
	{"ends early, in two parts", ONE_READ, {{D, 0, 0, 0, 60}, {D, END_, 0, 0, 39}}, -EPROTO, true},
	{"too long", ONE_READ, {{D, END_, 0, 0, SHORT + 1}}, -EPROTO, true},
	{"too long, in pieces", ONE_READ, {{D, END_, 0, 0, 4000}}, -EPROTO, true},
	{"too long, in two parts", ONE_READ, {{D, 0, 0, 0, 60}, {D, END_, 0, 0, 41}}, -EPROTO, true},
	{"too long, and does not end", ONE_READ, {{D, 0, 0, 0, SHORT}, {D, 0, 0, 0, 1}}, -EPROTO, true},
	{"done without data", ONE_READ, {{RWK_RMA_DONE, 0, 1, 0, 0}}, -EPROTO, true},
	{"done with a part of the data", ONE_READ, {{D, 0, 0, 0, 60}, {RWK_RMA_DONE, 0, 1, 0, 0}}, -EPROTO, true},
	{"nothing is done", ONE_READ, {{RWK_RMA_DONE, 0, 0, 0, 0}}, -EPROTO, true},
	{"more than asked for is done", ONE_READ, {{RWK_RMA_DONE, 0, 2, 0, 0}}, -EPROTO, true},
	{"data of a later piece", ONE_READ, {{D, END_, 1, 0, SHORT}}, -EPROTO, true},
	{"data of a piece far off", ONE_READ, {{D, END_, UINT64_MAX, 0, SHORT}}, -EPROTO, true},
	{"a later piece is refused", ONE_READ, {{RWK_RMA_REFUSED, 0, 1, EACCES, 0}}, -EPROTO, true},
	{"twice", ONE_READ, {{D, END_, 0, 0, SHORT}, {D, END_, 0, 0, SHORT}}, 0, true},
	{"refused behind its data", ONE_READ, {{D, END_, 0, 0, SHORT}, {RWK_RMA_REFUSED, 0, 0, EACCES, 0}}, 0, true},
	{"data behind its refusal", ONE_READ, {{RWK_RMA_REFUSED, 0, 0, EACCES, 0}, {D, END_, 0, 0, SHORT}}, -EACCES,
		true},
	/* pieces 0 and 1 only check, 2 and 3 fetch */
	{"two ranges", TWO_RANGES, {{RWK_RMA_DONE, 0, 2, 0, 0}, {D, END_, 2, 0, 60}, {D, END_, 3, 0, 40}}, 0, false},
	{"two ranges, no word of checks", TWO_RANGES, {{D, END_, 2, 0, 60}, {D, END_, 3, 0, 40}}, 0, false},
	{"two ranges, refused", TWO_RANGES,
		{{RWK_RMA_REFUSED, 0, 1, EACCES, 0}, {RWK_RMA_REFUSED, 0, 2, EACCES, 0},
			{RWK_RMA_REFUSED, 0, 3, EACCES, 0}},
		-EACCES, false},
	{"data of a check", TWO_RANGES, {{D, END_, 0, 0, 60}}, -EPROTO, true},
	{"empty data of a check", TWO_RANGES, {{D, END_, 1, 0, 0}}, -EPROTO, true},
	{"the second range first", TWO_RANGES, {{D, END_, 3, 0, 40}, {D, END_, 2, 0, 60}}, -EPROTO, true},
	{"the sum is right", TWO_RANGES, {{D, END_, 2, 0, 40}, {D, END_, 3, 0, 60}}, -EPROTO, true},
	{"all in one", TWO_RANGES, {{D, END_, 2, 0, SHORT}}, -EPROTO, true},
	{"one of two", TWO_RANGES, {{D, END_, 2, 0, 60}, {RWK_RMA_DONE, 0, 4, 0, 0}}, -EPROTO, true},
	{"one refused, the other passed over", TWO_RANGES,
		{{RWK_RMA_REFUSED, 0, 2, EACCES, 0}, {RWK_RMA_DONE, 0, 4, 0, 0}}, -EPROTO, true},
	{"data behind a refusal", TWO_RANGES,
		{{RWK_RMA_REFUSED, 0, 2, EACCES, 0}, {D, 0, 3, 0, 4000}, {D, END_, 3, 0, 40}}, -EACCES, false},
	{"write", ONE_WRITE, {{RWK_RMA_DONE, 0, 1, 0, 0}}, 0, false},
	{"write, refused", ONE_WRITE, {{RWK_RMA_REFUSED, 0, 0, EFAULT, 0}}, -EFAULT, false},
	{"write, done twice", ONE_WRITE, {{RWK_RMA_DONE, 0, 1, 0, 0}, {RWK_RMA_DONE, 0, 1, 0, 0}}, 0, true},
	{"data of a write", ONE_WRITE, {{D, END_, 0, 0, SHORT}}, -EPROTO, true},
	{"no data of a write", ONE_WRITE, {{D, END_, 0, 0, 0}}, -EPROTO, true},
	{"fetch", FETCH, {{D, END_, 0, 0, 8}}, 0, false},
	{"fetch, half", FETCH, {{D, END_, 0, 0, 4}}, -EPROTO, true},
	{"fetch, double", FETCH, {{D, END_, 0, 0, 16}}, -EPROTO, true},
	{"fetch, done", FETCH, {{RWK_RMA_DONE, 0, 1, 0, 0}}, -EPROTO, true},
	{"add", ADD, {{RWK_RMA_DONE, 0, 1, 0, 0}}, 0, false},
	{"add, data", ADD, {{D, END_, 0, 0, 8}}, -EPROTO, true},
};

/* The victim starts it; guarded memory of its own at `buf`. */
static void start(struct scene *s, enum request request, unsigned char *buf, struct task *t)
{
	struct rwk_peer *p = rwk_engine_peer(s->w.e[0], &s->raw.address);
	const struct iovec iov = {buf, request >= FETCH ? 8 : SHORT}, into = iov;
	const struct rwk_remote remote[2] = {{4096, request == TWO_RANGES ? 60 : iov.iov_len, 9}, {8192, 40, 9}};
	struct rwk_rma_args a = {.peer = p,
		.iov = &iov,
		.iov_count = 1,
		.remote = remote,
		.remote_count = request == TWO_RANGES ? 2 : 1,
		.context = t};
	struct rwk_atomic_args atomic = {.rma = a,
		.op = RWK_SUM,
		.type = RWK_UINT64,
		.result = request == FETCH ? &into : NULL,
		.result_count = request == FETCH};

	if (request >= FETCH)
		assert_int_equal(area_atomic(&s->w, 0, &atomic), 0);
	else
		assert_int_equal(area_request(&s->w, 0, request == ONE_WRITE ? WRITE : READ, &a), 0);
	settle(&s->raw);
	assert_int_equal(s->raw.count, request == TWO_RANGES ? 4 : 1);
	assert_int_equal(t->times, 0);
}

static void answer(struct scene *s, const struct answered *a)
{
	static unsigned char payload[4096];
	bool ended = false;

	memset(payload, 0x22, sizeof(payload));
	for (int i = 0; i < 5 && a->said[i].kind; i++) {
		const struct said *said = &a->said[i];
		const struct rwk_envelope env = {
			.kind = said->kind, .flags = said->flags, .small = said->small, .tag = said->piece};

		say(&s->raw, &env, payload, said->len);
		ended = true;
	}
	assert_true(ended);
	settle(&s->raw);
}

/* What comes after shares the channel's fate. */
static void check_fate(struct scene *s, const struct answered *a)
{
	static unsigned char buf[8];
	static struct task later;
	const struct iovec iov = {buf, sizeof(buf)};
	const struct rwk_remote remote = {4096, sizeof(buf), 9};
	const struct rwk_rma_args args = {.peer = rwk_engine_peer(s->w.e[0], &s->raw.address),
		.iov = &iov,
		.iov_count = 1,
		.remote = &remote,
		.remote_count = 1,
		.context = &later};

	if (a->broken != (s->raw.failed == -ECONNRESET))
		fail_msg("%s: the channel is at %d", a->what, s->raw.failed);
	assert_int_equal(rwk_engine_read(s->w.e[0], &args), a->broken ? -EPROTO : 0);
}

static void answering(void **state)
{
	for (size_t i = 0; i < sizeof(answered) / sizeof(answered[0]); i++) {
		const struct answered *a = &answered[i];
		unsigned char memory[64 + SHORT + 64];
		struct task t = {0};
		struct scene s;

		scene_open(&s, *state);
		memset(memory, AREA_FILL, sizeof(memory));
		start(&s, a->request, memory + 64, &t);
		answer(&s, a);
		if (t.times != 1 || t.c.status != a->status)
			fail_msg("%s: %u times, status %d", a->what, t.times, t.c.status);
		area_check_filled(memory, 64);
		area_check_filled(memory + 64 + SHORT, 64);
		check_fate(&s, a);
		scene_close(&s);
	}
}

/* All that waits behind a request that is answered wrongly ends with it: what is out, and what is not. */
static void all_end(void **state)
{
	enum { MANY = 150 };
	const struct answered wrong = {"", ONE_READ, {{D, END_, 0, 0, SHORT - 1}}, -EPROTO, true};
	static unsigned char buf[MANY][2000];
	static struct task t[MANY];
	struct rwk_peer *p;
	struct scene s;

	memset(t, 0, sizeof(t));
	scene_open(&s, *state);
	p = rwk_engine_peer(s.w.e[0], &s.raw.address);
	for (int i = 0; i < MANY; i++) {
		const struct iovec iov = {buf[i], i ? sizeof(buf[i]) : SHORT};
		const struct rwk_remote remote = {4096, iov.iov_len, 9};
		const struct rwk_rma_args a = {
			.peer = p, .iov = &iov, .iov_count = 1, .remote = &remote, .remote_count = 1, .context = &t[i]};

		assert_int_equal(area_request(&s.w, 0, i & 1 ? WRITE : READ, &a), 0);
	}
	answer(&s, &wrong);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(t[i].times, 1);
		assert_int_equal(t[i].c.status, -EPROTO);
	}
	scene_close(&s);
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

static unsigned imports_heard(struct raw *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->count; i++)
		n += r->heard[i].env.kind == RWK_RMA_IMPORT;
	r->count = 0;
	return n;
}

/*
 * How a region is reached directly is asked for once, while that is not answered now and then, and again as soon as it
 * is said that there was no memory for an answer.
 */
static void asked_again(void **state)
{
	static unsigned char buf[SHORT];
	const struct iovec iov = {buf, sizeof(buf)};
	const struct rwk_remote remote = {0, sizeof(buf), 9};
	const struct rwk_envelope none = {.kind = RWK_RMA_EXPORT, .tag = 9, .small = ENOMEM};
	unsigned heard = 0;
	struct scene s;

	scene_open(&s, *state);
	for (uint64_t i = 0; i < 2500; i++) {
		const struct rwk_envelope done = {.kind = RWK_RMA_DONE, .tag = i + 1};
		struct task t = {0};
		const struct rwk_rma_args a = {.peer = rwk_engine_peer(s.w.e[0], &s.raw.address),
			.iov = &iov,
			.iov_count = 1,
			.remote = &remote,
			.remote_count = 1,
			.context = &t};

		assert_int_equal(area_request(&s.w, 0, WRITE, &a), 0);
		settle(&s.raw);
		heard += imports_heard(&s.raw);
		assert_int_equal(heard, i < 2300 ? 1 + i / 1000 : 4);
		say(&s.raw, &done, NULL, 0);
		if (i == 2299)
			say(&s.raw, &none, NULL, 0);
		settle(&s.raw);
		assert_int_equal(t.times, 1);
		assert_int_equal(t.c.status, 0);
	}
	scene_close(&s);
}

/*
 * It answers for another peer, or what is no such message: a send ends when its own receiver says so.
 */

static void of_another(void **state)
{
	static unsigned char out[2][200000], in[2][200000];
	static const size_t lengths[] = {8, sizeof(out[0])};
	struct task t[2] = {{0}}, r[2] = {{0}};
	struct scene s;

	scene_open(&s, *state);
	for (unsigned i = 0; i < 2; i++) {
		world_fill(out[i], lengths[i], i);
		assert_int_equal(
			world_send(&s.w, 0, 1, RWK_TAGGED, out[i], lengths[i], i, RWK_F_MATCHED, &t[i]), 0);
	}
	for (uint64_t index = 0; index < 3; index++) {
		for (uint64_t generation = 0; generation < 3; generation++)
			say(&s.raw, &(struct rwk_envelope){.kind = RWK_FIN, .tag = generation << 32 | index}, NULL, 0);
		say(&s.raw, &(struct rwk_envelope){.kind = RWK_DELIVERED, .tag = index}, NULL, 0);
	}
	say(&s.raw, &(struct rwk_envelope){.kind = RWK_DELIVERED, .tag = UINT64_MAX}, NULL, 0);
	settle(&s.raw);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(t[i].times, 0);
		assert_int_equal(world_recv(&s.w, 1, 0, RWK_TAGGED, in[i], lengths[i], i, 0, 0, &r[i]), 0);
		world_wait(&s.w, &r[i]);
		world_wait(&s.w, &t[i]);
		assert_int_equal(t[i].c.status, 0);
		world_check(in[i], lengths[i], i);
	}
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(asking),
		WORLD_EACH(asking_on),
		WORLD_EACH(answering),
		WORLD_EACH(all_end),
		WORLD_EACH(never_takes),
		{"never_takes_refusals, shared memory", never_takes_refusals, NULL, NULL, (void *)&rwk_shm_transport},
		WORLD_EACH(of_another),
		{"asked_again, direct", asked_again, NULL, NULL, (void *)area_direct},
	};

	rwk_log_set_sink(no_log);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile peer (hostile.h) that answers: wrongly, what it has not been asked, and for another peer.
 */
#include "engine/hostile.h"

#include "engine/internal.h"
#include "engine/rma_state.h"

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

static void of_another(void **state)
{
	static unsigned char out[2][200000], in[2][200000];
	static const size_t lengths[] = {8, sizeof(out[0])};
	struct task t[2] = {{0}}, r[2] = {{0}};
	struct scene s;

	scene_open(&s, *state);
	for (unsigned i = 0; i < 2; i++) {
		world_fill(out[i], lengths[i], i);
		assert_int_equal(world_send(&s.w, 0, 1, RWK_TAGGED, out[i], lengths[i], i, RWK_F_MATCHED, &t[i]), 0);
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
		WORLD_EACH(answering),
		WORLD_EACH(all_end),
		WORLD_EACH(of_another),
		{"asked_again, direct", asked_again, NULL, NULL, (void *)area_direct},
	};

	rwk_log_set_sink(no_log);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

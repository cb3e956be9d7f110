/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching against a naive model: two arrays in order, searched from the front. Random streams of every call run on
 * both and must agree, and the matcher's invariants must hold.
 *
 * RWK_TEST_STEPS: length of the random stream (default two million); RWK_TEST_SEED: its seed. A failure prints seed
 * and step.
 */
#include "engine/match_inside.h"

#define MODEL_MAX 4096

/* The model */

struct model {
	struct rwk_posted *posted[MODEL_MAX];
	struct rwk_arrived *kept[MODEL_MAX];
	size_t posted_count, kept_count;
};

static bool model_fits(const struct rwk_posted *p, const struct rwk_arrived *a)
{
	if (p->from && p->from != a->from)
		return false;
	return (p->tag | p->ignore) == (a->tag | p->ignore);
}

static struct rwk_posted *model_message(const struct model *o, const struct rwk_arrived *a)
{
	for (size_t i = 0; i < o->posted_count; i++)
		if (model_fits(o->posted[i], a))
			return o->posted[i];
	return NULL;
}

static struct rwk_arrived *model_find(const struct model *o, const struct rwk_posted *p)
{
	for (size_t i = 0; i < o->kept_count; i++)
		if (model_fits(p, o->kept[i]))
			return o->kept[i];
	return NULL;
}

static void model_unpost(struct model *o, const struct rwk_posted *p)
{
	size_t i = 0;

	while (o->posted[i] != p)
		i++;
	memmove(&o->posted[i], &o->posted[i + 1], (--o->posted_count - i) * sizeof(o->posted[0]));
}

static void model_take(struct model *o, const struct rwk_arrived *a)
{
	size_t i = 0;

	while (o->kept[i] != a)
		i++;
	memmove(&o->kept[i], &o->kept[i + 1], (--o->kept_count - i) * sizeof(o->kept[0]));
}

/* The random stream */

struct stream {
	struct rwk_matcher *m;
	struct model model;
	uint64_t random;
	/* How the next stretch of steps goes; drawn anew at its start. */
	unsigned steps, peers, tags, masks, limit, tag_shift;
	unsigned anyone, staying; /* per cent of receives that are from anyone, that stay posted */
	unsigned fitting;         /* per cent of receives and messages that are made to fit something that waits */
};

static uint64_t draw(struct stream *s, uint64_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (s->random >> 16) % below;
}

#define PICK(s, ...) \
	(((const unsigned[]){__VA_ARGS__})[draw(s, sizeof((unsigned[]){__VA_ARGS__}) / sizeof(unsigned))])

static void draw_stretch(struct stream *s)
{
	s->steps = PICK(s, 10, 100, 1000, 5000);
	s->peers = PICK(s, 1, 2, 8, sizeof(peers));
	s->tags = PICK(s, 1, 3, 50, 3000);
	s->masks = PICK(s, 1, 1, 2, 3, 8);
	s->anyone = PICK(s, 0, 0, 5, 50, 100);
	s->staying = PICK(s, 0, 0, 0, 5);
	s->fitting = PICK(s, 0, 50, 90);
	s->limit = PICK(s, 0, 2, 7, 12, 40, 40, 200, 1500);
	s->tag_shift = PICK(s, 0, 2, 40, 52);
}

static uint64_t draw_tag(struct stream *s)
{
	return draw(s, s->tags) << s->tag_shift | draw(s, 4) << 62;
}

static struct rwk_posted *new_receive(struct stream *s)
{
	static const uint64_t masks[] = {3ull << 62, UINT64_MAX, 0, 0xff, 3ull << 62 | 0xffff, 1, 1ull << 40,
		UINT64_MAX >> 1};
	struct rwk_posted *p = malloc(sizeof(*p));

	p->stays = draw(s, 100) < s->staying;
	p->ignore = masks[draw(s, s->masks)];
	if (s->model.kept_count && draw(s, 100) < s->fitting) {
		struct rwk_arrived *a = s->model.kept[draw(s, s->model.kept_count)];

		p->tag = a->tag;
		p->from = a->from;
	} else {
		p->tag = draw_tag(s);
		p->from = &peers[draw(s, s->peers)];
	}
	if (draw(s, 100) < s->anyone)
		p->from = NULL;
	return p;
}

static struct rwk_arrived *new_message(struct stream *s)
{
	struct rwk_arrived *a = malloc(sizeof(*a));

	a->tag = draw_tag(s);
	a->from = &peers[draw(s, s->peers)];
	if (s->model.posted_count && draw(s, 100) < s->fitting) {
		struct rwk_posted *p = s->model.posted[draw(s, s->model.posted_count)];

		a->tag = (p->tag & ~p->ignore) | (a->tag & p->ignore);
		if (p->from)
			a->from = p->from;
	}
	return a;
}

static void receive(struct stream *s)
{
	struct rwk_posted *p = new_receive(s);
	struct rwk_arrived *a = rwk_match_find(s->m, p->from, p->tag, p->ignore);

	assert_ptr_equal(a, model_find(&s->model, p));
	if (a && draw(s, 8)) {
		rwk_match_take(s->m, a);
		model_take(&s->model, a);
		free(a);
	}
	if (a) {
		free(p);
		return;
	}
	rwk_match_post(s->m, p);
	s->model.posted[s->model.posted_count++] = p;
}

static void message(struct stream *s)
{
	struct rwk_arrived *a = new_message(s);
	struct rwk_posted *p = rwk_match_first(s->m, a->from, a->tag);

	if (!p)
		p = rwk_match_message(s->m, a->from, a->tag);
	assert_ptr_equal(p, model_message(&s->model, a));
	if (p) {
		if (!p->stays) {
			model_unpost(&s->model, p);
			free(p);
		}
		free(a);
		return;
	}
	assert_true(s->model.posted_count <= FEW || s->m->head.hashed); /* it was looked for in the buckets */
	rwk_match_keep(s->m, a);
	s->model.kept[s->model.kept_count++] = a;
}

static void unpost_one(struct stream *s)
{
	struct rwk_posted *p = s->model.posted[draw(s, s->model.posted_count)];

	rwk_match_unpost(s->m, p);
	model_unpost(&s->model, p);
	free(p);
}

static void take_one(struct stream *s)
{
	struct rwk_arrived *a = s->model.kept[draw(s, s->model.kept_count)];

	rwk_match_take(s->m, a);
	model_take(&s->model, a);
	free(a);
}

/** A visit to every one that waits: the order must be the model's; one in `remove` is taken out; it ends at `stop`. */
struct walk {
	struct stream *s;
	size_t at, seen, stop;
	uint64_t remove;
};

static int visit_posted(struct rwk_posted *p, void *arg)
{
	struct walk *w = arg;

	assert_ptr_equal(p, w->s->model.posted[w->at]);
	if (draw(w->s, w->remove)) {
		w->at++;
	} else {
		rwk_match_unpost(w->s->m, p);
		model_unpost(&w->s->model, p);
		free(p);
	}
	return w->seen++ == w->stop ? 77 : 0;
}

static int visit_kept(struct rwk_arrived *a, void *arg)
{
	struct walk *w = arg;

	assert_ptr_equal(a, w->s->model.kept[w->at]);
	if (draw(w->s, w->remove)) {
		w->at++;
	} else {
		rwk_match_take(w->s->m, a);
		model_take(&w->s->model, a);
		free(a);
	}
	return w->seen++ == w->stop ? 77 : 0;
}

static void walk_all(struct stream *s)
{
	struct walk w = {.s = s, .remove = draw(s, 3) ? 1000000 : 2, .stop = draw(s, 2 * s->model.posted_count + 1)};
	size_t count = s->model.posted_count;

	assert_int_equal(rwk_match_each_posted(s->m, visit_posted, &w), w.stop < count ? 77 : 0);
	assert_int_equal(w.seen, w.stop < count ? w.stop + 1 : count);

	count = s->model.kept_count;
	w = (struct walk){.s = s, .remove = w.remove, .stop = draw(s, 2 * count + 1)};
	assert_int_equal(rwk_match_each_kept(s->m, visit_kept, &w), w.stop < count ? 77 : 0);
	assert_int_equal(w.seen, w.stop < count ? w.stop + 1 : count);
}

static void step(struct stream *s)
{
	unsigned kind = draw(s, 1000);

	for (int i = 0; i < 2 && s->model.posted_count > s->limit; i++)
		unpost_one(s);
	for (int i = 0; i < 2 && s->model.kept_count > s->limit; i++)
		take_one(s);
	if (kind < 1) {
		walk_all(s);
		check_invariants(s->m);
	} else if (kind < 20 && s->model.posted_count) {
		unpost_one(s);
	} else if (kind < 40 && s->model.kept_count) {
		take_one(s);
	} else if (kind & 1) {
		receive(s);
	} else {
		message(s);
	}
	assert_int_equal(rwk_match_posted_count(s->m), s->model.posted_count);
	assert_int_equal(rwk_match_kept_count(s->m), s->model.kept_count);
}

static uint64_t number_from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static struct {
	uint64_t seed, step;
	bool passed;
} progress;

/* Whatever the stream of calls, answers and orders are the naive model's, and the invariants of the indexes hold. */
static void random_stream(void **state)
{
	static struct stream s;
	uint64_t steps = number_from_environment("RWK_TEST_STEPS", 2000000);

	(void)state;
	progress.seed = number_from_environment("RWK_TEST_SEED", 0x5eed);
	s.random = progress.seed * 2 + 1;
	assert_int_equal(rwk_matcher_open(&s.m), 0);
	for (; progress.step < steps; progress.step++) {
		if (!s.steps--)
			draw_stretch(&s);
		step(&s);
	}
	check_invariants(s.m);
	while (s.model.posted_count)
		unpost_one(&s);
	while (s.model.kept_count)
		take_one(&s);
	check_invariants(s.m);
	rwk_matcher_close(s.m);
	progress.passed = true;
}

static int say_where(void **state)
{
	(void)state;
	if (!progress.passed)
		print_error("failed at step %llu of RWK_TEST_SEED=%llu\n", (unsigned long long)progress.step,
			(unsigned long long)progress.seed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(random_stream, say_where),
	};

	return cmocka_run_group_tests_name("engine/match, random", tests, NULL, NULL);
}

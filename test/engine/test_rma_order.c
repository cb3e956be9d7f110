/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of requests of which the service carries out some by itself: fences, which wait for them, and what the
 * service is told of those that are behind others.
 *
 * Links: shm, sim.
 */
#include "engine/area.h"

#include "engine/internal.h"

/* A fenced read sees what all writes before it have written, direct ones too. */
static void fence(void **state)
{
	enum { LENGTH = 200000 };
	unsigned char *buf = malloc(LENGTH), *got = malloc(LENGTH);
	struct world w;
	struct area a;

	area_open_world(&w, *state, 2);
	area_open(&a, &w, 1, LENGTH, 3, false);
	for (int i = 0; i < 20; i++) {
		struct task t[2] = {{0}};

		world_fill(buf, LENGTH, i);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[0]), 0);
		assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, LENGTH, RWK_F_FENCE, &t[1]), 0);
		world_wait(&w, &t[1]);
		world_check(got, LENGTH, i);
		assert_true(t[0].times == 1 && t[0].order < t[1].order);
	}
	area_close(&a);
	world_close(&w);
	free(buf);
	free(got);
}

/* A fenced request behind a direct one of which nobody is told, and nothing else under way that would remind of it. */
static void fence_untold(void **state)
{
	enum { LENGTH = 100000 };
	unsigned char *memory = calloc(1, LENGTH), *buf = malloc(LENGTH), *got = malloc(LENGTH);
	struct iovec iov = {memory, LENGTH};
	struct rwk_region_attr attr = {.iov = &iov, .count = 1, .access = 3, .own_key = true, .key = 9};
	struct area a = {.who = 1, .key = 9};
	struct rwk_region *r;
	struct world w;

	area_open_world(&w, *state, 2);
	rwk_engine_want_reached(w.e[1], 0);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &r), 0);
	for (int i = 0; i < 4; i++) {
		struct task t[2] = {{0}};

		world_fill(buf, LENGTH, i);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[0]), 0);
		assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, LENGTH, RWK_F_FENCE, &t[1]), 0);
		world_wait(&w, &t[1]);
		world_check(got, LENGTH, i);
		assert_true(t[0].times == 1 && t[0].order < t[1].order);
	}
	rwk_region_remove(w.regions[1], r);
	world_close(&w);
	free(memory);
	free(buf);
	free(got);
}

/* What is promised to stay in order does, if its target computes: a write of 8 bytes, and a read of the most. */
static void promised_order(void **state)
{
	enum { LENGTH = 1024 };
	unsigned char memory[LENGTH] = {0}, got[LENGTH], word[8] = "written";
	struct iovec iov = {memory, LENGTH};
	struct rwk_region_attr attr = {.iov = &iov, .count = 1, .access = 3, .own_key = true, .key = 9};
	struct area a = {.who = 1, .key = 9};
	struct task met[2] = {{0}}, t[2] = {{0}};
	struct rwk_region *r;
	struct world w;

	area_open_world(&w, *state, 4);
	rwk_engine_want_reached(w.e[1], 0);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &r), 0);
	for (int i = 0; i < 2; i++) { /* the first connects, the second asks */
		assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, LENGTH, 0, &met[i]), 0);
		world_settle(&w);
	}
	w.computes[1] = true;
	assert_int_equal(area_simple(&w, 0, &a, WRITE, word, 0, sizeof(word), 0, &t[0]), 0);
	assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, LENGTH, 0, &t[1]), 0);
	for (int i = 0; i < 300; i++)
		world_step(&w);
	w.computes[1] = false;
	world_wait(&w, &t[0]);
	world_wait(&w, &t[1]);
	assert_true(!t[0].c.status && !t[1].c.status);
	assert_memory_equal(got, word, sizeof(word));
	rwk_region_remove(w.regions[1], r);
	world_close(&w);
}

/* Notes what is said of each op, and hands it on. */
static const struct rwk_transport *real;
static struct rwk_transport noting;
static int told_behind; /* -1: nothing was handed over */

static int noting_post(struct rwk_channel *ch, struct rwk_op *op)
{
	told_behind = op->behind;
	return real->post(ch, op);
}

static void note_posts(struct rwk_channel *ch)
{
	real = ch->transport;
	noting = *real;
	noting.post = noting_post;
	ch->transport = &noting;
}

static struct rwk_op *held;

static int holding_post(struct rwk_channel *ch, struct rwk_op *op)
{
	if (op->type == RWK_OP_SEND)
		return real->post(ch, op);
	held = op;
	return 0;
}

/* A fenced read is not sent as long as a direct write goes on, and is sent when that ends. */
static void fence_waits(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *buf = calloc(1, LENGTH), *got = calloc(1, LENGTH);
	struct task t[2] = {{0}};
	struct rwk_channel *ch;
	struct world w;
	struct area a;

	area_open_met(&a, &w, *state, got, LENGTH);
	ch = w.peer[0][1]->channel;
	note_posts(ch);
	noting.post = holding_post;
	held = NULL;
	world_fill(buf, LENGTH, 5);
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[0]), 0);
	assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, LENGTH, RWK_F_FENCE, &t[1]), 0);
	world_settle(&w);
	assert_int_equal(held != NULL, ch->direct_min != 0); /* else its memory cannot be reached here */
	ch->transport = real;
	if (held) {
		assert_int_equal(t[0].times + t[1].times, 0);
		if (real->post(ch, held) == 1)
			held->done(held, 0);
	}
	world_wait(&w, &t[1]);
	world_check(got, LENGTH, 5);
	assert_true(t[0].times == 1 && t[0].order < t[1].order);
	area_close(&a);
	world_close(&w);
	free(buf);
	free(got);
}

/*
 * What is posted behind a fenced request that waits does not overtake it, if it could go directly, nor those that this
 * waits for: all see each other's work in the order of the calls. A message is not taken until then.
 */
static void behind_fence(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *buf = calloc(1, LENGTH), *got = calloc(1, LENGTH);
	struct task t[4] = {{0}}, s = {0}, r = {0};
	uint8_t byte = 7, in = 0;
	struct world w;
	struct area a;

	area_open_met(&a, &w, *state, got, LENGTH);
	world_fill(buf, LENGTH, 5);
	w.computes[1] = true;
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, 8, 0, &t[0]), 0);
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf + 8, 8, 8, RWK_F_FENCE, &t[1]), 0);
	assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, LENGTH, 0, &t[2]), 0);
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[3]), 0);
	for (enum rwk_space space = 0; space < RWK_SPACES; space++)
		assert_int_equal(
			rwk_engine_send1(w.e[0], &byte, 1, rwk_space_flag(space), 0, w.peer[0][1], 1, &s), -EAGAIN);
	for (int i = 0; i < 300; i++)
		world_step(&w);
	for (int i = t[0].times; i < 4; i++)
		assert_int_equal(t[i].times, 0);
	w.computes[1] = false;
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in, 1, 1, 0, 0, &r), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, &byte, 1, 1, 0, &s), 0);
	for (int i = 0; i < 4; i++) {
		world_wait(&w, &t[i]);
		assert_int_equal(t[i].c.status, 0);
		assert_true(i == 0 || i == 3 || t[i - 1].order < t[i].order);
	}
	world_wait(&w, &r);
	assert_int_equal(in, 7);
	world_check(got, 16, 5);
	area_check_filled(got + 16, LENGTH - 16);
	world_check(a.bytes, LENGTH, 5);
	area_close(&a);
	world_close(&w);
	free(buf);
	free(got);
}

/* The service learns which direct requests are behind others, as the caller says. */
static void said_behind(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *buf = calloc(1, LENGTH);
	struct rwk_channel *ch;
	struct world w;
	struct area a;

	area_open_met(&a, &w, *state, buf, LENGTH);
	ch = w.peer[0][1]->channel;
	note_posts(ch);
	for (unsigned i = 0; i < 4 && ch->direct_min; i++) {
		enum area_kind kind = i / 2 ? READ : WRITE;
		struct task t = {0};

		told_behind = -1;
		assert_int_equal(area_simple(&w, 0, &a, kind, buf, 0, LENGTH, i % 2 ? RWK_F_BEHIND : 0, &t), 0);
		assert_int_equal(told_behind, i % 2);
		world_wait(&w, &t);
		area_check_done(&t, RWK_F_RMA | (kind == READ ? RWK_F_READ : RWK_F_WRITE));
	}
	ch->transport = real;
	area_close(&a);
	world_close(&w);
	free(buf);
}

/* Likewise while the target has not been told of others. */
static void behind_untold(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *buf = calloc(1, LENGTH);
	struct task t[3] = {{0}}, again = {0};
	struct rwk_channel *ch;
	struct world w;
	struct area a;

	area_open_met(&a, &w, *state, buf, LENGTH);
	rwk_region_set_told(a.region, RWK_REGION_WRITE);
	world_settle(&w);
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &again), 0); /* asks anew */
	world_settle(&w);
	ch = w.peer[0][1]->channel;
	note_posts(ch);
	w.computes[1] = ch->direct_min; /* else its memory cannot be reached here */
	for (int i = 0; i < 3 && ch->direct_min; i++) {
		told_behind = -1;
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[i]), 0);
		assert_int_equal(told_behind, i > 0);
		world_settle(&w);
		assert_int_equal(t[i].times, 1);
	}
	ch->transport = real;
	w.computes[1] = false;
	for (int i = 0; i < 3 && ch->direct_min; i++) {
		world_wait(&w, &t[i]);
		area_check_done(&t[i], RWK_F_RMA | RWK_F_WRITE);
	}
	area_close(&a);
	world_close(&w);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AREA_EACH(fence),
		AREA_EACH(fence_untold),
		{"fence_waits, shared memory", fence_waits, NULL, NULL, (void *)&rwk_shm_transport},
		AREA_EACH(behind_fence),
		{"behind_untold, shared memory", behind_untold, NULL, NULL, (void *)&rwk_shm_transport},
		{"said_behind, shared memory", said_behind, NULL, NULL, (void *)&rwk_shm_transport},
		WORLD_EACH(promised_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

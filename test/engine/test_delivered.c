/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages whose sends wait for the receiver: until it has them (RWK_F_DELIVERED), or until they are in their
 * receivers' buffers (RWK_F_MATCHED). Their payload goes along, and each send ends with its own message, once, whatever
 * else becomes of that.
 */
#include "engine/world.h"

#include <stdlib.h>

enum { TAG = 5, LENGTH = 200, LONGEST = 60000, MANY = 300 };

static unsigned char out[LONGEST], in[LONGEST];

/* Messages of LONGEST bytes come in pieces, wherever there are such. */
static void open_two(struct world *w, const void *transport)
{
	struct world_attr a = {.transport = transport, .count = 2};

	a.service = rwk_sim_service_default;
	a.service.send_max = LONGEST;
	world_open(w, &a);
}

/* Every message so far went with its payload. */
static void check_eager(struct world *w, uint64_t messages)
{
	const struct rwk_engine_counters *c = rwk_engine_counters(w->e[0]);

	assert_int_equal(c->sent_eager, messages);
	assert_int_equal(c->sent_rendezvous, 0);
}

/* A message of that length, sent in one of several ways, awaited or not; `flags` have its level. */
static void one_way(struct world *w, size_t len, enum rwk_space space, bool awaited, uint32_t flags, unsigned pieces)
{
	const struct iovec iov[2] = {{out, len / 3}, {out + len / 3, len - len / 3}};
	struct task s = {0}, r = {0};

	world_fill(out, len, len);
	memset(in, 0, len);
	if (awaited)
		assert_int_equal(world_recv(w, 1, 0, space, in, len, TAG, 0, 0, &r), 0);
	if (pieces == 2)
		assert_int_equal(world_sendv(w, 0, 1, space, iov, 2, TAG, flags, &s), 0);
	else
		assert_int_equal(world_send(w, 0, 1, space, out, len, TAG, flags, &s), 0);
	assert_int_equal(s.times, 0);
	if (!awaited) {
		world_settle(w);
		assert_int_equal(s.times, flags & RWK_F_DELIVERED ? 1 : 0);
		assert_int_equal(world_recv(w, 1, 0, space, in, len, TAG, 0, 0, &r), 0);
	}
	world_wait(w, &r);
	world_wait(w, &s);
	assert_int_equal(s.c.status, 0);
	world_check_receive(w, &r, 1, 0, space, len, TAG, flags & RWK_F_DATA);
	world_check(in, len, len);
}

static void every_way(void **state)
{
	static const size_t lengths[] = {0, 8, 200, 5000, LONGEST};
	uint64_t messages = 0;
	struct world w;

	open_two(&w, *state);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (unsigned how = 0; how < 64; how++) {
			uint32_t flags = (how & 4 ? RWK_F_DATA : 0) | (how & 8 ? RWK_F_INJECT : 0) |
					 (how & 32 ? RWK_F_DELIVERED : RWK_F_MATCHED);

			if (how & 8 && lengths[i] > RWK_INJECT_MAX)
				continue;
			one_way(&w, lengths[i], how & 1 ? RWK_TAGGED : RWK_PLAIN, how & 2, flags, how & 16 ? 2 : 1);
			messages++;
		}
	}
	check_eager(&w, messages);
	world_close(&w);
}

/* A send that was told of its message hears no more of it: another one in its place waits for its own receive. */
static void told_once(void **state)
{
	struct world w;

	open_two(&w, *state);
	for (unsigned how = 0; how < 4; how++) {
		size_t len = how & 1 ? LONGEST : 8;
		struct task kept = {0}, waits = {0}, r[2] = {{0}};

		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, len, TAG, RWK_F_DELIVERED, &kept), 0);
		world_wait(&w, &kept);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, len, TAG + 1, RWK_F_MATCHED, &waits), 0);
		world_settle(&w);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, len, TAG, 0,
					 how & 2 ? RWK_F_PEEK | RWK_F_DISCARD : 0, &r[0]),
			0);
		world_wait(&w, &r[0]);
		world_settle(&w);
		assert_int_equal(waits.times, 0);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, len, TAG + 1, 0, 0, &r[1]), 0);
		world_wait(&w, &r[1]);
		world_wait(&w, &waits);
		assert_int_equal(kept.times, 1);
		assert_int_equal(waits.times, 1);
	}
	world_close(&w);
}

/* Many at once, received from the last to the first: each send ends with its own message. Twice, in the same places. */
static void backwards(void **state)
{
	static struct task s[MANY], r[MANY];
	struct world w;

	open_two(&w, *state);
	for (unsigned round = 0; round < 2; round++) {
		memset(s, 0, sizeof(s)), memset(r, 0, sizeof(r));
		for (unsigned i = 0; i < MANY; i++)
			assert_int_equal(
				world_send(&w, 0, 1, RWK_TAGGED, &i, sizeof(i), i, RWK_F_MATCHED | RWK_F_INJECT, &s[i]), 0);
		world_settle(&w);
		for (unsigned i = MANY; i--;) {
			unsigned got = MANY;

			assert_int_equal(s[i].times, 0);
			assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &got, sizeof(got), i, 0, 0, &r[i]), 0);
			world_wait(&w, &r[i]);
			world_wait(&w, &s[i]);
			assert_int_equal(s[i].c.status, 0);
			assert_int_equal(got, i);
		}
	}
	check_eager(&w, 2 * MANY);
	world_close(&w);
}

static void peek(struct world *w, uint32_t flags, struct task *t)
{
	*t = (struct task){0};
	assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, NULL, 0, TAG, 0, RWK_F_PEEK | flags, t), 0);
	world_wait(w, t);
}

/* Who drops a message, or has no room for it, has had it. */
static void dropped(void **state)
{
	struct task s[3] = {{0}}, t = {0};
	struct world w;

	open_two(&w, *state);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(
			world_send(&w, 0, 1, RWK_TAGGED, out, 100, TAG, RWK_F_DATA | RWK_F_MATCHED, &s[i]), 0);
	}
	world_settle(&w);
	peek(&w, RWK_F_DISCARD, &t);
	assert_int_equal(t.c.flags, RWK_F_RECV | RWK_F_TAGGED | RWK_F_DATA);
	world_wait(&w, &s[0]);
	assert_int_equal(s[1].times, 0);
	peek(&w, RWK_F_CLAIM, &t);
	world_settle(&w);
	assert_int_equal(s[1].times, 0);
	t.times = 0;
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, 0, 0, RWK_F_CLAIM | RWK_F_DISCARD, &t), 0);
	world_wait(&w, &s[1]);
	t = (struct task){0};
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 10, TAG, 0, 0, &t), 0);
	world_wait(&w, &t);
	world_wait(&w, &s[2]);
	assert_int_equal(t.c.status, -EMSGSIZE);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(s[i].c.status, 0);
	check_eager(&w, 3);
	world_close(&w);
}

/* The same while its pieces are still coming. */
static void dropped_while_coming(void **state)
{
	struct task s = {0}, t = {0};
	struct world w;

	open_two(&w, *state);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, LONGEST, TAG, RWK_F_MATCHED, &s), 0);
	do
		peek(&w, RWK_F_DISCARD, &t);
	while (t.c.status == -ENOMSG && world_step(&w));
	assert_int_equal(t.c.status, 0);
	world_wait(&w, &s);
	assert_int_equal(s.c.status, 0);
	assert_int_equal(rwk_engine_counters(w.e[1])->unexpected_bytes_now, 0);
	check_eager(&w, 1);
	world_close(&w);
}

/* Without credit they are announced, and all the same received in order. */
static void lack_credit(void *transport, uint32_t level)
{
	static struct task s[MANY];
	struct world w;

	memset(s, 0, sizeof(s));
	world_open(&w, &(struct world_attr){.transport = transport, .count = 2, .eager_credit = 32 << 10});
	for (unsigned i = 0; i < MANY; i++) {
		memcpy(out, &i, sizeof(i));
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, LENGTH, TAG, level | RWK_F_INJECT, &s[i]), 0);
	}
	world_settle(&w);
	assert_true(rwk_engine_counters(w.e[1])->unexpected_bytes_now <= 32 << 10);
	assert_int_equal(s[MANY - 1].times, 0);
	for (unsigned i = 0; i < MANY; i++) {
		struct task r = {0};

		if (level == RWK_F_MATCHED)
			assert_int_equal(s[i].times, 0);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, LENGTH, TAG, 0, 0, &r), 0);
		world_wait(&w, &r);
		world_wait(&w, &s[i]);
		assert_int_equal(s[i].times, 1);
		assert_memory_equal(in, &i, sizeof(i));
	}
	assert_in_range(rwk_engine_counters(w.e[0])->sent_eager, 100, 150);
	/* What may come late does so where nobody copies it by himself. */
	assert_int_equal(rwk_engine_counters(w.e[0])->sent_late > 0, level == RWK_F_DELIVERED);
	world_close(&w);
}

static void without_credit(void **state)
{
	lack_credit(*state, RWK_F_MATCHED);
	lack_credit(*state, RWK_F_DELIVERED);
}

/* The receiver dies with what it has not received: each send ends once, in error. */
static void receiver_dies(void **state)
{
	struct task s[4] = {{0}};
	struct world w;

	open_two(&w, *state);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(
			world_send(&w, 0, 1, RWK_TAGGED, out, i % 2 ? LONGEST : 8, TAG, RWK_F_MATCHED, &s[i]), 0);
		if (i == 1)
			world_settle(&w);
	}
	world_kill(&w, 1);
	for (unsigned i = 0; i < 4; i++) {
		world_wait(&w, &s[i]);
		assert_int_equal(s[i].times, 1);
		assert_true(s[i].c.status < 0);
	}
	world_close(&w);
}

/* The receiver's word for each is a debt of its own until it has gone out, however long the sender does not look. */
static void word_is_owed(void **state)
{
	struct task s[MANY] = {{0}}, r[MANY] = {{0}};
	struct world w;

	open_two(&w, *state);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 8, i, RWK_F_MATCHED, &s[i]), 0);
	world_settle(&w);
	w.computes[0] = true;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 8, i, 0, 0, &r[i]), 0);
	if (*state != &sim_packet_transport) /* whose channel takes them all */
		assert_true(rwk_engine_owes(w.e[1]) > 0);
	w.computes[0] = false;
	world_settle(&w);
	assert_int_equal(rwk_engine_owes(w.e[1]), 0);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(s[i].times, 1);
		assert_int_equal(s[i].c.status, 0);
	}
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(every_way),
		WORLD_EACH(told_once),
		WORLD_EACH(backwards),
		WORLD_EACH(dropped),
		WORLD_EACH(dropped_while_coming),
		WORLD_EACH(without_credit),
		WORLD_EACH(receiver_dies),
		WORLD_EACH(word_is_owed),
	};

	setenv("FI_ROPEWALK_CMA", "off", 1);
	return cmocka_run_group_tests_name("engine delivered", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages that found no credit, and whose payload is sent after all when credit comes back (src/engine/late.c):
 * that is so, they are received like any others, whatever becomes of the others that wait, and what somebody waits for
 * already is not sent a second time.
 */
#include "engine/world.h"

#include <stdlib.h>

enum { COUNT = 400, LENGTH = 500, CREDIT = 32 << 10, TAG = 5, OTHER = 9 };

static unsigned char out[COUNT][LENGTH], in[COUNT][LENGTH];
static struct task sent[COUNT], got[COUNT];

static void send_all(struct world *w, size_t length)
{
	for (unsigned i = 0; i < COUNT; i++) {
		world_fill(out[i], length, i);
		assert_int_equal(world_send(w, 0, 1, RWK_TAGGED, out[i], length, TAG + i, RWK_F_DATA, &sent[i]), 0);
	}
}

/* 0 sends COUNT messages to 1, most of them without credit, and all are there or announced. */
static void flood(struct world *w, size_t length)
{
	send_all(w, length);
	world_settle(w);
}

static void open_flooded(struct world *w, const void *transport, size_t length)
{
	memset(sent, 0, sizeof(sent));
	memset(got, 0, sizeof(got));
	world_open(w, &(struct world_attr){.transport = transport, .count = 2, .eager_credit = CREDIT});
	flood(w, length);
}

static const struct rwk_engine_counters *counters(struct world *w, unsigned who)
{
	return rwk_engine_counters(w->e[who]);
}

/* Receives message i and looks at it; its send ends too. */
static void receive(struct world *w, unsigned i, size_t length)
{
	assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, in[i], length, TAG + i, 0, 0, &got[i]), 0);
	world_wait(w, &got[i]);
	world_check_receive(w, &got[i], 1, 0, RWK_TAGGED, length, TAG + i, true);
	world_check(in[i], length, i);
	world_wait(w, &sent[i]);
	assert_int_equal(sent[i].c.status, 0);
}

/* Nothing is left, and what is sent now is eager: credit is whole again. */
static void check_at_rest(struct world *w)
{
	uint64_t before = counters(w, 0)->sent_eager;

	world_settle(w);
	assert_int_equal(counters(w, 1)->unexpected_bytes_now, 0);
	for (unsigned i = 0; i < 100; i++) {
		struct task t = {0}, r = {0};

		assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, in[0], LENGTH, OTHER, ~0ull, 0, &r), 0);
		assert_int_equal(world_send(w, 0, 1, RWK_TAGGED, out[0], LENGTH, OTHER, 0, &t), 0);
		world_wait(w, &r);
		world_wait(w, &t);
	}
	assert_int_equal(counters(w, 0)->sent_eager - before, 100);
}

/* Received in order: most come late, none twice, and no more is kept than the credit allows. */
static void in_order(void **state)
{
	struct world w;

	open_flooded(&w, *state, LENGTH);
	assert_true(counters(&w, 0)->credits_waited > COUNT / 2);
	assert_int_equal(counters(&w, 0)->sent_late, 0);
	for (unsigned i = 0; i < COUNT; i++)
		receive(&w, i, LENGTH);
	assert_true(counters(&w, 0)->sent_late >= counters(&w, 0)->credits_waited * 3 / 4);
	assert_true(counters(&w, 0)->sent_late <= counters(&w, 0)->credits_waited);
	assert_true(counters(&w, 1)->unexpected_bytes_peak <= CREDIT + LENGTH);
	check_at_rest(&w);
	world_close(&w);
}

/* The last is received first: it has to be read, and all the others come as they should. */
static void backwards(void **state)
{
	struct world w;

	open_flooded(&w, *state, LENGTH);
	for (unsigned i = COUNT; i--;)
		receive(&w, i, LENGTH);
	check_at_rest(&w);
	world_close(&w);
}

/* Every third one first, then the others: those that were taken from among the waiting ones are passed over. */
static void with_gaps(void **state)
{
	struct world w;

	open_flooded(&w, *state, LENGTH);
	for (unsigned i = 0; i < COUNT; i += 3)
		receive(&w, i, LENGTH);
	for (unsigned i = 0; i < COUNT; i++)
		if (i % 3)
			receive(&w, i, LENGTH);
	assert_true(counters(&w, 0)->sent_late > 0);
	check_at_rest(&w);
	world_close(&w);
}

/* Receives for all at once: each begins to be read before its payload could come late. */
static void at_once(void **state)
{
	struct world w;

	open_flooded(&w, *state, LENGTH);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[i], LENGTH, TAG + i, 0, 0, &got[i]), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		world_wait(&w, &got[i]);
		world_wait(&w, &sent[i]);
		world_check_receive(&w, &got[i], 1, 0, RWK_TAGGED, LENGTH, TAG + i, true);
		world_check(in[i], LENGTH, i);
	}
	check_at_rest(&w);
	world_close(&w);
}

/* Who has posted receives is sent nothing late, however short the credit is. */
static void awaited(void **state)
{
	struct world w;

	memset(sent, 0, sizeof(sent));
	memset(got, 0, sizeof(got));
	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .eager_credit = CREDIT});
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[i], LENGTH, TAG, 0, 0, &got[i]), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		world_fill(out[i], LENGTH, i);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[i], LENGTH, TAG, 0, &sent[i]), 0);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		world_wait(&w, &got[i]);
		world_wait(&w, &sent[i]);
		world_check(in[i], LENGTH, i);
	}
	assert_true(counters(&w, 0)->credits_waited > 0);
	assert_int_equal(counters(&w, 0)->sent_late, 0);
	world_close(&w);
}

/* Where a receiver copies from the sender's memory by itself, nothing is sent that could be copied. */
static void copied_across(void **state)
{
	struct world w;

	(void)state;
	memset(sent, 0, sizeof(sent));
	memset(got, 0, sizeof(got));
	setenv("FI_ROPEWALK_CMA", "on", 1);
	world_open(&w, &(struct world_attr){.transport = &rwk_shm_transport, .count = 2, .eager_credit = CREDIT});
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[0], 8, OTHER, 0, &sent[0]), 0);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[0], 8, OTHER, 0, 0, &got[0]), 0);
	world_wait(&w, &got[0]);
	world_wait(&w, &sent[0]);
	sent[0] = got[0] = (struct task){0};
	flood(&w, LENGTH);
	for (unsigned i = 0; i < COUNT; i++)
		receive(&w, i, LENGTH);
	assert_true(counters(&w, 0)->credits_waited > COUNT / 2);
	assert_int_equal(counters(&w, 0)->sent_late, 0);
	check_at_rest(&w);
	world_close(&w);
	setenv("FI_ROPEWALK_CMA", "off", 1);
}

/*
 * What was sent eagerly is received as it comes, and its credit given back before any waits: who takes one of those
 * that wait then asks for the others.
 */
static void asked_for(void **state)
{
	unsigned eager;
	struct world w;

	memset(sent, 0, sizeof(sent));
	memset(got, 0, sizeof(got));
	world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .eager_credit = CREDIT});
	send_all(&w, LENGTH);
	eager = (unsigned)counters(&w, 0)->sent_eager;
	for (unsigned i = 0; i < eager; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[i], LENGTH, TAG + i, 0, 0, &got[i]), 0);
	world_settle(&w);
	assert_int_equal(counters(&w, 0)->sent_late, 0);
	for (unsigned i = eager; i < COUNT; i++)
		receive(&w, i, LENGTH);
	assert_true(counters(&w, 0)->sent_late >= counters(&w, 0)->credits_waited * 3 / 4);
	check_at_rest(&w);
	world_close(&w);
}

/* Messages of no bytes, which have nothing that could be read. */
static void empty(void **state)
{
	struct world w;

	open_flooded(&w, *state, 0);
	for (unsigned i = 0; i < COUNT; i++)
		receive(&w, i, 0);
	check_at_rest(&w);
	world_close(&w);
}

static void peek(struct world *w, unsigned i, uint32_t flags)
{
	struct task t = {0};

	assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, NULL, 0, TAG + i, 0, RWK_F_PEEK | flags, &t), 0);
	world_wait(w, &t);
	assert_int_equal(t.c.status, 0);
	assert_int_equal(t.c.length, LENGTH);
}

/*
 * Of those that wait some are dropped, some are claimed and received in the end, some are too long for their receives:
 * the others are what they should be.
 */
static void dropped_and_claimed(void **state)
{
	static struct task claim[COUNT];
	unsigned char small[100];
	struct world w;

	memset(claim, 0, sizeof(claim));
	open_flooded(&w, *state, LENGTH);
	for (unsigned i = 0; i < COUNT; i += 4) {
		peek(&w, i, RWK_F_DISCARD);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, TAG + i + 1, 0, RWK_F_PEEK | RWK_F_CLAIM,
					 &claim[i]),
			0);
		world_wait(&w, &claim[i]);
		assert_int_equal(claim[i].c.status, 0);
	}
	for (unsigned i = 2; i < COUNT; i += 4) {
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, small, 100, TAG + i, 0, 0, &got[i]), 0);
		world_wait(&w, &got[i]);
		assert_int_equal(got[i].c.status, -EMSGSIZE);
		assert_int_equal(got[i].c.overflow, LENGTH - 100);
		world_check(small, 0, i);
		receive(&w, i + 1, LENGTH);
	}
	for (unsigned i = 0; i < COUNT; i += 4) {
		claim[i].times = 0;
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in[i + 1], LENGTH, 0, 0, RWK_F_CLAIM, &claim[i]), 0);
		world_wait(&w, &claim[i]);
		world_check(in[i + 1], LENGTH, i + 1);
		world_wait(&w, &sent[i]);
		world_wait(&w, &sent[i + 1]);
		world_wait(&w, &sent[i + 2]);
	}
	check_at_rest(&w);
	world_close(&w);
}

enum { ROOMS = 3 };

/* Message i is for room i % ROOMS of that engine. */
static void send_to_room(struct world *w, unsigned to, unsigned i)
{
	const struct iovec iov = {out[i], LENGTH};
	struct rwk_peer *room = rwk_peer_room(w->peer[0][to], i % ROOMS);

	world_fill(out[i], LENGTH, i);
	assert_int_equal(
		rwk_engine_send(w->e[0], RWK_TAGGED, room, &iov, 1, TAG + i, WORLD_DATA(TAG + i), RWK_F_DATA, &sent[i]),
		0);
}

static void receive_in_room(struct world *w, unsigned who, unsigned i)
{
	struct rwk_inbox *room = rwk_engine_room(w->e[who], i % ROOMS);
	const struct iovec iov = {in[i], LENGTH};

	memset(in[i], 0, LENGTH);
	assert_int_equal(rwk_inbox_recv(room, RWK_TAGGED, NULL, &iov, 1, 0, ~0ull, 0, &got[i]), 0);
	world_wait(w, &got[i]);
	world_check_receive(w, &got[i], who, 0, RWK_TAGGED, LENGTH, TAG + i, true);
	world_check(in[i], LENGTH, i);
	world_wait(w, &sent[i]);
}

/* For several rooms in turn, of another engine or our own: each finds its own, whichever is received first. */
static void rooms(struct world *w, const void *transport, unsigned to)
{
	memset(sent, 0, sizeof(sent));
	memset(got, 0, sizeof(got));
	world_open(w, &(struct world_attr){
			      .transport = transport, .count = 2, .eager_credit = CREDIT, .rooms = ROOMS});
	assert_int_equal(world_send(w, 0, to, RWK_TAGGED, NULL, 0, OTHER, 0, &sent[0]), 0);
	assert_int_equal(world_recv(w, to, 0, RWK_TAGGED, NULL, 0, OTHER, 0, 0, &got[0]), 0);
	world_wait(w, &got[0]);
	world_wait(w, &sent[0]);
	sent[0] = got[0] = (struct task){0};
	for (unsigned i = 0; i < COUNT; i++)
		send_to_room(w, to, i);
	world_settle(w);
	for (unsigned i = 0; i < COUNT / 2; i++)
		receive_in_room(w, to, i);
	for (unsigned room = ROOMS; room--;) {
		for (unsigned i = COUNT / 2; i < COUNT; i++)
			if (i % ROOMS == room)
				receive_in_room(w, to, i);
	}
}

static void into_rooms(void **state)
{
	struct world w;

	rooms(&w, *state, 1);
	assert_true(counters(&w, 0)->credits_waited > COUNT / 2);
	assert_true(counters(&w, 0)->sent_late > 0);
	check_at_rest(&w);
	world_close(&w);
}

/* Our own messages wait in their sends: nothing comes late, and what waits finds its room all the same. */
static void into_own_rooms(void **state)
{
	struct world w;

	rooms(&w, *state, 0);
	assert_int_equal(counters(&w, 0)->sent_late, 0);
	assert_int_equal(counters(&w, 0)->unexpected_bytes_now, 0);
	assert_true(counters(&w, 0)->unexpected_bytes_peak <= CREDIT + LENGTH);
	world_close(&w);
}

/* So long that they come in pieces. */
static void in_pieces(void **state)
{
	enum { MANY = 60, LONG = 60000 };
	static unsigned char long_out[MANY][LONG], long_in[LONG];
	struct world_attr a = {.transport = *state, .count = 2, .eager_credit = 300000};
	struct world w;

	memset(sent, 0, sizeof(sent));
	a.service = rwk_sim_service_default;
	a.service.send_max = LONG;
	world_open(&w, &a);
	for (unsigned i = 0; i < MANY; i++) {
		world_fill(long_out[i], LONG, i);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, long_out[i], LONG, TAG, 0, &sent[i]), 0);
	}
	world_settle(&w);
	for (unsigned i = 0; i < MANY; i++) {
		struct task t = {0};

		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, long_in, LONG, TAG, 0, 0, &t), 0);
		world_wait(&w, &t);
		world_check(long_in, LONG, i);
		world_wait(&w, &sent[i]);
	}
	assert_true(counters(&w, 0)->sent_late > 0);
	world_settle(&w);
	assert_int_equal(counters(&w, 1)->unexpected_bytes_now, 0);
	world_close(&w);
}

/* The sender dies while some are on their way: what is whole is received, the rest ends in error. */
static void sender_dies(void **state)
{
	unsigned whole = 0, lost = 0;
	struct world w;

	open_flooded(&w, *state, LENGTH);
	for (unsigned i = 0; i < COUNT / 2; i++)
		receive(&w, i, LENGTH);
	world_kill(&w, 0);
	world_settle(&w);
	for (unsigned i = COUNT / 2; i < COUNT; i++) {
		ssize_t rc = world_recv(&w, 1, 0, RWK_TAGGED, in[i], LENGTH, TAG + i, 0, 0, &got[i]);

		if (!rc)
			world_wait(&w, &got[i]);
		whole += !rc && !got[i].c.status;
		lost += rc || got[i].c.status;
		if (!rc && !got[i].c.status)
			world_check(in[i], LENGTH, i);
	}
	assert_true(whole > 0);
	assert_int_equal(whole + lost, COUNT / 2);
	assert_int_equal(counters(&w, 1)->unexpected_bytes_now, 0);
	world_close(&w);
}

/* The receiver dies: each send ends, once. */
static void receiver_dies(void **state)
{
	struct world w;

	open_flooded(&w, *state, LENGTH);
	for (unsigned i = 0; i < COUNT / 2; i++)
		receive(&w, i, LENGTH);
	world_kill(&w, 1);
	world_settle(&w);
	for (unsigned i = 0; i < COUNT; i++) {
		world_wait(&w, &sent[i]);
		assert_int_equal(sent[i].times, 1);
	}
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(in_order),
		WORLD_EACH(backwards),
		WORLD_EACH(with_gaps),
		WORLD_EACH(at_once),
		WORLD_EACH(awaited),
		WORLD_EACH(asked_for),
		WORLD_EACH(empty),
		cmocka_unit_test(copied_across),
		WORLD_EACH(dropped_and_claimed),
		WORLD_EACH(into_rooms),
		{"into_own_rooms", into_own_rooms, NULL, NULL, (void *)&rwk_sim_transport},
		WORLD_EACH(in_pieces),
		WORLD_EACH(sender_dies),
		WORLD_EACH(receiver_dies),
	};

	setenv("FI_ROPEWALK_CMA", "off", 1); /* else shared memory sends nothing late */
	return cmocka_run_group_tests_name("late payload", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process by two of its addresses: that which it calls its own, by which it has made contact or been contacted,
 * and an IP that it has besides, with its port. Both are one peer as soon as that shows, and nothing is lost or out of
 * order.
 */
#include "engine/area.h"
#include "engine/internal.h"

#define ROUNDS 27 /* messages of world_mixed */

static unsigned char out[ROUNDS][WORLD_MIXED_MAX], in[ROUNDS][WORLD_MIXED_MAX];

/** That engine by an IP which is none of this host's. On the simulated network the port leads there. */
static struct rwk_peer *other_address(struct world *w, unsigned who, unsigned whom)
{
	static const uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 198, [13] = 51, [14] = 100, [15] = 7};
	struct rwk_address to = {
		.flags_rank = RWK_ADDR_PARTIAL, .nonce_port = rwk_address_port(rwk_engine_address(w->e[whom]))};

	memcpy(to.ip, ip, sizeof(ip));
	return w->peer[who][whom] = rwk_engine_peer(w->e[who], &to);
}

/** Engine 0 knows engine 1 by another address; what engine 1 has sent waits, or that has been received (`first`). */
static void open_met(struct world *w, void *state, struct task *first)
{
	static uint32_t got;

	world_open(w, &(struct world_attr){.transport = state, .count = 2, .strangers = true, .eager_credit = 100000});
	w->peer[1][0] = rwk_engine_peer(w->e[1], rwk_engine_address(w->e[0]));
	if (first)
		assert_int_equal(world_recv(w, 0, WORLD_ANY, RWK_TAGGED, &got, 4, 1, 0, 0, first), 0);
	assert_int_equal(world_send(w, 1, 0, RWK_TAGGED, &(uint32_t){11}, 4, 1, RWK_F_SILENT | RWK_F_INJECT, NULL), 0);
	if (first)
		world_wait(w, first);
	world_settle(w);
}

/** As many receives at `who`, from `from`, as send_all sends. */
static void receive_all(struct world *w, unsigned who, unsigned from, struct task *t)
{
	memset(in, 0, sizeof(in));
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_int_equal(world_recv(w, who, from, RWK_TAGGED, in[i], sizeof(in[i]), 5, 0, 0, &t[i]), 0);
}

/** Messages of each kind, some of which want to be told of. */
static void send_some(struct world *w, unsigned from, unsigned to, unsigned begin, unsigned end, struct task *t)
{
	static const uint32_t flags[] = {0, RWK_F_DELIVERED, RWK_F_MATCHED, RWK_F_ARRIVED};

	for (unsigned i = begin; i < end; i++) {
		world_fill(out[i], world_mixed(i), i);
		assert_int_equal(
			world_send(w, from, to, RWK_TAGGED, out[i], world_mixed(i), 5, flags[i % 4], &t[i]), 0);
	}
}

static void check_all(struct world *w, const struct task *sent, const struct task *received)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		world_wait(w, &received[i]);
		world_wait(w, &sent[i]);
		assert_int_equal(sent[i].c.status + received[i].c.status, 0);
		assert_int_equal(received[i].c.length, world_mixed(i));
		world_check(in[i], world_mixed(i), i);
	}
}

/* What is sent to the other address arrives, all kinds in order, behind what has gone by the first. */
static void sends(void **state)
{
	struct task first = {0}, s[ROUNDS] = {{0}}, r[ROUNDS] = {{0}};
	struct rwk_peer *other, *own;
	struct world w;

	open_met(&w, *state, &first);
	own = first.c.peer;
	other = other_address(&w, 0, 1);
	assert_ptr_not_equal(other, own);
	receive_all(&w, 1, 0, r);
	w.peer[0][1] = own;
	send_some(&w, 0, 1, 0, 5, s);
	w.peer[0][1] = other;
	send_some(&w, 0, 1, 5, 20, s);
	world_settle(&w);
	assert_int_equal(w.merged[0], 1);
	assert_ptr_equal(w.peer[0][1], own);
	send_some(&w, 0, 1, 20, ROUNDS, s);
	check_all(&w, s, r);
	world_settle(&w);
	assert_int_equal(own->credit, 100000 - (int64_t)w.peer[1][0]->owed);
	assert_ptr_equal(other_address(&w, 0, 1), own);
	assert_int_equal(rwk_engine_counters(w.e[0])->failed_peers, 0);
	assert_int_equal(w.merged[1], 0);
	world_close(&w);
}

/* Each asks the other, by two addresses or one, before anybody has answered. */
static void crossing(void **state)
{
	for (unsigned how = 0; how < 4; how++) {
		struct task s[2][ROUNDS] = {{{0}}}, r[ROUNDS] = {{0}};
		struct world w;

		world_open(&w, &(struct world_attr){.transport = *state, .count = 2, .strangers = true});
		w.peer[1][0] = rwk_engine_peer(w.e[1], rwk_engine_address(w.e[0]));
		if (how & 1)
			other_address(&w, 1, 0);
		if (how & 2) {
			w.peer[0][1] = rwk_engine_peer(w.e[0], rwk_engine_address(w.e[1]));
			send_some(&w, 0, 1, 0, 4, s[0]);
		}
		other_address(&w, 0, 1);
		send_some(&w, 0, 1, how & 2 ? 4 : 0, ROUNDS, s[0]);
		send_some(&w, 1, 0, 0, ROUNDS, s[1]);
		receive_all(&w, 1, 0, r);
		check_all(&w, s[0], r);
		memset(r, 0, sizeof(r));
		receive_all(&w, 0, 1, r);
		check_all(&w, s[1], r);
		world_close(&w);
	}
}

/*
 * Receives directed at the other address: the first takes what waits, the others what comes, in the order of posting
 * with those from anyone. So does a buffer for many messages.
 */
static void receives(void **state)
{
	for (unsigned many = 0; many < 2; many++) {
		struct task waits = {0}, t[20] = {{0}}, before = {0}, multi = {0}, s = {0};
		uint32_t got[22] = {0}, room[2] = {0};
		struct world w;

		open_met(&w, *state, NULL);
		other_address(&w, 0, 1);
		assert_int_equal(world_recv(&w, 0, 1, RWK_TAGGED, &got[20], 4, 1, 0, 0, &waits), 0);
		for (uint32_t i = 0; i < (many ? 20 : 4); i++) {
			unsigned from = i % 2 ? WORLD_ANY : 1;

			assert_int_equal(world_recv(&w, 0, from, RWK_TAGGED, &got[i], 4, 10 + i / 2, 0, 0, &t[i]), 0);
		}
		/* That comes first: if they are many they are found by hash from then on. */
		assert_int_equal(world_recv(&w, 0, WORLD_ANY, RWK_TAGGED, &got[21], 4, 3, 0, 0, &before), 0);
		world_send(&w, 1, 0, RWK_TAGGED, &(uint32_t){12}, 4, 3, RWK_F_SILENT | RWK_F_INJECT, NULL);
		world_wait(&w, &before);
		assert_int_equal(w.merged[0], 0);
		assert_int_equal(world_recv(&w, 0, 1, RWK_PLAIN, room, sizeof(room), 0, 0, RWK_F_MULTI, &multi), 0);
		world_send(&w, 1, 0, RWK_PLAIN, &(uint32_t){77}, 4, 0, 0, &s);
		world_wait(&w, &waits);
		assert_int_equal(got[20], 11);
		world_wait(&w, &multi);
		assert_int_equal(room[0], 77);
		for (uint32_t n = many ? 20 : 4; n--;) { /* pairs from the last on: both tag and peer tell */
			uint32_t i = n ^ 1;

			world_send(&w, 1, 0, RWK_TAGGED, &i, 4, 10 + i / 2, RWK_F_SILENT | RWK_F_INJECT, NULL);
			world_wait(&w, &t[i]);
			assert_int_equal(got[i], i);
		}
		world_settle(&w);
		assert_int_equal(w.merged[0], 1);
		multi = (struct task){0};
		rwk_engine_cancel(w.e[0], &multi);
		world_close(&w);
	}
}

/* What waits of it goes into a buffer for many. */
static void waiting_into_many(void **state)
{
	struct task multi = {0};
	uint32_t room[40] = {0};
	struct world w;

	open_met(&w, *state, NULL);
	other_address(&w, 0, 1);
	assert_int_equal(world_recv(&w, 0, 1, RWK_TAGGED, room, sizeof(room), 1, 0, RWK_F_MULTI, &multi), 0);
	world_wait(&w, &multi);
	assert_int_equal(room[0], 11);
	world_close(&w);
}

/* One-sided operations to the other address, behind some to the first that are under way. */
static void accesses(void **state)
{
	static unsigned char from[3][MEGA], to[MEGA];
	struct task first = {0}, t[6] = {{0}};
	struct rwk_atomic_args a = {.op = RWK_SUM, .type = RWK_UINT64};
	struct rwk_peer *own, *other;
	uint64_t one = 1, before = 0;
	struct rwk_remote word;
	struct area area;
	struct world w;

	open_met(&w, *state, &first);
	own = first.c.peer;
	other = other_address(&w, 0, 1);
	area_open(&area, &w, 1, 3 * MEGA + 8, 3, true);
	memset(area.bytes + 3 * MEGA, 0, 8);
	for (int i = 0; i < 3; i++)
		world_fill(from[i], MEGA, 100 + i);
	w.peer[0][1] = own;
	assert_int_equal(area_simple(&w, 0, &area, WRITE, from[0], 0, MEGA, 0, &t[0]), 0);
	w.peer[0][1] = other;
	assert_int_equal(area_simple(&w, 0, &area, WRITE, from[1], MEGA, MEGA, 0, &t[1]), 0);
	assert_int_equal(area_simple(&w, 0, &area, WRITE, from[2], 2 * MEGA, MEGA, RWK_F_DATA, &t[2]), 0);
	assert_int_equal(area_simple(&w, 0, &area, READ, to, MEGA, MEGA, RWK_F_FENCE, &t[3]), 0);
	word = (struct rwk_remote){area.base + 3 * MEGA, 8, area.key};
	a.rma = (struct rwk_rma_args){.peer = other,
		.iov = &(struct iovec){&one, 8},
		.iov_count = 1,
		.remote = &word,
		.remote_count = 1,
		.context = &t[4]};
	a.result = &(struct iovec){&before, 8};
	a.result_count = 1;
	assert_int_equal(area_atomic(&w, 0, &a), 0);
	for (int i = 0; i < 5; i++) {
		world_wait(&w, &t[i]);
		assert_int_equal(t[i].c.status, 0);
	}
	assert_int_equal(w.merged[0], 1);
	for (int i = 0; i < 3; i++)
		world_check(area.bytes + i * MEGA, MEGA, 100 + i);
	world_check(to, MEGA, 101);
	world_settle(&w);
	assert_int_equal(area.bytes[3 * MEGA], 1);
	assert_int_equal(w.writes[1], 1);
	assert_int_equal(area_simple(&w, 0, &area, WRITE, from[2], 0, MEGA, 0, &t[5]), 0);
	world_wait(&w, &t[5]);
	world_check(area.bytes, MEGA, 102);
	memset(area.bytes, AREA_FILL, 3 * MEGA + 8);
	area_close(&area);
	world_close(&w);
}

/* When it dies, what was meant for either address ends. */
static void dies(void **state)
{
	struct task first = {0}, r = {0}, s = {0};
	struct rwk_peer *own;
	uint32_t got;
	struct world w;

	open_met(&w, *state, &first);
	own = first.c.peer;
	other_address(&w, 0, 1);
	assert_int_equal(world_recv(&w, 0, 1, RWK_TAGGED, &got, 4, 9, 0, 0, &r), 0);
	world_settle(&w);
	assert_ptr_equal(w.peer[0][1], own);
	world_kill(&w, 1);
	world_send(&w, 0, 1, RWK_TAGGED, out[0], 4, 9, 0, &s);
	world_wait(&w, &r);
	assert_int_equal(r.c.status, -ECONNRESET);
	assert_int_equal(rwk_engine_counters(w.e[0])->failed_peers, 1);
	world_close(&w);
}

#define EACH(test)                                                                                                     \
	{#test ", packets", test, NULL, NULL, (void *)&sim_packet_transport},                                          \
	{                                                                                                              \
#test ", shared", test, NULL, NULL, (void *)&sim_shared_transport                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(sends),
		EACH(crossing),
		EACH(receives),
		EACH(waiting_into_many),
		EACH(accesses),
		EACH(dies),
	};

	return cmocka_run_group_tests_name("engine merge", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that the service carries out by itself, and what the target is told of them.
 *
 * Links: shm, sim.
 */
#include "engine/area.h"

#include "base/copy.h"
#include "engine/internal.h"
#include "engine/rma_state.h"
#include "packet/packet.h"

/* A request that names a region again: the first goes by messages, and asks; the others are direct, until it goes. */
static void direct_again(void **state)
{
	unsigned char buf[1000], got[1000];
	struct world w;
	struct area a;

	area_open_world(&w, *state, 2);
	for (int region = 0; region < 3; region++) {
		area_open_key(&a, &w, 1, 1000, 3, region & 1, 77); /* the same key each time */
		for (int i = 0; i < 4; i++) {
			struct task t[3] = {{0}};

			world_fill(buf, 1000, i);
			assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, 1000, i & 1 ? RWK_F_DATA : 0, &t[0]), 0);
			world_wait(&w, &t[0]);
			assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, 1000, 0, &t[1]), 0);
			world_wait(&w, &t[1]);
			world_check(got, 1000, i);
			assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 1, 1000, 0, &t[2]), 0);
			world_wait(&w, &t[2]);
			assert_int_equal(t[2].c.status, -EACCES);
		}
		assert_int_equal(a.reached, 8);
		assert_int_equal(a.reached_bytes, 8000);
		area_close(&a);
	}
	assert_int_equal(w.writes[1], 6);
	assert_int_equal(w.reached[1], 24);
	world_close(&w);
}

/* What nobody wants to know of is not told, but for data. */
static void direct_untold(void **state)
{
	unsigned char memory[1000] = {0}, buf[1000];
	struct iovec iov = {memory, sizeof(memory)};
	struct rwk_region_attr attr = {.iov = &iov, .count = 1, .base = 5, .access = 3, .own_key = true, .key = 9};
	struct area a = {.who = 1, .base = 5, .key = 9};
	struct rwk_region *r;
	struct world w;

	area_open_world(&w, *state, 2);
	rwk_engine_want_reached(w.e[1], 0);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &r), 0);
	for (unsigned i = 0; i < 6; i++) {
		struct task t = {0};

		if (i == 4)
			rwk_engine_want_reached(w.e[1], RWK_REGION_READ | RWK_REGION_WRITE);
		world_fill(buf, 1000, i);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, 1000, i & 1 ? RWK_F_DATA : 0, &t), 0);
		world_wait(&w, &t);
		assert_int_equal(t.c.status, 0);
		world_check(memory, 1000, i);
		assert_int_equal(w.writes[1], (i + 1) / 2);
		world_settle(&w);
		if (i == 3)
			w.reached[1] = 0;
	}
	assert_int_equal(w.reached[1], 2);
	rwk_region_remove(w.regions[1], r);
	world_close(&w);
}

struct wish {
	unsigned region, engine; /* RWK_REGION_* */
};

/* Three writes and as many reads, fewer than go directly before messages are tried, of which those asked for are told. */
static void tells_as_wished(struct world *w, struct area *a, struct wish wish)
{
	unsigned char buf[1000] = {0};

	rwk_region_set_told(a->region, wish.region);
	rwk_engine_want_reached(w->e[1], wish.engine);
	world_settle(w);
	a->reached = w->reached[1] = 0;
	for (int i = 0; i < 6; i++) {
		enum area_kind kind = i & 1 ? READ : WRITE;
		struct task t = {0};

		assert_int_equal(area_simple(w, 0, a, kind, buf, 0, sizeof(buf), 0, &t), 0);
		world_wait(w, &t);
		area_check_done(&t, RWK_F_RMA | (kind == READ ? RWK_F_READ : RWK_F_WRITE));
	}
	world_settle(w);
	assert_int_equal(a->reached, wish.region ? 3 : 0);
	assert_int_equal(w->reached[1], wish.engine ? 3 : 0);
}

/* Who wants to know of reads alone, or of writes alone, is told of these, also where a peer knows the region already. */
static void told_of_one_kind(void **state)
{
	enum { R = RWK_REGION_READ, W = RWK_REGION_WRITE };
	static const struct wish wishes[][2] = {{{R, 0}, {W, 0}}, {{0, R}, {0, W}}, {{R, W}, {W, R}}};

	for (unsigned i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		struct world w;
		struct area a;

		area_open_world(&w, *state, 2);
		area_open(&a, &w, 1, 1000, 3, false);
		tells_as_wished(&w, &a, wishes[i][0]);
		tells_as_wished(&w, &a, wishes[i][1]);
		area_close(&a);
		world_close(&w);
	}
}

/*
 * Direct requests are over without the target. Of those of a kind that it wants to know of it hears when it makes
 * progress; a write with data is over when it has.
 */
static void told_later(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *buf = calloc(1, LENGTH);
	struct world w;
	struct area a;

	for (unsigned access = RWK_REGION_READ; access <= RWK_REGION_WRITE; access++) {
		enum area_kind told = access == RWK_REGION_READ ? READ : WRITE;
		struct task t[3] = {{0}}, again = {0};

		area_open_met(&a, &w, *state, buf, LENGTH);
		rwk_region_set_told(a.region, access);
		world_settle(&w);
		assert_int_equal(area_simple(&w, 0, &a, READ, buf, 0, LENGTH, 0, &again), 0); /* asks anew */
		world_settle(&w);
		w.computes[1] = w.peer[0][1]->channel->direct_min; /* else its memory cannot be reached here */
		assert_int_equal(area_simple(&w, 0, &a, !told, buf, 0, LENGTH, 0, &t[0]), 0);
		world_wait(&w, &t[0]);
		assert_int_equal(t[0].c.status, 0);
		assert_false(w.computes[1] && rwk_peer_accessing(w.peer[0][1])); /* it is not to hear of this one */
		a.reached = 0;
		assert_int_equal(area_simple(&w, 0, &a, told, buf, 0, LENGTH, 0, &t[1]), 0);
		world_settle(&w);
		area_check_done(&t[1], RWK_F_RMA | (told == READ ? RWK_F_READ : RWK_F_WRITE));
		assert_int_equal(a.reached, !w.computes[1]);
		assert_int_equal(rwk_peer_accessing(w.peer[0][1]), w.computes[1]);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, RWK_F_DATA, &t[2]), 0);
		world_settle(&w);
		assert_int_equal(t[2].times, !w.computes[1]);
		w.computes[1] = false;
		world_settle(&w);
		area_check_done(&t[2], RWK_F_RMA | RWK_F_WRITE);
		assert_int_equal(a.reached, told == WRITE ? 2 : 1);
		assert_int_equal(w.writes[1], 1);
		assert_int_equal(t[1].times, 1);
		area_close(&a);
		world_close(&w);
	}
	free(buf);
}

enum { MANY = 1000 };

/* Engines between which few messages have room, and of the second an area that wants to know of writes. */
static void open_narrow(struct area *a, struct world *w, void *transport, unsigned char *buf, size_t length)
{
	size_t lines = rwk_params.ring_lines;
	struct task t[2] = {{0}};

	rwk_params.ring_lines = 64;
	area_open_met(a, w, transport, buf, length);
	rwk_params.ring_lines = lines;
	rwk_region_set_told(a->region, RWK_REGION_WRITE);
	world_settle(w);
	for (int i = 0; i < 2; i++) { /* the first asks anew, the second may go directly */
		assert_int_equal(area_simple(w, 0, a, WRITE, buf, 0, length, 0, &t[i]), 0);
		world_settle(w);
	}
	a->reached = 0;
	if (w->peer[0][1]->rma->choices)
		area_prefer_direct(w->peer[0][1]);
}

/* Writes of that length until some have not gone out, as their target makes no progress: how many. */
static unsigned write_until_owed(struct world *w, struct area *a, void *buf, size_t len, uint32_t flags, struct task *t)
{
	const struct iovec iov = {buf, len};
	const struct rwk_remote remote = {a->base, len, a->key};
	struct rwk_rma_args args = {
		.peer = w->peer[0][1], .iov = &iov, .iov_count = 1, .remote = &remote, .remote_count = 1, .flags = flags};
	unsigned n = 0;

	while (n < MANY && !rwk_engine_owes(w->e[0])) {
		args.context = &t[n++];
		assert_int_equal(rwk_engine_write(w->e[0], &args), 0);
	}
	assert_true(rwk_engine_owes(w->e[0]));
	return n;
}

/* More than go out while the target makes no progress: those that have are done, and owed; in the end it has all. */
static void fill_and_drain(struct world *w, struct area *a, void *buf, bool inject, struct task *t)
{
	uint32_t flags = inject ? RWK_F_INJECT | RWK_F_SILENT : 0;
	size_t len = inject ? 8 : a->length;
	unsigned n;

	w->computes[1] = true;
	n = write_until_owed(w, a, buf, len, flags, t);
	for (unsigned i = 0; i < n && !inject; i++)
		area_check_done(&t[i], RWK_F_RMA | RWK_F_WRITE);
	for (unsigned i = 0; i <= RWK_RMA_POSTED; i++, n++) /* the last account is not with the channel */
		assert_int_equal(area_simple(w, 0, a, WRITE, buf, 0, len, flags, &t[n]), 0);
	assert_int_equal(t[n - 1].times, 0);
	w->computes[1] = false;
	world_settle(w);
	assert_int_equal(t[n - 1].times, !inject);
	assert_int_equal(rwk_engine_owes(w->e[0]), 0);
	assert_int_equal(a->reached, n);
}

/* What the program believes to be done, be it that only the target's count of it is left, is owed until it has gone. */
static void owed(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *buf = calloc(1, LENGTH);
	struct world w;
	struct area a;

	for (int inject = 0; inject < 2; inject++) {
		struct task *t = calloc(MANY + RWK_RMA_POSTED + 1, sizeof(*t));

		open_narrow(&a, &w, *state, buf, LENGTH);
		if (inject || w.peer[0][1]->channel->direct_min) /* else its memory cannot be reached here */
			fill_and_drain(&w, &a, buf, inject, t);
		area_close(&a);
		world_close(&w);
		free(t);
	}
	free(buf);
}

/* What a target has carried out and not been able to answer it owes until the answers have gone. */
static void answers_owed(void **state)
{
	enum { ASKED = 3, LENGTH = 200 };
	static unsigned char buf[LENGTH], got[ASKED][LENGTH];
	struct task t[ASKED] = {{0}};
	struct world w;
	struct area a;

	open_narrow(&a, &w, *state, buf, LENGTH);
	w.computes[0] = true;
	while (!rwk_peer_sending(w.peer[1][0])) /* until its channel is full */
		assert_int_equal(
			rwk_engine_send1(w.e[1], buf, 8, RWK_F_PLAIN | RWK_F_SILENT, 0, w.peer[1][0], 0, NULL), 0);
	assert_int_equal(rwk_engine_owes(w.e[1]), 0);
	for (int i = 0; i < ASKED; i++)
		assert_int_equal(area_simple(&w, 0, &a, READ, got[i], 0, LENGTH, 0, &t[i]), 0);
	world_settle(&w);
	assert_int_equal(rwk_engine_owes(w.e[1]), ASKED);
	w.computes[0] = false;
	world_settle(&w);
	assert_int_equal(rwk_engine_owes(w.e[1]), 0);
	for (int i = 0; i < ASKED; i++)
		area_check_done(&t[i], RWK_F_RMA | RWK_F_READ);
	area_close(&a);
	world_close(&w);
}

/* A target that ends before it has heard of it: the writes were done, and nothing else is said of them. */
static void unheard(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *buf = calloc(1, LENGTH);
	struct task *t = calloc(MANY, sizeof(*t));
	struct world w;
	struct area a;
	unsigned n;

	open_narrow(&a, &w, *state, buf, LENGTH);
	if (w.peer[0][1]->channel->direct_min) {
		w.computes[1] = true;
		n = write_until_owed(&w, &a, buf, LENGTH, 0, t);
		area_remove(&a);
		world_engine_close(&w, 1);
		world_settle(&w);
		for (unsigned i = 0; i < n; i++)
			area_check_done(&t[i], RWK_F_RMA | RWK_F_WRITE);
		assert_int_equal(rwk_engine_owes(w.e[0]), 0);
	}
	area_close(&a);
	world_close(&w);
	free(t);
	free(buf);
}

/* Messages that the channel of engine `who` to its first peer has sent, where it sends packets. */
static uint64_t messages(const struct world *w, unsigned who)
{
	return rwk_packet_counters(w->peer[who][!who]->channel->port)->records_out;
}

/*
 * RC: from so many bytes on the service does it, whatever the peer lets it reach and wherever the bytes lie. What it may
 * not reach is refused, by messages.
 */
static void by_rdma(void **state)
{
	enum { LENGTH = 1 << 20 };
	unsigned char *buf = malloc(LENGTH), *got = malloc(LENGTH);
	struct world w;
	struct area a;
	size_t least[2];

	area_open_met(&a, &w, *state, got, LENGTH);
	least[WRITE] = w.peer[0][1]->channel->direct_write_min;
	least[READ] = w.peer[0][1]->channel->direct_min;
	assert_true(least[READ] && least[WRITE] > least[READ] && least[WRITE] < LENGTH / 2);
	for (unsigned i = 0; i < 24; i++) {
		enum area_kind kind = i & 1 ? READ : WRITE;
		size_t len = i < 20 ? least[kind] + i / 4 - 2 : LENGTH - i, at = i;
		unsigned char *from = kind == READ ? a.bytes + at : buf, *to = kind == READ ? got : a.bytes + at;
		uint64_t before = messages(&w, 0);
		struct task t = {0}, beyond = {0};

		world_fill(from, len, i);
		assert_int_equal(area_simple(&w, 0, &a, kind, kind == READ ? got : buf, at, len, 0, &t), 0);
		world_wait(&w, &t);
		assert_int_equal(t.c.status, 0);
		world_check(to, len, i);
		assert_int_equal(messages(&w, 0) != before, len < least[kind]);
		assert_int_equal(area_simple(&w, 0, &a, kind, buf, LENGTH - len + 1, len, 0, &beyond), 0);
		world_wait(&w, &beyond);
		assert_int_equal(beyond.c.status, -EACCES);
	}
	area_close(&a);
	world_close(&w);
	free(buf);
	free(got);
}

/* A write of two ranges; the second's region has gone, and we have not heard of it: the first is not touched. */
static void gone_range(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *buf = calloc(2, LENGTH);
	const struct iovec iov = {buf, 2 * LENGTH};
	struct task t = {0}, asks = {0};
	struct rwk_remote remote[2];
	struct rwk_rma_args args = {.iov = &iov, .iov_count = 1, .remote = remote, .remote_count = 2, .context = &t};
	struct area a, gone;
	struct world w;

	area_open_met(&a, &w, *state, buf, LENGTH);
	area_open(&gone, &w, 1, LENGTH, 3, true);
	assert_int_equal(area_simple(&w, 0, &gone, READ, buf, 0, LENGTH, 0, &asks), 0);
	world_settle(&w);
	remote[0] = (struct rwk_remote){a.base, LENGTH, a.key};
	remote[1] = (struct rwk_remote){gone.base, LENGTH, gone.key};
	args.peer = w.peer[0][1];
	memset(buf, 1, 2 * LENGTH);
	area_remove(&gone);
	assert_int_equal(area_request(&w, 0, WRITE, &args), 0);
	world_wait(&w, &t);
	assert_int_equal(t.c.status, -EACCES);
	area_check_filled(a.bytes, LENGTH);
	area_check_filled(gone.bytes, LENGTH);
	area_close(&gone);
	area_close(&a);
	world_close(&w);
	free(buf);
}

/* RC: of several long reads at once the first is an RDMA Read, and the others are asked for by a message each. */
static void several(void **state)
{
	enum { LENGTH = 1 << 18, READS = 4 };
	unsigned char *got = malloc((size_t)READS * LENGTH);
	struct task t[READS] = {{0}};
	uint64_t before;
	struct world w;
	struct area a;

	area_open_met(&a, &w, *state, got, LENGTH);
	before = messages(&w, 0);
	world_fill(a.bytes, LENGTH, 7);
	for (int i = 0; i < READS; i++)
		assert_int_equal(area_simple(&w, 0, &a, READ, got + i * LENGTH, 0, LENGTH, 0, &t[i]), 0);
	for (int i = 0; i < READS; i++) {
		world_wait(&w, &t[i]);
		assert_int_equal(t[i].c.status, 0);
		world_check(got + i * LENGTH, LENGTH, 7);
	}
	assert_int_equal(messages(&w, 0) - before, READS - 1);
	area_close(&a);
	world_close(&w);
	free(got);
}

/*
 * Shared connections: a target that computes is written to and read from, as its sibling carries it out, and each time
 * (S1-8). Engines 0 and 2 are on one host, 1 and 3 on the other; 1 has been met.
 */
static void unattended(void **state)
{
	enum { LENGTH = 100000 };
	unsigned char *memory = calloc(1, LENGTH), *buf = malloc(LENGTH), *got = malloc(LENGTH);
	struct iovec iov = {memory, LENGTH};
	struct rwk_region_attr attr = {.iov = &iov, .count = 1, .access = 3, .own_key = true, .key = 9};
	struct area a = {.who = 1, .key = 9};
	struct task met[2] = {{0}};
	struct rwk_region *r;
	struct world w;

	area_open_world(&w, *state, 4);
	rwk_engine_want_reached(w.e[1], 0);
	assert_int_equal(rwk_region_add(w.regions[1], &attr, &r), 0);
	for (int i = 0; i < 2; i++) { /* the first connects, the second asks */
		assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, 8, 0, &met[i]), 0);
		world_settle(&w);
	}
	w.computes[1] = true;
	for (unsigned i = 0; i < 20; i++) {
		size_t at = i * 50, len = i & 1 ? LENGTH - at : 1025;
		struct task t[2] = {{0}};

		world_fill(buf, len, i);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, at, len, 0, &t[0]), 0);
		world_wait(&w, &t[0]);
		world_check(memory + at, len, i);
		assert_int_equal(area_simple(&w, 0, &a, READ, got, at, len, 0, &t[1]), 0);
		world_wait(&w, &t[1]);
		assert_true(!t[0].c.status && !t[1].c.status);
		world_check(got, len, i);
	}
	w.computes[1] = false;
	rwk_region_remove(w.regions[1], r);
	world_close(&w);
	free(memory);
	free(buf);
	free(got);
}

/* Requests of 64 KB, of a buffer that lies so far behind the region (in a write: before it). */
static void requests(struct world *w, const struct area *a, enum area_kind kind, unsigned char *room, unsigned behind)
{
	uintptr_t there = (uintptr_t)a->bytes;
	unsigned char *here = room + (there + (kind == READ ? behind : -behind) - (uintptr_t)room) % RWK_COPY_PAGE;

	for (int i = 0; i < 4; i++) {
		struct task t = {0};

		assert_int_equal(area_simple(w, 0, a, kind, here, 0, a->length, 0, &t), 0);
		world_wait(w, &t);
		assert_int_equal(t.c.status, 0);
	}
}

/* What is slow for where the bytes lie is measured apart from the rest. */
static void askew(void **state)
{
	enum { LENGTH = 1 << 16 };
	unsigned char *room = calloc(1, LENGTH + RWK_COPY_PAGE);
	bool slow = rwk_copy_collides(room + 16, room), known[2][2] = {{false}};
	const struct rwk_peer *p;
	struct world w;
	struct area a;

	area_open_world(&w, *state, 2);
	area_open(&a, &w, 1, LENGTH, 3, false);
	p = w.peer[0][1];
	for (int i = 0; i < 4; i++) {
		bool collides = i & 1;
		enum area_kind kind = i & 2 ? READ : WRITE;

		requests(&w, &a, kind, room, collides ? 16 : 0);
		if (p->channel->direct != RWK_DIRECT_TRIED || !p->channel->direct_min)
			break; /* another process's memory cannot be reached here */
		known[kind == WRITE][collides && slow] = true;
		for (int write = 0; write < 2; write++) {
			for (int c = 0; c < 2; c++) {
				const struct rwk_rma_choice *k = &p->rma->choices->of[write][c][1];

				assert_int_equal(k->way[RWK_DIRECTLY].cost > 0, known[write][c]);
			}
		}
	}
	area_close(&a);
	world_close(&w);
	free(room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AREA_EACH(direct_again),
		AREA_EACH(direct_untold),
		AREA_EACH(told_of_one_kind),
		{"told_later, shared memory", told_later, NULL, NULL, (void *)&rwk_shm_transport},
		{"owed, shared memory", owed, NULL, NULL, (void *)&rwk_shm_transport},
		{"answers owed, shared memory", answers_owed, NULL, NULL, (void *)&rwk_shm_transport},
		{"unheard, shared memory", unheard, NULL, NULL, (void *)&rwk_shm_transport},
		AREA_EACH(gone_range),
		{"by_rdma, packets", by_rdma, NULL, NULL, (void *)&sim_packet_transport},
		{"several, packets", several, NULL, NULL, (void *)&sim_packet_transport},
		{"askew, shared memory", askew, NULL, NULL, (void *)&rwk_shm_transport},
		{"unattended, shared", unattended, NULL, NULL, (void *)&sim_shared_transport},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

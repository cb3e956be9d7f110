/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is not there. Where something is entered into a table the call fails, or the request goes by messages,
 * and the next one, for which there is memory, goes well. Where a message cannot be sent for which the peer would wait
 * for ever, the peer is given up. The program goes on.
 */
#include "engine/area.h"

#include "engine/internal.h"
#include "engine/rma_state.h"

#include "shm/channel.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void *__real_malloc(size_t len);
void *__wrap_malloc(size_t len);
void *__real_realloc(void *old, size_t len);
void *__wrap_realloc(void *old, size_t len);
void *__real_calloc(size_t n, size_t len);
void *__wrap_calloc(size_t n, size_t len);

/* How many tables, or lists of one, are refused: what has so many bytes. */
static unsigned refusals, refused;
static size_t least, most;

static bool is_refused(size_t len)
{
	if (!refusals || len < least || len > most)
		return false;
	refusals--;
	refused++;
	return true;
}

void *__wrap_malloc(size_t len)
{
	return is_refused(len) ? NULL : __real_malloc(len);
}

void *__wrap_realloc(void *old, size_t len)
{
	return is_refused(len) ? NULL : __real_realloc(old, len);
}

static bool no_pages;

/* As the C library's, but no pages are put in place. */
int madvise(void *at, size_t size, int advice)
{
	if (no_pages && advice == MADV_POPULATE_WRITE) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_madvise, at, size, advice);
}

/* Compilers make one of a malloc that is cleared. */
void *__wrap_calloc(size_t n, size_t len)
{
	return is_refused(n * len) ? NULL : __real_calloc(n, len);
}

static void refuse(unsigned count, size_t from, size_t to)
{
	refusals = count;
	refused = 0;
	least = from;
	most = to;
}

/* A region for which there is no room in its table: the first for want of the table, later ones of longer lists. */
static void regions(void **state)
{
	enum { REGIONS = 2000, LISTS = 2 * HASH_INITIAL_NUM_BUCKETS * sizeof(UT_hash_bucket) };
	static struct rwk_region *r[REGIONS];
	unsigned char bytes[8];
	const struct iovec iov = {bytes, sizeof(bytes)};
	struct rwk_region_attr attr = {.iov = &iov, .count = 1, .access = 3, .own_key = true};
	unsigned failed = 0;
	struct rwk_regions *t;

	_Static_assert(sizeof(struct rwk_region) < LISTS, "no region itself is refused");
	(void)state;
	assert_int_equal(rwk_regions_open(&t, false), 0);
	for (unsigned i = 0; i < REGIONS; i++) {
		attr.key = i;
		refuse(1, i ? LISTS : sizeof(UT_hash_table), SIZE_MAX);
		if (rwk_region_add(t, &attr, &r[i])) {
			assert_int_equal(refused, 1);
			failed++;
			assert_int_equal(rwk_region_add(t, &attr, &r[i]), 0);
		}
		refuse(0, 0, 0);
		assert_int_equal(rwk_region_add(t, &attr, &r[i]), -ENOKEY); /* it is in */
	}
	assert_true(failed > 1);
	for (unsigned i = 0; i < REGIONS; i++) {
		struct rwk_region *found;

		assert_int_equal(rwk_region_find(t, NULL, i, &found), 0);
		assert_ptr_equal(found, r[i]);
		rwk_region_remove(t, r[i]);
		assert_int_equal(rwk_region_find(t, NULL, i, &found), -EACCES);
	}
	rwk_regions_close(t);
}

/* One to a region that would go directly. */
static void one(struct world *w, struct area *a, unsigned seed)
{
	unsigned char buf[1000], got[1000];
	struct task t[2] = {{0}};

	world_fill(buf, 1000, seed);
	assert_int_equal(area_simple(w, 0, a, WRITE, buf, 0, 1000, 0, &t[0]), 0);
	world_wait(w, &t[0]);
	assert_int_equal(area_simple(w, 0, a, READ, got, 0, 1000, 0, &t[1]), 0);
	world_wait(w, &t[1]);
	world_check(got, 1000, seed);
	area_check_done(&t[1], RWK_F_RMA | RWK_F_READ);
}

/* Who wants to reach a peer's region directly, and cannot note it, or the peer cannot: it goes by messages. */
static void imports_and_exports(void **state)
{
	struct task t = {0};
	char got[1000];
	struct world w;
	struct area a;

	area_open_world(&w, *state, 2);
	area_open(&a, &w, 1, 1000, 3, false);
	refuse(UINT_MAX, sizeof(UT_hash_table), sizeof(UT_hash_table));
	one(&w, &a, 1);
	assert_true(refused > 0);
	assert_null(w.peer[0][1]->rma->imports);
	refuse(0, 0, 0);
	assert_int_equal(area_simple(&w, 0, &a, READ, got, 0, 1000, 0, &t), 0);
	assert_non_null(w.peer[0][1]->rma->imports);
	refuse(UINT_MAX, sizeof(UT_hash_table), sizeof(UT_hash_table));
	world_wait(&w, &t);
	world_settle(&w);
	assert_true(refused > 0);
	assert_null(w.peer[1][0]->rma->exports);
	refuse(0, 0, 0);
	for (unsigned i = 2; i < 5; i++)
		one(&w, &a, i);
	assert_non_null(w.peer[0][1]->rma->imports);
	assert_non_null(w.peer[1][0]->rma->exports);
	area_close(&a);
	world_close(&w);
}

static unsigned room; /* so many messages the channel takes at once */
static int (*real_send)(struct rwk_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len);

static int full_send(struct rwk_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len)
{
	if (!room)
		return -EAGAIN;
	room--;
	return real_send(ch, env, buf, len);
}

/* All of that is in use, in a list that is returned, and the peer's channel takes so many messages that need none. */
static void *use_up(struct rwk_pool *pool, struct rwk_peer *p, unsigned messages)
{
	void *all = NULL, *o;

	pool->limit = pool->total ? pool->total : 1;
	while ((o = rwk_pool_get(pool))) {
		*(void **)o = all;
		all = o;
	}
	room = messages;
	real_send = p->send;
	p->send = full_send;
	return all;
}

static void give_back(struct rwk_pool *pool, struct rwk_peer *p, void *all)
{
	while (all) {
		void *next = *(void **)all;

		rwk_pool_put(pool, all);
		all = next;
	}
	pool->limit = 0;
	p->send = real_send;
}

/* Who has no memory to answer a send that waits for it gives its peer up, and the send ends. */
static void answer(void **state)
{
	static const uint32_t levels[] = {RWK_F_DELIVERED, RWK_F_MATCHED};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		struct task met[4] = {{0}}, s = {0}, r = {0};
		uint32_t out = 5, in = 0;
		struct rwk_engine *e;
		struct world w;
		void *all;

		world_open_two(&w, *state);
		for (unsigned to = 0; to < 2; to++) {
			assert_int_equal(world_recv(&w, to, !to, RWK_TAGGED, &in, 4, 1, 0, 0, &met[to]), 0);
			assert_int_equal(world_send(&w, !to, to, RWK_TAGGED, &out, 4, 1, 0, &met[2 + to]), 0);
			world_wait(&w, &met[to]);
		}
		world_settle(&w);
		e = w.e[1];
		all = use_up(&e->tx_pool, w.peer[1][0], 0);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in, 4, 2, 0, 0, &r), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, &out, 4, 2, levels[i], &s), 0);
		world_wait(&w, &s);
		assert_int_not_equal(s.c.status, 0);
		assert_int_equal(w.peer[1][0]->error, -ENOMEM);
		give_back(&e->tx_pool, w.peer[1][0], all);
		world_close(&w);
	}
}

/*
 * Who sends with no pages for what it sends, and is told to try again, does not try for ever: what was sent is kept,
 * and the peer is given up after a while.
 */
static void no_pages_for_long(void **state)
{
	static const uint32_t levels[] = {0, RWK_F_INJECT, RWK_F_DELIVERED, RWK_F_MATCHED};
	unsigned char out[1000] = {0}, in[1000];

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		struct task r = {0}, met = {0}, s[100] = {{0}};
		struct rwk_shm_channel *ch;
		unsigned n = 0;
		struct world w;
		ssize_t rc;

		world_open_two(&w, *state);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 4, 1, 0, 0, &r), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 4, 1, 0, &met), 0);
		world_wait(&w, &r);
		ch = rwk_shm_channel(w.peer[0][1]->channel);
		no_pages = true;
		for (unsigned tries = 0; n < 3 && tries < 100; tries++) {
			rc = rwk_engine_send1(
				w.e[0], out, sizeof(out), RWK_F_TAGGED | levels[i], 0, w.peer[0][1], 2, &s[n]);
			n += !rc;
			world_progress(&w, 0);
		}
		assert_int_equal(n, 3);
		assert_true(ch->lacking_since);
		ch->lacking_since -= RWK_SHM_LACKING_MAX + 1;
		for (unsigned k = 0; k < n; k++) {
			world_wait(&w, &s[k]);
			assert_int_equal(s[k].c.status, -ENOMEM);
		}
		assert_int_equal(
			rwk_engine_send1(w.e[0], out, sizeof(out), RWK_F_TAGGED | levels[i], 0, w.peer[0][1], 2, &s[n]),
			-ENOMEM);
		no_pages = false;
		world_close(&w);
	}
}

/*
 * A message that nobody waits for yet, and for whose record there is no memory, is not passed over: its sender, who
 * believes that it has come, is given up, and learns of it by its next one. A long one is refused, and nothing else.
 */
static void nobody_waits(void **state)
{
	static unsigned char out[200000];
	static const size_t lengths[] = {4, 3000, sizeof(out)}; /* in a packet, in several, by RTS */

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct task s[3] = {{0}}, r = {0};
		bool eager = lengths[i] < sizeof(out);
		struct rwk_pool *pool;
		struct world w;
		uint32_t in = 0;
		ssize_t rc;
		void *all;

		world_open_two(&w, *state);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in, 4, 1, 0, 0, &r), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 4, 1, 0, &s[0]), 0);
		world_wait(&w, &r);
		world_settle(&w);
		pool = &w.e[1]->unexpected_pool;
		all = use_up(pool, w.peer[1][0], UINT_MAX);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, lengths[i], 2, 0, &s[1]), 0);
		world_wait(&w, &s[1]);
		world_settle(&w);
		assert_int_equal(w.peer[1][0]->error, eager ? -ENOMEM : 0);
		give_back(pool, w.peer[1][0], all);
		rc = world_send(&w, 0, 1, RWK_TAGGED, out, 4, 3, RWK_F_DELIVERED, &s[2]);
		if (!rc) {
			world_wait(&w, &s[2]);
			rc = s[2].c.status;
		}
		assert_int_equal(s[1].c.status, eager ? 0 : -ENOMEM);
		assert_int_equal(rc != 0, eager);
		world_close(&w);
	}
}

/* What comes behind a lost message is lost too, though somebody waits for it, until the channel is ended. */
static void behind(void **state)
{
	static unsigned char out[60000], in[60000];
	static const size_t lengths[] = {4, 3000, sizeof(out)};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct task s[3] = {{0}}, first = {0}, r = {0};
		struct rwk_pool *pool;
		struct world w;
		void *all;

		world_open_two(&w, *state);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 4, 1, 0, 0, &first), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 4, 1, 0, &s[0]), 0);
		world_wait(&w, &first);
		world_settle(&w);
		assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_TAGGED, in, sizeof(in), 3, 0, 0, &r), 0);
		pool = &w.e[1]->unexpected_pool;
		all = use_up(pool, w.peer[1][0], UINT_MAX);
		w.computes[1] = true;
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 4, 2, 0, &s[1]), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, lengths[i], 3, 0, &s[2]), 0);
		for (unsigned k = 0; k < 200; k++) /* so that both are there when it looks */
			world_step(&w);
		w.computes[1] = false;
		world_settle(&w);
		assert_int_equal(w.peer[1][0]->error, -ENOMEM);
		assert_int_equal(r.times, 0);
		give_back(pool, w.peer[1][0], all);
		world_close(&w);
	}
}

/* Nor is one for which a multi-receive buffer has room, but the engine none for the receive. */
static void no_part(void **state)
{
	struct task first = {0}, r = {0}, s[2] = {{0}};
	unsigned char in[100], out[4] = {0};
	struct rwk_pool *pool;
	struct world w;
	void *all;

	world_open_two(&w, *state);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 4, 1, 0, 0, &first), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 4, 1, 0, &s[0]), 0);
	world_wait(&w, &first);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 2, 0, RWK_F_MULTI, &r), 0);
	pool = &w.e[1]->inbox->rx_pool;
	all = use_up(pool, w.peer[1][0], UINT_MAX);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 4, 2, 0, &s[1]), 0);
	world_settle(&w);
	assert_int_equal(w.peer[1][0]->error, -ENOMEM);
	give_back(pool, w.peer[1][0], all);
	world_close(&w);
}

/*
 * A message to oneself for which a multi-receive buffer has room, but the engine none for the receive, is refused: it
 * would have to wait while the buffer stays posted, and be overtaken by the next.
 */
static void no_part_of_ones_own(void **state)
{
	struct task r = {0}, s[2] = {{0}};
	uint32_t in[100] = {0}, words[] = {5, 6};
	struct rwk_pool *pool;
	struct world w;
	void *all;

	world_open_two(&w, *state);
	assert_int_equal(world_recv(&w, 0, 0, RWK_TAGGED, in, sizeof(in), 2, 0, RWK_F_MULTI, &r), 0);
	pool = &w.e[0]->inbox->rx_pool;
	all = use_up(pool, w.peer[0][0], UINT_MAX);
	assert_int_equal(rwk_engine_send1(w.e[0], &words[0], 4, RWK_F_TAGGED, 0, w.peer[0][0], 2, &s[0]), -EAGAIN);
	give_back(pool, w.peer[0][0], all);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, &words[i], 4, 2, 0, &s[i]), 0);
		assert_int_equal(s[i].times, 1);
		assert_int_equal(r.times, i + 1);
		assert_ptr_equal(r.c.buffer, &in[i]);
		assert_int_equal(in[i], words[i]);
	}
	world_close(&w);
}

/* A send that the table of those that are answered has no room for is tried again, and goes well then. */
static void table_is_full(void **state)
{
	static unsigned char out[200000], in[200000];
	static const struct {
		size_t len;
		uint32_t flags;
	} cases[] = {{sizeof(out), 0}, {4, RWK_F_DELIVERED}}; /* by RTS, told */

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct task first = {0}, s[3] = {{0}}, r = {0};
		struct world w;

		world_open_two(&w, *state);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 4, 1, 0, 0, &first), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 4, 1, 0, &s[0]), 0);
		world_wait(&w, &first);
		world_settle(&w);
		refuse(1, 0, SIZE_MAX);
		assert_int_equal(rwk_engine_send1(w.e[0], out, cases[i].len, RWK_F_TAGGED | cases[i].flags, 0,
					 w.peer[0][1], 2, &s[1]),
			-EAGAIN);
		assert_int_equal(refused, 1);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 2, 0, 0, &r), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, cases[i].len, 2, cases[i].flags, &s[2]), 0);
		world_wait(&w, &r);
		world_wait(&w, &s[2]);
		assert_int_equal(s[2].c.status, 0);
		assert_int_equal(r.c.length, cases[i].len);
		assert_int_equal(s[1].times, 0);
		world_close(&w);
	}
}

enum { SEND, WRITE_THERE, RECEIVE, RECEIVE_MANY, PEEK, CONTACTS };

/* The first of these to a peer makes contact. */
static ssize_t contact(struct world *w, unsigned how, struct task *t)
{
	static const uint32_t flags[CONTACTS] = {[RECEIVE_MANY] = RWK_F_MULTI, [PEEK] = RWK_F_PEEK};
	static unsigned char bytes[200];
	const struct iovec iov = {bytes, sizeof(bytes)};
	const struct rwk_remote there = {.length = sizeof(bytes)};
	const struct rwk_rma_args write = {
		.peer = w->peer[0][1], .iov = &iov, .iov_count = 1, .remote = &there, .remote_count = 1, .context = t};

	if (how == SEND)
		return rwk_engine_send1(w->e[0], bytes, 4, RWK_F_TAGGED, 0, w->peer[0][1], 1, t);
	if (how == WRITE_THERE)
		return rwk_engine_write(w->e[0], &write);
	return rwk_engine_recv(w->e[0], RWK_TAGGED, w->peer[0][1], &iov, 1, 1, 0, flags[how], t);
}

/* A peer for whose channel there is no memory is as if it had not been met: what wanted it is tried again. */
static void first_contact(void **state)
{
	for (unsigned how = 0; how < CONTACTS; how++) {
		uint32_t out = 5, in = 0;
		struct task t = {0}, s = {0}, r = {0};
		struct world w;

		world_open_two(&w, *state);
		refuse(1, 0, SIZE_MAX);
		assert_int_equal(contact(&w, how, &t), -EAGAIN);
		assert_int_equal(refused, 1);
		assert_int_equal(w.peer[0][1]->error, 0);
		assert_null(w.peer[0][1]->channel);
		assert_int_equal(contact(&w, how, &t), 0);
		assert_non_null(w.peer[0][1]->channel);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in, 4, 2, 0, 0, &r), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, &out, 4, 2, 0, &s), 0);
		world_wait(&w, &r);
		assert_int_equal(in, out);
		world_close(&w);
	}
}

/* What selection has chosen for such a peer is shown once. */
static void chosen_once(void **state)
{
	struct task t = {0};
	struct world w;

	world_open_two(&w, *state);
	w.e[0]->attr.transports = NULL;
	refuse(2, sizeof(struct rwk_channel), SIZE_MAX);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(contact(&w, SEND, &t), -EAGAIN);
	assert_int_equal(contact(&w, SEND, &t), 0);
	assert_int_equal(refused, 2);
	assert_int_equal(w.e[0]->status.peers, 1);
	assert_int_equal(w.e[0]->status.kind[0].peers, 1);
	world_close(&w);
}

/* A multi-receive buffer that cannot take what waits already takes nothing that comes later. */
static void no_part_of_waiting(void **state)
{
	struct task r = {0}, s = {0};
	unsigned char in[100], out[4] = {0};
	struct rwk_pool *pool;
	struct world w;
	void *all, *one;

	world_open_two(&w, *state);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 4, 2, 0, &s), 0);
	world_settle(&w);
	pool = &w.e[1]->inbox->rx_pool;
	all = use_up(pool, w.peer[1][0], UINT_MAX);
	one = all;
	all = *(void **)one;
	rwk_pool_put(pool, one);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 2, 0, RWK_F_MULTI, &r), 0);
	world_wait(&w, &r);
	assert_int_equal(r.c.status, -ENOMEM);
	assert_int_equal(r.c.flags & RWK_F_MULTI, RWK_F_MULTI);
	give_back(pool, w.peer[1][0], all);
	world_close(&w);
}

/* An owner of receives that refuses messages, so many when they are offered and so many when they are to wait. */
static struct {
	unsigned refuses_offer, refuses_hold;
	unsigned offered, forgotten;
	unsigned held;
	struct rwk_unexpected *waits[2];
} owner;

static int offer(void *engine_owner, const struct rwk_offer *m, struct rwk_given *g)
{
	(void)engine_owner;
	(void)m;
	owner.offered++;
	if (owner.refuses_offer) {
		owner.refuses_offer--;
		return -ENOMEM;
	}
	g->handle = &owner;
	return -ENOENT;
}

static int hold(void *engine_owner, void *handle, struct rwk_unexpected *u)
{
	(void)engine_owner;
	assert_ptr_equal(handle, &owner);
	if (owner.refuses_hold) {
		owner.refuses_hold--;
		return -ENOMEM;
	}
	owner.waits[owner.held++] = u;
	return 0;
}

static void forget(void *engine_owner, void *handle)
{
	(void)engine_owner;
	(void)handle;
	owner.forgotten++;
}

static void receive_held(struct world *w, struct rwk_unexpected *u, uint32_t expected)
{
	uint32_t in = 0;
	const struct iovec iov = {&in, sizeof(in)};
	struct task r = {0};
	const struct rwk_given g = {.handle = &r, .iov = &iov, .count = 1, .flags = RWK_F_USER};

	assert_int_equal(rwk_engine_start(u, &g), 0);
	world_wait(w, &r);
	assert_int_equal(r.c.status, 0);
	assert_int_equal(in, expected);
}

/*
 * A message to oneself that the owner of the receives cannot take is not lost in silence: a short one, whose send is
 * complete, is offered again, before those behind it; the send of a long one fails.
 */
static void refused_to_oneself(void **state)
{
	static const struct rwk_foreign foreign = {.offer = offer, .hold = hold, .forget = forget};
	static unsigned char out[200000];
	const uint32_t words[] = {5, 6};

	for (unsigned by_hold = 0; by_hold < 2; by_hold++) {
		struct task s[3] = {{0}};
		struct world w;

		world_open_two(&w, *state);
		rwk_engine_set_foreign(w.e[0], &foreign);
		memset(&owner, 0, sizeof(owner));
		owner.refuses_hold = by_hold;
		owner.refuses_offer = !by_hold;
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, &words[i], 4, i, 0, &s[i]), 0);
			assert_int_equal(s[i].times, 1);
		}
		world_progress(&w, 0);
		assert_int_equal(owner.offered, 1);
		assert_int_equal(owner.held, 0);
		assert_int_equal(rwk_engine_arm(w.e[0]), -EAGAIN);
		world_progress(&w, 0);
		assert_int_equal(owner.offered, 3);
		assert_int_equal(owner.held, 2);
		for (unsigned i = 0; i < 2; i++)
			receive_held(&w, owner.waits[i], words[i]);
		owner.refuses_hold = by_hold;
		owner.refuses_offer = !by_hold;
		assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, out, sizeof(out), 3, 0, &s[2]), 0);
		world_wait(&w, &s[2]);
		assert_int_equal(s[2].c.status, -ENOMEM);
		world_progress(&w, 0);
		assert_int_equal(owner.offered, 4);
		assert_int_equal(owner.forgotten, 0);
		world_close(&w);
	}
}

/*
 * A write that lacks memory for a piece, and nothing is under way that would remind of it, ends: alone if the target
 * has heard nothing of it, else with the peer, for the target waits for its rest.
 */
static void pieces(void **state)
{
	enum { LENGTH = 300000 };
	unsigned char *buf = calloc(1, LENGTH);

	for (unsigned messages = 0; messages < 3; messages++) {
		struct task t[3] = {{0}};
		struct rwk_pool *pool;
		struct world w;
		struct area a;
		void *all;

		area_open_world(&w, *state, 2);
		area_open(&a, &w, 1, LENGTH, 3, false);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, 8, 0, &t[0]), 0);
		world_wait(&w, &t[0]);
		world_settle(&w);
		w.peer[0][1]->channel->direct_min = 0;
		pool = &w.e[0]->rma_pieces;
		all = use_up(pool, w.peer[0][1], messages);
		assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[1]), 0);
		world_wait(&w, &t[1]);
		assert_int_equal(t[1].c.status, -ENOMEM);
		assert_int_equal(w.peer[0][1]->error, messages ? -ENOMEM : 0);
		give_back(pool, w.peer[0][1], all);
		if (!messages) {
			a.reached_bytes = 0;
			assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t[2]), 0);
			world_wait(&w, &t[2]);
			area_check_done(&t[2], RWK_F_RMA | RWK_F_WRITE);
			world_settle(&w);
			assert_int_equal(a.reached_bytes, LENGTH);
		}
		area_close(&a);
		world_close(&w);
	}
	free(buf);
}

/*
 * A peer that reaches several regions directly is to be told that it must ask again, and there is no memory for that:
 * it is given up while one after the other is taken back.
 */
static void revoked(void **state)
{
	enum { AREAS = 4 };
	struct task t = {0};
	struct area a[AREAS];
	struct rwk_pool *pool;
	struct world w;
	char got[8];
	void *all;

	area_open_world(&w, *state, 2);
	rwk_engine_want_reached(w.e[1], 0);
	for (unsigned i = 0; i < AREAS; i++) {
		area_open(&a[i], &w, 1, 1000, 3, false);
		for (unsigned k = 0; k < 2; k++) { /* the first may connect, the second asks */
			t = (struct task){0};
			assert_int_equal(area_simple(&w, 0, &a[i], READ, got, 0, sizeof(got), 0, &t), 0);
			world_wait(&w, &t);
			world_settle(&w);
		}
		assert_false(rwk_list_empty(&a[i].region->exports));
	}
	pool = &w.e[1]->rma_pieces;
	all = use_up(pool, w.peer[1][0], 1);
	rwk_engine_want_reached(w.e[1], RWK_REGION_READ);
	assert_int_equal(w.peer[1][0]->error, -ENOMEM);
	assert_null(w.peer[1][0]->rma->exports);
	give_back(pool, w.peer[1][0], all);
	for (unsigned i = 0; i < AREAS; i++)
		area_close(&a[i]);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions),
		{"imports_and_exports, direct", imports_and_exports, NULL, NULL, (void *)area_direct},
		WORLD_EACH(answer),
		WORLD_EACH(first_contact),
		{"chosen_once, shared memory", chosen_once, NULL, NULL, (void *)&rwk_shm_transport},
		{"no_pages_for_long, shared memory", no_pages_for_long, NULL, NULL, (void *)&rwk_shm_transport},
		WORLD_EACH(nobody_waits),
		WORLD_EACH(behind),
		WORLD_EACH(no_part),
		WORLD_EACH(no_part_of_waiting),
		WORLD_EACH(no_part_of_ones_own),
		WORLD_EACH(table_is_full),
		WORLD_EACH(refused_to_oneself),
		WORLD_EACH(pieces),
		{"revoked, direct", revoked, NULL, NULL, (void *)area_direct},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

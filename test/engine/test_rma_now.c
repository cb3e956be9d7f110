/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct requests that the service carries out in the call itself: which are, that they are complete and counted as the
 * others are, and that those that cannot be go the long way.
 *
 * Links: shm.
 */
#include "engine/area.h"

#include "engine/internal.h"
#include "engine/rma_state.h"

/* As the service has it; what is longer than LONGER it refuses until it knows that one side does better alone. */
enum { LENGTH = 2 << 20, SHORTEST = 4 << 10, SHORTER = 16 << 10, LONGER = 32 << 10, LONGEST = 1 << 20 };

/* Counts what the service is asked for, and hands it on. */
static const struct rwk_transport *real;
static struct rwk_transport counting;
static unsigned accesses, posts;
static bool unable; /* to carry out anything at once */

/* What each test is given: a world with an area in it, memory of the requests' own, and the channel to the target. */
static struct world w;
static struct area a;
static unsigned char *buf;
static struct rwk_channel *channel;

static int counting_access(struct rwk_channel *ch, const struct rwk_direct_access *it)
{
	accesses++;
	return unable ? -EAGAIN : real->access(ch, it);
}

static int counting_post(struct rwk_channel *ch, struct rwk_op *op)
{
	posts += op->type != RWK_OP_SEND;
	return real->post(ch, op);
}

static void done(void)
{
	area_close(&a);
	world_close(&w);
	free(buf);
}

static void open_choice(void *transport)
{
	struct task t = {0};

	buf = calloc(1, LENGTH);
	area_open_met(&a, &w, transport, buf, LENGTH);
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, LENGTH, 0, &t), 0); /* now there is a choice */
	world_settle(&w);
	channel = w.peer[0][1]->channel;
	if (!channel->direct_min) { /* another process's memory cannot be reached here */
		done();
		skip();
	}
	channel->direct_min = SHORTEST;
	area_prefer_direct(w.peer[0][1]);
	real = channel->transport;
	counting = *real;
	counting.access = counting_access;
	counting.post = counting_post;
	channel->transport = &counting;
	unable = false;
}

static void close_choice(void)
{
	channel->transport = real;
	done();
}

/* One of that length from or to 5 on; how often the service was asked to do it at once. */
static unsigned one(enum area_kind kind, size_t len, uint32_t flags)
{
	struct task t = {0};

	accesses = posts = 0;
	world_fill(kind == WRITE ? buf : a.bytes + 5, len, len);
	assert_int_equal(area_simple(&w, 0, &a, kind, buf, 5, len, flags, &t), 0);
	world_wait(&w, &t);
	world_check(kind == WRITE ? a.bytes + 5 : buf, len, len);
	area_check_done(&t, RWK_F_RMA | (kind == READ ? RWK_F_READ : RWK_F_WRITE));
	assert_int_equal(accesses + posts, 1);
	return accesses;
}

/* So are those that one side copies, fewer of what is behind others; each is counted. */
static void which(void **state)
{
	struct rwk_rma_choice *c;

	open_choice(*state);
	for (enum area_kind kind = WRITE; kind <= READ; kind++) {
		uint64_t *counter = kind == WRITE ? &w.e[0]->status.counters.writes : &w.e[0]->status.counters.reads;
		uint64_t before = *counter;

		assert_int_equal(one(kind, SHORTEST, 0), 1);
		assert_int_equal(one(kind, LONGER, 0), 1);
		assert_int_equal(one(kind, LONGEST + 1, 0), 0);
		assert_int_equal(one(kind, SHORTER, RWK_F_BEHIND), 1);
		assert_int_equal(one(kind, SHORTER + 1, RWK_F_BEHIND), 0);
		assert_int_equal(*counter - before, 5);
		c = &w.peer[0][1]->rma->choices->of[kind == WRITE][0][0];
		assert_int_equal(c[0].trial_in + c[RWK_RMA_LENGTHS].trial_in, 2000 - 4); /* it collides, or not */
	}
	close_choice();
}

/* Not those that the target is told of, that wait for others, or of several pieces; nor while messages are tried. */
static void which_not(void **state)
{
	struct task t[4] = {{0}};
	struct rwk_rma_choice *c;

	open_choice(*state);
	accesses = 0;
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, SHORTER, RWK_F_DATA, &t[0]), 0);
	world_wait(&w, &t[0]);
	assert_int_equal(area_simple(&w, 0, &a, READ, buf, 0, SHORTER, RWK_F_FENCE, &t[1]), 0);
	world_wait(&w, &t[1]);
	assert_int_equal(w.writes[1], 1);
	assert_int_equal(accesses, 0);
	c = &w.peer[0][1]->rma->choices->of[1][0][0];
	c[0].way[RWK_BY_MESSAGES].cost = c[RWK_RMA_LENGTHS].way[RWK_BY_MESSAGES].cost = 0;
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, SHORTER, 0, &t[2]), 0);
	world_wait(&w, &t[2]);
	assert_int_equal(accesses, 0);
	area_prefer_direct(w.peer[0][1]);
	rwk_region_set_told(a.region, RWK_REGION_READ);
	world_settle(&w);
	for (int i = 0; i < 3; i++) {
		struct task again = {0};

		a.reached = 0;
		assert_int_equal(area_simple(&w, 0, &a, READ, buf, 0, SHORTER, 0, &again), 0);
		world_wait(&w, &again);
		world_settle(&w);
		assert_int_equal(a.reached, 1);
	}
	assert_int_equal(accesses, 0);
	assert_int_equal(one(WRITE, SHORTER, 0), 1);
	close_choice();
}

/* Nor those behind a fenced one that waits, as long as it does. */
static void behind_fence(void **state)
{
	struct task t[3] = {{0}};

	open_choice(*state);
	accesses = 0;
	w.computes[1] = true;
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 0, 8, 0, &t[0]), 0);
	assert_int_equal(area_simple(&w, 0, &a, WRITE, buf, 8, 8, RWK_F_FENCE, &t[1]), 0);
	assert_int_equal(area_simple(&w, 0, &a, READ, buf, 0, SHORTER, 0, &t[2]), 0);
	world_settle(&w);
	assert_int_equal(t[1].times + t[2].times + accesses, 0);
	w.computes[1] = false;
	for (int i = 0; i < 3; i++)
		world_wait(&w, &t[i]);
	assert_true(t[1].order < t[2].order);
	assert_int_equal(accesses, 0);
	area_prefer_direct(w.peer[0][1]);
	assert_int_equal(one(READ, SHORTER, 0), 1);
	close_choice();
}

/* Several pieces of memory, or ranges, are a request. */
static void in_pieces(void **state)
{
	struct iovec iov[2];
	struct rwk_remote remote[2];
	struct rwk_rma_args args = {.iov = iov, .remote = remote};

	open_choice(*state);
	accesses = 0;
	args.peer = w.peer[0][1];
	for (unsigned i = 1; i < 4; i++) {
		struct task t = {0};

		args.context = &t;
		args.iov_count = i & 1 ? 2 : 1;
		args.remote_count = i & 2 ? 2 : 1;
		iov[0] = (struct iovec){buf, args.iov_count == 1 ? LONGER : SHORTER};
		iov[1] = (struct iovec){buf + SHORTER, SHORTER};
		remote[0] = (struct rwk_remote){a.base, args.remote_count == 1 ? LONGER : SHORTER, a.key};
		remote[1] = (struct rwk_remote){a.base + SHORTER, SHORTER, a.key};
		world_fill(buf, LONGER, i);
		assert_int_equal(area_request(&w, 0, WRITE, &args), 0);
		world_wait(&w, &t);
		area_check_done(&t, RWK_F_RMA | RWK_F_WRITE);
		world_check(a.bytes, LONGER, i);
	}
	assert_int_equal(accesses, 0);
	close_choice();
}

/* Refused as all is that the target does not allow; what cannot go at once goes, and is one request. */
static void refused(void **state)
{
	struct rwk_rma_choice *c;

	open_choice(*state);
	for (enum area_kind kind = WRITE; kind <= READ; kind++) {
		struct task t[2] = {{0}};

		accesses = 0;
		assert_int_equal(area_simple(&w, 0, &a, kind, buf, LENGTH - SHORTER + 1, SHORTER, 0, &t[0]), 0);
		world_wait(&w, &t[0]);
		assert_int_equal(t[0].c.status, -EACCES);
		assert_int_equal(accesses, 0);
		unable = true;
		world_fill(kind == WRITE ? buf : a.bytes, SHORTER, kind);
		area_prefer_direct(w.peer[0][1]);
		assert_int_equal(area_simple(&w, 0, &a, kind, buf, 0, SHORTER, 0, &t[1]), 0);
		world_wait(&w, &t[1]);
		world_check(kind == WRITE ? a.bytes : buf, SHORTER, kind);
		assert_int_equal(t[1].times, 1);
		assert_int_equal(accesses, 1);
		c = &w.peer[0][1]->rma->choices->of[kind == WRITE][0][0];
		assert_int_equal(c[0].trial_in + c[RWK_RMA_LENGTHS].trial_in, 2000 - 1);
		unable = false;
	}
	close_choice();
}

#define ON_SHM(test) {#test ", shared memory", test, NULL, NULL, (void *)&rwk_shm_transport}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SHM(which),
		ON_SHM(which_not),
		ON_SHM(behind_fence),
		ON_SHM(in_pieces),
		ON_SHM(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

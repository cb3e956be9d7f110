/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a receive can ask for, over the simulated service and over shared memory: wildcards, peek and its kin, cancel,
 * truncation, multi-receive buffers.
 */
#include "engine/world.h"

/* Tag bits that are ignored, and senders: a message goes to the first receive posted that fits it, not to the best. */
static void wildcards(void **state)
{
	static const struct {
		unsigned from;
		uint64_t tag, ignore;
	} receives[] = {
		{1, 0x10, 0}, {WORLD_ANY, 0x20, 0x0f}, {WORLD_ANY, 0, UINT64_MAX}, {2, 0x23, 0}, {WORLD_ANY, 0x23, 0}};
	static const struct {
		unsigned from;
		uint64_t tag;
		unsigned to; /* which receive */
	} sends[] = {{2, 0x23, 1}, {1, 0x23, 2}, {2, 0x23, 3}, {1, 0x23, 4}, {1, 0x10, 0}};
	struct task s[5] = {0}, r[5] = {0};
	uint32_t in[5] = {0};
	struct world w;

	world_open(&w, &(struct world_attr){.transport = *state, .count = 3});
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(world_recv(&w, 0, receives[i].from, RWK_TAGGED, &in[i], 4, receives[i].tag,
					 receives[i].ignore, 0, &r[i]),
			0);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(world_send(&w, sends[i].from, 0, RWK_TAGGED, &(uint32_t){i + 100}, 4, sends[i].tag,
					 RWK_F_INJECT, &s[i]),
			0);
		world_wait(&w, &r[sends[i].to]);
		assert_int_equal(in[sends[i].to], i + 100);
		assert_ptr_equal(r[sends[i].to].c.peer, w.peer[0][sends[i].from]);
		assert_int_equal(r[sends[i].to].c.tag, sends[i].tag);
	}
	world_close(&w);
}

/*
 * Peek reports and leaves, claim takes for its context alone, discard drops; each for a short, a longer and a
 * rendezvous message.
 */
static void peek_claim_discard(void **state)
{
	static const size_t lengths[] = {0, 100, 5000, 300000};
	static unsigned char out[300000], in[300000];
	const struct iovec many[RWK_ENGINE_IOV_MAX + 1] = {{in, 1}};
	struct world w;

	world_open_two(&w, *state);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t len = lengths[i];
		struct task s[4] = {0}, peek = {0}, claim = {0}, gone = {0}, left = {0}, wrong = {0};

		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, 5, 0, RWK_F_PEEK, &peek), 0);
		assert_int_equal(peek.c.status, -ENOMSG);
		world_fill(out, len, len);
		for (unsigned n = 0; n < 4; n++)
			assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, len, 5 + n, RWK_F_DATA, &s[n]), 0);
		world_settle(&w);
		memset(&peek, 0, sizeof(peek));
		assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_TAGGED, NULL, 0, 0, 15, RWK_F_PEEK, &peek), 0);
		world_wait(&w, &peek);
		world_check_receive(&w, &peek, 1, 0, RWK_TAGGED, len, 5, true);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, 5, 0, RWK_F_PEEK | RWK_F_CLAIM, &claim), 0);
		world_check_receive(&w, &claim, 1, 0, RWK_TAGGED, len, 5, true);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, 5, 0, RWK_F_PEEK, &gone), 0);
		assert_int_equal(gone.c.status, -ENOMSG);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, len, 5, 0, RWK_F_CLAIM, &wrong), -EINVAL);
		assert_int_equal(rwk_engine_recv(w.e[1], RWK_TAGGED, w.peer[1][0], many, RWK_ENGINE_IOV_MAX + 1, 5, 0,
					 RWK_F_CLAIM, &claim),
			-EINVAL);
		claim.times = 0;
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, len, 5, 0, RWK_F_CLAIM, &claim), 0);
		world_wait(&w, &claim);
		world_check_receive(&w, &claim, 1, 0, RWK_TAGGED, len, 5, true);
		world_check(in, len, len);
		gone.times = 0;
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, 6, 0, RWK_F_PEEK | RWK_F_DISCARD, &gone), 0);
		world_wait(&w, &gone);
		assert_int_equal(gone.c.status, 0);
		claim.times = 0;
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, 7, 0, RWK_F_PEEK | RWK_F_CLAIM, &claim), 0);
		claim.times = 0;
		assert_int_equal(
			world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, 7, 0, RWK_F_CLAIM | RWK_F_DISCARD, &claim), 0);
		world_wait(&w, &claim);
		for (unsigned n = 0; n < 3; n++)
			world_wait(&w, &s[n]);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, len, 0, 15, 0, &left), 0);
		world_wait(&w, &left);
		world_check_receive(&w, &left, 1, 0, RWK_TAGGED, len, 8, true);
		world_wait(&w, &s[3]);
	}
	world_close(&w);
}

/*
 * A cancelled receive completes once with -ECANCELED, and the message goes to the next; what is matched cannot be
 * cancelled.
 */
static void cancel_receive(void **state)
{
	struct task a = {0}, b = {0}, s = {0};
	uint32_t in[2] = {0};
	struct world w;

	for (enum rwk_space space = 0; space < RWK_SPACES; space++) {
		memset(&a, 0, sizeof(a)), memset(&b, 0, sizeof(b)), memset(&s, 0, sizeof(s));
		world_open_two(&w, *state);
		assert_int_equal(world_recv(&w, 1, 0, space, &in[0], 4, 1, 0, 0, &a), 0);
		assert_int_equal(world_recv(&w, 1, WORLD_ANY, space, &in[1], 4, 1, 0, 0, &b), 0);
		assert_int_equal(rwk_engine_cancel(w.e[1], &a), 0);
		world_wait(&w, &a);
		assert_int_equal(a.c.status, -ECANCELED);
		assert_int_equal(
			a.c.flags & (RWK_F_RECV | RWK_F_TAGGED), RWK_F_RECV | (space == RWK_TAGGED ? RWK_F_TAGGED : 0));
		assert_int_equal(rwk_engine_cancel(w.e[1], &a), -ENOENT);
		assert_int_equal(world_send(&w, 0, 1, space, &(uint32_t){77}, 4, 1, RWK_F_INJECT, &s), 0);
		world_wait(&w, &b);
		assert_int_equal(in[1], 77);
		assert_int_equal(rwk_engine_cancel(w.e[1], &b), -ENOENT);
		assert_int_equal(a.times, 1);
		world_close(&w);
	}
}

/*
 * A send that has not begun is cancelled, completes once with -ECANCELED and never arrives; its credit comes back. What
 * was injected without a context nobody cancels, whatever else has none.
 */
static void cancel_send(void **state)
{
	enum { COUNT = 200 };
	static unsigned char out[COUNT][1000], in[1000];
	struct task s[COUNT] = {0}, r = {0}, other = {0};
	unsigned cancelled = 0;
	struct world w;
	int rc;

	world_open_two(&w, *state);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(
			rwk_engine_send1(w.e[0], out[i], sizeof(out[i]), RWK_F_TAGGED, 0, w.peer[0][1], i, &s[i]), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out[0], 4, COUNT, RWK_F_INJECT | RWK_F_SILENT, NULL), 0);
	assert_int_equal(rwk_engine_cancel(w.e[0], NULL), -ENOENT);
	assert_int_equal(rwk_engine_send1(w.e[0], out[0], sizeof(out[0]), RWK_F_TAGGED | rwk_room_flag(1), 0,
				 w.peer[0][1], COUNT + 1, &other),
		0);
	assert_int_equal(rwk_engine_cancel(w.e[0], &other), -ENOENT); /* it is another room's */
	rc = rwk_engine_cancel_send(w.e[0], 1, &other);
	if (w.net)
		assert_int_equal(rc, 0);
	for (unsigned i = COUNT; i-- > 0;) {
		bool before = s[i].times;

		if (rwk_engine_cancel(w.e[0], &s[i])) {
			continue;
		}
		assert_false(before);
		assert_int_equal(s[i].times, 1);
		assert_int_equal(s[i].c.status, -ECANCELED);
		cancelled++;
	}
	if (w.net)
		assert_true(cancelled > COUNT / 2);
	for (unsigned i = 0; i < COUNT; i++) {
		struct task peek = {0};

		memset(&r, 0, sizeof(r));
		if (s[i].times && s[i].c.status == -ECANCELED) {
			world_settle(&w);
			assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, i, 0, RWK_F_PEEK, &peek), 0);
			assert_int_equal(peek.c.status, -ENOMSG);
			continue;
		}
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), i, 0, 0, &r), 0);
		world_wait(&w, &r);
		world_wait(&w, &s[i]);
	}
	memset(&r, 0, sizeof(r));
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), COUNT, 0, 0, &r), 0);
	world_wait(&w, &r);
	world_close(&w);
}

/*
 * A room is closed: what was claimed by it is dropped, so that its sender goes on, and who claims anew under the same
 * context gets that and no other.
 */
static void claims_of_closed(void **state)
{
	static unsigned char out[300000], in[300000];
	struct task s[2] = {0}, claim = {0};
	struct world w;

	world_open_two(&w, *state);
	world_fill(out, sizeof(out), 1);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, sizeof(out), 5, 0, &s[0]), 0);
	world_settle(&w);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, 5, 0, RWK_F_PEEK | RWK_F_CLAIM, &claim), 0);
	world_wait(&w, &claim);
	assert_int_equal(claim.c.status, 0);
	rwk_engine_cancel_room(w.e[1], 0, true);
	world_wait(&w, &s[0]);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 5, 0, RWK_F_CLAIM, &claim), -EINVAL);
	world_close(&w);
}

/*
 * Long messages to oneself are cancelled while they wait: the sends end, what is received fails in its turn, what is
 * dropped is gone, and one sent afterwards comes.
 */
static void cancelled_to_oneself(void **state)
{
	static unsigned char out[300000], in[300000];
	struct task s[3] = {0}, r[2] = {0}, drop = {0};
	struct world w;

	world_open_two(&w, *state);
	world_fill(out, sizeof(out), 1);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, out, sizeof(out), i, 0, &s[i]), 0);
	rwk_engine_cancel_room(w.e[0], 0, false);
	assert_int_equal(world_send(&w, 0, 0, RWK_TAGGED, out, sizeof(out), 0, 0, &s[2]), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(s[i].times, i < 2);
	assert_int_equal(s[0].c.status, -ECANCELED);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(world_recv(&w, 0, 0, RWK_TAGGED, in, sizeof(in), 0, 0, 0, &r[i]), 0);
	world_wait(&w, &r[0]);
	assert_int_equal(r[0].c.status, -ECANCELED);
	assert_int_equal(r[0].c.length, 0);
	world_wait(&w, &r[1]);
	world_check_receive(&w, &r[1], 0, 0, RWK_TAGGED, sizeof(out), 0, false);
	world_check(in, sizeof(in), 1);
	world_wait(&w, &s[2]);
	assert_int_equal(world_recv(&w, 0, 0, RWK_TAGGED, NULL, 0, 1, 0, RWK_F_PEEK | RWK_F_DISCARD, &drop), 0);
	world_wait(&w, &drop);
	assert_int_equal(drop.c.status, 0);
	assert_int_equal(s[1].times, 1);
	world_close(&w);
}

/*
 * A message longer than the receive: what fits is there, -EMSGSIZE with the rest's length, and the sender notices
 * nothing.
 */
static void truncation(void **state)
{
	static const size_t lengths[] = {1, 100, 1000, 5000, 100000};
	static unsigned char out[100000], in[100000];
	struct world w;

	world_open_two(&w, *state);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (int how = 0; how < 8; how++) {
			size_t len = lengths[i], room = how & 1 ? 0 : len / 2;
			struct task s = {0}, r = {0};

			world_fill(out, len, len);
			memset(in, 0x5a, sizeof(in));
			if (how & 2)
				assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, room, 1, 0, 0, &r), 0);
			assert_int_equal(
				world_send(&w, 0, 1, RWK_TAGGED, out, len, 1, how & 4 ? RWK_F_MATCHED : 0, &s), 0);
			if (!(how & 2)) {
				world_settle(&w);
				assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, room, 1, 0, 0, &r), 0);
			}
			world_wait(&w, &r);
			world_wait(&w, &s);
			assert_int_equal(s.c.status, 0);
			assert_int_equal(r.c.status, -EMSGSIZE);
			assert_int_equal(r.c.length, room);
			assert_int_equal(r.c.overflow, len - room);
			assert_int_equal(r.c.tag, 1);
			world_check(in, room & ~7ul, len);
			assert_int_equal(in[room], 0x5a);
		}
	}
	world_close(&w);
}

struct taken {
	unsigned char *at;
	size_t length;
	int status;
	uint32_t flags;
	void *context;
};

static struct taken taken[1000];
static unsigned taken_count;

static void take(struct world *w, unsigned who, const struct rwk_completion *c)
{
	(void)w;
	if (who == 1 && c->flags & RWK_F_RECV)
		taken[taken_count++] = (struct taken){c->buffer, c->length, c->status, c->flags, c->context};
}

static unsigned char multi[2][40000];

#define MULTI_MIN 10000
#define MULTI     24 /* messages */

static size_t multi_length(unsigned i)
{
	return world_mixed(i) % 7000;
}

static void send_multi(struct world *w, unsigned begin, unsigned end)
{
	static unsigned char out[MULTI][7000];

	for (unsigned i = begin; i < end; i++) {
		world_fill(out[i], multi_length(i), i);
		assert_int_equal(world_send(w, 0, 1, RWK_PLAIN, out[i], multi_length(i), 0, 0, NULL), 0);
	}
	world_settle(w);
}

/* What was told of each buffer: a message at a time, and its release with the last. `flagged`: which were released. */
static void check_told(unsigned flagged[2])
{
	unsigned released = 0;

	for (unsigned i = 0; i < taken_count; i++) {
		unsigned b = taken[i].context == multi[1];

		assert_int_equal(taken[i].status, 0);
		assert_true(taken[i].at >= multi[b] && taken[i].at + taken[i].length <= multi[b] + sizeof(multi[b]));
		assert_int_equal(flagged[b], 0); /* nothing after its release */
		if (taken[i].flags & RWK_F_MULTI)
			released += ++flagged[b];
	}
	assert_int_equal(taken_count, MULTI);
	assert_int_equal(released, flagged[0] + flagged[1]);
}

/* The buffers are filled in the order of sending, one behind the other. */
static void check_filled(const unsigned flagged[2])
{
	for (unsigned i = 0, b = 0, at = 0; i < MULTI; i++) {
		world_check(multi[b] + at, multi_length(i) & ~7ul, i);
		at += (unsigned)multi_length(i);
		if (sizeof(multi[b]) - at < MULTI_MIN) {
			assert_int_equal(flagged[b], 1);
			assert_int_equal(multi[b][at], 0x5a);
			b++, at = 0;
		}
	}
}

/*
 * A multi-receive buffer takes messages one behind the other until less than multi_min is left; the completion of its
 * last one, not necessarily the last to begin, releases it. Messages that came before it was posted go into it, too.
 */
static void multi_receive(void **state)
{
	for (unsigned early = 0; early <= MULTI; early += 8) {
		unsigned flagged[2] = {0};
		struct world w;

		world_open_two(&w, *state);
		w.on_complete = take;
		taken_count = 0;
		memset(multi, 0x5a, sizeof(multi));
		rwk_inbox_set_multi_min(rwk_engine_inbox(w.e[1]), MULTI_MIN);
		send_multi(&w, 0, early);
		for (unsigned b = 0; b < 2; b++)
			assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_PLAIN, multi[b], sizeof(multi[b]), 0, 0,
						 RWK_F_MULTI, multi[b]),
				0);
		send_multi(&w, early, MULTI);
		check_told(flagged);
		check_filled(flagged);
		if (!flagged[1]) {
			assert_int_equal(rwk_engine_cancel(w.e[1], multi[1]), 0);
			assert_int_equal(taken[taken_count - 1].status, -ECANCELED);
			assert_int_equal(taken[taken_count - 1].flags & RWK_F_MULTI, RWK_F_MULTI);
			assert_ptr_equal(taken[taken_count - 1].context, multi[1]);
		}
		world_close(&w);
	}
}

static unsigned char ring_buffer[3][1000];
static unsigned reposts;

/* Posts the buffer again from within the completion that releases it. */
static void take_and_repost(struct world *w, unsigned who, const struct rwk_completion *c)
{
	struct iovec iov = {c->context, sizeof(ring_buffer[0])};

	take(w, who, c);
	if (who != 1 || !(c->flags & RWK_F_MULTI))
		return;
	reposts++;
	assert_int_equal(rwk_engine_recv(w->e[1], RWK_PLAIN, NULL, &iov, 1, 0, 0, RWK_F_MULTI, c->context), 0);
}

/*
 * Buffers posted again from their completion take messages that wait already, in order, and none is lost or taken
 * twice.
 */
static void multi_receive_again(void **state)
{
	static unsigned char out[300][100];
	unsigned early = 0;
	struct world w;

	for (; early <= 300; early += 150) {
		world_open_two(&w, *state);
		w.on_complete = take_and_repost;
		rwk_inbox_set_multi_min(rwk_engine_inbox(w.e[1]), sizeof(out[0]));
		taken_count = reposts = 0;
		for (unsigned i = 0; i < 300; i++) {
			if (i == early) {
				world_settle(&w);
				for (unsigned b = 0; b < 3; b++)
					assert_int_equal(
						world_recv(&w, 1, WORLD_ANY, RWK_PLAIN, ring_buffer[b],
							sizeof(ring_buffer[b]), 0, 0, RWK_F_MULTI, ring_buffer[b]),
						0);
			}
			memset(out[i], (int)i, sizeof(out[i]));
			assert_int_equal(world_send(&w, 0, 1, RWK_PLAIN, out[i], 50 + i % 50, 0, 0, NULL), 0);
		}
		if (early == 300) {
			world_settle(&w);
			for (unsigned b = 0; b < 3; b++)
				assert_int_equal(world_recv(&w, 1, WORLD_ANY, RWK_PLAIN, ring_buffer[b],
							 sizeof(ring_buffer[b]), 0, 0, RWK_F_MULTI, ring_buffer[b]),
					0);
		}
		world_settle(&w);
		assert_int_equal(taken_count, 300);
		for (unsigned i = 0; i < 300; i++) {
			assert_int_equal(taken[i].status, 0);
			assert_int_equal(taken[i].length, 50 + i % 50);
		}
		assert_true(reposts > 15);
		world_close(&w);
	}
}

static unsigned char plain_buffer[100];

/* What the first completion of a multi-receive buffer does in it: the cases of multi_receive_in_completion. */
static enum { POST_PLAIN, POST_BEHIND, CANCEL, SEND_MYSELF, IN_COMPLETION } in_completion;
static size_t to_myself;

static void take_and_act(struct world *w, unsigned who, const struct rwk_completion *c)
{
	struct iovec iov = {plain_buffer, sizeof(plain_buffer)};

	take(w, who, c);
	if (taken_count != 1)
		return;
	if (in_completion == POST_PLAIN || in_completion == POST_BEHIND)
		assert_int_equal(rwk_engine_recv(w->e[1], RWK_PLAIN, NULL, &iov, 1, 0, 0, 0, plain_buffer), 0);
	else if (in_completion == CANCEL)
		assert_int_equal(rwk_engine_cancel(w->e[1], c->context), 0);
	else
		assert_int_equal(rwk_engine_send1(w->e[1], ring_buffer[2], to_myself, RWK_F_PLAIN | RWK_F_SILENT, 0,
					 w->peer[1][1], 0, NULL),
			0);
}

/*
 * A completion may post, cancel the buffer that it belongs to, or send to itself what fills it: each message is
 * completed once, the buffer is released once, and what comes after it goes elsewhere. For messages that come later and
 * for such that wait already: these are the buffer's when it is posted, in their order and before all others.
 */
static void multi_receive_in_completion(void **state)
{
	static const unsigned expected[IN_COMPLETION][2] = {{1, 1}, {3, 3}, {1, 3}, {2, 4}};
	static unsigned char out[3][100], in[1000];

	for (int how = 0; how < 2 * IN_COMPLETION; how++) {
		unsigned released = 0, in_multi = 0;
		bool wait = how & 1;
		struct world w;

		in_completion = how / 2;
		to_myself = wait ? 700 : 900;
		memset(in, 0, sizeof(in));
		world_open_two(&w, *state);
		w.on_complete = take_and_act;
		taken_count = 0;
		rwk_inbox_set_multi_min(rwk_engine_inbox(w.e[1]), in_completion == POST_PLAIN ? 950 : 200);
		if (!wait)
			assert_int_equal(
				world_recv(&w, 1, WORLD_ANY, RWK_PLAIN, in, sizeof(in), 0, 0, RWK_F_MULTI, in), 0);
		for (unsigned i = 0; i < 3; i++) {
			memset(out[i], (int)i + 1, sizeof(out[i]));
			assert_int_equal(
				world_send(&w, 0, 1, RWK_PLAIN, out[i], sizeof(out[i]), 0, RWK_F_SILENT, NULL), 0);
		}
		world_settle(&w);
		if (wait)
			assert_int_equal(
				world_recv(&w, 1, WORLD_ANY, RWK_PLAIN, in, sizeof(in), 0, 0, RWK_F_MULTI, in), 0);
		world_settle(&w);
		for (unsigned i = 0; i < taken_count; i++) {
			released += !!(taken[i].flags & RWK_F_MULTI);
			in_multi += taken[i].context == in && taken[i].length;
		}
		assert_int_equal(released, in_completion != POST_BEHIND);
		assert_int_equal(in_multi, expected[in_completion][wait]);
		for (unsigned i = 0; i < 3 && i < in_multi && (wait || in_completion != SEND_MYSELF); i++)
			assert_int_equal(in[i * sizeof(out[0])], i + 1);
		if (in_completion == POST_PLAIN) {
			assert_int_equal(taken_count, 2);
			assert_ptr_equal(taken[1].context, plain_buffer);
			assert_int_equal(plain_buffer[0], 2);
		} else {
			assert_int_equal(taken[taken_count - 1].status, in_completion == CANCEL ? -ECANCELED : 0);
		}
		world_close(&w);
	}
}

/* Who receives one after the other puts none aside on shared memory: they wait where they are, in both spaces. */
static void in_turn(void **state)
{
	enum { COUNT = 20 };

	(void)state;
	for (enum rwk_space space = 0; space < RWK_SPACES; space++) {
		struct task s[COUNT] = {0}, r[COUNT] = {0};
		uint32_t in[COUNT];
		struct world w;

		world_open_two(&w, &rwk_shm_transport);
		for (unsigned i = 0; i < COUNT; i++) {
			assert_int_equal(world_recv(&w, 1, 0, space, &in[i], 4, i, 0, 0, &r[i]), 0);
			if (!i) /* the others are sent at once when the first one's way is open */
				assert_int_equal(world_send(&w, 0, 1, space, &i, 4, i, 0, &s[i]), 0);
			world_wait(&w, &r[i]);
			assert_int_equal(in[i], i);
			for (uint32_t k = 1; !i && k < COUNT; k++)
				assert_int_equal(world_send(&w, 0, 1, space, &k, 4, k, 0, &s[k]), 0);
		}
		assert_int_equal(rwk_engine_counters(w.e[1])->unexpected, 0);
		world_close(&w);
	}
}

/* A message of 4 bytes is not there for who peeks, as it is left where it is; but for who looks before. */
static void check_left(struct world *w, uint64_t tag)
{
	struct task peek = {0};

	assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, NULL, 0, tag, 0, RWK_F_PEEK, &peek), 0);
	assert_int_equal(peek.c.status, -ENOMSG);
	rwk_engine_look(w->e[1]);
	peek.times = 0;
	assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, NULL, 0, tag, 0, RWK_F_PEEK, &peek), 0);
	world_check_receive(w, &peek, 1, 0, RWK_TAGGED, 4, tag, false);
}

/* A message that is left on shared memory, behind one that was awaited, is found by who looks. */
static void found_where_left(void **state)
{
	struct task s[3] = {0}, r[2] = {0};
	uint32_t in;
	struct world w;

	(void)state;
	world_open_two(&w, &rwk_shm_transport);
	for (uint32_t k = 0; k < 3; k++) {
		if (k < 2)
			assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, &in, 4, k, 0, 0, &r[k]), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, &k, 4, k, 0, &s[k]), 0);
		if (!k) /* the others find the way open */
			world_wait(&w, &r[0]);
	}
	world_progress(&w, 1);
	assert_int_equal(r[1].times, 1);
	check_left(&w, 2);
	world_close(&w);
}

/*
 * The same of what comes behind one in pieces that somebody waits for: from the beginning, or only once some are there.
 * Its last ones come long after the first, as the sender has given all its slabs away.
 */
static void left_behind_pieces(void **state)
{
	enum { SLAB = 8192, FILL = 60, LONG = 60000 };
	static unsigned char in[LONG];

	(void)state;
	for (unsigned late = 0; late < 2; late++) {
		struct task s[FILL + 3] = {0}, r[2] = {0};
		struct world w;

		world_open_two(&w, &rwk_shm_transport);
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 4, 0, 0, 0, &r[0]), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, in, 4, 0, 0, &s[0]), 0);
		world_wait(&w, &r[0]);
		if (!late)
			assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, LONG, 2, 0, 0, &r[1]), 0);
		for (unsigned i = 0; i < FILL; i++)
			assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, in, SLAB, 1, 0, &s[1 + i]), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, in, LONG, 2, 0, &s[FILL + 1]), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, in, 4, 3, 0, &s[FILL + 2]), 0);
		for (unsigned i = 0; i < 10; i++)
			world_progress(&w, 1);
		if (late)
			assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, LONG, 2, 0, 0, &r[1]), 0);
		assert_int_equal(r[1].times, 0);
		world_progress(&w, 0);
		world_progress(&w, 1);
		assert_int_equal(r[1].times, 1);
		check_left(&w, 3);
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(wildcards),
		WORLD_EACH(peek_claim_discard),
		WORLD_EACH(cancel_receive),
		WORLD_EACH(cancel_send),
		WORLD_EACH(claims_of_closed),
		WORLD_EACH(cancelled_to_oneself),
		WORLD_EACH(truncation),
		WORLD_EACH(multi_receive),
		WORLD_EACH(multi_receive_again),
		WORLD_EACH(multi_receive_in_completion),
		cmocka_unit_test(in_turn),
		cmocka_unit_test(found_where_left),
		cmocka_unit_test(left_behind_pieces),
	};

	return cmocka_run_group_tests_name("engine receives", tests, NULL, NULL);
}

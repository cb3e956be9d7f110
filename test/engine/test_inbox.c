/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines 0 and 1 share an inbox, 2 and 3 write to them: over the simulated service, packets, shared connections and
 * shared memory.
 */
#include "engine/world.h"

#include "engine/rma.h"

#define MESSAGES 24

static unsigned char out[MESSAGES][WORLD_MIXED_MAX], in[MESSAGES][WORLD_MIXED_MAX];

static void open_sharing(struct world *w, const void *transport)
{
	world_open(w, &(struct world_attr){.transport = transport, .count = 4, .sharing = 2});
}

static void post(struct world *w, unsigned i, uint64_t tag, uint64_t ignore, struct task *t)
{
	const struct iovec iov = {in[i], sizeof(in[i])};

	assert_int_equal(rwk_inbox_recv(w->inbox, RWK_TAGGED, NULL, &iov, 1, tag, ignore, 0, t), 0);
}

/* Message i goes from 2 or 3 to 0 or 1, each way in turn. */
static unsigned from_of(unsigned i)
{
	return 2 + i / 2 % 2;
}

static void send_some(struct world *w, unsigned first, unsigned end, struct task *s)
{
	for (unsigned i = first; i < end; i++) {
		world_fill(out[i], world_mixed(i), i);
		assert_int_equal(
			world_send(w, from_of(i), i % 2, RWK_TAGGED, out[i], world_mixed(i), i, 0, &s[i]), 0);
	}
}

static void check_all(struct world *w, struct task *r)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		world_wait(w, &r[i]);
		assert_int_equal(r[i].who, i % 2);
		world_check_receive(w, &r[i], i % 2, from_of(i), RWK_TAGGED, world_mixed(i), i, false);
		world_check(in[i], world_mixed(i), i);
	}
}

/*
 * Whoever a message was sent to, it finds its receive in the inbox, be it posted before or after; it is told of by the
 * engine that it came by.
 */
static void one_inbox_for_two(void **state)
{
	for (unsigned early = 0; early <= MESSAGES; early += MESSAGES / 2) {
		struct task s[MESSAGES] = {0}, r[MESSAGES] = {0};
		struct world w;

		open_sharing(&w, *state);
		send_some(&w, 0, early, s);
		world_settle(&w);
		for (unsigned i = 0; i < MESSAGES; i++)
			post(&w, i, i, 0, &r[i]);
		send_some(&w, early, MESSAGES, s);
		check_all(&w, r);
		world_close(&w);
	}
}

/* The first posted receive that fits takes the first message, whichever of the two engines it comes by. */
static void first_posted_first(void **state)
{
	struct task s[8] = {0}, r[8] = {0};
	struct world w;

	open_sharing(&w, *state);
	for (unsigned i = 0; i < 8; i++)
		post(&w, i, 0, UINT64_MAX, &r[i]);
	for (unsigned i = 0; i < 8; i++) {
		send_some(&w, i, i + 1, s);
		world_wait(&w, &r[i]);
		assert_int_equal(r[i].c.tag, i);
		assert_int_equal(r[i].who, i % 2);
	}
	world_close(&w);
}

/* A multi-receive buffer takes messages of both; its release is told of with the last. */
static void shared_multi_receive(void **state)
{
	static unsigned char buffer[400];
	struct task s[4] = {0}, r = {0};
	const struct iovec iov = {buffer, sizeof(buffer)};
	struct world w;

	open_sharing(&w, *state);
	assert_int_equal(rwk_inbox_recv(w.inbox, RWK_PLAIN, NULL, &iov, 1, 0, 0, RWK_F_MULTI, &r), 0);
	for (unsigned i = 0; i < 4; i++) {
		world_fill(out[i], 100, i);
		assert_int_equal(world_send(&w, 2, i % 2, RWK_PLAIN, out[i], 100, 0, 0, &s[i]), 0);
		while (r.times <= i)
			assert_true(world_step(&w) || r.times > i);
		assert_int_equal(r.who, i % 2);
		assert_ptr_equal(r.c.buffer, buffer + (size_t)100 * i);
		assert_int_equal(r.c.flags & RWK_F_MULTI, i == 3 ? RWK_F_MULTI : 0);
	}
	world_settle(&w);
	assert_int_equal(r.times, 4);
	for (unsigned i = 0; i < 4; i++)
		world_check(buffer + (size_t)100 * i, 100, i);
	world_close(&w);
}

/* What is in the inbox is cancelled there, not by an engine that shares it; it is told of by the inbox's owner. */
static void cancelled_in_the_inbox(void **state)
{
	struct task s[2] = {0}, r[2] = {0}, peek = {0};
	struct world w;

	open_sharing(&w, *state);
	for (unsigned i = 0; i < 2; i++)
		post(&w, i, 1, 0, &r[i]);
	assert_int_equal(rwk_engine_cancel(w.e[1], &r[0]), -ENOENT);
	assert_int_equal(rwk_inbox_cancel(w.inbox, &r[0]), 0);
	assert_int_equal(r[0].times, 1);
	assert_int_equal(r[0].c.status, -ECANCELED);
	assert_int_equal(rwk_inbox_cancel(w.inbox, &r[0]), -ENOENT);
	send_some(&w, 1, 2, s);
	world_wait(&w, &r[1]);
	world_check(in[1], world_mixed(1), 1);
	assert_int_equal(rwk_inbox_recv(w.inbox, RWK_TAGGED, NULL, NULL, 0, 1, 0, RWK_F_PEEK, &peek), 0);
	assert_int_equal(peek.c.status, -ENOMSG);
	world_close(&w);
}

/* With an engine go the messages that have come by it; the receives that wait, and the others' messages, stay. */
static void one_leaves(void **state)
{
	struct task s[MESSAGES] = {0}, r[MESSAGES] = {0}, gone = {0}, claim = {0};
	struct world w;

	open_sharing(&w, *state);
	post(&w, 0, 0, 0, &r[0]);
	send_some(&w, 1, MESSAGES, s);
	world_settle(&w);
	assert_int_equal(
		rwk_inbox_recv(w.inbox, RWK_TAGGED, NULL, NULL, 0, 1, 0, RWK_F_PEEK | RWK_F_CLAIM, &claim), 0);
	assert_int_equal(claim.c.status, 0);
	world_engine_close(&w, 1);
	for (unsigned i = 1; i < MESSAGES; i += 2) {
		memset(&gone, 0, sizeof(gone));
		assert_int_equal(rwk_inbox_recv(w.inbox, RWK_TAGGED, NULL, NULL, 0, i, 0, RWK_F_PEEK, &gone), 0);
		assert_int_equal(gone.c.status, -ENOMSG);
	}
	assert_int_equal(
		rwk_inbox_recv(w.inbox, RWK_TAGGED, NULL, NULL, 0, 1, 0, RWK_F_CLAIM | RWK_F_DISCARD, &claim), -EINVAL);
	for (unsigned i = 2; i < MESSAGES; i += 2) {
		post(&w, i, i, 0, &r[i]);
		world_wait(&w, &r[i]);
		world_check(in[i], world_mixed(i), i);
	}
	assert_int_equal(r[0].times, 0);
	send_some(&w, 0, 1, s);
	world_wait(&w, &r[0]);
	world_close(&w);
}

/* Closes the engine after so many steps of a message's way: what becomes of its receive. */
static int leave_after(const void *transport, unsigned steps, size_t len)
{
	struct task s = {0}, r = {0};
	bool before, waits;
	struct world w;

	open_sharing(&w, transport);
	post(&w, 1, 1, 0, &r);
	assert_int_equal(world_send(&w, 3, 1, RWK_TAGGED, out[1], len, 1, 0, &s), 0);
	for (unsigned i = 0; i < steps && !r.times; i++)
		world_step(&w);
	before = r.times;
	world_engine_close(&w, 1);
	waits = !r.times && !rwk_inbox_cancel(w.inbox, &r);
	assert_int_equal(r.times, 1);
	assert_int_equal(r.who, waits ? 0 : 1);
	assert_int_equal(r.c.status, before ? 0 : -ECANCELED);
	world_close(&w);
	return before ? 2 : waits ? 0 : 1;
}

/*
 * A receive whose message is on its way when its engine is closed ends with -ECANCELED: nobody else would tell of the
 * buffer. The moments are many, of packets above all.
 */
static void one_leaves_in_the_middle(void **state)
{
	static const size_t lengths[] = {50000, 200000};

	for (unsigned l = 0; l < 2; l++) {
		unsigned seen[3] = {0};

		for (unsigned n = 0; n < 100000 && !seen[2]; n += 1 + n / 4)
			seen[leave_after(*state, n, lengths[l])]++;
		assert_true(seen[0]);
		assert_true(seen[2]);
		if (*state == (void *)&sim_packet_transport)
			assert_true(seen[1]);
	}
}

/* Who is told of a receive that has been cancelled posts it anew, for the same peer. */
static struct anew {
	struct task told, posted;
	ssize_t rc;
} anew;

static void post_anew(struct world *w, unsigned who, const struct rwk_completion *c)
{
	struct task *t = c->context;

	t->times++;
	t->c = *c;
	if (t == &anew.told && c->status == -ECANCELED)
		anew.rc = rwk_inbox_recv1(w->inbox, in[2], sizeof(in[2]), rwk_space_flag(RWK_TAGGED), w->peer[who][3],
			2, 0, &anew.posted);
}

/* Closes the engine after so many steps of a message's way: 2 if it has come, 1 in the middle, 0 before. */
static int posted_anew_after(const void *transport, unsigned steps)
{
	struct task s = {0};
	struct world w;
	bool before;

	memset(&anew, 0, sizeof(anew));
	open_sharing(&w, transport);
	w.on_complete = post_anew;
	post(&w, 1, 1, 0, &anew.told);
	assert_int_equal(world_send(&w, 3, 1, RWK_TAGGED, out[1], sizeof(out[1]), 1, 0, &s), 0);
	for (unsigned i = 0; i < steps && !anew.told.times; i++)
		world_step(&w);
	before = anew.told.times;
	world_engine_close(&w, 1);
	if (anew.told.times && !before) {
		assert_int_equal(anew.rc, -ECANCELED);
		assert_int_equal(anew.posted.times, 0);
	}
	w.on_complete = NULL;
	if (!anew.told.times)
		assert_int_equal(rwk_inbox_cancel(w.inbox, &anew.told), 0);
	world_close(&w);
	return before ? 2 : anew.rc ? 1 : 0;
}

/* An engine that is being closed has no peers any more: who waits for one of them with the others' inbox is refused. */
static void closing_has_no_peers(void **state)
{
	unsigned seen[3] = {0};

	for (unsigned n = 0; n < 100000 && !seen[2]; n += 1 + n / 4)
		seen[posted_anew_after(*state, n)]++;
	if (*state == (void *)&sim_packet_transport)
		assert_true(seen[1]);
}

#define BUSY 14 /* so many messages of 60000 bytes are more than shared memory takes while nobody looks */

/* Who is told of a receive that has been cancelled writes and sends: to 2, who was met, to a stranger, to itself. */
static struct {
	unsigned told; /* receives that have been cancelled */
	size_t len;
} closing;

static void send_anew(struct world *w, unsigned who, const struct rwk_completion *c)
{
	struct rwk_address stranger = *rwk_engine_address(w->e[0]);
	const struct iovec iov = {out[0], 8};
	const struct rwk_remote remote = {.length = 8};
	struct rwk_rma_args a = {.iov = &iov, .iov_count = 1, .remote = &remote, .remote_count = 1};
	struct rwk_peer *to[] = {w->peer[who][2], NULL, w->peer[who][who]};

	if (!(c->flags & RWK_F_RECV) || c->status != -ECANCELED)
		return;
	stranger.nonce_port += ((uint64_t)++closing.told << 20) + 7;
	to[1] = rwk_engine_peer(w->e[who], &stranger);
	for (unsigned i = 0; i < 2; i++) {
		a.peer = to[i];
		assert_int_equal(rwk_engine_write(w->e[who], &a), -ECANCELED);
	}
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(
			rwk_engine_send1(w->e[who], out[0], closing.len,
				rwk_space_flag(RWK_TAGGED) | (i < 3 ? 0 : RWK_F_ARRIVED), 0, to[i % 3], 99, NULL),
			-ECANCELED);
}

/* Closes engine 1 after so many steps of some messages' way, in the middle of one or not; their sender makes none. */
static unsigned sent_anew_after(const void *transport, unsigned steps, size_t len)
{
	struct task met[4] = {{0}}, s[BUSY] = {{0}}, r[BUSY] = {{0}};
	struct world w;

	closing.told = 0;
	closing.len = len;
	open_sharing(&w, transport);
	post(&w, 0, 99, 0, &met[0]);
	assert_int_equal(world_send(&w, 3, 1, RWK_TAGGED, out[0], 4, 99, 0, &met[1]), 0);
	assert_int_equal(world_recv(&w, 2, 1, RWK_TAGGED, in[0], 4, 99, 0, 0, &met[2]), 0);
	assert_int_equal(world_send(&w, 1, 2, RWK_TAGGED, out[0], 4, 99, 0, &met[3]), 0);
	for (unsigned i = 0; i < 4; i++)
		world_wait(&w, &met[i]);
	world_settle(&w);
	for (unsigned i = 0; i < BUSY; i++) {
		post(&w, i, i, 0, &r[i]);
		assert_int_equal(world_send(&w, 3, 1, RWK_TAGGED, out[i], 60000, i, 0, &s[i]), 0);
	}
	w.computes[3] = true;
	for (unsigned i = 0; i < steps; i++)
		world_step(&w);
	w.on_complete = send_anew;
	world_engine_close(&w, 1);
	w.on_complete = NULL;
	rwk_inbox_cancel_all(w.inbox);
	world_close(&w);
	return closing.told;
}

/* An engine that is being closed sends nothing any more, neither by a channel that may be gone nor by a new one. */
static void closing_sends_nothing(void **state)
{
	static const size_t lengths[] = {8, 200000};
	unsigned told = 0;

	for (unsigned n = 0; n < 2000; n += 1 + n / 2)
		told += sent_anew_after(*state, n, lengths[n % 2]);
	assert_true(told);
}

/* With the peer's death the receive that its message was coming for ends, and the inbox goes on. */
static void a_sender_dies(void **state)
{
	struct task s = {0}, t = {0}, r = {0};
	struct world w;

	open_sharing(&w, *state);
	assert_int_equal(world_send(&w, 3, 1, RWK_TAGGED, out[1], 200000, 1, 0, &s), 0);
	world_settle(&w);
	world_kill(&w, 3);
	world_settle(&w);
	post(&w, 1, 1, 0, &r);
	world_wait(&w, &r);
	assert_int_equal(r.c.status, -ECONNRESET);
	assert_int_equal(r.who, 1);
	memset(&r, 0, sizeof(r));
	post(&w, 0, 0, 0, &r);
	send_some(&w, 0, 1, &t);
	world_wait(&w, &r);
	assert_int_equal(r.c.status, 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_EACH(one_inbox_for_two),
		WORLD_EACH(first_posted_first),
		WORLD_EACH(shared_multi_receive),
		WORLD_EACH(cancelled_in_the_inbox),
		WORLD_EACH(one_leaves),
		WORLD_EACH(one_leaves_in_the_middle),
		WORLD_EACH(closing_has_no_peers),
		WORLD_EACH(closing_sends_nothing),
		WORLD_EACH(a_sender_dies),
	};

	return cmocka_run_group_tests_name("engine inbox", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that die or close at every stage of every protocol. Three engines: 0 and 1 talk, one of them ends, 2 is the
 * bystander. What is under way with the dead completes once, with success or -ECONNRESET; nothing else is touched,
 * nothing leaks, later calls say -ECONNRESET.
 */
#include "engine/world.h"

#include "engine/internal.h"

#define TX_LIMIT 12
#define ROOM     6000

/*
 * A message from 0 to 1, and how it is received. With eager_max 2000 and packets of 512 bytes each protocol has its
 * stages.
 */
static const struct scenario {
	const char *name;
	size_t length;
	uint32_t flags;
	bool posted;   /* before the message is sent, else when it waits */
	bool anyone;   /* received from anyone */
	bool multi;
	unsigned count;
} scenarios[] = {
	{"eager", 8, 0, true, false, false, 1},
	{"eager, waiting", 8, 0, false, false, false, 3},
	{"eager in pieces", 1900, 0, true, false, false, 2},
	{"eager in pieces, waiting", 1900, 0, false, true, false, 2},
	{"rendezvous", 5000, 0, true, false, false, 2},
	{"rendezvous, from anyone", 5000, 0, true, true, false, 1},
	{"rendezvous, waiting", 5000, 0, false, false, false, 2},
	{"delivered", 8, RWK_F_MATCHED, true, false, false, 1},
	{"delivered, empty, waiting", 0, RWK_F_MATCHED, false, false, false, 1},
	{"into a multi-receive buffer", 1900, 0, true, false, true, 2},
	{"many that wait for room", 300, 0, true, false, false, 10},
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))
#define COUNT_MAX 10

static unsigned polls_left, who_closes;

struct play {
	struct world w;
	const struct scenario *s;
	struct task send[COUNT_MAX], recv[COUNT_MAX], back, bystander, others;
	ssize_t send_rc[COUNT_MAX], recv_rc[COUNT_MAX];
	unsigned multi_end;
	unsigned char out[ROOM], in[COUNT_MAX][ROOM], more[8];
};

static bool alive(const struct play *p, unsigned who)
{
	return !p->w.dead[who] && (!p->w.net || rwk_sim_alive(p->w.net, p->w.node[who]));
}

/* In multi-receive buffers there is one task for the buffer: it may be told of several messages. */
static struct task *receive_task(struct play *p, unsigned i)
{
	return &p->recv[p->s->multi ? 0 : i];
}

static void post_receives(struct play *p)
{
	unsigned count = p->s->multi ? 1 : p->s->count;

	for (unsigned i = 0; i < count && alive(p, 1); i++)
		p->recv_rc[i] = world_recv(&p->w, 1, p->s->anyone ? WORLD_ANY : 0, RWK_TAGGED, p->in[i], ROOM, 1, 0,
			p->s->multi ? RWK_F_MULTI : 0, receive_task(p, i));
}

static void begin(struct play *p, const struct scenario *s, const struct rwk_transport *transport)
{
	struct world_attr a = {
		.transport = transport, .count = 3, .tx_limit = TX_LIMIT, .eager_max = 2000, .multi_min = 2000};

	memset(p, 0, sizeof(*p));
	p->s = s;
	for (unsigned i = 0; i < COUNT_MAX; i++)
		p->send_rc[i] = p->recv_rc[i] = -ECONNRESET; /* not begun, if somebody ends before */
	world_open(&p->w, &a);
	world_fill(p->out, s->length, 9);
}

/*
 * All of it, up to where somebody has ended. The receives of 0 from 1 and of 1 from anyone wait for messages that never
 * come.
 */
static void act(struct play *p, void (*pause)(struct play *p))
{
	const struct scenario *s = p->s;

	world_recv(&p->w, 1, 2, RWK_TAGGED, p->more, sizeof(p->more), 8, 0, 0, &p->bystander);
	world_recv(&p->w, 0, 1, RWK_TAGGED, NULL, 0, 99, 0, 0, &p->back);
	if (s->posted)
		post_receives(p);
	for (unsigned i = 0; i < s->count && alive(p, 0) && alive(p, 1); i++)
		p->send_rc[i] = rwk_engine_send1(
			p->w.e[0], p->out, s->length, RWK_F_TAGGED | s->flags, 0, p->w.peer[0][1], 1, &p->send[i]);
	pause(p);
	if (!s->posted)
		post_receives(p);
	pause(p);
}

static void check_done(const struct task *t, ssize_t rc)
{
	if (rc) {
		assert_int_equal(rc, -ECONNRESET);
		assert_int_equal(t->times, 0);
		return;
	}
	assert_int_equal(t->times, 1);
	if (t->c.status)
		assert_int_equal(t->c.status, -ECONNRESET);
}

/* Everything that a survivor has had with the dead is over. */
static void check_survivor(struct play *p, unsigned who)
{
	const struct scenario *s = p->s;
	unsigned dead = 1 - who;

	/* Twice if our own greeting was refused while the dead's still waited to be answered. */
	assert_in_range(rwk_engine_counters(p->w.e[who])->failed_peers, 1, p->w.net ? 1 : 2);
	for (unsigned i = 0; i < s->count; i++) {
		if (who == 0)
			check_done(&p->send[i], p->send_rc[i]);
		else if (!s->anyone && !s->multi)
			check_done(&p->recv[i], p->recv_rc[i]);
		else if (s->anyone && !p->recv[i].times)
			assert_int_equal(rwk_engine_cancel(p->w.e[1], &p->recv[i]), 0);
		if (who == 1 && s->anyone && p->recv[i].times && p->recv[i].c.status == -ECONNRESET) {
			/* It had taken a message of the dead; else it would wait for somebody else's. */
			assert_ptr_equal(p->recv[i].c.peer, p->w.peer[1][0]);
		}
		if (who == 1 && p->recv[i].times && !p->recv[i].c.status && p->s->length >= 8 && !s->multi)
			world_check(p->in[i], s->length, 9);
	}
	if (who == 1 && s->multi) { /* told of its messages, and of its end */
		assert_in_range(p->recv[0].times, 1, s->count + 1);
		assert_int_equal(p->recv[0].c.flags & RWK_F_MULTI, RWK_F_MULTI);
		assert_int_equal(p->recv[0].c.status, -ECONNRESET);
	}
	if (who == 0)
		check_done(&p->back, 0);
	assert_int_equal(world_send(&p->w, who, dead, RWK_TAGGED, p->out, 8, 1, 0, &p->others), -ECONNRESET);
	assert_int_equal(world_send(&p->w, who, dead, RWK_TAGGED, p->out, 5000, 1, 0, &p->others), -ECONNRESET);
	assert_int_equal(world_recv(&p->w, who, dead, RWK_TAGGED, p->more, 8, 5, 0, 0, &p->others), -ECONNRESET);
}

/* The survivor and the bystander have all their means, and what the dead had was given back. */
static void check_others(struct play *p, unsigned who)
{
	struct task send[2][TX_LIMIT] = {0}, recv[2][TX_LIMIT] = {0};

	if (who == 1) {
		assert_int_equal(p->bystander.times, 0);
		assert_int_equal(world_send(&p->w, 2, 1, RWK_TAGGED, "bystand", 8, 8, 0, &p->others), 0);
		world_wait(&p->w, &p->bystander);
		assert_int_equal(p->bystander.c.status, 0);
		assert_string_equal((char *)p->more, "bystand");
		world_settle(&p->w);
	}
	for (unsigned i = 0; i < TX_LIMIT; i++) {
		assert_int_equal(rwk_engine_send1(p->w.e[who], p->out, i % 2 ? 5000 : 8, RWK_F_TAGGED | RWK_F_MATCHED,
					 0, p->w.peer[who][2], i, &send[0][i]),
			0);
		assert_int_equal(rwk_engine_send1(p->w.e[2], p->out, i % 2 ? 5000 : 8, RWK_F_TAGGED | RWK_F_MATCHED,
					 0, p->w.peer[2][who], 100 + i, &send[1][i]),
			0);
	}
	for (unsigned i = 0; i < TX_LIMIT; i++) {
		assert_int_equal(world_recv(&p->w, 2, who, RWK_TAGGED, p->in[0], ROOM, i, 0, 0, &recv[0][i]), 0);
		assert_int_equal(world_recv(&p->w, who, 2, RWK_TAGGED, p->in[1], ROOM, 100 + i, 0, 0, &recv[1][i]), 0);
	}
	for (unsigned i = 0; i < TX_LIMIT; i++) {
		for (unsigned n = 0; n < 2; n++) {
			world_wait(&p->w, &send[n][i]);
			world_wait(&p->w, &recv[n][i]);
			assert_int_equal(send[n][i].c.status + recv[n][i].c.status, 0);
		}
	}
	assert_in_range(rwk_engine_counters(p->w.e[2])->failed_peers, 0, 1 - who == 1); /* 1 has met it */
}

static void rest(struct play *p)
{
	world_settle(&p->w);
}

static struct play play;

/* How many packets go each way if nobody dies; and that all goes well then. */
static void count_packets(const struct scenario *s, uint64_t packets[2])
{
	begin(&play, s, &rwk_sim_transport);
	act(&play, rest);
	for (unsigned i = 0; i < s->count; i++) {
		assert_int_equal(play.send[i].times, 1);
		assert_int_equal(play.send[i].c.status, 0);
		if (!s->multi) {
			assert_int_equal(play.recv[i].times, 1);
			assert_int_equal(play.recv[i].c.status, 0);
		}
	}
	packets[0] = rwk_sim_sent(play.w.net, play.w.node[0], play.w.node[1]);
	packets[1] = rwk_sim_sent(play.w.net, play.w.node[1], play.w.node[0]);
	world_close(&play.w);
}

static void die_at(const struct scenario *s, unsigned from, uint64_t nth, enum rwk_sim_fate fate)
{
	unsigned dead = fate == RWK_SIM_KILL_SENDER ? from : 1 - from;

	begin(&play, s, &rwk_sim_transport);
	rwk_sim_rule(play.w.net, play.w.node[from], play.w.node[1 - from], nth, fate);
	act(&play, rest);
	assert_false(alive(&play, dead));
	world_settle(&play.w);
	world_engine_close(&play.w, dead);
	check_survivor(&play, 1 - dead);
	check_others(&play, 1 - dead);
	world_close(&play.w);
}

/* A process ends with each packet that goes either way, as its sender or just before receiving it. */
static void death_at_every_packet(void **state)
{
	uint64_t packets[2];
	unsigned deaths = 0;

	(void)state;
	for (size_t i = 0; i < SCENARIOS; i++) {
		count_packets(&scenarios[i], packets);
		for (unsigned from = 0; from < 2; from++) {
			for (uint64_t nth = 1; nth <= packets[from]; nth++) {
				die_at(&scenarios[i], from, nth, RWK_SIM_KILL_SENDER);
				die_at(&scenarios[i], from, nth, RWK_SIM_KILL_RECEIVER);
				deaths += 2;
			}
		}
	}
	assert_true(deaths > 200);
}

/* Some polls, of which one is the last for an engine: it is closed. */
static void poll_and_close(struct play *p)
{
	for (unsigned i = 0; i < 40; i++) {
		if (!polls_left-- && !p->w.dead[who_closes])
			world_engine_close(&p->w, who_closes);
		world_poll(&p->w);
		if (p->w.net)
			rwk_sim_step(p->w.net);
	}
}

/* An engine is closed after each number of polls, with operations of every kind under way; over both transports. */
static void close_at_every_poll(void **state)
{
	for (size_t i = 0; i < SCENARIOS; i++) {
		for (unsigned n = 0; n < 40; n += *state == &rwk_sim_transport ? 1 : 8) {
			for (who_closes = 0; who_closes < 2; who_closes++) {
				struct task word = {0};
				unsigned left = 1 - who_closes;

				begin(&play, &scenarios[i], *state);
				polls_left = n;
				act(&play, poll_and_close);
				assert_true(play.w.dead[who_closes]);
				if (!world_recv(&play.w, left, who_closes, RWK_TAGGED, NULL, 0, 77, 0, 0, &word))
					world_wait(&play.w, &word);
				world_settle(&play.w);
				check_survivor(&play, left);
				check_others(&play, left);
				world_close(&play.w);
			}
		}
	}
}

/* Silence is no death: all packets are lost for a second, then none; the message arrives, nobody was thought dead. */
static void silence(void **state)
{
	struct rwk_sim_path deaf = rwk_sim_attr_default.path;
	struct task s = {0}, r = {0};
	unsigned char in[8];
	struct world w;

	(void)state;
	world_open_two(&w, &rwk_sim_transport);
	deaf.drop = 1000000;
	rwk_sim_set_paths(w.net, &deaf);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 8, 1, 0, 0, &r), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, "silence", 8, 1, 0, &s), 0);
	while (rwk_sim_now(w.net) < 1000000000) {
		world_poll(&w);
		assert_true(rwk_sim_step(w.net));
	}
	assert_int_equal(r.times, 0);
	rwk_sim_set_paths(w.net, &rwk_sim_attr_default.path);
	world_wait(&w, &r);
	assert_string_equal((char *)in, "silence");
	assert_int_equal(rwk_engine_counters(w.e[0])->failed_peers + rwk_engine_counters(w.e[1])->failed_peers, 0);
	world_close(&w);
}

/* A channel that breaks for another reason gives that reason. */
static void broken_protocol(void **state)
{
	struct task s = {0}, r = {0};
	unsigned char in[8];
	struct world w;

	(void)state;
	world_open_two(&w, &rwk_sim_transport);
	assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, 8, 1, 0, 0, &r), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, in, 8, 2, RWK_F_MATCHED, &s), 0);
	world_settle(&w);
	assert_true(rwk_sim_break(rwk_engine_address(w.e[1]), rwk_engine_address(w.e[0]), -EPROTO));
	world_wait(&w, &r);
	assert_int_equal(r.c.status, -EPROTO);
	assert_int_equal(world_send(&w, 1, 0, RWK_TAGGED, in, 8, 2, 0, &r), -EPROTO);
	world_close(&w);
}

/*
 * Waiting for, or sending to, an endpoint that was gone before first contact ends with an error; who was never there is
 * unreachable.
 */
static void gone_before_contact(void **state)
{
	static unsigned char buf[100000];
	struct rwk_address nowhere;
	struct task r = {0}, s[2] = {0};
	struct rwk_peer *p;
	struct world w;

	(void)state;
	world_open(&w, &(struct world_attr){.transport = &rwk_sim_transport, .count = 2});
	nowhere = *rwk_engine_address(w.e[1]);
	world_kill(&w, 1);
	assert_int_equal(world_recv(&w, 0, 1, RWK_TAGGED, buf, 8, 1, 0, 0, &r), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, buf, 8, 1, 0, &s[0]), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, buf, 100000, 1, 0, &s[1]), 0);
	world_wait(&w, &r);
	world_wait(&w, &s[0]);
	world_wait(&w, &s[1]);
	assert_true(r.c.status == -ECONNRESET && s[0].c.status == -ECONNRESET && s[1].c.status == -ECONNRESET);
	nowhere.nonce_port = nowhere.nonce_port + (1ull << 20) + 7;
	p = rwk_engine_peer(w.e[0], &nowhere);
	assert_int_equal(rwk_engine_send1(w.e[0], buf, 8, RWK_F_TAGGED, 0, p, 1, &r), -EHOSTUNREACH);
	world_close(&w);
}

/*
 * What has come from a peer that is dead now can still be received: by receives, and into a multi-receive buffer, which
 * then ends.
 */
static void messages_of_the_dead(void **state)
{
	static unsigned char out[5000], in[20000];

	(void)state;
	for (int multi = 0; multi < 2; multi++) {
		struct task s[4] = {0}, r[4] = {0};
		struct world w;

		world_open_two(&w, &rwk_sim_transport);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, 100 + 1000 * i, 1, 0, &s[i]), 0);
		assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, out, sizeof(out), 1, RWK_F_MATCHED, &s[3]), 0);
		world_settle(&w);
		world_kill(&w, 0);
		world_settle(&w);
		assert_int_equal(rwk_engine_counters(w.e[1])->failed_peers, 1);
		if (multi) {
			assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, in, sizeof(in), 1, 0, RWK_F_MULTI, &r[0]), 0);
			world_settle(&w);
			assert_int_equal(r[0].times, 5);
			assert_int_equal(r[0].c.status, -ECONNRESET);
			assert_int_equal(r[0].c.flags & RWK_F_MULTI, RWK_F_MULTI);
		}
		for (unsigned i = 0; i < 4 && !multi; i++) {
			assert_int_equal(
				world_recv(&w, 1, i % 2 ? 0 : WORLD_ANY, RWK_TAGGED, in, sizeof(in), 1, 0, 0, &r[i]),
				0);
			assert_int_equal(r[i].times, 1);
			assert_int_equal(r[i].c.status, i < 3 ? 0 : -ECONNRESET);
			if (i < 3)
				assert_int_equal(r[i].c.length, 100 + 1000 * i);
		}
		world_close(&w);
	}
}

/* A completion that says that the peer is dead posts its receive again: it is refused, not kept for ever. */
static unsigned refused;

static void receive_again(struct world *w, unsigned who, const struct rwk_completion *c)
{
	assert_int_equal(c->status, -ECONNRESET);
	assert_int_equal(rwk_inbox_recv1(rwk_engine_inbox(w->e[who]), NULL, 0, RWK_F_TAGGED, w->peer[who][1 - who], 2,
				 0, c->context),
		-ECONNRESET);
	refused++;
}

static void again_from_the_dead(void **state)
{
	struct task s = {0}, r[3] = {0};
	struct world w;

	world_open_two(&w, *state);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(world_recv(&w, 1, 0, RWK_TAGGED, NULL, 0, i ? 2 : 1, 0, 0, &r[i]), 0);
	assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, NULL, 0, 1, 0, &s), 0);
	world_wait(&w, &r[0]);
	world_wait(&w, &s);
	refused = 0;
	w.on_complete = receive_again;
	world_kill(&w, 0);
	world_settle(&w);
	assert_int_equal(refused, 2);
	world_close(&w);
}

/* Closing with everything under way and nobody to talk to: no leak, no completion. */
static void close_in_the_middle(void **state)
{
	static unsigned char buf[200000];
	static struct task t[200];

	for (unsigned polls = 0; polls < 60; polls += 3) {
		struct world w;

		memset(t, 0, sizeof(t));
		world_open(&w, &(struct world_attr){.transport = *state, .count = 4});
		for (unsigned i = 0; i < 100; i++) {
			assert_int_equal(world_recv(&w, i % 4, i % 3 ? (i + 1) % 4 : WORLD_ANY, RWK_TAGGED, buf,
						 sizeof(buf), i % 2, 0, 0, &t[i]),
				0);
			assert_int_equal(rwk_engine_send1(w.e[i % 4], buf, world_mixed(i),
						 RWK_F_TAGGED | (i % 5 ? 0 : RWK_F_MATCHED), 0,
						 w.peer[i % 4][i / 4 % 4], i % 3, &t[100 + i]),
				0);
		}
		for (unsigned i = 0; i < polls; i++) {
			world_poll(&w);
			for (unsigned n = 0; w.net && n < 10; n++)
				rwk_sim_step(w.net);
		}
		for (unsigned i = 0; i < 4; i++) {
			unsigned times[2] = {0};

			for (unsigned n = 0; n < 200; n++)
				times[0] += t[n].times;
			world_engine_close(&w, i);
			for (unsigned n = 0; n < 200; n++)
				times[1] += t[n].times;
			assert_int_equal(times[0], times[1]);
			world_poll(&w);
		}
		world_close(&w);
	}
}

/* A peer that has failed since the last progress, whose receives are not told of yet: nobody falls asleep. */
static void failed_before_sleep(void **state)
{
	struct task s = {0}, r = {0};
	unsigned char in[8];
	struct world w;

	(void)state;
	world_open_two(&w, &rwk_shm_transport);
	assert_int_equal(world_recv(&w, 0, 1, RWK_TAGGED, in, 8, 1, 0, 0, &r), 0);
	assert_int_equal(world_send(&w, 1, 0, RWK_TAGGED, "arrives", 8, 1, 0, &s), 0);
	world_wait(&w, &r);
	world_settle(&w);
	r = (struct task){0};
	assert_int_equal(world_recv(&w, 0, 1, RWK_TAGGED, in, 8, 1, 0, 0, &r), 0);
	assert_int_equal(rwk_engine_arm(w.e[0]), 0);
	rwk_peer_failed(w.e[0], w.peer[0][1]->channel, -ECONNRESET);
	assert_int_equal(r.times, 0);
	assert_int_equal(rwk_engine_arm(w.e[0]), -EAGAIN);
	rwk_engine_progress(w.e[0]);
	assert_int_equal(r.times, 1);
	assert_int_equal(r.c.status, -ECONNRESET);
	world_close(&w);
}

static int peek(struct world *w, uint64_t tag)
{
	struct task t = {0};

	assert_int_equal(world_recv(w, 1, 0, RWK_TAGGED, NULL, 0, tag, 0, RWK_F_PEEK, &t), 0);
	assert_int_equal(t.times, 1);
	return t.c.status;
}

/*
 * Who does nothing but peek at a peer hears of its death: what has come of it is found still, then there is the error.
 * The first peek makes contact, or nobody would notice.
 */
static void peeked_at_the_dead(void **state)
{
	for (int sends = 0; sends < 2; sends++) {
		struct task s = {0};
		struct world w;

		world_open_two(&w, *state);
		assert_int_equal(peek(&w, 1), -ENOMSG);
		world_settle(&w);
		if (sends)
			assert_int_equal(world_send(&w, 0, 1, RWK_TAGGED, NULL, 0, 1, 0, &s), 0);
		world_settle(&w);
		assert_int_equal(peek(&w, 2), -ENOMSG);
		world_kill(&w, 0);
		world_settle(&w);
		assert_int_equal(peek(&w, 1), sends ? 0 : -ECONNRESET);
		assert_int_equal(peek(&w, 2), -ECONNRESET);
		world_close(&w);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death_at_every_packet),
		WORLD_EACH(close_at_every_poll),
		cmocka_unit_test(silence),
		cmocka_unit_test(failed_before_sleep),
		cmocka_unit_test(broken_protocol),
		cmocka_unit_test(gone_before_contact),
		cmocka_unit_test(messages_of_the_dead),
		WORLD_EACH(again_from_the_dead),
		WORLD_EACH(close_in_the_middle),
		WORLD_EACH(peeked_at_the_dead),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("engine failures", tests, NULL, NULL);
}

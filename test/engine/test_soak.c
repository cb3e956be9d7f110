/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random operations among several engines, against what MPI promises: each message is received once, whole, and in
 * order; over a simulated network with a seed that decides everything (losses, delays, limits, who dies when), by a
 * simple service and by the machines of RC, UC and SRC, and over shared memory.
 *
 * The rule of order, per sender, receiver and space: a receive takes the earliest message that fits it, and of two
 * receives that fit a message the one posted first takes it. So, with the messages in the order of sending: whatever
 * receive took a message, each earlier message that fits that receive was taken by one posted earlier.
 *
 * A failure prints its seed: RWK_TEST_SEED=<seed> runs it again; RWK_TEST_STEPS=<number> runs longer,
 * RWK_TEST_SEEDS=<most> fewer; RWK_TEST_SHORT: half as long; an argument picks the tests.
 */
#include "engine/world.h"

#include "base/compiler.h"
#include "base/list.h"

#include <time.h>

#define TAGS        4
#define LENGTH_MAX  40000
#define OUTSTANDING 40   /* receives, or sends, of an engine */
#define NOT_TAKEN   UINT64_MAX

/* One message as the model knows it. */
struct message {
	uint64_t taken_by; /* number of the receive in the order of posting */
	uint32_t length;
	uint8_t tag, ignore; /* ignore: of the receive that took it */
	bool multi;          /* that was a buffer that takes several */
	bool cancelled;
};

struct stream {
	struct message *m;
	size_t count, size;
};

enum op_kind { SEND, RECV, PROBE };

struct op {
	struct rwk_list link;
	enum op_kind kind;
	unsigned who, to; /* to: of a send; whom a receive is directed at, or WORLD_ANY */
	enum rwk_space space;
	uint32_t flags;
	uint8_t tag, ignore;
	size_t length;
	uint64_t number;
	bool claimed;
	unsigned char buf[];
};

static struct world w;
static struct stream streams[WORLD_MAX][WORLD_MAX][RWK_SPACES]; /* [from][to][space] */
static struct rwk_list ops[WORLD_MAX];
static unsigned op_count[WORLD_MAX];
static uint64_t random_state, seed_now, posted, operations;
static unsigned kills;

#define check(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			fail_msg("RWK_TEST_SEED=%llu: %s", (unsigned long long)seed_now, #condition);                  \
	} while (0)

static uint64_t pick(uint64_t bound)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % bound;
}

static uint64_t seed_of(unsigned from, unsigned to, enum rwk_space space, uint64_t number)
{
	return number * 1024 + from * 64 + to * 4 + space;
}

static struct op *op_new(unsigned who, enum op_kind kind, size_t length)
{
	struct op *o = calloc(1, sizeof(*o) + length + 1);

	check(o);
	o->who = who;
	o->kind = kind;
	o->length = length;
	o->space = pick(3) ? RWK_TAGGED : RWK_PLAIN;
	o->buf[length] = 0x5a;
	rwk_list_append(&ops[who], &o->link);
	op_count[who]++;
	operations++;
	return o;
}

static void op_free(struct op *o)
{
	check(o->buf[o->length] == 0x5a);
	rwk_list_remove(&o->link);
	op_count[o->who]--;
	trash(o->buf, o->length);
	free(o);
}

static size_t pick_length(void)
{
	static const size_t most[] = {64, 64, 64, 64, 64, 64, 600, 600, 600, 5000, 5000, LENGTH_MAX};

	return pick(most[pick(12)] + 1);
}

/*
 * Completions.
 */

static void send_done(struct op *o, const struct rwk_completion *c)
{
	struct message *m = &streams[o->who][o->to][o->space].m[o->number];

	check(!(c->flags & RWK_F_RECV));
	if (c->status == -ECANCELED)
		m->cancelled = true;
	else
		check(!c->status || (w.dead[o->to] && c->status == -ECONNRESET));
	if (o->flags & RWK_F_MATCHED && !c->status && !w.dead[o->to] && o->to != o->who) {
		world_drain(&w, o->to); /* its receive may have ended as it was posted, and be told by the next progress */
		check(m->taken_by != NOT_TAKEN);
	}
	op_free(o);
}

static unsigned number_of(unsigned who, const struct rwk_peer *p)
{
	for (unsigned i = 0; i < w.attr.count; i++)
		if (w.peer[who][i] == p)
			return i;
	fail_msg("RWK_TEST_SEED=%llu: a message from nobody", (unsigned long long)seed_now);
	return 0;
}

/* A message has been taken by a receive, or dropped by one. */
static struct message *taken(struct op *o, const struct rwk_completion *c, unsigned *from)
{
	struct stream *s;
	struct message *m;

	*from = number_of(o->who, c->peer);
	check(o->to == WORLD_ANY || o->to == *from);
	check(c->flags & RWK_F_DATA && c->flags & RWK_F_RECV);
	check(!(c->flags & RWK_F_TAGGED) == (o->space != RWK_TAGGED));
	s = &streams[*from][o->who][o->space];
	check(c->data < s->count);
	m = &s->m[c->data];
	check(m->taken_by == NOT_TAKEN && !m->cancelled);
	if (o->space == RWK_TAGGED) {
		check(m->tag == c->tag);
		check(((c->tag ^ o->tag) & ~(uint64_t)o->ignore) == 0);
	}
	return m;
}

static void take(struct op *o, struct message *m)
{
	m->taken_by = o->number;
	m->ignore = o->ignore;
	m->multi = o->flags & RWK_F_MULTI;
}

static void receive_done(struct op *o, const struct rwk_completion *c)
{
	bool last = !(o->flags & RWK_F_MULTI) || c->flags & RWK_F_MULTI;
	struct message *m;
	unsigned from;

	if (c->status == -ECANCELED || (c->status && o->to != WORLD_ANY && w.dead[o->to] && !c->peer)) {
		check(last);
		op_free(o);
		return;
	}
	if (last && !c->peer) { /* a buffer released by itself */
		check(!c->status);
		op_free(o);
		return;
	}
	m = taken(o, c, &from);
	if (c->status && c->status != -EMSGSIZE) {
		check(w.dead[from]);
		take(o, m);
	} else {
		size_t room = c->status ? c->length : m->length;
		unsigned char *at = o->flags & RWK_F_MULTI ? c->buffer : o->buf;

		check(c->length == room && room + c->overflow == m->length);
		check(at >= o->buf && at + c->length <= o->buf + o->length);
		check(c->status || c->overflow == 0);
		check(!c->status || o->flags & RWK_F_MULTI || c->length == o->length);
		take(o, m);
		world_check(at, c->length & ~(size_t)7, seed_of(from, o->who, o->space, c->data));
	}
	if (last)
		op_free(o);
}

/* PEEK has said what is there; with CLAIM the same op goes on as a receive of what it has taken. */
static void probe_done(struct op *o, const struct rwk_completion *c)
{
	struct message *m;
	unsigned from;

	if (c->status == -ENOMSG || (c->status && o->to != WORLD_ANY && w.dead[o->to])) {
		op_free(o);
		return;
	}
	check(!c->status);
	m = taken(o, c, &from);
	check(c->length == m->length);
	if (o->flags & RWK_F_DISCARD)
		take(o, m);
	if (!(o->flags & RWK_F_CLAIM)) {
		op_free(o);
		return;
	}
	o->kind = RECV;
	o->claimed = true;
}

static void on_complete(struct world *world, unsigned who, const struct rwk_completion *c)
{
	struct op *o = c->context;

	(void)world;
	check(o && o->who == who);
	if (o->kind == SEND)
		send_done(o, c);
	else if (o->kind == PROBE)
		probe_done(o, c);
	else
		receive_done(o, c);
}

/*
 * Operations.
 */

static struct message *message_new(struct stream *s)
{
	if (s->count == s->size) {
		s->size = s->size ? 2 * s->size : 64;
		s->m = realloc(s->m, s->size * sizeof(*s->m));
		check(s->m);
	}
	s->m[s->count] = (struct message){.taken_by = NOT_TAKEN};
	return &s->m[s->count++];
}

static void do_send(unsigned who)
{
	static const uint32_t ways[] = {0, 0, 0, RWK_F_MATCHED, RWK_F_INJECT, RWK_F_MATCHED};
	uint32_t flags = ways[pick(6)];
	size_t length = flags & RWK_F_INJECT ? pick(RWK_INJECT_MAX + 1) : pick_length();
	struct op *o = op_new(who, SEND, length);
	struct iovec iov[3] = {{o->buf, length / 3}, {o->buf + length / 3, length / 2}, {NULL, 0}};
	struct message *m;
	struct stream *s;
	uint64_t number;
	ssize_t rc;

	o->to = (unsigned)pick(w.attr.count);
	o->flags = flags;
	o->tag = (uint8_t)pick(TAGS);
	s = &streams[who][o->to][o->space];
	number = o->number = s->count;
	m = message_new(s);
	m->tag = o->space == RWK_TAGGED ? o->tag : 0;
	m->length = (uint32_t)length;
	world_fill(o->buf, length, seed_of(who, o->to, o->space, number));
	iov[2] = (struct iovec){o->buf + length / 3 + length / 2, length - length / 3 - length / 2};
	if (pick(2))
		rc = rwk_engine_send(
			w.e[who], o->space, w.peer[who][o->to], iov, 3, o->tag, number, flags | RWK_F_DATA, o);
	else
		rc = rwk_engine_send1(w.e[who], o->buf, length, rwk_space_flag(o->space) | flags | RWK_F_DATA, number,
			w.peer[who][o->to], o->tag, o);
	if (!rc)
		return;
	check(rc == -EAGAIN || (rc == -ECONNRESET && w.dead[o->to]));
	s->count--;
	op_free(o);
}

static struct op *receive_new(unsigned who, enum op_kind kind, size_t length)
{
	struct op *o = op_new(who, kind, length);

	o->number = posted++;
	o->to = pick(3) ? (unsigned)pick(w.attr.count) : WORLD_ANY;
	if (o->space == RWK_TAGGED) {
		static const uint8_t masks[] = {0, 0, 1, 3};

		o->tag = (uint8_t)pick(TAGS);
		o->ignore = masks[pick(4)];
	} else {
		o->ignore = 0xff;
	}
	return o;
}

static void post(struct op *o)
{
	struct rwk_peer *from = o->to == WORLD_ANY ? NULL : w.peer[o->who][o->to];
	struct iovec iov[2] = {{o->buf, o->length / 2}, {o->buf + o->length / 2, o->length - o->length / 2}};
	struct iovec one = {o->buf, o->length};
	unsigned who = o->who;
	unsigned to = o->to;
	ssize_t rc;

	if (o->flags & RWK_F_MULTI || pick(2))
		rc = rwk_engine_recv(w.e[who], o->space, from, &one, 1, o->tag, o->ignore, o->flags, o);
	else
		rc = rwk_engine_recv(w.e[who], o->space, from, iov, 2, o->tag, o->ignore, o->flags, o);
	if (!rc)
		return;
	check(rc == -EAGAIN || (rc == -ECONNRESET && to != WORLD_ANY && w.dead[to]));
	op_free(o);
}

static void do_receive(unsigned who)
{
	struct op *o;

	if (pick(20) == 0) {
		o = receive_new(who, RECV, 20000);
		o->flags = RWK_F_MULTI;
	} else {
		o = receive_new(who, RECV, pick(4) ? LENGTH_MAX : pick_length());
	}
	post(o);
}

static void do_probe(unsigned who)
{
	static const uint32_t ways[] = {0, RWK_F_CLAIM, RWK_F_CLAIM, RWK_F_DISCARD};
	struct op *o = receive_new(who, PROBE, LENGTH_MAX);

	o->flags = RWK_F_PEEK | ways[pick(4)];
	post(o); /* completes, and is freed unless it has claimed something */
}

/* Goes on with something that has been claimed. */
static void do_claimed(unsigned who)
{
	for (struct rwk_list *l = ops[who].next; l != &ops[who]; l = l->next) {
		struct op *o = rwk_container_of(l, struct op, link);

		if (!o->claimed)
			continue;
		o->claimed = false;
		o->flags = RWK_F_CLAIM;
		post(o);
		return;
	}
}

static void do_cancel(unsigned who)
{
	unsigned n = op_count[who] ? (unsigned)pick(op_count[who]) : 0;
	struct rwk_list *l = ops[who].next;

	for (; l != &ops[who] && n--; l = l->next)
		;
	if (l == &ops[who] || rwk_container_of(l, struct op, link)->claimed)
		return;
	operations++;
	rwk_engine_cancel(w.e[who], rwk_container_of(l, struct op, link));
}

static void step(void)
{
	unsigned who = (unsigned)pick(w.attr.count);
	unsigned what = (unsigned)pick(100);

	if (w.dead[who])
		return;
	if (op_count[who] == OUTSTANDING && pick(10) == 0)
		do_cancel(who);
	else if (what < 35 && op_count[who] < OUTSTANDING)
		do_send(who);
	else if (what < 65 && op_count[who] < OUTSTANDING)
		do_receive(who);
	else if (what < 70 && op_count[who] < OUTSTANDING)
		do_probe(who);
	else if (what < 74)
		do_claimed(who);
	else if (what < 76)
		do_cancel(who);
	else if (what < 92 || !w.net)
		world_progress(&w, who);
	else
		for (uint64_t n = pick(20); n; n--)
			rwk_sim_step(w.net);
}

/*
 * Beginning and end.
 */

/* Who may keep no more of what is injected keeps one more after a while, by the true clock. */
static bool injects_freely;

static void open_world(const struct rwk_transport *transport)
{
	struct world_attr a = {.transport = transport, .count = 3 + (unsigned)pick(6)};

	a.tx_limit = 4 + pick(60);
	a.inject_limit = injects_freely ? 2 * RWK_INJECT_MAX * a.tx_limit : 0;
	a.rx_limit = pick(2) ? 0 : 10 + pick(40);
	a.multi_min = 1 + pick(8000);
	a.queue = pick(2) ? 0 : 1 << pick(6);
	a.eager_max = 256 << pick(9);
	a.eager_credit = 4096 << pick(8);
	a.net = rwk_sim_attr_default;
	a.net.seed = seed_now;
	a.net.mtu = (transport == &rwk_sim_transport ? 256 : 512) << pick(5); /* a packet has heads, too */
	a.net.room = pick(3) ? 0 : 20 + (uint32_t)pick(100);
	a.service = (struct rwk_sim_service){.send_max = 64 << pick(9),
		.window = 1 + (uint32_t)pick(RWK_SIM_WINDOW_MAX),
		.room = 1 + (uint32_t)pick(10),
		.timeout = 50000,
		.refuse = (uint32_t)pick(300000),
		.late = (uint32_t)pick(500000),
		.finish = (uint32_t)pick(300000),
		.regions = pick(2) ? 0 : 2 + (uint32_t)pick(20)};
	world_open(&w, &a);
	w.on_complete = on_complete;
	for (unsigned i = 0; i < a.count; i++) {
		rwk_list_init(&ops[i]);
		op_count[i] = 0;
	}
	if (transport != &sim_stream_transport) /* TCP's streams lose nothing */
		world_worsen(&w);
}

static void kill_one(unsigned who)
{
	struct rwk_list *l;

	world_kill(&w, who);
	kills++;
	while ((l = ops[who].next) != &ops[who])
		op_free(rwk_container_of(l, struct op, link));
}

/* Cancels the receives of an engine that still wait. */
static void cancel_receives(unsigned who)
{
	struct rwk_list *next;

	for (struct rwk_list *l = ops[who].next; l != &ops[who]; l = next) {
		struct op *o = rwk_container_of(l, struct op, link);

		next = l->next;
		if (o->kind == RECV && !o->claimed)
			rwk_engine_cancel(w.e[who], o);
	}
}

/* Does an operation wait that must end by itself? Sends end when all is received. */
static bool waits_for_the_dead(void)
{
	for (unsigned i = 0; i < w.attr.count; i++) {
		if (w.dead[i])
			continue;
		for (struct rwk_list *l = ops[i].next; l != &ops[i]; l = l->next) {
			struct op *o = rwk_container_of(l, struct op, link);

			if (!o->claimed && o->to != WORLD_ANY && w.dead[o->to])
				return true;
		}
	}
	return false;
}

/* Posts a receive for a message that has been sent: it must come. */
static void await_receive(struct op *o)
{
	unsigned who = o->who, before = op_count[who];
	time_t end = time(NULL) + 10;

	post(o);
	do
		world_settle(&w);
	while (op_count[who] == before && !w.net && time(NULL) < end);
	check(op_count[who] < before);
}

/* Takes all that is still unreceived: what was claimed, then what is left, by receives that fit everything. */
static void drain(void)
{
	world_contact(&w);
	world_settle(&w);
	/* On shared memory a closed endpoint is noticed after a while. */
	for (time_t end = time(NULL) + 10; !w.net && waits_for_the_dead();) {
		world_poll(&w);
		check(time(NULL) < end);
	}
	check(!waits_for_the_dead());
	for (unsigned i = 0; i < w.attr.count; i++)
		if (!w.dead[i])
			cancel_receives(i);
	for (unsigned i = 0; i < w.attr.count; i++) {
		for (unsigned n = op_count[i]; n && !w.dead[i]; n--)
			do_claimed(i);
		for (enum rwk_space space = 0; space < RWK_SPACES && !w.dead[i]; space++) {
			uint64_t left = 1;

			while (left) {
				world_settle(&w);
				left = 0;
				for (unsigned from = 0; from < w.attr.count; from++) {
					struct stream *s = &streams[from][i][space];

					for (size_t n = 0; n < s->count && !w.dead[from]; n++)
						left += s->m[n].taken_by == NOT_TAKEN && !s->m[n].cancelled;
				}
				if (left) {
					struct op *o = receive_new(i, RECV, LENGTH_MAX);

					o->to = WORLD_ANY;
					o->space = space;
					o->ignore = 0xff;
					await_receive(o);
				}
			}
		}
	}
	world_settle(&w);
}

static void check_rest(void)
{
	for (unsigned i = 0; i < w.attr.count; i++) {
		struct rwk_list *next;

		if (w.dead[i])
			continue;
		check(rwk_engine_counters(w.e[i])->unexpected_bytes_now == 0 || kills);
		for (struct rwk_list *l = ops[i].next; l != &ops[i]; l = next) {
			struct op *o = rwk_container_of(l, struct op, link);

			next = l->next;
			check(o->kind == RECV && (o->to == WORLD_ANY || !w.dead[o->to]));
			check(!rwk_engine_cancel(w.e[i], o));
		}
		check(op_count[i] == 0);
	}
}

static bool fits(const struct message *by, unsigned tag)
{
	return ((by->tag ^ tag) & ~by->ignore & 0xff) == 0;
}

/* The rule of order at the head of this file. Of a receiver that has died nobody knows what it was about to take. */
static void check_order(const struct stream *s, bool receiver_died)
{
	uint64_t latest[TAGS] = {0};
	bool any[TAGS] = {false};

	for (size_t i = 0; i < s->count; i++) {
		const struct message *m = &s->m[i];

		if (m->cancelled || (receiver_died && m->taken_by == NOT_TAKEN))
			continue;
		for (unsigned tag = 0; tag < TAGS && m->taken_by != NOT_TAKEN; tag++) {
			if (any[tag] && fits(m, tag))
				check(latest[tag] < m->taken_by || (m->multi && latest[tag] == m->taken_by));
		}
		if (!any[m->tag] || m->taken_by > latest[m->tag])
			latest[m->tag] = m->taken_by;
		any[m->tag] = true;
	}
}

static uint64_t run(const struct rwk_transport *transport, uint64_t seed, unsigned long steps, bool death)
{
	bool died[WORLD_MAX];
	uint64_t trace;

	seed_now = random_state = seed;
	kills = 0;
	posted = 1;
	memset(streams, 0, sizeof(streams));
	open_world(transport);
	for (unsigned long n = 0; n < steps; n++) {
		step();
		if (death && n == steps / 2)
			kill_one((unsigned)pick(w.attr.count));
	}
	drain();
	check_rest();
	trace = w.net ? rwk_sim_trace(w.net) : 0;
	memcpy(died, w.dead, sizeof(died));
	world_close(&w);
	for (unsigned from = 0; from < WORLD_MAX; from++) {
		for (unsigned to = 0; to < WORLD_MAX; to++) {
			for (enum rwk_space space = 0; space < RWK_SPACES; space++) {
				check_order(&streams[from][to][space], to < w.attr.count && died[to]);
				free(streams[from][to][space].m);
			}
		}
	}
	return trace;
}

static void several(const struct rwk_transport *transport, unsigned seeds, unsigned long steps, bool death)
{
	const char *most = getenv("RWK_TEST_SEEDS");
	uint64_t first = world_seed(0);

	if (most && strtoul(most, NULL, 0) < seeds)
		seeds = (unsigned)strtoul(most, NULL, 0);
	operations = 0;
	steps = world_steps(getenv("RWK_TEST_SHORT") ? steps / 2 : steps);
	if (first)
		run(transport, first, steps, death);
	for (unsigned i = 0; i < seeds && !first; i++)
		run(transport, 1000 + i, steps, death);
	assert_true(first || operations > seeds * steps / 20); /* else they block each other, and little is tested */
	print_message("%llu operations\n", (unsigned long long)operations);
}

static void simulated(void **state)
{
	(void)state;
	several(&rwk_sim_transport, 20, 60000, false);
}

/* In the middle one engine's process ends: what was under way with it fails, nothing else is lost. */
static void simulated_with_a_death(void **state)
{
	(void)state;
	several(&rwk_sim_transport, 20, 6000, true);
}

/* RC, UC on streams, and SRC, whose ends are on two hosts by turns. */
static void packets(void **state)
{
	several(*state, 20, 6000, false);
}

static void packets_with_a_death(void **state)
{
	several(*state, 20, 6000, true);
}

static void shared_memory(void **state)
{
	(void)state;
	several(&rwk_shm_transport, 6, 30000, false);
}

static void shared_memory_with_an_end(void **state)
{
	(void)state;
	several(&rwk_shm_transport, 10, 6000, true);
}

/* The same seed gives the same packets at the same times, also with the engines on top. */
static void seeds_reproduce(void **state)
{
	uint64_t trace;

	(void)state;
	injects_freely = true;
	trace = run(&rwk_sim_transport, 5, 3000, true);
	assert_int_equal(run(&rwk_sim_transport, 5, 3000, true), trace);
	assert_int_not_equal(run(&rwk_sim_transport, 6, 3000, true), trace);
	injects_freely = false;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(simulated),
		cmocka_unit_test(simulated_with_a_death),
		cmocka_unit_test(seeds_reproduce),
		{"packets, RC", packets, NULL, NULL, (void *)&sim_packet_transport},
		{"packets, UC", packets, NULL, NULL, (void *)&sim_stream_transport},
		{"packets, SRC", packets, NULL, NULL, (void *)&sim_shared_transport},
		{"packets_with_a_death, RC", packets_with_a_death, NULL, NULL, (void *)&sim_packet_transport},
		{"packets_with_a_death, UC", packets_with_a_death, NULL, NULL, (void *)&sim_stream_transport},
		{"packets_with_a_death, SRC", packets_with_a_death, NULL, NULL, (void *)&sim_shared_transport},
		cmocka_unit_test(shared_memory),
		cmocka_unit_test(shared_memory_with_an_end),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("engine soak", tests, NULL, NULL);
}

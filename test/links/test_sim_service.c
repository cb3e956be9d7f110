/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated service keeps the contract of transport.h over a network that loses, doubles, corrupts and reorders
 * packets: each message once and in order, ops done once, places given back, death told after all else.
 */
#include "rwk_test.h"

#include "links/sim/service.h"

#include "base/compiler.h"

#include <poll.h>

#define ENDS     6
#define LENGTH   4096
#define STEP_MAX 2000000

struct side; /* one end's view of one peer */

struct end {
	struct rwk_port *port;
	struct rwk_address address;
	unsigned number;
	struct side *sides[ENDS];
	bool in_progress;
	int refuse; /* what connected returns */
	unsigned connects;
};

struct side {
	struct rwk_place place;
	struct iovec iov;
	uint8_t buf[LENGTH];
	struct end *end;
	unsigned peer;
	struct rwk_channel *ch;
	uint64_t sent, received; /* numbers of messages */
	unsigned failed, ended_badly, ops;
	int error;
	bool in_place;
	struct rwk_envelope env;
	size_t len;
};

static struct rwk_sim *net;
static struct end *ends[ENDS];
static unsigned end_count;
static unsigned interleaved; /* times that a piece's message began at an end while another was in place there */

static size_t length_of(unsigned from, unsigned to, uint64_t n)
{
	uint64_t h = (n * 1000003 + from * 17 + to) * 0x9e3779b97f4a7c15u;

	return (h >> 60) < 6 ? (h >> 20) % 64 : (h >> 20) % (LENGTH + 1);
}

static uint8_t byte_of(unsigned from, uint64_t n, size_t i)
{
	return (uint8_t)(i * 7 + n * 13 + from);
}

static void check_payload(struct side *s, const struct rwk_envelope *env, const uint8_t *bytes, size_t len)
{
	assert_int_equal(env->tag, s->received);
	assert_int_equal(env->data, env->flags & RWK_ENV_DATA ? ~s->received : 0);
	assert_int_equal(len, length_of(s->peer, s->end->number, s->received));
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != byte_of(s->peer, s->received, i))
			fail_msg(
				"message %llu from %u: byte %zu is wrong", (unsigned long long)s->received, s->peer, i);
	s->received++;
}

static int on_connected(void *cookie, struct rwk_channel *ch, const struct rwk_address *from)
{
	struct end *e = cookie;

	assert_true(e->in_progress);
	assert_int_equal(from->flags_rank & RWK_ADDR_PARTIAL, 0);
	if (e->refuse)
		return e->refuse;
	e->connects++;
	if (ch->peer) /* our own, to a partial address */
		return 0;
	for (unsigned i = 0; i < end_count; i++) {
		if (ends[i]->address.nonce_port != from->nonce_port)
			continue;
		e->sides[i]->ch = ch;
		ch->peer = e->sides[i];
		return 0;
	}
	return -ECONNREFUSED;
}

static void on_message(
	void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct side *s = ch->peer;

	assert_true(((struct end *)cookie)->in_progress);
	assert_false(s->failed);
	check_payload(s, env, payload, len);
}

static struct rwk_place *on_begin(void *cookie, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	struct side *s = ch->peer;

	assert_true(((struct end *)cookie)->in_progress);
	assert_false(s->failed || s->in_place);
	for (unsigned i = 0; i < end_count; i++)
		interleaved += s->end->sides[i] && s->end->sides[i]->in_place;
	s->in_place = true;
	s->env = *env;
	s->len = len;
	s->iov = (struct iovec){s->buf, sizeof(s->buf)};
	s->place = (struct rwk_place){&s->iov, 1, 99};
	return &s->place;
}

static void on_end(void *cookie, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	struct side *s = ch->peer;

	(void)cookie;
	assert_true(s->in_place && place == &s->place);
	assert_false(s->failed);
	s->in_place = false;
	if (status) {
		s->ended_badly++;
		return;
	}
	assert_int_equal(place->at, s->len);
	check_payload(s, &s->env, s->buf, s->len);
}

static void on_failed(void *cookie, struct rwk_channel *ch, int err)
{
	struct side *s = ch->peer;

	assert_true(((struct end *)cookie)->in_progress);
	assert_int_equal(ch->error, err);
	assert_int_equal(s->ops, 0);
	assert_false(s->in_place);
	s->failed++;
	s->error = err;
}

static const struct rwk_client client = {on_connected, on_message, on_begin, on_end, on_failed};

/* A posted send with its buffer, which is scribbled over as soon as it is ours again. */
struct post {
	struct rwk_op op;
	struct iovec iov[2];
	struct side *side;
	int status;
	uint8_t buf[];
};

static void post_done(struct rwk_op *op, int status)
{
	struct post *p = rwk_container_of(op, struct post, op);

	p->side->ops--;
	p->status = status;
	memset(p->buf, 0xdd, op->length);
	free(p);
}

static void fill(struct side *s, uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = byte_of(s->end->number, s->sent, i);
}

static struct rwk_envelope envelope(const struct side *s)
{
	struct rwk_envelope env = {.kind = 3, .small = 5, .tag = s->sent, .data = ~s->sent};

	if (s->sent % 2)
		env.flags = RWK_ENV_DATA;
	return env;
}

static int try_send(struct side *s)
{
	size_t len = length_of(s->end->number, s->peer, s->sent);
	struct rwk_envelope env = envelope(s);
	uint8_t buf[LENGTH];
	int rc;

	fill(s, buf, len);
	rc = s->ch->transport->send(s->ch, &env, buf, len);
	memset(buf, 0xee, len);
	s->sent += !rc;
	return rc;
}

static int try_post(struct side *s)
{
	size_t len = length_of(s->end->number, s->peer, s->sent);
	struct post *p = calloc(1, sizeof(*p) + len);
	int rc;

	assert_non_null(p);
	fill(s, p->buf, len);
	p->side = s;
	p->iov[0] = (struct iovec){p->buf, len / 3};
	p->iov[1] = (struct iovec){p->buf + len / 3, len - len / 3};
	p->op = (struct rwk_op){.type = RWK_OP_SEND, .iov_count = 2, .iov = p->iov, .length = len, .env = envelope(s),
		.done = post_done};
	s->ops++;
	rc = s->ch->transport->post(s->ch, &p->op);
	if (rc) {
		s->ops--;
		free(p);
	}
	if (rc >= 0)
		s->sent++;
	return rc;
}

static int progress(struct end *e)
{
	int n;

	e->in_progress = true;
	n = rwk_sim_transport.progress(e->port);
	e->in_progress = false;
	return n;
}

static void progress_all(void)
{
	for (unsigned i = 0; i < end_count; i++)
		if (ends[i]->port)
			while (progress(ends[i]))
				;
}

/* Lets time pass until nothing happens any more. */
static void settle(void)
{
	for (unsigned steps = 0; steps < STEP_MAX; steps++) {
		progress_all();
		if (!rwk_sim_step(net))
			return;
	}
	fail_msg("the network does not come to rest");
}

static struct end *open_end(void)
{
	struct rwk_port_attr attr = {.local_peers = 2};
	struct end *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->number = end_count;
	assert_int_equal(rwk_sim_transport.open(&attr, &client, e, &e->port), 0);
	e->address = attr.address;
	assert_int_not_equal(rwk_address_port(&e->address), 0);
	ends[end_count++] = e;
	for (unsigned i = 0; i < end_count; i++) {
		for (unsigned j = 0; j < end_count; j++) {
			if (i == j || ends[i]->sides[j])
				continue;
			ends[i]->sides[j] = calloc(1, sizeof(struct side));
			assert_non_null(ends[i]->sides[j]);
			ends[i]->sides[j]->end = ends[i];
			ends[i]->sides[j]->peer = j;
		}
	}
	return e;
}

static void open_net(const struct rwk_sim_attr *attr, const struct rwk_sim_service *how, unsigned count)
{
	assert_int_equal(rwk_sim_open(attr ? attr : &rwk_sim_attr_default, &net), 0);
	rwk_sim_transport_use(net, how);
	end_count = 0;
	for (unsigned i = 0; i < count; i++)
		open_end();
}

static void close_port(unsigned i)
{
	rwk_sim_transport.close(ends[i]->port);
	ends[i]->port = NULL;
}

static void close_net(void)
{
	for (unsigned i = 0; i < end_count; i++)
		if (ends[i]->port)
			close_port(i);
	rwk_sim_transport_use(NULL, NULL);
	rwk_sim_close(net);
	for (unsigned i = 0; i < end_count; i++) {
		for (unsigned j = 0; j < ENDS; j++)
			free(ends[i]->sides[j]);
		free(ends[i]);
	}
}

static struct side *side_of(unsigned from, unsigned to)
{
	return ends[from]->sides[to];
}

static void connect_side(unsigned from, unsigned to)
{
	struct side *s = side_of(from, to);

	assert_int_equal(rwk_sim_transport.connect(ends[from]->port, &ends[to]->address, s, &s->ch), 0);
}

static const struct rwk_sim_path lossy = {.delay = 1000,
	.jitter = 1000,
	.reorder_by = 10000,
	.drop = 30000,
	.duplicate = 20000,
	.corrupt = 20000,
	.reorder = 50000};

static uint64_t soak(uint64_t seed)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;
	struct rwk_sim_service how = rwk_sim_service_default;
	uint64_t trace;

	attr.seed = seed;
	attr.path = lossy;
	attr.room = seed % 2 ? 40 : 0;
	how.refuse = 100000;
	how.finish = 100000;
	how.late = 300000;
	open_net(&attr, &how, 4);
	for (unsigned step = 0; step < 4000; step++) {
		unsigned from = (unsigned)rwk_sim_random(net, 4), to = (unsigned)rwk_sim_random(net, 4);

		if (from == to)
			continue;
		if (!side_of(from, to)->ch)
			connect_side(from, to);
		if (rwk_sim_random(net, 2) && try_send(side_of(from, to)) != -EAGAIN)
			continue;
		else if (side_of(from, to)->ops < 50)
			assert_in_range(try_post(side_of(from, to)), 0, 1);
		progress(ends[to]);
		for (uint64_t n = rwk_sim_random(net, 10); n; n--)
			rwk_sim_step(net);
	}
	settle();
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned j = 0; j < 4; j++) {
			if (i == j)
				continue;
			assert_int_equal(side_of(i, j)->received, side_of(j, i)->sent);
			assert_true(side_of(i, j)->received > 100);
			assert_int_equal(side_of(i, j)->ops, 0);
			assert_int_equal(side_of(i, j)->failed, 0);
		}
	}
	trace = rwk_sim_trace(net);
	close_net();
	return trace;
}

/*
 * Four ends send to each other over lossy, reordering paths, by send and post, with refusals for no reason: each
 * message arrives once, in order and whole, also when several senders' pieces mix. The same seed gives the same run.
 */
static void each_message_once(void **state)
{
	uint64_t first = 0;

	(void)state;
	interleaved = 0;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		uint64_t trace = soak(seed);

		if (seed == 1)
			first = trace;
		else
			assert_int_not_equal(trace, first);
	}
	assert_int_equal(soak(1), first);
	assert_true(interleaved > 100); /* else the test is weaker than it says */
}

/*
 * Both sides connect at once: one channel at each end, nobody is told of a new peer, even if greetings and answers are
 * lost.
 */
static void both_connect(void **state)
{
	(void)state;
	for (int lost = 0; lost < 3; lost++) {
		open_net(NULL, NULL, 2);
		if (lost > 0)
			rwk_sim_rule(net, 1, 2, 1, RWK_SIM_DROP);
		if (lost > 1)
			rwk_sim_rule(net, 2, 1, 1, RWK_SIM_DROP);
		connect_side(0, 1);
		connect_side(1, 0);
		assert_int_equal(try_send(side_of(0, 1)), -EAGAIN);
		assert_int_equal(try_post(side_of(0, 1)), 0);
		assert_int_equal(try_post(side_of(1, 0)), 0);
		settle();
		assert_int_equal(side_of(0, 1)->received, 1);
		assert_int_equal(side_of(1, 0)->received, 1);
		assert_int_equal(ends[0]->connects + ends[1]->connects, 0);
		close_net();
	}
}

/* A partial address (IP and port) reaches the peer, and its full address is told through `connected`. */
static void partial_address(void **state)
{
	struct rwk_address to = {.flags_rank = RWK_ADDR_PARTIAL};

	(void)state;
	open_net(NULL, NULL, 2);
	to.nonce_port = rwk_address_port(&ends[1]->address);
	assert_int_equal(rwk_sim_transport.connect(ends[0]->port, &to, side_of(0, 1), &side_of(0, 1)->ch), 0);
	settle();
	assert_int_equal(ends[0]->connects, 1);
	assert_int_equal(ends[1]->connects, 1);
	to.nonce_port = 9;
	assert_int_equal(
		rwk_sim_transport.connect(ends[0]->port, &to, side_of(0, 1), &side_of(0, 1)->ch), -EHOSTUNREACH);
	close_net();
}

/* A peer that refuses, one whose port has another nonce, one that is gone: the channel fails, its queued op first. */
static void refusals(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		open_net(NULL, NULL, 2);
		if (how == 0)
			ends[1]->refuse = -EPERM;
		if (how == 1)
			ends[1]->address.nonce_port ^= 1u << 20;
		if (how == 2)
			close_port(1);
		connect_side(0, 1);
		assert_int_equal(try_post(side_of(0, 1)), 0);
		settle();
		assert_int_equal(side_of(0, 1)->failed, 1);
		assert_int_equal(side_of(0, 1)->error, -ECONNRESET);
		assert_int_equal(try_post(side_of(0, 1)), -ECONNRESET);
		assert_int_equal(try_send(side_of(0, 1)), -ECONNRESET);
		rwk_sim_transport.disconnect(side_of(0, 1)->ch);
		close_net();
	}
}

/* Port numbers: the one asked for, -EADDRINUSE while its owner lives. */
static void port_numbers(void **state)
{
	struct rwk_port_attr attr = {.address.nonce_port = 4242};
	struct rwk_port *p, *q;

	(void)state;
	open_net(NULL, NULL, 0);
	assert_int_equal(rwk_sim_transport.open(&attr, &client, NULL, &p), 0);
	assert_int_equal(rwk_address_port(&attr.address), 4242);
	assert_int_not_equal(attr.address.nonce_port >> 16, 0);
	assert_int_equal(rwk_sim_transport.open(&attr, &client, NULL, &q), -EADDRINUSE);
	rwk_sim_transport.close(p);
	assert_int_equal(rwk_sim_transport.open(&attr, &client, NULL, &q), 0);
	rwk_sim_transport.close(q);
	close_net();
}

static void connect_both(void)
{
	open_net(NULL, NULL, 2);
	connect_side(0, 1);
	settle();
}

/* A simple op of a test's own: counts how often it is done. */
struct simple {
	struct rwk_op op;
	struct iovec iov;
	unsigned done;
	int status;
};

static void simple_done(struct rwk_op *op, int status)
{
	struct simple *s = rwk_container_of(op, struct simple, op);

	s->done++;
	s->status = status;
}

static void make_simple(struct simple *s, enum rwk_op_type type, void *buf, size_t len)
{
	memset(s, 0, sizeof(*s));
	s->iov = (struct iovec){buf, len};
	s->op = (struct rwk_op){.type = type, .iov_count = 1, .iov = &s->iov, .length = len, .done = simple_done};
}

/*
 * A posted send is not done before the peer has acknowledged it, and until then its buffer is what the peer gets: the
 * first copy is lost, the right bytes are written only then.
 */
static void owned_until_acknowledged(void **state)
{
	size_t len = length_of(0, 1, 0);
	uint8_t buf[LENGTH] = {0};
	struct simple op;
	struct side *s;

	(void)state;
	connect_both();
	s = side_of(0, 1);
	rwk_sim_rule(net, 1, 2, 1, RWK_SIM_DROP);
	make_simple(&op, RWK_OP_SEND, buf, len);
	assert_int_equal(s->ch->transport->post(s->ch, &op.op), 0);
	rwk_sim_run_until(net, rwk_sim_now(net) + 10000);
	progress_all();
	assert_int_equal(op.done, 0);
	assert_int_equal(side_of(1, 0)->received, 0);
	fill(s, buf, len);
	settle();
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, 0);
	assert_int_equal(side_of(1, 0)->received, 1);
	close_net();
}

/* send takes `room` messages and then says -EAGAIN; behind a post it says -EAGAIN, too, and order holds. */
static void room(void **state)
{
	struct side *s;
	unsigned taken = 0;

	(void)state;
	connect_both();
	s = side_of(0, 1);
	while (!try_send(s))
		taken++;
	assert_int_equal(taken, rwk_sim_service_default.room);
	for (int i = 0; i < 20; i++)
		assert_int_equal(try_post(s), 0);
	assert_int_equal(try_send(s), -EAGAIN);
	settle();
	assert_int_equal(try_send(s), 0);
	settle();
	assert_int_equal(side_of(1, 0)->received, 25);
	close_net();
}

/* What has not begun can be withdrawn and never arrives, what has cannot. */
static void withdraw(void **state)
{
	static uint8_t buf[LENGTH];
	struct simple never;
	struct side *s;

	(void)state;
	connect_both();
	s = side_of(0, 1);
	for (int i = 0; i < 30; i++)
		assert_int_equal(try_post(s), 0);
	make_simple(&never, RWK_OP_SEND, buf, sizeof(buf));
	assert_int_equal(s->ch->transport->post(s->ch, &never.op), 0);
	assert_int_equal(s->ch->transport->withdraw(s->ch, &never.op), 0);
	settle();
	assert_int_equal(never.done, 0);
	assert_int_equal(side_of(1, 0)->received, 30);
	fill(s, buf, sizeof(buf));
	make_simple(&never, RWK_OP_SEND, buf, length_of(0, 1, s->sent));
	never.op.env = envelope(s);
	assert_int_equal(s->ch->transport->post(s->ch, &never.op), 0);
	assert_int_equal(s->ch->transport->withdraw(s->ch, &never.op), -EBUSY);
	settle();
	assert_int_equal(never.done, 1);
	assert_int_equal(side_of(1, 0)->received, 31);
	close_net();
}

#define BIG 100000

/*
 * What a peer may read and write: an exposed region, in its range, writable for writes; data goes where offset and iov
 * say.
 */
static void regions(void **state)
{
	static const struct {
		enum rwk_op_type type;
		size_t offset, length;
		bool writable, wrong_key;
		int status;
	} cases[] = {
		{RWK_OP_READ, 0, BIG, false, false, 0},
		{RWK_OP_READ, 777, 5000, false, false, 0},
		{RWK_OP_READ, BIG, 0, false, false, 0},
		{RWK_OP_READ, 1, BIG, false, false, -EINVAL},
		{RWK_OP_READ, SIZE_MAX, 2, false, false, -EINVAL},
		{RWK_OP_READ, 0, 10, false, true, -EACCES},
		{RWK_OP_WRITE, 0, BIG, true, false, 0},
		{RWK_OP_WRITE, 49999, 3, true, false, 0},
		{RWK_OP_WRITE, BIG - 3, 4, true, false, -EINVAL},
		{RWK_OP_WRITE, 0, 4, false, false, -EACCES},
	};
	uint8_t *there = malloc(BIG), *here = malloc(BIG), *was = malloc(BIG);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_sim_attr attr = rwk_sim_attr_default;
		struct rwk_sim_service how = rwk_sim_service_default;
		struct iovec iov[3] = {{there, 1000}, {there + 1000, 0}, {there + 1000, BIG - 1000}};
		struct rwk_rkey key;
		struct simple op;
		size_t at = cases[i].offset, len = cases[i].length;
		struct rwk_channel *ch;

		attr.path = lossy;
		how.late = 500000;
		open_net(&attr, &how, 2);
		connect_side(0, 1);
		settle();
		ch = side_of(0, 1)->ch;
		for (size_t n = 0; n < BIG; n++)
			there[n] = (uint8_t)(n * 11 + n / 256), here[n] = (uint8_t)(n * 3 + 1);
		memcpy(was, there, BIG);
		assert_int_equal(rwk_sim_transport.expose(side_of(1, 0)->ch, iov, 3, cases[i].writable, &key), 0);
		make_simple(&op, cases[i].type, here, len);
		op.op.rkey = key;
		op.op.offset = at;
		if (cases[i].wrong_key)
			op.op.rkey.word[1]++;
		assert_int_equal(ch->transport->post(ch, &op.op), 0);
		settle();
		assert_int_equal(op.done, 1);
		assert_int_equal(op.status, cases[i].status);
		if (cases[i].status || cases[i].type == RWK_OP_READ)
			assert_memory_equal(there, was, BIG);
		if (!cases[i].status && len)
			assert_memory_equal(there + at, here, len);
		rwk_sim_transport.conceal(side_of(1, 0)->ch, &key);
		make_simple(&op, RWK_OP_READ, here, 10);
		op.op.rkey = key;
		assert_int_equal(ch->transport->post(ch, &op.op), 0);
		settle();
		assert_int_equal(op.status, -EACCES);
		op.op.rkey.word[0] = 0;
		assert_int_equal(ch->transport->post(ch, &op.op), -EINVAL);
		close_net();
	}
	free(there);
	free(here);
	free(was);
}

/* A port's regions may be limited: -ENOSPC beyond, room again after conceal. */
static void region_limit(void **state)
{
	struct rwk_sim_service how = rwk_sim_service_default;
	struct iovec iov = {"abc", 3};
	struct rwk_rkey key[3];

	(void)state;
	how.regions = 2;
	open_net(NULL, &how, 2);
	connect_side(0, 1);
	assert_int_equal(rwk_sim_transport.expose(side_of(0, 1)->ch, &iov, 1, false, &key[0]), 0);
	assert_int_equal(rwk_sim_transport.expose(side_of(0, 1)->ch, &iov, 1, false, &key[1]), 0);
	assert_int_equal(rwk_sim_transport.expose(side_of(0, 1)->ch, &iov, 1, false, &key[2]), -ENOSPC);
	rwk_sim_transport.conceal(side_of(0, 1)->ch, &key[0]);
	assert_int_equal(rwk_sim_transport.expose(side_of(0, 1)->ch, &iov, 1, false, &key[2]), 0);
	close_net();
}

/* Concealed in the middle of a read: not a byte is read from then on, the read ends with an error, and messages go on.
 */
static void conceal_in_the_middle(void **state)
{
	uint8_t *there = calloc(1, BIG), *here = calloc(1, BIG);
	struct iovec iov = {there, BIG};
	struct rwk_rkey key;
	struct simple op;

	(void)state;
	connect_both();
	assert_int_equal(rwk_sim_transport.expose(side_of(1, 0)->ch, &iov, 1, false, &key), 0);
	make_simple(&op, RWK_OP_READ, here, BIG);
	op.op.rkey = key;
	assert_int_equal(side_of(0, 1)->ch->transport->post(side_of(0, 1)->ch, &op.op), 0);
	for (int i = 0; i < 20; i++) {
		rwk_sim_step(net);
		progress_all();
	}
	assert_int_equal(op.done, 0);
	rwk_sim_transport.conceal(side_of(1, 0)->ch, &key);
	free(there); /* a read from now on is a fault */
	assert_int_equal(try_send(side_of(1, 0)), 0);
	settle();
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, -EACCES);
	assert_int_equal(side_of(0, 1)->received, 1);
	free(here);
	close_net();
}

/*
 * The peer's process ends after each number of packets: every op is done before `failed`, a place in use is given back,
 * `failed` is called once, and later calls return the error.
 */
static void peer_dies(void **state)
{
	unsigned places = 0;

	(void)state;
	for (unsigned nth = 1; nth < 60; nth++) {
		struct side *a, *b;

		open_net(NULL, NULL, 2);
		connect_side(0, 1);
		settle();
		a = side_of(0, 1);
		b = side_of(1, 0);
		rwk_sim_rule(net, 1, 2, nth, RWK_SIM_KILL_SENDER);
		for (int i = 0; i < 30; i++) {
			assert_int_equal(try_post(a), 0);
			assert_int_equal(try_post(b), 0);
		}
		settle();
		assert_false(rwk_sim_alive(net, 1));
		assert_int_equal(b->failed, 1);
		assert_int_equal(b->error, -ECONNRESET);
		assert_int_equal(b->ops, 0);
		places += b->ended_badly;
		assert_int_equal(try_post(b), -ECONNRESET);
		assert_int_equal(try_send(b), -ECONNRESET);
		rwk_sim_transport.disconnect(b->ch);
		close_net();
	}
	assert_true(places > 20);
}

/* An injected failure takes one channel down and no other. */
static void broken_channel(void **state)
{
	(void)state;
	open_net(NULL, NULL, 3);
	connect_side(0, 1);
	connect_side(0, 2);
	settle();
	assert_true(rwk_sim_break(&ends[0]->address, &ends[1]->address, -EPROTO));
	assert_int_equal(try_post(side_of(0, 2)), 0);
	settle();
	assert_int_equal(side_of(0, 1)->error, -EPROTO);
	assert_int_equal(side_of(0, 2)->failed, 0);
	assert_int_equal(side_of(2, 0)->received, 1);
	assert_false(rwk_sim_break(&ends[0]->address, &ends[1]->address, -EPROTO));
	close_net();
}

/*
 * What send took before close arrives though packets are lost; ops are cancelled in close; then the peer hears that we
 * are gone.
 */
static void close_keeps_what_was_sent(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct rwk_sim_attr attr = rwk_sim_attr_default;
		struct side *s;

		attr.seed = seed;
		attr.path = lossy;
		open_net(&attr, NULL, 2);
		connect_side(0, 1);
		settle();
		s = side_of(0, 1);
		for (unsigned i = 0; i < rwk_sim_service_default.room; i++)
			assert_int_equal(try_send(s), 0);
		for (unsigned i = 0; i < 5; i++)
			assert_int_equal(try_post(s), 0);
		for (unsigned i = 0; i < seed; i++)
			rwk_sim_step(net);
		close_port(0);
		assert_int_equal(s->ops, 0);
		settle();
		assert_in_range(side_of(1, 0)->received, rwk_sim_service_default.room, s->sent);
		assert_int_equal(side_of(1, 0)->failed, 1);
		assert_int_equal(side_of(1, 0)->error, -ECONNRESET);
		close_net();
	}
}

/* A channel that was ended can be made again; what the first one had taken comes first. */
static void disconnect_and_return(void **state)
{
	struct side *a, *b;

	(void)state;
	connect_both();
	a = side_of(0, 1);
	b = side_of(1, 0);
	assert_int_equal(try_send(a), 0);
	rwk_sim_rule(net, 1, 2, 1, RWK_SIM_DELAY);
	rwk_sim_transport.disconnect(a->ch);
	connect_side(0, 1);
	assert_int_equal(try_post(a), 0);
	for (unsigned steps = 0; !b->failed && steps < 1000; steps++) {
		progress_all();
		rwk_sim_step(net);
	}
	assert_int_equal(b->failed, 1);
	assert_int_equal(b->received, 1);
	rwk_sim_transport.disconnect(b->ch);
	b->failed = 0;
	settle();
	assert_int_equal(b->received, 2);
	close_net();
}

/*
 * To sleep: arm refuses while there is something to do; what comes after makes the descriptor readable, progress quiets
 * it.
 */
static void sleeping(void **state)
{
	struct pollfd fd = {.events = POLLIN};

	(void)state;
	connect_both();
	fd.fd = rwk_sim_transport.wait_fd(ends[1]->port);
	assert_true(fd.fd >= 0);
	assert_int_equal(rwk_sim_transport.arm(ends[1]->port), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(try_send(side_of(0, 1)), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	rwk_sim_step(net);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(rwk_sim_transport.arm(ends[1]->port), -EAGAIN);
	progress(ends[1]);
	assert_int_equal(side_of(1, 0)->received, 1);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(rwk_sim_transport.arm(ends[1]->port), 0);
	close_net();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_message_once),
		cmocka_unit_test(both_connect),
		cmocka_unit_test(partial_address),
		cmocka_unit_test(refusals),
		cmocka_unit_test(port_numbers),
		cmocka_unit_test(owned_until_acknowledged),
		cmocka_unit_test(room),
		cmocka_unit_test(withdraw),
		cmocka_unit_test(regions),
		cmocka_unit_test(region_limit),
		cmocka_unit_test(conceal_in_the_middle),
		cmocka_unit_test(peer_dies),
		cmocka_unit_test(broken_channel),
		cmocka_unit_test(close_keeps_what_was_sent),
		cmocka_unit_test(disconnect_and_return),
		cmocka_unit_test(sleeping),
	};

	return cmocka_run_group_tests_name("links/sim service", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and writes that are under way when something else ends or is lacking: their port, their region, memory. The
 * service takes its memory for copies from the aligned_alloc that is here.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "packet/pair.h"

#include "base/param.h"
#include "packet/channel.h"
#include "packet/port.h"
#include "packet/request.h"
#include "rc/rc.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define BYTES (9u << 20) /* several requests, by each service */
#define COPY  (4u << 20) /* of a request, at most */
#define SOME  65536u     /* more than that is no copy of a request, but of something shorter */

enum { NOTHING = 1, DATA, CHANGED };

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t size);

static size_t most = SIZE_MAX; /* more at once is refused */
static size_t longest;         /* that was asked for */

void *aligned_alloc(size_t alignment, size_t size)
{
	static void *(*next)(size_t alignment, size_t size);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "aligned_alloc");
	longest = size > longest ? size : longest;
	return size > most ? NULL : next(alignment, size);
}

/** An access by end `by`: `memory` is each end's. */
static struct access {
	enum rwk_op_type type;
	unsigned by;
	uint8_t *memory[2];
	struct iovec iov;
	struct rwk_rkey key;
	struct ends_op op;
} a;

static const struct rwk_link_ops *under;
static unsigned room; /* packets that the streams take */

static int send_while_room(struct rwk_link *l, const struct rwk_link_address *to, const struct iovec *iov, int count)
{
	if (!room)
		return -EAGAIN;
	room--;
	return under->send(l, to, iov, count);
}

/** UC's way does not take all at once, and tells of its end behind all that has gone by it, as a stream does. */
static void open_pair(int rendezvous, const struct rwk_sim_path *path)
{
	static const size_t length = 1000;
	static struct rwk_link_ops ops;
	struct rwk_sim_attr attr = rwk_sim_attr_default;

	attr.mtu = 4224;
	attr.word = 10 * 1000 * 1000;
	if (path)
		attr.path = *path;
	rwk_params.rendezvous = rendezvous;
	ends_lengths = &length;
	ends_lengths_count = 1;
	ends_open(&attr, NULL, 2);
	ends_connect(0, 1);
	ends_settle();
	for (unsigned i = 0; i < 2 && ends_transport == &sim_stream_transport; i++) {
		struct rwk_link *stream = ends[i]->port->link[RWK_WAY_STREAM];

		under = i ? under : stream->ops;
		ops = *under;
		ops.send = send_while_room;
		stream->ops = &ops;
	}
	room = 300;
}

static void begin(enum rwk_op_type type, unsigned by, unsigned access)
{
	unsigned source = type == RWK_OP_READ ? !by : by;

	a.type = type;
	a.by = by;
	for (unsigned i = 0; i < 2; i++) {
		a.memory[i] = malloc(BYTES);
		memset(a.memory[i], i == source ? DATA : NOTHING, BYTES);
	}
	a.iov = (struct iovec){a.memory[!by], BYTES};
	assert_int_equal(ends_transport->expose(ends_side(!by, by)->ch, &a.iov, 1, access, &a.key), 0);
	ends_make_op(&a.op, type, a.memory[by], BYTES);
	a.op.op.rkey = a.key;
	assert_int_equal(ends_transport->post(ends_side(by, !by)->ch, &a.op.op), 0);
}

static void go_on_for(unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		rwk_sim_step(ends_net);
		ends_progress_all();
	}
	assert_int_equal(a.op.done, 0);
}

static bool has(unsigned end, uint8_t byte)
{
	return memchr(a.memory[end], byte, BYTES);
}

static void end(void)
{
	ends_close();
	for (unsigned i = 0; i < 2; i++)
		free(a.memory[i]);
	most = SIZE_MAX;
}

/**
 * An end that reads, writes or is read is closed. Its messages arrive, those behind the access too; the access ends,
 * and its memory is the client's again: what the peer gets from then on is not what has been put there since.
 */
static void close_in_the_middle(enum rwk_op_type type, unsigned by, int rendezvous, const struct rwk_sim_path *path)
{
	struct side *s;

	open_pair(rendezvous, path);
	s = ends_side(0, 1);
	begin(type, by, rendezvous == RWK_RENDEZVOUS_READ ? RWK_EXPOSE_READ | RWK_EXPOSE_WRITE : RWK_EXPOSE_READ);
	go_on_for(20);
	for (unsigned i = 0; i < 60; i++) {
		if (ends_send(s))
			ends_progress(ends[0]);
	}
	assert_true(s->sent > 20);
	ends_close_port(0);
	if (by == 0) {
		assert_int_equal(a.op.done, 1);
		assert_int_equal(a.op.status, -ECANCELED);
	}
	memset(a.memory[0], CHANGED, BYTES);
	room = UINT_MAX;
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, s->sent);
	assert_int_equal(ends_side(1, 0)->error, -ECONNRESET);
	assert_int_equal(a.op.done, 1);
	assert_false(has(0, DATA) || has(0, NOTHING));
	assert_false(has(1, CHANGED));
	end();
}

static void close_reading(void **state)
{
	(void)state;
	close_in_the_middle(RWK_OP_READ, 0, RWK_RENDEZVOUS_READ, NULL);
	close_in_the_middle(RWK_OP_READ, 0, RWK_RENDEZVOUS_READ, &ends_lossy);
}

static void close_writing(void **state)
{
	(void)state;
	close_in_the_middle(RWK_OP_WRITE, 0, RWK_RENDEZVOUS_READ, NULL);
	close_in_the_middle(RWK_OP_WRITE, 0, RWK_RENDEZVOUS_READ, &ends_lossy);
}

static void close_having_asked(void **state)
{
	(void)state;
	close_in_the_middle(RWK_OP_READ, 0, RWK_RENDEZVOUS_WRITE, NULL);
	close_in_the_middle(RWK_OP_READ, 0, RWK_RENDEZVOUS_WRITE, &ends_lossy);
}

static void close_asked(void **state)
{
	(void)state;
	close_in_the_middle(RWK_OP_READ, 1, RWK_RENDEZVOUS_WRITE, NULL);
	close_in_the_middle(RWK_OP_READ, 1, RWK_RENDEZVOUS_WRITE, &ends_lossy);
}

static void begin_asked(void)
{
	open_pair(RWK_RENDEZVOUS_WRITE, NULL);
	begin(RWK_OP_READ, 0, RWK_EXPOSE_READ);
	go_on_for(20);
}

/*
 * A region is concealed that the peer is being written, as it has asked: no more is copied than has begun, and of the
 * rest the peer hears that it may not. Messages go on.
 */
static void conceal_in_the_middle(void **state)
{
	(void)state;
	begin_asked();
	longest = 0;
	ends_transport->conceal(ends_side(1, 0)->ch, &a.key);
	memset(a.memory[1], CHANGED, BYTES);
	room = UINT_MAX;
	assert_in_range(longest, SOME, COPY + 4096);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	assert_int_equal(a.op.done, 1);
	assert_int_equal(a.op.status, -EACCES);
	assert_false(has(0, CHANGED));
	assert_true(has(0, DATA));
	assert_int_equal(ends_side(1, 0)->received, 1);
	assert_int_equal(ends_side(0, 1)->failed + ends_side(1, 0)->failed, 0);
	assert_int_equal(ends[1]->port->copied, 0);
	end();
}

/* The same, and there is no memory for a copy: the channel fails, and nothing is read any more. */
static void conceal_without_memory(void **state)
{
	(void)state;
	begin_asked();
	for (unsigned i = 0; i < 300; i++) { /* it is to find acknowledgements, and go on before it fails */
		rwk_sim_step(ends_net);
		ends_progress(ends[0]);
	}
	most = SOME;
	ends_transport->conceal(ends_side(1, 0)->ch, &a.key);
	memset(a.memory[1], CHANGED, BYTES);
	ends_settle();
	assert_int_equal(a.op.done, 1);
	assert_true(a.op.status < 0);
	assert_false(has(0, CHANGED));
	assert_int_equal(ends_side(1, 0)->error, -ENOMEM);
	assert_int_equal(ends_side(0, 1)->failed, 1);
	end();
}

/* The same of a close: its messages are not waited for, and the peer hears of it. */
static void close_without_memory(void **state)
{
	(void)state;
	begin_asked();
	most = SOME;
	ends_close_port(1);
	memset(a.memory[1], CHANGED, BYTES);
	room = UINT_MAX;
	ends_settle();
	assert_int_equal(a.op.done, 1);
	assert_false(has(0, CHANGED));
	assert_int_equal(ends_side(0, 1)->error, -ECONNRESET);
	end();
}

/* As much has been copied for other peers as may be: no more is, and this one hears of it. */
static void close_beyond_copies(void **state)
{
	(void)state;
	begin_asked();
	ends[1]->port->copied = RWK_COPIES_MAX - COPY / 2;
	longest = 0;
	ends_close_port(1);
	assert_in_range(longest, 0, SOME);
	memset(a.memory[1], CHANGED, BYTES);
	room = UINT_MAX;
	ends_settle();
	assert_int_equal(a.op.done, 1);
	assert_false(has(0, CHANGED));
	assert_int_equal(ends_side(0, 1)->error, -ECONNRESET);
	end();
}

/** An end gives up a connection by which it reads or writes; what it asks for is lost, or refused. Its peer hears. */
static void disconnect_accessing(enum rwk_op_type type, bool lost)
{
	static uint8_t there[8000], here[8000];
	struct iovec iov = {there, sizeof(there)};
	struct ends_op op;

	open_pair(RWK_RENDEZVOUS_READ, NULL);
	ends_make_op(&op, type, here, sizeof(here));
	assert_int_equal(
		ends_transport->expose(ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &op.op.rkey),
		0);
	if (lost)
		rwk_sim_rule(ends_net, 1, 2, 1, RWK_SIM_DROP);
	else
		ends_transport->conceal(ends_side(1, 0)->ch, &op.op.rkey);
	assert_int_equal(ends_transport->post(ends_side(0, 1)->ch, &op.op), 0);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_transport->disconnect(ends_side(0, 1)->ch);
	ends_side(0, 1)->ch = NULL;
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, -ECANCELED);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->failed, 1);
	assert_int_equal(ends_side(1, 0)->error, -ECONNRESET);
	ends_close();
}

/* By RC nobody is there to go on with what is before the good-bye, which is not taken therefore. */
static void disconnect_in_the_middle(void **state)
{
	(void)state;
	disconnect_accessing(RWK_OP_READ, false);
	disconnect_accessing(RWK_OP_READ, true);
	disconnect_accessing(RWK_OP_WRITE, false);
	disconnect_accessing(RWK_OP_WRITE, true);
}

static void done_sends(struct rwk_op *op, int status)
{
	struct ends_op *o = rwk_container_of(op, struct ends_op, op);

	o->done++;
	o->status = status;
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
}

/* An end is closed, and whoever is told of a message of its sends another: all of them arrive. */
static void send_in_a_close(void **state)
{
	enum { LONG = 20000 };
	static const size_t lengths[] = {LONG, LONG, LONG, 100, 100, 100};
	static uint8_t bytes[3][LONG];
	struct ends_op op[3];
	struct side *s;

	(void)state;
	open_pair(RWK_RENDEZVOUS_READ, NULL);
	ends_lengths = lengths;
	ends_lengths_count = 6;
	s = ends_side(0, 1);
	room = 1;
	for (unsigned i = 0; i < 3; i++) {
		ends_make_op(&op[i], RWK_OP_SEND, bytes[i], sizeof(bytes[i]));
		op[i].op.done = done_sends;
		ends_fill(s, bytes[i], sizeof(bytes[i]));
		op[i].op.env = ends_envelope(s);
		assert_int_equal(ends_transport->post(s->ch, &op[i].op), 0);
		s->sent++;
	}
	room = UINT_MAX;
	ends_close_port(0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(op[i].done, 1);
		assert_int_equal(op[i].status, -ECANCELED);
		memset(bytes[i], CHANGED, sizeof(bytes[i]));
	}
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 6);
	assert_int_equal(s->sent, 6);
	ends_close();
}

static void done_conceals(struct rwk_op *op, int status)
{
	(void)op;
	assert_int_equal(status, -ECANCELED);
	ends_transport->conceal(ends_side(1, 0)->ch, &a.key);
}

/* A connection fails, and who is told of its first op conceals what the last is of. */
static void conceal_in_a_failure(void **state)
{
	static uint8_t there[BYTES], here[BYTES];
	struct iovec iov = {there, sizeof(there)};
	struct ends_op op;

	(void)state;
	open_pair(RWK_RENDEZVOUS_WRITE, NULL);
	ends_make_op(&op, RWK_OP_WRITE, here, sizeof(here));
	op.op.done = done_conceals;
	assert_int_equal(
		ends_transport->expose(ends_side(0, 1)->ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &op.op.rkey),
		0);
	assert_int_equal(ends_transport->post(ends_side(1, 0)->ch, &op.op), 0);
	begin(RWK_OP_READ, 0, RWK_EXPOSE_READ);
	go_on_for(20);
	assert_true(rwk_packet_channel(ends_side(1, 0)->ch)->pulls);
	rwk_rc_fail(rwk_packet_channel(ends_side(1, 0)->ch)->rc, -EPROTO);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->failed, 1);
	end();
}

/** Takes all requests that the port has memory for, and leaves none for more; or gives them back. */
static void lack_requests(struct rwk_pool *pool, bool lack)
{
	static void *taken[64];
	unsigned n = 0;

	pool->limit = lack ? (pool->total ? pool->total : 1) : 0;
	while (lack && (taken[n] = rwk_pool_get(pool)))
		assert_true(++n < 64);
	for (; !lack && taken[n]; n++)
		rwk_pool_put(pool, taken[n]);
}

/* What cannot begin for want of memory begins when there is some, though nothing else happens on its channel. */
static void lacking_memory(enum rwk_op_type type)
{
	static uint8_t there[20000], here[20000];
	struct iovec iov = {there, sizeof(there)};
	struct side *s;
	struct ends_op op;

	rwk_params.rendezvous = RWK_RENDEZVOUS_READ;
	pair_open(4224, sizeof(here));
	s = ends_side(0, 1);
	ends_make_op(&op, type, here, sizeof(here));
	if (type == RWK_OP_SEND) {
		ends_fill(s, here, sizeof(here));
		op.op.env = ends_envelope(s);
	} else {
		assert_int_equal(ends_transport->expose(
					 ends_side(1, 0)->ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &op.op.rkey),
			0);
	}
	lack_requests(&ends[0]->port->requests, true);
	assert_int_equal(ends_transport->post(s->ch, &op.op), 0);
	for (unsigned i = 0; i < 10; i++) {
		rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 1000 * 1000);
		ends_progress_all();
	}
	assert_int_equal(op.done, 0);
	lack_requests(&ends[0]->port->requests, false);
	ends_settle();
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, 0);
	assert_int_equal(ends_side(1, 0)->received, type == RWK_OP_SEND);
	ends_close();
}

static void memory_comes_late(void **state)
{
	(void)state;
	lacking_memory(RWK_OP_SEND);
	lacking_memory(RWK_OP_WRITE);
	if (ends_transport == &sim_packet_transport) /* else it asks, which takes none of these */
		lacking_memory(RWK_OP_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(close_reading),
		ENDS_ON(close_reading, "SRC", sim_shared_transport),
		ENDS_RC(close_writing),
		ENDS_ON(close_writing, "SRC", sim_shared_transport),
		ENDS_UC(close_writing),
		ENDS_RC(close_having_asked),
		ENDS_ON(close_having_asked, "SRC", sim_shared_transport),
		ENDS_RC(close_asked),
		ENDS_ON(close_asked, "SRC", sim_shared_transport),
		ENDS_UC(close_asked),
		ENDS_RC(conceal_in_the_middle),
		ENDS_ON(conceal_in_the_middle, "SRC", sim_shared_transport),
		ENDS_UC(conceal_in_the_middle),
		ENDS_RC(conceal_without_memory),
		ENDS_ON(conceal_without_memory, "SRC", sim_shared_transport),
		ENDS_RC(close_without_memory),
		ENDS_ON(close_without_memory, "SRC", sim_shared_transport),
		ENDS_UC(close_without_memory),
		ENDS_RC(close_beyond_copies),
		ENDS_UC(close_beyond_copies),
		ENDS_RC(disconnect_in_the_middle),
		ENDS_ON(disconnect_in_the_middle, "SRC", sim_shared_transport),
		ENDS_RC(send_in_a_close),
		ENDS_ON(send_in_a_close, "SRC", sim_shared_transport),
		ENDS_UC(send_in_a_close),
		ENDS_RC(conceal_in_a_failure),
		ENDS_RC(memory_comes_late),
		ENDS_ON(memory_comes_late, "SRC", sim_shared_transport),
		ENDS_UC(memory_comes_late),
	};

	return cmocka_run_group_tests_name("packet/unfinished", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between two processes: every size, every way through the code, in order, each once, content right. As on a
 * processor that demotes lines and as on one that does not, whatever this one is: who does not know the instruction
 * takes it for one that does nothing.
 */
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"

#include <unistd.h>

/* Sizes where the way changes: inline with and without data, lines, slab, pieces. */
static const size_t sizes[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 39, 40, 41, 47, 48, 49, 55, 56, 95, 96, 97,
	103, 104, 105, 151, 152, 153, 159, 160, 161, 207, 208, 209, 215, 216, 217, 263, 264, 265, 271, 272, 273, 1000,
	4095, 4096, 4097, 8191, 8192, 8193, 16383, 16384, 16385, 65535, 65536};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static bool demotes; /* here and in the children */

static struct end *end_open_so(void)
{
	struct end *e = end_open(0, true);

	e->port->demotes = demotes;
	return e;
}

static int without_demotion(void **state)
{
	(void)state;
	demotes = false;
	return 0;
}

static int with_demotion(void **state)
{
	(void)state;
	demotes = true;
	return 0;
}

/* A peer that echoes until its other side goes away, and returns the number of mistakes it saw. */
static int echo_child(int fd, void *arg)
{
	struct end *e = end_open_so();

	(void)arg;
	e->echo = true;
	if (!tell(fd, &e->address, sizeof(e->address)) || !end_until_peers(e, 1, 10000) ||
		!end_until_failed(e, &e->peer[0], 60000))
		return 101;
	if (e->peer[0].failed != -ECONNRESET || e->peer[0].failed_calls != 1)
		return 102;
	return e->wrong != 0;
}

struct talk {
	struct end *e;
	struct end_peer *p;
	pid_t child;
	int fd;
};

static struct talk talk_begin(int (*fn)(int, void *), void *arg)
{
	struct rwk_address a;
	struct talk t;

	t.child = child_run(fn, arg, &t.fd);
	t.e = end_open_so();
	assert_true(hear(t.fd, &a, sizeof(a)));
	t.p = end_connect(t.e, &a);
	return t;
}

static void talk_end(struct talk *t)
{
	assert_int_equal(t->e->wrong, 0);
	end_close(t->e);
	assert_int_equal(child_wait(t->child), 0);
	close(t->fd);
}

/* Each size comes back as it went, one at a time, with and without data, by send and by post with several iovecs. */
static void each_size(void **state)
{
	struct talk t = talk_begin(echo_child, NULL);

	(void)state;
	for (size_t i = 0; i < SIZES; i++) {
		for (int way = 0; way < 4; way++) {
			if (way & 2)
				assert_true(end_post(t.e, t.p, sizes[i], 3, way & 1 ? RWK_ENV_DATA : 0x15) >= 0);
			else
				assert_true(end_push(t.e, t.p, sizes[i], way & 1 ? RWK_ENV_DATA : 0x15));
			assert_true(end_until(t.e, &t.p->received, t.p->sent, 10000));
		}
	}
	assert_true(t.p->pieces > 0);
	talk_end(&t);
}

/* Messages of no bytes come back from wherever they lie in the ring, also from its last line. */
static void empty_ones(void **state)
{
	struct talk t = talk_begin(echo_child, NULL);

	(void)state;
	for (unsigned i = 0; i < 2 * RWK_SHM_RING_MIN; i++) {
		assert_true(end_push(t.e, t.p, 0, 0x15));
		assert_true(end_until(t.e, &t.p->received, t.p->sent, 10000));
	}
	talk_end(&t);
}

/* Random sizes, as many at once as go, the rest queued by the hundred: order stays, and both rings grow. */
static void floods_both_ways(void **state)
{
	struct talk t = talk_begin(echo_child, NULL);
	struct rwk_shm_channel_counters count;
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < 300; i++) {
			size_t len = sizes[(unsigned)rand_r(&seed) % (round % 3 ? SIZES - 8 : SIZES)];

			assert_int_equal(end_send(t.e, t.p, len, rand_r(&seed) & 1 ? RWK_ENV_DATA : 0, true), 0);
		}
		assert_true(end_until(t.e, &t.p->received, t.p->sent, 10000));
	}
	rwk_shm_channel_counters(t.p->ch, &count);
	assert_true(count.growths > 0);
	assert_true(count.ring_lines > 64);
	assert_true(rwk_shm_port_counters(t.e->port)->queued > 0);
	talk_end(&t);
}

/* A queued send can be taken back as long as it has not begun; the others go without it. */
static void nothing_done(struct rwk_op *op, int status)
{
	(void)op;
	(void)status;
	fail_msg("an op that was taken back was completed");
}

static void withdraw(void **state)
{
	struct talk t = talk_begin(echo_child, NULL);
	struct rwk_envelope env = {.kind = 99, .tag = 99};
	struct iovec iov = {&env, sizeof(env)};
	struct rwk_op op = {.type = RWK_OP_SEND,
		.iov = &iov,
		.iov_count = 1,
		.length = sizeof(env),
		.env = env,
		.done = nothing_done};

	(void)state;
	/* Not connected yet: all of it queues. */
	assert_int_equal(end_post(t.e, t.p, 100, 2, 0), 0);
	assert_int_equal(rwk_shm_transport.post(t.p->ch, &op), 0);
	assert_int_equal(end_post(t.e, t.p, 5000, 2, 0), 0);
	assert_int_equal(rwk_shm_transport.withdraw(t.p->ch, &op), 0);
	assert_true(end_until(t.e, &t.p->received, 2, 10000));
	assert_int_equal(t.p->done, 2);
	talk_end(&t);
}

/* Longer than send_max is refused, by send and by post, and changes nothing. */
static void too_long(void **state)
{
	struct talk t = talk_begin(echo_child, NULL);
	size_t most = t.p->ch->send_max;

	(void)state;
	assert_int_equal(most, rwk_params.eager_max);
	assert_true(end_push(t.e, t.p, most, 0));
	assert_int_equal(end_send(t.e, t.p, most + 1, 0, false), -EMSGSIZE);
	assert_int_equal(end_post(t.e, t.p, most + 1, 1, 0), -EMSGSIZE);
	assert_true(end_push(t.e, t.p, 1, 0));
	assert_true(end_until(t.e, &t.p->received, 2, 10000));
	talk_end(&t);
}

static int sink_child(int fd, void *arg)
{
	struct end *e = end_open_so();
	uint64_t goal = *(uint64_t *)arg;

	if (!tell(fd, &e->address, sizeof(e->address)) || !end_until_peers(e, 1, 10000) ||
		!end_until(e, &e->peer[0].received, goal, 180000))
		return 101;
	if (!tell(fd, &goal, sizeof(goal)) || !end_until_failed(e, &e->peer[0], 10000))
		return 102;
	return e->wrong != 0 || e->peer[0].received != goal;
}

/*
 * One way only, so that slabs must be given back and numbers of lines wrap (2^21): small ones for the lines, two in
 * each of them, 4 KB for the slabs.
 */
static void one_way(void **state)
{
	static const struct {
		size_t len;
		uint64_t messages;
	} cases[] = {{24, (1 << 21) + 5000}, {8, 100000}, {4096, 20000}, {65536, 500}};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		uint64_t goal = cases[c].messages, got;
		struct talk t = talk_begin(sink_child, &goal);

		for (uint64_t i = 0; i < goal; i++)
			assert_true(end_push(t.e, t.p, cases[c].len, 0));
		assert_true(hear(t.fd, &got, sizeof(got)));
		assert_int_equal(got, goal);
		talk_end(&t);
	}
}

static void dawdle(unsigned *seed, unsigned most)
{
	for (volatile unsigned n = (unsigned)rand_r(seed) % most; n; n--)
		;
}

static int dawdling_sink_child(int fd, void *arg)
{
	struct end *e = end_open_so();
	uint64_t goal = *(uint64_t *)arg;
	uint64_t end = now_ms() + 60000;
	unsigned seed = 2;

	if (!tell(fd, &e->address, sizeof(e->address)) || !end_until_peers(e, 1, 10000))
		return 101;
	while (e->peer[0].received < goal && !e->wrong && now_ms() < end) {
		rwk_shm_transport.progress(e->port);
		dawdle(&seed, 100);
	}
	return !tell(fd, &goal, sizeof(goal)) || e->wrong || !end_until_failed(e, &e->peer[0], 10000);
}

/*
 * Short ones, two in a line or not, with a receiver that looks at any time: between two of its looks a second message
 * of a line may come, and the next line.
 */
static void short_at_any_time(void **state)
{
	uint64_t goal = 200000, got;
	struct talk t = talk_begin(dawdling_sink_child, &goal);
	unsigned seed = 1;

	(void)state;
	for (uint64_t i = 0; i < goal; i++) {
		assert_true(end_push(t.e, t.p, (unsigned)rand_r(&seed) % 20, 0));
		if (rand_r(&seed) % 4 == 0)
			dawdle(&seed, 300);
	}
	assert_true(hear(t.fd, &got, sizeof(got)));
	talk_end(&t);
}

/* Sends one after the other, of a line each, and the receiver takes none. */
static void send_short(struct end *e, struct end_peer *p, uint32_t n)
{
	while (n--)
		assert_int_equal(end_send(e, p, RWK_SHM_BODY, 0, false), 0);
}

/*
 * A message in so many pieces finds just so much room, part of it beyond the wrap, and comes to more than half a ring:
 * all of it goes, though at the wrap the ring would like to announce that it grows. What comes behind it comes, too.
 */
static void fills_the_ring(uint32_t pieces)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct rwk_shm_channel_counters count;
	struct end_peer *p = end_meet(a, b);

	all_there(a, p, b);
	rwk_shm_channel_counters(p->ch, &count);
	assert_true(count.lines_sent < RWK_SHM_RING_MIN / 4);
	/* The reader tells each quarter of the ring that it has read: up to the end of the first one. */
	send_short(a, p, RWK_SHM_RING_MIN / 4 - count.lines_sent);
	all_there(a, p, b);
	send_short(a, p, RWK_SHM_RING_MIN - pieces);
	assert_int_equal(end_send(a, p, (size_t)pieces * RWK_SHM_SLAB_BYTES - 5, 0, false), 0);
	all_there(a, p, b);
	send_short(a, p, 1);
	all_there(a, p, b);
	end_close(a);
	end_close(b);
}

static void pieces_fill_the_ring(void **state)
{
	size_t was = rwk_params.eager_max;

	(void)state;
	rwk_params.eager_max = RWK_SHM_MESSAGE_MAX;
	for (uint32_t pieces = RWK_SHM_RING_MIN / 2 + 1; pieces <= RWK_SHM_RING_MIN; pieces += 3)
		fills_the_ring(pieces);
	rwk_params.eager_max = was;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_size, without_demotion),
		cmocka_unit_test_setup(floods_both_ways, without_demotion),
		cmocka_unit_test_setup(each_size, with_demotion),
		cmocka_unit_test_setup(empty_ones, with_demotion),
		cmocka_unit_test_setup(floods_both_ways, with_demotion),
		cmocka_unit_test(withdraw),
		cmocka_unit_test(too_long),
		cmocka_unit_test(one_way),
		cmocka_unit_test(short_at_any_time),
		cmocka_unit_test(pieces_fill_the_ring),
	};

	return cmocka_run_group_tests_name("shm/message", tests, NULL, NULL);
}

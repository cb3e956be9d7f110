/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over the simulated service and the packet service, on a network that loses, doubles, corrupts and reorders
 * packets: each arrives once, whole and in order; who owns a buffer until when; what is refused, withdrawn, and waited
 * for.
 */
#include "links/ends.h"

#include <poll.h>

static uint64_t soak(uint64_t seed, size_t mtu)
{
	struct rwk_sim_attr attr = rwk_sim_attr_default;
	struct rwk_sim_service how = rwk_sim_service_default;
	uint64_t trace;

	attr.seed = seed;
	attr.mtu = mtu;
	attr.path = ends_lossy;
	attr.room = seed % 2 ? 40 : 0;
	how.refuse = 100000;
	how.finish = 100000;
	how.late = 300000;
	ends_open(&attr, &how, 4);
	for (unsigned step = 0; step < 4000; step++) {
		unsigned from = (unsigned)rwk_sim_random(ends_net, 4), to = (unsigned)rwk_sim_random(ends_net, 4);

		if (from == to)
			continue;
		if (!ends_side(from, to)->ch)
			ends_connect(from, to);
		if (rwk_sim_random(ends_net, 2) && ends_send(ends_side(from, to)) != -EAGAIN)
			continue;
		else if (ends_side(from, to)->ops < 50)
			assert_in_range(ends_post(ends_side(from, to)), 0, 1);
		ends_progress(ends[to]);
		for (uint64_t n = rwk_sim_random(ends_net, 10); n; n--)
			rwk_sim_step(ends_net);
	}
	ends_settle();
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned j = 0; j < 4; j++) {
			if (i == j)
				continue;
			assert_int_equal(ends_side(i, j)->received, ends_side(j, i)->sent);
			assert_true(ends_side(i, j)->received > (ends_packets() ? 40 : 100));
			assert_int_equal(ends_side(i, j)->ops, 0);
			assert_int_equal(ends_side(i, j)->failed, 0);
		}
	}
	trace = rwk_sim_trace(ends_net);
	ends_close();
	return trace;
}

/*
 * Four ends send to each other over ends_lossy, reordering paths, by send and post, with refusals for no reason: each
 * message arrives once, in order and whole, also when several senders' pieces mix. The same seed gives the same run.
 */
static void each_message_once(void **state)
{
	uint64_t first = 0;

	(void)state;
	ends_interleaved = 0;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		uint64_t trace = soak(seed, 512);

		if (seed == 1)
			first = trace;
		else
			assert_int_not_equal(trace, first);
	}
	assert_int_equal(soak(1, 512), first);
	assert_true(ends_interleaved > 100); /* else the test is weaker than it says */
}

/* The same with each PMTU, and messages up to the longest that a channel takes. */
static void each_pmtu(void **state)
{
	static const size_t mtus[] = {256 + 80, 512 + 80, 1024 + 80, 2048 + 80, 4096 + 80, 4224, 9000};

	(void)state;
	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		ends_longest = i % 3 ? 9000 : LENGTH;
		soak(100 + i, mtus[i]);
	}
}

/* The number of the first message from 0 to 1 that is too long for a packet. */
static uint64_t first_long(void)
{
	uint64_t n = 0;

	while (ends_length(0, 1, n) <= (ends_packets() ? 9000 : 1000))
		n++;
	return n;
}

/*
 * A posted send that lies in the client's memory is not done before the peer has acknowledged it, and until then its
 * buffer is what the peer gets: the first copy is lost, the right bytes are written only then.
 */
static void owned_until_acknowledged(void **state)
{
	uint8_t buf[LENGTH] = {0};
	struct ends_op op;
	struct side *s;
	size_t len;

	(void)state;
	if (ends_packets())
		ends_longest = LENGTH;
	ends_open_two();
	s = ends_side(0, 1);
	while (s->sent < first_long())
		assert_in_range(ends_post(s), 0, 1);
	ends_settle();
	len = ends_length(0, 1, s->sent);
	for (uint64_t n = 1; n <= 1 + len / 256; n++)
		rwk_sim_rule(ends_net, 1, 2, n, RWK_SIM_DROP);
	ends_make_op(&op, RWK_OP_SEND, buf, len);
	op.op.env = ends_envelope(s);
	op.op.arrival = ends_packets(); /* else it is copied when nothing comes */
	assert_int_equal(s->ch->transport->post(s->ch, &op.op), 0);
	rwk_sim_run_until(ends_net, rwk_sim_now(ends_net) + 10000);
	ends_progress_all();
	assert_int_equal(op.done, 0);
	assert_int_equal(ends_side(1, 0)->received, s->sent);
	ends_fill(s, buf, len);
	ends_settle();
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, 0);
	assert_int_equal(ends_side(1, 0)->received, s->sent + 1);
	ends_close();
}

/*
 * send takes a number of messages (the simulated service: `room`) and then says -EAGAIN, which is no failure; behind a
 * post it says -EAGAIN, too, and order holds.
 */
static void room(void **state)
{
	struct side *s;
	unsigned taken = 0;

	(void)state;
	if (ends_packets())
		ends_longest = 64; /* shorter than a packet */
	ends_open_two();
	s = ends_side(0, 1);
	while (!ends_send(s))
		assert_true(++taken < 10000);
	if (ends_packets())
		assert_true(taken > 1);
	else
		assert_int_equal(taken, rwk_sim_service_default.room);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ends_post(s), 0);
	assert_int_equal(ends_send(s), -EAGAIN);
	ends_settle();
	assert_int_equal(ends_send(s), 0);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, taken + 21);
	ends_close();
}

/* What has not begun can be withdrawn and never arrives, what has cannot. */
static void withdraw(void **state)
{
	static uint8_t buf[LENGTH];
	struct ends_op never;
	struct side *s;

	(void)state;
	ends_open_two();
	s = ends_side(0, 1);
	for (int i = 0; i < 30; i++)
		assert_int_equal(ends_post(s), 0);
	ends_make_op(&never, RWK_OP_SEND, buf, ends_longest);
	assert_int_equal(s->ch->transport->post(s->ch, &never.op), 0);
	assert_int_equal(s->ch->transport->withdraw(s->ch, &never.op), 0);
	ends_settle();
	assert_int_equal(never.done, 0);
	assert_int_equal(ends_side(1, 0)->received, 30);
	while (ends_length(0, 1, s->sent) < 1000)
		assert_in_range(ends_post(s), 0, 1);
	ends_settle();
	ends_fill(s, buf, ends_longest);
	ends_make_op(&never, RWK_OP_SEND, buf, ends_length(0, 1, s->sent));
	never.op.env = ends_envelope(s);
	assert_int_equal(s->ch->transport->post(s->ch, &never.op), 0);
	assert_int_equal(s->ch->transport->withdraw(s->ch, &never.op), -EBUSY);
	ends_settle();
	assert_int_equal(never.done, 1);
	assert_int_equal(ends_side(1, 0)->received, s->sent + 1);
	ends_close();
}

/*
 * To sleep: arm refuses while there is something to do; what comes after makes the descriptor readable, progress quiets
 * it.
 */
static void sleeping(void **state)
{
	struct pollfd fd = {.events = POLLIN};

	(void)state;
	ends_open_two();
	fd.fd = ends_transport->wait_fd(ends[1]->port);
	assert_true(fd.fd >= 0);
	assert_int_equal(ends_transport->arm(ends[1]->port), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	rwk_sim_step(ends_net);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(ends_transport->arm(ends[1]->port), -EAGAIN);
	ends_progress(ends[1]);
	assert_int_equal(ends_side(1, 0)->received, 1);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(ends_transport->arm(ends[1]->port), 0);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_EACH(each_message_once),
		ENDS_RC(each_pmtu),
		ENDS_UC(each_pmtu),
		ENDS_SIM(owned_until_acknowledged),
		ENDS_RC(owned_until_acknowledged),
		ENDS_EACH(room),
		ENDS_EACH(withdraw),
		ENDS_SIM(sleeping),
	};

	return cmocka_run_group_tests_name("channel services, messages", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How messages that are under way end, whether they are acknowledged or not, what is waited for at the end, and what goes
 * with a channel.
 */
#include "packet/pair.h"

#include "machine.h"
#include "memory/keys.h"
#include "packet/channel.h"
#include "packet/port.h"
#include "packet/request.h"
#include "rc/rc.h"

/*
 * A few long messages that are under way end when nothing comes, whether the peer looks or not, and their bytes are
 * those they had, though they have to be sent again. But none that is to end when it has arrived, nor of many any.
 */
static void few_end(void **state)
{
	enum { LONG = RWK_SEND_MAX_LESS };
	static const size_t lengths_of[] = {
		LONG, 5000, 5000, 5000, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG};
	uint8_t bytes[5000];
	struct ends_op arrival;
	struct side *s;

	(void)state;
	pair_open_list(4224, lengths_of, 13, NULL);
	s = ends_side(0, 1);
	rwk_sim_rule(ends_net, 1, 2, 1, RWK_SIM_DROP);
	assert_int_equal(ends_post(s), 0);
	assert_int_equal(s->ops, 1);
	ends_progress(ends[0]);
	assert_int_equal(s->ops, 0);
	assert_int_equal(ends_post(s), 0);
	assert_int_equal(ends_post(s), 0);
	assert_int_equal(s->ops, 2);
	for (int i = 0; i < 10; i++)
		ends_progress(ends[0]);
	assert_int_equal(s->ops, 0);
	ends_settle();
	if (ends_transport == &sim_packet_transport) /* SRC's packets go another way */
		assert_true(pair_qp_counts(0, 1)->sent_again > 0);
	ends_make_op(&arrival, RWK_OP_SEND, bytes, sizeof(bytes));
	ends_fill(s, bytes, sizeof(bytes));
	arrival.op.env = ends_envelope(s);
	arrival.op.arrival = true;
	assert_int_equal(s->ch->transport->post(s->ch, &arrival.op), 0);
	for (int i = 0; i < 10; i++)
		ends_progress(ends[0]);
	assert_int_equal(arrival.done, 0);
	ends_settle();
	assert_int_equal(arrival.done, 1);
	s->sent++;
	for (int i = 0; i < 9; i++)
		assert_int_equal(ends_post(s), 0);
	for (int i = 0; i < 10; i++)
		ends_progress(ends[0]);
	assert_int_equal(s->ops, 9);
	ends_settle();
	assert_int_equal(s->ops, 0);
	assert_int_equal(ends_side(1, 0)->received, 13);
	ends_close();
}

/* The peer takes nothing: who sends on and on to it is not let go on from copies without end. */
static void copies_are_bounded(void **state)
{
	struct side *s;
	unsigned i;

	(void)state;
	pair_open(4224, 16384);
	s = ends_side(0, 1);
	for (i = 0; i < 100 && !s->ops; i++) {
		assert_int_equal(ends_post(s), 0);
		ends_progress(ends[0]);
		ends_progress(ends[0]);
	}
	assert_int_equal(i, RWK_RELIEF_MAX / 16384 + 1);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, i);
	assert_int_equal(s->ops, 0);
	ends_close();
}

/* A message that went the shortest way is lost, and nothing else is under way: it is sent again. */
static void hurried_is_awaited(void **state)
{
	(void)state;
	pair_open(4224, 8);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	rwk_sim_rule(ends_net, 1, 2, 1, RWK_SIM_DROP);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	assert_int_equal(ends_side(1, 0)->received, 2);
	assert_int_equal(pair_qp_counts(0, 1)->sent_again, 1);
	ends_close();
}

static bool stream_sent;

static bool is_sent(struct rwk_link *l)
{
	(void)l;
	return stream_sent;
}

/* A port that is closed goes on while its stream has something that has not come to the peers' hosts, and no longer. */
static void stream_is_awaited(void **state)
{
	struct rwk_link_ops ops;
	struct rwk_link *stream;

	(void)state;
	pair_open_list(4224, NULL, 0, NULL);
	assert_int_equal(ends_send(ends_side(0, 1)), 0);
	ends_settle();
	stream = ends[0]->port->link[RWK_WAY_STREAM];
	ops = *stream->ops;
	ops.sent = is_sent;
	stream->ops = &ops;
	assert_true(rwk_packet_go_on(ends[0]->port));
	stream_sent = true;
	assert_false(rwk_packet_go_on(ends[0]->port));
	ends_close();
}

/* Keys of that end's that are somebody's. */
static unsigned regions(unsigned end, const struct rwk_rkey *key, unsigned count)
{
	const struct rwk_port *port = ends[end]->port;
	unsigned n = 0;
	uint32_t pd;

	for (unsigned i = 0; i < count; i++) {
		for (uint32_t t = 0; t < port->key_tables; t++)
			n += !rwk_keys_pd(port->keys[t], (uint32_t)key[i].word[0], &pd);
	}
	return n;
}

/* A peer ends, and the client gives its channel up, as it must: what that peer could reach is gone, and no more. */
static void regions_go_with_channel(void **state)
{
	enum { EACH = 800 }; /* more than a table has, together */
	static struct rwk_rkey key[2][EACH];
	static uint8_t bytes[100];
	const struct iovec iov = {bytes, sizeof(bytes)};

	(void)state;
	ends_open(NULL, NULL, 3);
	for (unsigned peer = 1; peer < 3; peer++)
		ends_connect(0, peer);
	ends_settle();
	for (unsigned i = 0; i < 2 * EACH; i++)
		assert_int_equal(ends_transport->expose(
					 ends_side(0, 1 + i % 2)->ch, &iov, 1, RWK_EXPOSE_READ, &key[i % 2][i / 2]),
			0);
	assert_int_equal(regions(0, key[0], EACH), EACH);
	ends_close_port(1);
	ends_settle();
	assert_int_equal(ends_side(0, 1)->failed, 1);
	ends_transport->disconnect(ends_side(0, 1)->ch);
	assert_int_equal(regions(0, key[0], EACH), 0);
	assert_int_equal(regions(0, key[1], EACH), EACH);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_RC(few_end),
		ENDS_ON(few_end, "SRC", sim_shared_transport),
		ENDS_RC(copies_are_bounded),
		ENDS_RC(hurried_is_awaited),
		ENDS_UC(stream_is_awaited),
		ENDS_RC(regions_go_with_channel),
		ENDS_UC(regions_go_with_channel),
	};

	return cmocka_run_group_tests_name("packet/endings", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ordering hints and an end that knows nothing of them, or does not want them: what the handshake says of that,
 * with packets by UDP, on the simulated network (test_hints_sim) and on streams.
 *
 * Links: udp, sim, tcp.
 */
#include "connect/sides.h"
#include "connect/ways.h"

#include "channel_adapter/internal.h"

enum { CLIENT = 1, SERVER = 2, BOTH = CLIENT | SERVER };

/* By a request and an answer; or by two greetings, on a stream that there was before. */
static void connect_by(const struct way *w, unsigned wanted, bool greetings)
{
	struct rwk_connection_attr asks = sides_attr(w->transport, NULL), answers = asks;
	int fd[2];

	asks.qp.unordered = wanted & CLIENT;
	answers.qp.unordered = wanted & SERVER;
	if (greetings) {
		sides_tcp(fd);
		assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &asks, &client.c), 0);
		assert_int_equal(rwk_convert(server.channel, far.qp, fd[1], &answers, &server.c), 0);
	} else {
		sides_ask(&asks);
		assert_int_equal(rwk_accept(server.c, far.qp, &answers), 0);
	}
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
}

static void send_hinted(struct end *from, struct end *to, unsigned hint)
{
	struct rwk_sge sge = {from->out, 10, rwk_mr_key(from->out_mr)};
	struct rwk_request r = {.type = RWK_REQUEST_SEND, .flags = hint, .sge = &sge, .sge_count = 1};

	ends_receive(to, 1, 10);
	assert_int_equal(rwk_qp_post(from->qp, &r), 0);
	assert_int_equal(ends_await(from, from->send_cq).status, 0);
	assert_int_equal(ends_await(to, to->receive_cq).status, 0);
	assert_memory_equal(to->in, from->out, 10);
}

/*
 * S2-1: un-ordered is asked for by none of the two ends, by one, or by both: what has a hint arrives and completes, in
 * both directions; and the un-ordered types are used where both ask for them.
 */
static void wanted_by(void **state, bool greetings)
{
	const struct way *w = *state;

	for (unsigned wanted = 0; wanted <= BOTH; wanted++) {
		bool agreed = wanted == BOTH && w->service == RWK_QP_RC;

		open_way(state);
		connect_by(w, wanted, greetings);
		assert_int_equal(near.qp->early != NULL, agreed); /* what is early is kept for them alone */
		assert_int_equal(far.qp->early != NULL, agreed);
		for (unsigned i = 0; i < 2; i++) {
			send_hinted(&near, &far, i ? RWK_REQUEST_HALF_ORDERED : RWK_REQUEST_UNORDERED);
			send_hinted(&far, &near, i ? RWK_REQUEST_HALF_ORDERED : RWK_REQUEST_UNORDERED);
		}
		sides_close();
		/* On the simulated network an address is a node: each pair of ends has a network of its own. */
		assert_int_equal(world_close(state) | world_open(state), 0);
	}
}

static void s2_1_one_end(void **state)
{
	wanted_by(state, false);
}

static void s2_1_converted(void **state)
{
	wanted_by(state, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		by(s2_1_one_end, rc_udp),
		by(s2_1_one_end, rc_stream),
		by(s2_1_one_end, uc_udp),
		by(s2_1_one_end, uc_stream),
		by(s2_1_converted, rc_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

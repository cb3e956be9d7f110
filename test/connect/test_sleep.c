/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who sleeps on a cq is woken by packets that come by a stream, as by those of UDP. Streams alone.
 *
 * Links: tcp.
 */
#include "connect/sides.h"

#include <poll.h>

#define LONG 20000 /* ms: what never passes */

static bool is_readable(struct rwk_cq *cq, int ms)
{
	struct pollfd p = {.fd = rwk_cq_fd(cq), .events = POLLIN};

	assert_true(p.fd >= 0);
	return poll(&p, 1, ms) == 1;
}

/* Nobody works for far: near's Send alone must make its descriptor readable. */
static void woken(void)
{
	struct rwk_wc wc;

	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	do
		assert_true(is_readable(far.receive_cq, LONG));
	while (!rwk_cq_poll(far.receive_cq, &wc, 1));
	assert_true(wc.type == RWK_WC_RECEIVE && wc.length == 8 && !wc.status);
}

/* S4-10: the descriptor tells of what comes by a stream. */
static void by_stream(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);

	sides_open(service_of(state));
	sides_connect(&attr);
	ends_receive(&far, 1, 8);
	while (rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT))
		;
	assert_false(is_readable(far.receive_cq, 0));
	woken();
	sides_close();
}

/* Armed before the adapter has streams at all. */
static void armed_before(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);

	sides_open_one(&client, &near, 1, service_of(state));
	ends_open_one(&far, 2, service_of(state));
	assert_false(is_readable(far.receive_cq, 0));
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	server = (struct side){.end = &far};
	assert_int_equal(rwk_event_channel_create(far.adapter, &server.channel), 0);
	sides_connect(&attr);
	ends_receive(&far, 1, 8);
	woken();
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world_by(by_stream, world_rc),
		in_world_by(by_stream, world_uc),
		in_world_by(armed_before, world_rc),
		in_world_by(armed_before, world_uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

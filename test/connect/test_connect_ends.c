/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that come to an end, or never to be: patience that ends, qps that fail or go, and what is said then, with
 * packets by UDP, on the simulated network (test_connect_ends_sim) and on streams.
 */
#include "connect/sides.h"
#include "connect/ways.h"

#include "channel_adapter/internal.h"

#include <poll.h>

/* Waits s's descriptor, and no longer than it must: it becomes readable when there is an event, and only then. */
static void wait_readable(struct side *s)
{
	struct pollfd p = {.fd = rwk_event_channel_fd(s->channel), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 20000), 1);
}

/*
 * Every wait has an end: a server whose program does not answer, and one whose kernel connects but whose program never
 * looks. The descriptor tells of the deadline.
 */
static void timed_out(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	uint64_t begun = sides_ms();

	attr.timeout_ms = 100;
	sides_listen(&(struct rwk_listen_attr){0});
	assert_int_equal(
		rwk_connect(client.channel, near.qp, far.ip, rwk_listener_port(listener), &attr, &client.c), 0);
	while (!client.count) { /* the server is never polled */
		struct rwk_connection_event e;

		wait_readable(&client);
		if (rwk_event_channel_poll(client.channel, &e))
			client.events[client.first + client.count++] = e;
		assert_true(sides_ms() < begun + 20000);
	}
	assert_int_equal(sides_await(&client, RWK_CONNECTION_TIMED_OUT).status, -ETIMEDOUT);
	assert_true(sides_ms() >= begun + 100);
	assert_int_equal(sides_state(&client), RWK_QPS_INIT);
	rwk_connection_destroy(client.c);
	client.c = NULL;
	server.c = sides_await(&server, RWK_CONNECTION_REQUEST).connection; /* it said what it wants, and hung up */
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ECONNRESET);
	sides_close();
}

/* The server's own program has a time to answer, too; then the client hears that it was hung up on. */
static void never_answered(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);

	sides_listen(&(struct rwk_listen_attr){.timeout_ms = 100});
	sides_ask(&attr);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_TIMED_OUT).status, -ETIMEDOUT);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_UNREACHABLE).status, -ECONNRESET);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), -ENOTCONN);
	assert_int_equal(rwk_reject(server.c, NULL, 0), -EINVAL);
	sides_close();
}

/* A client that gives up while it is not answered yet; and one that does so when its program was not told yet. */
static void given_up(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);

	sides_ask(&attr);
	rwk_connection_destroy(client.c);
	client.c = NULL;
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ECONNRESET);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), -ENOTCONN);
	sides_close();
}

/* The end of a qp is the end of its connection: destroyed by its owner at one side, both hear of it. */
static void qp_destroyed(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_qp_create_attr create = {.type = w->service,
		.send_cq = near.send_cq,
		.receive_cq = near.receive_cq,
		.send_max = 1,
		.receive_max = 1};

	sides_connect(&attr);
	rwk_qp_destroy(near.qp);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -ECANCELED);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ESHUTDOWN);
	assert_int_equal(rwk_qp_create(near.pd, &create, &near.qp), 0); /* that there is one to close */
	sides_close();
}

/* The end of a qp, or its RESET, while the kernel still connects, or has just done so: one event says that it is over. */
static void qp_gone_at_once(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_qp_create_attr create = {.type = w->service,
		.send_cq = near.send_cq,
		.receive_cq = near.receive_cq,
		.send_max = 1,
		.receive_max = 1};

	sides_listen(&(struct rwk_listen_attr){0});
	for (unsigned reset = 0; reset < 2; reset++) {
		assert_int_equal(
			rwk_connect(client.channel, near.qp, far.ip, rwk_listener_port(listener), &attr, &client.c), 0);
		if (reset)
			assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RESET, NULL), 0);
		else
			rwk_qp_destroy(near.qp);
		assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -ECANCELED);
		sides_no_event(&client);
		rwk_connection_destroy(client.c);
		client.c = NULL;
		if (!reset)
			assert_int_equal(rwk_qp_create(near.pd, &create, &near.qp), 0);
	}
	sides_connect(&attr); /* one that was reset may be had again */
	sides_exchange();
	sides_close();
}

/* A qp that fails (a key that is none) ends its connection, and its status says why. */
static void qp_fails(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);

	sides_connect(&attr);
	assert_int_equal(ends_request(&near, RWK_REQUEST_WRITE, 100, 64, 1), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, -EACCES);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -EACCES);
	assert_int_not_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, 0);
	sides_close();
}

static void let_time_pass(void)
{
	if (ends_step)
		ends_step();
}

/*
 * A peer that refuses a Write and leaves at once: what it said by UDP counts, though its end is seen first, as when both
 * came between a look at the one and a look at the other.
 */
static void refused_and_left(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);
	struct rwk_connection_event e;
	struct rwk_link *streams;
	uint64_t end;

	(void)state;
	sides_open(RWK_QP_RC);
	sides_connect(&attr);
	streams = near.adapter->streams;
	assert_int_equal(ends_request(&near, RWK_REQUEST_WRITE, 100, 64, 1), 0);
	for (end = sides_ms() + 20000; !rwk_event_channel_poll(server.channel, &e);) {
		let_time_pass();
		assert_true(sides_ms() < end);
	}
	assert_int_equal(e.type, RWK_CONNECTION_DISCONNECTED);
	let_time_pass();
	for (end = sides_ms() + 20000; near.qp->stream; streams->ops->progress(streams, 1))
		assert_true(sides_ms() < end);
	assert_int_equal(ends_await(&near, near.send_cq).status, -EACCES);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -EACCES);
	sides_close();
}

/* What is posted when the peer leaves comes back, without waiting for silence to be noticed. */
static void posted_comes_back(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);

	sides_connect(&attr);
	ends_receive(&near, 9, 100);
	assert_int_equal(rwk_disconnect(server.c), 0);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -ESHUTDOWN);
	assert_int_equal(ends_await(&near, near.receive_cq).status, -ECANCELED);
	sides_await(&server, RWK_CONNECTION_DISCONNECTED);
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		by(timed_out, rc_udp),
		by(never_answered, rc_stream),
		by(given_up, rc_udp),
		by(qp_destroyed, rc_udp),
		by(qp_destroyed, uc_stream),
		by(qp_gone_at_once, rc_udp),
		by(qp_gone_at_once, uc_stream),
		by(qp_fails, rc_udp),
		by(qp_fails, rc_stream),
		in_world(refused_and_left),
		by(posted_comes_back, rc_udp),
		by(posted_comes_back, uc_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

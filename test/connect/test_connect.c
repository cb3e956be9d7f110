/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting: what a program sees of rwk_connect, rwk_listen, accept and reject, and of the events, with packets by
 * UDP, on the simulated network (test_connect_sim) and on streams. One set of calls for all of them (S4-11).
 *
 * Links: udp, sim, tcp.
 */
#include "connect/sides.h"
#include "connect/ways.h"

#include "channel_adapter/internal.h"

#include <poll.h>

static void is_private(const struct rwk_connection_event *e, const char *text)
{
	assert_int_equal(e->private_length, strlen(text));
	assert_memory_equal(e->private_data, text, e->private_length);
}

/*
 * S4-6, S4-11: one call, and after the handshake both qps are in RDMA mode, whatever the packets go by; each side hears
 * what the other has added; the end of one is the other's too, and both hear of it.
 */
static void s4_6_one_call(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, "please"), answer = sides_attr(0, "here you are");
	struct rwk_connection_event e;
	int tag;

	attr.user = &tag;
	e = sides_ask(&attr);
	is_private(&e, "please");
	assert_int_equal(e.service, w->service);
	assert_int_equal(e.transport, w->transport);
	assert_false(e.deferred);
	assert_int_equal(rwk_connection_fd(server.c), -1);
	assert_int_equal(rwk_accept(server.c, far.qp, &answer), 0);
	assert_int_equal(rwk_accept(server.c, far.qp, &answer), -EINVAL);
	e = sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	is_private(&e, "here you are");
	assert_ptr_equal(e.user, &tag);
	assert_int_equal(e.peer_port, rwk_listener_port(listener));
	assert_int_equal(sides_state(&client), RWK_QPS_RTS);
	e = sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	is_private(&e, "");
	sides_in_rdma_mode();
	sides_exchange();
	assert_int_equal(rwk_disconnect(client.c), 0);
	assert_int_equal(rwk_disconnect(client.c), -ENOTCONN);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, 0);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ESHUTDOWN);
	assert_int_equal(sides_state(&client), RWK_QPS_ERR);
	assert_int_equal(sides_state(&server), RWK_QPS_ERR);
	sides_close();
}

/* Packets go where they are said to go: by UDP the stream carries none, on a stream the UDP port none. */
static void by_one_way(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_adapter_counters c;

	sides_connect(&attr);
	sides_exchange();
	rwk_adapter_get_counters(far.adapter, &c);
	assert_int_equal(c.malformed + c.bad_icrc + c.unknown_qp + c.wrong_service + c.stranger, 0);
	assert_true(c.packets_in > REGION / 4096);
	sides_close();
}

/* A qp that was connected once connects again after a RESET, by another way as well. */
static void again(void **state)
{
	const struct way *w = open_way(state);

	for (unsigned i = 0; i < 3; i++) {
		struct rwk_connection_attr attr = sides_attr((w->transport + i) % 2, NULL);

		sides_connect(&attr);
		sides_exchange();
		assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RESET, NULL), 0); /* ends it, too */
		assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -ECANCELED);
		assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ESHUTDOWN);
		assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
		rwk_connection_destroy(client.c);
		rwk_connection_destroy(server.c);
		client.c = server.c = NULL;
	}
	sides_close();
}

/* No: the client hears what was said with it; its qp is as it was, receives included, and may try again. */
static void rejected(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	static const char most[RWK_PRIVATE_MAX + 1];
	struct rwk_connection_event e;

	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	ends_receive(&near, 77, 10);
	sides_ask(&attr);
	assert_int_equal(rwk_reject(server.c, most, RWK_PRIVATE_MAX + 1), -EINVAL);
	assert_int_equal(rwk_reject(server.c, most, RWK_PRIVATE_MAX), 0);
	server.c = NULL;
	e = sides_await(&client, RWK_CONNECTION_REJECTED);
	assert_int_equal(e.private_length, RWK_PRIVATE_MAX);
	assert_int_equal(sides_state(&client), RWK_QPS_INIT);
	rwk_connection_destroy(client.c);
	sides_connect(&attr);
	assert_int_equal(ends_request(&far, RWK_REQUEST_SEND, 10, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.receive_cq).id, 77);
	assert_int_equal(ends_await(&far, far.send_cq).status, 0);
	sides_close();
}

static size_t narrow(struct rwk_link *l, const struct rwk_link_address *to)
{
	(void)l;
	(void)to;
	return 600;
}

/* With packets that do not fit the way to the client; it would have our address in its events. */
static void accept_too_long(void)
{
	struct rwk_connection_attr attr = sides_attr(0, "too long");
	struct rwk_link *l = far.adapter->link;
	const struct rwk_link_ops *before = l->ops;
	struct rwk_link_ops ops = *before;

	attr.qp.pmtu = 1024;
	attr.user = &attr;
	ops.mtu = narrow;
	l->ops = &ops;
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), -ENETUNREACH);
	l->ops = before;
}

/* An accept that fails changes nothing: the qp and the connection are as if there had been none. */
static void accepted_again(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_connection_event e;

	sides_ask(&attr);
	accept_too_long();
	assert_int_equal(sides_state(&server), RWK_QPS_RESET);
	rwk_connection_destroy(client.c);
	client.c = NULL;
	assert_null(sides_await(&server, RWK_CONNECTION_DISCONNECTED).user);
	rwk_connection_destroy(server.c);
	server.c = NULL;
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_INIT, NULL), 0);
	ends_receive(&far, 77, 10);
	sides_ask(&attr);
	accept_too_long();
	assert_int_equal(sides_state(&server), RWK_QPS_INIT);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
	e = sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	is_private(&e, "");
	assert_null(sides_await(&server, RWK_CONNECTION_ESTABLISHED).user);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 10, 0, 0), 0);
	assert_int_equal(ends_await(&far, far.receive_cq).id, 77);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	sides_exchange();
	sides_close();
}

/* Values of which both have one: the smaller one holds. A Write of more than the PMTU shows how long packets are. */
static void smaller_pmtu(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL), answer = attr;
	struct rwk_qp_info info;

	attr.qp.pmtu = 1024;
	answer.qp.pmtu = 512;
	sides_ask(&attr);
	assert_int_equal(rwk_accept(server.c, far.qp, &answer), 0);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	ends_receive(&far, 1, 5120);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 5120, 0, 0), 0);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 5120);
	rwk_qp_query(far.qp, &info);
	assert_int_equal(info.packets_in, 10);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	sides_close();
}

/* While there is nothing to do the descriptor is quiet, and a program that sleeps on it misses nothing. */
static void sleeps(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct pollfd p[] = {{.fd = rwk_event_channel_fd(client.channel), .events = POLLIN},
		{.fd = rwk_event_channel_fd(server.channel), .events = POLLIN}};
	unsigned established = 0;
	struct rwk_connection_event e;

	sides_listen(&(struct rwk_listen_attr){0});
	sides_no_event(&client);
	assert_int_equal(poll(p, 2, 0), 0);
	assert_int_equal(
		rwk_connect(client.channel, near.qp, far.ip, rwk_listener_port(listener), &attr, &client.c), 0);
	while (established < 2) {
		assert_int_not_equal(poll(p, 2, 20000), 0);
		if (p[0].revents && rwk_event_channel_poll(client.channel, &e))
			established += e.type == RWK_CONNECTION_ESTABLISHED;
		if (!p[1].revents || !rwk_event_channel_poll(server.channel, &e))
			continue;
		established += e.type == RWK_CONNECTION_ESTABLISHED;
		if (e.type == RWK_CONNECTION_REQUEST) {
			server.c = e.connection;
			assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
		}
	}
	sides_no_event(&client);
	assert_int_equal(poll(p, 2, 0), 0);
	assert_int_equal(rwk_disconnect(client.c), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(poll(&p[i], 1, 20000), 1);
		while (!rwk_event_channel_poll(i ? server.channel : client.channel, &e))
			assert_int_equal(poll(&p[i], 1, 20000), 1);
		assert_int_equal(e.type, RWK_CONNECTION_DISCONNECTED);
	}
	sides_close();
}

/* What is refused at once, with nothing done. */
static void refused_at_once(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL), wrong;
	struct rwk_connection *c = NULL;

	sides_ask(&attr);
	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, 1, &attr, &c), -EBUSY);
	assert_int_equal(rwk_connect(client.channel, far.qp, far.ip, 1, &attr, &c), -EINVAL);
	assert_int_equal(rwk_accept(client.c, near.qp, &attr), -EINVAL);
	assert_int_equal(rwk_accept(server.c, near.qp, &attr), -EINVAL);
	assert_int_equal(rwk_connection_enter(client.c), -EINVAL);
	assert_int_equal(rwk_disconnect(client.c), -ENOTCONN);
	assert_int_equal(rwk_reject(client.c, NULL, 0), -EINVAL);
	wrong = attr;
	wrong.private_length = RWK_PRIVATE_MAX + 1;
	assert_int_equal(rwk_accept(server.c, far.qp, &wrong), -EINVAL);
	wrong = attr;
	wrong.qp.pmtu = 1000;
	assert_int_equal(rwk_accept(server.c, far.qp, &wrong), -EINVAL);
	wrong = attr;
	wrong.qp.reads = 17;
	assert_int_equal(rwk_accept(server.c, far.qp, &wrong), -EINVAL);
	wrong = attr;
	wrong.told = true;
	assert_int_equal(rwk_accept(server.c, far.qp, &wrong), -EINVAL);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0); /* none of that has changed anything */
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(rwk_adapter_close(near.adapter), -EBUSY);
	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, 1, &attr, &c), -EINVAL); /* in RTS */
	assert_null(c);
	sides_close();
}

static void deferred_by_udp(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);
	struct rwk_connection *c;

	(void)state;
	sides_open(RWK_QP_RC);
	attr.deferred = true;
	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, 1, &attr, &c), -EOPNOTSUPP);
	attr.deferred = false;
	attr.transport = 2;
	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, 1, &attr, &c), -EINVAL);
	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, 0, &attr, &c), -EINVAL);
	sides_close();
}

/* S4-11: SRC has a connection by the same calls, but none on a stream. */
static void s4_11_src(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	struct job job;

	(void)state;
	sides_open(RWK_QP_SRC);
	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, 1, &attr, &client.c), -EOPNOTSUPP);
	attr.transport = RWK_TRANSPORT_UDP;
	sides_connect(&attr);
	sides_in_rdma_mode();
	ends_open_job(&job, &far, far.domain, 0);
	ends_receive_job(&job, 3, 100);
	assert_int_equal(ends_request_src(&near, RWK_REQUEST_SEND, 100, job.number, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	assert_int_equal(ends_await(&far, job.cq).length, 100);
	assert_memory_equal(job.in, near.out, 100);
	ends_close_job(&job);
	sides_close();
}

/* Many at once: each gets its own qp, and what is sent on one comes on that one. */
static void many(void **state)
{
	enum { N = 20 };
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_connection *c[2 * N];
	struct rwk_qp *qp[2 * N];
	unsigned asked = 0, established = 0;

	sides_listen(&(struct rwk_listen_attr){0});
	for (unsigned i = 0; i < 2 * N; i++) {
		struct end *e = i < N ? &near : &far;
		struct rwk_qp_create_attr create = {.type = w->service,
			.send_cq = e->send_cq,
			.receive_cq = e->receive_cq,
			.send_max = 1,
			.receive_max = 1};

		assert_int_equal(rwk_qp_create(e->pd, &create, &qp[i]), 0);
	}
	for (unsigned i = 0; i < N; i++) {
		attr.user = &qp[i];
		attr.private_data = &i;
		attr.private_length = sizeof(i);
		assert_int_equal(
			rwk_connect(client.channel, qp[i], far.ip, rwk_listener_port(listener), &attr, &c[i]), 0);
	}
	attr.private_length = 0;
	for (uint64_t end = sides_ms() + 20000; established < 2 * N;) {
		struct rwk_connection_event e;
		unsigned i;

		assert_true(sides_ms() < end);
		if (ends_step)
			ends_step();
		if (rwk_event_channel_poll(client.channel, &e)) {
			assert_int_equal(e.type, RWK_CONNECTION_ESTABLISHED);
			assert_ptr_equal(e.connection, c[(struct rwk_qp **)e.user - qp]);
			established++;
		}
		if (!rwk_event_channel_poll(server.channel, &e))
			continue;
		established += e.type == RWK_CONNECTION_ESTABLISHED;
		if (e.type != RWK_CONNECTION_REQUEST)
			continue;
		memcpy(&i, e.private_data, sizeof(i));
		assert_true(i < N);
		c[N + i] = e.connection;
		asked++;
		assert_int_equal(rwk_accept(e.connection, qp[N + i], &attr), 0);
	}
	assert_int_equal(asked, N);
	for (unsigned i = 0; i < 2 * N; i++) {
		rwk_connection_destroy(c[i]);
		rwk_qp_destroy(qp[i]);
	}
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		by(s4_6_one_call, rc_udp),
		by(s4_6_one_call, uc_udp),
		by(s4_6_one_call, rc_stream),
		by(s4_6_one_call, uc_stream),
		by(by_one_way, rc_udp),
		by(by_one_way, rc_stream),
		by(again, rc_udp),
		by(again, uc_stream),
		by(rejected, rc_udp),
		by(rejected, rc_stream),
		by(accepted_again, rc_udp),
		by(accepted_again, uc_udp),
		by(smaller_pmtu, rc_udp),
		by(smaller_pmtu, uc_stream),
		by(sleeps, rc_udp),
		by(sleeps, rc_stream),
		by(refused_at_once, rc_udp),
		by(refused_at_once, uc_stream),
		by(many, rc_udp),
		by(many, rc_stream),
		in_world(deferred_by_udp),
		in_world(s4_11_src),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

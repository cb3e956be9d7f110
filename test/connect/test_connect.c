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

/* A port at which nobody listens. */
static void nobody_there(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	struct rwk_listener *l;
	uint16_t port;

	assert_int_equal(rwk_listen(server.channel, &(struct rwk_listen_attr){0}, &l), 0);
	port = rwk_listener_port(l);
	rwk_listener_close(l);
	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, port, &attr, &client.c), 0);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_UNREACHABLE).status, -ECONNREFUSED);
	assert_int_equal(sides_state(&client), RWK_QPS_INIT);
	sides_close();
}

/* One that somebody listened at a moment ago. */
static uint16_t free_port(const uint8_t ip[16])
{
	struct rwk_listen_attr at = {.ip = {0}};
	struct rwk_listener *l;
	uint16_t port;

	memcpy(at.ip, ip, 16);
	assert_int_equal(rwk_listen(client.channel, &at, &l), 0);
	port = rwk_listener_port(l);
	rwk_listener_close(l);
	return port;
}

/*
 * A stream between addresses that are neither adapter's own, from a port of choice; where the listener is
 * not, nobody is.
 */
static void other_addresses(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	struct rwk_listen_attr at = {.ip = {0}};
	struct rwk_connection_event e;

	(void)state;
	sides_open(RWK_QP_RC);
	ends_ip(at.ip, 3);
	ends_ip(attr.source_ip, 4);
	attr.source_port = free_port(attr.source_ip);
	sides_listen(&at);
	assert_int_equal(
		rwk_connect(client.channel, near.qp, far.ip, rwk_listener_port(listener), &attr, &client.c), 0);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_UNREACHABLE).status, -ECONNREFUSED);
	rwk_connection_destroy(client.c);
	assert_int_equal(rwk_connect(client.channel, near.qp, at.ip, rwk_listener_port(listener), &attr, &client.c), 0);
	e = sides_await(&server, RWK_CONNECTION_REQUEST);
	assert_memory_equal(e.peer_ip, attr.source_ip, 16);
	assert_int_equal(e.peer_port, attr.source_port);
	server.c = e.connection;
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	sides_exchange();
	sides_close();
}

/* From an address that is not the adapter's. */
static void connect_from_elsewhere(struct rwk_connection_attr attr)
{
	struct rwk_connection *c;

	ends_ip(attr.source_ip, 4);
	assert_int_equal(
		rwk_connect(client.channel, near.qp, far.ip, rwk_listener_port(listener), &attr, &c), -EADDRNOTAVAIL);
}

/*
 * By UDP the source is the adapter's: what names another one is refused before anything has gone, and the qp is as if
 * there had been no call.
 */
static void source_by_udp(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);

	(void)state;
	sides_open(RWK_QP_RC);
	sides_listen(&(struct rwk_listen_attr){0});
	connect_from_elsewhere(attr);
	assert_int_equal(sides_state(&client), RWK_QPS_RESET);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	ends_receive(&near, 77, 10);
	connect_from_elsewhere(attr);
	assert_int_equal(sides_state(&client), RWK_QPS_INIT);
	memcpy(attr.source_ip, near.ip, sizeof(near.ip));
	sides_connect(&attr);
	assert_int_equal(ends_request(&far, RWK_REQUEST_SEND, 10, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.receive_cq).id, 77);
	assert_int_equal(ends_await(&far, far.send_cq).status, 0);
	sides_exchange();
	sides_close();
}

/*
 * An adapter of all addresses, which sends from the one that the route has: a client that has connected to another one,
 * and takes packets from there alone, cannot be accepted by UDP. By the right one it can.
 */
static void packets_from_elsewhere(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);
	struct rwk_qp_create_attr create = {.type = RWK_QP_RC, .send_max = 1, .receive_max = 1};
	struct rwk_cq *cq;

	(void)state;
	sides_open_one(&client, &near, 1, RWK_QP_RC);
	memset(&far, 0, sizeof(far));
	server = (struct side){.end = &far};
	assert_int_equal(rwk_adapter_open(&(struct rwk_adapter_attr){.any_port = true}, &far.adapter), 0);
	assert_int_equal(rwk_pd_create(far.adapter, &far.pd), 0);
	assert_int_equal(rwk_cq_create(far.adapter, 2, &cq), 0);
	create.send_cq = create.receive_cq = cq;
	assert_int_equal(rwk_qp_create(far.pd, &create, &far.qp), 0);
	assert_int_equal(rwk_event_channel_create(far.adapter, &server.channel), 0);
	ends_ip(far.ip, 2);
	sides_ask(&attr);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), -EADDRNOTAVAIL);
	assert_int_equal(rwk_reject(server.c, NULL, 0), 0);
	server.c = NULL;
	sides_await(&client, RWK_CONNECTION_REJECTED);
	rwk_connection_destroy(client.c);
	client.c = NULL;
	ends_ip(far.ip, 1);
	sides_connect(&attr);
	sides_close_one(&client);
	rwk_connection_destroy(server.c);
	rwk_listener_close(listener);
	listener = NULL;
	assert_int_equal(rwk_event_channel_destroy(server.channel), 0);
	server.channel = NULL;
	rwk_qp_destroy(far.qp);
	assert_int_equal(rwk_cq_destroy(cq), 0);
	assert_int_equal(rwk_pd_destroy(far.pd), 0);
	assert_int_equal(rwk_adapter_close(far.adapter), 0);
}

/* Who asks for any port has one that nobody has. */
static void any_port(void **state)
{
	struct rwk_adapter_attr attr = {.any_port = true};
	struct rwk_adapter *a, *b;

	(void)state;
	assert_int_equal(rwk_adapter_open(&attr, &a), 0);
	assert_int_equal(rwk_adapter_open(&attr, &b), 0);
	assert_int_not_equal(rwk_adapter_port(a), RWK_PORT);
	assert_int_not_equal(rwk_adapter_port(a), rwk_adapter_port(b));
	assert_int_equal(rwk_adapter_close(a), 0);
	assert_int_equal(rwk_adapter_close(b), 0);
}

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
		by(nobody_there, rc_udp),
		by(nobody_there, rc_stream),
		in_world(other_addresses),
		in_world(source_by_udp),
		in_world(packets_from_elsewhere),
		in_world(any_port),
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

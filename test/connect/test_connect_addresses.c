/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting: by which addresses and ports, at both sides, with packets by UDP, on the simulated network
 * (test_connect_addresses_sim) and on streams.
 */
#include "connect/sides.h"
#include "connect/ways.h"
#include "own_port.h"

/* A port at which nobody listens. */
static void nobody_there(void **state)
{
	const struct way *w = open_way(state);
	struct rwk_connection_attr attr = sides_attr(w->transport, NULL);
	const uint16_t port = own_port();

	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, port, &attr, &client.c), 0);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_UNREACHABLE).status, -ECONNREFUSED);
	assert_int_equal(sides_state(&client), RWK_QPS_INIT);
	sides_close();
}

/* One that somebody listened at a moment ago. */
static uint16_t free_port(const uint8_t ip[16])
{
	struct rwk_listen_attr at = {.port = own_port()};
	struct rwk_listener *l;

	memcpy(at.ip, ip, 16);
	assert_int_equal(rwk_listen(client.channel, &at, &l), 0);
	rwk_listener_close(l);
	return at.port;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		by(nobody_there, rc_udp),
		by(nobody_there, rc_stream),
		in_world(other_addresses),
		in_world(source_by_udp),
		in_world(packets_from_elsewhere),
		in_world(any_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter of all addresses, and a way to its peer on which the kernel chooses another source than before. In a
 * network of this process's own:
 *
 *     client: all addresses  ---- lo, from 127.0.0.5, then from 127.0.0.6 ---->  server: far 127.0.0.2
 *
 * Links: udp.
 */
#define _GNU_SOURCE /* unshare */
#include "connect/sides.h"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
#define FIRST        "127.0.0.5"
#define SECOND       "127.0.0.6"
#define PASSING      "10.9.9.5" /* an address that the client's host has for a while */

struct connected {
	struct rwk_qp *near, *far;
	struct rwk_connection *client, *server;
};

static int choose(const char *ip)
{
	char command[120];

	snprintf(command, sizeof(command), "ip route replace local 127.0.0.2 dev lo table local src %s", ip);
	return system(command);
}

static void open_client(void)
{
	memset(&near, 0, sizeof(near));
	client = (struct side){.end = &near};
	assert_int_equal(rwk_adapter_open(&(struct rwk_adapter_attr){.any_port = true}, &near.adapter), 0);
	assert_int_equal(rwk_pd_create(near.adapter, &near.pd), 0);
	assert_int_equal(rwk_cq_create(near.adapter, DEPTH, &near.send_cq), 0);
	assert_int_equal(rwk_cq_create(near.adapter, DEPTH, &near.receive_cq), 0);
	assert_int_equal(rwk_event_channel_create(near.adapter, &client.channel), 0);
}

static void close_client(void)
{
	assert_int_equal(rwk_event_channel_destroy(client.channel), 0);
	client.channel = NULL;
	assert_int_equal(rwk_cq_destroy(near.send_cq) | rwk_cq_destroy(near.receive_cq), 0);
	assert_int_equal(rwk_pd_destroy(near.pd), 0);
	assert_int_equal(rwk_adapter_close(near.adapter), 0);
}

static struct rwk_qp *make_qp(const struct end *e)
{
	struct rwk_qp_create_attr attr = {
		.type = RWK_QP_RC, .send_cq = e->send_cq, .receive_cq = e->receive_cq, .send_max = 1, .receive_max = 1};
	struct rwk_qp *qp;

	assert_int_equal(rwk_qp_create(e->pd, &attr, &qp), 0);
	return qp;
}

static void check_passes(const struct connected *c)
{
	near.qp = c->near;
	far.qp = c->far;
	assert_int_equal(rwk_qp_post_receive(far.qp, &(struct rwk_receive){0}), 0);
	assert_int_equal(rwk_qp_post(near.qp, &(struct rwk_request){0}), 0);
	assert_int_equal(ends_await(&far, far.receive_cq).status, 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
}

/* The server sees the client at that address, and has not answered. */
static struct connected ask_from(const char *ip, enum rwk_connection_transport transport)
{
	struct rwk_connection_attr attr = sides_attr(transport, NULL);
	struct connected c = {.near = make_qp(&near), .far = make_qp(&far)};

	near.qp = c.near;
	ends_ip(near.ip, 0);
	assert_int_equal(inet_pton(AF_INET, ip, near.ip + 12), 1);
	sides_ask(&attr);
	c.client = client.c;
	c.server = server.c;
	client.c = server.c = NULL;
	return c;
}

/* Packets, too, come from where the server has seen the client. */
static void answer(const struct connected *c)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);

	client.c = c->client;
	server.c = c->server;
	assert_int_equal(rwk_accept(server.c, c->far, &attr), 0);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	client.c = server.c = NULL;
	check_passes(c);
}

static struct connected connect_from(const char *ip, enum rwk_connection_transport transport)
{
	struct connected c = ask_from(ip, transport);

	answer(&c);
	return c;
}

static void end(const struct connected *c)
{
	rwk_connection_destroy(c->client);
	rwk_connection_destroy(c->server);
	rwk_qp_destroy(c->near);
	rwk_qp_destroy(c->far);
}

/* As long as a qp is connected there, the source stays: for it, and for who connects beside it. */
static void source_changes(void **state)
{
	struct connected first, second;
	struct rwk_qp *qp;

	(void)state;
	assert_int_equal(choose(FIRST), 0);
	open_client();
	sides_open_one(&server, &far, 2, RWK_QP_RC);
	qp = far.qp;
	first = connect_from(FIRST, RWK_TRANSPORT_UDP);
	assert_int_equal(choose(SECOND), 0);
	second = connect_from(FIRST, RWK_TRANSPORT_UDP);
	check_passes(&first);
	end(&first);
	end(&second);
	first = connect_from(SECOND, RWK_TRANSPORT_UDP);
	end(&first);
	close_client();
	far.qp = qp;
	sides_close_one(&server);
}

/* And as long as one is being connected there: until that is given up, or once it is connected. */
static void source_changes_meanwhile(void **state)
{
	struct connected given_up, first, second;
	struct rwk_qp *qp;

	(void)state;
	assert_int_equal(choose(FIRST), 0);
	open_client();
	sides_open_one(&server, &far, 2, RWK_QP_RC);
	qp = far.qp;
	given_up = ask_from(FIRST, RWK_TRANSPORT_UDP);
	assert_int_equal(choose(SECOND), 0);
	first = ask_from(FIRST, RWK_TRANSPORT_UDP);
	second = connect_from(FIRST, RWK_TRANSPORT_UDP);
	end(&second);
	answer(&first);
	end(&first);
	second = ask_from(FIRST, RWK_TRANSPORT_UDP);
	end(&second);
	end(&given_up);
	first = connect_from(SECOND, RWK_TRANSPORT_UDP);
	end(&first);
	close_client();
	far.qp = qp;
	sides_close_one(&server);
}

/* The source of a connected qp's packets is gone; a stream to that host comes from the address that is there now. */
static void source_passes(void **state)
{
	struct connected by_udp, stream;
	struct rwk_qp *qp;

	(void)state;
	assert_int_equal(system("ip addr add " PASSING "/32 dev lo"), 0);
	assert_int_equal(choose(PASSING), 0);
	open_client();
	sides_open_one(&server, &far, 2, RWK_QP_RC);
	qp = far.qp;
	by_udp = connect_from(PASSING, RWK_TRANSPORT_UDP);
	assert_int_equal(system("ip addr del " PASSING "/32 dev lo"), 0);
	assert_int_equal(choose(SECOND), 0);
	stream = connect_from(SECOND, RWK_TRANSPORT_STREAM);
	end(&stream);
	assert_int_equal(system("ip addr add " PASSING "/32 dev lo"), 0); /* else its end cannot be told */
	end(&by_udp);
	close_client();
	far.qp = qp;
	sides_close_one(&server);
}

/* No way: no path MTU either, from wherever. */
static void no_way(void **state)
{
	static const uint8_t nowhere[16] = {[10] = 0xff, 0xff, 203, 0, 113, 1};
	struct rwk_qp_attr attr = {.peer_qpn = 77};

	(void)state;
	memcpy(attr.peer_ip, nowhere, sizeof(nowhere));
	open_client();
	assert_int_equal(rwk_adapter_pmtu(near.adapter, nowhere), 0);
	near.qp = make_qp(&near);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTR, &attr), -ENETUNREACH);
	rwk_qp_destroy(near.qp);
	close_client();
	ends_open_adapter(&near, 1);
	assert_int_equal(rwk_adapter_pmtu(near.adapter, nowhere), 0);
	assert_int_equal(rwk_adapter_close(near.adapter), 0);
}

static int limit_ports(unsigned first, unsigned last)
{
	char command[80];

	snprintf(command, sizeof(command), "echo %u %u > /proc/sys/net/ipv4/ip_local_port_range", first, last);
	return system(command);
}

/* No port is free for the socket that asks the kernel: that is not to say that there is no way. */
static void no_port(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct end one = {0};

	(void)state;
	open_client();
	ends_open_adapter(&one, 1);
	ends_ip(far.ip, 2);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(limit_ports(ntohs(at.sin_port), ntohs(at.sin_port)), 0);
	assert_int_not_equal(rwk_adapter_pmtu(near.adapter, far.ip), 0);
	assert_int_not_equal(rwk_adapter_pmtu(one.adapter, far.ip), 0);
	assert_int_equal(limit_ports(32768, 60999), 0);
	close(fd);
	assert_int_equal(rwk_adapter_close(one.adapter), 0);
	close_client();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_changes),
		cmocka_unit_test(source_changes_meanwhile),
		cmocka_unit_test(source_passes),
		cmocka_unit_test(no_way),
		cmocka_unit_test(no_port),
	};

	if (unshare(CLONE_NEWNET) || system("ip link set lo up") || choose(FIRST)) {
		print_message("no network of its own, whose routes could change\n");
		return EXIT_SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

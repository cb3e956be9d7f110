/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In debug builds a call on connections ends the program, and names itself, when it is given an object that was
 * destroyed, or one of another kind. Other builds do not look, and do not run this.
 */
#include "connect/sides.h"

#include "channel_adapter/misuse.h"

static struct rwk_adapter *dead_adapter;
static struct rwk_event_channel *dead_channel, *channel;
static struct rwk_listener *dead_listener;
static struct rwk_connection *dead, *rejected, *out;
static struct rwk_qp *dead_qp;
static struct rwk_connection_attr attr;
static struct rwk_connection_event event;

static void channel_of_dead_adapter(void)
{
	rwk_event_channel_create(dead_adapter, &channel);
}

static void poll_channel(void)
{
	rwk_event_channel_poll(dead_channel, &event);
}

static void fd_of_channel(void)
{
	rwk_event_channel_fd(dead_channel);
}

static void destroy_channel_twice(void)
{
	rwk_event_channel_destroy(dead_channel);
}

static void listen_at_dead_channel(void)
{
	rwk_listen(dead_channel, &(struct rwk_listen_attr){0}, &dead_listener);
}

static void port_of_listener(void)
{
	rwk_listener_port(dead_listener);
}

static void counters_of_listener(void)
{
	struct rwk_listener_counters c;

	rwk_listener_get_counters(dead_listener, &c);
}

static void close_listener_twice(void)
{
	rwk_listener_close(dead_listener);
}

static void connect_at_dead_channel(void)
{
	rwk_connect(dead_channel, near.qp, far.ip, 1, &attr, &out);
}

static void connect_dead_qp(void)
{
	rwk_connect(client.channel, dead_qp, far.ip, 1, &attr, &out);
}

static void convert_dead_qp(void)
{
	rwk_convert(client.channel, dead_qp, 0, &attr, &out);
}

static void accept_again(void)
{
	rwk_accept(dead, near.qp, &attr);
}

static void accept_what_was_rejected(void)
{
	rwk_accept(rejected, far.qp, &attr);
}

static void reject_twice(void)
{
	rwk_reject(rejected, NULL, 0);
}

static void fd_of_connection(void)
{
	rwk_connection_fd(dead);
}

static void enter(void)
{
	rwk_connection_enter(dead);
}

static void disconnect(void)
{
	rwk_disconnect(dead);
}

static void destroy_twice(void)
{
	rwk_connection_destroy(dead);
}

static void other_kind(void)
{
	rwk_connection_destroy((struct rwk_connection *)near.qp);
}

static const struct misuse cases[] = {
	{"rwk_event_channel_create", channel_of_dead_adapter},
	{"rwk_event_channel_poll", poll_channel},
	{"rwk_event_channel_fd", fd_of_channel},
	{"rwk_event_channel_destroy", destroy_channel_twice},
	{"rwk_listen", listen_at_dead_channel},
	{"rwk_listener_port", port_of_listener},
	{"rwk_listener_get_counters", counters_of_listener},
	{"rwk_listener_close", close_listener_twice},
	{"rwk_connect", connect_at_dead_channel},
	{"rwk_connect", connect_dead_qp},
	{"rwk_convert", convert_dead_qp},
	{"rwk_accept", accept_again},
	{"rwk_accept", accept_what_was_rejected},
	{"rwk_reject", reject_twice},
	{"rwk_connection_fd", fd_of_connection},
	{"rwk_connection_enter", enter},
	{"rwk_disconnect", disconnect},
	{"rwk_connection_destroy", destroy_twice},
	{"rwk_connection_destroy", other_kind},
};

/* One of each is made and destroyed; the sides' own live on. */
static void make_dead(void)
{
	struct rwk_qp_create_attr create = {.type = RWK_QP_RC,
		.send_cq = near.send_cq,
		.receive_cq = near.receive_cq,
		.send_max = 1,
		.receive_max = 1};
	struct end second;

	attr = sides_attr(RWK_TRANSPORT_UDP, NULL);
	ends_open_adapter(&second, 3);
	dead_adapter = second.adapter;
	assert_int_equal(rwk_adapter_close(dead_adapter), 0);
	assert_int_equal(rwk_event_channel_create(near.adapter, &dead_channel), 0);
	assert_int_equal(rwk_event_channel_destroy(dead_channel), 0);
	assert_int_equal(rwk_qp_create(near.pd, &create, &dead_qp), 0);
	rwk_qp_destroy(dead_qp);
	sides_ask(&attr);
	rejected = server.c;
	server.c = NULL;
	assert_int_equal(rwk_reject(rejected, NULL, 0), 0);
	sides_await(&client, RWK_CONNECTION_REJECTED);
	dead = client.c;
	client.c = NULL;
	rwk_connection_destroy(dead);
	dead_listener = listener;
	rwk_listener_close(listener);
	listener = NULL;
}

static void caught(void **state)
{
	(void)state;
	sides_open(RWK_QP_RC);
	make_dead();
	misuses_are_caught(cases, sizeof(cases) / sizeof(cases[0]));
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caught),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

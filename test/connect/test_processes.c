/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ends of a connection in two processes: the client is another one of this program, which leaves, is stopped,
 * or is killed.
 *
 *     client: near 127.0.0.1  ----->  server: far 127.0.0.2, this process
 *
 * Links: udp, tcp.
 */
#include "connect/sides.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct way {
	enum rwk_qp_type service;
	enum rwk_connection_transport transport;
} rc_udp = {RWK_QP_RC, RWK_TRANSPORT_UDP}, rc_stream = {RWK_QP_RC, RWK_TRANSPORT_STREAM},
  uc_stream = {RWK_QP_UC, RWK_TRANSPORT_STREAM};

#define by(f, w)                                                                                                       \
	{                                                                                                              \
		.name = #f ", " #w, .test_func = f, .initial_state = &w,                                               \
	}

/* The other program: sends 1000 bytes, and once it has got 2000 goes on until it hears of the end, or is killed. */
static int be_client(enum rwk_qp_type service, enum rwk_connection_transport transport, uint16_t port)
{
	struct rwk_connection_attr attr = sides_attr(transport, "another process");
	uint8_t ip[16];

	alarm(60); /* whatever becomes of the first one */
	sides_open_one(&client, &near, 1, service);
	ends_ip(ip, 2);
	assert_int_equal(rwk_connect(client.channel, near.qp, ip, port, &attr, &client.c), 0);
	ends_receive(&near, 1, 2000);
	ends_receive(&near, 2, 1);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 1000, 0, 0), 0);
	assert_int_equal(ends_await(&near, near.send_cq).status, 0);
	assert_int_equal(ends_await(&near, near.receive_cq).length, 2000);
	if (ends_await(&near, near.receive_cq).status == 0) /* the word to leave */
		assert_int_equal(rwk_disconnect(client.c), 0);
	sides_await(&client, RWK_CONNECTION_DISCONNECTED);
	sides_close_one(&client);
	return 0;
}

static pid_t start_client(const struct way *w)
{
	char service[8], transport[8], port[8];
	pid_t child;

	snprintf(service, sizeof(service), "%d", (int)w->service);
	snprintf(transport, sizeof(transport), "%d", (int)w->transport);
	snprintf(port, sizeof(port), "%d", rwk_listener_port(listener));
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		execl("/proc/self/exe", "test_processes", service, transport, port, (char *)NULL);
		_exit(127);
	}
	return child;
}

/* A client is there, and both have heard of each other. */
static pid_t meet(void **state)
{
	const struct way *w = *state;
	struct rwk_connection_attr attr = sides_attr(0, NULL);
	struct rwk_connection_event e;
	pid_t child;

	sides_open_one(&server, &far, 2, w->service);
	sides_listen(&(struct rwk_listen_attr){0});
	child = start_client(w);
	e = sides_await(&server, RWK_CONNECTION_REQUEST);
	assert_int_equal(e.private_length, strlen("another process"));
	server.c = e.connection;
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_INIT, NULL), 0);
	ends_receive(&far, 1, 1000);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(ends_await(&far, far.receive_cq).length, 1000);
	assert_int_equal(ends_request(&far, RWK_REQUEST_SEND, 2000, 0, 0), 0);
	assert_int_equal(ends_await(&far, far.send_cq).status, 0);
	return child;
}

static int end_of(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* S4-6, S4-11: two processes, by both transports; the one leaves, and the other hears that it did so in good order. */
static void s4_6_leaves(void **state)
{
	pid_t child = meet(state);

	assert_int_equal(ends_request(&far, RWK_REQUEST_SEND, 1, 0, 0), 0);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ESHUTDOWN);
	assert_int_equal(end_of(child), 0);
	sides_close_one(&server);
}

/* This end leaves: the other process hears of it and ends as it should. */
static void s4_6_is_left(void **state)
{
	pid_t child = meet(state);
	int status;

	assert_int_equal(rwk_disconnect(server.c), 0);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, 0);
	while (waitpid(child, &status, WNOHANG) == 0)
		sides_poll(); /* the good-bye, and what was on the way */
	assert_int_equal(status, 0);
	sides_close_one(&server);
}

/* Stopped is not dead: no event. Killed is: at once, though nothing was under way, and what is posted comes back. */
static void killed(void **state)
{
	pid_t child = meet(state);

	assert_int_equal(kill(child, SIGSTOP), 0);
	sides_no_event(&server);
	assert_int_equal(sides_state(&server), RWK_QPS_RTS);
	ends_receive(&far, 8, 10);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ECONNRESET);
	assert_int_equal(sides_state(&server), RWK_QPS_ERR);
	assert_int_equal(ends_await(&far, far.receive_cq).status, -ECANCELED);
	assert_true(WIFSIGNALED(end_of(child)));
	sides_close_one(&server);
}

/* Killed while the server's program thinks about the answer. */
static void killed_before_the_answer(void **state)
{
	struct rwk_connection_attr attr = sides_attr(0, NULL);
	const struct way *w = *state;
	pid_t child;

	sides_open_one(&server, &far, 2, w->service);
	sides_listen(&(struct rwk_listen_attr){0});
	child = start_client(w);
	server.c = sides_await(&server, RWK_CONNECTION_REQUEST).connection;
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_true(WIFSIGNALED(end_of(child)));
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ECONNRESET);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), -ENOTCONN);
	sides_close_one(&server);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		by(s4_6_leaves, rc_udp),
		by(s4_6_leaves, rc_stream),
		by(s4_6_leaves, uc_stream),
		by(s4_6_is_left, rc_udp),
		by(s4_6_is_left, uc_stream),
		by(killed, rc_udp),
		by(killed, rc_stream),
		by(killed, uc_stream),
		by(killed_before_the_answer, rc_udp),
	};

	if (argc == 4)
		return be_client(atoi(argv[1]), atoi(argv[2]), (uint16_t)atoi(argv[3]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

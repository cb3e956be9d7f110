/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the other end of a connection has, and hears, when one end leaves it: all that was sent before, and why it
 * ended.
 *
 *     client: near 127.0.0.1  ----->  server: far 127.0.0.2
 *
 * Links: udp, tcp.
 */
#define _GNU_SOURCE /* struct mmsghdr */
#include "connect/sides.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDS   50u
#define LENGTH  REGION /* of a message on a stream that has little room: bytes */
#define STREAMS 2u     /* such messages that its buffer holds */
#define FEW     20u

/* The kernel has no room for datagrams; and how often it has been asked for some. */
static bool full;
static unsigned refused;

static bool refuses(int fd)
{
	socklen_t len = sizeof(int);
	int type = 0;

	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
	if (!full || type != SOCK_DGRAM)
		return false;
	refused++;
	errno = EAGAIN;
	return true;
}

ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
	return refuses(fd) ? -1 : syscall(SYS_sendto, fd, buf, n, flags, to, len);
}

ssize_t sendmsg(int fd, const struct msghdr *h, int flags)
{
	return refuses(fd) ? -1 : syscall(SYS_sendmsg, fd, h, flags);
}

int sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	return refuses(fd) ? -1 : (int)syscall(SYS_sendmmsg, fd, m, n, flags);
}

static void await_all(struct rwk_cq *cq, unsigned count)
{
	uint64_t end = sides_ms() + 20000;
	struct rwk_wc wc;

	while (count) {
		if (rwk_cq_poll(cq, &wc, 1)) {
			assert_int_equal(wc.status, 0);
			count--;
		}
		assert_true(sides_ms() < end);
	}
}

static void send_all(void)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);

	sides_connect(&attr);
	for (unsigned i = 0; i < SENDS; i++) {
		ends_receive(&far, i, 8);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
		assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
	}
}

static void see_end(struct side *left, struct side *leaver)
{
	assert_int_equal(sides_await(left, RWK_CONNECTION_DISCONNECTED).status, -ESHUTDOWN);
	assert_int_equal(sides_await(leaver, RWK_CONNECTION_DISCONNECTED).status, 0);
	sides_close();
}

/* By UDP: one has received all and leaves; what it has acknowledged until then is done, whenever the other looks. */
static void acknowledged_and_left(void **state)
{
	(void)state;
	sides_open(RWK_QP_RC);
	send_all();
	await_all(far.receive_cq, SENDS);
	assert_int_equal(rwk_disconnect(server.c), 0);
	await_all(near.send_cq, SENDS);
	see_end(&client, &server);
}

/* By UDP: one has sent all and leaves; it is received, whenever the other looks. */
static void sent_and_left(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);

	(void)state;
	sides_open(RWK_QP_UC);
	sides_connect(&attr);
	for (unsigned i = 0; i < SENDS; i++) {
		ends_receive(&far, i, 8);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	}
	await_all(near.send_cq, SENDS);
	assert_int_equal(rwk_disconnect(client.c), 0);
	await_all(far.receive_cq, SENDS);
	see_end(&server, &client);
}

/* By UDP: the other leaves while what we send finds no room. That nothing of the other's is here is soon found out. */
static void left_when_full(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);
	uint64_t end = sides_ms() + 20000;
	unsigned most = 0; /* in one call */

	(void)state;
	sides_open(RWK_QP_UC);
	sides_connect(&attr);
	assert_int_equal(rwk_disconnect(server.c), 0);
	full = true;
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, REGION, 0, 0), 0);
	assert_true(refused > 0);
	while (!client.count && sides_ms() < end) {
		refused = 0;
		sides_poll();
		most = refused > most ? refused : most;
	}
	full = false;
	assert_in_range(most, 1, FEW);
	see_end(&client, &server);
}

static void hold_little(int fd, int buffer)
{
	int little = 16384;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, buffer, &little, sizeof(little)), 0);
}

/* A TCP connection whose kernel holds little. */
static void narrow_tcp(int fd[2])
{
	sides_tcp(fd);
	hold_little(fd[0], SO_SNDBUF);
	hold_little(fd[1], SO_RCVBUF);
}

static void convert(int fd[2])
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);

	assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &attr, &client.c), 0);
	assert_int_equal(rwk_convert(server.channel, far.qp, fd[1], &attr, &server.c), 0);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
}

static struct {
	bool talks; /* says something all the time */
	unsigned received;
	int status; /* of the end; 1: it has not come */
} heard;

/* The server's program, in a thread of its own. */
static void *serve(void *unused)
{
	uint64_t end = sides_ms() + 20000;
	struct rwk_connection_event e;
	struct rwk_wc wc;

	while (heard.status == 1 && sides_ms() < end) {
		if (rwk_event_channel_poll(server.channel, &e))
			heard.status = e.status;
		while (rwk_cq_poll(far.receive_cq, &wc, 1))
			heard.received += !wc.status;
		if (heard.talks)
			ends_request(&far, RWK_REQUEST_SEND, 8, 0, 0);
		while (rwk_cq_poll(far.send_cq, &wc, 1))
			;
	}
	return unused;
}

/* The client sends messages, leaves, and closes its adapter; the server has all of them. */
static void leave_by(int fd[2], bool server_talks)
{
	pthread_t server_program;

	convert(fd);
	for (unsigned i = 0; i < STREAMS; i++) {
		ends_receive(&far, i, LENGTH);
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, LENGTH, 0, 0), 0);
	}
	await_all(near.send_cq, STREAMS);
	assert_int_equal(rwk_disconnect(client.c), 0);
	heard.talks = server_talks;
	heard.received = 0;
	heard.status = 1;
	if (server_talks)
		assert_int_equal(ends_request(&far, RWK_REQUEST_SEND, 8, 0, 0), 0);
	assert_int_equal(pthread_create(&server_program, NULL, serve, NULL), 0);
	sides_close_one(&client);
	assert_int_equal(pthread_join(server_program, NULL), 0);
	assert_int_equal(heard.received, STREAMS);
	assert_int_equal(heard.status, -ESHUTDOWN);
	sides_close_one(&server);
}

/* On a stream: UC has completed what lies in our buffer. Its adapter is closed only when that has gone. */
static void sent_and_closed(void **state)
{
	int fd[2];

	(void)state;
	sides_open(RWK_QP_UC);
	narrow_tcp(fd);
	leave_by(fd, false);
}

/*
 * It has gone to our kernel, which has to wait with most of it, and would drop that when the server says something to a
 * socket that is closed.
 */
static void sent_to_talker_and_closed(void **state)
{
	int fd[2];

	(void)state;
	sides_open(RWK_QP_UC);
	sides_tcp(fd);
	hold_little(fd[1], SO_RCVBUF);
	leave_by(fd, true);
}

/* A peer that takes nothing: the wait has an end. */
static void closed_in_vain(void **state)
{
	uint64_t begin;
	int fd[2];

	(void)state;
	sides_open(RWK_QP_UC);
	narrow_tcp(fd);
	convert(fd);
	for (unsigned i = 0; i < STREAMS; i++)
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, LENGTH, 0, 0), 0);
	await_all(near.send_cq, STREAMS);
	begin = sides_ms();
	sides_close_one(&client);
	assert_in_range(sides_ms() - begin, 1900, 15000);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ECONNRESET);
	sides_close_one(&server);
}

static pid_t fork_child(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	alarm(60);
	pause();
	_exit(0);
}

static void end_child(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A child of this program holds its sockets, too: who is hung up on hears of it all the same. */
static void hung_up_on(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	pid_t child;

	(void)state;
	sides_open(RWK_QP_RC);
	attr.patient = true;
	sides_ask(&attr);
	child = fork_child();
	rwk_connection_destroy(server.c);
	server.c = NULL;
	assert_int_equal(sides_await(&client, RWK_CONNECTION_UNREACHABLE).status, -ECONNRESET);
	end_child(child);
	sides_close();
}

/* The same of a stream on which there was no frame. */
static void breach_with_child(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	static const uint32_t too_long = 0x10000000;
	struct timeval patience = {.tv_sec = 20};
	pid_t child;
	char byte;
	int fd[2];

	(void)state;
	sides_open(RWK_QP_RC);
	sides_tcp(fd);
	attr.told = true;
	attr.qp.peer_qpn = 77;
	assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &attr, &client.c), 0);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	child = fork_child();
	assert_int_equal(setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(send(fd[1], &too_long, sizeof(too_long), 0), sizeof(too_long));
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -EPROTO);
	assert_true(recv(fd[1], &byte, 1, 0) == 0 || errno == ECONNRESET);
	end_child(child);
	close(fd[1]);
	sides_close();
}

static void check_reset(int fd)
{
	struct timeval patience = {.tv_sec = 20};
	char byte;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
}

/*
 * A child holds the socket of a listener that is closed, whose port was the kernel's choice, or this program's: nobody
 * waits there, and another listener has the port.
 */
static void closed_listener_with_child(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	struct rwk_listen_attr at = {0};

	(void)state;
	attr.patient = true;
	sides_open(RWK_QP_RC);
	sides_listen(&at);
	for (unsigned i = 0; i < 2; i++) {
		int waiting = sides_bare();
		pid_t child = fork_child();

		at.port = rwk_listener_port(listener);
		rwk_listener_close(listener);
		check_reset(waiting);
		assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, at.port, &attr, &client.c), 0);
		assert_int_equal(sides_await(&client, RWK_CONNECTION_UNREACHABLE).status, -ECONNREFUSED);
		rwk_connection_destroy(client.c);
		client.c = NULL;
		sides_listen(&at);
		end_child(child);
	}
	sides_close();
}

/* By UDP to no address in particular: that is this host's, and packets come from the one that the connection has. */
static void to_no_address(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);

	(void)state;
	sides_open_one(&client, &near, 1, RWK_QP_RC);
	sides_open_one(&server, &far, 1, RWK_QP_RC);
	memset(far.ip + 12, 0, 4);
	sides_connect(&attr);
	sides_exchange();
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledged_and_left),
		cmocka_unit_test(sent_and_left),
		cmocka_unit_test(left_when_full),
		cmocka_unit_test(sent_and_closed),
		cmocka_unit_test(sent_to_talker_and_closed),
		cmocka_unit_test(closed_in_vain),
		cmocka_unit_test(hung_up_on),
		cmocka_unit_test(breach_with_child),
		cmocka_unit_test(closed_listener_with_child),
		cmocka_unit_test(to_no_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

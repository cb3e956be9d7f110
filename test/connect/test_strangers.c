/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Those who are no friends, as bare sockets on loopback: towards a listener of ours, and in place of a listener towards
 * a client of ours. Garbage, halves, silence, too much, hanging up at any byte. None of it blocks, is answered, or
 * keeps others from being served.
 */
#include "connect/sides.h"
#include "full_sets.h"

#include "connect/message.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a good client asks for. */
static size_t good(uint8_t out[RWK_CM_MAX])
{
	static const uint8_t private_data[10];
	struct rwk_cm m = {.type = RWK_CM_REQUEST,
		.reads = 16,
		.udp_port = 1234,
		.pmtu = 256,
		.qpn = 99,
		.psn = 5,
		.private_length = sizeof(private_data),
		.private_data = private_data};

	return rwk_cm_pack(&m, out);
}

static size_t bare_message(enum rwk_cm_type type, uint8_t out[RWK_CM_MAX])
{
	return rwk_cm_pack(&(struct rwk_cm){.type = type}, out);
}

static void put(int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

static struct rwk_listener_counters counted(void)
{
	struct rwk_listener_counters c;

	rwk_listener_get_counters(listener, &c);
	return c;
}

/* It is hung up on, without an answer. */
static void hung_up(int fd)
{
	char byte;
	ssize_t n;

	for (uint64_t end = sides_ms() + 20000; (n = recv(fd, &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN;) {
		assert_true(sides_ms() < end);
		sides_poll();
	}
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
	close(fd);
}

static void until_counted(uint64_t connected)
{
	for (uint64_t end = sides_ms() + 20000; counted().connected < connected; sides_poll())
		assert_true(sides_ms() < end);
	sides_poll();
}

/* An ordinary client is served as ever. */
static void others_are_served(void)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);

	sides_connect(&attr);
	sides_exchange();
}

static void open_listening(const struct rwk_listen_attr *attr)
{
	sides_open(RWK_QP_RC);
	sides_listen(attr);
}

/* Something else, from the first byte on or later: hung up on as soon as it can be seen. */
static void garbage(void **state)
{
	static const char get[] = "GET / HTTP/1.1\r\n\r\n";
	uint8_t bytes[1000], request[RWK_CM_MAX];
	uint64_t expected = 0;
	int fd;

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	good(request);
	for (size_t n = 0; n <= 10; n++) {
		memcpy(bytes, request, n);
		bytes[n] = (uint8_t)(request[n] ^ 0x55); /* the first wrong one, and nothing behind it */
		fd = sides_bare();
		put(fd, bytes, n < 9 ? n + 1 : RWK_CM_HEAD);
		hung_up(fd);
		assert_int_equal(counted().strangers, ++expected);
	}
	fd = sides_bare();
	put(fd, get, sizeof(get));
	hung_up(fd);
	memset(bytes, 0xff, sizeof(bytes));
	fd = sides_bare();
	put(fd, bytes, sizeof(bytes));
	hung_up(fd);
	for (unsigned i = RWK_CM_ACCEPT; i <= RWK_CM_READY; i++) { /* a message, but no question */
		fd = sides_bare();
		bare_message(i, bytes);
		put(fd, bytes, RWK_CM_HEAD);
		hung_up(fd);
	}
	assert_int_equal(counted().strangers, expected + 5);
	assert_int_equal(counted().requests, 0);
	others_are_served();
	sides_close();
}

/* Too long: more private data than there may be is seen by its length. */
static void too_long(void **state)
{
	uint8_t bytes[RWK_CM_MAX + 100] = {0};
	int fd;

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	good(bytes);
	bytes[18] = 1;
	bytes[19] = 1; /* 257 */
	fd = sides_bare();
	put(fd, bytes, sizeof(bytes));
	hung_up(fd);
	assert_int_equal(counted().strangers, 1);
	sides_close();
}

/* Nothing, or half of it, and then silence: for so long, and no longer. */
static void silence(void **state)
{
	uint8_t bytes[RWK_CM_MAX];
	size_t len = good(bytes);
	static const size_t said[] = {0, 1, 8, RWK_CM_HEAD - 1, RWK_CM_HEAD, RWK_CM_HEAD + 9};
	uint64_t begun = sides_ms();
	int fd[6];

	(void)state;
	open_listening(&(struct rwk_listen_attr){.timeout_ms = 100});
	assert_int_equal(len, RWK_CM_HEAD + 10);
	for (unsigned i = 0; i < 6; i++) {
		fd[i] = sides_bare();
		put(fd[i], bytes, said[i]);
	}
	for (unsigned i = 0; i < 6; i++)
		hung_up(fd[i]);
	assert_true(sides_ms() >= begun + 100);
	assert_int_equal(counted().silent, 6);
	rwk_listener_close(listener); /* a friend may need longer on a busy machine */
	sides_listen(&(struct rwk_listen_attr){0});
	others_are_served();
	sides_close();
}

/* A byte at a time is as good as all at once. */
static void byte_by_byte(void **state)
{
	uint8_t bytes[RWK_CM_MAX];
	size_t len = good(bytes);
	int fd;

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	fd = sides_bare();
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(server.count, 0);
		put(fd, &bytes[i], 1);
		sides_poll();
	}
	server.c = sides_await(&server, RWK_CONNECTION_REQUEST).connection;
	assert_int_equal(rwk_reject(server.c, NULL, 0), 0);
	server.c = NULL;
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), RWK_CM_HEAD);
	assert_int_equal(bytes[9], RWK_CM_REJECT);
	close(fd);
	sides_close();
}

/* Hanging up behind any byte of the question. The program hears nothing of it. */
static void closes_anywhere(void **state)
{
	uint8_t bytes[RWK_CM_MAX];
	size_t len = good(bytes);

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	for (size_t n = 0; n < len; n++) {
		int fd = sides_bare();

		put(fd, bytes, n);
		if (n % 2) /* half of them after it was looked at */
			until_counted(n + 1);
		close(fd);
	}
	for (uint64_t end = sides_ms() + 20000; counted().silent < len; sides_poll())
		assert_true(sides_ms() < end);
	assert_int_equal(counted().silent, len);
	assert_int_equal(counted().strangers, 0);
	sides_no_event(&server);
	others_are_served();
	sides_close();
}

/* A client by hand that was accepted hangs up behind any byte of its READY, or says something else in its place. */
static void not_ready(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);
	uint8_t request[RWK_CM_MAX], ready[RWK_CM_MAX], accept[RWK_CM_HEAD];
	size_t len = good(request);

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	bare_message(RWK_CM_READY, ready);
	for (size_t n = 0; n <= RWK_CM_HEAD; n++) {
		int fd = sides_bare();

		put(fd, request, len);
		server.c = sides_await(&server, RWK_CONNECTION_REQUEST).connection;
		assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
		assert_int_equal(sides_state(&server), RWK_QPS_RTR);
		assert_int_equal(recv(fd, accept, sizeof(accept), MSG_WAITALL), RWK_CM_HEAD);
		if (n == RWK_CM_HEAD)
			put(fd, request, len); /* again, in place of READY */
		else
			put(fd, ready, n);
		if (n < RWK_CM_HEAD)
			close(fd);
		assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status,
			n < RWK_CM_HEAD ? -ECONNRESET : -EPROTO);
		if (n == RWK_CM_HEAD)
			close(fd);
		assert_int_equal(sides_state(&server), RWK_QPS_ERR);
		rwk_connection_destroy(server.c);
		server.c = NULL;
		assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
	}
	sides_close();
}

/* One that was accepted and says nothing more: that wait has an end, too. */
static void never_ready(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	uint8_t request[RWK_CM_MAX];
	int fd;

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	fd = sides_bare();
	put(fd, request, good(request));
	server.c = sides_await(&server, RWK_CONNECTION_REQUEST).connection;
	attr.timeout_ms = 50;
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_TIMED_OUT).status, -ETIMEDOUT);
	close(fd);
	sides_close();
}

static void reset(int fd)
{
	struct linger none = {.l_onoff = 1};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
	close(fd);
}

/* Its connection has been reset, which the next look tells; then its descriptor is quiet. */
static void heard_of_reset(struct side *s)
{
	struct pollfd p = {.fd = rwk_event_channel_fd(s->channel), .events = POLLIN};
	struct rwk_connection_event e;

	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(rwk_event_channel_poll(s->channel, &e), 1);
	assert_int_equal(e.type, RWK_CONNECTION_DISCONNECTED);
	assert_int_equal(e.status, -ECONNRESET);
	assert_int_equal(rwk_event_channel_poll(s->channel, &e), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
}

/* All that a client has to say came at once, and it was gone before it was accepted: the ACCEPT cannot go. */
static void gone_when_accepted(void **state)
{
	uint8_t said[2 * RWK_CM_MAX];
	size_t len = good(said);

	(void)state;
	len += bare_message(RWK_CM_READY, said + len);
	for (unsigned patient = 0; patient < 2; patient++) {
		struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);
		int fd;

		attr.patient = patient;
		open_listening(&(struct rwk_listen_attr){.patient = patient});
		fd = sides_bare();
		put(fd, said, len);
		server.c = sides_await(&server, RWK_CONNECTION_REQUEST).connection;
		reset(fd);
		assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
		heard_of_reset(&server);
		sides_close();
	}
}

/* More strangers than may be there at once: who came first goes, and whoever knows what to say is served. */
static void too_many(void **state)
{
	int fd[8];

	(void)state;
	open_listening(&(struct rwk_listen_attr){.backlog = 3});
	for (unsigned i = 0; i < 8; i++) {
		fd[i] = sides_bare();
		until_counted(i + 1);
		if (i >= 3)
			hung_up(fd[i - 3]);
		assert_int_equal(counted().silent, i >= 3 ? i - 2 : 0);
	}
	others_are_served();
	for (unsigned i = 5; i < 8; i++)
		close(fd[i]);
	sides_close();
}

/* More questions than the program may leave unanswered: those that come then are hung up on, and nobody else. */
static void too_many_questions(void **state)
{
	uint8_t request[RWK_CM_MAX];
	size_t len = good(request);
	struct rwk_connection *c[2];
	int fd[3];

	(void)state;
	open_listening(&(struct rwk_listen_attr){.backlog = 2});
	for (unsigned i = 0; i < 3; i++) {
		fd[i] = sides_bare();
		put(fd[i], request, len);
		until_counted(i + 1);
	}
	hung_up(fd[2]);
	assert_int_equal(counted().refused, 1);
	for (unsigned i = 0; i < 2; i++)
		c[i] = sides_await(&server, RWK_CONNECTION_REQUEST).connection;
	rwk_connection_destroy(c[0]);
	hung_up(fd[0]);
	assert_int_equal(rwk_reject(c[1], NULL, 0), 0);
	close(fd[1]);
	others_are_served();
	sides_close();
}

static int next_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Who could not be heard is not waited for: neither one who asks, nor one who is asked. */
static void no_watch_left(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	uint8_t request[RWK_CM_MAX];
	int next, fd;

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	sets_are_full = true;
	fd = sides_bare();
	put(fd, request, good(request));
	hung_up(fd);
	assert_int_equal(counted().refused, 1);
	assert_int_equal(counted().requests, 0);
	next = next_descriptor();
	assert_int_equal(
		rwk_connect(client.channel, near.qp, far.ip, rwk_listener_port(listener), &attr, &client.c), -ENOSPC);
	assert_int_equal(next_descriptor(), next);
	sets_are_full = false;
	sides_no_event(&server);
	others_are_served();
	sides_close();
}

/*
 * Without a descriptor for who connects: he waits until there is one, and the listener's descriptor does not burn. It
 * listens then even if no more can be watched.
 */
static void no_descriptor_left(void **state)
{
	struct pollfd p;
	struct rlimit all, few;
	int fd, next, readable;
	uint64_t begun;

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	p = (struct pollfd){.fd = rwk_event_channel_fd(server.channel), .events = POLLIN};
	fd = sides_bare();
	next = next_descriptor();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = all.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(poll(&p, 1, 20000), 1);
	begun = sides_ms();
	sides_poll();
	readable = poll(&p, 1, 0);
	if (sides_ms() < begun + 50) /* it looks again after 100 ms */
		assert_int_equal(readable, 0);
	assert_int_equal(counted().connected, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	sets_are_full = true;
	assert_int_equal(poll(&p, 1, 20000), 1);
	until_counted(1);
	sets_are_full = false;
	hung_up(fd);
	others_are_served();
	sides_close();
}

/* Closing the listener ends those who were not heard, and leaves alone whom the program knows. */
static void listener_closed(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	uint8_t request[RWK_CM_MAX];
	size_t len = good(request);
	int silent, unheard;

	(void)state;
	open_listening(&(struct rwk_listen_attr){0});
	sides_ask(&attr);
	silent = sides_bare();
	until_counted(2);
	unheard = sides_bare();
	put(unheard, request, len - 1);
	until_counted(3);
	rwk_listener_close(listener);
	listener = NULL;
	hung_up(silent);
	hung_up(unheard);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	sides_close();
}

/*
 * In place of a listener.
 */

static int bare_listener(uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000003)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

/* A client of ours asks there, and is told this; then its connection is hung up. What its program hears. */
static struct rwk_connection_event told(const void *bytes, size_t len, enum rwk_connection_event_type type)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	struct rwk_connection_event e;
	uint8_t ip[16], request[RWK_CM_HEAD];
	uint16_t port;
	int l = bare_listener(&port), fd;

	ends_ip(ip, 3);
	attr.qp.pmtu = 1024;
	assert_int_equal(rwk_connect(client.channel, near.qp, ip, port, &attr, &client.c), 0);
	fd = accept(l, NULL, NULL);
	while (recv(fd, request, sizeof(request), MSG_PEEK | MSG_DONTWAIT) != sizeof(request))
		sides_poll();
	assert_int_equal(recv(fd, request, sizeof(request), 0), RWK_CM_HEAD);
	assert_int_equal(request[9], RWK_CM_REQUEST);
	put(fd, bytes, len);
	shutdown(fd, SHUT_WR);
	e = sides_await(&client, type);
	assert_int_equal(sides_state(&client), RWK_QPS_INIT);
	rwk_connection_destroy(client.c);
	client.c = NULL;
	close(fd);
	close(l);
	return e;
}

/* A server that answers with what is no answer to this question, or hangs up behind any byte of it. */
static void wrong_answers(void **state)
{
	struct rwk_cm accept = {.type = RWK_CM_ACCEPT,
		.transport = RWK_TRANSPORT_STREAM,
		.reads = 1,
		.pmtu = 1024,
		.qpn = 99,
		.psn = 5};
	uint8_t bytes[RWK_CM_MAX];
	size_t len;

	(void)state;
	sides_open(RWK_QP_RC);
	len = rwk_cm_pack(&accept, bytes);
	for (size_t n = 0; n < len; n++)
		assert_int_equal(told(bytes, n, RWK_CONNECTION_UNREACHABLE).status, -ECONNRESET);
	assert_int_equal(told("SSH-2.0-OpenSSH_9.2\r\n", 21, RWK_CONNECTION_UNREACHABLE).status, -EPROTO);
	bytes[8] = 2;
	assert_int_equal(told(bytes, len, RWK_CONNECTION_UNREACHABLE).status, -EPROTONOSUPPORT);
	accept.pmtu = 2048; /* more than was asked for */
	len = rwk_cm_pack(&accept, bytes);
	assert_int_equal(told(bytes, len, RWK_CONNECTION_UNREACHABLE).status, -EPROTO);
	accept.pmtu = 1024;
	accept.deferred = true;
	len = rwk_cm_pack(&accept, bytes);
	assert_int_equal(told(bytes, len, RWK_CONNECTION_UNREACHABLE).status, -EPROTO);
	accept.deferred = false;
	accept.unordered = true;
	len = rwk_cm_pack(&accept, bytes);
	assert_int_equal(told(bytes, len, RWK_CONNECTION_UNREACHABLE).status, -EPROTO);
	accept.unordered = false;
	accept.service = RWK_QP_UC;
	accept.reads = 0;
	len = rwk_cm_pack(&accept, bytes);
	assert_int_equal(told(bytes, len, RWK_CONNECTION_UNREACHABLE).status, -EPROTO);
	len = good(bytes);
	assert_int_equal(told(bytes, len, RWK_CONNECTION_UNREACHABLE).status, -EPROTO);
	len = bare_message(RWK_CM_READY, bytes);
	assert_int_equal(told(bytes, len, RWK_CONNECTION_UNREACHABLE).status, -EPROTO);
	len = bare_message(RWK_CM_REJECT, bytes);
	assert_int_equal(told(bytes, len, RWK_CONNECTION_REJECTED).status, 0);
	sides_close();
}

/* The client asks a bare server, which says yes; the client has not looked yet. Returns the server's socket. */
static int accepted(const struct rwk_connection_attr *attr)
{
	struct rwk_cm yes = {.type = RWK_CM_ACCEPT,
		.transport = attr->transport,
		.reads = 1,
		.udp_port = attr->transport == RWK_TRANSPORT_UDP ? 4791 : 0,
		.pmtu = 1024,
		.qpn = 99,
		.psn = 5};
	uint8_t ip[16], bytes[RWK_CM_MAX];
	uint16_t port;
	int l = bare_listener(&port), fd;

	ends_ip(ip, 3);
	sides_open(RWK_QP_RC);
	assert_int_equal(rwk_connect(client.channel, near.qp, ip, port, attr, &client.c), 0);
	fd = accept(l, NULL, NULL);
	close(l);
	while (recv(fd, bytes, RWK_CM_HEAD, MSG_PEEK | MSG_DONTWAIT) != RWK_CM_HEAD)
		sides_poll();
	assert_int_equal(recv(fd, bytes, RWK_CM_HEAD, 0), RWK_CM_HEAD);
	put(fd, bytes, rwk_cm_pack(&yes, bytes));
	return fd;
}

/* A server that accepts and is gone before that is read: the READY cannot go. */
static void gone_when_confirmed(void **state)
{
	(void)state;
	for (unsigned patient = 0; patient < 2; patient++) {
		struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);

		attr.qp.pmtu = 1024;
		attr.patient = patient;
		reset(accepted(&attr));
		heard_of_reset(&client);
		sides_close();
	}
}

/* Nothing comes to it any more, nor is acknowledged: as if its host were gone. */
static void go_silent(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = {.len = 1, .filter = &nothing};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), 0);
}

/* By UDP: a host that is gone, with the READY on its way, which keeps the kernel from asking. Nothing else is said. */
static void silent_when_confirmed(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);
	int fd;

	(void)state;
	attr.qp.pmtu = 1024;
	fd = accepted(&attr);
	go_silent(fd);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_DISCONNECTED).status, -ETIMEDOUT);
	close(fd);
	sides_close();
}

/*
 * Who waits as long as the other's program likes does not wait for a host that is gone: neither one who asks nor one who
 * answers, though what he said is on its way still, and the kernel asks nobody meanwhile.
 */
static void silent_hosts(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	uint8_t ip[16], request[RWK_CM_MAX];
	uint16_t port;
	int l = bare_listener(&port), asked, asking;

	(void)state;
	attr.patient = true;
	open_listening(&(struct rwk_listen_attr){.patient = true});
	ends_ip(ip, 3);
	assert_int_equal(rwk_connect(client.channel, near.qp, ip, port, &attr, &client.c), 0);
	asked = accept(l, NULL, NULL);
	go_silent(asked);
	asking = sides_bare();
	put(asking, request, good(request));
	server.c = sides_await(&server, RWK_CONNECTION_REQUEST).connection;
	go_silent(asking);
	assert_int_equal(rwk_accept(server.c, far.qp, &attr), 0);
	assert_int_equal(sides_await(&server, RWK_CONNECTION_DISCONNECTED).status, -ETIMEDOUT);
	assert_int_equal(sides_await(&client, RWK_CONNECTION_UNREACHABLE).status, -ETIMEDOUT);
	close(asked);
	close(asking);
	close(l);
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage),
		cmocka_unit_test(too_long),
		cmocka_unit_test(silence),
		cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(closes_anywhere),
		cmocka_unit_test(not_ready),
		cmocka_unit_test(never_ready),
		cmocka_unit_test(gone_when_accepted),
		cmocka_unit_test(too_many),
		cmocka_unit_test(too_many_questions),
		cmocka_unit_test(no_watch_left),
		cmocka_unit_test(no_descriptor_left),
		cmocka_unit_test(listener_closed),
		cmocka_unit_test(wrong_answers),
		cmocka_unit_test(gone_when_confirmed),
		cmocka_unit_test(silent_when_confirmed),
		cmocka_unit_test(silent_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

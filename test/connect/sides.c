/* SPDX-License-Identifier: BSD-3-Clause */
#include "connect/sides.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct side client, server;
struct rwk_listener *listener;

uint64_t sides_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

void sides_open_one(struct side *s, struct end *e, uint8_t host, enum rwk_qp_type type)
{
	memset(s, 0, sizeof(*s));
	ends_open_one(e, host, type);
	s->end = e;
	assert_int_equal(rwk_event_channel_create(e->adapter, &s->channel), 0);
}

void sides_open(enum rwk_qp_type type)
{
	sides_open_one(&client, &near, 1, type);
	sides_open_one(&server, &far, 2, type);
}

static void close_listener(struct side *s)
{
	if (!listener || s != &server)
		return;
	assert_int_equal(rwk_event_channel_destroy(s->channel), -EBUSY);
	rwk_listener_close(listener);
	listener = NULL;
}

void sides_close_one(struct side *s)
{
	assert_int_equal(s->count, 0); /* all events were expected */
	close_listener(s);
	if (s->c) {
		assert_int_equal(rwk_event_channel_destroy(s->channel), -EBUSY);
		rwk_connection_destroy(s->c);
	}
	assert_int_equal(rwk_event_channel_destroy(s->channel), 0);
	ends_close_one(s->end);
	s->channel = NULL;
}

void sides_close(void)
{
	sides_close_one(&client);
	sides_close_one(&server);
}

struct rwk_connection_attr sides_attr(enum rwk_connection_transport transport, const char *private_data)
{
	return (struct rwk_connection_attr){.transport = transport,
		.qp = {.access = ACCESS, .retry = 7, .rnr_retry = 7, .rnr_timer = 1},
		.timeout_ms = 15000,
		.private_data = private_data,
		.private_length = private_data ? (uint32_t)strlen(private_data) : 0};
}

static void poll_side(struct side *s)
{
	struct rwk_connection_event e;

	if (!s->channel || !rwk_event_channel_poll(s->channel, &e))
		return;
	assert_true(s->count < EVENTS_MAX);
	s->events[(s->first + s->count++) % EVENTS_MAX] = e;
}

void sides_poll(void)
{
	if (ends_step)
		ends_step();
	poll_side(&client);
	poll_side(&server);
}

struct rwk_connection_event sides_await(struct side *s, enum rwk_connection_event_type type)
{
	struct rwk_connection_event e;

	for (uint64_t end = sides_ms() + 20000; !s->count; sides_poll())
		assert_true(sides_ms() < end);
	e = s->events[s->first];
	s->first = (s->first + 1) % EVENTS_MAX;
	s->count--;
	if (e.type != type)
		print_message("event %d, status %d\n", e.type, e.status);
	assert_int_equal(e.type, type);
	if (s->c)
		assert_ptr_equal(e.connection, s->c);
	return e;
}

void sides_no_event(struct side *s)
{
	struct timespec pause = {.tv_nsec = 100000};

	for (unsigned i = 0; i < 100; i++) {
		sides_poll();
		assert_int_equal(s->count, 0);
		nanosleep(&pause, NULL);
	}
}

void sides_listen(const struct rwk_listen_attr *attr)
{
	assert_int_equal(rwk_listen(server.channel, attr, &listener), 0);
	assert_int_not_equal(rwk_listener_port(listener), 0);
}

struct rwk_connection_event sides_ask(const struct rwk_connection_attr *attr)
{
	struct rwk_connection_event e;

	if (!listener)
		sides_listen(&(struct rwk_listen_attr){0});
	assert_int_equal(rwk_connect(client.channel, near.qp, far.ip, rwk_listener_port(listener), attr, &client.c), 0);
	e = sides_await(&server, RWK_CONNECTION_REQUEST);
	assert_ptr_equal(e.listener, listener);
	assert_memory_equal(e.peer_ip, near.ip, 16);
	server.c = e.connection;
	return e;
}

void sides_connect(const struct rwk_connection_attr *attr)
{
	enum rwk_connection_event_type expected =
		attr->deferred ? RWK_CONNECTION_STREAMING : RWK_CONNECTION_ESTABLISHED;

	sides_ask(attr);
	assert_int_equal(rwk_accept(server.c, far.qp, attr), 0);
	sides_await(&client, expected);
	sides_await(&server, expected);
}

enum rwk_qps sides_state(const struct side *s)
{
	struct rwk_qp_info info;

	rwk_qp_query(s->end->qp, &info);
	return info.state;
}

void sides_in_rdma_mode(void)
{
	assert_int_equal(sides_state(&client), RWK_QPS_RTS);
	assert_int_equal(sides_state(&server), RWK_QPS_RTS);
}

static struct rwk_wc await_one(struct end *e, struct rwk_cq *cq)
{
	struct rwk_wc wc = ends_await(e, cq);

	assert_int_equal(wc.status, 0);
	return wc;
}

static void send_one(struct end *from, struct end *to, size_t len)
{
	memset(to->in, 0xee, len);
	ends_receive(to, 5, len);
	assert_int_equal(ends_request(from, RWK_REQUEST_SEND, len, 0, 0), 0);
	assert_int_equal(await_one(to, to->receive_cq).length, len);
	await_one(from, from->send_cq);
	assert_memory_equal(to->in, from->out, len);
}

void sides_exchange(void)
{
	struct rwk_wc wc;
	bool reads = true;

	send_one(&near, &far, 10);
	send_one(&far, &near, 10000);
	send_one(&near, &far, 0);
	memset(far.in, 0xee, REGION);
	assert_int_equal(ends_request(&near, RWK_REQUEST_WRITE, REGION, (uintptr_t)far.in, rwk_mr_key(far.in_mr)), 0);
	wc = await_one(&near, near.send_cq);
	assert_int_equal(wc.length, REGION);
	ends_receive(&far, 6, 1); /* UC: what follows in order shows that the Write is there */
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 0, 0, 0), 0);
	await_one(&far, far.receive_cq);
	await_one(&near, near.send_cq);
	assert_memory_equal(far.in, near.out, REGION);
	reads = ends_request(&near, RWK_REQUEST_READ, REGION, (uintptr_t)far.in, rwk_mr_key(far.in_mr)) == 0;
	if (reads)
		assert_int_equal(await_one(&near, near.send_cq).length, REGION);
}

void sides_tcp_segments(int fd[2], int most)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(l, (struct sockaddr *)&at, sizeof(at)), 0);
	if (most) /* else as many as the kernel likes; the one who connects hears of it */
		assert_int_equal(setsockopt(l, IPPROTO_TCP, TCP_MAXSEG, &most, sizeof(most)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&at, &len), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&at, sizeof(at)), 0);
	fd[1] = accept(l, NULL, NULL);
	assert_true(fd[1] >= 0);
	close(l);
}

void sides_tcp(int fd[2])
{
	sides_tcp_segments(fd, 0);
}

int sides_bare(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(rwk_listener_port(listener))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	memcpy(&at.sin_addr, far.ip + 12, 4);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

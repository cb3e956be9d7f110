/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who sleeps on a cq is woken by packets that come by a stream, as by those of UDP. Streams alone.
 *
 * Links: tcp.
 */
#include "connect/sides.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG 20000 /* ms: what never passes */
#define MANY 120u
#define FEW  10u

static bool is_readable(struct rwk_cq *cq, int ms)
{
	struct pollfd p = {.fd = rwk_cq_fd(cq), .events = POLLIN};

	assert_true(p.fd >= 0);
	return poll(&p, 1, ms) == 1;
}

/* Nobody works for far: near's Send alone must make its descriptor readable. */
static void woken(void)
{
	struct rwk_wc wc;

	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	do
		assert_true(is_readable(far.receive_cq, LONG));
	while (!rwk_cq_poll(far.receive_cq, &wc, 1));
	assert_true(wc.type == RWK_WC_RECEIVE && wc.length == 8 && !wc.status);
}

/* S4-10: the descriptor tells of what comes by a stream. */
static void by_stream(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);

	sides_open(service_of(state));
	sides_connect(&attr);
	ends_receive(&far, 1, 8);
	while (rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT))
		;
	assert_false(is_readable(far.receive_cq, 0));
	woken();
	sides_close();
}

/* Armed before the adapter has streams at all. */
static void armed_before(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);

	sides_open_one(&client, &near, 1, service_of(state));
	ends_open_one(&far, 2, service_of(state));
	assert_false(is_readable(far.receive_cq, 0));
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	server = (struct side){.end = &far};
	assert_int_equal(rwk_event_channel_create(far.adapter, &server.channel), 0);
	sides_connect(&attr);
	ends_receive(&far, 1, 8);
	woken();
	sides_close();
}

static struct rwk_cq *idle[MANY];

static void open_idle(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(rwk_cq_create(far.adapter, 1, &idle[i]), 0);
		assert_true(rwk_cq_fd(idle[i]) >= 0);
	}
}

static void close_idle(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		assert_int_equal(rwk_cq_destroy(idle[i]), 0);
}

static void add_and_arm(int set, struct rwk_cq *cq)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = cq};

	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, rwk_cq_fd(cq), &e), 0);
	while (rwk_cq_arm(cq, RWK_CQ_NEXT))
		;
}

/* As a server with a cq for each of its connections: polls and arms those that are readable, until far's has come. */
static void serve_one(int set)
{
	struct epoll_event event[4];
	bool done = false;
	struct rwk_wc wc;

	ends_receive(&far, 1, 8);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	while (!done) {
		int n = epoll_wait(set, event, 4, LONG);

		assert_true(n > 0);
		for (int i = 0; i < n; i++) {
			struct rwk_cq *cq = event[i].data.ptr;

			if (rwk_cq_poll(cq, &wc, 1)) {
				assert_ptr_equal(cq, far.receive_cq);
				assert_true(wc.type == RWK_WC_RECEIVE && !wc.status);
				done = true;
			}
			while (rwk_cq_arm(cq, RWK_CQ_NEXT))
				;
		}
	}
}

/* More cqs in one set than there are ways that the kernel allows: a connection is made, and each is woken. */
static void many(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	int set = epoll_create1(0);

	sides_open(service_of(state));
	open_idle(MANY);
	for (unsigned i = 0; i < MANY; i++)
		add_and_arm(set, idle[i]);
	sides_connect(&attr);
	add_and_arm(set, far.receive_cq);
	serve_one(set);
	serve_one(set);
	close_idle(0, MANY - 1); /* those who heard before the others are gone */
	serve_one(set);
	close_idle(MANY - 1, MANY);
	serve_one(set);
	close(set);
	sides_close();
}

/* Who alone is armed is woken, however many others might be. */
static void one_of_many(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	bool fd_first = true;

	do {
		sides_open(service_of(state));
		open_idle(FEW);
		sides_connect(&attr);
		if (fd_first)
			assert_true(rwk_cq_fd(far.receive_cq) >= 0);
		while (rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT))
			;
		ends_receive(&far, 1, 8);
		woken();
		close_idle(0, FEW);
		sides_close();
		fd_first = !fd_first;
	} while (!fd_first);
}

/* A stream that has no room: who waits for what is to go by it can sleep, and is woken when there is some. */
static void full_stream(void **state)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_STREAM, NULL);
	int fd[2], little = 16384, rc = -EAGAIN;
	struct rwk_wc wc;

	(void)state;
	sides_open(RWK_QP_RC);
	sides_tcp(fd);
	assert_int_equal(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
	assert_int_equal(setsockopt(fd[1], SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	assert_int_equal(rwk_convert(client.channel, near.qp, fd[0], &attr, &client.c), 0);
	assert_int_equal(rwk_convert(server.channel, far.qp, fd[1], &attr, &server.c), 0);
	sides_await(&client, RWK_CONNECTION_ESTABLISHED);
	sides_await(&server, RWK_CONNECTION_ESTABLISHED);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(
			ends_request(&near, RWK_REQUEST_WRITE, REGION, (uintptr_t)far.in, rwk_mr_key(far.in_mr)), 0);
	assert_true(rwk_cq_fd(near.send_cq) >= 0);
	for (uint64_t end = sides_ms() + 5000; rc && sides_ms() < end; rc = rwk_cq_arm(near.send_cq, RWK_CQ_NEXT))
		;
	assert_int_equal(rc, 0);
	for (uint64_t end = sides_ms() + LONG; !is_readable(near.send_cq, 0); rwk_cq_poll(far.send_cq, NULL, 0))
		assert_true(sides_ms() < end);
	for (unsigned i = 0; i < FEW; i++) {
		wc = ends_await(&near, near.send_cq);
		assert_int_equal(wc.status, 0);
	}
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world_by(by_stream, world_rc),
		in_world_by(by_stream, world_uc),
		in_world_by(armed_before, world_rc),
		in_world_by(armed_before, world_uc),
		in_world_by(many, world_rc),
		in_world_by(one_of_many, world_uc),
		in_world(full_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

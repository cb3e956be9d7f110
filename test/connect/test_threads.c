/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ropewalk.h promises any thread without a lock, object for object, while another one works: connects, exchanges,
 * disconnects. contrib/check runs it with TSan.
 */
#include "connect/sides.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_bool over;
static atomic_uint rounds;
static struct rwk_srq *srq;

struct seen {
	uint16_t port, listener_port;
	uint32_t qpn, key, srqn;
};

static struct seen look(void)
{
	return (struct seen){rwk_adapter_port(far.adapter), rwk_listener_port(listener), rwk_qp_number(far.qp),
		rwk_mr_key(far.in_mr), rwk_srq_number(srq)};
}

/* Asks all the time; what it is told never changes. */
static void *asks(void *arg)
{
	const struct seen *first = arg;

	for (; !atomic_load(&over); atomic_fetch_add(&rounds, 1)) {
		struct seen s = look();

		if (s.port != first->port || s.listener_port != first->listener_port || s.qpn != first->qpn ||
			s.key != first->key || s.srqn != first->srqn)
			return arg;
	}
	return NULL;
}

/* Sleeps on every descriptor that there is to sleep on, and looks at nothing else; the channel's it asks for. */
static void *sleeps(void *arg)
{
	struct pollfd *fds = arg;

	while (!atomic_load(&over)) {
		fds[2].fd = rwk_event_channel_fd(server.channel);
		poll(fds, 3, 1);
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static void exchange_again(void)
{
	struct rwk_connection_attr attr = sides_attr(RWK_TRANSPORT_UDP, NULL);

	sides_connect(&attr);
	sides_exchange();
	assert_int_equal(rwk_disconnect(client.c), 0);
	sides_await(&client, RWK_CONNECTION_DISCONNECTED);
	sides_await(&server, RWK_CONNECTION_DISCONNECTED);
	rwk_connection_destroy(client.c);
	rwk_connection_destroy(server.c);
	client.c = server.c = NULL;
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RESET, NULL), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_RESET, NULL), 0);
	rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT);
	rwk_async_event_arm(far.adapter);
}

static void others_may(void **state)
{
	struct pollfd fds[3] = {{.events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};
	struct rwk_srq_attr srq_attr = {.receive_max = 1};
	struct seen first;
	pthread_t asking, sleeping;
	void *wrong;

	(void)state;
	sides_open(RWK_QP_RC);
	sides_listen(&(struct rwk_listen_attr){0});
	assert_int_equal(rwk_srq_create(far.pd, &srq_attr, &srq), 0);
	fds[0].fd = rwk_cq_fd(far.receive_cq);
	fds[1].fd = rwk_async_event_fd(far.adapter);
	assert_true(fds[0].fd >= 0 && fds[1].fd >= 0);
	first = look();
	assert_int_equal(pthread_create(&asking, NULL, asks, &first), 0);
	assert_int_equal(pthread_create(&sleeping, NULL, sleeps, fds), 0);
	for (int i = 0; i < 20; i++)
		exchange_again();
	atomic_store(&over, true);
	pthread_join(sleeping, NULL);
	pthread_join(asking, &wrong);
	assert_null(wrong);
	assert_true(atomic_load(&rounds) > 0);
	assert_int_equal(rwk_srq_destroy(srq), 0);
	sides_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events: what they tell, once, and whom they wake (S0-11, S4-1, S4-10). Over UDP and on the simulated
 * network.
 *
 * Links: udp, sim, tcp.
 */
#include "channel_adapter/world.h"

#include <poll.h>

static bool is_readable(struct end *e)
{
	struct pollfd p = {.fd = rwk_async_event_fd(e->adapter), .events = POLLIN};

	assert_true(p.fd >= 0);
	return poll(&p, 1, 0) == 1;
}

static void work(void)
{
	for (unsigned i = 0; i < 200; i++) {
		rwk_cq_poll(near.send_cq, NULL, 0);
		rwk_cq_poll(far.send_cq, NULL, 0);
		if (ends_step)
			ends_step();
	}
}

/* The only event that there is, after some work. */
static struct rwk_async_event only(struct end *e)
{
	struct rwk_async_event event[2];

	work();
	assert_int_equal(rwk_async_event_poll(e->adapter, event, 2), 1);
	return event[0];
}

static void none(struct end *e)
{
	struct rwk_async_event event;

	work();
	assert_int_equal(rwk_async_event_poll(e->adapter, &event, 1), 0);
}

/* S4-1: an event names its object, and why it failed; the qp at the other end fails by itself, too. */
static void qp_fails(void **state)
{
	struct rwk_async_event event;

	(void)state;
	ends_open(RWK_QP_RC);
	none(&near);
	assert_int_equal(rwk_async_event_arm(near.adapter), 0);
	assert_false(is_readable(&near));
	assert_int_equal(
		ends_request(&near, RWK_REQUEST_WRITE, 8, (uintptr_t)far.in, rwk_mr_key(far.in_mr) ^ 1u << 31), 0);
	work();
	assert_true(is_readable(&near));
	assert_int_equal(rwk_async_event_arm(near.adapter), -EAGAIN);
	event = only(&near);
	assert_true(event.type == RWK_ASYNC_QP_ERROR && event.qp == near.qp && !event.srq && event.error == -EACCES);
	event = only(&far);
	assert_true(event.type == RWK_ASYNC_QP_ERROR && event.qp == far.qp && event.error == -EACCES);
	none(&near);
	none(&far);
	assert_int_equal(rwk_async_event_arm(near.adapter), 0);
	assert_false(is_readable(&near));
	ends_close();
}

/* What the client does itself is no event; what happened to a qp that is reset is none any more. */
static void qp_is_reset(void **state)
{
	(void)state;
	ends_open(RWK_QP_RC);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_ERR, NULL), 0);
	none(&near);
	ends_close();
}

static void reset_forgets(void **state)
{
	(void)state;
	ends_open(RWK_QP_RC);
	assert_int_equal(
		ends_request(&near, RWK_REQUEST_WRITE, 8, (uintptr_t)far.in, rwk_mr_key(far.in_mr) ^ 1u << 31), 0);
	work();
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RESET, NULL), 0);
	none(&near);
	ends_close(); /* and far's goes with its qp */
}

/* S0-11: losses that nobody has heard of yet are one event, with their number. */
static void losses(void **state)
{
	struct rwk_async_event event;

	(void)state;
	ends_open(RWK_QP_UC);
	assert_int_equal(rwk_async_event_arm(far.adapter), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	work();
	assert_true(is_readable(&far));
	event = only(&far);
	assert_true(event.type == RWK_ASYNC_QP_LOST && event.qp == far.qp && event.count == 3);
	assert_int_equal(ends_request(&near, RWK_REQUEST_SEND, 8, 0, 0), 0);
	event = only(&far);
	assert_true(event.type == RWK_ASYNC_QP_LOST && event.count == 1);
	none(&far);
	ends_close();
}

static struct rwk_srq *srq;
static struct rwk_qp *own_qp;

/* far's qp is replaced by one whose receives are an srq's. */
static void open_with_srq(enum rwk_qp_type type)
{
	struct rwk_srq_attr attr = {.receive_max = DEPTH};
	struct rwk_qp_create_attr create = {.type = type, .send_max = DEPTH};

	ends_open_one(&near, 1, type);
	ends_open_one(&far, 2, type);
	own_qp = far.qp;
	assert_int_equal(rwk_srq_create(far.pd, &attr, &srq), 0);
	create.send_cq = far.send_cq;
	create.receive_cq = far.receive_cq;
	create.srq = srq;
	assert_int_equal(rwk_qp_create(far.pd, &create, &far.qp), 0);
	ends_connect(&near, &far, ACCESS);
	ends_connect(&far, &near, ACCESS);
}

static void close_with_srq(void)
{
	assert_int_equal(rwk_srq_destroy(srq), -EBUSY);
	rwk_qp_destroy(far.qp);
	far.qp = own_qp;
	assert_int_equal(rwk_srq_destroy(srq), 0);
	ends_close();
}

static void post_to_srq(unsigned count)
{
	struct rwk_receive v[DEPTH] = {{0}};
	uint32_t posted;

	assert_int_equal(rwk_srq_post_receive_batch(srq, v, count, &posted), 0);
	assert_int_equal(posted, count);
}

static void send_some(unsigned count)
{
	struct rwk_request r = {.flags = RWK_REQUEST_UNSIGNALLED};

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(rwk_qp_post(near.qp, &r), 0);
}

/* The limit of an srq: an event once, as soon as there are fewer receives, and then none before it is set again. */
static void srq_limit(void **state)
{
	struct rwk_async_event event;

	open_with_srq(service_of(state));
	assert_int_equal(rwk_srq_set_limit(srq, DEPTH + 1), -EINVAL);
	post_to_srq(5);
	assert_int_equal(rwk_srq_set_limit(srq, 3), 0);
	send_some(2);
	none(&far);
	send_some(1);
	event = only(&far);
	assert_true(event.type == RWK_ASYNC_SRQ_LIMIT && event.srq == srq && !event.qp);
	send_some(1);
	none(&far);
	assert_int_equal(rwk_srq_set_limit(srq, 1), 0);
	none(&far);
	assert_int_equal(rwk_srq_set_limit(srq, 2), 0); /* one is there */
	assert_int_equal(only(&far).type, RWK_ASYNC_SRQ_LIMIT);
	post_to_srq(2);
	assert_int_equal(rwk_srq_set_limit(srq, 3), 0);
	none(&far);
	assert_int_equal(rwk_srq_set_limit(srq, 0), 0);
	send_some(3);
	none(&far);
	close_with_srq();
}

/* A qp of an srq that is in ERR says that it takes no receive any more; the srq's others stay where they are. */
static void last_receive(void **state)
{
	struct rwk_async_event event;

	open_with_srq(service_of(state));
	post_to_srq(2);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	event = only(&far);
	assert_true(event.type == RWK_ASYNC_QP_LAST_RECEIVE && event.qp == far.qp && !event.error);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	none(&far);
	ends_quiet();
	close_with_srq();
}

/* One that fails by itself says both. */
static void last_receive_of_failed(void **state)
{
	struct rwk_async_event event[3];

	(void)state;
	open_with_srq(RWK_QP_RC);
	assert_int_equal(
		ends_request(&near, RWK_REQUEST_WRITE, 8, (uintptr_t)far.in, rwk_mr_key(far.in_mr) ^ 1u << 31), 0);
	work();
	assert_int_equal(rwk_async_event_poll(far.adapter, event, 3), 2);
	assert_true(event[0].type == RWK_ASYNC_QP_ERROR && event[1].type == RWK_ASYNC_QP_LAST_RECEIVE);
	assert_true(event[0].qp == far.qp && event[1].qp == far.qp);
	close_with_srq();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(qp_fails),
		in_world(qp_is_reset),
		in_world(reset_forgets),
		in_world(losses),
		in_world_by(srq_limit, world_rc),
		in_world_by(srq_limit, world_uc),
		in_world_by(last_receive, world_rc),
		in_world_by(last_receive, world_uc),
		in_world(last_receive_of_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S4-10: a cq's callback: when it is called, and what it may do to its own cq, to others, and to the one that the call
 * which calls it is for. Over UDP and on the simulated network.
 *
 * Links: udp, sim.
 */
#include "channel_adapter/asleep.h"

static unsigned calls, taken;

/* Takes what there is and arms again, as a server does. */
static void on_event(void *user, struct rwk_cq *cq)
{
	assert_ptr_equal(user, &calls);
	calls++;
	do
		taken += (unsigned)take(cq);
	while (rwk_cq_arm(cq, RWK_CQ_NEXT) == -EAGAIN);
}

/* Two ends, of which the far one's receive_cq, with so many receives, calls on_event. */
static struct rwk_cq *open_with_callback(void **state, unsigned receives)
{
	ends_open(service_of(state));
	calls = taken = 0;
	post_to_far(receives);
	rwk_cq_on_event(far.receive_cq, on_event, &calls);
	return far.receive_cq;
}

/* S4-10: the callback is called once for each time that the cq was armed, and may poll and arm. */
static void by_callback(void **state)
{
	struct rwk_cq *cq = open_with_callback(state, 6);

	send_to_far(0);
	work();
	assert_int_equal(calls, 0);
	assert_int_equal(take(cq), 1);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	for (unsigned i = 1; i <= 3; i++) {
		send_to_far(0);
		work();
		assert_int_equal(calls, i);
		assert_int_equal(taken, i);
	}
	assert_int_equal(rwk_cq_wait(cq, RWK_CQ_NEXT, 0), -EINVAL);
	rwk_cq_on_event(cq, NULL, NULL);
	send_to_far(0);
	work();
	assert_int_equal(calls, 3);
	assert_int_equal(take(cq), 1);
	ends_close();
}

/*
 * S4-10: the callback is taken away when the completion has come and nobody has polled since: there is none to be
 * called, and what has completed is there. One that is there by then is called.
 */
static void callback_is_taken_away(void **state)
{
	for (unsigned again = 0; again < 2; again++) {
		struct rwk_cq *cq = open_with_callback(state, 1);

		assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
		assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
		rwk_cq_on_event(cq, NULL, NULL);
		if (again)
			rwk_cq_on_event(cq, on_event, &calls);
		assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
		assert_int_equal(calls, again);
		assert_int_equal(take(cq), 1 - again);
		ends_close();
	}
}

/*
 * S4-10: armed again before anybody has polled: what the cq was armed for the first time has come, and that is called
 * for.
 */
static void armed_again(void **state)
{
	struct rwk_cq *cq = open_with_callback(state, 1);

	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), -EAGAIN);
	assert_int_equal(calls, 1);
	assert_int_equal(taken, 1);
	ends_close();
}

/* Two ends, and at the far one a QP with a receive and a cq for it. */
static struct rwk_qp *open_with_one_more(void **state, struct rwk_cq **cq)
{
	struct rwk_qp_create_attr attr = {.type = service_of(state), .send_max = 1, .receive_max = 1};
	struct rwk_qp *qp;

	ends_open(service_of(state));
	calls = 0;
	assert_int_equal(rwk_cq_create(far.adapter, 4, cq), 0);
	attr.receive_cq = *cq;
	attr.send_cq = far.send_cq;
	assert_int_equal(rwk_qp_create(far.pd, &attr, &qp), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_post_receive(qp, &(struct rwk_receive){0}), 0);
	return qp;
}

/* S4-10: a cq that is destroyed before anybody has polled: its callback is not called any more. */
static void destroyed_before_the_call(void **state)
{
	struct rwk_cq *cq;
	struct rwk_qp *qp = open_with_one_more(state, &cq);

	rwk_cq_on_event(cq, on_event, &calls);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_ERR, NULL), 0);
	rwk_qp_destroy(qp);
	assert_int_equal(rwk_cq_destroy(cq), 0);
	assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
	assert_int_equal(calls, 0);
	ends_close();
}

static unsigned of_sends;

static void on_send(void *user, struct rwk_cq *cq)
{
	assert_ptr_equal(user, &calls);
	assert_ptr_equal(cq, far.send_cq);
	of_sends++;
}

/* Takes for the other cq, whose callback is still to be called, arms it, and has it woken again. */
static void on_receive(void *user, struct rwk_cq *cq)
{
	assert_ptr_equal(user, &calls);
	calls++;
	assert_int_equal(take(cq), 1);
	assert_int_equal(take(far.send_cq), 1);
	assert_int_equal(rwk_cq_arm(far.send_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(ends_request(&far, RWK_REQUEST_SEND, 0, 0, 0), 0);
	assert_int_equal(of_sends, 0);
}

/* S4-10: the same from within a callback: once for each time, and behind it. */
static void armed_again_within(void **state)
{
	ends_open(service_of(state));
	calls = of_sends = 0;
	post_to_far(1);
	rwk_cq_on_event(far.receive_cq, on_receive, &calls);
	rwk_cq_on_event(far.send_cq, on_send, &calls);
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_cq_arm(far.send_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(ends_request(&far, RWK_REQUEST_SEND, 0, 0, 0), 0); /* comes back at once */
	assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(of_sends, 2);
	assert_int_equal(take(far.send_cq), 1);
	ends_close();
}

static uint64_t order[3];

static void on_first(void *user, struct rwk_cq *cq)
{
	struct rwk_wc wc;

	assert_ptr_equal(user, &calls);
	assert_int_equal(rwk_cq_poll(cq, &wc, 1), 1);
	order[calls++] = wc.id;
}

/* S4-10: what a callback takes has come before what the call that calls it returns. */
static void taken_in_order(void **state)
{
	struct rwk_wc wc[2];

	ends_open(service_of(state));
	calls = 0;
	post_to_far(3);
	rwk_cq_on_event(far.receive_cq, on_first, &calls);
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(rwk_cq_poll(far.receive_cq, wc, 2), 2);
	assert_int_equal(calls, 1);
	assert_true(order[0] == 0 && wc[0].id == 1 && wc[1].id == 2);
	ends_close();
}

static void on_event_destroy(void *user, struct rwk_cq *cq)
{
	calls++;
	rwk_qp_destroy(user);
	assert_int_equal(rwk_cq_destroy(cq), 0);
}

/* S4-10: a callback destroys the cq whose completions were to be taken next. */
static void destroyed_while_polled(void **state)
{
	struct rwk_cq *cq;
	struct rwk_qp *qp = open_with_one_more(state, &cq);
	struct rwk_wc wc;

	rwk_cq_on_event(cq, on_event_destroy, qp);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(rwk_cq_poll(cq, &wc, 1), 0);
	assert_int_equal(calls, 1);
	ends_close();
}
static struct rwk_cq *waited;
static int within; /* what a callback's call has returned */

/* What a callback does to the cq that is armed by the call that calls it, and what that call says to it. */
static void destroy_waited(void)
{
	within = rwk_cq_destroy(waited);
}

static void give_waited_a_callback(void)
{
	rwk_cq_on_event(waited, on_event, &calls);
	within = rwk_cq_arm(waited, RWK_CQ_NEXT);
}

static void disarm_waited(void)
{
	within = rwk_cq_wait(waited, RWK_CQ_NEXT, 0);
}

static const struct {
	void (*act)(void);
	int within, arm, wait;
} acts[] = {
	{destroy_waited, 0, -ECANCELED, -ECANCELED},
	{give_waited_a_callback, 0, 0, -EINVAL},
	{disarm_waited, -ETIMEDOUT, -EAGAIN, -ETIMEDOUT},
};

static void on_event_act(void *user, struct rwk_cq *cq)
{
	void (*const *act)(void) = user;

	(void)cq;
	within = 1;
	(*act)();
}

/* Armed by a call of its own, or waited with. */
static void act_on_one(unsigned which, bool waits)
{
	void (*act)(void) = acts[which].act;
	struct rwk_cq *cq;
	struct rwk_qp *qp;

	assert_int_equal(rwk_cq_create(far.adapter, 4, &waited), 0);
	assert_int_equal(rwk_cq_create(far.adapter, 4, &cq), 0);
	qp = open_qp_on(cq);
	rwk_cq_on_event(cq, on_event_act, &act);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_ERR, NULL), 0);
	if (waits)
		assert_int_equal(rwk_cq_wait(waited, RWK_CQ_NEXT, 0), acts[which].wait);
	else
		assert_int_equal(rwk_cq_arm(waited, RWK_CQ_NEXT), acts[which].arm);
	assert_int_equal(within, acts[which].within);
	if (act != destroy_waited)
		assert_int_equal(rwk_cq_destroy(waited), 0);
	rwk_qp_destroy(qp);
	assert_int_equal(rwk_cq_destroy(cq), 0);
}

/* S4-10: a callback of another cq acts on the one that is armed, or waited with. */
static void acted_on_while_armed(void **state)
{
	ends_open(service_of(state));
	for (unsigned i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		act_on_one(i, false);
		act_on_one(i, true);
	}
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world_by(by_callback, world_rc),
		in_world_by(by_callback, world_uc),
		in_world_by(callback_is_taken_away, world_rc),
		in_world_by(callback_is_taken_away, world_uc),
		in_world_by(destroyed_before_the_call, world_rc),
		in_world_by(taken_in_order, world_rc),
		in_world_by(destroyed_while_polled, world_rc),
		in_world_by(acted_on_while_armed, world_rc),
		in_world_by(armed_again_within, world_rc),
		in_world_by(armed_again, world_rc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

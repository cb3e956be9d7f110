/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S4-10: a cq as an event dispatcher: to sleep until something has completed, with a descriptor, a callback, or in a
 * call. Over UDP, and, as far as no packet has to wake anybody, on the simulated network.
 *
 * Links: udp, sim.
 */
#include "channel_adapter/world.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>

#define LONG  20000u /* ms: what never passes */
#define LATER 20u    /* ms */
#define MS    1000000u
#define TURNS 500u
#define IDLE  8u /* so many hear of packets */

static bool is_readable(struct rwk_cq *cq, unsigned ms)
{
	struct pollfd p = {.fd = rwk_cq_fd(cq), .events = POLLIN};

	assert_true(p.fd >= 0);
	return poll(&p, 1, (int)ms) == 1;
}

static void send_to_far(unsigned flags)
{
	struct rwk_request r = {.flags = flags | RWK_REQUEST_UNSIGNALLED};

	assert_int_equal(rwk_qp_post(near.qp, &r), 0);
	if (ends_step)
		ends_step();
}

static void post_to_far(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ends_receive(&far, i, 8);
}

static int take(struct rwk_cq *cq)
{
	struct rwk_wc wc[DEPTH];

	return rwk_cq_poll(cq, wc, DEPTH);
}

/* Works for far by another cq than the one that is slept on. */
static void work(void)
{
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
		assert_int_equal(rwk_cq_poll(near.send_cq, NULL, 0), 0);
		if (ends_step)
			ends_step();
	}
}

/* S4-10: the descriptor says that a completion has come, by whoever's work; it must be armed for each. */
static void by_descriptor(void **state)
{
	struct rwk_cq *cq = far.receive_cq;

	ends_open(service_of(state));
	cq = far.receive_cq;
	post_to_far(3);
	assert_int_equal(rwk_cq_fd(cq), rwk_cq_fd(cq));
	assert_int_not_equal(rwk_cq_fd(cq), rwk_cq_fd(far.send_cq));
	assert_false(is_readable(cq, 0));
	send_to_far(0);
	work();
	assert_false(is_readable(cq, 0)); /* nobody asked */
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), -EAGAIN);
	assert_int_equal(take(cq), 1);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_cq_arm(far.send_cq, RWK_CQ_NEXT), 0);
	assert_false(is_readable(cq, 0));
	send_to_far(0);
	work();
	assert_true(is_readable(cq, 0));
	assert_false(is_readable(far.send_cq, 0));
	assert_int_equal(take(cq), 1);
	assert_true(is_readable(cq, 0)); /* until it is armed again */
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	assert_false(is_readable(cq, 0));
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_SOLICITED + 1), -EINVAL);
	send_to_far(0);
	work();
	assert_int_equal(take(cq), 1);
	ends_close();
}

/* S4-10: who sleeps for a solicited event is woken by no other, and by a failure. */
static void solicited(void **state)
{
	struct rwk_cq *cq;

	ends_open(service_of(state));
	cq = far.receive_cq;
	post_to_far(5);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_SOLICITED), 0);
	send_to_far(0);
	send_to_far(0);
	work();
	assert_false(is_readable(cq, 0));
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_SOLICITED), 0); /* two wait to be polled that are not */
	send_to_far(RWK_REQUEST_SOLICITED);
	work();
	assert_true(is_readable(cq, 0));
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_SOLICITED), -EAGAIN);
	assert_int_equal(take(cq), 3);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_SOLICITED), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	assert_true(is_readable(cq, 0));
	assert_int_equal(take(cq), 2);
	ends_close();
}

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

/* S4-10: the callback is called once for each time that the cq was armed, and may poll and arm. */
static void by_callback(void **state)
{
	struct rwk_cq *cq;

	ends_open(service_of(state));
	cq = far.receive_cq;
	calls = taken = 0;
	post_to_far(6);
	rwk_cq_on_event(cq, on_event, &calls);
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
		struct rwk_cq *cq;

		ends_open(service_of(state));
		cq = far.receive_cq;
		calls = taken = 0;
		post_to_far(1);
		rwk_cq_on_event(cq, on_event, &calls);
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
	struct rwk_cq *cq;

	ends_open(service_of(state));
	cq = far.receive_cq;
	calls = taken = 0;
	post_to_far(1);
	rwk_cq_on_event(cq, on_event, &calls);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), -EAGAIN);
	assert_int_equal(calls, 1);
	assert_int_equal(taken, 1);
	ends_close();
}

/* S4-10: a cq that is destroyed before anybody has polled: its callback is not called any more. */
static void destroyed_before_the_call(void **state)
{
	struct rwk_qp_create_attr attr = {.type = service_of(state), .send_max = 1, .receive_max = 1};
	struct rwk_qp *qp;

	ends_open(service_of(state));
	calls = 0;
	assert_int_equal(rwk_cq_create(far.adapter, 4, &attr.receive_cq), 0);
	attr.send_cq = far.send_cq;
	assert_int_equal(rwk_qp_create(far.pd, &attr, &qp), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_post_receive(qp, &(struct rwk_receive){0}), 0);
	rwk_cq_on_event(attr.receive_cq, on_event, &calls);
	assert_int_equal(rwk_cq_arm(attr.receive_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_ERR, NULL), 0);
	rwk_qp_destroy(qp);
	assert_int_equal(rwk_cq_destroy(attr.receive_cq), 0);
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
	struct rwk_qp_create_attr attr = {.type = service_of(state), .send_max = 1, .receive_max = 1};
	struct rwk_qp *qp;
	struct rwk_wc wc;

	ends_open(service_of(state));
	calls = 0;
	assert_int_equal(rwk_cq_create(far.adapter, 4, &attr.receive_cq), 0);
	attr.send_cq = far.send_cq;
	assert_int_equal(rwk_qp_create(far.pd, &attr, &qp), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_post_receive(qp, &(struct rwk_receive){0}), 0);
	rwk_cq_on_event(attr.receive_cq, on_event_destroy, qp);
	assert_int_equal(rwk_cq_arm(attr.receive_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(rwk_cq_poll(attr.receive_cq, &wc, 1), 0);
	assert_int_equal(calls, 1);
	ends_close();
}

/* S4-10: more packets than one call takes: who is asleep then is told that some are left. */
static void unread(void **state)
{
	struct rwk_sge sge;
	struct rwk_request r = {
		.type = RWK_REQUEST_WRITE, .sge = &sge, .sge_count = 1, .flags = RWK_REQUEST_UNSIGNALLED};

	(void)state;
	ends_open(RWK_QP_UC);
	post_to_far(1);
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	assert_false(is_readable(far.receive_cq, 0));
	sge = (struct rwk_sge){near.out, 2 * PMTU, rwk_mr_key(near.out_mr)};
	r.remote = (uintptr_t)far.in;
	r.key = rwk_mr_key(far.in_mr);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(rwk_qp_post(near.qp, &r), 0);
	send_to_far(0);
	for (unsigned i = 0; i < 10 && ends_step; i++)
		ends_step();
	assert_int_equal(rwk_cq_poll(far.send_cq, NULL, 0), 0);
	do
		assert_true(is_readable(far.receive_cq, LONG));
	while (!take(far.receive_cq));
	ends_close();
}

/* One of far's with a receive, which completes when the qp goes to ERR. */
static struct rwk_qp *open_qp_on(struct rwk_cq *cq)
{
	struct rwk_qp_create_attr attr = {
		.type = RWK_QP_RC, .send_cq = cq, .receive_cq = cq, .send_max = 1, .receive_max = 1};
	struct rwk_qp *qp;

	assert_int_equal(rwk_qp_create(far.pd, &attr, &qp), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_post_receive(qp, &(struct rwk_receive){0}), 0);
	return qp;
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

static void on_signal(int number)
{
	(void)number;
}

/* S4-10: a wait ends by its time, or by a signal; with what is there already it ends at once. */
static void wait_ends(void **state)
{
	struct sigaction old, act = {.sa_handler = on_signal};
	/* Again and again: the first may come before the wait has begun. */
	const struct itimerval later = {{0, LATER * 1000}, {0, LATER * 1000}}, none = {0};

	ends_open(service_of(state));
	assert_int_equal(rwk_cq_wait(far.receive_cq, RWK_CQ_NEXT, 0), -ETIMEDOUT);
	assert_int_equal(rwk_cq_wait(far.receive_cq, RWK_CQ_NEXT, LATER * MS), -ETIMEDOUT);
	assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &later, NULL), 0);
	assert_int_equal(rwk_cq_wait(far.receive_cq, RWK_CQ_NEXT, (uint64_t)LONG * MS), -EINTR);
	assert_int_equal(setitimer(ITIMER_REAL, &none, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	post_to_far(1);
	send_to_far(0);
	work();
	assert_int_equal(rwk_cq_wait(far.receive_cq, RWK_CQ_NEXT, 0), 0);
	assert_int_equal(rwk_cq_wait(far.receive_cq, RWK_CQ_SOLICITED, 0), -ETIMEDOUT);
	assert_int_equal(take(far.receive_cq), 1);
	ends_close();
}

/* S4-10: a packet alone wakes who sleeps: nobody works for far meanwhile. UDP. */
static void by_packet(void **state)
{
	ends_open(service_of(state));
	post_to_far(2);
	if (world_has_fd) {
		assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
		assert_false(is_readable(far.receive_cq, 0));
		send_to_far(0);
		assert_true(is_readable(far.receive_cq, LONG));
		while (!take(far.receive_cq))
			;
		send_to_far(0);
		assert_int_equal(rwk_cq_wait(far.receive_cq, RWK_CQ_NEXT, (uint64_t)LONG * MS), 0);
		assert_int_equal(take(far.receive_cq), 1);
	}
	ends_close();
}

static struct rwk_cq *idle[IDLE];

static void open_idle(void)
{
	for (unsigned i = 0; i < IDLE; i++) {
		assert_int_equal(rwk_cq_create(far.adapter, 4, &idle[i]), 0);
		assert_true(rwk_cq_fd(idle[i]) >= 0);
	}
}

static void close_idle(void)
{
	for (unsigned i = 0; i < IDLE; i++)
		assert_int_equal(rwk_cq_destroy(idle[i]), 0);
}

static void arm_idle(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		assert_int_equal(rwk_cq_arm(idle[i], RWK_CQ_NEXT), 0);
}

/* Nobody but who sleeps there works for far. */
static void woken(void)
{
	send_to_far(0);
	assert_true(is_readable(far.receive_cq, LONG));
	while (!take(far.receive_cq))
		;
}

/*
 * S4-10: more cqs with descriptors than hear of packets, and those who armed the others have given up sleeping. Who
 * arms last is woken by packets; who has armed long ago again, when one of the others is not armed any more. UDP.
 */
static void others_gave_up(void **state)
{
	struct rwk_qp *qp;

	if (!world_has_fd)
		return;
	ends_open(service_of(state));
	post_to_far(4);
	open_idle();
	qp = open_qp_on(idle[0]);
	assert_true(rwk_cq_fd(far.receive_cq) >= 0);
	arm_idle(0, 1);
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	woken();
	arm_idle(0, IDLE);
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	woken();
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	arm_idle(0, IDLE);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_ERR, NULL), 0); /* wakes the one */
	woken();
	rwk_qp_destroy(qp);
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(take(idle[0]), 1);
	arm_idle(0, IDLE);
	assert_int_equal(rwk_cq_wait(idle[1], RWK_CQ_NEXT, 0), -ETIMEDOUT);
	woken();
	close_idle();
	ends_close();
}

static void on_event_arm(void *user, struct rwk_cq *cq)
{
	(void)user;
	(void)cq;
	arm_idle(0, IDLE);
	send_to_far(0);
}

/* S4-10: a callback arms so many that the cq which is waited with would not hear, and what is waited for comes. UDP. */
static void others_armed_while_waited(void **state)
{
	struct rwk_cq *cq;
	struct rwk_qp *qp;

	if (!world_has_fd)
		return;
	ends_open(service_of(state));
	post_to_far(1);
	open_idle();
	assert_int_equal(rwk_cq_create(far.adapter, 4, &cq), 0);
	qp = open_qp_on(cq);
	rwk_cq_on_event(cq, on_event_arm, NULL);
	assert_int_equal(rwk_cq_arm(cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(rwk_cq_wait(far.receive_cq, RWK_CQ_NEXT, (uint64_t)LONG * MS), 0);
	assert_int_equal(take(far.receive_cq), 1);
	rwk_qp_destroy(qp);
	assert_int_equal(rwk_cq_destroy(cq), 0);
	close_idle();
	ends_close();
}

/* Wakes who has armed send_cq, with a cancellation that waits for a point where it can strike. */
static void *post_cancelled(void *arg)
{
	struct end *e = arg;
	int rc;

	pthread_cancel(pthread_self());
	rc = ends_request(e, RWK_REQUEST_SEND, 0, 0, 0);
	if (!rc && ends_step) /* on UDP the looks of arming are such points */
		rc = rwk_cq_arm(e->receive_cq, RWK_CQ_NEXT);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return rc ? NULL : e;
}

/* S4-10: to ring and to quiet a bell is no point where a thread is cancelled. */
static void bell_is_no_point(void **state)
{
	pthread_t thread;
	void *result;

	ends_open(service_of(state));
	post_to_far(1);
	assert_true(rwk_cq_fd(far.send_cq) >= 0 && rwk_cq_fd(far.receive_cq) >= 0);
	assert_int_equal(rwk_cq_arm(far.send_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT), 0);
	assert_int_equal(rwk_qp_modify(far.qp, RWK_QPS_ERR, NULL), 0);
	assert_int_equal(take(far.receive_cq), 1);
	assert_int_equal(pthread_create(&thread, NULL, post_cancelled, &far), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &far);
	assert_true(is_readable(far.send_cq, 0));
	assert_int_equal(take(far.send_cq), 1);
	ends_close();
}

/* S4-10: time alone wakes who sleeps: nobody answers, and the wait sends again until the qp gives up. UDP. */
static void by_time(void **state)
{
	struct rwk_qp_attr attr = {.peer_port = 9, .peer_qpn = 5, .retry = 2, .timeout_ns = MS};
	struct rwk_wc wc;

	(void)state;
	if (!world_has_fd)
		return;
	ends_open_one(&near, 1, RWK_QP_RC);
	ends_ip(attr.peer_ip, 2);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_INIT, NULL), 0);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTR, &attr), 0);
	assert_int_equal(rwk_qp_modify(near.qp, RWK_QPS_RTS, NULL), 0);
	send_to_far(0);
	assert_int_equal(rwk_cq_wait(near.send_cq, RWK_CQ_NEXT, (uint64_t)LONG * MS), 0);
	assert_int_equal(rwk_cq_poll(near.send_cq, &wc, 1), 1);
	assert_int_equal(wc.status, -ETIMEDOUT);
	ends_close_one(&near);
}

/* One message to and fro, TURNS times; each end sleeps for each. */
static void *play(void *arg)
{
	struct rwk_request r = {.flags = RWK_REQUEST_UNSIGNALLED};
	struct rwk_receive v = {0};
	struct end *e = arg;
	unsigned failures = 0;

	for (unsigned i = 0; i < TURNS && !failures; i++) {
		if (e == &near)
			failures += rwk_qp_post(e->qp, &r) != 0;
		failures += rwk_cq_wait(e->receive_cq, RWK_CQ_NEXT, (uint64_t)LONG * MS) != 0;
		failures += take(e->receive_cq) != 1;
		failures += rwk_qp_post_receive(e->qp, &v) != 0;
		if (e == &far)
			failures += rwk_qp_post(e->qp, &r) != 0;
	}
	return failures ? e : NULL;
}

/* S4-10: no wake-up is lost. On UC nothing is sent again, so one that is lost would stay so. UDP. */
static void to_and_fro(void **state)
{
	pthread_t other;
	void *result;

	(void)state;
	if (!world_has_fd)
		return;
	ends_open(RWK_QP_UC);
	for (unsigned i = 0; i < 8; i++) {
		ends_receive(&near, i, 8);
		ends_receive(&far, i, 8);
	}
	assert_int_equal(pthread_create(&other, NULL, play, &far), 0);
	result = play(&near);
	assert_null(result);
	assert_int_equal(pthread_join(other, &result), 0);
	assert_null(result);
	ends_close();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned got;
static bool stop, failed;

/* Works for far, and leaves its receive_cq alone. */
static void *worker(void *arg)
{
	bool end = false;

	(void)arg;
	while (!end) {
		pthread_mutex_lock(&lock);
		rwk_cq_poll(far.send_cq, NULL, 0);
		end = stop;
		pthread_mutex_unlock(&lock);
		sched_yield();
	}
	return NULL;
}

/* Sleeps on far's receive_cq, with the lock given back. */
static void *sleeping(void *arg)
{
	struct rwk_receive v = {0};
	struct pollfd p;
	int rc;

	(void)arg;
	pthread_mutex_lock(&lock);
	p = (struct pollfd){.fd = rwk_cq_fd(far.receive_cq), .events = POLLIN};
	while (got < TURNS) {
		rc = rwk_cq_arm(far.receive_cq, RWK_CQ_NEXT);
		if (!rc) {
			pthread_mutex_unlock(&lock);
			rc = poll(&p, 1, LONG);
			pthread_mutex_lock(&lock);
			failed = rc != 1;
			if (failed)
				break;
		}
		for (int n = take(far.receive_cq); n > 0; n--, got++)
			rwk_qp_post_receive(far.qp, &v);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* S4-10: one thread sleeps, another one works, with a lock of theirs: the sleeper hears of what the worker has found.
 */
static void between_threads(void **state)
{
	pthread_t threads[2];
	unsigned sent = 0, seen = 0;
	bool ended = false;

	(void)state;
	if (!world_has_fd)
		return;
	ends_open(RWK_QP_UC);
	got = 0;
	stop = failed = false;
	post_to_far(8);
	assert_int_equal(pthread_create(&threads[0], NULL, worker, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, sleeping, NULL), 0);
	while (seen < TURNS && !ended) {
		for (; sent < TURNS && sent < seen + 4; sent++)
			send_to_far(0);
		sched_yield();
		pthread_mutex_lock(&lock);
		seen = got;
		ended = failed;
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	stop = true;
	pthread_mutex_unlock(&lock);
	assert_int_equal(pthread_join(threads[0], NULL) | pthread_join(threads[1], NULL), 0);
	assert_int_equal(got, TURNS);
	ends_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world_by(by_descriptor, world_rc),
		in_world_by(by_descriptor, world_uc),
		in_world_by(solicited, world_rc),
		in_world_by(solicited, world_uc),
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
		in_world(unread),
		in_world_by(wait_ends, world_rc),
		in_world_by(wait_ends, world_uc),
		in_world_by(by_packet, world_rc),
		in_world_by(by_packet, world_uc),
		in_world_by(others_gave_up, world_rc),
		in_world_by(others_armed_while_waited, world_rc),
		in_world_by(bell_is_no_point, world_rc),
		in_world(by_time),
		in_world(to_and_fro),
		in_world(between_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

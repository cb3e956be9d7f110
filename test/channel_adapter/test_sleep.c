/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S4-10: a cq as an event dispatcher: to sleep until something has completed, with a descriptor or in a call. Over UDP,
 * and, as far as no packet has to wake anybody, on the simulated network.
 *
 * Links: udp, sim.
 */
#include "channel_adapter/asleep.h"

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

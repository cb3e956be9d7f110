/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with FI_TRIGGER: they begin when a counter has come to a number. */
#include "pair.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <string.h>

static struct fid_cntr *new_counter(void)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(pair_domain.domain, NULL, &cntr, NULL), 0);
	return cntr;
}

static struct fi_triggered_context when(struct fid_cntr *cntr, size_t threshold)
{
	struct fi_triggered_context c = {.event_type = FI_TRIGGER_THRESHOLD};

	c.trigger.threshold = (struct fi_trigger_threshold){cntr, threshold};
	return c;
}

/* A message of the byte `c`, which stays where it is. */
static ssize_t send_when(struct pair *p, const char *c, struct fi_triggered_context *context, uint64_t flags)
{
	const struct iovec iov = {(void *)(uintptr_t)c, 1};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = p->to_b, .context = context, .data = 5};

	return fi_sendmsg(p->a.ep, &msg, flags | FI_TRIGGER);
}

/* Receives at b; a has talked to b before, so that what is sent too early would come at once. */
static void post(struct pair *p, char *in, size_t n)
{
	exchange(p, 1, TAG, true);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(fi_recv(p->b.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, &in[i]), 0);
}

/*
 * In the order of thresholds, those of the same in the order of calls, whatever the steps in which the counter comes
 * there; each completes as its endpoint's operations do, with its own context. One whose time has come begins at once.
 */
static void order_of_thresholds(void **state)
{
	static const struct {
		char c;
		size_t threshold;
	} sends[] = {{'d', 7}, {'b', 3}, {'a', 2}, {'e', 7}, {'c', 3}, {'f', 8}};
	struct fi_triggered_context context[7];
	struct fid_cntr *cntr = new_counter();
	struct pair p;
	char in[7] = "";

	(void)state;
	pair_open(&p, NULL);
	post(&p, in, 7);
	for (size_t i = 0; i < 6; i++) {
		context[i] = when(cntr, sends[i].threshold);
		assert_int_equal(send_when(&p, &sends[i].c, &context[i], i == 2 ? FI_REMOTE_CQ_DATA : 0), 0);
	}
	assert_int_equal(fi_cntr_set(cntr, 1), 0);
	t_nothing(p.b.cq, p.a.cq);
	assert_int_equal(fi_cntr_add(cntr, 6), 0); /* five of them */
	assert_int_equal(t_wait(p.b.cq, p.a.cq, NULL).flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	for (int i = 0; i < 4; i++)
		assert_int_equal(t_wait(p.b.cq, p.a.cq, NULL).flags, FI_RECV | FI_MSG);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &context[2]);
	t_nothing(p.b.cq, p.a.cq);
	assert_int_equal(fi_cntr_set(cntr, 100), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	context[6] = when(cntr, 100);
	assert_int_equal(send_when(&p, "g", &context[6], 0), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	assert_memory_equal(in, "abcdefg", 7);
	pair_close(&p);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* What comes in is sent on without a further call, by receives and sends that wait for the receive counter. */
static void passed_on(void **state)
{
	struct fid_cntr *received = new_counter();
	struct fi_triggered_context first, second;
	char in[2] = "", back = 0;
	struct iovec iov[2] = {{&in[0], 1}, {&in[1], 1}};
	struct fi_msg_tagged msg = {.iov_count = 1, .tag = TAG};
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(fi_ep_bind(p.b.ep, &received->fid, FI_RECV), 0);
	first = when(received, 1);
	second = when(received, 2);
	assert_int_equal(fi_trecv(p.a.ep, &back, 1, NULL, FI_ADDR_UNSPEC, TAG, 0, &back), 0);
	assert_int_equal(fi_trecv(p.b.ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	msg.msg_iov = &iov[1];
	msg.addr = FI_ADDR_UNSPEC;
	msg.context = &first;
	assert_int_equal(fi_trecvmsg(p.b.ep, &msg, FI_TRIGGER), 0); /* behind the first */
	msg.addr = p.to_a;
	msg.context = &second;
	assert_int_equal(fi_tsendmsg(p.b.ep, &msg, FI_TRIGGER), 0);
	t_post(fi_tsend(p.a.ep, "x", 1, NULL, p.to_b, TAG, &p), p.a.cq, p.b.cq);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &p);
	t_nothing(p.a.cq, p.b.cq); /* it waits at b, where nobody has asked for it yet */
	t_post(fi_tsend(p.a.ep, "w", 1, NULL, p.to_b, 1, &in), p.a.cq, p.b.cq);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &in);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &back);
	assert_int_equal(back, 'x');
	pair_close(&p);
	assert_int_equal(fi_close(&received->fid), 0);
}

/* An operation that has failed sets nothing off: its data is not there. */
static void failures_do_not_count(void **state)
{
	struct fid_cntr *cntr = new_counter();
	struct fi_triggered_context context = when(cntr, 1);
	struct pair p;
	char in = 0;

	(void)state;
	pair_open(&p, NULL);
	post(&p, &in, 1);
	assert_int_equal(send_when(&p, "x", &context, 0), 0);
	assert_int_equal(fi_cntr_adderr(cntr, 5), 0);
	t_nothing(p.b.cq, p.a.cq);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	t_wait(p.b.cq, p.a.cq, NULL);
	pair_close(&p);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* fi_cancel finds what waits: it ends with FI_ECANCELED and never begins. What is wrong with it is said when it begins.
 */
static void cancelled_and_failed(void **state)
{
	struct fid_cntr *cntr = new_counter();
	struct fi_triggered_context c1 = when(cntr, 1), c2 = when(cntr, 1);
	struct fi_cq_err_entry err;
	struct pair p;
	char in = 0;

	(void)state;
	pair_open(&p, NULL);
	post(&p, &in, 1);
	assert_int_equal(send_when(&p, "x", &c1, 0), 0);
	assert_int_equal(fi_cancel(&p.a.ep->fid, &c2), -FI_ENOENT);
	assert_int_equal(fi_cancel(&p.b.ep->fid, &c1), -FI_ENOENT);
	assert_int_equal(fi_cancel(&p.a.ep->fid, &c1), 0);
	err = t_wait_error(p.a.cq, p.b.cq);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &c1);
	assert_int_equal(err.flags, FI_SEND | FI_MSG);
	assert_int_equal(fi_cancel(&p.a.ep->fid, &c1), -FI_ENOENT);
	p.to_b += 1000;
	assert_int_equal(send_when(&p, "x", &c2, 0), 0);
	p.to_b -= 1000;
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	err = t_wait_error(p.a.cq, p.b.cq);
	assert_int_equal(err.err, FI_EINVAL);
	assert_ptr_equal(err.op_context, &c2);
	t_nothing(p.b.cq, p.a.cq);
	pair_close(&p);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* A buffer for many messages is said to be released also if it never was there for one. */
static void buffer_given_back(void **state)
{
	struct fid_cntr *cntr = new_counter();
	struct fi_triggered_context c = when(cntr, 1);
	char in[100];
	struct iovec iov = {in, sizeof(in)};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &c};
	struct fi_cq_err_entry err;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(fi_recvmsg(p.b.ep, &m, FI_TRIGGER | FI_MULTI_RECV), 0);
	assert_int_equal(fi_cancel(&p.b.ep->fid, &c), 0);
	err = t_wait_error(p.b.cq, p.a.cq);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &c);
	assert_int_equal(err.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	pair_close(&p);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* Accesses wait like messages, in all their forms. */
static void accesses(void **state)
{
	struct fid_cntr *cntr = new_counter();
	uint64_t memory[3] = {1, 10, 100}, got = 0, two = 2;
	struct fi_triggered_context context[3];
	struct iovec out = {&two, 8}, in = {&got, 8};
	struct fi_ioc operand = {&two, 1};
	struct fi_rma_iov at = {0, 8, 77};
	struct fi_rma_ioc element = {8, 1, 77};
	struct fi_msg_rma msg = {.msg_iov = &out, .iov_count = 1, .rma_iov = &at, .rma_iov_count = 1};
	struct fi_msg_atomic add = {.msg_iov = &operand,
		.iov_count = 1,
		.rma_iov = &element,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = FI_SUM};
	struct fid_mr *mr;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(fi_mr_reg(pair_domain.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 77,
				 0, &mr, NULL),
		0);
	for (int i = 0; i < 3; i++)
		context[i] = when(cntr, 3 - (size_t)i);
	msg.addr = add.addr = p.to_b;
	msg.context = &context[0];
	assert_int_equal(fi_writemsg(p.a.ep, &msg, FI_TRIGGER | FI_DELIVERY_COMPLETE), 0);
	add.context = &context[1];
	assert_int_equal(fi_atomicmsg(p.a.ep, &add, FI_TRIGGER), 0);
	msg.msg_iov = &in;
	at.addr = 8;
	msg.context = &context[2];
	assert_int_equal(fi_readmsg(p.a.ep, &msg, FI_TRIGGER), 0);
	t_nothing(p.a.cq, p.b.cq);
	assert_int_equal(memory[0] + memory[1], 11);
	two = 3; /* it is looked at when they begin */
	for (int i = 2; i >= 0; i--) {
		assert_int_equal(fi_cntr_add(cntr, 1), 0);
		assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &context[i]);
		assert_int_equal(got, 10);
		assert_int_equal(memory[1], i == 2 ? 10 : 13);
		assert_int_equal(memory[0], i == 0 ? 3 : 1);
	}
	pair_close(&p);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* An alias whose default flags have FI_TRIGGER: its calls without flags wait. */
static void alias(void **state)
{
	struct fid_cntr *cntr = new_counter();
	struct fi_triggered_context first = when(cntr, 1), second = when(cntr, 2);
	struct fid_ep *waiting = NULL;
	struct pair p;
	char in[3] = "";

	(void)state;
	pair_open(&p, NULL);
	post(&p, in, 3);
	assert_int_equal(fi_ep_alias(p.a.ep, &waiting, FI_TRANSMIT | FI_TRIGGER), 0);
	assert_int_equal(fi_send(waiting, "c", 1, NULL, p.to_b, &second), 0);
	assert_int_equal(fi_send(waiting, "b", 1, NULL, p.to_b, &first), 0);
	t_post(fi_send(p.a.ep, "a", 1, NULL, p.to_b, &p), p.a.cq, p.b.cq);
	t_wait(p.b.cq, p.a.cq, NULL);
	t_nothing(p.b.cq, p.a.cq);
	assert_int_equal(fi_cntr_add(cntr, 2), 0);
	for (int i = 0; i < 2; i++)
		t_wait(p.b.cq, p.a.cq, NULL);
	assert_memory_equal(in, "abc", 3);
	assert_int_equal(fi_close(&waiting->fid), 0);
	pair_close(&p);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* While works wait for it a counter does not close; an endpoint that does drops its own, and none of them begins. */
static void closed_while_waiting(void **state)
{
	struct fid_cntr *cntr = new_counter();
	struct fi_triggered_context context = when(cntr, 1);
	struct pair p;
	char in = 0;

	(void)state;
	pair_open(&p, NULL);
	post(&p, &in, 1);
	assert_int_equal(send_when(&p, "x", &context, 0), 0);
	assert_int_equal(fi_close(&cntr->fid), -FI_EBUSY);
	t_end_close(&p.a);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	t_nothing(p.b.cq, NULL);
	assert_int_equal(fi_close(&cntr->fid), 0);
	t_end_close(&p.b);
}

static void refused(void **state)
{
	struct fid_cntr *cntr = new_counter(), *foreign;
	struct fi_triggered_context good = when(cntr, 1), bad = good;
	const struct iovec iov = {&good, 1};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &good};
	struct fi_info *hints = t_hints();
	struct t_domain other;
	struct t_end e;
	struct pair p;

	(void)state;
	hints->caps = FI_MSG | FI_TAGGED;
	t_domain_open_with(&other, hints);
	assert_false(other.info->caps & FI_TRIGGER);
	t_end_open(&e, &other, NULL);
	assert_int_equal(fi_cntr_open(other.domain, NULL, &foreign, NULL), 0);
	pair_open(&p, NULL);
	assert_int_equal(send_when(&p, "x", NULL, 0), -FI_EINVAL);
	assert_int_equal(send_when(&p, "x", &good, FI_INJECT), -FI_EINVAL);
	bad.event_type = FI_TRIGGER_XPU;
	assert_int_equal(send_when(&p, "x", &bad, 0), -FI_ENOSYS);
	bad = when(foreign, 1);
	assert_int_equal(send_when(&p, "x", &bad, 0), -FI_EINVAL);
	bad = when(NULL, 1);
	assert_int_equal(send_when(&p, "x", &bad, 0), -FI_EINVAL);
	assert_int_equal(fi_trecvmsg(p.a.ep, &msg, FI_TRIGGER | FI_PEEK), -FI_EINVAL);
	good = when(foreign, 1);
	assert_int_equal(fi_trecvmsg(e.ep, &msg, FI_TRIGGER), -FI_EOPNOTSUPP);
	pair_close(&p);
	t_end_close(&e);
	assert_int_equal(fi_close(&foreign->fid), 0);
	t_domain_close(&other);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_of_thresholds),
		cmocka_unit_test(passed_on),
		cmocka_unit_test(failures_do_not_count),
		cmocka_unit_test(cancelled_and_failed),
		cmocka_unit_test(buffer_given_back),
		cmocka_unit_test(accesses),
		cmocka_unit_test(alias),
		cmocka_unit_test(closed_while_waiting),
		cmocka_unit_test(refused),
	};

	return pair_run(tests);
}

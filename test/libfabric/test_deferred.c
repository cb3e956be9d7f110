/* SPDX-License-Identifier: BSD-3-Clause */
/* Deferred work: operations given to the domain, which begin when a counter has come to a number. */
#include "pair.h"

#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <string.h>

#define KEY  77
#define MOST 16384 /* works that a domain takes */

static struct fid_cntr *new_counter(void)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(pair_domain.domain, NULL, &cntr, NULL), 0);
	return cntr;
}

static void close_counter(struct fid_cntr *cntr)
{
	assert_int_equal(fi_close(&cntr->fid), 0);
}

static int queue(struct fi_deferred_work *work)
{
	return fi_control(&pair_domain.domain->fid, FI_QUEUE_WORK, work);
}

static int cancel(struct fi_deferred_work *work)
{
	return fi_control(&pair_domain.domain->fid, FI_CANCEL_WORK, work);
}

/* Everything that an operation can need; fill_in makes any of them of it. */
struct job {
	struct fi_deferred_work work;
	struct iovec iov;
	struct fi_ioc operand, comparand, result;
	struct fi_rma_iov range;
	struct fi_rma_ioc element;
	union {
		struct fi_op_msg msg;
		struct fi_op_tagged tagged;
		struct fi_op_rma rma;
		struct fi_op_atomic atomic;
		struct fi_op_fetch_atomic fetch;
		struct fi_op_compare_atomic compare;
		struct fi_op_cntr cntr;
	} op;
	uint64_t data, compare, before;
};

/* An operation of `ep` with the endpoint `peer`: 8 bytes of job.data, and those at `at` of the region KEY. */
static void fill_in(struct job *j, enum fi_op_type type, struct fid_ep *ep, fi_addr_t peer, uint64_t at, uint64_t flags,
	void *context)
{
	struct fi_msg_atomic atomic = {.msg_iov = &j->operand,
		.iov_count = 1,
		.addr = peer,
		.rma_iov = &j->element,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = FI_SUM,
		.context = context};
	struct fi_msg_fetch fetch = {&j->result, NULL, 1};

	j->iov = (struct iovec){&j->data, sizeof(j->data)};
	j->operand = (struct fi_ioc){&j->data, 1};
	j->comparand = (struct fi_ioc){&j->compare, 1};
	j->result = (struct fi_ioc){&j->before, 1};
	j->range = (struct fi_rma_iov){at, sizeof(j->data), KEY};
	j->element = (struct fi_rma_ioc){at, 1, KEY};
	j->work.op_type = type;
	j->work.op.msg = &j->op.msg; /* each member of either union */
	switch (type) {
	case FI_OP_SEND:
	case FI_OP_RECV:
		j->op.msg = (struct fi_op_msg){
			ep, {.msg_iov = &j->iov, .iov_count = 1, .addr = peer, .context = context}, flags};
		break;
	case FI_OP_TSEND:
	case FI_OP_TRECV:
		j->op.tagged = (struct fi_op_tagged){
			ep, {.msg_iov = &j->iov, .iov_count = 1, .addr = peer, .tag = TAG, .context = context}, flags};
		break;
	case FI_OP_READ:
	case FI_OP_WRITE:
		j->op.rma = (struct fi_op_rma){ep,
			{.msg_iov = &j->iov,
				.iov_count = 1,
				.addr = peer,
				.rma_iov = &j->range,
				.rma_iov_count = 1,
				.context = context},
			flags};
		break;
	case FI_OP_ATOMIC:
		j->op.atomic = (struct fi_op_atomic){ep, atomic, flags};
		break;
	case FI_OP_FETCH_ATOMIC:
		j->op.fetch = (struct fi_op_fetch_atomic){ep, atomic, fetch, flags};
		break;
	case FI_OP_COMPARE_ATOMIC:
		atomic.op = FI_CSWAP;
		j->op.compare = (struct fi_op_compare_atomic){ep, atomic, fetch, {&j->comparand, NULL, 1}, flags};
		break;
	default:
		fail();
	}
}

static void condition(struct job *j, struct fid_cntr *cntr, uint64_t threshold, struct fid_cntr *completion)
{
	j->work.triggering_cntr = cntr;
	j->work.threshold = threshold;
	j->work.completion_cntr = completion;
}

static int queue_count(struct fi_deferred_work *work, struct fi_op_cntr *op, enum fi_op_type type,
	struct fid_cntr *when, uint64_t threshold)
{
	*work = (struct fi_deferred_work){.threshold = threshold, .triggering_cntr = when, .op_type = type};
	work->op.cntr = op;
	return queue(work);
}

/* By no other call than that on a counter which no endpoint is bound to. */
static void wait_for(struct fid_cntr *cntr, uint64_t value)
{
	assert_int_equal(fi_cntr_wait(cntr, value, T_PATIENCE), 0);
}

/*
 * Every operation, one set off by the end of the one before; none has an entry. At the end memory and buffers are as if
 * they had been called in turn, although the structures that described them have been overwritten.
 */
static void every_operation(void **state)
{
	static const enum fi_op_type types[] = {FI_OP_RECV, FI_OP_SEND, FI_OP_TRECV, FI_OP_TSEND, FI_OP_WRITE,
		FI_OP_ATOMIC, FI_OP_FETCH_ATOMIC, FI_OP_COMPARE_ATOMIC, FI_OP_READ};
	enum { COUNT = sizeof(types) / sizeof(types[0]) };
	struct fid_cntr *cntr[COUNT + 1], *bound = new_counter();
	uint64_t memory[2] = {1, 2};
	struct job j[COUNT];
	struct fid_mr *mr;
	struct pair p;

	(void)state;
	pair_open(&p, &(struct t_options){.tx_cntr = bound});
	assert_int_equal(fi_mr_reg(pair_domain.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
				 0, &mr, NULL),
		0);
	for (int i = 0; i <= COUNT; i++)
		cntr[i] = new_counter();
	memset(j, 0, sizeof(j));
	for (int i = COUNT - 1; i >= 0; i--) {
		bool receives = types[i] == FI_OP_RECV || types[i] == FI_OP_TRECV;

		fill_in(&j[i], types[i], receives ? p.b.ep : p.a.ep, receives ? FI_ADDR_UNSPEC : p.to_b, 8, 0, &j[i]);
		j[i].data = 100;
		j[i].compare = 200;
		/* A receive's successor, the send, begins with it: it ends by that. */
		condition(&j[i], cntr[i - (i == 1 || i == 3)], 1, cntr[i + 1]);
		assert_int_equal(queue(&j[i].work), 0);
		memset(&j[i].op, 0xff, sizeof(j[i].op));
		memset(&j[i].iov, 0xff, offsetof(struct job, op) - offsetof(struct job, iov));
	}
	assert_int_equal(memory[1], 2);
	assert_int_equal(fi_cntr_add(cntr[0], 1), 0);
	/* The third begins when the second has ended, and by then the first may not have. */
	wait_for(cntr[1], 1);
	wait_for(cntr[COUNT], 1);
	for (int i = 1; i <= COUNT; i++)
		assert_int_equal(fi_cntr_read(cntr[i]), 1);
	assert_int_equal(j[0].data, 100); /* what was sent */
	assert_int_equal(j[2].data, 100);
	assert_int_equal(memory[0], 1);
	assert_int_equal(j[6].before, 200); /* written 100, added 100 */
	assert_int_equal(j[7].before, 300); /* and 100: not what was compared with */
	assert_int_equal(memory[1], 300);
	assert_int_equal(j[8].data, 300);
	t_nothing(p.a.cq, p.b.cq);
	t_nothing(p.b.cq, p.a.cq);
	assert_int_equal(fi_cntr_read(bound), 0);
	pair_close(&p);
	for (int i = 0; i <= COUNT; i++)
		close_counter(cntr[i]);
	close_counter(bound);
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* With FI_COMPLETION it completes at the endpoint too; a counter that is there for both counts once. */
static void shown(void **state)
{
	struct fid_cntr *sent = new_counter(), *cntr = new_counter();
	struct job send[2] = {0}, recv = {0};
	struct pair p;

	(void)state;
	pair_open(&p, &(struct t_options){.tx_cntr = sent, .bind_flags = FI_SELECTIVE_COMPLETION});
	for (int i = 0; i < 2; i++) {
		fill_in(&send[i], FI_OP_SEND, p.a.ep, p.to_b, 0, FI_COMPLETION, &send[i]);
		condition(&send[i], cntr, 2, i ? sent : NULL);
		assert_int_equal(queue(&send[i].work), 0);
	}
	fill_in(&recv, FI_OP_RECV, p.b.ep, FI_ADDR_UNSPEC, 0, FI_COMPLETION, &recv);
	condition(&recv, cntr, 1, NULL);
	assert_int_equal(queue(&recv.work), 0);
	fi_cntr_set(cntr, 2);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &send[0]);
	assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &send[1]);
	assert_ptr_equal(t_wait(p.b.cq, p.a.cq, NULL).op_context, &recv);
	assert_int_equal(fi_cntr_read(sent), 2);
	pair_close(&p);
	close_counter(sent);
	close_counter(cntr);
}

static void *add_one(void *cntr)
{
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	return NULL;
}

/* Counters that set one another: those of one threshold before what they bring about; errors count as well. */
static void counters(void **state)
{
	struct fid_cntr *cntr = new_counter(), *other = new_counter();
	struct fi_op_cntr add_1 = {cntr, 1}, set_50 = {other, 50}, add_7 = {other, 7}, self;
	struct fi_deferred_work work[4], many;
	pthread_attr_t small;
	pthread_t thread;

	(void)state;
	assert_int_equal(queue_count(&work[0], &add_7, FI_OP_CNTR_ADD, cntr, 3), 0);
	assert_int_equal(queue_count(&work[1], &add_1, FI_OP_CNTR_ADD, cntr, 2), 0);  /* makes it 3, */
	assert_int_equal(queue_count(&work[2], &set_50, FI_OP_CNTR_SET, cntr, 2), 0); /* which comes before */
	assert_int_equal(fi_cntr_adderr(cntr, 1), 0);
	assert_int_equal(fi_cntr_read(other), 0);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_int_equal(fi_cntr_read(other), 57);
	assert_int_equal(fi_cntr_read(cntr), 2);
	assert_int_equal(queue_count(&work[3], &add_7, FI_OP_CNTR_ADD, cntr, 3), 0); /* at once */
	assert_int_equal(fi_cntr_read(other), 64);
	self = (struct fi_op_cntr){other, 1};
	assert_int_equal(fi_cntr_set(other, 0), 0);
	for (uint64_t i = 1; i <= 10000; i++)
		assert_int_equal(queue_count(&many, &self, FI_OP_CNTR_ADD, other, i), 0);
	/* A long chain takes no long stack. */
	assert_int_equal(pthread_attr_init(&small), 0);
	assert_int_equal(pthread_attr_setstacksize(&small, 256 << 10), 0);
	assert_int_equal(pthread_create(&thread, &small, add_one, other), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&small);
	assert_int_equal(fi_cntr_read(other), 10001);
	close_counter(cntr);
	close_counter(other);
}

/* What a peer does to memory sets off works, which may be about the same peer: an answer, and a write back. */
static void set_off_by_a_peer(void **state)
{
	struct fid_cntr *written = new_counter(), *end = new_counter();
	uint64_t memory[2] = {0}, one = 1, answer = 0;
	struct job j[2] = {0};
	struct fid_mr *mr;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(fi_ep_bind(p.b.ep, &written->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(
		fi_mr_reg(pair_domain.domain, memory, sizeof(memory), FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
	for (int i = 0; i < 2; i++) {
		fill_in(&j[i], i ? FI_OP_WRITE : FI_OP_TSEND, p.b.ep, p.to_a, 8, 0, NULL);
		j[i].data = 30 + (uint64_t)i;
		condition(&j[i], written, 2, end);
		assert_int_equal(queue(&j[i].work), 0);
	}
	assert_int_equal(fi_trecv(p.a.ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, TAG, 0, &answer), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_cntr_read(end), 0);
		t_post(fi_write(p.a.ep, &one, sizeof(one), NULL, p.to_b, 0, KEY, &one), p.a.cq, p.b.cq);
		if (i == 0)
			assert_ptr_equal(t_wait(p.a.cq, p.b.cq, NULL).op_context, &one);
	}
	wait_for(end, 2);
	for (int i = 0; i < 2; i++)
		t_wait(p.a.cq, p.b.cq, NULL);
	assert_int_equal(answer, 30);
	assert_int_equal(memory[0], 1);
	assert_int_equal(memory[1], 31);
	pair_close(&p);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_counter(written);
	close_counter(end);
}

/* What is cancelled does not begin; what is flushed neither, all or those of one counter. A counter is free then. */
static void cancelled_and_flushed(void **state)
{
	struct fid_domain *domain = pair_domain.domain;
	struct fid_cntr *cntr[2] = {new_counter(), new_counter()}, *sum = new_counter();
	struct fi_op_cntr op = {sum, 1};
	struct fi_deferred_work work[3], big[2];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(queue_count(&work[i], &op, FI_OP_CNTR_ADD, cntr[0], 1), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(queue_count(&big[i], &op, FI_OP_CNTR_ADD, cntr[i], 2), 0);
	assert_int_equal(fi_close(&sum->fid), -FI_EBUSY);
	assert_int_equal(cancel(&work[1]), 0);
	assert_int_equal(cancel(&work[1]), -FI_ENOENT);
	assert_int_equal(fi_cntr_add(cntr[0], 1), 0);
	assert_int_equal(fi_cntr_read(sum), 2);
	assert_int_equal(cancel(&work[0]), -FI_ENOENT);
	assert_int_equal(fi_control(&domain->fid, FI_FLUSH_WORK, cntr[0]), 0);
	close_counter(cntr[0]);
	assert_int_equal(fi_close(&cntr[1]->fid), -FI_EBUSY);
	assert_int_equal(fi_cntr_add(cntr[1], 2), 0);
	assert_int_equal(fi_cntr_read(sum), 3);
	assert_int_equal(queue_count(&big[0], &op, FI_OP_CNTR_ADD, cntr[1], 3), 0);
	assert_int_equal(fi_control(&domain->fid, FI_FLUSH_WORK, NULL), 0);
	assert_int_equal(fi_cntr_add(cntr[1], 1), 0);
	assert_int_equal(fi_cntr_read(sum), 3);
	assert_int_equal(fi_control(&domain->fid, FI_FLUSH_WORK, &domain->fid), -FI_EINVAL);
	close_counter(cntr[1]);
	close_counter(sum);
}

/* A failure is counted as one, and what waits for it goes on; it has an entry only with FI_COMPLETION. */
static void failures(void **state)
{
	struct fid_cntr *cntr = new_counter(), *end = new_counter(), *after = new_counter();
	struct fi_op_cntr op = {after, 1};
	struct fi_cq_err_entry err;
	struct fi_deferred_work next;
	struct job j[3] = {0};
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	for (int i = 0; i < 3; i++) {
		fill_in(&j[i], i == 2 ? FI_OP_SEND : FI_OP_READ, p.a.ep, p.to_b + (i == 2 ? 1000 : 0), 0,
			i ? FI_COMPLETION : 0, &j[i]); /* there is no such region, no such peer */
		condition(&j[i], cntr, 1 + (uint64_t)i, end);
		assert_int_equal(queue(&j[i].work), 0);
	}
	assert_int_equal(queue_count(&next, &op, FI_OP_CNTR_ADD, end, 1), 0);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_int_equal(fi_cntr_wait(end, 1, T_PATIENCE), -FI_EAVAIL);
	assert_int_equal(fi_cntr_read(after), 1);
	t_nothing(p.a.cq, p.b.cq);
	assert_int_equal(fi_cntr_add(cntr, 2), 0);
	for (int i = 0; i < 2; i++) {
		err = t_wait_error(p.a.cq, p.b.cq);
		assert_true(err.err == FI_EACCES ? err.op_context == &j[1] : err.op_context == &j[2]);
		assert_int_equal(err.flags, err.err == FI_EACCES ? FI_RMA | FI_READ : FI_SEND | FI_MSG);
	}
	assert_int_equal(fi_cntr_read(end), 0);
	assert_int_equal(fi_cntr_readerr(end), 3);
	pair_close(&p);
	close_counter(end);
	close_counter(cntr);
	close_counter(after);
}

/* A fence waits for what is under way, and what comes behind it waits with it; cancelled in time it never begins. */
static void fenced(void **state)
{
	enum { LONG = 300000 };
	struct fid_cntr *cntr = new_counter(), *end = new_counter();
	char *out = calloc(1, LONG), *in = calloc(1, LONG), last[3];
	struct job j[3] = {0};
	struct pair p;

	(void)state;
	assert_true(out && in);
	pair_open(&p, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(p.b.ep, &last[i], 1, NULL, FI_ADDR_UNSPEC, &last[i]), 0);
	t_post(fi_tsend(p.a.ep, out, LONG, NULL, p.to_b, TAG, out), p.a.cq, p.b.cq);
	for (int i = 0; i < 3; i++) {
		fill_in(&j[i], FI_OP_SEND, p.a.ep, p.to_b, 0, i ? 0 : FI_FENCE, NULL);
		memset(&j[i].data, 'x' + i, 1);
		j[i].iov.iov_len = 1;
		condition(&j[i], cntr, 1, end);
		assert_int_equal(queue(&j[i].work), 0);
	}
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	t_nothing(p.b.cq, p.a.cq);
	assert_int_equal(cancel(&j[1].work), 0);
	assert_int_equal(fi_trecv(p.b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, in), 0);
	assert_ptr_equal(t_wait(p.b.cq, p.a.cq, NULL).op_context, in);
	assert_ptr_equal(t_wait(p.b.cq, p.a.cq, NULL).op_context, &last[0]);
	assert_ptr_equal(t_wait(p.b.cq, p.a.cq, NULL).op_context, &last[1]);
	assert_memory_equal(last, "xz", 2);
	wait_for(end, 2);
	t_nothing(p.b.cq, p.a.cq);
	pair_close(&p);
	close_counter(cntr);
	close_counter(end);
	free(out);
	free(in);
}

/* What the first of those that a fence has held up sets off comes behind all of them. */
static void set_off_by_the_held_up(void **state)
{
	enum { LONG = 300000 };
	struct fid_cntr *cntr = new_counter(), *begun = new_counter(), *end = new_counter();
	char *out = calloc(1, LONG), *in = calloc(1, LONG), last[4] = {0};
	struct job j[4] = {0};
	struct pair p;

	(void)state;
	assert_true(out && in);
	pair_open(&p, NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(fi_recv(p.b.ep, &last[i], 1, NULL, FI_ADDR_UNSPEC, &last[i]), 0);
	t_post(fi_tsend(p.a.ep, out, LONG, NULL, p.to_b, TAG, out), p.a.cq, p.b.cq);
	for (int i = 0; i < 4; i++) {
		fill_in(&j[i], FI_OP_SEND, p.a.ep, p.to_b, 0, i ? 0 : FI_FENCE, NULL);
		memset(&j[i].data, 'a' + i, 1);
		j[i].iov.iov_len = 1;
		condition(&j[i], i < 3 ? cntr : begun, 1, i ? end : begun);
		assert_int_equal(queue(&j[i].work), 0);
	}
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_int_equal(fi_trecv(p.b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, in), 0);
	assert_ptr_equal(t_wait(p.b.cq, p.a.cq, NULL).op_context, in);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(t_wait(p.b.cq, p.a.cq, NULL).op_context, &last[i]);
	assert_memory_equal(last, "abcd", 4);
	wait_for(end, 3);
	pair_close(&p);
	close_counter(cntr);
	close_counter(begun);
	close_counter(end);
	free(out);
	free(in);
}

/* As many as a domain takes, all set off at once, when an endpoint has far fewer under way; one more is refused. */
static void many(void **state)
{
	struct fid_cntr *cntr = new_counter(), *end = new_counter();
	uint64_t memory = 0;
	struct job j = {0};
	struct fid_mr *mr;
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(
		fi_mr_reg(pair_domain.domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
	fill_in(&j, FI_OP_ATOMIC, p.a.ep, p.to_b, 0, 0, NULL);
	j.data = 1;
	condition(&j, cntr, 1, end);
	for (int i = 0; i < MOST; i++)
		assert_int_equal(queue(&j.work), 0);
	assert_int_equal(queue(&j.work), -FI_EAGAIN);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	wait_for(end, MOST);
	assert_int_equal(memory, MOST);
	assert_int_equal(queue(&j.work), 0);
	wait_for(end, MOST + 1);
	pair_close(&p);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_counter(cntr);
	close_counter(end);
}

/* A receive that has begun is withdrawn by fi_cancel; an endpoint that is closed drops those that wait or have begun.
 */
static void begun(void **state)
{
	struct fid_cntr *cntr = new_counter(), *end = new_counter();
	struct job j[3] = {0};
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	for (int i = 0; i < 3; i++) {
		fill_in(&j[i], FI_OP_TRECV, p.b.ep, FI_ADDR_UNSPEC, 0, 0, &j[i]);
		condition(&j[i], cntr, i == 2 ? 9 : 0, end);
		assert_int_equal(queue(&j[i].work), 0);
	}
	assert_int_equal(cancel(&j[0].work), -FI_ENOENT);
	assert_int_equal(fi_cancel(&p.b.ep->fid, &j[0]), 0);
	assert_int_equal(fi_cntr_readerr(end), 1);
	assert_int_equal(fi_close(&end->fid), -FI_EBUSY);
	pair_close(&p);
	assert_int_equal(fi_cntr_read(end), 0);
	close_counter(end);
	close_counter(cntr);
}

static void refused(void **state)
{
	struct fid_cntr *cntr = new_counter(), *foreign;
	struct fi_op_cntr op = {cntr, 1};
	struct fi_deferred_work work;
	struct t_domain other;
	struct job j = {0};
	struct pair p;

	(void)state;
	t_domain_open(&other, 0, FI_THREAD_DOMAIN);
	assert_int_equal(fi_cntr_open(other.domain, NULL, &foreign, NULL), 0);
	pair_open(&p, NULL);
	assert_int_equal(queue(NULL), -FI_EINVAL);
	assert_int_equal(queue_count(&work, &op, FI_OP_CNTR_ADD, NULL, 1), -FI_EINVAL);
	assert_int_equal(queue_count(&work, &op, FI_OP_CNTR_ADD, foreign, 1), -FI_EINVAL);
	assert_int_equal(queue_count(&work, &op, (enum fi_op_type)99, cntr, 1), -FI_ENOSYS);
	work.op_type = FI_OP_CNTR_SET;
	work.completion_cntr = cntr;
	assert_int_equal(queue(&work), -FI_EINVAL);
	op.cntr = foreign;
	assert_int_equal(queue_count(&work, &op, FI_OP_CNTR_ADD, cntr, 1), -FI_EINVAL);
	fill_in(&j, FI_OP_SEND, p.a.ep, p.to_b, 0, FI_INJECT, NULL);
	condition(&j, cntr, 1, NULL);
	assert_int_equal(queue(&j.work), -FI_ENOSYS);
	j.op.msg.flags = FI_COMMIT_COMPLETE;
	assert_int_equal(queue(&j.work), -FI_EBADFLAGS);
	fill_in(&j, FI_OP_TRECV, p.a.ep, p.to_b, 0, FI_PEEK, NULL);
	assert_int_equal(queue(&j.work), -FI_ENOSYS);
	fill_in(&j, FI_OP_WRITE, NULL, p.to_b, 0, 0, NULL);
	assert_int_equal(queue(&j.work), -FI_EINVAL);
	fill_in(&j, FI_OP_ATOMIC, p.a.ep, p.to_b, 0, 0, NULL);
	j.op.atomic.msg.op = FI_ATOMIC_READ;
	assert_int_equal(queue(&j.work), -FI_EOPNOTSUPP);
	pair_close(&p);
	close_counter(cntr);
	close_counter(foreign);
	t_domain_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation),
		cmocka_unit_test(shown),
		cmocka_unit_test(counters),
		cmocka_unit_test(set_off_by_a_peer),
		cmocka_unit_test(cancelled_and_flushed),
		cmocka_unit_test(failures),
		cmocka_unit_test(fenced),
		cmocka_unit_test(set_off_by_the_held_up),
		cmocka_unit_test(many),
		cmocka_unit_test(begun),
		cmocka_unit_test(refused),
	};

	return pair_run(tests);
}

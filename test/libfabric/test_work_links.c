/* SPDX-License-Identifier: BSD-3-Clause */
/* Deferred work on another process's memory, over each link: one operation set off by the end of the one before. */
#include "fi_target.h"

#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

#define LONG  200000
#define AT    4096 /* where the long write goes */
#define STEPS 5

static struct fid_cntr *new_counter(struct t_user *u)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(u->d.domain, &attr, &cntr, NULL), 0);
	return cntr;
}

static void queue(struct t_user *u, enum fi_op_type type, void *op, struct fid_cntr *cntr, struct fid_cntr *completion)
{
	struct fi_deferred_work work = {.threshold = 1, .triggering_cntr = cntr, .completion_cntr = completion};

	work.op_type = type;
	work.op.rma = op; /* or another member: they are pointers all */
	assert_int_equal(fi_control(&u->d.domain->fid, FI_QUEUE_WORK, &work), 0);
}

static void queue_rma(struct t_user *u, enum fi_op_type type, void *buf, size_t len, size_t at, struct fid_cntr **c)
{
	struct iovec iov = {buf, len};
	struct fi_rma_iov range = {u->base + at, len, u->key};
	struct fi_op_rma op = {.ep = u->e.ep,
		.msg = {.msg_iov = &iov, .iov_count = 1, .addr = u->to, .rma_iov = &range, .rma_iov_count = 1}};

	queue(u, type, &op, c[0], c[1]);
}

static void queue_add(struct t_user *u, uint64_t *add, uint64_t *before, struct fid_cntr **c)
{
	struct fi_ioc operand = {add, 1}, result = {before, 1};
	struct fi_rma_ioc element = {u->base, 1, u->key};
	struct fi_op_fetch_atomic op = {.ep = u->e.ep,
		.msg = {.msg_iov = &operand,
			.iov_count = 1,
			.addr = u->to,
			.rma_iov = &element,
			.rma_iov_count = 1,
			.datatype = FI_UINT64,
			.op = FI_SUM},
		.fetch = {&result, NULL, 1}};

	queue(u, FI_OP_FETCH_ATOMIC, &op, c[0], c[1]);
}

static void chain(struct t_user *u)
{
	uint64_t first = 40, two = 2, before = 0, after = 0;
	unsigned char *out = malloc(LONG), *in = calloc(1, LONG);
	struct fid_cntr *c[STEPS + 1];

	assert_true(out && in);
	t_fill(out, LONG, 5);
	for (int i = 0; i <= STEPS; i++)
		c[i] = new_counter(u);
	queue_rma(u, FI_OP_READ, in, LONG, AT, &c[4]);
	queue_rma(u, FI_OP_WRITE, out, LONG, AT, &c[3]);
	queue_rma(u, FI_OP_READ, &after, sizeof(after), 0, &c[2]);
	queue_add(u, &two, &before, &c[1]);
	queue_rma(u, FI_OP_WRITE, &first, sizeof(first), 0, &c[0]);
	t_ask(u, T_CHECK, 0, 0, 0); /* nothing has begun */
	assert_int_equal(fi_cntr_add(c[0], 1), 0);
	assert_int_equal(fi_cntr_wait(c[STEPS], 1, T_PATIENCE), 0);
	assert_int_equal(before, 40);
	assert_int_equal(after, 42);
	t_check(in, LONG, 5);
	assert_int_equal(t_ask(u, T_COPY, 0, 0, 0).word[0], 42);
	t_nothing(u->e.cq, NULL);
	for (int i = 0; i <= STEPS; i++) {
		assert_int_equal(fi_cntr_readerr(c[i]), 0);
		assert_int_equal(fi_close(&c[i]->fid), 0);
	}
	free(out);
	free(in);
}

static void over_each_link(void **state)
{
	static const struct t_setup setups[] = {{0}, {.progress = FI_PROGRESS_AUTO, .threading = FI_THREAD_SAFE}};

	(void)state;
	for (int i = 0; i < T_LINKS; i++) {
		for (int s = 0; s < 2; s++)
			t_with_target(t_links[i], &setups[s], chain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_each_link),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

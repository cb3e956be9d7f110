/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of the attributes of queues, counters and vectors; options of an endpoint; atomic operations; deferred work.
 */
#include "try.h"

static bool is(const struct t_name *n, const char *group)
{
	return !strcmp(n->group, group);
}

static void try_wait_obj(struct t_target *t, const struct t_name *n)
{
	enum fi_wait_obj obj = (enum fi_wait_obj)n->value;
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = obj};
	struct fi_cntr_attr cntr_attr = {.wait_obj = obj};
	struct fi_wait_attr wait_attr = {.wait_obj = obj};
	struct fi_eq_attr eq_attr = {.wait_obj = obj};
	struct fi_wait_attr set_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_wait *set = NULL, *wait;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_eq *eq;

	if (obj == FI_WAIT_SET && !fi_wait_open(t->fabric, &set_attr, &set))
		cq_attr.wait_set = cntr_attr.wait_set = eq_attr.wait_set = set;
	t_report(t, n->group, n->name, "fi_cq_open", t_opened(fi_cq_open(t->domain, &cq_attr, &cq, NULL), &cq));
	t_report(t, n->group, n->name, "fi_cntr_open",
		t_opened(fi_cntr_open(t->domain, &cntr_attr, &cntr, NULL), &cntr));
	t_report(t, n->group, n->name, "fi_eq_open", t_opened(fi_eq_open(t->fabric, &eq_attr, &eq, NULL), &eq));
	t_report(t, n->group, n->name, "fi_wait_open", t_opened(fi_wait_open(t->fabric, &wait_attr, &wait), &wait));
	if (set)
		fi_close(&set->fid);
}

static void try_cq(struct t_target *t, const struct t_name *n)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC};
	struct fid_cq *cq;

	if (is(n, "cq_format"))
		attr.format = (enum fi_cq_format)n->value;
	else
		attr.wait_cond = (enum fi_cq_wait_cond)n->value;
	t_report(t, n->group, n->name, "fi_cq_open", t_opened(fi_cq_open(t->domain, &attr, &cq, NULL), &cq));
}

static void try_cntr_events(struct t_target *t, const struct t_name *n)
{
	struct fi_cntr_attr attr = {.events = (enum fi_cntr_events)n->value};
	struct fid_cntr *cntr;

	t_report(t, n->group, n->name, "fi_cntr_open", t_opened(fi_cntr_open(t->domain, &attr, &cntr, NULL), &cntr));
}

/* Asked for, and set to what it is; if it cannot be asked for, to 64. */
static void try_ep_option(struct t_target *t, const struct t_name *n)
{
	unsigned char value[64] = {64};
	size_t len = sizeof(value);
	int err = fi_getopt(&t->ep->fid, FI_OPT_ENDPOINT, (int)n->value, value, &len);

	t_report(t, n->group, n->name, "fi_getopt", err);
	if (err)
		len = sizeof(size_t);
	t_report(t, n->group, n->name, "fi_setopt", fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT, (int)n->value, value, len));
}

/* "FI_SUM.FI_INT8": an operation and a type, both in the value. */
static void try_atomic(struct t_target *t, const struct t_name *n)
{
	enum fi_op op = (enum fi_op)(n->value >> 16);
	enum fi_datatype type = (enum fi_datatype)(n->value & 0xffff);
	size_t count;

	t_report(t, n->group, n->name, "atomic", fi_atomicvalid(t->ep, type, op, &count));
	t_report(t, n->group, n->name, "fetch", fi_fetch_atomicvalid(t->ep, type, op, &count));
	t_report(t, n->group, n->name, "compare", fi_compare_atomicvalid(t->ep, type, op, &count));
}

static void try_collective(struct t_target *t, const struct t_name *n)
{
	struct fi_collective_attr attr = {.op = FI_SUM, .datatype = FI_INT32};

	t_report(t, n->group, n->name, "fi_query_collective",
		fi_query_collective(t->domain, (enum fi_collective_op)n->value, &attr, 0));
}

/* Work that waits for what never comes, and is withdrawn. */
static void try_deferred(struct t_target *t, const struct t_name *n)
{
	static char buf[8], result[8], compare[8];
	struct iovec iov = {buf, sizeof(buf)};
	struct fi_ioc ioc = {buf, 1}, result_ioc = {result, 1}, compare_ioc = {compare, 1};
	struct fi_rma_iov there = {t->remote, sizeof(buf), t->key};
	struct fi_rma_ioc there_ioc = {t->remote, 1, t->key};
	struct fi_op_msg msg = {.ep = t->ep, .msg = {.msg_iov = &iov, .iov_count = 1, .addr = t->to}};
	struct fi_op_tagged tagged = {.ep = t->ep, .msg = {.msg_iov = &iov, .iov_count = 1, .addr = t->to}};
	struct fi_op_rma rma = {.ep = t->ep,
		.msg = {.msg_iov = &iov, .iov_count = 1, .addr = t->to, .rma_iov = &there, .rma_iov_count = 1}};
	struct fi_op_compare_atomic atomic = {.ep = t->ep,
		.msg = {.msg_iov = &ioc,
			.iov_count = 1,
			.addr = t->to,
			.rma_iov = &there_ioc,
			.rma_iov_count = 1,
			.datatype = FI_UINT64,
			.op = n->value == FI_OP_COMPARE_ATOMIC ? FI_CSWAP : FI_SUM},
		.fetch = {.msg_iov = &result_ioc, .iov_count = 1},
		.compare = {.msg_iov = &compare_ioc, .iov_count = 1}};
	struct fi_op_fetch_atomic fetch = {.ep = t->ep, .msg = atomic.msg, .fetch = atomic.fetch};
	struct fi_op_atomic plain = {.ep = t->ep, .msg = atomic.msg};
	struct fi_op_cntr cntr = {.cntr = t->cntr, .value = 1};
	struct fi_deferred_work work = {
		.threshold = 1000000, .triggering_cntr = t->cntr, .op_type = (enum fi_op_type)n->value};

	switch (work.op_type) {
	case FI_OP_RECV:
	case FI_OP_SEND:
		work.op.msg = &msg;
		break;
	case FI_OP_TRECV:
	case FI_OP_TSEND:
		work.op.tagged = &tagged;
		break;
	case FI_OP_READ:
	case FI_OP_WRITE:
		work.op.rma = &rma;
		break;
	case FI_OP_ATOMIC:
		work.op.atomic = &plain;
		break;
	case FI_OP_FETCH_ATOMIC:
		work.op.fetch_atomic = &fetch;
		break;
	case FI_OP_COMPARE_ATOMIC:
		work.op.compare_atomic = &atomic;
		break;
	default:
		work.op.cntr = &cntr;
	}
	t_report(t, n->group, n->name, "FI_QUEUE_WORK", fi_control(&t->domain->fid, FI_QUEUE_WORK, &work));
	fi_control(&t->domain->fid, FI_FLUSH_WORK, NULL);
}

void t_try_object(struct t_target *t, const struct t_name *n)
{
	if (is(n, "wait_obj"))
		try_wait_obj(t, n);
	else if (is(n, "cq_format") || is(n, "wait_cond"))
		try_cq(t, n);
	else if (is(n, "cntr_events"))
		try_cntr_events(t, n);
	else if (is(n, "ep_option"))
		try_ep_option(t, n);
	else if (is(n, "atomic_op"))
		try_atomic(t, n);
	else if (is(n, "collective_op"))
		try_collective(t, n);
	else if (is(n, "deferred_op"))
		try_deferred(t, n);
	else
		fail_msg("there is no attempt for group %s", n->group);
}

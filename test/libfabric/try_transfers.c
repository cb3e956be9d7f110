/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that move data. What has no table of calls on an endpoint is answered with -FI_ENOSYS here. */
#include "try.h"

static char here[64], there[64], result[64], compare[64];
static struct iovec iov = {here, 8}, in = {there, sizeof(there)};
static struct fi_ioc ioc = {here, 1}, result_ioc = {result, 1}, compare_ioc = {compare, 1};

static void called(struct t_target *t, const char *name, long err)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;

	t_report(t, "call", name, "call", err);
	while (fi_cq_read(t->cq, &entry, 1) == -FI_EAVAIL)
		fi_cq_readerr(t->cq, &error, 0);
	if (t->type == FI_EP_MSG)
		t_side_drive(&t->server);
}

static void try_messages(struct t_target *t)
{
	struct fid_ep *ep = t->ep;
	struct fi_msg out = {.msg_iov = &iov, .iov_count = 1, .addr = t->to};
	struct fi_msg back = {.msg_iov = &in, .iov_count = 1, .addr = FI_ADDR_UNSPEC};

	called(t, "fi_recv", fi_recv(ep, there, sizeof(there), NULL, FI_ADDR_UNSPEC, NULL));
	called(t, "fi_recvv", fi_recvv(ep, &in, NULL, 1, FI_ADDR_UNSPEC, NULL));
	called(t, "fi_recvmsg", fi_recvmsg(ep, &back, 0));
	called(t, "fi_send", fi_send(ep, here, 8, NULL, t->to, NULL));
	called(t, "fi_sendv", fi_sendv(ep, &iov, NULL, 1, t->to, NULL));
	called(t, "fi_sendmsg", fi_sendmsg(ep, &out, 0));
	called(t, "fi_inject", fi_inject(ep, here, 8, t->to));
	called(t, "fi_senddata", fi_senddata(ep, here, 8, NULL, 1, t->to, NULL));
	called(t, "fi_injectdata", fi_injectdata(ep, here, 8, 1, t->to));
}

static void try_tagged(struct t_target *t)
{
	struct fid_ep *ep = t->ep;
	struct fi_msg_tagged out = {.msg_iov = &iov, .iov_count = 1, .addr = t->to, .tag = 1};
	struct fi_msg_tagged back = {.msg_iov = &in, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 1};
	bool is = ep->tagged;

	called(t, "fi_trecv", is ? fi_trecv(ep, there, sizeof(there), NULL, FI_ADDR_UNSPEC, 1, 0, NULL) : -FI_ENOSYS);
	called(t, "fi_trecvv", is ? fi_trecvv(ep, &in, NULL, 1, FI_ADDR_UNSPEC, 1, 0, NULL) : -FI_ENOSYS);
	called(t, "fi_trecvmsg", is ? fi_trecvmsg(ep, &back, 0) : -FI_ENOSYS);
	called(t, "fi_tsend", is ? fi_tsend(ep, here, 8, NULL, t->to, 1, NULL) : -FI_ENOSYS);
	called(t, "fi_tsendv", is ? fi_tsendv(ep, &iov, NULL, 1, t->to, 1, NULL) : -FI_ENOSYS);
	called(t, "fi_tsendmsg", is ? fi_tsendmsg(ep, &out, 0) : -FI_ENOSYS);
	called(t, "fi_tinject", is ? fi_tinject(ep, here, 8, t->to, 1) : -FI_ENOSYS);
	called(t, "fi_tsenddata", is ? fi_tsenddata(ep, here, 8, NULL, 1, t->to, 1, NULL) : -FI_ENOSYS);
	called(t, "fi_tinjectdata", is ? fi_tinjectdata(ep, here, 8, 1, t->to, 1) : -FI_ENOSYS);
}

/* A receive of what nobody sends. */
static void try_cancel(struct t_target *t)
{
	if (t->info->caps & FI_TAGGED)
		assert_int_equal(fi_trecv(t->ep, there, 8, NULL, FI_ADDR_UNSPEC, 99, 0, &ioc), 0);
	else
		assert_int_equal(fi_recv(t->ep, there, 8, NULL, FI_ADDR_UNSPEC, &ioc), 0);
	called(t, "fi_cancel", fi_cancel(&t->ep->fid, &ioc));
}

static void try_rma(struct t_target *t)
{
	struct fid_ep *ep = t->ep;
	struct fi_rma_iov far = {t->remote, 8, t->key};
	struct fi_msg_rma msg = {.msg_iov = &iov, .iov_count = 1, .addr = t->to, .rma_iov = &far, .rma_iov_count = 1};
	bool is = ep->rma;

	called(t, "fi_read", is ? fi_read(ep, there, 8, NULL, t->to, t->remote, t->key, NULL) : -FI_ENOSYS);
	called(t, "fi_readv", is ? fi_readv(ep, &in, NULL, 1, t->to, t->remote, t->key, NULL) : -FI_ENOSYS);
	called(t, "fi_readmsg", is ? fi_readmsg(ep, &msg, 0) : -FI_ENOSYS);
	called(t, "fi_write", is ? fi_write(ep, here, 8, NULL, t->to, t->remote, t->key, NULL) : -FI_ENOSYS);
	called(t, "fi_writev", is ? fi_writev(ep, &iov, NULL, 1, t->to, t->remote, t->key, NULL) : -FI_ENOSYS);
	called(t, "fi_writemsg", is ? fi_writemsg(ep, &msg, 0) : -FI_ENOSYS);
	called(t, "fi_inject_write", is ? fi_inject_write(ep, here, 8, t->to, t->remote, t->key) : -FI_ENOSYS);
	called(t, "fi_writedata", is ? fi_writedata(ep, here, 8, NULL, 1, t->to, t->remote, t->key, NULL) : -FI_ENOSYS);
	called(t, "fi_inject_writedata",
		is ? fi_inject_writedata(ep, here, 8, 1, t->to, t->remote, t->key) : -FI_ENOSYS);
}

static void try_fetching(struct t_target *t, const struct fi_msg_atomic *msg)
{
	struct fid_ep *ep = t->ep;
	uint64_t at = t->remote, key = t->key;
	bool is = ep->atomic;

	called(t, "fi_fetch_atomic",
		is ? fi_fetch_atomic(ep, here, 1, NULL, result, NULL, t->to, at, key, FI_UINT64, FI_SUM, NULL)
		   : -FI_ENOSYS);
	called(t, "fi_fetch_atomicv",
		is ? fi_fetch_atomicv(ep, &ioc, NULL, 1, &result_ioc, NULL, 1, t->to, at, key, FI_UINT64, FI_SUM, NULL)
		   : -FI_ENOSYS);
	called(t, "fi_fetch_atomicmsg", is ? fi_fetch_atomicmsg(ep, msg, &result_ioc, NULL, 1, 0) : -FI_ENOSYS);
}

static void try_comparing(struct t_target *t, struct fi_msg_atomic *msg)
{
	struct fid_ep *ep = t->ep;
	uint64_t at = t->remote, key = t->key;
	bool is = ep->atomic;

	msg->op = FI_CSWAP;
	called(t, "fi_compare_atomic",
		is ? fi_compare_atomic(
			     ep, here, 1, NULL, compare, NULL, result, NULL, t->to, at, key, FI_UINT64, FI_CSWAP, NULL)
		   : -FI_ENOSYS);
	called(t, "fi_compare_atomicv",
		is ? fi_compare_atomicv(ep, &ioc, NULL, 1, &compare_ioc, NULL, 1, &result_ioc, NULL, 1, t->to, at, key,
			     FI_UINT64, FI_CSWAP, NULL)
		   : -FI_ENOSYS);
	called(t, "fi_compare_atomicmsg",
		is ? fi_compare_atomicmsg(ep, msg, &compare_ioc, NULL, 1, &result_ioc, NULL, 1, 0) : -FI_ENOSYS);
}

static void try_atomics(struct t_target *t)
{
	struct fid_ep *ep = t->ep;
	uint64_t at = t->remote, key = t->key;
	struct fi_rma_ioc far = {at, 1, key};
	struct fi_msg_atomic msg = {.msg_iov = &ioc,
		.iov_count = 1,
		.addr = t->to,
		.rma_iov = &far,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = FI_SUM};
	bool is = ep->atomic;
	struct fi_atomic_attr attr;
	size_t count;

	called(t, "fi_atomic", is ? fi_atomic(ep, here, 1, NULL, t->to, at, key, FI_UINT64, FI_SUM, NULL) : -FI_ENOSYS);
	called(t, "fi_atomicv",
		is ? fi_atomicv(ep, &ioc, NULL, 1, t->to, at, key, FI_UINT64, FI_SUM, NULL) : -FI_ENOSYS);
	called(t, "fi_atomicmsg", is ? fi_atomicmsg(ep, &msg, 0) : -FI_ENOSYS);
	called(t, "fi_inject_atomic",
		is ? fi_inject_atomic(ep, here, 1, t->to, at, key, FI_UINT64, FI_SUM) : -FI_ENOSYS);
	called(t, "fi_atomicvalid", is ? fi_atomicvalid(ep, FI_UINT64, FI_SUM, &count) : -FI_ENOSYS);
	called(t, "fi_fetch_atomicvalid", is ? fi_fetch_atomicvalid(ep, FI_UINT64, FI_SUM, &count) : -FI_ENOSYS);
	called(t, "fi_compare_atomicvalid", is ? fi_compare_atomicvalid(ep, FI_UINT64, FI_CSWAP, &count) : -FI_ENOSYS);
	called(t, "fi_query_atomic", fi_query_atomic(t->domain, FI_UINT64, FI_SUM, &attr, 0));
	try_fetching(t, &msg);
	try_comparing(t, &msg);
}

static void try_collectives(struct t_target *t)
{
	struct fid_ep *ep = t->ep;
	struct fi_av_set_attr attr = {.count = 1};
	struct fi_collective_attr query = {.op = FI_SUM, .datatype = FI_INT32};
	struct fid_av_set *set;
	struct fid_mc *mc;

	called(t, "fi_query_collective", fi_query_collective(t->domain, FI_BARRIER, &query, 0));
	called(t, "fi_av_set", t->av ? t_opened(fi_av_set(t->av, &attr, &set, NULL), &set) : -FI_ENOSYS);
	called(t, "fi_join", t_opened(fi_join(ep, t->end.name, FI_SEND, &mc, NULL), &mc));
	called(t, "fi_join_collective", t_opened(fi_join_collective(ep, t->to, NULL, 0, &mc, NULL), &mc));
	if (!ep->collective)
		return;
	called(t, "fi_barrier", fi_barrier(ep, t->to, NULL));
	called(t, "fi_barrier2", fi_barrier2(ep, t->to, FI_COMPLETION, NULL));
	called(t, "fi_broadcast", fi_broadcast(ep, here, 1, NULL, t->to, t->to, FI_INT32, 0, NULL));
	called(t, "fi_alltoall", fi_alltoall(ep, here, 1, NULL, result, NULL, t->to, FI_INT32, 0, NULL));
	called(t, "fi_allreduce", fi_allreduce(ep, here, 1, NULL, result, NULL, t->to, FI_INT32, FI_SUM, 0, NULL));
	called(t, "fi_allgather", fi_allgather(ep, here, 1, NULL, result, NULL, t->to, FI_INT32, 0, NULL));
	called(t, "fi_reduce_scatter",
		fi_reduce_scatter(ep, here, 1, NULL, result, NULL, t->to, FI_INT32, FI_SUM, 0, NULL));
	called(t, "fi_reduce", fi_reduce(ep, here, 1, NULL, result, NULL, t->to, t->to, FI_INT32, FI_SUM, 0, NULL));
	called(t, "fi_scatter", fi_scatter(ep, here, 1, NULL, result, NULL, t->to, t->to, FI_INT32, 0, NULL));
	called(t, "fi_gather", fi_gather(ep, here, 1, NULL, result, NULL, t->to, t->to, FI_INT32, 0, NULL));
}

void t_try_transfers(struct t_target *t)
{
	try_messages(t);
	try_tagged(t);
	try_cancel(t);
	try_rma(t);
	try_atomics(t);
	try_collectives(t);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/work_queue.h"

#include "base/log.h"
#include "bindings/libfabric/alias.h"
#include "bindings/libfabric/deferred.h"
#include "bindings/libfabric/transfer.h"

/* Flags of operations that make no sense later, or would complete more than once. */
#define NOT_LATER ((uint64_t)(FI_INJECT | FI_TRIGGER | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV))

static int wrong(const char *what)
{
	rwk_warn("deferred work: %s", what);
	return -FI_EINVAL;
}

static struct fid_ep *unaliased(struct fid_ep *fid)
{
	return rwk_container_of(rwk_fi_unaliased(&fid->fid), struct fid_ep, fid);
}

static struct rwk_fi_ep *ep_of(struct fid_ep *fid)
{
	return rwk_fi_ep_of(unaliased(fid));
}

/* What every operation of an endpoint must have. */
static int check_ep(const struct rwk_fi_domain *domain, struct fid_ep *fid, uint64_t needs, uint64_t flags)
{
	const struct rwk_fi_ep *ep;

	if (!fid || fid->fid.fclass != FI_CLASS_EP)
		return wrong("it has no endpoint");
	if (unaliased(fid)->rma != &rwk_fi_rma_ops)
		return -FI_ENOSYS; /* one of datagrams */
	ep = ep_of(fid);
	if (ep->domain != domain)
		return wrong("its endpoint is another domain's");
	if (!ep->engine)
		return -FI_EOPBADSTATE;
	if ((needs | FI_TRIGGER) & ~ep->caps) {
		rwk_info("deferred work: the endpoint was opened without the capabilities %#llx",
			(unsigned long long)((needs | FI_TRIGGER) & ~ep->caps));
		return -FI_EOPNOTSUPP;
	}
	if (flags & NOT_LATER) {
		rwk_info("deferred work: flags %#llx are not there", (unsigned long long)(flags & NOT_LATER));
		return -FI_ENOSYS;
	}
	return 0;
}

/* The same for a message, and the engine's flags for its own. */
static int message_flags(const struct rwk_fi_domain *domain, struct fid_ep *fid, enum rwk_space space, bool sends,
	uint64_t flags, uint32_t *out)
{
	int err = check_ep(domain, fid, 0, flags);

	if (err)
		return err;
	if (!sends && (ep_of(fid)->peer_srx || ep_of(fid)->srx))
		return -FI_ENOSYS; /* it has no receives of its own */
	/* What a fence waits for is looked at when its time has come. */
	err = sends ? rwk_fi_sendmsg_flags(ep_of(fid), space, flags & ~FI_FENCE, FI_ADDR_UNSPEC, out)
		    : rwk_fi_recvmsg_flags(ep_of(fid)->recvmsg_flags, space, flags, out);
	*out = (*out & (RWK_F_USER - 1u) & ~(uint32_t)RWK_F_SILENT) | RWK_FI_DEFERRED |
	       (flags & FI_FENCE ? RWK_F_FENCE : 0);
	return err;
}

/* And for a read, write or atomic. */
static int access_flags(const struct rwk_fi_domain *domain, struct fid_ep *fid, uint64_t needs, uint64_t flags,
	uint64_t known, uint32_t *out)
{
	int err = check_ep(domain, fid, needs, flags);

	if (!err)
		err = rwk_fi_rma_flags(ep_of(fid), "deferred work", flags, known, out);
	if (!err)
		*out = (*out & (RWK_F_USER - 1u)) | RWK_FI_DEFERRED | RWK_FI_TRIGGERED;
	return err;
}

static int queue_message(struct rwk_fi_domain *domain, const struct fi_op_msg *op, bool sends, struct rwk_fi_when *when)
{
	struct rwk_fi_letter l;
	uint32_t flags;
	int err = message_flags(domain, op->ep, RWK_PLAIN, sends, op->flags, &flags);

	if (err)
		return err;
	l = rwk_fi_letter(&op->msg, flags);
	when->context = op->msg.context;
	when->shown = op->flags & FI_COMPLETION;
	rwk_fi_domain_stop(domain);
	err = (sends ? rwk_fi_defer_send : rwk_fi_defer_recv)(ep_of(op->ep), &l, when);
	rwk_fi_domain_go(domain);
	return err;
}

static int queue_tagged(
	struct rwk_fi_domain *domain, const struct fi_op_tagged *op, bool sends, struct rwk_fi_when *when)
{
	struct rwk_fi_letter l;
	uint32_t flags;
	int err = message_flags(domain, op->ep, RWK_TAGGED, sends, op->flags, &flags);

	if (err)
		return err;
	l = rwk_fi_tagged_letter(&op->msg, flags);
	when->context = op->msg.context;
	when->shown = op->flags & FI_COMPLETION;
	rwk_fi_domain_stop(domain);
	err = (sends ? rwk_fi_defer_send : rwk_fi_defer_recv)(ep_of(op->ep), &l, when);
	rwk_fi_domain_go(domain);
	return err;
}

static int queue_rma(struct rwk_fi_domain *domain, const struct fi_op_rma *op, bool reads, struct rwk_fi_when *when)
{
	uint64_t needs = FI_RMA | (reads ? FI_READ : FI_WRITE);
	uint64_t known = RWK_FI_RMA_FLAGS | (reads ? 0 : FI_REMOTE_CQ_DATA);
	struct fi_msg_rma msg = op->msg;
	uint32_t flags;
	int err = access_flags(domain, op->ep, needs, op->flags, known, &flags);

	if (err)
		return err;
	when->context = op->msg.context;
	when->shown = op->flags & FI_COMPLETION;
	msg.context = when;
	return (int)rwk_fi_rma_message(ep_of(op->ep), reads, &msg, flags);
}

/* The three structures of atomics begin alike. */
static int queue_atomic(struct rwk_fi_domain *domain, struct fid_ep *ep, const struct fi_msg_atomic *given,
	const struct fi_msg_compare *compare, const struct fi_msg_fetch *fetch, uint64_t op_flags,
	struct rwk_fi_when *when)
{
	uint64_t needs = FI_ATOMIC | (fetch ? FI_READ : FI_WRITE);
	struct fi_msg_atomic msg = *given;
	uint32_t flags;
	int err = access_flags(domain, ep, needs, op_flags, RWK_FI_RMA_FLAGS, &flags);

	if (err)
		return err;
	when->context = given->context;
	when->shown = op_flags & FI_COMPLETION;
	msg.context = when;
	return (int)rwk_fi_atomic_message(ep_of(ep), &msg, compare, fetch, flags);
}

static int queue_count(
	struct rwk_fi_domain *domain, const struct fi_op_cntr *op, bool add, const struct rwk_fi_when *when)
{
	struct rwk_fi_cntr *cntr = op->cntr ? rwk_container_of(op->cntr, struct rwk_fi_cntr, fid) : NULL;
	int err;

	if (!cntr || cntr->domain != domain || when->completion)
		return wrong(when->completion ? "a counter operation has no completion counter"
					      : "the counter to change is missing, or another domain's");
	if (cntr->owner)
		return -FI_ENOSYS; /* another provider has its numbers */
	rwk_fi_domain_stop(domain);
	err = rwk_fi_defer_count(cntr, op->value, add, when);
	rwk_fi_domain_go(domain);
	return err;
}

static int queue_operation(struct rwk_fi_domain *domain, const struct fi_deferred_work *work, struct rwk_fi_when *when)
{
	const struct fi_op_atomic *atomic = work->op.atomic;
	const struct fi_op_fetch_atomic *fetch = work->op.fetch_atomic;
	const struct fi_op_compare_atomic *compare = work->op.compare_atomic;

	switch (work->op_type) {
	case FI_OP_RECV:
	case FI_OP_SEND:
		return queue_message(domain, work->op.msg, work->op_type == FI_OP_SEND, when);
	case FI_OP_TRECV:
	case FI_OP_TSEND:
		return queue_tagged(domain, work->op.tagged, work->op_type == FI_OP_TSEND, when);
	case FI_OP_READ:
	case FI_OP_WRITE:
		return queue_rma(domain, work->op.rma, work->op_type == FI_OP_READ, when);
	case FI_OP_ATOMIC:
		return queue_atomic(domain, atomic->ep, &atomic->msg, NULL, NULL, atomic->flags, when);
	case FI_OP_FETCH_ATOMIC:
		return queue_atomic(domain, fetch->ep, &fetch->msg, NULL, &fetch->fetch, fetch->flags, when);
	case FI_OP_COMPARE_ATOMIC:
		return queue_atomic(
			domain, compare->ep, &compare->msg, &compare->compare, &compare->fetch, compare->flags, when);
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		return queue_count(domain, work->op.cntr, work->op_type == FI_OP_CNTR_ADD, when);
	default:
		rwk_info("deferred work: there is no operation %d", work->op_type);
		return -FI_ENOSYS;
	}
}

static int queue(struct rwk_fi_domain *domain, const struct fi_deferred_work *work)
{
	struct rwk_fi_when when = {.threshold = work->threshold, .id = work};
	int err;

	if (!work->triggering_cntr || !work->op.msg)
		return wrong("it has no triggering counter, or no operation");
	when.cntr = rwk_container_of(work->triggering_cntr, struct rwk_fi_cntr, fid);
	if (work->completion_cntr)
		when.completion = rwk_container_of(work->completion_cntr, struct rwk_fi_cntr, fid);
	if (when.cntr->domain != domain || (when.completion && when.completion->domain != domain))
		return wrong("a counter of it is another domain's");
	if (when.cntr->owner)
		return -FI_ENOSYS; /* another provider has its numbers */
	err = rwk_fi_unite(&domain->groups);
	return err ? err : queue_operation(domain, work, &when);
}

static int flush(struct rwk_fi_domain *domain, struct fid *arg)
{
	struct rwk_fi_cntr *cntr = arg ? rwk_container_of(arg, struct rwk_fi_cntr, fid.fid) : NULL;

	if (cntr && (arg->fclass != FI_CLASS_CNTR || cntr->domain != domain))
		return wrong("FI_FLUSH_WORK takes a counter of the domain, or NULL");
	rwk_fi_domain_stop(domain);
	rwk_fi_work_flush(domain, cntr);
	rwk_fi_domain_go(domain);
	return 0;
}

int rwk_fi_work_control(struct rwk_fi_domain *domain, int command, void *arg)
{
	int err;

	if (domain->type != FI_EP_RDM)
		return -FI_ENOSYS;
	if (command == FI_FLUSH_WORK)
		return flush(domain, arg);
	if (!arg)
		return wrong("it is NULL");
	if (command == FI_QUEUE_WORK)
		return queue(domain, arg);
	rwk_fi_domain_stop(domain);
	err = rwk_fi_work_cancel(domain, arg);
	rwk_fi_domain_go(domain);
	return err;
}

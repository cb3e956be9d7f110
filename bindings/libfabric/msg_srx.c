/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive contexts of FI_EP_MSG: a shared receive queue of the adapter. A receive that is posted there is an op
 * of the context's; which endpoint it belongs to is known once a message has taken it, from the number of its qp.
 */
#include "bindings/libfabric/msg.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/info.h"
#include "bindings/libfabric/msg_domain.h"

#include <errno.h>
#include <stdlib.h>

static struct rwk_fi_msg_srx *srx_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_msg_srx, fid.fid);
}

int rwk_fi_msg_bind_srx(struct rwk_fi_msg_ep *ep, struct fid *fid, uint64_t flags)
{
	struct rwk_fi_msg_srx *srx = srx_of(fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (ep->srx || srx->domain != ep->domain) {
		rwk_warn("fi_ep_bind: %s", ep->srx ? "the endpoint has a shared receive context"
						   : "the shared receive context is another domain's");
		return -FI_EINVAL;
	}
	ep->srx = srx;
	rwk_fi_hold(&srx->refs);
	return 0;
}

int rwk_fi_msg_srx_enter(struct rwk_fi_msg_ep *ep)
{
	ep->qpn = rwk_qp_number(ep->qp);
	HASH_ADD(of_srx, ep->srx->eps, qpn, sizeof(ep->qpn), ep);
	return rwk_keyed_is_in(&ep->of_srx) ? 0 : -FI_ENOMEM;
}

void rwk_fi_msg_srx_leave(struct rwk_fi_msg_ep *ep)
{
	if (rwk_fi_msg_srx_find(ep->srx, ep->qpn) == ep)
		HASH_DELETE(of_srx, ep->srx->eps, ep);
	rwk_fi_drop(&ep->srx->refs);
}

struct rwk_fi_msg_ep *rwk_fi_msg_srx_find(struct rwk_fi_msg_srx *srx, uint32_t qpn)
{
	struct rwk_fi_msg_ep *ep;

	HASH_FIND(of_srx, srx->eps, &qpn, sizeof(qpn), ep);
	return ep;
}

static ssize_t post(struct rwk_fi_msg_srx *srx, struct rwk_receive *r, void *buffer, uint32_t flags, void *context)
{
	struct rwk_list *l = rwk_list_pop(&srx->unused);
	struct rwk_fi_msg_op *op;
	int err;

	if (!l) {
		rwk_fi_device_progress(srx->domain->device);
		return -FI_EAGAIN;
	}
	op = rwk_container_of(l, struct rwk_fi_msg_op, link);
	op->flags = flags | RWK_F_RECV | RWK_F_PLAIN;
	op->context = context;
	op->buffer = buffer;
	r->id = (uintptr_t)op;
	err = rwk_srq_post_receive(srx->srq, r);
	if (err)
		rwk_list_append(&srx->unused, &op->link);
	return err;
}

static ssize_t receive(struct rwk_fi_msg_srx *srx, const struct iovec *iov, size_t count, uint32_t flags, void *context)
{
	struct rwk_sge sge[RWK_FI_MSG_IOV];
	int n = rwk_fi_msg_pieces(rwk_mr_key(srx->domain->memory), iov, count, sge);
	struct rwk_receive r = {.sge = sge, .sge_count = (uint32_t)n};
	ssize_t ret;

	if (n < 0)
		return n;
	rwk_fi_lock(srx->lock);
	ret = post(srx, &r, n ? iov[0].iov_base : NULL, flags, context);
	rwk_fi_unlock(srx->lock);
	return ret;
}

static ssize_t srx_recvv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context)
{
	struct rwk_fi_msg_srx *srx = srx_of(&fid->fid);

	(void)desc, (void)from;
	return receive(srx, iov, count, srx->recv_flags, context);
}

static ssize_t srx_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	const struct iovec iov = {buf, len};

	return srx_recvv(fid, &iov, &desc, 1, from, context);
}

static ssize_t srx_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	if (flags & ~(uint64_t)(FI_COMPLETION | FI_MORE))
		return -FI_EBADFLAGS;
	return receive(srx_of(&fid->fid), msg->msg_iov, msg->iov_count, flags & FI_COMPLETION ? RWK_FI_ASKED : 0,
		msg->context);
}

static const struct fi_ops_msg msg_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = srx_recv,
	.recvv = srx_recvv,
	.recvmsg = srx_recvmsg,
	.send = rwk_fi_cannot_send,
	.sendv = rwk_fi_cannot_sendv,
	.sendmsg = rwk_fi_cannot_sendmsg,
	.inject = rwk_fi_cannot_inject,
	.senddata = rwk_fi_cannot_senddata,
	.injectdata = rwk_fi_cannot_injectdata,
};

/* What is posted, and no message has taken, ends without a word. */
static int srx_close(struct fid *fid)
{
	struct rwk_fi_msg_srx *srx = srx_of(fid);

	if (rwk_fi_is_inherited(srx->domain->process))
		return 0;
	if (rwk_fi_busy(&srx->refs))
		return -FI_EBUSY;
	rwk_fi_lock(srx->lock);
	rwk_srq_destroy(srx->srq);
	rwk_fi_device_release(srx->domain->device, srx->size);
	rwk_fi_unlock(srx->lock);
	rwk_fi_drop(&srx->domain->refs);
	free(srx->ops);
	free(srx);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = srx_close,
	.bind = rwk_fi_no_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

/* Receives take entries of the cq as messages take them, whoever's they are. */
static int open_srq(struct rwk_fi_msg_srx *srx)
{
	const struct rwk_srq_attr attr = {.receive_max = (uint32_t)srx->size};
	int err = rwk_fi_msg_domain_use(srx->domain);

	if (!err)
		err = rwk_fi_device_reserve(srx->domain->device, srx->size);
	if (err)
		return err;
	err = rwk_srq_create(srx->domain->pd, &attr, &srx->srq);
	if (err)
		rwk_fi_device_release(srx->domain->device, srx->size);
	return err;
}

static int open_queue(struct rwk_fi_msg_srx *srx)
{
	int err;

	srx->ops = calloc(srx->size, sizeof(*srx->ops));
	if (!srx->ops)
		return -FI_ENOMEM;
	for (size_t i = 0; i < srx->size; i++) {
		srx->ops[i].srx = srx;
		rwk_list_append(&srx->unused, &srx->ops[i].link);
	}
	rwk_fi_lock(srx->lock);
	err = open_srq(srx);
	rwk_fi_unlock(srx->lock);
	return err;
}

int rwk_fi_msg_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **out, void *context)
{
	struct rwk_fi_msg_srx *srx;
	int err = rwk_fi_check_srx(&rwk_fi_msg, attr);

	if (err)
		return err;
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	srx->domain = rwk_fi_domain_of(domain);
	srx->lock = srx->domain->lock;
	srx->recv_flags = attr && attr->op_flags & FI_COMPLETION ? RWK_FI_ASKED : 0;
	rwk_list_init(&srx->unused);
	srx->size = attr && attr->size ? attr->size : rwk_fi_msg.rx_size;
	err = open_queue(srx);
	if (err) {
		rwk_warn("fi_srx_context: no shared receive queue: %s", fi_strerror(-err));
		free(srx->ops);
		free(srx);
		return err;
	}
	rwk_fi_hold(&srx->domain->refs);
	srx->fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->fid.fid.context = context;
	srx->fid.fid.ops = (struct fi_ops *)&fid_ops;
	srx->fid.ops = (struct fi_ops_ep *)&rwk_fi_no_ep_ops; /* what is posted to an srq stays there */
	srx->fid.msg = (struct fi_ops_msg *)&msg_ops;
	srx->fid.tagged = (struct fi_ops_tagged *)&rwk_fi_absent_tagged_ops;
	*out = &srx->fid;
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive contexts of FI_EP_RDM. */
#include "bindings/libfabric/shared.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/ep.h"
#include "bindings/libfabric/info.h"
#include "bindings/libfabric/peer.h"
#include "bindings/libfabric/transfer.h"
#include "engine/guest.h"

#include <rdma/fi_tagged.h>
#include <stdlib.h>

int rwk_fi_check_srx(const struct rwk_fi_kind *k, const struct fi_rx_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->caps & FI_DIRECTED_RECV) {
		rwk_warn("fi_srx_context: a shared receive context has no FI_DIRECTED_RECV");
		return -FI_EOPNOTSUPP;
	}
	if (attr->caps & ~(k->rx_caps | RWK_FI_DOMAIN_CAPS) || attr->op_flags & ~k->rx_op_flags ||
		attr->size > k->rx_size_max || attr->iov_limit > k->iov_limit) {
		rwk_warn("fi_srx_context: more is asked for than %s has", k->name);
		return -FI_EINVAL;
	}
	return 0;
}

static struct rwk_fi_srx *srx_of(struct fid_ep *fid)
{
	return rwk_container_of(fid, struct rwk_fi_srx, fid);
}

static ssize_t receive(struct rwk_fi_srx *srx, enum rwk_space space, const struct iovec *iov, size_t count,
	uint64_t tag, uint64_t ignore, uint32_t flags, void *context)
{
	ssize_t err;
	bool due;

	rwk_fi_enter(&srx->lock);
	err = rwk_inbox_recv(srx->inbox, space, NULL, iov, count, tag, ignore, flags, context);
	due = rwk_guest_is_due(srx->inbox);
	rwk_fi_leave(&srx->lock);
	if (rwk_unlikely(due))
		rwk_fi_lent_tell(srx);
	return err;
}

/* Who peeks may do nothing else in a loop. */
static void look(struct rwk_fi_srx *srx)
{
	rwk_fi_enter(&srx->lock);
	for (struct rwk_list *l = srx->eps.next; l != &srx->eps; l = l->next) {
		struct rwk_fi_ep *ep = rwk_container_of(l, struct rwk_fi_ep, of_srx);

		if (ep->engine)
			rwk_engine_look(ep->engine);
	}
	rwk_fi_leave(&srx->lock);
}

static ssize_t plain_recvv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context)
{
	struct rwk_fi_srx *srx = srx_of(fid);

	(void)desc, (void)from;
	return receive(srx, RWK_PLAIN, iov, count, 0, 0, srx->recv_flags[RWK_PLAIN], context);
}

static ssize_t plain_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	const struct iovec iov = {buf, len};

	return plain_recvv(fid, &iov, &desc, 1, from, context);
}

static ssize_t plain_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct rwk_fi_srx *srx = srx_of(fid);
	uint32_t f;
	int err = rwk_fi_recvmsg_flags(srx->recvmsg_flags, RWK_PLAIN, flags, &f);

	if (err)
		return err < 0 ? err : -FI_EBADFLAGS; /* no FI_TRIGGER */
	if (f & RWK_F_PEEK)
		look(srx);
	return receive(srx, RWK_PLAIN, msg->msg_iov, msg->iov_count, 0, 0, f, msg->context);
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	uint64_t tag, uint64_t ignore, void *context)
{
	struct rwk_fi_srx *srx = srx_of(fid);

	(void)desc, (void)from;
	return receive(srx, RWK_TAGGED, iov, count, tag, ignore, srx->recv_flags[RWK_TAGGED], context);
}

static ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag,
	uint64_t ignore, void *context)
{
	const struct iovec iov = {buf, len};

	return tagged_recvv(fid, &iov, &desc, 1, from, tag, ignore, context);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct rwk_fi_srx *srx = srx_of(fid);
	uint32_t f;
	int err = rwk_fi_recvmsg_flags(srx->recvmsg_flags, RWK_TAGGED, flags, &f);

	if (err)
		return err < 0 ? err : -FI_EBADFLAGS; /* no FI_TRIGGER */
	if (f & RWK_F_PEEK)
		look(srx);
	return receive(srx, RWK_TAGGED, msg->msg_iov, msg->iov_count, msg->tag, msg->ignore, f, msg->context);
}

static const struct fi_ops_msg msg_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = plain_recv,
	.recvv = plain_recvv,
	.recvmsg = plain_recvmsg,
	.send = rwk_fi_cannot_send,
	.sendv = rwk_fi_cannot_sendv,
	.sendmsg = rwk_fi_cannot_sendmsg,
	.inject = rwk_fi_cannot_inject,
	.senddata = rwk_fi_cannot_senddata,
	.injectdata = rwk_fi_cannot_injectdata,
};

static const struct fi_ops_tagged tagged_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_tagged, injectdata),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = rwk_fi_cannot_tsend,
	.sendv = rwk_fi_cannot_tsendv,
	.sendmsg = rwk_fi_cannot_tsendmsg,
	.inject = rwk_fi_cannot_tinject,
	.senddata = rwk_fi_cannot_tsenddata,
	.injectdata = rwk_fi_cannot_tinjectdata,
};

static ssize_t srx_cancel(fid_t fid, void *context)
{
	struct rwk_fi_srx *srx = rwk_container_of(fid, struct rwk_fi_srx, fid.fid);
	ssize_t err;

	rwk_fi_enter(&srx->lock);
	err = rwk_inbox_cancel(srx->inbox, context);
	rwk_fi_leave(&srx->lock);
	return err;
}

static int srx_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	return rwk_fi_get_multi_min(
		rwk_container_of(fid, struct rwk_fi_srx, fid.fid)->multi_min, level, name, value, len);
}

static int srx_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct rwk_fi_srx *srx = rwk_container_of(fid, struct rwk_fi_srx, fid.fid);
	size_t bytes;
	int err = rwk_fi_set_multi_min(&bytes, level, name, value, len);

	if (err)
		return err;
	rwk_fi_enter(&srx->lock);
	srx->multi_min = bytes;
	rwk_inbox_set_multi_min(srx->inbox, bytes);
	rwk_fi_leave(&srx->lock);
	return 0;
}

static int srx_close(struct fid *fid)
{
	struct rwk_fi_srx *srx = rwk_container_of(fid, struct rwk_fi_srx, fid.fid);
	bool busy;

	if (rwk_fi_is_inherited(srx->domain->process))
		return 0;
	rwk_fi_enter(&srx->lock);
	busy = !rwk_list_empty(&srx->eps) || !rwk_list_empty(&srx->lent);
	rwk_fi_leave(&srx->lock);
	if (busy)
		return -FI_EBUSY;
	rwk_inbox_close(srx->inbox);
	rwk_fi_part(&srx->domain->groups, &srx->member);
	rwk_fi_drop(&srx->domain->refs);
	free(srx);
	return 0;
}

static int srx_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_EXPORT_FID)
		return -FI_ENOSYS;
	return rwk_fi_lent_open(rwk_container_of(fid, struct rwk_fi_srx, fid.fid), arg);
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = srx_close,
	.bind = rwk_fi_no_bind,
	.control = srx_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

struct rwk_fi_srx *rwk_fi_srx_of(struct fid *fid)
{
	return fid->ops == &fid_ops ? rwk_container_of(fid, struct rwk_fi_srx, fid.fid) : NULL;
}

static const struct fi_ops_ep srx_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_ep, tx_size_left),
	.cancel = srx_cancel,
	.getopt = srx_getopt,
	.setopt = srx_setopt,
	.tx_ctx = rwk_fi_no_tx_ctx,
	.rx_ctx = rwk_fi_no_rx_ctx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

/* A receive has ended without a message. */
static void ended(void *owner, const struct rwk_completion *c)
{
	struct rwk_fi_srx *srx = owner;

	if (rwk_list_empty(&srx->eps))
		rwk_info("a receive of a shared context has ended, and no endpoint is there to tell of it");
	else
		rwk_fi_complete(rwk_container_of(srx->eps.next, struct rwk_fi_ep, of_srx), c);
}

static void set_flags(struct rwk_fi_srx *srx, uint64_t op_flags)
{
	uint32_t asked = op_flags & FI_COMPLETION ? RWK_FI_ASKED : 0;

	for (enum rwk_space s = 0; s < RWK_SPACES; s++)
		srx->recv_flags[s] = rwk_space_flag(s) | asked;
	if (op_flags & FI_MULTI_RECV)
		srx->recv_flags[RWK_PLAIN] |= RWK_F_MULTI;
	srx->recvmsg_flags[1] = RWK_FI_ASKED;
}

int rwk_fi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **out, void *context)
{
	struct rwk_inbox_attr inbox = {.complete = ended, .multi_min = RWK_FI_MULTI_MIN};
	struct rwk_fi_srx *srx;
	int err = rwk_fi_check_srx(&rwk_fi_rdm, attr);

	if (err)
		return err;
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	inbox.owner = srx;
	srx->domain = rwk_fi_domain_of(domain);
	err = rwk_inbox_open(&inbox, &srx->inbox);
	if (err)
		goto free_srx;
	err = rwk_fi_join(&srx->domain->groups, &srx->member, &srx->lock);
	if (err)
		goto close_inbox;
	srx->multi_min = RWK_FI_MULTI_MIN;
	rwk_list_init(&srx->eps);
	rwk_list_init(&srx->lent);
	set_flags(srx, attr ? attr->op_flags : 0);
	rwk_fi_hold(&srx->domain->refs);
	srx->fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->fid.fid.context = context;
	srx->fid.fid.ops = (struct fi_ops *)&fid_ops;
	srx->fid.ops = (struct fi_ops_ep *)&srx_ops;
	srx->fid.msg = (struct fi_ops_msg *)&msg_ops;
	srx->fid.tagged = (struct fi_ops_tagged *)&tagged_ops;
	*out = &srx->fid;
	return 0;

close_inbox:
	rwk_inbox_close(srx->inbox);
free_srx:
	free(srx);
	return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/msg.h"

#include "base/cancel.h"
#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/alias.h"
#include "bindings/libfabric/info.h"
#include "bindings/libfabric/msg_domain.h"

#include <stdlib.h>
#include <string.h>

#define CNTR_FLAGS ((uint64_t)(FI_SEND | FI_RECV | FI_READ | FI_WRITE))

static struct rwk_fi_msg_ep *ep_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_msg_ep, fid.fid);
}

/* A counter may come after fi_enable, too. */
static int bind_cntr(struct rwk_fi_msg_ep *ep, struct rwk_fi_cntr *cntr, uint64_t flags)
{
	int err = rwk_fi_check_cntr(ep->cntr, ep->domain, cntr, flags, CNTR_FLAGS);

	if (err)
		return err;
	rwk_fi_lock(ep->lock);
	for (int k = 0; k < RWK_FI_COUNTED; k++) {
		if (!rwk_fi_counts(flags, k))
			continue;
		ep->cntr[k] = cntr;
		rwk_fi_hold(&cntr->refs);
	}
	rwk_fi_unlock(ep->lock);
	return 0;
}

int rwk_fi_msg_bind_eq(struct rwk_fi_msg_ep *ep, struct rwk_fi_eq *eq, uint64_t flags)
{
	int err = eq->fabric == ep->domain->fabric ? 0 : -FI_EINVAL;

	if (!err)
		err = rwk_fi_eq_watch(eq, rwk_event_channel_fd(ep->device->channel));
	return err ? err : rwk_fi_bind_eq(&ep->eq, eq, flags);
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_msg_ep *ep = ep_of(fid);

	if (ep->qp && other->fclass != FI_CLASS_CNTR) {
		rwk_warn("fi_ep_bind: the endpoint is enabled; only counters can be bound now");
		return -FI_EOPBADSTATE;
	}
	switch (other->fclass) {
	case FI_CLASS_CQ:
		return rwk_fi_bind_cq(ep->side, ep->domain, rwk_container_of(other, struct rwk_fi_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, rwk_container_of(other, struct rwk_fi_cntr, fid.fid), flags);
	case FI_CLASS_EQ:
		return rwk_fi_msg_bind_eq(ep, rwk_container_of(other, struct rwk_fi_eq, fid.fid), flags);
	case FI_CLASS_SRX_CTX:
		return rwk_fi_msg_bind_srx(ep, other, flags);
	case FI_CLASS_STX_CTX:
		return rwk_fi_bind_stx(
			&ep->stx, ep->domain, rwk_container_of(other, struct rwk_fi_stx, fid.fid), flags);
	default:
		rwk_warn("fi_ep_bind: an object of class %zu; a connected endpoint has queues, counters and shared "
			 "contexts",
			other->fclass);
		return -FI_EINVAL;
	}
}

static size_t count_ops(const struct rwk_fi_msg_ep *ep)
{
	return ep->tx_size + (ep->srx ? 0 : ep->rx_size);
}

static int open_ops(struct rwk_fi_msg_ep *ep)
{
	size_t count = count_ops(ep);
	int err = rwk_fi_device_reserve(ep->device, count);

	if (err)
		return err;
	ep->ops = calloc(count, sizeof(*ep->ops));
	if (!ep->ops) {
		rwk_fi_device_release(ep->device, count);
		return -FI_ENOMEM;
	}
	rwk_list_init(&ep->unused);
	for (size_t i = 0; i < count; i++) {
		ep->ops[i].ep = ep;
		rwk_list_append(&ep->unused, &ep->ops[i].link);
	}
	return 0;
}

static void close_ops(struct rwk_fi_msg_ep *ep)
{
	rwk_fi_device_release(ep->device, count_ops(ep));
	free(ep->ops);
	ep->ops = NULL;
}

static int open_qp(struct rwk_fi_msg_ep *ep)
{
	const struct rwk_qp_create_attr attr = {
		.type = RWK_QP_RC,
		.send_cq = ep->device->cq,
		.receive_cq = ep->device->cq,
		.send_max = (uint32_t)ep->tx_size,
		.srq = ep->srx ? ep->srx->srq : NULL,
		.receive_max = ep->srx ? 0 : (uint32_t)ep->rx_size,
		.inline_max = RWK_FI_MSG_INJECT,
	};
	int err = rwk_qp_create(ep->domain->pd, &attr, &ep->qp);

	if (err)
		return err;
	err = rwk_qp_modify(ep->qp, RWK_QPS_INIT, NULL);
	if (err) {
		rwk_qp_destroy(ep->qp);
		ep->qp = NULL;
	}
	return err;
}

static int check_bound(const struct rwk_fi_msg_ep *ep)
{
	if ((ep->shares_rx && !ep->srx) || (ep->shares_tx && !ep->stx)) {
		rwk_warn("fi_enable: the endpoint was opened for a shared %s context, and none is bound",
			ep->shares_rx && !ep->srx ? "receive" : "transmit");
		return -FI_EOPBADSTATE;
	}
	return rwk_fi_check_bound(ep->side, ep->cntr, ep->caps);
}

int rwk_fi_msg_enable(struct rwk_fi_msg_ep *ep)
{
	int err = check_bound(ep);

	if (!err)
		err = open_ops(ep);
	if (err)
		return err;
	err = open_qp(ep);
	if (err) {
		rwk_warn("fi_enable: no queue pair: %s", fi_strerror(-err));
		goto close_ops;
	}
	err = ep->srx ? rwk_fi_msg_srx_enter(ep) : 0;
	if (err)
		goto close_qp;
	ep->fid.msg = (struct fi_ops_msg *)(ep->srx ? &rwk_fi_msg_message_send_ops : &rwk_fi_msg_message_ops);
	return 0;

close_qp:
	rwk_qp_destroy(ep->qp);
	ep->qp = NULL;
close_ops:
	close_ops(ep);
	return err;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_ep *ep = ep_of(fid);
	int err = -FI_EOPBADSTATE;

	if (command == FI_ALIAS)
		return rwk_fi_alias_open(&ep->fid, &ep->aliases, &rwk_fi_msg, ep->op_flags, arg);
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	rwk_fi_lock(ep->lock);
	if (!ep->qp)
		err = rwk_fi_msg_enable(ep);
	else
		rwk_warn("fi_enable: the endpoint is enabled already");
	rwk_fi_unlock(ep->lock);
	return err;
}

/* What is posted ends without a word, and what has completed is told before: then nobody names an op any more. */
static void close_qp(struct rwk_fi_msg_ep *ep)
{
	rwk_fi_device_progress(ep->device);
	ep->closing = true;
	rwk_fi_msg_disconnect(ep);
	rwk_fi_device_progress(ep->device);
	rwk_qp_destroy(ep->qp);
	close_ops(ep);
}

static int ep_close(struct fid *fid)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_ep *ep = ep_of(fid);
	struct rwk_fi_mutex *lock = ep->lock;

	if (rwk_fi_is_inherited(ep->domain->process))
		return 0;
	if (rwk_fi_busy(&ep->aliases)) {
		rwk_warn("fi_close: the endpoint has aliases; they must be closed first");
		return -FI_EBUSY;
	}
	rwk_fi_lock(lock);
	if (ep->qp)
		close_qp(ep);
	if (ep->request)
		rwk_fi_msg_drop_request(ep->request);
	rwk_fi_msg_release(&ep->reserved);
	if (ep->eq)
		rwk_fi_eq_forget(ep->eq, &ep->fid.fid);
	free(ep->begins);
	free(ep->ends);
	if (ep->srx)
		rwk_fi_msg_srx_leave(ep);
	if (ep->stx)
		rwk_fi_drop(&ep->stx->refs);
	rwk_fi_unbind(ep->side, ep->cntr, ep->eq);
	rwk_fi_unlock(lock);
	rwk_fi_drop(&ep->domain->refs);
	free(ep);
	return 0;
}

int rwk_fi_msg_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	(void)fid;
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = RWK_PRIVATE_MAX;
	*len = sizeof(size_t);
	return 0;
}

int rwk_fi_msg_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid, (void)value, (void)len;
	rwk_info("fi_setopt: a connected endpoint has no option %d of level %d to set", name, level);
	return -FI_ENOPROTOOPT;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_ep ep_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_ep, tx_size_left),
	.cancel = rwk_fi_no_cancel, /* what is posted to a qp stays there */
	.getopt = rwk_fi_msg_getopt,
	.setopt = rwk_fi_msg_setopt,
	.tx_ctx = rwk_fi_no_tx_ctx,
	.rx_ctx = rwk_fi_no_rx_ctx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

/* The request in the info's handle is the endpoint's from now on. */
static int take_request(struct rwk_fi_msg_ep *ep, struct fid *handle)
{
	struct rwk_fi_msg_request *r = rwk_container_of(handle, struct rwk_fi_msg_request, fid);
	bool mine = false;

	if (handle->fclass == FI_CLASS_CONNREQ && r->device == ep->device) {
		rwk_fi_lock(&r->device->group.mutex);
		mine = !r->taken;
		r->taken = true;
		rwk_fi_unlock(&r->device->group.mutex);
	}
	if (!mine) {
		rwk_warn("fi_endpoint: the info's handle is none of a FI_CONNREQ of this fabric, or has an endpoint");
		return -FI_EINVAL;
	}
	ep->request = r;
	ep->peer = r->peer;
	return 0;
}

/* It answers a FI_CONNREQ, or takes the place of a passive endpoint. */
static int take_handle(struct rwk_fi_msg_ep *ep, struct fid *handle)
{
	return handle->fclass == FI_CLASS_PEP ? rwk_fi_msg_inherit(ep, handle) : take_request(ep, handle);
}

/* Takes what matters from the info; an attribute that is not there has the default. */
static int take_info(struct rwk_fi_msg_ep *ep, const struct fi_info *info)
{
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;
	uint32_t format = ep->domain->addr_format;

	ep->caps = rwk_fi_endpoint_caps(&rwk_fi_msg, info->caps);
	ep->shares_rx = info->ep_attr && info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->shares_tx = info->ep_attr && info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->tx_size = tx && tx->size ? tx->size : rwk_fi_msg.tx_size;
	ep->rx_size = rx && rx->size ? rx->size : rwk_fi_msg.rx_size;
	if (ep->tx_size > rwk_fi_msg.tx_size_max || ep->rx_size > rwk_fi_msg.rx_size_max)
		return -FI_EINVAL;
	ep->op_flags[RWK_FI_TX] = tx ? tx->op_flags : 0;
	ep->op_flags[RWK_FI_RX] = rx ? rx->op_flags : 0;
	ep->takes_data = (info->mode | (rx ? rx->mode : 0)) & FI_RX_CQ_DATA;
	if (info->src_addr && info->src_addrlen >= rwk_fi_address_size(format) &&
		rwk_fi_address_read(format, info->src_addr, &ep->source))
		return -FI_EINVAL;
	if (info->handle) /* of a FI_CONNREQ, whose port is the listener's; or of a passive one, which gives its own */
		return take_handle(ep, info->handle);
	return ep->source.version_srq ? rwk_fi_msg_assign(ep, &ep->source) : 0;
}

int rwk_fi_msg_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_fi_msg_ep *ep = calloc(1, sizeof(*ep));
	int err;

	if (!ep)
		return -FI_ENOMEM;
	ep->domain = rwk_fi_domain_of(fid);
	ep->device = ep->domain->device;
	ep->reserved = -1;
	err = take_info(ep, info);
	if (err) {
		free(ep);
		return err;
	}
	ep->lock = ep->domain->lock;
	ep->key = rwk_mr_key(ep->domain->memory);
	rwk_list_init(&ep->unused);
	rwk_fi_hold(&ep->domain->refs);
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	ep->fid.ops = (struct fi_ops_ep *)&ep_ops;
	ep->fid.cm = (struct fi_ops_cm *)&rwk_fi_msg_cm_ops;
	ep->fid.msg = (struct fi_ops_msg *)&rwk_fi_no_msg_ops;
	ep->fid.tagged = (struct fi_ops_tagged *)&rwk_fi_absent_tagged_ops;
	ep->fid.rma = (struct fi_ops_rma *)&rwk_fi_msg_rma_ops;
	ep->fid.atomic = (struct fi_ops_atomic *)&rwk_fi_msg_atomic_ops;
	ep->fid.collective = (struct fi_ops_collective *)&rwk_fi_no_collective_ops;
	*out = &ep->fid;
	return 0;
}

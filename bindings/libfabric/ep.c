/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/deferred.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/alias.h"
#include "bindings/libfabric/engine.h"
#include "bindings/libfabric/info.h"
#include "bindings/libfabric/peer.h"

#include <rdma/fi_cm.h>
#include <stdlib.h>
#include <string.h>

static struct rwk_fi_ep *ep_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_ep, fid.fid);
}

/* What fi_enable cannot do without. */
static int check_bound(const struct rwk_fi_ep *ep)
{
	if (!ep->av) {
		rwk_warn("fi_enable: no address vector is bound to the endpoint");
		return -FI_ENOAV;
	}
	if ((ep->shares_rx && !ep->srx) || (ep->shares_tx && !ep->stx)) {
		rwk_warn("fi_enable: the endpoint was opened for a shared %s context, and none is bound",
			ep->shares_rx && !ep->srx ? "receive" : "transmit");
		return -FI_EOPBADSTATE;
	}
	return rwk_fi_check_bound(ep->side, ep->cntr, ep->caps);
}

/* What waits are bound to it; how many. */
static unsigned bound_waits(const struct rwk_fi_ep *ep, struct rwk_fi_wait *waits[RWK_FI_SIDES + RWK_FI_COUNTED])
{
	unsigned count = 0;

	for (int s = 0; s < RWK_FI_SIDES; s++) {
		if (ep->side[s].cq)
			waits[count++] = &ep->side[s].cq->wait;
	}
	for (int k = 0; k < RWK_FI_COUNTED; k++) {
		if (ep->cntr[k])
			waits[count++] = &ep->cntr[k]->wait;
	}
	return count;
}

int rwk_fi_ep_attach(struct rwk_fi_ep *ep)
{
	struct rwk_fi_wait *waits[RWK_FI_SIDES + RWK_FI_COUNTED];
	unsigned count = bound_waits(ep, waits);

	for (unsigned i = 0; i < count; i++) {
		int err = rwk_fi_wait_attach(waits[i], ep->engine);

		if (!err)
			continue;
		while (i--)
			rwk_fi_wait_detach(waits[i], ep->engine);
		return err;
	}
	return 0;
}

void rwk_fi_ep_detach(struct rwk_fi_ep *ep)
{
	struct rwk_fi_wait *waits[RWK_FI_SIDES + RWK_FI_COUNTED];
	unsigned count = bound_waits(ep, waits);

	while (count--)
		rwk_fi_wait_detach(waits[count], ep->engine);
}

static int attach_all(struct rwk_fi_ep *ep)
{
	/* Who owns the receives says when a message may be offered, and a thread of ours does not ask. */
	int err = ep->peer_srx ? rwk_fi_wait_attach(&ep->domain->hosted, ep->engine)
			       : rwk_fi_group_attach(&ep->domain->groups, &ep->member, ep->engine);

	if (!err)
		err = rwk_fi_engine_attach(ep->domain, ep->engine);
	return err ? err : rwk_fi_ep_attach(ep);
}

static void detach_all(struct rwk_fi_ep *ep)
{
	if (ep->peer_srx)
		rwk_fi_wait_detach(&ep->domain->hosted, ep->engine);
	else
		rwk_fi_group_detach(&ep->member, ep->engine);
	rwk_fi_engine_detach(ep->domain, ep->engine);
	rwk_fi_ep_detach(ep);
}

static int open_engine(struct rwk_fi_ep *ep, struct rwk_engine **engine)
{
	struct rwk_engine_attr attr = {
		.complete = rwk_fi_complete,
		.merged = rwk_fi_ep_merged,
		.owner = ep,
		.inbox = ep->srx ? ep->srx->inbox : NULL,
		.multi_min = ep->multi_min,
		.reached = rwk_fi_reached,
		.again = rwk_fi_work_again,
	};

	return rwk_fi_engine_open(ep->domain, &ep->source, ep->caps, ep->tx_size, &attr, engine);
}

static int ep_enable(struct rwk_fi_ep *ep)
{
	bool shared = ep->srx || ep->peer_srx;
	int err = check_bound(ep);

	if (err)
		return err;
	if (ep->engine) {
		rwk_warn("fi_enable: the endpoint is enabled already");
		return -FI_EOPBADSTATE;
	}
	rwk_fi_enter(&ep->lock);
	err = open_engine(ep, &ep->engine);
	if (err)
		goto unlock;
	ep->inbox = rwk_engine_inbox(ep->engine);
	err = attach_all(ep);
	if (err)
		goto close_engine;
	rwk_fi_ep_set_flags(ep);
	ep->fid.msg = (struct fi_ops_msg *)(shared ? &rwk_fi_msg_send_ops : &rwk_fi_msg_ops);
	ep->fid.tagged = (struct fi_ops_tagged *)(shared ? &rwk_fi_tagged_send_ops : &rwk_fi_tagged_ops);
	if (ep->peer_srx)
		rwk_fi_peer_srx_enable(ep);
	rwk_fi_leave(&ep->lock);
	return 0;

close_engine:
	detach_all(ep);
	rwk_engine_close(ep->engine);
	ep->engine = NULL;
	ep->inbox = NULL;
unlock:
	rwk_fi_leave(&ep->lock);
	return err;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct rwk_fi_ep *ep = ep_of(fid);

	if (command == FI_ALIAS)
		return rwk_fi_alias_open(&ep->fid, &ep->aliases, &rwk_fi_rdm, ep->op_flags, arg);
	return command == FI_ENABLE ? ep_enable(ep) : -FI_ENOSYS;
}

static void finish(struct rwk_fi_ep *ep)
{
	rwk_fi_enter(&ep->lock);
	rwk_fi_engine_finish(ep->domain, ep->engine, &ep->lock);
	rwk_fi_leave(&ep->lock);
}

/* From now on nobody tells it of removals: before its engine and its peers are gone. */
static void leave_av(struct rwk_fi_ep *ep)
{
	if (!ep->av)
		return;
	rwk_fi_domain_stop(ep->domain);
	rwk_fi_av_detach(ep->av, ep);
	rwk_fi_domain_go(ep->domain);
}

static int ep_close(struct fid *fid)
{
	struct rwk_fi_ep *ep = ep_of(fid);

	if (rwk_fi_is_inherited(ep->domain->process))
		return 0;
	if (rwk_fi_busy(&ep->mrs)) {
		rwk_warn("fi_close: regions are bound to the endpoint; they must be closed first");
		return -FI_EBUSY;
	}
	if (rwk_fi_busy(&ep->aliases)) {
		rwk_warn("fi_close: the endpoint has aliases; they must be closed first");
		return -FI_EBUSY;
	}
	if (ep->engine)
		finish(ep);
	leave_av(ep);
	rwk_fi_enter(&ep->lock);
	if (ep->engine) {
		detach_all(ep);
		rwk_fi_work_drop(ep); /* first: the receives of others that end with it may set them off */
		rwk_engine_leave(ep->engine);
	}
	rwk_list_remove(&ep->of_srx);
	if (ep->stx)
		rwk_fi_drop(&ep->stx->refs);
	rwk_fi_unbind(ep->side, ep->cntr, ep->eq);
	if (ep->peer_srx)
		rwk_fi_drop(&ep->peer_srx->refs);
	rwk_fi_leave(&ep->lock);
	rwk_fi_part(&ep->domain->groups, &ep->member);
	if (ep->engine)
		rwk_fi_engine_close(ep->domain, ep->engine);
	rwk_fi_drop(&ep->domain->refs);
	free(ep->peers);
	free(ep);
	return 0;
}

/* A context has receives or sends; those of others are none of its business. */
static int cancel(struct rwk_fi_ep *ep, void *context)
{
	if (!ep->sep)
		return rwk_engine_cancel(ep->engine, context);
	if (ep->inbox)
		return rwk_inbox_cancel(ep->inbox, context);
	return rwk_engine_cancel_send(ep->engine, rwk_room_of(ep->room_flag), context);
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct rwk_fi_ep *ep = ep_of(fid);
	ssize_t err;

	if (!ep->engine)
		return -FI_EOPBADSTATE;
	rwk_fi_enter(&ep->lock);
	err = cancel(ep, context);
	if (err == -FI_ENOENT)
		err = rwk_fi_work_cancel_operation(ep, context);
	rwk_fi_leave(&ep->lock);
	return err;
}

int rwk_fi_get_multi_min(size_t bytes, int level, int name, void *value, size_t *len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = bytes;
	*len = sizeof(size_t);
	return 0;
}

int rwk_fi_set_multi_min(size_t *bytes, int level, int name, const void *value, size_t len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) {
		rwk_info("fi_setopt: there is no option %d of level %d, there is FI_OPT_MIN_MULTI_RECV", name, level);
		return -FI_ENOPROTOOPT;
	}
	if (len != sizeof(size_t))
		return -FI_EINVAL;
	*bytes = *(const size_t *)value;
	return 0;
}

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	return rwk_fi_get_multi_min(ep_of(fid)->multi_min, level, name, value, len);
}

/* With a shared receive context that has the option; the endpoint has no receives. */
static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct rwk_fi_ep *ep = ep_of(fid);
	size_t bytes;
	int err = rwk_fi_set_multi_min(&bytes, level, name, value, len);

	if (err)
		return err;
	rwk_fi_enter(&ep->lock);
	ep->multi_min = bytes;
	if (ep->inbox && !ep->srx)
		rwk_inbox_set_multi_min(ep->inbox, ep->multi_min);
	rwk_fi_leave(&ep->lock);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = ep_close,
	.bind = rwk_fi_ep_bind,
	.control = ep_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

const struct fi_ops_ep rwk_fi_ep_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_ep, tx_size_left),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = rwk_fi_no_tx_ctx,
	.rx_ctx = rwk_fi_no_rx_ctx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

/* Takes what matters from the info; an attribute that is not there has the default. */
static int take_info(struct rwk_fi_ep *ep, const struct fi_info *info)
{
	uint32_t format = info->addr_format ? info->addr_format : ep->domain->addr_format;

	if (rwk_fi_address_size(format) != rwk_fi_address_size(ep->domain->addr_format)) {
		rwk_warn("fi_endpoint: the info's address format is not the domain's");
		return -FI_EINVAL;
	}
	ep->caps = rwk_fi_endpoint_caps(&rwk_fi_rdm, info->caps);
	ep->shares_rx = info->ep_attr && info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->shares_tx = info->ep_attr && info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->want_source = ep->caps & FI_SOURCE;
	ep->undirected = ep->caps & FI_DIRECTED_RECV ? 0 : FI_ADDR_UNSPEC;
	ep->tx_size = info->tx_attr && info->tx_attr->size ? info->tx_attr->size : rwk_fi_rdm.tx_size;
	ep->op_flags[RWK_FI_TX] = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->op_flags[RWK_FI_RX] = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->multi_min = RWK_FI_MULTI_MIN;
	if (info->src_addr && info->src_addrlen >= rwk_fi_address_size(format))
		return rwk_fi_address_read(format, info->src_addr, &ep->source);
	return 0;
}

int rwk_fi_ep_make(struct rwk_fi_domain *domain, const struct fi_info *info, void *context, struct rwk_fi_ep **made)
{
	struct rwk_fi_ep *ep;
	int err;

	ep = aligned_alloc(RWK_CACHE_LINE, (sizeof(*ep) + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1));
	if (!ep)
		return -FI_ENOMEM;
	memset(ep, 0, sizeof(*ep));
	ep->domain = domain;
	err = take_info(ep, info);
	if (!err)
		err = rwk_fi_join(&domain->groups, &ep->member, &ep->lock);
	if (err) {
		free(ep);
		return err;
	}
	rwk_list_init(&ep->stalled);
	rwk_list_init(&ep->of_srx);
	rwk_fi_hold(&ep->domain->refs);
	ep->fid.fid.context = context;
	ep->fid.ops = (struct fi_ops_ep *)&rwk_fi_ep_ops;
	ep->fid.cm = (struct fi_ops_cm *)&rwk_fi_cm_ops;
	ep->fid.msg = (struct fi_ops_msg *)&rwk_fi_no_msg_ops;
	ep->fid.tagged = (struct fi_ops_tagged *)&rwk_fi_no_tagged_ops;
	ep->fid.rma = (struct fi_ops_rma *)&rwk_fi_rma_ops;
	ep->fid.atomic = (struct fi_ops_atomic *)&rwk_fi_atomic_ops;
	ep->fid.collective = (struct fi_ops_collective *)&rwk_fi_no_collective_ops;
	*made = ep;
	return 0;
}

int rwk_fi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **fid, void *context)
{
	struct rwk_fi_ep *ep;
	int err = rwk_fi_ep_make(rwk_fi_domain_of(domain), info, context, &ep);

	if (err)
		return err;
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	*fid = &ep->fid;
	return 0;
}

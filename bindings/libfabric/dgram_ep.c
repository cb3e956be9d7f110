/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/dgram.h"

#include "base/cancel.h"
#include "base/log.h"
#include "base/param.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/info.h"

#include <stdlib.h>
#include <string.h>

#define CNTR_FLAGS ((uint64_t)(FI_SEND | FI_RECV | FI_READ | FI_WRITE))
#define DRIVEN     (sizeof(((struct rwk_fi_dgram_ep *)0)->driven) / sizeof(struct rwk_fi_datagrams))

static struct rwk_fi_dgram_ep *ep_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_dgram_ep, fid.fid);
}

/* Lets a wait drive the endpoint; once, for however many directions it is bound. */
static int attach(struct rwk_fi_dgram_ep *ep, struct rwk_fi_wait *w)
{
	size_t i = 0;

	while (i < DRIVEN && ep->driven[i].wait && ep->driven[i].wait != w)
		i++;
	return ep->driven[i].wait ? 0 : rwk_fi_wait_take(w, &ep->driven[i], ep->ud);
}

static void detach_all(struct rwk_fi_dgram_ep *ep)
{
	for (size_t i = 0; i < DRIVEN; i++)
		rwk_fi_wait_leave(&ep->driven[i]);
}

/* All are in one: its wait has descriptors from the first on, if there is a progress thread. */
static int attach_group(struct rwk_fi_dgram_ep *ep)
{
	struct rwk_fi_groups *all = &ep->domain->groups;
	int err = rwk_fi_group_watch(all, ep->member.group);

	return err ? err : attach(ep, &ep->member.group->engines);
}

static int attach_all(struct rwk_fi_dgram_ep *ep)
{
	int err = attach_group(ep);

	for (int s = 0; s < RWK_FI_SIDES && !err; s++) {
		if (ep->side[s].cq)
			err = attach(ep, &ep->side[s].cq->wait);
	}
	for (int k = 0; k < RWK_FI_COUNTED && !err; k++) {
		if (ep->cntr[k])
			err = attach(ep, &ep->cntr[k]->wait);
	}
	if (err)
		detach_all(ep);
	return err;
}

static int bind_av(struct rwk_fi_dgram_ep *ep, struct rwk_fi_av *av, uint64_t flags)
{
	int err = rwk_fi_check_av(ep->av, ep->domain, av, flags);

	if (err)
		return err;
	ep->av = av;
	rwk_fi_hold(&av->refs);
	return 0;
}

/* A counter may come after fi_enable, too. */
static int bind_cntr(struct rwk_fi_dgram_ep *ep, struct rwk_fi_cntr *cntr, uint64_t flags)
{
	int err = rwk_fi_check_cntr(ep->cntr, ep->domain, cntr, flags, CNTR_FLAGS);

	if (err)
		return err;
	rwk_fi_enter(&ep->lock);
	if (ep->ud)
		err = attach(ep, &cntr->wait);
	for (int k = 0; k < RWK_FI_COUNTED && !err; k++) {
		if (!rwk_fi_counts(flags, k))
			continue;
		ep->cntr[k] = cntr;
		rwk_fi_hold(&cntr->refs);
	}
	rwk_fi_leave(&ep->lock);
	return err;
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_dgram_ep *ep = ep_of(fid);

	if (ep->ud && other->fclass != FI_CLASS_CNTR) {
		rwk_warn("fi_ep_bind: the endpoint is enabled; only counters can be bound now");
		return -FI_EOPBADSTATE;
	}
	switch (other->fclass) {
	case FI_CLASS_AV:
		return bind_av(ep, rwk_container_of(other, struct rwk_fi_av, fid.fid), flags);
	case FI_CLASS_CQ:
		return rwk_fi_bind_cq(ep->side, ep->domain, rwk_container_of(other, struct rwk_fi_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, rwk_container_of(other, struct rwk_fi_cntr, fid.fid), flags);
	case FI_CLASS_EQ:
		return rwk_fi_bind_eq(&ep->eq, rwk_container_of(other, struct rwk_fi_eq, fid.fid), flags);
	default:
		rwk_warn("fi_ep_bind: an object of class %zu; there are address vectors, queues and counters",
			other->fclass);
		return -FI_EINVAL;
	}
}

static int open_receives(struct rwk_fi_dgram_ep *ep)
{
	ep->receives = calloc(ep->rx_size, sizeof(*ep->receives));
	if (!ep->receives)
		return -FI_ENOMEM;
	rwk_list_init(&ep->unused);
	for (size_t i = 0; i < ep->rx_size; i++)
		rwk_list_append(&ep->unused, &ep->receives[i].place.link);
	return 0;
}

static int open_ud(struct rwk_fi_dgram_ep *ep)
{
	static const uint8_t any[16] = {[10] = 0xff, [11] = 0xff};
	struct rwk_ud_attr attr = {
		.own.port = rwk_address_port(&ep->source),
		.own.qpn = ep->source.version_srq & 0xffffff,
		.own.qkey = ep->source.job,
		.received = rwk_fi_dgram_received,
		.user = ep,
	};

	if (memcmp(ep->source.ip, any, sizeof(any)))
		memcpy(attr.own.ip, ep->source.ip, sizeof(attr.own.ip));
	return rwk_ud_open(&attr, &ep->ud);
}

/* What fi_enable opens. */
static int open_all(struct rwk_fi_dgram_ep *ep)
{
	int err = open_receives(ep);

	if (err)
		return err;
	err = open_ud(ep);
	if (err)
		goto free_receives;
	err = attach_all(ep);
	if (err)
		goto close_ud;
	ep->fid.msg = (struct fi_ops_msg *)&rwk_fi_dgram_message_ops;
	return 0;

close_ud:
	rwk_ud_close(ep->ud);
	ep->ud = NULL;
free_receives:
	free(ep->receives);
	ep->receives = NULL;
	return err;
}

static int ep_enable(struct rwk_fi_dgram_ep *ep)
{
	int before, err;

	if (ep->ud) {
		rwk_warn("fi_enable: the endpoint is enabled already");
		return -FI_EOPBADSTATE;
	}
	if (!ep->av) {
		rwk_warn("fi_enable: no address vector is bound to the endpoint");
		return -FI_ENOAV;
	}
	err = rwk_fi_check_bound(ep->side, ep->cntr, ep->caps);
	if (err)
		return err;
	rwk_fi_enter(&ep->lock);
	before = rwk_cancel_hold_off();
	err = open_all(ep);
	rwk_cancel_as_before(before);
	rwk_fi_leave(&ep->lock);
	return err;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	return command == FI_ENABLE ? ep_enable(ep_of(fid)) : -FI_ENOSYS;
}

static void close_ud(struct rwk_fi_dgram_ep *ep)
{
	rwk_fi_enter(&ep->lock);
	if (rwk_params.stats)
		rwk_fi_dgram_print(ep);
	detach_all(ep);
	rwk_ud_close(ep->ud);
	rwk_fi_leave(&ep->lock);
}

/* What is posted ends without a word. */
static int ep_close(struct fid *fid)
{
	struct rwk_fi_dgram_ep *ep = ep_of(fid);

	if (rwk_fi_is_inherited(ep->domain->process))
		return 0;
	if (ep->ud)
		close_ud(ep);
	rwk_fi_unbind(ep->side, ep->cntr, ep->eq);
	if (ep->av)
		rwk_fi_drop(&ep->av->refs);
	rwk_fi_part(&ep->domain->groups, &ep->member);
	rwk_fi_drop(&ep->domain->refs);
	free(ep->receives);
	free(ep);
	return 0;
}

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	(void)fid, (void)level, (void)name, (void)value, (void)len;
	return -FI_ENOPROTOOPT;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid, (void)value, (void)len;
	rwk_info("fi_setopt: a datagram endpoint has no option %d of level %d", name, level);
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
	.cancel = rwk_fi_dgram_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = rwk_fi_no_tx_ctx,
	.rx_ctx = rwk_fi_no_rx_ctx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

/* Takes what matters from the info; an attribute that is not there has the default. */
static int take_info(struct rwk_fi_dgram_ep *ep, const struct fi_info *info)
{
	const struct fi_rx_attr *rx = info->rx_attr;
	uint32_t format = ep->domain->addr_format;

	ep->caps = rwk_fi_complete_caps(&rwk_fi_dgram, info->caps);
	ep->rx_size = rx && rx->size ? rx->size : rwk_fi_dgram.rx_size;
	if (ep->rx_size > rwk_fi_dgram.rx_size_max)
		return -FI_EINVAL;
	ep->op_flags[RWK_FI_TX] = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->op_flags[RWK_FI_RX] = rx ? rx->op_flags : 0;
	if (info->src_addr && info->src_addrlen >= rwk_fi_address_size(format))
		return rwk_fi_address_read(format, info->src_addr, &ep->source);
	return 0;
}

int rwk_fi_dgram_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **fid, void *context)
{
	static const uint8_t any[16];
	struct rwk_fi_dgram_ep *ep = calloc(1, sizeof(*ep));
	int err;

	if (!ep)
		return -FI_ENOMEM;
	ep->domain = rwk_fi_domain_of(domain);
	rwk_fi_address_partial(any, 0, &ep->source);
	err = take_info(ep, info);
	if (!err)
		err = rwk_fi_join(&ep->domain->groups, &ep->member, &ep->lock);
	if (err) {
		free(ep);
		return err;
	}
	rwk_fi_hold(&ep->domain->refs);
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	ep->fid.ops = (struct fi_ops_ep *)&ep_ops;
	ep->fid.cm = (struct fi_ops_cm *)&rwk_fi_dgram_cm_ops;
	ep->fid.msg = (struct fi_ops_msg *)&rwk_fi_no_msg_ops;
	ep->fid.tagged = (struct fi_ops_tagged *)&rwk_fi_absent_tagged_ops;
	ep->fid.rma = (struct fi_ops_rma *)&rwk_fi_no_rma_ops;
	ep->fid.atomic = (struct fi_ops_atomic *)&rwk_fi_no_atomic_ops;
	ep->fid.collective = (struct fi_ops_collective *)&rwk_fi_no_collective_ops;
	*fid = &ep->fid;
	return 0;
}

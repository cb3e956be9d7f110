/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/scalable.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/deferred.h"
#include "bindings/libfabric/engine.h"
#include "bindings/libfabric/info.h"
#include "engine/rma.h"

#include <rdma/fi_cm.h>
#include <stdlib.h>

static struct rwk_fi_sep *sep_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_sep, fid.fid);
}

/* The engine's upcalls. */

/* The context that hears of data that came with a write: the one that is named, or the first that is open. */
static struct rwk_fi_ep *open_receiver(const struct rwk_fi_sep *sep, struct rwk_fi_ep *named)
{
	for (unsigned i = 0; i < RWK_ROOMS && !(named && named->engine); i++)
		named = sep->contexts[RWK_FI_RX][i];
	return named;
}

static void complete(void *owner, const struct rwk_completion *c)
{
	const struct rwk_fi_sep *sep = owner;
	int side = c->flags & (RWK_F_RECV | RWK_F_REMOTE_WRITE) ? RWK_FI_RX : RWK_FI_TX;
	struct rwk_fi_ep *ep = sep->contexts[side][rwk_room_of(c->flags)];

	if (c->flags & RWK_F_REMOTE_WRITE)
		ep = open_receiver(sep, ep);
	if (ep && ep->engine)
		rwk_fi_complete(ep, c);
	else if (c->flags & RWK_F_REMOTE_WRITE)
		rwk_info("data that came with a peer's write is lost: no receive context is enabled");
}

static void reached(void *owner, const struct rwk_reached *r)
{
	const struct rwk_fi_sep *sep = owner;

	for (unsigned i = 0; i < RWK_ROOMS; i++) {
		if (sep->contexts[RWK_FI_RX][i])
			rwk_fi_reached(sep->contexts[RWK_FI_RX][i], r);
	}
}

static void again(void *owner)
{
	const struct rwk_fi_sep *sep = owner;

	for (int s = 0; s < RWK_FI_SIDES; s++) {
		for (unsigned i = 0; i < RWK_ROOMS; i++) {
			if (sep->contexts[s][i])
				rwk_fi_work_again(sep->contexts[s][i]);
		}
	}
}

static void merged(void *owner, struct rwk_peer *old, struct rwk_peer *peer)
{
	const struct rwk_fi_sep *sep = owner;

	for (int s = 0; s < RWK_FI_SIDES; s++) {
		for (unsigned i = 0; i < RWK_ROOMS; i++) {
			if (sep->contexts[s][i])
				rwk_fi_ep_merged(sep->contexts[s][i], old, peer);
		}
	}
}

static int attach(struct rwk_fi_sep *sep)
{
	int err = rwk_fi_group_attach(&sep->domain->groups, &sep->member, sep->engine);

	return err ? err : rwk_fi_engine_attach(sep->domain, sep->engine);
}

static void detach(struct rwk_fi_sep *sep)
{
	rwk_fi_group_detach(&sep->member, sep->engine);
	rwk_fi_engine_detach(sep->domain, sep->engine);
}

void rwk_fi_sep_want_reached(struct rwk_fi_sep *sep)
{
	unsigned want = 0;

	for (unsigned i = 0; i < RWK_ROOMS; i++) {
		const struct rwk_fi_ep *ep = sep->contexts[RWK_FI_RX][i];

		want |= ep ? rwk_fi_ep_counts_remote(ep) : 0;
	}
	if (sep->engine)
		rwk_engine_want_reached(sep->engine, want);
}

int rwk_fi_sep_start(struct rwk_fi_sep *sep)
{
	struct rwk_engine_attr attr = {
		.complete = complete,
		.merged = merged,
		.owner = sep,
		.rooms = sep->counts[RWK_FI_RX],
		.multi_min = RWK_FI_MULTI_MIN,
		.reached = reached,
		.again = again,
	};
	size_t tx_size = sep->tx.size * sep->counts[RWK_FI_TX];
	int err;

	if (sep->engine)
		return 0;
	if (!sep->av) {
		rwk_warn("fi_enable: no address vector is bound to the scalable endpoint");
		return -FI_ENOAV;
	}
	err = rwk_fi_engine_open(sep->domain, &sep->source, sep->caps, tx_size, &attr, &sep->engine);
	if (err)
		return err;
	rwk_fi_sep_want_reached(sep);
	err = attach(sep);
	if (!err)
		return 0;
	detach(sep);
	rwk_engine_close(sep->engine);
	sep->engine = NULL;
	return err;
}

static int sep_control(struct fid *fid, int command, void *arg)
{
	struct rwk_fi_sep *sep = sep_of(fid);
	int err;

	(void)arg;
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	if (sep->enabled) {
		rwk_warn("fi_enable: the scalable endpoint is enabled already");
		return -FI_EOPBADSTATE;
	}
	rwk_fi_enter(&sep->lock);
	err = rwk_fi_sep_start(sep);
	rwk_fi_leave(&sep->lock);
	sep->enabled = !err;
	return err;
}

/* Its address vector, which is that of its contexts. */
static int sep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_sep *sep = sep_of(fid);
	struct rwk_fi_av *av = rwk_container_of(other, struct rwk_fi_av, fid.fid);
	int err;

	if (flags)
		return -FI_EBADFLAGS;
	if (other->fclass != FI_CLASS_AV || sep->av || av->domain != sep->domain) {
		rwk_warn("fi_scalable_ep_bind: %s",
			other->fclass != FI_CLASS_AV
				? "only an address vector can be bound; queues and counters are its "
				  "contexts'"
			: sep->av ? "the endpoint has an address vector"
				  : "the address vector is another domain's");
		return -FI_EINVAL;
	}
	err = av->shared ? rwk_fi_tie(&sep->domain->groups, &sep->member, &av->member) : 0;
	if (err)
		return err;
	sep->av = av;
	rwk_fi_hold(&av->refs);
	return 0;
}

static bool has_contexts(const struct rwk_fi_sep *sep)
{
	for (unsigned i = 0; i < RWK_ROOMS; i++) {
		if (sep->contexts[RWK_FI_TX][i] || sep->contexts[RWK_FI_RX][i])
			return true;
	}
	return false;
}

static int sep_close(struct fid *fid)
{
	struct rwk_fi_sep *sep = sep_of(fid);

	if (rwk_fi_is_inherited(sep->domain->process))
		return 0;
	rwk_fi_enter(&sep->lock);
	if (has_contexts(sep)) {
		rwk_fi_leave(&sep->lock);
		rwk_warn("fi_close: the scalable endpoint has contexts; they must be closed first");
		return -FI_EBUSY;
	}
	if (sep->engine) {
		rwk_fi_engine_finish(sep->domain, sep->engine, &sep->lock);
		detach(sep);
		rwk_engine_leave(sep->engine);
	}
	rwk_fi_leave(&sep->lock);
	rwk_fi_part(&sep->domain->groups, &sep->member);
	if (sep->engine)
		rwk_fi_engine_close(sep->domain, sep->engine);
	if (sep->av)
		rwk_fi_drop(&sep->av->refs);
	rwk_fi_drop(&sep->domain->refs);
	free(sep);
	return 0;
}

static int setname(fid_t fid, void *addr, size_t addrlen)
{
	struct rwk_fi_sep *sep = sep_of(fid);

	return rwk_fi_address_bind(sep->domain->addr_format, addr, addrlen, sep->engine, &sep->source);
}

static int getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct rwk_fi_sep *sep = sep_of(fid);

	if (!sep->engine)
		return -FI_EOPBADSTATE;
	return rwk_fi_address_give(sep->domain->addr_format, rwk_engine_address(sep->engine), addr, addrlen);
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = sep_close,
	.bind = sep_bind,
	.control = sep_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_ep sep_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_ep, tx_size_left),
	.cancel = rwk_fi_no_cancel,
	.getopt = rwk_fi_no_getopt,
	.setopt = rwk_fi_no_setopt,
	.tx_ctx = rwk_fi_sep_tx,
	.rx_ctx = rwk_fi_sep_rx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

static const struct fi_ops_cm cm_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cm, join),
	.setname = setname,
	.getname = getname,
	.getpeer = rwk_fi_no_getpeer,
	.connect = rwk_fi_no_connect,
	.listen = rwk_fi_no_listen,
	.accept = rwk_fi_no_accept,
	.reject = rwk_fi_no_reject,
	.shutdown = rwk_fi_no_shutdown,
	.join = rwk_fi_no_join,
};

/* How many contexts of a direction: 0, or -FI_EINVAL, -FI_EOPNOTSUPP. */
static int take_count(const char *what, size_t asked, unsigned *count)
{
	if (asked == FI_SHARED_CONTEXT) {
		rwk_warn("fi_scalable_ep: %s is FI_SHARED_CONTEXT; a scalable endpoint shares no contexts", what);
		return -FI_EOPNOTSUPP;
	}
	if (asked > rwk_fi_rdm.contexts) {
		rwk_warn("fi_scalable_ep: %s is %zu, there are at most %zu", what, asked, rwk_fi_rdm.contexts);
		return -FI_EINVAL;
	}
	*count = asked ? (unsigned)asked : 1;
	return 0;
}

static int take_info(struct rwk_fi_sep *sep, const struct fi_info *info)
{
	uint32_t format = info->addr_format ? info->addr_format : sep->domain->addr_format;
	int err = take_count("tx_ctx_cnt", info->ep_attr ? info->ep_attr->tx_ctx_cnt : 0, &sep->counts[RWK_FI_TX]);

	if (!err)
		err = take_count("rx_ctx_cnt", info->ep_attr ? info->ep_attr->rx_ctx_cnt : 0, &sep->counts[RWK_FI_RX]);
	if (err)
		return err;
	if (rwk_fi_address_size(format) != rwk_fi_address_size(sep->domain->addr_format)) {
		rwk_warn("fi_scalable_ep: the info's address format is not the domain's");
		return -FI_EINVAL;
	}
	sep->caps = rwk_fi_endpoint_caps(&rwk_fi_rdm, info->caps);
	if (info->tx_attr)
		sep->tx = *info->tx_attr;
	if (info->rx_attr)
		sep->rx = *info->rx_attr;
	if (!sep->tx.size)
		sep->tx.size = rwk_fi_rdm.tx_size;
	if (info->src_addr && info->src_addrlen >= rwk_fi_address_size(format))
		return rwk_fi_address_read(format, info->src_addr, &sep->source);
	return 0;
}

int rwk_fi_sep_open(struct rwk_fi_domain *domain, struct fi_info *info, struct fid_ep **fid, void *context)
{
	struct rwk_fi_sep *sep = calloc(1, sizeof(*sep));
	int err;

	if (!sep)
		return -FI_ENOMEM;
	sep->domain = domain;
	err = take_info(sep, info);
	if (!err)
		err = rwk_fi_join(&domain->groups, &sep->member, &sep->lock);
	if (err) {
		free(sep);
		return err;
	}
	rwk_fi_hold(&domain->refs);
	sep->fid.fid.fclass = FI_CLASS_SEP;
	sep->fid.fid.context = context;
	sep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	sep->fid.ops = (struct fi_ops_ep *)&sep_ops;
	sep->fid.cm = (struct fi_ops_cm *)&cm_ops;
	*fid = &sep->fid;
	return 0;
}

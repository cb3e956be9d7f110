/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts of scalable endpoints. */
#include "bindings/libfabric/scalable.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/deferred.h"
#include "bindings/libfabric/engine.h"
#include "bindings/libfabric/info.h"

#include <rdma/fi_cm.h>
#include <stdlib.h>
#include <string.h>

/* What the contexts of each direction are, and what is the other's. */
static const struct direction {
	const char *name, *call;
	size_t class;
	uint64_t others;
} directions[RWK_FI_SIDES] = {
	[RWK_FI_TX] = {"transmit", "fi_tx_context", FI_CLASS_TX_CTX,
		FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | FI_DIRECTED_RECV | FI_SOURCE |
			FI_MULTI_RECV},
	[RWK_FI_RX] = {"receive", "fi_rx_context", FI_CLASS_RX_CTX, FI_SEND | FI_READ | FI_WRITE | FI_FENCE},
};

static struct rwk_fi_ep *ep_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_ep, fid.fid);
}

static int side_of(const struct rwk_fi_ep *ep)
{
	return ep->fid.fid.fclass == FI_CLASS_TX_CTX ? RWK_FI_TX : RWK_FI_RX;
}

/* Its queue, which is of its direction. */
static int bind_cq(struct rwk_fi_ep *ep, struct rwk_fi_cq *cq, uint64_t flags)
{
	uint64_t other = side_of(ep) == RWK_FI_TX ? FI_RECV : FI_TRANSMIT;

	if (flags & other) {
		rwk_warn("fi_ep_bind: a %s context has no completion queue for %s", directions[side_of(ep)].name,
			side_of(ep) == RWK_FI_TX ? "FI_RECV" : "FI_TRANSMIT");
		return -FI_EINVAL;
	}
	return rwk_fi_ep_bind_cq(ep, cq, flags);
}

static int context_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_ep *ep = ep_of(fid);

	if (ep->engine && other->fclass != FI_CLASS_CNTR) {
		rwk_warn("fi_ep_bind: the context is enabled; only counters can be bound now");
		return -FI_EOPBADSTATE;
	}
	switch (other->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, rwk_container_of(other, struct rwk_fi_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return rwk_fi_ep_bind_cntr(ep, rwk_container_of(other, struct rwk_fi_cntr, fid.fid), flags);
	case FI_CLASS_EQ:
		return rwk_fi_bind_eq(&ep->eq, rwk_container_of(other, struct rwk_fi_eq, fid.fid), flags);
	default:
		rwk_warn(
			"fi_ep_bind: an object of class %zu; a context has a queue and counters, its address vector is "
			"bound by fi_scalable_ep_bind",
			other->fclass);
		return -FI_EINVAL;
	}
}

static void open_calls(struct rwk_fi_ep *ep)
{
	bool tx = side_of(ep) == RWK_FI_TX;

	ep->fid.msg = (struct fi_ops_msg *)(tx ? &rwk_fi_msg_send_ops : &rwk_fi_msg_recv_ops);
	ep->fid.tagged = (struct fi_ops_tagged *)(tx ? &rwk_fi_tagged_send_ops : &rwk_fi_tagged_recv_ops);
}

/* The endpoint's engine becomes the context's. Under the lock. */
static int join_engine(struct rwk_fi_ep *ep)
{
	int err = rwk_fi_sep_start(ep->sep);

	if (err)
		return err;
	err = rwk_fi_av_attach(ep->sep->av, ep);
	if (err)
		return err;
	ep->av = ep->sep->av;
	ep->engine = ep->sep->engine;
	err = rwk_fi_ep_attach(ep);
	if (!err)
		return 0;
	rwk_fi_av_detach(ep->av, ep);
	ep->av = NULL;
	ep->engine = NULL;
	return err;
}

static int context_enable(struct rwk_fi_ep *ep)
{
	int err = rwk_fi_check_bound(ep->side, ep->cntr, ep->caps);

	if (err)
		return err;
	if (ep->engine) {
		rwk_warn("fi_enable: the context is enabled already");
		return -FI_EOPBADSTATE;
	}
	rwk_fi_domain_stop(ep->domain); /* the address vector is to know it */
	err = join_engine(ep);
	if (!err) {
		if (side_of(ep) == RWK_FI_RX) {
			ep->inbox = rwk_engine_room(ep->engine, rwk_room_of(ep->room_flag));
			rwk_inbox_set_multi_min(ep->inbox, ep->multi_min);
		}
		rwk_fi_ep_set_flags(ep);
		open_calls(ep);
		rwk_info("%s context %u of a scalable endpoint is enabled", directions[side_of(ep)].name,
			rwk_room_of(ep->room_flag));
	}
	rwk_fi_domain_go(ep->domain);
	return err;
}

static int context_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	return command == FI_ENABLE ? context_enable(ep_of(fid)) : -FI_ENOSYS;
}

/* What it has begun uses no memory of the program's any more; nobody hears of it. */
static void leave_engine(struct rwk_fi_ep *ep)
{
	const struct rwk_fi_guard *lock = &ep->sep->lock;

	rwk_fi_enter(lock);
	rwk_fi_engine_quiet(ep->domain, ep->engine, lock, rwk_room_of(ep->room_flag), side_of(ep) == RWK_FI_RX);
	rwk_fi_leave(lock);
}

static void detach(struct rwk_fi_ep *ep)
{
	rwk_fi_ep_detach(ep);
	rwk_fi_av_detach(ep->av, ep);
}

/*
 * What stands for a peer is the engine's, and goes with what this context knows: a number that is removed afterwards
 * would stand for it for ever. The other contexts look their peers up for themselves. Works are dropped before: one
 * that another thread sets off would make the context know its peer again.
 */
static void forget_peers(struct rwk_fi_ep *ep)
{
	for (size_t i = 0; i < ep->peer_room; i++)
		rwk_fi_ep_forget(ep, i);
}

static void unmake(struct rwk_fi_ep *ep)
{
	rwk_fi_part(&ep->domain->groups, &ep->member);
	rwk_fi_drop(&ep->domain->refs);
	free(ep);
}

static int context_close(struct fid *fid)
{
	struct rwk_fi_ep *ep = ep_of(fid);

	if (rwk_fi_is_inherited(ep->domain->process))
		return 0;
	if (rwk_fi_busy(&ep->mrs)) {
		rwk_warn("fi_close: regions are bound to the context; they must be closed first");
		return -FI_EBUSY;
	}
	rwk_fi_domain_stop(ep->domain);
	ep->sep->contexts[side_of(ep)][rwk_room_of(ep->room_flag)] = NULL;
	rwk_fi_work_drop(ep);
	forget_peers(ep);
	rwk_fi_domain_go(ep->domain);
	if (ep->engine)
		leave_engine(ep);
	rwk_fi_domain_stop(ep->domain); /* the address vector knows it */
	if (ep->engine)
		detach(ep);
	rwk_fi_sep_want_reached(ep->sep);
	rwk_fi_unbind(ep->side, ep->cntr, ep->eq);
	rwk_fi_domain_go(ep->domain);
	free(ep->peers);
	unmake(ep);
	return 0;
}

/* The endpoint's name is that of its contexts. */
static int getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct fid *sep = &ep_of(fid)->sep->fid.fid;

	return fi_getname(sep, addr, addrlen);
}

static int no_setname(fid_t fid, void *addr, size_t addrlen)
{
	(void)fid, (void)addr, (void)addrlen;
	return -FI_ENOSYS;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = context_close,
	.bind = context_bind,
	.control = context_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static const struct fi_ops_cm cm_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cm, join),
	.setname = no_setname,
	.getname = getname,
	.getpeer = rwk_fi_no_getpeer,
	.connect = rwk_fi_no_connect,
	.listen = rwk_fi_no_listen,
	.accept = rwk_fi_no_accept,
	.reject = rwk_fi_no_reject,
	.shutdown = rwk_fi_no_shutdown,
	.join = rwk_fi_no_join,
};

static int make(struct rwk_fi_sep *sep, int side, unsigned index, const struct fi_info *info, void *context,
	struct rwk_fi_ep **made)
{
	struct rwk_fi_ep *ep;
	int err = rwk_fi_ep_make(sep->domain, info, context, &ep);

	if (err)
		return err;
	err = rwk_fi_tie(&sep->domain->groups, &ep->member, &sep->member);
	if (err) {
		unmake(ep);
		return err;
	}
	ep->fid.fid.fclass = directions[side].class;
	ep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	ep->fid.cm = (struct fi_ops_cm *)&cm_ops;
	ep->caps &= sep->caps & ~directions[side].others;
	ep->room_flag = rwk_room_flag(index);
	ep->sep = sep;
	*made = ep;
	return 0;
}

/* May there be a context of that index? 0; -FI_EINVAL, -FI_EBUSY. Under the lock. */
static int check_index(const struct rwk_fi_sep *sep, int side, unsigned index)
{
	const char *call = directions[side].call;

	if (index >= sep->counts[side]) {
		rwk_warn("%s: index %d, the endpoint has %u of these contexts", call, (int)index, sep->counts[side]);
		return -FI_EINVAL;
	}
	if (sep->contexts[side][index]) {
		rwk_warn("%s: index %u is open", call, index);
		return -FI_EBUSY;
	}
	if (sep->engine && (side == RWK_FI_TX ? rwk_engine_sends_from(sep->engine, index)
					      : rwk_inbox_receives(rwk_engine_room(sep->engine, index)))) {
		rwk_info("%s: index %u was closed, and what it has begun is under way", call, index);
		return -FI_EBUSY;
	}
	return 0;
}

/* The context, if there is one already, gets that index, if it may. */
static int claim(struct rwk_fi_sep *sep, int side, unsigned index, struct rwk_fi_ep *ep)
{
	int err;

	rwk_fi_enter(&sep->lock);
	err = check_index(sep, side, index);
	if (!err)
		sep->contexts[side][index] = ep;
	rwk_fi_leave(&sep->lock);
	return err;
}

/* What a context of its own is asked for; the endpoint's, where that is 0. */
struct wish {
	uint64_t caps, op_flags;
	size_t size;
};

static int check_wish(const struct rwk_fi_sep *sep, int side, const struct wish *w)
{
	uint64_t caps = w->caps & ~(sep->caps & ~directions[side].others);
	uint64_t flags = w->op_flags & ~(side == RWK_FI_TX ? rwk_fi_rdm.tx_op_flags : rwk_fi_rdm.rx_op_flags);
	size_t most = side == RWK_FI_TX ? rwk_fi_rdm.tx_size_max : rwk_fi_rdm.rx_size_max;

	if (!caps && !flags && w->size <= most)
		return 0;
	rwk_warn(
		"%s: more is asked for than the endpoint has: capabilities %#llx, flags %#llx, size %zu of at most %zu",
		directions[side].call, (unsigned long long)caps, (unsigned long long)flags, w->size, most);
	return -FI_EINVAL;
}

/* `info` has the attributes of its direction. */
static int open_context(struct rwk_fi_sep *sep, int side, int index, const struct wish *w, struct fi_info *info,
	struct fid_ep **fid, void *context)
{
	int err = w ? check_wish(sep, side, w) : 0;
	struct rwk_fi_ep *ep;

	if (err)
		return err;
	info->caps = w && w->caps ? w->caps : sep->caps;
	info->addr_format = sep->domain->addr_format;
	err = claim(sep, side, (unsigned)index, NULL);
	if (!err)
		err = make(sep, side, (unsigned)index, info, context, &ep);
	if (err)
		return err;
	err = claim(sep, side, (unsigned)index, ep); /* another thread may have been faster */
	if (err)
		unmake(ep);
	else
		*fid = &ep->fid;
	return err;
}

static struct rwk_fi_sep *sep_of(struct fid_ep *fid)
{
	return rwk_container_of(fid, struct rwk_fi_sep, fid);
}

/* Who asks for something is told what there is. */
int rwk_fi_sep_tx(struct fid_ep *fid, int index, struct fi_tx_attr *attr, struct fid_ep **tx, void *context)
{
	struct rwk_fi_sep *sep = sep_of(fid);
	struct fi_tx_attr mine = sep->tx;
	struct fi_info info = {.tx_attr = &mine};
	struct wish w;
	int err;

	if (!attr)
		return open_context(sep, RWK_FI_TX, index, NULL, &info, tx, context);
	w = (struct wish){attr->caps, attr->op_flags, attr->size};
	mine.op_flags = w.op_flags;
	mine.size = w.size ? w.size : mine.size;
	err = open_context(sep, RWK_FI_TX, index, &w, &info, tx, context);
	if (!err) {
		*attr = mine;
		attr->caps = rwk_container_of(*tx, struct rwk_fi_ep, fid)->caps;
	}
	return err;
}

int rwk_fi_sep_rx(struct fid_ep *fid, int index, struct fi_rx_attr *attr, struct fid_ep **rx, void *context)
{
	struct rwk_fi_sep *sep = sep_of(fid);
	struct fi_rx_attr mine = sep->rx;
	struct fi_info info = {.rx_attr = &mine};
	struct wish w;
	int err;

	if (!attr)
		return open_context(sep, RWK_FI_RX, index, NULL, &info, rx, context);
	w = (struct wish){attr->caps, attr->op_flags, attr->size};
	mine.op_flags = w.op_flags;
	mine.size = w.size ? w.size : mine.size;
	err = open_context(sep, RWK_FI_RX, index, &w, &info, rx, context);
	if (!err) {
		*attr = mine;
		attr->caps = rwk_container_of(*rx, struct rwk_fi_ep, fid)->caps;
	}
	return err;
}

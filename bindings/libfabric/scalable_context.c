/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts of scalable endpoints. */
#include "bindings/libfabric/scalable.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/deferred.h"
#include "bindings/libfabric/info.h"

#include <rdma/fi_cm.h>
#include <stdlib.h>
#include <string.h>

/* What a context of the other direction does. */
#define NOT_TX                                                                                                         \
	((uint64_t)(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | FI_DIRECTED_RECV | FI_SOURCE |         \
		    FI_MULTI_RECV))
#define NOT_RX ((uint64_t)(FI_SEND | FI_READ | FI_WRITE | FI_FENCE))

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
		rwk_warn("fi_ep_bind: a %s context has no completion queue for %s",
			side_of(ep) == RWK_FI_TX ? "transmit" : "receive",
			side_of(ep) == RWK_FI_TX ? "FI_RECV" : "FI_TRANSMIT");
		return -FI_EINVAL;
	}
	return rwk_fi_bind_cq(ep->side, ep->domain, cq, flags);
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
	rwk_fi_ep_detach(ep);
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
	rwk_fi_lock(ep->lock);
	err = join_engine(ep);
	if (!err) {
		if (side_of(ep) == RWK_FI_RX) {
			ep->inbox = rwk_engine_room(ep->engine, rwk_room_of(ep->room_flag));
			rwk_inbox_set_multi_min(ep->inbox, ep->multi_min);
		}
		rwk_fi_ep_set_flags(ep);
		open_calls(ep);
	}
	rwk_fi_unlock(ep->lock);
	return err;
}

static int context_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	return command == FI_ENABLE ? context_enable(ep_of(fid)) : -FI_ENOSYS;
}

/* From now on nobody hears of what it has begun. */
static void leave_engine(struct rwk_fi_ep *ep)
{
	rwk_fi_work_drop(ep);
	if (ep->inbox)
		rwk_inbox_cancel_all(ep->inbox);
	else
		rwk_engine_cancel_sends(ep->engine, rwk_room_of(ep->room_flag));
	rwk_fi_ep_detach(ep);
	rwk_fi_av_detach(ep->av, ep);
}

static int context_close(struct fid *fid)
{
	struct rwk_fi_ep *ep = ep_of(fid);
	struct rwk_fi_mutex *lock = ep->lock;

	if (rwk_fi_busy(&ep->mrs)) {
		rwk_warn("fi_close: regions are bound to the context; they must be closed first");
		return -FI_EBUSY;
	}
	rwk_fi_lock(lock);
	ep->sep->contexts[side_of(ep)][rwk_room_of(ep->room_flag)] = NULL;
	if (ep->engine)
		leave_engine(ep);
	rwk_fi_unbind(ep->side, ep->cntr, ep->eq);
	rwk_fi_unlock(lock);
	rwk_fi_drop(&ep->domain->refs);
	free(ep->peers);
	free(ep);
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

static int make(struct rwk_fi_sep *sep, const struct fi_info *info, size_t class, unsigned index,
	struct rwk_fi_ep **made, void *context)
{
	struct rwk_fi_ep *ep;
	int err = rwk_fi_ep_make(sep->domain, info, context, &ep);

	if (err)
		return err;
	ep->fid.fid.fclass = class;
	ep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	ep->fid.cm = (struct fi_ops_cm *)&cm_ops;
	ep->caps &= sep->caps & ~(class == FI_CLASS_TX_CTX ? NOT_TX : NOT_RX);
	ep->room_flag = rwk_room_flag(index);
	ep->sep = sep;
	*made = ep;
	return 0;
}

/* A context that is open, or was, keeps its index. */
static int open_context(struct rwk_fi_sep *sep, const char *call, size_t class, int index, const struct fi_info *info,
	struct fid_ep **fid, void *context)
{
	int side = class == FI_CLASS_TX_CTX ? RWK_FI_TX : RWK_FI_RX, err;
	struct rwk_fi_ep *ep;

	if (index < 0 || (unsigned)index >= sep->counts[side]) {
		rwk_warn("%s: index %d, the endpoint has %u of these contexts", call, index, sep->counts[side]);
		return -FI_EINVAL;
	}
	if (sep->spent[side][index]) {
		rwk_warn("%s: index %d %s", call, index, sep->contexts[side][index] ? "is open" : "was closed");
		return -FI_EBUSY;
	}
	err = make(sep, info, class, (unsigned)index, &ep, context);
	if (err)
		return err;
	rwk_fi_lock(sep->lock);
	sep->contexts[side][index] = ep;
	sep->spent[side][index] = true;
	rwk_fi_unlock(sep->lock);
	*fid = &ep->fid;
	return 0;
}

static int check_attr(const char *call, uint64_t caps, uint64_t known_caps, uint64_t op_flags, uint64_t known_flags,
	size_t size, size_t size_max)
{
	if (!(caps & ~known_caps) && !(op_flags & ~known_flags) && size <= size_max)
		return 0;
	rwk_warn(
		"%s: more is asked for than the endpoint has: capabilities %#llx, flags %#llx, size %zu of at most %zu",
		call, (unsigned long long)(caps & ~known_caps), (unsigned long long)(op_flags & ~known_flags), size,
		size_max);
	return -FI_EINVAL;
}

/* The endpoint's, but for what is asked for; that is told to who has asked. */
int rwk_fi_sep_tx(struct fid_ep *fid, int index, struct fi_tx_attr *attr, struct fid_ep **tx, void *context)
{
	struct rwk_fi_sep *sep = rwk_container_of(fid, struct rwk_fi_sep, fid);
	struct fi_tx_attr mine = sep->tx;
	struct fi_info info = {.caps = sep->caps, .tx_attr = &mine, .addr_format = sep->domain->addr_format};
	int err = attr ? check_attr("fi_tx_context", attr->caps, sep->caps & ~NOT_TX, attr->op_flags,
				 rwk_fi_rdm.tx_op_flags, attr->size, rwk_fi_rdm.tx_size_max)
		       : 0;

	if (err)
		return err;
	if (attr) {
		info.caps = attr->caps ? attr->caps : sep->caps;
		mine.op_flags = attr->op_flags;
		mine.size = attr->size ? attr->size : mine.size;
	}
	err = open_context(sep, "fi_tx_context", FI_CLASS_TX_CTX, index, &info, tx, context);
	if (!err && attr) {
		*attr = mine;
		attr->caps = rwk_container_of(*tx, struct rwk_fi_ep, fid)->caps;
	}
	return err;
}

int rwk_fi_sep_rx(struct fid_ep *fid, int index, struct fi_rx_attr *attr, struct fid_ep **rx, void *context)
{
	struct rwk_fi_sep *sep = rwk_container_of(fid, struct rwk_fi_sep, fid);
	struct fi_rx_attr mine = sep->rx;
	struct fi_info info = {.caps = sep->caps, .rx_attr = &mine, .addr_format = sep->domain->addr_format};
	int err = attr ? check_attr("fi_rx_context", attr->caps, sep->caps & ~NOT_RX, attr->op_flags,
				 rwk_fi_rdm.rx_op_flags, attr->size, rwk_fi_rdm.rx_size_max)
		       : 0;

	if (err)
		return err;
	if (attr) {
		info.caps = attr->caps ? attr->caps : sep->caps;
		mine.op_flags = attr->op_flags;
		mine.size = attr->size ? attr->size : mine.size;
	}
	err = open_context(sep, "fi_rx_context", FI_CLASS_RX_CTX, index, &info, rx, context);
	if (!err && attr) {
		*attr = mine;
		attr->caps = rwk_container_of(*rx, struct rwk_fi_ep, fid)->caps;
	}
	return err;
}

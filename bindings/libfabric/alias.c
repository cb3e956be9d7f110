/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/alias.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"

#include <rdma/fi_cm.h>
#include <stdlib.h>

static struct rwk_fi_alias *alias_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_alias, fid.fid);
}

/* The direction that the flags name, which is one: its side; -FI_EINVAL. */
static int side_of(uint64_t flags)
{
	bool tx = flags & FI_TRANSMIT, rx = flags & FI_RECV;

	if (tx == rx) {
		rwk_warn("fi_ep_alias, fi_control: the flags name %s of FI_TRANSMIT and FI_RECV",
			tx ? "both" : "neither");
		return -FI_EINVAL;
	}
	return tx ? RWK_FI_TX : RWK_FI_RX;
}

static int set_flags(struct rwk_fi_alias *a, uint64_t flags)
{
	int side = side_of(flags);

	if (side < 0)
		return side;
	flags &= ~(uint64_t)(FI_TRANSMIT | FI_RECV);
	if (flags & ~a->known[side])
		return -FI_EBADFLAGS;
	a->op_flags[side] = flags;
	return 0;
}

static int get_flags(const struct rwk_fi_alias *a, uint64_t *flags)
{
	int side = side_of(*flags);

	if (side < 0)
		return side;
	*flags = a->op_flags[side];
	return 0;
}

static int alias_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_SETOPSFLAG:
		return set_flags(alias_of(fid), *(const uint64_t *)arg);
	case FI_GETOPSFLAG:
		return get_flags(alias_of(fid), arg);
	default:
		return -FI_ENOSYS;
	}
}

static int alias_close(struct fid *fid)
{
	struct rwk_fi_alias *a = alias_of(fid);

	rwk_fi_drop(a->refs);
	free(a);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = alias_close,
	.bind = rwk_fi_no_bind,
	.control = alias_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

static ssize_t alias_cancel(fid_t fid, void *context)
{
	return fi_cancel(&alias_of(fid)->ep->fid, context);
}

static int alias_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	return fi_getopt(&alias_of(fid)->ep->fid, level, name, value, len);
}

static int alias_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	return fi_setopt(&alias_of(fid)->ep->fid, level, name, value, len);
}

static const struct fi_ops_ep ep_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_ep, tx_size_left),
	.cancel = alias_cancel,
	.getopt = alias_getopt,
	.setopt = alias_setopt,
	.tx_ctx = rwk_fi_no_tx_ctx,
	.rx_ctx = rwk_fi_no_rx_ctx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

static int alias_setname(fid_t fid, void *addr, size_t addrlen)
{
	return fi_setname(&alias_of(fid)->ep->fid, addr, addrlen);
}

static int alias_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return fi_getname(&alias_of(fid)->ep->fid, addr, addrlen);
}

static int alias_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	return fi_getpeer(rwk_fi_alias_of(fid)->ep, addr, addrlen);
}

/* Who connects is the endpoint. */
static const struct fi_ops_cm cm_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cm, join),
	.setname = alias_setname,
	.getname = alias_getname,
	.getpeer = alias_getpeer,
	.connect = rwk_fi_no_connect,
	.listen = rwk_fi_no_listen,
	.accept = rwk_fi_no_accept,
	.reject = rwk_fi_no_reject,
	.shutdown = rwk_fi_no_shutdown,
	.join = rwk_fi_no_join,
};

struct fid *rwk_fi_unaliased(struct fid *fid)
{
	return fid->ops == &fid_ops ? &alias_of(fid)->ep->fid : fid;
}

int rwk_fi_alias_open(struct fid_ep *ep, atomic_uint *refs, const struct rwk_fi_kind *kind,
	const uint64_t op_flags[RWK_FI_SIDES], const struct fi_alias *alias)
{
	struct rwk_fi_alias *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -FI_ENOMEM;
	/* Its calls are all made with flags, and so may wait (trigger.h), as those of an endpoint may not. */
	a->known[RWK_FI_TX] = kind->tx_op_flags | (kind->tx_caps & FI_TRIGGER);
	a->known[RWK_FI_RX] = kind->rx_op_flags | (kind->rx_caps & FI_TRIGGER);
	for (int s = 0; s < RWK_FI_SIDES; s++)
		a->op_flags[s] = op_flags[s];
	err = set_flags(a, alias->flags);
	if (err) {
		free(a);
		return err;
	}
	a->ep = ep;
	a->refs = refs;
	rwk_fi_hold(refs);
	a->fid.fid.fclass = FI_CLASS_EP;
	a->fid.fid.context = ep->fid.context;
	a->fid.fid.ops = (struct fi_ops *)&fid_ops;
	a->fid.ops = (struct fi_ops_ep *)&ep_ops;
	a->fid.cm = (struct fi_ops_cm *)&cm_ops;
	a->fid.msg = (struct fi_ops_msg *)&rwk_fi_alias_msg_ops;
	a->fid.tagged = (struct fi_ops_tagged *)&rwk_fi_alias_tagged_ops;
	a->fid.rma = (struct fi_ops_rma *)&rwk_fi_alias_rma_ops;
	a->fid.atomic = (struct fi_ops_atomic *)&rwk_fi_alias_atomic_ops;
	a->fid.collective = (struct fi_ops_collective *)&rwk_fi_no_collective_ops;
	*alias->fid = &a->fid.fid;
	return 0;
}

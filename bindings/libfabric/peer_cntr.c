/* SPDX-License-Identifier: BSD-3-Clause */
/* The structures came with libfabric 2; where the headers have none they stand here alone. */
#include "bindings/libfabric/peer.h"

#include "base/log.h"

struct owner_ops {
	size_t size;
	void (*inc)(struct fid_peer_cntr *cntr);
	void (*incerr)(struct fid_peer_cntr *cntr);
};

struct owner {
	struct fid fid;
	struct owner_ops *ops;
};

struct context {
	size_t size;
	struct fid_peer_cntr *cntr;
};

static const struct owner_ops *ops_of(const struct fid_peer_cntr *cntr)
{
	return ((const struct owner *)cntr)->ops;
}

/* It makes progress; what it says is nothing. */
static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct rwk_fi_cntr *cntr = rwk_container_of(fid, struct rwk_fi_cntr, fid);

	rwk_fi_enter(&cntr->lock);
	rwk_fi_wait_progress(&cntr->wait);
	rwk_fi_leave(&cntr->lock);
	return 0;
}

static uint64_t no_readerr(struct fid_cntr *fid)
{
	(void)fid;
	return 0;
}

static int no_change(struct fid_cntr *fid, uint64_t value)
{
	(void)fid, (void)value;
	return -FI_ENOSYS;
}

static int no_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	(void)fid, (void)threshold, (void)timeout;
	return -FI_ENOSYS;
}

static const struct fi_ops_cntr peer_cntr_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_cntr, seterr),
	.read = cntr_read,
	.readerr = no_readerr,
	.add = no_change,
	.set = no_change,
	.wait = no_wait,
	.adderr = no_change,
	.seterr = no_change,
};

int rwk_fi_peer_cntr_import(struct rwk_fi_cntr *cntr, const void *context)
{
	const struct context *c = context;

	if (FI_MAJOR(fi_version()) < 2) {
		rwk_warn("fi_cntr_open: FI_PEER came with libfabric 2, this is %u.%u", FI_MAJOR(fi_version()),
			FI_MINOR(fi_version()));
		return -FI_EINVAL;
	}
	if (!c || c->size < sizeof(*c) || !c->cntr || !ops_of(c->cntr)) {
		rwk_warn("fi_cntr_open: with FI_PEER the context is a struct fi_peer_cntr_context with the owner's "
			 "counter");
		return -FI_EINVAL;
	}
	cntr->owner = c->cntr;
	cntr->fid.ops = (struct fi_ops_cntr *)&peer_cntr_ops;
	return rwk_fi_unite(&cntr->domain->groups);
}

void rwk_fi_peer_cntr_count(const struct rwk_fi_cntr *cntr, bool failed)
{
	(failed ? ops_of(cntr->owner)->incerr : ops_of(cntr->owner)->inc)(cntr->owner);
}

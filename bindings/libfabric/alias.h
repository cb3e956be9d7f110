/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aliases of endpoints (fi_ep_alias), of every kind: another fid for the same endpoint, whose calls without flags have
 * default flags of the alias's. Each is the endpoint's own call with those flags; all else goes to the endpoint as it
 * is. An alias holds its endpoint.
 */
#ifndef RWK_FI_ALIAS_H
#define RWK_FI_ALIAS_H

#include "bindings/libfabric/bound.h"
#include "bindings/libfabric/info.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdatomic.h>

struct rwk_fi_alias {
	struct fid_ep fid;
	struct fid_ep *ep;
	atomic_uint *refs; /* of ep: its aliases */
	uint64_t op_flags[RWK_FI_SIDES];
	uint64_t known[RWK_FI_SIDES]; /* those that there are */
};

static inline struct rwk_fi_alias *rwk_fi_alias_of(struct fid_ep *fid)
{
	return rwk_container_of(fid, struct rwk_fi_alias, fid);
}

/**
 * fi_ep_alias of an endpoint of that kind with those default flags: 0; -FI_EINVAL: the flags name not one direction;
 * -FI_EBADFLAGS: they are none that a kind's operations have by default; -FI_ENOMEM.
 */
int rwk_fi_alias_open(struct fid_ep *ep, atomic_uint *refs, const struct rwk_fi_kind *kind,
	const uint64_t op_flags[RWK_FI_SIDES], const struct fi_alias *alias);

/** The endpoint, if that is an alias of one; else the fid itself. */
struct fid *rwk_fi_unaliased(struct fid *fid);

/* Tables of calls. */
extern const struct fi_ops_msg rwk_fi_alias_msg_ops;
extern const struct fi_ops_tagged rwk_fi_alias_tagged_ops;
extern const struct fi_ops_rma rwk_fi_alias_rma_ops;
extern const struct fi_ops_atomic rwk_fi_alias_atomic_ops;

#endif

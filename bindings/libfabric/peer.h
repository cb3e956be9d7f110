/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Providers that serve one another (fi_peer(3)): another one, the owner, opens queues, counters and receive contexts of
 * its own with us (FI_PEER), and what happens on our endpoints goes there. So lnx makes one endpoint of several
 * providers', with one queue and one order of receives.
 *
 *   peer_cq.c    a queue whose entries the owner writes; nothing is to be read from ours, which only makes progress
 *   peer_cntr.c  a counter that the owner counts
 *   peer_srx.c   a receive context whose receives the owner has: src/engine/foreign.h has what becomes of messages
 *
 *   peer_lent.c  the other way: we own a receive context (srx.c), and lend its receives to other providers;
 *                src/engine/guest.h has what becomes of their messages
 *
 * Locks: the owner holds whatever lock it needs when it calls us, and takes none that it holds around such a call from
 * within what we call. We offer a message from within calls that make progress alone.
 *
 * The structures of receives are not the same in all libfabrics, and say so nowhere. What counts is the libfabric that
 * runs, not the one whose headers we see: "first" is that of 1.17, "second" that of 2.0 to 2.2, "third" that since 2.3;
 * with those between 1.17 and 2.0 there are no such receive contexts.
 */
#ifndef RWK_FI_PEER_H
#define RWK_FI_PEER_H

#include "bindings/libfabric/ep.h"

#include <rdma/fi_ext.h>
#include <rdma/fi_tagged.h>
#if __has_include(<rdma/providers/fi_peer.h>)
#include <rdma/providers/fi_peer.h>
#endif

/** What an operation carries that goes into the owner's receive: its context is the entry. */
#define RWK_FI_ENTRY (RWK_F_USER << 4)

/** A receive context of another provider's, imported. */
struct rwk_fi_peer_srx {
	struct fid_ep fid;
	struct fid_peer_srx *srx; /* the owner's */
	struct rwk_fi_domain *domain;
	atomic_uint refs; /* endpoints bound */
};

/** Are there receive contexts of others with the libfabric that runs? */
bool rwk_fi_peer_known(void);

/** fi_srx_context with FI_PEER in op_flags: 0; -FI_EINVAL, -FI_ENOSYS, logged; -FI_ENOMEM. */
int rwk_fi_peer_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep, void *context);

/** NULL: the fid is not one of these. */
struct rwk_fi_peer_srx *rwk_fi_peer_srx_of(struct fid *fid);

/** Binds it to an endpoint that is not enabled: 0; -FI_EINVAL, -FI_EBADFLAGS, logged. */
int rwk_fi_peer_srx_bind(struct rwk_fi_ep *ep, struct rwk_fi_peer_srx *srx, uint64_t flags);

/** The endpoint, which has it, is being enabled: its engine takes its receives from there. */
void rwk_fi_peer_srx_enable(struct rwk_fi_ep *ep);

/**
 * Addresses have come into the vector: the owners of its endpoints' receives are told who sent what came before that.
 * Without the lock, which they need not have; the owner takes its own. Endpoints and what they have of the owner may be
 * closed meanwhile; the owner's own object is there until it is told.
 */
void rwk_fi_peer_told(struct rwk_fi_av *av);

/** A receive of the owner's is complete. */
void rwk_fi_peer_received(struct rwk_fi_ep *ep, const struct rwk_completion *c);

/**
 * fi_export_fid of a shared receive context, once for each provider that imports it: a struct fid_peer_srx, by its
 * first member, for the fi_peer_srx_context that goes to that provider's fi_srx_context. 0; -FI_EBADFLAGS: any but
 * FI_SELECTIVE_COMPLETION, which has the provider tell of those receives alone that ask for it; -FI_ENOSYS, logged;
 * -FI_ENOMEM. It is closed after all of that provider's that uses it, and before the context.
 */
int rwk_fi_lent_open(struct rwk_fi_srx *srx, struct fi_fid_export *export);

/** Tells the providers which of their messages have found receives, or were dropped. Without the lock. */
void rwk_fi_lent_tell(struct rwk_fi_srx *srx);

/** Makes of a fresh queue one of the owner's that `context` names: 0; -FI_EINVAL, logged. */
int rwk_fi_peer_cq_import(struct rwk_fi_cq *cq, const struct fi_peer_cq_context *context);

/** As rwk_fi_peer_cq_import of a fresh counter; -FI_EINVAL with a libfabric before 2, too. */
int rwk_fi_peer_cntr_import(struct rwk_fi_cntr *cntr, const void *context);

/** Has the owner write an entry. */
void rwk_fi_peer_cq_put(const struct rwk_fi_cq *cq, const struct rwk_completion *c, fi_addr_t source);

#endif

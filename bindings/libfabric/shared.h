/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts that endpoints of a domain share; each holds its domain, and its endpoints hold it.
 *
 *   shared receive context   of FI_EP_RDM an inbox (engine.h), which its endpoints' engines have in place of their own:
 *                            a receive takes the first message that fits, whichever endpoint it was sent to. Of
 *                            FI_EP_MSG a shared receive queue (msg_srx.c)
 *   shared transmit context  shares nothing but the name: a send takes memory when it needs some, of FI_EP_MSG each
 *                            endpoint has a queue of its own
 *
 * Neither has queues or counters. A receive is told of in those of the endpoint that its message came by; one that ends
 * without a message (cancelled, or a peek that found none) in those of the first endpoint that was bound.
 *
 * There is no FI_DIRECTED_RECV: each endpoint has peers of its own, and an inbox knows them apart, not as one.
 */
#ifndef RWK_FI_SHARED_H
#define RWK_FI_SHARED_H

#include "bindings/libfabric/domain.h"
#include "base/list.h"
#include "engine/engine.h"

#include <rdma/fi_endpoint.h>

struct rwk_fi_kind;

/** FI_EP_RDM's. */
struct rwk_fi_srx {
	struct fid_ep fid;
	struct rwk_inbox *inbox;
	struct rwk_fi_guard lock;
	struct rwk_fi_member member;
	uint32_t recv_flags[RWK_SPACES]; /* as of struct rwk_fi_ep, but whether an entry is wanted its endpoints know */
	uint32_t recvmsg_flags[2];
	struct rwk_fi_domain *domain;
	struct rwk_list eps;  /* rwk_fi_ep.of_srx: those bound. Under the lock */
	struct rwk_list lent; /* to other providers (peer_lent.c). Under the lock */
	size_t multi_min;
};

struct rwk_fi_stx {
	struct fid_stx fid;
	struct rwk_fi_domain *domain;
	atomic_uint refs; /* endpoints */
};

/** May a shared receive context be opened with these attributes (or NULL)? 0; -FI_EINVAL, -FI_EOPNOTSUPP, logged. */
int rwk_fi_check_srx(const struct rwk_fi_kind *k, const struct fi_rx_attr *attr);

/** NULL: the fid is not one of FI_EP_RDM's. */
struct rwk_fi_srx *rwk_fi_srx_of(struct fid *fid);

int rwk_fi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
int rwk_fi_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context);

/** Binds it, if *slot is NULL: 0; -FI_EBADFLAGS, -FI_EINVAL, logged. */
int rwk_fi_bind_stx(
	struct rwk_fi_stx **slot, const struct rwk_fi_domain *domain, struct rwk_fi_stx *stx, uint64_t flags);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains of connected endpoints (FI_EP_MSG), and their registrations, as the objects of both kinds see them: without a
 * word of the adapter's.
 */
#ifndef RWK_FI_MSG_DOMAIN_H
#define RWK_FI_MSG_DOMAIN_H

#include "bindings/libfabric/domain.h"

#include <sys/uio.h>

/** The rest of a domain whose info has been taken: its device. 0 or negative errno. */
int rwk_fi_msg_domain_open(struct rwk_fi_domain *domain);
void rwk_fi_msg_domain_close(struct rwk_fi_domain *domain);

/**
 * Its device is open from now on, and it has its pd and memory: for the first endpoint, receive context or
 * registration, and not before. 0 or negative errno. Under the lock.
 */
int rwk_fi_msg_domain_use(struct rwk_fi_domain *domain);

/** The same for an endpoint, with progress by itself if it has that. Without its lock. 0 or negative errno. */
int rwk_fi_msg_domain_start(struct rwk_fi_domain *domain);

/** Opens memory to the peers as `access` (FI_REMOTE_READ, FI_REMOTE_WRITE) says: 0, *mr and *key set. Under the lock.
 */
int rwk_fi_msg_mr_add(
	struct rwk_fi_domain *domain, const struct iovec *iov, uint64_t access, struct rwk_mr **mr, uint64_t *key);
/** Under the lock. */
void rwk_fi_msg_mr_remove(struct rwk_mr *mr);

/** fi_endpoint, fi_srx_context, fi_passive_ep and fi_query_atomic. */
int rwk_fi_msg_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int rwk_fi_msg_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
int rwk_fi_msg_passive_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
int rwk_fi_msg_query_atomic(enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that one kind of endpoint or another does not have: each returns -FI_ENOSYS. One kind has what another has not,
 * so there is no table for all.
 */
#ifndef RWK_FI_ABSENT_CALLS_H
#define RWK_FI_ABSENT_CALLS_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

extern const struct fi_ops_collective rwk_fi_no_collective_ops; /* -FI_EOPNOTSUPP */

ssize_t rwk_fi_no_cancel(fid_t fid, void *context);
int rwk_fi_no_getopt(fid_t fid, int level, int name, void *value, size_t *len);
int rwk_fi_no_setopt(fid_t fid, int level, int name, const void *value, size_t len);
int rwk_fi_no_tx_ctx(struct fid_ep *ep, int index, struct fi_tx_attr *attr, struct fid_ep **tx, void *context);
int rwk_fi_no_rx_ctx(struct fid_ep *ep, int index, struct fi_rx_attr *attr, struct fid_ep **rx, void *context);
/** Deprecated; and -FI_EAGAIN says when there is none. */
ssize_t rwk_fi_no_size_left(struct fid_ep *ep);
int rwk_fi_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int rwk_fi_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int rwk_fi_no_listen(struct fid_pep *pep);
int rwk_fi_no_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int rwk_fi_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
int rwk_fi_no_shutdown(struct fid_ep *ep, uint64_t flags);
int rwk_fi_no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);

/** Of a receive context without options. */
extern const struct fi_ops_ep rwk_fi_no_ep_ops;

/** Not of an endpoint that is not enabled yet (disabled.h). */
extern const struct fi_ops_msg rwk_fi_absent_msg_ops;
extern const struct fi_ops_tagged rwk_fi_absent_tagged_ops;

/** Access to a peer's memory: -FI_EOPNOTSUPP, as of an endpoint without the capability. */
extern const struct fi_ops_rma rwk_fi_no_rma_ops;
extern const struct fi_ops_atomic rwk_fi_no_atomic_ops;

#endif

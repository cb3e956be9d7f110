/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives that an endpoint cannot carry out as it is: each answers -FI_EOPBADSTATE. All of them, of one that
 * is not enabled yet; fi_enable puts the real tables in their place, so that those need not look. Sends, of a shared
 * receive context; receives, of an endpoint that has such a context in place of receives of its own.
 */
#ifndef RWK_FI_DISABLED_H
#define RWK_FI_DISABLED_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

extern const struct fi_ops_msg rwk_fi_no_msg_ops;
extern const struct fi_ops_tagged rwk_fi_no_tagged_ops;

ssize_t rwk_fi_cannot_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, void *context);
ssize_t rwk_fi_cannot_recvv(
	struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr, void *context);
ssize_t rwk_fi_cannot_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t rwk_fi_cannot_send(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, void *context);
ssize_t rwk_fi_cannot_sendv(
	struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr, void *context);
ssize_t rwk_fi_cannot_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t rwk_fi_cannot_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr);
ssize_t rwk_fi_cannot_senddata(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest_addr, void *context);
ssize_t rwk_fi_cannot_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr);
ssize_t rwk_fi_cannot_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t tag,
	uint64_t ignore, void *context);
ssize_t rwk_fi_cannot_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr,
	uint64_t tag, uint64_t ignore, void *context);
ssize_t rwk_fi_cannot_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
ssize_t rwk_fi_cannot_tsend(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t tag, void *context);
ssize_t rwk_fi_cannot_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr,
	uint64_t tag, void *context);
ssize_t rwk_fi_cannot_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
ssize_t rwk_fi_cannot_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag);
ssize_t rwk_fi_cannot_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	fi_addr_t dest_addr, uint64_t tag, void *context);
ssize_t rwk_fi_cannot_tinjectdata(
	struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr, uint64_t tag);

#endif

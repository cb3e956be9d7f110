/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/disabled.h"

#include "bindings/libfabric/provider.h"

ssize_t rwk_fi_cannot_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)src_addr, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_recvv(
	struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)src_addr, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_send(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)dest_addr, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_sendv(
	struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)dest_addr, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	(void)ep, (void)buf, (void)len, (void)dest_addr;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_senddata(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)data, (void)dest_addr, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr)
{
	(void)ep, (void)buf, (void)len, (void)data, (void)dest_addr;
	return -FI_EOPBADSTATE;
}

const struct fi_ops_msg rwk_fi_no_msg_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = rwk_fi_cannot_recv,
	.recvv = rwk_fi_cannot_recvv,
	.recvmsg = rwk_fi_cannot_recvmsg,
	.send = rwk_fi_cannot_send,
	.sendv = rwk_fi_cannot_sendv,
	.sendmsg = rwk_fi_cannot_sendmsg,
	.inject = rwk_fi_cannot_inject,
	.senddata = rwk_fi_cannot_senddata,
	.injectdata = rwk_fi_cannot_injectdata,
};

ssize_t rwk_fi_cannot_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t tag,
	uint64_t ignore, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)src_addr, (void)tag, (void)ignore, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr,
	uint64_t tag, uint64_t ignore, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)src_addr, (void)tag, (void)ignore, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_tsend(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)dest_addr, (void)tag, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr,
	uint64_t tag, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)dest_addr, (void)tag, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag)
{
	(void)ep, (void)buf, (void)len, (void)dest_addr, (void)tag;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	fi_addr_t dest_addr, uint64_t tag, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)data, (void)dest_addr, (void)tag, (void)context;
	return -FI_EOPBADSTATE;
}

ssize_t rwk_fi_cannot_tinjectdata(
	struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr, uint64_t tag)
{
	(void)ep, (void)buf, (void)len, (void)data, (void)dest_addr, (void)tag;
	return -FI_EOPBADSTATE;
}

const struct fi_ops_tagged rwk_fi_no_tagged_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_tagged, injectdata),
	.recv = rwk_fi_cannot_trecv,
	.recvv = rwk_fi_cannot_trecvv,
	.recvmsg = rwk_fi_cannot_trecvmsg,
	.send = rwk_fi_cannot_tsend,
	.sendv = rwk_fi_cannot_tsendv,
	.sendmsg = rwk_fi_cannot_tsendmsg,
	.inject = rwk_fi_cannot_tinject,
	.senddata = rwk_fi_cannot_tsenddata,
	.injectdata = rwk_fi_cannot_tinjectdata,
};

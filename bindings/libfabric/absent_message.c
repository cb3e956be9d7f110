/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives that an object never has, enabled or not: tagged ones of connected endpoints and datagrams, all of
 * an imported receive context. They answer -FI_ENOSYS.
 */
#include "bindings/libfabric/absent_calls.h"

#include "bindings/libfabric/provider.h"

static ssize_t no_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)src_addr, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_recvv(
	struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)src_addr, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_ENOSYS;
}

static ssize_t no_send(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)dest_addr, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_sendv(
	struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)dest_addr, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_ENOSYS;
}

static ssize_t no_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	(void)ep, (void)buf, (void)len, (void)dest_addr;
	return -FI_ENOSYS;
}

static ssize_t no_senddata(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)data, (void)dest_addr, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr)
{
	(void)ep, (void)buf, (void)len, (void)data, (void)dest_addr;
	return -FI_ENOSYS;
}

const struct fi_ops_msg rwk_fi_absent_msg_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = no_recv,
	.recvv = no_recvv,
	.recvmsg = no_recvmsg,
	.send = no_send,
	.sendv = no_sendv,
	.sendmsg = no_sendmsg,
	.inject = no_inject,
	.senddata = no_senddata,
	.injectdata = no_injectdata,
};

static ssize_t no_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t tag,
	uint64_t ignore, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)src_addr, (void)tag, (void)ignore, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr,
	uint64_t tag, uint64_t ignore, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)src_addr, (void)tag, (void)ignore, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_ENOSYS;
}

static ssize_t no_tsend(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)dest_addr, (void)tag, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr,
	uint64_t tag, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)dest_addr, (void)tag, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_ENOSYS;
}

static ssize_t no_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag)
{
	(void)ep, (void)buf, (void)len, (void)dest_addr, (void)tag;
	return -FI_ENOSYS;
}

static ssize_t no_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	fi_addr_t dest_addr, uint64_t tag, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)data, (void)dest_addr, (void)tag, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_tinjectdata(
	struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr, uint64_t tag)
{
	(void)ep, (void)buf, (void)len, (void)data, (void)dest_addr, (void)tag;
	return -FI_ENOSYS;
}

const struct fi_ops_tagged rwk_fi_absent_tagged_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_tagged, injectdata),
	.recv = no_trecv,
	.recvv = no_trecvv,
	.recvmsg = no_trecvmsg,
	.send = no_tsend,
	.sendv = no_tsendv,
	.sendmsg = no_tsendmsg,
	.inject = no_tinject,
	.senddata = no_tsenddata,
	.injectdata = no_tinjectdata,
};

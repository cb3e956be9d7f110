/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives of an endpoint that is not enabled yet: each answers -FI_EOPBADSTATE. fi_enable puts the real
 * tables in their place, so that those need not look.
 */
#include "bindings/libfabric/ep.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

static ssize_t plain_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)src_addr, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t plain_recvv(
	struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)src_addr, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t plain_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPBADSTATE;
}

static ssize_t plain_send(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)dest_addr, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t plain_sendv(
	struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)dest_addr, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t plain_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPBADSTATE;
}

static ssize_t plain_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	(void)ep, (void)buf, (void)len, (void)dest_addr;
	return -FI_EOPBADSTATE;
}

static ssize_t plain_senddata(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest_addr, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)data, (void)dest_addr, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t plain_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr)
{
	(void)ep, (void)buf, (void)len, (void)data, (void)dest_addr;
	return -FI_EOPBADSTATE;
}

const struct fi_ops_msg rwk_fi_no_msg_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = plain_recv,
	.recvv = plain_recvv,
	.recvmsg = plain_recvmsg,
	.send = plain_send,
	.sendv = plain_sendv,
	.sendmsg = plain_sendmsg,
	.inject = plain_inject,
	.senddata = plain_senddata,
	.injectdata = plain_injectdata,
};

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t tag,
	uint64_t ignore, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)src_addr, (void)tag, (void)ignore, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr,
	uint64_t tag, uint64_t ignore, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)src_addr, (void)tag, (void)ignore, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPBADSTATE;
}

static ssize_t tagged_send(
	struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)dest_addr, (void)tag, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr,
	uint64_t tag, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)dest_addr, (void)tag, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPBADSTATE;
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag)
{
	(void)ep, (void)buf, (void)len, (void)dest_addr, (void)tag;
	return -FI_EOPBADSTATE;
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	fi_addr_t dest_addr, uint64_t tag, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)data, (void)dest_addr, (void)tag, (void)context;
	return -FI_EOPBADSTATE;
}

static ssize_t tagged_injectdata(
	struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr, uint64_t tag)
{
	(void)ep, (void)buf, (void)len, (void)data, (void)dest_addr, (void)tag;
	return -FI_EOPBADSTATE;
}

const struct fi_ops_tagged rwk_fi_no_tagged_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_tagged, injectdata),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages by an alias: the endpoint's calls that take flags, with the alias's own where there are none. */
#include "bindings/libfabric/alias.h"

static ssize_t alias_recvv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	const struct fi_msg msg = {.msg_iov = iov, .desc = desc, .iov_count = count, .addr = from, .context = context};

	return fi_recvmsg(a->ep, &msg, a->op_flags[RWK_FI_RX]);
}

static ssize_t alias_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	const struct iovec iov = {buf, len};

	return alias_recvv(fid, &iov, &desc, 1, from, context);
}

static ssize_t alias_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return fi_recvmsg(rwk_fi_alias_of(fid)->ep, msg, flags);
}

static ssize_t send_with(struct fid_ep *fid, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t data,
	uint64_t flags, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	const struct fi_msg msg = {.msg_iov = iov, .iov_count = count, .addr = to, .context = context, .data = data};

	return fi_sendmsg(a->ep, &msg, a->op_flags[RWK_FI_TX] | flags);
}

static ssize_t alias_sendv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, void *context)
{
	(void)desc;
	return send_with(fid, iov, count, to, 0, 0, context);
}

static ssize_t alias_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return send_with(fid, &iov, 1, to, 0, 0, context);
}

static ssize_t alias_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return fi_sendmsg(rwk_fi_alias_of(fid)->ep, msg, flags);
}

static ssize_t alias_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	return fi_inject(rwk_fi_alias_of(fid)->ep, buf, len, to);
}

static ssize_t alias_senddata(
	struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return send_with(fid, &iov, 1, to, data, FI_REMOTE_CQ_DATA, context);
}

static ssize_t alias_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	return fi_injectdata(rwk_fi_alias_of(fid)->ep, buf, len, data, to);
}

const struct fi_ops_msg rwk_fi_alias_msg_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = alias_recv,
	.recvv = alias_recvv,
	.recvmsg = alias_recvmsg,
	.send = alias_send,
	.sendv = alias_sendv,
	.sendmsg = alias_sendmsg,
	.inject = alias_inject,
	.senddata = alias_senddata,
	.injectdata = alias_injectdata,
};

static ssize_t alias_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	uint64_t tag, uint64_t ignore, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	const struct fi_msg_tagged msg = {.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = from,
		.tag = tag,
		.ignore = ignore,
		.context = context};

	return fi_trecvmsg(a->ep, &msg, a->op_flags[RWK_FI_RX] & ~(uint64_t)FI_MULTI_RECV);
}

static ssize_t alias_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag,
	uint64_t ignore, void *context)
{
	const struct iovec iov = {buf, len};

	return alias_trecvv(fid, &iov, &desc, 1, from, tag, ignore, context);
}

static ssize_t alias_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return fi_trecvmsg(rwk_fi_alias_of(fid)->ep, msg, flags);
}

static ssize_t tsend_with(struct fid_ep *fid, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag,
	uint64_t data, uint64_t flags, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	const struct fi_msg_tagged msg = {
		.msg_iov = iov, .iov_count = count, .addr = to, .tag = tag, .context = context, .data = data};

	return fi_tsendmsg(a->ep, &msg, a->op_flags[RWK_FI_TX] | flags);
}

static ssize_t alias_tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	uint64_t tag, void *context)
{
	(void)desc;
	return tsend_with(fid, iov, count, to, tag, 0, 0, context);
}

static ssize_t alias_tsend(
	struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return tsend_with(fid, &iov, 1, to, tag, 0, 0, context);
}

static ssize_t alias_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return fi_tsendmsg(rwk_fi_alias_of(fid)->ep, msg, flags);
}

static ssize_t alias_tinject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	return fi_tinject(rwk_fi_alias_of(fid)->ep, buf, len, to, tag);
}

static ssize_t alias_tsenddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
	uint64_t tag, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return tsend_with(fid, &iov, 1, to, tag, data, FI_REMOTE_CQ_DATA, context);
}

static ssize_t alias_tinjectdata(
	struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag)
{
	return fi_tinjectdata(rwk_fi_alias_of(fid)->ep, buf, len, data, to, tag);
}

const struct fi_ops_tagged rwk_fi_alias_tagged_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_tagged, injectdata),
	.recv = alias_trecv,
	.recvv = alias_trecvv,
	.recvmsg = alias_trecvmsg,
	.send = alias_tsend,
	.sendv = alias_tsendv,
	.sendmsg = alias_tsendmsg,
	.inject = alias_tinject,
	.senddata = alias_tsenddata,
	.injectdata = alias_tinjectdata,
};

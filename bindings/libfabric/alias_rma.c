/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes by an alias, as its messages. */
#include "bindings/libfabric/alias.h"

#include "base/iov.h"

static ssize_t alias_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	uint64_t addr, uint64_t key, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	const struct fi_rma_iov rma = {.addr = addr, .len = rwk_iov_length(iov, count), .key = key};
	const struct fi_msg_rma msg = {.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = from,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = context};

	return fi_readmsg(a->ep, &msg, a->op_flags[RWK_FI_TX] & ~(uint64_t)FI_INJECT);
}

static ssize_t alias_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t addr,
	uint64_t key, void *context)
{
	const struct iovec iov = {buf, len};

	return alias_readv(fid, &iov, &desc, 1, from, addr, key, context);
}

static ssize_t alias_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return fi_readmsg(rwk_fi_alias_of(fid)->ep, msg, flags);
}

static ssize_t write_with(struct fid_ep *fid, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t addr,
	uint64_t key, uint64_t data, uint64_t flags, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	const struct fi_rma_iov rma = {.addr = addr, .len = rwk_iov_length(iov, count), .key = key};
	const struct fi_msg_rma msg = {.msg_iov = iov,
		.iov_count = count,
		.addr = to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = context,
		.data = data};

	return fi_writemsg(a->ep, &msg, a->op_flags[RWK_FI_TX] | flags);
}

static ssize_t alias_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	return write_with(fid, iov, count, to, addr, key, 0, 0, context);
}

static ssize_t alias_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr,
	uint64_t key, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return write_with(fid, &iov, 1, to, addr, key, 0, 0, context);
}

static ssize_t alias_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return fi_writemsg(rwk_fi_alias_of(fid)->ep, msg, flags);
}

static ssize_t alias_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t addr, uint64_t key)
{
	return fi_inject_write(rwk_fi_alias_of(fid)->ep, buf, len, to, addr, key);
}

static ssize_t alias_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
	uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return write_with(fid, &iov, 1, to, addr, key, data, FI_REMOTE_CQ_DATA, context);
}

static ssize_t alias_injectdata(
	struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t addr, uint64_t key)
{
	return fi_inject_writedata(rwk_fi_alias_of(fid)->ep, buf, len, data, to, addr, key);
}

const struct fi_ops_rma rwk_fi_alias_rma_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_rma, injectdata),
	.read = alias_read,
	.readv = alias_readv,
	.readmsg = alias_readmsg,
	.write = alias_write,
	.writev = alias_writev,
	.writemsg = alias_writemsg,
	.inject = alias_inject,
	.writedata = alias_writedata,
	.injectdata = alias_injectdata,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to a peer's memory: datagram endpoints have none, and answer -FI_EOPNOTSUPP. */
#include "bindings/libfabric/absent_calls.h"

#include "bindings/libfabric/provider.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t addr,
	uint64_t key, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)src_addr, (void)addr, (void)key, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr,
	uint64_t addr, uint64_t key, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)src_addr, (void)addr, (void)key, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPNOTSUPP;
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t addr,
	uint64_t key, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)dest_addr, (void)addr, (void)key, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr,
	uint64_t addr, uint64_t key, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)dest_addr, (void)addr, (void)key, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPNOTSUPP;
}

static ssize_t rma_inject(
	struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	(void)ep, (void)buf, (void)len, (void)dest_addr, (void)addr, (void)key;
	return -FI_EOPNOTSUPP;
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	(void)ep, (void)buf, (void)len, (void)desc, (void)data, (void)dest_addr, (void)addr, (void)key, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t rma_injectdata(
	struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	(void)ep, (void)buf, (void)len, (void)data, (void)dest_addr, (void)addr, (void)key;
	return -FI_EOPNOTSUPP;
}

const struct fi_ops_rma rwk_fi_no_rma_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_rma, injectdata),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};

static ssize_t atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest_addr,
	uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)dest_addr, (void)addr, (void)key, (void)datatype, (void)op,
		(void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
	fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)dest_addr, (void)addr, (void)key, (void)datatype, (void)op,
		(void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	(void)ep, (void)msg, (void)flags;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr, uint64_t addr,
	uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	(void)ep, (void)buf, (void)count, (void)dest_addr, (void)addr, (void)key, (void)datatype, (void)op;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
	void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result, (void)result_desc, (void)dest_addr, (void)addr,
		(void)key, (void)datatype, (void)op, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
	struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest_addr, uint64_t addr,
	uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)resultv, (void)result_desc, (void)result_count,
		(void)dest_addr, (void)addr, (void)key, (void)datatype, (void)op, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
	void **result_desc, size_t result_count, uint64_t flags)
{
	(void)ep, (void)msg, (void)resultv, (void)result_desc, (void)result_count, (void)flags;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
	void *compare_desc, void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
	enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)compare, (void)compare_desc, (void)result,
		(void)result_desc, (void)dest_addr, (void)addr, (void)key, (void)datatype, (void)op, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
	const struct fi_ioc *comparev, void **compare_desc, size_t compare_count, struct fi_ioc *resultv,
	void **result_desc, size_t result_count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
	enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void)ep, (void)iov, (void)desc, (void)count, (void)comparev, (void)compare_desc, (void)compare_count,
		(void)resultv, (void)result_desc, (void)result_count, (void)dest_addr, (void)addr, (void)key,
		(void)datatype, (void)op, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
	void **compare_desc, size_t compare_count, struct fi_ioc *resultv, void **result_desc, size_t result_count,
	uint64_t flags)
{
	(void)ep, (void)msg, (void)comparev, (void)compare_desc, (void)compare_count, (void)resultv, (void)result_desc,
		(void)result_count, (void)flags;
	return -FI_EOPNOTSUPP;
}

static int atomic_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void)ep, (void)datatype, (void)op, (void)count;
	return -FI_EOPNOTSUPP;
}

static int atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void)ep, (void)datatype, (void)op, (void)count;
	return -FI_EOPNOTSUPP;
}

static int atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void)ep, (void)datatype, (void)op, (void)count;
	return -FI_EOPNOTSUPP;
}

const struct fi_ops_atomic rwk_fi_no_atomic_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_atomic, compwritevalid),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};

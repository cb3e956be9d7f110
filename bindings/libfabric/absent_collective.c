/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives: not claimed by fi_getinfo, and answered with -FI_EOPNOTSUPP by whoever calls them all the same. */
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/provider.h"

#include <rdma/fi_collective.h>

static ssize_t collective_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
{
	(void)ep, (void)coll_addr, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t coll_addr,
	fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc;
	(void)coll_addr, (void)root_addr, (void)datatype, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result;
	(void)result_desc, (void)coll_addr, (void)datatype, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result;
	(void)result_desc, (void)coll_addr, (void)datatype, (void)op, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_allgather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result;
	(void)result_desc, (void)coll_addr, (void)datatype, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result;
	(void)result_desc, (void)coll_addr, (void)datatype, (void)op, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op,
	uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result, (void)result_desc;
	(void)coll_addr, (void)root_addr, (void)datatype, (void)op, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
	void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result;
	(void)result_desc, (void)coll_addr, (void)root_addr, (void)datatype, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
	void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result;
	(void)result_desc, (void)coll_addr, (void)root_addr, (void)datatype, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_msg(struct fid_ep *ep, const struct fi_msg_collective *msg, struct fi_ioc *resultv,
	void **result_desc, size_t result_count, uint64_t flags)
{
	(void)ep, (void)msg, (void)resultv, (void)result_desc, (void)result_count, (void)flags;
	return -FI_EOPNOTSUPP;
}

static ssize_t collective_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags, void *context)
{
	(void)ep, (void)coll_addr, (void)flags, (void)context;
	return -FI_EOPNOTSUPP;
}

const struct fi_ops_collective rwk_fi_no_collective_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_collective, barrier2),
	.barrier = collective_barrier,
	.broadcast = collective_broadcast,
	.alltoall = collective_alltoall,
	.allreduce = collective_allreduce,
	.allgather = collective_allgather,
	.reduce_scatter = collective_reduce_scatter,
	.reduce = collective_reduce,
	.scatter = collective_scatter,
	.gather = collective_gather,
	.msg = collective_msg,
	.barrier2 = collective_barrier2,
};

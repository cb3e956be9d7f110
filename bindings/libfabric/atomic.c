/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_atomic, fi_fetch_atomic, fi_compare_atomic and their kin, and what they can do. */
#include "bindings/libfabric/rma.h"

#include "base/log.h"
#include "bindings/libfabric/msg_domain.h"

#include <rdma/fi_atomic.h>

#define SAME(ours, theirs) ((int)(ours) == (int)(theirs))
_Static_assert(SAME(RWK_INT8, FI_INT8) && SAME(RWK_UINT8, FI_UINT8) && SAME(RWK_INT16, FI_INT16) &&
		       SAME(RWK_UINT16, FI_UINT16) && SAME(RWK_INT32, FI_INT32) && SAME(RWK_UINT32, FI_UINT32) &&
		       SAME(RWK_INT64, FI_INT64) && SAME(RWK_UINT64, FI_UINT64) && SAME(RWK_FLOAT, FI_FLOAT) &&
		       SAME(RWK_DOUBLE, FI_DOUBLE) && SAME(RWK_FLOAT_COMPLEX, FI_FLOAT_COMPLEX) &&
		       SAME(RWK_DOUBLE_COMPLEX, FI_DOUBLE_COMPLEX) && SAME(RWK_LONG_DOUBLE, FI_LONG_DOUBLE) &&
		       SAME(RWK_LONG_DOUBLE_COMPLEX, FI_LONG_DOUBLE_COMPLEX) && SAME(RWK_INT128, FI_INT128) &&
		       SAME(RWK_UINT128, FI_UINT128),
	"types need no translation");
_Static_assert(SAME(RWK_MIN, FI_MIN) && SAME(RWK_MAX, FI_MAX) && SAME(RWK_SUM, FI_SUM) && SAME(RWK_PROD, FI_PROD) &&
		       SAME(RWK_LOR, FI_LOR) && SAME(RWK_LAND, FI_LAND) && SAME(RWK_BOR, FI_BOR) &&
		       SAME(RWK_BAND, FI_BAND) && SAME(RWK_LXOR, FI_LXOR) && SAME(RWK_BXOR, FI_BXOR) &&
		       SAME(RWK_ATOMIC_READ, FI_ATOMIC_READ) && SAME(RWK_ATOMIC_WRITE, FI_ATOMIC_WRITE) &&
		       SAME(RWK_CSWAP, FI_CSWAP) && SAME(RWK_CSWAP_NE, FI_CSWAP_NE) &&
		       SAME(RWK_CSWAP_LE, FI_CSWAP_LE) && SAME(RWK_CSWAP_LT, FI_CSWAP_LT) &&
		       SAME(RWK_CSWAP_GE, FI_CSWAP_GE) && SAME(RWK_CSWAP_GT, FI_CSWAP_GT) &&
		       SAME(RWK_MSWAP, FI_MSWAP) && SAME(RWK_ATOMIC_OPS, FI_ATOMIC_OP_LAST),
	"operations need no translation");

/* The three families of calls, and what each needs of an endpoint. */
enum family { BASE, FETCH, COMPARE };

static const uint64_t needs[] = {
	[BASE] = FI_ATOMIC | FI_WRITE,
	[FETCH] = FI_ATOMIC | FI_READ,
	[COMPARE] = FI_ATOMIC | FI_READ,
};

/* Does the family have that operation for that type? */
static bool is_there(enum family family, enum fi_datatype type, enum fi_op op)
{
	if (!rwk_atomic_valid((unsigned)op, (unsigned)type))
		return false;
	if (rwk_atomic_compares((enum rwk_atomic_op)op))
		return family == COMPARE;
	return family == FETCH || (family == BASE && op != FI_ATOMIC_READ);
}

static int valid(enum family family, enum fi_datatype type, enum fi_op op, size_t *count)
{
	if (!is_there(family, type, op))
		return -FI_EOPNOTSUPP;
	*count = RWK_ATOMIC_BYTES / rwk_atomic_size((enum rwk_atomic_type)type);
	return 0;
}

/* An array in pieces of elements, as pieces of bytes. */
struct array {
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	size_t count;
};

/* As count > RWK_ATOMIC_BYTES / element, which takes a division. */
static inline bool too_many(size_t count, size_t element)
{
	return count > RWK_ATOMIC_BYTES || count * element > RWK_ATOMIC_BYTES;
}

/* 0; -FI_EINVAL: too many pieces; -FI_EMSGSIZE: too many elements. */
static int to_bytes(struct array *to, const struct fi_ioc *from, size_t count, size_t element)
{
	if (count > RWK_ENGINE_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (too_many(from[i].count, element))
			return -FI_EMSGSIZE;
		to->iov[i] = (struct iovec){from[i].addr, from[i].count * element};
	}
	to->count = count;
	return 0;
}

/* The same for the peer's memory. */
static int to_ranges(struct rwk_remote *to, const struct fi_rma_ioc *from, size_t count, size_t element)
{
	if (count > RWK_ENGINE_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (too_many(from[i].count, element))
			return -FI_EMSGSIZE;
		to[i] = (struct rwk_remote){from[i].addr, from[i].count * element, from[i].key};
	}
	return 0;
}

static ssize_t start(struct rwk_engine *e, const struct rwk_rma_args *a)
{
	return rwk_engine_atomic(e, rwk_container_of(a, const struct rwk_atomic_args, rma));
}

/* What all calls come to. Compare and result: as the family has them, else 0 pieces. */
static ssize_t any(struct rwk_fi_ep *ep, enum family family, const struct fi_msg_atomic *msg,
	const struct fi_msg_compare *compare, const struct fi_msg_fetch *result, uint32_t flags)
{
	struct array operands, comparands, results;
	struct rwk_remote remote[RWK_ENGINE_IOV_MAX];
	bool reads = msg->op == FI_ATOMIC_READ; /* whose operands may not be there */
	struct rwk_atomic_args a = {
		.rma = {.remote = remote, .remote_count = msg->rma_iov_count, .flags = flags, .context = msg->context},
		.op = (enum rwk_atomic_op)msg->op,
		.type = (enum rwk_atomic_type)msg->datatype,
	};
	size_t element;
	int err;

	if (!is_there(family, msg->datatype, msg->op))
		return -FI_EOPNOTSUPP;
	element = rwk_atomic_size(a.type);
	err = to_bytes(&operands, msg->msg_iov, reads ? 0 : msg->iov_count, element);
	if (!err)
		err = to_bytes(&comparands, compare->msg_iov, compare->iov_count, element);
	if (!err)
		err = to_bytes(&results, result->msg_iov, result->iov_count, element);
	if (!err)
		err = to_ranges(remote, msg->rma_iov, msg->rma_iov_count, element);
	if (err)
		return err;
	a.rma.iov = reads ? NULL : operands.iov;
	a.rma.iov_count = operands.count;
	a.compare = comparands.iov;
	a.compare_count = comparands.count;
	a.result = family == BASE ? NULL : results.iov;
	a.result_count = results.count;
	return rwk_fi_rma_start(ep, needs[family], msg->addr, &a.rma, start);
}

static const struct fi_msg_compare no_compare;
static const struct fi_msg_fetch no_result;

ssize_t rwk_fi_atomic_message(struct rwk_fi_ep *ep, const struct fi_msg_atomic *msg,
	const struct fi_msg_compare *compare, const struct fi_msg_fetch *result, uint32_t flags)
{
	enum family family = compare ? COMPARE : result ? FETCH : BASE;

	return any(ep, family, msg, compare ? compare : &no_compare, result ? result : &no_result, flags);
}

static size_t elements(const struct fi_ioc *iov, size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += iov[i].count;
	return sum;
}

/* The arguments of a call with one range of the peer's memory, as those of one with several. */
static struct fi_msg_atomic one_range(const struct fi_ioc *iov, size_t count, fi_addr_t to,
	const struct fi_rma_ioc *range, enum fi_datatype type, enum fi_op op, void *context)
{
	return (struct fi_msg_atomic){
		.msg_iov = iov,
		.iov_count = count,
		.addr = to,
		.rma_iov = range,
		.rma_iov_count = 1,
		.datatype = type,
		.op = op,
		.context = context,
	};
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
	uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	const struct fi_rma_ioc range = {address, elements(iov, count), key};
	const struct fi_msg_atomic msg = one_range(iov, count, to, &range, type, op, context);

	(void)desc;
	return any(ep, BASE, &msg, &no_compare, &no_result, ep->write_flags);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc, fi_addr_t to,
	uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};

	return atomic_writev(fid, &iov, &desc, 1, to, address, key, type, op, context);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t to, uint64_t address,
	uint64_t key, enum fi_datatype type, enum fi_op op)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	const struct fi_rma_ioc range = {address, count, key};
	const struct fi_msg_atomic msg = one_range(&iov, 1, to, &range, type, op, NULL);

	return any(rwk_fi_ep_of(fid), BASE, &msg, &no_compare, &no_result,
		rwk_fi_rma_inject(rwk_fi_ep_of(fid)));
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	uint32_t f;
	int err = rwk_fi_rma_flags(ep, "fi_atomicmsg", flags, RWK_FI_RMA_FLAGS | FI_INJECT, &f);

	return err ? err : any(ep, BASE, msg, &no_compare, &no_result, f);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
	struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t to, uint64_t address, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	const struct fi_rma_ioc range = {address, elements(resultv, result_count), key};
	const struct fi_msg_atomic msg = one_range(iov, count, to, &range, type, op, context);
	const struct fi_msg_fetch result = {resultv, result_desc, result_count};

	(void)desc;
	return any(ep, FETCH, &msg, &no_compare, &result, ep->read_flags);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t to, uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op op,
	void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	struct fi_ioc resultv = {result, count};

	return atomic_readwritev(fid, &iov, &desc, 1, &resultv, &result_desc, 1, to, address, key, type, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
	void **result_desc, size_t result_count, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	const struct fi_msg_fetch result = {resultv, result_desc, result_count};
	uint32_t f;
	int err = rwk_fi_rma_flags(ep, "fi_fetch_atomicmsg", flags, RWK_FI_RMA_FLAGS | FI_INJECT, &f);

	return err ? err : any(ep, FETCH, msg, &no_compare, &result, f);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
	const struct fi_ioc *comparev, void **compare_desc, size_t compare_count, struct fi_ioc *resultv,
	void **result_desc, size_t result_count, fi_addr_t to, uint64_t address, uint64_t key, enum fi_datatype type,
	enum fi_op op, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	const struct fi_rma_ioc range = {address, elements(iov, count), key};
	const struct fi_msg_atomic msg = one_range(iov, count, to, &range, type, op, context);
	const struct fi_msg_compare compare = {comparev, compare_desc, compare_count};
	const struct fi_msg_fetch result = {resultv, result_desc, result_count};

	(void)desc;
	return any(ep, COMPARE, &msg, &compare, &result, ep->read_flags);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, const void *compare,
	void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t address, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count}, comparev = {(void *)(uintptr_t)compare, count};
	struct fi_ioc resultv = {result, count};

	return atomic_compwritev(fid, &iov, &desc, 1, &comparev, &compare_desc, 1, &resultv, &result_desc, 1, to,
		address, key, type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
	void **compare_desc, size_t compare_count, struct fi_ioc *resultv, void **result_desc, size_t result_count,
	uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	const struct fi_msg_compare compare = {comparev, compare_desc, compare_count};
	const struct fi_msg_fetch result = {resultv, result_desc, result_count};
	uint32_t f;
	int err = rwk_fi_rma_flags(ep, "fi_compare_atomicmsg", flags, RWK_FI_RMA_FLAGS | FI_INJECT, &f);

	return err ? err : any(ep, COMPARE, msg, &compare, &result, f);
}

static int ep_valid(struct fid_ep *fid, enum family family, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return needs[family] & ~rwk_fi_ep_of(fid)->caps ? -FI_EOPNOTSUPP : valid(family, type, op, count);
}

static int atomic_writevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return ep_valid(fid, BASE, type, op, count);
}

static int atomic_readwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return ep_valid(fid, FETCH, type, op, count);
}

static int atomic_compwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return ep_valid(fid, COMPARE, type, op, count);
}

int rwk_fi_query_atomic(
	struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	enum family family = flags & FI_COMPARE_ATOMIC ? COMPARE : flags & FI_FETCH_ATOMIC ? FETCH : BASE;
	int err;

	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP; /* on the buffers of tagged receives */
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	if (flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EINVAL;
	if (rwk_fi_domain_of(domain)->type == FI_EP_DGRAM)
		return -FI_EOPNOTSUPP;
	if (rwk_fi_domain_of(domain)->device)
		return rwk_fi_msg_query_atomic(type, op, attr, flags);
	err = valid(family, type, op, &attr->count);
	if (!err)
		attr->size = rwk_atomic_size((enum rwk_atomic_type)type);
	return err;
}

const struct fi_ops_atomic rwk_fi_atomic_ops = {
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

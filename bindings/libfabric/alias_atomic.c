/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics by an alias, as its messages. What fetches has nothing to inject. */
#include "bindings/libfabric/alias.h"

static size_t elements(const struct fi_ioc *ioc, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += ioc[i].count;
	return n;
}

static uint64_t fetching(const struct rwk_fi_alias *a)
{
	return a->op_flags[RWK_FI_TX] & ~(uint64_t)FI_INJECT;
}

static ssize_t alias_writev(struct fid_ep *fid, const struct fi_ioc *ioc, void **desc, size_t count, fi_addr_t to,
	uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	const struct fi_rma_ioc rma = {addr, elements(ioc, count), key};
	const struct fi_msg_atomic msg = {ioc, desc, count, to, &rma, 1, type, op, context, 0};

	return fi_atomicmsg(a->ep, &msg, a->op_flags[RWK_FI_TX]);
}

static ssize_t alias_write(struct fid_ep *fid, const void *buf, size_t count, void *desc, fi_addr_t to, uint64_t addr,
	uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};

	return alias_writev(fid, &ioc, &desc, 1, to, addr, key, type, op, context);
}

static ssize_t alias_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return fi_atomicmsg(rwk_fi_alias_of(fid)->ep, msg, flags);
}

static ssize_t alias_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t to, uint64_t addr,
	uint64_t key, enum fi_datatype type, enum fi_op op)
{
	return fi_inject_atomic(rwk_fi_alias_of(fid)->ep, buf, count, to, addr, key, type, op);
}

static ssize_t alias_readwritev(struct fid_ep *fid, const struct fi_ioc *ioc, void **desc, size_t count,
	struct fi_ioc *result, void **result_desc, size_t result_count, fi_addr_t to, uint64_t addr, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	/* FI_ATOMIC_READ brings nothing: what comes back says how much. */
	const struct fi_rma_ioc rma = {addr, elements(result, result_count), key};
	const struct fi_msg_atomic msg = {ioc, desc, count, to, &rma, 1, type, op, context, 0};

	return fi_fetch_atomicmsg(a->ep, &msg, result, result_desc, result_count, fetching(a));
}

static ssize_t alias_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result,
	void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op,
	void *context)
{
	const struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
	struct fi_ioc to_here = {result, count};

	return alias_readwritev(fid, &ioc, &desc, 1, &to_here, &result_desc, 1, to, addr, key, type, op, context);
}

static ssize_t alias_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct fi_ioc *result,
	void **result_desc, size_t result_count, uint64_t flags)
{
	return fi_fetch_atomicmsg(rwk_fi_alias_of(fid)->ep, msg, result, result_desc, result_count, flags);
}

static ssize_t alias_compwritev(struct fid_ep *fid, const struct fi_ioc *ioc, void **desc, size_t count,
	const struct fi_ioc *compare, void **compare_desc, size_t compare_count, struct fi_ioc *result,
	void **result_desc, size_t result_count, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type,
	enum fi_op op, void *context)
{
	const struct rwk_fi_alias *a = rwk_fi_alias_of(fid);
	const struct fi_rma_ioc rma = {addr, elements(ioc, count), key};
	const struct fi_msg_atomic msg = {ioc, desc, count, to, &rma, 1, type, op, context, 0};

	return fi_compare_atomicmsg(
		a->ep, &msg, compare, compare_desc, compare_count, result, result_desc, result_count, fetching(a));
}

static ssize_t alias_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, const void *compare,
	void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = {(void *)(uintptr_t)buf, count}, with = {(void *)(uintptr_t)compare, count};
	struct fi_ioc to_here = {result, count};

	return alias_compwritev(fid, &ioc, &desc, 1, &with, &compare_desc, 1, &to_here, &result_desc, 1, to, addr, key,
		type, op, context);
}

static ssize_t alias_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, const struct fi_ioc *compare,
	void **compare_desc, size_t compare_count, struct fi_ioc *result, void **result_desc, size_t result_count,
	uint64_t flags)
{
	return fi_compare_atomicmsg(rwk_fi_alias_of(fid)->ep, msg, compare, compare_desc, compare_count, result,
		result_desc, result_count, flags);
}

static int alias_writevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return fi_atomicvalid(rwk_fi_alias_of(fid)->ep, type, op, count);
}

static int alias_readwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return fi_fetch_atomicvalid(rwk_fi_alias_of(fid)->ep, type, op, count);
}

static int alias_compwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return fi_compare_atomicvalid(rwk_fi_alias_of(fid)->ep, type, op, count);
}

const struct fi_ops_atomic rwk_fi_alias_atomic_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_atomic, compwritevalid),
	.write = alias_write,
	.writev = alias_writev,
	.writemsg = alias_writemsg,
	.inject = alias_inject,
	.readwrite = alias_readwrite,
	.readwritev = alias_readwritev,
	.readwritemsg = alias_readwritemsg,
	.compwrite = alias_compwrite,
	.compwritev = alias_compwritev,
	.compwritemsg = alias_compwritemsg,
	.writevalid = alias_writevalid,
	.readwritevalid = alias_readwritevalid,
	.compwritevalid = alias_compwritevalid,
};

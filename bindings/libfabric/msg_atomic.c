/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_atomic, fi_fetch_atomic, fi_compare_atomic and their kin, of connected endpoints: what the wire has, and no more.
 * On one integer of 64 bits, signed or not: FI_SUM, with or without the value before, and FI_CSWAP.
 */
#include "bindings/libfabric/msg.h"
#include "bindings/libfabric/msg_domain.h"

#include <rdma/fi_atomic.h>
#include <string.h>

/* The three families of calls. All of them are fetches on the wire, to the peer they read and write. */
enum family { BASE, FETCH, COMPARE };

static const uint64_t needs[] = {
	[BASE] = FI_ATOMIC | FI_WRITE,
	[FETCH] = FI_ATOMIC | FI_READ,
	[COMPARE] = FI_ATOMIC | FI_READ,
};

static bool is_there(enum family family, enum fi_datatype type, enum fi_op op)
{
	return (type == FI_INT64 || type == FI_UINT64) && op == (family == COMPARE ? FI_CSWAP : FI_SUM);
}

/* What all calls come to. */
struct operation {
	enum family family;
	enum fi_datatype type;
	enum fi_op op;
	const struct fi_ioc *operand, *comparand, *result; /* NULL: as the family has none */
	bool single;                                       /* each is one piece */
	uint64_t remote, remote_count, key;
	unsigned request;
	uint32_t flags;
	void *context;
};

static uint64_t value(const struct fi_ioc *ioc)
{
	uint64_t v;

	memcpy(&v, ioc->addr, sizeof(v));
	return v;
}

/* One element, in one piece. */
static bool is_one(const struct operation *o)
{
	return o->single && o->remote_count == 1 && o->operand->count == 1 &&
	       (!o->comparand || o->comparand->count == 1) && (!o->result || o->result->count == 1);
}

static ssize_t post(struct rwk_fi_msg_ep *ep, const struct operation *o)
{
	bool swap = o->family == COMPARE;
	struct rwk_request r = {
		.type = swap ? RWK_REQUEST_COMPARE_SWAP : RWK_REQUEST_FETCH_ADD,
		.flags = o->request & ~(unsigned)RWK_REQUEST_INLINE, /* the operands are copied anyway */
		.remote = o->remote,
		.key = (uint32_t)o->key,
	};
	struct rwk_sge sge;

	if (!ep->qp)
		return -FI_EOPBADSTATE;
	if (!is_there(o->family, o->type, o->op))
		return -FI_EOPNOTSUPP;
	if (!is_one(o) || o->key > UINT32_MAX || o->remote % sizeof(uint64_t))
		return -FI_EINVAL;
	r.swap_add = value(o->operand);
	if (swap)
		r.compare = value(o->comparand);
	if (o->result) {
		sge = (struct rwk_sge){o->result->addr, sizeof(uint64_t), ep->key};
		r.sge = &sge;
		r.sge_count = 1;
	}
	return rwk_fi_msg_post(ep, needs[o->family], &r,
		o->flags | RWK_F_ATOMIC | (o->family == BASE ? RWK_F_WRITE : RWK_F_READ), o->context);
}

/* A call without flags of its own has the endpoint's. */
static uint32_t own_flags(const struct rwk_fi_msg_ep *ep)
{
	return rwk_fi_quiet(&ep->side[RWK_FI_TX], ep->op_flags[RWK_FI_TX] & FI_COMPLETION);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
	uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	const struct operation o = {
		BASE, type, op, iov, NULL, NULL, count == 1, address, 1, key, 0, own_flags(ep), context};

	(void)desc, (void)to;
	return post(ep, &o);
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
	const struct operation o = {
		BASE, type, op, &iov, NULL, NULL, true, address, 1, key, 0, RWK_FI_QUIET | RWK_FI_INJECTED, NULL};

	(void)to;
	return post(rwk_fi_msg_ep_of(fid), &o);
}

/* The calls with flags: what the message says of the operation. */
static ssize_t message(
	struct fid_ep *fid, const char *call, const struct fi_msg_atomic *msg, uint64_t flags, struct operation *o)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	int err = rwk_fi_msg_flags(ep, call, flags, FI_INJECT, &o->request, &o->flags);

	if (err)
		return err;
	o->type = msg->datatype;
	o->op = msg->op;
	o->operand = msg->msg_iov;
	o->context = msg->context;
	if (msg->rma_iov_count != 1)
		return -FI_EINVAL;
	o->remote = msg->rma_iov[0].addr;
	o->remote_count = msg->rma_iov[0].count;
	o->key = msg->rma_iov[0].key;
	return post(ep, o);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct operation o = {.family = BASE, .single = msg->iov_count == 1};

	return message(fid, "fi_atomicmsg", msg, flags, &o);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
	struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t to, uint64_t address, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	const struct operation o = {FETCH, type, op, iov, NULL, resultv, count == 1 && result_count == 1, address, 1,
		key, 0, own_flags(ep), context};

	(void)desc, (void)result_desc, (void)to;
	return post(ep, &o);
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
	struct operation o = {.family = FETCH, .result = resultv, .single = msg->iov_count == 1 && result_count == 1};

	(void)result_desc;
	return message(fid, "fi_fetch_atomicmsg", msg, flags, &o);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
	const struct fi_ioc *comparev, void **compare_desc, size_t compare_count, struct fi_ioc *resultv,
	void **result_desc, size_t result_count, fi_addr_t to, uint64_t address, uint64_t key, enum fi_datatype type,
	enum fi_op op, void *context)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	const struct operation o = {COMPARE, type, op, iov, comparev, resultv,
		count == 1 && compare_count == 1 && result_count == 1, address, 1, key, 0, own_flags(ep), context};

	(void)desc, (void)compare_desc, (void)result_desc, (void)to;
	return post(ep, &o);
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
	struct operation o = {.family = COMPARE,
		.comparand = comparev,
		.result = resultv,
		.single = msg->iov_count == 1 && compare_count == 1 && result_count == 1};

	(void)compare_desc, (void)result_desc;
	return message(fid, "fi_compare_atomicmsg", msg, flags, &o);
}

static int valid(enum family family, enum fi_datatype type, enum fi_op op, size_t *count)
{
	if (!is_there(family, type, op))
		return -FI_EOPNOTSUPP;
	*count = 1;
	return 0;
}

static int ep_valid(struct fid_ep *fid, enum family family, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return needs[family] & ~rwk_fi_msg_ep_of(fid)->caps ? -FI_EOPNOTSUPP : valid(family, type, op, count);
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

int rwk_fi_msg_query_atomic(enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	enum family family = flags & FI_COMPARE_ATOMIC ? COMPARE : flags & FI_FETCH_ATOMIC ? FETCH : BASE;
	int err = valid(family, type, op, &attr->count);

	if (!err)
		attr->size = sizeof(uint64_t);
	return err;
}

const struct fi_ops_atomic rwk_fi_msg_atomic_ops = {
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

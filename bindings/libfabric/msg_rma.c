/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_read, fi_write and their kin, of connected endpoints. Peers' memory is named by address and a key of 32 bits. A
 * write with data takes a receive at the peer: programs that know that have said so (FI_RX_CQ_DATA).
 */
#include "bindings/libfabric/msg.h"

#include "base/iov.h"
#include "base/log.h"

#include <rdma/fi_rma.h>

#define READS  ((uint64_t)(FI_RMA | FI_READ))
#define WRITES ((uint64_t)(FI_RMA | FI_WRITE))

struct access {
	enum rwk_request_type type;
	uint64_t remote, key;
	uint64_t data;
	unsigned request; /* RWK_REQUEST_* */
	uint32_t flags;
	void *context;
};

static ssize_t post(struct rwk_fi_msg_ep *ep, const struct iovec *iov, size_t count, const struct access *a)
{
	bool read = a->type == RWK_REQUEST_READ;
	struct rwk_sge sge[RWK_FI_MSG_IOV];
	int n = rwk_fi_msg_pieces(ep->key, iov, count, sge);
	struct rwk_request r = {
		.type = a->type,
		.flags = a->request,
		.sge = sge,
		.sge_count = (uint32_t)n,
		.imm = (uint32_t)a->data,
		.remote = a->remote,
		.key = (uint32_t)a->key,
	};

	if (!ep->qp)
		return -FI_EOPBADSTATE;
	if (n < 0 || a->key > UINT32_MAX)
		return -FI_EINVAL;
	if (a->request & RWK_REQUEST_IMM && !ep->takes_data) {
		rwk_info("fi_writedata takes a receive at the peer; the endpoint was opened without FI_RX_CQ_DATA");
		return -FI_EOPNOTSUPP;
	}
	return rwk_fi_msg_post(
		ep, read ? READS : WRITES, &r, a->flags | RWK_F_RMA | (read ? RWK_F_READ : RWK_F_WRITE), a->context);
}

/* A call without flags of its own has the endpoint's. */
static uint32_t own_flags(const struct rwk_fi_msg_ep *ep)
{
	return rwk_fi_quiet(&ep->side[RWK_FI_TX], ep->op_flags[RWK_FI_TX] & FI_COMPLETION);
}

static unsigned own_inject(const struct rwk_fi_msg_ep *ep)
{
	return ep->op_flags[RWK_FI_TX] & FI_INJECT ? RWK_REQUEST_INLINE : 0;
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	uint64_t address, uint64_t key, void *context)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	const struct access a = {RWK_REQUEST_READ, address, key, 0, 0, own_flags(ep), context};

	(void)desc, (void)from;
	return post(ep, iov, count, &a);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t address,
	uint64_t key, void *context)
{
	const struct iovec iov = {buf, len};

	return rma_readv(fid, &iov, &desc, 1, from, address, key, context);
}

/* One range of the peer's, as long as the local pieces. */
static ssize_t message(struct rwk_fi_msg_ep *ep, const char *call, enum rwk_request_type type,
	const struct fi_msg_rma *msg, uint64_t asked, uint64_t known)
{
	struct access a = {.type = type, .data = msg->data, .context = msg->context};
	int err = rwk_fi_msg_flags(ep, call, asked, known, &a.request, &a.flags);

	if (err)
		return err;
	if (msg->rma_iov_count != 1 || msg->rma_iov[0].len != rwk_iov_length(msg->msg_iov, msg->iov_count))
		return -FI_EINVAL;
	a.remote = msg->rma_iov[0].addr;
	a.key = msg->rma_iov[0].key;
	return post(ep, msg->msg_iov, msg->iov_count, &a);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return message(rwk_fi_msg_ep_of(fid), "fi_readmsg", RWK_REQUEST_READ, msg, flags, 0);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	uint64_t address, uint64_t key, void *context)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	const struct access a = {RWK_REQUEST_WRITE, address, key, 0, own_inject(ep), own_flags(ep), context};

	(void)desc, (void)to;
	return post(ep, iov, count, &a);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t address,
	uint64_t key, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return rma_writev(fid, &iov, &desc, 1, to, address, key, context);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return message(
		rwk_fi_msg_ep_of(fid), "fi_writemsg", RWK_REQUEST_WRITE, msg, flags, FI_INJECT | FI_REMOTE_CQ_DATA);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
	uint64_t address, uint64_t key, void *context)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct access a = {
		RWK_REQUEST_WRITE, address, key, data, own_inject(ep) | RWK_REQUEST_IMM, own_flags(ep), context};

	(void)desc, (void)to;
	return post(ep, &iov, 1, &a);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, uint64_t address, uint64_t key,
	unsigned request)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct access a = {RWK_REQUEST_WRITE, address, key, data, request | RWK_REQUEST_INLINE,
		RWK_FI_QUIET | RWK_FI_INJECTED, NULL};

	return post(rwk_fi_msg_ep_of(fid), &iov, 1, &a);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t address, uint64_t key)
{
	(void)to;
	return inject(fid, buf, len, 0, address, key, 0);
}

static ssize_t rma_injectdata(
	struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t address, uint64_t key)
{
	(void)to;
	return inject(fid, buf, len, data, address, key, RWK_REQUEST_IMM);
}

const struct fi_ops_rma rwk_fi_msg_rma_ops = {
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

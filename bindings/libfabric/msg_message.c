/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_send, fi_recv and their kin, of connected endpoints. Addresses are not looked at: there is one peer. */
#include "bindings/libfabric/msg.h"

#define SENDS ((uint64_t)(FI_MSG | FI_SEND))

static uint32_t recv_flags(const struct rwk_fi_msg_ep *ep)
{
	return rwk_fi_quiet(&ep->side[RWK_FI_RX], ep->op_flags[RWK_FI_RX] & FI_COMPLETION);
}

static ssize_t message_recvv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);

	(void)desc, (void)from;
	return rwk_fi_msg_post_receive(ep, iov, count, recv_flags(ep), context);
}

static ssize_t message_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	const struct iovec iov = {buf, len};

	return message_recvv(fid, &iov, &desc, 1, from, context);
}

static ssize_t message_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);

	if (flags & ~(uint64_t)(FI_COMPLETION | FI_MORE))
		return -FI_EBADFLAGS;
	return rwk_fi_msg_post_receive(ep, msg->msg_iov, msg->iov_count,
		rwk_fi_quiet(&ep->side[RWK_FI_RX], flags & FI_COMPLETION), msg->context);
}

/* A send of pieces; `request` and `flags` as of rwk_fi_msg_flags. */
static ssize_t post(struct rwk_fi_msg_ep *ep, const struct iovec *iov, size_t count, uint64_t data, unsigned request,
	uint32_t flags, void *context)
{
	struct rwk_sge sge[RWK_FI_MSG_IOV];
	int n = rwk_fi_msg_pieces(ep->key, iov, count, sge);
	struct rwk_request r = {
		.type = RWK_REQUEST_SEND,
		.flags = request,
		.sge = sge,
		.sge_count = (uint32_t)n,
		.imm = (uint32_t)data,
	};

	return n < 0 ? n : rwk_fi_msg_post(ep, SENDS, &r, flags | RWK_F_SEND | RWK_F_PLAIN, context);
}

/* A call without flags of its own has the endpoint's. */
static ssize_t plain(
	struct rwk_fi_msg_ep *ep, const struct iovec *iov, size_t count, uint64_t data, unsigned request, void *context)
{
	uint64_t asked = ep->op_flags[RWK_FI_TX];

	if (asked & FI_INJECT)
		request |= RWK_REQUEST_INLINE;
	return post(ep, iov, count, data, request, rwk_fi_quiet(&ep->side[RWK_FI_TX], asked & FI_COMPLETION), context);
}

static ssize_t message_sendv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, void *context)
{
	(void)desc, (void)to;
	return plain(rwk_fi_msg_ep_of(fid), iov, count, 0, 0, context);
}

static ssize_t message_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return message_sendv(fid, &iov, &desc, 1, to, context);
}

static ssize_t message_senddata(
	struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc, (void)to;
	return plain(rwk_fi_msg_ep_of(fid), &iov, 1, data, RWK_REQUEST_IMM, context);
}

static ssize_t message_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct rwk_fi_msg_ep *ep = rwk_fi_msg_ep_of(fid);
	unsigned request;
	uint32_t quiet;
	int err = rwk_fi_msg_flags(ep, "fi_sendmsg", flags, FI_INJECT | FI_REMOTE_CQ_DATA, &request, &quiet);

	return err ? err : post(ep, msg->msg_iov, msg->iov_count, msg->data, request, quiet, msg->context);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, unsigned request)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return post(rwk_fi_msg_ep_of(fid), &iov, 1, data, request | RWK_REQUEST_INLINE, RWK_FI_QUIET | RWK_FI_INJECTED,
		NULL);
}

static ssize_t message_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	(void)to;
	return inject(fid, buf, len, 0, 0);
}

static ssize_t message_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	(void)to;
	return inject(fid, buf, len, data, RWK_REQUEST_IMM);
}

const struct fi_ops_msg rwk_fi_msg_message_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = message_recv,
	.recvv = message_recvv,
	.recvmsg = message_recvmsg,
	.send = message_send,
	.sendv = message_sendv,
	.sendmsg = message_sendmsg,
	.inject = message_inject,
	.senddata = message_senddata,
	.injectdata = message_injectdata,
};

const struct fi_ops_msg rwk_fi_msg_message_send_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = rwk_fi_cannot_recv,
	.recvv = rwk_fi_cannot_recvv,
	.recvmsg = rwk_fi_cannot_recvmsg,
	.send = message_send,
	.sendv = message_sendv,
	.sendmsg = message_sendmsg,
	.inject = message_inject,
	.senddata = message_senddata,
	.injectdata = message_injectdata,
};

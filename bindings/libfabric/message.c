/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_send, fi_recv and the rest of the calls without tags. */
#include "bindings/libfabric/transfer.h"
#include "bindings/libfabric/trigger.h"

#include <rdma/fi_endpoint.h>

static ssize_t plain_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_recv1(ep, buf, len, ep->recv_flags[RWK_PLAIN], from, 0, 0, context);
}

static ssize_t plain_recvv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_recvv(ep, RWK_PLAIN, iov, count, from, 0, 0, ep->recv_flags[RWK_PLAIN], context);
}

static ssize_t plain_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	uint32_t f;
	int err = rwk_fi_recvmsg_flags(ep->recvmsg_flags, RWK_PLAIN, flags, &f);

	if (rwk_unlikely(err))
		return err < 0 ? err : rwk_fi_trigger_recv(ep, msg, f);
	if (rwk_unlikely(f & RWK_F_PEEK))
		rwk_fi_look(ep);
	return rwk_fi_recvv(ep, RWK_PLAIN, msg->msg_iov, msg->iov_count, msg->addr, 0, 0, f, msg->context);
}

static ssize_t plain_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_send1(ep, buf, len, ep->send_flags[RWK_PLAIN], 0, to, 0, context);
}

static ssize_t plain_sendv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_sendv(ep, RWK_PLAIN, iov, count, to, 0, 0, ep->send_flags[RWK_PLAIN], context);
}

static ssize_t plain_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	uint32_t f;
	int err = rwk_fi_sendmsg_flags(ep, RWK_PLAIN, flags, msg->addr, &f);

	if (rwk_unlikely(err))
		return err < 0 ? err : rwk_fi_trigger_send(ep, msg, f);
	if (rwk_likely(msg->iov_count == 1))
		return rwk_fi_send1(
			ep, msg->msg_iov->iov_base, msg->msg_iov->iov_len, f, msg->data, msg->addr, 0, msg->context);
	return rwk_fi_sendv(ep, RWK_PLAIN, msg->msg_iov, msg->iov_count, msg->addr, 0, msg->data, f, msg->context);
}

static ssize_t plain_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	return rwk_fi_send1(ep, buf, len, ep->inject_flags[RWK_PLAIN], 0, to, 0, NULL);
}

static ssize_t plain_senddata(
	struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_send1(ep, buf, len, ep->send_flags[RWK_PLAIN] | RWK_F_DATA, data, to, 0, context);
}

static ssize_t plain_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	return rwk_fi_send1(ep, buf, len, ep->inject_flags[RWK_PLAIN] | RWK_F_DATA, data, to, 0, NULL);
}

const struct fi_ops_msg rwk_fi_msg_ops = {
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

const struct fi_ops_msg rwk_fi_msg_send_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = rwk_fi_cannot_recv,
	.recvv = rwk_fi_cannot_recvv,
	.recvmsg = rwk_fi_cannot_recvmsg,
	.send = plain_send,
	.sendv = plain_sendv,
	.sendmsg = plain_sendmsg,
	.inject = plain_inject,
	.senddata = plain_senddata,
	.injectdata = plain_injectdata,
};

const struct fi_ops_msg rwk_fi_msg_recv_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = plain_recv,
	.recvv = plain_recvv,
	.recvmsg = plain_recvmsg,
	.send = rwk_fi_cannot_send,
	.sendv = rwk_fi_cannot_sendv,
	.sendmsg = rwk_fi_cannot_sendmsg,
	.inject = rwk_fi_cannot_inject,
	.senddata = rwk_fi_cannot_senddata,
	.injectdata = rwk_fi_cannot_injectdata,
};

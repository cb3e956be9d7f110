/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_tsend, fi_trecv and the rest of the tagged calls. */
#include "bindings/libfabric/transfer.h"
#include "bindings/libfabric/trigger.h"

#include <rdma/fi_tagged.h>

static ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag,
	uint64_t ignore, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_recv1(ep, buf, len, ep->recv_flags[RWK_TAGGED], from, tag, ignore, context);
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	uint64_t tag, uint64_t ignore, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_recvv(ep, RWK_TAGGED, iov, count, from, tag, ignore, ep->recv_flags[RWK_TAGGED], context);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	uint32_t f;
	int err = rwk_fi_recvmsg_flags(ep->recvmsg_flags, RWK_TAGGED, flags, &f);

	if (rwk_unlikely(err))
		return err < 0 ? err : rwk_fi_trigger_trecv(ep, msg, f);
	if (rwk_unlikely(f & RWK_F_PEEK))
		rwk_fi_look(ep);
	return rwk_fi_recvv(
		ep, RWK_TAGGED, msg->msg_iov, msg->iov_count, msg->addr, msg->tag, msg->ignore, f, msg->context);
}

static ssize_t tagged_send(
	struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_send1(ep, buf, len, ep->send_flags[RWK_TAGGED], 0, to, tag, context);
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	uint64_t tag, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_sendv(ep, RWK_TAGGED, iov, count, to, tag, 0, ep->send_flags[RWK_TAGGED], context);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);
	uint32_t f;
	int err = rwk_fi_sendmsg_flags(ep, RWK_TAGGED, flags, msg->addr, &f);

	if (rwk_unlikely(err))
		return err < 0 ? err : rwk_fi_trigger_tsend(ep, msg, f);
	if (rwk_likely(msg->iov_count == 1))
		return rwk_fi_send1(ep, msg->msg_iov->iov_base, msg->msg_iov->iov_len, f, msg->data, msg->addr,
			msg->tag, msg->context);
	return rwk_fi_sendv(
		ep, RWK_TAGGED, msg->msg_iov, msg->iov_count, msg->addr, msg->tag, msg->data, f, msg->context);
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	return rwk_fi_send1(ep, buf, len, ep->inject_flags[RWK_TAGGED], 0, to, tag, NULL);
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
	uint64_t tag, void *context)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	(void)desc;
	return rwk_fi_send1(ep, buf, len, ep->send_flags[RWK_TAGGED] | RWK_F_DATA, data, to, tag, context);
}

static ssize_t tagged_injectdata(
	struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag)
{
	struct rwk_fi_ep *ep = rwk_fi_ep_of(fid);

	return rwk_fi_send1(ep, buf, len, ep->inject_flags[RWK_TAGGED] | RWK_F_DATA, data, to, tag, NULL);
}

const struct fi_ops_tagged rwk_fi_tagged_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_tagged, injectdata),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

const struct fi_ops_tagged rwk_fi_tagged_send_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_tagged, injectdata),
	.recv = rwk_fi_cannot_trecv,
	.recvv = rwk_fi_cannot_trecvv,
	.recvmsg = rwk_fi_cannot_trecvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

const struct fi_ops_tagged rwk_fi_tagged_recv_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_tagged, injectdata),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = rwk_fi_cannot_tsend,
	.sendv = rwk_fi_cannot_tsendv,
	.sendmsg = rwk_fi_cannot_tsendmsg,
	.inject = rwk_fi_cannot_tinject,
	.senddata = rwk_fi_cannot_tsenddata,
	.injectdata = rwk_fi_cannot_tinjectdata,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_send, fi_recv and their kin, of datagram endpoints. */
#include "bindings/libfabric/dgram.h"

#include "base/iov.h"
#include "base/log.h"
#include "bindings/libfabric/info.h"

#include <errno.h>
#include <string.h>

/* No level beyond "the kernel has it", and FI_MORE is a hint, not taken. */
#define SENDMSG_FLAGS                                                                                                  \
	(FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)
#define RECVMSG_FLAGS (FI_COMPLETION | FI_MORE)

static void complete(struct rwk_fi_dgram_ep *ep, int side, const struct rwk_completion *c, fi_addr_t source)
{
	struct rwk_fi_cq *cq = ep->side[side].cq;

	rwk_fi_count(ep->cntr, c);
	if (rwk_fi_wants_entry(cq, c))
		rwk_fi_put_entry(cq, c, source);
}

static void give_back(struct rwk_fi_dgram_ep *ep, struct rwk_fi_dgram_receive *r)
{
	r->posted = false;
	rwk_list_append(&ep->unused, &r->place.link);
}

void rwk_fi_dgram_received(void *user, struct rwk_ud_receive *place, const struct rwk_ud_arrival *a)
{
	struct rwk_fi_dgram_receive *r = rwk_container_of(place, struct rwk_fi_dgram_receive, place);
	struct rwk_fi_dgram_ep *ep = user;
	size_t room = rwk_iov_length(place->iov, place->count);
	struct rwk_completion c = {
		.context = r->context,
		.flags = r->flags | (a->has_imm ? RWK_F_DATA : 0),
		.length = a->length,
		.buffer = place->count ? place->iov[0].iov_base : NULL,
		.data = a->imm,
	};

	if (a->length > room) {
		c.status = -EMSGSIZE;
		c.length = room;
		c.overflow = a->length - room;
	}
	give_back(ep, r);
	complete(ep, RWK_FI_RX, &c, rwk_fi_dgram_source(ep, &a->from));
}

static ssize_t post_receive(
	struct rwk_fi_dgram_ep *ep, const struct iovec *iov, size_t count, uint32_t flags, void *context)
{
	struct rwk_list *l = rwk_list_pop(&ep->unused);
	struct rwk_fi_dgram_receive *r;

	if (!l) { /* what has come makes room, for the next attempt */
		rwk_ud_progress(ep->ud);
		return -FI_EAGAIN;
	}
	r = rwk_container_of(l, struct rwk_fi_dgram_receive, place.link);
	r->posted = true;
	r->context = context;
	r->flags = flags | RWK_F_RECV | RWK_F_PLAIN;
	r->place.count = (uint32_t)count;
	if (count)
		memcpy(r->place.iov, iov, count * sizeof(*iov));
	rwk_ud_receive(ep->ud, &r->place);
	return 0;
}

static ssize_t receive(struct rwk_fi_dgram_ep *ep, const struct iovec *iov, size_t count, bool asked, void *context)
{
	ssize_t err;

	if (count > RWK_UD_IOV)
		return -FI_EINVAL;
	if (!(ep->caps & FI_RECV))
		return -FI_EOPNOTSUPP;
	rwk_fi_enter(&ep->lock);
	err = post_receive(ep, iov, count, rwk_fi_quiet(&ep->side[RWK_FI_RX], asked), context);
	rwk_fi_leave(&ep->lock);
	return err;
}

static ssize_t dgram_recvv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context)
{
	struct rwk_fi_dgram_ep *ep = rwk_fi_dgram_ep_of(fid);

	(void)desc, (void)from;
	return receive(ep, iov, count, ep->op_flags[RWK_FI_RX] & FI_COMPLETION, context);
}

static ssize_t dgram_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	const struct iovec iov = {buf, len};

	return dgram_recvv(fid, &iov, &desc, 1, from, context);
}

static ssize_t dgram_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	if (flags & ~(uint64_t)RECVMSG_FLAGS)
		return -FI_EBADFLAGS;
	return receive(rwk_fi_dgram_ep_of(fid), msg->msg_iov, msg->iov_count, flags & FI_COMPLETION, msg->context);
}

static struct rwk_fi_dgram_receive *find_posted(const struct rwk_fi_dgram_ep *ep, const void *context)
{
	for (size_t i = 0; i < ep->rx_size; i++) {
		if (ep->receives[i].posted && ep->receives[i].context == context)
			return &ep->receives[i];
	}
	return NULL;
}

ssize_t rwk_fi_dgram_cancel(fid_t fid, void *context)
{
	struct rwk_fi_dgram_ep *ep = rwk_container_of(fid, struct rwk_fi_dgram_ep, fid.fid);
	struct rwk_completion c = {.context = context, .status = -ECANCELED};
	struct rwk_fi_dgram_receive *r;

	if (!ep->ud)
		return -FI_EOPBADSTATE;
	rwk_fi_enter(&ep->lock);
	r = find_posted(ep, context);
	if (r) {
		rwk_ud_cancel(ep->ud, &r->place);
		give_back(ep, r);
		c.flags = r->flags;
		complete(ep, RWK_FI_RX, &c, FI_ADDR_NOTAVAIL);
	}
	rwk_fi_leave(&ep->lock);
	return r ? 0 : -FI_ENOENT;
}

/* A datagram, and its completion: the kernel has it, or it will. `flags`: RWK_FI_*, RWK_F_DATA. */
static ssize_t post_send(struct rwk_fi_dgram_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t data,
	uint32_t flags, void *context)
{
	const struct rwk_completion c = {.context = context, .flags = (flags & ~RWK_F_DATA) | RWK_F_SEND | RWK_F_PLAIN};
	const uint32_t imm = (uint32_t)data;
	struct rwk_ud_address peer;
	int err = rwk_fi_dgram_peer(ep, to, &peer);

	if (err)
		return err;
	err = rwk_ud_send(ep->ud, &peer, iov, (unsigned)count, flags & RWK_F_DATA ? &imm : NULL);
	if (!err)
		complete(ep, RWK_FI_TX, &c, FI_ADDR_NOTAVAIL);
	else if (err == -EAGAIN)
		rwk_ud_progress(ep->ud);
	return err;
}

static ssize_t send_pieces(struct rwk_fi_dgram_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to,
	uint64_t data, uint32_t flags, void *context)
{
	ssize_t err;

	if (count > RWK_UD_IOV)
		return -FI_EINVAL;
	if (!(ep->caps & FI_SEND))
		return -FI_EOPNOTSUPP;
	rwk_fi_enter(&ep->lock);
	err = post_send(ep, iov, count, to, data, flags, context);
	rwk_fi_leave(&ep->lock);
	return err;
}

/* A call without flags of its own has the endpoint's. */
static ssize_t plain(struct rwk_fi_dgram_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t data,
	uint32_t flags, void *context)
{
	flags |= rwk_fi_quiet(&ep->side[RWK_FI_TX], ep->op_flags[RWK_FI_TX] & FI_COMPLETION);
	return send_pieces(ep, iov, count, to, data, flags, context);
}

static ssize_t dgram_sendv(
	struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, void *context)
{
	(void)desc;
	return plain(rwk_fi_dgram_ep_of(fid), iov, count, to, 0, 0, context);
}

static ssize_t dgram_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return plain(rwk_fi_dgram_ep_of(fid), &iov, 1, to, 0, 0, context);
}

static ssize_t dgram_senddata(
	struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return plain(rwk_fi_dgram_ep_of(fid), &iov, 1, to, data, RWK_F_DATA, context);
}

static ssize_t dgram_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct rwk_fi_dgram_ep *ep = rwk_fi_dgram_ep_of(fid);

	if (flags & ~(uint64_t)SENDMSG_FLAGS) {
		rwk_info("fi_sendmsg: flags %#llx are not there",
			(unsigned long long)(flags & ~(uint64_t)SENDMSG_FLAGS));
		return -FI_EBADFLAGS;
	}
	if (flags & FI_INJECT && rwk_iov_length(msg->msg_iov, msg->iov_count) > rwk_fi_dgram.inject_size)
		return -FI_EMSGSIZE;
	return send_pieces(ep, msg->msg_iov, msg->iov_count, msg->addr, msg->data,
		(flags & FI_REMOTE_CQ_DATA ? RWK_F_DATA : 0) |
			rwk_fi_quiet(&ep->side[RWK_FI_TX], flags & FI_COMPLETION),
		msg->context);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t data, uint32_t flags)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	if (len > rwk_fi_dgram.inject_size)
		return -FI_EMSGSIZE;
	return send_pieces(rwk_fi_dgram_ep_of(fid), &iov, 1, to, data, flags | RWK_FI_QUIET | RWK_FI_INJECTED, NULL);
}

static ssize_t dgram_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	return inject(fid, buf, len, to, 0, 0);
}

static ssize_t dgram_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	return inject(fid, buf, len, to, data, RWK_F_DATA);
}

const struct fi_ops_msg rwk_fi_dgram_message_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_msg, injectdata),
	.recv = dgram_recv,
	.recvv = dgram_recvv,
	.recvmsg = dgram_recvmsg,
	.send = dgram_send,
	.sendv = dgram_sendv,
	.sendmsg = dgram_sendmsg,
	.inject = dgram_inject,
	.senddata = dgram_senddata,
	.injectdata = dgram_injectdata,
};

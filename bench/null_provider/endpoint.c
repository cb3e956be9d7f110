/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint and its tagged messages, all of which complete at once. */
#include "bench/null_provider/null.h"

#include <stdlib.h>
#include <string.h>

static ssize_t sent(struct null_ep *ep, uint64_t flags, void *context, size_t len, uint64_t tag)
{
	struct fi_cq_tagged_entry e = {.op_context = context, .flags = FI_TAGGED | FI_SEND, .len = len, .tag = tag};

	if (ep->select_sends && !(flags & FI_COMPLETION))
		return 0;
	return null_complete(ep->send_cq, &e) ? 0 : -FI_EAGAIN;
}

/* The message received has the very tag that was asked for, with nothing set where any bit would do, and fills the
 * buffer. */
static ssize_t received(struct null_ep *ep, uint64_t flags, void *context, size_t len, uint64_t tag, uint64_t ignore)
{
	struct fi_cq_tagged_entry e = {.op_context = context,
		.flags = FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA,
		.len = len,
		.tag = tag & ~ignore};

	if (flags & FI_PEEK)
		return -FI_ENOMSG;
	if (ep->select_receives && !(flags & FI_COMPLETION))
		return 0;
	return null_complete(ep->receive_cq, &e) ? 0 : -FI_EAGAIN;
}

static size_t total(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

static ssize_t ep_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
	uint64_t ignore, void *context)
{
	struct null_ep *ep = (struct null_ep *)fid;

	(void)buf;
	(void)desc;
	(void)src;
	return received(ep, ep->receive_flags, context, len, tag, ignore);
}

static ssize_t ep_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
	uint64_t tag, uint64_t ignore, void *context)
{
	(void)desc;
	return ep_recv(fid, NULL, total(iov, count), NULL, src, tag, ignore, context);
}

static ssize_t ep_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	return received((struct null_ep *)fid, flags, m->context, total(m->msg_iov, m->iov_count), m->tag, m->ignore);
}

static ssize_t ep_send(
	struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest, uint64_t tag, void *context)
{
	struct null_ep *ep = (struct null_ep *)fid;

	(void)buf;
	(void)desc;
	(void)dest;
	return sent(ep, ep->send_flags, context, len, tag);
}

static ssize_t ep_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
	uint64_t tag, void *context)
{
	(void)desc;
	return ep_send(fid, NULL, total(iov, count), NULL, dest, tag, context);
}

static ssize_t ep_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	return sent((struct null_ep *)fid, flags, m->context, total(m->msg_iov, m->iov_count), m->tag);
}

static ssize_t ep_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest, uint64_t tag)
{
	(void)fid;
	(void)buf;
	(void)dest;
	(void)tag;
	return len > NULL_INJECT_SIZE ? -FI_EINVAL : 0;
}

static ssize_t ep_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t dest,
	uint64_t tag, void *context)
{
	(void)data;
	return ep_send(fid, buf, len, desc, dest, tag, context);
}

static ssize_t ep_injectdata(
	struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t dest, uint64_t tag)
{
	(void)data;
	return ep_inject(fid, buf, len, dest, tag);
}

static struct fi_ops_tagged tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = ep_recv,
	.recvv = ep_recvv,
	.recvmsg = ep_recvmsg,
	.send = ep_send,
	.sendv = ep_sendv,
	.sendmsg = ep_sendmsg,
	.inject = ep_inject,
	.senddata = ep_senddata,
	.injectdata = ep_injectdata,
};

static ssize_t ep_cancel(fid_t fid, void *context)
{
	(void)fid;
	(void)context;
	return -FI_ENOENT; /* whatever it was, it is complete */
}

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	(void)fid;
	(void)level;
	(void)name;
	(void)value;
	(void)len;
	return -FI_ENOPROTOOPT;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid;
	(void)level;
	(void)name;
	(void)value;
	(void)len;
	return -FI_ENOPROTOOPT;
}

static struct fi_ops_ep ep_ops = {
	.size = offsetof(struct fi_ops_ep, tx_ctx),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
};

static int cm_setname(fid_t fid, void *addr, size_t len)
{
	(void)fid;
	(void)addr;
	(void)len;
	return -FI_ENOSYS;
}

static int cm_getname(fid_t fid, void *addr, size_t *len)
{
	size_t room = *len;

	(void)fid;
	*len = sizeof(uint64_t);
	if (room < sizeof(uint64_t))
		return -FI_ETOOSMALL;
	memset(addr, 0, sizeof(uint64_t));
	return 0;
}

static struct fi_ops_cm cm_ops = {
	.size = offsetof(struct fi_ops_cm, getpeer),
	.setname = cm_setname,
	.getname = cm_getname,
};

static int ep_close(struct fid *fid)
{
	free(fid);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct null_ep *ep = (struct null_ep *)fid;

	if (other->fclass == FI_CLASS_AV)
		return 0;
	if (other->fclass != FI_CLASS_CQ)
		return -FI_ENOSYS;
	if (flags & FI_TRANSMIT) {
		ep->send_cq = (struct null_cq *)other;
		ep->select_sends = flags & FI_SELECTIVE_COMPLETION;
	}
	if (flags & FI_RECV) {
		ep->receive_cq = (struct null_cq *)other;
		ep->select_receives = flags & FI_SELECTIVE_COMPLETION;
	}
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct null_ep *ep = (struct null_ep *)fid;

	(void)arg;
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	return ep->send_cq && ep->receive_cq ? 0 : -FI_ENOCQ;
}

static int ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

static struct fi_ops ep_fid_ops = {
	.size = offsetof(struct fi_ops, tostr),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = ep_ops_open,
};

int null_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct null_ep *ep = calloc(1, sizeof(*ep));

	(void)domain;
	if (!ep)
		return -FI_ENOMEM;
	ep->ep.fid = (struct fid){.fclass = FI_CLASS_EP, .context = context, .ops = &ep_fid_ops};
	ep->ep.ops = &ep_ops;
	ep->ep.cm = &cm_ops;
	ep->ep.tagged = &tagged_ops;
	ep->send_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->receive_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	*out = &ep->ep;
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the calls that move data share: from libfabric's arguments to requests of the qp. */
#include "bindings/libfabric/msg.h"

#include "base/log.h"

#include <errno.h>

#define NOT_CONNECTED (-FI_ENOTCONN)

int rwk_fi_msg_pieces(
	uint32_t key, const struct iovec *iov, size_t count, struct rwk_sge sge[RWK_FI_MSG_IOV])
{
	if (count > RWK_FI_MSG_IOV)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++)
		sge[i] = (struct rwk_sge){iov[i].iov_base, iov[i].iov_len, key};
	return (int)count;
}

int rwk_fi_msg_flags(const struct rwk_fi_msg_ep *ep, const char *call, uint64_t asked, uint64_t known,
	unsigned *request, uint32_t *flags)
{
	/* FI_MORE is a hint, not taken; every level is FI_DELIVERY_COMPLETE: a request ends when the peer has it. */
	known |= FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
		 FI_MATCH_COMPLETE;
	if (asked & ~known) {
		rwk_info("%s: flags %#llx are not there", call, (unsigned long long)(asked & ~known));
		return -FI_EBADFLAGS;
	}
	*request = (asked & FI_FENCE ? (unsigned)RWK_REQUEST_FENCE : 0) |
		   (asked & FI_INJECT ? (unsigned)RWK_REQUEST_INLINE : 0) |
		   (asked & FI_REMOTE_CQ_DATA ? (unsigned)RWK_REQUEST_IMM : 0);
	*flags = rwk_fi_quiet(&ep->side[RWK_FI_TX], asked & FI_COMPLETION);
	return 0;
}

static struct rwk_fi_msg_op *take_op(struct rwk_fi_msg_ep *ep, uint32_t flags, void *context)
{
	struct rwk_list *l = rwk_list_pop(&ep->unused);
	struct rwk_fi_msg_op *op = l ? rwk_container_of(l, struct rwk_fi_msg_op, link) : NULL;

	if (op) {
		op->flags = flags;
		op->context = context;
	}
	return op;
}

/* The bits of `have` that are missing; of RMA and atomics libfabric says what they need. */
static ssize_t refuse(uint64_t missing)
{
	rwk_info("the endpoint was opened without the capabilities %#llx", (unsigned long long)missing);
	return -FI_EOPNOTSUPP;
}

/* A full queue: what has ended since makes room, for the next attempt. */
static ssize_t full(struct rwk_fi_msg_ep *ep)
{
	rwk_fi_device_progress(ep->device);
	return -FI_EAGAIN;
}

static ssize_t post(struct rwk_fi_msg_ep *ep, struct rwk_request *r, uint32_t flags, void *context)
{
	bool atomic = r->type == RWK_REQUEST_COMPARE_SWAP || r->type == RWK_REQUEST_FETCH_ADD;
	struct rwk_fi_msg_op *op;
	struct rwk_sge nowhere;
	int err;

	if (ep->state != RWK_FI_CONNECTED)
		return NOT_CONNECTED;
	op = take_op(ep, flags, context);
	if (!op)
		return full(ep);
	r->id = (uintptr_t)op;
	if (atomic && !r->sge_count) {
		nowhere = (struct rwk_sge){&op->before, sizeof(op->before), ep->key};
		r->sge = &nowhere;
		r->sge_count = 1;
	}
	err = rwk_qp_post(ep->qp, r);
	if (!err) {
		ep->owed += !!(flags & RWK_FI_INJECTED);
		return 0;
	}
	rwk_list_append(&ep->unused, &op->link);
	return err == -EAGAIN ? full(ep) : err;
}

ssize_t rwk_fi_msg_post(struct rwk_fi_msg_ep *ep, uint64_t needs, struct rwk_request *r, uint32_t flags, void *context)
{
	ssize_t ret;

	if (needs & ~ep->caps)
		return refuse(needs & ~ep->caps);
	rwk_fi_lock(ep->lock);
	ret = post(ep, r, flags, context);
	rwk_fi_unlock(ep->lock);
	return ret;
}

static ssize_t post_receive(
	struct rwk_fi_msg_ep *ep, struct rwk_receive *r, void *buffer, uint32_t flags, void *context)
{
	struct rwk_fi_msg_op *op;
	int err;

	if (ep->state == RWK_FI_OVER)
		return NOT_CONNECTED;
	op = take_op(ep, flags, context);
	if (!op)
		return full(ep);
	op->buffer = buffer;
	r->id = (uintptr_t)op;
	err = rwk_qp_post_receive(ep->qp, r);
	if (!err)
		return 0;
	rwk_list_append(&ep->unused, &op->link);
	return err == -EAGAIN ? full(ep) : err;
}

ssize_t rwk_fi_msg_post_receive(
	struct rwk_fi_msg_ep *ep, const struct iovec *iov, size_t count, uint32_t flags, void *context)
{
	struct rwk_sge sge[RWK_FI_MSG_IOV];
	int n = rwk_fi_msg_pieces(ep->key, iov, count, sge);
	struct rwk_receive r = {.sge = sge, .sge_count = (uint32_t)n};
	ssize_t ret;

	if (n < 0)
		return n;
	if (!(ep->caps & FI_RECV))
		return refuse(FI_RECV);
	rwk_fi_lock(ep->lock);
	ret = post_receive(ep, &r, n ? iov[0].iov_base : NULL, flags | RWK_F_RECV | RWK_F_PLAIN, context);
	rwk_fi_unlock(ep->lock);
	return ret;
}

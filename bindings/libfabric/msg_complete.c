/* SPDX-License-Identifier: BSD-3-Clause */
/* What the adapter has completed, as entries of the endpoint's queues and counts of its counters. */
#include "bindings/libfabric/msg.h"

static bool is_receive(const struct rwk_wc *wc)
{
	return wc->type == RWK_WC_RECEIVE || wc->type == RWK_WC_RECEIVE_WRITE;
}

/* A write with data has taken a receive (FI_RX_CQ_DATA), whose context tells it, but not its memory. */
static void fill_receive(struct rwk_completion *c, const struct rwk_fi_msg_op *op, const struct rwk_wc *wc)
{
	if (wc->type == RWK_WC_RECEIVE_WRITE) {
		c->flags = (c->flags & ~(uint32_t)(RWK_F_RECV | RWK_F_PLAIN | RWK_FI_QUIET)) | RWK_F_RMA |
			   RWK_F_REMOTE_WRITE;
	} else {
		c->buffer = op->buffer;
	}
	c->length = wc->length;
	if (!wc->has_imm)
		return;
	c->flags |= RWK_F_DATA;
	c->data = wc->imm;
}

void rwk_fi_msg_complete(const struct rwk_wc *wc)
{
	struct rwk_fi_msg_op *op = (struct rwk_fi_msg_op *)(uintptr_t)wc->id;
	struct rwk_fi_msg_ep *ep = op->srx ? rwk_fi_msg_srx_find(op->srx, wc->qpn) : op->ep;
	struct rwk_completion c = {.context = op->context, .flags = op->flags, .status = wc->status};
	struct rwk_fi_cq *cq = ep->side[is_receive(wc) ? RWK_FI_RX : RWK_FI_TX].cq;

	if (op->srx)
		c = rwk_fi_as_told(&ep->side[RWK_FI_RX], &c);
	if (is_receive(wc) && !wc->status)
		fill_receive(&c, op, wc);
	ep->owed -= !!(op->flags & RWK_FI_INJECTED);
	rwk_list_append(op->srx ? &op->srx->unused : &ep->unused, &op->link);
	if (ep->closing && !op->srx) /* a shared buffer's end nobody else would tell of */
		return;
	rwk_fi_count(ep->cntr, &c);
	if (rwk_fi_wants_entry(cq, &c))
		rwk_fi_put_entry(cq, &c, FI_ADDR_NOTAVAIL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* From the engine's completions to queue entries and counts. */
#include "bindings/libfabric/ep.h"

#include "base/log.h"

#include <errno.h>

/* The entry's flags. */
static uint64_t entry_flags(uint32_t flags)
{
	uint64_t out = flags & RWK_F_RECV ? FI_RECV : FI_SEND;

	out |= flags & (RWK_F_TAGGED | RWK_FI_TAGGED_SEND) ? FI_TAGGED : FI_MSG;
	if (flags & RWK_F_DATA)
		out |= FI_REMOTE_CQ_DATA;
	if (flags & RWK_F_MULTI)
		out |= FI_MULTI_RECV;
	return out;
}

/*
 * The number of who sent it. A peer that wrote to us before it was inserted has none yet: it is looked up until it is
 * found, so that an insert need not know who has written already.
 */
static fi_addr_t source_of(struct rwk_fi_ep *ep, struct rwk_peer *peer)
{
	uint64_t number = rwk_peer_user(peer);

	if (rwk_unlikely(number == FI_ADDR_NOTAVAIL)) {
		number = rwk_fi_av_find(ep->av, rwk_peer_address(peer));
		if (number != FI_ADDR_NOTAVAIL && rwk_fi_ep_know(ep, number, peer))
			rwk_info("no memory to remember the number of a peer");
	}
	return number;
}

static int error_of(int status)
{
	return status == -EMSGSIZE ? FI_ETRUNC : -status;
}

static rwk_noinline void complete_error(
	struct rwk_fi_ep *ep, const struct rwk_fi_side *side, const struct rwk_completion *c)
{
	struct rwk_fi_cq_entry *entry;

	(void)ep;
	if (side->cntr && !(c->flags & RWK_FI_NOT_COUNTED))
		rwk_fi_cntr_count(side->cntr, true);
	if (c->flags & RWK_FI_INJECTED) {
		rwk_info("an injected message was lost: %s", fi_strerror(-c->status));
		return;
	}
	entry = side->cq ? rwk_fi_cq_room(side->cq) : NULL;
	if (!entry)
		return;
	entry->e = (struct fi_cq_tagged_entry){
		.op_context = c->context,
		.flags = entry_flags(c->flags),
		.len = c->length,
		.buf = c->buffer,
		.data = c->data,
		.tag = c->tag,
	};
	entry->overflow = c->overflow;
	entry->status = error_of(c->status);
	rwk_fi_cq_written(side->cq);
}

void rwk_fi_complete(void *owner, const struct rwk_completion *c)
{
	struct rwk_fi_ep *ep = owner;
	const struct rwk_fi_side *side = &ep->side[c->flags & RWK_F_RECV ? RWK_FI_RX : RWK_FI_TX];
	struct rwk_fi_cq_entry *entry;

	if (rwk_unlikely(c->status)) {
		complete_error(ep, side, c);
		return;
	}
	if (side->cntr && !(c->flags & RWK_FI_NOT_COUNTED))
		rwk_fi_cntr_count(side->cntr, false);
	/* A released multi-receive buffer is always told of. */
	if (!side->cq || (c->flags & RWK_FI_QUIET && !(c->flags & RWK_F_MULTI)))
		return;
	entry = rwk_fi_cq_room(side->cq);
	if (rwk_unlikely(!entry))
		return;
	entry->e.op_context = c->context;
	entry->e.flags = entry_flags(c->flags);
	entry->e.len = c->length;
	entry->e.buf = c->buffer;
	entry->e.data = c->data;
	entry->e.tag = c->tag;
	entry->source = ep->want_source && c->peer ? source_of(ep, c->peer) : FI_ADDR_NOTAVAIL;
	entry->status = 0;
	rwk_fi_cq_written(side->cq);
}

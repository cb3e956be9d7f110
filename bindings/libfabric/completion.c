/* SPDX-License-Identifier: BSD-3-Clause */
/* From the engine's completions to queue entries and counts. */
#include "bindings/libfabric/ep.h"

#include "base/log.h"

#include <errno.h>

/* The entry's flags, by (TAGGED, RECV, MULTI) of the completion. */
static inline uint64_t entry_flags(uint32_t flags)
{
	static const uint64_t by_kind[8] = {
		FI_SEND | FI_MSG,
		FI_SEND | FI_MSG | FI_MULTI_RECV,
		FI_RECV | FI_MSG,
		FI_RECV | FI_MSG | FI_MULTI_RECV,
		FI_SEND | FI_TAGGED,
		FI_SEND | FI_TAGGED | FI_MULTI_RECV,
		FI_RECV | FI_TAGGED,
		FI_RECV | FI_TAGGED | FI_MULTI_RECV,
	};

	_Static_assert(RWK_F_MULTI == 1 << 7 && RWK_F_RECV == 1 << 8 && RWK_F_TAGGED == 1 << 9 &&
			       RWK_FI_TAGGED_SEND == RWK_F_TAGGED << 10 && RWK_F_DATA == 1 &&
			       FI_REMOTE_CQ_DATA == 1 << 17,
		"the bits lie as the look-up wants them");
	flags |= (flags & RWK_FI_TAGGED_SEND) >> 10;
	return by_kind[flags >> 7 & 7] | (uint64_t)(flags & RWK_F_DATA) << 17;
}

/*
 * The number of who sent it. A peer that wrote to us before it was inserted has none yet: it is looked up until it is
 * found, so that an insert need not know who has written already.
 */
static rwk_noinline fi_addr_t source_of(struct rwk_fi_ep *ep, struct rwk_peer *peer)
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

static rwk_noinline void complete_error(const struct rwk_fi_side *side, const struct rwk_completion *c)
{
	struct rwk_fi_cq_entry *entry;

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

static inline void write_entry(
	struct rwk_fi_ep *ep, struct rwk_fi_cq *cq, const struct rwk_completion *c, uint32_t flags)
{
	struct rwk_fi_cq_entry *entry = rwk_fi_cq_room(cq);

	if (rwk_unlikely(!entry))
		return;
	entry->e.op_context = c->context;
	entry->e.flags = entry_flags(flags);
	entry->e.len = c->length;
	entry->e.buf = c->buffer;
	entry->e.data = c->data;
	entry->e.tag = c->tag;
	entry->source = ep->want_source && c->peer ? source_of(ep, c->peer) : FI_ADDR_NOTAVAIL;
	entry->status = 0;
	rwk_fi_cq_written(cq);
}

/* Where there is a counter, an error, or nothing to say. */
static rwk_noinline void complete_slow(
	struct rwk_fi_ep *ep, const struct rwk_fi_side *side, const struct rwk_completion *c)
{
	if (side->cntr && !(c->flags & RWK_FI_NOT_COUNTED))
		rwk_fi_cntr_count(side->cntr, c->status);
	if (c->status)
		complete_error(side, c);
	else if (side->cq && (!(c->flags & RWK_FI_QUIET) || c->flags & RWK_F_MULTI))
		write_entry(ep, side->cq, c, c->flags); /* a released multi-receive buffer is always told of */
}

void rwk_fi_complete(void *owner, const struct rwk_completion *c)
{
	struct rwk_fi_ep *ep = owner;
	uint32_t flags = c->flags;
	const struct rwk_fi_side *side = &ep->side[flags & RWK_F_RECV ? RWK_FI_RX : RWK_FI_TX];

	if (rwk_likely(!c->status && !(flags & RWK_FI_QUIET) && !side->cntr && side->cq))
		write_entry(ep, side->cq, c, flags);
	else
		complete_slow(ep, side, c);
}

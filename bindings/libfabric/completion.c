/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions that the engine does not write into a queue by itself: errors, and what somebody must be told of. */
#include "bindings/libfabric/ep.h"

#include "base/log.h"

#include <errno.h>

_Static_assert(RWK_F_PLAIN == FI_MSG && RWK_F_TAGGED == FI_TAGGED && RWK_F_RECV == FI_RECV && RWK_F_SEND == FI_SEND &&
		       RWK_F_MULTI == FI_MULTI_RECV && RWK_F_DATA == FI_REMOTE_CQ_DATA && RWK_F_RMA == FI_RMA &&
		       RWK_F_ATOMIC == FI_ATOMIC && RWK_F_READ == FI_READ && RWK_F_WRITE == FI_WRITE &&
		       RWK_F_REMOTE_WRITE == FI_REMOTE_WRITE,
	"an entry's flags need no translation");

#define ONE_SIDED (RWK_F_RMA | RWK_F_ATOMIC)

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

static void write_entry(struct rwk_fi_cq *cq, const struct rwk_completion *c, fi_addr_t source)
{
	struct rwk_completion *entry = rwk_fi_cq_room(cq);

	if (!entry)
		return;
	*entry = *c;
	entry->flags &= RWK_F_SHOWN;
	if (c->status)
		entry->status = error_of(c->status);
	else
		entry->user = source;
	rwk_fi_cq_written(cq);
}

/* The counter of what this endpoint has started or received; what others do here comes by rwk_fi_reached. */
static struct rwk_fi_cntr *counter_of(const struct rwk_fi_ep *ep, uint32_t flags)
{
	if (flags & (RWK_F_REMOTE_WRITE | RWK_FI_NOT_COUNTED))
		return NULL;
	if (flags & ONE_SIDED)
		return ep->cntr[flags & RWK_F_READ ? RWK_FI_READS : RWK_FI_WRITES];
	return ep->cntr[flags & RWK_F_RECV ? RWK_FI_RECEIVES : RWK_FI_SENDS];
}

void rwk_fi_complete(void *owner, const struct rwk_completion *c)
{
	struct rwk_fi_ep *ep = owner;
	bool came = c->flags & (RWK_F_RECV | RWK_F_REMOTE_WRITE);
	const struct rwk_fi_side *side = &ep->side[came ? RWK_FI_RX : RWK_FI_TX];
	struct rwk_fi_cntr *cntr = counter_of(ep, c->flags);
	fi_addr_t source;

	if (cntr)
		rwk_fi_cntr_count(cntr, c->status);
	/* Who asks for no entry and has no context could do nothing with one; Open MPI's acknowledgements are sent so,
	 * and it takes every error entry's context for a request. */
	if (c->status && (c->flags & RWK_FI_INJECTED || (c->flags & RWK_FI_QUIET && !c->context))) {
		rwk_info("%s that nobody waits for was lost: %s",
			c->flags & ONE_SIDED ? "an access to a peer's memory" : "a message", fi_strerror(-c->status));
		return;
	}
	/* Quiet are neither errors nor the release of a multi-receive buffer. */
	if (!side->cq || (c->flags & RWK_FI_QUIET && !c->status && !(c->flags & RWK_F_MULTI)))
		return;
	source = ep->want_source && c->peer ? source_of(ep, c->peer) : FI_ADDR_NOTAVAIL;
	write_entry(side->cq, c, source);
}

/* An atomic that fetches counts as a read, as at its initiator. */
void rwk_fi_reached(void *owner, const struct rwk_reached *r)
{
	struct rwk_fi_ep *ep = owner;
	struct rwk_fi_cntr *cntr =
		ep->cntr[r->access & RWK_ACCESS_READ ? RWK_FI_REMOTE_READS : RWK_FI_REMOTE_WRITES];

	if (cntr)
		rwk_fi_cntr_count(cntr, false);
}

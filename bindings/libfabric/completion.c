/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions that the engine does not write into a queue by itself: errors, and what somebody must be told of. */
#include "bindings/libfabric/deferred.h"

#include "base/log.h"
#include "bindings/libfabric/peer.h"

/*
 * The number of who sent it. A peer that wrote to us before it was inserted has none yet: it is looked up until it is
 * found, so that an insert need not know who has written already.
 */
rwk_noinline fi_addr_t rwk_fi_source(struct rwk_fi_ep *ep, struct rwk_peer *peer)
{
	uint64_t user = rwk_peer_user(peer);
	fi_addr_t number;

	if (rwk_unlikely(user == FI_ADDR_NOTAVAIL)) {
		number = rwk_fi_av_find(ep->av, rwk_peer_address(peer));
		if (number != FI_ADDR_NOTAVAIL && rwk_fi_ep_know(ep, number, peer))
			rwk_info("no memory to remember the number of a peer");
		user = rwk_fi_av_user(ep->av, number);
	}
	return user;
}

static void complete(struct rwk_fi_ep *ep, const struct rwk_completion *c)
{
	bool came = c->flags & (RWK_F_RECV | RWK_F_REMOTE_WRITE);
	struct rwk_fi_cq *cq = ep->side[came ? RWK_FI_RX : RWK_FI_TX].cq;

	if (rwk_unlikely(c->flags & (RWK_FI_ENTRY | RWK_FI_DEFERRED))) {
		(c->flags & RWK_FI_DEFERRED ? rwk_fi_work_done : rwk_fi_peer_received)(ep, c);
		return;
	}
	rwk_fi_count(ep->cntr, c);
	if (rwk_fi_wants_entry(cq, c))
		rwk_fi_put_entry(cq, c, ep->want_source && c->peer ? rwk_fi_source(ep, c->peer) : FI_ADDR_NOTAVAIL);
}

void rwk_fi_complete(void *owner, const struct rwk_completion *c)
{
	struct rwk_fi_ep *ep = owner;
	struct rwk_completion told;

	if (rwk_likely(!ep->srx || !(c->flags & RWK_F_RECV))) {
		complete(ep, c);
		return;
	}
	told = rwk_fi_as_told(&ep->side[RWK_FI_RX], c);
	complete(ep, &told);
}

/* An atomic that fetches counts as a read, as at its initiator. */
void rwk_fi_reached(void *owner, const struct rwk_reached *r)
{
	struct rwk_fi_ep *ep = owner;
	struct rwk_fi_cntr *cntr =
		ep->cntr[r->access & RWK_REGION_READ ? RWK_FI_REMOTE_READS : RWK_FI_REMOTE_WRITES];

	if (cntr)
		rwk_fi_cntr_count(cntr, false);
}

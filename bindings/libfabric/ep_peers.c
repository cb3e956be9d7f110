/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom an endpoint has talked to: the engine's peers by fi_addr_t. */
#include "bindings/libfabric/ep.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* Makes `peers` as large as the address vector's table. Fresh memory from calloc: what is not used is not touched. */
static int grow_peers(struct rwk_fi_ep *ep)
{
	size_t room = ep->av->table.counts->room;
	struct rwk_peer **peers = calloc(room, sizeof(*peers));

	if (!peers)
		return -FI_ENOMEM;
	if (ep->peers)
		memcpy(peers, ep->peers, ep->peer_room * sizeof(*peers));
	free(ep->peers);
	ep->peers = peers;
	ep->peer_room = room;
	return 0;
}

int rwk_fi_ep_know(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer *peer)
{
	int err = number < ep->peer_room ? 0 : grow_peers(ep);

	if (err)
		return err;
	if (rwk_peer_user(peer) == FI_ADDR_NOTAVAIL) /* else it has another of its addresses */
		rwk_peer_set_user(peer, rwk_fi_av_user(ep->av, number));
	ep->peers[number] = peer;
	return 0;
}

rwk_noinline int rwk_fi_ep_meet_whole(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer **peer)
{
	const struct rwk_address *a;
	struct rwk_address found;

	number = rwk_fi_av_whole(ep->av, number);
	*peer = rwk_fi_ep_known(ep, number);
	if (*peer)
		return 0;
	a = rwk_fi_av_address(ep->av, number, &found);
	if (!a) {
		rwk_warn("fi_addr %#llx is not in the address vector", (unsigned long long)number);
		return -FI_EINVAL;
	}
	*peer = rwk_engine_peer(ep->engine, a);
	return *peer ? rwk_fi_ep_know(ep, number, *peer) : -FI_ENOMEM;
}

/* What stands for a receive context is the engine's to find: it is asked for with each send. */
rwk_noinline int rwk_fi_ep_meet(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer **peer)
{
	unsigned room = rwk_fi_av_context(ep->av, number);
	int err = rwk_fi_ep_meet_whole(ep, number, peer);

	if (err || !room)
		return err;
	if (room >= RWK_ROOMS) {
		rwk_warn("fi_addr %#llx names receive context %u; an endpoint has %d at most",
			(unsigned long long)number, room, RWK_ROOMS);
		return -FI_EINVAL;
	}
	*peer = rwk_peer_room(*peer, room);
	return *peer ? 0 : -FI_ENOMEM;
}

void rwk_fi_ep_merged(void *owner, struct rwk_peer *old, struct rwk_peer *peer)
{
	struct rwk_fi_ep *ep = owner;

	for (size_t i = 0; i < ep->peer_room; i++) {
		if (ep->peers[i] == old)
			ep->peers[i] = peer;
	}
	if (rwk_peer_user(peer) == FI_ADDR_NOTAVAIL)
		rwk_peer_set_user(peer, rwk_peer_user(old));
}

/* What stands for a peer when the number that did has gone: another, of another of its addresses. */
static uint64_t other_user(const struct rwk_fi_ep *ep, const struct rwk_peer *peer)
{
	for (size_t i = 0; i < ep->peer_room && rwk_peer_has_merged(peer); i++) {
		if (ep->peers[i] == peer)
			return rwk_fi_av_user(ep->av, i);
	}
	return FI_ADDR_NOTAVAIL;
}

void rwk_fi_ep_forget(struct rwk_fi_ep *ep, fi_addr_t number)
{
	struct rwk_peer *peer = number < ep->peer_room ? ep->peers[number] : NULL;

	if (!peer)
		return;
	ep->peers[number] = NULL;
	if (rwk_peer_user(peer) == rwk_fi_av_user(ep->av, number))
		rwk_peer_set_user(peer, other_user(ep, peer));
}

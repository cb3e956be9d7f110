/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/peer.h"

#include "base/log.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/peer_entry.h"
#include "engine/foreign.h"

#include <stdlib.h>

/* The engine's offers, under our lock and with the owner's consent. */

static int offer(void *owner, const struct rwk_offer *m, struct rwk_given *g)
{
	struct rwk_fi_ep *ep = owner;
	struct fid_peer_srx *srx = ep->peer_srx->srx;
	struct fi_peer_rx_entry *entry = NULL;
	struct rwk_fi_receive *r;
	int err = rwk_fi_entry_get(srx, m, rwk_fi_source(ep, m->from), &entry);

	if (err && err != -FI_ENOENT)
		return err;
	g->handle = entry;
	if (err)
		return -ENOENT;
	r = rwk_fi_entry_receive(entry);
	if (r->count > RWK_ENGINE_IOV_MAX) {
		rwk_fi_entry_free(srx, entry);
		return -EINVAL;
	}
	g->iov = r->iov;
	g->count = r->count;
	g->flags = RWK_FI_ENTRY;
	return 0;
}

static int hold(void *owner, void *handle, struct rwk_unexpected *u)
{
	struct rwk_fi_ep *ep = owner;
	struct fid_peer_srx *srx = ep->peer_srx->srx;
	struct rwk_offer m;
	int err;

	rwk_held_offer(u, &m);
	rwk_fi_entry_receive(handle)->peer_context = u;
	rwk_fi_entry_tell_data(handle, &m);
	err = rwk_fi_entry_queue(srx, m.space, handle);
	if (err) {
		rwk_info("the owner of the receives cannot queue a message: %s", fi_strerror(-err));
		rwk_fi_entry_free(srx, handle);
	}
	return err;
}

static void forget(void *owner, void *handle)
{
	struct rwk_fi_ep *ep = owner;

	rwk_fi_entry_free(ep->peer_srx->srx, handle);
}

static const struct rwk_foreign foreign = {.offer = offer, .hold = hold, .forget = forget};

void rwk_fi_peer_received(struct rwk_fi_ep *ep, const struct rwk_completion *c)
{
	struct fi_peer_rx_entry *entry = c->context;
	const struct rwk_fi_receive *r = rwk_fi_entry_receive(entry);
	const struct rwk_fi_side *rx = &ep->side[RWK_FI_RX];
	struct rwk_completion shown = *c;

	shown.context = r->context;
	shown.buffer = r->count ? r->iov[0].iov_base : NULL;
	shown.flags &= ~(uint32_t)RWK_FI_ENTRY;
	if (rx->selective && !(r->flags & FI_COMPLETION))
		shown.flags |= RWK_FI_QUIET;
	rwk_fi_count(ep->cntr, &shown);
	if (rwk_fi_wants_entry(rx->cq, &shown))
		rwk_fi_put_entry(
			rx->cq, &shown, ep->want_source && c->peer ? rwk_fi_source(ep, c->peer) : FI_ADDR_NOTAVAIL);
	rwk_fi_entry_free(ep->peer_srx->srx, entry);
}

/* The owner's calls. */

static int start(struct fi_peer_rx_entry *entry)
{
	struct rwk_fi_receive *r = rwk_fi_entry_receive(entry);
	struct rwk_unexpected *u = r->peer_context;
	struct rwk_fi_ep *ep = rwk_held_owner(u);
	const struct rwk_given g = {.handle = entry, .iov = r->iov, .count = r->count, .flags = RWK_FI_ENTRY};
	int err;

	rwk_fi_enter(&ep->lock);
	err = rwk_engine_start(u, &g);
	rwk_fi_leave(&ep->lock);
	return err;
}

static int discard(struct fi_peer_rx_entry *entry)
{
	struct rwk_unexpected *u = rwk_fi_entry_receive(entry)->peer_context;
	struct rwk_fi_ep *ep = rwk_held_owner(u);

	rwk_fi_enter(&ep->lock);
	rwk_engine_drop(u);
	rwk_fi_leave(&ep->lock);
	return 0;
}

/*
 * Whose messages the owner asks about, an endpoint of that vector; it may be closed meanwhile. The owner may ask about
 * those of other providers, too.
 */
static _Thread_local struct rwk_fi_av *told;
static _Thread_local struct rwk_fi_ep *asked;

static bool holds(const struct rwk_unexpected *u)
{
	for (uint32_t i = 0; i < told->ep_count; i++) {
		if (told->eps[i] == asked)
			return asked->engine && rwk_engine_holds(asked->engine, u);
	}
	return false;
}

static fi_addr_t number_of(struct fi_peer_rx_entry *entry)
{
	const struct rwk_unexpected *u = rwk_fi_entry_receive(entry)->peer_context;
	fi_addr_t number = FI_ADDR_UNSPEC;
	struct rwk_offer m;

	rwk_fi_domain_stop(told->domain);
	if (u && holds(u)) {
		rwk_held_offer(u, &m);
		number = rwk_fi_source(asked, m.from);
	}
	rwk_fi_domain_go(told->domain);
	return number;
}

void rwk_fi_peer_told(struct rwk_fi_av *av)
{
	for (uint32_t i = 0;; i++) {
		struct fid_peer_srx *owners = NULL;
		bool last;

		rwk_fi_domain_stop(av->domain);
		last = i >= av->ep_count;
		told = av;
		asked = last ? NULL : av->eps[i];
		if (asked && asked->peer_srx && holds(NULL))
			owners = asked->peer_srx->srx;
		rwk_fi_domain_go(av->domain);
		if (last)
			return;
		if (owners)
			rwk_fi_entry_ask_unknown(owners, number_of);
	}
}

static const struct fi_ops_srx_peer peer_ops = {
	.size = sizeof(peer_ops),
	.start_msg = start,
	.start_tag = start,
	.discard_msg = discard,
	.discard_tag = discard,
};

static int srx_close(struct fid *fid)
{
	struct rwk_fi_peer_srx *srx = rwk_fi_peer_srx_of(fid);

	if (rwk_fi_is_inherited(srx->domain->process))
		return 0;
	if (rwk_fi_busy(&srx->refs))
		return -FI_EBUSY;
	rwk_fi_drop(&srx->domain->refs);
	free(srx);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = srx_close,
	.bind = rwk_fi_no_bind,
	.control = rwk_fi_no_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

struct rwk_fi_peer_srx *rwk_fi_peer_srx_of(struct fid *fid)
{
	return fid->ops == &fid_ops ? rwk_container_of(fid, struct rwk_fi_peer_srx, fid.fid) : NULL;
}

int rwk_fi_peer_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **fid, void *context)
{
	const struct fi_peer_srx_context *c = context;
	struct rwk_fi_peer_srx *srx;
	int err;

	(void)attr;
	if (!rwk_fi_peer_known()) {
		rwk_warn("fi_srx_context: receives of other providers are known of libfabric 1.17 and 2, not of %u.%u",
			FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
		return -FI_ENOSYS;
	}
	if (!c || c->size < sizeof(*c) || !c->srx || !rwk_fi_entry_owner_is_whole(c->srx)) {
		rwk_warn("fi_srx_context: with FI_PEER the context is a struct fi_peer_srx_context with the owner's "
			 "calls");
		return -FI_EINVAL;
	}
	err = rwk_fi_unite(&rwk_fi_domain_of(domain)->groups);
	if (err)
		return err;
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	srx->srx = c->srx;
	srx->srx->peer_ops = (struct fi_ops_srx_peer *)&peer_ops;
	srx->domain = rwk_fi_domain_of(domain);
	rwk_fi_hold(&srx->domain->refs);
	srx->fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->fid.fid.ops = (struct fi_ops *)&fid_ops;
	srx->fid.ops = (struct fi_ops_ep *)&rwk_fi_no_ep_ops; /* all is posted at the owner */
	srx->fid.msg = (struct fi_ops_msg *)&rwk_fi_absent_msg_ops;
	srx->fid.tagged = (struct fi_ops_tagged *)&rwk_fi_absent_tagged_ops;
	*fid = &srx->fid;
	return 0;
}

int rwk_fi_peer_srx_bind(struct rwk_fi_ep *ep, struct rwk_fi_peer_srx *srx, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (ep->peer_srx || srx->domain != ep->domain) {
		rwk_warn("fi_ep_bind: %s", ep->peer_srx ? "the endpoint has a shared receive context"
							: "the shared receive context is another domain's");
		return -FI_EINVAL;
	}
	ep->peer_srx = srx;
	rwk_fi_hold(&srx->refs);
	return 0;
}

void rwk_fi_peer_srx_enable(struct rwk_fi_ep *ep)
{
	rwk_engine_set_foreign(ep->engine, &foreign);
}

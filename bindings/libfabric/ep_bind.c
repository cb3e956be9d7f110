/* SPDX-License-Identifier: BSD-3-Clause */
/* What is bound to an endpoint, and what its calls tell the engine because of it. */
#include "bindings/libfabric/ep.h"

#include "base/log.h"
#include "bindings/libfabric/peer.h"
#include "bindings/libfabric/scalable.h"
#include "engine/rma.h"

static int bind_av(struct rwk_fi_ep *ep, struct rwk_fi_av *av, uint64_t flags)
{
	int err = rwk_fi_check_av(ep->av, ep->domain, av, flags);

	if (err)
		return err;
	err = av->shared ? rwk_fi_tie(&ep->domain->groups, &ep->member, &av->member) : 0;
	if (err)
		return err;
	rwk_fi_domain_stop(ep->domain);
	err = rwk_fi_av_attach(av, ep);
	rwk_fi_domain_go(ep->domain);
	if (!err)
		ep->av = av;
	return err;
}

int rwk_fi_ep_bind_cq(struct rwk_fi_ep *ep, struct rwk_fi_cq *cq, uint64_t flags)
{
	int err = cq->domain == ep->domain ? rwk_fi_tie(&ep->domain->groups, &ep->member, &cq->member) : 0;

	return err ? err : rwk_fi_bind_cq(ep->side, ep->domain, cq, flags);
}

#define CNTR_FLAGS ((uint64_t)(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))

/* A counter may come after fi_enable, too: Sandia OpenSHMEM does so. */
int rwk_fi_ep_bind_cntr(struct rwk_fi_ep *ep, struct rwk_fi_cntr *cntr, uint64_t flags)
{
	int err = rwk_fi_check_cntr(ep->cntr, ep->domain, cntr, flags, CNTR_FLAGS);

	if (!err)
		err = rwk_fi_tie(&ep->domain->groups, &ep->member, &cntr->member);
	if (err)
		return err;
	rwk_fi_enter(&ep->lock);
	for (int k = 0; k < RWK_FI_COUNTED; k++) {
		if (!rwk_fi_counts(flags, k))
			continue;
		err = ep->engine ? rwk_fi_wait_attach(&cntr->wait, ep->engine) : 0;
		if (err)
			break;
		ep->cntr[k] = cntr;
		rwk_fi_hold(&cntr->refs);
	}
	rwk_fi_ep_set_flags(ep);
	rwk_fi_leave(&ep->lock);
	return err;
}

static int bind_srx(struct rwk_fi_ep *ep, struct rwk_fi_srx *srx, uint64_t flags)
{
	int err;

	if (flags)
		return -FI_EBADFLAGS;
	if (ep->srx || ep->peer_srx || !srx || srx->domain != ep->domain) {
		rwk_warn("fi_ep_bind: %s", ep->srx || ep->peer_srx ? "the endpoint has a shared receive context"
						   : "the shared receive context is not of this domain");
		return -FI_EINVAL;
	}
	err = rwk_fi_tie(&ep->domain->groups, &ep->member, &srx->member);
	if (err)
		return err;
	rwk_fi_enter(&ep->lock);
	ep->srx = srx;
	rwk_list_append(&srx->eps, &ep->of_srx);
	rwk_fi_leave(&ep->lock);
	return 0;
}

/*
 * A shared transmit context may come after fi_enable, too, and is not held then: Sandia OpenSHMEM binds one to an
 * endpoint that has long been enabled, and closes it before the endpoint.
 */
static int bind_stx(struct rwk_fi_ep *ep, struct rwk_fi_stx *stx, uint64_t flags)
{
	struct rwk_fi_stx *bound = ep->stx;
	int err = rwk_fi_bind_stx(ep->engine ? &bound : &ep->stx, ep->domain, stx, flags);

	if (!err && ep->engine)
		rwk_fi_drop(&stx->refs);
	return err;
}

int rwk_fi_ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_ep *ep = rwk_container_of(fid, struct rwk_fi_ep, fid.fid);

	if (ep->engine && other->fclass != FI_CLASS_CNTR && other->fclass != FI_CLASS_STX_CTX) {
		rwk_warn("fi_ep_bind: the endpoint is enabled; only counters and shared transmit contexts can be bound "
			 "now");
		return -FI_EOPBADSTATE;
	}
	switch (other->fclass) {
	case FI_CLASS_AV:
		return bind_av(ep, rwk_container_of(other, struct rwk_fi_av, fid.fid), flags);
	case FI_CLASS_CQ:
		return rwk_fi_ep_bind_cq(ep, rwk_container_of(other, struct rwk_fi_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return rwk_fi_ep_bind_cntr(ep, rwk_container_of(other, struct rwk_fi_cntr, fid.fid), flags);
	case FI_CLASS_EQ:
		return rwk_fi_bind_eq(&ep->eq, rwk_container_of(other, struct rwk_fi_eq, fid.fid), flags);
	case FI_CLASS_SRX_CTX:
		if (rwk_fi_peer_srx_of(other))
			return ep->srx ? -FI_EINVAL : rwk_fi_peer_srx_bind(ep, rwk_fi_peer_srx_of(other), flags);
		return bind_srx(ep, rwk_fi_srx_of(other), flags);
	case FI_CLASS_STX_CTX:
		return bind_stx(ep, rwk_container_of(other, struct rwk_fi_stx, fid.fid), flags);
	default:
		rwk_warn("fi_ep_bind: an object of class %zu; there are address vectors, queues, counters and shared "
			 "contexts",
			other->fclass);
		return -FI_EINVAL;
	}
}

/* Where the engine may write by itself, because nobody has to be told; or NULL. */
static struct rwk_completions *queue_alone(struct rwk_fi_cq *cq, const struct rwk_fi_cntr *cntr)
{
	return cq && !cq->owner && !cntr ? &cq->done : NULL;
}

/* Engine flags of the calls without flags of their own, from what is bound and from the default flags in the info. */
void rwk_fi_ep_set_flags(struct rwk_fi_ep *ep)
{
	const struct rwk_fi_side *tx = &ep->side[RWK_FI_TX], *rx = &ep->side[RWK_FI_RX];
	uint64_t tx_flags = ep->op_flags[RWK_FI_TX], rx_flags = ep->op_flags[RWK_FI_RX];
	/* With a counter the engine has to tell of every send; without one, of those that want an entry or fail. */
	uint32_t silent = RWK_FI_QUIET | (ep->cntr[RWK_FI_SENDS] ? 0 : RWK_F_SILENT);
	uint32_t told = ep->cntr[RWK_FI_READS] || ep->cntr[RWK_FI_WRITES] ? RWK_FI_TOLD : 0;
	/* Whether a shared receive wants an entry is known when it completes: then it has to be asked of. */
	bool rx_asked = ep->srx && rx->selective;
	uint32_t send, recv = ep->room_flag;

	ep->sendmsg_level = rwk_fi_send_level(tx_flags);
	send = ep->room_flag | ep->sendmsg_level | (tx_flags & FI_INJECT ? RWK_F_INJECT : 0);
	if (!tx->cq || (tx->selective && !(tx_flags & FI_COMPLETION)))
		send |= silent;
	if (!rx->cq || (rx->selective && !(rx_flags & FI_COMPLETION)))
		recv |= RWK_FI_QUIET;
	for (enum rwk_space s = 0; s < RWK_SPACES; s++) {
		ep->send_flags[s] = rwk_space_flag(s) | send;
		ep->inject_flags[s] = rwk_space_flag(s) | ep->room_flag | RWK_F_INJECT | RWK_FI_INJECTED | silent;
		ep->recv_flags[s] = rwk_space_flag(s) | recv;
	}
	if (rx_flags & FI_MULTI_RECV)
		ep->recv_flags[RWK_PLAIN] |= RWK_F_MULTI;
	for (int asked = 0; asked < 2; asked++) {
		ep->sendmsg_flags[asked] = ep->room_flag | (!tx->cq || (tx->selective && !asked) ? silent : 0);
		ep->recvmsg_flags[asked] = ep->room_flag | (!rx->cq || (rx->selective && !asked) ? RWK_FI_QUIET : 0);
		ep->rmamsg_flags[asked] = ep->room_flag | (ep->sendmsg_flags[asked] & RWK_FI_QUIET) | told;
	}
	ep->read_flags = ep->rmamsg_flags[!!(tx_flags & FI_COMPLETION)];
	ep->write_flags = ep->read_flags | (tx_flags & FI_INJECT ? RWK_F_INJECT : 0);
	if (ep->sep)
		rwk_fi_sep_want_reached(ep->sep);
	/* A counter has to be told of each completion, a scalable endpoint of all. */
	if (!ep->engine || ep->sep)
		return;
	rwk_engine_want_reached(ep->engine, rwk_fi_ep_counts_remote(ep));
	rwk_engine_set_queues(ep->engine, queue_alone(tx->cq, ep->cntr[RWK_FI_SENDS]),
		rx_asked ? NULL : queue_alone(rx->cq, ep->cntr[RWK_FI_RECEIVES]), ep->want_source);
}

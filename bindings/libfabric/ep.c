/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/deferred.h"

#include "base/log.h"
#include "base/param.h"
#include "bindings/libfabric/absent_calls.h"
#include "bindings/libfabric/address.h"
#include "bindings/libfabric/alias.h"
#include "bindings/libfabric/info.h"
#include "bindings/libfabric/mr.h"
#include "bindings/libfabric/peer.h"
#include "engine/rma.h"

#include <rdma/fi_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INJECT_WAIT 1000000000 /* ns, in which a peer that is in MPI, too, has answered (fi_ropewalk.7) */
#define FAREWELL    60000      /* ms, in which a receiver that computes for long should have come by */

static struct rwk_fi_ep *ep_of(struct fid *fid)
{
	return rwk_container_of(fid, struct rwk_fi_ep, fid.fid);
}

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

void rwk_fi_ep_forget(struct rwk_fi_ep *ep, fi_addr_t number)
{
	struct rwk_peer *peer = number < ep->peer_room ? ep->peers[number] : NULL;

	if (!peer)
		return;
	ep->peers[number] = NULL;
	if (rwk_peer_user(peer) == rwk_fi_av_user(ep->av, number))
		rwk_peer_set_user(peer, FI_ADDR_NOTAVAIL);
}

static int bind_av(struct rwk_fi_ep *ep, struct rwk_fi_av *av, uint64_t flags)
{
	int err;

	if (flags)
		return -FI_EBADFLAGS;
	if (ep->av || av->domain != ep->domain) {
		rwk_warn("fi_ep_bind: %s",
			ep->av ? "the endpoint has an address vector" : "the address vector is another domain's");
		return -FI_EINVAL;
	}
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

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct rwk_fi_ep *ep = ep_of(fid);

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
	/* A counter has to be told of each completion, a scalable endpoint of all. */
	if (!ep->engine || ep->sep)
		return;
	rwk_engine_want_reached(ep->engine, ep->cntr[RWK_FI_REMOTE_READS] || ep->cntr[RWK_FI_REMOTE_WRITES]);
	rwk_engine_set_queues(ep->engine, queue_alone(tx->cq, ep->cntr[RWK_FI_SENDS]),
		rx_asked ? NULL : queue_alone(rx->cq, ep->cntr[RWK_FI_RECEIVES]), ep->want_source);
}

/* What fi_enable cannot do without. */
static int check_bound(const struct rwk_fi_ep *ep)
{
	if (!ep->av) {
		rwk_warn("fi_enable: no address vector is bound to the endpoint");
		return -FI_ENOAV;
	}
	if ((ep->shares_rx && !ep->srx) || (ep->shares_tx && !ep->stx)) {
		rwk_warn("fi_enable: the endpoint was opened for a shared %s context, and none is bound",
			ep->shares_rx && !ep->srx ? "receive" : "transmit");
		return -FI_EOPBADSTATE;
	}
	return rwk_fi_check_bound(ep->side, ep->cntr, ep->caps);
}

int rwk_fi_engine_attach(struct rwk_fi_domain *domain, struct rwk_engine *engine)
{
	int err = rwk_fi_mr_attach(domain, engine);

	return err ? err : rwk_fi_works_attach(&domain->works, engine);
}

void rwk_fi_engine_detach(struct rwk_fi_domain *domain, struct rwk_engine *engine)
{
	rwk_fi_mr_detach(domain, engine);
	rwk_fi_works_detach(&domain->works, engine);
}

int rwk_fi_ep_attach(struct rwk_fi_ep *ep)
{
	int err = 0;

	for (int s = 0; s < RWK_FI_SIDES && !err; s++) {
		if (ep->side[s].cq)
			err = rwk_fi_wait_attach(&ep->side[s].cq->wait, ep->engine);
	}
	for (int k = 0; k < RWK_FI_COUNTED && !err; k++) {
		if (ep->cntr[k])
			err = rwk_fi_wait_attach(&ep->cntr[k]->wait, ep->engine);
	}
	return err;
}

void rwk_fi_ep_detach(struct rwk_fi_ep *ep)
{
	for (int s = 0; s < RWK_FI_SIDES; s++) {
		if (ep->side[s].cq)
			rwk_fi_wait_detach(&ep->side[s].cq->wait, ep->engine);
	}
	for (int k = 0; k < RWK_FI_COUNTED; k++) {
		if (ep->cntr[k])
			rwk_fi_wait_detach(&ep->cntr[k]->wait, ep->engine);
	}
}

static int attach_all(struct rwk_fi_ep *ep)
{
	/* Who owns the receives says when a message may be offered, and a thread of ours does not ask. */
	int err = ep->peer_srx ? 0 : rwk_fi_group_attach(&ep->domain->groups, &ep->member, ep->engine);

	if (!err)
		err = rwk_fi_engine_attach(ep->domain, ep->engine);
	return err ? err : rwk_fi_ep_attach(ep);
}

static void detach_all(struct rwk_fi_ep *ep)
{
	if (!ep->peer_srx)
		rwk_fi_group_detach(&ep->member, ep->engine);
	rwk_fi_engine_detach(ep->domain, ep->engine);
	rwk_fi_ep_detach(ep);
}

int rwk_fi_engine_open(struct rwk_fi_domain *domain, const struct rwk_address *source, uint64_t caps, size_t tx_size,
	struct rwk_engine_attr *attr, struct rwk_engine **engine)
{
	static const unsigned char any[16] = {[10] = 0xff, [11] = 0xff};

	attr->port = rwk_address_port(source);
	/* MPI's Isends must not wait for one another: each has a request, which is limit enough. */
	attr->tx_limit = SIZE_MAX;
	attr->inject_limit = attr->rma_limit = tx_size;
	attr->inject_wait = INJECT_WAIT;
	attr->regions = caps & (FI_REMOTE_READ | FI_REMOTE_WRITE) ? domain->regions : NULL;
	if (source->version_srq && memcmp(source->ip, any, sizeof(any)))
		memcpy(attr->ip, source->ip, sizeof(attr->ip));
	return rwk_engine_open(attr, engine);
}

static int open_engine(struct rwk_fi_ep *ep, struct rwk_engine **engine)
{
	struct rwk_engine_attr attr = {
		.complete = rwk_fi_complete,
		.owner = ep,
		.inbox = ep->srx ? ep->srx->inbox : NULL,
		.multi_min = ep->multi_min,
		.reached = rwk_fi_reached,
		.again = rwk_fi_work_again,
	};

	return rwk_fi_engine_open(ep->domain, &ep->source, ep->caps, ep->tx_size, &attr, engine);
}

static int ep_enable(struct rwk_fi_ep *ep)
{
	bool shared = ep->srx || ep->peer_srx;
	int err = check_bound(ep);

	if (err)
		return err;
	if (ep->engine) {
		rwk_warn("fi_enable: the endpoint is enabled already");
		return -FI_EOPBADSTATE;
	}
	rwk_fi_enter(&ep->lock);
	err = open_engine(ep, &ep->engine);
	if (err)
		goto unlock;
	ep->inbox = rwk_engine_inbox(ep->engine);
	err = attach_all(ep);
	if (err)
		goto close_engine;
	rwk_fi_ep_set_flags(ep);
	ep->fid.msg = (struct fi_ops_msg *)(shared ? &rwk_fi_msg_send_ops : &rwk_fi_msg_ops);
	ep->fid.tagged = (struct fi_ops_tagged *)(shared ? &rwk_fi_tagged_send_ops : &rwk_fi_tagged_ops);
	if (ep->peer_srx)
		rwk_fi_peer_srx_enable(ep);
	rwk_fi_leave(&ep->lock);
	return 0;

close_engine:
	detach_all(ep);
	rwk_engine_close(ep->engine);
	ep->engine = NULL;
	ep->inbox = NULL;
unlock:
	rwk_fi_leave(&ep->lock);
	return err;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct rwk_fi_ep *ep = ep_of(fid);

	if (command == FI_ALIAS)
		return rwk_fi_alias_open(&ep->fid, &ep->aliases, &rwk_fi_rdm, ep->op_flags, arg);
	return command == FI_ENABLE ? ep_enable(ep) : -FI_ENOSYS;
}

/* A line of its own, if there was any: most programs do nothing of that kind. */
static void print_rma(const char *name, const struct rwk_engine_counters *c)
{
	if (!c->reads && !c->writes && !c->atomics)
		return;
	fprintf(stderr,
		"ropewalk: %s: of others' memory read %llu times, %llu bytes; written %llu times, %llu bytes; changed by "
		"%llu atomics, %llu bytes\n",
		name, (unsigned long long)c->reads, (unsigned long long)c->read_bytes, (unsigned long long)c->writes,
		(unsigned long long)c->written_bytes, (unsigned long long)c->atomics,
		(unsigned long long)c->atomic_bytes);
}

/* FI_ROPEWALK_STATS. */
static void print_stats(const struct rwk_engine *engine)
{
	const struct rwk_engine_counters *c = rwk_engine_counters(engine);
	char name[128];

	rwk_fi_address_show(rwk_engine_address(engine), name, sizeof(name));
	fprintf(stderr,
		"ropewalk: %s: sent %llu messages, %llu bytes (%llu eager, %llu rendezvous, %llu of these for want of "
		"credit and %llu of those sent late); received %llu, %llu bytes (%llu unexpected, at most "
		"%llu bytes of them at once); %llu peers failed\n",
		name, (unsigned long long)(c->sent_eager + c->sent_rendezvous), (unsigned long long)c->sent_bytes,
		(unsigned long long)c->sent_eager, (unsigned long long)c->sent_rendezvous,
		(unsigned long long)c->credits_waited, (unsigned long long)c->sent_late,
		(unsigned long long)c->received, (unsigned long long)c->received_bytes,
		(unsigned long long)c->unexpected, (unsigned long long)c->unexpected_bytes_peak,
		(unsigned long long)c->failed_peers);
	print_rma(name, c);
}

struct debt {
	const struct rwk_engine *engine;
	size_t owed;
};

static bool owes_less(const void *arg)
{
	const struct debt *d = arg;

	return rwk_engine_owes(d->engine) < d->owed;
}

/*
 * Nobody waits for what was injected, and the endpoint may be closed before its peer has answered at all: MPI_Finalize
 * of MPICH does so. It waits here, and moves on what there is, for as long as one message leaves within FAREWELL.
 */
static void pay_debts(struct rwk_engine *engine, const struct rwk_fi_guard *lock)
{
	struct debt d = {engine, rwk_engine_owes(engine)};
	struct rwk_fi_wait w;
	int err;

	if (!d.owed || rwk_fi_wait_open(&w, FI_WAIT_FD, "fi_close"))
		return;
	err = rwk_fi_wait_attach(&w, engine);
	while (!err && d.owed) {
		err = rwk_fi_wait_for(&w, lock, FAREWELL, owes_less, &d);
		d.owed = rwk_engine_owes(engine);
	}
	if (err)
		rwk_warn("fi_close: %zu messages are lost, sent by inject; for %d s their receivers, who live, have "
			 "taken none",
			d.owed, FAREWELL / 1000);
	rwk_fi_wait_close(&w);
}

void rwk_fi_engine_finish(struct rwk_engine *engine, const struct rwk_fi_guard *lock)
{
	pay_debts(engine, lock);
	if (rwk_params.stats)
		print_stats(engine);
}

void rwk_fi_engine_close(struct rwk_fi_domain *domain, struct rwk_engine *engine)
{
	while (rwk_engine_linger(engine))
		rwk_fi_groups_drive(&domain->groups);
	rwk_engine_close(engine);
}

static void finish(struct rwk_fi_ep *ep)
{
	rwk_fi_enter(&ep->lock);
	rwk_fi_engine_finish(ep->engine, &ep->lock);
	rwk_fi_leave(&ep->lock);
}

/* From now on nobody tells it of removals: before its engine and its peers are gone. */
static void leave_av(struct rwk_fi_ep *ep)
{
	if (!ep->av)
		return;
	rwk_fi_domain_stop(ep->domain);
	rwk_fi_av_detach(ep->av, ep);
	rwk_fi_domain_go(ep->domain);
}

static int ep_close(struct fid *fid)
{
	struct rwk_fi_ep *ep = ep_of(fid);

	if (rwk_fi_busy(&ep->mrs)) {
		rwk_warn("fi_close: regions are bound to the endpoint; they must be closed first");
		return -FI_EBUSY;
	}
	if (rwk_fi_busy(&ep->aliases)) {
		rwk_warn("fi_close: the endpoint has aliases; they must be closed first");
		return -FI_EBUSY;
	}
	if (ep->engine)
		finish(ep);
	leave_av(ep);
	rwk_fi_enter(&ep->lock);
	if (ep->engine) {
		detach_all(ep);
		rwk_engine_leave(ep->engine);
		rwk_fi_work_drop(ep);
	}
	rwk_list_remove(&ep->of_srx);
	if (ep->stx)
		rwk_fi_drop(&ep->stx->refs);
	rwk_fi_unbind(ep->side, ep->cntr, ep->eq);
	if (ep->peer_srx)
		rwk_fi_drop(&ep->peer_srx->refs);
	rwk_fi_leave(&ep->lock);
	rwk_fi_part(&ep->domain->groups, &ep->member);
	if (ep->engine)
		rwk_fi_engine_close(ep->domain, ep->engine);
	rwk_fi_drop(&ep->domain->refs);
	free(ep->peers);
	free(ep);
	return 0;
}

/* A context has receives or sends; those of others are none of its business. */
static int cancel(struct rwk_fi_ep *ep, void *context)
{
	if (!ep->sep)
		return rwk_engine_cancel(ep->engine, context);
	return ep->inbox ? rwk_inbox_cancel(ep->inbox, context) : rwk_engine_cancel_send(ep->engine, context);
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct rwk_fi_ep *ep = ep_of(fid);
	ssize_t err;

	if (!ep->engine)
		return -FI_EOPBADSTATE;
	rwk_fi_enter(&ep->lock);
	err = cancel(ep, context);
	if (err == -FI_ENOENT)
		err = rwk_fi_work_cancel_operation(ep, context);
	rwk_fi_leave(&ep->lock);
	return err;
}

int rwk_fi_get_multi_min(size_t bytes, int level, int name, void *value, size_t *len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = bytes;
	*len = sizeof(size_t);
	return 0;
}

int rwk_fi_set_multi_min(size_t *bytes, int level, int name, const void *value, size_t len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) {
		rwk_info("fi_setopt: there is no option %d of level %d, there is FI_OPT_MIN_MULTI_RECV", name, level);
		return -FI_ENOPROTOOPT;
	}
	if (len != sizeof(size_t))
		return -FI_EINVAL;
	*bytes = *(const size_t *)value;
	return 0;
}

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	return rwk_fi_get_multi_min(ep_of(fid)->multi_min, level, name, value, len);
}

/* With a shared receive context that has the option; the endpoint has no receives. */
static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct rwk_fi_ep *ep = ep_of(fid);
	size_t bytes;
	int err = rwk_fi_set_multi_min(&bytes, level, name, value, len);

	if (err)
		return err;
	rwk_fi_enter(&ep->lock);
	ep->multi_min = bytes;
	if (ep->inbox && !ep->srx)
		rwk_inbox_set_multi_min(ep->inbox, ep->multi_min);
	rwk_fi_leave(&ep->lock);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = rwk_fi_no_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

const struct fi_ops_ep rwk_fi_ep_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops_ep, tx_size_left),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = rwk_fi_no_tx_ctx,
	.rx_ctx = rwk_fi_no_rx_ctx,
	.rx_size_left = rwk_fi_no_size_left,
	.tx_size_left = rwk_fi_no_size_left,
};

/* Takes what matters from the info; an attribute that is not there has the default. */
static int take_info(struct rwk_fi_ep *ep, const struct fi_info *info)
{
	uint32_t format = info->addr_format ? info->addr_format : ep->domain->addr_format;

	if (rwk_fi_address_size(format) != rwk_fi_address_size(ep->domain->addr_format)) {
		rwk_warn("fi_endpoint: the info's address format is not the domain's");
		return -FI_EINVAL;
	}
	ep->caps = rwk_fi_complete_caps(&rwk_fi_rdm, info->caps);
	ep->shares_rx = info->ep_attr && info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->shares_tx = info->ep_attr && info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->want_source = ep->caps & FI_SOURCE;
	ep->undirected = ep->caps & FI_DIRECTED_RECV ? 0 : FI_ADDR_UNSPEC;
	ep->tx_size = info->tx_attr && info->tx_attr->size ? info->tx_attr->size : rwk_fi_rdm.tx_size;
	ep->op_flags[RWK_FI_TX] = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->op_flags[RWK_FI_RX] = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->multi_min = RWK_FI_MULTI_MIN;
	if (info->src_addr && info->src_addrlen >= rwk_fi_address_size(format))
		return rwk_fi_address_read(format, info->src_addr, &ep->source);
	return 0;
}

int rwk_fi_ep_make(struct rwk_fi_domain *domain, const struct fi_info *info, void *context, struct rwk_fi_ep **made)
{
	struct rwk_fi_ep *ep;
	int err;

	ep = aligned_alloc(RWK_CACHE_LINE, (sizeof(*ep) + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1));
	if (!ep)
		return -FI_ENOMEM;
	memset(ep, 0, sizeof(*ep));
	ep->domain = domain;
	err = take_info(ep, info);
	if (!err)
		err = rwk_fi_join(&domain->groups, &ep->member, &ep->lock);
	if (err) {
		free(ep);
		return err;
	}
	rwk_list_init(&ep->stalled);
	rwk_list_init(&ep->of_srx);
	rwk_fi_hold(&ep->domain->refs);
	ep->fid.fid.context = context;
	ep->fid.ops = (struct fi_ops_ep *)&rwk_fi_ep_ops;
	ep->fid.cm = (struct fi_ops_cm *)&rwk_fi_cm_ops;
	ep->fid.msg = (struct fi_ops_msg *)&rwk_fi_no_msg_ops;
	ep->fid.tagged = (struct fi_ops_tagged *)&rwk_fi_no_tagged_ops;
	ep->fid.rma = (struct fi_ops_rma *)&rwk_fi_rma_ops;
	ep->fid.atomic = (struct fi_ops_atomic *)&rwk_fi_atomic_ops;
	ep->fid.collective = (struct fi_ops_collective *)&rwk_fi_no_collective_ops;
	*made = ep;
	return 0;
}

int rwk_fi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **fid, void *context)
{
	struct rwk_fi_ep *ep;
	int err = rwk_fi_ep_make(rwk_fi_domain_of(domain), info, context, &ep);

	if (err)
		return err;
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	*fid = &ep->fid;
	return 0;
}

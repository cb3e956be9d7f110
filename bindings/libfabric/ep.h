/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint: an engine with libfabric's face; or a context of a scalable endpoint, several of which have one engine
 * (scalable.h). ep.c opens, enables and closes it, ep_bind.c binds to it, ep_peers.c finds its peers, completion.c turns
 * the engine's completions into queue entries and counts, message.c, tagged.c, rma.c and atomic.c are the calls that
 * move data.
 *
 * Peers: `peers` is indexed by fi_addr_t and filled on first use, so that a send finds its peer with one load. An
 * address that nobody has talked to costs 8 untouched bytes here.
 */
#ifndef RWK_FI_EP_H
#define RWK_FI_EP_H

#include "bindings/libfabric/av.h"
#include "bindings/libfabric/bound.h"
#include "bindings/libfabric/disabled.h"
#include "bindings/libfabric/shared.h"
#include "engine/engine.h"
#include "engine/region.h"

#include <rdma/fi_endpoint.h>

struct rwk_fi_sep;

struct rwk_fi_ep {
	struct fid_ep fid;
	/* What each send and receive reads. */
	struct rwk_engine *engine; /* NULL until enabled */
	struct rwk_inbox *inbox;   /* the engine's, or that of a context */
	struct rwk_fi_guard lock;
	struct rwk_peer **peers;
	size_t peer_room;
	uint32_t send_flags[RWK_SPACES]; /* of calls that have no flags of their own: RWK_F_*, RWK_FI_* */
	uint32_t inject_flags[RWK_SPACES];
	uint32_t recv_flags[RWK_SPACES];
	uint32_t sendmsg_flags[2]; /* of calls with flags: without and with FI_COMPLETION */
	uint32_t recvmsg_flags[2];
	uint32_t sendmsg_level; /* RWK_F_MATCHED, _DELIVERED, _ARRIVED: of calls with flags that name no level */
	fi_addr_t undirected; /* or-ed to a receive's source: all ones, so that it is FI_ADDR_UNSPEC, without
				 FI_DIRECTED_RECV */
	/* What completions by call read. */
	struct rwk_fi_side side[RWK_FI_SIDES];
	struct rwk_fi_cntr *cntr[RWK_FI_COUNTED]; /* each may be NULL; one may be there for several */
	struct rwk_fi_av *av;
	bool want_source; /* FI_SOURCE */
	/* What reads and writes read besides: as send_flags and sendmsg_flags. */
	uint32_t read_flags, write_flags; /* of atomics: those that fetch, and those that do not */
	uint32_t rmamsg_flags[2];
	uint64_t caps; /* of info, tx_attr and rx_attr together */
	uint32_t room_flag; /* of all its operations: which context it is; 0: none, or the first */
	/* The rest. */
	struct rwk_fi_sep *sep;  /* whose context it is, or NULL */
	struct rwk_fi_srx *srx;  /* where its receives are; NULL: in an inbox of its own */
	struct rwk_list of_srx;  /* rwk_fi_srx.eps */
	struct rwk_fi_member member;
	struct rwk_fi_stx *stx;  /* or NULL */
	bool shares_rx, shares_tx; /* opened for such contexts: it is not enabled without */
	struct rwk_fi_eq *eq;
	struct rwk_fi_peer_srx *peer_srx; /* another provider's receives (peer.h), or NULL */
	struct rwk_fi_domain *domain;
	struct rwk_address source; /* to bind to: IP and port, as far as asked for */
	uint64_t op_flags[RWK_FI_SIDES];
	struct rwk_list stalled; /* works that could not begin yet (deferred.h) */
	size_t tx_size;
	size_t multi_min;
	atomic_uint mrs; /* registrations bound to it */
	atomic_uint aliases;
};
_Static_assert(sizeof(struct fid_ep) == 80 && offsetof(struct rwk_fi_ep, side) <= 3 * RWK_CACHE_LINE,
	"a send reads the second and third cache line");

static inline struct rwk_fi_ep *rwk_fi_ep_of(struct fid_ep *fid)
{
	return rwk_container_of(fid, struct rwk_fi_ep, fid);
}

/** RWK_REGION_*: what peers do here that it counts. */
static inline unsigned rwk_fi_ep_counts_remote(const struct rwk_fi_ep *ep)
{
	return (ep->cntr[RWK_FI_REMOTE_READS] ? RWK_REGION_READ : 0) |
	       (ep->cntr[RWK_FI_REMOTE_WRITES] ? RWK_REGION_WRITE : 0);
}

/** Flags of inject calls of reads and writes; as any from RWK_F_USER on they keep completions out of the queue. */
static inline uint32_t rwk_fi_rma_inject(const struct rwk_fi_ep *ep)
{
	return ep->room_flag | RWK_F_INJECT | RWK_FI_INJECTED | RWK_FI_QUIET;
}

int rwk_fi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

/* What endpoints and contexts of scalable ones have in common. */
/** An endpoint that is not enabled; its calls to close, bind and enable are for the caller to fill in. */
int rwk_fi_ep_make(struct rwk_fi_domain *domain, const struct fi_info *info, void *context, struct rwk_fi_ep **ep);
/** fi_ep_bind, and that of queues and of counters alone. */
int rwk_fi_ep_bind(struct fid *fid, struct fid *other, uint64_t flags);
int rwk_fi_ep_bind_cq(struct rwk_fi_ep *ep, struct rwk_fi_cq *cq, uint64_t flags);
int rwk_fi_ep_bind_cntr(struct rwk_fi_ep *ep, struct rwk_fi_cntr *cntr, uint64_t flags);
/**
 * The queues and counters that are bound drive the engine, or not any more. Under the lock. 0; negative errno, and all
 * is as it was: contexts that have the same engine may share some of them.
 */
int rwk_fi_ep_attach(struct rwk_fi_ep *ep);
void rwk_fi_ep_detach(struct rwk_fi_ep *ep);
extern const struct fi_ops_ep rwk_fi_ep_ops;

/** The engine's flag for the level of completion that libfabric's flags name; 0: none, or when the buffer is free. */
uint32_t rwk_fi_send_level(uint64_t flags);
/** Works out send_flags, the engine's queues and the like from what is bound and the endpoint's default flags. */
void rwk_fi_ep_set_flags(struct rwk_fi_ep *ep);

/* ep_peers.c */
/** A number has left the address vector. */
void rwk_fi_ep_forget(struct rwk_fi_ep *ep, fi_addr_t number);

/** The slow half of rwk_fi_ep_peer: makes the peer. 0; -FI_EINVAL: no such address; -FI_ENOMEM. */
int rwk_fi_ep_meet(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer **peer);

/** The same of rwk_fi_ep_whole. */
int rwk_fi_ep_meet_whole(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer **peer);

/** The peer of an address that has been used before; NULL: rwk_fi_ep_peer may find it. */
static inline struct rwk_peer *rwk_fi_ep_known(const struct rwk_fi_ep *ep, fi_addr_t number)
{
	return rwk_likely(number < ep->peer_room) ? ep->peers[number] : NULL;
}

/** Whom a send to that address goes to: 0 and *peer set, or as rwk_fi_ep_meet. */
static inline int rwk_fi_ep_peer(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer **peer)
{
	*peer = rwk_fi_ep_known(ep, number);
	return rwk_likely(*peer != NULL) ? 0 : rwk_fi_ep_meet(ep, number, peer);
}

/** The peer itself, whichever of its receive contexts the address names: all but sends are to do with that. */
static inline int rwk_fi_ep_whole(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer **peer)
{
	*peer = rwk_fi_ep_known(ep, number);
	return rwk_likely(*peer != NULL) ? 0 : rwk_fi_ep_meet_whole(ep, number, peer);
}

/**
 * Remembers that `peer` is the one of that number: 0 or -FI_ENOMEM. What comes from it is told of by the first of its
 * numbers, as long as that is in the address vector.
 */
int rwk_fi_ep_know(struct rwk_fi_ep *ep, fi_addr_t number, struct rwk_peer *peer);

/** The engine's upcall (rwk_engine_attr.merged); `owner` is the endpoint. */
void rwk_fi_ep_merged(void *owner, struct rwk_peer *old, struct rwk_peer *peer);

/** The number of who sent something, or FI_ADDR_NOTAVAIL. In completion.c. */
fi_addr_t rwk_fi_source(struct rwk_fi_ep *ep, struct rwk_peer *peer);

/** Bytes left at which a multi-receive buffer is released, unless FI_OPT_MIN_MULTI_RECV says. */
#define RWK_FI_MULTI_MIN 64

/** FI_OPT_MIN_MULTI_RECV, the one option: as fi_getopt and fi_setopt; set: 0 and *bytes set. */
int rwk_fi_get_multi_min(size_t bytes, int level, int name, void *value, size_t *len);
int rwk_fi_set_multi_min(size_t *bytes, int level, int name, const void *value, size_t len);

/** The engine's upcalls, in completion.c; `owner` is the endpoint. */
void rwk_fi_complete(void *owner, const struct rwk_completion *c);
void rwk_fi_reached(void *owner, const struct rwk_reached *r);

/* Tables of calls: those of an enabled endpoint, and those of one that has no receives of its own, or no sends. */
extern const struct fi_ops_msg rwk_fi_msg_ops, rwk_fi_msg_send_ops, rwk_fi_msg_recv_ops;
extern const struct fi_ops_tagged rwk_fi_tagged_ops, rwk_fi_tagged_send_ops, rwk_fi_tagged_recv_ops;
extern const struct fi_ops_rma rwk_fi_rma_ops; /* they look for themselves whether they may */
extern const struct fi_ops_atomic rwk_fi_atomic_ops;
extern const struct fi_ops_cm rwk_fi_cm_ops;

#endif

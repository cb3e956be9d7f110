/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine's files share.
 *
 *   peer.c        who the peers are, contact, death
 *   directory.c   peers by nonce, and by place
 *   merge.c       two peers that turn out to be one process
 *   send.c        from a send call to a message on a channel
 *   inbox.c       where receives and messages wait for one another; one an engine, or one for several
 *   room.c        several inboxes of one engine, and peers as their rooms are named
 *   receive.c     from a receive call to a posted receive or a waiting message; peek, claim, cancel
 *   inbound.c     from a message on a channel to a completed receive
 *   foreign.c     receives that another provider owns
 *   guest.c       receives that another provider is given
 *   rendezvous.c  messages that wait at the sender until the receiver reads them
 *   late.c        short ones among them, sent after all when there is credit
 *   credit.c      how much of what nobody has asked for a peer may have here
 *   self.c        messages to oneself
 *   rma.c and the like  one-sided operations, see rma_state.h
 *   engine.c      the endpoint itself
 *
 * A message travels in one of two ways. Eager: its payload goes along with the envelope, against credit. Rendezvous: an
 * RTS goes in its place in the order of messages, the receiver reads the exposed buffer when it has matched it, and
 * answers FIN. A send without credit becomes a rendezvous, so that what unreceived messages cost at the receiver is
 * bounded, while the envelopes are always drained and matched: no legal order of receives can deadlock. An eager send
 * whose completion waits for the receiver (RWK_F_DELIVERED, RWK_F_MATCHED) is of a kind of its own, which is answered
 * like an RTS.
 */
#ifndef RWK_ENGINE_INTERNAL_H
#define RWK_ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/foreign.h"
#include "engine/guest.h"
#include "engine/match.h"
#include "engine/status.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/copy.h"
#include "base/hash_table.h"
#include "base/iov.h"
#include "base/keyed.h"
#include "base/log.h"
#include "base/param.h"
#include "base/pool.h"
#include "base/spares.h"
#include "selection/selection.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/** Kinds of messages on a channel (rwk_envelope.kind). */
enum rwk_kind {
	/* payload: the message. RWK_TAGGED and RWK_PLAIN are 0 and 1: what rwk_port_attr.awaited counts */
	RWK_EAGER_TAGGED = RWK_TAGGED,
	RWK_EAGER_PLAIN = RWK_PLAIN,
	RWK_RTS_TAGGED = RWK_SPACES + RWK_TAGGED, /* payload: struct rwk_rts; small: RWK_RTS_*, and four times its
						     room */
	RWK_RTS_PLAIN = RWK_SPACES + RWK_PLAIN,
	RWK_FIN,    /* tag: the RTS's id; small: positive errno of the read, 0 if it went well */
	RWK_CREDIT, /* tag: bytes of credit that the receiver gives back; data: see late.c */
	RWK_LATE,   /* tag: the RTS's id; payload: the message */
	/* One-sided operations, see rma_state.h. Of the first four: tag: address, data: key; flags: RWK_RMA_* */
	RWK_RMA_CHECK,   /* payload: the length of a range, a word; small: the access that pieces behind this need */
	RWK_RMA_WRITE,   /* payload: the bytes */
	RWK_RMA_READ,    /* payload: how many bytes, a word */
	RWK_RMA_ATOMIC,  /* small: operation and type; payload: operands, comparands */
	RWK_RMA_TELL,    /* data: for the completion of the write before it; tag: the room that has that; small: not 0:
			    it was given up */
	RWK_RMA_DATA,    /* tag: the piece; payload: what it has fetched */
	RWK_RMA_REFUSED, /* tag: the piece; small: positive errno */
	RWK_RMA_DONE,    /* tag: all pieces before that */
	/* The first is a piece, the others, whose tag is the region's key, are not. See rma_direct.c. */
	RWK_RMA_ACCESSED, /* data, tag: for a completion, as of TELL, if small is not 0; payload: what was done directly
			     */
	RWK_RMA_IMPORT,   /* how is that reached? */
	RWK_RMA_EXPORT,   /* payload: thus; small: positive errno */
	RWK_RMA_REVOKE,   /* not any more */
	RWK_ROOM_TAGGED,  /* as RWK_EAGER_*, for the room in small */
	RWK_ROOM_PLAIN,
	RWK_TOLD_TAGGED, /* as RWK_EAGER_*; small: the index of its sender, who is told; flags: of what */
	RWK_TOLD_PLAIN,
	RWK_DELIVERED, /* tag: that index; small: positive errno, 0 if it went well */
	RWK_KINDS,
};

#define RWK_TOLD_MATCHED 1u /* in flags: the sender is told when it is matched, not when it is here */

#define RWK_RTS_LATE  1u /* its payload may come late */
#define RWK_RTS_SHORT 2u /* it would have gone eagerly, had there been credit */

/** The envelope's head of an eager message sent with these flags. */
static inline uint64_t rwk_eager_head(uint32_t flags)
{
	_Static_assert(RWK_TAGGED == 0 && RWK_PLAIN == 1 && RWK_F_PLAIN == 1 << 1 && RWK_F_DATA == 1 << 17 &&
			       RWK_ENV_DATA == 1 << 7,
		"kind and flags are two shifts away");
	return (flags >> 1 & 1) | (flags >> 2 & (uint32_t)RWK_ENV_DATA << 8);
}

/** The other way: RWK_F_DATA if the message brings data. */
static inline uint32_t rwk_data_flag(const struct rwk_envelope *env)
{
	return (uint32_t)(env->flags & RWK_ENV_DATA) << 10;
}

#define RWK_F_TOLD (RWK_F_DELIVERED | RWK_F_MATCHED) /* levels whose completion waits for the receiver */

/** That, and one of RWK_F_TOLD if its sender is to be told. */
static inline uint32_t rwk_came(const struct rwk_envelope *env)
{
	if (env->kind != RWK_TOLD_TAGGED && env->kind != RWK_TOLD_PLAIN)
		return rwk_data_flag(env);
	return rwk_data_flag(env) | (env->flags & RWK_TOLD_MATCHED ? RWK_F_MATCHED : RWK_F_DELIVERED);
}

/** Payload of an RTS: 40 bytes, so that it fits a ring line beside the envelope and its data. */
struct rwk_rts {
	uint64_t id;         /* the sender's, comes back in FIN */
	struct rwk_rkey key; /* of an empty message all zero */
};
_Static_assert(sizeof(struct rwk_rts) == 40, "an RTS fits one ring line");

/** The message's length. */
static inline uint64_t rwk_rts_length(const struct rwk_rts *rts)
{
	return rwk_rkey_length(&rts->key);
}

/** What an eager message costs beside its payload: the receiver's bookkeeping for one that nobody has asked for. */
#define RWK_MESSAGE_COST 64

/** Another endpoint. The first line is all that the send path reads. */
struct rwk_peer {
	struct rwk_channel *channel; /* NULL until first contact */
	int (*send)(struct rwk_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len);
	size_t eager_limit; /* shorter payloads may go eagerly; 0 for peers without a working channel: the fast path
			       lets them alone */
	int64_t credit;    /* bytes that may still be sent eagerly */
	size_t owed;       /* bytes of credit to give back */
	uint32_t owed_limit; /* give back from here on */
	uint32_t more;       /* bytes of credit that it was given beyond eager_credit; see credit.c */
	uint64_t user;     /* the binding's */
	int error;         /* 0, or negative errno: the peer is dead or cannot be reached */
	bool self;
	uint8_t room;          /* it stands for that room of `of` */
	bool late_wanted : 1;  /* the peer's last CREDIT has named one of late_out */
	bool late_asked : 1;   /* our last CREDIT has named one of late_in */
	bool here : 1;         /* directory.c: on this node, whichever of its IPs was named */
	bool fenced : 1;       /* a fenced one-sided request waits: what comes behind it waits too; eager_limit is 0 */
	bool has_merged : 1;   /* others are `of` it, and no rooms */
	bool chosen : 1;       /* selection's choice is in the status page, or counted there */

	struct rwk_list sends;    /* rwk_tx.link: sends under way */
	struct rwk_list reads;    /* rwk_rx.link: receives that read a rendezvous, or whose pieces are coming */
	struct rwk_list in_list;  /* rwk_engine.failed: its channel waits to be disconnected */
	struct rwk_list late_out; /* rwk_tx.late: short sends that wait for credit, in order */
	struct rwk_list late_in;  /* rwk_unexpected.late: such of the peer's, in order */
	struct rwk_rma_state *rma; /* NULL: no one-sided operations so far */
	struct rwk_status_peer *shown; /* NULL: not in the status page */
	struct rwk_engine *engine;
	struct rwk_address address;
	uint64_t contacted; /* when it got its channel; see rwk_clock_now */
	struct rwk_peer *next; /* rwk_engine.all_peers; of one that stands for a room: the next of the same peer */
	struct rwk_peer *rooms; /* what stands for its rooms */
	struct rwk_peer *of;    /* it stands for a room of that peer, or is it by another address (merge.c); NULL: it is
				   one itself */
	struct rwk_hash_link by_nonce, by_place;
};
_Static_assert(offsetof(struct rwk_peer, sends) == RWK_CACHE_LINE, "the send path reads one line of a peer");
_Static_assert(sizeof(struct rwk_peer) == 4 * RWK_CACHE_LINE, "a process may have a peer for each rank");

/** Does a message of that length go with its payload, if there is credit? No: it is announced. */
static inline bool rwk_goes_eagerly(const struct rwk_peer *p, size_t len)
{
	return len < p->eager_limit && (len <= RWK_FETCHED_MIN || !rwk_channel_fetches(p->channel, len));
}

/** Bytes of a block. */
#define RWK_BLOCK 256u
_Static_assert(RWK_ENGINE_IOV_MAX * sizeof(struct iovec) <= RWK_BLOCK, "a block takes an iov");

/** A send that could not be finished in the call that started it, or a message of the engine's own. */
struct rwk_tx {
	struct rwk_op op; /* its message on the channel */
	struct rwk_list link;
	struct rwk_peer *peer;
	void *context;
	uint32_t flags;
	enum rwk_tx_state {
		RWK_TX_EAGER,    /* op is posted; done completes it */
		RWK_TX_RTS,      /* op, the RTS, a LATE or a TOLD, is posted; done and FIN (of a TOLD: DELIVERED, here
				    and below) will come, mostly in this order */
		RWK_TX_FIN,      /* the RTS is out; FIN completes it */
		RWK_TX_ANSWERED, /* FIN has come before done; done completes it */
		RWK_TX_CONTROL,  /* op is a FIN or CREDIT of the engine's; no completion */
		RWK_TX_SELF,     /* waits for a receive of our own */
	} state;
	uint32_t index; /* in rwk_engine.tx_table, while in state RTS, FIN or ANSWERED */
	int answer;     /* FIN's status, in state ANSWERED */
	size_t length;
	struct rwk_list late; /* rwk_peer.late_out; valid while it has an index */
	struct rwk_unexpected *waits; /* in state SELF: what stands for it among the messages that wait */
	struct rwk_rts rts; /* its key all zero: nothing is exposed */
	struct iovec rts_iov;
	uint32_t iov_count;
	const struct iovec *iov; /* &one, or in the block */
	struct iovec one;
	void *block; /* an iov of several, or the payload with RWK_F_INJECT: up to RWK_BLOCK bytes of
			rwk_engine.block_pool, else of rwk_engine.spares; NULL: none */
};

/** Where the payload of a message in pieces goes: to a receive, or to a message that waits. */
struct rwk_incoming {
	struct rwk_place place;
	struct rwk_rx *rx;
	struct rwk_unexpected *unexpected;
	struct rwk_rma_in *rma;
};

/** A posted receive. What a short message touches comes first, in two lines. */
struct rwk_rx {
	struct rwk_posted posted;
	void *context;
	uint32_t flags;
	uint32_t came;      /* from the match on: see rwk_came */
	size_t room;        /* bytes of iov in all */
	int64_t short_room; /* room, for a message that has the short way; -1: several pieces, or RWK_F_MULTI */
	uint32_t iov_count;
	uint32_t children; /* with RWK_F_MULTI: messages that have taken parts of the buffer, each an rx of its own */
	struct rwk_rx *parent; /* the buffer that this is a part of; NULL: none */
	struct iovec iov[RWK_ENGINE_IOV_MAX];

	/* From the match on, unless by the short way. */
	struct rwk_peer *peer;
	size_t length; /* of the message */
	uint64_t tag, data;

	bool retired; /* no longer posted; set while posted with RWK_F_MULTI, and by rwk_rx_retire */
	bool reads;   /* while linked: op does; else pieces are coming */
	int ended;    /* the errno with which it completes once the children are done; with RWK_F_MULTI 0 until then */

	struct rwk_incoming incoming;
	struct rwk_op op; /* reads the rendezvous */
	uint64_t rts_id; /* or that of a TOLD */
	struct rwk_list link; /* rwk_peer.reads */
};
_Static_assert(
	offsetof(struct rwk_rx, context) == RWK_CACHE_LINE && offsetof(struct rwk_rx, iov[1]) == 2 * RWK_CACHE_LINE,
	"a short message touches two lines of its receive");

/** A message that nobody has asked for yet. */
struct rwk_unexpected {
	struct rwk_arrived arrived;
	struct rwk_peer *peer; /* NULL: a guest's */
	size_t length;
	uint64_t data;
	uint32_t came;
	unsigned room;
	enum rwk_space space;
	enum rwk_unexpected_state {
		RWK_U_WHOLE,  /* payload is here */
		RWK_U_COMING, /* its pieces are coming; rx, once matched, gets it at the end */
		RWK_U_RTS,    /* waits at the sender */
		RWK_U_SELF,   /* waits in a send of our own */
		RWK_U_LOST,   /* its payload could not be kept: -ENOMEM, or the sender died */
		RWK_U_GUEST, /* another provider has it (guest.c) */
	} state;
	int error;
	struct rwk_rx *rx;
	bool discard;            /* COMING: dropped at the end */
	bool announced;          /* COMING: an RTS has come before it, which FIN answers at the end */
	void *claimed_by;        /* context of the PEEK with CLAIM */
	struct rwk_list claimed; /* rwk_inbox.claimed; with a foreign owner rwk_engine.to_offer or held; of those that
				    a RWK_F_MULTI buffer has taken, while they are delivered */
	struct rwk_list late;    /* rwk_peer.late_in */
	struct rwk_rts rts;
	struct rwk_tx *tx; /* SELF; NULL: that was cancelled */
	struct rwk_incoming incoming;
	struct iovec iov;
	void *payload; /* up to RWK_BLOCK bytes of rwk_engine.block_pool, else of rwk_engine.spares; NULL: none */
};

/**
 * Where receives and messages wait for one another. What waits in it names the engine that it came by (its peer's), or
 * is a guest's.
 */
struct rwk_inbox {
	struct rwk_matcher *matcher[RWK_SPACES];
	struct rwk_pool rx_pool;
	size_t rx_limit; /* SIZE_MAX: no limit */
	size_t multi_min;
	struct rwk_list claimed; /* rwk_unexpected.claimed */
	struct rwk_list due;     /* of these, what guests are to be told of (guest.c) */
	/* Of receives that end without a message; of all others the engine's. */
	void (*complete)(void *owner, const struct rwk_completion *c);
	void *owner;
};

/** 127.0.0.1, mapped into IPv6. */
extern const uint8_t rwk_engine_loopback[16];

struct rwk_engine {
	/* The fast path's line. */
	struct rwk_matcher *matcher[RWK_SPACES]; /* the inbox's */
	struct rwk_completions *sends, *receives; /* never NULL; see rwk_engine_set_queues */
	struct rwk_port *port;
	const struct rwk_transport *transport;
	struct rwk_inbox *inbox; /* &own_inbox, or one that it shares */
	void (*complete)(void *owner, const struct rwk_completion *c);
	void *owner;
	bool with_user; /* completions in queues need the peer's number */
	uint8_t wants_reached; /* RWK_REGION_*: of these attr.reached is to be called */
	bool due;       /* the lists `failed`, `owing` or `to_offer` are not empty, or `again` is set */
	bool again;     /* attr.again is to be called */
	bool looks;     /* rwk_port_attr.looks */
	bool waits;     /* rwk_port_attr.waits */

	/* The second port, for peers on other nodes; NULL where there are none. */
	const struct rwk_transport *network;
	struct rwk_port *network_port;
	unsigned network_quiet; /* progress calls since something last came by it */
	bool network_fresh;     /* the last call brought something */
	bool left;              /* rwk_engine_leave */
	bool network_used;      /* a peer has come by it */
	uint64_t network_looked; /* ns: when it was looked at last, while it is quiet */
	struct rwk_client client; /* both ports' upcalls; see rwk_inbound_guard */

	struct rwk_pool tx_pool, unexpected_pool;
	struct rwk_pool block_pool; /* of RWK_BLOCK bytes: what only some sends and some waiting messages need */
	struct rwk_spares spares;   /* of more */
	size_t credit_more;         /* rwk_peer.more of all */
	size_t injected;            /* blocks that the payloads of sends with RWK_F_INJECT fill that wait */
	uint64_t sent_before; /* rwk_engine_counters.sent_eager at the last progress */
	uint64_t inject_refused;    /* ns: since when one more is refused and none of them goes; 0: none is */
	struct rwk_inbox own_inbox;
	struct rwk_inbox *rooms[RWK_ROOMS]; /* the first is `inbox`; NULL beyond the last */
	struct rwk_list failed;  /* rwk_peer.in_list */
	struct rwk_list owing;   /* rwk_rma_state.owing */
	struct rwk_pool rma_requests, rma_pieces;
	size_t rma_limit;
	const struct rwk_foreign *foreign; /* NULL: receives are posted here */
	void *offered;            /* the handle of the message that was just offered and is about to be kept */
	struct rwk_list to_offer; /* messages to oneself */
	struct rwk_list held;     /* messages that the owner knows: rwk_unexpected.claimed */

	struct rwk_incoming nowhere; /* takes the bytes of a message in pieces that cannot be kept */
	/* Sends that wait for FIN, by the index that is in their id; free entries are a list through `next`. */
	struct rwk_tx_slot {
		struct rwk_tx *tx;
		uint32_t generation;
		uint32_t next;
	} * tx_table;
	uint32_t tx_table_size, tx_free;

	struct rwk_peer *all_peers;
	struct rwk_hash_table by_nonce, by_place; /* directory.c */
	struct rwk_pool peer_pool; /* given back all at once */
	struct rwk_peer *me;
	struct rwk_engine_attr attr;
	struct rwk_address address;
	struct rwk_sel_explainer explainer;

	int status_fd;    /* -1: nobody sees the page */
	uint64_t process; /* that has opened it */
	struct rwk_peer *listed[RWK_STATUS_PEERS];
	struct rwk_status status; /* at the end of the memory, where it can be seen from outside */
};

#define RWK_TX_NONE UINT32_MAX

/* engine.c */
/** Completes a send by a call of `complete`. */
void rwk_complete_send_call(struct rwk_engine *e, uint32_t flags, void *context, int status);

/** May the completion of an operation with these flags be written into the queue? Else `complete` must be called. */
static inline bool rwk_queue_takes(const struct rwk_completions *q, uint32_t flags)
{
	return rwk_likely(q->tail != q->limit && flags < RWK_F_USER);
}

/** Writes the next entry; the queue takes it. */
static inline struct rwk_completion *rwk_queue_next(struct rwk_completions *q)
{
	return &q->ring[q->tail++ & q->mask];
}

/** May that of a receive of a message of p? */
static inline bool rwk_queue_takes_receive(const struct rwk_engine *e, const struct rwk_peer *p, uint32_t flags)
{
	return rwk_queue_takes(e->receives, flags) && !(p->user == RWK_NO_USER && e->with_user);
}

/** Completes a receive that has gone well by an entry in the queue; the rx is free again. */
static inline void rwk_queue_receive(struct rwk_engine *e, struct rwk_inbox *box, const struct rwk_peer *p,
	struct rwk_rx *rx, uint32_t data_flag, uint64_t tag, uint64_t data, size_t length)
{
	*rwk_queue_next(e->receives) = (struct rwk_completion){
		.context = rx->context,
		.flags = RWK_F_RECV | (rx->flags & (RWK_F_PLAIN | RWK_F_TAGGED)) | data_flag,
		.length = length,
		.data = data,
		.tag = tag,
		.user = p->user,
	};
	rwk_pool_put(&box->rx_pool, rx);
	e->status.counters.received++;
	e->status.counters.received_bytes += length;
}

/** Completes a send that has gone well, as its flags want it. */
static inline void rwk_complete_send(struct rwk_engine *e, uint32_t flags, void *context)
{
	if (flags & RWK_F_SILENT)
		return;
	if (rwk_unlikely(!rwk_queue_takes(e->sends, flags))) {
		rwk_complete_send_call(e, flags, context, 0);
		return;
	}
	*rwk_queue_next(e->sends) = (struct rwk_completion){
		.context = context,
		.flags = (flags & (RWK_F_PLAIN | RWK_F_TAGGED)) | RWK_F_SEND,
	};
}

/* directory.c */
static inline bool rwk_peer_is_partial(const struct rwk_address *a)
{
	return a->flags_rank & RWK_ADDR_PARTIAL;
}
/** An empty directory. */
void rwk_directory_open(struct rwk_engine *e);
void rwk_directory_close(struct rwk_engine *e);
/** The peer is found by its nonce, if that is known, and by its place from now on. */
void rwk_directory_enter(struct rwk_peer *p);
/** A peer that was known by its place alone has this address. */
void rwk_directory_correct(struct rwk_peer *p, const struct rwk_address *a);
/** The peer with that nonce; NULL: there is none. */
struct rwk_peer *rwk_directory_by_nonce(const struct rwk_engine *e, const struct rwk_address *a);
/** The peer that is known by that place alone, or else the latest that is known to be there still; NULL: there is none. */
struct rwk_peer *rwk_directory_by_place(const struct rwk_engine *e, const struct rwk_address *a);
/** Is the address a full one, of an endpoint that can be found on this node? Elsewhere nobody can tell: false. */
bool rwk_directory_finds(const struct rwk_engine *e, const struct rwk_address *a);

/* peer.c */
/** Makes first contact: 0; -EAGAIN: out of memory, and the peer is as before; or its error from now on. */
int rwk_peer_connect(struct rwk_peer *p);
/** The same, unless that was done, or it is we ourselves. */
static inline int rwk_peer_meet(struct rwk_peer *p)
{
	return p->channel || p->error || p->self ? p->error : rwk_peer_connect(p);
}
/** The upcalls of transport.h that are about peers. */
int rwk_peer_connected(void *engine, struct rwk_channel *ch, const struct rwk_address *from);
void rwk_peer_by_stream(void *engine, struct rwk_channel *ch);
void rwk_peer_unshared(void *engine, struct rwk_channel *ch);
void rwk_peer_failed(void *engine, struct rwk_channel *ch, int err);
void rwk_peers_moment(void *engine);
/** A fenced one-sided request to it waits, or none does any more. Until then its sends are told -EAGAIN. */
void rwk_peer_set_fenced(struct rwk_peer *p, bool fenced);
/**
 * We end it ourselves, once (warned of): -EPROTO, it broke the protocol; -ENOMEM, it would wait for ever for what we
 * cannot tell it. From within an upcall too: its channel lasts until the end of the progress, what still comes by it is
 * dropped.
 */
void rwk_peer_give_up(struct rwk_peer *p, int err, const char *why);

/** The status of an op that has ended: of one that was cancelled because we ended the channel, why we did. */
static inline int rwk_peer_status(const struct rwk_peer *p, int status)
{
	return status && p->error ? p->error : status;
}

/** Ends what is under way with peers that have failed. */
void rwk_peers_reap(struct rwk_engine *e);
/** The channel of a peer that is ended waits to be disconnected. */
void rwk_peer_ended(struct rwk_peer *p, int err);
int rwk_peers_open(struct rwk_engine *e);
void rwk_peers_close(struct rwk_engine *e);

/* merge.c */
/** The upcall of transport.h. */
int rwk_peers_merge(void *engine, struct rwk_channel *ch, struct rwk_channel *into);

/* send.c */
/** A tx for a message of the engine's own; NULL when out of memory. */
struct rwk_tx *rwk_tx_get(struct rwk_peer *p, uint32_t flags, void *context);
/** A tx for a send of the user's, with its payload; NULL: at a limit, or out of memory. */
struct rwk_tx *rwk_tx_new(
	struct rwk_peer *p, const struct iovec *iov, size_t count, size_t len, uint32_t flags, void *context);
void rwk_tx_put(struct rwk_tx *tx);
/** Completes a send as its flags want it, and frees it. */
void rwk_tx_complete(struct rwk_tx *tx, int status);
/** Cancels one in state RWK_TX_EAGER: 0, or -ENOENT: too late. In receive.c. */
int rwk_tx_withdraw(struct rwk_tx *tx);
/** Sends a message of the engine's own without payload, now or as soon as there is room. */
void rwk_send_own(struct rwk_peer *p, const struct rwk_envelope *env);
static inline void rwk_send_control(struct rwk_peer *p, enum rwk_kind kind, uint64_t tag, uint16_t small)
{
	const struct rwk_envelope env = {.head = rwk_envelope_head((uint8_t)kind, 0, small), .tag = tag};

	rwk_send_own(p, &env);
}

/* inbound.c */
void rwk_inbound_message(
	void *engine, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len);
struct rwk_place *rwk_inbound_begin(void *engine, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len);
void rwk_inbound_end(void *engine, struct rwk_channel *ch, struct rwk_place *place, int status);
/** Peers that we have ended still have their channels: what begins to come by these is dropped; or they have none. */
void rwk_inbound_guard(struct rwk_engine *e, bool ended);
/**
 * The posted receive for a message of `len` bytes (with RWK_F_MULTI: a part of the buffer, an rx of its own), its peer,
 * tag and the rest filled in; NULL if there is none.
 */
struct rwk_rx *rwk_inbound_match(struct rwk_engine *e, struct rwk_peer *p, unsigned room, enum rwk_space space,
	const struct rwk_envelope *env, size_t len);
/** The same where the receive was found; NULL: no memory for the part, and nothing is changed but the peer given up. */
struct rwk_rx *rwk_inbound_matched(
	struct rwk_engine *e, struct rwk_peer *p, struct rwk_rx *rx, const struct rwk_envelope *env, size_t len);
/**
 * A message of the peer's, which believes that it has come, has no place for want of memory: the peer is given up, or a
 * later message would come in its stead. (One from oneself is refused, not lost.)
 */
void rwk_inbound_no_memory(struct rwk_peer *p);
/** A new waiting message; NULL when out of memory. The caller sets state and payload and keeps it. */
struct rwk_unexpected *rwk_unexpected_new(
	struct rwk_peer *p, unsigned room, enum rwk_space space, const struct rwk_envelope *env, size_t len);
void rwk_unexpected_keep(struct rwk_unexpected *u);
/** Gives it room for its payload; -ENOMEM. Counts it. */
int rwk_unexpected_room(struct rwk_unexpected *u);
void rwk_unexpected_free(struct rwk_unexpected *u);

/* inbox.c */
/** Makes one in that memory; ends it. 0; -ENOMEM. */
int rwk_inbox_begin(struct rwk_inbox *box, const struct rwk_inbox_attr *attr);
void rwk_inbox_end(struct rwk_inbox *box);
/** The engine's ports are closed: what has come by it is dropped, and so are its inboxes, but one that is shared. */
void rwk_inbox_leave(struct rwk_engine *e);

static inline bool rwk_inbox_is_shared(const struct rwk_engine *e)
{
	return e->inbox != &e->own_inbox;
}

/* room.c */
/** The engine's first inbox is there: makes the others. 0; -ENOMEM, then rwk_inbox_leave drops what there is. */
int rwk_rooms_open(struct rwk_engine *e);
/** From now on their receives that end do so by a call of this. */
void rwk_rooms_complete(struct rwk_engine *e, void (*complete)(void *owner, const struct rwk_completion *c));

static inline bool rwk_room_exists(const struct rwk_engine *e, unsigned room)
{
	return room < RWK_ROOMS && e->rooms[room];
}

/** The inbox that a receive is in. */
static inline struct rwk_inbox *rwk_rx_inbox(const struct rwk_engine *e, const struct rwk_rx *rx)
{
	return e->rooms[rwk_room_of(rx->flags)];
}

/* foreign.c; with an owner of receives only */
/** As rwk_inbound_match, of the owner's receives; if it has none, what is to be kept is offered already. */
struct rwk_rx *rwk_foreign_match(
	struct rwk_engine *e, struct rwk_peer *p, enum rwk_space space, const struct rwk_envelope *env, size_t len);
void rwk_foreign_keep(struct rwk_unexpected *u);
/** What was just offered cannot be kept. */
void rwk_foreign_not_kept(struct rwk_engine *e);
/** Offers the messages to oneself. */
void rwk_foreign_self(struct rwk_engine *e);
/** The engine's ports are closed: what is held is dropped. */
void rwk_foreign_leave(struct rwk_engine *e);

/* guest.c */
/** As rwk_rx_deliver and rwk_unexpected_drop, of a message in state RWK_U_GUEST: the guest is to be told. */
void rwk_guest_deliver(struct rwk_rx *rx, struct rwk_unexpected *u);
void rwk_guest_drop(struct rwk_unexpected *u);

/* receive.c */
/** The part of a RWK_F_MULTI buffer for a message of `len` bytes; NULL when out of memory. */
struct rwk_rx *rwk_rx_part(struct rwk_inbox *box, struct rwk_rx *parent, size_t len);
struct rwk_rx *rwk_rx_get(struct rwk_inbox *box);
/** Frees a receive that somebody else has told of; the buffer that it was the last part of ends with it. */
void rwk_rx_release(struct rwk_inbox *box, struct rwk_rx *rx);
/** A receive has been found for a message: what it will have to say of it. */
static inline void rwk_rx_match(struct rwk_rx *rx, struct rwk_peer *p, const struct rwk_envelope *env, size_t len)
{
	rx->peer = p;
	rx->length = len;
	rx->tag = env->tag;
	rx->data = env->data;
	rx->came = rwk_came(env);
	rx->rts_id = env->small;
}
/** Completes a receive whose message is in place (or has failed), and frees it. */
void rwk_rx_complete(struct rwk_engine *e, struct rwk_rx *rx, int status);
/** Gives a waiting message, already taken out of the matcher, to a receive; frees it when that is done. */
void rwk_rx_deliver(struct rwk_rx *rx, struct rwk_unexpected *u);
/** Drops a waiting message that nobody has any more. */
void rwk_unexpected_drop(struct rwk_unexpected *u);
/** Of the message that is coming it gets no more: its memory is the program's again. */
void rwk_rx_cut_off(struct rwk_rx *rx);
/** Takes a posted receive out of the matcher: no more messages for it. With RWK_F_MULTI it ends with its last child. */
void rwk_rx_retire(struct rwk_inbox *box, struct rwk_rx *rx);
/** A retired receive ends with an error, once the messages that it has taken are complete. */
void rwk_rx_end(struct rwk_inbox *box, struct rwk_rx *rx, int status);
/** Receives that are posted may have come to mean `from`: they get what waits of it. */
void rwk_rx_serve(struct rwk_inbox *box, enum rwk_space space, const struct rwk_peer *from);
/** Copies into the receive's buffer as much as fits. */
void rwk_rx_fill(struct rwk_rx *rx, const void *payload, size_t len);

/* rendezvous.c */
/** Sends the RTS of a send whose iov, length and env are set; 0 or negative errno (then the tx is the caller's). */
int rwk_rendezvous_send(struct rwk_tx *tx, unsigned room, enum rwk_space space, uint64_t tag, uint64_t data);
/** An RTS has been matched: reads the payload and answers. */
void rwk_rendezvous_read(struct rwk_rx *rx, const struct rwk_rts *rts);
/** A message that an RTS has announced is dropped, or is whole: lets the sender go. */
void rwk_rendezvous_drop(struct rwk_unexpected *u);
/** The send to that peer which waits for FIN under that id; NULL: none. */
struct rwk_tx *rwk_rendezvous_find(struct rwk_peer *p, uint64_t id);
/** Posts a message of a send in state FIN, in which it is again afterwards, or will be. */
void rwk_rendezvous_post(
	struct rwk_tx *tx, enum rwk_kind kind, const struct iovec *iov, uint32_t iov_count, size_t len);
/**
 * Sends a short message with its payload, for which there is credit; its delivery is answered. 0; -ENOSPC: it has to be
 * announced; or another negative errno (then the tx is the caller's).
 */
int rwk_told_send(struct rwk_tx *tx, enum rwk_space space, uint64_t tag, uint64_t data);
/** A message that has come thus (rwk_came), of the sender with that index, is here or matched, dropped or lost. */
void rwk_told_answer(struct rwk_peer *p, uint32_t came, uint64_t index, int status);
/** FIN and DELIVERED. */
void rwk_rendezvous_fin(struct rwk_peer *p, const struct rwk_envelope *env);
/** Ends one whose peer has died. */
void rwk_rendezvous_abandon(struct rwk_tx *tx);
/**
 * Cancels a send that is announced, or is to be: the peer finds nothing any more. Not if its message is being sent, nor
 * where only the answer is to come.
 */
void rwk_rendezvous_cancel(struct rwk_tx *tx);
/** The same for a receive, unless its read runs; its sender is told. */
void rwk_rendezvous_cancel_read(struct rwk_rx *rx);

/* late.c */
/** The peer's CREDIT has come. */
void rwk_late_credit(struct rwk_peer *p, const struct rwk_envelope *env);
/** Sends what is wanted of late_out and can go. */
void rwk_late_go_on(struct rwk_peer *p);
/** A receive has taken a message that waits at the peer: asks for those behind it, if that was not done. */
void rwk_late_ask(struct rwk_peer *p);
/** A LATE has come, whole or in pieces. begin: the message that gets them; NULL: none. */
void rwk_late_message(struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len);
struct rwk_unexpected *rwk_late_begin(struct rwk_peer *p, const struct rwk_envelope *env, size_t len);

/* credit.c */
/** Gives back the credit that is owed. */
void rwk_credit_send(struct rwk_peer *p);
/** The peer has announced a short message of `len` bytes for lack of credit, and its receive was posted. */
void rwk_credit_more(struct rwk_peer *p, uint64_t len);
/** Gives credit back for a message that has waited for its receive, and burdens the engine no longer. */
void rwk_credit_return_kept(struct rwk_peer *p, size_t len);
/** A peer that has failed has no credit. */
void rwk_credit_forget(struct rwk_peer *p);

/* self.c */
/** Gives a message in state RWK_U_SELF to a receive; completes both. One that was cancelled fails there. */
void rwk_self_receive(struct rwk_rx *rx, struct rwk_unexpected *u);
/** Drops one. */
void rwk_self_drop(struct rwk_unexpected *u);
/** Frees one for which there is no memory where it should wait; its send ends with -ENOMEM. */
void rwk_self_refuse(struct rwk_unexpected *u);
/** Cancels a send in state RWK_TX_SELF: its payload is the program's again, its message keeps its place. */
void rwk_self_cancel(struct rwk_tx *tx);
ssize_t rwk_self_send(struct rwk_engine *e, unsigned room, const struct iovec *iov, size_t count, size_t len,
	uint64_t tag, uint64_t data, uint32_t flags, void *context);

/* rma.c, rma_serve.c */
static inline bool rwk_is_rma(unsigned kind)
{
	return kind >= RWK_RMA_CHECK && kind <= RWK_RMA_REVOKE;
}
/** The upcalls of transport.h for these kinds; begin: NULL when out of memory. */
void rwk_rma_message(struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len);
struct rwk_place *rwk_rma_begin(struct rwk_peer *p, const struct rwk_envelope *env, size_t len);
void rwk_rma_end(struct rwk_peer *p, struct rwk_rma_in *in, int status);
/** Answers the peers that have asked for something in this progress. */
void rwk_rma_tell(struct rwk_engine *e);
/** Ends what is under way with a peer that has failed. */
void rwk_rma_abandon(struct rwk_peer *p);
/** All requests to `p`, of which nothing has gone, are requests to `to`. */
void rwk_rma_move(struct rwk_peer *p, struct rwk_peer *to);
/** Requests of which the user hears nothing more, and answers, that have not gone out. */
size_t rwk_rma_owed(const struct rwk_peer *p);
void rwk_rma_close(struct rwk_peer *p);
/** As rwk_engine_cancel_room, rwk_engine_room_runs. */
void rwk_rma_cancel(struct rwk_rma_state *s, unsigned room);
bool rwk_rma_runs(const struct rwk_rma_state *s, unsigned room);

static inline void rwk_credit_owe(struct rwk_peer *p, size_t bytes)
{
	p->owed += bytes;
	if (rwk_unlikely(p->owed >= p->owed_limit))
		rwk_credit_send(p);
}

/** Gives credit back for a message whose payload no longer burdens the engine. */
static inline void rwk_credit_return(struct rwk_peer *p, size_t len)
{
	rwk_credit_owe(p, len + RWK_MESSAGE_COST);
}

#endif

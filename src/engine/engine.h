/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: messages between endpoints, over whatever channels selection finds. One engine is one endpoint: an
 * address, its peers, its posted receives. The binding is a face on it: it turns libfabric's calls into these and
 * completions into CQ entries. Nothing here knows libfabric.
 *
 *   peer   another endpoint as seen from this one; exists from the first address insert that names it, first message or
 *          first receive directed at it; has a channel from first contact on
 *   space  tagged messages and plain ones match apart
 *   inbox  where receives wait for messages, and messages for receives: an engine's own, or one that several share
 *   room   one of several inboxes of an engine: who sends says to which of them; that of plain sends is the first, 0
 *
 * Threads: the caller holds the endpoint's lock for every call; engines that share an inbox have one lock. Nothing
 * blocks. Completions come through `complete`, from rwk_engine_progress or from within the call that started the
 * operation; what it calls, and `reached`, may start new operations but must not call progress or close.
 */
#ifndef RWK_ENGINE_ENGINE_H
#define RWK_ENGINE_ENGINE_H

#include "transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct rwk_engine;
struct rwk_inbox;
struct rwk_peer;

#define RWK_ENGINE_IOV_MAX 8
#define RWK_INJECT_MAX     4096 /* bytes that inject takes */

#define RWK_ROOMS          8   /* of an engine, at most */

enum rwk_space { RWK_TAGGED, RWK_PLAIN, RWK_SPACES };

/**
 * Flags of operations and of completions. Those that a completion shows have the values of libfabric's FI_*, so that
 * who reads a queue need not translate them; the binding asserts it.
 */
enum {
	RWK_F_PLAIN = 1 << 1,  /* the message is in the plain space, */
	RWK_F_RMA = 1 << 2,    /* completion: not of a message but of a read or write, */
	RWK_F_TAGGED = 1 << 3, /* (the message is in the tagged space) */
	RWK_F_ATOMIC = 1 << 4, /* or of an atomic operation: */
	RWK_F_ROOM = 7 << 5,   /* of a receive its room's number; of others the caller's, as from RWK_F_USER on */
	RWK_F_READ = 1 << 8,   /* one that brought something, */
	RWK_F_WRITE = 1 << 9,  /* one that did not, */
	RWK_F_RECV = 1 << 10,  /* (completion: of a receive, */
	RWK_F_SEND = 1 << 11,  /* or of a send) */
	RWK_F_TO_ROOM = 7 << 10, /* (write with data: the number of the peer's room that hears of it) */
	RWK_F_REMOTE_WRITE = 1 << 13, /* a peer's write with data, with RWK_F_RMA and RWK_F_DATA */
	RWK_F_ARRIVED = 1 << 14, /* send: complete once the message is with the peer, which need not have received it */
	RWK_F_MATCHED = 1 << 15, /* send: complete once the message is in the receiver's buffer, or was dropped */
	RWK_F_MULTI = 1 << 16, /* receive: the buffer takes messages until less than multi_min is left; completion: it
				  is released, with its last message or alone */
	RWK_F_DATA = 1 << 17,  /* send: `data` travels along; completion of a receive: data came */
	RWK_F_SHOWN = RWK_F_PLAIN | RWK_F_TAGGED | RWK_F_RECV | RWK_F_SEND | RWK_F_MULTI | RWK_F_DATA | RWK_F_RMA |
		      RWK_F_ATOMIC | RWK_F_READ | RWK_F_WRITE | RWK_F_REMOTE_WRITE,

	RWK_F_INJECT = 1 << 18,    /* send: the buffer is the caller's again on return */
	RWK_F_SILENT = 1 << 19,    /* send: no completion unless it fails */
	RWK_F_DELIVERED = 1 << 20, /* send: complete once the receiver has the message, whole, be it in a buffer or kept
				      for one that comes */
	RWK_F_PEEK = 1 << 21,      /* receive: report a waiting message, leave it */
	RWK_F_FENCE = 1 << 21,     /* read, write, atomic: begin when all earlier ones to that peer are complete */
	RWK_F_BEHIND = 1 << 22,    /* read, write: others came before whose completions the caller has not looked at */
	RWK_F_CLAIM = 1 << 22,     /* with PEEK: take the message found for `context`; alone: receive the one taken */
	RWK_F_DISCARD = 1 << 23,   /* with PEEK or CLAIM: drop the message */
	RWK_F_USER = 1 << 24,      /* from here on the caller's, handed back to `complete` */
};

/** The flags of a room's receives, and back. */
static inline uint32_t rwk_room_flag(unsigned room)
{
	return room << 5;
}

static inline unsigned rwk_room_of(uint32_t flags)
{
	return (flags & RWK_F_ROOM) >> 5;
}

/** RWK_F_TO_ROOM, and back. */
static inline uint32_t rwk_to_room_flag(unsigned room)
{
	return room << 10;
}

static inline unsigned rwk_to_room_of(uint32_t flags)
{
	return (flags & RWK_F_TO_ROOM) >> 10;
}

/** The flag that says of a message in which space it is, and back. */
static inline uint32_t rwk_space_flag(enum rwk_space space)
{
	return space == RWK_TAGGED ? RWK_F_TAGGED : RWK_F_PLAIN;
}

static inline enum rwk_space rwk_space_of(uint32_t flags)
{
	return flags & RWK_F_PLAIN ? RWK_PLAIN : RWK_TAGGED;
}

/** One finished operation: a cache line. */
struct rwk_completion {
	void *context;  /* the caller's, from the operation */
	uint32_t flags; /* what RWK_F_SHOWN names; in a call of `complete` the operation's RWK_F_ROOM, and from
			   RWK_F_USER on, too */
	int status; /* 0; -EMSGSIZE truncated, -ECANCELED, -ECONNRESET the peer is dead, -ENOMSG nothing to peek at */
	size_t length;         /* of a receive: bytes of the message placed in the buffer (PEEK: of the message) */
	void *buffer;          /* of a receive with RWK_F_MULTI: where this message begins */
	uint64_t data;         /* of a receive with RWK_F_DATA */
	uint64_t tag;          /* of a receive: the message's */
	struct rwk_peer *peer; /* of a receive: who sent it; in a call of `complete` only */
	union {
		uint64_t user;   /* of a receive, in a queue only: rwk_peer_user of who sent it */
		size_t overflow; /* -EMSGSIZE: bytes that did not fit */
	};
};
_Static_assert(sizeof(struct rwk_completion) == 64, "a completion is one cache line");

/**
 * A queue of completions: the owner's memory, written by the engine and read by the owner. Entries from `head` to
 * `tail` wait; entry i is in ring[i & mask].
 */
struct rwk_completions {
	struct rwk_completion *ring; /* mask + 1 entries, a power of two */
	uint64_t head, tail;
	uint64_t limit; /* the engine writes while tail is not limit: beyond it there is no room, or somebody must be
			   told */
	uint64_t mask;
};

struct rwk_regions;
struct rwk_reached;

struct rwk_engine_attr {
	/** Called for each finished operation that does not go into a queue; see rwk_engine_set_queues. */
	void (*complete)(void *owner, const struct rwk_completion *c);
	/**
	 * A peer that was not known has sent something; the binding may attach its own number (rwk_peer_set_user). May
	 * be NULL.
	 */
	void (*new_peer)(void *owner, struct rwk_peer *peer, const struct rwk_address *address);
	/**
	 * A peer that is known by another address has turned out to be `peer`, which takes its place from now on: all
	 * that is under way with it goes on, `old` is not to be named any more. NULL: such a one fails with -EALREADY.
	 */
	void (*merged)(void *owner, struct rwk_peer *old, struct rwk_peer *peer);
	void *owner;
	struct rwk_regions *regions; /* what peers may reach (region.h); NULL: nothing */
	/** A peer has carried out something on a region; for counters. May be NULL. */
	void (*reached)(void *owner, const struct rwk_reached *r);
	/** What rwk_engine_call_again has asked for; it may start operations. May be NULL if nobody asks. */
	void (*again)(void *owner);
	uint8_t ip[16];      /* what to put into the address; zero: the host's own by which others reach it, or
				127.0.0.1 mapped where there is no network */
	uint16_t port;       /* 0: any */
	/** Shared with other engines, the caller's and open until this engine is closed; NULL: one of its own. */
	struct rwk_inbox *inbox;
	unsigned rooms;      /* 2 to RWK_ROOMS: so many, the first is its own inbox; else that is the only one */
	size_t multi_min;    /* bytes; see RWK_F_MULTI. Of its own inbox, and of each room, as rx_limit */
	size_t tx_limit;     /* most sends under way; beyond it -EAGAIN */
	size_t inject_limit; /* of these, most with RWK_F_INJECT: their payload is kept here, and nobody waits for them;
				beyond it -EAGAIN while some of them go, else one more each 10 ms: their receiver may
				wait for that one before it takes the others */
	uint64_t inject_wait; /* nanoseconds: for so long after first contact -EAGAIN in place of keeping it */
	size_t rx_limit;     /* most receives posted; 0: no limit */
	size_t rma_limit;    /* most reads, writes and atomics under way (rma.h); beyond it -EAGAIN; 0: 1024 */
	const struct rwk_transport *const
		*transports; /* for tests: the first of these carries every peer; NULL: selection decides */
};

/**
 * Makes an endpoint: its port on every live transport, its job map read once a process. 0 and *e set; -EADDRINUSE: the
 * port number is taken; -EMFILE, -ENOMEM. Makes system calls, never waits.
 */
int rwk_engine_open(const struct rwk_engine_attr *attr, struct rwk_engine **e);

/**
 * How many messages living peers wait for that nobody here does: what was sent or written with RWK_F_INJECT and has not
 * gone out, the engine's word that a message has come, or was read, or that memory was accessed, and its answers to the
 * peers' reads, writes and atomics. Progress makes it fewer, and so does the death of a peer.
 */
size_t rwk_engine_owes(const struct rwk_engine *e);

/**
 * Ends the endpoint: outstanding operations, and what it owes, are dropped without completions, peers are told.
 * Messages already sent stay readable for their receivers. Of a shared inbox the messages that have come by this engine
 * are dropped, receives that wait stay, and those whose message was on its way into their buffers complete with
 * -ECANCELED, by calls of `complete`; so do those of a foreign owner (foreign.h). What these start at this engine is
 * refused with -ECANCELED. Then it has nothing in common with anybody: linger and close, all that can be done with it,
 * need no lock.
 */
void rwk_engine_leave(struct rwk_engine *e);

/**
 * After leave, again and again: what has been sent to other nodes goes on until the peers have it; asleep for a
 * millisecond at most. False: they have, or it has taken two seconds. In between whoever closes several endpoints at
 * once drives the others: the peers may be closing theirs, and wait for these to answer.
 */
bool rwk_engine_linger(struct rwk_engine *e);

/** Frees it. One that has not been left, or that would linger on, before that. */
void rwk_engine_close(struct rwk_engine *e);

/** This endpoint's address; stays the same until close. */
const struct rwk_address *rwk_engine_address(const struct rwk_engine *e);

/**
 * The peer of that address, made if it does not exist; NULL when out of memory. A partial address (IP and port only)
 * finds the peer that is there, and becomes full when it connects. While nobody knows whether a peer with a full address
 * is there still it is another one, until one of them answers (rwk_engine_attr.merged). No contact is made.
 */
struct rwk_peer *rwk_engine_peer(struct rwk_engine *e, const struct rwk_address *address);

/** What the binding keeps with a peer (its address-vector number); RWK_NO_USER at first. */
#define RWK_NO_USER UINT64_MAX
void rwk_peer_set_user(struct rwk_peer *p, uint64_t user);
uint64_t rwk_peer_user(const struct rwk_peer *p);
const struct rwk_address *rwk_peer_address(const struct rwk_peer *p);
/** Has it taken the place of others (rwk_engine_attr.merged)? */
bool rwk_peer_has_merged(const struct rwk_peer *p);

/**
 * What stands for that peer in sends to one of its rooms, and in nothing else; NULL when out of memory. For room 0 it
 * is the peer. That the peer has no such room its engine finds: a long message ends with -EINVAL, a short
 * one is dropped.
 */
struct rwk_peer *rwk_peer_room(struct rwk_peer *p, unsigned room);

/** Are sends to it under way? */
bool rwk_peer_sending(const struct rwk_peer *p);

/**
 * Sends. `iov` is copied, what it points to is the engine's until completion (or return, with RWK_F_INJECT: length at
 * most RWK_INJECT_MAX). 0: started, one completion will follow (none with RWK_F_SILENT unless it fails); -EAGAIN:
 * tx_limit, inject_limit, inject_wait or out of memory: make progress and try again; -EMSGSIZE: longer than that, or
 * than SIZE_MAX / 2; -ECONNRESET: the peer is dead; -EHOSTUNREACH: no transport reaches it.
 */
ssize_t rwk_engine_send(struct rwk_engine *e, enum rwk_space space, struct rwk_peer *to, const struct iovec *iov,
	size_t count, uint64_t tag, uint64_t data, uint32_t flags, void *context);

/**
 * The same for one buffer: the fast path. The space is in the flags. The arguments are in the order of libfabric's own
 * call, so that the binding passes on where they are what it need not change.
 */
ssize_t rwk_engine_send1(struct rwk_engine *e, const void *buf, size_t len, uint32_t flags, uint64_t data,
	struct rwk_peer *to, uint64_t tag, void *context);

struct rwk_inbox_attr {
	/** Called for each receive that ends without a message: cancelled, or a peek that found none. */
	void (*complete)(void *owner, const struct rwk_completion *c);
	void *owner;
	size_t rx_limit, multi_min; /* as in rwk_engine_attr */
};

/** Makes one for several engines: 0 and *box set; -ENOMEM. */
int rwk_inbox_open(const struct rwk_inbox_attr *attr, struct rwk_inbox **box);

/** Ends it, which no engine has any more; receives that wait are dropped without completions. */
void rwk_inbox_close(struct rwk_inbox *box);

/** The engine's; the same until it is closed. */
struct rwk_inbox *rwk_engine_inbox(struct rwk_engine *e);

/** One of its rooms, below attr.rooms. Its receives have rwk_room_flag. */
struct rwk_inbox *rwk_engine_room(struct rwk_engine *e, unsigned room);

/**
 * Receives: from `from`, or from anyone (NULL, as in a shared inbox always), what has `tag` in the bits not set in
 * `ignore` (tagged space only). 0: a completion will follow (or has: a waiting message completes at once), told of by
 * the engine that the message came by. -EAGAIN: rx_limit, or out of memory. With PEEK, CLAIM, DISCARD as FI_PEEK and
 * the rest (a message claimed is kept with `context` until the CLAIM or DISCARD that names the same one). A PEEK that
 * finds nothing completes with -ENOMSG, or, if no message can come of the peer that it names any more, with that peer's
 * error.
 */
ssize_t rwk_inbox_recv(struct rwk_inbox *box, enum rwk_space space, struct rwk_peer *from, const struct iovec *iov,
	size_t count, uint64_t tag, uint64_t ignore, uint32_t flags, void *context);

/** The same for one buffer: the fast path, as rwk_engine_send1. */
ssize_t rwk_inbox_recv1(struct rwk_inbox *box, void *buf, size_t len, uint32_t flags, struct rwk_peer *from,
	uint64_t tag, uint64_t ignore, void *context);

/** The same for who has an engine. */
static inline ssize_t rwk_engine_recv(struct rwk_engine *e, enum rwk_space space, struct rwk_peer *from,
	const struct iovec *iov, size_t count, uint64_t tag, uint64_t ignore, uint32_t flags, void *context)
{
	return rwk_inbox_recv(rwk_engine_inbox(e), space, from, iov, count, tag, ignore, flags, context);
}

/**
 * Where completions of sends and of receives go if nothing is to be said of them but what an entry holds: straight into
 * these queues, up to their limits. NULL, as at first: `complete` is called for each. With `with_user` it is also
 * called for receives whose sender has no user number yet.
 */
void rwk_engine_set_queues(
	struct rwk_engine *e, struct rwk_completions *sends, struct rwk_completions *receives, bool with_user);

/** Cancels one receive with that context: 0, its completion has -ECANCELED; -ENOENT: none, or too late. */
int rwk_inbox_cancel(struct rwk_inbox *box, void *context);

/** The same for one receive of the engine's own inbox, or not yet started send. */
int rwk_engine_cancel(struct rwk_engine *e, void *context);

/** The same for sends with that RWK_F_ROOM alone. */
int rwk_engine_cancel_send(struct rwk_engine *e, unsigned room, const void *context);

/** Cancels all receives that wait in an inbox. */
void rwk_inbox_cancel_all(struct rwk_inbox *box);

/**
 * Cancels the receives of a room, or the sends, reads, writes and atomics with that RWK_F_ROOM, but for those with
 * RWK_F_INJECT, which rwk_engine_owes counts; what these fetch is dropped. What has begun may be complete (-ECANCELED)
 * only when the peer has answered; but it needs the program's memory no more, except for what runs at this moment: as
 * long as some does, make progress and cancel again, or give up the peers with whom it does.
 */
void rwk_engine_cancel_room(struct rwk_engine *e, unsigned room, bool receives);
bool rwk_engine_room_runs(const struct rwk_engine *e, unsigned room, bool receives);
void rwk_engine_room_give_up(struct rwk_engine *e, unsigned room, bool receives);

/** Are receives of the inbox posted or under way; sends, reads, writes or atomics with that RWK_F_ROOM? */
bool rwk_inbox_receives(const struct rwk_inbox *box);
bool rwk_engine_sends_from(const struct rwk_engine *e, unsigned room);

/** Moves everything that can move; returns how much was done, 0 for an empty poll. Yields the core at times when
 * oversubscribed. */
int rwk_engine_progress(struct rwk_engine *e);
/** The same; `waits`: the caller has nothing else to do, and what he waits for is likely to come in a moment: it is
 * looked for again before this returns in vain. */
int rwk_engine_poll(struct rwk_engine *e, bool waits);
/** The same, for who looks for messages that no receive waits for (RWK_F_PEEK): these may be left where they are
 * otherwise, for some calls. */
void rwk_engine_look(struct rwk_engine *e);

/**
 * The next progress calls `again` at its end, once: for operations that could not start (-EAGAIN) where nobody is there
 * to try anew.
 */
void rwk_engine_call_again(struct rwk_engine *e);

/** To sleep: see rwk_transport.arm. */
int rwk_engine_arm(struct rwk_engine *e);
/** One after the other, as rwk_link_ops.wait_fd; -1: there is no such one. Who sleeps does so on all of them. */
int rwk_engine_wait_fd(struct rwk_engine *e, int i);

void rwk_inbox_set_multi_min(struct rwk_inbox *box, size_t bytes);

/** Event counts since open, for summaries and tests. */
struct rwk_engine_counters {
	uint64_t sent_eager, sent_rendezvous, sent_bytes; /* to others */
	uint64_t received, received_bytes;
	uint64_t unexpected, unexpected_bytes_now, unexpected_bytes_peak;
	uint64_t credits_waited; /* sends that became a rendezvous for want of credit, */
	uint64_t sent_late;      /* and those of them that were sent without being read */
	uint64_t failed_peers;
	uint64_t reads, read_bytes, writes, written_bytes, atomics, atomic_bytes; /* begun, towards others */
};
const struct rwk_engine_counters *rwk_engine_counters(const struct rwk_engine *e);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: messages between endpoints, over whatever channels selection finds. One engine is one endpoint: an
 * address, its peers, its posted receives. The binding is a face on it: it turns libfabric's calls into these and
 * completions into CQ entries. Nothing here knows libfabric.
 *
 *   peer   another endpoint as seen from this one; exists from the first address insert that names it, first message or
 * first receive directed at it; has a channel from first contact on space  tagged messages and plain ones match apart
 *
 * Threads: the caller holds the endpoint's lock for every call. Nothing blocks. Completions come through `complete`,
 * from rwk_engine_progress or from within the call that started the operation; the callee may start new operations but
 * must not call progress or close.
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
struct rwk_peer;

#define RWK_ENGINE_IOV_MAX 8
#define RWK_INJECT_MAX     256 /* bytes that inject takes */

enum rwk_space { RWK_TAGGED, RWK_PLAIN, RWK_SPACES };

/** Flags of operations and of completions. */
enum {
	RWK_F_DATA = 1 << 0,      /* send: `data` travels along; completion of a receive: data came */
	RWK_F_INJECT = 1 << 1,    /* send: the buffer is the caller's again on return */
	RWK_F_SILENT = 1 << 2,    /* no completion unless it fails */
	RWK_F_DELIVERED = 1 << 3, /* send: complete once the message is in the receiver's buffer */
	RWK_F_PEEK = 1 << 4,      /* receive: report a waiting message, leave it */
	RWK_F_CLAIM = 1 << 5,     /* with PEEK: take the message found for `context`; alone: receive the one taken */
	RWK_F_DISCARD = 1 << 6,   /* with PEEK or CLAIM: drop the message */
	RWK_F_MULTI = 1 << 7, /* receive: the buffer takes messages until less than multi_min is left; completion: it is
				 released, with its last message or alone */
	RWK_F_RECV = 1 << 8,  /* completion: of a receive (else of a send) */
	RWK_F_TAGGED = 1 << 9, /* completion: in the tagged space */
	RWK_F_USER = 1 << 16,  /* from here on the caller's, handed back in the completion */
};

/** One finished operation; valid during the call. */
struct rwk_completion {
	void *context;         /* the caller's, from the operation */
	struct rwk_peer *peer; /* of a receive: who sent it */
	size_t length;         /* of a receive: bytes of the message placed in the buffer (PEEK: of the message) */
	uint64_t tag;          /* of a receive: the message's */
	uint64_t data;         /* of a receive with RWK_F_DATA */
	void *buffer;          /* of a receive with RWK_F_MULTI: where this message begins */
	size_t overflow;       /* -EMSGSIZE: bytes that did not fit */
	uint32_t flags; /* RWK_F_DATA, RWK_F_MULTI, RWK_F_RECV, RWK_F_TAGGED and the operation's flags from RWK_F_USER
			   on */
	int status; /* 0; -EMSGSIZE truncated, -ECANCELED, -ECONNRESET the peer is dead, -ENOMSG nothing to peek at, ...
		     */
};

struct rwk_engine_attr {
	/** Called for each finished operation. */
	void (*complete)(void *owner, const struct rwk_completion *c);
	/**
	 * A peer that was not known has sent something; the binding may attach its own number (rwk_peer_set_user). May
	 * be NULL.
	 */
	void (*new_peer)(void *owner, struct rwk_peer *peer, const struct rwk_address *address);
	void *owner;
	uint8_t ip[16];      /* what to put into the address; zero: 127.0.0.1 mapped */
	uint16_t port;       /* 0: any */
	size_t multi_min;    /* bytes; see RWK_F_MULTI */
	size_t tx_limit;     /* most sends under way; beyond it -EAGAIN */
	size_t inject_limit; /* of these, most with RWK_F_INJECT: their payload is kept here, and nobody waits for them
			      */
	size_t rx_limit;     /* most receives posted; 0: no limit */
	const struct rwk_transport *const
		*transports; /* for tests: the first of these carries every peer; NULL: selection decides */
};

/**
 * Makes an endpoint: its port on every live transport, its job map read once a process. 0 and *e set; -EADDRINUSE: the
 * port number is taken; -EMFILE, -ENOMEM. Makes system calls, never waits.
 */
int rwk_engine_open(const struct rwk_engine_attr *attr, struct rwk_engine **e);

/**
 * Ends the endpoint: outstanding operations are dropped without completions, peers are told. Messages already sent stay
 * readable for their receivers. Never waits.
 */
void rwk_engine_close(struct rwk_engine *e);

/** This endpoint's address; stays the same until close. */
const struct rwk_address *rwk_engine_address(const struct rwk_engine *e);

/**
 * The peer of that address, made if it does not exist; NULL when out of memory. A partial address (IP and port only)
 * finds the peer that has connected from there, and becomes full when it connects. No contact is made.
 */
struct rwk_peer *rwk_engine_peer(struct rwk_engine *e, const struct rwk_address *address);

/** What the binding keeps with a peer (its address-vector number); initially UINT64_MAX. */
void rwk_peer_set_user(struct rwk_peer *p, uint64_t user);
uint64_t rwk_peer_user(const struct rwk_peer *p);
const struct rwk_address *rwk_peer_address(const struct rwk_peer *p);

/**
 * Sends. `iov` is copied, what it points to is the engine's until completion (or return, with RWK_F_INJECT: length at
 * most RWK_INJECT_MAX). 0: started, one completion will follow (none with RWK_F_SILENT unless it fails); -EAGAIN: too
 * much under way, make progress and try again; -EMSGSIZE; -ECONNRESET: the peer is dead; -EHOSTUNREACH: no transport
 * reaches it.
 */
ssize_t rwk_engine_send(struct rwk_engine *e, enum rwk_space space, struct rwk_peer *to, const struct iovec *iov,
	size_t count, uint64_t tag, uint64_t data, uint32_t flags, void *context);

/** The same for one buffer: the fast path. */
ssize_t rwk_engine_send1(struct rwk_engine *e, enum rwk_space space, struct rwk_peer *to, const void *buf, size_t len,
	uint64_t tag, uint64_t data, uint32_t flags, void *context);

/**
 * Receives: from `from`, or from anyone (NULL), what has `tag` in the bits not set in `ignore` (tagged space only). 0:
 * a completion will follow (or has: a waiting message completes at once). -EAGAIN: rx_limit. With PEEK, CLAIM, DISCARD
 * as FI_PEEK and the rest (a message claimed is kept with `context` until the CLAIM or DISCARD that names the same
 * one).
 */
ssize_t rwk_engine_recv(struct rwk_engine *e, enum rwk_space space, struct rwk_peer *from, const struct iovec *iov,
	size_t count, uint64_t tag, uint64_t ignore, uint32_t flags, void *context);

/** Cancels one receive or not yet started send with that context: 0, its completion has -ECANCELED; -ENOENT: none, or
 * too late. */
int rwk_engine_cancel(struct rwk_engine *e, void *context);

/** Moves everything that can move; returns how much was done, 0 for an empty poll. Yields the core at times when
 * oversubscribed. */
int rwk_engine_progress(struct rwk_engine *e);

/** To sleep: see rwk_transport.arm. */
int rwk_engine_arm(struct rwk_engine *e);
int rwk_engine_wait_fd(struct rwk_engine *e);

void rwk_engine_set_multi_min(struct rwk_engine *e, size_t bytes);

/** Event counts since open, for summaries and tests. */
struct rwk_engine_counters {
	uint64_t sent, sent_eager, sent_rendezvous, sent_bytes;
	uint64_t received, received_bytes;
	uint64_t unexpected, unexpected_bytes_now, unexpected_bytes_peak;
	uint64_t credits_waited; /* sends that became a rendezvous for want of credit */
	uint64_t failed_peers;
};
const struct rwk_engine_counters *rwk_engine_counters(const struct rwk_engine *e);

#endif

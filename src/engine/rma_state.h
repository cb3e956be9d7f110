/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of one-sided operations share.
 *
 *   region.c       regions and their keys; copies into and out of them
 *   rma.c          calls, which make requests
 *   rma_peer.c     what there is with one peer, as a whole
 *   rma_piece.c    messages, and those that the channel cannot take at once
 *   rma_request.c  the initiator: a request on its way, and its answers
 *   rma_serve.c    the target: from a request to an access, and the answer
 *   rma_met.c      the regions that one request accesses, and who asked to be told
 *   rma_direct.c   long requests that the service carries out by itself
 *   rma_choice.c   whether it should
 *   rma_self.c     what concerns our own memory
 *
 * A request of the user's goes out in pieces, each a message that names one range of one region; at the target they are
 * carried out one after the other as they come. The pieces to one peer are numbered from 0 by the order in which they
 * are sent, which both sides count and nothing carries. Answers come in that order too:
 *
 *   DATA     what piece n has fetched; with RMA_END its last part
 *   REFUSED  piece n was refused, and why; of the pieces of a request that fetch nothing, the first that was
 *   DONE     all pieces before n are done, or refused and nothing is left to tell of it: said once for all that one
 *            progress of the target has brought
 *
 * Each of the first two says as well that all pieces before n are done.
 */
#ifndef RWK_ENGINE_RMA_STATE_H
#define RWK_ENGINE_RMA_STATE_H

#include "engine/internal.h"
#include "engine/rma.h"
#include "engine/rma_choice.h"

#define RWK_RMA_PIECE         ((size_t)64 << 10) /* bytes that one piece moves, at most */
#define RWK_RMA_FETCHING      32u                /* pieces under way to a peer that fetch; */
#define RWK_RMA_FETCHING_LONG 4u                 /* so many of a long request: what answers may take up there */
/*
 * Bytes of answers that may lie with the channel. No peer of ours waits for more than 1 MB of them, but the channel
 * keeps what has come there until that is acknowledged: a window of packets, 2.2 MB at most.
 */
#define RWK_RMA_GIVING        ((size_t)4 << 20)
/*
 * The same of all answers, refusals and words on regions too, each counted with what it takes here: who has more of
 * them asks and never looks. Peers of ours stop at their limit of requests, 65536 at most: a third of this if all are
 * refused, each once, however many pieces it has, and they do not look before the last. (Requests that fetch are
 * refused piece by piece, of which few are under way.)
 */
#define RWK_RMA_ANSWERING     ((size_t)96 << 20)
#define RWK_RMA_POSTED        16u                /* pieces that lie with the channel; the others wait with us */
#define RWK_RMA_LIMIT         1024u              /* requests of an endpoint under way, if the binding does not say */

/* Flags in an envelope, beside RWK_ENV_DATA. */
#define RWK_RMA_END    1u /* the request's last piece; of DATA: the piece's last part */
#define RWK_RMA_RESULT 4u /* of an atomic: answer with what stood there */
/* Of CHECK: the pieces behind it are atomics, with elements of two to this, in bytes; 0 from releases that know nothing
 * of it, and for reads and writes. */
#define RWK_RMA_ELEMENT_SHIFT 4u
#define RWK_RMA_ELEMENT_MASK  7u

/** A region, see region.h. */
struct rwk_region {
	struct rwk_region_attr attr;
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	uint64_t key, length;
	uint64_t serial;          /* unlike the key never that of another one, of this table */
	bool careful;             /* all memory: what is touched may not be mapped */
	struct rwk_regions *table;
	/* Under the table's mutex, since engines come and go in them: */
	struct rwk_list incoming; /* rwk_rma_in.link: writes that are coming in pieces */
	struct rwk_list exports;  /* rwk_rma_export.in_region */
	UT_hash_handle by_key;
};

/* region.c */
/** The region of a key that requests of `e` may name: 0 and *region; -EACCES. */
int rwk_region_find(struct rwk_regions *t, const struct rwk_engine *e, uint64_t key, struct rwk_region **region);
/**
 * May a request of `e` have that access? 0, *region and *at, the offset in it, set; -EACCES.
 */
int rwk_region_check(struct rwk_regions *t, const struct rwk_engine *e, uint64_t key, uint64_t address, size_t len,
	unsigned access, struct rwk_region **region, uint64_t *at);
/** Notes something in one of a region's lists, and the reverse. */
void rwk_region_note(struct rwk_region *r, struct rwk_list *list, struct rwk_list *link);
void rwk_region_unnote(struct rwk_region *r, struct rwk_list *link);
/** Pieces of memory of a range that was checked, at most RWK_ENGINE_IOV_MAX. */
unsigned rwk_region_slice(const struct rwk_region *r, uint64_t at, size_t len, struct iovec *iov);
/** Copies in and out: 0; -EFAULT. A word (rwk_copy_word) goes in one step, but where the kernel copies. */
int rwk_region_store(const struct rwk_region *r, uint64_t at, const void *from, size_t len);
int rwk_region_load(const struct rwk_region *r, uint64_t at, void *to, size_t len);
/** Can that be read, or with `store` written? 0; -EFAULT. */
int rwk_region_usable(const struct rwk_region *r, uint64_t at, size_t len, bool store);

/** How far a request has come: the range that is next, and what of it is done. */
struct rwk_rma_cursor {
	uint32_t range;
	size_t in_range; /* bytes */
};

/** A read, write or atomic of the user's. */
struct rwk_rma_request {
	struct rwk_list link; /* rwk_rma_state.requests */
	struct rwk_rma_state *state;
	void *context;
	uint32_t flags; /* the operation's, and of its completion RWK_F_RMA and the like */
	uint32_t ranges;
	size_t length; /* bytes in all */
	uint64_t data;
	uint64_t first, last; /* pieces */
	size_t copied;        /* bytes at `copy` */
	uint32_t iov_count;
	/* Zero at first, from here to `iov`. */
	uint8_t kind;   /* RWK_RMA_WRITE, _READ, _ATOMIC */
	bool fetches;   /* its pieces are answered with data */
	bool begun;     /* `first` is set */
	bool sent;      /* all pieces are on their way, `last` is set */
	bool direct;    /* the service carries it out: it is no part of the order of the others */
	bool accessed;  /* has done so, and the target is to be told */
	bool tell;      /* that must be */
	bool over;      /* the user knows that it is; what is left of it is the account */
	bool chosen;    /* it is measured, */
	uint8_t way;    /* enum rwk_rma_way: this one */
	bool collides;  /* as rwk_copy_collides, if it is */
	bool compares;
	uint8_t access; /* RWK_REGION_* that it needs */
	uint16_t small; /* of an atomic: operation << 8 | type */
	uint16_t element;
	int status;
	uint32_t posted;    /* pieces that lie with the channel */
	uint32_t checks;    /* its first pieces, that only check a range each */
	uint32_t unchecked; /* of these, to be sent yet */
	uint64_t fetched;              /* the piece behind the last that fetches */
	struct rwk_rma_cursor asking;  /* the next piece */
	struct rwk_rma_cursor answers; /* the piece whose data is coming */
	size_t at;                     /* bytes asked for */
	size_t came, in_piece;         /* of `at`: have come; of these, of the piece that is coming */
	void *copy; /* what is sent, if that is not the user's memory any more; of an atomic: operands, then comparands
		     */
	struct iovec iov[RWK_ENGINE_IOV_MAX]; /* local memory: where from, or for what is fetched where to */
	struct rwk_remote remote[RWK_ENGINE_IOV_MAX];
};

/** Regions that a request has met with. */
struct rwk_rma_met {
	uint32_t count;
	struct {
		uint64_t key, serial;
		size_t bytes;  /* of it that have been accessed, */
		bool accessed; /* if it has been */
	} region[RWK_ENGINE_IOV_MAX];
};

/** A message that the channel could not take at once. */
struct rwk_rma_piece {
	struct rwk_op op;
	struct rwk_rma_state *state;
	struct rwk_rma_request *request; /* NULL: an answer of ours */
	struct rwk_list link;            /* rwk_rma_state.lying; not of a direct request */
	void *bytes;                     /* its payload, if that is the piece's own; NULL: it is not */
	struct iovec iov[RWK_ENGINE_IOV_MAX];
};

/** A request or an answer that comes in pieces of the service's. */
struct rwk_rma_in {
	struct rwk_incoming incoming;
	struct rwk_envelope env;
	size_t length;
	int status;
	void *bytes;               /* where it gathers; NULL: it goes where it belongs at once */
	struct rwk_region *region; /* a write that goes where it belongs; NULL again: that is gone */
	uint64_t at;
	struct rwk_rma_request *request; /* whose data it is; NULL: nobody's */
	struct rwk_list link;            /* rwk_region.incoming */
	struct iovec iov[RWK_ENGINE_IOV_MAX];
};

/** One-sided operations between us and a peer; exists from the first on. */
struct rwk_rma_state {
	struct rwk_peer *peer;
	/* As the initiator. */
	struct rwk_list requests;  /* under way, in the order of calls */
	struct rwk_list *unsent;   /* of these the first that is not sent; the list itself: none */
	uint64_t asked, answered;  /* pieces */
	uint32_t fetching, posted; /* pieces */
	struct rwk_list lying;     /* those that are posted: rwk_rma_piece.link */
	uint32_t fences;           /* requests that wait until all before them are complete, and with them all behind */
	/* As the target. */
	uint64_t served, told;     /* pieces: carried out, and the peer knows of */
	size_t giving;             /* bytes that answers with data take which lie with the channel, */
	size_t answering;          /* and those that all do that the peer has asked for */
	size_t bytes;              /* of the request that is coming */
	bool refused;              /* a piece of that request was */
	struct rwk_rma_met met;    /* if it has several pieces */
	struct rwk_list owing;     /* rwk_engine.owing: there is something to tell */
	struct rwk_rma_in in;
	/* Direct requests. */
	struct rwk_rma_import *imports, *import; /* by key; the one that was looked for last */
	struct rwk_rma_export *exports; /* by region */
	struct rwk_rma_choices *choices; /* NULL: there was nothing to choose yet */
};

/** Is a new request behind others: are some under way, or does the program not know yet that they are over? */
static inline bool rwk_rma_is_behind(const struct rwk_rma_state *s, uint32_t flags)
{
	return flags & RWK_F_BEHIND || !rwk_list_empty(&s->requests);
}

/* rma.c */
/** An atomic's operands, and behind them its comparands. */
void rwk_rma_operands(const struct rwk_atomic_args *a, size_t len, char *to);
/** The access that an atomic is. */
uint8_t rwk_rma_access(unsigned op, bool fetches);
/** What its region has to grant for it here: more, where it stores what it has read. */
static inline unsigned rwk_rma_access_needed(unsigned op, unsigned type, unsigned access)
{
	return access | (rwk_atomic_stores(op, type) ? (unsigned)RWK_REGION_WRITE : 0);
}

/* rma_self.c */
ssize_t rwk_rma_move_here(struct rwk_engine *e, const struct rwk_rma_args *a, size_t whole, bool store);
ssize_t rwk_rma_atomic_here(struct rwk_engine *e, const struct rwk_atomic_args *a, size_t whole);

/* rma_peer.c */
/** The peer's state, made if there is none; NULL when out of memory. */
struct rwk_rma_state *rwk_rma_state_of(struct rwk_peer *p);

/** Do so many bytes of answers lie with the channel that none is to be added which can wait? */
static inline bool rwk_rma_is_choked(const struct rwk_rma_state *s)
{
	return s->answering > RWK_RMA_GIVING;
}

/* rma_piece.c */
/**
 * Sends a message of `n` pieces of memory, now or as soon as the channel takes it. With `keep` the memory is copied if
 * it must wait, else it stays as it is until the request is complete. 0, -ENOMEM, or the channel's error.
 */
int rwk_rma_put(struct rwk_rma_state *s, const struct rwk_envelope *env, const struct iovec *iov, unsigned n,
	size_t len, struct rwk_rma_request *r, bool keep);
void rwk_rma_piece_free(struct rwk_rma_piece *piece);

/* rma_request.c */
/** Lets a new request go by messages. */
void rwk_rma_begin_request(struct rwk_rma_state *s, struct rwk_rma_request *r);
/** The same for one that has to wait or takes several, or has been with the service. */
void rwk_rma_start(struct rwk_rma_state *s, struct rwk_rma_request *r);
/** Sends what can be sent: whenever something that others may wait for has ended. */
void rwk_rma_pump(struct rwk_rma_state *s);
void rwk_rma_request_free(struct rwk_engine *e, struct rwk_rma_request *r);
/** Tells the user, as the flags want it. */
void rwk_rma_complete(struct rwk_engine *e, uint32_t flags, void *context, int status);
/** Completes it. */
void rwk_rma_finish(struct rwk_rma_request *r, int status);
/** Completes those that have been answered. */
void rwk_rma_sweep(struct rwk_rma_state *s);
/** A fenced one may go, or is cancelled: from now on it is one like others. */
void rwk_rma_lift_fence(struct rwk_rma_state *s, struct rwk_rma_request *r);
/** Answers. One that fits nothing that was asked for ends the channel: -EPROTO. */
void rwk_rma_done(struct rwk_rma_state *s, uint64_t n);
void rwk_rma_refused(struct rwk_rma_state *s, uint64_t piece, int status);
/** The short way of an answer: false, it was not all that the first request waits for. */
bool rwk_rma_answered_whole(struct rwk_rma_state *s, uint64_t piece, const void *payload, size_t len);
/** The request for which `len` bytes of this piece come now; NULL: they are dropped. */
struct rwk_rma_request *rwk_rma_answered(struct rwk_rma_state *s, uint64_t piece, size_t len);
/** They have come for that request (NULL: were dropped), with `last` the end of the piece. */
void rwk_rma_came(struct rwk_rma_state *s, struct rwk_rma_request *r, uint64_t piece, size_t len, bool last);

/* rma_met.c */
/** The request is about that region: 0; -EACCES: its key was another's before, or it is one too many. */
int rwk_rma_meet(struct rwk_rma_met *m, const struct rwk_region *r);
/** Of that region, which it has met with, so many bytes have been accessed. */
void rwk_rma_met_access(struct rwk_rma_met *m, const struct rwk_region *r, size_t len);
/**
 * A whole access of so many bytes is over: who asked to be told of it is told, once for each region: of `r` alone, or,
 * if that is NULL, of those in `m`.
 */
void rwk_rma_reached(struct rwk_engine *e, struct rwk_region *r, const struct rwk_rma_met *m, unsigned access,
	bool atomic, size_t whole);

/* rma_serve.c */
/** Carries out an atomic at an address of our own: 0 or negative errno. `compare` and `result` may be NULL. */
int rwk_rma_atomic(const struct rwk_region *r, uint64_t at, unsigned op, unsigned type, const void *operand,
	const void *compare, void *result, size_t len);
/** Is all of that memory in whole elements at multiples of their size, as rwk_rma_atomic wants it? A power of two. */
bool rwk_rma_is_aligned(const struct rwk_region *r, uint64_t at, size_t len, size_t element);
/** -EINVAL, for elements that are not; the first time the log has the reason. */
int rwk_rma_misaligned(size_t element);
/** The peer is told at the end of this progress how far we have come. */
void rwk_rma_owe(struct rwk_rma_state *s);
/** Sends a message without payload; for want of memory the peer is given up, who would wait for it or be misled. */
void rwk_rma_say(struct rwk_rma_state *s, enum rwk_kind kind, uint64_t tag, int status);
/** A piece has been carried out: the peer is told at the end of this progress. */
void rwk_rma_granted(struct rwk_rma_state *s);
/** A write with data is in place, of a peer that names this room: 0 in place of one that is not there. */
void rwk_rma_data_came(struct rwk_peer *p, uint64_t room, uint64_t data, size_t len);
void rwk_rma_in_drop(struct rwk_rma_in *in);

/* rma_direct.c */
/**
 * One piece of memory, and one range that is long enough: is it to go directly, and has the service carried it out
 * here and now? Then it is complete. False: it has to be made a request.
 */
bool rwk_rma_now(const struct rwk_rma_args *a, size_t len, bool write);
/** Hands a new request to the service, if that can carry it out by itself; false: it cannot. */
bool rwk_rma_direct(struct rwk_rma_state *s, struct rwk_rma_request *r);
/** A request that was measured is complete. */
void rwk_rma_measure_end(struct rwk_rma_request *r);
/** Sends what the target is told of it: as rwk_rma_put. */
int rwk_rma_tell_accessed(struct rwk_rma_state *s, struct rwk_rma_request *r);
/** Messages. */
void rwk_rma_export(struct rwk_rma_state *s, uint64_t key);
void rwk_rma_exported(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len);
void rwk_rma_revoked(struct rwk_rma_state *s, uint64_t key);
void rwk_rma_accessed(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len);
/** The region goes: nobody reaches it directly any more. */
void rwk_rma_revoke(struct rwk_region *r);
/** The peer goes. */
void rwk_rma_direct_end(struct rwk_rma_state *s);

#endif

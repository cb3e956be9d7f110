/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the transfer files share, and nobody else sees.
 *
 *   region   memory that this side has exposed to the peer; its cookie, fresh for each exposure, is the key's secret
 *   read     an op of ours that is under way: bytes [0, at) have come to the front, [back, length) to the back; done
 *            when they meet
 *   serve    a read of the peer's that this side stages
 *   block    a piece of this side's transfer area on its way to the peer
 *   direct   an op of ours on a region that stays exposed: bytes [0, at) and [back, length) are in place
 *   help     a read or write of the peer's of which this side copies a part
 *   guard    a page of this side's that each write of the peer's touches first; see transfer_guard.c
 *
 * Reads of a channel are worked in the order of their posts, and so are its direct ops; in no order with each other. At
 * most RWK_SHM_READS_ASKED of them are with the peer at a time, and RWK_SHM_SHARED_MOST direct ops, so that what a peer
 * can make us remember is bounded.
 *
 * The files: transfer.c the life of a read; transfer_region.c exposure and keys; transfer_pull.c cross-memory copies;
 * transfer_both.c the same by both sides, with claims (transfer_claim.h), of which transfer_border.c knows how much each
 * should have, transfer_help.c the other side of that; transfer_stage.c copies through the transfer area;
 * transfer_choice.c which method has been fastest; transfer_direct.c direct reads and writes; transfer_reach.c the calls
 * themselves; transfer_proof.c whose the bytes are that a read brings; transfer_guard.c what keeps late writes out.
 */
#ifndef RWK_SHM_TRANSFER_STATE_H
#define RWK_SHM_TRANSFER_STATE_H

#include "shm/arrival.h"
#include "shm/counters.h"
#include "shm/fill.h"
#include "shm/transfer.h"
#include "shm/transfer_border.h"
#include "shm/transfer_choice.h"
#include "shm/transfer_claim.h"

#include "base/clock.h"
#include "base/iov.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/barrier.h"


#define RWK_SHM_READS_ASKED 63u
#define RWK_SHM_SERVES      (2 * RWK_SHM_READS_ASKED) /* twice: a stop that could not be sent is no hostility */

/** The service's records that are ours. */
enum rwk_shm_transfer_control_kind {
	RWK_SHM_STAGE_ASK = RWK_SHM_TRANSFER_FIRST, /* struct rwk_shm_ask: put these bytes into blocks */
	RWK_SHM_READ_STOP,                          /* struct rwk_shm_verdict: no more of this, status 0 */
	RWK_SHM_READ_REFUSED,                       /* struct rwk_shm_verdict: your read cannot be had */
	RWK_SHM_PUSH_ASK,                           /* struct rwk_shm_help_ask: help me to read */
	RWK_SHM_FETCH_ASK,                          /* struct rwk_shm_help_ask: help me to write */
};

struct rwk_shm_ask {
	uint64_t cookie;
	uint64_t offset; /* into the region */
	uint64_t length;
	uint32_t id;
	uint32_t spare;
};

struct rwk_shm_help_ask {
	uint64_t cookie;
	uint64_t offset, length; /* in the region */
	uint64_t target;         /* the asker's address for the first byte */
	uint32_t id;
	uint16_t place; /* of the claim in the asker's area */
	int16_t lead;   /* pages: rwk_shm_chunk_at */
};

struct rwk_shm_verdict {
	uint32_t id;
	int32_t status; /* negative errno */
};

/** Memory exposed. Lives in private memory at a stable address: a peer that reads may look at the cookie
 * (transfer_proof.c). */
struct rwk_shm_region {
	uint64_t cookie; /* random in the upper bits, index in the lower; 0: not exposed */
	uint64_t length;
	uint32_t count;
	uint32_t index;
	bool direct; /* stays exposed: never staged, as parts may not be mapped */
	uint8_t access; /* RWK_EXPOSE_* */
	struct iovec iov[RWK_EXPOSE_IOV_MAX];
	struct rwk_shm_region *next_free;
};

struct rwk_shm_regions {
	struct rwk_pool pool;
	struct rwk_shm_region **by_index;
	struct rwk_shm_region *free;
	uint32_t made, room;
};

/** What a key says. */
struct rwk_shm_key {
	uint64_t cookie;
	uint64_t region;  /* address of its struct rwk_shm_region in the exposer */
	uint64_t address; /* of its only piece */
	uint64_t length;
	bool one; /* piece */
	bool direct;
	unsigned access; /* RWK_EXPOSE_* */
};

/** Lives in op->service while the op is under way. */
struct rwk_shm_read {
	uint64_t back;    /* bytes from here to the op's end have come, from the back; the front is op->at */
	uint64_t started; /* ns: when it was posted */
	uint32_t id;
	uint8_t method; /* enum rwk_shm_method; RWK_SHM_METHODS: finished but for a copy of the peer's under way */
	bool begun : 1; /* a method has been chosen: no way back */
	bool asked : 1; /* the peer has been asked to stage it */
	bool alone : 1; /* an earlier call broke off in it: pull it by itself */
	uint8_t claim;  /* place of its claim and 1; 0: it has none */
	int8_t lead;    /* pages: rwk_shm_chunk_at */
	uint64_t asked_end; /* the peer was asked to stage up to here */
	bool direct : 1;    /* it is in the list of direct ops */
	bool collides : 1;  /* as rwk_copy_collides, target and source */
	bool pulls : 1;     /* it is one of rwk_shm_transfers.pulls */
	bool by_itself : 1; /* no other was copied with it, and who was later has not been seen: transfer_border.h */
	uint16_t pulled;    /* chunks of the claim that are ours */
	int32_t status;     /* what to finish with once no copy of the peer's is under way */
	uint64_t waits;     /* ns: since when for nothing but the peer's chunks; 0: not yet */
};
_Static_assert(sizeof(struct rwk_shm_read) <= sizeof(((struct rwk_op *)0)->service), "a read's state fits into its op");

static inline struct rwk_shm_read *rwk_shm_read_of(struct rwk_op *op)
{
	return (struct rwk_shm_read *)(void *)op->service;
}

/** What the choice goes by. */
static inline struct rwk_shm_load rwk_shm_load_of(struct rwk_op *op)
{
	return (struct rwk_shm_load){op->length, rwk_shm_read_of(op)->collides};
}

/** The transfers of a port. */
struct rwk_shm_port_transfers {
	struct rwk_shm_transfers_head head; /* first; its list is of rwk_shm_transfers.active */
	struct rwk_random random;
	bool peers_let_in; /* Yama has been asked to */
	uint64_t guard_next; /* where to ask for the next guard page; 0: not drawn yet */
	struct rwk_shm_transfer_counts counts;
	struct rwk_shm_summary *summary; /* with FI_ROPEWALK_STATS: of channels that have ended; else NULL */
};

/** The transfers of a channel. */
struct rwk_shm_transfers {
	struct rwk_shm_channel *ch;
	struct rwk_shm_port_transfers *port;
	struct rwk_list active; /* linked while anything is under way */
	int stopped;            /* 0, or what later posts are told */
	bool broken;            /* the peer broke the protocol; the port will stop us */
	bool cma_denied;
	pid_t named;            /* the thread of the peer's that is named in calls; 0: none, the process is */
	uint32_t calls;         /* so far, as long as no thread has been looked for */

	struct rwk_list waiting; /* reads without a method, in order of posts; */
	struct rwk_list reads;   /* before them, those with one, */
	uint32_t begun;          /* so many */
	uint32_t asked;        /* of these, reads that the peer stages */
	uint32_t next_id;
	uint64_t claims_used;  /* a bit for each */
	unsigned force;        /* not 0: allowed methods, for tests and benchmarks */
	uint64_t proven;       /* ns: a cookie has shown since then that the peer is the process we know; 0: none has */
	struct rwk_shm_pace pace; /* of reads, */
	struct rwk_shm_border border;
	uint64_t pulled_at;    /* ns: when the last call that pulled ended */
	uint64_t last_news;    /* ns: when the peer last staged something for us, or was first asked after a lull */
	uint64_t blocks_read;  /* of the peer's area, ever */

	struct rwk_list serves;
	struct rwk_pool serve_pool;
	uint64_t blocks_written; /* of my area, ever */
	uint64_t blocks_back;    /* of these, given back by the peer */
	struct rwk_shm_fill fill; /* of blocks */
	uint32_t pulls; /* reads that this side copies alone though both could */

	struct rwk_list helps;      /* in the order of the asks */
	struct rwk_shm_help *help;  /* one for each place of a claim; NULL: the peer has never asked */
	bool help_denied;

	struct rwk_list direct; /* ops, in order of posts */
	struct rwk_shm_pace direct_pace[2]; /* of reads, of writes, */
	struct rwk_shm_border direct_border[2];
	uint32_t direct_asked;  /* id of the last one that the peer was asked to share; */
	uint32_t direct_id[RWK_SHM_SHARED_MOST]; /* and of the last one in each place; 0: none */
	uint8_t direct_last;    /* the place of the last */
	bool direct_denied;
	void *guard;            /* this side's guard page; NULL: none */
	uint64_t let_in;        /* ticks: when the last call began that got past the peer's */
	uint64_t guard_since;   /* ns: when it was last replaced, */
	uint64_t stopped_asked; /* and when the peer was last looked at whether it is stopped */
	bool waited_in_vain;  /* for a write of the peer's: not as long again */

	struct rwk_shm_regions regions;
	uint32_t listed;      /* indices below it have a place, and memory, in my area's list; 0: none yet */
	size_t blocks_there;  /* bytes of each of my area's blocks that have memory */

	struct rwk_shm_arrival arrival;
};

#define RWK_SHM_INDEX_BITS 24

/** Of the region that the cookie names, if it is one. */
static inline uint32_t rwk_shm_cookie_index(uint64_t cookie)
{
	return (uint32_t)(cookie & ((1u << RWK_SHM_INDEX_BITS) - 1));
}

/** As rwk_shm_control, for a kind of ours. */
static inline int rwk_shm_tell(
	struct rwk_shm_transfers *t, enum rwk_shm_transfer_control_kind kind, const void *body, size_t len)
{
	return rwk_shm_control(t->ch, (enum rwk_shm_control)kind, body, len);
}

/* transfer.c */

/** This channel's state, made if there is none; NULL when out of memory. */
struct rwk_shm_transfers *rwk_shm_transfers_of(struct rwk_shm_channel *ch);
/** Makes sure that progress looks at this channel. */
void rwk_shm_transfers_activate(struct rwk_shm_transfers *t);
/** Takes a read out of the list, accounts for it and tells its owner. */
void rwk_shm_read_finish(struct rwk_shm_transfers *t, struct rwk_op *op, int status);
/** The read of that id that has begun, or NULL. */
struct rwk_op *rwk_shm_read_find(struct rwk_shm_transfers *t, uint32_t id);
/** The peer broke the protocol: nothing more is done here until the port stops us. */
void rwk_shm_transfers_broken(struct rwk_shm_transfers *t, const char *what);
/** Finishes the read if all its bytes have come; `now` in ns, 0: that is to be looked up. */
bool rwk_shm_read_finish_if_whole(struct rwk_shm_transfers *t, struct rwk_op *op, uint64_t now);

/** Chooses methods for waiting reads as long as the peer may be asked for more. */
void rwk_shm_reads_begin(struct rwk_shm_transfers *t);

/* transfer_summary.c */
/** The channel's transfers end: keeps what FI_ROPEWALK_STATS tells of them. */
void rwk_shm_summary_add(const struct rwk_shm_transfers *t);

/* transfer_region.c */

/** 0, or -EINVAL if it is none of this transport's. */
int rwk_shm_key_unpack(const struct rwk_rkey *rkey, struct rwk_shm_key *key);
/** Does the exposer's area list the region as long as it is exposed? */
bool rwk_shm_key_listed(const struct rwk_rkey *rkey);
/**
 * The region of that cookie if it is exposed to this channel's peer now, else NULL. The cookie may come from a
 * stranger.
 */
struct rwk_shm_region *rwk_shm_region_find(struct rwk_shm_transfers *t, uint64_t cookie);
/** Where the peer has the cookie of the region's record. */
static inline struct iovec rwk_shm_cookie_of(const struct rwk_rkey *rkey)
{
	return (struct iovec){(void *)(uintptr_t)(rkey->word[1] + offsetof(struct rwk_shm_region, cookie)),
		sizeof(((struct rwk_shm_region *)0)->cookie)};
}
/** Conceals all, and frees. */
void rwk_shm_regions_close(struct rwk_shm_transfers *t);

/* transfer_pull.c */

/** Bytes that one call pulls at most: progress stays bounded, and a call's own cost does not show. */
#define RWK_SHM_PULL_MOST ((size_t)1 << 20)

/**
 * Pulls what stands at the head of the list with the method pull: several reads, or a piece of one. Returns whether it
 * did anything.
 */
int rwk_shm_pull(struct rwk_shm_transfers *t);
/** Pulls this side's halves of the first reads, which are copied by both, several in a call; how many. */
int rwk_shm_pull_halves(struct rwk_shm_transfers *t);
/** Pulls at most `length` bytes of `op` at its back. */
void rwk_shm_pull_back(struct rwk_shm_transfers *t, struct rwk_op *op, size_t length);
/**
 * Describes `length` bytes of the op from `at` on, here and in the peer, by at most RWK_EXPOSE_IOV_MAX pieces each;
 * returns how many bytes those are, at least 1. -EACCES: the key does not fit any more; -EFAULT: one of the two is
 * shorter than was said; or that of a call to read the peer's pieces.
 */
ssize_t rwk_shm_op_pieces(struct rwk_shm_transfers *t, const struct rwk_op *op, size_t at, size_t length,
	struct iovec *local, unsigned *locals, struct iovec *remote, unsigned *remotes);

/* transfer_reach.c */

/** process_vm_readv from the peer: bytes, or negative errno, in which a denial is never -EACCES. */
ssize_t rwk_shm_vm_read(struct rwk_shm_transfers *t, const struct iovec *local, unsigned locals,
	const struct iovec *remote, unsigned remotes);
/** process_vm_writev into the peer; likewise. */
ssize_t rwk_shm_vm_write(struct rwk_shm_transfers *t, const struct iovec *local, unsigned locals,
	const struct iovec *remote, unsigned remotes);
/**
 * What came was not the peer's: true if it may have been that of somebody who has the number of a thread of the peer's
 * that is no more; then calls go by the process' number now.
 */
bool rwk_shm_reach_anew(struct rwk_shm_transfers *t);

/* transfer_both.c */

/**
 * Can this op be copied by both? The asker's memory must be of one piece, and worth two chunks; more so of an op that
 * is `alone`: of others a call copies several chunks.
 */
bool rwk_shm_both_possible(const struct rwk_op *op, bool alone);
/**
 * Asks for the first reads, so that the helper can copy several halves with a call, and need not pause between them.
 * False if the first could not be asked for.
 */
bool rwk_shm_both_ask(struct rwk_shm_transfers *t);
/**
 * Is the peer likely to answer, so that a direct op may ask for help? It does not sleep, and has seen what it was last
 * asked for; or, if the op is not the first, what it was last asked for with the same place. One that computes finds an
 * ask for each place when it is back.
 */
bool rwk_shm_both_listens(struct rwk_shm_transfers *t, bool first);
/** Asks for a direct op, where it listens; false: it could not be asked for. */
bool rwk_shm_both_ask_direct(struct rwk_shm_transfers *t, struct rwk_op *op);
/** The bytes before r->back of an op with a claim that the asker is to copy next of its own half; 0: it has. */
size_t rwk_shm_both_own(struct rwk_shm_transfers *t, struct rwk_op *op);
/**
 * The same of what the helper has not begun, or not ended and will not; 0: none. Then the op is whole (op->at has met
 * r->back), or the helper's chunks must be waited for.
 */
size_t rwk_shm_both_rest(struct rwk_shm_transfers *t, struct rwk_op *op);
/** Have both copied their halves of it? Then op->at has met r->back. */
bool rwk_shm_both_whole(struct rwk_shm_transfers *t, struct rwk_op *op);
/** Copies chunks of the first reads, which are copied by both, or finishes some. Returns whether it did anything. */
int rwk_shm_both_read(struct rwk_shm_transfers *t);
/** Bytes that have come of the reads behind this one. */
size_t rwk_shm_both_ahead(struct rwk_shm_transfers *t, struct rwk_op *op);
/** The reader cannot pull any more: lets no further push begin and sets the front to what has been pushed. */
void rwk_shm_both_give_up(struct rwk_shm_transfers *t, struct rwk_op *op);
/** Lets no further copy begin; true if none is under way: the op may be given back. */
bool rwk_shm_both_leave(struct rwk_shm_transfers *t, struct rwk_op *op);
/** The same, and waits a little for a copy under way. */
void rwk_shm_both_abandon(struct rwk_shm_transfers *t, struct rwk_op *op);

/* transfer_help.c */

void rwk_shm_help_open(struct rwk_shm_transfers *t);
void rwk_shm_help_close(struct rwk_shm_transfers *t);
/** The peer's ask, in place of the one before with the same place; with `fetch` for a write of its. */
void rwk_shm_help_asked(struct rwk_shm_transfers *t, const struct rwk_shm_help_ask *ask, bool fetch);
/** Copies a chunk of each of the first that wait, with one call; returns whether it did anything. */
int rwk_shm_help(struct rwk_shm_transfers *t);
/** The region is no more. */
void rwk_shm_help_concealed(struct rwk_shm_transfers *t, uint64_t cookie);

/* transfer_stage.c */

void rwk_shm_stage_open(struct rwk_shm_transfers *t);
void rwk_shm_stage_close(struct rwk_shm_transfers *t);
/** Asks the peer to stage the read from op->at on. */
int rwk_shm_stage_ask(struct rwk_shm_transfers *t, struct rwk_op *op);
/** Copies out what the peer has staged; returns the blocks. */
int rwk_shm_stage_read(struct rwk_shm_transfers *t);
/** Stages what the peer has asked for as far as there is room; returns the blocks. */
int rwk_shm_stage_write(struct rwk_shm_transfers *t);
/** The peer's ask, and its end. */
void rwk_shm_stage_asked(struct rwk_shm_transfers *t, const struct rwk_shm_ask *ask);
void rwk_shm_stage_stopped(struct rwk_shm_transfers *t, uint32_t id);
/** The region is no more: refuses what was being staged of it. */
void rwk_shm_stage_concealed(struct rwk_shm_transfers *t, uint64_t cookie);
/** The read ends: the peer need not go on. */
void rwk_shm_stage_leave(struct rwk_shm_transfers *t, struct rwk_op *op);

/* transfer_direct.c */

/** Begins: as post. The range has been checked. */
int rwk_shm_direct_post(struct rwk_shm_transfers *t, struct rwk_op *op, const struct rwk_shm_key *key);
/** As access. The range has been checked. */
int rwk_shm_direct_now(struct rwk_shm_transfers *t, const struct rwk_direct_access *a, const struct rwk_shm_key *key);
/** Goes on with those that are under way, bounded; returns how many things it did. */
int rwk_shm_direct_progress(struct rwk_shm_transfers *t);
/** Cross-memory copies are denied: from now on none is tried for direct ops. */
void rwk_shm_direct_deny(struct rwk_shm_transfers *t);

/* transfer_proof.c */

/** Is the region of that cookie exposed by the peer at this moment, as far as its area lists them? */
bool rwk_shm_region_readable(struct rwk_shm_transfers *t, uint64_t cookie);
bool rwk_shm_region_writable(struct rwk_shm_transfers *t, uint64_t cookie);
/**
 * Must a call fetch the cookie behind the bytes? If it comes as it should, t->proven is to be set to the call's begin.
 * False: rwk_shm_proof_held will do. `lately`, ns: the time, as far as it is known without a look at the clock.
 */
bool rwk_shm_proof_needed(struct rwk_shm_transfers *t, const struct rwk_rkey *rkey, uint64_t lately);
/**
 * Are the bytes the region's that a call without the cookie has brought, which ended at `ended`, ns? False: again, and
 * that call needs it.
 */
bool rwk_shm_proof_held(struct rwk_shm_transfers *t, uint64_t cookie, uint64_t ended);

/* transfer_guard.c */

/** The peer may write into memory of this side's from now on: there is a guard page. 0, or negative errno. */
int rwk_shm_guard_up(struct rwk_shm_transfers *t);
/** The state ends, and nothing is exposed any more. */
void rwk_shm_guard_down(struct rwk_shm_transfers *t);
/**
 * Waits while `pending`, which says whether the peer may be in the middle of a write that must not land later. Ends
 * when that is over or cannot land any more: the peer is dead, or stopped (then the guard page has been changed). A
 * peer that is neither is given a second; true: that was not enough, and memory may still change.
 */
bool rwk_shm_guard_wait(
	struct rwk_shm_transfers *t, bool (*pending)(struct rwk_shm_transfers *t, void *arg), void *arg);
/**
 * The same without waiting: asked again and again about a copy of the peer's that had begun when it was first asked,
 * with *since 0. True: the peer is stopped, and the copy will not be made any more.
 */
bool rwk_shm_guard_shuts_out(struct rwk_shm_transfers *t, uint64_t *since);
/** Where the peer's guard is; to be read before a write is announced. 0: there is none. */
uint64_t rwk_shm_guard_see(struct rwk_shm_transfers *t);
/**
 * process_vm_writev into the peer, behind its guard: entry 0 of both arrays is for that, `locals` and `remotes` count
 * it. Bytes written beside it, which are fewer than asked for where memory is not mapped; -ESTALE: the guard is
 * not there, nothing was written; or another negative errno.
 */
ssize_t rwk_shm_guarded_write(struct rwk_shm_transfers *t, uint64_t guard, struct iovec *local, unsigned locals,
	struct iovec *remote, unsigned remotes);
/** The same for process_vm_readv. */
ssize_t rwk_shm_guarded_read(struct rwk_shm_transfers *t, uint64_t guard, struct iovec *local, unsigned locals,
	struct iovec *remote, unsigned remotes);

#endif

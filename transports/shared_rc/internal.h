/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of SRC on a node share, and who does what.
 *
 *   layout.c   where things lie in the segment; making one; is it one of ours? Memory for what is used
 *   lock.c     locks that are taken or given up, never waited for
 *   view.c     opening, closing, what was counted
 *   members.c  seats, SRQ numbers, who has died
 *   target.c   making, finding, ending; the area for early packets
 *   step.c     a packet: one step of a target's machine, and that it happens whole or not at all
 *   answer.c   acknowledgements, and answers to Reads
 *   inbox.c    pieces on their way from who has taken them to whose they are
 *   pieces.c   packets that come in pieces, since their way has become narrow (an inbox's pieces are others)
 *   reach.c    members' memory that all may touch, and who has it
 *
 * Locks, in the order in which they are taken: the table's (header.lock), a target's, an inbox's; a puzzle's alone.
 * None of them is waited for longer than moments (lock.c).
 *
 * Exactly once, whoever dies when. A target has two states, and `active` says which is true. A step runs the machine on
 * a copy of its own, which it has looked at (a sibling gone mad may write anything there at any time), writes that to
 * the other one, and by one store makes it the true one: the step has happened, or it has not. What it has put into
 * inboxes has its own single store each, the inbox's tail. So a step that was cut off may have put some pieces into
 * inboxes and not have happened; then nothing was acknowledged, its packets come again, and the next step
 * does all of it once more. That a piece is then in an inbox twice is for the owner to see: each carries the number of
 * its packet in a count that never goes back for a place in the directory, whoever the target there is; pieces of a
 * target come in that order but for such repetitions; and the member passes over what is not beyond the last it was
 * given (rwk_src_view.next). It needs no memory but its own for that: if it dies, there is nobody to be given a piece
 * twice. A Send that is turned away (BUSY) comes again with another number: so none is of which a step may have put
 * something into an inbox, which the target remembers, beside its states, from before that is done (`given`). Nothing
 * is to be undone or found out about the dead, and a lock taken over from them needs no care.
 *
 * Order. Pieces of one target for one member are put into its inbox under the target's lock. One that the member takes
 * itself waits until the lock is released; before it is handed over the inbox is drained up to where it ended when the
 * piece was taken: all before it is in there, nothing behind it is. Of a step only the piece of the packet itself goes
 * that way; early packets that were kept go through the inbox, the own one too, since who has the lock next may put
 * others in their place.
 */
#ifndef RWK_SHARED_RC_INTERNAL_H
#define RWK_SHARED_RC_INTERNAL_H

#include "base/barrier.h"
#include "base/list.h"
#include "shared_rc/layout.h"
#include "wire/psn.h"

#include <errno.h>

#define RWK_SRC_INBOX_MIN 65536u /* bytes */
#define RWK_SRC_CUT_LEAST 256u   /* the same: of a packet, which may have more pieces otherwise than can be joined */

/** Targets that a view owes an acknowledgement to. Beyond that an initiator has to ask again. */
#define RWK_SRC_OWED 256u

/**
 * Answers of a pump, at most; and how many have a place for their bytes, which a link may read until its next flush:
 * one more, that an earlier pump had no room for.
 */
#define RWK_SRC_ANSWERS 15u
#define RWK_SRC_SLOTS   (RWK_SRC_ANSWERS + 1)

/** A piece on its way. */
struct rwk_src_piece {
	uint8_t kind, where; /* enum rwk_src_kind; RWK_PIECE_* */
	bool again;          /* it may be in an inbox already, by a step that was cut off */
	uint32_t target;     /* QPN */
	uint32_t key;
	uint64_t number, address;
	const void *bytes;
	size_t len;
};

/** The step under way. */
struct rwk_src_step {
	struct rwk_src_target *target;
	struct rwk_src_state *from, *to;
	uint32_t becomes; /* target->active, when it has happened */
	uint32_t qpn;
	uint32_t expected;                /* where the responder stood */
	const struct rwk_wire *packet;    /* NULL: it is for an acknowledgement */
	struct rwk_src_piece own;         /* of the packet, for this member; its kind is FILLER if there is none */
	uint64_t own_behind;              /* where the own inbox ended then */
	uint32_t told[RWK_RC_WINDOW_MAX]; /* SRQs that got something into their inbox */
	unsigned told_count;
};

/** An acknowledgement, or a piece of what a Read asked for, that was made. */
struct rwk_src_answer {
	bool ready;
	uint32_t slot; /* its bytes */
	struct rwk_link_address to;
	uint32_t cut; /* as host->emit's */
	struct rwk_wire w;
	size_t len;
};

/** A target that this view owes an acknowledgement, and when. */
struct rwk_src_owed {
	rwk_time at;
	uint32_t qpn;
	uint32_t packets; /* that this view has taken since the last one; */
	uint32_t rides;   /* of which so many in a row have travelled with a message */
};

/** A region that this view has published, as it believes it itself. */
struct rwk_src_own {
	struct rwk_list link; /* of those of the same place in the directory */
	uint64_t name;        /* target and key; 0: none is here, and it is in no list */
	uint32_t count;
	struct iovec iov[RWK_SRC_PIECES];
};

struct rwk_src_view {
	struct rwk_src_header *header;
	struct rwk_src_layout layout;
	struct rwk_src_size size; /* as it was when the view was opened: what lies in the segment may be overwritten */
	const struct rwk_src_host *host;
	void *user;
	struct rwk_rc *qp;    /* a shell, to which the responder is lent */
	void *responder;      /* of the step under way: a copy, since what lies in the segment may be overwritten */
	struct rwk_rc *maker; /* another, to make responders by */
	struct rwk_src_member *me;
	uint64_t process;   /* whose seat it is: not its children's, which do not have the segment mapped */
	uint64_t pid_space; /* which the member's pid is of; 0: not known */
	uint32_t seat, srqn;
	int life;            /* the descriptor that locks of others are looked for by, the caller's; -1: none */
	uint64_t head;       /* of the own inbox */
	uint64_t *next;      /* for each place of the directory: the number of the next piece that was not here yet */
	uint64_t *has_early; /* a bit for each: this view has kept something there */
	struct rwk_src_step step;
	struct rwk_src_answer answer;
	uint8_t (*slots)[RWK_WIRE_OWN_MAX]; /* RWK_SRC_SLOTS of them, and one for what is being read */
	struct rwk_src_own *own;            /* for each place of a key */
	struct rwk_list *published;         /* of them, for each place of the directory; zeros: there never was one */
	void *guard;                        /* a page (reach.c); NULL: nothing was published yet */
	struct rwk_src_owed owed[RWK_SRC_OWED];
	unsigned owed_count;
	struct rwk_src_counters counters;
};

static inline struct rwk_src_member *rwk_src_member(const struct rwk_src_view *v, uint32_t seat)
{
	return (struct rwk_src_member *)((char *)v->header + v->layout.members) + seat;
}

static inline unsigned char *rwk_src_inbox(const struct rwk_src_view *v, uint32_t seat)
{
	return (unsigned char *)v->header + v->layout.inboxes + (size_t)seat * v->size.inbox_bytes;
}

/** A target's place in the directory: the low bits of its number. */
static inline uint32_t rwk_src_place(const struct rwk_src_view *v, uint32_t qpn)
{
	return qpn & (v->size.targets - 1);
}

static inline struct rwk_src_entry *rwk_src_entry(const struct rwk_src_view *v, uint32_t place)
{
	return (struct rwk_src_entry *)((char *)v->header + v->layout.directory) + place;
}

/**
 * Where the chain with that number, one for each place of the directory, begins: a place and 1; 0: nothing
 * is in it.
 */
static inline _Atomic uint32_t *rwk_src_chain(const struct rwk_src_view *v, uint32_t i)
{
	return (_Atomic uint32_t *)((char *)v->header + v->layout.chains) + i;
}

static inline struct rwk_src_target *rwk_src_target(const struct rwk_src_view *v, uint32_t place)
{
	return (struct rwk_src_target *)((char *)v->header + v->layout.targets + place * v->layout.target_stride);
}

static inline struct rwk_src_state *rwk_src_state(const struct rwk_src_view *v, struct rwk_src_target *t, unsigned i)
{
	return (struct rwk_src_state *)((char *)(t + 1) + (i & 1) * v->layout.state_bytes);
}

static inline _Atomic uint64_t *rwk_src_key_word(const struct rwk_src_view *v, uint32_t place)
{
	return (_Atomic uint64_t *)((char *)v->header + v->layout.key_words) + place;
}

static inline struct rwk_src_region *rwk_src_region(const struct rwk_src_view *v, uint32_t place)
{
	return (struct rwk_src_region *)((char *)v->header + v->layout.regions) + place;
}

static inline struct rwk_src_puzzle_lock *rwk_src_puzzle_lock(const struct rwk_src_view *v, uint32_t place)
{
	return (struct rwk_src_puzzle_lock *)((char *)v->header + v->layout.puzzle_locks) + place;
}

static inline struct rwk_puzzle *rwk_src_puzzle(const struct rwk_src_view *v, uint32_t place)
{
	return (struct rwk_puzzle *)((char *)v->header + v->layout.puzzles + place * RWK_SRC_PUZZLE);
}

/* layout.c */
/** Has memory put behind that part of the segment, before something is stored there. */
bool rwk_src_populate(const void *at, size_t size);

/* lock.c */
int rwk_src_lock_init(pthread_mutex_t *m);
/** False: somebody holds it, and goes on holding it; or just holds it now. */
bool rwk_src_lock(struct rwk_src_view *v, pthread_mutex_t *m);
bool rwk_src_try_lock(struct rwk_src_view *v, pthread_mutex_t *m);
void rwk_src_unlock(pthread_mutex_t *m);

/* members.c */
enum rwk_src_whose { RWK_SRC_NOBODY, RWK_SRC_DEAD, RWK_SRC_LIVING };

enum rwk_src_whose rwk_src_whose(const struct rwk_src_view *v, uint32_t srqn);
/** Does that member live, and would this process see it die? */
bool rwk_src_is_seen(const struct rwk_src_view *v, uint32_t srqn);
/** Is it known that its pid means the same process here? */
bool rwk_src_same_pid_space(const struct rwk_src_view *v, const struct rwk_src_member *m);
/** Does that process still exist, as far as this one can see? */
bool rwk_src_is_alive(const struct rwk_src_view *v, uint32_t srqn);
/** 0; -ENOSPC. Sets me, seat, srqn and head. */
int rwk_src_seat_take(struct rwk_src_view *v);
/**
 * As rwk_src_bury, but nobody is woken: for a view that is not open yet. `by_lock`: it also looks at those that show
 * their life.
 */
int rwk_src_find_dead(struct rwk_src_view *v, bool by_lock);

/* target.c */
void rwk_src_initiator_read(const struct rwk_src_target *t, struct rwk_src_initiator *initiator);
/** As host->keep, kept and drop of the packet machines, for the step under way. */
int rwk_src_early_keep(struct rwk_src_view *v, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len);
const void *rwk_src_early_kept(struct rwk_src_view *v, uint32_t slot, struct rwk_wire *w, size_t *len);
/** Gives back the memory of early packets where this view has kept some and none is left. */
void rwk_src_early_tidy(struct rwk_src_view *v);

/* step.c */
/** Begins a step: the target is locked, the shell has a copy of its state. False: it cannot be, which was counted. */
bool rwk_src_step_begin(struct rwk_src_view *v, uint32_t qpn);
/** The same for what may be left undone: a member in the middle of a step of that target is not waited for. */
bool rwk_src_step_try(struct rwk_src_view *v, uint32_t qpn);
/** It has happened. */
void rwk_src_step_commit(struct rwk_src_view *v);
/** It has not. */
void rwk_src_step_abandon(struct rwk_src_view *v);
/** The packet machine's upcalls. */
extern const struct rwk_machine_host rwk_src_machine_host;

/* reach.c: for the step under way */
/** A piece of a Write for that SRQ's owner: it is in place then, or never will be, and the region says so. */
void rwk_src_reach_write(struct rwk_src_view *v, uint32_t srqn, const struct rwk_src_piece *p);
/** Up to RWK_WIRE_OWN_MAX bytes for a Read; zeros, where that cannot be. */
void rwk_src_reach_read(struct rwk_src_view *v, uint32_t key, uint64_t address, void *to, size_t len);
void rwk_src_guard_down(struct rwk_src_view *v);

/* answer.c */
/** The target with that number is to be acknowledged by the first pump from then on; RWK_NEVER: it is not. */
void rwk_src_owe(struct rwk_src_view *v, uint32_t qpn, rwk_time at);
/** As host->emit of the packet machines: puts it by. */
int rwk_src_answer_put(struct rwk_src_view *v, const struct rwk_wire *w, const struct iovec *payload, int count);

/* inbox.c */
/**
 * Into the inbox of that SRQ. 0, of one that has just left too; -EAGAIN: no room, or it cannot be locked; -EBUSY: the
 * same, but nothing of this message has been taken yet, nor may have been.
 */
int rwk_src_inbox_put(struct rwk_src_view *v, uint32_t srqn, const struct rwk_src_piece *p);
/** Hands over what is in the own inbox before `until`, at most `budget` pieces; returns how many. */
int rwk_src_inbox_take(struct rwk_src_view *v, uint64_t until, int budget);
/** Hands over a piece to this member, if it was not here yet. */
void rwk_src_hand_over(struct rwk_src_view *v, const struct rwk_src_piece *p);

/* polling.c */

/** This member is about to sleep: that it polls is not true any more. */
void rwk_src_polls_no_more(struct rwk_src_view *v);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the reliable connection share: the state of a QP, and who does what.
 *
 *   qp.c         opening, states, posting, which half a packet is for, the order of things in a pump
 *   requester.c  work requests become packets; they end
 *   answers.c    what the peer's answers say: ACK, NAK, Read response, atomic's value
 *   marks.c      between our own ends: bits on the packets under way; which of them are lost
 *   loss.c       the clock and the loss: going back, sending again, probing
 *   window.c     round trips, time-outs, how many packets may be under way
 *   responder.c  requests in order become upcalls
 *   early.c      requests out of order: duplicates, gaps, what is kept for later
 *   unordered.c  those of an un-ordered type: done before their turn
 *   reads.c      Read responses and atomics' answers
 *   ack.c        acknowledgements: when, and what they say
 *   sound.c      is a responder one that could be?
 *   busy.c       SRC: an SRQ that takes no more holds up what is for it alone
 *
 * Packet numbers of the requester, each at or behind the next one:
 *
 *   una    the oldest packet that is not settled; all work requests before it have ended
 *   acked  everything before it is in order at the peer; behind it only answers are missing (una < acked: a Read's)
 *   back   strict: the next packet to be sent again; == next: nothing is
 *   next   the next new packet
 */
#ifndef RWK_RC_INTERNAL_H
#define RWK_RC_INTERNAL_H

#include "base/compiler.h"
#include "rc/rc.h"
#include "wire/psn.h"
#include "wire/segment.h"

#include <assert.h>
#include <errno.h>

#define RWK_RC_US 1000u /* of rwk_time */
#define RWK_RC_MS (1000u * 1000u)

/**
 * The last word of an acknowledgement of our own, and rwk_rc_take_ack's: the share in the bits from 25 on, then one
 * that says that a packet has come again that was here (always 0 in the latter).
 */
#define RWK_RC_SHARE_AT  25
#define RWK_RC_REPEATED  (1u << 24)
#define RWK_RC_SHARE_MAX 127u

/** Read chunk without a limit: no message's packets may fill half the number space, with room for what follows. */
#define RWK_RC_CHUNK_MAX (1u << 22) /* packets */

/** What the one deadline of a requester is for. */
enum rwk_rc_timer {
	RWK_RC_TIMER_NONE,
	RWK_RC_TIMER_REORDER, /* holes before a settled packet count as lost */
	RWK_RC_TIMER_PROBE,   /* nothing has come: is the tail lost? */
	RWK_RC_TIMER_RETRY,   /* nothing has come for long */
	RWK_RC_TIMER_RNR,     /* the peer's receiver was not ready: nothing is sent before */
};

/**
 * State of a work request: is a packet of it made? DENIES: or has the peer refused it? Then empty Writes go by the
 * numbers of its packets. BUSY: or does it wait for its SRQ, outside the queue?
 */
enum { RWK_RC_WR_POSTED, RWK_RC_WR_BEGUN, RWK_RC_WR_DENIED, RWK_RC_WR_HELD };

/** BUSY, in AETH's syndrome; the standard has no 0x40 to 0x5f. */
#define RWK_RC_NAK_BUSY 0x40u

/** A bit for each packet number modulo RWK_RC_WINDOW_MAX. */
struct rwk_rc_bits {
	uint64_t word[RWK_RC_WINDOW_MAX / 64];
};

static inline bool rwk_rc_bit(const struct rwk_rc_bits *b, uint32_t psn)
{
	return b->word[psn / 64 % 4] >> psn % 64 & 1;
}

static inline void rwk_rc_bit_set(struct rwk_rc_bits *b, uint32_t psn)
{
	b->word[psn / 64 % 4] |= 1ull << psn % 64;
}

static inline void rwk_rc_bit_clear(struct rwk_rc_bits *b, uint32_t psn)
{
	b->word[psn / 64 % 4] &= ~(1ull << psn % 64);
}

static inline bool rwk_rc_bits_any(const struct rwk_rc_bits *b)
{
	return b->word[0] | b->word[1] | b->word[2] | b->word[3];
}

struct rwk_rc_requester {
	/* What a single message in order touches. */
	struct rwk_list queue;  /* posted work requests that have not ended */
	struct rwk_wr *current; /* the first that has packets to be made; NULL */
	uint32_t next, una, acked, back;
	uint32_t asked; /* the last packet that asked for an acknowledgement */
	uint32_t peer_qpn;
	uint16_t pmtu, window;
	uint16_t cwnd; /* packets that may be under way now; without SELECTIVE == window */
	uint8_t service, own;
	uint8_t timer;     /* enum rwk_rc_timer */
	uint8_t reads_out; /* Read Requests and atomics that are not answered in full */
	bool marked;       /* a bit is set in one of the four below */
	bool timing;       /* rtt_psn is under way */
	uint16_t reach;    /* SELECTIVE: packets that may overtake one before it counts as lost */
	uint8_t patience;  /* and quarters of a round trip that it may be late, */
	uint8_t calm;      /* both as they are since so many losses, none late */
	rwk_time deadline; /* of timer */
	union {
		rwk_time rtt_at;       /* timing: when rtt_psn was sent */
		rwk_time silent_since; /* SELECTIVE, with a backoff, when nothing is timed: what passes from then on counts
					  towards the next of `retry` */
	};
	uint32_t rtt_psn;
	uint32_t srtt, rttvar; /* ns; 0: not known */

	/* Fixed, or for losses only. */
	uint8_t reads, retry, rnr_retry; /* as in rwk_rc_attr */
	uint8_t tries, rnr_tries;        /* since something was settled */
	uint8_t backoff;                 /* time-outs in a row */
	bool implied;                    /* strict: has gone back for a missing response, once for this una */
	bool guessed;                    /* SELECTIVE: packets were sent again since others had overtaken them */
	bool timed_out;                  /* SELECTIVE: all was marked lost by the clock, and nothing has come since */
	uint8_t read_window;             /* SELECTIVE: packets of Read responses under way at most; 0: as `window` */
	uint16_t ssthresh, grown;
	uint16_t limit;         /* SELECTIVE: what the peer lets us have of `window` now, and `bound` does */
	uint16_t bound;         /* SELECTIVE: what this end's client lets us have; 0: all */
	uint16_t cwnd_before;   /* timed_out, guessed: the window before that */
	uint16_t settled, lost; /* bits set */
	uint32_t chunk;         /* packets of a Read Request at most */
	uint32_t high;          /* one behind the last packet known to have come, or whose answer has */
	uint32_t sure;          /* holes before it are lost: a packet sent again has come */
	uint32_t reorder_mark;  /* REORDER: holes before it are lost when it rings */
	uint32_t round_mark;    /* those of sent_before were sent again before this one was new */
	uint32_t recover;       /* the window was halved when this one was next */
	uint32_t widened;       /* SELECTIVE: reach and patience were raised when this one was next */
	uint32_t last_again;    /* SELECTIVE: one behind the last packet sent again after a time-out */
	uint32_t ordered;       /* UNORDERED: one behind the last packet of an ordered message, or before acked */
	rwk_time timeout, ack_delay;
	struct rwk_rc_bits has_settled; /* has come (at the peer out of order; a Read's: the response has) */
	struct rwk_rc_bits is_lost;     /* to be sent again */
	struct rwk_rc_bits sent_now;    /* sent again */
	struct rwk_rc_bits sent_before; /* sent again before round_mark */
};

/** What a responder's next answer is. */
enum rwk_rc_answer {
	RWK_RC_ANSWER_NONE,
	RWK_RC_ANSWER_ACK,
	RWK_RC_ANSWER_NAK,   /* sequence error or not ready; `syndrome` */
	RWK_RC_ANSWER_FATAL, /* `syndrome`; nothing is taken from then on, and the QP fails */
};

/** The message that a responder is in the middle of. */
enum rwk_rc_message {
	RWK_RC_MESSAGE_NONE,
	RWK_RC_MESSAGE_SEND,
	RWK_RC_MESSAGE_WRITE,
	RWK_RC_MESSAGE_TURNED, /* BUSY: the Send `expected` was turned away (busy.c) */
	RWK_RC_MESSAGE_DENIED, /* DENIES: the packet `expected` is refused; an empty Write in its place says that this
				  is known */
	RWK_RC_MESSAGE_REST,   /* and then: what still comes of the Write that was refused is passed over */
};

enum rwk_rc_result_kind { RWK_RC_RESULT_NONE, RWK_RC_RESULT_READ, RWK_RC_RESULT_ATOMIC };

/**
 * An answer that carries data. A Read's is here until all of it is sent, and says what is left; an atomic's stays, for
 * as long as the peer may ask for it again.
 */
struct rwk_rc_result {
	uint64_t word;      /* a Read's address; the value that an atomic found */
	uint32_t key, left; /* of a Read; bytes. An atomic's key says how many were before it */
	uint32_t psn : 24;
	uint32_t kind : 2;
	uint32_t due : 1;   /* to be sent */
	uint32_t again : 1; /* for a duplicate. Between our own ends the region may be gone by then, since who asks may
			       have all of it meanwhile and have said so: then it is dropped. */
	uint32_t begun : 1; /* First has been sent */
} __attribute__((packed, aligned(4)));

/** Beyond those that the peer may have under way there is room for some duplicates. */
#define RWK_RC_RESULTS (RWK_RC_READS_MAX + 4)

/** Without pointers: it may lie in a segment that is mapped at two addresses. */
struct rwk_rc_responder {
	/* What was agreed. */
	uint32_t peer_qpn;
	uint32_t ack_delay; /* ns */
	uint16_t pmtu, ack_every;
	uint8_t service, own, reach;
	uint8_t peer_reads, rnr_timer;
	uint8_t open; /* the rest is in use. No bool, as below: others may write here (shared_rc) */

	/* Where it stands. */
	uint8_t message; /* enum rwk_rc_message */
	uint8_t answer;  /* enum rwk_rc_answer */
	uint8_t syndrome;
	uint8_t silent;   /* a NAK was sent (or is due): nothing more before `expected` comes */
	uint8_t congested; /* the peer is to be told (BECN) */
	uint8_t repeated; /* SELECTIVE: a packet has come that was here, which the peer is to be told */
	uint8_t due;      /* results that are due */
	uint16_t unacked; /* packets since the last acknowledgement */
	uint16_t kept_count, kept_reads;
	uint8_t share;          /* SELECTIVE: packets that the peer may have under way, and Reads; 0: as agreed */
	uint8_t skips;          /* BUSY: SRQs of which Sends are passed over (busy.c) */
	uint16_t atomics;       /* results that there were, modulo 2^16 */
	uint32_t expected, msn; /* 24 bits */
	uint32_t refused;       /* the packet that a NAK is about */
	uint32_t key, left;     /* of the Write under way; bytes */
	uint64_t address;
	rwk_time ack_at;         /* LAZY: when the acknowledgement is due; RWK_NEVER */
	rwk_time arrived;        /* when the last packet in order came */
	struct rwk_rc_bits kept; /* early packets that the host keeps */
	struct rwk_rc_result results[RWK_RC_RESULTS];
};

struct rwk_rc {
	const struct rwk_machine_host *host;
	void *user;
	struct rwk_rc_responder *responder;
	uint8_t state; /* enum rwk_qp_state */
	bool failed;   /* the host was told */
	bool blocked;  /* the link had no room in the last pump */
	bool holds;    /* BUSY was agreed for the requester: busy.c has its part behind this */
	struct rwk_rc_requester req;
	struct rwk_qp_counters counters;
} rwk_aligned;

/* An idle peer is to cost no more than this. */
static_assert(sizeof(struct rwk_rc) + sizeof(struct rwk_rc_responder) <= 1024, "a QP's memory");

/** A packet being made. */
struct rwk_rc_out {
	struct rwk_wire w;
	struct iovec iov[RWK_MACHINE_IOV];
	int count;
	uint32_t length; /* bytes of payload */
};

/** Hands it to the host and counts it: 0; -EAGAIN (qp->blocked). */
int rwk_rc_emit(struct rwk_rc *qp, const struct rwk_rc_out *o);
/** To ERR: `wr` (or NULL) ends with `status`, all others with -ECANCELED, and the host hears `err`. */
void rwk_rc_break(struct rwk_rc *qp, struct rwk_wr *wr, int status, int err);
/** Ends all that is posted with -ECANCELED, but for `wr`, which ends with `status`. */
void rwk_rc_flush(struct rwk_rc *qp, struct rwk_wr *wr, int status);

/* requester.c */
static inline bool rwk_rc_is_answered(const struct rwk_wr *wr)
{
	return wr->type >= RWK_WR_READ && wr->state != RWK_RC_WR_DENIED;
}

/** How far `psn` is into a work request that has begun; only meaningful below wr->packets. */
static inline uint32_t rwk_rc_at(const struct rwk_wr *wr, uint32_t psn)
{
	return (psn - wr->first_psn) & RWK_PSN_MASK;
}

/** The work request that a packet under way belongs to. */
struct rwk_wr *rwk_rc_find(struct rwk_rc *qp, uint32_t psn);
/** Packets from psn on of the same Read Request, itself included; 1 for everything else. */
uint32_t rwk_rc_request_left(const struct rwk_rc *qp, const struct rwk_wr *wr, uint32_t psn);
/**
 * Sends packet psn of wr; of a Read as one request for at most *count packets of the same Read Request, and *count set
 * to how many. 0; -EAGAIN.
 */
int rwk_rc_send(struct rwk_rc *qp, struct rwk_rc_out *o, struct rwk_wr *wr, uint32_t psn, uint32_t *count, bool ask);
/** Makes new packets, as many as may be made; then they are to be awaited, if there were any. */
void rwk_rc_make_new(struct rwk_rc *qp, rwk_time now);
void rwk_rc_await_new(struct rwk_rc_requester *r, rwk_time now);
/** DENIES: the peer has refused packet psn, and with it the work request that it belongs to. */
void rwk_rc_denied(struct rwk_rc *qp, uint32_t psn);
/** Ends the work requests all of whose packets are before una. */
void rwk_rc_complete(struct rwk_rc *qp);

/* answers.c */
void rwk_rc_answer(struct rwk_rc *qp, const struct rwk_wire *w, const uint8_t *payload, size_t len, rwk_time now);

/* marks.c: SELECTIVE */
static inline bool rwk_rc_is_again(const struct rwk_rc_requester *r, uint32_t psn)
{
	return rwk_rc_bit(&r->sent_now, psn) || rwk_rc_bit(&r->sent_before, psn);
}

/** A packet that was sent again has come: what was sent but once, and is older, would have come before. */
static inline void rwk_rc_has_come_again(struct rwk_rc_requester *r, uint32_t psn)
{
	if (rwk_psn_diff(psn, r->sure) > 0)
		r->sure = psn;
}

/** Packet psn has come, or its answer has. */
void rwk_rc_settle(struct rwk_rc_requester *r, uint32_t psn);
/** All before `upto` has come and will be before una. */
void rwk_rc_settle_to(struct rwk_rc_requester *r, uint32_t upto);
/** Forgets the marks of the packets from `from` to before `to`. */
void rwk_rc_unmark(struct rwk_rc_requester *r, uint32_t from, uint32_t to);
/**
 * What losses have left, numbers at or behind una, is to be no further behind: half a number space later it would seem
 * to lie ahead. Whenever una enters the next so many packets:
 */
#define RWK_RC_FOLLOW (1u << 20)
void rwk_rc_marks_follow(struct rwk_rc_requester *r);
/** Moves una over what is settled and in order at the peer. */
void rwk_rc_move_una(struct rwk_rc *qp);
void rwk_rc_mark_lost(struct rwk_rc_requester *r, uint32_t psn);
void rwk_rc_mark_again(struct rwk_rc_requester *r, uint32_t psn);
/** After news: what is lost by it, and whether the clock decides about the rest. */
void rwk_rc_look_for_lost(struct rwk_rc *qp, rwk_time now);
#define RWK_RC_PATIENCE_MAX 8 /* quarters of a round trip */
/** As it is in the beginning: hardly any packet overtakes another. */
void rwk_rc_expect_order(struct rwk_rc_requester *r);
/** Packet psn counts as lost, because others have come that were sent later. */
void rwk_rc_guess_lost(struct rwk_rc_requester *r, uint32_t psn);
/** The peer has had a packet twice: if it was sent again on a guess, the guess was wrong. */
void rwk_rc_guessed_wrong(struct rwk_rc_requester *r);

/* loss.c */
void rwk_rc_ring(struct rwk_rc *qp, rwk_time now);
/** Strict: sends again from psn on. False: the retries are used up, and the QP has failed. */
bool rwk_rc_go_back(struct rwk_rc *qp, uint32_t psn);
void rwk_rc_send_again(struct rwk_rc *qp, rwk_time now);
void rwk_rc_not_ready(struct rwk_rc *qp, uint32_t psn, unsigned code, rwk_time now);

/* window.c */
void rwk_rc_window_open(struct rwk_rc_requester *r);
/** A round trip took so long (ns). */
void rwk_rc_round_trip(struct rwk_rc_requester *r, rwk_time took);
void rwk_rc_window_grow(struct rwk_rc_requester *r, uint32_t settled);
/** The peer's acknowledgement has said how many packets we may have under way; 0: as many as was agreed. */
void rwk_rc_window_limit(struct rwk_rc_requester *r, uint32_t share);
/** A packet before `next` was lost, or the network is congested: once for a round trip. True: it was halved. */
bool rwk_rc_window_halve(struct rwk_rc_requester *r, uint32_t psn);
/** There was no loss: the window is as it was, cwnd_before. */
void rwk_rc_window_restore(struct rwk_rc_requester *r);
rwk_time rwk_rc_probe_time(const struct rwk_rc_requester *r);
rwk_time rwk_rc_retry_time(const struct rwk_rc_requester *r);
rwk_time rwk_rc_reorder_time(const struct rwk_rc_requester *r);
/** Starts the clock anew for what is under way, or stops it. */
void rwk_rc_rearm(struct rwk_rc_requester *r, rwk_time now);

static inline uint32_t rwk_rc_span(const struct rwk_rc_requester *r)
{
	return (r->next - r->una) & RWK_PSN_MASK;
}

/** Packets thought to be in the network. */
static inline uint32_t rwk_rc_under_way(const struct rwk_rc_requester *r)
{
	return rwk_rc_span(r) - r->settled - r->lost;
}

/* responder.c */
/** Is that the right number of bytes for such a packet? */
bool rwk_rc_fits(const struct rwk_rc_responder *r, unsigned kind, size_t len);
/** May the peer read so much, and at all? 0; -EINVAL, -EACCES. */
int rwk_rc_may_read(struct rwk_rc *qp, const struct rwk_wire *w);
/** And just that? 0; what the host says. */
int rwk_rc_reach_read(struct rwk_rc *qp, const struct rwk_wire *w);
/** The syndrome for what the host says, but not ready; counted. */
uint8_t rwk_rc_syndrome(struct rwk_rc *qp, int err);
void rwk_rc_request(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, rwk_time now);
/** The packet that is `expected` has come: takes it, and what was kept behind it. */
void rwk_rc_in_order(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, rwk_time now);
/** Takes that packet alone. True: taken, and expected has moved on. */
bool rwk_rc_take(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, rwk_time now);
/** Refuses packet psn for good: the NAK goes out behind the answers that are due, then the QP fails. */
void rwk_rc_refuse(struct rwk_rc *qp, uint32_t psn, uint8_t syndrome);
/** DENIES: tells the peer that packet psn may not reach what it names. */
void rwk_rc_deny(struct rwk_rc *qp, uint32_t psn);
/** The errno that stands for a NAK. */
int rwk_rc_error(unsigned syndrome);

/* early.c */
/** Drops what is kept under that number; `read`: it is a Read Request. */
void rwk_rc_forget(struct rwk_rc *qp, uint32_t psn, bool read);
void rwk_rc_early(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, uint32_t ahead);
void rwk_rc_duplicate(struct rwk_rc *qp, const struct rwk_wire *w, rwk_time now);
/** Takes what was kept and is in order now. */
void rwk_rc_drain(struct rwk_rc *qp, rwk_time now);
/** Drops what is kept of the packets from `from` to before `to`. */
void rwk_rc_drop_kept(struct rwk_rc *qp, uint32_t from, uint32_t to);

/* unordered.c */
/** In the headers of what the host keeps: it was done before its turn, but for what aeth.syndrome refuses (or 0). */
#define RWK_RC_TAKEN 4u /* in place of `pad`, which is 3 at most */

static inline bool rwk_rc_is_unordered(const struct rwk_wire *w)
{
	return w->opcode >= RWK_WIRE_OWN;
}

/** The class of un-ordered requests. */
static inline uint8_t rwk_rc_unordered_class(uint8_t service)
{
	return service == RWK_WIRE_SRC ? RWK_WIRE_OWN_SRC : RWK_WIRE_OWN;
}

/** Places a packet of an un-ordered Write: 0; what the host says, or -EINVAL. */
int rwk_rc_write_unordered(struct rwk_rc *qp, const struct rwk_wire *w, unsigned kind, const void *payload, size_t len);
/** Does the host have to keep its payload? */
bool rwk_rc_waits(const struct rwk_wire *w);
/** The host keeps that packet from now on: does what can be done before its turn. */
void rwk_rc_before_turn(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len);
/** The turn of one has come that is done. False: it is refused. */
bool rwk_rc_pass(struct rwk_rc *qp, const struct rwk_wire *w);
/** Refuses in its turn the Read that packet psn belongs to, which was executed before it. */
void rwk_rc_refuse_later(struct rwk_rc *qp, uint32_t psn, int err);

/* busy.c, the requester: only with `holds` */
void rwk_rc_hold_open(struct rwk_rc *qp);
bool rwk_rc_hold_empty(const struct rwk_rc *qp);
/** When there is something to try; RWK_NEVER. */
rwk_time rwk_rc_hold_next(const struct rwk_rc *qp);
/** A new one: true, it waits, since others to its SRQ do. */
bool rwk_rc_hold_back(struct rwk_rc *qp, struct rwk_wr *wr);
/** Tries those whose time has come. */
void rwk_rc_hold_try(struct rwk_rc *qp, rwk_time now);
/** A work request has left the queue: it was taken, or taken back by its owner. */
void rwk_rc_hold_left(struct rwk_rc *qp, const struct rwk_wr *wr, bool taken);
/** What waits is in the queue again, to be flushed with it. */
void rwk_rc_hold_flush(struct rwk_rc *qp);
/** Packet psn is the first of a Send that was turned away. */
void rwk_rc_turned_away(struct rwk_rc *qp, uint32_t psn, rwk_time now);
/** The work request, DENIED, of a packet that is an empty Write; NULL: it is none. */
struct rwk_wr *rwk_rc_nothing(struct rwk_rc *qp, uint32_t psn);
/** The address of that empty Write. */
uint64_t rwk_rc_says(const struct rwk_rc *qp, uint32_t psn);
/** una has moved. */
void rwk_rc_hold_passed(struct rwk_rc *qp, uint32_t from, uint32_t to);
/* and the responder */
/** The Send to that SRQ which is expected is turned away. False: it cannot be, without BUSY. */
bool rwk_rc_turn_away(struct rwk_rc *qp, uint32_t srqn);
void rwk_rc_say_busy(struct rwk_rc_responder *r);
/** TURNED, and this packet comes in its place: does it say that this is known? Else it is said again. */
bool rwk_rc_is_known(struct rwk_rc *qp, const struct rwk_wire *w);
/** The packet that is expected: is it of a Send that its requester has taken back? */
bool rwk_rc_is_skipped(struct rwk_rc *qp, const struct rwk_wire *w);

/* reads.c */
/** Has its turn not come? */
static inline bool rwk_rc_is_early(const struct rwk_rc_responder *r, uint32_t psn)
{
	return rwk_psn_diff(psn, r->expected) >= 0;
}
/** Packets, and numbers, of a Read of so many bytes. */
static inline uint32_t rwk_rc_read_packets(const struct rwk_rc_responder *r, uint32_t bytes)
{
	return rwk_segment_count(bytes, r->pmtu);
}
/** Reads and atomics that the peer waits for, but for duplicates. */
unsigned rwk_rc_reads_waiting(const struct rwk_rc_responder *r);
void rwk_rc_read_add(struct rwk_rc_responder *r, const struct rwk_wire *w);
void rwk_rc_atomic_add(struct rwk_rc_responder *r, uint32_t psn, uint64_t before);
/** A duplicate of a Read. Without room it is passed over: the peer will ask once more. */
void rwk_rc_read_again(struct rwk_rc *qp, const struct rwk_wire *w);
/** A duplicate of an atomic; of one that is not known it is passed over. */
void rwk_rc_atomic_again(struct rwk_rc_responder *r, uint32_t psn);
/**
 * Sends answers in the order of their numbers; those whose turn has not come only if no acknowledgement is due, which
 * has to go before them. False: the link has no room, some are left. */
bool rwk_rc_send_answers(struct rwk_rc *qp);

/* ack.c */
/** A packet in order was taken. */
void rwk_rc_ack_later(struct rwk_rc_responder *r, const struct rwk_wire *w, rwk_time now);
static inline void rwk_rc_ack_now(struct rwk_rc_responder *r)
{
	if (r->answer == RWK_RC_ANSWER_NONE)
		r->answer = RWK_RC_ANSWER_ACK;
}
/** Sends the acknowledgement or NAK that is due. */
void rwk_rc_send_ack(struct rwk_rc *qp, rwk_time now);
/** The number of the last packet in order, all before it answered, is out: nothing is due for it. */
void rwk_rc_ack_is_out(struct rwk_rc_responder *r);

#endif

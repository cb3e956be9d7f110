/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reliable connection: every message arrives once, in order, or the QP fails. RC's rules on the wire are in
 * ../wire/FORMAT.md; the machine's own conduct towards another machine of ours is set by rwk_rc_attr.own, which both
 * ends must have alike. How the files share the work is told in internal.h.
 *
 *   QP = requester + responder. States RESET, INIT, RTR (the responder takes), RTS (the requester sends), ERR.
 *   pump: makes packets of what is posted and of what is to be sent again, as the window and the link have room; sends
 *         Read responses and acknowledgements that are due. Its owner calls it after posting, after packets, at times
 *         when rwk_rc_next has passed; then flushes the link. (Of many Reads that are asked for again some responses
 *         may leave from rwk_rc_packet.)
 *
 * A Read counts in the window for the packets of its response. With SELECTIVE no more of them are under way than the
 * window and read_window allow: the receiver of the data controls the flow. Where there is less room than for a whole
 * request, several ask for its parts. Without, one Read may go beyond it, and what is posted
 * behind waits until its responses have come.
 *
 * UNORDERED: what is posted as un-ordered goes by an un-ordered type, if nothing ordered before it waits for its
 * acknowledgement (S2-9, S2-10). The peer places such a Write, executes such a Read and delivers such a Send, once all
 * of it is there, although packets before it are missing (S2-11, S2-12). Work requests end in the order of posting all
 * the same, and what is wrong is said in its turn. Without UNORDERED both hints are passed over.
 *
 * Of an acknowledgement of our own (SELECTIVE) the payload that emit gets, at most 36 bytes, is valid during the call
 * only; a link copies pieces that short (RWK_LINK_COPIED).
 */
#ifndef RWK_RC_RC_H
#define RWK_RC_RC_H

#include "machine.h"

struct rwk_rc;

/** What two machines of ours may agree on. None of it towards anybody else. */
enum rwk_rc_own {
	RWK_RC_SELECTIVE = 1 << 0, /* early packets are kept, acknowledged one by one, and only lost ones sent again;
				      probes for a lost tail; Read responses are placed as they come */
	RWK_RC_LAZY = 1 << 1,    /* acknowledgements come at once only if AckReq is set; else by number or after a time,
				    or with a message of the client's (rwk_rc_take_ack); AckReq is set when the sender's
				    window runs out */
	RWK_RC_ENDLESS = 1 << 2, /* silence is not death: retries back off to a second and never end; death is for the
				    owner to notice */
	RWK_RC_UNORDERED = 1 << 3, /* with SELECTIVE: requests have un-ordered types (../wire/FORMAT.md), which may be
				      done before their turn; the host has `mark` */
	RWK_RC_DENIES = 1 << 4,    /* with SELECTIVE, without UNORDERED: a request that may not reach what it names ends
				      with -EACCES, alone; all others go on. Without, the QP fails */
	RWK_RC_BUSY = 1 << 5,      /* SRC with SELECTIVE, without the two before: if an SRQ turns a Send away (busy.c),
				      the Sends to it wait at their requester, in order, and all others go on. So work
				      requests to one SRQ end in the order of posting, those to two need not */
};

#define RWK_RC_WINDOW_MAX 256u /* packets under way */
#define RWK_RC_READS_MAX  16u  /* Reads and atomics under way that a responder keeps */

struct rwk_rc_attr {
	uint32_t peer_qpn;
	uint32_t send_psn, receive_psn; /* the first of each direction */
	uint16_t pmtu;                  /* bytes (rwk_wire_is_pmtu) */
	uint16_t window;     /* packets that may be under way, 1 to RWK_RC_WINDOW_MAX; with SELECTIVE the machine
				begins with 32 and halves at losses */
	uint16_t read_window; /* SELECTIVE: packets of Read responses that may be under way to us, which is for this
				end to say; 0: as many as `window` allows */
	uint8_t reads;       /* Reads and atomics of ours that may be under way, 1 to RWK_RC_READS_MAX */
	uint8_t peer_reads;  /* and of the peer's, that the responder has room for, 0 to RWK_RC_READS_MAX */
	uint8_t retry;       /* 0 to 7; not with ENDLESS */
	uint8_t rnr_retry;   /* 0 to 6; 7: for ever */
	uint8_t rnr_timer;   /* the code in our RNR NAKs, 0 to 31 */
	uint8_t service;     /* RWK_WIRE_RC, or RWK_WIRE_SRC: opcodes carry that class, requests an SRQ number */
	unsigned own;        /* enum rwk_rc_own */
	unsigned reach;      /* of RWK_REACH_*: what the peer may do by RDMA */
	rwk_time timeout;    /* until the oldest packet is sent again; with SELECTIVE only where it starts from, and what
				silence is at least, to count as one of `retry` */
	rwk_time ack_delay;  /* LAZY: an acknowledgement waits at most so long, the peer's too; below 4 s */
	uint16_t ack_every;  /* LAZY: and for at most so many packets; within a message, twice */
	uint32_t read_chunk; /* bytes of one Read Request at most, a multiple of pmtu; 0: no limit. Longer Reads are
				several requests. With SELECTIVE never more than the window, and 0 is a quarter of it */
};

/** Bytes of a QP's memory: the requester's, and the responder's (which may lie elsewhere, see rwk_rc_open). */
size_t rwk_rc_size(void);
size_t rwk_rc_responder_size(void);
/** BUSY: so many more, of each of the two. */
#define RWK_RC_BUSY_SIZE           256u
#define RWK_RC_BUSY_RESPONDER_SIZE 32u

/**
 * Makes a QP in `memory` (rwk_rc_size bytes, cache-line aligned), with its responder in `responder`
 * (rwk_rc_responder_size bytes, 8-byte aligned, zeroed for a new one; it holds no pointer). State RESET. The caller
 * frees both after rwk_rc_close. For who is going to agree on BUSY both have to be longer (above).
 *
 * A responder that is in use by another process (under a lock of theirs) is opened the same way: the step to RTR leaves
 * it where it stands, whatever PSN attr has. The step to RESET, and close, are for its last user: they drop what is
 * kept.
 */
struct rwk_rc *rwk_rc_open(void *memory, void *responder, const struct rwk_machine_host *host, void *user);
/**
 * Takes up another responder, one that has been open already, in place of the one before: for who answers many peers
 * in turn with one QP that itself never sends. The QP stands where that responder does: in RTR, or in ERR if it has
 * refused something and said so.
 */
void rwk_rc_lend(struct rwk_rc *qp, void *responder);
/**
 * Copies a responder to where another has been, or to zeroed memory; its saved answers only if there may be some. The
 * copy has none of the other's.
 */
void rwk_rc_copy_responder(void *to, const void *from);
/**
 * Could that be a responder of SRC, without atomics, that was used by nobody but this machine? For one that has lain
 * where others can write; false: it must not be lent.
 */
bool rwk_rc_responder_is_sound(const void *responder);
/** The number of the next packet that the responder takes, 24 bits. */
uint32_t rwk_rc_expected(const struct rwk_rc *qp);
/** Flushes what is posted (done with -ECANCELED), drops what is kept. */
void rwk_rc_close(struct rwk_rc *qp);

/**
 * RESET -> INIT -> RTR -> RTS, or any -> ERR, or any -> RESET. attr is needed for RTR (and copied), else NULL. -EINVAL:
 * no such step, or a value out of its range (nothing was done). To ERR, and to RESET: what is posted is flushed, and
 * host->failed is not called, since its owner asked for it.
 */
int rwk_rc_modify(struct rwk_rc *qp, enum rwk_qp_state state, const struct rwk_rc_attr *attr);
enum rwk_qp_state rwk_rc_state(const struct rwk_rc *qp);

/**
 * Posts a work request; the packets are made by pump. 0; -EINVAL: not in RTS (in ERR: 0, and done with -ECANCELED in
 * the next pump), a type or flag that does not exist or that the type cannot have, more than one of FENCE, UNORDERED
 * and HALF, an atomic that is not of 8 bytes, a Send or Write of more than RWK_MACHINE_IOV pieces; -EMSGSIZE: more than
 * RWK_WIRE_LENGTH_MAX.
 */
int rwk_rc_post(struct rwk_rc *qp, struct rwk_wr *wr);
/** Takes back a posted request of which no packet has been made: 0; -EBUSY. */
int rwk_rc_withdraw(struct rwk_rc *qp, struct rwk_wr *wr);

/** A packet for this QP, its ICRC right. */
void rwk_rc_packet(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, rwk_time now);

/** Makes packets and does what the clock demands. Returns how many packets it emitted. */
int rwk_rc_pump(struct rwk_rc *qp, rwk_time now);
/**
 * When pump is to be called again, if nothing else happens; 0: at once (something is due, or the link had no room);
 * RWK_NEVER.
 */
rwk_time rwk_rc_next(const struct rwk_rc *qp);
/** Would a pump do nothing now, but for what the clock may demand? All that is posted is sent, and no answer is due. */
bool rwk_rc_at_rest(const struct rwk_rc *qp);
/** Does nothing new go out before an acknowledgement has come? */
bool rwk_rc_is_full(const struct rwk_rc *qp);
/**
 * A pump's short form, of a machine that was at rest before something was posted: makes the new packets, and asks for
 * the time when they are on their way. Returns how many it emitted; then rwk_rc_hurried is to be called.
 */
int rwk_rc_hurry(struct rwk_rc *qp);
void rwk_rc_hurried(struct rwk_rc *qp, rwk_time now);
/** Has everything posted been sent and acknowledged? */
bool rwk_rc_idle(const struct rwk_rc *qp);
/**
 * Is the peer late with its answers: silent for so long that it has been asked again, or half a millisecond behind as a
 * rule? Its process has no CPU, then, or computes. Who waits for a request to end waits for that.
 */
bool rwk_rc_is_late(const struct rwk_rc *qp);

/**
 * SELECTIVE: the peer may have so many packets under way from now on (127 for more); 0: as many as was agreed. The next
 * acknowledgement says so; and so many packets of Read responses may be under way to us. It is for who has one receive
 * buffer for several peers.
 */
void rwk_rc_share(struct rwk_rc *qp, uint32_t packets);
/**
 * SELECTIVE: no more packets than that are under way from now on, whatever was agreed and the peer says; 0: no such
 * bound. It is for who knows that each takes more room at the peer than was thought when the window was agreed.
 */
void rwk_rc_bound(struct rwk_rc *qp, uint32_t packets);

/**
 * LAZY: the acknowledgement that is due, to travel with a message of the client's: true, *word the number of the last
 * packet in order (24 bits) and the peer's share (7 bits from bit 25 on; bit 24 is zero), and none will be sent for it.
 * `again`: one that has been sent is said once more, for the message may be there before it. False: none is due.
 */
bool rwk_rc_take_ack(struct rwk_rc *qp, bool again, uint32_t *word);
/**
 * What the peer's rwk_rc_take_ack said has come. A number that was never sent is dropped and counted (too_far); bit 24
 * does not count.
 */
void rwk_rc_acked(struct rwk_rc *qp, uint32_t word, rwk_time now);

/** The peer is no longer there, by evidence: the QP goes to ERR with `err`. */
void rwk_rc_fail(struct rwk_rc *qp, int err);

const struct rwk_qp_counters *rwk_rc_counters(const struct rwk_rc *qp);

#endif

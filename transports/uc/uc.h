/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The unreliable connection: packets carry numbers, nothing is acknowledged, nothing sent again; a message of which a
 * packet is lost is dropped whole. On a stream (tcp) nothing is lost and the machine only cuts and joins.
 *
 * The same shape as rc.h: post, packet, pump. Send and Write only (S0-7). There is no clock: a UC QP does nothing by
 * itself.
 *
 * What may be lost is told when a later packet shows it: if the last packets of all are lost, nobody hears of it.
 *
 * That packets come from the connected QP alone (S0-3) is for the owner to see to: a packet does not name its sender's
 * QP, the link says from which address it came.
 */
#ifndef RWK_UC_UC_H
#define RWK_UC_UC_H

#include "machine.h"

struct rwk_uc;

struct rwk_uc_attr {
	uint32_t peer_qpn;              /* 24 bits */
	uint32_t send_psn, receive_psn; /* the first of each direction, 24 bits */
	uint16_t pmtu;                  /* bytes (rwk_wire_is_pmtu); both ends have the same */
	bool stream;                    /* the link loses nothing: a packet that does not fit is a breach */
	unsigned reach;                 /* RWK_REACH_WRITE, or 0: the peer may not write; other bits have no effect */
};

/** Bytes of a QP's memory: the requester's, and the responder's (which may lie elsewhere). */
size_t rwk_uc_size(void);
size_t rwk_uc_responder_size(void);

/**
 * Makes a QP in `memory` (rwk_uc_size bytes, cache-line aligned), with its responder in `responder`
 * (rwk_uc_responder_size bytes, 8-byte aligned, zeroed for a new one; it holds no pointer). State RESET. The caller
 * frees both after rwk_uc_close.
 *
 * A responder that is in use by another process (under a lock of theirs) is opened the same way: the step to RTR leaves
 * it where it stands, whatever PSN attr has. The step to RESET is for its last user.
 *
 * Upcalls used: emit, done, receive, reach, write, written; failed on a stream alone: -EPROTO, a packet did not fit.
 * What else receive and the others return than 0 drops the message without a word to the peer. A Send that is dropped
 * after its first piece was taken ends with no further piece: the next one's first piece begins the same receive again.
 */
struct rwk_uc *rwk_uc_open(void *memory, void *responder, const struct rwk_machine_host *host, void *user);
/** Flushes what is posted (done with -ECANCELED). The responder stays as it is. */
void rwk_uc_close(struct rwk_uc *qp);
/** As rwk_rc_modify. To RESET the counters stay. */
int rwk_uc_modify(struct rwk_uc *qp, enum rwk_qp_state state, const struct rwk_uc_attr *attr);
enum rwk_qp_state rwk_uc_state(const struct rwk_uc *qp);

/**
 * Posts a work request; the packets are made by pump. 0; -EOPNOTSUPP: a Read or an atomic (S0-7); -EINVAL: not in RTS
 * (in ERR: 0, and done with -ECANCELED in the next pump), a type or flag that UC does not have (INVALIDATE is RC's; a
 * FENCE has nothing to wait for), or more than RWK_MACHINE_IOV pieces; -EMSGSIZE.
 */
int rwk_uc_post(struct rwk_uc *qp, struct rwk_wr *wr);
/** Takes back a posted request of which no packet has been made: 0; -EBUSY. */
int rwk_uc_withdraw(struct rwk_uc *qp, struct rwk_wr *wr);

/** A packet for this QP from its peer, its ICRC right. */
void rwk_uc_packet(struct rwk_uc *qp, const struct rwk_wire *w, const void *payload, size_t len);

/**
 * Makes packets of what is posted, as the link has room; returns how many it emitted. A work request is done as soon as
 * its last packet is emitted (S0-6); whoever lets its client know of that flushes the link first, for till then the
 * payload is read where it lies. What `done` posts waits for the next pump.
 */
int rwk_uc_pump(struct rwk_uc *qp);
/** Has everything posted been sent? */
bool rwk_uc_idle(const struct rwk_uc *qp);

/**
 * Called, if set, whenever a message of the peer's is known to be lost (S0-11), and counted in `gaps` in any case: once
 * for each gap in the packets' numbers, however many messages were in it, and for each message that finds no receive
 * posted.
 */
void rwk_uc_on_loss(struct rwk_uc *qp, void (*lost)(void *user));

const struct rwk_qp_counters *rwk_uc_counters(const struct rwk_uc *qp);

#endif

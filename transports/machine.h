/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet machines' contract: what rc, uc and shared_rc share, and what stands between them and whoever runs them
 * (their host: transports/packet for the engine, src/channel_adapter for verbs programs, a test).
 *
 *   work request  what a client asks for: a Send, an RDMA Write or Read, an atomic; the client's memory until `done`
 *   requester     turns work requests into packets, in order, and keeps what may be needed again
 *   responder     takes requests: fixed-size state without a pointer, so that it can lie in a segment that is mapped
 *                 at two addresses
 *   host          the upcalls; what a machine knows of memory, links and receives is through these
 *
 * A machine is pure: it makes no system call, has no clock (`now` is an argument), allocates nothing and starts nothing
 * by itself. Its owner calls it with one thread at a time. Upcalls come from within its calls; an upcall must not call
 * the same machine again, but to withdraw, and `done` may post.
 */
#ifndef RWK_MACHINE_H
#define RWK_MACHINE_H

#include "base/list.h"
#include "link.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RWK_NEVER UINT64_MAX /* rwk_time: no deadline */

enum rwk_qp_state { RWK_QP_RESET, RWK_QP_INIT, RWK_QP_RTR, RWK_QP_RTS, RWK_QP_ERR };

enum rwk_wr_type {
	RWK_WR_SEND,
	RWK_WR_WRITE,
	RWK_WR_READ,
	RWK_WR_COMPARE_SWAP,
	RWK_WR_FETCH_ADD,
};

enum rwk_wr_flag {
	RWK_WR_IMM = 1 << 0,        /* SEND, WRITE: `imm` travels along */
	RWK_WR_INVALIDATE = 1 << 1, /* SEND: the peer invalidates the key `imm` */
	RWK_WR_SOLICITED = 1 << 2,  /* SEND, WRITE with IMM: ask for a solicited event */
	RWK_WR_FENCE = 1 << 3,      /* begins only when all Reads and atomics before it have ended */
	RWK_WR_PROMPT = 1 << 4,     /* SEND, WRITE: somebody waits for its end; LAZY: ask for the acknowledgement */
	/* Hints, S2-1; at most one of the two and FENCE (S2-6). With neither it is ordered. */
	RWK_WR_UNORDERED = 1 << 5, /* may be done before un-ordered and half-ordered ones that were posted before it */
	RWK_WR_HALF = 1 << 6,     /* done after all that was posted before it; un-ordered ones behind may overtake it */
	RWK_WR_CHANGING = 1 << 7, /* WRITE: others may store to its memory meanwhile, for it answers a Read; see emit */
};

struct rwk_wr {
	uint8_t type;  /* enum rwk_wr_type */
	uint8_t flags; /* enum rwk_wr_flag */
	uint16_t iov_count;
	uint32_t imm;
	const struct iovec *iov; /* local memory: source of SEND and WRITE, target of READ; of an atomic 8 bytes for the
				    value before, in the host's byte order */
	size_t length;           /* bytes: the sum of iov; at most RWK_WIRE_LENGTH_MAX */
	uint64_t remote;         /* address in the peer's region */
	uint32_t key;            /* of that region */
	uint32_t srqn;           /* SRC: whose receive queue */
	uint64_t swap_add, compare;

	struct rwk_list link; /* the machine's, from here on */
	uint32_t first_psn, packets;
	uint16_t state;
	uint16_t service; /* rc: the class of its requests' opcodes */
	uint32_t count; /* rc: packets made so far */
	uint64_t at;    /* uc: bytes in packets so far */
};

/** Where in its message a packet of a Send stands. */
enum { RWK_PIECE_FIRST = 1, RWK_PIECE_LAST = 2 };

enum rwk_reach { RWK_REACH_READ = 1, RWK_REACH_WRITE = 2, RWK_REACH_ATOMIC = 4 };

/** Upcalls; `user` is what the machine was opened with. Those of a responder stand in the second half. */
struct rwk_machine_host {
	/**
	 * Sends a packet: headers with opcode, PSN and all that the opcode has (the QP number of the peer too), and the
	 * payload where it lies, at most RWK_MACHINE_IOV pieces, unchanged until the link's next flush (of at most
	 * RWK_LINK_COPIED bytes: during the call). With w->changing the payload is memory that a peer reads, and others
	 * may store to meanwhile: it is to be read once, for what goes out and for the ICRC. 0; -EAGAIN: the link has
	 * no room, the machine tries again in its next pump.
	 */
	int (*emit)(void *user, const struct rwk_wire *w, const struct iovec *payload, int count);
	/**
	 * A work request has ended, those posted before it first: it is the client's again. 0; -ECANCELED flushed;
	 * -EACCES, -EINVAL, -EIO, -EAGAIN: the peer's NAK (access, invalid, operational; RNR retries used up);
	 * -ETIMEDOUT: retries used up.
	 */
	void (*done)(void *user, struct rwk_wr *wr, int status);
	/** The QP is in the error state, once: the first error. All outstanding work requests have ended before. */
	void (*failed)(void *user, int err);

	/**
	 * Between our own ends, at each time-out in a row from the second on: the peer has been silent for some time.
	 * It may compute, or what is long does not get through. `anew`: it is the second, so something had come since the
	 * last time this was said. May be NULL.
	 */
	void (*silent)(void *user, bool anew);

	/**
	 * A piece of a Send, those of one Send in order and nothing between them. 0: taken; -EAGAIN: no receive is
	 * posted, nothing was taken (only with RWK_PIECE_FIRST, but with any piece from an end of ours); -EBUSY: the
	 * same, of this SRQ alone (where that was not agreed it is as -EAGAIN); -EMSGSIZE: longer than the receive;
	 * -EINVAL: refused; -EIO. `where` is of RWK_PIECE_*. For SRC w->srqn says whose. A key to invalidate is in the
	 * last piece's w.
	 */
	int (*receive)(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len);
	/**
	 * Looks whether [address, address + len) can be reached with `key`: 0; -EACCES. Called for the first packet of
	 * each Write with its whole length (of an un-ordered one for each), and for each Read Request and atomic. Not
	 * for 0 bytes, which need no key; but for SRC then too, since the SRQ w->srqn must be one that may be named,
	 * and key and address do not matter.
	 */
	int (*reach)(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access);
	/**
	 * Places a piece of a Write; the key is looked at again: 0; -EACCES; of an end of ours -EAGAIN: no room.
	 */
	int (*write)(
		void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len);
	/** The last piece of a Write with immediate: consumes a receive. 0; -EAGAIN: none is posted. */
	int (*written)(void *user, const struct rwk_wire *w);
	/**
	 * Where a piece of a Read response lies: at most `max` pieces into iov, valid until the flush that follows.
	 * Their number; -EACCES.
	 */
	int (*read)(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max);
	/** Does the atomic of w; *before set. 0; -EACCES; -EINVAL: not aligned. */
	int (*atomic)(void *user, const struct rwk_wire *w, uint64_t *before);
	/**
	 * Between our own ends, an early packet: keeps its headers and payload under that number (below the window), or
	 * gives it back, or drops it. Keep: 0, or -ENOMEM (the packet counts as lost).
	 */
	int (*keep)(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len);
	const void *(*kept)(void *user, uint32_t slot, struct rwk_wire *w, size_t *len);
	void (*drop)(void *user, uint32_t slot);
	/** Un-ordered types: what is kept has these headers from now on, and its payload is not asked for any more. */
	void (*mark)(void *user, uint32_t slot, const struct rwk_wire *w);
};

#define RWK_MACHINE_IOV 10 /* pieces of a packet's payload, at most */

/** Packets and bytes of one QP, in and out; the drops by reason. */
struct rwk_qp_counters {
	uint64_t packets_out, bytes_out, packets_in, bytes_in; /* bytes of payload */
	uint64_t sent_again, timeouts, probes;
	uint64_t acks_out, acks_in, naks_out, naks_in, rnr_out, rnr_in;
	uint64_t duplicates, early, kept, gaps; /* gaps: UC messages lost */
	uint64_t before_turn; /* un-ordered packets that were taken although earlier ones were missing */
	uint64_t bad_opcode, bad_length, bad_access, bad_state, too_far;
};

#endif

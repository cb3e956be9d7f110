/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC on shared memory: what two processes of a node share, and what each keeps for itself.
 *
 *   pair     two endpoints that talk: one memfd of fixed, sealed size that both map. Sparse: only what is touched
 *            costs memory.
 *   half     the part of a pair that one side writes: its ring (the other side reads it), its slabs' home, its
 *            transfer area
 *   ring     single producer, single consumer, slots of one cache line with a sequence number in each: the link's PSN
 *   slab     payload of messages too long for the ring's lines; belongs to one side at a time and changes hands with
 *   the message transfer a read of an exposed region: cross-memory copies by one side or both, or copies through the
 *   transfer area
 *   direct   a read or write of a region that stays exposed: a cross-memory copy by who asks for it, of a long one
 *            together with a peer that polls
 *   inbox    one page of each port, mapped by its peers: the flags for sleeping and the doorbell bits
 *
 * Nothing in shared memory is trusted: a word is read once into local memory, checked, then used. What each side
 * believes about the other (positions, owners of slabs) is kept in private memory; the shared copies are only hints
 * that it checks.
 *
 * The files: layout.h what lies in shared memory, channel.h what does not; ring.* the rings, slab.* the payload, fill.*
 * how it is stored there, send.c what goes, deliver.c what comes, arrival.* how it had better come, port.c the port and
 * its polling, attach.c handshake and identity, evidence.c death, wake.c bells and sleeping, transfer.* reads and writes
 * of exposed memory. ring, slab and transfer know a pair; only port and attach know how a pair comes to be.
 */
#ifndef RWK_SHM_PAIR_H
#define RWK_SHM_PAIR_H

#include "transport.h"

#include "base/compiler.h"

#include <stdatomic.h>
#include <sys/types.h>

#define RWK_SHM_LAYOUT_VERSION 15u

/** The state of a pair on this side; the service's channel. */
struct rwk_shm_channel;

/** Kinds of the service's own records in the ring (see RWK_KIND_SERVICE): body of at most 48 bytes, delivered in order
 * with messages. */
enum rwk_shm_control {
	RWK_SHM_SLABS_BACK = RWK_KIND_SERVICE, /* slab.c: these slabs are yours again */
	RWK_SHM_TRANSFER_FIRST,                /* transfer.c: this and the next seven */
	RWK_SHM_TRANSFER_LAST = RWK_SHM_TRANSFER_FIRST + 7,
	RWK_SHM_BYE,   /* port.c: the peer has closed its port in good order */
	RWK_SHM_PIECE, /* deliver.c: a further piece of a message, in the slab named */
	RWK_SHM_GROW,  /* ring.c: from its next wrap on the ring has so many lines */
	RWK_SHM_ARRIVAL, /* arrival.h: these lengths I had rather fetch */
};

#define RWK_SHM_CONTROL_MAX 48

/*
 * What transfer.c gets from the rest of the service (implemented in port.c, ring.c, attach.c).
 */

/**
 * Puts a control record into the ring, or queues it in private memory if the ring is full. 0, or -ENOMEM, or the
 * channel's error. No later message overtakes it; it may overtake ops that are queued (they may wait for what it
 * tells).
 */
int rwk_shm_control(struct rwk_shm_channel *ch, enum rwk_shm_control kind, const void *body, size_t len);

/** This side's (mine) or the other's transfer area in the mapped pair; RWK_SHM_TRANSFER_BYTES, page-aligned, zero at
 * first. NULL: the pair is not mapped yet. */
#define RWK_SHM_TRANSFER_BYTES (1u << 20)
#define RWK_SHM_TRANSFER_BEGIN 4096u /* bytes of it that are touched as soon as a side has a state: they have memory */
void *rwk_shm_transfer_area(struct rwk_shm_channel *ch, bool mine);

/** The peer's process, proven at attach. */
pid_t rwk_shm_peer_pid(const struct rwk_shm_channel *ch);

/** Does the peer poll, as far as can be told? False: it sleeps, and a control record would wake it. */
bool rwk_shm_peer_polls(const struct rwk_shm_channel *ch);

/** False in a forked child: there the pair is not mapped. */
bool rwk_shm_here(const struct rwk_shm_channel *ch);

/**
 * Is the process that was proven at attach still the one behind that pid? Costs a system call (poll of a pidfd, or a
 * read in /proc). Call it after a cross-memory copy out of the peer, whose pid may have been reused in between.
 */
bool rwk_shm_peer_alive(struct rwk_shm_channel *ch);

/** transfer.c's state of this channel and of this port; allocated by transfer.c, NULL until first used. */
void **rwk_shm_transfer_state(struct rwk_shm_channel *ch);
void **rwk_shm_transfer_port_state(struct rwk_port *port);

/** The peer has broken the protocol: fails the channel with -EPROTO at the end of the current progress. `what` is
 * logged. */
void rwk_shm_protocol_error(struct rwk_shm_channel *ch, const char *what);

#endif

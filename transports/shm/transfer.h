/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers: how reads and writes of a region that the peer has exposed are carried out on one node.
 *
 * Direct: a region that was exposed writable, or that is all memory, stays exposed and is reached again and again
 * (nobody exposes a message so). Who reads or writes it copies by himself, with process_vm_readv and process_vm_writev,
 * at once or chunk by chunk; his peer may be busy, or stopped. One that polls is asked to help with what is long, and
 * joins in from the other end (as in `both` below, and where that has been found faster). Where copies are denied the
 * operation ends with -EOPNOTSUPP, and direct_min becomes 0. What guards the memory after conceal
 * stands in transfer_guard.c.
 *
 * Read: of any other region. The reader posts; its peer may help.
 *
 * The methods of a read, chosen for each by what has been fastest for its size in this process pair so far (measured as
 * transfers go by; thresholds are never constants of one machine) and by what is allowed:
 *   pull     the reader copies with process_vm_readv
 *   both     reader and peer copy at once, claiming chunks from both ends; the peer pushes with process_vm_writev
 *   stage    the peer copies into its transfer area, the reader out of it, in a pipeline of blocks
 * The reader alone can always finish a pull, and goes on by pulling where a peer does not stage in time. A chunk that
 * the peer is about to push is waited for: were it copied twice, the late copy could land in memory that has been given
 * back. Only where the peer is seen stopped, and its push can be kept out, the reader copies that chunk, too.
 * Cross-memory copies may be denied at start or in the middle (EPERM, ESRCH of another namespace, ENOSYS, seccomp):
 * then the transfer goes on from where it was by stage.
 */
#ifndef RWK_SHM_TRANSFER_H
#define RWK_SHM_TRANSFER_H

#include "shm/pair.h"

#include "base/list.h"

/** As transport.h: post of RWK_OP_READ and RWK_OP_WRITE, access, withdraw, expose, conceal. */
int rwk_shm_transfer_post(struct rwk_shm_channel *ch, struct rwk_op *op);
int rwk_shm_transfer_access(struct rwk_shm_channel *ch, const struct rwk_direct_access *a);
int rwk_shm_transfer_withdraw(struct rwk_shm_channel *ch, struct rwk_op *op);
int rwk_shm_expose(
	struct rwk_shm_channel *ch, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key);
void rwk_shm_conceal(struct rwk_shm_channel *ch, const struct rwk_rkey *key);

/**
 * direct_min for a channel to be opened, as measured now (some 30 us): see transfer_least.c. 0: cross-memory copies
 * are forbidden or denied.
 */
size_t rwk_shm_direct_least(void);

/**
 * A message of `length` bytes begins to come in pieces, or is whole: how the next one should come is told to the peer.
 * `silent`: the client has sent nothing since the last such message came; `begun`: as its first line says.
 */
void rwk_shm_pieces_begin(struct rwk_shm_channel *ch, size_t length, bool silent, uint32_t begun);
void rwk_shm_pieces_end(struct rwk_shm_channel *ch, size_t length);

/** A control record RWK_SHM_TRANSFER_FIRST..LAST has come; body is a private copy. */
void rwk_shm_transfer_control(struct rwk_shm_channel *ch, unsigned kind, const void *body, size_t len);

/**
 * Part of the port's progress: moves what is under way on all channels, bounded; returns how many things it did.
 */
int rwk_shm_transfer_progress(struct rwk_port *port);

/** What a port's transfer state begins with, so that an empty poll need not ask. */
struct rwk_shm_transfers_head {
	struct rwk_list active; /* channels with transfers under way */
};

/** Anything under way that needs progress (then a port does not go to sleep for long). `state`: the port's, or NULL. */
static inline bool rwk_shm_transfer_busy(const struct rwk_shm_transfers_head *state)
{
	return state && !rwk_list_empty(&state->active);
}

/** Anything that needs nobody but this process to go on: then it does not sleep at all. */
bool rwk_shm_transfer_can_go(struct rwk_port *port);

/**
 * FI_ROPEWALK_STATS: what this process has copied, for itself and for its peers, and how its messages came and its
 * reads and writes were carried out, by length, to stderr; nothing if there was none. When the port's channels have
 * ended.
 */
void rwk_shm_transfer_summary(struct rwk_port *port, unsigned rank);

/** The channel has failed or ends: completes its ops with `status` (negative), frees its state. */
void rwk_shm_transfer_stop(struct rwk_shm_channel *ch, int status);
void rwk_shm_transfer_port_stop(struct rwk_port *port);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations: reads, writes and atomic operations on memory that a peer has made a region of (region.h).
 * Locks and upcalls as in engine.h.
 *
 * Order: towards one peer, requests are carried out at the target in the order of their calls, byte after byte,
 * whatever they are (so read after write, write after write, and so on, for all of libfabric's RAR, RAW, WAR, WAW and
 * their atomic kin). Only requests of at least rwk_channel.direct_min bytes, which the service may carry out by itself,
 * stand outside: they are in no order with others, unless RWK_F_FENCE is set on the later one, or on one in between: it
 * waits until all before it are complete, what comes behind it lines up, and messages to that peer are told -EAGAIN
 * until it goes.
 *
 * Completion: a write's or atomic's means that it has been carried out at the target (FI_DELIVERY_COMPLETE), a read's
 * that the data is in its buffer. The target's process must make progress (rwk_engine_progress) for requests to be
 * carried out, except direct ones where the service needs no help (rwk_channel.direct). Of these it learns later, if it
 * wants to (rwk_region_attr.told): by its next progress, and before any message sent then. Only a write with
 * data is complete when it has.
 */
#ifndef RWK_ENGINE_RMA_H
#define RWK_ENGINE_RMA_H

#include "engine/atomic.h"
#include "engine/engine.h"
#include "engine/region.h"

/** Bytes of one element array of an atomic request: the operands, and as many of comparands and results. */
#define RWK_ATOMIC_BYTES 1024

/** A range of a peer's region. */
struct rwk_remote {
	uint64_t address; /* as the region's base has it */
	size_t length;    /* bytes; of an atomic: elements times their size */
	uint64_t key;
};

struct rwk_rma_args {
	struct rwk_peer *peer;
	const struct iovec *iov; /* local memory: source of a write, target of a read, operands of an atomic (NULL: it
				    has none). iov is copied; what it names is the engine's until completion (or
				    return, with RWK_F_INJECT) */
	size_t iov_count;        /* 0 to RWK_ENGINE_IOV_MAX */
	const struct rwk_remote *remote; /* copied; its lengths sum up to those of iov */
	size_t remote_count;             /* 1 to RWK_ENGINE_IOV_MAX */
	uint64_t data;                   /* with RWK_F_DATA: for the target's completion, once the write is in place */
	uint32_t flags; /* RWK_F_INJECT (length at most RWK_INJECT_MAX), RWK_F_DATA with RWK_F_TO_ROOM, RWK_F_FENCE,
			   RWK_F_BEHIND, RWK_F_USER on */
	void *context;
};

/**
 * Start one: 0, a completion will follow, as a send's does (in the queue of sends or by `complete`), with RWK_F_RMA and
 * RWK_F_READ or RWK_F_WRITE. Its status: 0; -EACCES the key, range or permission is wrong at the target (nothing was
 * touched); -EFAULT that memory is not mapped there (a part may have been written); -ECONNRESET the peer has died,
 * -EPROTO it has answered what makes no sense and was given up (unknown how much was done); -ECANCELED; -ENOMEM here or
 * there.
 * -EAGAIN: as many as can be are under way, make progress and try again; -EINVAL: lengths differ, too many pieces;
 * -EMSGSIZE: inject of too much; -ECONNRESET, -EHOSTUNREACH: as a send's.
 */
ssize_t rwk_engine_write(struct rwk_engine *e, const struct rwk_rma_args *a);
ssize_t rwk_engine_read(struct rwk_engine *e, const struct rwk_rma_args *a);

/** An atomic request: the operands in rma.iov, its elements spread over rma.remote. */
struct rwk_atomic_args {
	struct rwk_rma_args rma;
	enum rwk_atomic_op op;
	enum rwk_atomic_type type;
	const struct iovec *compare; /* comparands, for operations that compare; read before the call returns */
	size_t compare_count;
	const struct iovec *result; /* what stood in memory before; NULL: not wanted. Copied as rma.iov */
	size_t result_count;
};

/**
 * Starts one. As rwk_engine_write, the completion has RWK_F_ATOMIC and RWK_F_READ if a result was asked for, else
 * RWK_F_WRITE. Operands and comparands are read before the call returns. -EOPNOTSUPP: there is no such operation for
 * that type (rwk_atomic_valid); -EMSGSIZE: more than RWK_ATOMIC_BYTES. Status -EINVAL: the address is not aligned to
 * the element's size.
 */
ssize_t rwk_engine_atomic(struct rwk_engine *e, const struct rwk_atomic_args *a);

/** Are reads, writes or atomics to it under way? */
bool rwk_peer_accessing(const struct rwk_peer *p);

/**
 * Of which accesses (RWK_REGION_*) rwk_engine_attr.reached is to be called, if it is set; at first of all. For direct
 * requests as well: peers then say what they have done, which costs them a message.
 */
void rwk_engine_want_reached(struct rwk_engine *e, unsigned access);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is bound to an endpoint of either kind and hears of its operations: a completion queue for each direction, a
 * counter for each kind of operation, an event queue.
 */
#ifndef RWK_FI_BOUND_H
#define RWK_FI_BOUND_H

#include "bindings/libfabric/av.h"
#include "bindings/libfabric/cntr.h"
#include "bindings/libfabric/cq.h"
#include "bindings/libfabric/eq.h"

#include <rdma/fi_endpoint.h>

/* What an operation carries until it completes, beside what its entry shows. */
#define RWK_FI_QUIET       RWK_F_USER        /* no queue entry unless it fails and has a context */
#define RWK_FI_INJECTED    (RWK_F_USER << 1) /* an inject call: without context, so no queue entry even if it fails */
#define RWK_FI_NOT_COUNTED (RWK_F_USER << 2) /* peek: nothing was transferred */
#define RWK_FI_TOLD        (RWK_F_USER << 3) /* a read or write: its completion comes by call, for a counter */
#define RWK_FI_TRIGGERED   (RWK_F_USER << 5) /* it has not begun: it waits for a counter (deferred.h) */
#define RWK_FI_DEFERRED    (RWK_F_USER << 6) /* its context is a struct rwk_fi_work */
#define RWK_FI_ASKED       (1u << 31)        /* a shared receive that asks for an entry (FI_COMPLETION) */

/** Where the completions of one direction go. */
struct rwk_fi_side {
	struct rwk_fi_cq *cq; /* may be NULL */
	bool selective;       /* entries only for operations that ask for one (FI_COMPLETION) */
};

enum { RWK_FI_TX, RWK_FI_RX, RWK_FI_SIDES };

/** Kinds of operations that counters count, in the order of libfabric's flags from FI_READ on. */
enum rwk_fi_counted {
	RWK_FI_READS,
	RWK_FI_WRITES,
	RWK_FI_RECEIVES,
	RWK_FI_SENDS,
	RWK_FI_REMOTE_READS, /* that others have carried out here */
	RWK_FI_REMOTE_WRITES,
	RWK_FI_COUNTED
};
_Static_assert(FI_READ << RWK_FI_WRITES == FI_WRITE && FI_READ << RWK_FI_RECEIVES == FI_RECV &&
		       FI_READ << RWK_FI_SENDS == FI_SEND && FI_READ << RWK_FI_REMOTE_READS == FI_REMOTE_READ &&
		       FI_READ << RWK_FI_REMOTE_WRITES == FI_REMOTE_WRITE,
	"each kind is a flag");

/** Does that flag of libfabric's name the kind? */
static inline bool rwk_fi_counts(uint64_t flags, int kind)
{
	return flags & (uint64_t)FI_READ << kind;
}

/** The flag of an operation of the program's: RWK_FI_QUIET or none. `asked`: FI_COMPLETION. */
static inline uint32_t rwk_fi_quiet(const struct rwk_fi_side *s, bool asked)
{
	return !s->cq || (s->selective && !asked) ? RWK_FI_QUIET : 0;
}

/** Binds a queue to the sides that the flags name: 0; -FI_EBADFLAGS, -FI_EINVAL, logged. */
int rwk_fi_bind_cq(struct rwk_fi_side side[RWK_FI_SIDES], const struct rwk_fi_domain *domain, struct rwk_fi_cq *cq,
	uint64_t flags);

/** May the address vector be bound, where `bound` is (NULL: none)? 0; -FI_EBADFLAGS, -FI_EINVAL, logged. */
int rwk_fi_check_av(
	const struct rwk_fi_av *bound, const struct rwk_fi_domain *domain, const struct rwk_fi_av *new, uint64_t flags);

/** May the counter be bound for the kinds that the flags name, of those `known`? 0; -FI_EINVAL, logged. */
int rwk_fi_check_cntr(struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], const struct rwk_fi_domain *domain,
	const struct rwk_fi_cntr *new, uint64_t flags, uint64_t known);

/** Binds the event queue, if *slot is NULL: 0; -FI_EBADFLAGS, -FI_EINVAL. */
int rwk_fi_bind_eq(struct rwk_fi_eq **slot, struct rwk_fi_eq *eq, uint64_t flags);

/** Is a counter bound for some of the kinds that the flags name? */
bool rwk_fi_is_counted(struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], uint64_t flags);

/**
 * Is there, for each direction that the capabilities have, somebody who hears of it: 0; -FI_ENOCQ, logged.
 */
int rwk_fi_check_bound(
	const struct rwk_fi_side side[RWK_FI_SIDES], struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], uint64_t caps);

/** The counter of what this endpoint has started or received, by the flags of its completion; or NULL. */
struct rwk_fi_cntr *rwk_fi_counter_of(struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], uint32_t flags);

/** It counts that, if there is one. */
void rwk_fi_count(struct rwk_fi_cntr *const cntr[RWK_FI_COUNTED], const struct rwk_completion *c);

/** A completion as the endpoint sees it that tells of it: of a shared receive the side says whether that is quiet. */
static inline struct rwk_completion rwk_fi_as_told(const struct rwk_fi_side *side, const struct rwk_completion *c)
{
	struct rwk_completion told = *c;

	if (side->selective && !(c->flags & (RWK_FI_ASKED | RWK_FI_NOT_COUNTED)))
		told.flags |= RWK_FI_QUIET;
	return told;
}

/** Is there to be an entry in the queue (or NULL)? */
bool rwk_fi_wants_entry(const struct rwk_fi_cq *cq, const struct rwk_completion *c);

/** Writes it, with the number of who sent it. */
void rwk_fi_put_entry(struct rwk_fi_cq *cq, const struct rwk_completion *c, fi_addr_t source);

/** Drops what is bound. */
void rwk_fi_unbind(
	struct rwk_fi_side side[RWK_FI_SIDES], struct rwk_fi_cntr *cntr[RWK_FI_COUNTED], struct rwk_fi_eq *eq);

#endif

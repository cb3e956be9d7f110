/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion queue. The engine writes what has gone well straight into it, as long as nobody must be told (a
 * counter, a sleeper) and there is room; the rest comes by completion.c. A read copies the first words of an entry:
 * each of libfabric's formats is a prefix of the longest one, and that is how the engine's entries begin. A full ring
 * grows; the size that a program asks for is where it starts. An error is an entry like others that only fi_cq_readerr
 * takes out.
 */
#ifndef RWK_FI_CQ_H
#define RWK_FI_CQ_H

#include "bindings/libfabric/wait.h"
#include "bindings/libfabric/domain.h"

struct rwk_fi_cq {
	struct fid_cq fid;
	struct rwk_fi_guard lock;
	struct rwk_completions done; /* `status` is a positive FI_E* here; `user` is an fi_addr_t */
	size_t entry_words;          /* 8-byte words of an entry in the program's format: 1, 3, 5 or 6 */
	uint32_t reads;              /* that have found something */
	struct rwk_fi_wait wait;
	struct rwk_fi_domain *domain;
	struct fid_peer_cq *owner; /* another provider's, that the entries go to (peer.h); NULL: they stay here */
	bool overrun;     /* a completion was lost for want of memory: every further read says so */
	bool threshold;   /* sread's condition is a number of entries */
	struct rwk_fi_member member;
	atomic_uint refs; /* endpoints bound */
};
_Static_assert(offsetof(struct rwk_fi_cq, wait) <= 2 * RWK_CACHE_LINE, "what a read and a completion use is together");

int rwk_fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

/** For fi_trywait: 0, or -FI_EAGAIN if there is an entry or something to do, or for a signal, once. */
int rwk_fi_cq_trywait(struct rwk_fi_cq *cq);

/** For sets: drives what is behind it; is there something to read, or (`waits`) has it been signaled, once? */
bool rwk_fi_cq_look(struct rwk_fi_cq *cq, bool waits);

/** Doubles the ring. False when out of memory: the completion is lost, the queue overrun, and that is logged. */
bool rwk_fi_cq_grow(struct rwk_fi_cq *cq);

/** Is there nothing to read? Under its lock. */
static inline bool rwk_fi_cq_is_empty(const struct rwk_fi_cq *cq)
{
	return cq->done.head == cq->done.tail;
}

/** Room for one more entry, for the caller to fill; NULL: see rwk_fi_cq_grow. Then call rwk_fi_cq_written. */
static inline struct rwk_completion *rwk_fi_cq_room(struct rwk_fi_cq *cq)
{
	struct rwk_completions *q = &cq->done;

	if (rwk_unlikely(q->tail - q->head > q->mask) && !rwk_fi_cq_grow(cq))
		return NULL;
	return &q->ring[q->tail & q->mask];
}

/** Lets the engine write as far as it may: up to the end of the ring, or nothing while somebody sleeps. */
static inline void rwk_fi_cq_open_up(struct rwk_fi_cq *cq)
{
	struct rwk_completions *q = &cq->done;

	q->limit = rwk_unlikely(cq->wait.armed) ? q->tail : q->head + q->mask + 1;
}

static inline void rwk_fi_cq_written(struct rwk_fi_cq *cq)
{
	cq->done.tail++;
	rwk_fi_wait_arrived(&cq->wait);
	rwk_fi_cq_open_up(cq);
}

#endif

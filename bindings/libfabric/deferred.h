/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that wait for a counter: those of FI_TRIGGER (trigger.c), and deferred work (work_queue.c). The queue and
 * what becomes of its entries is in deferred.c.
 *
 * A work is made with all of its arguments copied, but the memory that is to be sent, read or written. It waits in its
 * counter's list, in the order of thresholds and of calls with the same one. Whatever moves the counter looks at the
 * list; what is due begins there and then, also from within a completion, one after the other: works that begin while
 * another one does, come after it. One that cannot begin yet (-FI_EAGAIN) stalls, and all of its endpoint that come
 * after it; its engine calls again. Once begun, one of FI_TRIGGER is an operation like others and its work is gone; the
 * work of a deferred one stays until it completes.
 *
 * The counters that a work names refuse to close (-FI_EBUSY) until it is gone. An endpoint that is closed drops its
 * works, whether they wait or have begun, without completions, as it does with its other operations.
 *
 * A counter that has had a work drives all endpoints of the domain from then on: what it waits for may be their works.
 *
 * All under the lock of the domain, which is one group from the first work on (group.h).
 */
#ifndef RWK_FI_DEFERRED_H
#define RWK_FI_DEFERRED_H

#include "bindings/libfabric/ep.h"
#include "bindings/libfabric/rma.h"

#include <rdma/fi_trigger.h>

#define RWK_FI_WORKS_MAX 16384 /* of a domain; 1 KiB each */

/** What an operation waits for, and who hears of it. */
struct rwk_fi_when {
	struct rwk_fi_cntr *cntr;
	uint64_t threshold;
	void *context; /* of its completion */
	/* Of deferred work. Then errors count for `cntr` as much as successes do. */
	const struct fi_deferred_work *id; /* the program's; NULL: FI_TRIGGER, the operation completes as others do */
	struct rwk_fi_cntr *completion;    /* counts its end; may be NULL */
	bool shown;                        /* FI_COMPLETION: it completes at the endpoint as well, as others do */
};

/** A message, sent or received. */
struct rwk_fi_letter {
	const struct iovec *iov;
	size_t count;
	fi_addr_t peer;
	uint64_t tag, ignore, data;
	uint32_t flags; /* the engine's, with the space; RWK_F_FENCE of a send */
};

static inline struct rwk_fi_letter rwk_fi_letter(const struct fi_msg *m, uint32_t flags)
{
	return (struct rwk_fi_letter){m->msg_iov, m->iov_count, m->addr, 0, 0, m->data, flags};
}

static inline struct rwk_fi_letter rwk_fi_tagged_letter(const struct fi_msg_tagged *m, uint32_t flags)
{
	return (struct rwk_fi_letter){m->msg_iov, m->iov_count, m->addr, m->tag, m->ignore, m->data, flags};
}

/**
 * Queue one, or begin it if its time has come: 0; -FI_EAGAIN: there are RWK_FI_WORKS_MAX, or there is no memory;
 * -FI_EINVAL: too many pieces. Whatever else is wrong is said by its completion.
 */
int rwk_fi_defer_send(struct rwk_fi_ep *ep, const struct rwk_fi_letter *l, const struct rwk_fi_when *when);
int rwk_fi_defer_recv(struct rwk_fi_ep *ep, const struct rwk_fi_letter *l, const struct rwk_fi_when *when);
/** `atomic`: `a` is in a struct rwk_atomic_args. a->context and a->peer do not matter. */
int rwk_fi_defer_access(struct rwk_fi_ep *ep, fi_addr_t to, const struct rwk_rma_args *a, rwk_fi_starter *start,
	bool atomic, const struct rwk_fi_when *when);
/** fi_cntr_set or, with `add`, fi_cntr_add. */
int rwk_fi_defer_count(struct rwk_fi_cntr *cntr, uint64_t value, bool add, const struct rwk_fi_when *when);

/** Drops the first work that has not begun of that id: 0 or -FI_ENOENT. */
int rwk_fi_work_cancel(struct rwk_fi_domain *domain, const struct fi_deferred_work *id);

/** Drops all deferred works that have not begun, or those that wait for that counter (NULL: any). */
void rwk_fi_work_flush(struct rwk_fi_domain *domain, const struct rwk_fi_cntr *cntr);

/** fi_cancel: 0, its completion has FI_ECANCELED; -FI_ENOENT. */
int rwk_fi_work_cancel_operation(struct rwk_fi_ep *ep, const void *context);

/** The completion of a deferred operation: flags with RWK_FI_DEFERRED. */
void rwk_fi_work_done(struct rwk_fi_ep *ep, const struct rwk_completion *c);

/** rwk_engine_attr.again: begins what has stalled. */
void rwk_fi_work_again(void *ep);

/** Drops all works of an endpoint whose engine is about to be left, or of a context that nobody hears of any more. */
void rwk_fi_work_drop(const struct rwk_fi_ep *ep);

#endif

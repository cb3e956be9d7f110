/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events. They wait where they have happened, a bit for each type, and the adapter has a list of the
 * objects where some wait: so there is nothing to allocate, and nothing that could run full.
 */
#include "channel_adapter/internal.h"

#include "base/compiler.h"

#include <errno.h>

void rwk_ca_raise(struct rwk_adapter *a, struct event_source *source, enum rwk_async_event_type type)
{
	source->waiting |= 1u << type;
	if (rwk_list_empty(&source->link))
		rwk_list_append(&a->events, &source->link);
	if (a->event_sleeper.armed)
		rwk_ca_wake(&a->event_sleeper);
}

void rwk_ca_forget_events(struct event_source *source)
{
	source->waiting = 0;
	rwk_list_remove(&source->link);
}

static struct rwk_async_event describe(struct event_source *source, enum rwk_async_event_type type)
{
	struct rwk_async_event e = {.type = type};

	if (type == RWK_ASYNC_SRQ_LIMIT) {
		e.srq = rwk_container_of(source, struct rwk_srq, events);
		return e;
	}
	e.qp = rwk_container_of(source, struct rwk_qp, events);
	if (type == RWK_ASYNC_QP_LOST) {
		e.count = e.qp->lost;
		e.qp->lost = 0;
	} else {
		e.error = e.qp->error;
	}
	return e;
}

/* The next one: of the object that has waited longest. */
static struct rwk_async_event take(struct rwk_adapter *a)
{
	struct event_source *source = rwk_container_of(a->events.next, struct event_source, link);
	enum rwk_async_event_type type = (enum rwk_async_event_type)__builtin_ctz(source->waiting);

	source->waiting &= source->waiting - 1;
	if (!source->waiting)
		rwk_list_remove(&source->link);
	return describe(source, type);
}

int rwk_async_event_poll(struct rwk_adapter *a, struct rwk_async_event *events, int max)
{
	int n = 0;

	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	rwk_ca_work(a);
	while (n < max && !rwk_list_empty(&a->events))
		events[n++] = take(a);
	return n;
}

int rwk_async_event_arm(struct rwk_adapter *a)
{
	int rc;

	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	rwk_ca_before_arm(&a->event_sleeper);
	rwk_ca_work(a);
	rc = rwk_list_empty(&a->events) ? rwk_ca_arm(&a->event_sleeper) : -EAGAIN;
	if (rc)
		rwk_ca_disarm(&a->event_sleeper);
	return rc;
}

int rwk_async_event_fd(struct rwk_adapter *a)
{
	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	return rwk_ca_sleeper_fd(&a->event_sleeper);
}

void rwk_ca_below_limit(struct rwk_srq *srq)
{
	srq->limit = 0;
	rwk_ca_raise(srq->adapter, &srq->events, RWK_ASYNC_SRQ_LIMIT);
}

int rwk_srq_set_limit(struct rwk_srq *srq, uint32_t limit)
{
	rwk_ca_use(srq, RWK_CA_SRQ, __func__);
	if (limit > srq->receives.max)
		return -EINVAL;
	srq->limit = limit;
	if (srq->receives.count < limit)
		rwk_ca_below_limit(srq);
	return 0;
}

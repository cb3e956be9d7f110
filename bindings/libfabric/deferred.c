/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/work.h"

#include "bindings/libfabric/engine.h"

#include <stdlib.h>
#include <string.h>

static struct rwk_fi_domain *domain_of(const struct rwk_fi_work *w)
{
	return w->when.cntr->domain;
}

static struct rwk_fi_work *work_new(enum rwk_fi_deed deed, struct rwk_fi_ep *ep, const struct rwk_fi_when *when)
{
	struct rwk_fi_works *all = &when->cntr->domain->works;
	struct rwk_fi_work *w = all->count < RWK_FI_WORKS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return NULL;
	all->count++;
	rwk_list_init(&w->link);
	rwk_list_append(&all->all, &w->of_domain);
	w->deed = deed;
	w->ep = ep;
	w->when = *when;
	rwk_fi_hold(&when->cntr->refs);
	if (when->completion)
		rwk_fi_hold(&when->completion->refs);
	return w;
}

void rwk_fi_work_free(struct rwk_fi_work *w)
{
	domain_of(w)->works.count--;
	rwk_list_remove(&w->link);
	rwk_list_remove(&w->of_domain);
	if (w->when.completion)
		rwk_fi_drop(&w->when.completion->refs);
	if (w->deed == RWK_FI_SET || w->deed == RWK_FI_ADD)
		rwk_fi_drop(&w->count.cntr->refs);
	rwk_fi_drop(&w->when.cntr->refs);
	free(w);
}

/* From now on whoever waits for it drives all endpoints. */
static int drive_all(struct rwk_fi_cntr *cntr)
{
	int err;

	if (!rwk_list_empty(&cntr->of_works))
		return 0;
	err = rwk_fi_engines_attach(cntr->domain, &cntr->wait);
	if (err)
		return err;
	rwk_list_append(&cntr->domain->works.counters, &cntr->of_works);
	rwk_fi_wait_arrived(&cntr->wait); /* who sleeps is to arm them, too */
	return 0;
}

int rwk_fi_works_attach(struct rwk_fi_works *works, struct rwk_engine *engine)
{
	int err = 0;

	for (struct rwk_list *l = works->counters.next; l != &works->counters && !err; l = l->next) {
		struct rwk_fi_wait *w = &rwk_container_of(l, struct rwk_fi_cntr, of_works)->wait;

		err = rwk_fi_wait_attach(w, engine);
		rwk_fi_wait_arrived(w); /* as in drive_all */
	}
	return err;
}

void rwk_fi_works_detach(struct rwk_fi_works *works, struct rwk_engine *engine)
{
	for (struct rwk_list *l = works->counters.next; l != &works->counters; l = l->next)
		rwk_fi_wait_detach(&rwk_container_of(l, struct rwk_fi_cntr, of_works)->wait, engine);
}

/* Failures of what came before must not set off one of FI_TRIGGER: its data is not there. */
static bool is_due(const struct rwk_fi_work *w)
{
	const struct rwk_fi_cntr *cntr = w->when.cntr;

	return cntr->value + (w->when.id ? cntr->errors : 0) >= w->when.threshold;
}

rwk_noinline void rwk_fi_cntr_look(struct rwk_fi_cntr *cntr)
{
	struct rwk_fi_works *works = &cntr->domain->works;
	struct rwk_list *l = cntr->works.next;

	while (l != &cntr->works) {
		struct rwk_fi_work *w = rwk_container_of(l, struct rwk_fi_work, link);

		l = l->next;
		if (w->when.threshold > cntr->value + cntr->errors)
			break;
		if (!is_due(w))
			continue;
		rwk_list_remove(&w->link);
		rwk_list_append(&works->due, &w->link);
	}
	rwk_fi_work_begin_due(works);
}

static int enqueue(struct rwk_fi_work *w)
{
	struct rwk_fi_cntr *cntr = w->when.cntr;
	struct rwk_list *behind = cntr->works.prev;
	int err = drive_all(cntr);

	if (!err && w->when.completion)
		err = drive_all(w->when.completion);
	if (!err && !w->ep)
		err = drive_all(w->count.cntr);
	if (err) {
		rwk_fi_work_free(w);
		return err;
	}
	while (behind != &cntr->works &&
		rwk_container_of(behind, struct rwk_fi_work, link)->when.threshold > w->when.threshold)
		behind = behind->prev;
	rwk_list_append(behind->next, &w->link);
	rwk_fi_cntr_look(cntr);
	return 0;
}

static int defer_message(
	struct rwk_fi_ep *ep, enum rwk_fi_deed deed, const struct rwk_fi_letter *l, const struct rwk_fi_when *when)
{
	struct rwk_fi_work *w;

	if (l->count > RWK_ENGINE_IOV_MAX)
		return -FI_EINVAL;
	w = work_new(deed, ep, when);
	if (!w)
		return -FI_EAGAIN;
	w->message.letter = *l;
	if (l->count)
		memcpy(w->message.iov, l->iov, l->count * sizeof(*l->iov));
	return enqueue(w);
}

int rwk_fi_defer_send(struct rwk_fi_ep *ep, const struct rwk_fi_letter *l, const struct rwk_fi_when *when)
{
	return defer_message(ep, RWK_FI_SEND, l, when);
}

int rwk_fi_defer_recv(struct rwk_fi_ep *ep, const struct rwk_fi_letter *l, const struct rwk_fi_when *when)
{
	if (ep->peer_srx)
		return -FI_ENOSYS; /* its receives are another provider's */
	return defer_message(ep, RWK_FI_RECEIVE, l, when);
}

static const struct iovec *copy(struct iovec to[RWK_ENGINE_IOV_MAX], const struct iovec *from, size_t count)
{
	if (from && count)
		memcpy(to, from, count * sizeof(*from));
	return from ? to : NULL;
}

int rwk_fi_defer_access(struct rwk_fi_ep *ep, fi_addr_t to, const struct rwk_rma_args *a, rwk_fi_starter *start,
	bool atomic, const struct rwk_fi_when *when)
{
	static const struct rwk_atomic_args none;
	const struct rwk_atomic_args *more = atomic ? rwk_container_of(a, const struct rwk_atomic_args, rma) : &none;
	struct rwk_fi_work *w;
	struct rwk_fi_access *own;

	if (a->iov_count > RWK_ENGINE_IOV_MAX || a->remote_count > RWK_ENGINE_IOV_MAX)
		return -FI_EINVAL;
	w = work_new(RWK_FI_ACCESS, ep, when);
	if (!w)
		return -FI_EAGAIN;
	own = &w->access;
	own->start = start;
	own->atomic = atomic;
	own->to = to;
	own->args = *more;
	own->args.rma = *a;
	own->args.rma.flags &= ~(uint32_t)RWK_FI_TRIGGERED;
	own->args.rma.iov = copy(own->iov, a->iov, a->iov_count);
	own->args.compare = copy(own->compare, more->compare, more->compare_count);
	own->args.result = copy(own->result, more->result, more->result_count);
	memcpy(own->remote, a->remote, a->remote_count * sizeof(*a->remote));
	own->args.rma.remote = own->remote;
	return enqueue(w);
}

int rwk_fi_defer_count(struct rwk_fi_cntr *cntr, uint64_t value, bool add, const struct rwk_fi_when *when)
{
	struct rwk_fi_work *w = work_new(add ? RWK_FI_ADD : RWK_FI_SET, NULL, when);

	if (!w)
		return -FI_EAGAIN;
	w->count = (struct rwk_fi_count){cntr, value};
	rwk_fi_hold(&cntr->refs);
	return enqueue(w);
}

int rwk_fi_work_cancel(struct rwk_fi_domain *domain, const struct fi_deferred_work *id)
{
	for (struct rwk_list *l = domain->works.all.next; l != &domain->works.all; l = l->next) {
		struct rwk_fi_work *w = rwk_container_of(l, struct rwk_fi_work, of_domain);

		if (w->when.id != id || rwk_fi_work_has_begun(w))
			continue;
		rwk_fi_work_free(w);
		return 0;
	}
	return -FI_ENOENT;
}

/* Frees those that `which` names. */
static void drop(
	struct rwk_fi_works *works, bool (*which)(const struct rwk_fi_work *w, const void *arg), const void *arg)
{
	struct rwk_list *l = works->all.next;

	while (l != &works->all) {
		struct rwk_fi_work *w = rwk_container_of(l, struct rwk_fi_work, of_domain);

		l = l->next;
		if (which(w, arg))
			rwk_fi_work_free(w);
	}
}

static bool waits_for(const struct rwk_fi_work *w, const void *cntr)
{
	return w->when.id && !rwk_fi_work_has_begun(w) && (!cntr || w->when.cntr == cntr);
}

void rwk_fi_work_flush(struct rwk_fi_domain *domain, const struct rwk_fi_cntr *cntr)
{
	drop(&domain->works, waits_for, cntr);
}

static bool is_of(const struct rwk_fi_work *w, const void *ep)
{
	return w->ep == ep;
}

void rwk_fi_work_drop(const struct rwk_fi_ep *ep)
{
	drop(&ep->domain->works, is_of, ep);
}

int rwk_fi_work_cancel_operation(struct rwk_fi_ep *ep, const void *context)
{
	struct rwk_list *all = &ep->domain->works.all;

	for (struct rwk_list *l = all->next; l != all; l = l->next) {
		struct rwk_fi_work *w = rwk_container_of(l, struct rwk_fi_work, of_domain);

		if (w->ep != ep || w->when.context != context)
			continue;
		if (rwk_fi_work_has_begun(w))
			return rwk_engine_cancel(ep->engine, w);
		rwk_list_remove(&w->link);
		rwk_fi_work_end(w, -FI_ECANCELED);
		return 0;
	}
	return -FI_ENOENT;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* How works begin, and how they end. */
#include "bindings/libfabric/work.h"

#include "base/log.h"

/* What has failed before the engine could say so itself, or is cancelled. */
void rwk_fi_work_end(struct rwk_fi_work *w, int status)
{
	struct rwk_fi_ep *ep = w->ep;
	struct rwk_completion c = {.context = w, .status = status};

	if (w->deed == RWK_FI_ACCESS) {
		const struct rwk_rma_args *a = &w->access.args.rma;
		bool reads = w->access.start == rwk_engine_read || w->access.args.result;

		c.flags = (a->flags & ~(RWK_F_USER - 1u)) | (w->access.atomic ? RWK_F_ATOMIC : RWK_F_RMA) |
			  (reads ? RWK_F_READ : RWK_F_WRITE);
	} else {
		uint32_t flags = w->message.letter.flags;

		c.flags = flags & (RWK_F_PLAIN | RWK_F_TAGGED | ~(RWK_F_USER - 1u));
		c.flags |= w->deed == RWK_FI_SEND ? RWK_F_SEND : RWK_F_RECV | (flags & RWK_F_MULTI);
	}
	if (!w->when.id) {
		c.context = w->when.context;
		rwk_fi_work_free(w);
	}
	rwk_fi_complete(ep, &c);
}

/* A work's own operation has RWK_FI_DEFERRED, and the work for its context; else it is one like others. */
static void *context_of(struct rwk_fi_work *w)
{
	return w->when.id ? w : w->when.context;
}

/* Is something under way to it, so that a fence has to wait? */
static bool is_busy(struct rwk_fi_ep *ep, fi_addr_t to)
{
	struct rwk_peer *peer;

	return !rwk_fi_ep_whole(ep, to, &peer) && (rwk_peer_sending(peer) || rwk_peer_accessing(peer));
}

static ssize_t begin_message(struct rwk_fi_work *w)
{
	const struct rwk_fi_letter *l = &w->message.letter;
	enum rwk_space space = rwk_space_of(l->flags);
	struct rwk_peer *peer = NULL;
	int err = 0;

	if (w->deed == RWK_FI_SEND)
		err = rwk_fi_ep_peer(w->ep, l->peer, &peer);
	else if ((l->peer | w->ep->undirected) != FI_ADDR_UNSPEC)
		err = rwk_fi_ep_whole(w->ep, l->peer, &peer);
	if (err)
		return err;
	if (w->deed == RWK_FI_RECEIVE)
		return rwk_inbox_recv(w->ep->inbox, space, peer, w->message.iov, l->count, l->tag, l->ignore, l->flags,
			context_of(w));
	if (l->flags & RWK_F_FENCE && is_busy(w->ep, l->peer))
		return -FI_EAGAIN;
	return rwk_engine_send(w->ep->engine, space, peer, w->message.iov, l->count, l->tag, l->data,
		l->flags & ~(uint32_t)RWK_F_FENCE, context_of(w));
}

static ssize_t begin_access(struct rwk_fi_work *w)
{
	struct rwk_rma_args *a = &w->access.args.rma;
	int err = rwk_fi_ep_whole(w->ep, w->access.to, &a->peer);

	if (err)
		return err;
	if (a->flags & RWK_F_FENCE && rwk_peer_sending(a->peer))
		return -FI_EAGAIN;
	a->context = context_of(w);
	return w->access.start(w->ep->engine, a);
}

/* False: it could not begin yet. Else it may have completed already, and be gone. */
static bool try(struct rwk_fi_work *w)
{
	bool stays = w->when.id;
	ssize_t err;

	rwk_list_remove(&w->link);
	err = w->deed == RWK_FI_ACCESS ? begin_access(w) : begin_message(w);
	if (err == -FI_EAGAIN)
		return false;
	if (err)
		rwk_fi_work_end(w, (int)err);
	else if (!stays)
		rwk_fi_work_free(w);
	return true;
}

static void stall(struct rwk_fi_work *w)
{
	rwk_list_append(&w->ep->stalled, &w->link);
	rwk_engine_call_again(w->ep->engine);
}

static void begin(struct rwk_fi_work *w)
{
	struct rwk_fi_cntr *cntr;

	if (w->ep) {
		if (!rwk_list_empty(&w->ep->stalled) || !try(w))
			stall(w);
		return;
	}
	cntr = w->count.cntr;
	cntr->value = w->count.value + (w->deed == RWK_FI_ADD ? cntr->value : 0);
	rwk_fi_cntr_moved(cntr);
	rwk_fi_work_free(w);
}

/* What these set off as they begin comes after all of them. */
void rwk_fi_work_again(void *owner)
{
	struct rwk_fi_ep *ep = owner;
	struct rwk_fi_works *works = &ep->domain->works;
	bool within = works->beginning;
	struct rwk_list waiting, *l;

	works->beginning = true;
	rwk_list_init(&waiting);
	while ((l = rwk_list_pop(&ep->stalled)))
		rwk_list_append(&waiting, l);
	while ((l = rwk_list_pop(&waiting)))
		begin(rwk_container_of(l, struct rwk_fi_work, link));
	works->beginning = within;
	rwk_fi_work_begin_due(works);
}

/* What begins may complete at once and set off more: that comes after what is due already, not within it. */
void rwk_fi_work_begin_due(struct rwk_fi_works *works)
{
	struct rwk_list *l;

	if (works->beginning)
		return;
	works->beginning = true;
	while ((l = rwk_list_pop(&works->due)))
		begin(rwk_container_of(l, struct rwk_fi_work, link));
	works->beginning = false;
}

void rwk_fi_work_done(struct rwk_fi_ep *ep, const struct rwk_completion *c)
{
	struct rwk_fi_work *w = c->context;
	struct rwk_fi_cntr *completion = w->when.completion;
	bool shown = w->when.shown;
	struct rwk_completion own = *c;

	own.context = w->when.context;
	own.flags &= ~(uint32_t)RWK_FI_DEFERRED;
	rwk_fi_work_free(w);
	if (own.status)
		rwk_info("deferred work: %s", fi_strerror(-own.status));
	/* A counter that is the endpoint's as well counts it once. */
	if (completion && completion == rwk_fi_counter_of(ep->cntr, own.flags))
		own.flags |= RWK_FI_NOT_COUNTED;
	if (completion)
		rwk_fi_cntr_count(completion, own.status);
	if (shown)
		rwk_fi_complete(ep, &own);
}

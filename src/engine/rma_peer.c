/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What there is of one-sided operations with one peer, as a whole: it is made, goes to another channel, and ends.
 */
#include "engine/rma_state.h"

#include <stdlib.h>

struct rwk_rma_state *rwk_rma_state_of(struct rwk_peer *p)
{
	struct rwk_rma_state *s = p->rma;

	if (rwk_likely(s != NULL))
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->peer = p;
	rwk_list_init(&s->requests);
	s->unsent = &s->requests;
	rwk_list_init(&s->lying);
	rwk_list_init(&s->owing);
	rwk_list_init(&s->in.link);
	p->rma = s;
	return s;
}

/** Its pieces are the client's again: nothing of it has been sent. */
static void recall(struct rwk_rma_request *r)
{
	r->begun = r->sent = false;
	r->status = 0;
	r->posted = r->checks = r->unchecked = 0;
	r->fetched = 0;
	r->asking = r->answers = (struct rwk_rma_cursor){0};
	r->at = r->came = r->in_piece = 0;
}

void rwk_rma_move(struct rwk_peer *p, struct rwk_peer *to)
{
	struct rwk_rma_state *s = p->rma, *t = s ? rwk_rma_state_of(to) : NULL;
	struct rwk_list *l;

	if (!s)
		return;
	while ((l = rwk_list_pop(&s->lying))) {
		struct rwk_rma_piece *piece = rwk_container_of(l, struct rwk_rma_piece, link);

		p->channel->transport->withdraw(p->channel, &piece->op);
		rwk_rma_piece_free(piece);
	}
	s->unsent = &s->requests;
	while ((l = rwk_list_pop(&s->requests))) {
		struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);

		recall(r);
		if (!t) {
			rwk_rma_finish(r, -ENOMEM);
			continue;
		}
		r->state = t;
		rwk_rma_start(t, r);
	}
}

/** Is it an answer, for which the peer waits? Not one that tells of a region. */
static bool is_answer(const struct rwk_rma_piece *piece)
{
	unsigned kind = piece->op.env.kind;

	return !piece->request && kind >= RWK_RMA_DATA && kind <= RWK_RMA_DONE;
}

size_t rwk_rma_owed(const struct rwk_peer *p)
{
	const struct rwk_rma_state *s = p->rma;
	size_t n;

	if (!s)
		return 0;
	n = s->told != s->served;
	for (const struct rwk_list *l = s->lying.next; l != &s->lying; l = l->next)
		n += is_answer(rwk_container_of(l, struct rwk_rma_piece, link));
	for (const struct rwk_list *l = s->requests.next; l != &s->requests; l = l->next) {
		const struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);

		n += r->over ? r->posted > 0 : r->flags & RWK_F_INJECT && (!r->sent || r->posted);
	}
	return n;
}

/** One that has begun: answers are dropped, and in place of what has not gone out its end goes. */
static void cut_short(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	if (!r->status)
		r->status = -ECANCELED;
	r->iov_count = 0; /* nor has its answer the short way */
	if (s->in.request != r)
		return;
	s->in.request = NULL;
	s->in.incoming.place.iov_count = 0;
}

/** One that was injected goes on, as its operands are here; but what it fetches would go to the program's memory. */
static void drop_results(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	r->iov_count = 0;
	if (s->in.request == r)
		s->in.incoming.place.iov_count = 0;
}

void rwk_rma_cancel(struct rwk_rma_state *s, unsigned room)
{
	struct rwk_list *l = s->requests.next;

	while (l != &s->requests) {
		struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);

		l = l->next;
		if (rwk_room_of(r->flags) != room || r->accessed)
			continue;
		if (r->flags & RWK_F_INJECT) {
			drop_results(s, r);
			continue;
		}
		if (r->begun || r->direct) {
			cut_short(s, r);
			continue;
		}
		if (r->flags & RWK_F_FENCE)
			rwk_rma_lift_fence(s, r);
		rwk_rma_finish(r, -ECANCELED);
		l = s->requests.next; /* the completion may have started anything */
	}
	rwk_rma_pump(s);
}

bool rwk_rma_runs(const struct rwk_rma_state *s, unsigned room)
{
	for (const struct rwk_list *l = s->requests.next; l != &s->requests; l = l->next) {
		const struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);
		bool lends = r->kind == RWK_RMA_WRITE && !r->copy && !r->accessed && r->posted;

		if (rwk_room_of(r->flags) == room && (r->direct || lends))
			return true;
	}
	return false;
}

void rwk_rma_abandon(struct rwk_peer *p)
{
	struct rwk_rma_state *s = p->rma;

	if (!s)
		return;
	s->unsent = &s->requests;
	s->fences = 0;
	p->fenced = false;
	while (!rwk_list_empty(&s->requests))
		rwk_rma_finish(rwk_container_of(s->requests.next, struct rwk_rma_request, link), p->error);
	rwk_list_remove(&s->owing);
	rwk_rma_in_drop(&s->in);
	rwk_rma_direct_end(s);
}

void rwk_rma_close(struct rwk_peer *p)
{
	p->channel = NULL;
	rwk_rma_abandon(p);
	free(p->rma);
}

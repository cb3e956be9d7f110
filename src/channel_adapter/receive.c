/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives, of a qp's own queue or of an srq's: posted, taken by a message that begins, ended.
 *
 * A qp holds at most one (rwk_qp.taken), that of the Send which is arriving; the qps of an srq may each hold one of it.
 * So a slot of a queue is free, posted, or with a qp. Where it completes, an entry is claimed: when it is posted, but
 * of an srq without a cq when it is taken, since only then it is known whose cq it will be.
 */
#include "channel_adapter/internal.h"

#include "base/compiler.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int rwk_ca_open_receives(struct receive_queue *q, uint32_t max)
{
	*q = (struct receive_queue){.max = max};
	rwk_list_init(&q->posted);
	rwk_list_init(&q->free);
	if (!max)
		return 0;
	q->slots = calloc(max, sizeof(*q->slots));
	return q->slots ? 0 : -ENOMEM;
}

void rwk_ca_close_receives(struct receive_queue *q)
{
	free(q->slots);
}

static inline struct receive_slot *pop(struct rwk_list *list)
{
	struct rwk_list *l = rwk_list_pop(list);

	return l ? rwk_container_of(l, struct receive_slot, link) : NULL;
}

/* Those that were never used come last: so memory is touched only as far as it is needed. */
static struct receive_slot *free_slot(struct receive_queue *q)
{
	struct receive_slot *s = pop(&q->free);

	if (!s && q->used < q->max)
		s = &q->slots[q->used++];
	return s;
}

static int post(struct receive_queue *q, struct rwk_pd *pd, struct rwk_cq *cq, const struct rwk_receive *r)
{
	struct receive_slot *s = free_slot(q);
	int rc;

	if (!s)
		return -EAGAIN;
	rc = rwk_ca_find_pieces(pd, r->sge, r->sge_count, REACH_LOCAL_WRITE, s->iov, &s->count, &s->length);
	if (!rc && cq && !rwk_ca_claim(cq))
		rc = -EAGAIN;
	s->id = r->id;
	rwk_list_append(rc ? &q->free : &q->posted, &s->link);
	q->count += !rc;
	return rc;
}

int rwk_srq_post_receive(struct rwk_srq *srq, const struct rwk_receive *r)
{
	rwk_ca_use(srq, RWK_CA_SRQ, __func__);
	return post(&srq->receives, srq->pd, srq->cq, r);
}

int rwk_srq_post_receive_batch(struct rwk_srq *srq, const struct rwk_receive *r, uint32_t count, uint32_t *posted)
{
	int rc = 0;

	rwk_ca_use(srq, RWK_CA_SRQ, __func__);
	for (*posted = 0; *posted < count && !rc; *posted += !rc)
		rc = rwk_srq_post_receive(srq, &r[*posted]);
	return rc;
}

int rwk_qp_post_receive(struct rwk_qp *qp, const struct rwk_receive *r)
{
	enum rwk_qps state;
	int rc;

	rwk_ca_use(qp, RWK_CA_QP, __func__);
	state = rwk_ca_state(qp);
	if (!qp->own.max || state == RWK_QPS_RESET)
		return -EINVAL;
	rc = post(&qp->own, qp->pd, qp->receive_cq, r);
	if (rwk_unlikely(!rc && state == RWK_QPS_ERR))
		rwk_ca_flush_receives(qp);
	return rc;
}

int rwk_qp_post_receive_batch(struct rwk_qp *qp, const struct rwk_receive *r, uint32_t count, uint32_t *posted)
{
	int rc = 0;

	rwk_ca_use(qp, RWK_CA_QP, __func__);
	for (*posted = 0; *posted < count && !rc; *posted += !rc)
		rc = rwk_qp_post_receive(qp, &r[*posted]);
	return rc;
}

static bool completes_elsewhere(const struct rwk_srq *srq)
{
	return srq && srq->cq;
}

int rwk_ca_take_receive(struct rwk_qp *qp, struct rwk_srq *srq)
{
	struct receive_queue *q = srq ? &srq->receives : &qp->own;

	if (qp->taken)
		return 0;
	if (rwk_list_empty(&q->posted))
		return -EAGAIN;
	if (rwk_unlikely(srq && !srq->cq && !rwk_ca_claim(qp->receive_cq)))
		return -EAGAIN;
	qp->taken = pop(&q->posted);
	qp->taken_of = srq;
	q->count--;
	if (!srq)
		return 0;
	srq->taken++;
	if (rwk_unlikely(q->count < srq->limit))
		rwk_ca_below_limit(srq);
	return 0;
}

/* The qp holds none any more. Returns the slot that it held; whose that is stays in taken_of. */
static struct receive_slot *let_go(struct rwk_qp *qp)
{
	struct receive_slot *s = qp->taken;

	qp->taken = NULL;
	if (qp->taken_of)
		qp->taken_of->taken--;
	return s;
}

void rwk_ca_end_receive(struct rwk_qp *qp, struct rwk_wc *wc)
{
	struct rwk_srq *srq = qp->taken_of;
	struct receive_slot *s = let_go(qp);

	wc->id = s->id;
	wc->qpn = qp->number;
	wc->srqn = srq ? srq->number : 0;
	rwk_list_append(srq ? &srq->receives.free : &qp->own.free, &s->link);
	rwk_ca_complete(completes_elsewhere(srq) ? srq->cq : qp->receive_cq, wc);
}

/* As if it had never been taken: the first of its queue, as it was. */
static void give_back(struct rwk_qp *qp)
{
	struct rwk_srq *srq = qp->taken_of;
	struct receive_queue *q = srq ? &srq->receives : &qp->own;
	struct receive_slot *s = let_go(qp);

	rwk_list_append(q->posted.next, &s->link);
	q->count++;
	if (srq && !srq->cq)
		qp->receive_cq->claimed--;
}

void rwk_ca_drop_receives(struct receive_queue *q, struct rwk_cq *cq)
{
	struct receive_slot *s;

	q->count = 0;
	while ((s = pop(&q->posted))) {
		rwk_list_append(&q->free, &s->link);
		if (cq)
			cq->claimed--;
	}
}

void rwk_ca_flush_receives(struct rwk_qp *qp)
{
	if (qp->silent) {
		if (qp->taken)
			give_back(qp);
		rwk_ca_drop_receives(&qp->own, qp->receive_cq);
		return;
	}
	while (qp->taken || (qp->own.max && !rwk_ca_take_receive(qp, NULL)))
		rwk_ca_end_receive(qp, &(struct rwk_wc){.type = RWK_WC_RECEIVE, .status = -ECANCELED});
}

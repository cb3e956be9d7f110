/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: checked, given a slot of their queue and an entry of its cq, and handed to the machine. */
#include "channel_adapter/internal.h"

#include "base/compiler.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define REQUEST_FLAGS                                                                                                  \
	(RWK_REQUEST_IMM | RWK_REQUEST_SOLICITED | RWK_REQUEST_UNSIGNALLED | RWK_REQUEST_INLINE |                      \
		RWK_REQUEST_WITH_INVALIDATE | REQUEST_ORDER)
#define REQUEST_ORDER (RWK_REQUEST_FENCE | RWK_REQUEST_UNORDERED | RWK_REQUEST_HALF_ORDERED) /* S2-6: one, or none */

static_assert((int)RWK_REQUEST_SEND == RWK_WR_SEND && (int)RWK_REQUEST_FETCH_ADD == RWK_WR_FETCH_ADD &&
		      (int)RWK_WC_SEND == RWK_WR_SEND && (int)RWK_WC_FETCH_ADD == RWK_WR_FETCH_ADD &&
		      (int)RWK_WC_LOCAL_INVALIDATE == RWK_REQUEST_LOCAL_INVALIDATE,
	"requests, completions and the machines' work requests have the same numbers");

int rwk_ca_find_pieces(struct rwk_pd *pd, const struct rwk_sge *sge, uint32_t count, unsigned reach, struct iovec *iov,
	uint32_t *used, size_t *length)
{
	uint32_t n = 0;
	size_t sum = 0;

	if (count > RWK_SGE_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		if (!sge[i].length)
			continue;
		if (rwk_keys_find(pd->adapter->keys, pd->number, sge[i].key, (uintptr_t)sge[i].address, sge[i].length,
			    reach, &iov[n], 1) != 1)
			return -EACCES;
		if (__builtin_add_overflow(sum, sge[i].length, &sum))
			sum = SIZE_MAX; /* longer than any message */
		n++;
	}
	*used = n;
	*length = sum;
	return 0;
}

/* The bytes themselves: one piece, of the slot's own. */
static int copy_pieces(
	struct rwk_qp *qp, struct request_slot *s, const struct rwk_request *r, uint32_t *used, size_t *length)
{
	uint8_t *own = qp->inlined ? qp->inlined + (size_t)(s - qp->requests) * qp->inline_max : NULL;
	size_t sum = 0;

	if (r->sge_count > RWK_SGE_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < r->sge_count; i++) {
		if (r->sge[i].length > qp->inline_max - sum)
			return -EMSGSIZE;
		if (r->sge[i].length)
			memcpy(own + sum, r->sge[i].address, r->sge[i].length);
		sum += r->sge[i].length;
	}
	s->iov[0] = (struct iovec){own, sum};
	*used = sum > 0;
	*length = sum;
	return 0;
}

/* UC has no use for the hints. */
static unsigned order_of(const struct rwk_qp *qp, const struct rwk_request *r)
{
	unsigned hints = (r->flags & RWK_REQUEST_UNORDERED ? RWK_WR_UNORDERED : 0) |
			 (r->flags & RWK_REQUEST_HALF_ORDERED ? RWK_WR_HALF : 0);

	return rwk_ca_is_uc(qp) ? 0 : hints;
}

static unsigned flags_of(const struct rwk_qp *qp, const struct rwk_request *r)
{
	return order_of(qp, r) | (r->flags & RWK_REQUEST_IMM ? RWK_WR_IMM : 0) |
	       (r->flags & RWK_REQUEST_SOLICITED ? RWK_WR_SOLICITED : 0) |
	       (r->flags & RWK_REQUEST_FENCE ? RWK_WR_FENCE : 0) |
	       (r->flags & RWK_REQUEST_WITH_INVALIDATE ? RWK_WR_INVALIDATE : 0);
}

static int fill(struct rwk_qp *qp, struct request_slot *s, const struct rwk_request *r)
{
	bool target = r->type != RWK_REQUEST_SEND && r->type != RWK_REQUEST_WRITE;
	bool atomic = r->type == RWK_REQUEST_COMPARE_SWAP || r->type == RWK_REQUEST_FETCH_ADD;
	unsigned order = r->flags & REQUEST_ORDER;
	uint32_t count;
	size_t length;
	int rc;

	if (r->flags & ~(unsigned)REQUEST_FLAGS)
		return -EINVAL;
	if (rwk_unlikely(order & (order - 1)))
		return -EINVAL;
	if (qp->type == RWK_QP_SRC && r->srqn > RWK_CA_NUMBER_MAX)
		return -EINVAL;
	if (r->flags & RWK_REQUEST_INLINE)
		rc = target ? -EINVAL : copy_pieces(qp, s, r, &count, &length);
	else
		rc = rwk_ca_find_pieces(
			qp->pd, r->sge, r->sge_count, target ? REACH_LOCAL_WRITE : 0, s->iov, &count, &length);
	if (rc)
		return rc;
	if (length > RWK_WIRE_LENGTH_MAX || (atomic && (length != sizeof(uint64_t) || count != 1)))
		return -EMSGSIZE;
	s->id = r->id;
	s->unsignalled = r->flags & RWK_REQUEST_UNSIGNALLED;
	s->wr = (struct rwk_wr){
		.type = (uint8_t)r->type,
		.flags = (uint8_t)flags_of(qp, r),
		.imm = r->flags & RWK_REQUEST_WITH_INVALIDATE ? r->key : r->imm,
		.iov = s->iov,
		.iov_count = (uint16_t)count,
		.length = length,
		.remote = r->remote,
		.key = r->key,
		.swap_add = r->swap_add,
		.compare = r->compare,
		.srqn = r->srqn,
	};
	return 0;
}

/* Hands it to the machine, which has not begun with it. */
static inline int post(struct rwk_qp *qp, const struct rwk_request *r)
{
	struct request_slot *s = &qp->requests[(qp->request_head + qp->request_count) % qp->request_max];
	int rc;

	if (rwk_unlikely((unsigned)r->type > RWK_REQUEST_FETCH_ADD))
		return rwk_ca_post_local(qp, r, RWK_MW_2);
	if (qp->request_count == qp->request_max)
		return -EAGAIN;
	rc = fill(qp, s, r);
	if (rc)
		return rc;
	if (!rwk_ca_claim(qp->send_cq))
		return -EAGAIN;
	qp->request_count++; /* the machine may end it at once */
	rc = rwk_ca_is_uc(qp) ? rwk_uc_post(qp->uc, &s->wr) : rwk_rc_post(qp->rc, &s->wr);
	if (rc) {
		qp->request_count--;
		qp->send_cq->claimed--;
	}
	return rc;
}

static inline void begin(struct rwk_qp *qp)
{
	rwk_ca_set_due(qp);
	qp->adapter->now = qp->adapter->link->ops->now(qp->adapter->link);
	rwk_ca_pump(qp->adapter);
}

int rwk_qp_post(struct rwk_qp *qp, const struct rwk_request *r)
{
	int rc;

	rwk_ca_use(qp, RWK_CA_QP, __func__);
	rc = post(qp, r);
	if (rwk_likely(!rc))
		begin(qp);
	return rc;
}

int rwk_qp_post_batch(struct rwk_qp *qp, const struct rwk_request *r, uint32_t count, uint32_t *posted)
{
	int rc = 0;

	rwk_ca_use(qp, RWK_CA_QP, __func__);
	for (*posted = 0; *posted < count && !rc; *posted += !rc)
		rc = post(qp, &r[*posted]);
	if (*posted)
		begin(qp);
	return rc;
}

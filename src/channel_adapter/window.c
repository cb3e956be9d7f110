/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows, and the requests that bind and invalidate them, which are local.
 *
 * A bound window has an entry in the key table like a region, but under a pd that nobody has: so every look-up by pd
 * misses it, our own requests never reach memory by it, and what a peer does by it comes here to be asked who it is.
 *
 * Local requests are done when they are posted: what was posted before them has been given to the machine, what comes
 * behind begins behind. Their slots wait in the qp's ring for those before them, to complete in order.
 */
#include "channel_adapter/internal.h"

#include "base/compiler.h"

#include <errno.h>
#include <stdlib.h>

#define WINDOW_ACCESS (RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC)

int rwk_mw_create(struct rwk_pd *pd, enum rwk_mw_type type, struct rwk_mw **out)
{
	struct rwk_mw *mw;

	rwk_ca_use(pd, RWK_CA_PD, __func__);
	if ((unsigned)type > RWK_MW_2)
		return -EINVAL;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->kind = RWK_CA_MW;
	mw->pd = pd;
	mw->type = type;
	rwk_list_init(&mw->link);
	pd->children++;
	*out = mw;
	return 0;
}

void rwk_mw_destroy(struct rwk_mw *mw)
{
	rwk_ca_use(mw, RWK_CA_MW, __func__);
	rwk_ca_unbind(mw);
	mw->pd->children--;
	rwk_ca_free(mw);
}

uint32_t rwk_mw_key(const struct rwk_mw *mw)
{
	rwk_ca_use(mw, RWK_CA_MW, __func__);
	return mw->key;
}

void rwk_ca_unbind(struct rwk_mw *mw)
{
	struct rwk_adapter *a = mw->pd->adapter;

	if (!mw->mr)
		return;
	rwk_keys_remove(a->keys, mw->key);
	a->mw[rwk_keys_slot(a->keys, mw->key)] = NULL;
	rwk_list_remove(&mw->link);
	mw->mr->windows--;
	mw->mr = NULL;
	mw->qp = NULL;
}

void rwk_ca_unbind_all(struct rwk_qp *qp)
{
	while (!rwk_list_empty(&qp->windows))
		rwk_ca_unbind(rwk_container_of(qp->windows.next, struct rwk_mw, link));
}

/* Type 2 is the qp's from now on, and only one that is not bound may be; type 1 leaves what it was bound to. */
static int bind_to(struct rwk_qp *qp, struct rwk_mw *mw, const struct rwk_bind *b)
{
	struct rwk_adapter *a = qp->adapter;
	struct iovec where = {b->address, b->length};
	uint64_t address = (uintptr_t)b->address;
	uint32_t key;
	int rc;

	rwk_ca_use(b->mr, RWK_CA_MR, "rwk_qp_post");
	if (b->mr->pd != mw->pd || rwk_keys_check(a->keys, mw->pd->number, b->mr->key, address, b->length, b->access))
		return -EACCES;
	rc = rwk_keys_add(a->keys, WINDOWS, address, &where, 1, b->access, &key);
	if (rc)
		return rc;
	rwk_ca_unbind(mw);
	a->mw[rwk_keys_slot(a->keys, key)] = mw;
	mw->key = key;
	mw->mr = b->mr;
	mw->mr->windows++;
	if (mw->type == RWK_MW_2) {
		mw->qp = qp;
		rwk_list_append(&qp->windows, &mw->link);
	}
	return 0;
}

static int bind_window(struct rwk_qp *qp, struct rwk_mw *mw, enum rwk_mw_type type, const struct rwk_bind *b)
{
	if (!mw || !b || b->access & ~(unsigned)WINDOW_ACCESS)
		return -EINVAL;
	rwk_ca_use(mw, RWK_CA_MW, "rwk_qp_post");
	if (mw->type != type)
		return -EINVAL;
	if (mw->pd != qp->pd)
		return -EACCES;
	if (type == RWK_MW_2 && mw->mr)
		return -EBUSY;
	if (b->length)
		return b->mr ? bind_to(qp, mw, b) : -EINVAL;
	if (type == RWK_MW_2)
		return -EINVAL;
	rwk_ca_unbind(mw);
	return 0;
}

static int invalidate(struct rwk_qp *qp, uint32_t key)
{
	struct rwk_mw *mw = rwk_ca_find_window(qp, qp->pd->number, key);

	if (!mw)
		return -EACCES;
	rwk_ca_unbind(mw);
	return 0;
}

/* ---- local requests ---- */

int rwk_ca_post_local(struct rwk_qp *qp, const struct rwk_request *r, enum rwk_mw_type type)
{
	struct request_slot *s = &qp->requests[(qp->request_head + qp->request_count) % qp->request_max];
	bool failed = rwk_ca_state(qp) == RWK_QPS_ERR;
	int rc = 0;

	if (r->type > RWK_REQUEST_LOCAL_INVALIDATE || r->flags & ~(unsigned)RWK_REQUEST_UNSIGNALLED ||
		rwk_ca_state(qp) < RWK_QPS_RTS)
		return -EINVAL;
	if (qp->request_count == qp->request_max || !rwk_ca_claim(qp->send_cq))
		return -EAGAIN;
	if (!failed)
		rc = r->type == RWK_REQUEST_BIND ? bind_window(qp, r->mw, type, r->bind) : invalidate(qp, r->key);
	if (rc) {
		qp->send_cq->claimed--;
		return rc;
	}
	s->wr = (struct rwk_wr){.type = (uint8_t)r->type};
	s->id = r->id;
	s->unsignalled = r->flags & RWK_REQUEST_UNSIGNALLED;
	s->status = failed ? -ECANCELED : 0;
	qp->request_count++;
	qp->locals++;
	rwk_ca_end_locals(qp);
	return 0;
}

int rwk_mw_bind(struct rwk_qp *qp, struct rwk_mw *mw, uint64_t id, unsigned flags, const struct rwk_bind *bind)
{
	struct rwk_request r = {.type = RWK_REQUEST_BIND, .id = id, .flags = flags, .mw = mw, .bind = bind};

	rwk_ca_use(qp, RWK_CA_QP, __func__);
	return rwk_ca_post_local(qp, &r, RWK_MW_1);
}

/* ---- what a peer does ---- */

static struct rwk_mw *window_of(const struct rwk_qp *qp, uint32_t pd, uint32_t key)
{
	const struct rwk_adapter *a = qp->adapter;
	struct rwk_mw *mw = a->mw[rwk_keys_slot(a->keys, key)];

	if (!mw || mw->key != key || mw->pd->number != pd || (mw->qp && mw->qp != qp))
		return NULL;
	return mw;
}

struct rwk_mw *rwk_ca_find_window(const struct rwk_qp *qp, uint32_t pd, uint32_t key)
{
	struct rwk_mw *mw = window_of(qp, pd, key);

	return mw && mw->type == RWK_MW_2 ? mw : NULL;
}

int rwk_ca_reach_window(const struct rwk_qp *qp, uint32_t pd, uint32_t key, uint64_t address, size_t len,
	unsigned access, struct iovec *iov, int max)
{
	if (!window_of(qp, pd, key))
		return -EACCES;
	return rwk_keys_find(qp->adapter->keys, WINDOWS, key, address, len, access, iov, max);
}

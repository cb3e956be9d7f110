/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: a ring of completions, with an entry for all that may still complete. */
#include "channel_adapter/cq.h"

#include "channel_adapter/internal.h"

#include "base/compiler.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int rwk_cq_create(struct rwk_adapter *a, uint32_t entries, struct rwk_cq **out)
{
	struct rwk_cq *cq;

	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	if (!entries || entries > RWK_QUEUE_MAX)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->wc = calloc(entries, sizeof(*cq->wc));
	if (!cq->wc) {
		free(cq);
		return -ENOMEM;
	}
	cq->kind = RWK_CA_CQ;
	cq->adapter = a;
	cq->entries = entries;
	rwk_ca_open_sleeper(&cq->sleeper, a);
	a->cqs++;
	*out = cq;
	return 0;
}

int rwk_cq_destroy(struct rwk_cq *cq)
{
	rwk_ca_use(cq, RWK_CA_CQ, __func__);
	if (cq->children)
		return -EBUSY;
	rwk_ca_close_sleeper(&cq->sleeper);
	if (cq->adapter->polled == cq)
		cq->adapter->polled = NULL;
	cq->adapter->cqs--;
	free(cq->wc);
	rwk_ca_free(cq);
	return 0;
}

int rwk_ca_cq_grow(struct rwk_cq *cq, size_t entries)
{
	struct rwk_wc *wc;

	rwk_ca_use(cq, RWK_CA_CQ, __func__);
	if (entries <= cq->entries)
		return 0;
	wc = entries <= UINT32_MAX ? calloc(entries, sizeof(*wc)) : NULL;
	if (!wc)
		return -ENOMEM;
	for (uint32_t i = 0; i < cq->count; i++)
		wc[i] = cq->wc[(cq->head + i) % cq->entries];
	free(cq->wc);
	cq->wc = wc;
	cq->head = 0;
	cq->entries = (uint32_t)entries;
	return 0;
}

bool rwk_ca_claim(struct rwk_cq *cq)
{
	if (cq->claimed + cq->count == cq->entries)
		return false;
	cq->claimed++;
	return true;
}

/* Is it what somebody may sleep for? */
static bool is_event(const struct rwk_wc *wc, enum rwk_cq_event what)
{
	return what == RWK_CQ_NEXT || wc->solicited || wc->status;
}

void rwk_ca_complete(struct rwk_cq *cq, const struct rwk_wc *wc)
{
	assert(cq->claimed);
	cq->claimed--;
	cq->wc[(cq->head + cq->count++) % cq->entries] = *wc;
	if (rwk_unlikely(cq->sleeper.armed) && is_event(wc, cq->awaited))
		rwk_ca_wake(&cq->sleeper);
}

/* Calls the callbacks, which may take completions: those that come first. False: one has destroyed the cq. */
static rwk_noinline bool call_back_first(struct rwk_cq *cq)
{
	struct rwk_adapter *a = cq->adapter;
	bool there;

	if (a->sleep.calling)
		return true;
	a->polled = cq;
	rwk_ca_call_back(a);
	there = a->polled == cq;
	a->polled = NULL;
	return there;
}

int rwk_cq_poll(struct rwk_cq *cq, struct rwk_wc *wc, int max)
{
	struct rwk_adapter *a = cq->adapter;
	int n = 0;

	rwk_ca_use(cq, RWK_CA_CQ, __func__);
	rwk_ca_work(a);
	if (rwk_unlikely(!rwk_list_empty(&a->sleep.called)) && !call_back_first(cq))
		return 0;
	for (; n < max && cq->count; cq->count--, cq->head = (cq->head + 1) % cq->entries)
		wc[n++] = cq->wc[cq->head];
	return n;
}

static bool has_event(const struct rwk_cq *cq, enum rwk_cq_event what)
{
	uint32_t i = 0;

	while (i < cq->count && !is_event(&cq->wc[(cq->head + i) % cq->entries], what))
		i++;
	return i < cq->count;
}

int rwk_cq_arm(struct rwk_cq *cq, enum rwk_cq_event what)
{
	struct rwk_adapter *a = cq->adapter;
	int rc;

	rwk_ca_use(cq, RWK_CA_CQ, __func__);
	if ((unsigned)what > RWK_CQ_SOLICITED)
		return -EINVAL;
	rwk_ca_before_arm(&cq->sleeper);
	rwk_ca_work(a);
	cq->awaited = what;
	rc = has_event(cq, what) ? -EAGAIN : rwk_ca_arm(&cq->sleeper);
	if (rc)
		rwk_ca_disarm(&cq->sleeper);
	if (!rwk_list_empty(&a->sleep.called) && !call_back_first(cq))
		return -ECANCELED;
	return rc || cq->sleeper.armed ? rc : -EAGAIN; /* it may have come by a callback's work, and be taken, too */
}

int rwk_cq_fd(struct rwk_cq *cq)
{
	rwk_ca_use(cq, RWK_CA_CQ, __func__);
	return rwk_ca_sleeper_fd(&cq->sleeper);
}

int rwk_ca_cq_fds(struct rwk_cq *cq, int fd[2])
{
	int rc = rwk_cq_fd(cq);

	if (rc < 0)
		return rc;
	fd[0] = cq->sleeper.bell;
	fd[1] = cq->adapter->sleep.epoll;
	return 0;
}

static void call_back(struct sleeper *s)
{
	struct rwk_cq *cq = rwk_container_of(s, struct rwk_cq, sleeper);

	cq->event(cq->user, cq);
}

void rwk_cq_on_event(struct rwk_cq *cq, void (*event)(void *user, struct rwk_cq *cq), void *user)
{
	rwk_ca_use(cq, RWK_CA_CQ, __func__);
	cq->event = event;
	cq->user = user;
	cq->sleeper.call_back = event ? call_back : NULL;
}

int rwk_cq_wait(struct rwk_cq *cq, enum rwk_cq_event what, uint64_t timeout_ns)
{
	rwk_time until = rwk_ca_deadline(timeout_ns);
	int fd, rc;

	rwk_ca_use(cq, RWK_CA_CQ, __func__);
	fd = rwk_cq_fd(cq);
	if (cq->event || fd < 0)
		return cq->event ? -EINVAL : fd;
	do {
		rc = rwk_cq_arm(cq, what);
		if (rc == -ECANCELED)
			return rc;
		if (cq->event) /* and it may be that which has armed it */
			return -EINVAL;
		if (rc == -EAGAIN && has_event(cq, what))
			return 0;
		if (!rc || rc == -EAGAIN) /* callbacks may have armed so many that it does not hear */
			rc = rwk_ca_sleep(fd, !rc && cq->sleeper.hears, until);
	} while (!rc);
	rwk_ca_disarm(&cq->sleeper);
	return rc;
}

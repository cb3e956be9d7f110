/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SRC domains and shared receive queues, and the numbers by which peers name those of SRC: they are found by their
 * lowest bits in the adapter's table, which has a chain of srqs in each place.
 */
#include "channel_adapter/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

int rwk_src_domain_create(struct rwk_adapter *a, struct rwk_src_domain **out)
{
	struct rwk_src_domain *domain = calloc(1, sizeof(*domain));

	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	if (!domain)
		return -ENOMEM;
	domain->kind = RWK_CA_DOMAIN;
	domain->adapter = a;
	a->domains++;
	*out = domain;
	return 0;
}

int rwk_src_domain_destroy(struct rwk_src_domain *domain)
{
	rwk_ca_use(domain, RWK_CA_DOMAIN, __func__);
	if (domain->children)
		return -EBUSY;
	domain->adapter->domains--;
	rwk_ca_free(domain);
	return 0;
}

struct rwk_srq *rwk_ca_find_srq(const struct rwk_adapter *a, uint32_t number)
{
	struct rwk_srq *srq = a->srq[number % RWK_SRQS_MAX];

	while (srq && srq->number != number)
		srq = srq->next;
	return srq;
}

static void enter(struct rwk_srq *srq)
{
	struct rwk_srq **place = &srq->adapter->srq[srq->number % RWK_SRQS_MAX];

	srq->next = *place;
	*place = srq;
}

static void leave(struct rwk_srq *srq)
{
	struct rwk_srq **place = &srq->adapter->srq[srq->number % RWK_SRQS_MAX];

	while (*place != srq)
		place = &(*place)->next;
	*place = srq->next;
}

/* The number that the client wants, or one that nobody has: 0; -EADDRINUSE. */
static int choose_number(struct rwk_adapter *a, uint32_t wanted, uint32_t *number)
{
	if (wanted) {
		*number = wanted;
		return rwk_ca_find_srq(a, wanted) ? -EADDRINUSE : 0;
	}
	do {
		if (getrandom(number, sizeof(*number), 0) != (ssize_t)sizeof(*number))
			return -errno;
		*number &= RWK_CA_NUMBER_MAX;
	} while (!*number || rwk_ca_find_srq(a, *number));
	return 0;
}

/* S1-2: all three or none. */
static bool good_attr(const struct rwk_adapter *a, const struct rwk_srq_attr *attr)
{
	if (!attr->receive_max || attr->receive_max > RWK_QUEUE_MAX)
		return false;
	if (!attr->domain)
		return !attr->cq && !attr->number;
	rwk_ca_use(attr->domain, RWK_CA_DOMAIN, "rwk_srq_create");
	if (!attr->cq)
		return false;
	rwk_ca_use(attr->cq, RWK_CA_CQ, "rwk_srq_create");
	return attr->cq->adapter == a && attr->domain->adapter == a && attr->number <= RWK_CA_NUMBER_MAX;
}

/* Makes it known to its parents, and to peers. */
static void adopt(struct rwk_srq *srq)
{
	srq->adapter->srqs++;
	srq->pd->children++;
	if (!srq->domain)
		return;
	srq->domain->children++;
	srq->cq->children++;
	enter(srq);
}

int rwk_srq_create(struct rwk_pd *pd, const struct rwk_srq_attr *attr, struct rwk_srq **out)
{
	struct rwk_adapter *a = pd->adapter;
	struct rwk_srq *srq;
	int rc = 0;

	rwk_ca_use(pd, RWK_CA_PD, __func__);
	if (!good_attr(a, attr))
		return -EINVAL;
	if (a->srqs == RWK_SRQS_MAX)
		return -ENOSPC;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	*srq = (struct rwk_srq){.kind = RWK_CA_SRQ, .adapter = a, .pd = pd, .domain = attr->domain, .cq = attr->cq};
	rwk_list_init(&srq->events.link);
	if (attr->domain)
		rc = choose_number(a, attr->number, &srq->number);
	if (!rc)
		rc = rwk_ca_open_receives(&srq->receives, attr->receive_max);
	if (rc) {
		free(srq);
		return rc;
	}
	adopt(srq);
	*out = srq;
	return 0;
}

int rwk_srq_destroy(struct rwk_srq *srq)
{
	rwk_ca_use(srq, RWK_CA_SRQ, __func__);
	if (srq->children || srq->taken)
		return -EBUSY;
	srq->adapter->srqs--;
	srq->pd->children--;
	if (srq->domain) {
		leave(srq);
		srq->domain->children--;
		srq->cq->children--;
	}
	rwk_ca_forget_events(&srq->events);
	rwk_ca_drop_receives(&srq->receives, srq->cq);
	rwk_ca_close_receives(&srq->receives);
	rwk_ca_free(srq);
	return 0;
}

uint32_t rwk_srq_number(const struct rwk_srq *srq)
{
	rwk_ca_use(srq, RWK_CA_SRQ, __func__);
	return srq->number;
}

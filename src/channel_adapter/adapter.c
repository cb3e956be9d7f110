/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapter, protection domains, memory regions; and the work that is done when somebody polls. */
#include "channel_adapter/internal.h"

#include "base/cancel.h"
#include "base/compiler.h"
#include "links/udp/udp.h"
#include "wire/segment.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS_A_POLL 64
#define LOOKS_MAX      2048 /* at what has come, more than a receive buffer holds: others may go on sending */
#define ACCESS_ALL     (RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC | RWK_ACCESS_LOCAL_WRITE)
#define IP4_HEADERS    28u /* IP and UDP */
#define IP6_HEADERS    48u

static_assert((int)RWK_ACCESS_READ == RWK_REACH_READ && (int)RWK_ACCESS_WRITE == RWK_REACH_WRITE &&
		      (int)RWK_ACCESS_ATOMIC == RWK_REACH_ATOMIC,
	"an mr's access is what its key may be used for");

int rwk_adapter_open(const struct rwk_adapter_attr *attr, struct rwk_adapter **out)
{
	struct rwk_udp_attr udp = {.port = attr->port || attr->any_port ? attr->port : RWK_PORT, .strict = true};
	struct rwk_adapter *a = calloc(1, sizeof(*a));
	int rc = -ENOMEM;

	if (!a)
		return rc;
	a->kind = RWK_CA_ADAPTER;
	memcpy(a->ip, attr->ip, sizeof(a->ip));
	memcpy(udp.ip, attr->ip, sizeof(udp.ip));
	a->keys = aligned_alloc(RWK_CACHE_LINE, rwk_keys_size(RWK_MRS_MAX));
	if (!a->keys)
		goto free_adapter;
	rc = rwk_keys_init(a->keys, RWK_MRS_MAX);
	if (rc)
		goto free_keys;
	rc = rwk_udp_open(&udp, &a->link);
	if (rc)
		goto free_keys;
	a->link->packet = rwk_ca_packet;
	a->link->user = a;
	a->next = RWK_NEVER;
	rwk_list_init(&a->due);
	rwk_ca_open_sleep(&a->sleep);
	rwk_list_init(&a->events);
	rwk_ca_open_sleeper(&a->event_sleeper, a);
	*out = a;
	return 0;

free_keys:
	free(a->keys);
free_adapter:
	free(a);
	return rc;
}

int rwk_adapter_close(struct rwk_adapter *a)
{
	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	if (a->pds || a->cqs || a->domains || a->channels)
		return -EBUSY;
	rwk_ca_close_sleeper(&a->event_sleeper);
	rwk_ca_close_sleep(&a->sleep);
	if (a->streams)
		a->streams->ops->close(a->streams);
	a->link->ops->close(a->link);
	free(a->keys);
	rwk_ca_free(a);
	return 0;
}

uint16_t rwk_adapter_port(const struct rwk_adapter *a)
{
	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	return rwk_udp_port(a->link);
}

/* Where the qp's peer is, who knows our packets by their source; NULL: there is none. */
static const uint8_t *peer_of(const struct rwk_qp *qp)
{
	switch (rwk_ca_state(qp)) {
	case RWK_QPS_INIT:
		return qp->stream ? qp->stream->peer_ip : NULL;
	case RWK_QPS_RTR:
	case RWK_QPS_RTS:
		return qp->peer_ip;
	default:
		return NULL;
	}
}

static bool is_known_at(const struct rwk_adapter *a, const uint8_t peer[16])
{
	for (uint32_t i = 0; i < RWK_QPS_MAX; i++) {
		const struct rwk_qp *qp = a->qp[i];
		const uint8_t *ip = qp && qp->link == a->link ? peer_of(qp) : NULL;

		if (ip && !memcmp(ip, peer, sizeof(qp->peer_ip)))
			return true;
	}
	return false;
}

int rwk_adapter_source(struct rwk_adapter *a, const uint8_t peer[16], uint8_t ip[16])
{
	static const uint8_t any[16];

	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	if (!memcmp(a->ip, any, sizeof(any)))
		return rwk_udp_source(a->link, peer, !is_known_at(a, peer), ip);
	memcpy(ip, a->ip, sizeof(a->ip));
	return 0;
}

/* That the kernel cannot be asked says nothing: it is asked by a socket, which has a port meanwhile. */
static bool is_no_way(int err)
{
	switch (err) {
	case 0:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -ENOBUFS:
	case -EAGAIN:     /* of connect: no port is free */
	case -EADDRINUSE: /* of bind: the same */
		return false;
	default:
		return true;
	}
}

uint32_t rwk_adapter_pmtu(struct rwk_adapter *a, const uint8_t peer[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct rwk_link_address to = rwk_udp_address(peer, RWK_PORT);
	uint8_t source[16];
	size_t packet;

	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	if (is_no_way(rwk_udp_source(a->link, peer, false, source)))
		return 0;
	packet = a->link->ops->mtu(a->link, &to);
	return packet ? rwk_segment_pmtu(packet + (memcmp(peer, mapped, sizeof(mapped)) ? IP6_HEADERS : IP4_HEADERS))
		      : 0;
}

void rwk_adapter_get_counters(const struct rwk_adapter *a, struct rwk_adapter_counters *c)
{
	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	*c = a->counters;
}

int rwk_pd_create(struct rwk_adapter *a, struct rwk_pd **out)
{
	struct rwk_pd *pd = calloc(1, sizeof(*pd));

	rwk_ca_use(a, RWK_CA_ADAPTER, __func__);
	if (!pd)
		return -ENOMEM;
	pd->kind = RWK_CA_PD;
	pd->adapter = a;
	pd->number = a->next_pd++;
	a->pds++;
	*out = pd;
	return 0;
}

int rwk_pd_destroy(struct rwk_pd *pd)
{
	rwk_ca_use(pd, RWK_CA_PD, __func__);
	if (pd->children)
		return -EBUSY;
	pd->adapter->pds--;
	rwk_ca_free(pd);
	return 0;
}

int rwk_mr_register(struct rwk_pd *pd, void *address, size_t length, unsigned access, struct rwk_mr **out)
{
	struct iovec iov = {address, length};
	struct rwk_mr *mr;
	int rc;

	rwk_ca_use(pd, RWK_CA_PD, __func__);
	if (access & ~(unsigned)ACCESS_ALL)
		return -EINVAL;
	mr = malloc(sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	*mr = (struct rwk_mr){.kind = RWK_CA_MR, .pd = pd};
	rc = rwk_keys_add(pd->adapter->keys, pd->number, (uintptr_t)address, &iov, 1, access, &mr->key);
	if (rc) {
		free(mr);
		return rc;
	}
	pd->children++;
	*out = mr;
	return 0;
}

int rwk_mr_deregister(struct rwk_mr *mr)
{
	rwk_ca_use(mr, RWK_CA_MR, __func__);
	if (mr->windows)
		return -EBUSY;
	rwk_keys_remove(mr->pd->adapter->keys, mr->key);
	mr->pd->children--;
	rwk_ca_free(mr);
	return 0;
}

uint32_t rwk_mr_key(const struct rwk_mr *mr)
{
	rwk_ca_use(mr, RWK_CA_MR, __func__);
	return mr->key;
}

static void pump(struct rwk_qp *qp)
{
	struct rwk_adapter *a = qp->adapter;
	rwk_time next = RWK_NEVER;

	qp->link_full = false;
	if (rwk_ca_is_uc(qp)) {
		rwk_uc_pump(qp->uc);
	} else {
		rwk_rc_pump(qp->rc, a->now);
		next = rwk_rc_next(qp->rc);
	}
	if (next < a->next && !qp->link_full) /* else it stays due */
		a->next = next;
}

/* A time has come that some qp waits for: those for which it has are due, the earliest of the others is next. */
static void find_due(struct rwk_adapter *a)
{
	a->next = RWK_NEVER;
	for (uint32_t i = 0; i < RWK_QPS_MAX; i++) {
		struct rwk_qp *qp = a->qp[i];
		rwk_time next = qp && !rwk_ca_is_uc(qp) ? rwk_rc_next(qp->rc) : RWK_NEVER;

		if (next <= a->now)
			rwk_ca_set_due(qp);
		else if (next < a->next)
			a->next = next;
	}
}

void rwk_ca_pump(struct rwk_adapter *a)
{
	struct rwk_list again;
	struct rwk_list *l;

	rwk_list_init(&again);
	if (a->now >= a->next)
		find_due(a);
	a->sleep.full = false;
	while ((l = rwk_list_pop(&a->due))) {
		struct rwk_qp *qp = rwk_container_of(l, struct rwk_qp, due);

		pump(qp);
		rwk_list_remove(&qp->due);
		if (rwk_likely(!qp->link_full))
			continue;
		rwk_list_append(&again, &qp->due);
		a->sleep.full |= qp->link == a->link;
	}
	while ((l = rwk_list_pop(&again)))
		rwk_list_append(&a->due, l);
	a->link->ops->flush(a->link);
	if (a->streams)
		a->streams->ops->flush(a->streams);
	if (rwk_unlikely(a->sleep.armed))
		rwk_ca_set_alarm(a);
}

/* Arm does not say: packets that wait for room to go out keep one from sleeping, too. */
static bool some_are_here(struct rwk_link *l)
{
	RWK_CANCEL_HELD_OFF;
	struct pollfd p = {.events = POLLIN};

	for (int i = 0; (p.fd = l->ops->wait_fd(l, i)) >= 0; i++) {
		if (poll(&p, 1, 0) > 0 && p.revents & POLLIN)
			return true;
	}
	return false;
}

void rwk_ca_take_packets(struct rwk_adapter *a)
{
	struct rwk_link *l = a->link;

	/* A look may bring one packet of many, or none though some are here. */
	for (unsigned i = 0; i < LOOKS_MAX && (l->ops->progress(l, PACKETS_A_POLL) > 0 || some_are_here(l)); i++)
		;
}

void rwk_ca_work(struct rwk_adapter *a)
{
	a->now = a->link->ops->now(a->link);
	a->sleep.unread = a->link->ops->progress(a->link, PACKETS_A_POLL) == PACKETS_A_POLL;
	if (a->streams)
		a->sleep.unread |= a->streams->ops->progress(a->streams, PACKETS_A_POLL) == PACKETS_A_POLL;
	rwk_ca_pump(a);
}

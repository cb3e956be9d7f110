/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: numbers, states, connection. The state itself is the machine's. */
#include "channel_adapter/internal.h"

#include "base/compiler.h"
#include "links/udp/udp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NUMBER_DRAWN (0xffffffu / RWK_QPS_MAX) /* bits above the place in the table */
#define TIMEOUT      67108864u                 /* ns: 4.096 us << 14, what verbs programs use */
#define TIMEOUT_MOST (1ull << 43) /* ns, two hours and a half: a deadline, doubled often, can still be said */
#define WINDOW_MIN   16u
#define READ_PACKETS 32u /* of one Read Request: what a requester asks for must have room when it comes */

static_assert((int)RWK_QPS_RESET == RWK_QP_RESET && (int)RWK_QPS_ERR == RWK_QP_ERR, "the states have the same numbers");

static size_t whole_lines(size_t n)
{
	return (n + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1);
}

/* A free place in the table and a number for it: 0; -ENOSPC. Numbers 0, 1 and the last one mean something else. */
static int draw_number(struct rwk_adapter *a, uint32_t *number)
{
	uint32_t place = 0, drawn;

	while (place < RWK_QPS_MAX && a->qp[place])
		place++;
	if (place == RWK_QPS_MAX)
		return -ENOSPC;
	do {
		if (getrandom(&drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
			return -errno;
		drawn &= NUMBER_DRAWN;
	} while (!drawn || drawn == NUMBER_DRAWN);
	*number = drawn * RWK_QPS_MAX + place;
	return 0;
}

static int open_machine(struct rwk_qp *qp)
{
	bool uc = rwk_ca_is_uc(qp);

	qp->memory = aligned_alloc(RWK_CACHE_LINE, whole_lines(uc ? rwk_uc_size() : rwk_rc_size()));
	qp->responder = calloc(1, uc ? rwk_uc_responder_size() : rwk_rc_responder_size());
	if (!qp->memory || !qp->responder)
		return -ENOMEM;
	if (uc)
		qp->uc = rwk_uc_open(qp->memory, qp->responder, &rwk_ca_host, qp);
	else
		qp->rc = rwk_rc_open(qp->memory, qp->responder, &rwk_ca_host, qp);
	return 0;
}

static void free_qp(struct rwk_qp *qp)
{
	free(qp->requests);
	free(qp->inlined);
	rwk_ca_close_early(qp);
	rwk_ca_close_receives(&qp->own);
	free(qp->memory);
	free(qp->responder);
	rwk_ca_free(qp);
}

static void on_lost(void *user)
{
	struct rwk_qp *qp = user;

	qp->lost++;
	rwk_ca_raise(qp->adapter, &qp->events, RWK_ASYNC_QP_LOST);
}

/* Where do receives come from: the srqs of a domain (S1-3), one srq, or the qp's own queue? */
static bool good_receives(const struct rwk_adapter *a, const struct rwk_qp_create_attr *attr)
{
	if (attr->type == RWK_QP_SRC)
		return attr->domain && attr->domain->adapter == a && !attr->srq && !attr->receive_cq &&
		       !attr->receive_max;
	if (attr->domain || !attr->receive_cq || attr->receive_cq->adapter != a)
		return false;
	if (attr->srq)
		return attr->srq->adapter == a && !attr->srq->domain && !attr->receive_max;
	return attr->receive_max && attr->receive_max <= RWK_QUEUE_MAX;
}

static void look_at_objects(const struct rwk_qp_create_attr *attr)
{
	static const char call[] = "rwk_qp_create";

	if (attr->send_cq)
		rwk_ca_use(attr->send_cq, RWK_CA_CQ, call);
	if (attr->receive_cq)
		rwk_ca_use(attr->receive_cq, RWK_CA_CQ, call);
	if (attr->srq)
		rwk_ca_use(attr->srq, RWK_CA_SRQ, call);
	if (attr->domain)
		rwk_ca_use(attr->domain, RWK_CA_DOMAIN, call);
}

static bool good_attr(const struct rwk_adapter *a, const struct rwk_qp_create_attr *attr)
{
	return (unsigned)attr->type <= RWK_QP_SRC && attr->send_cq && attr->send_cq->adapter == a && attr->send_max &&
	       attr->send_max <= RWK_QUEUE_MAX && attr->inline_max <= RWK_INLINE_MAX && good_receives(a, attr);
}

/* Each parent has one child more, or one less. */
static void count_with_parents(struct rwk_qp *qp, int change)
{
	qp->pd->children += (uint32_t)change;
	qp->send_cq->children += (uint32_t)change;
	if (qp->receive_cq)
		qp->receive_cq->children += (uint32_t)change;
	if (qp->srq)
		qp->srq->children += (uint32_t)change;
	if (qp->domain)
		qp->domain->children += (uint32_t)change;
}

static int open_queues(struct rwk_qp *qp, uint32_t receive_max)
{
	qp->requests = calloc(qp->request_max, sizeof(*qp->requests));
	if (!qp->requests)
		return -ENOMEM;
	if (qp->inline_max) {
		qp->inlined = malloc((size_t)qp->request_max * qp->inline_max);
		if (!qp->inlined)
			return -ENOMEM;
	}
	return rwk_ca_open_receives(&qp->own, receive_max);
}

int rwk_qp_create(struct rwk_pd *pd, const struct rwk_qp_create_attr *attr, struct rwk_qp **out)
{
	struct rwk_qp *qp;
	int rc;

	rwk_ca_use(pd, RWK_CA_PD, __func__);
	look_at_objects(attr);
	if (!good_attr(pd->adapter, attr))
		return -EINVAL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	*qp = (struct rwk_qp){.kind = RWK_CA_QP,
		.adapter = pd->adapter,
		.pd = pd,
		.type = attr->type,
		.send_cq = attr->send_cq,
		.receive_cq = attr->receive_cq,
		.srq = attr->srq,
		.domain = attr->domain,
		.link = pd->adapter->link,
		.request_max = attr->send_max,
		.inline_max = attr->inline_max};
	rwk_list_init(&qp->due);
	rwk_list_init(&qp->events.link);
	rwk_list_init(&qp->windows);
	rc = open_queues(qp, attr->receive_max);
	if (!rc)
		rc = draw_number(pd->adapter, &qp->number);
	if (!rc)
		rc = open_machine(qp);
	if (rc) {
		free_qp(qp);
		return rc;
	}
	if (rwk_ca_is_uc(qp))
		rwk_uc_on_loss(qp->uc, on_lost);
	pd->adapter->qp[qp->number % RWK_QPS_MAX] = qp;
	count_with_parents(qp, 1);
	*out = qp;
	return 0;
}

void rwk_qp_destroy(struct rwk_qp *qp)
{
	rwk_ca_use(qp, RWK_CA_QP, __func__);
	rwk_ca_forsake_stream(qp);
	qp->silent = true;
	if (rwk_ca_is_uc(qp))
		rwk_uc_close(qp->uc);
	else
		rwk_rc_close(qp->rc);
	rwk_ca_flush_receives(qp);
	rwk_list_remove(&qp->due);
	rwk_ca_forget_events(&qp->events);
	rwk_ca_unbind_all(qp);
	qp->adapter->qp[qp->number % RWK_QPS_MAX] = NULL;
	count_with_parents(qp, -1);
	free_qp(qp);
}

uint32_t rwk_qp_number(const struct rwk_qp *qp)
{
	rwk_ca_use(qp, RWK_CA_QP, __func__);
	return qp->number;
}

static bool on_stream(const struct rwk_qp *qp)
{
	return qp->link != qp->adapter->link;
}

/* Packets that may be under way: a stream loses none, by UDP those that find no room are lost. */
static size_t room_for(const struct rwk_qp *qp, uint32_t pmtu)
{
	if (on_stream(qp))
		return RWK_RC_WINDOW_MAX;
	return rwk_udp_room(qp->adapter->link) / (pmtu < RWK_UDP_ROOM_PACKET ? RWK_UDP_ROOM_PACKET : pmtu);
}

static rwk_time timeout_of(const struct rwk_qp_attr *attr)
{
	if (!attr->timeout_ns)
		return TIMEOUT;
	return attr->timeout_ns < TIMEOUT_MOST ? attr->timeout_ns : TIMEOUT_MOST;
}

static int connect_rc(struct rwk_qp *qp, const struct rwk_qp_attr *attr, uint32_t pmtu)
{
	size_t room = room_for(qp, pmtu);
	int err = rwk_ca_open_early(qp, attr->unordered);
	struct rwk_rc_attr rc = {
		.peer_qpn = attr->peer_qpn,
		.send_psn = attr->send_psn,
		.receive_psn = attr->receive_psn,
		.pmtu = (uint16_t)pmtu,
		.window = (uint16_t)(room < WINDOW_MIN          ? WINDOW_MIN
				     : room > RWK_RC_WINDOW_MAX ? RWK_RC_WINDOW_MAX
								: room),
		.reads = attr->reads ? attr->reads : RWK_RC_READS_MAX,
		.peer_reads = attr->peer_reads ? attr->peer_reads : RWK_RC_READS_MAX,
		.retry = attr->retry,
		.rnr_retry = attr->rnr_retry,
		.rnr_timer = attr->rnr_timer,
		.service = qp->type == RWK_QP_SRC ? RWK_WIRE_SRC : RWK_WIRE_RC,
		.own = attr->unordered ? RWK_RC_SELECTIVE | RWK_RC_UNORDERED : 0,
		.reach = attr->access,
		.timeout = timeout_of(attr),
		.read_chunk = READ_PACKETS * pmtu,
	};

	return err ? err : rwk_rc_modify(qp->rc, RWK_QP_RTR, &rc);
}

static int connect_uc(struct rwk_qp *qp, const struct rwk_qp_attr *attr, uint32_t pmtu)
{
	struct rwk_uc_attr uc = {
		.peer_qpn = attr->peer_qpn,
		.send_psn = attr->send_psn,
		.receive_psn = attr->receive_psn,
		.pmtu = (uint16_t)pmtu,
		.stream = on_stream(qp),
		.reach = attr->access,
	};

	return rwk_uc_modify(qp->uc, RWK_QP_RTR, &uc);
}

/* S0-2: is it said which qp of whom? A stream leads to one peer alone. */
static bool names_peer(const struct rwk_qp *qp, const struct rwk_qp_attr *attr)
{
	static const uint8_t none[16], none4[16] = {[10] = 0xff, [11] = 0xff};

	if (!rwk_ca_may_be_qp(attr->peer_qpn))
		return false;
	return on_stream(qp) ||
	       (memcmp(attr->peer_ip, none, sizeof(none)) && memcmp(attr->peer_ip, none4, sizeof(none4)));
}

static int connect_to(struct rwk_qp *qp, const struct rwk_qp_attr *attr)
{
	uint32_t pmtu, most;
	int rc;

	if (!attr || attr->access & ~(unsigned)(RWK_ACCESS_READ | RWK_ACCESS_WRITE | RWK_ACCESS_ATOMIC))
		return -EINVAL;
	if (!names_peer(qp, attr))
		return -EINVAL;
	if (rwk_ca_state(qp) != RWK_QPS_INIT)
		return -EINVAL; /* the machine would say so too late: what it has kept of early packets would be gone */
	most = on_stream(qp) ? RWK_WIRE_PMTU_MAX : rwk_adapter_pmtu(qp->adapter, attr->peer_ip);
	if (!most || attr->pmtu > most)
		return -ENETUNREACH;
	pmtu = attr->pmtu ? attr->pmtu : most;
	if (pmtu < 256 || pmtu & (pmtu - 1))
		return -EINVAL;
	rc = rwk_ca_is_uc(qp) ? connect_uc(qp, attr, pmtu) : connect_rc(qp, attr, pmtu);
	if (rc || on_stream(qp))
		return rc;
	qp->peer_port = attr->peer_port ? attr->peer_port : RWK_PORT;
	qp->one_port = attr->one_port;
	memcpy(qp->peer_ip, attr->peer_ip, sizeof(qp->peer_ip));
	qp->peer = rwk_udp_address(qp->peer_ip, qp->peer_port);
	return 0;
}

/* What is posted has ended; what else there was of the connection ends. */
static void end_connection(struct rwk_qp *qp, enum rwk_qps before, enum rwk_qps state)
{
	rwk_ca_flush_receives(qp);
	if (state == RWK_QPS_RESET) {
		qp->error = 0;
		qp->lost = 0;
		qp->link = qp->adapter->link;
		rwk_ca_forget_events(&qp->events);
		rwk_ca_unbind_all(qp);
	} else if (before != state && qp->srq) {
		rwk_ca_raise(qp->adapter, &qp->events, RWK_ASYNC_QP_LAST_RECEIVE);
	}
}

int rwk_qp_modify(struct rwk_qp *qp, enum rwk_qps state, const struct rwk_qp_attr *attr)
{
	enum rwk_qp_state to = (enum rwk_qp_state)state;
	enum rwk_qps before;
	int rc;

	rwk_ca_use(qp, RWK_CA_QP, __func__);
	before = rwk_ca_state(qp);
	if (state == RWK_QPS_RTR)
		return connect_to(qp, attr);
	if (state == RWK_QPS_RESET)
		rwk_ca_forsake_stream(qp);
	qp->silent = state == RWK_QPS_RESET;
	rc = rwk_ca_is_uc(qp) ? rwk_uc_modify(qp->uc, to, NULL) : rwk_rc_modify(qp->rc, to, NULL);
	if (!rc && (state == RWK_QPS_RESET || state == RWK_QPS_ERR))
		end_connection(qp, before, state);
	qp->silent = false;
	return rc;
}

void rwk_qp_query(const struct rwk_qp *qp, struct rwk_qp_info *info)
{
	bool uc = rwk_ca_is_uc(qp);
	const struct rwk_qp_counters *c = uc ? rwk_uc_counters(qp->uc) : rwk_rc_counters(qp->rc);

	rwk_ca_use(qp, RWK_CA_QP, __func__);
	*info = (struct rwk_qp_info){
		.state = rwk_ca_state(qp),
		.error = qp->error,
		.packets_out = c->packets_out,
		.bytes_out = c->bytes_out,
		.packets_in = c->packets_in,
		.bytes_in = c->bytes_in,
		.sent_again = c->sent_again,
		.timeouts = c->timeouts,
		.acks_in = c->acks_in,
		.acks_out = c->acks_out,
		.naks_in = c->naks_in,
		.naks_out = c->naks_out,
		.rnr_in = c->rnr_in,
		.rnr_out = c->rnr_out,
		.duplicates = c->duplicates,
		.early = c->early,
		.before_turn = c->before_turn,
		.lost = c->gaps,
		.bad_opcode = c->bad_opcode,
		.bad_length = c->bad_length,
		.bad_access = c->bad_access,
		.bad_state = c->bad_state,
	};
}

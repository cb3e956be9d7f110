/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP's states, and the requester: work requests wait in the order of their posting, the first of them is cut into
 * packets as the link has room, and is done with its last packet.
 */
#include "uc/internal.h"

#include "base/compiler.h"
#include "base/iov.h"
#include "wire/psn.h"
#include "wire/segment.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define FLAGS (RWK_WR_IMM | RWK_WR_SOLICITED | RWK_WR_FENCE)

static_assert(RWK_WR_IMM == 1, "an index, below");

size_t rwk_uc_size(void)
{
	return sizeof(struct rwk_uc);
}

size_t rwk_uc_responder_size(void)
{
	return sizeof(struct uc_responder);
}

struct rwk_uc *rwk_uc_open(void *memory, void *responder, const struct rwk_machine_host *host, void *user)
{
	struct rwk_uc *qp = memory;

	memset(qp, 0, sizeof(*qp));
	qp->host = host;
	qp->user = user;
	qp->responder = responder;
	rwk_list_init(&qp->posted);
	return qp;
}

void rwk_uc_close(struct rwk_uc *qp)
{
	uc_flush(qp);
}

void uc_flush(struct rwk_uc *qp)
{
	struct rwk_list ending, *l;

	rwk_list_move_all(&qp->posted, &ending); /* what `done` posts waits for the next flush */
	while ((l = rwk_list_pop(&ending)))
		qp->host->done(qp->user, rwk_container_of(l, struct rwk_wr, link), -ECANCELED);
}

static int to_rtr(struct rwk_uc *qp, const struct rwk_uc_attr *attr)
{
	struct uc_responder *r = qp->responder;

	if (!attr || !rwk_wire_is_pmtu(attr->pmtu))
		return -EINVAL;
	if ((attr->peer_qpn | attr->send_psn | attr->receive_psn) & ~RWK_PSN_MASK)
		return -EINVAL;
	if (!r->open)
		*r = (struct uc_responder){.open = true, .psn = attr->receive_psn};
	qp->attr = *attr;
	qp->psn = attr->send_psn;
	qp->state = RWK_QP_RTR;
	return 0;
}

int rwk_uc_modify(struct rwk_uc *qp, enum rwk_qp_state state, const struct rwk_uc_attr *attr)
{
	switch (state) {
	case RWK_QP_RESET:
		*qp->responder = (struct uc_responder){0};
		qp->state = RWK_QP_RESET;
		uc_flush(qp);
		return 0;
	case RWK_QP_ERR:
		qp->state = RWK_QP_ERR;
		uc_flush(qp);
		return 0;
	case RWK_QP_RTR:
		return qp->state == RWK_QP_INIT ? to_rtr(qp, attr) : -EINVAL;
	default:
		if (state != qp->state + 1 || state > RWK_QP_RTS)
			return -EINVAL;
		qp->state = state;
		return 0;
	}
}

enum rwk_qp_state rwk_uc_state(const struct rwk_uc *qp)
{
	return qp->state;
}

int rwk_uc_post(struct rwk_uc *qp, struct rwk_wr *wr)
{
	switch (wr->type) {
	case RWK_WR_SEND:
	case RWK_WR_WRITE:
		break;
	case RWK_WR_READ:
	case RWK_WR_COMPARE_SWAP:
	case RWK_WR_FETCH_ADD:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
	if ((qp->state != RWK_QP_RTS && qp->state != RWK_QP_ERR) || wr->flags & ~FLAGS ||
		wr->iov_count > RWK_MACHINE_IOV)
		return -EINVAL;
	if (wr->length > RWK_WIRE_LENGTH_MAX)
		return -EMSGSIZE;
	wr->at = 0;
	wr->packets = 0;
	rwk_list_append(&qp->posted, &wr->link);
	return 0;
}

int rwk_uc_withdraw(struct rwk_uc *qp, struct rwk_wr *wr)
{
	(void)qp;
	if (wr->packets)
		return -EBUSY;
	rwk_list_remove(&wr->link);
	return 0;
}

/* Emits the next packet: 0, or why the link does not take it. */
static int emit_next(struct rwk_uc *qp, struct rwk_wr *wr)
{
	static const enum rwk_segment_kind kinds[2][2] = {
		{RWK_SEGMENT_SEND, RWK_SEGMENT_SEND_IMM}, {RWK_SEGMENT_WRITE, RWK_SEGMENT_WRITE_IMM}};
	const struct rwk_uc_attr *a = &qp->attr;
	uint32_t length = (uint32_t)wr->length;
	struct rwk_segment s = rwk_segment_at(
		RWK_WIRE_UC, kinds[wr->type == RWK_WR_WRITE][wr->flags & RWK_WR_IMM], length, a->pmtu, wr->packets);
	struct rwk_wire w = {
		.opcode = s.opcode,
		.solicited = wr->flags & RWK_WR_SOLICITED && s.offset + s.length == length,
		.migrated = true,
		.pkey = RWK_WIRE_PKEY,
		.qpn = a->peer_qpn,
		.psn = qp->psn,
		.reth = {wr->remote, wr->key, length},
		.imm = wr->imm,
	};
	struct iovec iov[RWK_MACHINE_IOV];
	size_t len = s.length;
	unsigned count = rwk_iov_slice(wr->iov, wr->iov_count, s.offset, &len, iov, RWK_MACHINE_IOV);
	int rc = qp->host->emit(qp->user, &w, iov, (int)count);

	if (rc)
		return rc;
	wr->at += s.length;
	wr->packets++;
	qp->psn = rwk_psn_add(qp->psn, 1);
	qp->counters.packets_out++;
	qp->counters.bytes_out += s.length;
	return 0;
}

/* Emits what is left of it: have all its packets gone out? */
static bool send_off(struct rwk_uc *qp, struct rwk_wr *wr, int *emitted)
{
	do {
		if (emit_next(qp, wr))
			return false;
		++*emitted;
	} while (wr->at < wr->length);
	return true;
}

int rwk_uc_pump(struct rwk_uc *qp)
{
	struct rwk_list *end = &qp->end; /* what `done` posts stands behind it, what it withdraws is gone */
	int emitted = 0;

	if (rwk_unlikely(qp->state == RWK_QP_ERR)) {
		uc_flush(qp);
		return 0;
	}
	rwk_list_append(&qp->posted, end);
	while (qp->posted.next != end) {
		struct rwk_wr *wr = rwk_container_of(qp->posted.next, struct rwk_wr, link);

		if (!send_off(qp, wr, &emitted))
			break;
		rwk_list_remove(&wr->link);
		qp->host->done(qp->user, wr, 0);
	}
	rwk_list_remove(end);
	return emitted;
}

bool rwk_uc_idle(const struct rwk_uc *qp)
{
	return rwk_list_empty(&qp->posted);
}

void rwk_uc_on_loss(struct rwk_uc *qp, void (*lost)(void *user))
{
	qp->lost = lost;
}

const struct rwk_qp_counters *rwk_uc_counters(const struct rwk_uc *qp)
{
	return &qp->counters;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the peer's answers say. Answers come in the order of the requests: one for a packet says that all before it have
 * arrived, and, of what must be answered itself (Reads, atomics), that an answer that is missing was lost (the implied
 * NAK of a strict requester).
 */
#include "base/copy.h"
#include "base/iov.h"
#include "internal.h"

#include <string.h>

/* Strict: una up to acked, but not over a Read or an atomic, whose answers move it themselves. */
static void move_strict(struct rwk_rc *qp)
{
	struct rwk_rc_requester *r = &qp->req;

	while (r->una != r->acked) {
		struct rwk_wr *wr = rwk_rc_find(qp, r->una);
		uint32_t end;

		if (rwk_rc_is_answered(wr))
			return;
		end = rwk_psn_add(wr->first_psn, wr->packets);
		r->una = rwk_psn_diff(end, r->acked) < 0 ? end : r->acked;
	}
}

/* Everything before `upto` is in order at the peer. */
static void in_order(struct rwk_rc *qp, uint32_t upto)
{
	struct rwk_rc_requester *r = &qp->req;

	if (rwk_psn_diff(upto, r->acked) <= 0)
		return;
	if (rwk_likely(!r->reads_out)) {
		if (rwk_unlikely(r->marked))
			rwk_rc_settle_to(r, upto);
		r->una = r->acked = upto;
		if (rwk_psn_diff(upto, r->high) > 0)
			r->high = upto;
		return;
	}
	if (r->own & RWK_RC_SELECTIVE) {
		struct rwk_wr *wr = NULL;

		for (uint32_t p = r->acked; p != upto; p = rwk_psn_add(p, 1)) {
			if (!wr || rwk_rc_at(wr, p) >= wr->packets)
				wr = rwk_rc_find(qp, p);
			if (!rwk_rc_is_answered(wr))
				rwk_rc_settle(r, p);
		}
		r->acked = upto;
		rwk_rc_move_una(qp);
	} else {
		r->acked = upto;
		move_strict(qp);
	}
	if (rwk_psn_diff(upto, r->high) > 0)
		r->high = upto;
}

/* A packet that nobody sent again was on its way: how long? `delay`: what the peer waited, ns. */
static void take_time(struct rwk_rc_requester *r, uint32_t upto, rwk_time now, rwk_time delay)
{
	rwk_time took = now - r->rtt_at;

	if (!r->timing || rwk_psn_diff(upto, r->rtt_psn) <= 0)
		return;
	r->timing = false;
	rwk_rc_round_trip(r, took > delay ? took - delay : 0);
}

/* After a time-out: what had not been sent again has come, so it was the peer that was late. */
static void late_not_lost(struct rwk_rc_requester *r)
{
	if (rwk_psn_diff(r->acked, r->last_again) > 0) {
		for (uint32_t p = r->una; r->lost && p != r->next; p = rwk_psn_add(p, 1))
			if (rwk_rc_bit(&r->is_lost, p))
				rwk_rc_unmark(r, p, rwk_psn_add(p, 1));
		rwk_rc_window_restore(r);
	}
	if (!r->lost)
		r->timed_out = false;
}

/* What follows from news: `una` and `acked` were those before. */
static void news(struct rwk_rc *qp, uint32_t una, uint32_t acked, uint16_t settled, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;

	if (rwk_likely(r->una != una)) {
		r->tries = r->rnr_tries = 0;
		r->implied = false;
		if (rwk_unlikely((r->una ^ una) & -RWK_RC_FOLLOW))
			rwk_rc_marks_follow(r);
		if (rwk_psn_diff(r->back, r->una) < 0)
			r->back = r->una;
		if (r->cwnd < r->limit)
			rwk_rc_window_grow(r, (r->una - una) & RWK_PSN_MASK);
	}
	if (rwk_unlikely(qp->holds) && r->una != una)
		rwk_rc_hold_passed(qp, una, r->una);
	if (r->una != una || r->acked != acked || r->settled != settled) {
		r->backoff = 0;
		if (rwk_unlikely(r->timed_out))
			late_not_lost(r);
		rwk_rc_rearm(r, now);
	}
	if (r->una != una)
		rwk_rc_complete(qp);
}

/* Strict: an answer is missing that must have been sent before this one. */
static void miss(struct rwk_rc *qp)
{
	struct rwk_rc_requester *r = &qp->req;

	if (r->own & RWK_RC_SELECTIVE || r->una == r->acked || r->implied || r->timer == RWK_RC_TIMER_RNR)
		return;
	r->implied = true;
	rwk_rc_go_back(qp, r->una);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/* Bit i of the bitmap: packet first + i is kept by the peer. Of a Read that is its request, which is not settled yet.
 */
static void take_bits(struct rwk_rc *qp, uint32_t first, const uint8_t *bits, size_t len)
{
	struct rwk_rc_requester *r = &qp->req;

	for (size_t i = 0; i < 8 * len; i++) {
		uint32_t p = rwk_psn_add(first, (uint32_t)i);

		if (!(bits[i / 8] >> i % 8 & 1) || rwk_psn_diff(p, r->next) >= 0 || rwk_psn_diff(p, r->una) < 0)
			continue;
		if (rwk_psn_diff(rwk_psn_add(p, 1), r->high) > 0)
			r->high = rwk_psn_add(p, 1);
		if (rwk_rc_bit(&r->has_settled, p))
			continue;
		if (r->reads_out && rwk_rc_is_answered(rwk_rc_find(qp, p))) {
			if (rwk_rc_is_again(r, p))
				rwk_rc_has_come_again(r, p);
			else
				rwk_rc_mark_again(r, p);
		} else {
			rwk_rc_settle(r, p);
		}
	}
}

/* An acknowledgement of everything up to psn; `share`: ours of its buffer; `bits`: of packets after it. */
static void acknowledged(struct rwk_rc *qp, uint32_t psn, uint32_t share, const uint8_t *bits, size_t len, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	uint32_t una = r->una, acked = r->acked, upto = rwk_psn_add(psn, 1);
	uint16_t settled = r->settled;

	if (rwk_psn_diff(upto, r->next) > 0) {
		qp->counters.too_far++;
		return;
	}
	if (rwk_psn_diff(upto, r->acked) < 0)
		return;
	if (rwk_unlikely(share || r->limit != r->window))
		rwk_rc_window_limit(r, share);
	in_order(qp, upto);
	if (len)
		take_bits(qp, upto, bits, len);
	news(qp, una, acked, settled, now);
	if (rwk_unlikely(r->una != r->acked))
		miss(qp);
	if (rwk_unlikely(r->own & RWK_RC_SELECTIVE && (r->marked || r->una != r->acked)))
		rwk_rc_look_for_lost(qp, now);
}

void rwk_rc_acked(struct rwk_rc *qp, uint32_t word, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	uint32_t psn = word & RWK_PSN_MASK;

	if (qp->state != RWK_QP_RTS)
		return;
	qp->counters.acks_in++;
	/* How long the peer's client took is not known: believed only where it shows the trip to be shorter. */
	if (r->timing && rwk_psn_diff(rwk_psn_add(psn, 1), r->rtt_psn) > 0) {
		if (!r->srtt || now - r->rtt_at < r->srtt)
			rwk_rc_round_trip(r, now - r->rtt_at);
		r->timing = false;
	}
	acknowledged(qp, psn, word >> RWK_RC_SHARE_AT, NULL, 0, now);
}

static void ack(struct rwk_rc *qp, const struct rwk_wire *w, const uint8_t *payload, size_t len, rwk_time now)
{
	uint32_t upto = rwk_psn_add(w->psn, 1), word, share;

	qp->counters.acks_in++;
	if (w->opcode != (RWK_WIRE_OWN | RWK_WIRE_ACK)) {
		take_time(&qp->req, upto, now, 0);
		acknowledged(qp, w->psn, 0, NULL, 0, now);
		return;
	}
	if (len < 4 || len > RWK_RC_WINDOW_MAX / 8 + 4) {
		qp->counters.bad_length++;
		return;
	}
	word = get32(payload + len - 4);
	share = word >> RWK_RC_SHARE_AT;
	take_time(&qp->req, upto, now, (rwk_time)(word & (RWK_RC_REPEATED - 1)) * RWK_RC_US);
	if (rwk_unlikely(word & RWK_RC_REPEATED))
		rwk_rc_guessed_wrong(&qp->req);
	acknowledged(qp, w->psn, share, payload, len - 4, now);
}

int rwk_rc_error(unsigned syndrome)
{
	switch (syndrome) {
	case RWK_WIRE_NAK_ACCESS:
		return -EACCES;
	case RWK_WIRE_NAK_INVALID:
		return -EINVAL;
	default:
		return -EIO;
	}
}

static void nak(struct rwk_rc *qp, const struct rwk_wire *w, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	uint32_t una = r->una, acked = r->acked;
	unsigned syndrome = w->aeth.syndrome;
	bool denied = syndrome == RWK_WIRE_NAK_ACCESS && r->own & RWK_RC_DENIES;

	/* It is about a packet under way; one that is in order there can only be a Read that has lost its region. */
	if (rwk_psn_diff(w->psn, r->next) >= 0) {
		qp->counters.too_far++;
		return;
	}
	if (rwk_psn_diff(w->psn, syndrome > RWK_WIRE_NAK_SEQUENCE ? r->una : r->acked) < 0)
		return;
	qp->counters.naks_in += syndrome >= RWK_WIRE_NAK_SEQUENCE;
	qp->counters.rnr_in += syndrome < RWK_WIRE_NAK_SEQUENCE;
	in_order(qp, w->psn);
	if (denied)
		rwk_rc_denied(qp, w->psn);
	news(qp, una, acked, r->settled, now);
	if (denied)
		return;
	if (syndrome == RWK_RC_NAK_BUSY) {
		rwk_rc_turned_away(qp, w->psn, now);
	} else if (syndrome < RWK_WIRE_NAK_SEQUENCE) {
		rwk_rc_not_ready(qp, w->psn, syndrome & 0x1f, now);
	} else if (syndrome > RWK_WIRE_NAK_SEQUENCE) {
		rwk_rc_break(qp, rwk_rc_find(qp, w->psn), rwk_rc_error(syndrome), rwk_rc_error(syndrome));
	} else if (r->own & RWK_RC_SELECTIVE) {
		rwk_rc_mark_lost(r, w->psn);
	} else if (r->timer != RWK_RC_TIMER_RNR && rwk_rc_go_back(qp, r->una)) {
		rwk_rc_rearm(r, now);
	}
}

/*
 * Is that what answers such a request, there? A Read Request's response ends with a Last or an Only, and begins with a
 * First or an Only; so does that to a part of it that was asked for again, or else it goes on there. Between our own
 * ends each may be an Only.
 */
static bool is_its_answer(const struct rwk_rc *qp, const struct rwk_wr *wr, const struct rwk_wire *w)
{
	unsigned operation = RWK_WIRE_OPERATION(w->opcode);
	bool ends, begins;

	if (wr->type != RWK_WR_READ)
		return operation == RWK_WIRE_ATOMIC_ACK;
	if (rwk_likely(operation == RWK_WIRE_READ_ONLY && qp->req.own & RWK_RC_SELECTIVE))
		return true;
	ends = rwk_rc_request_left(qp, wr, w->psn) == 1;
	if (operation == RWK_WIRE_READ_FIRST || operation == RWK_WIRE_READ_ONLY)
		return ends == (operation == RWK_WIRE_READ_ONLY);
	begins = rwk_rc_at(wr, w->psn) % qp->req.chunk == 0;
	return !begins && operation == (ends ? RWK_WIRE_READ_LAST : RWK_WIRE_READ_MIDDLE);
}

/* Puts one packet of a response to its place. False: it does not fit there. */
static bool place(
	struct rwk_rc *qp, const struct rwk_wr *wr, const struct rwk_wire *w, const uint8_t *payload, size_t len)
{
	size_t at = (size_t)rwk_rc_at(wr, w->psn) * qp->req.pmtu, rest = wr->length - at;

	if (!is_its_answer(qp, wr, w)) {
		qp->counters.bad_opcode++;
		return false;
	}
	if (wr->type != RWK_WR_READ) {
		rwk_iov_scatter(wr->iov, wr->iov_count, 0, &w->atomic_ack, sizeof(w->atomic_ack));
		return true;
	}
	if (len != (rest < qp->req.pmtu ? rest : qp->req.pmtu)) {
		qp->counters.bad_length++;
		return false;
	}
	if (rwk_likely(wr->iov_count == 1))
		rwk_copy((char *)wr->iov->iov_base + at, payload, len);
	else
		rwk_iov_scatter(wr->iov, wr->iov_count, at, payload, len);
	return true;
}

/* The answer that una waits for is here. */
static void answered(struct rwk_rc *qp, struct rwk_wr *wr)
{
	struct rwk_rc_requester *r = &qp->req;

	if (rwk_rc_request_left(qp, wr, r->una) == 1)
		r->reads_out--;
	r->una = rwk_psn_add(r->una, 1);
	if (rwk_psn_diff(r->acked, r->una) < 0)
		r->acked = r->una;
}

/* Strict: in order only. */
static void take_strict(
	struct rwk_rc *qp, struct rwk_wr *wr, const struct rwk_wire *w, const uint8_t *payload, size_t len)
{
	in_order(qp, w->psn);
	if (qp->req.una != w->psn || !place(qp, wr, w, payload, len))
		return;
	answered(qp, wr);
	move_strict(qp);
}

/* SELECTIVE: whatever comes. */
static void take_selective(
	struct rwk_rc *qp, struct rwk_wr *wr, const struct rwk_wire *w, const uint8_t *payload, size_t len)
{
	struct rwk_rc_requester *r = &qp->req;

	if (!place(qp, wr, w, payload, len))
		return;
	if (rwk_likely(w->psn == r->una && !r->marked)) {
		answered(qp, wr);
		return;
	}
	if (rwk_unlikely(rwk_rc_is_unordered(w))) {
		/* It was executed before its turn: nothing is said of those before it. */
		rwk_rc_unmark(r, w->psn, rwk_psn_add(w->psn, 1));
		rwk_rc_settle(r, w->psn);
	} else {
		rwk_rc_settle(r, w->psn);
		in_order(qp, rwk_psn_add(w->psn, 1));
	}
	rwk_rc_move_una(qp);
}

/* A Read's response or an atomic's value. */
static void response(struct rwk_rc *qp, const struct rwk_wire *w, const uint8_t *payload, size_t len, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	uint32_t una = r->una, acked = r->acked, behind = rwk_psn_add(w->psn, 1);
	uint16_t settled = r->settled;
	struct rwk_wr *wr;

	if (rwk_psn_diff(behind, r->next) > 0) {
		qp->counters.too_far++;
		return;
	}
	wr = rwk_psn_diff(w->psn, r->una) < 0 ? NULL : rwk_rc_find(qp, w->psn);
	if (!wr || wr->state == RWK_RC_WR_DENIED ||
		(r->own & RWK_RC_SELECTIVE && rwk_rc_bit(&r->has_settled, w->psn))) {
		qp->counters.duplicates++;
		rwk_rc_guessed_wrong(r);
		return;
	}
	if (!rwk_rc_is_answered(wr)) {
		qp->counters.bad_opcode++;
		return;
	}
	take_time(r, behind, now, 0);
	if (r->own & RWK_RC_SELECTIVE)
		take_selective(qp, wr, w, payload, len);
	else
		take_strict(qp, wr, w, payload, len);
	if (rwk_psn_diff(behind, r->high) > 0 && !rwk_rc_is_unordered(w))
		r->high = behind;
	news(qp, una, acked, settled, now);
	if (rwk_unlikely(rwk_psn_diff(behind, r->una) > 0))
		miss(qp);
	if (rwk_unlikely(r->own & RWK_RC_SELECTIVE && r->una != r->high))
		rwk_rc_look_for_lost(qp, now);
}

void rwk_rc_answer(struct rwk_rc *qp, const struct rwk_wire *w, const uint8_t *payload, size_t len, rwk_time now)
{
	if (w->becn)
		rwk_rc_window_halve(&qp->req, qp->req.una);
	switch (RWK_WIRE_OPERATION(w->opcode)) {
	case RWK_WIRE_ACK:
		if (w->aeth.syndrome < RWK_WIRE_RNR)
			ack(qp, w, payload, len, now);
		else if (w->aeth.syndrome <= RWK_WIRE_NAK_OPERATIONAL &&
			 (w->aeth.syndrome < 0x40 || w->aeth.syndrome >= RWK_WIRE_NAK_SEQUENCE ||
				 (w->aeth.syndrome == RWK_RC_NAK_BUSY && qp->holds)))
			nak(qp, w, now);
		else
			qp->counters.bad_opcode++;
		break;
	default:
		response(qp, w, payload, len, now);
	}
}

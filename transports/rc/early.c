/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests out of order. A duplicate is answered again and not done again, but for a Read, which is. A packet behind a
 * gap: strict, one NAK, then silence until the gap's packet comes; between our own ends (SELECTIVE) the host keeps it,
 * under its number modulo the window, and the acknowledgement says which are kept.
 */
#include "internal.h"

static bool is_read(const struct rwk_wire *w)
{
	return RWK_WIRE_OPERATION(w->opcode) == RWK_WIRE_READ_REQUEST;
}

static void read_again(struct rwk_rc *qp, const struct rwk_wire *w);

/* What is kept has come again: a Read that was executed before its turn is executed again. */
static void kept_again(struct rwk_rc *qp, const struct rwk_wire *w)
{
	struct rwk_wire before;
	size_t len;

	qp->counters.duplicates++;
	qp->responder->repeated = true;
	if (!rwk_rc_is_unordered(w) || !is_read(w))
		return;
	qp->host->kept(qp->user, w->psn % RWK_RC_WINDOW_MAX, &before, &len);
	if (before.pad == RWK_RC_TAKEN && !before.aeth.syndrome && w->reth.length <= before.reth.length)
		read_again(qp, w);
}

static void keep(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, uint32_t ahead)
{
	struct rwk_rc_responder *r = qp->responder;
	uint32_t packets = is_read(w) ? rwk_rc_read_packets(r, w->reth.length) : 1;

	if (ahead >= RWK_RC_WINDOW_MAX || packets > RWK_RC_WINDOW_MAX - ahead) {
		qp->counters.too_far++;
		return;
	}
	rwk_rc_ack_now(r);
	if (rwk_rc_bit(&r->kept, w->psn)) {
		kept_again(qp, w);
		return;
	}
	if (qp->host->keep(qp->user, w->psn % RWK_RC_WINDOW_MAX, w, payload, rwk_rc_waits(w) ? len : 0))
		return;
	rwk_rc_bit_set(&r->kept, w->psn);
	r->kept_count++;
	r->kept_reads += is_read(w);
	qp->counters.kept++;
	if (rwk_unlikely(rwk_rc_is_unordered(w)))
		rwk_rc_before_turn(qp, w, payload, len);
}

void rwk_rc_early(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, uint32_t ahead)
{
	struct rwk_rc_responder *r = qp->responder;

	qp->counters.early++;
	if (r->own & RWK_RC_SELECTIVE) {
		keep(qp, w, payload, len, ahead);
		return;
	}
	if (r->silent)
		return;
	r->silent = true;
	r->answer = RWK_RC_ANSWER_NAK;
	r->refused = r->expected;
	r->syndrome = RWK_WIRE_NAK_SEQUENCE;
}

/*
 * SELECTIVE: a Read's numbers may be asked for in other parts than before, so that a part was there and the rest was
 * not. The rest is new.
 */
static void read_beyond(struct rwk_rc *qp, const struct rwk_wire *w, uint32_t end, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;
	uint32_t bytes = ((r->expected - w->psn) & RWK_PSN_MASK) * r->pmtu;
	struct rwk_wire old = *w, new = *w;

	if (rwk_psn_diff(end, r->expected) > (int32_t)RWK_RC_WINDOW_MAX ||
		rwk_psn_diff(w->psn, r->expected) < -(int32_t)RWK_RC_WINDOW_MAX) {
		qp->counters.too_far++;
		return;
	}
	old.reth.length = bytes;
	new.psn = r->expected;
	new.reth.address += bytes;
	new.reth.length -= bytes;
	read_again(qp, &old);
	rwk_rc_in_order(qp, &new, NULL, 0, now);
}

/* A Read is run again, for what is asked of it now: but only what was asked before, and may be reached still. */
static void read_again(struct rwk_rc *qp, const struct rwk_wire *w)
{
	struct rwk_rc_responder *r = qp->responder;

	if (!(r->reach & RWK_REACH_READ) || rwk_rc_reach_read(qp, w)) {
		qp->counters.bad_access++;
		if (r->own & RWK_RC_DENIES)
			rwk_rc_deny(qp, w->psn);
		else if (!(r->own & RWK_RC_SELECTIVE)) /* else: see rwk_rc_result.again */
			rwk_rc_refuse(qp, w->psn, RWK_WIRE_NAK_ACCESS);
		return;
	}
	rwk_rc_read_again(qp, w);
}

static void duplicate_read(struct rwk_rc *qp, const struct rwk_wire *w, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;
	uint32_t end;

	if (w->reth.length > RWK_WIRE_LENGTH_MAX) {
		qp->counters.bad_length++;
		return;
	}
	end = rwk_psn_add(w->psn, rwk_rc_read_packets(r, w->reth.length));
	if (rwk_psn_diff(end, r->expected) <= 0 && rwk_psn_diff(end, w->psn) > 0)
		read_again(qp, w);
	else if (r->own & RWK_RC_SELECTIVE)
		read_beyond(qp, w, end, now);
	else
		qp->counters.bad_length++;
}

void rwk_rc_duplicate(struct rwk_rc *qp, const struct rwk_wire *w, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;

	qp->counters.duplicates++;
	switch (RWK_WIRE_OPERATION(w->opcode)) {
	case RWK_WIRE_READ_REQUEST:
		duplicate_read(qp, w, now);
		break;
	case RWK_WIRE_COMPARE_SWAP:
	case RWK_WIRE_FETCH_ADD:
		rwk_rc_atomic_again(r, w->psn);
		break;
	default:
		r->repeated = true;
		rwk_rc_ack_now(r);
	}
}

void rwk_rc_forget(struct rwk_rc *qp, uint32_t psn, bool read)
{
	struct rwk_rc_responder *r = qp->responder;

	rwk_rc_bit_clear(&r->kept, psn);
	r->kept_count--;
	r->kept_reads -= read;
	qp->host->drop(qp->user, psn % RWK_RC_WINDOW_MAX);
}

void rwk_rc_drop_kept(struct rwk_rc *qp, uint32_t from, uint32_t to)
{
	struct rwk_rc_responder *r = qp->responder;

	for (uint32_t p = from; r->kept_count && p != to; p = rwk_psn_add(p, 1)) {
		struct rwk_wire w;
		size_t len;

		if (!rwk_rc_bit(&r->kept, p))
			continue;
		rwk_rc_forget(qp, p,
			r->kept_reads && qp->host->kept(qp->user, p % RWK_RC_WINDOW_MAX, &w, &len) && is_read(&w));
	}
}

void rwk_rc_drain(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;

	while (r->kept_count && rwk_rc_bit(&r->kept, r->expected) && r->answer != RWK_RC_ANSWER_FATAL) {
		uint32_t psn = r->expected;
		struct rwk_wire w;
		size_t len = 0;
		const void *payload = qp->host->kept(qp->user, psn % RWK_RC_WINDOW_MAX, &w, &len);
		bool taken = rwk_unlikely(w.pad == RWK_RC_TAKEN) ? rwk_rc_pass(qp, &w)
								 : rwk_rc_take(qp, &w, payload, len, now);

		rwk_rc_forget(qp, psn, is_read(&w));
		if (!taken)
			return; /* refused, or not ready: then it will be sent again */
		rwk_rc_drop_kept(qp, rwk_psn_add(psn, 1), r->expected);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the clock demands, and what is sent again.
 *
 *   strict      go back: everything from the oldest on is sent again, in order
 *   SELECTIVE   only what is marked as lost (marks.c). A silence is first answered by a probe (the last packet, whose
 *               acknowledgement shows every hole before it), then by time-outs that back off: all counts as lost, but
 *               one packet is sent, and the first sign that the others had come takes that back
 */
#include "internal.h"

/* RNR timer codes, in units of 10 us. */
static const uint16_t rnr_times[32] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
	1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

static rwk_time rnr_time(unsigned code)
{
	return (code ? rnr_times[code] : 65536ull) * 10 * RWK_RC_US;
}

/* One more attempt without progress. False: there were enough, the QP has failed. */
static bool try_again(struct rwk_rc *qp)
{
	struct rwk_rc_requester *r = &qp->req;

	if (r->own & RWK_RC_ENDLESS || r->tries < r->retry) {
		r->tries += r->tries < r->retry;
		return true;
	}
	rwk_rc_break(qp, rwk_rc_find(qp, r->una), -ETIMEDOUT, -ETIMEDOUT);
	return false;
}

bool rwk_rc_go_back(struct rwk_rc *qp, uint32_t psn)
{
	struct rwk_rc_requester *r = &qp->req;

	if (!try_again(qp))
		return false;
	r->timing = false;
	r->back = psn;
	return true;
}

void rwk_rc_not_ready(struct rwk_rc *qp, uint32_t psn, unsigned code, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;

	if (r->rnr_retry != 7 && r->rnr_tries++ >= r->rnr_retry) {
		rwk_rc_break(qp, rwk_rc_find(qp, psn), -EAGAIN, -EAGAIN);
		return;
	}
	r->timing = false;
	r->timer = RWK_RC_TIMER_RNR;
	r->deadline = now + rnr_time(code);
	if (r->own & RWK_RC_SELECTIVE)
		rwk_rc_mark_lost(r, psn);
	else
		r->back = r->una;
}

/*
 * All that is not settled is to be sent again, and una whatever is known of it: the peer drops what it has kept if it
 * is not ready when its turn comes, and the word of that may be lost.
 */
static void lose_all(struct rwk_rc_requester *r)
{
	for (uint32_t p = r->una; p != r->next; p = rwk_psn_add(p, 1))
		if (!rwk_rc_bit(&r->has_settled, p))
			rwk_rc_mark_lost(r, p);
	if (!rwk_rc_bit(&r->is_lost, r->una))
		rwk_rc_mark_lost(r, r->una);
	if (!r->timed_out)
		r->cwnd_before = r->cwnd;
	rwk_rc_window_halve(r, r->una);
	r->cwnd = 1;
	r->timed_out = true;
	r->guessed = false;
	r->last_again = r->una;
}

/** SELECTIVE: waits may be shorter than the time-out, or longer. Has the peer been silent for one more time-out? */
static bool is_silent(struct rwk_rc_requester *r, rwk_time now)
{
	rwk_time waited = rwk_rc_retry_time(r);

	if (!r->backoff)
		r->silent_since = now > waited ? now - waited : 0;
	if (now - r->silent_since < r->timeout)
		return false;
	r->silent_since = now;
	return true;
}

static void retry(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	bool silent = r->own & RWK_RC_SELECTIVE && is_silent(r, now);

	qp->counters.timeouts++;
	r->timing = false;
	r->backoff += r->backoff < 20;
	r->implied = false;
	if (r->own & RWK_RC_SELECTIVE) {
		if (silent && !try_again(qp))
			return;
		lose_all(r);
		if (r->backoff > 1 && qp->host->silent)
			qp->host->silent(qp->user, r->backoff == 2);
	} else if (!rwk_rc_go_back(qp, r->una)) {
		return;
	}
	rwk_rc_rearm(r, now);
}

/* What was sent again and is still out is lost once more, if there is such. */
static bool lose_again(struct rwk_rc_requester *r)
{
	uint16_t before = r->lost;

	for (uint32_t p = r->una; p != r->next; p = rwk_psn_add(p, 1))
		if (rwk_rc_is_again(r, p))
			rwk_rc_mark_lost(r, p);
	if (r->lost != before)
		rwk_rc_window_halve(r, r->una);
	return r->lost != before;
}

static uint32_t last_out(const struct rwk_rc_requester *r)
{
	for (uint32_t p = r->next; p != r->una;) {
		p = rwk_psn_add(p, RWK_PSN_MASK);
		if (!rwk_rc_bit(&r->has_settled, p))
			return p;
	}
	return r->una;
}

static void init_out(struct rwk_rc_out *o, const struct rwk_rc_requester *r)
{
	o->w = (struct rwk_wire){.pkey = RWK_WIRE_PKEY, .migrated = true, .qpn = r->peer_qpn};
}

static void probe(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_rc_out o;
	uint32_t psn, count = 1;

	if (!lose_again(r)) {
		psn = last_out(r);
		init_out(&o, r);
		if (rwk_rc_send(qp, &o, rwk_rc_find(qp, psn), psn, &count, true))
			return; /* no room in the link; the next pump tries again */
		rwk_rc_mark_again(r, psn);
		qp->counters.sent_again++;
	}
	qp->counters.probes++;
	r->timing = false;
	r->guessed = false; /* what comes twice may be this one */
	r->timer = RWK_RC_TIMER_RETRY;
	r->deadline = now + rwk_rc_retry_time(r);
}

static void reorder(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;

	for (uint32_t p = r->una; rwk_psn_diff(r->reorder_mark, p) > 0; p = rwk_psn_add(p, 1)) {
		if (rwk_rc_bit(&r->has_settled, p) || rwk_rc_bit(&r->is_lost, p) || rwk_rc_is_again(r, p))
			continue;
		rwk_rc_guess_lost(r, p);
	}
	r->timer = RWK_RC_TIMER_NONE;
	rwk_rc_rearm(r, now);
	rwk_rc_look_for_lost(qp, now);
}

void rwk_rc_ring(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;

	switch (r->timer) {
	case RWK_RC_TIMER_REORDER:
		reorder(qp, now);
		break;
	case RWK_RC_TIMER_PROBE:
		probe(qp, now);
		break;
	case RWK_RC_TIMER_RETRY:
		retry(qp, now);
		break;
	case RWK_RC_TIMER_RNR:
		r->timer = RWK_RC_TIMER_NONE;
		rwk_rc_rearm(r, now);
		break;
	default:
		break;
	}
}

/* Strict: from `back` on, in order. */
static void go_on(struct rwk_rc *qp)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_wr *wr = NULL;
	struct rwk_rc_out o;

	init_out(&o, r);
	while (r->back != r->next) {
		uint32_t count = RWK_RC_CHUNK_MAX;
		bool ask;

		if (!wr || rwk_rc_at(wr, r->back) >= wr->packets)
			wr = rwk_rc_find(qp, r->back);
		ask = rwk_rc_at(wr, r->back) + 1 == wr->packets || (r->back & 63) == 63 ||
		      rwk_psn_add(r->back, 1) == r->next;
		/* The last request of a Read that is still being made has no packets beyond `next`. */
		if (count > ((r->next - r->back) & RWK_PSN_MASK))
			count = (r->next - r->back) & RWK_PSN_MASK;
		if (rwk_rc_send(qp, &o, wr, r->back, &count, ask))
			return;
		qp->counters.sent_again++;
		r->back = rwk_psn_add(r->back, count);
	}
}

/* Packets from psn on that are lost, and of one request. */
static uint32_t lost_run(const struct rwk_rc *qp, const struct rwk_wr *wr, uint32_t psn)
{
	uint32_t most = rwk_rc_request_left(qp, wr, psn), n = 1;

	while (n < most && rwk_rc_bit(&qp->req.is_lost, rwk_psn_add(psn, n)))
		n++;
	return n;
}

/* Those sent again begin a round, if none is open. */
static void begin_round(struct rwk_rc_requester *r)
{
	if (rwk_rc_bits_any(&r->sent_before) || !rwk_rc_bits_any(&r->sent_now))
		return;
	r->sent_before = r->sent_now;
	r->sent_now = (struct rwk_rc_bits){{0}};
	r->round_mark = r->next;
}

void rwk_rc_send_again(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_rc_out o;
	uint64_t before = qp->counters.sent_again;
	uint32_t p = r->una, count;

	if (r->timer == RWK_RC_TIMER_RNR)
		return;
	if (r->back != r->next)
		go_on(qp);
	if (!r->lost)
		return;
	init_out(&o, r);
	/* The oldest goes whatever is under way: all the rest may be kept by the peer, and wait for it. */
	while (r->lost && (rwk_rc_under_way(r) < r->cwnd || rwk_rc_bit(&r->is_lost, r->una))) {
		struct rwk_wr *wr;

		while (!rwk_rc_bit(&r->is_lost, p))
			p = rwk_psn_add(p, 1);
		wr = rwk_rc_find(qp, p);
		count = lost_run(qp, wr, p);
		if (rwk_rc_send(qp, &o, wr, p, &count, true))
			break;
		qp->counters.sent_again++;
		for (uint32_t i = 0; i < count; i++)
			rwk_rc_mark_again(r, rwk_psn_add(p, i));
		p = rwk_psn_add(p, count);
		if (r->timed_out && rwk_psn_diff(p, r->last_again) > 0)
			r->last_again = p;
	}
	begin_round(r);
	if (qp->counters.sent_again == before)
		return;
	if (r->timer == RWK_RC_TIMER_NONE || r->timer == RWK_RC_TIMER_PROBE)
		rwk_rc_rearm(r, now);
}

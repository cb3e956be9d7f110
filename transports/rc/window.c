/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Round trips, the times that follow from them, and the window between our own ends. Towards anybody else the times are
 * those of the attributes, and the window is.
 *
 *   srtt, rttvar   smoothed round trip and its deviation (RFC 6298), less what the responder says it waited
 *   probe          2 srtt, and the peer's ack_delay when it is lazy: the tail may be lost
 *   retry          srtt + 4 rttvar, at least 4 ms, doubled for each time-out in a row up to a second; of attr.retry
 *                  silence as long as attr.timeout uses up one, however often something is sent again in it (loss.c)
 *   reorder        srtt / 4, or up to eight of that (marks.c): a hole before a packet that has come
 */
#include "internal.h"

enum {
	CWND_FIRST = 32,
	CWND_MIN = 4,
	PROBE_MIN = 100 * RWK_RC_US,
	REORDER_MIN = 10 * RWK_RC_US,
	RETRY_MIN = 4 * RWK_RC_MS,
	RETRY_MAX = 1000 * RWK_RC_MS,
};

static uint16_t less(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

void rwk_rc_window_open(struct rwk_rc_requester *r)
{
	r->ssthresh = r->limit = r->window;
	r->cwnd = r->own & RWK_RC_SELECTIVE ? less(r->window, CWND_FIRST) : r->window;
	r->grown = 0;
	rwk_rc_expect_order(r);
}

void rwk_rc_round_trip(struct rwk_rc_requester *r, rwk_time took)
{
	uint32_t rtt = took > RETRY_MAX ? RETRY_MAX : took ? (uint32_t)took : 1;

	if (!r->srtt) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
	} else {
		uint32_t off = rtt > r->srtt ? rtt - r->srtt : r->srtt - rtt;

		r->rttvar = r->rttvar - r->rttvar / 4 + off / 4;
		r->srtt = r->srtt - r->srtt / 8 + rtt / 8;
	}
}

void rwk_rc_window_grow(struct rwk_rc_requester *r, uint32_t settled)
{
	if (r->cwnd >= r->limit)
		return;
	if (r->cwnd < r->ssthresh) {
		r->cwnd = r->cwnd + settled < r->limit ? (uint16_t)(r->cwnd + settled) : r->limit;
		return;
	}
	r->grown += settled < r->cwnd ? (uint16_t)settled : r->cwnd;
	if (r->grown >= r->cwnd) {
		r->grown -= r->cwnd;
		r->cwnd++;
	}
}

bool rwk_rc_window_halve(struct rwk_rc_requester *r, uint32_t psn)
{
	if (!(r->own & RWK_RC_SELECTIVE) || rwk_psn_diff(psn, r->recover) < 0)
		return false;
	r->recover = r->next;
	r->ssthresh = r->cwnd / 2 > CWND_MIN ? r->cwnd / 2 : less(CWND_MIN, r->window);
	r->cwnd = less(r->cwnd, r->ssthresh);
	return true;
}

void rwk_rc_window_restore(struct rwk_rc_requester *r)
{
	if (r->cwnd_before > r->ssthresh)
		r->ssthresh = r->cwnd_before;
	if (r->cwnd_before > r->cwnd)
		r->cwnd = less(r->cwnd_before, r->limit);
	r->recover = r->una;
}

void rwk_rc_window_limit(struct rwk_rc_requester *r, uint32_t share)
{
	r->limit = share && share < r->window ? (uint16_t)share : r->window;
	if (r->bound)
		r->limit = less(r->limit, r->bound);
	r->cwnd = less(r->cwnd, r->limit);
}

void rwk_rc_bound(struct rwk_rc *qp, uint32_t packets)
{
	struct rwk_rc_requester *r = &qp->req;

	r->bound = packets < r->window ? (uint16_t)packets : 0;
	rwk_rc_window_limit(r, r->limit == r->window ? 0 : r->limit); /* what is more is let go with an acknowledgement */
}

void rwk_rc_share(struct rwk_rc *qp, uint32_t packets)
{
	qp->responder->share = (uint8_t)(packets < RWK_RC_SHARE_MAX ? packets : RWK_RC_SHARE_MAX);
}

/* What a lazy peer may wait on top. */
static rwk_time peer_waits(const struct rwk_rc_requester *r)
{
	return r->own & RWK_RC_LAZY ? r->ack_delay : 0;
}

rwk_time rwk_rc_probe_time(const struct rwk_rc_requester *r)
{
	rwk_time t = r->srtt ? 2ull * r->srtt : r->timeout / 2;

	return (t > PROBE_MIN ? t : PROBE_MIN) + peer_waits(r);
}

rwk_time rwk_rc_retry_time(const struct rwk_rc_requester *r)
{
	rwk_time t = r->timeout;

	if (!(r->own & RWK_RC_SELECTIVE))
		t += peer_waits(r);
	else if (r->srtt)
		t = r->srtt + 4ull * r->rttvar + peer_waits(r);
	if (r->own & RWK_RC_SELECTIVE && t < RETRY_MIN)
		t = RETRY_MIN;
	if (!(r->own & (RWK_RC_SELECTIVE | RWK_RC_ENDLESS)))
		return t;
	t = r->backoff < 20 ? t << r->backoff : RETRY_MAX;
	return t < RETRY_MAX ? t : RETRY_MAX;
}

rwk_time rwk_rc_reorder_time(const struct rwk_rc_requester *r)
{
	rwk_time t = (rwk_time)(r->srtt ? r->srtt / 4 : r->timeout / 8) * r->patience;

	return t > REORDER_MIN ? t : REORDER_MIN;
}

void rwk_rc_rearm(struct rwk_rc_requester *r, rwk_time now)
{
	if (r->timer == RWK_RC_TIMER_RNR)
		return;
	if (r->una == r->next) {
		r->timer = RWK_RC_TIMER_NONE;
		r->deadline = RWK_NEVER;
	} else if (r->own & RWK_RC_SELECTIVE && !r->backoff) {
		if (r->timer == RWK_RC_TIMER_REORDER)
			return;
		r->timer = RWK_RC_TIMER_PROBE;
		r->deadline = now + rwk_rc_probe_time(r);
	} else {
		r->timer = RWK_RC_TIMER_RETRY;
		r->deadline = now + rwk_rc_retry_time(r);
	}
}

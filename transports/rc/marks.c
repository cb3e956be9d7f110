/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between our own ends (SELECTIVE): four bits for each packet under way, and what follows from them.
 *
 *   has_settled  the peer has it, or its response is here; it will not be sent again, but it may still stand behind una
 *   is_lost      is to be sent again, and no longer counts as under way
 *   sent_now     has been sent again; sent_before: the same, before the packet round_mark was new
 *
 * A packet counts as lost if one is known to have come that was sent more than `reach` packets later, or any later one
 * some time ago (the REORDER clock), or one that was sent again (a probe: `sure`). For a packet that was sent again
 * itself, "later" are packets from round_mark on: its round.
 * Answers come in the order of their requests (the responder sees to it), so a Read's responses are lost by the same
 * rule, and those of its packets that have no bit are asked for again by one request for each run.
 *
 * Some networks let packets overtake each other, and then the rule is a guess. The peer says when something comes
 * twice. If packets were sent again on a guess before, it was wrong: the window is what it was, and, once a round trip
 * at most, `reach` is doubled and the REORDER clock given a quarter of a round trip more, up to two. After CALM losses
 * among which no packet was late, that had been sent but once, both are again what they were in the beginning: losses
 * alone say nothing of the order. (The idea is RFC 8985's.)
 *
 * Invariants: a packet has at most one of has_settled, is_lost and (sent_now or sent_before); `marked` is set if there
 * is any bit; packets before una and from next on have none.
 */
#include "internal.h"

#define CALM      16 /* losses */
#define REACH_MIN 3  /* packets */

/* Packet psn has come. If it was sent but once, and others that were sent later had come before: it was late. */
static void look_at_order(struct rwk_rc_requester *r, uint32_t psn)
{
	if (rwk_psn_diff(r->high, psn) > REACH_MIN && !rwk_rc_is_again(r, psn))
		r->calm = 0;
}

void rwk_rc_settle(struct rwk_rc_requester *r, uint32_t psn)
{
	if (rwk_rc_bit(&r->has_settled, psn))
		return;
	look_at_order(r, psn);
	if (rwk_rc_is_again(r, psn))
		rwk_rc_has_come_again(r, psn);
	rwk_rc_unmark(r, psn, rwk_psn_add(psn, 1));
	rwk_rc_bit_set(&r->has_settled, psn);
	r->settled++;
	r->marked = true;
}

void rwk_rc_unmark(struct rwk_rc_requester *r, uint32_t from, uint32_t to)
{
	for (uint32_t p = from; p != to; p = rwk_psn_add(p, 1)) {
		r->settled -= rwk_rc_bit(&r->has_settled, p);
		r->lost -= rwk_rc_bit(&r->is_lost, p);
		rwk_rc_bit_clear(&r->has_settled, p);
		rwk_rc_bit_clear(&r->is_lost, p);
		rwk_rc_bit_clear(&r->sent_now, p);
		rwk_rc_bit_clear(&r->sent_before, p);
	}
	r->marked = r->settled || r->lost || rwk_rc_bits_any(&r->sent_now) || rwk_rc_bits_any(&r->sent_before);
}

void rwk_rc_settle_to(struct rwk_rc_requester *r, uint32_t upto)
{
	for (uint32_t p = r->una; p != upto; p = rwk_psn_add(p, 1))
		if (!rwk_rc_bit(&r->has_settled, p))
			look_at_order(r, p);
	rwk_rc_unmark(r, r->una, upto);
}

void rwk_rc_mark_lost(struct rwk_rc_requester *r, uint32_t psn)
{
	rwk_rc_unmark(r, psn, rwk_psn_add(psn, 1));
	rwk_rc_bit_set(&r->is_lost, psn);
	r->lost++;
	r->marked = true;
}

void rwk_rc_mark_again(struct rwk_rc_requester *r, uint32_t psn)
{
	rwk_rc_unmark(r, psn, rwk_psn_add(psn, 1));
	rwk_rc_bit_set(&r->sent_now, psn);
	r->marked = true;
}

void rwk_rc_move_una(struct rwk_rc *qp)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_wr *wr = rwk_rc_find(qp, r->una);
	uint32_t from = r->una;

	while (r->una != r->acked && rwk_rc_bit(&r->has_settled, r->una)) {
		if (rwk_rc_is_answered(wr) && rwk_rc_request_left(qp, wr, r->una) == 1)
			r->reads_out--;
		r->una = rwk_psn_add(r->una, 1);
		if (rwk_rc_at(wr, r->una) == wr->packets)
			wr = rwk_rc_find(qp, r->una);
	}
	rwk_rc_unmark(r, from, r->una);
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return rwk_psn_diff(a, b) > 0 ? a : b;
}

void rwk_rc_marks_follow(struct rwk_rc_requester *r)
{
	r->sure = later(r->sure, r->una);
	r->recover = later(r->recover, r->una);
	r->widened = later(r->widened, r->una);
}

void rwk_rc_expect_order(struct rwk_rc_requester *r)
{
	r->reach = REACH_MIN;
	r->patience = 1;
	r->calm = 0;
}

void rwk_rc_guess_lost(struct rwk_rc_requester *r, uint32_t psn)
{
	uint16_t cwnd = r->cwnd;

	rwk_rc_mark_lost(r, psn);
	if (!rwk_rc_window_halve(r, psn))
		return;
	r->cwnd_before = cwnd;
	r->guessed = true;
	if (++r->calm >= CALM)
		rwk_rc_expect_order(r);
}

void rwk_rc_guessed_wrong(struct rwk_rc_requester *r)
{
	if (!r->guessed || r->timed_out)
		return;
	r->guessed = false;
	r->calm = 0;
	rwk_rc_window_restore(r);
	if (rwk_psn_diff(r->una, r->widened) < 0)
		return;
	r->widened = r->next;
	r->reach = 2 * r->reach < r->window ? 2 * r->reach : r->window;
	r->patience += r->patience < RWK_RC_PATIENCE_MAX;
}

/* Those that were sent again, and packets of the next round are here: lost once more. */
static void look_at_round(struct rwk_rc_requester *r)
{
	struct rwk_rc_bits before = r->sent_before;

	if (!rwk_rc_bits_any(&before) || rwk_psn_diff(r->high, r->round_mark) < r->reach)
		return;
	for (uint32_t p = r->una; p != r->next; p = rwk_psn_add(p, 1))
		if (rwk_rc_bit(&before, p)) {
			rwk_rc_mark_lost(r, p);
			rwk_rc_window_halve(r, p);
		}
}

/*
 * Has enough come that was sent later? A Read Request that is not known to have arrived is one packet, however many
 * numbers it has, and is lost as one.
 */
static bool is_overtaken(struct rwk_rc *qp, uint32_t psn)
{
	struct rwk_rc_requester *r = &qp->req;
	uint32_t last = psn;

	if (r->reads_out && rwk_psn_diff(psn, r->acked) >= 0)
		last = rwk_psn_add(psn, rwk_rc_request_left(qp, rwk_rc_find(qp, psn), psn) - 1);
	return rwk_psn_diff(r->high, last) > r->reach || rwk_psn_diff(r->sure, psn) > 0;
}

void rwk_rc_look_for_lost(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	bool holes = false;

	if (r->timer == RWK_RC_TIMER_RNR)
		return;
	look_at_round(r);
	for (uint32_t p = r->una; rwk_psn_diff(r->high, p) > 0; p = rwk_psn_add(p, 1)) {
		if (rwk_rc_bit(&r->has_settled, p) || rwk_rc_bit(&r->is_lost, p) || rwk_rc_is_again(r, p))
			continue;
		if (is_overtaken(qp, p))
			rwk_rc_guess_lost(r, p);
		else
			holes = true;
	}
	if (r->lost)
		r->timing = false;
	if (holes && r->timer != RWK_RC_TIMER_REORDER) {
		r->timer = RWK_RC_TIMER_REORDER;
		r->deadline = now + rwk_rc_reorder_time(r);
		r->reorder_mark = r->high;
	} else if (!holes && r->timer == RWK_RC_TIMER_REORDER) {
		r->timer = RWK_RC_TIMER_NONE;
		rwk_rc_rearm(r, now);
	}
}

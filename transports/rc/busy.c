/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BUSY: an SRQ that takes no more Sends holds up those that are for it, and nobody else of the same QP.
 *
 *   responder  turns a Send away with its first packet (RWK_RC_NAK_BUSY). From then on it takes nothing in its place
 *              but what says that this is known, and each acknowledgement is that NAK
 *   requester  takes all Sends to that SRQ back, from this one on: they wait, in order. Their packets have numbers
 *              that others stand behind; empty Writes go by them. The first of these says, in its address, how far that
 *              goes: to before `until`, the next new packet then
 *   responder  passes over the Sends to that SRQ up to there: what it has kept of them, and what comes late
 *   requester  tries the first that waits after a while, by new numbers; if it is taken, all go, else see above
 *
 * In the middle of a message nothing can be turned away; then the whole QP waits, as everywhere (RNR). So it does if
 * more SRQs are busy within one window than a responder has places to remember them.
 */
#include "kinds.h"

#define PLACES     4u
#define WAIT_FIRST (200 * RWK_RC_US) /* doubled, with each try that was in vain, up to */
#define DOUBLED    4u                /* times: 3.2 ms */
#define RNR_CODE   8u                /* 160 us */
#define NO_SRQ     UINT32_MAX
#define SAYS       (1u << 24)        /* in the address of an empty Write, beside `until` */

/** Of a work request (rwk_wr.at). */
enum { HOLD_NONE, HOLD_FIRST, HOLD_TRIAL };

struct rwk_rc_hold {
	struct rwk_list held;     /* work requests that wait; those to one SRQ in the order of posting */
	rwk_time at;              /* when the first to each SRQ is tried */
	uint32_t tries;           /* in vain, one after the other */
	uint32_t srqn;            /* the last that was busy: empty Writes name it */
	uint32_t emptied;         /* bits in: */
	struct rwk_rc_bits empty; /* packets under way that are empty Writes now */
	uint32_t turned, until;   /* of these the latest that says how far; it comes next at the peer */
	struct rwk_wr nothing; /* what they belong to */
};
static_assert(sizeof(struct rwk_rc_hold) <= RWK_RC_BUSY_SIZE, "has room behind a QP");

/** Behind a responder, responder->skips of them: Sends to that SRQ are passed over. */
struct rwk_rc_skip {
	uint32_t srqn, until;
};
static_assert(PLACES * sizeof(struct rwk_rc_skip) <= RWK_RC_BUSY_RESPONDER_SIZE, "has room behind a responder");

static struct rwk_rc_hold *hold_of(const struct rwk_rc *qp)
{
	return (struct rwk_rc_hold *)(qp + 1);
}

static struct rwk_wr *wr_of(struct rwk_list *l)
{
	return rwk_container_of(l, struct rwk_wr, link);
}

/*
 * The requester.
 */

void rwk_rc_hold_open(struct rwk_rc *qp)
{
	struct rwk_rc_hold *h = hold_of(qp);

	*h = (struct rwk_rc_hold){.at = RWK_NEVER};
	rwk_list_init(&h->held);
	qp->holds = true;
}

bool rwk_rc_hold_empty(const struct rwk_rc *qp)
{
	return rwk_list_empty(&hold_of(qp)->held);
}

rwk_time rwk_rc_hold_next(const struct rwk_rc *qp)
{
	return hold_of(qp)->at;
}

static bool is_for(const struct rwk_wr *wr, uint32_t srqn)
{
	return wr->type == RWK_WR_SEND && wr->srqn == srqn;
}

bool rwk_rc_hold_back(struct rwk_rc *qp, struct rwk_wr *wr)
{
	struct rwk_rc_hold *h = hold_of(qp);

	wr->at = HOLD_NONE;
	if (wr->type != RWK_WR_SEND)
		return false;
	for (struct rwk_list *l = h->held.next; l != &h->held; l = l->next) {
		if (wr_of(l)->srqn != wr->srqn)
			continue;
		wr->state = RWK_RC_WR_HELD;
		rwk_list_append(&h->held, &wr->link);
		return true;
	}
	return false;
}

/* Into the queue again, as if posted now. */
static void release(struct rwk_rc *qp, struct rwk_wr *wr, unsigned as)
{
	rwk_list_remove(&wr->link);
	wr->state = RWK_RC_WR_POSTED;
	wr->at = as;
	rwk_list_append(&qp->req.queue, &wr->link);
	if (!qp->req.current)
		qp->req.current = wr;
}

void rwk_rc_hold_try(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_hold *h = hold_of(qp);

	if (now < h->at)
		return;
	h->at = RWK_NEVER;
	for (struct rwk_list *l = h->held.next, *next; l != &h->held; l = next) {
		next = l->next;
		if (wr_of(l)->at == HOLD_FIRST)
			release(qp, wr_of(l), HOLD_TRIAL);
	}
}

void rwk_rc_hold_left(struct rwk_rc *qp, const struct rwk_wr *wr, bool taken)
{
	struct rwk_rc_hold *h = hold_of(qp);

	if (rwk_likely(wr->at != HOLD_TRIAL))
		return;
	h->tries = taken ? 0 : h->tries;
	for (struct rwk_list *l = h->held.next, *next; l != &h->held; l = next) {
		next = l->next;
		if (wr_of(l)->srqn != wr->srqn)
			continue;
		release(qp, wr_of(l), taken ? HOLD_NONE : HOLD_TRIAL);
		if (!taken)
			return; /* the next is the try then */
	}
}

void rwk_rc_hold_flush(struct rwk_rc *qp)
{
	struct rwk_list *l;

	hold_of(qp)->at = RWK_NEVER;
	while ((l = rwk_list_pop(&hold_of(qp)->held)))
		rwk_list_append(&qp->req.queue, l);
}

/* Its packets that are under way are empty from now on. What the peer has kept of it is passed over there. */
static void empty(struct rwk_rc *qp, const struct rwk_wr *wr)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_rc_hold *h = hold_of(qp);

	for (uint32_t i = 0; i < wr->count; i++) {
		uint32_t p = rwk_psn_add(wr->first_psn, i);

		rwk_rc_bit_set(&h->empty, p);
		h->emptied++;
		if (!rwk_rc_bit(&r->has_settled, p))
			rwk_rc_mark_lost(r, p);
	}
}

static void take_back(struct rwk_rc *qp, struct rwk_wr *wr, struct rwk_list *to)
{
	struct rwk_rc_requester *r = &qp->req;

	if (r->current == wr)
		r->current = wr->link.next == &r->queue ? NULL : wr_of(wr->link.next);
	if (wr->state == RWK_RC_WR_BEGUN)
		empty(qp, wr);
	rwk_list_remove(&wr->link);
	wr->state = RWK_RC_WR_HELD;
	wr->at = rwk_list_empty(to) ? HOLD_FIRST : HOLD_NONE;
	rwk_list_append(to, &wr->link);
}

/* All Sends to that SRQ, the one at `l` and what stands behind it, in front of those that wait already. */
static void take_all_back(struct rwk_rc *qp, struct rwk_list *l, uint32_t srqn)
{
	struct rwk_rc_hold *h = hold_of(qp);
	struct rwk_list mine, *next;

	rwk_list_init(&mine);
	for (; l != &qp->req.queue; l = next) {
		next = l->next;
		if (is_for(wr_of(l), srqn))
			take_back(qp, wr_of(l), &mine);
	}
	while ((l = rwk_list_pop(&h->held))) {
		if (wr_of(l)->srqn == srqn)
			wr_of(l)->at = HOLD_NONE;
		rwk_list_append(&mine, l);
	}
	while ((l = rwk_list_pop(&mine)))
		rwk_list_append(&h->held, l);
}

void rwk_rc_turned_away(struct rwk_rc *qp, uint32_t psn, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_rc_hold *h = hold_of(qp);
	struct rwk_wr *wr = rwk_rc_find(qp, psn);
	rwk_time wait = (rwk_time)WAIT_FIRST << (h->tries < DOUBLED ? h->tries : DOUBLED);

	if (!wr || wr == &h->nothing)
		return; /* what says that we know is under way */
	if (wr->type != RWK_WR_SEND || wr->first_psn != psn) {
		rwk_rc_not_ready(qp, psn, RNR_CODE, now);
		return;
	}
	h->turned = psn;
	h->until = r->next;
	r->timing = false;
	h->srqn = wr->srqn;
	h->tries += h->tries < DOUBLED;
	if (h->at > now + wait)
		h->at = now + wait;
	take_all_back(qp, &wr->link, wr->srqn);
	rwk_rc_mark_lost(r, psn); /* though the peer may have kept it before */
}

struct rwk_wr *rwk_rc_nothing(struct rwk_rc *qp, uint32_t psn)
{
	struct rwk_rc_hold *h = hold_of(qp);

	if (!h->emptied || !rwk_rc_bit(&h->empty, psn))
		return NULL;
	h->nothing = (struct rwk_wr){
		.type = RWK_WR_SEND, .state = RWK_RC_WR_DENIED, .first_psn = psn, .packets = 1, .srqn = h->srqn};
	return &h->nothing;
}

uint64_t rwk_rc_says(const struct rwk_rc *qp, uint32_t psn)
{
	const struct rwk_rc_hold *h = hold_of(qp);

	return h->emptied && h->turned == psn ? SAYS | h->until : 0;
}

void rwk_rc_hold_passed(struct rwk_rc *qp, uint32_t from, uint32_t to)
{
	struct rwk_rc_hold *h = hold_of(qp);

	for (uint32_t p = from; h->emptied && p != to; p = rwk_psn_add(p, 1)) {
		h->emptied -= rwk_rc_bit(&h->empty, p);
		rwk_rc_bit_clear(&h->empty, p);
	}
}

/*
 * The responder.
 */

static struct rwk_rc_skip *skips_of(const struct rwk_rc *qp)
{
	return (struct rwk_rc_skip *)(qp->responder + 1);
}

/* Forgets those that are over, and that of the SRQ, if it is one. */
static void forget(struct rwk_rc *qp, uint32_t srqn)
{
	struct rwk_rc_responder *r = qp->responder;
	struct rwk_rc_skip *s = skips_of(qp);
	unsigned n = r->skips < PLACES ? r->skips : PLACES;

	r->skips = 0;
	for (unsigned i = 0; i < n; i++) {
		if (rwk_psn_diff(s[i].until, r->expected) > 0 && s[i].srqn != srqn)
			s[r->skips++] = s[i];
	}
}

bool rwk_rc_turn_away(struct rwk_rc *qp, uint32_t srqn)
{
	struct rwk_rc_responder *r = qp->responder;

	if (!(r->own & RWK_RC_BUSY))
		return false;
	forget(qp, srqn);
	if (r->skips == PLACES)
		return false;
	r->message = RWK_RC_MESSAGE_TURNED;
	rwk_rc_say_busy(r);
	return true;
}

void rwk_rc_say_busy(struct rwk_rc_responder *r)
{
	r->answer = RWK_RC_ANSWER_NAK;
	r->refused = r->expected;
	r->syndrome = RWK_RC_NAK_BUSY;
	r->silent = true;
}

bool rwk_rc_is_known(struct rwk_rc *qp, const struct rwk_wire *w)
{
	struct rwk_rc_responder *r = qp->responder;

	if (w->opcode != (r->service | RWK_WIRE_WRITE_ONLY) || w->reth.length || !(w->reth.address & SAYS)) {
		rwk_rc_say_busy(r);
		return false;
	}
	forget(qp, w->srqn);
	if (r->skips < PLACES)
		skips_of(qp)[r->skips++] = (struct rwk_rc_skip){w->srqn, w->reth.address & RWK_PSN_MASK};
	r->message = RWK_RC_MESSAGE_NONE;
	return true;
}

bool rwk_rc_is_skipped(struct rwk_rc *qp, const struct rwk_wire *w)
{
	const struct rwk_rc_responder *r = qp->responder;
	const struct rwk_rc_skip *s = skips_of(qp);
	bool is = false;

	forget(qp, NO_SRQ); /* in time: half a number space later they would seem to lie ahead again */
	for (unsigned i = 0; i < r->skips; i++)
		is |= s[i].srqn == w->srqn && rwk_rc_kind(w) & SEND;
	return is;
}

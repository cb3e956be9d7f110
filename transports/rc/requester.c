/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests become packets. The record of what is under way is the queue of work requests itself: each knows its
 * first packet's number and how many it has, so that any packet can be made again from its number alone.
 */
#include "base/iov.h"
#include "internal.h"

/* "At least every 64 packets": a requester asks for an acknowledgement. */
#define ASK_EVERY 64

/* LAZY: bytes of a message beyond which its end is acknowledged at once. */
#define LONG (8u * RWK_WIRE_OWN_MAX)

struct rwk_wr *rwk_rc_find(struct rwk_rc *qp, uint32_t psn)
{
	struct rwk_rc_requester *r = &qp->req;

	for (struct rwk_list *l = r->queue.next; l != &r->queue; l = l->next) {
		struct rwk_wr *wr = rwk_container_of(l, struct rwk_wr, link);

		if (wr->state == RWK_RC_WR_POSTED)
			break;
		if (rwk_rc_at(wr, psn) < wr->packets)
			return wr;
	}
	return rwk_unlikely(qp->holds) ? rwk_rc_nothing(qp, psn) : NULL;
}

uint32_t rwk_rc_request_left(const struct rwk_rc *qp, const struct rwk_wr *wr, uint32_t psn)
{
	uint32_t i, request, rest;

	if (wr->type != RWK_WR_READ || wr->state == RWK_RC_WR_DENIED)
		return 1;
	i = rwk_rc_at(wr, psn);
	request = qp->req.chunk - i % qp->req.chunk;
	rest = wr->packets - i;
	return request < rest ? request : rest;
}

static enum rwk_segment_kind segment_kind(const struct rwk_wr *wr)
{
	if (wr->type == RWK_WR_WRITE)
		return wr->flags & RWK_WR_IMM ? RWK_SEGMENT_WRITE_IMM : RWK_SEGMENT_WRITE;
	if (wr->flags & (RWK_WR_IMM | RWK_WR_INVALIDATE))
		return wr->flags & RWK_WR_IMM ? RWK_SEGMENT_SEND_IMM : RWK_SEGMENT_SEND_INV;
	return RWK_SEGMENT_SEND;
}

/* Packet i of a Send or a Write. */
static void make_piece(struct rwk_rc_requester *r, struct rwk_rc_out *o, const struct rwk_wr *wr, uint32_t i)
{
	struct rwk_segment s = rwk_segment_at((uint8_t)wr->service, segment_kind(wr), (uint32_t)wr->length, r->pmtu, i);

	o->w.opcode = s.opcode;
	o->length = s.length;
	if (rwk_likely(wr->iov_count == 1)) {
		o->iov[0].iov_base = (char *)wr->iov->iov_base + s.offset;
		o->iov[0].iov_len = s.length;
		o->count = 1;
	} else {
		size_t length = s.length;

		o->count = (int)rwk_iov_slice(wr->iov, wr->iov_count, s.offset, &length, o->iov, RWK_MACHINE_IOV);
	}
	if (i + 1 == wr->packets) {
		o->w.solicited = wr->flags & RWK_WR_SOLICITED;
		o->w.imm = o->w.invalidate = wr->imm;
	}
	if (wr->type == RWK_WR_WRITE && (i == 0 || wr->service >= RWK_WIRE_OWN)) {
		o->w.offset = s.offset;
		o->w.reth.address = wr->length || !(r->own & RWK_RC_BUSY) ? wr->remote : 0;
		o->w.reth.key = wr->key;
		o->w.reth.length = (uint32_t)wr->length;
	}
}

/* In place of a packet of a request that was refused, or taken back: a Write of nothing. */
static void make_nothing(const struct rwk_rc *qp, struct rwk_rc_out *o)
{
	o->w.opcode = qp->req.service | RWK_WIRE_WRITE_ONLY;
	o->w.reth.address = qp->holds ? rwk_rc_says(qp, o->w.psn) : 0;
	o->w.reth.key = o->w.reth.length = 0;
	o->count = 0;
	o->length = 0;
}

/* A request for `count` packets of a Read's response, from packet i of it on. */
static void make_read(
	struct rwk_rc_requester *r, struct rwk_rc_out *o, const struct rwk_wr *wr, uint32_t i, uint32_t count)
{
	uint64_t from = (uint64_t)i * r->pmtu, to = from + (uint64_t)count * r->pmtu;

	o->w.opcode = (uint8_t)(wr->service | RWK_WIRE_READ_REQUEST);
	o->w.reth.address = wr->remote + from;
	o->w.reth.key = wr->key;
	o->w.reth.length = (uint32_t)((to < wr->length ? to : wr->length) - from);
}

static void make_atomic(struct rwk_rc_requester *r, struct rwk_rc_out *o, const struct rwk_wr *wr)
{
	o->w.opcode = r->service | (wr->type == RWK_WR_FETCH_ADD ? RWK_WIRE_FETCH_ADD : RWK_WIRE_COMPARE_SWAP);
	o->w.atomic.address = wr->remote;
	o->w.atomic.key = wr->key;
	o->w.atomic.swap_add = wr->swap_add;
	o->w.atomic.compare = wr->compare;
}

int rwk_rc_send(struct rwk_rc *qp, struct rwk_rc_out *o, struct rwk_wr *wr, uint32_t psn, uint32_t *count, bool ask)
{
	struct rwk_rc_requester *r = &qp->req;
	uint32_t i = rwk_rc_at(wr, psn), most;

	o->w.psn = psn;
	o->w.ack_request = ask;
	o->w.solicited = false;
	o->w.changing = wr->flags & RWK_WR_CHANGING;
	o->w.srqn = wr->srqn;
	if (rwk_likely(!rwk_rc_is_answered(wr))) {
		*count = 1;
		if (rwk_likely(wr->state != RWK_RC_WR_DENIED))
			make_piece(r, o, wr, i);
		else
			make_nothing(qp, o);
		return rwk_rc_emit(qp, o);
	}
	o->count = 0;
	o->length = 0;
	if (wr->type == RWK_WR_READ) {
		most = rwk_rc_request_left(qp, wr, psn);
		*count = *count < most ? *count : most;
		make_read(r, o, wr, i, *count);
	} else {
		*count = 1;
		make_atomic(r, o, wr);
	}
	return rwk_rc_emit(qp, o);
}

/* Packets of Read responses that are under way, or lost and to be asked for again. */
static uint32_t read_packets_out(const struct rwk_rc_requester *r)
{
	uint32_t n = 0;

	for (struct rwk_list *l = r->queue.next; r->reads_out && l != &r->queue; l = l->next) {
		struct rwk_wr *wr = rwk_container_of(l, struct rwk_wr, link);
		uint32_t done = rwk_rc_at(wr, r->una);

		if (wr->state == RWK_RC_WR_POSTED)
			break;
		if (wr->type == RWK_WR_READ && wr->state == RWK_RC_WR_BEGUN)
			n += wr->count - (done <= wr->count ? done : 0);
	}
	return n;
}

/* SELECTIVE: how many of the `count` packets of a Read Request fit into our own receive buffer; 0: it has to wait. */
static uint32_t read_room(const struct rwk_rc *qp, uint32_t count)
{
	uint32_t most = qp->req.read_window, share = qp->responder->share, part;

	if (!most || (share && share < most))
		most = share;
	if (!most)
		return count;
	part = count < most ? count : most;
	return read_packets_out(&qp->req) + part <= most ? part : 0;
}

bool rwk_rc_is_full(const struct rwk_rc *qp)
{
	const struct rwk_rc_requester *r = &qp->req;

	return rwk_rc_span(r) >= r->window || rwk_rc_under_way(r) >= r->cwnd;
}

/* Of a Read Request of which parts have gone, and which is counted already? */
static bool is_further_part(const struct rwk_rc_requester *r, const struct rwk_wr *wr)
{
	return wr->type == RWK_WR_READ && wr->state != RWK_RC_WR_POSTED && wr->count % r->chunk;
}

/*
 * How many packets may be sent of `wr` now, all of a Read Request or one; 0: none. A Read Request counts for the
 * packets of its response: it is the receiver of data who limits it. Without SELECTIVE a Read may go beyond the window;
 * with it, beyond what is free of cwnd, but never beyond attr.window, nor the room that there is here.
 */
static uint32_t may_send(const struct rwk_rc *qp, const struct rwk_wr *wr)
{
	const struct rwk_rc_requester *r = &qp->req;
	uint32_t span = rwk_rc_span(r), count;

	if (rwk_rc_is_full(qp))
		return 0;
	if (wr->state == RWK_RC_WR_POSTED && wr->flags & RWK_WR_FENCE && r->reads_out)
		return 0;
	if (rwk_likely(!rwk_rc_is_answered(wr)))
		return 1;
	if (r->reads_out >= r->reads && !is_further_part(r, wr))
		return 0;
	count = rwk_rc_request_left(qp, wr, r->next);
	if (!(r->own & RWK_RC_SELECTIVE))
		return count;
	if (wr->type == RWK_WR_READ)
		count = read_room(qp, count);
	return span + count > r->window ? 0 : count;
}

/* Does a new packet ask for an acknowledgement? `last`: of its message. */
static bool asks(const struct rwk_rc_requester *r, bool last)
{
	uint32_t since = (r->next - r->asked) & RWK_PSN_MASK, half = r->cwnd / 2;

	if (!(r->own & RWK_RC_LAZY))
		return last || since >= (half < ASK_EVERY ? half : ASK_EVERY);
	/* What is acknowledged without being asked, by the client's own messages, need not be asked for. */
	if (since > rwk_rc_span(r))
		since = rwk_rc_span(r);
	/* A long message is waited for at its sender, too. And never let the window run out in silence. */
	return last || since >= half || rwk_rc_span(r) + 1 >= r->window || rwk_rc_under_way(r) + 1u >= r->cwnd;
}

/* Does somebody wait for its end? LAZY: of a short message nobody does, unless it says so. */
static bool is_awaited(const struct rwk_rc_requester *r, const struct rwk_wr *wr)
{
	return !(r->own & RWK_RC_LAZY) || wr->length > LONG || wr->flags & RWK_WR_PROMPT;
}

/*
 * S2-9: an un-ordered type only for what is un-ordered, and when nothing ordered before it waits for its
 * acknowledgement. What is half-ordered (S2-10), or un-ordered but went by its plain type, need not be acknowledged.
 */
static uint8_t class_of(struct rwk_rc_requester *r, const struct rwk_wr *wr)
{
	if (rwk_psn_diff(r->acked, r->ordered) < 0)
		return r->service;
	r->ordered = r->acked;
	return wr->flags & RWK_WR_UNORDERED && wr->type <= RWK_WR_READ ? rwk_rc_unordered_class(r->service)
								       : r->service;
}

/* What may_send wants to know of the work request that is next; it has not begun before a packet of it is sent. */
static void prepare(struct rwk_rc_requester *r, struct rwk_wr *wr)
{
	wr->first_psn = r->next;
	wr->packets = wr->length <= r->pmtu ? 1 : rwk_segment_count((uint32_t)wr->length, r->pmtu);
	wr->count = 0;
	wr->service = rwk_unlikely(r->own & RWK_RC_UNORDERED) ? class_of(r, wr) : r->service;
}

/* Packets of wr from r->next on are with the link. */
static void sent(struct rwk_rc_requester *r, struct rwk_wr *wr, uint32_t count, bool ask, rwk_time now)
{
	if (ask)
		r->asked = r->next;
	if (!r->timing && (ask || r->own & RWK_RC_LAZY)) {
		r->timing = true;
		r->rtt_psn = r->next;
		r->rtt_at = now;
	}
	if (r->back == r->next)
		r->back = rwk_psn_add(r->next, count);
	r->next = rwk_psn_add(r->next, count);
	if (rwk_unlikely(r->own & RWK_RC_UNORDERED) && !(wr->flags & (RWK_WR_UNORDERED | RWK_WR_HALF)))
		r->ordered = r->next;
	/* A Read Request that is asked for in parts is one. */
	r->reads_out += rwk_rc_is_answered(wr) && !is_further_part(r, wr);
	wr->state = RWK_RC_WR_BEGUN;
	wr->count += count;
	if (wr->count == wr->packets)
		r->current = wr->link.next == &r->queue ? NULL : rwk_container_of(wr->link.next, struct rwk_wr, link);
}

void rwk_rc_make_new(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_rc_out o;
	struct rwk_wr *wr;
	uint32_t count;

	o.w = (struct rwk_wire){.pkey = RWK_WIRE_PKEY, .migrated = true, .qpn = r->peer_qpn};
	while ((wr = r->current)) {
		bool ask;

		if (wr->state == RWK_RC_WR_POSTED)
			prepare(r, wr);
		count = may_send(qp, wr);
		if (!count)
			break;
		ask = asks(r, wr->count + count == wr->packets && is_awaited(r, wr));
		if (rwk_rc_send(qp, &o, wr, r->next, &count, ask))
			break;
		sent(r, wr, count, ask, now);
	}
}

void rwk_rc_await_new(struct rwk_rc_requester *r, rwk_time now)
{
	if (r->timer == RWK_RC_TIMER_NONE || r->timer == RWK_RC_TIMER_PROBE)
		rwk_rc_rearm(r, now);
}

/* Read Requests and atomics of wr that are not answered in full. */
static uint8_t requests_out(const struct rwk_rc_requester *r, const struct rwk_wr *wr)
{
	uint32_t done = rwk_rc_at(wr, r->una);

	if (wr->type != RWK_WR_READ)
		return rwk_rc_is_answered(wr);
	return (uint8_t)((wr->count - 1) / r->chunk + 1 - (done < wr->count ? done : 0) / r->chunk);
}

/* It ends with what is made of it: the rest need not be refused too. */
static void cut_off(struct rwk_rc_requester *r, struct rwk_wr *wr)
{
	r->reads_out -= requests_out(r, wr);
	wr->state = RWK_RC_WR_DENIED;
	if (r->current != wr)
		return;
	wr->packets = wr->count;
	r->current = wr->link.next == &r->queue ? NULL : rwk_container_of(wr->link.next, struct rwk_wr, link);
}

void rwk_rc_denied(struct rwk_rc *qp, uint32_t psn)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_wr *wr = rwk_rc_find(qp, psn);

	if (!wr || (wr->state == RWK_RC_WR_DENIED && rwk_rc_is_again(r, psn)))
		return; /* what says that we know is under way */
	if (wr->state != RWK_RC_WR_DENIED)
		cut_off(r, wr);
	/* What the peer keeps goes again too: a Read Request that is kept there is refused in its turn. */
	for (uint32_t i = 0; i < wr->packets; i++) {
		uint32_t p = rwk_psn_add(wr->first_psn, i);

		if (rwk_psn_diff(p, r->una) < 0)
			continue;
		if (rwk_psn_diff(p, r->acked) < 0)
			rwk_rc_settle(r, p);
		else
			rwk_rc_mark_lost(r, p);
	}
	rwk_rc_move_una(qp);
}

void rwk_rc_complete(struct rwk_rc *qp)
{
	struct rwk_rc_requester *r = &qp->req;

	while (!rwk_list_empty(&r->queue)) {
		struct rwk_wr *wr = rwk_container_of(r->queue.next, struct rwk_wr, link);

		if (wr == r->current || rwk_psn_diff(r->una, rwk_psn_add(wr->first_psn, wr->packets)) < 0)
			return;
		rwk_list_remove(&wr->link);
		if (rwk_unlikely(qp->holds))
			rwk_rc_hold_left(qp, wr, true);
		qp->host->done(qp->user, wr, wr->state == RWK_RC_WR_DENIED ? -EACCES : 0);
	}
}

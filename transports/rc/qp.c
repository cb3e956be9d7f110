/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair: its states, what is posted, which half a packet is for, and in which order a pump does things: the
 * clock, answers that carry data, acknowledgements, what is sent again, what is new.
 */
#include "internal.h"

#include <string.h>

#define LATE (500 * RWK_RC_US) /* a round trip */

size_t rwk_rc_size(void)
{
	return sizeof(struct rwk_rc);
}

size_t rwk_rc_responder_size(void)
{
	return sizeof(struct rwk_rc_responder);
}

struct rwk_rc *rwk_rc_open(void *memory, void *responder, const struct rwk_machine_host *host, void *user)
{
	struct rwk_rc *qp = memory;

	*qp = (struct rwk_rc){.host = host, .user = user, .responder = responder, .state = RWK_QP_RESET};
	rwk_list_init(&qp->req.queue);
	qp->req.deadline = RWK_NEVER;
	return qp;
}

void rwk_rc_lend(struct rwk_rc *qp, void *responder)
{
	const struct rwk_rc_responder *r = responder;

	qp->responder = responder;
	qp->state = r->answer == RWK_RC_ANSWER_FATAL && r->silent ? RWK_QP_ERR : RWK_QP_RTR;
	qp->blocked = false;
	qp->req.service = r->service;
	qp->req.own = r->own;
}

uint32_t rwk_rc_expected(const struct rwk_rc *qp)
{
	return qp->responder->expected;
}

void rwk_rc_flush(struct rwk_rc *qp, struct rwk_wr *wr, int status)
{
	struct rwk_rc_requester *r = &qp->req;
	struct rwk_list ending, *l;

	r->current = NULL;
	if (rwk_unlikely(qp->holds))
		rwk_rc_hold_flush(qp);
	rwk_list_move_all(&r->queue, &ending); /* what `done` posts waits for the next flush */
	while ((l = rwk_list_pop(&ending))) {
		struct rwk_wr *ended = rwk_container_of(l, struct rwk_wr, link);

		qp->host->done(qp->user, ended, ended == wr ? status : -ECANCELED);
	}
}

/* Nothing is under way any more. */
static void stop(struct rwk_rc *qp)
{
	struct rwk_rc_requester *r = &qp->req;

	r->timer = RWK_RC_TIMER_NONE;
	r->deadline = RWK_NEVER;
	r->lost = 0;
	r->back = r->una = r->acked = r->next;
	r->reads_out = 0;
	qp->blocked = false;
}

static void drop_all(struct rwk_rc *qp)
{
	struct rwk_rc_responder *r = qp->responder;

	rwk_rc_drop_kept(qp, r->expected, rwk_psn_add(r->expected, RWK_RC_WINDOW_MAX));
}

void rwk_rc_break(struct rwk_rc *qp, struct rwk_wr *wr, int status, int err)
{
	if (qp->state == RWK_QP_ERR)
		return;
	qp->state = RWK_QP_ERR;
	stop(qp);
	rwk_rc_flush(qp, wr, status);
	if (!qp->failed) {
		qp->failed = true;
		qp->host->failed(qp->user, err);
	}
}

void rwk_rc_fail(struct rwk_rc *qp, int err)
{
	rwk_rc_break(qp, NULL, 0, err);
}

void rwk_rc_close(struct rwk_rc *qp)
{
	stop(qp);
	rwk_rc_flush(qp, NULL, 0);
	drop_all(qp);
}

static bool attr_is_sound(const struct rwk_rc_attr *a)
{
	return a->peer_qpn <= RWK_PSN_MASK && a->send_psn <= RWK_PSN_MASK && a->receive_psn <= RWK_PSN_MASK &&
	       rwk_wire_is_pmtu(a->pmtu) && a->window >= 1 && a->window <= RWK_RC_WINDOW_MAX && a->reads >= 1 &&
	       a->reads <= RWK_RC_READS_MAX && a->peer_reads <= RWK_RC_READS_MAX && a->retry <= 7 &&
	       a->rnr_retry <= 7 && a->rnr_timer <= 31 && (a->service == RWK_WIRE_RC || a->service == RWK_WIRE_SRC) &&
	       !(a->reach & ~(unsigned)(RWK_REACH_READ | RWK_REACH_WRITE | RWK_REACH_ATOMIC)) &&
	       !(a->own & ~(unsigned)(RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_UNORDERED |
				      RWK_RC_DENIES | RWK_RC_BUSY)) &&
	       !(a->own & RWK_RC_BUSY && (a->own & (RWK_RC_UNORDERED | RWK_RC_DENIES) || a->service != RWK_WIRE_SRC ||
						 !(a->own & RWK_RC_SELECTIVE))) &&
	       (a->own & RWK_RC_SELECTIVE || !(a->own & (RWK_RC_UNORDERED | RWK_RC_DENIES))) &&
	       !(a->own & RWK_RC_UNORDERED && a->own & RWK_RC_DENIES) && a->timeout && a->ack_delay <= UINT32_MAX &&
	       (!(a->own & RWK_RC_LAZY) || a->ack_every) && a->read_chunk % a->pmtu == 0;
}

static uint32_t chunk_of(const struct rwk_rc_attr *a)
{
	uint32_t chunk = a->read_chunk / a->pmtu, most = RWK_RC_CHUNK_MAX;

	if (a->own & RWK_RC_SELECTIVE)
		most = a->window; /* every packet of it has a bit */
	if (chunk)
		return chunk < most ? chunk : most;
	/* Several fit the window, so that it need not run empty between two. */
	return a->own & RWK_RC_SELECTIVE && a->window > 4 ? a->window / 4u : most;
}

static void open_requester(struct rwk_rc_requester *r, const struct rwk_rc_attr *a)
{
	*r = (struct rwk_rc_requester){
		.next = a->send_psn,
		.una = a->send_psn,
		.acked = a->send_psn,
		.back = a->send_psn,
		.high = a->send_psn,
		.sure = a->send_psn,
		.recover = a->send_psn,
		.widened = a->send_psn,
		.ordered = a->send_psn,
		.asked = rwk_psn_add(a->send_psn, RWK_PSN_MASK),
		.peer_qpn = a->peer_qpn,
		.pmtu = a->pmtu,
		.window = a->window,
		.service = a->service,
		.own = (uint8_t)a->own,
		.reads = a->reads,
		.read_window = (uint8_t)(a->read_window < UINT8_MAX ? a->read_window : UINT8_MAX),
		.retry = a->retry,
		.rnr_retry = a->rnr_retry,
		.chunk = chunk_of(a),
		.timeout = a->timeout,
		.ack_delay = a->ack_delay,
		.deadline = RWK_NEVER,
	};
	rwk_list_init(&r->queue);
	rwk_rc_window_open(r);
}

/* One that is open already belongs to another process too, and stands where it stands. */
static void open_responder(struct rwk_rc_responder *r, const struct rwk_rc_attr *a)
{
	if (r->open)
		return;
	*r = (struct rwk_rc_responder){
		.peer_qpn = a->peer_qpn,
		.ack_delay = (uint32_t)a->ack_delay,
		.pmtu = a->pmtu,
		.ack_every = a->ack_every,
		.service = a->service,
		.own = (uint8_t)a->own,
		.reach = (uint8_t)a->reach,
		.peer_reads = a->peer_reads,
		.rnr_timer = a->rnr_timer,
		.expected = a->receive_psn,
		.ack_at = RWK_NEVER,
		.open = true,
	};
}

static void reset(struct rwk_rc *qp)
{
	qp->state = RWK_QP_RESET;
	stop(qp);
	rwk_rc_flush(qp, NULL, 0);
	drop_all(qp);
	*qp->responder = (struct rwk_rc_responder){.open = false};
	qp->failed = false;
}

int rwk_rc_modify(struct rwk_rc *qp, enum rwk_qp_state state, const struct rwk_rc_attr *attr)
{
	switch (state) {
	case RWK_QP_RESET:
		reset(qp);
		return 0;
	case RWK_QP_ERR:
		if (qp->state != RWK_QP_ERR) {
			qp->state = RWK_QP_ERR;
			stop(qp);
			rwk_rc_flush(qp, NULL, 0);
		}
		return 0;
	case RWK_QP_RTR:
		if (qp->state != RWK_QP_INIT || !attr || !attr_is_sound(attr))
			return -EINVAL;
		open_requester(&qp->req, attr);
		qp->holds = false;
		if (attr->own & RWK_RC_BUSY)
			rwk_rc_hold_open(qp);
		open_responder(qp->responder, attr);
		break;
	case RWK_QP_INIT:
	case RWK_QP_RTS:
		if (qp->state != (state == RWK_QP_INIT ? RWK_QP_RESET : RWK_QP_RTR))
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	qp->state = (uint8_t)state;
	return 0;
}

enum rwk_qp_state rwk_rc_state(const struct rwk_rc *qp)
{
	return qp->state;
}

const struct rwk_qp_counters *rwk_rc_counters(const struct rwk_rc *qp)
{
	return &qp->counters;
}

#define ORDER (RWK_WR_FENCE | RWK_WR_UNORDERED | RWK_WR_HALF) /* at most one of these: S2-6 */

/* Is it a request that exists? */
static bool is_sound(const struct rwk_wr *wr)
{
	static const uint8_t flags[] = {
		[RWK_WR_SEND] = RWK_WR_IMM | RWK_WR_INVALIDATE | RWK_WR_SOLICITED | RWK_WR_PROMPT | ORDER,
		[RWK_WR_WRITE] = RWK_WR_IMM | RWK_WR_SOLICITED | RWK_WR_PROMPT | RWK_WR_CHANGING | ORDER,
		[RWK_WR_READ] = ORDER,
		[RWK_WR_COMPARE_SWAP] = ORDER,
		[RWK_WR_FETCH_ADD] = ORDER,
	};
	unsigned order = wr->flags & ORDER;

	if (wr->type > RWK_WR_FETCH_ADD || wr->flags & ~flags[wr->type])
		return false;
	if (rwk_unlikely(order & (order - 1)))
		return false;
	if (wr->flags & RWK_WR_IMM && wr->flags & RWK_WR_INVALIDATE)
		return false;
	if (wr->type >= RWK_WR_COMPARE_SWAP)
		return wr->length == 8;
	return wr->type == RWK_WR_READ || wr->iov_count <= RWK_MACHINE_IOV;
}

int rwk_rc_post(struct rwk_rc *qp, struct rwk_wr *wr)
{
	if (rwk_unlikely(qp->state < RWK_QP_RTS || !is_sound(wr)))
		return -EINVAL;
	if (rwk_unlikely(wr->length > RWK_WIRE_LENGTH_MAX))
		return -EMSGSIZE;
	if (rwk_unlikely(qp->holds) && qp->state == RWK_QP_RTS && rwk_rc_hold_back(qp, wr))
		return 0;
	wr->state = RWK_RC_WR_POSTED;
	rwk_list_append(&qp->req.queue, &wr->link);
	if (!qp->req.current)
		qp->req.current = wr;
	return 0;
}

int rwk_rc_withdraw(struct rwk_rc *qp, struct rwk_wr *wr)
{
	struct rwk_rc_requester *r = &qp->req;

	if (wr->state != RWK_RC_WR_POSTED)
		return -EBUSY;
	if (r->current == wr)
		r->current = wr->link.next == &r->queue ? NULL : rwk_container_of(wr->link.next, struct rwk_wr, link);
	rwk_list_remove(&wr->link);
	if (rwk_unlikely(qp->holds))
		rwk_rc_hold_left(qp, wr, false);
	return 0;
}

int rwk_rc_emit(struct rwk_rc *qp, const struct rwk_rc_out *o)
{
	if (rwk_unlikely(qp->host->emit(qp->user, &o->w, o->iov, o->count))) {
		qp->blocked = true;
		return -EAGAIN;
	}
	qp->counters.packets_out++;
	qp->counters.bytes_out += o->length;
	return 0;
}

static bool is_answer(uint8_t opcode)
{
	unsigned operation = RWK_WIRE_OPERATION(opcode);

	return operation >= RWK_WIRE_READ_FIRST && operation <= RWK_WIRE_ATOMIC_ACK;
}

/* An opcode of our own: have both ends agreed on it? */
static bool is_agreed(const struct rwk_rc *qp, uint8_t opcode)
{
	const struct rwk_rc_requester *r = &qp->req;

	if (opcode == (RWK_WIRE_OWN | RWK_WIRE_ACK))
		return r->own & RWK_RC_SELECTIVE;
	return r->own & RWK_RC_UNORDERED &&
	       RWK_WIRE_CLASS(opcode) ==
		       (is_answer(opcode) ? (unsigned)RWK_WIRE_OWN : rwk_rc_unordered_class(r->service));
}

/* In ERR all is dropped; but a peer of ours that never gives up is told again why. */
static void late_packet(struct rwk_rc *qp, const struct rwk_wire *w)
{
	struct rwk_rc_responder *r = qp->responder;

	qp->counters.bad_state++;
	if (qp->state == RWK_QP_ERR && r->own && r->answer == RWK_RC_ANSWER_FATAL && !is_answer(w->opcode))
		r->silent = false;
}

void rwk_rc_packet(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, rwk_time now)
{
	qp->counters.packets_in++;
	qp->counters.bytes_in += len;
	if (rwk_unlikely(qp->state < RWK_QP_RTR || qp->state == RWK_QP_ERR)) {
		late_packet(qp, w);
		return;
	}
	if (rwk_unlikely(RWK_WIRE_CLASS(w->opcode) != qp->req.service) && !is_agreed(qp, w->opcode)) {
		qp->counters.bad_opcode++;
		return;
	}
	if (!is_answer(w->opcode))
		rwk_rc_request(qp, w, payload, len, now);
	else if (rwk_likely(qp->state == RWK_QP_RTS))
		rwk_rc_answer(qp, w, payload, len, now);
	else
		qp->counters.bad_state++;
}

/* The responder's part of a pump. */
static void respond(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;

	if (rwk_unlikely(r->due) && !rwk_rc_send_answers(qp))
		return;
	if (now >= r->ack_at)
		rwk_rc_ack_now(r);
	if (r->answer == RWK_RC_ANSWER_NONE)
		return;
	rwk_rc_send_ack(qp, now);
	if (rwk_unlikely(r->answer == RWK_RC_ANSWER_FATAL) && !qp->blocked) {
		r->silent = true;
		rwk_rc_break(qp, NULL, 0, rwk_rc_error(r->syndrome));
	} else if (rwk_unlikely(r->due) && !qp->blocked) {
		rwk_rc_send_answers(qp);
	}
}

/* In ERR: what was posted meanwhile ends, and the NAK is said again to who still asks. */
static void pump_broken(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;

	rwk_rc_flush(qp, NULL, 0);
	if (r->answer == RWK_RC_ANSWER_FATAL && !r->silent) {
		rwk_rc_send_ack(qp, now);
		r->silent = !qp->blocked;
	}
}

int rwk_rc_pump(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;
	uint64_t before = qp->counters.packets_out;

	qp->blocked = false;
	if (rwk_likely(qp->state == RWK_QP_RTS && now >= r->deadline))
		rwk_rc_ring(qp, now);
	if (rwk_likely(qp->state == RWK_QP_RTS || qp->state == RWK_QP_RTR))
		respond(qp, now);
	if (rwk_unlikely(qp->state == RWK_QP_ERR))
		pump_broken(qp, now);
	if (rwk_unlikely(qp->state != RWK_QP_RTS))
		return (int)(qp->counters.packets_out - before);
	if (rwk_unlikely(qp->holds))
		rwk_rc_hold_try(qp, now);
	if (rwk_unlikely(r->lost || r->back != r->next))
		rwk_rc_send_again(qp, now);
	if (r->current && r->timer != RWK_RC_TIMER_RNR && r->back == r->next) {
		uint32_t next = r->next;

		rwk_rc_make_new(qp, now);
		if (r->next != next)
			rwk_rc_await_new(r, now);
	}
	return (int)(qp->counters.packets_out - before);
}

rwk_time rwk_rc_next(const struct rwk_rc *qp)
{
	const struct rwk_rc_requester *q = &qp->req;
	const struct rwk_rc_responder *r = qp->responder;
	rwk_time at;

	if (qp->state == RWK_QP_ERR)
		return !rwk_list_empty(&q->queue) || (r->answer == RWK_RC_ANSWER_FATAL && !r->silent) ? 0 : RWK_NEVER;
	if (qp->state < RWK_QP_RTR)
		return RWK_NEVER;
	if (qp->blocked || r->answer != RWK_RC_ANSWER_NONE || r->due)
		return 0;
	if (q->timer != RWK_RC_TIMER_RNR && (q->back != q->next || (q->lost && rwk_rc_under_way(q) < q->cwnd)))
		return 0;
	at = q->deadline < r->ack_at ? q->deadline : r->ack_at;
	return rwk_unlikely(qp->holds) && rwk_rc_hold_next(qp) < at ? rwk_rc_hold_next(qp) : at;
}

bool rwk_rc_at_rest(const struct rwk_rc *qp)
{
	return qp->state == RWK_QP_RTS && !qp->req.current && qp->req.timer != RWK_RC_TIMER_RNR && rwk_rc_next(qp);
}

int rwk_rc_hurry(struct rwk_rc *qp)
{
	uint64_t before = qp->counters.packets_out;

	rwk_rc_make_new(qp, RWK_NEVER);
	return (int)(qp->counters.packets_out - before);
}

void rwk_rc_hurried(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_requester *r = &qp->req;

	if (r->timing && r->rtt_at == RWK_NEVER)
		r->rtt_at = now;
	rwk_rc_await_new(r, now);
}

bool rwk_rc_idle(const struct rwk_rc *qp)
{
	return rwk_list_empty(&qp->req.queue) && (!qp->holds || rwk_rc_hold_empty(qp));
}

bool rwk_rc_is_late(const struct rwk_rc *qp)
{
	const struct rwk_rc_requester *r = &qp->req;

	return r->una != r->next && (r->srtt > LATE || r->timer == RWK_RC_TIMER_RETRY);
}

bool rwk_rc_take_ack(struct rwk_rc *qp, bool again, uint32_t *word)
{
	struct rwk_rc_responder *r = qp->responder;

	if (!(r->own & RWK_RC_LAZY) || qp->state < RWK_QP_RTR || qp->state == RWK_QP_ERR || r->due || r->kept_count ||
		r->congested || r->repeated || r->message == RWK_RC_MESSAGE_TURNED ||
		r->message == RWK_RC_MESSAGE_DENIED || r->answer > RWK_RC_ANSWER_ACK ||
		(!again && !r->unacked && r->answer == RWK_RC_ANSWER_NONE))
		return false;
	*word = rwk_psn_add(r->expected, RWK_PSN_MASK) | (uint32_t)r->share << RWK_RC_SHARE_AT;
	rwk_rc_ack_is_out(r);
	return true;
}

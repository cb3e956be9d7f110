/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests, in order. Each packet is looked at whole before anything is done for it: the operation's place in its
 * message, its length, then what the host says. A refusal ends the QP (0x61 invalid, 0x62 access, 0x63 operational); a
 * receiver that is not ready does not.
 *
 * DENIES: nor does 0x62. The refused packet stays the next one, and each acknowledgement is that NAK, until the peer
 * has put an empty Write into its place. The packets behind it keep their numbers: those of the same Write that are
 * there already are passed over in their turn (REST), the others are empty Writes too. BUSY: busy.c.
 */
#include "kinds.h"

const uint8_t rwk_rc_kinds[32] = {
	[RWK_WIRE_SEND_FIRST] = SEND | FIRST,
	[RWK_WIRE_SEND_MIDDLE] = SEND,
	[RWK_WIRE_SEND_LAST] = SEND | LAST,
	[RWK_WIRE_SEND_LAST_IMM] = SEND | LAST,
	[RWK_WIRE_SEND_ONLY] = SEND | FIRST | LAST,
	[RWK_WIRE_SEND_ONLY_IMM] = SEND | FIRST | LAST,
	[RWK_WIRE_WRITE_FIRST] = WRITE | FIRST,
	[RWK_WIRE_WRITE_MIDDLE] = WRITE,
	[RWK_WIRE_WRITE_LAST] = WRITE | LAST,
	[RWK_WIRE_WRITE_LAST_IMM] = WRITE | LAST | IMM,
	[RWK_WIRE_WRITE_ONLY] = WRITE | FIRST | LAST,
	[RWK_WIRE_WRITE_ONLY_IMM] = WRITE | FIRST | LAST | IMM,
	[RWK_WIRE_READ_REQUEST] = READ,
	[RWK_WIRE_COMPARE_SWAP] = ATOMIC,
	[RWK_WIRE_FETCH_ADD] = ATOMIC,
	[RWK_WIRE_SEND_LAST_INV] = SEND | LAST,
	[RWK_WIRE_SEND_ONLY_INV] = SEND | FIRST | LAST,
};

void rwk_rc_refuse(struct rwk_rc *qp, uint32_t psn, uint8_t syndrome)
{
	qp->responder->answer = RWK_RC_ANSWER_FATAL;
	qp->responder->refused = psn;
	qp->responder->syndrome = syndrome;
}

static bool refuse(struct rwk_rc *qp, uint8_t syndrome, uint64_t *counter)
{
	++*counter;
	rwk_rc_refuse(qp, qp->responder->expected, syndrome);
	return false;
}

uint8_t rwk_rc_syndrome(struct rwk_rc *qp, int err)
{
	switch (err) {
	case -EACCES:
		qp->counters.bad_access++;
		return RWK_WIRE_NAK_ACCESS;
	case -EMSGSIZE:
	case -EINVAL:
		qp->counters.bad_length++;
		return RWK_WIRE_NAK_INVALID;
	default:
		return RWK_WIRE_NAK_OPERATIONAL;
	}
}

void rwk_rc_deny(struct rwk_rc *qp, uint32_t psn)
{
	struct rwk_rc_responder *r = qp->responder;

	if (r->answer == RWK_RC_ANSWER_FATAL)
		return;
	r->answer = RWK_RC_ANSWER_NAK;
	r->refused = psn;
	r->syndrome = RWK_WIRE_NAK_ACCESS;
}

/* The packet that is expected is refused, and will be until the peer says that it knows. */
static bool deny(struct rwk_rc *qp)
{
	struct rwk_rc_responder *r = qp->responder;

	rwk_rc_deny(qp, r->expected);
	r->message = RWK_RC_MESSAGE_DENIED;
	r->silent = true;
	return false;
}

/* The host did not take it: not ready, or refused. */
static bool not_taken(struct rwk_rc *qp, int err)
{
	struct rwk_rc_responder *r = qp->responder;

	if (err == -EACCES && r->own & RWK_RC_DENIES) {
		qp->counters.bad_access++;
		return deny(qp);
	}
	if (err != -EAGAIN) {
		rwk_rc_refuse(qp, r->expected, rwk_rc_syndrome(qp, err));
		return false;
	}
	r->answer = RWK_RC_ANSWER_NAK;
	r->refused = r->expected;
	r->syndrome = RWK_WIRE_RNR | r->rnr_timer;
	r->silent = true;
	return false;
}

/* First and Middle carry one PMTU, Last 1 byte to one PMTU, Only nothing to one PMTU; others nothing. */
bool rwk_rc_fits(const struct rwk_rc_responder *r, unsigned kind, size_t len)
{
	if (!(kind & (SEND | WRITE)))
		return len == 0;
	if (!(kind & LAST))
		return len == r->pmtu;
	return len <= r->pmtu && (kind & FIRST || len);
}

static bool take_send(struct rwk_rc *qp, const struct rwk_wire *w, unsigned kind, const void *payload, size_t len)
{
	int err = qp->host->receive(qp->user, w, kind & (FIRST | LAST), payload, len);

	if (rwk_likely(err == 0))
		return true;
	if (err != -EBUSY)
		return not_taken(qp, err);
	return kind & FIRST && rwk_rc_turn_away(qp, w->srqn) ? false : not_taken(qp, -EAGAIN);
}

static bool take_write(struct rwk_rc *qp, const struct rwk_wire *w, unsigned kind, const void *payload, size_t len)
{
	struct rwk_rc_responder *r = qp->responder;
	uint64_t address = kind & FIRST ? w->reth.address : r->address;
	uint32_t key = kind & FIRST ? w->reth.key : r->key, left = kind & FIRST ? w->reth.length : r->left;
	int err = 0;

	if (rwk_unlikely(rwk_rc_is_unordered(w))) {
		err = rwk_rc_write_unordered(qp, w, kind, payload, len);
		return !err || not_taken(qp, err);
	}
	if (left > RWK_WIRE_LENGTH_MAX || (kind & LAST ? left != len : left <= len))
		return refuse(qp, RWK_WIRE_NAK_INVALID, &qp->counters.bad_length);
	if (!(r->reach & RWK_REACH_WRITE))
		return refuse(qp, RWK_WIRE_NAK_ACCESS, &qp->counters.bad_access);
	if (kind & FIRST && (left || r->service == RWK_WIRE_SRC))
		err = qp->host->reach(qp->user, w, key, address, left, RWK_REACH_WRITE);
	if (!err && len)
		err = qp->host->write(qp->user, w, key, address, payload, len);
	if (!err && kind & IMM)
		err = qp->host->written(qp->user, w);
	if (rwk_unlikely(err))
		return not_taken(qp, err);
	r->address = address + len;
	r->key = key;
	r->left = left - (uint32_t)len;
	return true;
}

/*
 * Is there a place for one more answer? Strict: more than agreed is refused. Between our own ends a Read may have been
 * asked for in parts; what finds no place counts as lost.
 */
static bool has_place(struct rwk_rc *qp)
{
	struct rwk_rc_responder *r = qp->responder;
	unsigned waiting = rwk_rc_reads_waiting(r);

	if (r->own & RWK_RC_SELECTIVE)
		return waiting < RWK_RC_READS_MAX || (rwk_rc_send_answers(qp) && r->answer != RWK_RC_ANSWER_FATAL &&
							     rwk_rc_reads_waiting(r) < RWK_RC_READS_MAX);
	return waiting < r->peer_reads || refuse(qp, RWK_WIRE_NAK_INVALID, &qp->counters.bad_opcode);
}

int rwk_rc_may_read(struct rwk_rc *qp, const struct rwk_wire *w)
{
	const struct rwk_rc_responder *r = qp->responder;

	if (w->reth.length > RWK_WIRE_LENGTH_MAX)
		return -EINVAL;
	return r->reach & RWK_REACH_READ ? 0 : -EACCES;
}

int rwk_rc_reach_read(struct rwk_rc *qp, const struct rwk_wire *w)
{
	if (!w->reth.length && qp->responder->service != RWK_WIRE_SRC)
		return 0;
	return qp->host->reach(qp->user, w, w->reth.key, w->reth.address, w->reth.length, RWK_REACH_READ);
}

static bool take_read(struct rwk_rc *qp, const struct rwk_wire *w, uint32_t *packets)
{
	struct rwk_rc_responder *r = qp->responder;
	int err = rwk_rc_may_read(qp, w);

	if (err)
		return not_taken(qp, err);
	if (!has_place(qp))
		return false;
	err = rwk_rc_reach_read(qp, w);
	if (err)
		return not_taken(qp, err);
	rwk_rc_read_add(r, w);
	*packets = rwk_rc_read_packets(r, w->reth.length);
	return true;
}

static bool take_atomic(struct rwk_rc *qp, const struct rwk_wire *w)
{
	struct rwk_rc_responder *r = qp->responder;
	uint64_t before = 0;
	int err;

	if (!(r->reach & RWK_REACH_ATOMIC))
		return refuse(qp, RWK_WIRE_NAK_ACCESS, &qp->counters.bad_access);
	if (!has_place(qp))
		return false;
	err = qp->host->reach(qp->user, w, w->atomic.key, w->atomic.address, 8, RWK_REACH_ATOMIC);
	if (!err)
		err = qp->host->atomic(qp->user, w, &before);
	if (err)
		return not_taken(qp, err);
	rwk_rc_atomic_add(r, w->psn, before);
	return true;
}

/* What a packet of a message is in the middle of; each packet of an un-ordered Write stands by itself. */
static enum rwk_rc_message message_of(const struct rwk_wire *w, unsigned kind)
{
	if (kind & SEND)
		return RWK_RC_MESSAGE_SEND;
	return rwk_rc_is_unordered(w) ? RWK_RC_MESSAGE_NONE : RWK_RC_MESSAGE_WRITE;
}

/* Does the operation belong here in the message, or between messages? */
static bool in_place(const struct rwk_rc_responder *r, const struct rwk_wire *w, unsigned kind)
{
	if (kind & FIRST || !(kind & (SEND | WRITE)))
		return r->message == RWK_RC_MESSAGE_NONE || r->message >= RWK_RC_MESSAGE_DENIED;
	return r->message == message_of(w, kind) || (r->message >= RWK_RC_MESSAGE_DENIED && kind & WRITE);
}

/* DENIES: is it a piece of nothing, or of what was refused? */
static bool is_passed_over(const struct rwk_rc_responder *r, const struct rwk_wire *w, unsigned kind)
{
	return kind & WRITE && (kind & FIRST ? kind & LAST && !w->reth.length : r->message == RWK_RC_MESSAGE_REST);
}

/* The message that the responder is in the middle of behind this packet. */
static enum rwk_rc_message message_behind(const struct rwk_rc_responder *r, const struct rwk_wire *w, unsigned kind)
{
	if (!(kind & (SEND | WRITE)))
		return r->message;
	if (rwk_unlikely(r->message >= RWK_RC_MESSAGE_DENIED) && is_passed_over(r, w, kind))
		return kind & FIRST || !(kind & LAST) ? RWK_RC_MESSAGE_REST : RWK_RC_MESSAGE_NONE;
	return kind & LAST ? RWK_RC_MESSAGE_NONE : message_of(w, kind);
}

/* It is done: the next is the one so many numbers behind. */
static void go_on(struct rwk_rc_responder *r, const struct rwk_wire *w, uint32_t packets, rwk_time now)
{
	r->expected = rwk_psn_add(r->expected, packets);
	if (rwk_unlikely(r->silent)) {
		r->silent = false;
		if (r->answer == RWK_RC_ANSWER_NAK)
			r->answer = RWK_RC_ANSWER_ACK;
	}
	r->congested |= w->fecn;
	rwk_rc_ack_later(r, w, now);
}

bool rwk_rc_take(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;
	unsigned kind = rwk_rc_kind(w);
	uint32_t packets = 1;

	if (rwk_unlikely(r->message == RWK_RC_MESSAGE_TURNED) && !rwk_rc_is_known(qp, w))
		return false;
	if (rwk_unlikely(r->skips) && rwk_rc_is_skipped(qp, w)) {
		go_on(r, w, 1, now);
		return true;
	}
	if (rwk_unlikely(!in_place(r, w, kind)))
		return refuse(qp, RWK_WIRE_NAK_INVALID, &qp->counters.bad_opcode);
	if (rwk_unlikely(!rwk_rc_fits(r, kind, len)))
		return refuse(qp, RWK_WIRE_NAK_INVALID, &qp->counters.bad_length);
	if (rwk_unlikely(r->message == RWK_RC_MESSAGE_DENIED) && !is_passed_over(r, w, kind))
		return deny(qp);
	if (rwk_likely(kind & SEND)) {
		if (rwk_unlikely(!take_send(qp, w, kind, payload, len)))
			return false;
	} else if (rwk_unlikely(r->message >= RWK_RC_MESSAGE_DENIED) && is_passed_over(r, w, kind)) {
		; /* it only has a number */
	} else if (!(kind & WRITE        ? take_write(qp, w, kind, payload, len)
			   : kind & READ ? take_read(qp, w, &packets)
					 : take_atomic(qp, w))) {
		return false;
	}
	r->message = message_behind(r, w, kind);
	r->msn = (r->msn + (kind & (LAST | READ | ATOMIC) ? 1 : 0)) & RWK_PSN_MASK;
	go_on(r, w, packets, now);
	return true;
}

void rwk_rc_in_order(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;
	uint32_t was = r->expected;

	rwk_rc_take(qp, w, payload, len, now);
	if (rwk_likely(!r->kept_count))
		return;
	rwk_rc_drop_kept(qp, was, r->expected);
	rwk_rc_drain(qp, now);
	rwk_rc_ack_now(r);
}

void rwk_rc_request(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;
	int32_t ahead = rwk_psn_diff(w->psn, r->expected);

	if (rwk_unlikely(!rwk_rc_kind(w))) {
		qp->counters.bad_opcode++;
		return;
	}
	if (rwk_unlikely(r->answer == RWK_RC_ANSWER_FATAL)) {
		qp->counters.bad_state++;
		return;
	}
	if (rwk_likely(ahead == 0))
		rwk_rc_in_order(qp, w, payload, len, now);
	else if (ahead > 0)
		rwk_rc_early(qp, w, payload, len, (uint32_t)ahead);
	else
		rwk_rc_duplicate(qp, w, now);
}

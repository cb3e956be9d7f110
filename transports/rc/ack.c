/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Acknowledgements. One is due when the peer asks, when something is out of order or was kept, and for a lazy end after
 * ack_every packets or ack_delay. However many are due, one is sent, for all that is in order; behind the answers that
 * carry data, since it says that they have been sent.
 *
 * Between our own ends (SELECTIVE) its payload is a bitmap of what is kept behind the gap, whether something has come
 * twice, and how long this end has waited (../wire/FORMAT.md).
 */
#include "internal.h"

/* Bitmap, delay. */
#define OWN_MAX (RWK_RC_WINDOW_MAX / 8 + 4)

/*
 * In the middle of a message twice as many, half of the largest window: its end, where it is asked for or due, is near,
 * and what is sent while others wait to be read holds all of them up.
 */
static uint32_t enough(const struct rwk_rc_responder *r)
{
	return r->message == RWK_RC_MESSAGE_NONE ? r->ack_every : 2u * r->ack_every;
}

void rwk_rc_ack_later(struct rwk_rc_responder *r, const struct rwk_wire *w, rwk_time now)
{
	r->arrived = now;
	r->unacked++;
	if (w->ack_request) {
		rwk_rc_ack_now(r);
	} else if (r->own & RWK_RC_LAZY) {
		if (r->unacked >= enough(r))
			rwk_rc_ack_now(r);
		else if (r->ack_at == RWK_NEVER)
			r->ack_at = now + r->ack_delay;
	}
}

void rwk_rc_ack_is_out(struct rwk_rc_responder *r)
{
	r->unacked = 0;
	r->ack_at = RWK_NEVER;
	r->congested = false;
	if (r->answer == RWK_RC_ANSWER_ACK && !r->kept_count)
		r->answer = RWK_RC_ANSWER_NONE;
}

static void set_bit(uint8_t *bits, uint32_t i, size_t *len)
{
	bits[i / 8] |= (uint8_t)(1u << i % 8);
	if (*len < i / 8 + 1)
		*len = i / 8 + 1;
}

/* What is kept, of a Read all of its packets. Returns the bytes. */
static size_t put_bits(struct rwk_rc *qp, uint8_t *bits)
{
	struct rwk_rc_responder *r = qp->responder;
	size_t len = 0;

	for (uint32_t i = 0; r->kept_count && i < RWK_RC_WINDOW_MAX; i++) {
		uint32_t p = rwk_psn_add(r->expected, i), packets = 1;
		struct rwk_wire w;
		size_t ignored;

		if (!rwk_rc_bit(&r->kept, p))
			continue;
		if (r->kept_reads && qp->host->kept(qp->user, p % RWK_RC_WINDOW_MAX, &w, &ignored) &&
			RWK_WIRE_OPERATION(w.opcode) == RWK_WIRE_READ_REQUEST)
			packets = rwk_rc_read_packets(r, w.reth.length);
		for (uint32_t j = i; j < i + packets && j < RWK_RC_WINDOW_MAX; j++)
			set_bit(bits, j, &len);
	}
	return len;
}

/* The payload of an acknowledgement of our own. */
static uint32_t put_own(struct rwk_rc *qp, uint8_t *bytes, rwk_time now)
{
	size_t len = put_bits(qp, bytes);
	/* Of several processes that share a responder one may have looked at the clock before the other. */
	rwk_time arrived = qp->responder->arrived;
	uint64_t waited = now > arrived ? (now - arrived) / RWK_RC_US : 0;
	uint32_t most = RWK_RC_REPEATED - 1, delay = waited < most ? (uint32_t)waited : most;
	uint32_t word = (uint32_t)qp->responder->share << RWK_RC_SHARE_AT | delay;

	if (qp->responder->repeated)
		word |= RWK_RC_REPEATED;

	for (unsigned i = 0; i < 4; i++)
		bytes[len + i] = (uint8_t)(word >> (24 - 8 * i));
	return (uint32_t)len + 4;
}

void rwk_rc_send_ack(struct rwk_rc *qp, rwk_time now)
{
	struct rwk_rc_responder *r = qp->responder;
	uint8_t own[OWN_MAX] = {0};
	struct rwk_rc_out o;
	bool nak, fatal;

	if (rwk_unlikely(r->message == RWK_RC_MESSAGE_DENIED) && r->answer == RWK_RC_ANSWER_ACK)
		rwk_rc_deny(qp, r->expected);
	if (rwk_unlikely(r->message == RWK_RC_MESSAGE_TURNED) && r->answer == RWK_RC_ANSWER_ACK)
		rwk_rc_say_busy(r);
	nak = r->answer >= RWK_RC_ANSWER_NAK;
	fatal = r->answer == RWK_RC_ANSWER_FATAL;
	o.w = (struct rwk_wire){.pkey = RWK_WIRE_PKEY, .migrated = true, .qpn = r->peer_qpn, .becn = r->congested};
	o.w.opcode = r->service | RWK_WIRE_ACK;
	o.w.psn = nak ? r->refused : rwk_psn_add(r->expected, RWK_PSN_MASK);
	o.w.aeth.syndrome = nak ? r->syndrome : RWK_WIRE_ACK_NO_LIMIT;
	o.w.aeth.msn = r->msn;
	o.count = 0;
	o.length = 0;
	if (!nak && r->own & RWK_RC_SELECTIVE) {
		o.w.opcode = RWK_WIRE_OWN | RWK_WIRE_ACK;
		o.length = put_own(qp, own, now);
		o.iov[0] = (struct iovec){own, o.length};
		o.count = 1;
	}
	if (rwk_rc_emit(qp, &o))
		return;
	qp->counters.acks_out += !nak;
	qp->counters.rnr_out += nak && r->syndrome < RWK_WIRE_NAK_SEQUENCE;
	qp->counters.naks_out += nak && r->syndrome >= RWK_WIRE_NAK_SEQUENCE;
	r->unacked = 0;
	r->ack_at = RWK_NEVER;
	r->congested = false;
	r->repeated = r->repeated && nak;
	r->answer = fatal ? RWK_RC_ANSWER_FATAL : RWK_RC_ANSWER_NONE;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: takes the peer's packets by their numbers. It never answers.
 *
 *   a little behind the expected one   it has been here, or a later one has: dropped, so nothing is done twice
 *   the expected one                   taken
 *   any other                          a gap: the message under way is dropped; it is the expected one from now on
 *
 * After a gap a Middle or a Last packet may be of the message that lost some, or of another whose beginning is in the
 * gap: either way it is passed over, and all goes on with the next First or Only.
 */
#include "uc/internal.h"

#include "base/compiler.h"
#include "wire/psn.h"
#include "wire/segment.h"

#include <errno.h>

/* Packets: so far behind others no network delivers one. Farther behind is what follows a gap of millions. */
#define BEHIND_MAX 65536

/* What an operation is, by its low five bits: Send and Write have six each, in the same order. */
enum piece { FIRST, MIDDLE, LAST, LAST_IMM, ONLY, ONLY_IMM, PIECES };

struct part {
	enum uc_message message;
	bool first, last, imm;
};

static struct part part_of(uint8_t opcode)
{
	unsigned operation = RWK_WIRE_OPERATION(opcode), piece = operation % PIECES;

	return (struct part){
		.message = operation < RWK_WIRE_WRITE_FIRST ? UC_SEND : UC_WRITE,
		.first = piece == FIRST || piece == ONLY || piece == ONLY_IMM,
		.last = piece != FIRST && piece != MIDDLE,
		.imm = piece == LAST_IMM || piece == ONLY_IMM,
	};
}

static void lose(struct rwk_uc *qp)
{
	qp->counters.gaps++;
	if (qp->lost)
		qp->lost(qp->user);
}

/* A packet that does not fit, counted in *reason. On a stream, where nothing is lost, the QP fails. */
static void breach(struct rwk_uc *qp, uint64_t *reason)
{
	++*reason;
	if (!qp->attr.stream)
		return;
	rwk_uc_modify(qp, RWK_QP_ERR, NULL);
	qp->host->failed(qp->user, -EPROTO);
}

/* The client did not take it: nobody is told but the counters. */
static void refused(struct rwk_uc *qp, int err)
{
	if (err == -EAGAIN)
		lose(qp);
	else if (err == -EMSGSIZE)
		qp->counters.bad_length++;
	else
		qp->counters.bad_access++;
}

/* The first packet of a Write says where all of it goes (S3-2): is the length right, and may it go there? */
static int begin_write(struct rwk_uc *qp, const struct rwk_wire *w)
{
	struct uc_responder *r = qp->responder;

	if (!(qp->attr.reach & RWK_REACH_WRITE))
		return -EACCES;
	r->key = w->reth.key;
	r->address = w->reth.address;
	r->left = w->reth.length;
	if (!r->left)
		return 0;
	return qp->host->reach(qp->user, w, r->key, r->address, r->left, RWK_REACH_WRITE);
}

static int take_write(struct rwk_uc *qp, const struct rwk_wire *w, struct part p, const void *payload, size_t len)
{
	struct uc_responder *r = qp->responder;
	int rc;

	if (p.first) {
		rc = begin_write(qp, w);
		if (rc)
			return rc;
	}
	if (len) {
		rc = qp->host->write(qp->user, w, r->key, r->address, payload, len);
		if (rc)
			return rc;
		r->address += len;
		r->left -= len;
	}
	return p.imm ? qp->host->written(qp->user, w) : 0;
}

static int take_send(struct rwk_uc *qp, const struct rwk_wire *w, struct part p, const void *payload, size_t len)
{
	unsigned where = (p.first ? RWK_PIECE_FIRST : 0) | (p.last ? RWK_PIECE_LAST : 0);

	return qp->host->receive(qp->user, w, where, payload, len);
}

/* Do the bytes of this packet end the Write if it is its last, and leave some if it is not? */
static bool write_fits(const struct uc_responder *r, const struct rwk_wire *w, struct part p, size_t len)
{
	uint64_t left = p.first ? w->reth.length : r->left;

	return left <= RWK_WIRE_LENGTH_MAX && (p.last ? len == left : len < left);
}

/* A packet with the expected number. */
static void take(struct rwk_uc *qp, const struct rwk_wire *w, const void *payload, size_t len)
{
	struct uc_responder *r = qp->responder;
	struct part p = part_of(w->opcode);
	uint32_t before = r->message;
	int rc;

	r->message = p.last ? UC_NONE : UC_DROPPED; /* unless it is taken */
	if (!p.first && before == UC_DROPPED)
		return;
	if (p.first ? before == UC_SEND || before == UC_WRITE : before != p.message) {
		breach(qp, &qp->counters.bad_opcode);
		if (!p.first || qp->attr.stream)
			return;
	}
	if (!rwk_segment_fits(w->opcode, len, qp->attr.pmtu) || (p.message == UC_WRITE && !write_fits(r, w, p, len))) {
		breach(qp, &qp->counters.bad_length);
		return;
	}
	rc = p.message == UC_SEND ? take_send(qp, w, p, payload, len) : take_write(qp, w, p, payload, len);
	if (rwk_unlikely(rc))
		refused(qp, rc);
	else if (!p.last)
		r->message = p.message;
}

void rwk_uc_packet(struct rwk_uc *qp, const struct rwk_wire *w, const void *payload, size_t len)
{
	struct uc_responder *r = qp->responder;
	int32_t ahead = rwk_psn_diff(w->psn, r->psn);

	if (rwk_unlikely(qp->state != RWK_QP_RTR && qp->state != RWK_QP_RTS)) {
		qp->counters.bad_state++;
		return;
	}
	qp->counters.packets_in++;
	qp->counters.bytes_in += len;
	if (rwk_unlikely(RWK_WIRE_CLASS(w->opcode) != RWK_WIRE_UC || !rwk_wire_header_size(w->opcode))) {
		breach(qp, &qp->counters.bad_opcode);
		return;
	}
	if (rwk_unlikely(ahead)) {
		if (qp->attr.stream) {
			breach(qp, &qp->counters.too_far);
			return;
		}
		if (ahead < 0 && ahead >= -BEHIND_MAX) {
			qp->counters.duplicates++;
			return;
		}
		r->message = UC_DROPPED;
		lose(qp);
	}
	r->psn = rwk_psn_add(w->psn, 1);
	take(qp, w, payload, len);
}

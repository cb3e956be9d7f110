/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of an un-ordered type. One whose turn has come is taken like any other (responder.c); one that comes before
 * its turn is done at once, as far as that is possible (S2-11):
 *
 *   Write   each packet is placed, for it says where. Of several with immediate data the last waits: it says that all
 *           of them are there; and one that is alone waits while another message is under way, as it takes a receive
 *   Read    executed, if there is a place for its answer
 *   Send    delivered when all its packets are there (S2-12), and no other message is under way
 *
 * What stays is what stays of every early packet (early.c): a bit, and headers that the host keeps. They are marked
 * RWK_RC_TAKEN, and passed over in their turn; or refused then, so that the NAK is in its place among the
 * acknowledgements. What cannot be done yet is kept and taken in its turn, as if it were ordered.
 */
#include "kinds.h"

int rwk_rc_write_unordered(struct rwk_rc *qp, const struct rwk_wire *w, unsigned kind, const void *payload, size_t len)
{
	const struct rwk_rc_responder *r = qp->responder;
	uint64_t all = w->reth.length, end = w->offset + (uint64_t)len;
	int err = 0;

	if (all > RWK_WIRE_LENGTH_MAX || (kind & LAST ? end != all : end >= all))
		return -EINVAL;
	if (!(r->reach & RWK_REACH_WRITE))
		return -EACCES;
	if (all || r->service == RWK_WIRE_SRC)
		err = qp->host->reach(qp->user, w, w->reth.key, w->reth.address, all, RWK_REACH_WRITE);
	if (!err && len)
		err = qp->host->write(qp->user, w, w->reth.key, w->reth.address + w->offset, payload, len);
	if (!err && kind & IMM)
		err = qp->host->written(qp->user, w);
	return err;
}

bool rwk_rc_waits(const struct rwk_wire *w)
{
	unsigned kind = rwk_rc_kind(w);

	return !rwk_rc_is_unordered(w) || !(kind & WRITE) || kind & IMM;
}

/* It is done, or to be refused in its turn. */
static void mark(struct rwk_rc *qp, const struct rwk_wire *w, int err)
{
	struct rwk_rc_responder *r = qp->responder;
	struct rwk_wire taken = *w;

	taken.pad = RWK_RC_TAKEN;
	taken.aeth.syndrome = err ? rwk_rc_syndrome(qp, err) : 0;
	qp->host->mark(qp->user, w->psn % RWK_RC_WINDOW_MAX, &taken);
	qp->counters.before_turn += !err;
	r->congested |= w->fecn;
	r->msn = (r->msn + (rwk_rc_kind(w) & (LAST | READ) && !err)) & RWK_PSN_MASK;
}

/* Is packet psn of an un-ordered Send here, and not delivered? Then `kind` is set. */
static bool has_piece(struct rwk_rc *qp, uint32_t psn, unsigned *kind)
{
	const struct rwk_rc_responder *r = qp->responder;
	struct rwk_wire w;
	size_t len;

	if (((psn - r->expected) & RWK_PSN_MASK) >= RWK_RC_WINDOW_MAX || !rwk_rc_bit(&r->kept, psn))
		return false;
	qp->host->kept(qp->user, psn % RWK_RC_WINDOW_MAX, &w, &len);
	*kind = rwk_rc_kind(&w);
	return rwk_rc_is_unordered(&w) && w.pad != RWK_RC_TAKEN && *kind & SEND && rwk_rc_fits(r, *kind, len);
}

/* The packets of the Send that psn belongs to, if all are here. */
static bool find_whole(struct rwk_rc *qp, uint32_t psn, uint32_t *first, uint32_t *last)
{
	unsigned kind;

	if (!has_piece(qp, psn, &kind))
		return false;
	*first = *last = psn;
	for (unsigned k = kind; !(k & LAST);) {
		*last = rwk_psn_add(*last, 1);
		if (!has_piece(qp, *last, &k) || k & FIRST)
			return false;
	}
	while (!(kind & FIRST)) {
		*first = rwk_psn_add(*first, RWK_PSN_MASK);
		if (!has_piece(qp, *first, &kind) || kind & LAST)
			return false;
	}
	return true;
}

static void send(struct rwk_rc *qp, uint32_t psn)
{
	uint32_t first, last;
	int err = 0;

	if (qp->responder->message != RWK_RC_MESSAGE_NONE || !find_whole(qp, psn, &first, &last))
		return;
	for (uint32_t p = first; !err && p != rwk_psn_add(last, 1); p = rwk_psn_add(p, 1)) {
		struct rwk_wire w;
		size_t len;
		const void *payload = qp->host->kept(qp->user, p % RWK_RC_WINDOW_MAX, &w, &len);

		err = qp->host->receive(qp->user, &w, rwk_rc_kind(&w) & (FIRST | LAST), payload, len);
		if (err != -EAGAIN)
			mark(qp, &w, err);
	}
}

static void read(struct rwk_rc *qp, const struct rwk_wire *w)
{
	struct rwk_rc_responder *r = qp->responder;
	int err;

	if (rwk_rc_reads_waiting(r) >= RWK_RC_READS_MAX)
		return;
	err = rwk_rc_may_read(qp, w);
	if (!err)
		err = rwk_rc_reach_read(qp, w);
	if (!err)
		rwk_rc_read_add(r, w);
	mark(qp, w, err);
}

static void write(struct rwk_rc *qp, const struct rwk_wire *w, unsigned kind, const void *payload, size_t len)
{
	int err;

	if (kind & IMM && (!(kind & FIRST) || qp->responder->message != RWK_RC_MESSAGE_NONE))
		return;
	err = rwk_rc_fits(qp->responder, kind, len) ? rwk_rc_write_unordered(qp, w, kind, payload, len) : -EINVAL;
	if (err != -EAGAIN)
		mark(qp, w, err);
	else if (!rwk_rc_waits(w))
		rwk_rc_forget(qp, w->psn, false);
}

void rwk_rc_before_turn(struct rwk_rc *qp, const struct rwk_wire *w, const void *payload, size_t len)
{
	unsigned kind = rwk_rc_kind(w);

	if (kind & SEND)
		send(qp, w->psn);
	else if (kind & WRITE)
		write(qp, w, kind, payload, len);
	else if (kind & READ)
		read(qp, w);
}

bool rwk_rc_pass(struct rwk_rc *qp, const struct rwk_wire *w)
{
	struct rwk_rc_responder *r = qp->responder;

	if (w->aeth.syndrome) {
		rwk_rc_refuse(qp, r->expected, w->aeth.syndrome);
		return false;
	}
	r->expected = rwk_psn_add(r->expected, rwk_rc_kind(w) & READ ? rwk_rc_read_packets(r, w->reth.length) : 1);
	return true;
}

void rwk_rc_refuse_later(struct rwk_rc *qp, uint32_t psn, int err)
{
	struct rwk_rc_responder *r = qp->responder;
	struct rwk_wire w;
	size_t len;

	for (; rwk_psn_diff(psn, r->expected) >= 0; psn = rwk_psn_add(psn, RWK_PSN_MASK)) {
		if (!rwk_rc_bit(&r->kept, psn))
			continue;
		qp->host->kept(qp->user, psn % RWK_RC_WINDOW_MAX, &w, &len);
		w.aeth.syndrome = rwk_rc_syndrome(qp, err);
		qp->host->mark(qp->user, psn % RWK_RC_WINDOW_MAX, &w);
		return;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers that carry data, each sent when all with lower numbers are (but for what is executed before its turn:
 * those that are missing come behind it). Reads are run when there is room in the link;
 * an atomic was run when it came, and its value stays, so that a duplicate gets the same answer.
 *
 * The peer has at most RWK_RC_READS_MAX Reads and atomics under way (more are refused), and of duplicates of Reads at
 * most RWK_RC_RESULTS - RWK_RC_READS_MAX wait. So, when all places are taken, one has an atomic that nobody can ask for
 * any more: the oldest. Whoever asks more often than that loses answers of his own.
 */
#include "internal.h"

static bool is_waiting_again(const struct rwk_rc_result *x)
{
	return x->due && x->again && x->kind == RWK_RC_RESULT_READ;
}

unsigned rwk_rc_reads_waiting(const struct rwk_rc_responder *r)
{
	unsigned n = 0;

	for (unsigned i = 0; r->due && i < RWK_RC_RESULTS; i++)
		n += r->results[i].due && !r->results[i].again;
	return n;
}

/* Of two atomics' results. Their numbers do not tell: they may be of any age. */
static bool is_older(const struct rwk_rc_result *a, const struct rwk_rc_result *b)
{
	return (int16_t)(a->key - b->key) < 0;
}

/* A place for one more: free, else of the oldest that was sent, else of a duplicate's. */
static struct rwk_rc_result *place(struct rwk_rc_responder *r)
{
	struct rwk_rc_result *oldest = NULL, *again = NULL;

	for (struct rwk_rc_result *x = r->results; x < r->results + RWK_RC_RESULTS; x++) {
		if (x->kind == RWK_RC_RESULT_NONE)
			return x;
		if (!x->due && (!oldest || is_older(x, oldest)))
			oldest = x;
		if (x->due && x->again)
			again = x;
	}
	return oldest ? oldest : again;
}

static void put(struct rwk_rc_responder *r, const struct rwk_rc_result *new)
{
	struct rwk_rc_result *x = place(r);

	r->due += !x->due;
	*x = *new;
}

static struct rwk_rc_result read_result(const struct rwk_wire *w, bool again)
{
	return (struct rwk_rc_result){
		.word = w->reth.address,
		.key = w->reth.key,
		.left = w->reth.length,
		.psn = w->psn,
		.kind = RWK_RC_RESULT_READ,
		.due = 1,
		.again = again,
	};
}

void rwk_rc_read_add(struct rwk_rc_responder *r, const struct rwk_wire *w)
{
	struct rwk_rc_result x = read_result(w, false);

	put(r, &x);
}

void rwk_rc_atomic_add(struct rwk_rc_responder *r, uint32_t psn, uint64_t before)
{
	struct rwk_rc_result new = {
		.word = before, .key = ++r->atomics, .psn = psn, .kind = RWK_RC_RESULT_ATOMIC, .due = 1};

	/* What had this number a number space ago would be sent in its place. */
	for (struct rwk_rc_result *x = r->results; x < r->results + RWK_RC_RESULTS; x++)
		if (x->kind == RWK_RC_RESULT_ATOMIC && !x->due && x->psn == psn)
			x->kind = RWK_RC_RESULT_NONE;
	put(r, &new);
}

static uint32_t end_of(const struct rwk_rc_responder *r, const struct rwk_rc_result *read)
{
	return rwk_psn_add(read->psn, rwk_rc_read_packets(r, read->left));
}

/* A Read that waits may cover what is asked, or ends where it ends and only has to begin earlier. */
static bool merge(struct rwk_rc_responder *r, const struct rwk_rc_result *asked)
{
	for (struct rwk_rc_result *x = r->results; r->due && x < r->results + RWK_RC_RESULTS; x++) {
		int32_t end;

		if (x->kind != RWK_RC_RESULT_READ)
			continue;
		end = rwk_psn_diff(end_of(r, asked), end_of(r, x));
		if (end <= 0 && rwk_psn_diff(asked->psn, x->psn) >= 0)
			return true;
		if (end == 0) {
			bool again = x->again;

			*x = *asked;
			x->again = again;
			return true;
		}
	}
	return false;
}

static bool has_room_again(const struct rwk_rc_responder *r)
{
	unsigned n = 0;

	for (const struct rwk_rc_result *x = r->results; x < r->results + RWK_RC_RESULTS; x++)
		n += is_waiting_again(x);
	return n < RWK_RC_RESULTS - RWK_RC_READS_MAX;
}

void rwk_rc_read_again(struct rwk_rc *qp, const struct rwk_wire *w)
{
	struct rwk_rc_responder *r = qp->responder;
	struct rwk_rc_result asked = read_result(w, true);

	if (merge(r, &asked))
		return;
	/* Many at once: those that wait may go before the pump, if the link has room. */
	if (has_room_again(r) || rwk_rc_send_answers(qp))
		put(r, &asked);
}

void rwk_rc_atomic_again(struct rwk_rc_responder *r, uint32_t psn)
{
	for (struct rwk_rc_result *x = r->results; x < r->results + RWK_RC_RESULTS; x++)
		if (x->kind == RWK_RC_RESULT_ATOMIC && x->psn == psn && !x->due) {
			x->due = x->again = 1;
			r->due++;
		}
}

static struct rwk_rc_result *first_due(struct rwk_rc_responder *r)
{
	struct rwk_rc_result *first = NULL;

	for (struct rwk_rc_result *x = r->results; x < r->results + RWK_RC_RESULTS; x++)
		if (x->due && (!first || rwk_psn_diff(x->psn, first->psn) < 0))
			first = x;
	return first;
}

static void put_aeth(struct rwk_wire *w, const struct rwk_rc_responder *r)
{
	w->aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT;
	w->aeth.msn = r->msn;
}

static bool send_atomic(struct rwk_rc *qp, struct rwk_rc_out *o, struct rwk_rc_result *x)
{
	struct rwk_rc_responder *r = qp->responder;

	o->w.opcode = r->service | RWK_WIRE_ATOMIC_ACK;
	o->w.psn = x->psn;
	o->w.atomic_ack = x->word;
	put_aeth(&o->w, r);
	o->count = 0;
	o->length = 0;
	if (rwk_rc_emit(qp, o))
		return false;
	x->due = 0;
	r->due--;
	return true;
}

/*
 * Between our own ends each is an Only, whose length is that of all the others: a Middle, which has no AETH, would end
 * the batch that the link makes of the packets before it.
 */
static uint8_t response_opcode(const struct rwk_rc_responder *r, const struct rwk_rc_result *read, bool last)
{
	if (r->own & RWK_RC_SELECTIVE)
		return RWK_WIRE_READ_ONLY;
	if (read->begun)
		return last ? RWK_WIRE_READ_LAST : RWK_WIRE_READ_MIDDLE;
	return last ? RWK_WIRE_READ_ONLY : RWK_WIRE_READ_FIRST;
}

/* One packet of a response. False: no room, or the region is gone and the QP fails; see rwk_rc_result.again. */
static bool send_piece(struct rwk_rc *qp, struct rwk_rc_out *o, struct rwk_rc_result *read)
{
	struct rwk_rc_responder *r = qp->responder;
	bool last = read->left <= r->pmtu, early = rwk_rc_is_early(r, read->psn);
	uint32_t length = last ? read->left : r->pmtu;

	o->w.opcode = (early ? RWK_WIRE_OWN : r->service) | response_opcode(r, read, last);
	o->w.psn = read->psn;
	put_aeth(&o->w, r);
	o->length = length;
	o->count = 0;
	if (length)
		o->count = qp->host->read(qp->user, read->key, read->word, length, o->iov, RWK_MACHINE_IOV);
	if (rwk_unlikely(o->count < 0 && early)) {
		rwk_rc_refuse_later(qp, read->psn, o->count);
		read->left = 0;
		return true;
	}
	if (o->count < 0) {
		qp->counters.bad_access++;
		if (r->own & RWK_RC_DENIES)
			rwk_rc_deny(qp, read->psn);
		if (r->own & RWK_RC_DENIES || (read->again && r->own & RWK_RC_SELECTIVE)) {
			read->left = 0;
			return true;
		}
		rwk_rc_refuse(qp, read->psn, RWK_WIRE_NAK_ACCESS);
		return false;
	}
	if (rwk_rc_emit(qp, o))
		return false;
	read->word += length;
	read->left -= length;
	read->psn = rwk_psn_add(read->psn, 1);
	read->begun = 1;
	return true;
}

/* The whole response, or what is left of it. False: as send_piece. */
static bool send_read(struct rwk_rc *qp, struct rwk_rc_out *o, struct rwk_rc_result *read)
{
	do {
		if (!send_piece(qp, o, read))
			return false;
	} while (read->left);
	*read = (struct rwk_rc_result){.kind = RWK_RC_RESULT_NONE};
	qp->responder->due--;
	return true;
}

/* Nothing is answered behind a refusal of one of these. */
static void forget_due(struct rwk_rc_responder *r)
{
	for (struct rwk_rc_result *x = r->results; x < r->results + RWK_RC_RESULTS; x++)
		x->due = 0;
	r->due = 0;
}

bool rwk_rc_send_answers(struct rwk_rc *qp)
{
	struct rwk_rc_responder *r = qp->responder;
	struct rwk_rc_out o;

	o.w = (struct rwk_wire){
		.pkey = RWK_WIRE_PKEY, .migrated = true, .qpn = r->peer_qpn, .becn = r->congested, .changing = true};
	while (r->due) {
		struct rwk_rc_result *x = first_due(r);

		if (rwk_unlikely(rwk_rc_is_early(r, x->psn)) && r->answer == RWK_RC_ANSWER_ACK)
			return true;
		if (!(x->kind == RWK_RC_RESULT_READ ? send_read(qp, &o, x) : send_atomic(qp, &o, x))) {
			if (qp->blocked)
				return false;
			forget_due(r);
			return true;
		}
		if (o.w.psn == rwk_psn_add(r->expected, RWK_PSN_MASK))
			rwk_rc_ack_is_out(r);
	}
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers that carry data. Reads wait in the order of their numbers and are run when there is room in the link; an
 * atomic was run when it came, and its value is kept in a ring of as many as a peer may have under way, so that a
 * duplicate gets the same answer.
 */
#include "internal.h"

#include <string.h>

static uint32_t end_of(const struct rwk_rc_responder *r, const struct rwk_rc_read *read)
{
	return rwk_psn_add(read->psn, rwk_rc_read_packets(r, read->left));
}

unsigned rwk_rc_reads_waiting(const struct rwk_rc_responder *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->read_count; i++)
		n += !r->reads[i].again;
	for (unsigned i = 0; r->atomics_due && i < RWK_RC_READS_MAX; i++)
		n += r->atomics[i].due && !r->atomics[i].again;
	return n;
}

/* An answer that waits may cover what is asked, or ends where it ends and only has to begin earlier. */
static bool merge(struct rwk_rc_responder *r, const struct rwk_rc_read *asked)
{
	for (unsigned i = 0; i < r->read_count; i++) {
		struct rwk_rc_read *waits = &r->reads[i];
		int32_t end = rwk_psn_diff(end_of(r, asked), end_of(r, waits));

		if (end <= 0 && rwk_psn_diff(asked->psn, waits->psn) >= 0)
			return true;
		if (end == 0) {
			*waits = *asked;
			return true;
		}
	}
	return false;
}

static void remove_read(struct rwk_rc_responder *r, unsigned i)
{
	r->read_count--;
	memmove(&r->reads[i], &r->reads[i + 1], (r->read_count - i) * sizeof(r->reads[0]));
}

/* A duplicate gives way: the peer will ask again. */
static void make_room(struct rwk_rc_responder *r)
{
	for (unsigned i = r->read_count; i-- > 0;)
		if (r->reads[i].again) {
			remove_read(r, i);
			return;
		}
}

void rwk_rc_read_add(struct rwk_rc_responder *r, const struct rwk_wire *w, bool again)
{
	struct rwk_rc_read asked = {.address = w->reth.address,
		.key = w->reth.key,
		.left = w->reth.length,
		.psn = w->psn,
		.again = again};
	unsigned i;

	if (again && merge(r, &asked))
		return;
	if (r->read_count == RWK_RC_READS_MAX && !again)
		make_room(r);
	if (r->read_count == RWK_RC_READS_MAX)
		return;
	i = r->read_count;
	for (; i > 0 && rwk_psn_diff(asked.psn, r->reads[i - 1].psn) < 0; i--)
		r->reads[i] = r->reads[i - 1];
	r->reads[i] = asked;
	r->read_count++;
}

void rwk_rc_atomic_add(struct rwk_rc_responder *r, uint32_t psn, uint64_t before)
{
	r->atomics_due -= r->atomics[r->atomic_next].due;
	r->atomics[r->atomic_next] = (struct rwk_rc_atomic){.before = before, .psn = psn, .used = 1, .due = 1};
	r->atomic_next = (r->atomic_next + 1) % RWK_RC_READS_MAX;
	r->atomics_due++;
}

void rwk_rc_atomic_again(struct rwk_rc_responder *r, uint32_t psn)
{
	for (unsigned i = 0; i < RWK_RC_READS_MAX; i++) {
		struct rwk_rc_atomic *a = &r->atomics[i];

		if (a->used && a->psn == psn && !a->due) {
			a->due = a->again = 1;
			r->atomics_due++;
		}
	}
}

static struct rwk_rc_atomic *first_atomic(struct rwk_rc_responder *r)
{
	struct rwk_rc_atomic *first = NULL;

	for (unsigned i = 0; r->atomics_due && i < RWK_RC_READS_MAX; i++)
		if (r->atomics[i].due && (!first || rwk_psn_diff(r->atomics[i].psn, first->psn) < 0))
			first = &r->atomics[i];
	return first;
}

static void put_aeth(struct rwk_wire *w, const struct rwk_rc_responder *r)
{
	w->aeth.syndrome = RWK_WIRE_ACK_NO_LIMIT;
	w->aeth.msn = r->msn;
}

static bool send_atomic(struct rwk_rc *qp, struct rwk_rc_out *o, struct rwk_rc_atomic *a)
{
	struct rwk_rc_responder *r = qp->responder;

	o->w.opcode = r->service | RWK_WIRE_ATOMIC_ACK;
	o->w.psn = a->psn;
	o->w.atomic_ack = a->before;
	put_aeth(&o->w, r);
	o->count = 0;
	o->length = 0;
	if (rwk_rc_emit(qp, o))
		return false;
	a->due = 0;
	r->atomics_due--;
	return true;
}

static uint8_t response_opcode(const struct rwk_rc_read *read, bool last)
{
	if (read->begun)
		return last ? RWK_WIRE_READ_LAST : RWK_WIRE_READ_MIDDLE;
	return last ? RWK_WIRE_READ_ONLY : RWK_WIRE_READ_FIRST;
}

/* One packet of a response. False: no room, or the region is gone and the QP fails. */
static bool send_piece(struct rwk_rc *qp, struct rwk_rc_out *o, struct rwk_rc_read *read)
{
	struct rwk_rc_responder *r = qp->responder;
	bool last = read->left <= r->pmtu;
	uint32_t length = last ? read->left : r->pmtu;

	o->w.opcode = r->service | response_opcode(read, last);
	o->w.psn = read->psn;
	put_aeth(&o->w, r);
	o->length = length;
	o->count = 0;
	if (length)
		o->count = qp->host->read(qp->user, read->key, read->address, length, o->iov, RWK_MACHINE_IOV);
	if (o->count < 0) {
		qp->counters.bad_access++;
		rwk_rc_refuse(qp, read->psn, RWK_WIRE_NAK_ACCESS);
		r->read_count = 0;
		return false;
	}
	if (rwk_rc_emit(qp, o))
		return false;
	read->address += length;
	read->left -= length;
	read->psn = rwk_psn_add(read->psn, 1);
	read->begun = 1;
	return true;
}

/* The whole response that is first. False: as send_piece. */
static bool send_read(struct rwk_rc *qp, struct rwk_rc_out *o)
{
	struct rwk_rc_responder *r = qp->responder;
	struct rwk_rc_read *read = &r->reads[0];

	do {
		if (!send_piece(qp, o, read))
			return false;
	} while (read->left);
	remove_read(r, 0);
	return true;
}

bool rwk_rc_send_answers(struct rwk_rc *qp)
{
	struct rwk_rc_responder *r = qp->responder;
	struct rwk_rc_out o;

	o.w = (struct rwk_wire){.pkey = RWK_WIRE_PKEY, .migrated = true, .qpn = r->peer_qpn, .becn = r->congested};
	while (r->read_count || r->atomics_due) {
		struct rwk_rc_atomic *a = first_atomic(r);
		bool read = r->read_count && (!a || rwk_psn_diff(r->reads[0].psn, a->psn) < 0);

		if (!(read ? send_read(qp, &o) : send_atomic(qp, &o, a)))
			return r->answer == RWK_RC_ANSWER_FATAL && !r->read_count;
		if (o.w.psn == rwk_psn_add(r->expected, RWK_PSN_MASK))
			rwk_rc_ack_is_out(r);
	}
	return true;
}

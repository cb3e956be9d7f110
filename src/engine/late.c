/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Late payload. A short message for which there was no credit waits at its sender, announced by an RTS. Reading each
 * when its receive has come costs a round trip a message (but for cross-memory copies: none of those comes late). So
 * where many wait, their sender is told of it with the credit that it gets back, and sends of them what the credit
 * allows after all, behind their RTS and in the order of these.
 *
 *   receiver  RTS, nobody waits for it --> peer.late_in. A CREDIT names the first that is there; one of no bytes is
 *             sent when a receive takes one of them, others wait, and the last CREDIT has named none
 *   sender    RTS --> peer.late_out. Named: those before it are being read, and forgotten here; it and the ones behind
 *             it are sent as LATE, as far as credit reaches, now and with each CREDIT that names one
 *   receiver  LATE, and it is the first of late_in --> the message is whole, FIN. Else its receive has come meanwhile,
 *             it is being read or was dropped, and this payload is nobody's
 *
 * A message that is sent so is exposed until FIN all the same, since it may be being read. What it takes of the
 * receiver's memory is under credit like all that was sent eagerly.
 */
#include "engine/internal.h"

/* Sends its payload; false: its RTS is not out yet, or it has been answered. */
static bool send_late(struct rwk_tx *tx)
{
	struct rwk_peer *p = tx->peer;

	if (tx->state != RWK_TX_FIN)
		return false;
	rwk_list_remove(&tx->late);
	p->credit -= (int64_t)tx->length + RWK_MESSAGE_COST;
	p->engine->status.counters.sent_late++;
	rwk_rendezvous_post(tx, RWK_LATE, tx->iov, tx->iov_count, tx->length);
	return true;
}

void rwk_late_go_on(struct rwk_peer *p)
{
	while (p->late_wanted && !p->error && !rwk_list_empty(&p->late_out)) {
		struct rwk_tx *tx = rwk_container_of(p->late_out.next, struct rwk_tx, late);

		if (p->credit < (int64_t)tx->length || !send_late(tx))
			return;
	}
}

/* Those announced before `tx` are not wanted any more, if it is among those that wait. */
static void forget_before(struct rwk_peer *p, const struct rwk_tx *tx)
{
	if (rwk_list_empty(&tx->late))
		return;
	while (p->late_out.next != &tx->late)
		rwk_list_pop(&p->late_out);
}

void rwk_late_credit(struct rwk_peer *p, const struct rwk_envelope *env)
{
	struct rwk_tx *tx = env->flags & RWK_ENV_DATA ? rwk_rendezvous_find(p, env->data) : NULL;

	p->credit += (int64_t)(env->tag & INT32_MAX);
	p->late_wanted = tx;
	if (tx)
		forget_before(p, tx);
	rwk_late_go_on(p);
}

void rwk_late_ask(struct rwk_peer *p)
{
	if (!p->late_asked && !p->error && !rwk_list_empty(&p->late_in))
		rwk_credit_send(p);
}

/* The message whose payload that is, with room for it and out of late_in; NULL: nobody's. */
static struct rwk_unexpected *owner_of(struct rwk_peer *p, const struct rwk_envelope *env, size_t len)
{
	struct rwk_unexpected *u = rwk_container_of(p->late_in.next, struct rwk_unexpected, late);

	if (!rwk_list_empty(&p->late_in) && u->rts.id == env->tag && u->length == len) {
		rwk_list_remove(&u->late);
		if (!rwk_unexpected_room(u))
			return u;
	}
	rwk_credit_return(p, len);
	return NULL;
}

void rwk_late_message(struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_unexpected *u = owner_of(p, env, len);

	if (!u)
		return;
	if (len)
		rwk_copy(u->payload, payload, len);
	u->state = RWK_U_WHOLE;
	rwk_rendezvous_drop(u);
}

struct rwk_unexpected *rwk_late_begin(struct rwk_peer *p, const struct rwk_envelope *env, size_t len)
{
	struct rwk_unexpected *u = owner_of(p, env, len);

	if (u)
		u->announced = true;
	return u;
}

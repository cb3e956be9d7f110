/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two peers that turn out to be one process, by two of its addresses, of which it calls one its own. It has one
 * connection with us; nothing has come or gone by the other channel. What was to go there goes behind all that waits
 * for the connection, in the same order; receives directed at the one peer are directed at the other, and get what
 * waits of it. The peer that had the other channel is nobody's any more: the directory leads on from it (rwk_peer.of),
 * and so does the binding.
 */
#include "engine/internal.h"

/** Exposes its payload to the new channel, and to the old one no more. 0 or negative errno; then to neither. */
static int expose_anew(struct rwk_tx *tx, struct rwk_channel *ch, struct rwk_channel *into)
{
	struct rwk_rkey old = tx->rts.key;
	int rc = into->transport->expose(into, tx->iov, tx->iov_count, RWK_EXPOSE_READ, &tx->rts.key);

	ch->transport->conceal(ch, &old);
	if (rc)
		tx->rts.key = (struct rwk_rkey){0};
	return rc;
}

static void move_send(struct rwk_tx *tx, struct rwk_channel *ch, struct rwk_channel *into)
{
	struct rwk_peer *to = into->peer;
	int rc = 0;

	ch->transport->withdraw(ch, &tx->op);
	tx->peer = to;
	rwk_list_append(&to->sends, &tx->link);
	if (tx->index != RWK_TX_NONE && !rwk_list_empty(&tx->late)) {
		rwk_list_remove(&tx->late);
		rwk_list_append(&to->late_out, &tx->late);
	}
	if (tx->index != RWK_TX_NONE && rwk_rts_length(&tx->rts))
		rc = expose_anew(tx, ch, into);
	if (!rc)
		rc = into->transport->post(into, &tx->op);
	if (rc)
		tx->op.done(&tx->op, rc < 0 ? rc : 0);
}

static void move_receives(struct rwk_engine *e, const struct rwk_peer *from, const struct rwk_peer *to)
{
	for (unsigned i = 0; rwk_room_exists(e, i); i++) {
		for (enum rwk_space s = 0; s < RWK_SPACES; s++) {
			if (rwk_match_rename(e->rooms[i]->matcher[s], from, to))
				rwk_rx_serve(e->rooms[i], s, to);
		}
	}
}

/** From now on whoever looks for the one finds the other. */
static void stand_for(struct rwk_peer *from, struct rwk_peer *to)
{
	struct rwk_engine *e = from->engine;

	from->of = to;
	to->has_merged = true;
	for (struct rwk_peer *p = e->all_peers; p; p = p->next) {
		if (p->of == from)
			p->of = to;
	}
	rwk_peer_ended(from, -EALREADY);
	e->attr.merged(e->owner, from, to);
}

int rwk_peers_merge(void *engine, struct rwk_channel *ch, struct rwk_channel *into)
{
	struct rwk_engine *e = engine;
	struct rwk_peer *from = ch->peer, *to = into->peer;
	struct rwk_list *l;

	if (from->error || to->error)
		return from->error ? from->error : to->error;
	if (!e->attr.merged)
		return -EALREADY;
	stand_for(from, to);
	to->credit -= (int64_t)rwk_params.eager_credit - from->credit;
	while ((l = rwk_list_pop(&from->sends)))
		move_send(rwk_container_of(l, struct rwk_tx, link), ch, into);
	rwk_rma_move(from, to);
	move_receives(e, from, to);
	return 0;
}

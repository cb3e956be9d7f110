/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rooms: several inboxes of one engine, each with receives of its own, behind one address. A message for another room
 * than the first says so: an eager one is of a kind of its own, so that those for the first pay nothing.
 *
 * Who sends to a room names, in place of the peer, what stands for it there: a struct rwk_peer that has no channel and
 * takes nothing eagerly, so that the fast path hands it on to the slow one (send.c), which goes on with the peer.
 */
#include "engine/rma_state.h"

int rwk_rooms_open(struct rwk_engine *e)
{
	const struct rwk_inbox_attr attr = {
		.complete = e->complete,
		.owner = e->owner,
		.rx_limit = e->attr.rx_limit,
		.multi_min = e->attr.multi_min,
	};
	int rc = 0;

	for (unsigned i = 1; i < e->attr.rooms && i < RWK_ROOMS && !rc; i++)
		rc = rwk_inbox_open(&attr, &e->rooms[i]);
	return rc;
}

void rwk_rooms_complete(struct rwk_engine *e, void (*complete)(void *owner, const struct rwk_completion *c))
{
	for (unsigned i = 1; rwk_room_exists(e, i); i++) {
		e->rooms[i]->complete = complete;
		e->rooms[i]->owner = e;
	}
}

/** What was injected goes on: nobody waits for it, and its payload is here. */
static bool is_cancelled(const struct rwk_tx *tx, unsigned room)
{
	return rwk_room_of(tx->flags) == room && tx->state != RWK_TX_CONTROL && !(tx->flags & RWK_F_INJECT);
}

static void cancel_sends(struct rwk_peer *p, unsigned room)
{
	struct rwk_list *l = p->sends.next;

	while (l != &p->sends) {
		struct rwk_tx *tx = rwk_container_of(l, struct rwk_tx, link);

		l = l->next;
		if (!is_cancelled(tx, room))
			continue;
		if (tx->state == RWK_TX_EAGER)
			rwk_tx_withdraw(tx);
		else if (tx->state == RWK_TX_SELF)
			rwk_self_cancel(tx);
		else
			rwk_rendezvous_cancel(tx);
	}
}

/** Those whose message is coming get no more of it. */
static void cancel_receives(struct rwk_peer *p, unsigned room)
{
	struct rwk_list *l = p->reads.next;

	while (l != &p->reads) {
		struct rwk_rx *rx = rwk_container_of(l, struct rwk_rx, link);

		l = l->next;
		if (rwk_room_of(rx->flags) != room)
			continue;
		if (rx->reads)
			rwk_rendezvous_cancel_read(rx);
		else
			rwk_rx_cut_off(rx);
	}
}

/** Nobody else could name what was claimed; or would take it for what he has claimed. */
static void drop_claimed(struct rwk_inbox *box)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(&box->claimed)))
		rwk_unexpected_drop(rwk_container_of(l, struct rwk_unexpected, claimed));
}

void rwk_engine_cancel_room(struct rwk_engine *e, unsigned room, bool receives)
{
	if (receives) {
		rwk_inbox_cancel_all(e->rooms[room]);
		drop_claimed(e->rooms[room]);
	}
	for (struct rwk_peer *p = e->all_peers; p; p = p->next) {
		if (p->error)
			continue; /* all ends with the peer */
		if (receives) {
			cancel_receives(p, room);
			continue;
		}
		cancel_sends(p, room);
		if (p->rma)
			rwk_rma_cancel(p->rma, room);
	}
}

/** Has the channel, or the peer, the program's memory? Of what is answered, and was announced, only the RTS. */
static bool has_memory(const struct rwk_tx *tx)
{
	if (tx->state == RWK_TX_FIN)
		return rwk_rts_length(&tx->rts);
	return tx->state == RWK_TX_EAGER || tx->state == RWK_TX_RTS || tx->state == RWK_TX_ANSWERED;
}

static bool runs_with(const struct rwk_peer *p, unsigned room, bool receives)
{
	for (const struct rwk_list *l = p->reads.next; receives && l != &p->reads; l = l->next) {
		const struct rwk_rx *rx = rwk_container_of(l, struct rwk_rx, link);

		if (rx->reads && rwk_room_of(rx->flags) == room)
			return true;
	}
	if (receives)
		return false;
	for (const struct rwk_list *l = p->sends.next; l != &p->sends; l = l->next) {
		const struct rwk_tx *tx = rwk_container_of(l, struct rwk_tx, link);

		if (is_cancelled(tx, room) && has_memory(tx))
			return true;
	}
	return p->rma && rwk_rma_runs(p->rma, room);
}

bool rwk_engine_room_runs(const struct rwk_engine *e, unsigned room, bool receives)
{
	for (const struct rwk_peer *p = e->all_peers; p; p = p->next) {
		if (runs_with(p, room, receives))
			return true;
	}
	return false;
}

void rwk_engine_room_give_up(struct rwk_engine *e, unsigned room, bool receives)
{
	for (struct rwk_peer *p = e->all_peers; p; p = p->next) {
		if (runs_with(p, room, receives))
			rwk_peer_give_up(p, -ECANCELED, "it keeps memory of a closed context busy");
	}
	rwk_engine_progress(e);
}

static bool sends_from(const struct rwk_peer *p, unsigned room)
{
	for (const struct rwk_list *l = p->sends.next; l != &p->sends; l = l->next) {
		const struct rwk_tx *tx = rwk_container_of(l, struct rwk_tx, link);

		if (tx->state != RWK_TX_CONTROL && rwk_room_of(tx->flags) == room)
			return true;
	}
	return false;
}

static bool accesses_from(const struct rwk_rma_state *s, unsigned room)
{
	for (const struct rwk_list *l = s->requests.next; l != &s->requests; l = l->next) {
		const struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);

		if (rwk_room_of(r->flags) == room)
			return true;
	}
	return false;
}

bool rwk_engine_sends_from(const struct rwk_engine *e, unsigned room)
{
	for (const struct rwk_peer *p = e->all_peers; p; p = p->next) {
		if (sends_from(p, room) || (p->rma && accesses_from(p->rma, room)))
			return true;
	}
	return false;
}

struct rwk_peer *rwk_peer_room(struct rwk_peer *p, unsigned room)
{
	struct rwk_peer *r;

	if (!room)
		return p;
	for (r = p->rooms; r; r = r->next) {
		if (r->room == room)
			return r;
	}
	r = rwk_pool_get(&p->engine->peer_pool);
	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->engine = p->engine;
	r->user = RWK_NO_USER;
	r->of = p;
	r->room = (uint8_t)room;
	r->next = p->rooms;
	p->rooms = r;
	return r;
}

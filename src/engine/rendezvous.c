/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous: the payload waits, exposed, at the sender; an RTS takes its place in the order of messages.
 *
 *   sender    expose, RTS --> state RTS until the channel has done with it, then FIN --> FIN comes: conceal, complete
 *   receiver  matched: read what fits (nothing, if nothing fits) --> FIN, complete
 *
 * An id names a slot of the sender's table and the slot's generation, so that a FIN that is late, doubled or made up
 * finds nothing. A tx is in the table from RTS to FIN, and nowhere else. What is short comes late at times, see late.c.
 *
 * A short message whose sender wants to be told waits for an answer in the same way, though nothing is exposed: TOLD
 * takes the place of RTS, DELIVERED that of FIN. It has 16 bits for its id, of the slot alone.
 */
#include "engine/internal.h"

static int slot_take(struct rwk_engine *e, struct rwk_tx *tx)
{
	struct rwk_tx_slot *slot;

	if (e->tx_free == RWK_TX_NONE) {
		uint32_t size = e->tx_table_size ? 2 * e->tx_table_size : 64;
		struct rwk_tx_slot *table = realloc(e->tx_table, size * sizeof(*table));

		if (!table)
			return -ENOMEM;
		for (uint32_t i = e->tx_table_size; i < size; i++)
			table[i] = (struct rwk_tx_slot){.generation = 1, .next = i + 1 < size ? i + 1 : RWK_TX_NONE};
		e->tx_free = e->tx_table_size;
		e->tx_table = table;
		e->tx_table_size = size;
	}
	tx->index = e->tx_free;
	slot = &e->tx_table[tx->index];
	e->tx_free = slot->next;
	slot->tx = tx;
	tx->rts = (struct rwk_rts){.id = (uint64_t)slot->generation << 32 | tx->index};
	rwk_list_init(&tx->late);
	return 0;
}

static void slot_give(struct rwk_tx *tx)
{
	struct rwk_engine *e = tx->peer->engine;
	struct rwk_tx_slot *slot = &e->tx_table[tx->index];

	rwk_list_remove(&tx->late);
	slot->tx = NULL;
	slot->generation++;
	slot->next = e->tx_free;
	e->tx_free = tx->index;
	tx->index = RWK_TX_NONE;
}

static struct rwk_tx *slot_find(struct rwk_engine *e, uint64_t id)
{
	uint32_t index = (uint32_t)id;

	if (index >= e->tx_table_size || e->tx_table[index].generation != id >> 32)
		return NULL;
	return e->tx_table[index].tx;
}

struct rwk_tx *rwk_rendezvous_find(struct rwk_peer *p, uint64_t id)
{
	struct rwk_tx *tx = slot_find(p->engine, id);

	return tx && tx->peer == p ? tx : NULL;
}

/** The send to that peer which waits for DELIVERED under that index; NULL: none. */
static struct rwk_tx *told_find(struct rwk_peer *p, uint64_t index)
{
	struct rwk_tx *tx = index < p->engine->tx_table_size ? p->engine->tx_table[index].tx : NULL;

	return tx && tx->peer == p && !rwk_rts_length(&tx->rts) ? tx : NULL;
}

/** Takes back what the peer was given, and the slot. */
static void conceal(struct rwk_tx *tx)
{
	if (rwk_rts_length(&tx->rts) && tx->peer->channel)
		tx->peer->channel->transport->conceal(tx->peer->channel, &tx->rts.key);
	slot_give(tx);
}

static void posted_done(struct rwk_op *op, int status)
{
	struct rwk_tx *tx = rwk_container_of(op, struct rwk_tx, op);
	struct rwk_peer *p = tx->peer;

	if (!status && tx->state == RWK_TX_RTS) {
		tx->state = RWK_TX_FIN;
	} else {
		conceal(tx);
		rwk_tx_complete(tx, tx->state == RWK_TX_ANSWERED ? tx->answer : rwk_peer_status(p, status));
	}
	rwk_late_go_on(p);
}

/** Posts a message of a rendezvous; what the channel says, and the state according to that. */
static int post(struct rwk_tx *tx, const struct iovec *iov, uint32_t iov_count, size_t len)
{
	struct rwk_channel *ch = tx->peer->channel;
	int rc;

	tx->op.type = RWK_OP_SEND;
	tx->op.arrival = false;
	tx->op.iov = iov;
	tx->op.iov_count = iov_count;
	tx->op.length = len;
	tx->op.done = posted_done;
	rc = ch->transport->post(ch, &tx->op);
	tx->state = rc ? RWK_TX_FIN : RWK_TX_RTS;
	return rc < 0 ? rc : 0;
}

void rwk_rendezvous_post(
	struct rwk_tx *tx, enum rwk_kind kind, const struct iovec *iov, uint32_t iov_count, size_t len)
{
	tx->op.env = (struct rwk_envelope){.kind = (uint8_t)kind, .tag = tx->rts.id};
	post(tx, iov, iov_count, len); /* if the channel has failed, it ends with the peer */
}

/**
 * Does it lack nothing but credit? Then its payload may come late, unless its sender waits for the match. Not where the
 * receiver reads it by itself, without waiting for anybody: credit would gain nothing.
 */
static unsigned why_announced(const struct rwk_tx *tx, unsigned room)
{
	const struct rwk_channel *ch = tx->peer->channel;
	bool read_alone = ch->direct_min && ch->direct == RWK_DIRECT_TRIED;

	if (!rwk_goes_eagerly(tx->peer, tx->length) || read_alone)
		return 0;
	if (room && tx->flags & RWK_F_TOLD)
		return 0; /* there is no TOLD for rooms */
	return tx->flags & RWK_F_MATCHED ? RWK_RTS_SHORT : RWK_RTS_SHORT | RWK_RTS_LATE;
}

int rwk_rendezvous_send(struct rwk_tx *tx, unsigned room, enum rwk_space space, uint64_t tag, uint64_t data)
{
	struct rwk_channel *ch = tx->peer->channel;
	const struct rwk_envelope env = {
		.head = rwk_envelope_head((uint8_t)(RWK_SPACES + space), tx->flags & RWK_F_DATA ? RWK_ENV_DATA : 0,
			(uint16_t)(room << 2 | why_announced(tx, room))),
		.tag = tag,
		.data = data,
	};
	int rc = slot_take(tx->peer->engine, tx);

	if (rc)
		return rc;
	if (tx->length) {
		rc = ch->transport->expose(ch, tx->iov, tx->iov_count, RWK_EXPOSE_READ, &tx->rts.key);
		if (rc) {
			slot_give(tx);
			return rc == -ENOSPC ? -EAGAIN : rc;
		}
	}
	if (env.small & RWK_RTS_LATE)
		rwk_list_append(&tx->peer->late_out, &tx->late);
	tx->state = RWK_TX_FIN;
	if (!tx->peer->send(ch, &env, &tx->rts, sizeof(tx->rts)))
		return 0;
	tx->rts_iov = (struct iovec){&tx->rts, sizeof(tx->rts)};
	tx->op.env = env;
	rc = post(tx, &tx->rts_iov, 1, sizeof(tx->rts));
	if (rc)
		conceal(tx);
	return rc;
}

int rwk_told_send(struct rwk_tx *tx, enum rwk_space space, uint64_t tag, uint64_t data)
{
	struct rwk_peer *p = tx->peer;
	int rc = slot_take(p->engine, tx);

	if (rc)
		return rc;
	if (tx->index > UINT16_MAX) {
		slot_give(tx);
		return -ENOSPC;
	}
	tx->op.env = (struct rwk_envelope){
		.kind = (uint8_t)(RWK_TOLD_TAGGED + space),
		.flags = (tx->flags & RWK_F_DATA ? RWK_ENV_DATA : 0) |
			 (tx->flags & RWK_F_MATCHED ? RWK_TOLD_MATCHED : 0),
		.small = (uint16_t)tx->index,
		.tag = tag,
		.data = data,
	};
	tx->state = RWK_TX_FIN;
	if (tx->iov_count == 1 && !p->send(p->channel, &tx->op.env, tx->one.iov_base, tx->length))
		return 0;
	rc = post(tx, tx->iov, tx->iov_count, tx->length);
	if (rc)
		slot_give(tx);
	return rc;
}

void rwk_told_answer(struct rwk_peer *p, uint32_t came, uint64_t index, int status)
{
	if (rwk_unlikely(came & RWK_F_TOLD))
		rwk_send_control(p, RWK_DELIVERED, index, (uint16_t)-status);
}

void rwk_rendezvous_abandon(struct rwk_tx *tx)
{
	conceal(tx);
	rwk_tx_complete(tx, tx->peer->error);
}

void rwk_rendezvous_cancel(struct rwk_tx *tx)
{
	struct rwk_peer *p = tx->peer;

	if (tx->state == RWK_TX_RTS) {
		if (p->channel->transport->withdraw(p->channel, &tx->op))
			return;
		if (tx->op.iov != &tx->rts_iov) /* it had its payload, against credit */
			p->credit += (int64_t)tx->length + RWK_MESSAGE_COST;
	} else if (tx->state != RWK_TX_FIN || !rwk_rts_length(&tx->rts)) {
		return;
	}
	conceal(tx);
	rwk_tx_complete(tx, -ECANCELED);
}

void rwk_rendezvous_fin(struct rwk_peer *p, const struct rwk_envelope *env)
{
	struct rwk_tx *tx = env->kind == RWK_FIN ? rwk_rendezvous_find(p, env->tag) : told_find(p, env->tag);

	if (!tx || tx->state == RWK_TX_ANSWERED) {
		rwk_info("an answer to no message under way was dropped");
		return;
	}
	if (tx->state == RWK_TX_RTS) { /* a channel may learn late that the peer has the RTS, which is still its to read
					  until then */
		tx->state = RWK_TX_ANSWERED;
		tx->answer = -(int)env->small;
		return;
	}
	conceal(tx);
	rwk_tx_complete(tx, -(int)env->small);
}

/** The read has ended: tells the sender, completes the receive. */
static void finish(struct rwk_rx *rx, int status)
{
	rwk_list_remove(&rx->link);
	rwk_send_control(rx->peer, RWK_FIN, rx->rts_id, (uint16_t)-status);
	rwk_rx_complete(rx->peer->engine, rx, status);
}

static void read_done(struct rwk_op *op, int status)
{
	struct rwk_rx *rx = rwk_container_of(op, struct rwk_rx, op);

	finish(rx, rwk_peer_status(rx->peer, status));
}

void rwk_rendezvous_read(struct rwk_rx *rx, const struct rwk_rts *rts)
{
	struct rwk_peer *p = rx->peer;
	int rc;

	rx->rts_id = rts->id;
	rx->length = rwk_rts_length(rts);
	rx->reads = true;
	rwk_list_append(&p->reads, &rx->link);
	rx->op.type = RWK_OP_READ;
	rx->op.behind = false;
	rx->op.iov = rx->iov;
	rx->op.iov_count = rx->iov_count;
	rx->op.length = rx->length < rx->room ? rx->length : rx->room;
	rx->op.rkey = rts->key;
	rx->op.offset = 0;
	rx->op.done = read_done;
	if (p->error) {
		finish(rx, p->error);
		return;
	}
	rc = rx->op.length ? p->channel->transport->post(p->channel, &rx->op) : 1;
	if (rc)
		finish(rx, rc < 0 ? rc : 0);
}

void rwk_rendezvous_cancel_read(struct rwk_rx *rx)
{
	struct rwk_channel *ch = rx->peer->channel;

	if (!ch->transport->withdraw(ch, &rx->op))
		finish(rx, -ECANCELED);
}

void rwk_rendezvous_drop(struct rwk_unexpected *u)
{
	rwk_send_control(u->peer, RWK_FIN, u->rts.id, 0);
}

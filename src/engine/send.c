/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a send call to a message on a channel. The fast path: a short message to a peer with credit and an idle channel
 * goes out within the call and leaves nothing behind. Everything else becomes a tx: posted to the channel, which keeps
 * the order, or announced by an RTS.
 */
#include "engine/internal.h"

#define INJECT_STANDSTILL 10000000 /* ns */

#define LEVELS (RWK_F_TOLD | RWK_F_ARRIVED)

struct rwk_tx *rwk_tx_get(struct rwk_peer *p, uint32_t flags, void *context)
{
	struct rwk_tx *tx = rwk_pool_get(&p->engine->tx_pool);

	if (!tx)
		return NULL;
	tx->peer = p;
	tx->flags = flags;
	tx->context = context;
	tx->index = RWK_TX_NONE;
	tx->length = 0;
	tx->iov_count = 0;
	tx->block = NULL;
	rwk_list_append(&p->sends, &tx->link);
	return tx;
}

/** Bytes of a message that is kept, in blocks. */
static size_t blocks(size_t len)
{
	return 1 + len / RWK_BLOCK;
}

/** Room for its pieces, or with RWK_F_INJECT for its payload; NULL: out of memory. */
static void *get_block(const struct rwk_tx *tx)
{
	struct rwk_engine *e = tx->peer->engine;

	return tx->flags & RWK_F_INJECT && tx->length > RWK_BLOCK ? rwk_spares_get(&e->spares, tx->length)
								  : rwk_pool_get(&e->block_pool);
}

static void put_block(const struct rwk_tx *tx)
{
	struct rwk_engine *e = tx->peer->engine;

	if (tx->flags & RWK_F_INJECT && tx->length > RWK_BLOCK)
		rwk_spares_put(&e->spares, tx->block);
	else
		rwk_pool_put(&e->block_pool, tx->block);
}

void rwk_tx_put(struct rwk_tx *tx)
{
	struct rwk_engine *e = tx->peer->engine;

	rwk_list_remove(&tx->link);
	if (tx->flags & RWK_F_INJECT)
		e->injected -= blocks(tx->length);
	if (tx->block)
		put_block(tx);
	rwk_pool_put(&e->tx_pool, tx);
}

void rwk_tx_complete(struct rwk_tx *tx, int status)
{
	struct rwk_engine *e = tx->peer->engine;
	uint32_t flags = tx->flags;
	void *context = tx->context;
	bool control = tx->state == RWK_TX_CONTROL;

	rwk_tx_put(tx);
	if (control)
		return;
	if (status)
		rwk_complete_send_call(e, flags, context, status);
	else
		rwk_complete_send(e, flags, context);
}

/** Fills in a tx's own copy of where its payload is; with RWK_F_INJECT, of the payload. False: out of memory. */
static bool take_payload(struct rwk_tx *tx, const struct iovec *iov, size_t count, size_t len)
{
	bool inject = tx->flags & RWK_F_INJECT;

	tx->length = len;
	tx->iov = &tx->one;
	tx->iov_count = (uint32_t)count;
	tx->peer->engine->injected += inject ? blocks(len) : 0;
	if (count == 1)
		tx->one = iov[0];
	if (count <= 1 && !inject)
		return true;
	tx->block = get_block(tx);
	if (!tx->block)
		return false;
	if (inject) {
		rwk_iov_gather(iov, count, 0, tx->block, len);
		tx->one = (struct iovec){tx->block, len};
		tx->iov_count = 1;
	} else {
		tx->iov = memcpy(tx->block, iov, count * sizeof(*iov));
	}
	return true;
}

/*
 * As many injected messages as may be kept are kept. That holds the sender back, but not for ever: where their receiver
 * waits for this very message before it takes those, none of them goes. So if none has gone for long, one more is kept.
 */
static bool injects_enough(struct rwk_engine *e)
{
	uint64_t now;

	if (e->injected < e->attr.inject_limit) {
		e->inject_refused = 0;
		return false;
	}
	now = rwk_clock_now();
	if (!e->inject_refused)
		e->inject_refused = now;
	if (now - e->inject_refused < INJECT_STANDSTILL)
		return true;
	e->inject_refused = now;
	return false;
}

struct rwk_tx *rwk_tx_new(
	struct rwk_peer *p, const struct iovec *iov, size_t count, size_t len, uint32_t flags, void *context)
{
	struct rwk_engine *e = p->engine;
	struct rwk_tx *tx;

	if (e->tx_pool.used >= e->attr.tx_limit || (flags & RWK_F_INJECT && injects_enough(e)))
		return NULL;
	tx = rwk_tx_get(p, flags, context);
	if (!tx)
		return NULL;
	if (!take_payload(tx, iov, count, len)) {
		rwk_tx_put(tx);
		return NULL;
	}
	return tx;
}

static void eager_done(struct rwk_op *op, int status)
{
	struct rwk_tx *tx = rwk_container_of(op, struct rwk_tx, op);

	rwk_tx_complete(tx, rwk_peer_status(tx->peer, status));
}

/** Posts a tx whose op.env is set as a message of its iov; 0, or the error (then the tx is the caller's). */
static int post_message(struct rwk_tx *tx)
{
	int rc;

	tx->op.type = RWK_OP_SEND;
	tx->op.arrival = tx->flags & RWK_F_ARRIVED && tx->state == RWK_TX_EAGER;
	tx->op.iov = tx->iov;
	tx->op.iov_count = tx->iov_count;
	tx->op.length = tx->length;
	tx->op.done = eager_done;
	rc = tx->peer->channel->transport->post(tx->peer->channel, &tx->op);
	if (rc == 1)
		rwk_tx_complete(tx, 0);
	return rc < 0 ? rc : 0;
}

void rwk_send_own(struct rwk_peer *p, const struct rwk_envelope *env)
{
	struct rwk_tx *tx;

	if (p->error || p->self || !p->send(p->channel, env, NULL, 0))
		return;
	tx = rwk_tx_get(p, RWK_F_SILENT, NULL);
	if (!tx) { /* credit or an answer: the peer would wait for it for ever */
		rwk_peer_give_up(p, -ENOMEM, "out of memory for a message of the engine's own");
		return;
	}
	tx->state = RWK_TX_CONTROL;
	tx->op.env = *env;
	if (post_message(tx))
		rwk_tx_put(tx);
}

/** As rwk_eager_head, of a message for that room. */
static uint64_t slow_head(uint32_t flags, unsigned room)
{
	struct rwk_envelope env = {.head = rwk_eager_head(flags)};

	if (room) {
		env.kind = (uint8_t)(RWK_ROOM_TAGGED + env.kind);
		env.small = (uint16_t)room;
	}
	return env.head;
}

/*
 * Nobody hears when an injected message has gone out: who has injected one may go to sleep elsewhere, and the message
 * with it (Open MPI does, while it connects jobs). So as long as an answer can be expected soon it is not taken: the
 * caller makes progress then. Not for ever: the peer may compute, or sleep until we do something else.
 */
static bool answer_is_due(const struct rwk_peer *p)
{
	return !p->channel->answered && rwk_clock_now() - p->contacted < p->engine->attr.inject_wait;
}

/*
 * Nor, if it could not go the fast way, before progress has been made since the last send: what it lacks may be there to
 * be taken, credit or acknowledgements, and who injects and does nothing else has no other reason to make any.
 */
static bool asks_for_progress(struct rwk_engine *e, uint32_t flags, unsigned room)
{
	if (room || flags & LEVELS || e->sent_before == e->status.counters.sent_eager)
		return false;
	e->network_quiet = 0;
	e->network_fresh = false;
	return true;
}

/** Sends it with its payload if it is short and there is credit; -ENOSPC: it has to be announced. */
static int send_eagerly(struct rwk_tx *tx, unsigned room, uint64_t tag, uint64_t data)
{
	struct rwk_peer *p = tx->peer;
	int64_t len = (int64_t)tx->length;
	int rc = -ENOSPC;

	if (!rwk_goes_eagerly(p, tx->length) || len > p->credit)
		return -ENOSPC;
	if (!(tx->flags & RWK_F_TOLD)) {
		tx->state = RWK_TX_EAGER;
		tx->op.env = (struct rwk_envelope){.head = slow_head(tx->flags, room), .tag = tag, .data = data};
		rc = post_message(tx);
	} else if (!room) {
		rc = rwk_told_send(tx, rwk_space_of(tx->flags), tag, data);
	}
	if (!rc) {
		p->credit -= len + RWK_MESSAGE_COST;
		p->engine->status.counters.sent_eager++;
	}
	return rc;
}

/** A send that the fast path could not finish. */
static rwk_outline ssize_t send_slow(struct rwk_engine *e, struct rwk_peer *p, const struct iovec *iov, size_t count,
	size_t len, uint64_t tag, uint64_t data, uint32_t flags, void *context)
{
	unsigned room = p->room;
	struct rwk_tx *tx;
	int rc;

	if (len > (flags & RWK_F_INJECT ? RWK_INJECT_MAX : SIZE_MAX / 2))
		return -EMSGSIZE;
	if (p->of)
		p = p->of;
	rc = rwk_peer_meet(p);
	if (rc)
		return rc;
	if (p->self)
		return rwk_self_send(e, room, iov, count, len, tag, data, flags, context);
	if (p->fenced)
		return -EAGAIN;
	if (flags & RWK_F_INJECT && (answer_is_due(p) || asks_for_progress(e, flags, room)))
		return -EAGAIN;
	tx = rwk_tx_new(p, iov, count, len, flags, context);
	if (!tx)
		return -EAGAIN;
	rc = send_eagerly(tx, room, tag, data);
	if (rc == -ENOSPC) {
		if (rwk_goes_eagerly(p, len) && !(flags & RWK_F_TOLD))
			e->status.counters.credits_waited++;
		rc = rwk_rendezvous_send(tx, room, rwk_space_of(flags), tag, data);
		if (!rc)
			e->status.counters.sent_rendezvous++;
	}
	if (rc) {
		rwk_tx_put(tx);
		return rc == -ENOMEM ? -EAGAIN : rc; /* nothing of it has gone out */
	}
	e->status.counters.sent_bytes += len;
	return 0;
}

static rwk_outline ssize_t send1_slow(struct rwk_engine *e, const void *buf, size_t len, uint32_t flags, uint64_t data,
	struct rwk_peer *p, uint64_t tag, void *context)
{
	const struct iovec iov = {(void *)buf, len};

	return send_slow(e, p, &iov, 1, len, tag, data, flags, context);
}

/** May a message with a level go at once, and be complete then? */
static rwk_outline bool is_reached(const struct rwk_peer *p, uint32_t flags, size_t len)
{
	if (flags & RWK_F_TOLD || (flags & RWK_F_INJECT && len > RWK_INJECT_MAX))
		return false;
	return p->channel && !p->error && p->channel->send_arrives;
}

/** Sends one buffer eagerly if that is possible at once. */
static inline bool send_now(struct rwk_engine *e, const void *buf, size_t len, uint32_t flags, uint64_t data,
	struct rwk_peer *p, uint64_t tag, void *context)
{
	const struct rwk_envelope env = {.head = rwk_eager_head(flags), .tag = tag, .data = data};

	if (rwk_unlikely(flags & (RWK_F_INJECT | LEVELS)) &&
		!(flags & LEVELS ? is_reached(p, flags, len) : len <= RWK_INJECT_MAX))
		return false;
	if (rwk_unlikely(!rwk_goes_eagerly(p, len) || p->credit < (int64_t)len))
		return false;
	if (rwk_unlikely(p->send(p->channel, &env, buf, len)))
		return false;
	p->credit -= (int64_t)len + RWK_MESSAGE_COST;
	e->status.counters.sent_eager++;
	e->status.counters.sent_bytes += len;
	rwk_complete_send(e, flags, context);
	return true;
}

ssize_t rwk_engine_send1(struct rwk_engine *e, const void *buf, size_t len, uint32_t flags, uint64_t data,
	struct rwk_peer *p, uint64_t tag, void *context)
{
	if (rwk_likely(send_now(e, buf, len, flags, data, p, tag, context)))
		return 0;
	return send1_slow(e, buf, len, flags, data, p, tag, context);
}

ssize_t rwk_engine_send(struct rwk_engine *e, enum rwk_space space, struct rwk_peer *p, const struct iovec *iov,
	size_t count, uint64_t tag, uint64_t data, uint32_t flags, void *context)
{
	unsigned char gathered[1024];
	size_t len;

	flags |= rwk_space_flag(space);
	if (count == 1)
		return rwk_engine_send1(e, iov[0].iov_base, iov[0].iov_len, flags, data, p, tag, context);
	if (count > RWK_ENGINE_IOV_MAX)
		return -EINVAL;
	len = rwk_iov_length(iov, count);
	if (len <= sizeof(gathered)) {
		rwk_iov_gather(iov, count, 0, gathered, len);
		if (send_now(e, gathered, len, flags, data, p, tag, context))
			return 0;
	}
	return send_slow(e, p, iov, count, len, tag, data, flags, context);
}

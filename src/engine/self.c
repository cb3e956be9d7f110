/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to oneself. A short one that nobody waits for is copied, as from any peer and against the same credit; a
 * long one waits in its send until a receive takes it. Where somebody else owns the receives, each waits until the next
 * progress offers it.
 */
#include "engine/internal.h"

/** Copies between two scattered buffers, as much as fits. */
static void copy(const struct rwk_rx *rx, const struct iovec *iov, size_t count)
{
	size_t at = 0;

	for (size_t i = 0; i < count && at < rx->room; i++) {
		rwk_iov_scatter(rx->iov, rx->iov_count, at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
}

/** Keeps a message that no receive waits for: in a copy, or in the send. */
static ssize_t keep(struct rwk_engine *e, unsigned room, const struct rwk_envelope *env, const struct iovec *iov,
	size_t count, size_t len, uint32_t flags, void *context)
{
	struct rwk_peer *me = e->me;
	bool eager = len <= rwk_params.eager_max && me->credit >= (int64_t)len && !(flags & RWK_F_MATCHED);
	struct rwk_unexpected *u = rwk_unexpected_new(me, room, env->kind, env, len);
	int rc;

	if (!u)
		return -EAGAIN;
	if (eager) {
		u->state = RWK_U_WHOLE;
		rc = -EAGAIN;
		if (rwk_unexpected_room(u))
			goto free_unexpected;
		rwk_iov_gather(iov, count, 0, u->payload, len);
		me->credit -= (int64_t)len + RWK_MESSAGE_COST;
		rwk_unexpected_keep(u);
		rwk_complete_send(e, flags, context);
		return 0;
	}
	u->state = RWK_U_SELF;
	u->tx = rwk_tx_new(me, iov, count, len, flags, context);
	rc = -EAGAIN;
	if (!u->tx)
		goto free_unexpected;
	u->tx->state = RWK_TX_SELF;
	u->tx->waits = u;
	rwk_unexpected_keep(u);
	return 0;

free_unexpected:
	rwk_unexpected_free(u);
	return rc;
}

ssize_t rwk_self_send(struct rwk_engine *e, unsigned room, const struct iovec *iov, size_t count, size_t len,
	uint64_t tag, uint64_t data, uint32_t flags, void *context)
{
	enum rwk_space space = rwk_space_of(flags);
	const struct rwk_envelope env = {
		.kind = (uint8_t)space,
		.flags = flags & RWK_F_DATA ? RWK_ENV_DATA : 0,
		.tag = tag,
		.data = flags & RWK_F_DATA ? data : 0,
	};
	struct rwk_posted *posted;
	struct rwk_rx *rx;

	if (!rwk_room_exists(e, room))
		return -EINVAL;
	posted = rwk_match_message(e->rooms[room]->matcher[space], e->me, tag);
	if (!posted)
		return keep(e, room, &env, iov, count, len, flags, context);
	rx = rwk_inbound_matched(e, e->me, rwk_container_of(posted, struct rwk_rx, posted), &env, len);
	if (!rx)
		return -EAGAIN; /* it is not kept: the buffer stays posted, and a later message would be in it first */
	copy(rx, iov, count);
	rwk_rx_complete(e, rx, 0);
	rwk_complete_send(e, flags, context);
	return 0;
}

/* The send ends first: the receive's completion may cancel those that wait. */
void rwk_self_receive(struct rwk_rx *rx, struct rwk_unexpected *u)
{
	struct rwk_engine *e = u->peer->engine;
	struct rwk_tx *tx = u->tx;

	rwk_unexpected_free(u);
	if (!tx) {
		rx->length = 0;
		rwk_rx_complete(e, rx, -ECANCELED);
		return;
	}
	copy(rx, tx->iov, tx->iov_count);
	rwk_tx_complete(tx, 0);
	rwk_rx_complete(e, rx, 0);
}

void rwk_self_drop(struct rwk_unexpected *u)
{
	if (u->tx)
		rwk_tx_complete(u->tx, 0);
}

void rwk_self_refuse(struct rwk_unexpected *u)
{
	struct rwk_tx *tx = u->tx;

	rwk_unexpected_free(u);
	if (tx)
		rwk_tx_complete(tx, -ENOMEM);
}

void rwk_self_cancel(struct rwk_tx *tx)
{
	tx->waits->tx = NULL;
	rwk_tx_complete(tx, -ECANCELED);
}

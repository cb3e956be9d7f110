/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a receive call to a posted receive, or to a message that has waited for it; peek, claim, discard and cancel.
 *
 * A RWK_F_MULTI buffer stays posted while messages take parts of it; each such part is an rx of its own, a child. When
 * less than multi_min is left the buffer is unposted, and the completion of its last child releases it.
 */
#include "engine/internal.h"

struct rwk_rx *rwk_rx_get(struct rwk_inbox *box)
{
	struct rwk_rx *rx = rwk_pool_get(&box->rx_pool);

	if (rwk_unlikely(!rx))
		return NULL;
	rx->parent = NULL;
	rx->children = 0;
	rx->posted.stays = 0;
	return rx;
}

void rwk_rx_fill(struct rwk_rx *rx, const void *payload, size_t len)
{
	size_t n = len < rx->room ? len : rx->room;

	if (rwk_unlikely(rx->iov_count != 1))
		rwk_iov_scatter(rx->iov, rx->iov_count, 0, payload, len);
	else if (n) /* a buffer of no length may be NULL */
		rwk_copy(rx->iov[0].iov_base, payload, n);
}

void rwk_rx_cut_off(struct rwk_rx *rx)
{
	rx->incoming.place.iov_count = 0;
	rx->iov_count = 0;
	rx->room = 0;
}

void rwk_rx_retire(struct rwk_inbox *box, struct rwk_rx *rx)
{
	rwk_match_unpost(box->matcher[rwk_space_of(rx->flags)], &rx->posted);
	rx->retired = true;
}

struct rwk_rx *rwk_rx_part(struct rwk_inbox *box, struct rwk_rx *parent, size_t len)
{
	struct rwk_rx *rx = rwk_rx_get(box);
	struct iovec *left = parent->iov;

	if (!rx)
		return NULL;
	rx->context = parent->context;
	rx->flags = parent->flags;
	rx->room = len < left->iov_len ? len : left->iov_len;
	rx->iov_count = 1;
	rx->iov[0] = (struct iovec){left->iov_base, rx->room};
	rx->parent = parent;
	parent->children++;
	left->iov_base = (char *)left->iov_base + rx->room;
	left->iov_len -= rx->room;
	if (left->iov_len < box->multi_min || !left->iov_len)
		rwk_rx_retire(box, parent);
	return rx;
}

static void rx_free(struct rwk_inbox *box, struct rwk_rx *rx)
{
	rwk_pool_put(&box->rx_pool, rx);
}

/** What the completion of a receive with these flags shows in any case. */
static uint32_t receive_flags(uint32_t flags)
{
	return RWK_F_RECV | (flags & (RWK_F_PLAIN | RWK_F_TAGGED | RWK_F_ROOM | ~(RWK_F_USER - 1u)));
}

/** A posted receive ends without a message. */
static void complete_without(struct rwk_inbox *box, struct rwk_rx *rx, int status)
{
	const struct rwk_completion c = {
		.context = rx->context,
		.flags = receive_flags(rx->flags) | (rx->flags & RWK_F_MULTI),
		.status = status,
	};

	rx_free(box, rx);
	box->complete(box->owner, &c);
}

/**
 * One child less. The buffer ends here if it was cancelled, or retired from within the completion of what now is its
 * last child; otherwise its last child's own completion has released it.
 */
static void child_done(struct rwk_inbox *box, struct rwk_rx *parent)
{
	parent->children--;
	if (parent->retired && !parent->children)
		complete_without(box, parent, parent->ended);
}

void rwk_rx_release(struct rwk_inbox *box, struct rwk_rx *rx)
{
	struct rwk_rx *parent = rx->parent;

	rx_free(box, rx);
	if (parent)
		child_done(box, parent);
}

/** Completes a receive that the queue cannot take, or that has more to it. */
static rwk_outline void complete_by_call(struct rwk_engine *e, struct rwk_rx *rx, int status)
{
	struct rwk_inbox *box = rwk_rx_inbox(e, rx);
	struct rwk_rx *parent = rx->parent;
	struct rwk_completion c = {
		.context = rx->context,
		.peer = rx->peer,
		.length = rx->length < rx->room ? rx->length : rx->room,
		.tag = rx->tag,
		.data = rx->data,
		.flags = receive_flags(rx->flags) | (rx->came & RWK_F_DATA),
		.status = status,
	};

	if (rwk_unlikely(rx->length > rx->room) && !status) {
		c.overflow = rx->length - rx->room;
		c.status = -EMSGSIZE;
	}
	e->status.counters.received++;
	e->status.counters.received_bytes += c.length;
	if (rwk_unlikely(parent)) {
		c.buffer = rx->iov[0].iov_base;
		if (parent->retired && parent->children == 1 && !parent->ended) {
			c.flags |= RWK_F_MULTI;
			rx_free(box, parent);
			parent = NULL;
		}
	}
	rwk_told_answer(rx->peer, rx->came, rx->rts_id, status);
	rx_free(box, rx);
	e->complete(e->owner, &c);
	if (rwk_unlikely(parent))
		child_done(box, parent);
}

void rwk_rx_complete(struct rwk_engine *e, struct rwk_rx *rx, int status)
{
	if (rwk_unlikely(status || rx->length > rx->room || rx->parent || rx->came & RWK_F_TOLD ||
			 !rwk_queue_takes_receive(e, rx->peer, rx->flags))) {
		complete_by_call(e, rx, status);
		return;
	}
	rwk_queue_receive(e, rwk_rx_inbox(e, rx), rx->peer, rx, rx->came & RWK_F_DATA, rx->tag, rx->data, rx->length);
}

void rwk_rx_deliver(struct rwk_rx *rx, struct rwk_unexpected *u)
{
	struct rwk_peer *p = u->peer;
	struct rwk_engine *e;
	struct rwk_rts rts;

	if (rwk_unlikely(u->state == RWK_U_GUEST)) {
		rwk_guest_deliver(rx, u);
		return;
	}
	e = p->engine;
	rx->peer = p;
	rx->length = u->length;
	rx->tag = u->arrived.tag;
	rx->data = u->data;
	rx->came = u->came;
	rx->rts_id = u->rts.id;
	switch (u->state) {
	case RWK_U_COMING:
		u->rx = rx;
		u->incoming.place.awaited = true;
		rx->reads = false;
		rwk_list_append(&p->reads, &rx->link);
		return;
	case RWK_U_WHOLE:
		rwk_rx_fill(rx, u->payload, u->length);
		rwk_credit_return_kept(u->peer, u->length);
		rwk_unexpected_free(u);
		rwk_rx_complete(e, rx, 0);
		return;
	case RWK_U_LOST:
		rwk_credit_return_kept(u->peer, u->length);
		rx->length = 0;
		rwk_rx_complete(e, rx, u->error);
		rwk_unexpected_free(u);
		return;
	case RWK_U_RTS:
		rts = u->rts;
		rwk_unexpected_free(u);
		rwk_rendezvous_read(rx, &rts);
		rwk_late_ask(p);
		return;
	case RWK_U_SELF:
		rwk_self_receive(rx, u);
		return;
	case RWK_U_GUEST:
		return;
	}
}

void rwk_unexpected_drop(struct rwk_unexpected *u)
{
	switch (u->state) {
	case RWK_U_COMING:
		u->discard = true;
		return;
	case RWK_U_GUEST:
		rwk_guest_drop(u);
		return;
	case RWK_U_RTS:
		rwk_rendezvous_drop(u);
		break;
	case RWK_U_SELF:
		rwk_self_drop(u);
		break;
	case RWK_U_WHOLE:
	case RWK_U_LOST:
		rwk_told_answer(u->peer, u->came, u->rts.id, u->error);
		rwk_credit_return_kept(u->peer, u->length);
		break;
	}
	rwk_unexpected_free(u);
}

/** Tells of what was done with a waiting message: its engine, or of a guest's the inbox. */
static void tell(struct rwk_inbox *box, const struct rwk_completion *c)
{
	struct rwk_engine *e = c->peer ? c->peer->engine : NULL;

	if (e)
		e->complete(e->owner, c);
	else
		box->complete(box->owner, c);
}

/**
 * Who is waited for, or peeked at, must be known to live: makes contact, so that the death of a peer that never sends
 * anything is noticed too. 0; -EAGAIN: no memory; or the peer's error.
 */
static int meet(struct rwk_peer *from)
{
	return from ? rwk_peer_meet(from) : 0;
}

static ssize_t peek(struct rwk_inbox *box, enum rwk_space space, struct rwk_peer *from, uint64_t tag, uint64_t ignore,
	uint32_t flags, void *context)
{
	struct rwk_arrived *a = rwk_match_find(box->matcher[space], from, tag, ignore);
	struct rwk_completion c = {.context = context, .flags = receive_flags(flags), .status = -ENOMSG, .tag = tag};
	struct rwk_unexpected *u;
	int error;

	if (!a) {
		error = meet(from);
		if (error == -EAGAIN)
			return error;
		if (error)
			c.status = error;
		tell(box, &c);
		return 0;
	}
	u = rwk_container_of(a, struct rwk_unexpected, arrived);
	c.peer = u->peer;
	c.length = u->length;
	c.tag = a->tag;
	c.data = u->data;
	c.flags |= u->came & RWK_F_DATA;
	c.status = 0;
	if (flags & (RWK_F_CLAIM | RWK_F_DISCARD))
		rwk_match_take(box->matcher[space], a);
	if (flags & RWK_F_DISCARD) {
		rwk_unexpected_drop(u);
	} else if (flags & RWK_F_CLAIM) {
		u->claimed_by = context;
		rwk_list_append(&box->claimed, &u->claimed);
	}
	tell(box, &c);
	return 0;
}

static struct rwk_unexpected *claimed(struct rwk_inbox *box, enum rwk_space space, const void *context)
{
	for (struct rwk_list *l = box->claimed.next; l != &box->claimed; l = l->next) {
		struct rwk_unexpected *u = rwk_container_of(l, struct rwk_unexpected, claimed);

		if (u->claimed_by == context && u->space == space) {
			rwk_list_remove(&u->claimed);
			return u;
		}
	}
	return NULL;
}

/** A receive into `iov`, not yet posted; NULL when out of memory. */
static struct rwk_rx *rx_new(
	struct rwk_inbox *box, const struct iovec *iov, size_t count, uint32_t flags, void *context)
{
	struct rwk_rx *rx = rwk_rx_get(box);

	if (rwk_unlikely(!rx))
		return NULL;
	rx->context = context;
	rx->flags = flags;
	memcpy(rx->iov, iov, count * sizeof(*iov));
	rx->iov_count = (uint32_t)count;
	rx->room = rwk_iov_length(iov, count);
	rx->short_room = count == 1 && !(flags & RWK_F_MULTI) ? (int64_t)rx->room : -1;
	rx->posted.stays = !!(flags & RWK_F_MULTI);
	rx->retired = false;
	rx->ended = 0;
	return rx;
}

/** CLAIM without PEEK: receives, or drops, the message that was claimed for this context. */
static ssize_t receive_claimed(struct rwk_inbox *box, enum rwk_space space, const struct iovec *iov, size_t count,
	uint32_t flags, void *context)
{
	struct rwk_completion c = {.context = context, .flags = receive_flags(flags)};
	struct rwk_unexpected *u;
	struct rwk_rx *rx;

	if (!(flags & RWK_F_DISCARD) && count > RWK_ENGINE_IOV_MAX)
		return -EINVAL; /* it stays claimed */
	u = claimed(box, space, context);
	if (!u)
		return -EINVAL;
	if (flags & RWK_F_DISCARD) {
		c.peer = u->peer;
		c.tag = u->arrived.tag;
		rwk_unexpected_drop(u);
		tell(box, &c);
		return 0;
	}
	rx = rx_new(box, iov, count, flags & ~(uint32_t)RWK_F_MULTI, context);
	if (!rx) {
		rwk_list_append(&box->claimed, &u->claimed);
		return -EAGAIN;
	}
	rwk_rx_deliver(rx, u);
	return 0;
}

void rwk_rx_end(struct rwk_inbox *box, struct rwk_rx *rx, int status)
{
	rx->ended = status;
	if (!rx->children)
		complete_without(box, rx, status);
}

/**
 * Messages that wait already go into a new RWK_F_MULTI buffer, as long as there is room; if no others can come (`error`
 * is why) it ends with that. All are taken before the first is told of: a completion may post and cancel what it likes,
 * and send to itself, and what comes by that has its place behind them.
 */
static void fill_multi(struct rwk_inbox *box, struct rwk_rx *rx, int error)
{
	struct rwk_matcher *m = box->matcher[rwk_space_of(rx->flags)];
	struct rwk_list taken, *l;
	struct rwk_unexpected *u;
	struct rwk_arrived *a;

	rwk_list_init(&taken);
	while (!rx->retired && (a = rwk_match_find(m, rx->posted.from, rx->posted.tag, rx->posted.ignore))) {
		u = rwk_container_of(a, struct rwk_unexpected, arrived);
		u->rx = rwk_rx_part(box, rx, u->length);
		if (!u->rx) {
			error = -ENOMEM; /* the buffer's: a later message would be in it before those that wait */
			break;
		}
		rwk_match_take(m, a);
		rwk_list_append(&taken, &u->claimed);
	}
	if (error && !rx->retired) {
		rwk_rx_retire(box, rx);
		rwk_rx_end(box, rx, error);
	}
	while ((l = rwk_list_pop(&taken))) {
		u = rwk_container_of(l, struct rwk_unexpected, claimed);
		rwk_rx_deliver(u->rx, u);
	}
}

/** A posted receive, and a message that waits for it. */
struct served {
	struct rwk_matcher *m;
	const struct rwk_peer *from;
	struct rwk_rx *rx;
	struct rwk_arrived *a;
};

static int find_served(struct rwk_posted *posted, void *arg)
{
	struct served *s = arg;

	if (posted->from != s->from)
		return 0;
	s->rx = rwk_container_of(posted, struct rwk_rx, posted);
	s->a = rwk_match_find(s->m, posted->from, posted->tag, posted->ignore);
	return s->a != NULL;
}

/* From the beginning for each: a completion may post and cancel what it likes. Until no message finds its receive. */
void rwk_rx_serve(struct rwk_inbox *box, enum rwk_space space, const struct rwk_peer *from)
{
	struct served s = {.m = box->matcher[space], .from = from};
	size_t kept;

	do {
		kept = rwk_match_kept_count(s.m);
		if (!rwk_match_each_posted(s.m, find_served, &s))
			return;
		if (s.rx->flags & RWK_F_MULTI) {
			fill_multi(box, s.rx, 0);
			continue;
		}
		rwk_match_unpost(s.m, &s.rx->posted);
		rwk_match_take(s.m, s.a);
		rwk_rx_deliver(s.rx, rwk_container_of(s.a, struct rwk_unexpected, arrived));
	} while (rwk_match_kept_count(s.m) < kept);
}

/** A receive of any kind. */
static rwk_outline ssize_t receive_any(struct rwk_inbox *box, struct rwk_peer *from, const struct iovec *iov,
	size_t count, uint64_t tag, uint64_t ignore, uint32_t flags, void *context)
{
	enum rwk_space space = rwk_space_of(flags);
	struct rwk_matcher *m = box->matcher[space];
	struct rwk_arrived *a;
	struct rwk_rx *rx;
	int rc;

	if (flags & (RWK_F_PEEK | RWK_F_CLAIM | RWK_F_DISCARD)) {
		if (flags & RWK_F_PEEK)
			return peek(box, space, from, tag, ignore, flags, context);
		return flags & RWK_F_CLAIM ? receive_claimed(box, space, iov, count, flags, context) : -EINVAL;
	}
	if (count > RWK_ENGINE_IOV_MAX || (flags & RWK_F_MULTI && count != 1))
		return -EINVAL;
	if (box->rx_pool.used >= box->rx_limit)
		return -EAGAIN;
	rx = rx_new(box, iov, count, flags, context);
	if (!rx)
		return -EAGAIN;
	a = flags & RWK_F_MULTI ? NULL : rwk_match_find(m, from, tag, ignore);
	if (a) {
		rwk_match_take(m, a);
		rwk_rx_deliver(rx, rwk_container_of(a, struct rwk_unexpected, arrived));
		return 0;
	}
	rc = meet(from);
	if (rc == -EAGAIN || (rc && !(flags & RWK_F_MULTI))) {
		rx_free(box, rx);
		return rc;
	}
	rx->posted.tag = tag;
	rx->posted.ignore = ignore;
	rx->posted.from = from;
	rwk_match_post(m, &rx->posted);
	if (flags & RWK_F_MULTI)
		fill_multi(box, rx, rc);
	return 0;
}

static rwk_outline ssize_t receive_any1(struct rwk_inbox *box, void *buf, size_t len, uint32_t flags,
	struct rwk_peer *from, uint64_t tag, uint64_t ignore, void *context)
{
	const struct iovec iov = {buf, len};

	return receive_any(box, from, &iov, 1, tag, ignore, flags, context);
}

ssize_t rwk_inbox_recv1(struct rwk_inbox *box, void *buf, size_t len, uint32_t flags, struct rwk_peer *from,
	uint64_t tag, uint64_t ignore, void *context)
{
	struct rwk_matcher *m = box->matcher[rwk_space_of(flags)];
	struct rwk_rx *rx;

	if (rwk_unlikely(flags & (RWK_F_PEEK | RWK_F_CLAIM | RWK_F_DISCARD | RWK_F_MULTI) || rwk_match_any_kept(m) ||
			 !box->rx_pool.free || box->rx_pool.used >= box->rx_limit ||
			 (from && (!from->channel || from->error))))
		return receive_any1(box, buf, len, flags, from, tag, ignore, context);
	rx = rwk_rx_get(box); /* there is one */
	rx->context = context;
	rx->flags = flags;
	rx->room = len;
	rx->short_room = (int64_t)len;
	rx->iov_count = 1;
	rx->iov[0] = (struct iovec){buf, len};
	rx->posted.tag = tag;
	rx->posted.ignore = ignore;
	rx->posted.from = from;
	rwk_match_post(m, &rx->posted);
	return 0;
}

ssize_t rwk_inbox_recv(struct rwk_inbox *box, enum rwk_space space, struct rwk_peer *from, const struct iovec *iov,
	size_t count, uint64_t tag, uint64_t ignore, uint32_t flags, void *context)
{
	flags |= rwk_space_flag(space);
	if (count == 1)
		return rwk_inbox_recv1(box, iov->iov_base, iov->iov_len, flags, from, tag, ignore, context);
	return receive_any(box, from, iov, count, tag, ignore, flags, context);
}

struct by_context {
	void *context;
	struct rwk_rx *rx;
};

static int find_context(struct rwk_posted *posted, void *arg)
{
	struct by_context *want = arg;
	struct rwk_rx *rx = rwk_container_of(posted, struct rwk_rx, posted);

	if (rx->context != want->context)
		return 0;
	want->rx = rx;
	return 1;
}

int rwk_tx_withdraw(struct rwk_tx *tx)
{
	struct rwk_peer *p = tx->peer;

	if (p->channel->transport->withdraw(p->channel, &tx->op))
		return -ENOENT;
	p->credit += (int64_t)tx->length + RWK_MESSAGE_COST;
	rwk_tx_complete(tx, -ECANCELED);
	return 0;
}

/** What was injected with no context is meant by none. */
static bool is_meant(const struct rwk_tx *tx, const void *context)
{
	return tx->context == context && (context || !(tx->flags & RWK_F_INJECT));
}

static int cancel_send(struct rwk_peer *p, unsigned room, const void *context)
{
	for (struct rwk_list *l = p->sends.next; l != &p->sends; l = l->next) {
		struct rwk_tx *tx = rwk_container_of(l, struct rwk_tx, link);

		if (tx->state == RWK_TX_EAGER && rwk_room_of(tx->flags) == room && is_meant(tx, context))
			return rwk_tx_withdraw(tx);
	}
	return -ENOENT;
}

int rwk_inbox_cancel(struct rwk_inbox *box, void *context)
{
	struct by_context want = {.context = context};

	for (enum rwk_space s = 0; s < RWK_SPACES; s++) {
		if (rwk_match_each_posted(box->matcher[s], find_context, &want)) {
			rwk_rx_retire(box, want.rx);
			rwk_rx_end(box, want.rx, -ECANCELED);
			return 0;
		}
	}
	return -ENOENT;
}

static int take_posted(struct rwk_posted *posted, void *found)
{
	rwk_list_append(found, &rwk_container_of(posted, struct rwk_rx, posted)->link);
	return 0;
}

void rwk_inbox_cancel_all(struct rwk_inbox *box)
{
	struct rwk_list found, *l;

	rwk_list_init(&found);
	for (enum rwk_space s = 0; s < RWK_SPACES; s++)
		rwk_match_each_posted(box->matcher[s], take_posted, &found);
	while ((l = rwk_list_pop(&found))) {
		struct rwk_rx *rx = rwk_container_of(l, struct rwk_rx, link);

		rwk_rx_retire(box, rx);
		rwk_rx_end(box, rx, -ECANCELED);
	}
}

bool rwk_inbox_receives(const struct rwk_inbox *box)
{
	return box->rx_pool.used;
}

int rwk_engine_cancel_send(struct rwk_engine *e, unsigned room, const void *context)
{
	for (struct rwk_peer *p = e->all_peers; p; p = p->next) {
		if (!cancel_send(p, room, context))
			return 0;
	}
	return -ENOENT;
}

int rwk_engine_cancel(struct rwk_engine *e, void *context)
{
	if (!rwk_inbox_is_shared(e) && !rwk_inbox_cancel(e->inbox, context))
		return 0;
	return rwk_engine_cancel_send(e, 0, context);
}

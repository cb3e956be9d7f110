/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a message on a channel to a completed receive: the transport's upcalls. What comes from a peer is not trusted:
 * kinds, lengths and ids are checked, and what makes no sense is counted out, never believed.
 *
 * The hot path is rwk_inbound_message with an eager kind and a posted receive: match, one copy, complete.
 */
#include "engine/internal.h"

#include <inttypes.h>

void rwk_inbound_no_memory(struct rwk_peer *p)
{
	if (!p->self)
		rwk_peer_give_up(p, -ENOMEM, "out of memory for a message of its");
}

struct rwk_rx *rwk_inbound_matched(
	struct rwk_engine *e, struct rwk_peer *p, struct rwk_rx *rx, const struct rwk_envelope *env, size_t len)
{
	if (rx->flags & RWK_F_MULTI) {
		rx = rwk_rx_part(rwk_rx_inbox(e, rx), rx, len);
		if (!rx) {
			rwk_inbound_no_memory(p);
			return NULL;
		}
	}
	rwk_rx_match(rx, p, env, len);
	return rx;
}

struct rwk_rx *rwk_inbound_match(struct rwk_engine *e, struct rwk_peer *p, unsigned room, enum rwk_space space,
	const struct rwk_envelope *env, size_t len)
{
	struct rwk_posted *posted = rwk_match_message(e->rooms[room]->matcher[space], p, env->tag);

	if (posted)
		return rwk_inbound_matched(e, p, rwk_container_of(posted, struct rwk_rx, posted), env, len);
	return rwk_unlikely(e->foreign != NULL) ? rwk_foreign_match(e, p, space, env, len) : NULL;
}

struct rwk_unexpected *rwk_unexpected_new(
	struct rwk_peer *p, unsigned room, enum rwk_space space, const struct rwk_envelope *env, size_t len)
{
	struct rwk_engine *e = p->engine;
	struct rwk_unexpected *u = rwk_pool_get(&e->unexpected_pool);

	if (!u) {
		rwk_foreign_not_kept(e);
		return NULL;
	}
	u->arrived.tag = env->tag;
	u->arrived.from = p;
	u->peer = p;
	u->length = len;
	u->data = env->data;
	u->came = rwk_came(env);
	u->rts.id = env->small;
	u->room = room;
	u->space = space;
	u->error = 0;
	u->rx = NULL;
	u->discard = false;
	u->claimed_by = NULL;
	u->announced = false;
	u->tx = NULL;
	u->payload = NULL;
	rwk_list_init(&u->claimed);
	rwk_list_init(&u->late);
	return u;
}

int rwk_unexpected_room(struct rwk_unexpected *u)
{
	struct rwk_engine_counters *c = &u->peer->engine->status.counters;

	u->payload = u->length <= RWK_BLOCK ? rwk_pool_get(&u->peer->engine->block_pool)
					    : rwk_spares_get(&u->peer->engine->spares, u->length);
	if (!u->payload)
		return -ENOMEM;
	c->unexpected_bytes_now += u->length;
	if (c->unexpected_bytes_now > c->unexpected_bytes_peak)
		c->unexpected_bytes_peak = c->unexpected_bytes_now;
	return 0;
}

void rwk_unexpected_keep(struct rwk_unexpected *u)
{
	struct rwk_engine *e = u->peer->engine;

	e->status.counters.unexpected++;
	if (rwk_unlikely(e->foreign != NULL))
		rwk_foreign_keep(u);
	else
		rwk_match_keep(e->rooms[u->room]->matcher[u->space], &u->arrived);
}

void rwk_unexpected_free(struct rwk_unexpected *u)
{
	if (u->payload) {
		u->peer->engine->status.counters.unexpected_bytes_now -= u->length;
		if (u->length <= RWK_BLOCK)
			rwk_pool_put(&u->peer->engine->block_pool, u->payload);
		else
			rwk_spares_put(&u->peer->engine->spares, u->payload);
	}
	rwk_list_remove(&u->claimed);
	rwk_list_remove(&u->late);
	rwk_pool_put(&u->peer->engine->unexpected_pool, u);
}

static bool is_eager(const struct rwk_envelope *env)
{
	return env->kind < RWK_SPACES || (env->kind >= RWK_ROOM_TAGGED && env->kind <= RWK_TOLD_PLAIN);
}

/** The space of an eager message. */
static enum rwk_space space_of(const struct rwk_envelope *env)
{
	return env->kind == RWK_EAGER_PLAIN || env->kind == RWK_ROOM_PLAIN || env->kind == RWK_TOLD_PLAIN ? RWK_PLAIN
													  : RWK_TAGGED;
}

/** The room of one. */
static unsigned room_of(const struct rwk_envelope *env)
{
	return env->kind == RWK_ROOM_TAGGED || env->kind == RWK_ROOM_PLAIN ? env->small : 0;
}

/** One that waits; NULL: there is no memory. */
static struct rwk_unexpected *new_eager(struct rwk_peer *p, const struct rwk_envelope *env, size_t len)
{
	struct rwk_unexpected *u = rwk_unexpected_new(p, room_of(env), space_of(env), env, len);

	if (!u)
		rwk_inbound_no_memory(p);
	return u;
}

/** A message that waits is here, whole, or lost: tells its sender, if that is what he wants to know. */
static void tell_of_arrival(struct rwk_unexpected *u)
{
	rwk_told_answer(u->peer, u->came & RWK_F_DELIVERED, u->rts.id, u->error);
	u->came &= ~(uint32_t)RWK_F_DELIVERED;
}

static rwk_outline void keep_eager(struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_unexpected *u = new_eager(p, env, len);

	if (!u)
		return;
	u->state = RWK_U_WHOLE;
	u->error = rwk_unexpected_room(u);
	if (u->error)
		u->state = RWK_U_LOST;
	else
		rwk_copy(u->payload, payload, len);
	tell_of_arrival(u);
	rwk_unexpected_keep(u);
}

static void rts(struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	enum rwk_space space = env->kind - RWK_SPACES;
	unsigned room = env->small >> 2;
	struct rwk_unexpected *u;
	struct rwk_rts body;
	struct rwk_rx *rx;
	uint64_t length;

	if (len != sizeof(body)) {
		rwk_info("an RTS of %zu bytes was dropped", len);
		return;
	}
	memcpy(&body, payload, sizeof(body));
	length = rwk_rts_length(&body);
	if (!rwk_room_exists(p->engine, room)) {
		rwk_info("a message of %" PRIu64 " bytes for receive context %u was refused", length, room);
		rwk_send_control(p, RWK_FIN, body.id, EINVAL);
		return;
	}
	rx = rwk_inbound_match(p->engine, p, room, space, env, length);
	if (rx) {
		if (env->small & RWK_RTS_SHORT)
			rwk_credit_more(p, length);
		rwk_rendezvous_read(rx, &body);
		return;
	}
	u = rwk_unexpected_new(p, room, space, env, length);
	if (!u) {
		rwk_warn("out of memory: a message of %" PRIu64 " bytes was refused", length);
		rwk_send_control(p, RWK_FIN, body.id, ENOMEM);
		return;
	}
	u->state = RWK_U_RTS;
	u->rts = body;
	if (env->small & RWK_RTS_LATE)
		rwk_list_append(&p->late_in, &u->late);
	rwk_unexpected_keep(u);
}

/** An eager message for a room that is not there. */
static void no_room(struct rwk_peer *p, const struct rwk_envelope *env, size_t len)
{
	rwk_info("a message of %zu bytes for receive context %u was dropped", len, env->small);
	rwk_credit_return(p, len);
}

/** A message that has its receive, whatever the two are like; or none (NULL). */
static void give(struct rwk_engine *e, struct rwk_peer *p, struct rwk_rx *rx, const struct rwk_envelope *env,
	const void *payload, size_t len)
{
	if (!rx) {
		keep_eager(p, env, payload, len);
		return;
	}
	rwk_rx_fill(rx, payload, len);
	rwk_credit_return(p, len);
	rwk_rx_complete(e, rx, 0);
}

/** An eager message for a room that is named, or whose sender is to be told. */
static void other_eager(struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_engine *e = p->engine;
	unsigned room = room_of(env);

	if (rwk_room_exists(e, room))
		give(e, p, rwk_inbound_match(e, p, room, space_of(env), env, len), env, payload, len);
	else
		no_room(p, env, len);
}

static rwk_outline void other_message(
	struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	switch (env->kind) {
	case RWK_RTS_TAGGED:
	case RWK_RTS_PLAIN:
		rts(p, env, payload, len);
		break;
	case RWK_ROOM_TAGGED:
	case RWK_ROOM_PLAIN:
	case RWK_TOLD_TAGGED:
	case RWK_TOLD_PLAIN:
		other_eager(p, env, payload, len);
		break;
	case RWK_FIN:
	case RWK_DELIVERED:
		rwk_rendezvous_fin(p, env);
		break;
	case RWK_CREDIT:
		rwk_late_credit(p, env);
		break;
	case RWK_LATE:
		rwk_late_message(p, env, payload, len);
		break;
	default:
		if (rwk_is_rma(env->kind))
			rwk_rma_message(p, env, payload, len);
		else
			rwk_info("a message of unknown kind %u was dropped", env->kind);
	}
}

/** A message for a receive that has been found. */
static rwk_outline void take(struct rwk_engine *e, struct rwk_peer *p, struct rwk_rx *rx,
	const struct rwk_envelope *env, const void *payload, size_t len)
{
	give(e, p, rwk_inbound_matched(e, p, rx, env, len), env, payload, len);
}

/** A message for which nothing is posted. */
static rwk_outline void not_posted(struct rwk_engine *e, struct rwk_peer *p, const struct rwk_envelope *env,
	const void *payload, size_t len)
{
	struct rwk_rx *rx = NULL;

	if (rwk_unlikely(e->foreign != NULL))
		rx = rwk_foreign_match(e, p, env->kind, env, len);
	give(e, p, rx, env, payload, len);
}

/** Has a message of this length for this receive the short way: one buffer, room, nobody to be told but the queue? */
static inline bool is_short(const struct rwk_engine *e, const struct rwk_peer *p, const struct rwk_rx *rx, size_t len)
{
	return rwk_likely((int64_t)len <= rx->short_room && rwk_queue_takes_receive(e, p, rx->flags));
}

/** The short way's end: the payload is in place. */
static inline void complete_short(
	struct rwk_engine *e, struct rwk_peer *p, struct rwk_rx *rx, const struct rwk_envelope *env, size_t len)
{
	rwk_queue_receive(e, e->inbox, p, rx, rwk_data_flag(env), env->tag, env->data, len);
	rwk_credit_return(p, len);
}

/** A message that is not the shortest, or not for the first receive. */
static rwk_outline void message_any(
	struct rwk_engine *e, struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_posted *posted;
	struct rwk_rx *rx;

	if (rwk_unlikely(env->kind >= RWK_SPACES)) {
		other_message(p, env, payload, len);
		return;
	}
	posted = rwk_match_message(e->matcher[env->kind], p, env->tag);
	if (!posted) {
		not_posted(e, p, env, payload, len);
		return;
	}
	rx = rwk_container_of(posted, struct rwk_rx, posted);
	if (rwk_likely(is_short(e, p, rx, len))) {
		if (len) /* a buffer of no length may be NULL */
			rwk_copy(rx->iov[0].iov_base, payload, len);
		complete_short(e, p, rx, env, len);
	} else {
		take(e, p, rx, env, payload, len);
	}
}

void rwk_inbound_message(
	void *engine, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_engine *e = engine;
	struct rwk_peer *p = ch->peer;
	struct rwk_posted *posted;
	struct rwk_rx *rx;

	/* All that a call in the middle would need saved on the stack goes another way. */
	if (rwk_unlikely(env->kind >= RWK_SPACES || len > RWK_COPY_SHORT_MAX)) {
		message_any(e, p, env, payload, len);
		return;
	}
	posted = rwk_match_first(e->matcher[env->kind], p, env->tag);
	if (rwk_unlikely(!posted)) {
		message_any(e, p, env, payload, len);
		return;
	}
	rx = rwk_container_of(posted, struct rwk_rx, posted);
	if (rwk_unlikely(!is_short(e, p, rx, len))) {
		take(e, p, rx, env, payload, len);
		return;
	}
	rwk_copy_short(rx->iov[0].iov_base, payload, len);
	complete_short(e, p, rx, env, len);
}

/** The pieces of a message that waits have a place. */
static struct rwk_place *begin_coming(struct rwk_unexpected *u)
{
	u->state = RWK_U_COMING;
	u->iov = (struct iovec){u->payload, u->error ? 0 : u->length};
	u->incoming = (struct rwk_incoming){.place = {.iov = &u->iov, .iov_count = 1}, .unexpected = u};
	return &u->incoming.place;
}

struct rwk_place *rwk_inbound_begin(void *engine, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	struct rwk_engine *e = engine;
	struct rwk_peer *p = ch->peer;
	struct rwk_unexpected *u;
	struct rwk_rx *rx;

	e->nowhere = (struct rwk_incoming){0};
	if (rwk_is_rma(env->kind)) {
		struct rwk_place *place = rwk_rma_begin(p, env, len);

		return place ? place : &e->nowhere.place;
	}
	if (env->kind == RWK_LATE) {
		u = rwk_late_begin(p, env, len);
		return u ? begin_coming(u) : &e->nowhere.place;
	}
	if (!is_eager(env)) {
		rwk_info("a message of kind %u came in pieces and was dropped", env->kind);
		return &e->nowhere.place;
	}
	if (!rwk_room_exists(e, room_of(env))) {
		no_room(p, env, len);
		return &e->nowhere.place;
	}
	rx = rwk_inbound_match(e, p, room_of(env), space_of(env), env, len);
	if (rx) {
		rx->incoming = (struct rwk_incoming){
			.place = {.iov = rx->iov, .iov_count = rx->iov_count, .awaited = true}, .rx = rx};
		rx->reads = false;
		rwk_list_append(&p->reads, &rx->link);
		return &rx->incoming.place;
	}
	u = new_eager(p, env, len);
	if (!u)
		return &e->nowhere.place;
	u->error = rwk_unexpected_room(u);
	begin_coming(u);
	rwk_unexpected_keep(u);
	return &u->incoming.place;
}

/** All pieces of a message that waits, or waited, are here. */
static void unexpected_end(struct rwk_unexpected *u, int status)
{
	struct rwk_rx *rx = u->rx;

	if (status && !u->error)
		u->error = status;
	u->state = u->error ? RWK_U_LOST : RWK_U_WHOLE;
	tell_of_arrival(u);
	if (u->announced)
		rwk_rendezvous_drop(u);
	if (u->discard) {
		rwk_told_answer(u->peer, u->came, u->rts.id, u->error);
		rwk_credit_return_kept(u->peer, u->length);
		rwk_unexpected_free(u);
	} else if (rx) {
		rwk_list_remove(&rx->link);
		rwk_rx_deliver(rx, u);
	}
}

void rwk_inbound_end(void *engine, struct rwk_channel *ch, struct rwk_place *place, int status)
{
	struct rwk_incoming *in = rwk_container_of(place, struct rwk_incoming, place);
	struct rwk_peer *p = ch->peer;

	status = rwk_peer_status(p, status);
	if (in->unexpected) {
		unexpected_end(in->unexpected, status);
	} else if (in->rx) {
		rwk_list_remove(&in->rx->link);
		rwk_credit_return(p, in->rx->length);
		rwk_rx_complete(engine, in->rx, status);
	} else if (in->rma) {
		rwk_rma_end(p, in->rma, status);
	}
}

static void message_unless_ended(
	void *engine, struct rwk_channel *ch, const struct rwk_envelope *env, const void *payload, size_t len)
{
	const struct rwk_peer *p = ch->peer;

	if (!p->error)
		rwk_inbound_message(engine, ch, env, payload, len);
}

static struct rwk_place *begin_unless_ended(
	void *engine, struct rwk_channel *ch, const struct rwk_envelope *env, size_t len)
{
	const struct rwk_peer *p = ch->peer;
	struct rwk_engine *e = engine;

	if (!p->error)
		return rwk_inbound_begin(engine, ch, env, len);
	e->nowhere = (struct rwk_incoming){0};
	return &e->nowhere.place;
}

void rwk_inbound_guard(struct rwk_engine *e, bool ended)
{
	e->client.message = ended ? message_unless_ended : rwk_inbound_message;
	e->client.begin = ended ? begin_unless_ended : rwk_inbound_begin;
}

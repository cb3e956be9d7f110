/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/internal.h"

void rwk_engine_set_foreign(struct rwk_engine *e, const struct rwk_foreign *foreign)
{
	e->foreign = foreign;
}

/** Makes a receive of what the owner has given. */
static void fill(struct rwk_rx *rx, enum rwk_space space, const struct rwk_given *g)
{
	rx->context = g->handle;
	rx->flags = rwk_space_flag(space) | g->flags;
	memcpy(rx->iov, g->iov, g->count * sizeof(*g->iov));
	rx->iov_count = (uint32_t)g->count;
	rx->room = rwk_iov_length(g->iov, g->count);
	rx->short_room = -1;
	rx->retired = false;
	rx->ended = 0;
}

/** Asks the owner: the receive, or NULL and *handle set, NULL if the message is refused. */
static struct rwk_rx *ask(struct rwk_engine *e, const struct rwk_offer *m, void **handle)
{
	struct rwk_rx *rx = rwk_rx_get(e->inbox); /* first: what the owner has given cannot be given back */
	struct rwk_given g = {0};
	int rc = rx ? e->foreign->offer(e->attr.owner, m, &g) : -ENOMEM;

	*handle = NULL;
	if (!rc) {
		fill(rx, m->space, &g);
		return rx;
	}
	if (rx)
		rwk_pool_put(&e->inbox->rx_pool, rx);
	if (rc == -ENOENT)
		*handle = g.handle;
	else if (!m->from->self)
		rwk_warn("a message of %zu bytes is lost: who owns the receives cannot take it: %s", m->length,
			strerror(-rc));
	else
		rwk_info("who owns the receives cannot take a message of ours: %s", strerror(-rc));
	return NULL;
}

rwk_noinline struct rwk_rx *rwk_foreign_match(
	struct rwk_engine *e, struct rwk_peer *p, enum rwk_space space, const struct rwk_envelope *env, size_t len)
{
	const struct rwk_offer m = {
		.space = space,
		.from = p,
		.length = len,
		.tag = env->tag,
		.data = env->data,
		.has_data = rwk_data_flag(env),
	};
	struct rwk_rx *rx = ask(e, &m, &e->offered);

	if (!rx)
		return NULL;
	rwk_rx_match(rx, p, env, len);
	return rx;
}

/** The message waits with the owner from now on; false: it cannot, or was refused before (no handle). */
static bool hold(struct rwk_unexpected *u, void *handle)
{
	struct rwk_engine *e = u->peer->engine;

	if (!handle || e->foreign->hold(e->attr.owner, handle, u))
		return false;
	rwk_list_append(&e->held, &u->claimed);
	return true;
}

rwk_noinline void rwk_foreign_keep(struct rwk_unexpected *u)
{
	struct rwk_engine *e = u->peer->engine;
	void *handle = e->offered;

	if (u->peer->self) {
		rwk_list_append(&e->to_offer, &u->claimed);
		e->due = true;
		return;
	}
	e->offered = NULL;
	if (!hold(u, handle)) { /* it is lost, and its peer with it */
		rwk_inbound_no_memory(u->peer);
		rwk_unexpected_drop(u);
	}
}

void rwk_foreign_not_kept(struct rwk_engine *e)
{
	if (e->offered)
		e->foreign->forget(e->attr.owner, e->offered);
	e->offered = NULL;
}

/** Offers a message to oneself; false: it is refused. */
static bool offer(struct rwk_engine *e, struct rwk_unexpected *u)
{
	struct rwk_offer m;
	struct rwk_rx *rx;
	void *handle;

	rwk_held_offer(u, &m);
	rx = ask(e, &m, &handle);
	if (!rx)
		return hold(u, handle);
	rwk_rx_deliver(rx, u);
	return true;
}

/* What is refused ends its send; if that is complete, the message stays the first to be offered. */
void rwk_foreign_self(struct rwk_engine *e)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(&e->to_offer))) {
		struct rwk_unexpected *u = rwk_container_of(l, struct rwk_unexpected, claimed);

		if (offer(e, u))
			continue;
		if (u->state != RWK_U_SELF) {
			rwk_list_append(e->to_offer.next, &u->claimed);
			e->due = true;
			return;
		}
		rwk_self_refuse(u);
	}
}

void rwk_foreign_leave(struct rwk_engine *e)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(&e->to_offer)) || (l = rwk_list_pop(&e->held)))
		rwk_unexpected_free(rwk_container_of(l, struct rwk_unexpected, claimed));
}

int rwk_engine_start(struct rwk_unexpected *u, const struct rwk_given *g)
{
	struct rwk_rx *rx;

	if (g->count > RWK_ENGINE_IOV_MAX)
		return -EINVAL;
	rx = rwk_rx_get(u->peer->engine->inbox);
	if (!rx)
		return -ENOMEM;
	fill(rx, u->space, g);
	rwk_list_remove(&u->claimed);
	rwk_rx_deliver(rx, u);
	return 0;
}

void rwk_engine_drop(struct rwk_unexpected *u)
{
	rwk_list_remove(&u->claimed);
	rwk_unexpected_drop(u);
}

bool rwk_engine_holds(const struct rwk_engine *e, const struct rwk_unexpected *u)
{
	for (const struct rwk_list *l = e->held.next; l != &e->held; l = l->next) {
		if (!u || l == &u->claimed)
			return true;
	}
	return false;
}

void rwk_held_offer(const struct rwk_unexpected *u, struct rwk_offer *m)
{
	*m = (struct rwk_offer){
		.space = u->space,
		.from = u->peer,
		.length = u->length,
		.tag = u->arrived.tag,
		.data = u->data,
		.has_data = u->came & RWK_F_DATA,
	};
}

void *rwk_held_owner(const struct rwk_unexpected *u)
{
	return u->peer->engine->attr.owner;
}

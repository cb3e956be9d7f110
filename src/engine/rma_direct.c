/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct requests: long reads and writes that the service carries out by itself, without the target's engine.
 *
 *   import  a peer's region as the initiator knows it: asked for with the first long request that names its key, which
 *           goes by messages still, as do all until the answer
 *   export  a region of ours that a peer has asked for: exposed to its channel until the region or the peer goes
 *
 * What permission and range do not allow goes by messages as well: there it is refused as everything is. The target is
 * told of an access afterwards only where somebody there wants to know, or the write brings data.
 */
#include "engine/rma_state.h"

#include <stdlib.h>

/** A region of the peer's. */
struct rwk_rma_import {
	uint64_t key;
	enum { ASKED, READY, NEVER } state;
	unsigned waited; /* requests since it was asked for */
	struct rwk_rkey rkey;
	uint64_t base, length;
	unsigned access;
	uint32_t place; /* how far behind a page it begins there, bytes */
	unsigned tell;  /* RWK_REGION_*: of these somebody there wants to know */
	UT_hash_handle by_key;
};

/** Who has no memory for an answer, or an import that it was for, does not say so: so many requests later we ask again.
 */
#define ASK_AGAIN 1000u

/** A region of ours that a peer has asked for. */
struct rwk_rma_export {
	struct rwk_list in_region; /* rwk_region.exports */
	UT_hash_handle by_region;  /* rwk_rma_state.exports */
	struct rwk_region *region;
	struct rwk_rma_state *state;
	int status; /* 0: exposed */
	struct rwk_rkey rkey;
};

/**
 * Payload of RWK_RMA_EXPORT. Accesses are to be told of if `tell` is not 0, but for those of `quiet` (RWK_REGION_*),
 * which older releases leave 0, and do not look at.
 */
struct answer {
	struct rwk_rkey rkey;
	uint64_t base, length;
	uint32_t access, tell, place, quiet;
};

/** Payload of RWK_RMA_ACCESSED: what has been done, range by range. */
struct account {
	uint32_t access, ranges;
	struct rwk_remote range[RWK_ENGINE_IOV_MAX];
};

/*
 * The initiator.
 */

static struct rwk_rma_import *find(struct rwk_rma_state *s, uint64_t key)
{
	struct rwk_rma_import *i = s->import;

	if (rwk_likely(i && i->key == key))
		return i;
	HASH_FIND(by_key, s->imports, &key, sizeof(key), i);
	if (i)
		s->import = i;
	return i;
}

static void forget(struct rwk_rma_state *s, struct rwk_rma_import *i)
{
	if (s->import == i)
		s->import = NULL;
	HASH_DELETE(by_key, s->imports, i);
	free(i);
}

static void ask(struct rwk_rma_state *s, struct rwk_rma_import *i)
{
	const struct rwk_envelope env = {.kind = RWK_RMA_IMPORT, .tag = i->key};

	i->state = ASKED;
	i->waited = 0;
	if (rwk_rma_put(s, &env, NULL, 0, 0, NULL, false))
		forget(s, i); /* the next one asks again */
}

static void ask_for(struct rwk_rma_state *s, uint64_t key)
{
	struct rwk_rma_import *i = calloc(1, sizeof(*i));

	if (!i)
		return; /* likewise */
	i->key = key;
	HASH_ADD(by_key, s->imports, key, sizeof(i->key), i);
	if (!rwk_keyed_is_in(&i->by_key)) {
		free(i);
		return;
	}
	ask(s, i);
}

void rwk_rma_exported(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_rma_import *i = find(s, env->tag);
	struct answer a;

	if (!i || i->state != ASKED) {
		rwk_info("a region that was not asked for was dropped");
		return;
	}
	if (env->small == EACCES || env->small == ENOMEM) {
		forget(s, i);
		return;
	}
	i->state = NEVER;
	if (env->small || len != sizeof(a))
		return;
	memcpy(&a, payload, sizeof(a));
	i->rkey = a.rkey;
	i->base = a.base;
	i->length = a.length;
	i->access = a.access;
	i->place = a.place;
	i->tell = a.tell ? ~a.quiet : 0;
	i->state = READY;
}

void rwk_rma_revoked(struct rwk_rma_state *s, uint64_t key)
{
	struct rwk_rma_import *i = find(s, key);

	if (i)
		forget(s, i);
}

static bool grants(const struct rwk_rma_import *i, const struct rwk_remote *range, unsigned access)
{
	uint64_t at = range->address - i->base;

	return i->state == READY && !(access & ~i->access) && at <= i->length && range->length <= i->length - at;
}

/** Whether the import has all of a range; asks for it if it is not known. */
static bool has(struct rwk_rma_state *s, const struct rwk_remote *range, unsigned access)
{
	struct rwk_rma_import *i = find(s, range->key);

	if (!i) {
		ask_for(s, range->key);
		return false;
	}
	if (i->state == ASKED) {
		if (++i->waited == ASK_AGAIN)
			ask(s, i);
		return false;
	}
	return grants(i, range, access);
}

/** Bytes from which on the service may be asked. */
static size_t least(const struct rwk_channel *ch, bool write)
{
	return write && ch->direct_min < ch->direct_write_min ? ch->direct_write_min : ch->direct_min;
}

/**
 * All ranges long enough, and reached by an import each? A write of several goes by messages: they are checked before
 * the first is touched, while the service may find a region gone, or its key outdated, when others have been written.
 */
static bool can(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	const struct rwk_channel *ch = s->peer->channel;
	size_t from = least(ch, r->kind == RWK_RMA_WRITE);

	if (!ch->direct_min || r->kind == RWK_RMA_ATOMIC || r->copy || r->flags & RWK_F_FENCE || s->peer->fenced)
		return false;
	if (r->kind == RWK_RMA_WRITE && r->ranges > 1)
		return false;
	for (uint32_t i = 0; i < r->ranges; i++) {
		bool long_enough = r->remote[i].length >= from;

		/* Where only messages wait for the peer a short one asks, too, lest the first long one waits. */
		if ((!long_enough && ch->direct != RWK_DIRECT_ALONE) || !has(s, &r->remote[i], r->access) ||
			!long_enough)
			return false;
		r->tell |= !!(find(s, r->remote[i].key)->tell & r->access);
	}
	return true;
}

/** The service has done its part, or has not and messages have to. */
static void over(struct rwk_rma_request *r)
{
	struct rwk_rma_state *s = r->state;
	int status = r->status;

	r->direct = false;
	if (r->chosen)
		rwk_rma_measure_end(r);
	for (uint32_t i = 0; i < r->ranges && status == -EACCES; i++)
		rwk_rma_revoked(s, r->remote[i].key); /* it may be an old key; messages know for sure */
	if (status == -EOPNOTSUPP || status == -EACCES) {
		r->status = 0;
		rwk_rma_start(s, r);
	} else if (!status && (r->tell || r->flags & RWK_F_DATA)) {
		r->accessed = true;
		rwk_rma_start(s, r);
	} else {
		rwk_rma_finish(r, rwk_peer_status(s->peer, status));
		rwk_rma_pump(s); /* a fenced one may have waited for it */
	}
}

static void direct_done(struct rwk_op *op, int status)
{
	struct rwk_rma_piece *piece = rwk_container_of(op, struct rwk_rma_piece, op);
	struct rwk_rma_request *r = piece->request;

	rwk_rma_piece_free(piece);
	if (status && !r->status)
		r->status = status;
	if (!--r->posted)
		over(r);
}

/** Hands one range to the service: as transport.h's post. */
static int post(struct rwk_rma_request *r, const struct rwk_remote *range, size_t at)
{
	struct rwk_rma_state *s = r->state;
	const struct rwk_rma_import *i = find(s, range->key);
	struct rwk_rma_piece *piece = rwk_pool_get(&s->peer->engine->rma_pieces);
	size_t len = range->length;
	int rc;

	if (!piece)
		return -EOPNOTSUPP;
	piece->state = s;
	piece->request = r;
	piece->bytes = NULL;
	piece->op.type = r->kind == RWK_RMA_WRITE ? RWK_OP_WRITE : RWK_OP_READ;
	/* Or others are under way: it may be that their copies are done, and the target has not said that it knows. */
	piece->op.behind = r->flags & RWK_F_BEHIND || s->requests.next != &r->link;
	piece->op.iov = piece->iov;
	piece->op.iov_count = rwk_iov_slice(r->iov, r->iov_count, at, &len, piece->iov, RWK_ENGINE_IOV_MAX);
	piece->op.length = len;
	piece->op.rkey = i->rkey;
	piece->op.offset = range->address - i->base;
	piece->op.done = direct_done;
	rc = s->peer->channel->transport->post(s->peer->channel, &piece->op);
	if (rc)
		rwk_rma_piece_free(piece);
	return rc;
}

/** Whether the copies of one that goes directly may be slow for where the bytes lie. */
static bool collides(const struct rwk_rma_import *i, const struct rwk_remote *range, const char *here, bool write)
{
	const char *there = (const char *)(uintptr_t)(range->address - i->base + i->place);

	return write ? rwk_copy_collides(there, here) : rwk_copy_collides(here, there);
}

static struct rwk_rma_choice *choice_for(struct rwk_rma_choices *all, bool write, bool collides, size_t len)
{
	unsigned length = len < 64u << 10 ? 0 : len < 1u << 20 ? 1 : 2;

	return &all->of[write][collides][length];
}

static struct rwk_rma_choice *choice_of(const struct rwk_rma_request *r)
{
	return choice_for(r->state->choices, r->kind == RWK_RMA_WRITE, r->collides, r->length);
}

void rwk_rma_measure_end(struct rwk_rma_request *r)
{
	struct rwk_rma_choice *c = choice_of(r);

	r->chosen = false;
	rwk_rma_way_ended(c, r->way, r->length, rwk_rma_way_ends(c, r->way, r->length) ? rwk_clock_now() : 0);
}

/** Another comes: how long the last one took is known. */
static void measure_last(struct rwk_rma_choice *c, bool behind)
{
	if (c->alone)
		rwk_rma_next(c, behind, rwk_clock_now());
}

/** By its way if both are tried, and it is measured then. */
static bool is_chosen(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	struct rwk_rma_choice *c;

	if (s->peer->channel->direct != RWK_DIRECT_TRIED)
		return true;
	if (!s->choices)
		s->choices = calloc(1, sizeof(*s->choices));
	if (!s->choices)
		return true;
	r->chosen = true;
	r->collides = collides(find(s, r->remote->key), r->remote, r->iov->iov_base, r->kind == RWK_RMA_WRITE);
	c = choice_of(r);
	measure_last(c, rwk_rma_is_behind(s, r->flags));
	r->way = rwk_rma_choose(c);
	rwk_rma_way_taken(c, r->way, rwk_rma_way_begins(c, r->way) ? rwk_clock_now() : 0);
	return r->way == RWK_DIRECTLY;
}

/** The way of one that could go now; NULL: it has to be made a request. */
static struct rwk_rma_choice *choice_now(
	struct rwk_rma_state *s, const struct rwk_rma_import *i, const struct rwk_rma_args *a, size_t len, bool write)
{
	unsigned access = write ? RWK_REGION_WRITE : RWK_REGION_READ;
	struct rwk_rma_choice *c;

	if (!i || !grants(i, a->remote, access) || i->tell & access || !s->choices)
		return NULL;
	c = choice_for(s->choices, write, collides(i, a->remote, a->iov->iov_base, write), len);
	measure_last(c, rwk_rma_is_behind(s, a->flags));
	return rwk_rma_goes_directly(c) ? c : NULL;
}

bool rwk_rma_now(const struct rwk_rma_args *a, size_t len, bool write)
{
	struct rwk_rma_state *s = a->peer->rma;
	struct rwk_channel *ch = a->peer->channel;
	const struct rwk_rma_import *i = find(s, a->remote->key);
	struct rwk_rma_choice *c = choice_now(s, i, a, len, write);
	struct rwk_direct_access it;
	uint64_t begun;

	if (!c)
		return false;
	begun = rwk_rma_is_measured(c) ? rwk_clock_now() : 0;
	it = (struct rwk_direct_access){
		.type = write ? RWK_OP_WRITE : RWK_OP_READ,
		.here = a->iov->iov_base,
		.length = len,
		.rkey = &i->rkey,
		.offset = a->remote->address - i->base,
	};
	if (ch->transport->access(ch, &it))
		return false;
	rwk_rma_went_directly(c, len, begun, begun ? rwk_clock_now() : 0);
	rwk_rma_complete(a->peer->engine, a->flags | RWK_F_RMA | (write ? RWK_F_WRITE : RWK_F_READ), a->context, 0);
	return true;
}

bool rwk_rma_direct(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	size_t at = 0;

	if (!can(s, r) || !is_chosen(s, r))
		return false;
	r->direct = true;
	rwk_list_append(&s->requests, &r->link);
	for (uint32_t i = 0; i < r->ranges && !r->status; i++) {
		int rc = post(r, &r->remote[i], at);

		if (rc < 0)
			r->status = rc;
		r->posted += !rc;
		at += r->remote[i].length;
	}
	if (!r->posted)
		over(r);
	return true;
}

int rwk_rma_tell_accessed(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	const struct rwk_envelope env = {.kind = RWK_RMA_ACCESSED,
		.flags = RWK_ENV_DATA | RWK_RMA_END,
		.small = !!(r->flags & RWK_F_DATA),
		.tag = rwk_to_room_of(r->flags),
		.data = r->data};
	struct account a = {.access = r->access, .ranges = r->ranges};
	size_t len = offsetof(struct account, range) + r->ranges * sizeof(*a.range);

	memcpy(a.range, r->remote, r->ranges * sizeof(*a.range));
	return rwk_rma_put(s, &env, &(struct iovec){&a, len}, 1, len, r, true);
}

/*
 * The target.
 */

static void export_free(struct rwk_rma_export *x)
{
	struct rwk_peer *p = x->state->peer;

	rwk_region_unnote(x->region, &x->in_region);
	HASH_DELETE(by_region, x->state->exports, x);
	if (!x->status && p->channel)
		p->channel->transport->conceal(p->channel, &x->rkey);
	free(x);
}

_Static_assert((unsigned)RWK_REGION_READ == (unsigned)RWK_EXPOSE_READ &&
		       (unsigned)RWK_REGION_WRITE == (unsigned)RWK_EXPOSE_WRITE,
	"what a region grants is what it is exposed for");

static struct rwk_rma_export *export_new(struct rwk_rma_state *s, struct rwk_region *r)
{
	struct rwk_channel *ch = s->peer->channel;
	struct rwk_rma_export *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->region = r;
	x->state = s;
	x->status = -EOPNOTSUPP;
	HASH_ADD(by_region, s->exports, region, sizeof(x->region), x);
	if (!rwk_keyed_is_in(&x->by_region)) {
		free(x);
		return NULL;
	}
	if (ch->direct_min && r->attr.access & RWK_REGION_WRITE)
		x->status = ch->transport->expose(ch, r->iov, (uint32_t)r->attr.count, r->attr.access, &x->rkey);
	rwk_region_note(r, &r->exports, &x->in_region);
	return x;
}

static struct rwk_rma_export *export_of(struct rwk_rma_state *s, struct rwk_region *r)
{
	struct rwk_rma_export *x;

	HASH_FIND(by_region, s->exports, &r, sizeof(r), x);
	return x ? x : export_new(s, r);
}

void rwk_rma_export(struct rwk_rma_state *s, uint64_t key)
{
	struct rwk_engine *e = s->peer->engine;
	struct rwk_envelope env = {.kind = RWK_RMA_EXPORT, .tag = key, .small = EACCES};
	struct rwk_rma_export *x = NULL;
	struct answer a = {.tell = 0};
	struct rwk_region *r;
	unsigned told;

	if (!rwk_region_find(e->attr.regions, e, key, &r)) {
		x = export_of(s, r);
		env.small = x ? (uint16_t)-x->status : ENOMEM;
	}
	if (x && !x->status) {
		told = r->attr.told | e->wants_reached;
		a = (struct answer){.rkey = x->rkey,
			.base = r->attr.base,
			.length = r->length,
			.access = r->attr.access,
			.tell = told != 0,
			.place = (uint32_t)((uintptr_t)r->iov->iov_base % RWK_COPY_PAGE),
			.quiet = ~told & (RWK_REGION_READ | RWK_REGION_WRITE)};
	}
	if (rwk_rma_put(s, &env, &(struct iovec){&a, sizeof(a)}, 1, sizeof(a), NULL, true))
		rwk_info("a peer that asks for a region is not answered");
}

void rwk_rma_revoke(struct rwk_region *r)
{
	while (!rwk_list_empty(&r->exports)) {
		struct rwk_rma_export *x = rwk_container_of(r->exports.next, struct rwk_rma_export, in_region);
		struct rwk_peer *p = x->state->peer;

		export_free(x);
		rwk_rma_say(p->rma, RWK_RMA_REVOKE, r->key, 0);
	}
}

/** Ranges of a length that one call may have: what a program is told is no sum that has wrapped. */
static bool adds_up(const struct account *a)
{
	size_t whole = 0;

	for (uint32_t i = 0; i < a->ranges; i++) {
		if (a->range[i].length > SIZE_MAX / 2 - whole)
			return false;
		whole += a->range[i].length;
	}
	return true;
}

/** An account that is what it should be: one kind of access, to as many ranges as there are bytes for. */
static bool take_account(struct account *a, const void *payload, size_t len)
{
	const size_t head = offsetof(struct account, range);

	if (len < head || len > sizeof(*a))
		return false;
	memcpy(a, payload, len);
	return len == head + a->ranges * sizeof(*a->range) &&
	       (a->access == RWK_REGION_READ || a->access == RWK_REGION_WRITE) && adds_up(a);
}

void rwk_rma_accessed(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_engine *e = s->peer->engine;
	struct rwk_rma_met met = {0};
	struct rwk_region *r;
	struct account a;
	size_t whole = 0;

	if (!take_account(&a, payload, len)) {
		rwk_peer_give_up(s->peer, -EPROTO, "its account of what it has accessed makes no sense");
		return;
	}
	for (uint32_t i = 0; i < a.ranges; i++) {
		const struct rwk_remote *range = &a.range[i];
		uint64_t at;

		whole += range->length;
		if (!rwk_region_check(
			    e->attr.regions, e, range->key, range->address, range->length, a.access, &r, &at) &&
			!rwk_rma_meet(&met, r))
			rwk_rma_met_access(&met, r, range->length);
	}
	rwk_rma_reached(e, NULL, &met, a.access, false, whole);
	if (env->small)
		rwk_rma_data_came(s->peer, env->tag, env->data, whole);
	rwk_rma_granted(s);
}

void rwk_engine_want_reached(struct rwk_engine *e, unsigned access)
{
	bool more = access & ~(unsigned)e->wants_reached;

	e->wants_reached = (uint8_t)access;
	for (struct rwk_peer *p = more ? e->all_peers : NULL; p; p = p->next) {
		struct rwk_rma_export *all = p->rma ? p->rma->exports : NULL, *x, *next;

		HASH_ITER(by_region, all, x, next)
		{
			uint64_t key = x->region->key;

			export_free(x); /* who asks again learns of it */
			rwk_rma_say(p->rma, RWK_RMA_REVOKE, key, 0);
		}
	}
}

void rwk_rma_direct_end(struct rwk_rma_state *s)
{
	struct rwk_rma_import *i, *next;
	struct rwk_rma_export *x, *further;

	HASH_ITER(by_key, s->imports, i, next)
	{
		forget(s, i);
	}
	HASH_ITER(by_region, s->exports, x, further)
	{
		export_free(x);
	}
	free(s->choices);
	s->choices = NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target of one-sided operations: what peers ask for is checked, carried out and answered as it comes. Nothing that
 * a peer sends is trusted.
 */
#include "engine/rma_state.h"

void rwk_rma_owe(struct rwk_rma_state *s)
{
	struct rwk_engine *e = s->peer->engine;

	if (rwk_list_empty(&s->owing))
		rwk_list_append(&e->owing, &s->owing);
	e->due = true;
}

void rwk_rma_granted(struct rwk_rma_state *s)
{
	s->served++;
	rwk_rma_owe(s);
}

void rwk_rma_data_came(struct rwk_peer *p, uint64_t room, uint64_t data, size_t len)
{
	struct rwk_engine *e = p->engine;
	unsigned to = room < RWK_ROOMS && e->rooms[room] ? (unsigned)room : 0;

	e->complete(e->owner,
		&(struct rwk_completion){.flags = RWK_F_RMA | RWK_F_REMOTE_WRITE | RWK_F_DATA | rwk_room_flag(to),
			.length = len,
			.data = data,
			.peer = p});
}

/** An answer of ours that is lost: the peer would wait for it for ever. */
static void answer_lost(struct rwk_rma_state *s)
{
	rwk_peer_give_up(s->peer, -ENOMEM, "out of memory for an answer to a one-sided operation");
}

void rwk_rma_say(struct rwk_rma_state *s, enum rwk_kind kind, uint64_t tag, int status)
{
	const struct rwk_envelope env = {.head = rwk_envelope_head((uint8_t)kind, 0, (uint16_t)-status), .tag = tag};

	if (rwk_rma_put(s, &env, NULL, 0, 0, NULL, false) == -ENOMEM)
		answer_lost(s);
}

void rwk_rma_tell(struct rwk_engine *e)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(&e->owing))) {
		struct rwk_rma_state *s = rwk_container_of(l, struct rwk_rma_state, owing);

		/* Where much lies with the channel the word waits: when some of that has gone one is enough for all. */
		if (s->told == s->served || rwk_rma_is_choked(s))
			continue;
		s->told = s->served;
		rwk_rma_say(s, RWK_RMA_DONE, s->served, 0);
	}
}

static void refuse(struct rwk_rma_state *s, int status)
{
	s->refused = true;
	rwk_rma_say(s, RWK_RMA_REFUSED, s->served, status);
	s->told = ++s->served;
}

/** The same of a piece that fetches nothing: why its request is refused is said once. */
static void refuse_quietly(struct rwk_rma_state *s, int status)
{
	if (!s->refused)
		refuse(s, status);
	else
		rwk_rma_granted(s);
}

/** A piece has been carried out. */
static void carried_out(
	struct rwk_rma_state *s, const struct rwk_envelope *env, struct rwk_region *r, unsigned access, size_t len)
{
	bool several = s->met.count;

	s->served++;
	s->bytes += len;
	if (several)
		rwk_rma_met_access(&s->met, r, len);
	if (env->flags & RWK_RMA_END && (several || (r->attr.told | s->peer->engine->wants_reached) & access))
		rwk_rma_reached(s->peer->engine, several ? NULL : r, &s->met, access, env->kind == RWK_RMA_ATOMIC,
			s->bytes);
}

/** Forgets of the request that is coming what its last piece ends. */
static void ended(struct rwk_rma_state *s, const struct rwk_envelope *env)
{
	if (!(env->flags & RWK_RMA_END))
		return;
	s->bytes = 0;
	s->refused = false;
	s->met.count = 0;
}

/** A request of several pieces has all of them with the same region, though its key may have come to another. */
static int meet(struct rwk_rma_state *s, const struct rwk_envelope *env, const struct rwk_region *r)
{
	return rwk_likely(env->flags & RWK_RMA_END && !s->met.count) ? 0 : rwk_rma_meet(&s->met, r);
}

static int check(struct rwk_rma_state *s, const struct rwk_envelope *env, size_t len, unsigned access,
	struct rwk_region **r, uint64_t *at)
{
	struct rwk_engine *e = s->peer->engine;
	int rc;

	if (s->refused)
		return -EACCES;
	rc = rwk_region_check(e->attr.regions, e, env->data, env->tag, len, access, r, at);
	return rc ? rc : meet(s, env, *r);
}

static void written(struct rwk_rma_state *s, const struct rwk_envelope *env, struct rwk_region *r, size_t len, int rc)
{
	if (rc) {
		refuse_quietly(s, rc);
	} else {
		carried_out(s, env, r, RWK_REGION_WRITE, len);
		rwk_rma_owe(s);
	}
	ended(s, env);
}

/** The length that stands in the payload; false: there is none. */
static bool take_length(const void *payload, size_t len, uint64_t *length)
{
	if (len != sizeof(*length))
		return false;
	memcpy(length, payload, sizeof(*length));
	return true;
}

bool rwk_rma_is_aligned(const struct rwk_region *r, uint64_t at, size_t len, size_t element)
{
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	unsigned n;

	if (rwk_likely(r->attr.count == 1))
		return !(((uintptr_t)r->iov->iov_base + at) & (element - 1));
	n = rwk_region_slice(r, at, len, iov);
	for (unsigned i = 0; i < n; i++) {
		if (((uintptr_t)iov[i].iov_base | iov[i].iov_len) & (element - 1))
			return false;
	}
	return true;
}

rwk_noinline int rwk_rma_misaligned(size_t element)
{
	static bool said;

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		rwk_info("an atomic operation on elements of %zu bytes is refused: an element, also a complex number, "
			 "must lie at a multiple of its size (this is said once)",
			element);
	return -EINVAL;
}

static void serve_check(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len)
{
	size_t element = (size_t)1 << (env->flags >> RWK_RMA_ELEMENT_SHIFT & RWK_RMA_ELEMENT_MASK);
	struct rwk_region *r;
	uint64_t length, at;
	int rc = take_length(payload, len, &length) ? check(s, env, length, env->small, &r, &at) : -EMSGSIZE;

	if (!rc && !rwk_rma_is_aligned(r, at, length, element))
		rc = rwk_rma_misaligned(element);
	if (rc)
		refuse_quietly(s, rc);
	else
		rwk_rma_granted(s);
}

static void serve_write(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_region *r = NULL;
	uint64_t at;
	int rc = check(s, env, len, RWK_REGION_WRITE, &r, &at);

	if (!rc)
		rc = rwk_region_store(r, at, payload, len);
	written(s, env, r, len, rc);
}

static void serve_tell(struct rwk_rma_state *s, const struct rwk_envelope *env)
{
	struct rwk_engine *e = s->peer->engine;

	if (!s->refused && !env->small) {
		rwk_rma_reached(e, NULL, &s->met, RWK_REGION_WRITE, false, s->bytes);
		rwk_rma_data_came(s->peer, env->tag, env->data, s->bytes);
	}
	rwk_rma_granted(s);
	ended(s, env);
}

/** Answers with bytes of a region, in as many parts as the channel wants. */
static rwk_outline int answer_parts(struct rwk_rma_state *s, const struct rwk_region *r, uint64_t at, size_t len)
{
	struct rwk_spares *spares = &s->peer->engine->spares;
	size_t most = s->peer->channel->send_max, done = 0;
	struct rwk_envelope env = {.kind = RWK_RMA_DATA, .tag = s->served};
	int rc = 0;

	do {
		size_t part = len - done < most ? len - done : most;
		struct iovec iov[RWK_ENGINE_IOV_MAX];
		void *bytes = NULL;
		unsigned n;

		if (r->careful || part <= RWK_COPY_WORD_MAX) {
			bytes = rwk_spares_get(spares, part);
			rc = bytes ? rwk_region_load(r, at + done, bytes, part) : -ENOMEM;
			iov[0] = (struct iovec){bytes, part};
			n = 1;
		} else {
			n = rwk_region_slice(r, at + done, part, iov);
		}
		if (done + part == len)
			env.flags = RWK_RMA_END;
		if (!rc)
			rc = rwk_rma_put(s, &env, iov, n, part, NULL, true);
		rwk_spares_put(spares, bytes);
		done += part;
	} while (!rc && done < len);
	return rc;
}

static inline int answer(struct rwk_rma_state *s, const struct rwk_region *r, uint64_t at, size_t len)
{
	const struct rwk_envelope env = {.kind = RWK_RMA_DATA, .flags = RWK_RMA_END, .tag = s->served};
	unsigned char word[RWK_COPY_WORD_MAX];
	struct iovec iov = {(char *)r->iov->iov_base + at, len};

	if (rwk_unlikely(r->careful || r->attr.count > 1 || len > s->peer->channel->send_max))
		return answer_parts(s, r, at, len);
	if (rwk_copy_word(word, iov.iov_base, len))
		iov.iov_base = word; /* the channel may read it in parts */
	return rwk_rma_put(s, &env, &iov, 1, len, NULL, true);
}

/** One that asks and does not take our answers would fill our memory with them. */
static bool asks_too_much(const struct rwk_rma_state *s)
{
	return s->giving > RWK_RMA_GIVING;
}

static void serve_read(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_region *r = NULL;
	uint64_t length, at;
	int rc = -EMSGSIZE;

	if (take_length(payload, len, &length) && length <= RWK_RMA_PIECE)
		rc = asks_too_much(s) ? -ENOBUFS : check(s, env, length, RWK_REGION_READ, &r, &at);
	if (!rc)
		rc = answer(s, r, at, length);
	if (rc) {
		refuse(s, rc);
	} else {
		carried_out(s, env, r, RWK_REGION_READ, length);
		s->told = s->served;
	}
	ended(s, env);
}

/** Of memory in several pieces, or of which some may not be there. */
static rwk_outline int atomic_pieces(const struct rwk_region *r, uint64_t at, unsigned op, unsigned type,
	const void *operand, const void *compare, void *result, size_t len)
{
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	unsigned n = rwk_region_slice(r, at, len, iov);
	size_t element = rwk_atomic_size(type), done = 0;

	if (rwk_region_usable(r, at, len, rwk_atomic_stores(op, type)))
		return -EFAULT;
	if (!rwk_rma_is_aligned(r, at, len, element))
		return rwk_rma_misaligned(element);
	for (unsigned i = 0; i < n; i++) {
		rwk_atomic_do(op, type, iov[i].iov_base, (const char *)operand + done,
			compare ? (const char *)compare + done : NULL, result ? (char *)result + done : NULL,
			iov[i].iov_len / element);
		done += iov[i].iov_len;
	}
	return 0;
}

int rwk_rma_atomic(const struct rwk_region *r, uint64_t at, unsigned op, unsigned type, const void *operand,
	const void *compare, void *result, size_t len)
{
	size_t element = rwk_atomic_size(type); /* a power of two: to divide by it takes longer than all else here */
	char *memory = (char *)r->iov->iov_base + at;

	if (r->attr.count > 1 || r->careful)
		return atomic_pieces(r, at, op, type, operand, compare, result, len);
	if (rwk_unlikely((uintptr_t)memory & (element - 1)))
		return rwk_rma_misaligned(element);
	rwk_atomic_do(op, type, memory, operand, compare, result, len >> __builtin_ctzl(element));
	return 0;
}

/** Answers with what an atomic has fetched. */
static int answer_results(struct rwk_rma_state *s, char *results, size_t len)
{
	size_t most = s->peer->channel->send_max, done = 0;
	struct rwk_envelope env = {.kind = RWK_RMA_DATA, .tag = s->served};
	int rc = 0;

	while (!rc && !(env.flags & RWK_RMA_END)) {
		size_t part = len - done < most ? len - done : most;

		if (done + part == len)
			env.flags = RWK_RMA_END;
		rc = rwk_rma_put(s, &env, &(struct iovec){results + done, part}, 1, part, NULL, true);
		done += part;
	}
	return rc;
}

static void serve_atomic(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len)
{
	unsigned op = env->small >> 8, type = env->small & 0xff;
	bool fetches = env->flags & RWK_RMA_RESULT;
	unsigned access = rwk_rma_access(op, fetches);
	size_t arrays = rwk_atomic_compares(op) ? 2 : 1;
	size_t bytes = len / arrays;
	char results[RWK_ATOMIC_BYTES];
	struct rwk_region *r = NULL;
	uint64_t at;
	int rc = -EOPNOTSUPP;

	if (rwk_atomic_valid(op, type) && bytes <= sizeof(results) && !(len & (rwk_atomic_size(type) * arrays - 1)))
		rc = fetches && asks_too_much(s)
			     ? -ENOBUFS
			     : check(s, env, bytes, rwk_rma_access_needed(op, type, access), &r, &at);
	if (!rc)
		rc = rwk_rma_atomic(
			r, at, op, type, payload, (const char *)payload + bytes, fetches ? results : NULL, bytes);
	if (rc || !fetches) {
		if (rc && fetches) {
			refuse(s, rc);
		} else if (rc) {
			refuse_quietly(s, rc);
		} else {
			carried_out(s, env, r, access, bytes);
			rwk_rma_owe(s);
		}
		ended(s, env);
		return;
	}
	if (answer_results(s, results, bytes) == -ENOMEM)
		answer_lost(s); /* it is carried out: to refuse it would be wrong */
	carried_out(s, env, r, access, bytes);
	s->told = s->served;
	ended(s, env);
}

static void take_data(struct rwk_rma_state *s, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_rma_request *r;

	if (rwk_likely(env->flags & RWK_RMA_END) && rwk_rma_answered_whole(s, env->tag, payload, len))
		return;
	r = rwk_rma_answered(s, env->tag, len);
	if (r)
		rwk_iov_scatter(r->iov, r->iov_count, r->came, payload, len);
	rwk_rma_came(s, r, env->tag, len, env->flags & RWK_RMA_END);
}

/** NULL: what comes is dropped, since the channel is at its end. */
static struct rwk_rma_state *state_of(struct rwk_peer *p)
{
	struct rwk_rma_state *s = p->error ? NULL : rwk_rma_state_of(p);

	if (!s)
		rwk_peer_give_up(p, -ENOMEM, "out of memory for its one-sided operations");
	return s;
}

void rwk_rma_message(struct rwk_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	struct rwk_rma_state *s = state_of(p);

	if (!s)
		return;
	switch (env->kind) {
	case RWK_RMA_CHECK:
		serve_check(s, env, payload, len);
		break;
	case RWK_RMA_WRITE:
		serve_write(s, env, payload, len);
		break;
	case RWK_RMA_READ:
		serve_read(s, env, payload, len);
		break;
	case RWK_RMA_ATOMIC:
		serve_atomic(s, env, payload, len);
		break;
	case RWK_RMA_TELL:
		serve_tell(s, env);
		break;
	case RWK_RMA_DATA:
		take_data(s, env, payload, len);
		break;
	case RWK_RMA_REFUSED:
		rwk_rma_refused(s, env->tag, -(int)env->small);
		break;
	case RWK_RMA_DONE:
		rwk_rma_done(s, env->tag);
		break;
	case RWK_RMA_ACCESSED:
		rwk_rma_accessed(s, env, payload, len);
		break;
	case RWK_RMA_IMPORT:
		rwk_rma_export(s, env->tag);
		break;
	case RWK_RMA_EXPORT:
		rwk_rma_exported(s, env, payload, len);
		break;
	default:
		rwk_rma_revoked(s, env->tag);
	}
}

/*
 * What comes in pieces.
 */

static struct rwk_spares *spares_of(struct rwk_rma_in *in)
{
	return &rwk_container_of(in, struct rwk_rma_state, in)->peer->engine->spares;
}

/** A write goes where it belongs, if it may. */
static void begin_write(struct rwk_rma_state *s, struct rwk_rma_in *in)
{
	in->status = in->length > RWK_RMA_PIECE
			     ? -EMSGSIZE
			     : check(s, &in->env, in->length, RWK_REGION_WRITE, &in->region, &in->at);
	if (in->status) {
		in->region = NULL;
		return;
	}
	if (in->region->careful) {
		in->bytes = rwk_spares_get(spares_of(in), in->length);
		in->status = in->bytes ? 0 : -ENOMEM;
		in->region = NULL;
		return;
	}
	__atomic_thread_fence(__ATOMIC_RELEASE); /* as rwk_region_store */
	in->incoming.place.iov_count = rwk_region_slice(in->region, in->at, in->length, in->iov);
	rwk_region_note(in->region, &in->region->incoming, &in->link);
}

static void begin_data(struct rwk_rma_state *s, struct rwk_rma_in *in)
{
	size_t len = in->length;

	in->request = rwk_rma_answered(s, in->env.tag, len);
	if (in->request)
		in->incoming.place.iov_count = rwk_iov_slice(
			in->request->iov, in->request->iov_count, in->request->came, &len, in->iov, RWK_ENGINE_IOV_MAX);
}

/** All other kinds are short; it has come whole before it is looked at. */
static void begin_other(struct rwk_rma_state *s, struct rwk_rma_in *in)
{
	if (in->length > 2 * RWK_ATOMIC_BYTES) {
		rwk_peer_give_up(s->peer, -EPROTO, "it sent a one-sided request longer than any");
		return;
	}
	in->bytes = rwk_spares_get(spares_of(in), in->length);
	if (!in->bytes)
		rwk_peer_give_up(s->peer, -ENOMEM, "out of memory for its one-sided operations");
}

struct rwk_place *rwk_rma_begin(struct rwk_peer *p, const struct rwk_envelope *env, size_t len)
{
	struct rwk_rma_state *s = state_of(p);
	struct rwk_rma_in *in = s ? &s->in : NULL;

	if (!in)
		return NULL;
	*in = (struct rwk_rma_in){.incoming = {.place = {.iov = in->iov}, .rma = in}, .env = *env, .length = len};
	rwk_list_init(&in->link);
	if (env->kind == RWK_RMA_WRITE)
		begin_write(s, in);
	else if (env->kind == RWK_RMA_DATA)
		begin_data(s, in);
	else
		begin_other(s, in);
	if (in->bytes) {
		in->iov[0] = (struct iovec){in->bytes, len};
		in->incoming.place.iov_count = 1;
	}
	return &in->incoming.place;
}

void rwk_rma_in_drop(struct rwk_rma_in *in)
{
	if (in->region)
		rwk_region_unnote(in->region, &in->link);
	rwk_spares_put(spares_of(in), in->bytes);
	in->bytes = NULL;
	in->region = NULL;
	in->request = NULL;
}

void rwk_rma_end(struct rwk_peer *p, struct rwk_rma_in *in, int status)
{
	struct rwk_rma_state *s = p->rma;
	struct rwk_region *r = in->region;
	struct rwk_rma_request *request = in->request;
	void *bytes = in->bytes;

	in->bytes = NULL;
	rwk_rma_in_drop(in);
	if (status || p->error) {
		rwk_spares_put(spares_of(in), bytes);
		return; /* the channel ends */
	}
	if (bytes)
		rwk_rma_message(p, &in->env, bytes, in->length);
	else if (in->env.kind == RWK_RMA_DATA)
		rwk_rma_came(s, request, in->env.tag, in->length, in->env.flags & RWK_RMA_END);
	else
		written(s, &in->env, r, in->length, in->status);
	rwk_spares_put(spares_of(in), bytes);
}

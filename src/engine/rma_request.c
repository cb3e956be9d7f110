/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator of one-sided operations: a request goes out piece by piece as the channel takes them, and completes
 * when its last piece has been answered.
 */
#include "engine/rma_state.h"

void rwk_rma_complete(struct rwk_engine *e, uint32_t flags, void *context, int status)
{
	const uint32_t shown = RWK_F_RMA | RWK_F_ATOMIC | RWK_F_READ | RWK_F_WRITE;

	if (flags & RWK_F_SILENT && !status)
		return;
	if (!status && rwk_queue_takes(e->sends, flags)) {
		*rwk_queue_next(e->sends) = (struct rwk_completion){.context = context, .flags = flags & shown};
		return;
	}
	e->complete(e->owner, &(struct rwk_completion){.context = context,
				      .flags = flags & (shown | RWK_F_ROOM | ~(RWK_F_USER - 1u)),
				      .status = status});
}

void rwk_rma_request_free(struct rwk_engine *e, struct rwk_rma_request *r)
{
	if (r->copied > RWK_BLOCK)
		rwk_spares_put(&e->spares, r->copy);
	else if (r->copy)
		rwk_pool_put(&e->block_pool, r->copy);
	rwk_list_remove(&r->link);
	rwk_pool_put(&e->rma_requests, r);
}

void rwk_rma_finish(struct rwk_rma_request *r, int status)
{
	struct rwk_rma_state *s = r->state;
	struct rwk_engine *e = s->peer->engine;
	uint32_t flags = r->flags;
	void *context = r->context;
	bool over = r->over;

	if (s->unsent == &r->link)
		s->unsent = r->link.next;
	if (rwk_unlikely(r->chosen))
		rwk_rma_measure_end(r);
	rwk_rma_request_free(e, r);
	if (!over)
		rwk_rma_complete(e, flags, context, status);
}

void rwk_rma_sweep(struct rwk_rma_state *s)
{
	struct rwk_list *l = s->requests.next;

	while (l != &s->requests) {
		struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);

		if (!r->direct && (!r->sent || r->last >= s->answered))
			return;
		if (r->direct || r->posted) {
			l = l->next;
			continue;
		}
		rwk_rma_finish(r, r->status);
		l = s->requests.next; /* the completion may have started anything, and ended others */
	}
}

/** Bytes of the piece that begins there. */
static size_t piece_length(const struct rwk_rma_request *r, const struct rwk_rma_cursor *c)
{
	const struct rwk_channel *ch = r->state->peer->channel;
	size_t most = ch->send_max < RWK_RMA_PIECE ? ch->send_max : RWK_RMA_PIECE;
	size_t left = r->remote[c->range].length - c->in_range, arrays = r->compares ? 2 : 1;

	if (rwk_likely(left * arrays <= most))
		return left;
	if (r->kind != RWK_RMA_ATOMIC)
		return most;
	most /= r->element * arrays;
	return (most ? most : 1) * r->element;
}

/** On to the next piece; true: this was the last for its range. */
static bool pass(const struct rwk_rma_request *r, struct rwk_rma_cursor *c, size_t len)
{
	c->in_range += len;
	if (c->in_range < r->remote[c->range].length)
		return false;
	*c = (struct rwk_rma_cursor){.range = c->range + 1};
	return true;
}

/** What a piece brings along. Returns the number of pieces of memory, and its bytes in *len. */
static unsigned payload(const struct rwk_rma_request *r, size_t *len, uint64_t *word, struct iovec *iov)
{
	unsigned n = 1;

	if (r->kind == RWK_RMA_READ) {
		*word = *len;
		*len = sizeof(*word);
		iov[0] = (struct iovec){word, *len};
	} else if (r->kind == RWK_RMA_ATOMIC) {
		iov[0] = (struct iovec){(char *)r->copy + r->at, *len};
		if (!r->compares)
			return 1;
		iov[1] = (struct iovec){(char *)r->copy + r->length + r->at, *len};
		*len *= 2;
		n = 2;
	} else if (r->copy) {
		iov[0] = (struct iovec){(char *)r->copy + r->at, *len};
	} else {
		n = rwk_iov_slice(r->iov, r->iov_count, r->at, len, iov, RWK_ENGINE_IOV_MAX);
	}
	return n;
}

static void asked_for(struct rwk_rma_state *s, struct rwk_rma_request *r, bool last)
{
	if (!r->begun)
		r->first = s->asked;
	r->begun = true;
	r->last = s->asked++;
	r->sent = last;
}

/** The word behind a write with data: now its completion at the target may be written. Or behind what is given up. */
static int send_tell(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	const struct rwk_envelope env = {.kind = RWK_RMA_TELL,
		.flags = RWK_ENV_DATA | RWK_RMA_END,
		.small = r->status != 0,
		.tag = rwk_to_room_of(r->flags),
		.data = r->data};
	int rc = rwk_rma_put(s, &env, NULL, 0, 0, r, false);

	if (!rc)
		asked_for(s, r, true);
	return rc;
}

/** Asks for nothing but a check of the last range that is unchecked. */
static int send_check(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	const struct rwk_remote *to = &r->remote[r->unchecked - 1];
	unsigned element = r->kind == RWK_RMA_ATOMIC ? (unsigned)__builtin_ctz(r->element) : 0;
	const struct rwk_envelope env = {.kind = RWK_RMA_CHECK,
		.flags = (uint8_t)(RWK_ENV_DATA | element << RWK_RMA_ELEMENT_SHIFT),
		.small = r->access,
		.tag = to->address,
		.data = to->key};
	uint64_t word = to->length;
	int rc = rwk_rma_put(s, &env, &(struct iovec){&word, sizeof(word)}, 1, sizeof(word), r, true);

	if (rc)
		return rc;
	asked_for(s, r, false);
	r->unchecked--;
	return 0;
}

static int send_piece(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	struct rwk_rma_cursor next = r->asking;
	const struct rwk_remote *to = &r->remote[next.range];
	struct rwk_envelope env = {.kind = r->kind,
		.flags = RWK_ENV_DATA,
		.small = r->small,
		.tag = to->address + next.in_range,
		.data = to->key};
	size_t covers = piece_length(r, &next), len = covers;
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	uint64_t word;
	unsigned n = payload(r, &len, &word, iov);
	int rc;

	pass(r, &next, covers);
	if (next.range == r->ranges && !(r->flags & RWK_F_DATA))
		env.flags |= RWK_RMA_END;
	if (r->kind == RWK_RMA_ATOMIC && r->fetches)
		env.flags |= RWK_RMA_RESULT;
	rc = rwk_rma_put(s, &env, iov, n, len, r, r->kind == RWK_RMA_READ);
	if (rc)
		return rc;
	asked_for(s, r, env.flags & RWK_RMA_END);
	if (r->fetches) {
		s->fetching++;
		r->fetched = s->asked;
	}
	r->at += covers;
	r->asking = next;
	return 0;
}

/** May the request go on? */
static bool may_send(const struct rwk_rma_state *s, const struct rwk_rma_request *r)
{
	if (r->flags & RWK_F_FENCE && s->requests.next != &r->link)
		return false;
	if (!r->fetches)
		return s->posted < RWK_RMA_POSTED;
	return s->posted < RWK_RMA_POSTED &&
	       s->fetching < (r->length < RWK_RMA_PIECE / 4 ? RWK_RMA_FETCHING : RWK_RMA_FETCHING_LONG);
}

/** Until this request has nothing before it whatever comes behind it waits: it lines up, by messages. */
static void fence_off(struct rwk_rma_state *s)
{
	if (!s->fences++)
		rwk_peer_set_fenced(s->peer, true);
}

void rwk_rma_lift_fence(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	r->flags &= ~(uint32_t)RWK_F_FENCE;
	if (!--s->fences)
		rwk_peer_set_fenced(s->peer, false);
}

/** The word behind a write or read that the service has carried out. */
static int send_accessed(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	int rc = rwk_rma_tell_accessed(s, r);

	if (!rc)
		asked_for(s, r, true);
	return rc;
}

static int send_next(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	if (r->accessed)
		return send_accessed(s, r);
	if (r->status)
		return send_tell(s, r); /* the rest is not worth sending */
	if (r->unchecked)
		return send_check(s, r);
	return r->asking.range < r->ranges ? send_piece(s, r) : send_tell(s, r);
}

/**
 * The data is in place, and what the user sends from now on comes behind the account: no need to wait until the target
 * has that.
 */
static void is_over(struct rwk_rma_request *r)
{
	r->over = true;
	rwk_rma_complete(r->state->peer->engine, r->flags, r->context, 0);
}

void rwk_rma_pump(struct rwk_rma_state *s)
{
	while (s->unsent != &s->requests && !s->peer->error) {
		struct rwk_rma_request *r = rwk_container_of(s->unsent, struct rwk_rma_request, link);
		int rc;

		if (r->direct) {
			s->unsent = r->link.next;
			continue;
		}
		if (!may_send(s, r))
			return;
		if (r->flags & RWK_F_FENCE)
			rwk_rma_lift_fence(s, r);
		rc = send_next(s, r);
		if (rc && (s->posted || s->answered != s->asked))
			return; /* out of memory: the next answer tries again; or the peer fails */
		if (rc && r->begun) { /* nobody would try again, and the target would take the next one for its rest */
			rwk_peer_give_up(s->peer, rc, "out of memory for the rest of a one-sided operation");
		} else if (rc) {
			rwk_rma_finish(r, rc); /* likewise, but it has heard nothing of it */
		} else if (r->sent) {
			s->unsent = r->link.next;
			if (r->accessed && !(r->flags & RWK_F_DATA))
				is_over(r);
		}
	}
}

/*
 * Answers.
 */

static void breach(struct rwk_rma_state *s)
{
	rwk_peer_give_up(s->peer, -EPROTO, "it answered a one-sided operation with what is no answer to it");
}

/** All pieces before this one are answered. */
static void settle(struct rwk_rma_state *s, uint64_t n)
{
	s->answered = n;
	rwk_rma_sweep(s);
	rwk_rma_pump(s);
}

/** Is there a piece before that one whose data has not come? */
static bool lacks_data(const struct rwk_rma_state *s, uint64_t before)
{
	if (rwk_likely(!s->fetching))
		return false;
	for (const struct rwk_list *l = s->requests.next; l != &s->requests; l = l->next) {
		const struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);
		uint64_t from = r->first + r->checks;

		if (!r->begun)
			continue;
		if (r->first >= before)
			return false;
		from = from > s->answered ? from : s->answered;
		if (from < (r->fetched < before ? r->fetched : before))
			return true;
	}
	return false;
}

void rwk_rma_done(struct rwk_rma_state *s, uint64_t n)
{
	if (n <= s->answered || n > s->asked || lacks_data(s, n))
		breach(s);
	else
		settle(s, n);
}

/** The request of a piece that is not answered yet. */
static struct rwk_rma_request *request_of(struct rwk_rma_state *s, uint64_t piece)
{
	for (struct rwk_list *l = s->requests.next; l != &s->requests; l = l->next) {
		struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);

		if (r->begun && r->first <= piece && piece <= r->last)
			return r;
	}
	return NULL;
}

static bool is_fetched(const struct rwk_rma_request *r, uint64_t piece)
{
	return piece >= r->first + r->checks && piece < r->fetched;
}

/** The request of a piece that is answered now: those before it are done. NULL: a breach. */
static struct rwk_rma_request *answered(struct rwk_rma_state *s, uint64_t piece)
{
	struct rwk_rma_request *r;

	if (piece < s->answered || piece >= s->asked || lacks_data(s, piece)) {
		breach(s);
		return NULL;
	}
	if (piece > s->answered) {
		s->answered = piece;
		rwk_rma_sweep(s);
	}
	r = request_of(s, piece);
	if (!r)
		breach(s);
	return r;
}

void rwk_rma_refused(struct rwk_rma_state *s, uint64_t piece, int status)
{
	struct rwk_rma_request *r = answered(s, piece);

	if (!r)
		return;
	if (!r->status)
		r->status = status ? status : -EPROTO;
	s->fetching -= is_fetched(r, piece);
	settle(s, piece + 1);
}

struct rwk_rma_request *rwk_rma_answered(struct rwk_rma_state *s, uint64_t piece, size_t len)
{
	struct rwk_rma_request *r = answered(s, piece);

	if (!r)
		return NULL;
	if (!is_fetched(r, piece) || (!r->status && len > piece_length(r, &r->answers) - r->in_piece)) {
		breach(s);
		return NULL;
	}
	return r->status ? NULL : r;
}

bool rwk_rma_answered_whole(struct rwk_rma_state *s, uint64_t piece, const void *payload, size_t len)
{
	struct rwk_rma_request *r = rwk_container_of(s->requests.next, struct rwk_rma_request, link);

	if (rwk_list_empty(&s->requests) || !r->sent || r->posted || piece != s->answered)
		return false;
	if (r->first != piece || r->last != piece || r->fetched != piece + 1 || r->iov_count != 1 || len != r->length)
		return false;
	if (rwk_likely(len <= RWK_COPY_SHORT_MAX))
		rwk_copy_short(r->iov->iov_base, payload, len);
	else
		rwk_copy(r->iov->iov_base, payload, len);
	s->answered++;
	s->fetching--;
	rwk_rma_finish(r, 0);
	rwk_rma_pump(s);
	return true;
}

/** All of a piece must have come. */
static bool is_whole(struct rwk_rma_request *r)
{
	size_t len = r->in_piece;

	if (len != piece_length(r, &r->answers))
		return false;
	pass(r, &r->answers, len);
	r->in_piece = 0;
	return true;
}

void rwk_rma_came(struct rwk_rma_state *s, struct rwk_rma_request *r, uint64_t piece, size_t len, bool last)
{
	if (r) {
		r->came += len;
		r->in_piece += len;
	}
	if (!last || s->peer->error)
		return;
	if (r && !is_whole(r)) {
		breach(s);
		return;
	}
	s->fetching--;
	settle(s, piece + 1);
}

/**
 * Puts a request among those that are not sent: at the end, if it is new. One that has been with the service comes
 * first, since later ones may have to wait for it, but not between the pieces of another.
 */
static void line_up(struct rwk_rma_state *s, struct rwk_rma_request *r, bool first)
{
	struct rwk_list *before = first ? s->unsent : &s->requests;

	if (before != &s->requests && rwk_container_of(before, struct rwk_rma_request, link)->begun)
		before = before->next;
	rwk_list_append(before, &r->link); /* a list's end is before its head */
	if (s->unsent == before)
		s->unsent = &r->link;
}

void rwk_rma_start(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	bool first = !rwk_list_empty(&r->link);

	if (s->unsent == &r->link)
		s->unsent = r->link.next;
	rwk_list_remove(&r->link);
	if (r->ranges > 1 || piece_length(r, &r->asking) < r->length)
		r->checks = r->unchecked = r->ranges;
	line_up(s, r, first);
	if (r->flags & RWK_F_FENCE)
		fence_off(s);
	rwk_rma_pump(s);
}

/** Is it one message of memory in one piece, which may go now? */
static inline bool is_simple(const struct rwk_rma_state *s, const struct rwk_rma_request *r)
{
	const struct rwk_channel *ch = s->peer->channel;
	size_t most = ch->send_max < RWK_RMA_PIECE ? ch->send_max : RWK_RMA_PIECE;

	return rwk_likely(r->ranges == 1 && r->iov_count <= 1 && !(r->flags & (RWK_F_FENCE | RWK_F_DATA)) &&
			  s->unsent == &s->requests && r->length <= (r->compares ? most / 2 : most) && may_send(s, r));
}

/** Sends it, if the channel takes it at once. */
static bool send_simple(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	bool result = r->kind == RWK_RMA_ATOMIC && r->fetches;
	const struct rwk_envelope env = {
		.head = rwk_envelope_head(
			r->kind, RWK_ENV_DATA | RWK_RMA_END | (result ? RWK_RMA_RESULT : 0), r->small),
		.tag = r->remote->address,
		.data = r->remote->key};
	uint64_t word = r->length;
	const void *from = r->copy ? r->copy : r->iov_count ? r->iov->iov_base : NULL;
	size_t len = r->compares ? 2 * r->length : r->length; /* comparands are behind the operands */

	if (r->kind == RWK_RMA_READ) {
		from = &word;
		len = sizeof(word);
	}
	if (rwk_unlikely(s->peer->error || s->peer->send(s->peer->channel, &env, from, len)))
		return false;
	rwk_list_append(&s->requests, &r->link);
	asked_for(s, r, true);
	r->at = r->length;
	r->asking.range = 1;
	if (r->fetches) {
		s->fetching++;
		r->fetched = s->asked;
	}
	return true;
}

void rwk_rma_begin_request(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	if (!is_simple(s, r) || !send_simple(s, r))
		rwk_rma_start(s, r);
}

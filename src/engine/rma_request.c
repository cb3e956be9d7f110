/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator of one-sided operations: a request goes out piece by piece as the channel takes them, and completes
 * when its last piece has been answered.
 */
#include "engine/rma_state.h"

#include <stdlib.h>

struct rwk_rma_state *rwk_rma_state_of(struct rwk_peer *p)
{
	struct rwk_rma_state *s = p->rma;

	if (rwk_likely(s != NULL))
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->peer = p;
	rwk_list_init(&s->requests);
	s->unsent = &s->requests;
	rwk_list_init(&s->owing);
	rwk_list_init(&s->in.link);
	rwk_list_init(&s->exports);
	p->rma = s;
	return s;
}

/*
 * Messages.
 */

void rwk_rma_piece_free(struct rwk_rma_piece *piece)
{
	free(piece->bytes);
	rwk_pool_put(&piece->state->peer->engine->rma_pieces, piece);
}

static void sweep(struct rwk_rma_state *s);

static void piece_done(struct rwk_op *op, int status)
{
	struct rwk_rma_piece *piece = rwk_container_of(op, struct rwk_rma_piece, op);
	struct rwk_rma_state *s = piece->state;

	s->posted--;
	if (piece->request)
		piece->request->posted--;
	rwk_rma_piece_free(piece);
	if (status)
		return; /* the peer has failed, and all requests with it */
	sweep(s);
	rwk_rma_pump(s);
}

/** Where a posted message's payload lies until the channel has done with it. False: out of memory. */
static bool set_payload(struct rwk_rma_piece *piece, const struct iovec *iov, unsigned n, size_t len, bool keep)
{
	piece->bytes = NULL;
	piece->op.iov_count = n;
	if (!n)
		return true;
	if (!keep || !len) {
		memcpy(piece->iov, iov, n * sizeof(*iov));
		return true;
	}
	piece->bytes = malloc(len);
	if (!piece->bytes)
		return false;
	rwk_iov_gather(iov, n, 0, piece->bytes, len);
	piece->iov[0] = (struct iovec){piece->bytes, len};
	piece->op.iov_count = 1;
	return true;
}

static rwk_noinline int post(struct rwk_rma_state *s, const struct rwk_envelope *env, const struct iovec *iov,
	unsigned n, size_t len, struct rwk_rma_request *r, bool keep)
{
	struct rwk_channel *ch = s->peer->channel;
	struct rwk_rma_piece *piece = rwk_pool_get(&s->peer->engine->rma_pieces);
	int rc;

	if (!piece)
		return -ENOMEM;
	piece->state = s;
	piece->request = r;
	if (!set_payload(piece, iov, n, len, keep)) {
		rwk_rma_piece_free(piece);
		return -ENOMEM;
	}
	piece->op.type = RWK_OP_SEND;
	piece->op.env = *env;
	piece->op.iov = piece->iov;
	piece->op.length = len;
	piece->op.done = piece_done;
	rc = ch->transport->post(ch, &piece->op);
	if (rc) {
		rwk_rma_piece_free(piece);
		return rc < 0 ? rc : 0;
	}
	s->posted++;
	if (r)
		r->posted++;
	return 0;
}

int rwk_rma_put(struct rwk_rma_state *s, const struct rwk_envelope *env, const struct iovec *iov, unsigned n,
	size_t len, struct rwk_rma_request *r, bool keep)
{
	struct rwk_peer *p = s->peer;
	unsigned char gathered[2 * RWK_ATOMIC_BYTES];
	const void *from = n ? iov->iov_base : NULL;
	int rc;

	if (p->error)
		return p->error;
	if (n > 1 && len <= sizeof(gathered)) {
		rwk_iov_gather(iov, n, 0, gathered, len);
		from = gathered;
	}
	rc = n <= 1 || from == gathered ? p->send(p->channel, env, from, len) : -EAGAIN;
	return rwk_unlikely(rc == -EAGAIN) ? post(s, env, iov, n, len, r, keep) : rc;
}

/*
 * Requests.
 */

void rwk_rma_complete(struct rwk_engine *e, uint32_t flags, void *context, int status)
{
	const uint32_t shown = RWK_F_RMA | RWK_F_ATOMIC | RWK_F_READ | RWK_F_WRITE;

	if (flags & RWK_F_SILENT && !status)
		return;
	if (!status && rwk_queue_takes(e->sends, flags)) {
		*rwk_queue_next(e->sends) = (struct rwk_completion){.context = context, .flags = flags & shown};
		return;
	}
	e->complete(
		e->owner, &(struct rwk_completion){
				  .context = context, .flags = flags & (shown | ~(RWK_F_USER - 1u)), .status = status});
}

void rwk_rma_request_free(struct rwk_engine *e, struct rwk_rma_request *r)
{
	if (r->copied > RWK_BLOCK)
		free(r->copy);
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

	if (s->unsent == &r->link)
		s->unsent = r->link.next;
	if (rwk_unlikely(r->chosen))
		rwk_rma_measure_end(r);
	rwk_rma_request_free(e, r);
	rwk_rma_complete(e, flags, context, status);
}

/** Completes what has been answered. */
static void sweep(struct rwk_rma_state *s)
{
	struct rwk_list *l = s->requests.next;

	while (l != &s->requests) {
		struct rwk_rma_request *r = rwk_container_of(l, struct rwk_rma_request, link);

		if (!r->direct && (!r->sent || r->last >= s->answered))
			return;
		l = l->next;
		if (!r->direct && !r->posted)
			rwk_rma_finish(r, r->status);
	}
}

/** The range that the next piece is for, its length, and whether it is the last for it and of the request. */
static size_t next_range(const struct rwk_rma_request *r, size_t most, uint8_t *flags)
{
	const struct rwk_remote *to = &r->remote[r->range];
	size_t left = to->length - r->in_range;

	*flags = 0;
	if (left > most)
		return most;
	*flags = RWK_RMA_RANGE;
	if (r->range + 1 == r->ranges && !(r->flags & RWK_F_DATA))
		*flags |= RWK_RMA_END;
	return left;
}

/** Bytes of a range that one piece can name. */
static size_t piece_most(const struct rwk_rma_request *r, const struct rwk_channel *ch)
{
	size_t most = ch->send_max < RWK_RMA_PIECE ? ch->send_max : RWK_RMA_PIECE;

	if (r->kind != RWK_RMA_ATOMIC)
		return most;
	most /= r->element * (r->compares ? 2u : 1u);
	return (most ? most : 1) * r->element;
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
	const struct rwk_envelope env = {
		.kind = RWK_RMA_TELL, .flags = RWK_ENV_DATA | RWK_RMA_END, .small = r->status != 0, .data = r->data};
	int rc = rwk_rma_put(s, &env, NULL, 0, 0, r, false);

	if (!rc)
		asked_for(s, r, true);
	return rc;
}

/** Asks for nothing but a check of the last range that is unchecked. */
static int send_check(struct rwk_rma_state *s, struct rwk_rma_request *r)
{
	const struct rwk_remote *to = &r->remote[r->unchecked - 1];
	const struct rwk_envelope env = {
		.kind = RWK_RMA_CHECK, .flags = RWK_ENV_DATA, .small = r->access, .tag = to->address, .data = to->key};
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
	const struct rwk_remote *to = &r->remote[r->range];
	struct rwk_envelope env = {
		.kind = r->kind, .small = r->small, .tag = to->address + r->in_range, .data = to->key};
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	size_t covers, len;
	uint64_t word;
	unsigned n;
	int rc;

	covers = len = next_range(r, piece_most(r, s->peer->channel), &env.flags);
	n = payload(r, &len, &word, iov);
	env.flags |= RWK_ENV_DATA | (r->kind == RWK_RMA_ATOMIC && r->fetches ? RWK_RMA_RESULT : 0);
	rc = rwk_rma_put(s, &env, iov, n, len, r, r->kind == RWK_RMA_READ);
	if (rc)
		return rc;
	asked_for(s, r, env.flags & RWK_RMA_END);
	s->fetching += r->fetches;
	r->at += covers;
	r->in_range += covers;
	if (env.flags & RWK_RMA_RANGE) {
		r->range++;
		r->in_range = 0;
	}
	return 0;
}

/** May the request go on? */
static bool may_send(const struct rwk_rma_state *s, const struct rwk_rma_request *r)
{
	if (r->flags & RWK_F_FENCE && !r->begun && s->requests.next != &r->link)
		return false;
	if (!r->fetches)
		return s->posted < RWK_RMA_POSTED;
	return s->posted < RWK_RMA_POSTED &&
	       s->fetching < (r->length < RWK_RMA_PIECE / 4 ? RWK_RMA_FETCHING : RWK_RMA_FETCHING_LONG);
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
	return r->range < r->ranges ? send_piece(s, r) : send_tell(s, r);
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
		rc = send_next(s, r);
		if (rc && (s->posted || s->answered != s->asked))
			return; /* out of memory: the next answer tries again; or the peer fails */
		if (rc)
			rwk_rma_finish(r, rc); /* nobody would try again */
		else if (r->sent)
			s->unsent = r->link.next;
	}
}

/*
 * Answers.
 */

void rwk_rma_done(struct rwk_rma_state *s, uint64_t n)
{
	if (n <= s->answered || n > s->asked) {
		rwk_info("an answer to what was not asked was dropped");
		return;
	}
	s->answered = n;
	sweep(s);
	rwk_rma_pump(s);
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

/** The pieces before this one are done. False: it was not asked for, or is answered already. */
static bool answered_before(struct rwk_rma_state *s, uint64_t piece)
{
	if (piece < s->answered || piece >= s->asked) {
		rwk_info("an answer to what was not asked was dropped");
		return false;
	}
	if (piece > s->answered) {
		s->answered = piece;
		sweep(s);
	}
	return true;
}

void rwk_rma_refused(struct rwk_rma_state *s, uint64_t piece, int status)
{
	struct rwk_rma_request *r = answered_before(s, piece) ? request_of(s, piece) : NULL;

	if (!r)
		return;
	if (!r->status)
		r->status = status ? status : -EPROTO;
	s->fetching -= r->fetches && piece >= r->first + r->checks;
	rwk_rma_done(s, piece + 1);
}

struct rwk_rma_request *rwk_rma_answered(struct rwk_rma_state *s, uint64_t piece, size_t len)
{
	struct rwk_rma_request *r = answered_before(s, piece) ? request_of(s, piece) : NULL;

	if (!r || !r->fetches || r->status)
		return NULL;
	if (len > r->at - r->came) {
		rwk_info("an answer longer than asked for was dropped");
		r->status = -EPROTO;
		return NULL;
	}
	return r;
}

void rwk_rma_came(struct rwk_rma_state *s, struct rwk_rma_request *r, uint64_t piece, size_t len, bool last)
{
	if (r)
		r->came += len;
	if (!last || piece < s->answered || piece >= s->asked)
		return;
	r = request_of(s, piece);
	s->fetching -= r && r->fetches;
	rwk_rma_done(s, piece + 1);
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
	if (r->ranges > 1 || r->length > piece_most(r, s->peer->channel))
		r->checks = r->unchecked = r->ranges;
	line_up(s, r, first);
	rwk_rma_pump(s);
}

/*
 * Ends.
 */

void rwk_rma_abandon(struct rwk_peer *p)
{
	struct rwk_rma_state *s = p->rma;

	if (!s)
		return;
	s->unsent = &s->requests;
	while (!rwk_list_empty(&s->requests))
		rwk_rma_finish(rwk_container_of(s->requests.next, struct rwk_rma_request, link), p->error);
	rwk_list_remove(&s->owing);
	rwk_rma_in_drop(&s->in);
	rwk_rma_direct_end(s);
}

void rwk_rma_close(struct rwk_peer *p)
{
	p->channel = NULL;
	rwk_rma_abandon(p);
	free(p->rma);
}

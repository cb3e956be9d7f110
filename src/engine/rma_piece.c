/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of one-sided operations, of both sides: sent at once, or, where the channel cannot take one, kept as a
 * piece until it has.
 */
#include "engine/rma_state.h"

void rwk_rma_piece_free(struct rwk_rma_piece *piece)
{
	struct rwk_engine *e = piece->state->peer->engine;

	rwk_spares_put(&e->spares, piece->bytes);
	rwk_pool_put(&e->rma_pieces, piece);
}

/** Bytes that it takes if it is an answer with data. */
static size_t given(const struct rwk_op *op)
{
	return op->env.kind == RWK_RMA_DATA ? op->length + sizeof(struct rwk_rma_piece) : 0;
}

/** The same of any answer. Not of what the peer has not asked for: that a region is revoked, and what we ask of its. */
static size_t answered(const struct rwk_rma_piece *piece)
{
	bool asked =
		!piece->request && piece->op.env.kind != RWK_RMA_REVOKE && piece->op.env.kind != RWK_RMA_IMPORT;

	return asked ? piece->op.length + sizeof(*piece) : 0;
}

static void piece_done(struct rwk_op *op, int status)
{
	struct rwk_rma_piece *piece = rwk_container_of(op, struct rwk_rma_piece, op);
	struct rwk_rma_state *s = piece->state;

	s->posted--;
	s->giving -= given(op);
	s->answering -= answered(piece);
	rwk_list_remove(&piece->link);
	if (piece->request)
		piece->request->posted--;
	rwk_rma_piece_free(piece);
	if (status)
		return; /* the peer has failed, and all requests with it */
	if (rwk_unlikely(s->told != s->served) && !rwk_rma_is_choked(s))
		rwk_rma_owe(s);
	rwk_rma_sweep(s);
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
	piece->bytes = rwk_spares_get(&piece->state->peer->engine->spares, len);
	if (!piece->bytes)
		return false;
	rwk_iov_gather(iov, n, 0, piece->bytes, len);
	piece->iov[0] = (struct iovec){piece->bytes, len};
	piece->op.iov_count = 1;
	return true;
}

static rwk_outline int post(struct rwk_rma_state *s, const struct rwk_envelope *env, const struct iovec *iov,
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
	piece->op.arrival = false;
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
	rwk_list_append(&s->lying, &piece->link);
	s->giving += given(&piece->op);
	s->answering += answered(piece);
	if (r)
		r->posted++;
	else if (s->answering > RWK_RMA_ANSWERING)
		rwk_peer_give_up(s->peer, -ENOBUFS, "it asks again and again, and takes none of the answers");
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

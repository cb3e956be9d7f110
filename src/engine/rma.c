/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of one-sided operations: each makes a request. One that can go out whole at once, as nearly all can, has
 * done so when the call returns.
 */
#include "engine/rma_state.h"

/** Adds up local memory and ranges; false: they differ, or there are too many. */
static rwk_outline bool measure_all(const struct rwk_rma_args *a, const struct iovec *iov, size_t count, size_t *len)
{
	size_t local = 0;

	*len = 0;
	if (count > RWK_ENGINE_IOV_MAX || !a->remote_count || a->remote_count > RWK_ENGINE_IOV_MAX)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > SIZE_MAX / 2 - local)
			return false;
		local += iov[i].iov_len;
	}
	for (size_t i = 0; i < a->remote_count; i++) {
		if (a->remote[i].length > SIZE_MAX / 2 - *len)
			return false;
		*len += a->remote[i].length;
	}
	return local == *len;
}

static inline bool measure(const struct rwk_rma_args *a, const struct iovec *iov, size_t count, size_t *len)
{
	if (rwk_unlikely(count != 1 || a->remote_count != 1))
		return measure_all(a, iov, count, len);
	*len = a->remote->length;
	return *len == iov->iov_len && *len <= SIZE_MAX / 2;
}

static inline void clear(struct rwk_rma_request *r)
{
	const size_t from = offsetof(struct rwk_rma_request, kind);

	memset((char *)r + from, 0, offsetof(struct rwk_rma_request, iov) - from);
}

/** A request to a peer that can be talked to: 0 and *out; -EAGAIN at a limit, or out of memory; or why it cannot. */
static inline int request_new(
	const struct rwk_rma_args *a, const struct iovec *iov, size_t count, size_t len, struct rwk_rma_request **out)
{
	struct rwk_peer *p = a->peer;
	struct rwk_engine *e = p->engine;
	struct rwk_rma_request *r;
	struct rwk_rma_state *s;
	int rc = rwk_peer_meet(p);

	if (rwk_unlikely(rc))
		return rc;
	s = rwk_rma_state_of(p);
	r = s && e->rma_requests.used < e->rma_limit ? rwk_pool_get(&e->rma_requests) : NULL;
	if (!r)
		return -EAGAIN;
	clear(r);
	r->state = s;
	r->context = a->context;
	r->flags = a->flags;
	r->ranges = (uint32_t)a->remote_count;
	r->length = len;
	r->data = a->data;
	r->copied = 0;
	r->iov_count = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		r->iov[i] = iov[i];
	for (size_t i = 0; i < a->remote_count; i++)
		r->remote[i] = a->remote[i];
	rwk_list_init(&r->link);
	*out = r;
	return 0;
}

/** Room for what a request takes along. */
static bool copy_room(struct rwk_engine *e, struct rwk_rma_request *r, size_t len)
{
	r->copied = len;
	r->copy = len > RWK_BLOCK ? rwk_spares_get(&e->spares, len) : rwk_pool_get(&e->block_pool);
	return r->copy;
}

/** The short way of what one side copies with one call: true, it is complete. */
static inline bool done_now(const struct rwk_rma_args *a, size_t len, bool write)
{
	const struct rwk_peer *p = a->peer;
	const struct rwk_channel *ch = p->channel;
	bool behind;

	if (!ch || p->error || len < ch->direct_min || !ch->direct_min || len > ch->transport->access_max[0] ||
		!p->rma || p->fenced)
		return false;
	behind = rwk_rma_is_behind(p->rma, a->flags);
	if (len > ch->transport->access_max[behind] || a->iov_count != 1 || a->remote_count != 1 ||
		a->flags & (RWK_F_INJECT | RWK_F_DATA | RWK_F_FENCE))
		return false;
	return rwk_rma_now(a, len, write);
}

static void set_off(struct rwk_rma_request *r)
{
	const struct rwk_channel *ch = r->state->peer->channel;
	bool too_short = r->length < ch->direct_min && ch->direct != RWK_DIRECT_ALONE;

	if (too_short || !rwk_rma_direct(r->state, r))
		rwk_rma_begin_request(r->state, r);
}

static inline ssize_t count_write(struct rwk_engine *e, size_t len)
{
	e->status.counters.writes++;
	e->status.counters.written_bytes += len;
	return 0;
}

static inline ssize_t count_read(struct rwk_engine *e, size_t len)
{
	e->status.counters.reads++;
	e->status.counters.read_bytes += len;
	return 0;
}

ssize_t rwk_engine_write(struct rwk_engine *e, const struct rwk_rma_args *a)
{
	struct rwk_rma_request *r;
	size_t len;
	int rc;

	if (!measure(a, a->iov, a->iov_count, &len))
		return -EINVAL;
	if (a->flags & RWK_F_INJECT && len > RWK_INJECT_MAX)
		return -EMSGSIZE;
	if (a->peer->self)
		return rwk_rma_move_here(e, a, len, true);
	if (done_now(a, len, true))
		return count_write(e, len);
	rc = request_new(a, a->iov, a->iov_count, len, &r);
	if (rc)
		return rc;
	r->kind = RWK_RMA_WRITE;
	r->access = RWK_REGION_WRITE;
	r->flags |= RWK_F_RMA | RWK_F_WRITE;
	if (a->flags & RWK_F_INJECT) {
		if (!copy_room(e, r, len)) {
			rwk_rma_request_free(e, r);
			return -EAGAIN;
		}
		rwk_iov_gather(a->iov, a->iov_count, 0, r->copy, len);
	}
	set_off(r);
	return count_write(e, len);
}

ssize_t rwk_engine_read(struct rwk_engine *e, const struct rwk_rma_args *a)
{
	struct rwk_rma_request *r;
	size_t len;
	int rc;

	if (!measure(a, a->iov, a->iov_count, &len))
		return -EINVAL;
	if (a->peer->self)
		return rwk_rma_move_here(e, a, len, false);
	if (done_now(a, len, false))
		return count_read(e, len);
	rc = request_new(a, a->iov, a->iov_count, len, &r);
	if (rc)
		return rc;
	r->kind = RWK_RMA_READ;
	r->access = RWK_REGION_READ;
	r->fetches = true;
	r->flags = (r->flags & ~(uint32_t)RWK_F_DATA) | RWK_F_RMA | RWK_F_READ;
	set_off(r);
	return count_read(e, len);
}

static inline void gather(const struct iovec *iov, size_t count, char *to, size_t len)
{
	if (rwk_likely(count == 1 && len <= RWK_COPY_SHORT_MAX))
		rwk_copy_short(to, iov->iov_base, len);
	else
		rwk_iov_gather(iov, count, 0, to, len);
}

void rwk_rma_operands(const struct rwk_atomic_args *a, size_t len, char *to)
{
	if (rwk_unlikely(a->op == RWK_ATOMIC_READ))
		memset(to, 0, len);
	else
		gather(a->rma.iov, a->rma.iov_count, to, len);
	if (rwk_atomic_compares(a->op))
		gather(a->compare, a->compare_count, to + len, len);
}

uint8_t rwk_rma_access(unsigned op, bool fetches)
{
	bool reads = op == RWK_ATOMIC_READ;

	return (reads ? 0 : RWK_REGION_WRITE) | (reads || fetches ? RWK_REGION_READ : 0);
}

/** Do the arrays of an atomic fit together? Its bytes in *len. */
static ssize_t check_atomic(const struct rwk_atomic_args *a, size_t *len)
{
	size_t element = rwk_atomic_valid(a->op, a->type) ? rwk_atomic_size(a->type) : 0;
	bool operands = a->op != RWK_ATOMIC_READ;

	if (!element)
		return -EOPNOTSUPP;
	if (!measure(&a->rma, operands ? a->rma.iov : a->result, operands ? a->rma.iov_count : a->result_count, len))
		return -EINVAL;
	if (rwk_atomic_compares(a->op) && rwk_iov_length(a->compare, a->compare_count) < *len)
		return -EINVAL;
	if (a->result && (a->result_count > RWK_ENGINE_IOV_MAX || rwk_iov_length(a->result, a->result_count) != *len))
		return -EINVAL;
	for (size_t i = 0; i < a->rma.remote_count; i++) {
		if (a->rma.remote[i].length & (element - 1)) /* a power of two */
			return -EINVAL;
	}
	return *len > RWK_ATOMIC_BYTES ? -EMSGSIZE : 0;
}

ssize_t rwk_engine_atomic(struct rwk_engine *e, const struct rwk_atomic_args *a)
{
	struct rwk_rma_request *r;
	size_t len;
	ssize_t bad = check_atomic(a, &len);
	int rc;

	if (bad)
		return bad;
	if (a->rma.peer->self)
		return rwk_rma_atomic_here(e, a, len);
	rc = request_new(&a->rma, a->result, a->result ? a->result_count : 0, len, &r);
	if (rc)
		return rc;
	r->kind = RWK_RMA_ATOMIC;
	r->access = rwk_rma_access(a->op, a->result);
	r->fetches = a->result;
	r->compares = rwk_atomic_compares(a->op);
	r->small = (uint16_t)(a->op << 8 | a->type);
	r->element = (uint16_t)rwk_atomic_size(a->type);
	r->flags = (r->flags & ~(uint32_t)RWK_F_DATA) | RWK_F_ATOMIC | (a->result ? RWK_F_READ : RWK_F_WRITE);
	if (!copy_room(e, r, len * (r->compares ? 2 : 1))) {
		rwk_rma_request_free(e, r);
		return -EAGAIN;
	}
	rwk_rma_operands(a, len, r->copy);
	e->status.counters.atomics++;
	e->status.counters.atomic_bytes += len;
	rwk_rma_begin_request(r->state, r);
	return 0;
}

bool rwk_peer_accessing(const struct rwk_peer *p)
{
	return p->rma && !rwk_list_empty(&p->rma->requests);
}

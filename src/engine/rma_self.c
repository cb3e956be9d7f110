/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations on our own memory: all is done in the call. */
#include "engine/rma_state.h"

static ssize_t done_here(struct rwk_engine *e, const struct rwk_rma_args *a, uint32_t flags, int status)
{
	rwk_rma_complete(e, a->flags | flags, a->context, status);
	return 0;
}

static int copy_here(
	const struct rwk_rma_args *a, size_t at, struct rwk_region *r, uint64_t offset, size_t len, bool store)
{
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	unsigned n = rwk_iov_slice(a->iov, a->iov_count, at, &len, iov, RWK_ENGINE_IOV_MAX);
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		rc = store ? rwk_region_store(r, offset, iov[i].iov_base, iov[i].iov_len)
			   : rwk_region_load(r, offset, iov[i].iov_base, iov[i].iov_len);
		offset += iov[i].iov_len;
	}
	return rc;
}

/** May the request have all of its ranges, and are elements of that size aligned in them? Meets with their regions. */
static int check_here(
	struct rwk_engine *e, const struct rwk_rma_args *a, unsigned access, size_t element, struct rwk_rma_met *met)
{
	struct rwk_region *r;
	uint64_t at;
	int rc = 0;

	met->count = 0;
	for (size_t i = 0; i < a->remote_count && !rc; i++) {
		rc = rwk_region_check(e->attr.regions, e, a->remote[i].key, a->remote[i].address, a->remote[i].length,
			access, &r, &at);
		if (!rc && !rwk_rma_is_aligned(r, at, a->remote[i].length, element))
			rc = rwk_rma_misaligned(element);
		if (!rc)
			rc = rwk_rma_meet(met, r);
	}
	return rc;
}

ssize_t rwk_rma_move_here(struct rwk_engine *e, const struct rwk_rma_args *a, size_t whole, bool store)
{
	unsigned access = store ? RWK_REGION_WRITE : RWK_REGION_READ;
	struct rwk_rma_met met;
	struct rwk_region *r;
	uint64_t offset;
	size_t at = 0;
	int rc = check_here(e, a, access, 1, &met);

	for (size_t i = 0; i < a->remote_count && !rc; i++) {
		const struct rwk_remote *to = &a->remote[i];

		rc = rwk_region_check(e->attr.regions, e, to->key, to->address, to->length, access, &r, &offset);
		if (!rc)
			rc = copy_here(a, at, r, offset, to->length, store);
		if (!rc)
			rwk_rma_met_access(&met, r, to->length);
		at += to->length;
	}
	if (!rc)
		rwk_rma_reached(e, NULL, &met, access, false, whole);
	if (!rc && store && a->flags & RWK_F_DATA)
		rwk_rma_data_came(e->me, rwk_to_room_of(a->flags), a->data, whole);
	return done_here(e, a, RWK_F_RMA | (store ? RWK_F_WRITE : RWK_F_READ), rc);
}

ssize_t rwk_rma_atomic_here(struct rwk_engine *e, const struct rwk_atomic_args *a, size_t whole)
{
	char operands[2 * RWK_ATOMIC_BYTES], results[RWK_ATOMIC_BYTES];
	unsigned access = rwk_rma_access(a->op, a->result), needed = rwk_rma_access_needed(a->op, a->type, access);
	struct rwk_rma_met met;
	struct rwk_region *r;
	uint64_t offset;
	size_t at = 0;
	int rc = check_here(e, &a->rma, needed, rwk_atomic_size(a->type), &met);

	rwk_rma_operands(a, whole, operands);
	for (size_t i = 0; i < a->rma.remote_count && !rc; i++) {
		const struct rwk_remote *to = &a->rma.remote[i];

		rc = rwk_region_check(e->attr.regions, e, to->key, to->address, to->length, needed, &r, &offset);
		if (!rc)
			rc = rwk_rma_atomic(r, offset, a->op, a->type, operands + at, operands + whole + at,
				results + at, to->length);
		if (!rc)
			rwk_rma_met_access(&met, r, to->length);
		at += to->length;
	}
	if (!rc)
		rwk_rma_reached(e, NULL, &met, access, true, whole);
	if (!rc && a->result)
		rwk_iov_scatter(a->result, a->result_count, 0, results, whole);
	return done_here(e, &a->rma, RWK_F_ATOMIC | (a->result ? RWK_F_READ : RWK_F_WRITE), rc);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The regions that an operation of several pieces or ranges meets with: each stays the same one to its end, and is told
 * of it once, when all is done, however many of the ranges are its own.
 */
#include "engine/rma_state.h"

int rwk_rma_meet(struct rwk_rma_met *m, const struct rwk_region *r)
{
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->region[i].key == r->key)
			return m->region[i].serial == r->serial ? 0 : -EACCES;
	}
	if (m->count == RWK_ENGINE_IOV_MAX)
		return -EACCES;
	m->region[m->count].key = r->key;
	m->region[m->count].serial = r->serial;
	m->region[m->count].accessed = false;
	m->region[m->count++].bytes = 0;
	return 0;
}

void rwk_rma_met_access(struct rwk_rma_met *m, const struct rwk_region *r, size_t len)
{
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->region[i].serial != r->serial)
			continue;
		m->region[i].accessed = true;
		m->region[i].bytes += len;
	}
}

static void tell(struct rwk_region *r, struct rwk_reached reached)
{
	reached.region = r;
	if (r->attr.told & reached.access)
		r->attr.reached(r->attr.owner, &reached);
}

static void tell_all(const struct rwk_engine *e, const struct rwk_rma_met *m, struct rwk_reached reached)
{
	struct rwk_region *r;

	for (uint32_t i = 0; i < m->count; i++) {
		if (!m->region[i].accessed || rwk_region_find(e->attr.regions, e, m->region[i].key, &r) ||
			r->serial != m->region[i].serial)
			continue; /* it has gone meanwhile */
		reached.length = m->region[i].bytes;
		tell(r, reached);
	}
}

void rwk_rma_reached(struct rwk_engine *e, struct rwk_region *r, const struct rwk_rma_met *m, unsigned access,
	bool atomic, size_t whole)
{
	const struct rwk_reached reached = {.access = access, .atomic = atomic, .length = whole};

	if (r)
		tell(r, reached);
	else
		tell_all(e, m, reached);
	if (e->attr.reached && e->wants_reached & access)
		e->attr.reached(e->owner, &reached);
}

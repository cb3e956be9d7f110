/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/area.h"

#include "engine/internal.h"
#include "engine/rma_state.h"

#define GUARD 64u

static void on_reached(void *owner, const struct rwk_reached *r)
{
	struct area *a = owner;

	a->reached++;
	a->reached_bytes += r->length;
}

void area_open_key(
	struct area *a, struct world *w, unsigned who, size_t length, unsigned access, bool offsets, uint64_t key)
{
	struct rwk_region_attr attr = {.count = 1,
		.access = access,
		.reached = on_reached,
		.told = RWK_REGION_READ | RWK_REGION_WRITE,
		.owner = a,
		.own_key = key != 0,
		.key = key};
	struct iovec iov;

	*a = (struct area){.w = w, .who = who, .length = length};
	a->guarded = aligned_alloc(GUARD, (length + 3 * GUARD) & ~(size_t)(GUARD - 1));
	assert_non_null(a->guarded);
	memset(a->guarded, AREA_FILL, length + 2 * GUARD);
	a->bytes = a->guarded + GUARD;
	a->base = offsets ? 0 : (uintptr_t)a->bytes;
	iov = (struct iovec){a->bytes, length};
	attr.iov = &iov;
	attr.base = a->base;
	assert_int_equal(rwk_region_add(w->regions[who], &attr, &a->region), 0);
	assert_ptr_equal(rwk_region_owner(a->region), a);
	a->key = rwk_region_key(a->region);
}

void area_open(struct area *a, struct world *w, unsigned who, size_t length, unsigned access, bool offsets)
{
	area_open_key(a, w, who, length, access, offsets, 0);
}

void area_check_filled(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], AREA_FILL);
}

void area_remove(struct area *a)
{
	if (a->region)
		rwk_region_remove(a->w->regions[a->who], a->region);
	a->region = NULL;
}

void area_close(struct area *a)
{
	area_check_filled(a->guarded, GUARD);
	area_check_filled(a->bytes + a->length, GUARD);
	area_remove(a);
	free(a->guarded);
}

const char area_direct[] = "direct";

void area_open_world(struct world *w, void *state, unsigned count)
{
	struct world_attr attr = {.transport = state, .count = count};

	if (state == area_direct) {
		attr.transport = &rwk_sim_transport;
		attr.service = rwk_sim_service_default;
		attr.service.direct_min = 4;
		attr.service.late = 300000;
	}
	world_open(w, &attr);
}

ssize_t area_request(struct world *w, unsigned from, enum area_kind kind, const struct rwk_rma_args *a)
{
	struct world_retry retry = {0};
	ssize_t rc;

	do {
		rc = kind == WRITE ? rwk_engine_write(w->e[from], a) : rwk_engine_read(w->e[from], a);
	} while (rc == -EAGAIN && world_retry(w, from, from, &retry));
	return rc;
}

ssize_t area_atomic(struct world *w, unsigned from, const struct rwk_atomic_args *a)
{
	struct world_retry retry = {0};
	ssize_t rc;

	do {
		rc = rwk_engine_atomic(w->e[from], a);
	} while (rc == -EAGAIN && world_retry(w, from, from, &retry));
	return rc;
}

ssize_t area_simple(struct world *w, unsigned from, const struct area *to, enum area_kind kind, void *buf, size_t at,
	size_t len, uint32_t flags, struct task *t)
{
	const struct iovec iov = {buf, len};
	const struct rwk_remote remote = {to->base + at, len, to->key};
	const struct rwk_rma_args a = {.peer = w->peer[from][to->who],
		.iov = &iov,
		.iov_count = 1,
		.remote = &remote,
		.remote_count = 1,
		.data = WORLD_DATA(len),
		.flags = flags,
		.context = t};

	return area_request(w, from, kind, &a);
}

void area_check_done(const struct task *t, uint32_t flags)
{
	assert_int_equal(t->times, 1);
	assert_int_equal(t->c.status, 0);
	assert_int_equal(t->c.flags & RWK_F_SHOWN, flags);
}

void area_open_met(struct area *a, struct world *w, void *transport, unsigned char *got, size_t length)
{
	struct task met[2] = {{0}};

	area_open_world(w, transport, 2);
	area_open(a, w, 1, length, 3, true);
	rwk_engine_want_reached(w->e[1], 0);
	rwk_region_set_told(a->region, 0);
	for (int i = 0; i < 2; i++) { /* the first connects, the second asks */
		assert_int_equal(area_simple(w, 0, a, READ, got, 0, length, 0, &met[i]), 0);
		world_settle(w);
	}
}

void area_prefer_direct(struct rwk_peer *p)
{
	struct rwk_rma_choice *c = &p->rma->choices->of[0][0][0];

	for (size_t i = 0; i < sizeof(*p->rma->choices) / sizeof(*c); i++) {
		c[i] = (struct rwk_rma_choice){.trial_in = 1000};
		c[i].way[RWK_DIRECTLY].cost = 1;
		c[i].way[RWK_BY_MESSAGES].cost = 1 << 30;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/group.h"

#include "base/cancel.h"
#include "bindings/libfabric/progress.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

void rwk_fi_group_init(struct rwk_fi_group *g)
{
	*g = (struct rwk_fi_group){.turns = 0};
	rwk_fi_mutex_init(&g->mutex);
	rwk_fi_wait_open(&g->engines, FI_WAIT_NONE, "fi_domain");
	atomic_init(&g->next, NULL);
	rwk_list_init(&g->members);
	rwk_list_init(&g->vacant);
}

void rwk_fi_groups_init(struct rwk_fi_groups *all, bool locked, bool one)
{
	rwk_fi_mutex_init(&all->control);
	rwk_fi_group_init(&all->first);
	all->last = &all->first;
	rwk_list_init(&all->vacant);
	rwk_list_append(&all->vacant, &all->first.vacant);
	all->locked = locked;
	all->one = one;
	all->progress = NULL;
}

void rwk_fi_groups_close(struct rwk_fi_groups *all)
{
	struct rwk_fi_group *g, *next;

	rwk_fi_progress_stop(all->progress);
	rwk_fi_wait_close(&all->first.engines);
	for (g = rwk_fi_group_after(&all->first); g; g = next) {
		next = rwk_fi_group_after(g);
		rwk_fi_wait_close(&g->engines);
		free(g);
	}
}

static void take_control(struct rwk_fi_groups *all)
{
	rwk_fi_lock(all->locked ? &all->control : NULL);
}

static void give_control(struct rwk_fi_groups *all)
{
	rwk_fi_unlock(all->locked ? &all->control : NULL);
}

/* One that nobody is in; whole cache lines, since others write their own. NULL: no memory. */
static struct rwk_fi_group *free_group(struct rwk_fi_groups *all)
{
	const size_t size = (sizeof(struct rwk_fi_group) + RWK_CACHE_LINE - 1) & ~(size_t)(RWK_CACHE_LINE - 1);
	struct rwk_list *vacant = rwk_list_pop(&all->vacant);
	struct rwk_fi_group *g;

	if (vacant)
		return rwk_container_of(vacant, struct rwk_fi_group, vacant);
	g = aligned_alloc(RWK_CACHE_LINE, size);
	if (!g)
		return NULL;
	rwk_fi_group_init(g);
	/* The progress thread walks them without a lock. */
	atomic_store_explicit(&all->last->next, g, memory_order_release);
	all->last = g;
	return g;
}

static void vacate(struct rwk_fi_groups *all, struct rwk_fi_group *g)
{
	rwk_list_remove(&g->vacant);
	rwk_list_append(&all->vacant, &g->vacant);
}

static void enter_group(struct rwk_fi_groups *all, struct rwk_fi_member *m, struct rwk_fi_group *g)
{
	m->group = g;
	rwk_list_remove(&g->vacant);
	rwk_list_append(&g->members, &m->link);
	atomic_store_explicit(&m->guard->mutex, all->locked ? &g->mutex : NULL, memory_order_relaxed);
}

int rwk_fi_join(struct rwk_fi_groups *all, struct rwk_fi_member *m, struct rwk_fi_guard *guard)
{
	struct rwk_fi_group *g;

	m->guard = guard;
	take_control(all);
	g = all->one ? &all->first : free_group(all);
	if (g)
		enter_group(all, m, g);
	give_control(all);
	return g ? 0 : -FI_ENOMEM;
}

void rwk_fi_part(struct rwk_fi_groups *all, struct rwk_fi_member *m)
{
	if (!m->group)
		return;
	take_control(all);
	rwk_list_remove(&m->link);
	if (rwk_list_empty(&m->group->members))
		vacate(all, m->group);
	give_control(all);
}

int rwk_fi_group_watch(struct rwk_fi_groups *all, struct rwk_fi_group *g)
{
	int err;

	if (!all->progress || g->engines.object == FI_WAIT_FD)
		return 0;
	err = rwk_fi_wait_open(&g->engines, FI_WAIT_FD, "fi_enable");
	if (err)
		rwk_fi_wait_open(&g->engines, FI_WAIT_NONE, "fi_enable");
	else
		rwk_fi_progress_ring(all->progress);
	return err;
}

int rwk_fi_group_attach(struct rwk_fi_groups *all, struct rwk_fi_member *m, struct rwk_engine *e)
{
	int err = rwk_fi_group_watch(all, m->group);

	return err ? err : rwk_fi_wait_attach(&m->group->engines, e);
}

/* The engines of `from` are driven with `to`, too; or not, if there is an error. */
static int copy_engines(struct rwk_fi_groups *all, struct rwk_fi_group *to, const struct rwk_fi_group *from)
{
	struct rwk_fi_member m = {.group = to};

	for (unsigned i = 0; i < from->engines.count; i++) {
		int err = rwk_fi_group_attach(all, &m, from->engines.engines[i]);

		if (!err)
			continue;
		while (i--)
			rwk_fi_group_detach(&m, from->engines.engines[i]);
		return err;
	}
	return 0;
}

/* All that is in `from` comes over. Under both locks, which have stirred who slept, and `control`. */
static int merge(struct rwk_fi_groups *all, struct rwk_fi_group *to, struct rwk_fi_group *from)
{
	int err = copy_engines(all, to, from);
	struct rwk_list *l;

	if (err)
		return err;
	while (from->engines.count)
		rwk_fi_wait_detach(&from->engines, from->engines.engines[0]);
	while ((l = rwk_list_pop(&from->mutex.stirred)))
		rwk_list_append(&to->mutex.stirred, l);
	while ((l = rwk_list_pop(&from->members)))
		enter_group(all, rwk_container_of(l, struct rwk_fi_member, link), to);
	vacate(all, from);
	return 0;
}

static int merge_two(struct rwk_fi_groups *all, struct rwk_fi_group *a, struct rwk_fi_group *b)
{
	int err;

	rwk_fi_lock(&a->mutex);
	rwk_fi_lock(&b->mutex);
	err = a->engines.count < b->engines.count ? merge(all, b, a) : merge(all, a, b);
	rwk_fi_unlock(&b->mutex);
	rwk_fi_unlock(&a->mutex);
	return err;
}

int rwk_fi_tie(struct rwk_fi_groups *all, struct rwk_fi_member *a, struct rwk_fi_member *b)
{
	int err = 0;

	take_control(all);
	if (a->group != b->group)
		err = merge_two(all, a->group, b->group);
	give_control(all);
	return err;
}

int rwk_fi_unite(struct rwk_fi_groups *all)
{
	int err = 0;

	take_control(all);
	for (struct rwk_fi_group *g = rwk_fi_group_after(&all->first); g && !all->one && !err;
		g = rwk_fi_group_after(g)) {
		rwk_fi_lock(&all->first.mutex);
		rwk_fi_lock(&g->mutex);
		err = merge(all, &all->first, g);
		rwk_fi_unlock(&g->mutex);
		rwk_fi_unlock(&all->first.mutex);
	}
	all->one |= !err;
	give_control(all);
	return err;
}

void rwk_fi_groups_drive(struct rwk_fi_groups *all)
{
	for (struct rwk_fi_group *g = all->progress ? NULL : &all->first; g; g = rwk_fi_group_after(g)) {
		struct rwk_fi_mutex *lock = all->locked ? &g->mutex : NULL;

		rwk_fi_lock_quietly(lock);
		if (!rwk_fi_wait_drive(&g->engines) && lock)
			rwk_fi_lock_stir(lock);
		rwk_fi_unlock(lock);
	}
}

void rwk_fi_stop(struct rwk_fi_groups *all)
{
	int before;

	if (!all->locked)
		return;
	before = rwk_cancel_hold_off();
	rwk_fi_lock(&all->control);
	all->cancel = before;
	for (struct rwk_fi_group *g = &all->first; g; g = rwk_fi_group_after(g))
		rwk_fi_lock(&g->mutex);
}

void rwk_fi_go(struct rwk_fi_groups *all)
{
	int before = all->cancel;

	if (!all->locked)
		return;
	for (struct rwk_fi_group *g = &all->first; g; g = rwk_fi_group_after(g))
		rwk_fi_unlock(&g->mutex);
	rwk_fi_unlock(&all->control);
	rwk_cancel_as_before(before);
}

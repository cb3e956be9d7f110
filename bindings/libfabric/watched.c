/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/watched.h"

#include "bindings/libfabric/cq.h"
#include "bindings/libfabric/eq.h"

#include <stdlib.h>

static struct rwk_fi_cntr *cntr_of(const struct rwk_fi_watched *w)
{
	return rwk_container_of(w->fid, struct rwk_fi_cntr, fid.fid);
}

static struct rwk_fi_cq *cq_of(const struct rwk_fi_watched *w)
{
	return rwk_container_of(w->fid, struct rwk_fi_cq, fid.fid);
}

static struct rwk_fi_eq *eq_of(const struct rwk_fi_watched *w)
{
	return rwk_container_of(w->fid, struct rwk_fi_eq, fid.fid);
}

static bool look_at_counter(struct rwk_fi_watched *w)
{
	struct rwk_fi_cntr *cntr = cntr_of(w);
	bool changed;

	rwk_fi_enter(&cntr->lock);
	rwk_fi_wait_progress(&cntr->wait);
	changed = rwk_fi_cntr_tell(cntr, &w->told);
	rwk_fi_leave(&cntr->lock);
	return changed;
}

bool rwk_fi_watched_look(struct rwk_fi_watched *w, bool waits)
{
	switch (w->fid->fclass) {
	case FI_CLASS_CQ:
		return rwk_fi_cq_look(cq_of(w), waits);
	case FI_CLASS_CNTR:
		return look_at_counter(w);
	default:
		return rwk_fi_eq_trywait(eq_of(w));
	}
}

int rwk_fi_watched_trywait(struct rwk_fi_watched *w)
{
	switch (w->fid->fclass) {
	case FI_CLASS_CQ:
		return rwk_fi_cq_trywait(cq_of(w));
	case FI_CLASS_CNTR:
		return rwk_fi_cntr_trywait(cntr_of(w), &w->told);
	default:
		return rwk_fi_eq_trywait(eq_of(w));
	}
}

int rwk_fi_watched_add(struct rwk_fi_watched_list *list, struct fid *fid)
{
	size_t room = list->room ? 2 * list->room : 4;
	struct rwk_fi_watched *all;

	if (list->count == list->room) {
		all = realloc(list->all, room * sizeof(*all));
		if (!all)
			return -FI_ENOMEM;
		list->all = all;
		list->room = room;
	}
	list->all[list->count++] = (struct rwk_fi_watched){.fid = fid};
	return 0;
}

bool rwk_fi_watched_remove(struct rwk_fi_watched_list *list, const struct fid *fid)
{
	size_t i = 0;

	while (i < list->count && list->all[i].fid != fid)
		i++;
	if (i == list->count)
		return false;
	list->all[i] = list->all[--list->count];
	return true;
}

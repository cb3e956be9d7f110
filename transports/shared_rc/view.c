/* SPDX-License-Identifier: BSD-3-Clause */
#include "internal.h"

#include "base/this_process.h"

#include <stdlib.h>

static struct rwk_rc *new_shell(void)
{
	size_t bytes = rwk_rc_size() + RWK_RC_BUSY_SIZE;

	return aligned_alloc(RWK_CACHE_LINE, (bytes + RWK_CACHE_LINE - 1) / RWK_CACHE_LINE * RWK_CACHE_LINE);
}

static void free_view(struct rwk_src_view *v)
{
	free(v->qp);
	free(v->responder);
	free(v->maker);
	free(v->next);
	free(v->has_early);
	free(v->slots);
	free(v->own);
	free(v->published);
	free(v);
}

static int allocate(struct rwk_src_view *v)
{
	v->qp = new_shell();
	v->responder = calloc(1, RWK_SRC_RESPONDER);
	v->maker = new_shell();
	v->next = calloc(v->size.targets, sizeof(*v->next));
	v->has_early = calloc((v->size.targets + 63) / 64, sizeof(*v->has_early));
	v->slots = malloc((RWK_SRC_SLOTS + 1) * sizeof(*v->slots));
	v->own = calloc(v->layout.keys, sizeof(*v->own));
	v->published = calloc(v->size.targets, sizeof(*v->published));
	if (!v->qp || !v->responder || !v->maker || !v->next || !v->has_early || !v->slots || !v->own || !v->published)
		return -ENOMEM;
	rwk_rc_open(v->qp, NULL, &rwk_src_machine_host, v);
	return 0;
}

/* Seats of the dead that nobody has buried yet are free, too. No upcall comes before the user has the view. */
static int take_seat(struct rwk_src_view *v)
{
	int rc = rwk_src_seat_take(v);

	return rc == -ENOSPC && rwk_src_find_dead(v, true) ? rwk_src_seat_take(v) : rc;
}

int rwk_src_view_open(void *memory, const struct rwk_src_host *host, void *user, struct rwk_src_view **view)
{
	struct rwk_src_view *v = calloc(1, sizeof(*v));
	int rc;

	if (!v)
		return -ENOMEM;
	v->header = memory;
	v->host = host;
	v->user = user;
	v->life = -1;
	v->process = rwk_this_process();
	rc = rwk_src_layout_check(memory, &v->size, &v->layout);
	if (!rc)
		rc = allocate(v);
	if (!rc)
		rc = take_seat(v);
	if (rc) {
		free_view(v);
		return rc;
	}
	*view = v;
	return 0;
}

void rwk_src_view_close(struct rwk_src_view *v)
{
	uint32_t srqn = v->srqn;

	if (v->process == rwk_this_process()) {
		rwk_src_early_tidy(v);
		rwk_src_guard_down(v);
		atomic_compare_exchange_strong(&v->me->srqn, &srqn, 0);
	}
	free_view(v);
}

uint32_t rwk_src_srqn(const struct rwk_src_view *v)
{
	return v->srqn;
}

_Atomic uint32_t *rwk_src_socket_word(struct rwk_src_view *v)
{
	return &v->header->socket_word;
}

void rwk_src_set_bell(struct rwk_src_view *v, const struct rwk_link_address *at)
{
	v->me->bell = *at;
}

struct rwk_link_address rwk_src_bell(const struct rwk_src_view *v, uint32_t srqn)
{
	return rwk_src_member(v, srqn & (RWK_SRC_MEMBERS_MAX - 1))->bell;
}

const struct rwk_src_counters *rwk_src_get_counters(const struct rwk_src_view *v)
{
	((struct rwk_src_view *)v)->counters.qp = *rwk_rc_counters(v->qp);
	return &v->counters;
}

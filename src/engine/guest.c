/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/internal.h"

#include <stdlib.h>

/** A message that waits; its `claimed` is in the inbox's list of claimed or of due messages, or in none. */
struct guest {
	struct rwk_unexpected u; /* u.rx: what it is due for; NULL: to be dropped */
	struct rwk_inbox *box;
	void *handle;
	enum { WAITS, DUE } state;
};

static struct guest *guest_of(struct rwk_unexpected *u)
{
	return rwk_container_of(u, struct guest, u);
}

int rwk_guest_match(struct rwk_inbox *box, const struct rwk_offer *m, struct rwk_rx **rx)
{
	/* Receives here are from anyone; what stands for the sender is no peer. */
	struct rwk_posted *posted = rwk_match_message(box->matcher[m->space], box, m->tag);
	struct rwk_rx *found;

	if (!posted)
		return -ENOENT;
	found = rwk_container_of(posted, struct rwk_rx, posted);
	if (found->flags & RWK_F_MULTI)
		found = rwk_rx_part(box, found, m->length);
	if (!found)
		return -ENOMEM;
	*rx = found;
	return 0;
}

void rwk_guest_receive(const struct rwk_rx *rx, struct rwk_given *g)
{
	*g = (struct rwk_given){
		.handle = rx->context,
		.iov = rx->iov,
		.count = rx->iov_count,
		.flags = rx->flags & ~(RWK_F_USER - 1u),
	};
}

void rwk_guest_end(struct rwk_inbox *box, struct rwk_rx *rx, int status)
{
	struct rwk_given g;
	struct rwk_completion c;

	if (status) {
		rwk_guest_receive(rx, &g);
		c = (struct rwk_completion){
			.context = g.handle,
			.flags = RWK_F_RECV | rwk_space_flag(rwk_space_of(rx->flags)) | g.flags,
			.status = status,
		};
		box->complete(box->owner, &c);
	}
	rwk_rx_release(box, rx);
}

static void make_due(struct guest *g, struct rwk_rx *rx)
{
	g->u.rx = rx;
	g->state = DUE;
	rwk_list_append(&g->box->due, &g->u.claimed);
}

int rwk_guest_keep(struct rwk_inbox *box, const struct rwk_offer *m, void *handle, struct rwk_unexpected **u)
{
	struct guest *g = calloc(1, sizeof(*g));
	struct rwk_rx *rx;
	int rc;

	if (!g)
		return -ENOMEM;
	rc = rwk_guest_match(box, m, &rx);
	if (rc == -ENOMEM) {
		free(g);
		return rc;
	}
	g->box = box;
	g->handle = handle;
	g->u.arrived.tag = m->tag;
	g->u.arrived.from = box;
	g->u.length = m->length;
	g->u.data = m->data;
	g->u.came = m->has_data ? RWK_F_DATA : 0;
	g->u.space = m->space;
	g->u.state = RWK_U_GUEST;
	rwk_list_init(&g->u.claimed);
	if (rc)
		rwk_match_keep(box->matcher[m->space], &g->u.arrived);
	else
		make_due(g, rx);
	*u = &g->u;
	return 0;
}

void rwk_guest_deliver(struct rwk_rx *rx, struct rwk_unexpected *u)
{
	make_due(guest_of(u), rx);
}

void rwk_guest_drop(struct rwk_unexpected *u)
{
	make_due(guest_of(u), NULL);
}

void rwk_guest_withdraw(struct rwk_unexpected *u)
{
	struct guest *g = guest_of(u);
	struct rwk_inbox *box = g->box;
	struct rwk_rx *rx = u->rx;

	if (g->state == WAITS && rwk_list_empty(&u->claimed))
		rwk_match_take(box->matcher[u->space], &u->arrived);
	rwk_list_remove(&u->claimed);
	free(g);
	if (rx)
		rwk_guest_end(box, rx, -ECANCELED);
}

bool rwk_guest_is_due(const struct rwk_inbox *box)
{
	return !rwk_list_empty(&box->due);
}

bool rwk_guest_next(struct rwk_inbox *box, struct rwk_due *due)
{
	struct rwk_list *l = rwk_list_pop(&box->due);
	struct guest *g;

	if (!l)
		return false;
	g = guest_of(rwk_container_of(l, struct rwk_unexpected, claimed));
	*due = (struct rwk_due){.handle = g->handle, .rx = g->u.rx};
	free(g);
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An inbox: where receives wait for messages, and messages for receives. Each engine has one, its own or one that it
 * shares with others. What comes by whom is the engines' matter (inbound.c), what is asked for that of receive.c; here
 * an inbox is made, ended, and left by an engine that ends.
 */
#include "engine/internal.h"

int rwk_inbox_begin(struct rwk_inbox *box, const struct rwk_inbox_attr *attr)
{
	int rc = 0;

	*box = (struct rwk_inbox){
		.complete = attr->complete,
		.owner = attr->owner,
		.rx_limit = attr->rx_limit ? attr->rx_limit : SIZE_MAX,
		.multi_min = attr->multi_min,
	};
	rwk_list_init(&box->claimed);
	rwk_list_init(&box->due);
	rwk_pool_init(&box->rx_pool, sizeof(struct rwk_rx), 32, 0);
	for (enum rwk_space s = 0; s < RWK_SPACES && !rc; s++)
		rc = rwk_matcher_open(&box->matcher[s]);
	if (rc)
		rwk_inbox_end(box);
	return rc;
}

void rwk_inbox_end(struct rwk_inbox *box)
{
	for (enum rwk_space s = 0; s < RWK_SPACES; s++) {
		if (box->matcher[s])
			rwk_matcher_close(box->matcher[s]);
	}
	rwk_pool_close(&box->rx_pool);
}

int rwk_inbox_open(const struct rwk_inbox_attr *attr, struct rwk_inbox **out)
{
	struct rwk_inbox *box = malloc(sizeof(*box));
	int rc = box ? rwk_inbox_begin(box, attr) : -ENOMEM;

	if (rc)
		free(box);
	else
		*out = box;
	return rc;
}

void rwk_inbox_close(struct rwk_inbox *box)
{
	rwk_inbox_end(box);
	free(box);
}

void rwk_inbox_set_multi_min(struct rwk_inbox *box, size_t bytes)
{
	box->multi_min = bytes;
}

static bool came_by(const struct rwk_unexpected *u, const struct rwk_engine *e)
{
	return u->peer && u->peer->engine == e;
}

static int free_kept(struct rwk_arrived *a, void *arg)
{
	struct rwk_engine *e = arg;
	struct rwk_unexpected *u = rwk_container_of(a, struct rwk_unexpected, arrived);

	if (!came_by(u, e))
		return 0;
	rwk_match_take(e->rooms[u->room]->matcher[u->space], a);
	rwk_unexpected_free(u);
	return 0;
}

/** What waits there and has come by the engine is dropped. */
static void leave(struct rwk_engine *e, struct rwk_inbox *box)
{
	for (enum rwk_space s = 0; s < RWK_SPACES; s++)
		rwk_match_each_kept(box->matcher[s], free_kept, e);
	for (struct rwk_list *l = box->claimed.next, *next; l != &box->claimed; l = next) {
		struct rwk_unexpected *u = rwk_container_of(l, struct rwk_unexpected, claimed);

		next = l->next;
		if (came_by(u, e))
			rwk_unexpected_free(u);
	}
}

void rwk_inbox_leave(struct rwk_engine *e)
{
	for (unsigned i = 0; rwk_room_exists(e, i); i++)
		leave(e, e->rooms[i]);
	for (unsigned i = 1; rwk_room_exists(e, i); i++)
		rwk_inbox_close(e->rooms[i]);
	if (!rwk_inbox_is_shared(e))
		rwk_inbox_end(e->inbox);
}

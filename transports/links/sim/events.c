/* SPDX-License-Identifier: BSD-3-Clause */
/* What is to happen: a heap, ordered by time and then by the order in which it was said. */
#include "links/sim/network.h"

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void rwk_sim_schedule(struct rwk_sim *s, struct event *e, rwk_time at)
{
	size_t i = s->events++;

	e->at = at;
	e->order = s->order++;
	if (s->events > s->heap_size) {
		s->heap_size = s->heap_size ? 2 * s->heap_size : 64;
		s->heap = rwk_sim_must(realloc(s->heap, s->heap_size * sizeof(*s->heap)));
	}
	for (; i && earlier(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

struct event *rwk_sim_pop(struct rwk_sim *s)
{
	struct event *first, *last;
	size_t i = 0;

	if (!s->events)
		return NULL;
	first = s->heap[0];
	last = s->heap[--s->events];
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= s->events)
			break;
		if (child + 1 < s->events && earlier(s->heap[child + 1], s->heap[child]))
			child++;
		if (!earlier(s->heap[child], last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return first;
}

struct event *rwk_sim_event(enum event_kind kind, uint32_t from, uint32_t to, size_t len)
{
	struct event *e = rwk_sim_must(calloc(1, sizeof(*e) + len));

	rwk_list_init(&e->link);
	e->kind = kind;
	e->from = from;
	e->to = to;
	e->len = len;
	return e;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "internal.h"

#include "base/shared.h"

#include <string.h>

static size_t up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static_assert(RWK_RC_WINDOW_MAX * RWK_WIRE_OWN_MAX % RWK_SRC_GIVEN == 0, "early packets are given back by pages");

static bool is_power(uint32_t n)
{
	return n && !(n & (n - 1));
}

int rwk_src_layout_of(const struct rwk_src_size *size, struct rwk_src_layout *l)
{
	if (size->members < 2 || size->members > RWK_SRC_MEMBERS_MAX || !is_power(size->targets) ||
		size->targets > RWK_SRC_TARGETS_MAX || !is_power(size->inbox_bytes) ||
		size->inbox_bytes < RWK_SRC_INBOX_MIN)
		return -EINVAL;
	l->state_bytes = up(sizeof(struct rwk_src_state) + RWK_SRC_RESPONDER, RWK_CACHE_LINE);
	l->target_stride = sizeof(struct rwk_src_target) + 2 * l->state_bytes;
	l->early_stride = up(RWK_RC_WINDOW_MAX * sizeof(struct rwk_src_early), RWK_SRC_GIVEN) +
			  RWK_RC_WINDOW_MAX * RWK_WIRE_OWN_MAX;
	l->members = RWK_SRC_PAGE;
	l->directory = l->members + size->members * sizeof(struct rwk_src_member);
	l->chains = l->directory + size->targets * sizeof(struct rwk_src_entry);
	l->targets = up(l->chains + size->targets * sizeof(uint32_t), RWK_CACHE_LINE);
	l->keys = size->targets * RWK_SRC_KEYS_EACH;
	l->keys = l->keys < RWK_SRC_KEY_TRIES ? RWK_SRC_KEY_TRIES : l->keys;
	l->key_words = up(l->targets + size->targets * l->target_stride, RWK_SRC_PAGE);
	l->regions = up(l->key_words + l->keys * sizeof(uint64_t), RWK_CACHE_LINE);
	l->puzzle_locks = up(l->regions + l->keys * sizeof(struct rwk_src_region), RWK_CACHE_LINE);
	l->inboxes = up(l->puzzle_locks + RWK_SRC_PUZZLES * sizeof(struct rwk_src_puzzle_lock), RWK_SRC_PAGE);
	l->puzzles = l->inboxes + (size_t)size->members * size->inbox_bytes;
	l->early = up(l->puzzles + RWK_SRC_PUZZLES * RWK_SRC_PUZZLE, RWK_SRC_GIVEN);
	l->bytes = l->early + size->targets * l->early_stride;
	return 0;
}

static void put_sizes(uint32_t sizes[7])
{
	sizes[0] = sizeof(struct rwk_src_member);
	sizes[1] = sizeof(struct rwk_src_target);
	sizes[2] = sizeof(struct rwk_src_early);
	sizes[3] = (uint32_t)RWK_SRC_RESPONDER;
	sizes[4] = sizeof(pthread_mutex_t);
	sizes[5] = sizeof(struct rwk_src_region);
	sizes[6] = sizeof(struct rwk_puzzle);
}

int rwk_src_layout_check(const void *memory, struct rwk_src_size *size, struct rwk_src_layout *layout)
{
	struct rwk_src_header h;
	struct rwk_src_layout l;
	uint32_t sizes[7];

	memcpy(&h, memory, sizeof(h)); /* once: a sibling gone mad may write there at any time */
	put_sizes(sizes);
	if (h.magic != RWK_SRC_MAGIC || h.layout != RWK_SRC_LAYOUT || memcmp(h.sizes, sizes, sizeof(sizes)) ||
		rwk_src_layout_of(&h.size, &l) || l.bytes != h.bytes)
		return -EPROTONOSUPPORT;
	*size = h.size;
	*layout = l;
	return 0;
}

int rwk_src_segment_check(const void *memory, const struct rwk_src_size *size)
{
	struct rwk_src_layout l;
	struct rwk_src_size said;
	int rc = rwk_src_layout_check(memory, &said, &l);

	return rc || !memcmp(&said, size, sizeof(said)) ? rc : -EPROTONOSUPPORT;
}

size_t rwk_src_segment_size(const struct rwk_src_size *size)
{
	struct rwk_src_layout l;

	return rwk_src_layout_of(size, &l) ? 0 : l.bytes;
}

bool rwk_src_populate(const void *at, size_t size)
{
	return rwk_shared_populate((void *)(uintptr_t)at, size);
}

/* Header, members, directory and chains; key words; locks of puzzles. */
static bool populate(const char *memory, const struct rwk_src_layout *l)
{
	return rwk_src_populate(memory, l->targets) &&
	       rwk_src_populate(memory + l->key_words, l->regions - l->key_words) &&
	       rwk_src_populate(memory + l->puzzle_locks, l->inboxes - l->puzzle_locks);
}

int rwk_src_segment_format(void *memory, const struct rwk_src_size *size)
{
	struct rwk_src_header *h = memory;
	struct rwk_src_puzzle_lock *puzzle;
	struct rwk_src_member *m;
	struct rwk_src_layout l;
	int rc = rwk_src_layout_of(size, &l);

	if (!rc && !populate(memory, &l))
		rc = -ENOMEM;
	if (!rc)
		rc = rwk_src_lock_init(&h->lock);
	if (rc)
		return rc;
	m = (struct rwk_src_member *)((char *)memory + l.members);
	for (uint32_t i = 0; i < size->members && !rc; i++)
		rc = rwk_src_lock_init(&m[i].lock);
	puzzle = (struct rwk_src_puzzle_lock *)((char *)memory + l.puzzle_locks);
	for (uint32_t i = 0; i < RWK_SRC_PUZZLES && !rc; i++)
		rc = rwk_src_lock_init(&puzzle[i].lock);
	if (rc)
		return rc;
	h->layout = RWK_SRC_LAYOUT;
	put_sizes(h->sizes);
	h->size = *size;
	h->bytes = l.bytes;
	rwk_publish64((_Atomic uint64_t *)&h->magic, RWK_SRC_MAGIC);
	return 0;
}

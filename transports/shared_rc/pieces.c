/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that come to the domain in pieces, of which each member gets some. They are put together in the segment, each
 * packet in a place that follows from its sender and its serial number; of two packets that meet there the later one
 * stays. What a member's death leaves half done there spoils one packet at most, whose ICRC tells. A piece for whose
 * place there is no memory is lost.
 */
#include "internal.h"

#include <string.h>

static_assert(!(RWK_SRC_PUZZLES & (RWK_SRC_PUZZLES - 1)), "a hash's low bits name a place");

/*
 * Those that a sender cuts one after the other stand side by side. Senders may differ in the upper bytes of a word
 * alone, as the hosts of a network do, and these have to reach the low bits.
 */
static uint32_t place_of(const struct rwk_link_address *from, uint32_t serial)
{
	uint64_t words[sizeof(*from) / 8], hash = 0;

	memcpy(words, from, sizeof(words));
	for (unsigned i = 0; i < sizeof(words) / 8; i++) {
		hash ^= words[i];
		hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ull;
	}
	return ((uint32_t)(hash >> 40) + serial) & (RWK_SRC_PUZZLES - 1);
}

size_t rwk_src_piece(
	struct rwk_src_view *v, const struct rwk_link_address *from, const struct rwk_piece *piece, void *whole)
{
	uint32_t place = place_of(from, piece->serial);
	struct rwk_puzzle *p = rwk_src_puzzle(v, place);
	pthread_mutex_t *lock = &rwk_src_puzzle_lock(v, place)->lock;
	size_t of;

	if (!rwk_src_populate(p, sizeof(*p)))
		return 0;
	if (!rwk_src_lock(v, lock)) {
		v->counters.locked_out++;
		return 0;
	}
	of = rwk_puzzle_put(p, from, piece);
	if (of)
		memcpy(whole, p->bytes, of);
	rwk_src_unlock(lock);
	return of;
}

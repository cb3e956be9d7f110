/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/puzzle.h"

#include <assert.h>
#include <string.h>

static_assert(RWK_PUZZLE_PIECES == 8 * sizeof(((struct rwk_puzzle *)0)->have), "each piece has a bit");

static unsigned pieces_of(const struct rwk_piece *piece)
{
	return (unsigned)(piece->of - 1) / piece->unit + 1;
}

bool rwk_piece_is_sound(const struct rwk_piece *p)
{
	if (!p->unit || p->at % p->unit || p->at >= p->of || p->of > RWK_PUZZLE_MAX || pieces_of(p) > RWK_PUZZLE_PIECES)
		return false;
	return p->len == (p->of - p->at < p->unit ? p->of - p->at : p->unit);
}

bool rwk_puzzle_is_of(const struct rwk_puzzle *p, const struct rwk_link_address *from, const struct rwk_piece *piece)
{
	return p->have && p->serial == piece->serial && p->of == piece->of && p->unit == piece->unit &&
	       !memcmp(&p->from, from, sizeof(*from));
}

size_t rwk_puzzle_put(struct rwk_puzzle *p, const struct rwk_link_address *from, const struct rwk_piece *piece)
{
	if (!rwk_puzzle_is_of(p, from, piece)) {
		p->have = 0;
		p->from = *from;
		p->serial = piece->serial;
		p->of = piece->of;
		p->unit = piece->unit;
	}
	memcpy(p->bytes + piece->at, piece->bytes, piece->len);
	p->have |= 1ull << piece->at / piece->unit;
	if (p->have != UINT64_MAX >> (RWK_PUZZLE_PIECES - pieces_of(piece)))
		return 0;
	p->have = 0;
	return piece->of;
}

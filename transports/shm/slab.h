/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slabs: where payload lies that is too long for the ring's lines. A slab belongs to one side at a time. The sender
 * fills one that is his and names it in a line; once the receiver has consumed that line the slab is the receiver's,
 * who uses it for what he sends next: its lines are in his cache already.
 *
 *   home    each side mints slabs out of its own home, one by one as it runs out, up to RWK_SHM_SLABS
 *   mine    a bit for each slab of the pair: belongs to this side or is not minted yet. Private memory: a peer that
 *           names a slab that is not his breaks the protocol
 *   read    a bit for each slab of this side's: the other one has read it last, and given it back
 *   stack   the slabs of this side that are free, hottest on top. A side that only receives gives the coldest back
 *           (SLABS_BACK) when it has KEEP + BATCH of them. KEEP + BATCH < RWK_SHM_SLABS, so a sender that has minted
 *           all gets some back
 */
#ifndef RWK_SHM_SLAB_H
#define RWK_SHM_SLAB_H

#include "shm/layout.h"

#define RWK_SHM_SLABS_KEEP  8u
#define RWK_SHM_SLABS_BATCH 16u
_Static_assert(RWK_SHM_SLABS_BATCH * sizeof(uint16_t) <= RWK_SHM_CONTROL_MAX, "a batch fits into a line");
_Static_assert(
	RWK_SHM_SLABS_KEEP + RWK_SHM_SLABS_BATCH < RWK_SHM_SLABS / 2, "a sender gets slabs back before it has none");

#define RWK_SHM_NO_SLAB UINT32_MAX

struct rwk_shm_slabs {
	unsigned char *base; /* slab 0 of the pair, mapped here */
	uint64_t mine[2];
	uint64_t read[2];
	uint32_t count;  /* on the stack */
	uint32_t minted; /* of this side's home */
	uint32_t home;   /* number of the first slab of this side's home */
	uint32_t last;   /* number of the one sent last */
	bool lacks;      /* there was no memory for another one when it was asked for last */
	uint16_t stack[2 * RWK_SHM_SLABS];
};

void rwk_shm_slabs_init(struct rwk_shm_slabs *s, unsigned char *base, unsigned side);

/** Mints one: its number, or RWK_SHM_NO_SLAB: all are minted, or there is no memory. */
uint32_t rwk_shm_slab_mint(struct rwk_shm_slabs *s);

/** Mints until `n` are on the stack; false if so many cannot be had now. */
bool rwk_shm_slabs_reserve(struct rwk_shm_slabs *s, uint32_t n);

/** The coldest RWK_SHM_SLABS_BATCH of the stack, which now are the other's. */
void rwk_shm_slabs_give_back(struct rwk_shm_slabs *s, uint16_t id[RWK_SHM_SLABS_BATCH]);

/** How many can be had now, without asking for memory. */
static inline uint32_t rwk_shm_slabs_left(const struct rwk_shm_slabs *s)
{
	return s->count + RWK_SHM_SLABS - s->minted;
}

/** Is one to be had now, as far as is known? Where memory was lacking that is to be tried now and then. */
static inline bool rwk_shm_slab_likely(const struct rwk_shm_slabs *s)
{
	return s->count || (!s->lacks && s->minted < RWK_SHM_SLABS);
}

/** There is none, nor memory for one, and those that the other side has got are too few for it to give any back. */
static inline bool rwk_shm_slabs_dry(const struct rwk_shm_slabs *s)
{
	return s->lacks && !s->count &&
	       __builtin_popcountll(~s->mine[s->home / 64]) < (int)(RWK_SHM_SLABS_KEEP + RWK_SHM_SLABS_BATCH);
}

static inline unsigned char *rwk_shm_slab(const struct rwk_shm_slabs *s, uint32_t id)
{
	return s->base + (size_t)id * RWK_SHM_SLAB_STRIDE;
}

/** One to fill; RWK_SHM_NO_SLAB if there is none. It stays this side's until rwk_shm_slab_sent. */
static inline uint32_t rwk_shm_slab_take(struct rwk_shm_slabs *s)
{
	if (rwk_unlikely(!s->count))
		return rwk_shm_slab_mint(s);
	return s->stack[--s->count];
}

/** Filled and about to be named in a line: now the other's. */
static inline void rwk_shm_slab_sent(struct rwk_shm_slabs *s, uint32_t id)
{
	s->mine[id / 64] &= ~(1ull << id % 64);
	s->last = id;
}

/** A number that came from the peer: is it one of the pair's slabs that is his? */
static inline bool rwk_shm_slab_is_his(const struct rwk_shm_slabs *s, uint32_t id)
{
	return id < 2 * RWK_SHM_SLABS && !(s->mine[id / 64] >> id % 64 & 1);
}

/** A slab of his, checked, becomes ours: we have read it, or (`back`) he has and gives it back. */
static inline void rwk_shm_slab_got(struct rwk_shm_slabs *s, uint32_t id, bool back)
{
	s->mine[id / 64] |= 1ull << id % 64;
	s->read[id / 64] = (s->read[id / 64] & ~(1ull << id % 64)) | (uint64_t)back << id % 64;
	s->stack[s->count++] = (uint16_t)id;
}

/** Has the other side read it last? */
static inline bool rwk_shm_slab_was_read(const struct rwk_shm_slabs *s, uint32_t id)
{
	return s->read[id / 64] >> id % 64 & 1;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words by which two sides share out the chunks of one transfer. The one who asked takes from the back, its helper
 * from the front, until all chunks are claimed; the helper no more than its half. So where both are there each half is
 * copied by the same side time after time, whose caches have it: a program that sends from one buffer again and again
 * has twice the bandwidth that it has where the border moves. And there are two chunks, of more than 2 MB as many pairs
 * as make them no longer than a megabyte: each costs two lines that change sides, and a call of the kernel's if there
 * are no others that can be copied with it. The border of two that are shorter lies where both sides end at the same
 * time (transfer_border.h), which the ask says.
 *
 * Claims and done-counts are apart. The claim word says how many chunks each side has taken; it is the only word that
 * both write, by compare-and-swap, and carries the transfer's id, so that a late helper cannot claim in a later one's
 * name. What the helper has finished stands in its own area.
 *
 * claim word:  id (32 bits) | helper's chunks (16) | asker's chunks (16)
 * pushed word: id (32 bits) | gave up (1 of 16)    | chunks finished (16)
 */
#ifndef RWK_SHM_TRANSFER_CLAIM_H
#define RWK_SHM_TRANSFER_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#define RWK_SHM_BOTH_LEAST  ((uint64_t)16 << 10)  /* what is not longer is one side's; */
#define RWK_SHM_BOTH_LONE   ((uint64_t)32 << 10)  /* so is what comes alone, and is not longer than that */
#define RWK_SHM_SHARED_MOST 8u                    /* transfers that the helper is asked for at a time, */
#define RWK_SHM_SHARED_LONG ((uint64_t)2 << 20)   /* with so many bytes; or two of any length */
#define RWK_SHM_AT_ONCE     ((uint64_t)256 << 10) /* bytes of several chunks that one call copies, about */
#define RWK_SHM_CHUNK_MOST  ((uint64_t)1 << 20)
#define RWK_SHM_CHUNKS_MOST 0xffffu

struct rwk_shm_claim {
	uint32_t id, theirs, mine; /* theirs: the helper's chunks; mine: the asker's */
};

static inline uint64_t rwk_shm_claim_pack(uint32_t id, uint32_t high, uint32_t low)
{
	return (uint64_t)id << 32 | high << 16 | low;
}

static inline struct rwk_shm_claim rwk_shm_claim_unpack(uint64_t word)
{
	return (struct rwk_shm_claim){
		.id = (uint32_t)(word >> 32), .theirs = (word >> 16) & 0xffff, .mine = word & 0xffff};
}

/* Rounded up. No length overflows, whatever a peer says. */
static inline uint64_t rwk_shm_parts(uint64_t length, uint64_t part)
{
	return length / part + (length % part != 0);
}

/** Bytes of a chunk, the last one aside: as many pairs of them as it takes. Both sides compute it from the length. */
static inline uint64_t rwk_shm_chunk_for(uint64_t length)
{
	uint64_t pairs = rwk_shm_parts(length, 2 * RWK_SHM_CHUNK_MOST);
	uint64_t c = pairs <= 1 ? rwk_shm_parts(length, 2) : rwk_shm_parts(length, 2 * pairs);

	return (c + 4095) / 4096 * 4096;
}

static inline uint64_t rwk_shm_chunks_in(uint64_t length)
{
	uint64_t c = rwk_shm_chunk_for(length);

	return length <= 2 * c ? 1 + (length > c) : rwk_shm_parts(length, c);
}

/** Pages by which the border of two chunks may be before their middle, or behind it: half of one. */
static inline int rwk_shm_lead_most(uint64_t length)
{
	uint64_t chunk = rwk_shm_chunk_for(length);

	return chunk > RWK_SHM_CHUNK_MOST / 2 || rwk_shm_chunks_in(length) != 2 ? 0 : (int)(chunk / 2 / 4096);
}

/**
 * Where that chunk begins; where the transfer ends if there is none of that number. Of two the second begins `lead`
 * pages, at most rwk_shm_lead_most, before the middle.
 */
static inline uint64_t rwk_shm_chunk_at(uint64_t length, int lead, uint64_t number)
{
	uint64_t at = number * rwk_shm_chunk_for(length);

	if (number == 1)
		at -= (uint64_t)(lead * 4096);
	return at < length ? at : length;
}

/** May the helper be asked for one more, with which there are `bytes`, before it has ended `before` others? */
static inline bool rwk_shm_shares(unsigned before, uint64_t bytes)
{
	return before < 2 || (before < RWK_SHM_SHARED_MOST && bytes <= RWK_SHM_SHARED_LONG);
}

/** How many of them the helper may take. */
static inline uint64_t rwk_shm_chunks_to_help(uint64_t length)
{
	return rwk_shm_chunks_in(length) / 2;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lies in a transfer area. Each side has one that it writes and the other reads; only the claims, which two sides
 * contend for, are written by both.
 *
 *   given_back   how many of the other side's blocks this side, as a reader, has emptied
 *   head, bytes  the blocks that this side stages for the other: block k of its history sits in place k % BLOCKS
 *   claim        one for each of this side's ops that both sides copy: who copies which chunk
 *   pushed       how much of the other side's ops this side has copied; in the place of the other's claim
 *   writing      the region of the other side's that this side is writing into at the moment: its cookie; 0: none
 *   pulling      this side copies what it reads, by itself, at the moment; 0: it does not
 *   guard        address of this side's guard page (transfer_guard.c); 0: there is none
 *   valid        the cookies of this side's regions that are exposed now, by index as far as there is room; 0: none;
 *                without their top bit those of regions that are not to be written
 */
#ifndef RWK_SHM_TRANSFER_AREA_H
#define RWK_SHM_TRANSFER_AREA_H

#include "shm/transfer_state.h"

#define RWK_SHM_BLOCKS          8u
#define RWK_SHM_BLOCK_BYTES     ((size_t)32 << 10)
#define RWK_SHM_CLAIMS          (2 * RWK_SHM_SHARED_MOST)
#define RWK_SHM_CLAIM_DIRECT    RWK_SHM_SHARED_MOST /* those of direct ops, from here on */
#define RWK_SHM_LISTED          (1u << 16)          /* regions with an index below this stand in `valid` */
#define RWK_SHM_LISTED_WRITABLE (1ull << 63)        /* a cookie's top bit */

/* What stands before a block: a line of its own, so that the reader's poll brings everything it needs to know. */
struct rwk_shm_block_head {
	_Atomic uint64_t number; /* of this filling, from 1 */
	uint64_t offset;         /* in the region */
	uint32_t id;             /* of the read */
	uint32_t length;
} rwk_aligned;

/* A word and its line. */
struct rwk_shm_area_word {
	_Atomic uint64_t word;
} rwk_aligned;

struct rwk_shm_area {
	struct rwk_shm_area_word given_back;
	struct rwk_shm_block_head head[RWK_SHM_BLOCKS];
	struct rwk_shm_area_word claim[RWK_SHM_CLAIMS];
	struct rwk_shm_area_word pushed[RWK_SHM_CLAIMS];
	struct rwk_shm_area_word writing;
	struct rwk_shm_area_word pulling;
	struct rwk_shm_area_word guard;
	_Atomic uint64_t valid[RWK_SHM_LISTED];
	char bytes[] __attribute__((aligned(4096)));
};
_Static_assert(offsetof(struct rwk_shm_area, valid) < RWK_SHM_TRANSFER_BEGIN, "all but list and blocks is there");
_Static_assert(sizeof(struct rwk_shm_block_head) == RWK_CACHE_LINE, "a block's head is one line");
_Static_assert(sizeof(struct rwk_shm_area) + RWK_SHM_BLOCKS * RWK_SHM_BLOCK_BYTES <= RWK_SHM_TRANSFER_BYTES,
	"the area holds them all");

static inline struct rwk_shm_area *rwk_shm_area_of(struct rwk_shm_transfers *t, bool mine)
{
	return rwk_shm_transfer_area(t->ch, mine);
}

#endif

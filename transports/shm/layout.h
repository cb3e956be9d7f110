/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lies in shared memory, byte for byte: the pair's segment and a port's inbox. Everything is in lines of 64
 * bytes, blocks that different sides write are 128 bytes apart (cores fetch lines in pairs). No pointers: the two
 * sides map at different addresses. A change of any of it, or of how both sides cut a transfer into chunks
 * (transfer_claim.h), needs a new RWK_SHM_LAYOUT_VERSION, so that different builds on a node refuse each other.
 *
 *   pair's segment: header page | ring 0 | ring 1 | slabs 0 | slabs 1 | transfer area 0 | transfer area 1
 *
 * Side 0 is the creator of the pair: the one with the lower nonce_port. "Ring 0" is the one that side 0 writes.
 */
#ifndef RWK_SHM_LAYOUT_H
#define RWK_SHM_LAYOUT_H

#include "shm/pair.h"

#define RWK_SHM_PAGE 4096u

/*
 * The word at the head of each line. Written last, read first:
 *
 *   bits  0-9   length of the payload; RWK_SHM_IN_SLAB if that lies in a slab
 *   bits 10-31  stamp: a one, and above it the line's number in its stream. Never 0, so that a line never written
 *               does not look valid, and different from what the line held a lap before
 *   bits 32-63  kind, flags, small: the first four bytes of the envelope
 *
 * So the low half less the stamp expected is the length if the line is there, and at least 1024 if it is not. Counts
 * of lines are kept as stamps everywhere: they wrap with the 32 bits. A continuation line's word has a stamp and
 * otherwise zeros.
 */
#define RWK_SHM_STAMP_FIRST (1u << 10)
#define RWK_SHM_STAMP_STEP  (1u << 11)
#define RWK_SHM_IN_SLAB     1023u
#define RWK_SHM_HALF        512u /* added to the length: a second message may come in the same line */

#define RWK_SHM_RING_MIN 64u    /* lines of a ring to begin with */
#define RWK_SHM_RING_MAX 65536u /* and at most: far below the 2^21 lines that a stamp tells apart */

#define RWK_SHM_BODY      48u /* payload in a message's first line, */
#define RWK_SHM_BODY_DATA 40u /* if the envelope's data travels too, */
#define RWK_SHM_MORE      56u /* and in each continuation line, */
/*
 * Of which there are at most so many. What is longer goes into a slab, whose lines the sender has in its cache already:
 * a third line more costs as much as all the lines of a slab, on cores of their own as on halves of one.
 */
#define RWK_SHM_MORE_MAX 2u

/*
 * In a stream two short messages may share a line: the writer has to get each line back from the reader before he can
 * write it, one after the other. (Of 8 bytes, bare: 34 ns a message become 23 on cores with one cache, 150 become 80
 * on others; MPI: 82 to 71, 195 to 130.) The first has half a line, and says so (HALF); the writer is free to put a
 * second one into the other half, the rider, as long as he has not begun the line after it. A rider looks like the
 * beginning of a line; its word has the stamp of its line, and is 0 until it comes. Not the first two messages
 * after one that came: an answer is likely then, and what comes next would be looked for in two places.
 */
#define RWK_SHM_RIDER_AT   32u
#define RWK_SHM_RIDER      16u /* payload in half a line */
#define RWK_SHM_RIDER_DATA 8u  /* if the envelope's data travels too */

struct rwk_shm_line {
	_Atomic uint64_t word;
	union {
		struct {
			uint64_t tag;
			union {
				unsigned char body[RWK_SHM_BODY];
				struct {
					uint64_t data; /* with RWK_ENV_DATA; a slab's line always has the room */
					union {
						unsigned char body_data[RWK_SHM_BODY_DATA];
						struct {
							uint32_t slab;
							uint32_t piece; /* bytes of the payload in this slab */
							uint64_t total; /* bytes of the payload in all */
							uint32_t begun; /* low bits of when; 0: not told (arrival.h) */
						};
					};
				};
			};
		};
		unsigned char more[RWK_SHM_MORE];
		struct {
			unsigned char half[RWK_SHM_RIDER_AT - 8];
			_Atomic uint64_t rider; /* its word; the rest of it is as in a line */
		};
	};
};
_Static_assert(sizeof(struct rwk_shm_line) == RWK_CACHE_LINE, "a line of the ring is a cache line");

/*
 * A slab's payload is 8 KB; slabs lie 4 lines further apart than that, so that the heads of many slabs in use do not
 * fall into the same few sets of a cache.
 */
#define RWK_SHM_SLAB_BYTES  8192u
#define RWK_SHM_SLAB_STRIDE (RWK_SHM_SLAB_BYTES + 256u)
#define RWK_SHM_SLABS       64u /* of each side; side 1's have the numbers from here on */

/** What one side says to the other beside its ring. Two blocks, by how often they are written. */
struct rwk_shm_side {
	/*
	 * As a receiver. The sender reads it when it knows of no more room: of the stores between two looks only the
	 * first one has to fetch the line, which the messages written after it would wait for.
	 */
	_Atomic uint32_t consumed; /* stamp of the first line not consumed yet; published each quarter of a ring */
	unsigned char space[2 * RWK_CACHE_LINE - 4];
	/* Seldom written: the peer, who looks with each message, has the line in its cache. */
	_Atomic uint32_t attention; /* as a receiver: RWK_SHM_BELL, RWK_SHM_FENCE: what the sender does after publishing */
	_Atomic uint32_t starved;   /* as a sender: wants the bell when the peer's `consumed` moves */
	_Atomic uint32_t gone;      /* reads no more; what is in the ring is still good */
	unsigned char space2[2 * RWK_CACHE_LINE - 12];
};
_Static_assert(sizeof(struct rwk_shm_side) == 4 * RWK_CACHE_LINE, "a side has two blocks");

#define RWK_SHM_BELL  1u /* ring the bell in my inbox: I do not poll your ring, or I sleep */
#define RWK_SHM_FENCE 2u /* no barrier on behalf of others here: put a full one between publishing and looking */

#define RWK_SHM_MESSAGE_MAX (1u << 20) /* payload of a message, as large as eager_max may be */

#define RWK_SHM_PAIR_MAGIC  0x6b6c617765706f72ull
#define RWK_SHM_INBOX_MAGIC 0x786f62ull

struct rwk_shm_pair_header {
	uint64_t magic;
	uint32_t layout;
	uint32_t ring_lines; /* most lines of each ring, a power of two */
	uint32_t slabs, slab_bytes, slab_stride, transfer_bytes;
	uint64_t size;
	uint64_t nonce_port[2];
	unsigned char space[64 + 8];
	struct rwk_shm_side side[2];
};
_Static_assert(offsetof(struct rwk_shm_pair_header, side) == 2 * RWK_CACHE_LINE, "sides begin on a block of their own");
_Static_assert(sizeof(struct rwk_shm_pair_header) <= RWK_SHM_PAGE, "the header has one page");

#define RWK_SHM_BELLS ((RWK_SHM_PAGE - 2 * RWK_CACHE_LINE) * 8) /* channels of a port that can have a bell */

/** One page of each port, mapped by its peers. */
struct rwk_shm_inbox {
	uint64_t magic;
	uint32_t layout;
	_Atomic uint32_t asleep; /* who changes it from 1 to 0 sends a datagram to the port's socket, or is its owner */
	unsigned char space[2 * RWK_CACHE_LINE - 16];
	_Atomic uint64_t bell[RWK_SHM_BELLS / 64]; /* a bit for each channel */
};
_Static_assert(sizeof(struct rwk_shm_inbox) == RWK_SHM_PAGE, "an inbox is one page");

/** Payload of a message that has half a line. */
static inline uint32_t rwk_shm_half_bytes(bool data)
{
	return data ? RWK_SHM_RIDER_DATA : RWK_SHM_RIDER;
}

static inline size_t rwk_shm_ring_at(uint32_t ring_lines, unsigned side)
{
	return RWK_SHM_PAGE + (size_t)side * ring_lines * sizeof(struct rwk_shm_line);
}

#define RWK_SHM_HOME_BYTES ((size_t)RWK_SHM_SLABS * RWK_SHM_SLAB_STRIDE)
_Static_assert(RWK_SHM_HOME_BYTES % RWK_SHM_PAGE == 0, "homes of slabs are whole pages");

static inline size_t rwk_shm_slabs_at(uint32_t ring_lines)
{
	return rwk_shm_ring_at(ring_lines, 2);
}

static inline size_t rwk_shm_transfer_at(uint32_t ring_lines, unsigned side)
{
	return rwk_shm_slabs_at(ring_lines) + 2 * RWK_SHM_HOME_BYTES + (size_t)side * RWK_SHM_TRANSFER_BYTES;
}

static inline size_t rwk_shm_pair_size(uint32_t ring_lines)
{
	return rwk_shm_transfer_at(ring_lines, 2);
}

#endif

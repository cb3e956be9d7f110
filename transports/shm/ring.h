/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring as its writer and its reader keep it in private memory. The invariants are at the head of ring.c. */
#ifndef RWK_SHM_RING_H
#define RWK_SHM_RING_H

#include "shm/layout.h"

#include "base/barrier.h"

/** The writer's side. The first line is all that a small send touches. */
struct rwk_shm_tx {
	struct rwk_shm_line *next;  /* to be written next */
	const _Atomic uint32_t *attention; /* of the other side, in shared memory */
	const uint32_t *here;       /* 0 in a forked child, where the ring is not mapped */
	uint32_t stamp;             /* of the next line */
	uint32_t room;              /* lines that may be written one after the other without looking at anything */
	uint32_t shut;              /* not 0: nothing goes directly (not open yet, failed, or something is queued) */
	uint32_t lines;             /* in use: a power of two */
	const _Atomic uint32_t *consumed;
	bool streaming; /* a message has been sent since the last one came */
	bool demotes;   /* rwk_demote_possible */
	bool steady;    /* as had one before that: still more are likely to follow */
	bool open;      /* the line before `next` has room for a rider */
	/* From here on looked at when room is out. */
	struct rwk_shm_line *first, *end;
	uint32_t lines_next; /* in use after the next wrap */
	uint32_t lines_max;
	uint32_t growths;
	bool promised; /* the room there is has been promised to a message: no line of it goes to an announcement */
} rwk_aligned;
_Static_assert(offsetof(struct rwk_shm_tx, first) <= RWK_CACHE_LINE, "a small send touches one private line");

/** The reader's side: one line. */
struct rwk_shm_rx {
	struct rwk_shm_line *next; /* to be read next */
	struct rwk_shm_line *stop; /* here `consumed` is published, or the ring wraps */
	uint32_t stamp;            /* that the next line will have */
	uint32_t lines, lines_next, lines_max;
	struct rwk_shm_line *first, *end;
	_Atomic uint32_t *consumed;
	uint16_t expect;      /* further lines that the next message is likely to have: as many as the last one */
	uint16_t expect_back; /* bytes of it that are likely to be in the slab that went last, likewise */
	bool open;            /* in the line before `next` there may be a rider that has not been read */
} rwk_aligned;
_Static_assert(sizeof(struct rwk_shm_rx) == RWK_CACHE_LINE, "polling touches one private line");

void rwk_shm_tx_init(
	struct rwk_shm_tx *tx, struct rwk_shm_line *first, uint32_t lines_max, const struct rwk_shm_side *other);
void rwk_shm_rx_init(struct rwk_shm_rx *rx, struct rwk_shm_line *first, uint32_t lines_max, struct rwk_shm_side *mine);

/**
 * Looks how far the reader is: sets room, wraps, announces growth unless the room is promised. Returns the number of
 * lines that may be written in all, also beyond the wrap; UINT32_MAX: what the reader has published is nonsense.
 */
uint32_t rwk_shm_tx_look(struct rwk_shm_tx *tx);

/** The reader has come to `stop`: publishes what is consumed, wraps. True: published (the writer may wait for it). */
void rwk_shm_rx_stop(struct rwk_shm_rx *rx);

/** A GROW record: false if it is nonsense. */
bool rwk_shm_rx_grow(struct rwk_shm_rx *rx, uint32_t lines);

/** Makes the line complete with its word; the caller has filled the rest and checked room. */
static inline void rwk_shm_tx_line(struct rwk_shm_tx *tx, uint32_t len, uint32_t head)
{
	rwk_publish64(&tx->next->word, (uint64_t)head << 32 | (tx->stamp + len));
	tx->stamp += RWK_SHM_STAMP_STEP;
	tx->next++;
	tx->room--;
	tx->open = false;
}

/** `n` lines have been written, perhaps beyond the wrap. */
void rwk_shm_tx_skip(struct rwk_shm_tx *tx, uint32_t n);

/** Is the next line there? Its length field then, and its word; else a number beyond any length. */
static inline uint32_t rwk_shm_rx_peek(const struct rwk_shm_rx *rx, uint64_t *word)
{
	*word = rwk_observe64(&rx->next->word);
	return (uint32_t)*word - rx->stamp;
}

/** Where the rider of the line before the next one lies, in the shape of a line. */
static inline const struct rwk_shm_line *rwk_shm_rx_rider(const struct rwk_shm_rx *rx)
{
	const struct rwk_shm_line *line = rx->next == rx->first ? rx->end : rx->next;

	return (const void *)((const unsigned char *)(line - 1) + RWK_SHM_RIDER_AT);
}

/** As rwk_shm_rx_peek, for the rider; only while rx->open. */
static inline uint32_t rwk_shm_rx_peek_rider(const struct rwk_shm_rx *rx, uint64_t *word)
{
	*word = rwk_observe64(&rwk_shm_rx_rider(rx)->word);
	return (uint32_t)*word - (rx->stamp - RWK_SHM_STAMP_STEP);
}

static inline bool rwk_shm_rx_ready(const struct rwk_shm_rx *rx)
{
	uint64_t word;

	return (rwk_unlikely(rx->open) && rwk_shm_rx_peek_rider(rx, &word) <= RWK_SHM_IN_SLAB) ||
	       rwk_shm_rx_peek(rx, &word) <= RWK_SHM_IN_SLAB;
}

/**
 * Nothing has come: asks for the lines that are likely to be written together with the next one, so that they come here
 * at the same time and not one after the other. Perhaps too early, or beyond the ring: only a hint.
 */
static inline void rwk_shm_rx_expect(const struct rwk_shm_rx *rx)
{
	for (uint32_t i = 1; i <= rx->expect; i++)
		rwk_prefetch(rx->next + i);
}

/*
 * Of a stream the writer is likely to have written so many lines after the one that is done with: asked for now, they
 * come while the messages before them are handled. Fewer come too late; more (14) than the writer is ahead are taken
 * from under his pen. On cores of their own this makes 1.1 (MPI, 8 bytes) to 1.5 times (64 bytes) as many messages a
 * second. A ping-pong does not feel it: those lines are ones that the writer has not come to.
 */
enum { RWK_SHM_READ_AHEAD = 8 };

/** The next line is done with. True at a stop: `consumed` has been published. */
static inline bool rwk_shm_rx_step(struct rwk_shm_rx *rx)
{
	rwk_prefetch(rx->next + RWK_SHM_READ_AHEAD + rx->expect);
	rx->stamp += RWK_SHM_STAMP_STEP;
	if (rwk_likely(++rx->next != rx->stop))
		return false;
	rwk_shm_rx_stop(rx);
	return true;
}

/** The continuation line `n` lines after the next one, `n` lines being there at most up to the wrap rules of the ring.
 */
static inline const struct rwk_shm_line *rwk_shm_rx_ahead(const struct rwk_shm_rx *rx, uint32_t n)
{
	const struct rwk_shm_line *line = rx->next + n;

	if (rwk_unlikely(line >= rx->end && rx->lines_next == rx->lines))
		line -= rx->lines;
	return line;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring: a stream of lines from one writer to one reader.
 *
 * Invariants
 *   - Line number k of the stream carries stamp(k) = FIRST + k * STEP (mod 2^32) in the word that is written last.
 *     The reader knows the stamp to come, so a line is valid exactly when its word says so; nothing else tells the
 *     reader that something has come.
 *   - A slot is written again only after the reader has published that it is done with it (`consumed`). The reader
 *     publishes each quarter of a ring, the writer looks only when the room it knows of is used up: a line of
 *     its own moves there and back between the cores once a look. What the reader holds back is a quarter at most,
 *     so a writer never waits for ever.
 *   - A line that says so (RWK_SHM_HALF) has room for a second message, which the writer may add until he begins the
 *     next line: a reader who finds that one begun knows that there is no more to come. Until then the line is not
 *     consumed, even if all that it holds has been read.
 *   - Between two looks the writer writes `room` slots one after the other; room never reaches beyond the end of the
 *     ring in use.
 *   - The ring in use is the first `lines` slots. It only grows, and only at a wrap: the writer announces the new
 *     size by a record in the stream; when either side next comes to the end of the old ring it goes on behind it
 *     instead of to the start. The slots there have never been written: their words are 0, which is no stamp. Until
 *     the writer comes to the wrap it counts with the old size, so "in flight <= lines" keeps meaning "no slot is
 *     overwritten".
 *   - A stale line differs from the stamp expected by a multiple of the ring's size, less than the 2^21 lines after
 *     which stamps come again: each slot is written each lap.
 *
 * A reader believes the writer in nothing but "this slot is yours"; a writer believes the reader only in "you may
 * overwrite": lies make the liar's own stream garbage.
 */
#include "shm/ring.h"

#include "base/shared.h"

#include <string.h>

void rwk_shm_tx_init(
	struct rwk_shm_tx *tx, struct rwk_shm_line *first, uint32_t lines_max, const struct rwk_shm_side *other)
{
	*tx = (struct rwk_shm_tx){
		.next = first,
		.first = first,
		.end = first + RWK_SHM_RING_MIN,
		.stamp = RWK_SHM_STAMP_FIRST,
		.room = RWK_SHM_RING_MIN,
		.lines = RWK_SHM_RING_MIN,
		.lines_next = RWK_SHM_RING_MIN,
		.lines_max = lines_max,
		.attention = &other->attention,
		.consumed = &other->consumed,
		.here = tx->here,
		.shut = tx->shut,
		.demotes = tx->demotes,
	};
}

void rwk_shm_rx_init(struct rwk_shm_rx *rx, struct rwk_shm_line *first, uint32_t lines_max, struct rwk_shm_side *mine)
{
	*rx = (struct rwk_shm_rx){
		.next = first,
		.stop = first + RWK_SHM_RING_MIN / 4,
		.first = first,
		.end = first + RWK_SHM_RING_MIN,
		.stamp = RWK_SHM_STAMP_FIRST,
		.lines = RWK_SHM_RING_MIN,
		.lines_next = RWK_SHM_RING_MIN,
		.lines_max = lines_max,
		.consumed = &mine->consumed,
	};
	rwk_publish32(rx->consumed, rx->stamp);
}

/* Tells the reader that the ring will double at its next wrap. Uses one line of room. */
static bool announce_growth(struct rwk_shm_tx *tx)
{
	uint32_t lines = tx->lines * 2;

	/* Memory that cannot be had is no reason to fail: the ring stays as it is. */
	if (!rwk_shared_populate(tx->end, tx->lines * sizeof(struct rwk_shm_line)))
		return false;
	memcpy(tx->next->body, &lines, sizeof(lines));
	rwk_shm_tx_line(tx, sizeof(lines), RWK_SHM_GROW);
	tx->lines_next = lines;
	tx->growths++;
	return true;
}

static void set_room(struct rwk_shm_tx *tx, uint32_t free)
{
	size_t straight = (size_t)(tx->end - tx->next);

	tx->room = free < straight ? free : (uint32_t)straight;
}

/* At the end of the ring in use: back to the start, or on into what has been announced. */
static void wrap(struct rwk_shm_tx *tx)
{
	if (tx->lines_next == tx->lines)
		tx->next = tx->first;
	tx->lines = tx->lines_next;
	tx->end = tx->first + tx->lines;
	tx->open = false; /* its line does not lie before `next` any more */
}

void rwk_shm_tx_skip(struct rwk_shm_tx *tx, uint32_t n)
{
	size_t straight = (size_t)(tx->end - tx->next);

	tx->stamp += n * RWK_SHM_STAMP_STEP;
	tx->open = false; /* these are whole lines */
	if (rwk_likely(n <= tx->room)) {
		tx->next += n;
		tx->room -= n;
		return;
	}
	/* Beyond the end: the room there is for the next look to find. */
	n -= (uint32_t)straight;
	tx->next = tx->end;
	wrap(tx);
	tx->next += n;
	tx->room = 0;
}

uint32_t rwk_shm_tx_look(struct rwk_shm_tx *tx)
{
	uint32_t in_flight, free;

	if (tx->next == tx->end)
		wrap(tx);
	in_flight = (tx->stamp - rwk_observe32(tx->consumed)) / RWK_SHM_STAMP_STEP;
	if (in_flight > tx->lines) {
		tx->room = 0;
		return UINT32_MAX;
	}
	free = tx->lines - in_flight;
	set_room(tx, free);
	/* The reader is more than half a ring behind: a stream, for which a larger ring pays. */
	if (in_flight > tx->lines / 2 && tx->room && !tx->promised && tx->lines == tx->lines_next &&
		tx->lines < tx->lines_max && announce_growth(tx))
		free--;
	return free;
}

void rwk_shm_rx_stop(struct rwk_shm_rx *rx)
{
	if (rx->next == rx->end) {
		if (rx->lines_next == rx->lines)
			rx->next = rx->first;
		rx->lines = rx->lines_next;
		rx->end = rx->first + rx->lines;
	}
	rx->stop = rx->next + rx->lines / 4;
	if (rx->stop > rx->end)
		rx->stop = rx->end;
	/* A line whose rider may still come is in use. */
	rwk_publish32(rx->consumed, rx->open ? rx->stamp - RWK_SHM_STAMP_STEP : rx->stamp);
}

bool rwk_shm_rx_grow(struct rwk_shm_rx *rx, uint32_t lines)
{
	if (lines != rx->lines * 2 || rx->lines_next != rx->lines || lines > rx->lines_max)
		return false;
	rx->lines_next = lines;
	return true;
}

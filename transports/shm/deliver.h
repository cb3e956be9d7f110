/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of what comes: a message in one line. Inline, because progress does little else; the rest is in
 * deliver.c.
 */
#ifndef RWK_SHM_DELIVER_H
#define RWK_SHM_DELIVER_H

#include "shm/channel.h"

/** Everything that is not a message in one line. False: not all of it is there yet, or nothing more is wanted. */
bool rwk_shm_deliver_other(struct rwk_shm_channel *ch, uint64_t word, const struct rwk_shm_line *line, uint32_t len);

/** The next line is done with. */
static inline void rwk_shm_line_done(struct rwk_shm_channel *ch)
{
	if (rwk_unlikely(rwk_shm_rx_step(&ch->rx)))
		rwk_shm_tell_consumed(ch);
}

/* Somebody who waited for a message of that kind has it. */
static inline void rwk_shm_leave_next(struct rwk_port *port, unsigned kind)
{
	port->leave_until[kind] = port->polls + RWK_AWAITED_POLLS;
}

/*
 * Is a message of that kind to be left where it is? Not one that somebody waits for. But once all that waited have got
 * theirs the next one is likely to be posted for soon: whoever receives one after the other would have to put aside
 * nearly all of them otherwise, and to copy them twice (of a stream of 4 KB each takes 0.27 of the time so). After a
 * few polls nobody is expected to come any more; and what somebody looks for is not left either.
 */
static inline bool rwk_shm_leaves(struct rwk_port *port, unsigned kind)
{
	if (kind >= RWK_AWAITED_KINDS)
		return false;
	if (*port->awaited[kind]) {
		rwk_shm_leave_next(port, kind);
		return false;
	}
	/* The numbers of polls come again. */
	return port->leave_until[kind] - port->polls - 1 < RWK_AWAITED_POLLS && !*port->looks;
}

/*
 * The next message, or the line in which it will begin: its word, and its length field. While a rider is not there yet
 * the line after its own is looked at, too: if that is there the rider has come before it, or never will.
 */
static inline const struct rwk_shm_line *rwk_shm_next_message(struct rwk_shm_rx *rx, uint64_t *word, uint32_t *len)
{
	if (rx->open) {
		*len = rwk_shm_rx_peek_rider(rx, word);
		if (*len <= RWK_SHM_IN_SLAB)
			return rwk_shm_rx_rider(rx);
		*len = rwk_shm_rx_peek(rx, word);
		if (*len > RWK_SHM_IN_SLAB)
			return rx->next;
		*len = rwk_shm_rx_peek_rider(rx, word);
		if (*len <= RWK_SHM_IN_SLAB) /* both have come since */
			return rwk_shm_rx_rider(rx);
		rx->open = false;
	}
	*len = rwk_shm_rx_peek(rx, word);
	return rx->next;
}

/* Of a message at the beginning of a line, or of one that rides. */
static inline uint32_t rwk_shm_body_bytes(bool rides, bool data)
{
	uint32_t bytes = rides ? RWK_SHM_RIDER : RWK_SHM_BODY;

	return data ? bytes - (RWK_SHM_BODY - RWK_SHM_BODY_DATA) : bytes;
}

/** As rwk_shm_deliver; unless `all` without what may be left. */
static inline int rwk_shm_deliver_inline(struct rwk_shm_channel *ch, int budget, bool all)
{
	struct rwk_port *port = ch->base.port;
	int n = 0;

	ch->tx.streaming = false; /* what is sent from within an upcall may be an answer, */
	do {
		uint64_t word;
		uint32_t len;
		const struct rwk_shm_line *line = rwk_shm_next_message(&ch->rx, &word, &len);
		bool data = word & (uint64_t)RWK_ENV_DATA << 40, rides = line != ch->rx.next;

		if (!all && len <= RWK_SHM_IN_SLAB && rwk_shm_leaves(port, (uint8_t)(word >> 32)))
			break;
		if (rwk_likely((rides ? len : len & ~RWK_SHM_HALF) <= rwk_shm_body_bytes(rides, data) &&
			       (uint8_t)(word >> 32) < RWK_KIND_SERVICE && !ch->assembly.place)) {
			const struct rwk_envelope env = {
				.head = word >> 32,
				.tag = rwk_glance(&line->tag),
				.data = data ? rwk_glance(&line->data) : 0,
			};

			port->client->message(port->cookie, &ch->base, &env, data ? line->body_data : line->body,
				len & ~RWK_SHM_HALF);
			ch->rx.open = len & RWK_SHM_HALF;
			if (!rides) {
				rwk_shm_line_done(ch);
				ch->rx.expect_back = ch->rx.expect = 0;
			}
		} else if (len > RWK_SHM_IN_SLAB || !rwk_shm_deliver_other(ch, word, line, len)) {
			break;
		}
	} while (++n < budget);
	ch->seen += (uint32_t)n;
	ch->tx.streaming = false; /* and what is sent next */
	return n;
}

#endif

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

/**
 * What may come in the other half of the line before, while rx.open. 1: it has come, and is delivered; 0: it has not
 * come yet, is left (unless `all`), or ends the channel; -1: it never will.
 */
int rwk_shm_deliver_rider(struct rwk_shm_channel *ch, bool all);

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

/** As rwk_shm_deliver; unless `all` without what may be left. */
static inline int rwk_shm_deliver_inline(struct rwk_shm_channel *ch, int budget, bool all)
{
	struct rwk_port *port = ch->base.port;
	int n = 0;

	ch->tx.streaming = false; /* what is sent from within an upcall may be an answer, */
	do {
		const struct rwk_shm_line *line = ch->rx.next;
		uint64_t word;
		uint32_t len;
		bool data;

		if (rwk_unlikely(ch->rx.open)) {
			int came = rwk_shm_deliver_rider(ch, all);

			if (came > 0)
				continue;
			if (!came)
				break;
		}
		len = rwk_shm_rx_peek(&ch->rx, &word);
		data = word & (uint64_t)RWK_ENV_DATA << 40;
		if (!all && len <= RWK_SHM_IN_SLAB && rwk_shm_leaves(port, (uint8_t)(word >> 32)))
			break;
		if (rwk_likely((len & ~RWK_SHM_HALF) <= (data ? RWK_SHM_BODY_DATA : RWK_SHM_BODY) &&
			       (uint8_t)(word >> 32) < RWK_KIND_SERVICE && !ch->assembly.place)) {
			const struct rwk_envelope env = {
				.head = word >> 32,
				.tag = rwk_glance(&line->tag),
				.data = data ? rwk_glance(&line->data) : 0,
			};

			port->client->message(port->cookie, &ch->base, &env, data ? line->body_data : line->body,
				len & ~RWK_SHM_HALF);
			if (len & RWK_SHM_HALF)
				ch->rx.open = true;
			rwk_shm_line_done(ch);
			ch->rx.expect = ch->rx.expect_back = 0;
		} else if (len > RWK_SHM_IN_SLAB || !rwk_shm_deliver_other(ch, word, line, len)) {
			break;
		}
	} while (++n < budget);
	ch->seen += (uint32_t)n;
	ch->tx.streaming = false; /* and what is sent next */
	return n;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of what comes: a message in one line. Inline, because progress does little else; the rest is in
 * deliver.c.
 */
#ifndef RWK_SHM_DELIVER_H
#define RWK_SHM_DELIVER_H

#include "shm/channel.h"

#include <string.h>

/** Everything that is not a message in one line. False: not all of it is there yet, or nothing more is wanted. */
bool rwk_shm_deliver_other(struct rwk_shm_channel *ch, uint64_t word, const struct rwk_shm_line *line, uint32_t len);

/** The next line is done with. */
static inline void rwk_shm_line_done(struct rwk_shm_channel *ch)
{
	if (rwk_unlikely(rwk_shm_rx_step(&ch->rx)))
		rwk_shm_tell_consumed(ch);
}

/** The envelope of a message whose first line this is. */
static inline void rwk_shm_envelope_of(struct rwk_envelope *env, uint64_t word, const struct rwk_shm_line *line)
{
	uint64_t head = word >> 32;

	/* kind, flags, small and spare at once: they lie in the word as they do in the envelope. */
	memcpy(env, &head, sizeof(head));
	env->tag = rwk_glance(&line->tag);
	env->data = env->flags & RWK_ENV_DATA ? rwk_glance(&line->data) : 0;
}
_Static_assert(offsetof(struct rwk_envelope, flags) == 1 && offsetof(struct rwk_envelope, small) == 2 &&
		       offsetof(struct rwk_envelope, tag) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"the envelope's first word is that of the line");

/** As rwk_shm_deliver. */
static inline int rwk_shm_deliver_inline(struct rwk_shm_channel *ch, int budget)
{
	struct rwk_port *port = ch->base.port;
	uint64_t word;
	uint32_t len;
	int n = 0;

	while ((len = rwk_shm_rx_peek(&ch->rx, &word)) <= RWK_SHM_IN_SLAB) {
		const struct rwk_shm_line *line = ch->rx.next;
		bool data = word & (uint64_t)RWK_ENV_DATA << 40;

		if (rwk_likely(len <= (data ? RWK_SHM_BODY_DATA : RWK_SHM_BODY) &&
			(uint8_t)(word >> 32) < RWK_KIND_SERVICE && !ch->assembly.place)) {
			struct rwk_envelope env;

			rwk_shm_envelope_of(&env, word, line);
			port->client->message(port->cookie, &ch->base, &env, data ? line->body_data : line->body, len);
			rwk_shm_line_done(ch);
		} else if (!rwk_shm_deliver_other(ch, word, line, len)) {
			break;
		}
		if (++n >= budget)
			break;
	}
	ch->seen += (uint32_t)n;
	return n;
}

#endif

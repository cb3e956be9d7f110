/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes. A message of one line or one slab is given to the client where it lies, in memory that the peer can
 * still write: the client copies once and believes what it copied. Everything that decides where we read or write
 * (lengths, numbers of slabs) is taken into a local once, and checked there.
 */
#include "shm/deliver.h"
#include "shm/arrival.h"
#include "shm/transfer.h"

#include "base/iov.h"

#include <string.h>

/* A slab has been consumed and is ours; what we shall hardly need goes back. */
static void take_slab(struct rwk_shm_channel *ch, uint32_t id)
{
	uint16_t back[RWK_SHM_SLABS_BATCH];

	rwk_shm_slab_got(&ch->slabs, id, false);
	if (rwk_likely(ch->slabs.count < RWK_SHM_SLABS_KEEP + RWK_SHM_SLABS_BATCH))
		return;
	rwk_shm_slabs_give_back(&ch->slabs, back);
	/* Without memory to queue it they are lost to both; the channel cannot go on for long then. */
	if (rwk_shm_control(ch, RWK_SHM_SLABS_BACK, back, sizeof(back)) == -ENOMEM)
		rwk_shm_doom(ch, -ENOMEM);
}

static void slabs_came_back(struct rwk_shm_channel *ch, const unsigned char *body, size_t len)
{
	uint16_t id[RWK_SHM_CONTROL_MAX / sizeof(uint16_t)];

	memcpy(id, body, len);
	for (size_t i = 0; i < len / sizeof(id[0]); i++) {
		if (!rwk_shm_slab_is_his(&ch->slabs, id[i])) {
			rwk_shm_protocol_error(ch, "it gave back a slab that was not its own");
			return;
		}
		rwk_shm_slab_got(&ch->slabs, id[i], true);
	}
}

/* A piece lies in `slab`: begins or goes on with a message in pieces. */
static void assemble(struct rwk_shm_channel *ch, const struct rwk_envelope *env, const unsigned char *slab,
	uint32_t piece, uint64_t total, uint32_t begun)
{
	const struct rwk_client *client = ch->base.port->client;
	struct rwk_shm_assembly *a = &ch->assembly;
	struct rwk_place *place;

	if (!a->place) {
		a->total = total;
		a->kind = (uint8_t)env->kind;
		a->have = 0;
		rwk_shm_pieces_begin(ch, total, ch->tx.stamp == ch->silent, begun);
		a->place = client->begin(ch->base.port->cookie, &ch->base, env, total);
	}
	rwk_iov_scatter(a->place->iov, a->place->iov_count, a->place->at, slab, piece);
	a->place->at += piece;
	a->have += piece;
	if (a->have < a->total)
		return;
	place = a->place;
	a->place = NULL;
	rwk_shm_pieces_end(ch, a->total);
	if (place->awaited && a->kind < RWK_AWAITED_KINDS)
		rwk_shm_leave_next(ch->base.port, a->kind);
	client->end(ch->base.port->cookie, &ch->base, place, 0);
	ch->silent = ch->tx.stamp; /* what the client gives back for it at once, credit, is no answer */
}

static void told_to_announce(struct rwk_shm_channel *ch, const unsigned char *body, size_t len)
{
	if (len == sizeof(ch->base.fetched) && *body >> RWK_SHM_ARRIVAL_CLASSES == 0)
		ch->base.fetched = *body;
	else
		rwk_shm_protocol_error(ch, "it wants to fetch messages of impossible lengths");
}

/* The envelope of a message whose first line this is. */
static void envelope_of(struct rwk_envelope *env, uint64_t word, const struct rwk_shm_line *line)
{
	env->head = word >> 32;
	env->tag = rwk_glance(&line->tag);
	env->data = env->flags & RWK_ENV_DATA ? rwk_glance(&line->data) : 0;
}

static bool deliver_slab(struct rwk_shm_channel *ch, uint64_t word, const struct rwk_shm_line *line)
{
	struct rwk_envelope env;
	uint32_t id = rwk_glance(&line->slab), piece = rwk_glance(&line->piece);
	uint64_t total = rwk_glance(&line->total);
	const unsigned char *slab = rwk_shm_slab(&ch->slabs, id);
	bool further = (uint8_t)(word >> 32) == RWK_SHM_PIECE;

	envelope_of(&env, word, line);
	if (!rwk_shm_slab_is_his(&ch->slabs, id) || piece > RWK_SHM_SLAB_BYTES || !piece) {
		rwk_shm_protocol_error(ch, "it sent a slab that was not its own, or longer than slabs are");
		return false;
	}
	if (further != !!ch->assembly.place || (further && piece > ch->assembly.total - ch->assembly.have) ||
		(!further && (env.kind >= RWK_KIND_SERVICE || piece > total || total > RWK_SHM_MESSAGE_MAX))) {
		rwk_shm_protocol_error(ch, "it sent a piece that belongs to no message");
		return false;
	}
	if (!further && piece == total)
		ch->base.port->client->message(ch->base.port->cookie, &ch->base, &env, slab, piece);
	else
		assemble(ch, &env, slab, piece, total, rwk_glance(&line->begun));
	take_slab(ch, id);
	ch->rx.expect = 0;
	ch->rx.expect_back = id == ch->slabs.last ? (uint16_t)piece : 0;
	rwk_shm_line_done(ch);
	return true;
}

/* A message of several lines; false if not all of them are there yet. */
static bool deliver_lines(struct rwk_shm_channel *ch, uint64_t word, const struct rwk_shm_line *line, uint32_t len)
{
	struct rwk_envelope env;
	bool data = word & (uint64_t)RWK_ENV_DATA << 40;
	uint32_t at = data ? RWK_SHM_BODY_DATA : RWK_SHM_BODY;
	uint32_t lines = (len - at + RWK_SHM_MORE - 1) / RWK_SHM_MORE;
	unsigned char all[RWK_SHM_BODY + RWK_SHM_MORE * RWK_SHM_MORE_MAX];

	envelope_of(&env, word, line);
	if (lines > RWK_SHM_MORE_MAX || env.kind >= RWK_KIND_SERVICE || ch->assembly.place) {
		rwk_shm_protocol_error(ch, "it sent a message of too many lines, or within another");
		return false;
	}
	if (data)
		memcpy(all, line->body_data, RWK_SHM_BODY_DATA);
	else
		memcpy(all, line->body, RWK_SHM_BODY);
	for (uint32_t i = 1; i <= lines; i++) {
		const struct rwk_shm_line *more = rwk_shm_rx_ahead(&ch->rx, i);

		if ((uint32_t)rwk_observe64(&more->word) != ch->rx.stamp + i * RWK_SHM_STAMP_STEP)
			return false;
		/* Whole lines, also the last: `all` has the room, and a copy of known size is no call. */
		memcpy(all + at, more->more, RWK_SHM_MORE);
		at += RWK_SHM_MORE;
	}
	ch->rx.expect = (uint16_t)lines;
	ch->rx.expect_back = 0;
	ch->base.port->client->message(ch->base.port->cookie, &ch->base, &env, all, len);
	for (uint32_t i = 0; i <= lines; i++)
		rwk_shm_line_done(ch);
	return true;
}

/* A record of the service's own. */
static bool deliver_control(struct rwk_shm_channel *ch, unsigned kind, const struct rwk_shm_line *line, uint32_t len)
{
	unsigned char body[RWK_SHM_CONTROL_MAX];
	uint32_t lines;

	memcpy(body, line->body, len);
	/* First of all the line is given free: what follows may answer. */
	if (kind == RWK_SHM_GROW) {
		memcpy(&lines, body, sizeof(lines));
		if (len != sizeof(lines) || !rwk_shm_rx_grow(&ch->rx, lines)) {
			rwk_shm_protocol_error(ch, "it wanted a ring of an impossible size");
			return false;
		}
	}
	rwk_shm_line_done(ch);
	if (kind == RWK_SHM_SLABS_BACK)
		slabs_came_back(ch, body, len);
	else if (kind >= RWK_SHM_TRANSFER_FIRST && kind <= RWK_SHM_TRANSFER_LAST)
		rwk_shm_transfer_control(ch, kind, body, len);
	else if (kind == RWK_SHM_ARRIVAL)
		told_to_announce(ch, body, len);
	else if (kind == RWK_SHM_BYE)
		rwk_shm_doom(ch, -ECONNRESET);
	else if (kind != RWK_SHM_GROW)
		rwk_shm_protocol_error(ch, "it sent a record of an unknown kind");
	return !ch->doom;
}

/*
 * The line after the rider's is looked at only while the rider is not there, or it would be taken away from who is
 * about to write it. If that line is there the rider has come before it, or never will.
 */
int rwk_shm_deliver_rider(struct rwk_shm_channel *ch, bool all)
{
	const struct rwk_shm_line *rider = rwk_shm_rx_rider(&ch->rx);
	const struct rwk_client *client = ch->base.port->client;
	struct rwk_envelope env;
	uint64_t word;
	uint32_t len = rwk_shm_rx_peek_rider(&ch->rx, &word);

	if (len > RWK_SHM_IN_SLAB) {
		if (rwk_shm_rx_peek(&ch->rx, &word) > RWK_SHM_IN_SLAB)
			return 0;
		len = rwk_shm_rx_peek_rider(&ch->rx, &word); /* both may have come since */
		if (len > RWK_SHM_IN_SLAB) {
			ch->rx.open = false;
			return -1;
		}
	}
	if (!all && rwk_shm_leaves(ch->base.port, (uint8_t)(word >> 32)))
		return 0;
	envelope_of(&env, word, rider);
	if (len > rwk_shm_half_bytes(env.flags & RWK_ENV_DATA) || env.kind >= RWK_KIND_SERVICE || ch->assembly.place) {
		rwk_shm_protocol_error(ch, "it sent something else than a short message behind another in one line");
		return 0;
	}
	client->message(
		ch->base.port->cookie, &ch->base, &env, env.flags & RWK_ENV_DATA ? rider->body_data : rider->body, len);
	ch->rx.open = false;
	return 1;
}

bool rwk_shm_deliver_other(
	struct rwk_shm_channel *ch, uint64_t word, const struct rwk_shm_line *line, uint32_t len)
{
	unsigned kind = (uint8_t)(word >> 32);

	if (len == RWK_SHM_IN_SLAB)
		return deliver_slab(ch, word, line);
	if (kind >= RWK_KIND_SERVICE && len <= RWK_SHM_CONTROL_MAX)
		return deliver_control(ch, kind, line, len);
	if (!ch->assembly.place && len > RWK_SHM_BODY_DATA)
		return deliver_lines(ch, word, line, len);
	rwk_shm_protocol_error(ch, "it sent a message within another");
	return false;
}

int rwk_shm_deliver(struct rwk_shm_channel *ch, int budget)
{
	return rwk_shm_deliver_inline(ch, budget, true);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes. A message is written straight into the ring if it is short, into a slab if not, into several slabs one
 * after the other if it is long. What does not go at once is queued: control records in one list, ops in another.
 * While anything is queued tx.shut is set, so that nothing overtakes it on the fast path.
 */
#include "shm/channel.h"
#include "shm/transfer.h"

#include "base/clock.h"
#include "base/copy.h"
#include "base/demote.h"
#include "base/iov.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Lines that the reader has read are his until we write into them again, and each store waits until the one before it
 * has its line. So whoever sends message after message asks for the lines of later ones beforehand: so many lines after
 * the next one, in a message of one line and of several, and so many slabs below the top of the stack, up to so many
 * bytes. Further ahead is worse: the reader is just reading there. On cores of their own this makes 1.3 (1 KB) to 1.9
 * times (64 B) as many messages a second.
 *
 * Not in a ping-pong, whose one-way time it makes 4 to 10 % longer, with the further lines of a message, too: the
 * question for a line that nobody waits for is in the way of the answer.
 */
enum { AHEAD_ONE = 3, AHEAD_MORE = 2, AHEAD_SLABS = 2, AHEAD_SLAB_BYTES = 1024 };

/*
 * There a slab that has been published is handed over instead (base/demote.h): 0.75 to 0.8 of the one-way time from 160
 * bytes to 1 KB, 0.9 at 4 KB. No more of it than that: what lies behind the reader's processor fetches by itself. So a
 * slab also beats a second line of the ring (0.9 to 0.97), which the reader has asked for too early. Not in a stream,
 * where all is taken as fast as it is filled and this only takes time, nor of a message in several slabs, for the same
 * reason.
 */
enum { HAND_OVER_BYTES = 1024 };

enum { BEGUN_EACH = 8, BEGUN_FIRST = 40 };

/* Is a message sent behind another one, none having come in between? To be asked once a message. */
static inline bool streaming(struct rwk_shm_tx *tx)
{
	bool was = tx->streaming;

	tx->steady = was;
	tx->streaming = true;
	return was;
}

/* Will what is sent now be handed over? */
static inline bool hands_over(const struct rwk_shm_tx *tx)
{
	return tx->demotes && !tx->streaming;
}

static inline void published(struct rwk_shm_channel *ch)
{
	if (rwk_unlikely(rwk_glance(ch->tx.attention)))
		rwk_shm_ring_bell(ch);
}

/* How many lines side 0 has sent, or as far as side 1 knows. */
static inline uint32_t agreed_line(const struct rwk_shm_channel *ch)
{
	return (ch->side ? ch->rx.stamp : ch->tx.stamp) / RWK_SHM_STAMP_STEP;
}

/* A message has gone, beginning with `line`, after one that came: it may well be answered. */
static inline void await_answer(struct rwk_shm_channel *ch, const struct rwk_shm_line *line)
{
	uint32_t n = agreed_line(ch);

	if (!rwk_shm_answer_matters(&ch->answer, n) || !ch->hot)
		return;
	if (rwk_shm_answer_asked(&ch->answer, n, rwk_clock_ticks()) && ch->tx.demotes)
		rwk_demote(line, RWK_CACHE_LINE);
}

/* Can a line be written now? Looks at how far the reader is if need be. */
static inline bool room_for_one(struct rwk_shm_channel *ch)
{
	if (rwk_likely(ch->tx.room))
		return true;
	if (rwk_shm_tx_look(&ch->tx) == UINT32_MAX)
		rwk_shm_protocol_error(ch, "it has consumed more than was sent");
	return ch->tx.room != 0;
}

/* Room for `n` lines, perhaps beyond the wrap. */
static bool room_for(struct rwk_shm_channel *ch, uint32_t n)
{
	uint32_t free;

	if (rwk_likely(ch->tx.room >= n))
		return true;
	free = rwk_shm_tx_look(&ch->tx);
	if (free == UINT32_MAX) {
		rwk_shm_protocol_error(ch, "it has consumed more than was sent");
		return false;
	}
	return free >= n;
}

/* The next line; there is room, but perhaps behind the wrap. */
static inline struct rwk_shm_line *next_line(struct rwk_shm_channel *ch)
{
	if (rwk_unlikely(!ch->tx.room))
		rwk_shm_tx_look(&ch->tx);
	return ch->tx.next;
}

static inline unsigned body_bytes(const struct rwk_envelope *env)
{
	return env->flags & RWK_ENV_DATA ? RWK_SHM_BODY_DATA : RWK_SHM_BODY;
}

/* The line `n` after the next one; there is room for it, but perhaps behind the wrap. */
static inline struct rwk_shm_line *line_ahead(struct rwk_shm_tx *tx, uint32_t n)
{
	struct rwk_shm_line *line = tx->next + n;

	if (rwk_unlikely(line >= tx->end && tx->lines_next == tx->lines))
		line -= tx->lines;
	return line;
}

/* A message of 1 + `more` lines is on its way, and more of them are to be expected. */
static void expect_lines(struct rwk_shm_tx *tx, uint32_t more)
{
	for (uint32_t i = 0; i <= more; i++)
		rwk_prefetch_write(line_ahead(tx, AHEAD_MORE + i));
}

/* All of a message's first line but its word. */
static inline void fill_line(struct rwk_shm_line *line, const struct rwk_envelope *env, const void *buf, size_t len)
{
	line->tag = env->tag;
	if (env->flags & RWK_ENV_DATA) {
		line->data = env->data;
		rwk_copy_short(line->body_data, buf, len);
	} else {
		rwk_copy_short(line->body, buf, len);
	}
}

/*
 * A message of at most RWK_SHM_MORE_MAX lines more than the first. The first is written last, all of it: the reader
 * polls it and nothing else, so it takes no line away while that is being written. The others have stamps all the same:
 * what they hold now must not look like a line of the next lap.
 */
static int send_lines(
	struct rwk_shm_channel *ch, const struct rwk_envelope *env, const unsigned char *from, uint32_t len)
{
	struct rwk_shm_tx *tx = &ch->tx;
	uint32_t first = len < body_bytes(env) ? len : body_bytes(env), at = first,
		 more = (len - at + RWK_SHM_MORE - 1) / RWK_SHM_MORE;
	struct rwk_shm_line *line;

	if (!room_for(ch, 1 + more))
		return -EAGAIN;
	line = next_line(ch);
	for (uint32_t i = 1; i <= more; i++) {
		uint32_t n = len - at < RWK_SHM_MORE ? len - at : RWK_SHM_MORE;
		struct rwk_shm_line *next = line_ahead(tx, i);

		rwk_copy_short(next->more, from + at, n);
		rwk_publish64(&next->word, tx->stamp + i * RWK_SHM_STAMP_STEP);
		at += n;
	}
	fill_line(line, env, from, first);
	rwk_publish64(&line->word, env->head << 32 | (tx->stamp + len));
	rwk_shm_tx_skip(tx, 1 + more);
	published(ch);
	if (streaming(tx))
		expect_lines(tx, more);
	else
		await_answer(ch, line);
	return 0;
}

/* Names a filled slab in a line, which is returned; there is room for one. `begun`: as in the line. */
static const struct rwk_shm_line *send_slab(struct rwk_shm_channel *ch, const struct rwk_envelope *env, uint32_t id,
	uint32_t piece, size_t total, uint32_t begun)
{
	struct rwk_shm_line *line = next_line(ch);

	line->tag = env->tag;
	line->data = env->flags & RWK_ENV_DATA ? env->data : 0;
	line->slab = id;
	line->piece = piece;
	line->total = total;
	line->begun = begun;
	rwk_shm_slab_sent(&ch->slabs, id);
	rwk_shm_tx_line(&ch->tx, RWK_SHM_IN_SLAB, (uint32_t)env->head);
	published(ch);
	return line;
}

/* From one piece of memory. What we have read last is in our caches. */
static void fill_slab(struct rwk_shm_channel *ch, uint32_t id, const void *from, size_t n)
{
	unsigned char *slab = rwk_shm_slab(&ch->slabs, id);

	if (rwk_shm_slab_was_read(&ch->slabs, id))
		rwk_shm_fill(&ch->fill, slab, from, n);
	else
		rwk_copy_away(slab, from, n, ch->fill.string);
}

/* Asks for the first lines of a slab, to write them. */
static void ask_for(const struct rwk_shm_slabs *s, uint32_t id, size_t len)
{
	for (size_t at = 0; at < len; at += RWK_CACHE_LINE)
		rwk_prefetch_write(rwk_shm_slab(s, id) + at);
}

/*
 * A message of `len` bytes in slabs is on its way, and an answer is awaited. If slabs go there alone and are given
 * back, the lines of the next ones are in the reader's cache, and a message as long as this one would have to ask for
 * each of them: now there is time for it.
 */
static void expect_another(struct rwk_shm_channel *ch, size_t len)
{
	const struct rwk_shm_slabs *s = &ch->slabs;

	for (uint32_t i = 1; len && i <= s->count; i++) {
		uint32_t id = s->stack[s->count - i];
		size_t n = len < RWK_SHM_SLAB_BYTES ? len : RWK_SHM_SLAB_BYTES;

		if (!rwk_shm_slab_was_read(s, id))
			return;
		ask_for(s, id, n);
		len -= n;
	}
}

/* A message of `len` bytes in a slab is on its way, and more of them are to be expected. */
static void expect_slabs(struct rwk_shm_channel *ch, size_t len)
{
	const struct rwk_shm_slabs *s = &ch->slabs;

	rwk_prefetch_write(ch->tx.next + AHEAD_ONE);
	if (s->count >= AHEAD_SLABS)
		ask_for(s, s->stack[s->count - AHEAD_SLABS], len < AHEAD_SLAB_BYTES ? len : AHEAD_SLAB_BYTES);
}

static int send_in_slab(struct rwk_shm_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len)
{
	const struct rwk_shm_line *line;
	uint32_t id;

	if (!room_for_one(ch))
		return -EAGAIN;
	id = rwk_shm_slab_take(&ch->slabs);
	if (id == RWK_SHM_NO_SLAB)
		return -EAGAIN;
	fill_slab(ch, id, buf, len);
	line = send_slab(ch, env, id, (uint32_t)len, len, 0);
	if (hands_over(&ch->tx))
		rwk_demote(rwk_shm_slab(&ch->slabs, id), len < HAND_OVER_BYTES ? len : HAND_OVER_BYTES);
	if (streaming(&ch->tx)) {
		expect_slabs(ch, len);
	} else {
		await_answer(ch, line);
		expect_another(ch, len);
	}
	return 0;
}

static size_t short_max(const struct rwk_envelope *env)
{
	return body_bytes(env) + (size_t)RWK_SHM_MORE * RWK_SHM_MORE_MAX;
}

/* Fills a slab with the next `n` bytes of the op. */
static void fill_slab_of(struct rwk_shm_channel *ch, uint32_t id, struct rwk_op *op, size_t n)
{
	if (op->iov_count == 1)
		fill_slab(ch, id, (const char *)op->iov->iov_base + op->at, n);
	else
		rwk_iov_gather(op->iov, op->iov_count, op->at, rwk_shm_slab(&ch->slabs, id), n);
}

/*
 * Is a message in pieces to tell when it was begun (arrival.h)? One of BEGUN_EACH that may be answered. One behind
 * another message seems to be part of a stream. But there may be a short one before each, as a head; so the first ones
 * of a class tell all the same, or their receiver would never know what they take. No more of them, for where both
 * sides send at once those are the ones that come when it suits their receiver.
 */
static bool tells_begun(struct rwk_shm_channel *ch, size_t length)
{
	uint32_t *sent = &ch->in_pieces[rwk_fetched_class(length)];

	return (!ch->tx.streaming || *sent < BEGUN_FIRST) && (*sent)++ % BEGUN_EACH == 0;
}

static void send_first(struct rwk_shm_channel *ch, struct rwk_op *op, uint32_t id, size_t n)
{
	uint32_t begun = op->length > n && tells_begun(ch, op->length) ? (uint32_t)rwk_clock_shared() | 1 : 0;

	fill_slab_of(ch, id, op, n);
	send_slab(ch, &op->env, id, (uint32_t)n, op->length, begun);
}

static void send_further(struct rwk_shm_channel *ch, struct rwk_op *op, uint32_t id, size_t n)
{
	const struct rwk_envelope next = {.kind = RWK_SHM_PIECE};

	fill_slab_of(ch, id, op, n);
	send_slab(ch, &next, id, (uint32_t)n, op->length, 0);
}

/*
 * Sends of a posted message as much as goes. Each piece is published as soon as it is copied: the receiver copies
 * behind us. 1: all of it; 0: more is to come.
 */
static int send_some(struct rwk_shm_channel *ch, struct rwk_op *op)
{
	if (op->length <= short_max(&op->env)) {
		unsigned char all[RWK_SHM_BODY + RWK_SHM_MORE * RWK_SHM_MORE_MAX];

		rwk_iov_gather(op->iov, op->iov_count, 0, all, op->length);
		return send_lines(ch, &op->env, all, (uint32_t)op->length) == 0;
	}
	while (op->at < op->length) {
		size_t left = op->length - op->at, n = left < RWK_SHM_SLAB_BYTES ? left : RWK_SHM_SLAB_BYTES;
		uint32_t id;

		if (!room_for_one(ch))
			return 0;
		id = rwk_shm_slab_take(&ch->slabs);
		if (id == RWK_SHM_NO_SLAB)
			return 0;
		if (op->at)
			send_further(ch, op, id, n);
		else
			send_first(ch, op, id, n);
		op->at += n;
	}
	return 1;
}

/* A long message of one buffer, if all of it fits. */
static int send_pieces(struct rwk_shm_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len)
{
	uint32_t pieces = (uint32_t)((len + RWK_SHM_SLAB_BYTES - 1) / RWK_SHM_SLAB_BYTES);
	const struct iovec iov = {(void *)buf, len};
	struct rwk_op op = {.iov = &iov, .iov_count = 1, .length = len, .env = *env};

	if (!room_for(ch, pieces) || !rwk_shm_slabs_reserve(&ch->slabs, pieces))
		return -EAGAIN;
	ch->tx.promised = true;
	send_some(ch, &op);
	ch->tx.promised = false;
	if (!streaming(&ch->tx))
		expect_another(ch, len);
	return 0;
}

static rwk_noinline int refuse(struct rwk_shm_channel *ch)
{
	if (!*ch->tx.here)
		return -ECHILD;
	return ch->base.error ? ch->base.error : -EAGAIN;
}

static rwk_outline int send_longer(
	struct rwk_shm_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len)
{
	if (len <= (hands_over(&ch->tx) ? body_bytes(env) : short_max(env)))
		return send_lines(ch, env, buf, (uint32_t)len);
	if (len <= RWK_SHM_SLAB_BYTES)
		return send_in_slab(ch, env, buf, len);
	if (len > ch->base.send_max)
		return -EMSGSIZE;
	return send_pieces(ch, env, buf, len);
}

/* Into the line of the message before. False: it is to begin a line of its own. */
static inline bool ride(struct rwk_shm_channel *ch, const struct rwk_envelope *env, const void *buf, size_t len)
{
	struct rwk_shm_tx *tx = &ch->tx;
	struct rwk_shm_line *rider = (void *)((unsigned char *)(tx->next - 1) + RWK_SHM_RIDER_AT);

	if (len > rwk_shm_half_bytes(env->flags & RWK_ENV_DATA))
		return false;
	fill_line(rider, env, buf, len);
	rwk_publish64(&rider->word, env->head << 32 | (tx->stamp - RWK_SHM_STAMP_STEP + (uint32_t)len));
	tx->open = false;
	published(ch);
	return true;
}

int rwk_shm_send(struct rwk_channel *c, const struct rwk_envelope *env, const void *buf, size_t len)
{
	struct rwk_shm_channel *ch = rwk_shm_channel(c);
	struct rwk_shm_tx *tx = &ch->tx;
	struct rwk_shm_line *line;
	uint32_t half = 0;

	if (rwk_unlikely(tx->shut || !*tx->here))
		return refuse(ch);
	if (tx->streaming) {
		if (tx->open && ride(ch, env, buf, len))
			return 0;
		half = tx->steady && len <= rwk_shm_half_bytes(env->flags & RWK_ENV_DATA) ? RWK_SHM_HALF : 0;
	}
	if (rwk_unlikely(len > body_bytes(env) || !tx->room))
		return send_longer(ch, env, buf, len);
	line = tx->next;
	fill_line(line, env, buf, len);
	if (half)
		atomic_store_explicit(&line->rider, 0, memory_order_relaxed);
	rwk_shm_tx_line(tx, (uint32_t)len + half, (uint32_t)env->head);
	published(ch);
	if (streaming(tx)) {
		tx->open = half;
		rwk_prefetch_write(tx->next + AHEAD_ONE);
	} else {
		await_answer(ch, line);
	}
	return 0;
}

void rwk_shm_gate(struct rwk_shm_channel *ch)
{
	bool queued = !rwk_list_empty(&ch->controls) || !rwk_list_empty(&ch->ops);

	ch->tx.shut = ch->state != RWK_SHM_OPEN || ch->doom || queued;
	if (!queued || ch->state != RWK_SHM_OPEN)
		rwk_list_remove(&ch->busy);
	else if (rwk_list_empty(&ch->busy))
		rwk_list_append(&ch->base.port->busy, &ch->busy);
}

static bool send_control(struct rwk_shm_channel *ch, unsigned kind, const void *body, size_t len)
{
	struct rwk_shm_line *line;

	if (!room_for_one(ch))
		return false;
	line = ch->tx.next;
	memcpy(line->body, body, len);
	rwk_shm_tx_line(&ch->tx, (uint32_t)len, kind);
	ch->silent += RWK_SHM_STAMP_STEP;
	published(ch);
	return true;
}

int rwk_shm_control(struct rwk_shm_channel *ch, enum rwk_shm_control kind, const void *body, size_t len)
{
	struct rwk_shm_waiting_control *w;

	if (ch->base.error || ch->doom)
		return ch->base.error ? ch->base.error : ch->doom;
	if (ch->state == RWK_SHM_OPEN && rwk_list_empty(&ch->controls) && send_control(ch, kind, body, len))
		return 0;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->kind = (uint8_t)kind;
	w->len = (uint8_t)len;
	memcpy(w->body, body, len);
	rwk_list_append(&ch->controls, &w->link);
	rwk_shm_gate(ch);
	return 0;
}

int rwk_shm_post(struct rwk_channel *c, struct rwk_op *op)
{
	struct rwk_shm_channel *ch = rwk_shm_channel(c);

	if (rwk_unlikely(!*ch->tx.here))
		return -ECHILD;
	if (ch->base.error)
		return ch->base.error;
	if (op->type != RWK_OP_SEND)
		return ch->state == RWK_SHM_OPEN ? rwk_shm_transfer_post(ch, op) : -ENOTCONN;
	if (op->length > ch->base.send_max)
		return -EMSGSIZE;
	op->at = 0;
	if (!ch->tx.shut && send_some(ch, op))
		return 1;
	rwk_list_append(&ch->ops, &op->link);
	ch->base.port->count.queued++;
	rwk_shm_gate(ch);
	return 0;
}

int rwk_shm_access(struct rwk_channel *c, const struct rwk_direct_access *a)
{
	struct rwk_shm_channel *ch = rwk_shm_channel(c);

	if (rwk_unlikely(!*ch->tx.here || ch->base.error || ch->state != RWK_SHM_OPEN))
		return -EAGAIN;
	return rwk_shm_transfer_access(ch, a);
}

int rwk_shm_withdraw(struct rwk_channel *c, struct rwk_op *op)
{
	struct rwk_shm_channel *ch = rwk_shm_channel(c);

	if (op->type != RWK_OP_SEND)
		return rwk_shm_transfer_withdraw(ch, op);
	if (op->at)
		return -EBUSY;
	rwk_list_remove(&op->link);
	rwk_shm_gate(ch);
	return 0;
}

static int send_queued_controls(struct rwk_shm_channel *ch)
{
	int n = 0;

	while (!rwk_list_empty(&ch->controls)) {
		struct rwk_shm_waiting_control *w =
			rwk_container_of(ch->controls.next, struct rwk_shm_waiting_control, link);

		if (!send_control(ch, w->kind, w->body, w->len))
			break;
		rwk_list_remove(&w->link);
		free(w);
		n++;
	}
	return n;
}

/* An op has not gone. Memory for slabs may come again; without it nothing would ever go, and that has an end. */
static void wait_for_memory(struct rwk_shm_channel *ch, const struct rwk_op *op)
{
	uint64_t now = ch->base.port->now;

	if (op->length <= short_max(&op->env) || !room_for_one(ch) || !rwk_shm_slabs_dry(&ch->slabs)) {
		ch->lacking_since = 0;
		return;
	}
	if (!ch->lacking_since)
		ch->lacking_since = now;
	if (now - ch->lacking_since <= RWK_SHM_LACKING_MAX)
		return;
	rwk_warn("shared memory: no memory for messages to rank %u; the connection is given up",
		rwk_address_rank(&ch->to));
	rwk_shm_doom(ch, -ENOMEM);
}

int rwk_shm_send_queued(struct rwk_shm_channel *ch)
{
	int n = send_queued_controls(ch);

	while (rwk_list_empty(&ch->controls) && !rwk_list_empty(&ch->ops)) {
		struct rwk_op *op = rwk_container_of(ch->ops.next, struct rwk_op, link);
		size_t before = op->at;

		if (!send_some(ch, op)) {
			n += op->at != before;
			wait_for_memory(ch, op);
			break;
		}
		ch->lacking_since = 0;
		rwk_list_remove(&op->link);
		rwk_shm_gate(ch);
		n++;
		op->done(op, 0);
	}
	rwk_shm_gate(ch);
	return n;
}

bool rwk_shm_queue_can_go(struct rwk_shm_channel *ch)
{
	struct rwk_op *op;

	if (!room_for_one(ch))
		return false;
	if (!rwk_list_empty(&ch->controls))
		return true;
	if (rwk_list_empty(&ch->ops))
		return false;
	op = rwk_container_of(ch->ops.next, struct rwk_op, link);
	if (op->length <= short_max(&op->env))
		return room_for(ch, 1 + RWK_SHM_MORE_MAX);
	return rwk_shm_slab_likely(&ch->slabs);
}

void rwk_shm_queue_drop(struct rwk_shm_channel *ch, int status)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(&ch->controls)))
		free(rwk_container_of(l, struct rwk_shm_waiting_control, link));
	while ((l = rwk_list_pop(&ch->ops))) {
		struct rwk_op *op = rwk_container_of(l, struct rwk_op, link);

		op->done(op, status);
	}
}

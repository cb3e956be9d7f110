/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inboxes: a ring of records for each member. Who puts something in holds the inbox's lock; that it is there says one
 * store of the tail, so that a record is there whole or not at all. The member takes records out without a lock. What
 * it reads may have been written by a process gone mad: it looks at each length before it believes it, and what does
 * not make sense is dropped up to the tail.
 *
 * A member that keeps up has an inbox of few pages: when it is empty the member lets it begin anew at the first of
 * them, before all of the ring has been touched, which else stays in memory (and in nobody's cache). Who puts something
 * in asks for the memory first, where none was asked for before: a store where there is none is a signal. Without it
 * the inbox counts as full.
 */
#include "internal.h"

#include "base/shared.h"

#include <string.h>

#define WALK (16u << 10) /* bytes of the ring that are used before it begins anew */

static uint32_t up8(size_t bytes)
{
	return (uint32_t)(bytes + 7) & ~7u;
}

static void write_record(unsigned char *at, const struct rwk_src_piece *p, uint32_t bytes)
{
	struct rwk_src_record r = {
		.head = {.bytes = bytes, .kind = p->kind, .where = p->where},
		.target = p->target,
		.len = (uint32_t)p->len,
		.number = p->number,
		.address = p->address,
		.key = p->key,
	};

	memcpy(at, &r, sizeof(r));
	if (p->len)
		memcpy(at + sizeof(r), p->bytes, p->len);
}

/*
 * A message that begins can be turned away; one that has begun must not be, nor one that may be in an inbox already:
 * the second half of an inbox is for those.
 */
static bool begins(const struct rwk_src_piece *p)
{
	return p->kind == RWK_SRC_SEND && p->where & RWK_PIECE_FIRST && !p->again;
}

/* Has memory put behind the ring up to there. The lock is held. */
static rwk_noinline bool grow(struct rwk_src_member *m, unsigned char *ring, uint32_t end)
{
	uint32_t there = rwk_glance(&m->there);

	end = (end + RWK_SRC_PAGE - 1) / RWK_SRC_PAGE * RWK_SRC_PAGE;
	if (there >= end || !rwk_shared_populate(ring + there, end - there))
		return false;
	rwk_publish32(&m->there, end);
	return true;
}

/* The lock is held. */
static int put(struct rwk_src_view *v, struct rwk_src_member *m, unsigned char *ring, const struct rwk_src_piece *p)
{
	uint32_t size = v->size.inbox_bytes, bytes = up8(sizeof(struct rwk_src_record) + p->len);
	uint64_t tail = rwk_glance(&m->tail), used = tail - rwk_observe64(&m->head);
	uint32_t at = (uint32_t)tail & (size - 1), fill = size - at < bytes ? size - at : 0;
	uint32_t end = fill ? size : at + bytes;

	/* First of all: for lack of room its initiator waits with what is for siblings too. */
	if (used > size / 2 && begins(p)) {
		v->counters.turned_away++;
		return -EBUSY;
	}
	if (used > size || size - used < fill + bytes) {
		v->counters.no_room++;
		return -EAGAIN;
	}
	if (rwk_unlikely(end > rwk_glance(&m->there)) && !grow(m, ring, end)) {
		v->counters.no_room++;
		return begins(p) ? -EBUSY : -EAGAIN;
	}
	if (fill) {
		struct rwk_src_record_head filler = {.bytes = fill, .kind = RWK_SRC_FILLER};

		memcpy(ring + at, &filler, sizeof(filler));
		at = 0;
	}
	write_record(ring + at, p, bytes);
	rwk_publish64(&m->tail, tail + fill + bytes);
	return 0;
}

int rwk_src_inbox_put(struct rwk_src_view *v, uint32_t srqn, const struct rwk_src_piece *p)
{
	uint32_t seat = srqn & (RWK_SRC_MEMBERS_MAX - 1);
	struct rwk_src_member *m = rwk_src_member(v, seat);
	int rc = 0;

	if (!rwk_src_lock(v, &m->lock)) {
		v->counters.locked_out++;
		return begins(p) ? -EBUSY : -EAGAIN;
	}
	if (rwk_likely(rwk_observe32(&m->srqn) == srqn)) {
		rc = put(v, m, rwk_src_inbox(v, seat), p);
		v->counters.handed_on += !rc;
	} else {
		v->counters.for_the_dead++;
	}
	rwk_src_unlock(&m->lock);
	return rc;
}

void rwk_src_hand_over(struct rwk_src_view *v, const struct rwk_src_piece *p)
{
	uint64_t *next = &v->next[rwk_src_place(v, p->target)];

	if (p->number < *next) {
		v->counters.repeated++;
		return;
	}
	*next = p->number + 1;
	if (p->kind == RWK_SRC_SEND)
		v->host->receive(v->user, p->target, p->where, p->bytes, p->len);
	else
		v->host->write(v->user, p->target, p->key, p->address, p->bytes, p->len);
}

/*
 * Looks at the record at `head`, of which at most `left` bytes have been put in: its bytes, and *p set. 0: it cannot
 * be. All that is believed is read once.
 */
static uint32_t read_record(
	const struct rwk_src_view *v, const unsigned char *ring, uint64_t left, struct rwk_src_piece *p)
{
	uint32_t size = v->size.inbox_bytes, at = (uint32_t)v->head & (size - 1);
	struct rwk_src_record_head h;
	struct rwk_src_record r;

	memcpy(&h, ring + at, sizeof(h));
	p->kind = h.kind;
	if (h.bytes % 8 || h.bytes < sizeof(h) || h.bytes > size - at || h.bytes > left || h.kind > RWK_SRC_WRITE)
		return 0;
	if (h.kind == RWK_SRC_FILLER)
		return h.bytes;
	if (h.bytes < sizeof(r))
		return 0;
	memcpy(&r, ring + at, sizeof(r));
	if (r.len > h.bytes - sizeof(r))
		return 0;
	p->where = h.where;
	p->target = r.target;
	p->number = r.number;
	p->address = r.address;
	p->key = r.key;
	p->bytes = ring + at + sizeof(r);
	p->len = r.len;
	return h.bytes;
}

/* The inbox makes no sense: all that is in it is dropped. */
static void drop_all(struct rwk_src_view *v, uint64_t tail)
{
	v->counters.corrupt++;
	v->head = tail & ~7ull;
	rwk_publish64(&v->me->head, v->head);
}

int rwk_src_inbox_take(struct rwk_src_view *v, uint64_t until, int budget)
{
	const unsigned char *ring = rwk_src_inbox(v, v->seat);
	int n = 0;

	if (rwk_unlikely(until - v->head > v->size.inbox_bytes || until % 8)) {
		drop_all(v, until);
		return 0;
	}
	while (v->head != until && n < budget) {
		struct rwk_src_piece p;
		uint32_t bytes = read_record(v, ring, until - v->head, &p);

		if (rwk_unlikely(!bytes)) {
			drop_all(v, until);
			return n;
		}
		if (p.kind != RWK_SRC_FILLER) {
			rwk_src_hand_over(v, &p);
			n++;
		}
		v->head += bytes;
		rwk_publish64(&v->me->head, v->head);
	}
	v->counters.drained += (uint64_t)n;
	return n;
}

/* The bytes to the end of the ring count as put in and taken out. */
static rwk_noinline void begin_anew(struct rwk_src_view *v)
{
	struct rwk_src_member *m = v->me;

	if (!rwk_src_try_lock(v, &m->lock))
		return;
	if (rwk_glance(&m->tail) == v->head) {
		v->head = (v->head | (v->size.inbox_bytes - 1)) + 1;
		rwk_publish64(&m->tail, v->head);
		rwk_publish64(&m->head, v->head);
	}
	rwk_src_unlock(&m->lock);
}

int rwk_src_drain(struct rwk_src_view *v, int budget)
{
	uint64_t tail;
	int n;

	if (rwk_unlikely(rwk_glance(&v->me->asleep))) /* else the line stays whose it is */
		atomic_store_explicit(&v->me->asleep, 0, memory_order_relaxed);
	tail = rwk_observe64(&v->me->tail);
	n = rwk_src_inbox_take(v, tail, budget);
	if (rwk_unlikely((tail & (v->size.inbox_bytes - 1)) >= WALK && v->head == tail))
		begin_anew(v);
	return n;
}

bool rwk_src_sleep(struct rwk_src_view *v)
{
	rwk_src_polls_no_more(v);
	atomic_store_explicit(&v->me->asleep, 1, memory_order_relaxed);
	rwk_barrier_full();
	return rwk_observe64(&v->me->tail) != v->head;
}

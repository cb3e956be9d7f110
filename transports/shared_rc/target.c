/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets: the directory, in which a number makes and ends one by a single store, and the area for early packets. The
 * directory is written under the table's lock, but for the end of a target, which anybody may say who has the evidence.
 * Its place is used again only when it can be locked, so that nobody is in the middle of a step there.
 *
 * A target is found by its initiator's nonce: entries whose nonces have the same hash are a chain. One that has ended
 * stays in its chain until its place is used again. A place leaves a chain, and joins another, by one store each, and
 * is in its chain before its number makes it a target: so who dies in between leaves nothing to be mended.
 */
#include "internal.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define ACK_DELAY 60000u /* ns */
#define ACK_EVERY 32u    /* packets */
#define RNR_TIMER 8u     /* 160 us: an inbox is full until its owner comes by */

void rwk_src_initiator_read(const struct rwk_src_target *t, struct rwk_src_initiator *initiator)
{
	uint64_t words[RWK_SRC_WORDS];

	for (unsigned i = 0; i < RWK_SRC_WORDS; i++)
		words[i] = rwk_glance(&t->initiator[i]);
	memcpy(initiator, words, sizeof(*initiator));
}

static void write_initiator(struct rwk_src_target *t, const struct rwk_src_initiator *initiator)
{
	uint64_t words[RWK_SRC_WORDS] = {0};

	memcpy(words, initiator, sizeof(*initiator));
	for (unsigned i = 0; i < RWK_SRC_WORDS; i++)
		atomic_store_explicit(&t->initiator[i], words[i], memory_order_relaxed);
}

static unsigned char *early_area(const struct rwk_src_view *v, const struct rwk_src_target *t)
{
	size_t place =
		(size_t)((const char *)t - (const char *)v->header - v->layout.targets) / v->layout.target_stride;

	return (unsigned char *)v->header + v->layout.early + place * v->layout.early_stride;
}

/* The lock is held, and nothing in there is needed. */
static void give_back(struct rwk_src_view *v, struct rwk_src_target *t)
{
	if (t->has_early && !madvise(early_area(v, t), v->layout.early_stride, MADV_REMOVE))
		t->has_early = 0;
}

static bool is_sound(const struct rwk_src_initiator *i)
{
	return i->nonce && i->qpn <= RWK_PSN_MASK && i->psn <= RWK_PSN_MASK && rwk_wire_is_pmtu(i->pmtu) &&
	       !(i->own & ~(RWK_RC_SELECTIVE | RWK_RC_LAZY | RWK_RC_ENDLESS | RWK_RC_BUSY)) &&
	       (i->own & RWK_RC_SELECTIVE || !(i->own & RWK_RC_BUSY));
}

/* The place in the low bits, the rest drawn. Neither 0 nor 1, nor all ones (a multicast's), nor the last one there. */
static int draw(struct rwk_src_view *v, uint32_t place, uint32_t last, uint32_t *qpn)
{
	do {
		if (getrandom(qpn, sizeof(*qpn), 0) != (ssize_t)sizeof(*qpn))
			return -EAGAIN;
		*qpn = ((*qpn & ~(v->size.targets - 1)) | place) & RWK_PSN_MASK;
	} while (*qpn <= RWK_WIRE_GSI_QPN || *qpn == RWK_PSN_MASK || *qpn == last);
	return 0;
}

static void open_responder(struct rwk_src_view *v, struct rwk_src_state *s, const struct rwk_src_initiator *initiator)
{
	struct rwk_rc_attr a = {
		.peer_qpn = initiator->qpn,
		.receive_psn = initiator->psn,
		.pmtu = initiator->pmtu,
		.window = RWK_RC_WINDOW_MAX,
		.reads = 1,
		.peer_reads = RWK_RC_READS_MAX,
		.rnr_timer = RNR_TIMER,
		.service = RWK_WIRE_SRC,
		.own = initiator->own,
		.reach = RWK_REACH_READ | RWK_REACH_WRITE,
		.ack_delay = ACK_DELAY,
		.ack_every = ACK_EVERY,
		.timeout = 1,
	};

	memset(s->responder, 0, RWK_SRC_RESPONDER);
	rwk_rc_open(v->maker, s->responder, &rwk_src_machine_host, v);
	rwk_rc_modify(v->maker, RWK_QP_INIT, NULL);
	rwk_rc_modify(v->maker, RWK_QP_RTR, &a);
}

static _Atomic uint32_t *chain_of(const struct rwk_src_view *v, uint64_t nonce)
{
	return rwk_src_chain(v, (uint32_t)(nonce * 0x9e3779b97f4a7c15ull >> 40) & (v->size.targets - 1));
}

/* The table's lock is held, here and below. However a sibling gone mad has tied it, a walk along a chain ends. */
static void unchain(struct rwk_src_view *v, uint32_t place)
{
	struct rwk_src_entry *e = rwk_src_entry(v, place);
	_Atomic uint32_t *at = chain_of(v, rwk_glance(&e->nonce));

	for (uint32_t i = 0; i < v->size.targets; i++) {
		uint32_t next = rwk_observe32(at);

		if (!next || next > v->size.targets)
			return;
		if (next == place + 1) {
			rwk_publish32(at, rwk_observe32(&e->next));
			return;
		}
		at = &rwk_src_entry(v, next - 1)->next;
	}
}

static void chain(struct rwk_src_view *v, uint32_t place)
{
	struct rwk_src_entry *e = rwk_src_entry(v, place);
	_Atomic uint32_t *head = chain_of(v, rwk_glance(&e->nonce));

	rwk_publish32(&e->next, rwk_observe32(head));
	rwk_publish32(head, place + 1);
}

/* Both locks are held. The count of packets goes on beyond all that a step cut off may have given away. */
static int settle(struct rwk_src_view *v, uint32_t place, const struct rwk_src_initiator *initiator, uint32_t *qpn)
{
	struct rwk_src_entry *e = rwk_src_entry(v, place);
	struct rwk_src_target *t = rwk_src_target(v, place);
	struct rwk_src_state *s = rwk_src_state(v, t, 0), *other = rwk_src_state(v, t, 1);
	uint64_t taken = s->taken > other->taken ? s->taken : other->taken;
	int rc = draw(v, place, e->last, qpn);

	if (rc)
		return rc;
	give_back(v, t);
	open_responder(v, s, initiator);
	s->taken = other->taken = taken + 2 * RWK_RC_WINDOW_MAX;
	s->early = 0;
	rwk_publish32(&t->active, 0);
	t->cut = 0;
	t->cut_said = 0;
	write_initiator(t, initiator);
	e->last = *qpn;
	atomic_store_explicit(&e->held, 0, memory_order_relaxed);
	unchain(v, place);
	atomic_store_explicit(&e->nonce, initiator->nonce, memory_order_relaxed);
	chain(v, place);
	rwk_publish32(&e->qpn, *qpn);
	return 0;
}

/*
 * One more place of the directory than before. It is counted before it has a number: who dies in between leaves a place
 * that is free, and not a target on the place that the next one takes. What has no memory is no place.
 */
static int settle_new(struct rwk_src_view *v, uint32_t place, const struct rwk_src_initiator *initiator, uint32_t *qpn)
{
	int rc;

	if (place >= v->size.targets || !rwk_src_populate(rwk_src_target(v, place), v->layout.target_stride))
		return -ENOSPC;
	rc = rwk_src_lock_init(&rwk_src_target(v, place)->lock);
	if (rc)
		return rc;
	rwk_publish32(&v->header->directed, place + 1);
	return settle(v, place, initiator, qpn);
}

/* The target of the initiator with that nonce; 0: there is none. */
static uint32_t find(struct rwk_src_view *v, uint64_t nonce)
{
	uint32_t next = rwk_observe32(chain_of(v, nonce));

	for (uint32_t i = 0; i < v->size.targets && next && next <= v->size.targets; i++) {
		const struct rwk_src_entry *e = rwk_src_entry(v, next - 1);
		uint32_t qpn = rwk_observe32(&e->qpn); /* once: who ends a target does not take the table's lock */

		if (rwk_glance(&e->nonce) == nonce && qpn > RWK_WIRE_GSI_QPN && qpn < RWK_PSN_MASK &&
			rwk_src_place(v, qpn) == next - 1)
			return qpn;
		next = rwk_observe32(&e->next);
	}
	return 0;
}

/*
 * Settles at a place that has become free; -ENOSPC: there is none. It is looked for if there is one by the count of
 * those that have ended, or no other place is left: who ended one may have died before it was counted.
 */
static int settle_again(struct rwk_src_view *v, const struct rwk_src_initiator *initiator, uint32_t *qpn)
{
	struct rwk_src_header *h = v->header;
	uint32_t directed = rwk_observe32(&h->directed), ended = rwk_observe32(&h->ended),
		 first = rwk_glance(&h->vacant);

	if (directed > v->size.targets)
		directed = v->size.targets;
	if (ended == rwk_glance(&h->reused) && directed < v->size.targets)
		return -ENOSPC;
	for (uint32_t i = 0; i < directed; i++) {
		uint32_t place = (uint32_t)(((uint64_t)first + i) % directed);
		struct rwk_src_target *t = rwk_src_target(v, place);
		int rc;

		if (rwk_observe32(&rwk_src_entry(v, place)->qpn) || !rwk_src_lock(v, &t->lock))
			continue;
		rc = settle(v, place, initiator, qpn);
		rwk_src_unlock(&t->lock);
		if (ended != rwk_glance(&h->reused))
			atomic_fetch_add_explicit(&h->reused, 1, memory_order_relaxed);
		atomic_store_explicit(&h->vacant, place + 1, memory_order_relaxed);
		return rc;
	}
	atomic_store_explicit(&h->reused, ended, memory_order_relaxed);
	return -ENOSPC;
}

/* The table's lock is held. */
static int find_or_make(struct rwk_src_view *v, const struct rwk_src_initiator *initiator, uint32_t *qpn)
{
	uint32_t found = find(v, initiator->nonce);
	int rc;

	if (found) {
		struct rwk_src_initiator there;

		rwk_src_initiator_read(rwk_src_target(v, rwk_src_place(v, found)), &there);
		*qpn = found;
		return there.qpn == initiator->qpn ? 0 : -EEXIST;
	}
	rc = settle_again(v, initiator, qpn);
	return rc == -ENOSPC ? settle_new(v, rwk_observe32(&v->header->directed), initiator, qpn) : rc;
}

int rwk_src_target_make(struct rwk_src_view *v, const struct rwk_src_initiator *initiator, uint32_t *qpn)
{
	uint32_t found;
	int rc;

	if (!is_sound(initiator))
		return -EINVAL;
	if (!rwk_src_lock(v, &v->header->lock))
		return -EAGAIN;
	rc = find_or_make(v, initiator, &found);
	rwk_src_unlock(&v->header->lock);
	if (!rc)
		*qpn = found;
	return rc;
}

int rwk_src_target_find(struct rwk_src_view *v, uint32_t qpn, struct rwk_src_initiator *initiator)
{
	const struct rwk_src_entry *e = rwk_src_entry(v, rwk_src_place(v, qpn));
	struct rwk_src_initiator found;

	if (!qpn || rwk_observe32(&e->qpn) != qpn)
		return -ENOENT;
	rwk_src_initiator_read(rwk_src_target(v, rwk_src_place(v, qpn)), &found);
	atomic_thread_fence(memory_order_acquire);
	if (rwk_glance(&e->qpn) != qpn)
		return -ENOENT;
	*initiator = found;
	return 0;
}

int rwk_src_target_cut(struct rwk_src_view *v, uint32_t qpn, uint32_t cut, uint64_t said)
{
	struct rwk_src_target *t = rwk_src_target(v, rwk_src_place(v, qpn));

	if (!rwk_src_lock(v, &t->lock))
		return -EAGAIN;
	if (rwk_src_target_lives(v, qpn) && said >= t->cut_said) {
		t->cut = cut;
		t->cut_said = said;
	}
	rwk_src_unlock(&t->lock);
	return 0;
}

bool rwk_src_target_lives(const struct rwk_src_view *v, uint32_t qpn)
{
	return qpn && rwk_observe32(&rwk_src_entry(v, rwk_src_place(v, qpn))->qpn) == qpn;
}

void rwk_src_target_end(struct rwk_src_view *v, uint32_t qpn)
{
	uint32_t expected = qpn;

	if (qpn && atomic_compare_exchange_strong(&rwk_src_entry(v, rwk_src_place(v, qpn))->qpn, &expected, 0))
		atomic_fetch_add_explicit(&v->header->ended, 1, memory_order_release);
}

/* A word that names the target, too: one that comes late, when the place is another's, says nothing of that. */
static uint64_t held_by(uint32_t qpn, uint32_t srqn)
{
	return (uint64_t)qpn << 32 | srqn;
}

uint32_t rwk_src_holder(const struct rwk_src_view *v, uint32_t qpn)
{
	uint64_t held = rwk_observe64(&rwk_src_entry(v, rwk_src_place(v, qpn))->held);
	uint32_t srqn = (uint32_t)held;

	if (held != held_by(qpn, srqn))
		return 0;
	return srqn == v->srqn || rwk_src_is_seen(v, srqn) ? srqn : 0;
}

void rwk_src_hold(struct rwk_src_view *v, uint32_t qpn)
{
	rwk_publish64(&rwk_src_entry(v, rwk_src_place(v, qpn))->held, held_by(qpn, v->srqn));
}

void rwk_src_let_go(struct rwk_src_view *v, uint32_t qpn)
{
	uint64_t mine = held_by(qpn, v->srqn);

	atomic_compare_exchange_strong(&rwk_src_entry(v, rwk_src_place(v, qpn))->held, &mine, 0);
}

static struct rwk_src_early *early_head(unsigned char *area, uint32_t slot)
{
	return (struct rwk_src_early *)area + slot;
}

/* The bytes lie together as the packets are long, so that no more pages are touched than need be. */
static unsigned char *early_bytes(const struct rwk_src_view *v, unsigned char *area, uint32_t slot, size_t pmtu)
{
	return area + v->layout.early_stride - RWK_RC_WINDOW_MAX * RWK_WIRE_OWN_MAX + slot * pmtu;
}

static size_t pmtu_of(const struct rwk_src_target *t)
{
	struct rwk_src_initiator initiator;

	rwk_src_initiator_read(t, &initiator);
	return initiator.pmtu < RWK_WIRE_OWN_MAX ? initiator.pmtu : RWK_WIRE_OWN_MAX;
}

int rwk_src_early_keep(struct rwk_src_view *v, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len)
{
	struct rwk_src_target *t = v->step.target;
	uint32_t place = rwk_src_place(v, v->step.qpn);
	unsigned char *area = early_area(v, t);
	size_t pmtu = pmtu_of(t);

	if (len > pmtu || !rwk_src_populate(early_head(area, slot), sizeof(struct rwk_src_early)) ||
		!rwk_src_populate(early_bytes(v, area, slot, pmtu), len))
		return -ENOMEM;
	t->has_early = 1;
	v->has_early[place / 64] |= 1ull << place % 64;
	early_head(area, slot)->w = *w;
	early_head(area, slot)->len = (uint32_t)len;
	if (len)
		memcpy(early_bytes(v, area, slot, pmtu), bytes, len);
	v->step.to->early++;
	return 0;
}

const void *rwk_src_early_kept(struct rwk_src_view *v, uint32_t slot, struct rwk_wire *w, size_t *len)
{
	unsigned char *area = early_area(v, v->step.target);
	size_t pmtu = pmtu_of(v->step.target), kept = rwk_glance(&early_head(area, slot)->len);

	*w = early_head(area, slot)->w;
	w->pad &= 3;
	for (size_t i = offsetof(struct rwk_wire, solicited); i <= offsetof(struct rwk_wire, becn); i++)
		((uint8_t *)w)[i] &= 1; /* all bools */
	*len = kept < pmtu ? kept : pmtu;
	return early_bytes(v, area, slot, pmtu);
}

/* True: nothing of this view's is left there. */
static bool tidy(struct rwk_src_view *v, uint32_t place)
{
	struct rwk_src_target *t = rwk_src_target(v, place);
	bool empty;

	if (!rwk_src_lock(v, &t->lock))
		return false;
	empty = !rwk_src_state(v, t, rwk_observe32(&t->active))->early;
	if (empty)
		give_back(v, t);
	rwk_src_unlock(&t->lock);
	return empty;
}

void rwk_src_early_tidy(struct rwk_src_view *v)
{
	for (uint32_t i = 0; i < (v->size.targets + 63) / 64; i++)
		for (uint32_t j = 0; j < 64 && v->has_early[i] >> j; j++)
			if (v->has_early[i] >> j & 1 && tidy(v, i * 64 + j))
				v->has_early[i] &= ~(1ull << j);
}

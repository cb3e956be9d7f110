/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet: one step of its target's machine, on a copy of the true state, which it becomes by one store. What is for
 * this member itself is handed over when the lock is released again. A state that no machine can have left so was
 * written by a sibling gone mad: then the target has ended.
 */
#include "internal.h"

#include <string.h>

static_assert(offsetof(struct rwk_src_initiator, to) % 8 == 0 && sizeof(struct rwk_link_address) % 8 == 0,
	"an initiator's address is in words of its own");

static bool is_known(struct rwk_src_view *v, uint32_t qpn)
{
	if (rwk_likely(qpn && rwk_observe32(&rwk_src_entry(v, rwk_src_place(v, qpn))->qpn) == qpn))
		return true;
	v->counters.unknown_target++;
	return false;
}

static pthread_mutex_t *lock_of(const struct rwk_src_view *v, uint32_t qpn)
{
	return &rwk_src_target(v, rwk_src_place(v, qpn))->lock;
}

/* The target is locked. */
static bool enter(struct rwk_src_view *v, uint32_t qpn)
{
	struct rwk_src_target *t = rwk_src_target(v, rwk_src_place(v, qpn));
	struct rwk_src_step *s = &v->step;

	s->target = t;
	if (!is_known(v, qpn)) {
		rwk_src_step_abandon(v);
		return false;
	}
	s->becomes = (rwk_observe32(&t->active) & 1) ^ 1;
	s->from = rwk_src_state(v, t, s->becomes ^ 1);
	s->to = rwk_src_state(v, t, s->becomes);
	rwk_rc_copy_responder(v->responder, s->from->responder);
	if (rwk_unlikely(!rwk_rc_responder_is_sound(v->responder))) {
		rwk_src_step_abandon(v);
		rwk_src_target_end(v, qpn);
		v->counters.broken_targets++;
		return false;
	}
	*s->to = *s->from;
	rwk_rc_lend(v->qp, v->responder);
	atomic_store_explicit(&t->toucher, 0, memory_order_relaxed); /* whoever was died over it */
	s->qpn = qpn;
	s->expected = rwk_rc_expected(v->qp);
	s->own.kind = RWK_SRC_FILLER;
	s->told_count = 0;
	return true;
}

bool rwk_src_step_begin(struct rwk_src_view *v, uint32_t qpn)
{
	if (!is_known(v, qpn))
		return false;
	if (rwk_unlikely(!rwk_src_lock(v, lock_of(v, qpn)))) {
		v->counters.locked_out++;
		return false;
	}
	return enter(v, qpn);
}

bool rwk_src_step_try(struct rwk_src_view *v, uint32_t qpn)
{
	return is_known(v, qpn) && rwk_src_try_lock(v, lock_of(v, qpn)) && enter(v, qpn);
}

void rwk_src_step_commit(struct rwk_src_view *v)
{
	struct rwk_src_step *s = &v->step;

	rwk_rc_copy_responder(s->to->responder, v->responder);
	s->to->taken += (rwk_rc_expected(v->qp) - s->expected) & RWK_PSN_MASK;
	rwk_publish32(&s->target->active, s->becomes);
	rwk_src_unlock(&s->target->lock);
}

void rwk_src_step_abandon(struct rwk_src_view *v)
{
	rwk_src_unlock(&v->step.target->lock);
}

/* Has the owner of that SRQ something in its inbox now, of which it is to be told? */
static void tell(struct rwk_src_step *s, uint32_t srqn)
{
	if (s->told_count && s->told[s->told_count - 1] == srqn)
		return;
	if (s->told_count < sizeof(s->told) / sizeof(s->told[0]))
		s->told[s->told_count++] = srqn;
}

static void wake(struct rwk_src_view *v)
{
	const struct rwk_src_step *s = &v->step;

	if (!s->told_count)
		return;
	/* Who goes to sleep says so, then looks into the inbox; we have put something in, and look whether it sleeps.
	 */
	rwk_barrier_full();
	for (unsigned i = 0; i < s->told_count; i++)
		if (rwk_observe32(&rwk_src_member(v, s->told[i] & (RWK_SRC_MEMBERS_MAX - 1))->asleep))
			v->host->wake(v->user, s->told[i]);
}

/* Does anybody take what is for that SRQ? 0; -EINVAL: it never was, the target refuses (S1-6). */
static int look_up(struct rwk_src_view *v, uint32_t srqn, bool *dead)
{
	enum rwk_src_whose whose = rwk_src_whose(v, srqn);

	*dead = whose == RWK_SRC_DEAD;
	v->counters.unknown_srq += whose == RWK_SRC_NOBODY;
	return whose == RWK_SRC_NOBODY ? -EINVAL : 0;
}

/* That it is given stands in the target before it is, and stays there if this process dies meanwhile. */
static int put(struct rwk_src_view *v, uint32_t srqn, struct rwk_src_piece *p)
{
	struct rwk_src_target *t = v->step.target;
	uint64_t given = t->given;
	int rc;

	p->again = p->number < given;
	if (rwk_likely(!p->again))
		t->given = p->number + 1;
	rc = rwk_src_inbox_put(v, srqn, p);
	if (rwk_unlikely(rc))
		t->given = given;
	return rc;
}

/* A piece that the machine has taken, on to whose it is. */
static int give(struct rwk_src_view *v, const struct rwk_wire *w, struct rwk_src_piece *p)
{
	struct rwk_src_step *s = &v->step;
	bool dead;
	int rc = look_up(v, w->srqn, &dead);

	if (rc)
		return rc;
	if (dead) {
		v->counters.for_the_dead++;
		return 0;
	}
	if (p->kind == RWK_SRC_WRITE && p->address & RWK_SRC_REACH) {
		rwk_src_reach_write(v, w->srqn, p);
		return 0;
	}
	p->target = s->qpn;
	p->number = s->from->taken + ((w->psn - s->expected) & RWK_PSN_MASK);
	if (w->srqn == v->srqn && w == s->packet) {
		s->own = *p;
		s->own_behind = rwk_observe64(&v->me->tail);
		return 0;
	}
	rc = put(v, w->srqn, p);
	if (!rc && w->srqn != v->srqn)
		tell(s, w->srqn);
	return rc;
}

static int on_receive(void *user, const struct rwk_wire *w, unsigned where, const void *bytes, size_t len)
{
	struct rwk_src_piece p = {.kind = RWK_SRC_SEND, .where = (uint8_t)where, .bytes = bytes, .len = len};

	return give(user, w, &p);
}

/* Whether the key allows it is looked at for each piece, by who places it. */
static int on_reach(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, size_t len, unsigned access)
{
	bool dead;

	(void)key;
	(void)address;
	(void)len;
	(void)access;
	return look_up(user, w->srqn, &dead);
}

static int on_write(void *user, const struct rwk_wire *w, uint32_t key, uint64_t address, const void *bytes, size_t len)
{
	struct rwk_src_piece p = {.kind = RWK_SRC_WRITE, .key = key, .address = address, .bytes = bytes, .len = len};

	return give(user, w, &p);
}

/* A Write with immediate: our own ends send none. */
static int on_written(void *user, const struct rwk_wire *w)
{
	(void)user;
	(void)w;
	return -EINVAL;
}

/* What cannot be read is zeros: the peer asks behind it whether all was carried out. */
static int on_read(void *user, uint32_t key, uint64_t address, size_t len, struct iovec *iov, int max)
{
	struct rwk_src_view *v = user;
	uint8_t *bytes = v->slots[RWK_SRC_SLOTS];

	if (max < 1 || len > RWK_WIRE_OWN_MAX)
		return -EINVAL;
	rwk_src_reach_read(v, key, address, bytes, len);
	iov[0] = (struct iovec){bytes, len};
	return 1;
}

static int on_keep(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len)
{
	return rwk_src_early_keep(user, slot, w, bytes, len);
}

static const void *on_kept(void *user, uint32_t slot, struct rwk_wire *w, size_t *len)
{
	return rwk_src_early_kept(user, slot, w, len);
}

static void on_drop(void *user, uint32_t slot)
{
	(void)slot;
	((struct rwk_src_view *)user)->step.to->early--;
}

static int on_emit(void *user, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	return rwk_src_answer_put(user, w, payload, count);
}

/* That it has refused something stands in the target's state, and its initiator is told. */
static void on_failed(void *user, int err)
{
	(void)user;
	(void)err;
}

const struct rwk_machine_host rwk_src_machine_host = {
	.emit = on_emit,
	.failed = on_failed,
	.receive = on_receive,
	.reach = on_reach,
	.write = on_write,
	.written = on_written,
	.read = on_read,
	.keep = on_keep,
	.kept = on_kept,
	.drop = on_drop,
};

static void hand_over_own(struct rwk_src_view *v)
{
	struct rwk_src_piece p = v->step.own;

	if (p.kind == RWK_SRC_FILLER)
		return;
	rwk_src_inbox_take(v, v->step.own_behind, INT32_MAX);
	v->counters.own++;
	rwk_src_hand_over(v, &p);
}

/* Is that where the target's initiator sends from? */
static bool is_from(const struct rwk_src_target *t, const struct rwk_link_address *from)
{
	uint64_t words[sizeof(*from) / 8], wrong = 0;

	memcpy(words, from, sizeof(words));
	for (unsigned i = 0; i < sizeof(words) / 8; i++)
		wrong |= words[i] ^ rwk_glance(&t->initiator[offsetof(struct rwk_src_initiator, to) / 8 + i]);
	return !wrong;
}

void rwk_src_packet(struct rwk_src_view *v, const struct rwk_link_address *from, const struct rwk_wire *w,
	const void *payload, size_t len, rwk_time now)
{
	rwk_time next;

	if (len > RWK_WIRE_OWN_MAX || !rwk_src_step_begin(v, w->qpn))
		return;
	if (rwk_unlikely(!is_from(v->step.target, from))) {
		rwk_src_step_abandon(v);
		v->counters.wrong_sender++;
		return;
	}
	v->step.packet = w;
	rwk_rc_packet(v->qp, w, payload, len, now);
	next = rwk_rc_next(v->qp);
	rwk_src_step_commit(v);
	rwk_src_owe(v, w->qpn, next);
	wake(v);
	hand_over_own(v);
}

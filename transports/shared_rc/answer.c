/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Acknowledgements and answers to Reads. That one is due, or will be, stands in the target's state; this view only
 * remembers of which targets it is to ask, and when. If it does not, because its process computes or dies, the
 * initiator asks. One is made in a step of its own and sent when that has happened: it says nothing that is not so. If
 * the link has no room, the one that was made waits here for the next pump. One may travel with a message to the
 * initiator's process (rwk_src_take_ack) before its time, and where messages follow each other closely that is left
 * until it is one of some packets.
 */
#include "internal.h"

#include "base/iov.h"

#include <errno.h>
#include <string.h>

#define WORTH_A_STEP 4  /* packets since the last one, whose acknowledgement a message takes along */
#define IN_A_ROW     16 /* taken along, then one goes alone: a link learns from it which way they come */

#define TRY_AGAIN (1000 * 1000ull) /* ns, when the target cannot be locked */

static struct rwk_src_owed *find(struct rwk_src_view *v, uint32_t qpn)
{
	for (unsigned i = v->owed_count; i-- > 0;) {
		if (rwk_likely(v->owed[i].qpn == qpn))
			return &v->owed[i];
	}
	return NULL;
}

void rwk_src_owe(struct rwk_src_view *v, uint32_t qpn, rwk_time at)
{
	struct rwk_src_owed *o = find(v, qpn);

	if (rwk_likely(o != NULL)) {
		o->at = at;
		o->packets++;
	} else if (at != RWK_NEVER && v->owed_count < RWK_SRC_OWED) {
		v->owed[v->owed_count++] = (struct rwk_src_owed){.at = at, .qpn = qpn, .packets = 1};
	}
}

/* Whether there may be one of `which`: of what siblings have taken this view does not know how much it is. */
static bool is_worth(const struct rwk_src_owed *o, enum rwk_src_ride which)
{
	if (which == RWK_SRC_RIDE_AGAIN)
		return true;
	if (!o || !o->packets)
		return which == RWK_SRC_RIDE_ANY;
	return o->rides < IN_A_ROW && (which == RWK_SRC_RIDE_ANY || o->packets >= WORTH_A_STEP);
}

bool rwk_src_take_ack(struct rwk_src_view *v, uint32_t qpn, enum rwk_src_ride which, uint32_t *word)
{
	struct rwk_src_owed *o = find(v, qpn);
	bool taken, own = o && o->packets;

	if (!is_worth(o, which))
		return false;
	if (own)
		o->packets = 0;
	if (!(which == RWK_SRC_RIDE_AGAIN ? rwk_src_step_begin(v, qpn) : rwk_src_step_try(v, qpn)))
		return false;
	taken = rwk_rc_take_ack(v->qp, which == RWK_SRC_RIDE_AGAIN, word);
	if (taken && own) {
		o->at = rwk_rc_next(v->qp);
		o->rides++;
	}
	if (taken)
		rwk_src_step_commit(v);
	else
		rwk_src_step_abandon(v);
	return taken;
}

rwk_time rwk_src_next(const struct rwk_src_view *v)
{
	rwk_time next = v->answer.ready ? 0 : RWK_NEVER;

	for (unsigned i = 0; i < v->owed_count; i++)
		next = v->owed[i].at < next ? v->owed[i].at : next;
	return next;
}

/* What no initiator can have said was written by a sibling gone mad. */
static uint32_t cut_of(const struct rwk_src_target *t)
{
	uint32_t cut = *(const volatile uint32_t *)&t->cut;

	return cut >= RWK_SRC_CUT_LEAST && cut < RWK_WIRE_OWN_MAX ? cut : 0;
}

int rwk_src_answer_put(struct rwk_src_view *v, const struct rwk_wire *w, const struct iovec *payload, int count)
{
	struct rwk_src_answer *a = &v->answer;
	struct rwk_src_initiator initiator;
	size_t len = rwk_iov_length(payload, (size_t)count);

	if (a->ready || len > RWK_WIRE_OWN_MAX)
		return -EAGAIN;
	if (len)
		a->slot = (a->slot + 1) % RWK_SRC_SLOTS;
	a->len = rwk_iov_gather(payload, (size_t)count, 0, v->slots[a->slot], len);
	rwk_src_initiator_read(v->step.target, &initiator);
	a->to = initiator.to;
	a->cut = cut_of(v->step.target);
	a->w = *w;
	a->w.changing = false; /* what goes out is this copy */
	a->ready = true;
	return 0;
}

/*
 * True: nothing is ready any more. What is too long for the link is as good as lost: it would stand in the way of all
 * others for ever.
 */
static bool send_answer(struct rwk_src_view *v)
{
	struct rwk_src_answer *a = &v->answer;
	struct iovec iov = {v->slots[a->slot], a->len};
	int rc = a->ready ? v->host->emit(v->user, &a->to, a->cut, &a->w, &iov, a->len ? 1 : 0) : 0;

	a->ready = rc && rc != -EMSGSIZE;
	return !a->ready;
}

/* Makes what is due of that target, and says when to ask again. A holder that is stopped is not waited for awake. */
static rwk_time ask(struct rwk_src_view *v, uint32_t qpn, rwk_time now)
{
	uint64_t locked_out = v->counters.locked_out;
	rwk_time next;

	if (!rwk_src_step_begin(v, qpn))
		return v->counters.locked_out == locked_out ? RWK_NEVER : now + TRY_AGAIN;
	v->step.packet = NULL;
	rwk_rc_pump(v->qp, now);
	next = rwk_rc_next(v->qp);
	rwk_src_step_commit(v);
	return next;
}

int rwk_src_pump(struct rwk_src_view *v, rwk_time now)
{
	unsigned left = 0;
	int sent = 0;

	if (v->answer.ready) {
		if (!send_answer(v))
			return 0;
		sent++;
	} else {
		v->answer.slot = RWK_SRC_SLOTS - 1; /* the first ones again: they are in the cache, others in no memory */
	}
	for (unsigned i = 0; i < v->owed_count; i++) {
		struct rwk_src_owed *o = &v->owed[i];

		/* What a Read asked for is many answers, and each a step: nobody is locked out for long. */
		while (o->at <= now && !v->answer.ready && sent < (int)RWK_SRC_ANSWERS) {
			o->at = ask(v, o->qpn, now);
			o->packets = o->rides = 0;
			if (!v->answer.ready)
				break;
			sent += send_answer(v);
		}
		if (o->at != RWK_NEVER)
			v->owed[left++] = *o;
	}
	v->owed_count = left;
	return sent;
}

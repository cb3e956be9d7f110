/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a read: posted, given a method when it is among the first RWK_SHM_READS_ASKED of its channel, carried
 * out by pull, stage or both of them, finished in progress.
 *
 * A read that the peer should stage does not wait for a peer that computes: when nothing has come for about as long as
 * a pull would have taken, pieces are pulled from its back, until front and back meet. What the peer stages later is
 * dropped.
 */
#include "shm/transfer_area.h"

#include "base/log.h"
#include "base/param.h"
#include "base/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_LEAST    5000u             /* ns */
#define GRACE_MOST     200000u           /* ns: a peer that lost its core is not waited for */
#define PULL_GUESS     100.0f            /* ns a KB, before one has been measured */
#define TAKEOVER_LEAST ((size_t)64 << 10)
#define TAKEOVER_MOST  ((size_t)256 << 10)

static struct rwk_shm_port_transfers *port_transfers_of(struct rwk_port *port)
{
	void **state = rwk_shm_transfer_port_state(port);
	struct rwk_shm_port_transfers *p = *state;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	rwk_list_init(&p->head.active);
	*state = p;
	return p;
}

/* Memory for what is used of both sides' areas: without it a store is a signal, and so is a look. */
static bool areas_begin(struct rwk_shm_channel *ch)
{
	for (unsigned mine = 0; mine < 2; mine++) {
		void *area = rwk_shm_transfer_area(ch, mine);

		if (area && !rwk_shared_populate(area, RWK_SHM_TRANSFER_BEGIN))
			return false;
	}
	return true;
}

struct rwk_shm_transfers *rwk_shm_transfers_of(struct rwk_shm_channel *ch)
{
	void **state = rwk_shm_transfer_state(ch);
	struct rwk_shm_transfers *t = *state;
	struct rwk_shm_port_transfers *port;

	if (t)
		return t;
	/* a service puts the part that clients see first */
	port = port_transfers_of(((struct rwk_channel *)ch)->port);
	t = port && areas_begin(ch) ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return NULL;
	t->ch = ch;
	t->port = port;
	t->cma_denied = rwk_params.cma == RWK_OFF;
	rwk_list_init(&t->active);
	rwk_list_init(&t->reads);
	rwk_list_init(&t->waiting);
	rwk_list_init(&t->direct);
	rwk_shm_stage_open(t);
	rwk_shm_help_open(t);
	*state = t;
	return t;
}

void rwk_shm_transfers_activate(struct rwk_shm_transfers *t)
{
	if (rwk_list_empty(&t->active))
		rwk_list_append(&t->port->head.active, &t->active);
}

/*
 * Does the peer copy what it reads by itself? Then a half of ours would only come later: in windows both ways one side
 * had the other help as well as read, and both ways together took a quarter longer than where each reads for itself.
 */
static bool peer_pulls(struct rwk_shm_transfers *t)
{
	return rwk_observe64(&rwk_shm_area_of(t, false)->pulling.word);
}

/* Is this one of the reads of which the peer must know that they take this side's time? */
static void count_pulls(struct rwk_shm_transfers *t, struct rwk_op *op, bool pulls)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	uint32_t before = t->pulls;

	if (r->pulls == pulls)
		return;
	r->pulls = pulls;
	t->pulls = pulls ? before + 1 : before - 1;
	if (!before != !t->pulls)
		rwk_publish64(&rwk_shm_area_of(t, true)->pulling.word, pulls);
}

static unsigned allowed_methods(struct rwk_shm_transfers *t, const struct rwk_op *op)
{
	unsigned allowed = 1u << RWK_SHM_STAGE | 1u << RWK_SHM_PULL | 1u << RWK_SHM_BOTH;
	bool both = rwk_shm_both_possible(op, !t->begun);

	if (t->cma_denied)
		return 1u << RWK_SHM_STAGE;
	if (rwk_params.cma == RWK_ON)
		allowed &= ~(1u << RWK_SHM_STAGE);
	if (both && peer_pulls(t))
		allowed &= ~(1u << RWK_SHM_BOTH);
	if (t->force)
		allowed = t->force;
	if (!both)
		allowed &= ~(1u << RWK_SHM_BOTH);
	return allowed ? allowed : 1u << RWK_SHM_PULL;
}

void rwk_shm_reads_begin(struct rwk_shm_transfers *t)
{
	while (t->begun < RWK_SHM_READS_ASKED && !rwk_list_empty(&t->waiting)) {
		struct rwk_op *op = rwk_container_of(t->waiting.next, struct rwk_op, link);
		struct rwk_shm_read *r = rwk_shm_read_of(op);

		r->method = (uint8_t)rwk_shm_choice_pick(&t->pace.choice, rwk_shm_load_of(op), allowed_methods(t, op));
		if (r->method == RWK_SHM_STAGE && rwk_shm_stage_ask(t, op))
			return; /* no memory to ask: again in the next progress */
		count_pulls(t, op, r->method == RWK_SHM_PULL && op->length > RWK_SHM_BOTH_LEAST);
		r->begun = true;
		t->begun++;
		rwk_list_remove(&op->link);
		rwk_list_append(&t->reads, &op->link);
	}
}

/* Of pieces that lie differently one word cannot be said. */
static bool collides(const struct rwk_op *op, const struct rwk_shm_key *key)
{
	const char *here = op->iov->iov_base, *there = (const char *)(uintptr_t)(key->address + op->offset);

	if (op->iov_count != 1 || !key->one)
		return false;
	return op->type == RWK_OP_WRITE ? rwk_copy_collides(there, here) : rwk_copy_collides(here, there);
}

int rwk_shm_transfer_post(struct rwk_shm_channel *ch, struct rwk_op *op)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	struct rwk_shm_transfers *t;
	struct rwk_shm_key key;
	int rc;

	rc = rwk_shm_key_unpack(&op->rkey, &key);
	if (rc)
		return rc;
	if (op->offset > key.length || op->length > key.length - op->offset)
		return -EINVAL;
	t = rwk_shm_transfers_of(ch);
	if (!t)
		return -ENOMEM;
	if (t->stopped)
		return t->stopped;
	if (!op->length)
		return 1;
	memset(op->service, 0, sizeof(op->service));
	r->collides = collides(op, &key);
	if (key.direct || op->type == RWK_OP_WRITE)
		return rwk_shm_direct_post(t, op, &key);
	op->at = 0;
	r->back = op->length;
	r->id = t->next_id++;
	r->started = rwk_clock_now();
	rwk_list_append(&t->waiting, &op->link);
	rwk_shm_transfers_activate(t);
	rwk_shm_reads_begin(t);
	return 0;
}

int rwk_shm_transfer_access(struct rwk_shm_channel *ch, const struct rwk_direct_access *a)
{
	struct rwk_shm_transfers *t = *rwk_shm_transfer_state(ch);
	struct rwk_shm_key key;

	if (!t || t->stopped || rwk_shm_key_unpack(a->rkey, &key) || !key.direct || !key.one ||
		a->offset > key.length || a->length > key.length - a->offset)
		return -EAGAIN;
	return rwk_shm_direct_now(t, a, &key);
}

int rwk_shm_transfer_withdraw(struct rwk_shm_channel *ch, struct rwk_op *op)
{
	(void)ch;
	if (rwk_shm_read_of(op)->begun)
		return -EBUSY;
	rwk_list_remove(&op->link);
	return 0;
}

static void tell_wanted(struct rwk_shm_transfers *t)
{
	struct rwk_shm_arrival *a = &t->arrival;

	if (rwk_shm_control(t->ch, RWK_SHM_ARRIVAL, &a->wanted, sizeof(a->wanted)))
		a->wanted = a->told;
	a->told = a->wanted;
}

/* Messages that may come in pieces, too; nobody knows what other reads are for. */
static void fetched(struct rwk_shm_transfers *t, struct rwk_op *op, uint64_t now)
{
	if (t->cma_denied) { /* reads are staged then, in more pieces than these would be */
		if (t->arrival.wanted) {
			t->arrival.wanted = 0;
			tell_wanted(t);
		}
		return;
	}
	if (op->length > RWK_FETCHED_MIN && op->length <= ((struct rwk_channel *)t->ch)->send_max &&
		rwk_shm_arrival_fetched(&t->arrival, op->length,
			rwk_shm_choice_least(&t->pace.choice, rwk_shm_load_of(op)), now))
		tell_wanted(t);
}

static bool can_fetch(const struct rwk_shm_transfers *t, size_t length)
{
	return t && !t->cma_denied && length > RWK_FETCHED_MIN;
}

void rwk_shm_pieces_begin(struct rwk_shm_channel *ch, size_t length, bool silent, uint32_t begun)
{
	struct rwk_shm_transfers *t = rwk_shm_transfers_of(ch);

	if (can_fetch(t, length))
		rwk_shm_arrival_begins(&t->arrival, length, silent, begun ? (uint32_t)rwk_clock_shared() - begun : 0,
			begun ? rwk_clock_now() : 0);
}

void rwk_shm_pieces_end(struct rwk_shm_channel *ch, size_t length)
{
	struct rwk_shm_transfers *t = rwk_shm_transfers_of(ch);
	uint64_t now;

	if (!can_fetch(t, length))
		return;
	now = rwk_shm_arrival_measures(&t->arrival, length) ? rwk_clock_now() : 0;
	if (rwk_shm_arrival_whole(&t->arrival, length, now))
		tell_wanted(t);
}

static void finish(struct rwk_shm_transfers *t, struct rwk_op *op, int status, uint64_t now)
{
	struct rwk_shm_read *r = rwk_shm_read_of(op);

	if (!status && r->method < RWK_SHM_METHODS) {
		now = now ? now : rwk_clock_now();
		t->pace.ahead = r->method == RWK_SHM_BOTH && !t->pace.of_call ? rwk_shm_both_ahead(t, op) : 0;
		rwk_shm_pace_done(&t->pace, r->method, rwk_shm_load_of(op), r->started, now,
			t->begun > 1 || !rwk_list_empty(&t->waiting));
		fetched(t, op, now);
	}
	rwk_shm_stage_leave(t, op);
	if (!rwk_shm_both_leave(t, op)) {
		r->method = RWK_SHM_METHODS;
		r->status = status;
		return;
	}
	rwk_list_remove(&op->link);
	count_pulls(t, op, false);
	t->begun--;
	op->done(op, status);
}

void rwk_shm_read_finish(struct rwk_shm_transfers *t, struct rwk_op *op, int status)
{
	finish(t, op, status, 0);
}

bool rwk_shm_read_finish_if_whole(struct rwk_shm_transfers *t, struct rwk_op *op, uint64_t now)
{
	if (op->at < rwk_shm_read_of(op)->back)
		return false;
	finish(t, op, 0, now);
	return true;
}

struct rwk_op *rwk_shm_read_find(struct rwk_shm_transfers *t, uint32_t id)
{
	struct rwk_list *n = t->reads.next;

	for (uint32_t i = 0; i < t->begun; i++, n = n->next) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);

		if (rwk_shm_read_of(op)->id == id)
			return op;
	}
	return NULL;
}

/* The peer does not stage the first read: goes on without it if its grace is over. Called when nothing has come. */
static int take_over(struct rwk_shm_transfers *t)
{
	struct rwk_op *op = rwk_container_of(t->reads.next, struct rwk_op, link);
	struct rwk_shm_read *r = rwk_shm_read_of(op);
	size_t left = r->back - op->at, chunk = left / 4;
	uint64_t grace;

	if (t->cma_denied || t->force == 1u << RWK_SHM_STAGE)
		return 0;
	grace = rwk_shm_choice_expect(
		&t->pace.choice, RWK_SHM_PULL, (struct rwk_shm_load){left, r->collides}, PULL_GUESS);
	grace = grace < GRACE_LEAST ? GRACE_LEAST : grace > GRACE_MOST ? GRACE_MOST : grace;
	if (rwk_clock_now() - t->last_news < grace)
		return 0;
	if (left < 2 * TAKEOVER_LEAST)
		chunk = left;
	else
		chunk = chunk < TAKEOVER_LEAST ? TAKEOVER_LEAST : chunk > TAKEOVER_MOST ? TAKEOVER_MOST : chunk;
	t->port->counts.takeovers++;
	rwk_shm_pull_back(t, op, chunk);
	return 1;
}

/* The first read, by its method; `news`: something has been staged just now. */
static int work_on_first(struct rwk_shm_transfers *t, bool news)
{
	struct rwk_op *op = rwk_container_of(t->reads.next, struct rwk_op, link);
	struct rwk_shm_read *r = rwk_shm_read_of(op);

	switch (r->method) {
	case RWK_SHM_PULL:
		return rwk_shm_pull(t);
	case RWK_SHM_BOTH:
		return rwk_shm_both_read(t);
	case RWK_SHM_STAGE:
		return news ? 0 : take_over(t);
	default:
		if (!rwk_shm_both_leave(t, op))
			return 0;
		rwk_shm_read_finish(t, op, r->status);
		return 1;
	}
}

static int channel_progress(struct rwk_shm_transfers *t)
{
	int n = rwk_shm_stage_write(t) + rwk_shm_help(t) + rwk_shm_direct_progress(t), news;

	if (t->broken || (rwk_list_empty(&t->reads) && rwk_list_empty(&t->waiting)))
		return n;
	rwk_shm_reads_begin(t);
	news = rwk_shm_stage_read(t);
	if (t->begun && !t->broken)
		n += work_on_first(t, news);
	return n + news;
}

static bool idle(const struct rwk_shm_transfers *t)
{
	return rwk_list_empty(&t->reads) && rwk_list_empty(&t->waiting) && rwk_list_empty(&t->serves) &&
	       rwk_list_empty(&t->helps) && rwk_list_empty(&t->direct);
}

int rwk_shm_transfer_progress(struct rwk_port *port)
{
	struct rwk_shm_port_transfers *p = *rwk_shm_transfer_port_state(port);
	struct rwk_list *n, *next;
	int did = 0;

	if (!p)
		return 0;
	/* upcalls may add channels at the end, never remove one */
	for (n = p->head.active.next; n != &p->head.active; n = next) {
		struct rwk_shm_transfers *t = rwk_container_of(n, struct rwk_shm_transfers, active);

		if (!t->broken)
			did += channel_progress(t);
		next = n->next;
		if (idle(t))
			rwk_list_remove(n);
	}
	return did;
}

/* Direct ops, and a first read that is pulled. */
static bool goes_alone(const struct rwk_shm_transfers *t)
{
	struct rwk_op *op = rwk_container_of(t->reads.next, struct rwk_op, link);

	if (t->broken)
		return false;
	return !rwk_list_empty(&t->direct) ||
	       (t->begun && rwk_shm_read_of(op)->method == RWK_SHM_PULL && !t->cma_denied);
}

bool rwk_shm_transfer_can_go(struct rwk_port *port)
{
	struct rwk_shm_port_transfers *p = *rwk_shm_transfer_port_state(port);

	for (struct rwk_list *n = p ? p->head.active.next : NULL; n && n != &p->head.active; n = n->next) {
		if (goes_alone(rwk_container_of(n, struct rwk_shm_transfers, active)))
			return true;
	}
	return false;
}

void rwk_shm_transfers_broken(struct rwk_shm_transfers *t, const char *what)
{
	if (t->broken)
		return;
	t->broken = true;
	rwk_shm_protocol_error(t->ch, what);
}

static void refused(struct rwk_shm_transfers *t, const struct rwk_shm_verdict *v)
{
	struct rwk_op *op = rwk_shm_read_find(t, v->id);

	/* it may have been finished by other means while the answer was under way */
	if (!op || !rwk_shm_read_of(op)->asked)
		return;
	rwk_shm_read_of(op)->asked = false;
	if (v->status == -ENOMEM && !t->cma_denied && t->force != 1u << RWK_SHM_STAGE)
		return; /* nothing comes, so it is taken over and pulled */
	rwk_shm_read_finish(t, op, v->status < 0 && v->status >= -4095 ? v->status : -EIO);
}

void rwk_shm_transfer_control(struct rwk_shm_channel *ch, unsigned kind, const void *body, size_t len)
{
	static const size_t lengths[] = {
		[RWK_SHM_STAGE_ASK - RWK_SHM_TRANSFER_FIRST] = sizeof(struct rwk_shm_ask),
		[RWK_SHM_PUSH_ASK - RWK_SHM_TRANSFER_FIRST] = sizeof(struct rwk_shm_help_ask),
		[RWK_SHM_FETCH_ASK - RWK_SHM_TRANSFER_FIRST] = sizeof(struct rwk_shm_help_ask),
		[RWK_SHM_READ_STOP - RWK_SHM_TRANSFER_FIRST] = sizeof(struct rwk_shm_verdict),
		[RWK_SHM_READ_REFUSED - RWK_SHM_TRANSFER_FIRST] = sizeof(struct rwk_shm_verdict),
	};
	struct rwk_shm_transfers *t = rwk_shm_transfers_of(ch);
	struct rwk_shm_verdict verdict;
	struct rwk_shm_help_ask help_ask;
	struct rwk_shm_ask stage_ask;

	if (!t || t->broken || t->stopped)
		return; /* without memory for a state the peer waits, as it would for a process that is busy */
	if (kind - RWK_SHM_TRANSFER_FIRST >= sizeof(lengths) / sizeof(lengths[0]) ||
		lengths[kind - RWK_SHM_TRANSFER_FIRST] != len) {
		rwk_shm_transfers_broken(t, "a transfer record of unknown kind or wrong length");
		return;
	}
	switch (kind) {
	case RWK_SHM_STAGE_ASK:
		memcpy(&stage_ask, body, sizeof(stage_ask));
		rwk_shm_stage_asked(t, &stage_ask);
		break;
	case RWK_SHM_PUSH_ASK:
	case RWK_SHM_FETCH_ASK:
		memcpy(&help_ask, body, sizeof(help_ask));
		rwk_shm_help_asked(t, &help_ask, kind == RWK_SHM_FETCH_ASK);
		break;
	case RWK_SHM_READ_STOP:
		memcpy(&verdict, body, sizeof(verdict));
		rwk_shm_stage_stopped(t, verdict.id);
		break;
	case RWK_SHM_READ_REFUSED:
		memcpy(&verdict, body, sizeof(verdict));
		refused(t, &verdict);
		break;
	}
}

const struct rwk_shm_transfer_counts *rwk_shm_transfer_counters(struct rwk_port *port)
{
	static const struct rwk_shm_transfer_counts none;
	const struct rwk_shm_port_transfers *p = *rwk_shm_transfer_port_state(port);

	return p ? &p->counts : &none;
}

void rwk_shm_transfer_stop(struct rwk_shm_channel *ch, int status)
{
	void **state = rwk_shm_transfer_state(ch);
	struct rwk_shm_transfers *t = *state;
	struct rwk_list *n;

	if (!t)
		return;
	t->stopped = status;
	rwk_list_remove(&t->active);
	while ((n = rwk_list_pop(&t->reads))) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);

		rwk_shm_both_abandon(t, op);
		op->done(op, status);
	}
	while ((n = rwk_list_pop(&t->waiting))) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);

		op->done(op, status);
	}
	while ((n = rwk_list_pop(&t->direct))) {
		struct rwk_op *op = rwk_container_of(n, struct rwk_op, link);

		rwk_shm_both_abandon(t, op);
		op->done(op, status);
	}
	rwk_shm_stage_close(t);
	rwk_shm_help_close(t);
	rwk_shm_regions_close(t);
	rwk_shm_guard_down(t);
	rwk_shm_summary_add(t);
	free(t);
	*state = NULL;
}

void rwk_shm_transfer_port_stop(struct rwk_port *port)
{
	struct rwk_shm_port_transfers *p = *rwk_shm_transfer_port_state(port);

	if (p)
		free(p->summary);
	free(p);
	*rwk_shm_transfer_port_state(port) = NULL;
}

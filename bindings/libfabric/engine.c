/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine of a domain: how one is opened, known to what the domain has, and closed without loss. */
#include "bindings/libfabric/engine.h"

#include "base/cancel.h"
#include "base/log.h"
#include "base/param.h"
#include "bindings/libfabric/deferred.h"
#include "bindings/libfabric/mr.h"

#include <string.h>

#define INJECT_WAIT 1000000000 /* ns, in which a peer that is in MPI, too, has answered (fi_ropewalk.7) */
#define FAREWELL    60000      /* ms, in which a receiver that computes for long should have come by */
#define QUIET       2000       /* ms, in which what a closed context has begun should have let go of its memory */
#define LOOK        5          /* ms, from one look at what is owed to the next */

int rwk_fi_engine_open(struct rwk_fi_domain *domain, const struct rwk_address *source, uint64_t caps, size_t tx_size,
	struct rwk_engine_attr *attr, struct rwk_engine **engine)
{
	static const unsigned char any[16] = {[10] = 0xff, [11] = 0xff};

	attr->port = rwk_address_port(source);
	/* MPI's Isends must not wait for one another: each has a request, which is limit enough. */
	attr->tx_limit = SIZE_MAX;
	attr->inject_limit = attr->rma_limit = tx_size;
	attr->inject_wait = INJECT_WAIT;
	attr->regions = caps & (FI_REMOTE_READ | FI_REMOTE_WRITE) ? domain->regions : NULL;
	if (source->version_srq && memcmp(source->ip, any, sizeof(any)))
		memcpy(attr->ip, source->ip, sizeof(attr->ip));
	return rwk_engine_open(attr, engine);
}

int rwk_fi_engine_attach(struct rwk_fi_domain *domain, struct rwk_engine *engine)
{
	int err = rwk_fi_mr_attach(domain, engine);

	return err ? err : rwk_fi_works_attach(&domain->works, engine);
}

void rwk_fi_engine_detach(struct rwk_fi_domain *domain, struct rwk_engine *engine)
{
	rwk_fi_mr_detach(domain, engine);
	rwk_fi_works_detach(&domain->works, engine);
}

static void detach_each(const struct rwk_fi_wait *engines, unsigned count, struct rwk_fi_wait *w)
{
	for (unsigned i = 0; i < count; i++)
		rwk_fi_wait_detach(w, engines->engines[i]);
}

static int attach_each(const struct rwk_fi_wait *engines, struct rwk_fi_wait *w)
{
	for (unsigned i = 0; i < engines->count; i++) {
		int err = rwk_fi_wait_attach(w, engines->engines[i]);

		if (!err)
			continue;
		detach_each(engines, i, w);
		return err;
	}
	return 0;
}

int rwk_fi_engines_attach(struct rwk_fi_domain *domain, struct rwk_fi_wait *w)
{
	const struct rwk_fi_wait *own = &domain->groups.first.engines;
	int err = attach_each(own, w);

	if (err)
		return err;
	err = attach_each(&domain->hosted, w);
	if (err)
		detach_each(own, own->count, w);
	return err;
}

void rwk_fi_engines_detach(struct rwk_fi_domain *domain, struct rwk_fi_wait *w)
{
	const struct rwk_fi_wait *own = &domain->groups.first.engines;

	detach_each(own, own->count, w);
	detach_each(&domain->hosted, domain->hosted.count, w);
}

struct debt {
	const struct rwk_engine *engine;
	size_t owed;
};

static bool owes_less(const void *arg)
{
	const struct debt *d = arg;

	return rwk_engine_owes(d->engine) < d->owed;
}

/* The receiver may be another endpoint of this domain, and nobody else be there to drive that. */
static void drive_others(struct rwk_fi_domain *domain, const struct rwk_fi_guard *lock)
{
	rwk_fi_leave(lock);
	rwk_fi_groups_drive(&domain->groups);
	rwk_fi_enter(lock);
}

/* Until ready, or for LOOK. */
static void wait_or_look(struct rwk_fi_domain *domain, struct rwk_fi_wait *w, const struct rwk_fi_guard *lock,
	bool (*ready)(const void *arg), const void *arg)
{
	rwk_fi_wait_for(w, lock, LOOK, ready, arg);
	drive_others(domain, lock);
}

/*
 * Nobody waits for what was injected, and the endpoint may be closed before its peer has answered at all: MPI_Finalize
 * of MPICH does so. It waits here, and moves on what there is, for as long as one message leaves within FAREWELL. That
 * one leaves is no arrival: if another thread has moved it on, that of automatic progress, say, nothing wakes who waits
 * for it. So he looks himself.
 */
static void pay_debts(struct rwk_fi_domain *domain, struct rwk_engine *engine, const struct rwk_fi_guard *lock)
{
	struct debt d = {engine, rwk_engine_owes(engine)};
	struct rwk_fi_deadline end = rwk_fi_deadline(FAREWELL);
	struct rwk_fi_wait w;

	if (!d.owed)
		return;
	rwk_fi_wait_open_last(&w, engine, NULL);
	while (d.owed && !rwk_fi_deadline_past(&end)) {
		wait_or_look(domain, &w, lock, owes_less, &d);
		if (owes_less(&d))
			end = rwk_fi_deadline(FAREWELL);
		d.owed = rwk_engine_owes(engine);
	}
	if (d.owed)
		rwk_warn("fi_close: %zu messages are lost, sent by inject, or to answer others; for %d s their "
			 "receivers, who live, have taken none",
			d.owed, FAREWELL / 1000);
	rwk_fi_wait_close(&w);
}

void rwk_fi_engine_finish(struct rwk_fi_domain *domain, struct rwk_engine *engine, const struct rwk_fi_guard *lock)
{
	int before = rwk_cancel_hold_off();

	pay_debts(domain, engine, lock);
	if (rwk_params.stats)
		rwk_fi_engine_print(engine);
	rwk_cancel_as_before(before);
}

struct side {
	const struct rwk_engine *engine;
	unsigned room;
	bool receives;
};

static bool is_quiet(const void *arg)
{
	const struct side *s = arg;

	return !rwk_engine_room_runs(s->engine, s->room, s->receives);
}

void rwk_fi_engine_quiet(struct rwk_fi_domain *domain, struct rwk_engine *engine, const struct rwk_fi_guard *lock,
	unsigned room, bool receives)
{
	const struct side side = {engine, room, receives};
	struct rwk_fi_deadline end = rwk_fi_deadline(QUIET);
	struct rwk_fi_wait wait;
	int before;

	rwk_engine_cancel_room(engine, room, receives);
	if (is_quiet(&side))
		return;
	before = rwk_cancel_hold_off();
	rwk_fi_wait_open_last(&wait, engine, NULL);
	while (!is_quiet(&side) && !rwk_fi_deadline_past(&end)) {
		wait_or_look(domain, &wait, lock, is_quiet, &side);
		rwk_engine_cancel_room(engine, room, receives); /* what ran may be cancelled now */
	}
	if (!is_quiet(&side))
		rwk_engine_room_give_up(engine, room, receives);
	rwk_fi_wait_close(&wait);
	rwk_cancel_as_before(before);
}

void rwk_fi_engine_close(struct rwk_fi_domain *domain, struct rwk_engine *engine)
{
	while (rwk_engine_linger(engine))
		rwk_fi_groups_drive(&domain->groups);
	rwk_engine_close(engine);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine, which endpoints are made of: one each, or one for all contexts of a scalable one. */
#ifndef RWK_FI_ENGINE_H
#define RWK_FI_ENGINE_H

#include "bindings/libfabric/domain.h"
#include "bindings/libfabric/lock.h"
#include "engine/engine.h"

/** Opens an engine at that IP and port, with what of `attr` the caller has filled in. 0 or negative errno. */
int rwk_fi_engine_open(struct rwk_fi_domain *domain, const struct rwk_address *source, uint64_t caps, size_t tx_size,
	struct rwk_engine_attr *attr, struct rwk_engine **engine);
/** The domain's counters and registrations know the engine, or not any more. Under the lock. 0 or negative errno. */
int rwk_fi_engine_attach(struct rwk_fi_domain *domain, struct rwk_engine *engine);
void rwk_fi_engine_detach(struct rwk_fi_domain *domain, struct rwk_engine *engine);
/**
 * The engines of all endpoints of a domain that has been made one group (rwk_fi_unite) drive a counter, or not any
 * more. Under its lock. 0, or negative errno: none does.
 */
int rwk_fi_engines_attach(struct rwk_fi_domain *domain, struct rwk_fi_wait *w);
void rwk_fi_engines_detach(struct rwk_fi_domain *domain, struct rwk_fi_wait *w);
/**
 * Before it is closed: waits until what was injected has left, and drives the other endpoints of the domain meanwhile;
 * prints its counters if that is wanted. Under the lock, which it gives back now and then.
 */
void rwk_fi_engine_finish(struct rwk_fi_domain *domain, struct rwk_engine *engine, const struct rwk_fi_guard *lock);
/**
 * The context of a scalable endpoint that has that room for its receives, or sends, is closed: what it has begun is
 * cancelled, and of what cannot be, waits until it uses no memory of the program's any more, two seconds at most; then
 * the peers are given up with whom it does. Drives the others of the domain meanwhile. Under the lock, as above.
 */
void rwk_fi_engine_quiet(struct rwk_fi_domain *domain, struct rwk_engine *engine, const struct rwk_fi_guard *lock,
	unsigned room, bool receives);
/**
 * Closes it when it has been left, and waits for its peers, to which the other endpoints of the domain answer
 * meanwhile. Without a lock.
 */
void rwk_fi_engine_close(struct rwk_fi_domain *domain, struct rwk_engine *engine);

/** Writes its counters to stderr: engine_stats.c. */
void rwk_fi_engine_print(const struct rwk_engine *engine);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scalable endpoints of FI_EP_RDM: one address, and up to RWK_ROOMS contexts that send and as many that receive.
 *
 *   endpoint  (scalable.c) has the engine, the name and the address vector; it opens with the first of itself and its
 *             contexts that is enabled
 *   context   (scalable_context.c) a struct rwk_fi_ep with its own queues and counters, on that engine. One that
 *             receives has a room of it (engine.h): fi_rx_addr names it, and no other sees its messages. All that send
 *             are one to their peers: a receive directed at the endpoint takes what any of them sends
 *
 * Each operation carries the number of its context (RWK_F_ROOM), by which its completion finds the context again.
 *
 * Memory is the endpoint's: an address of any of its contexts reaches it. What peers do there the receive contexts'
 * counters count, each of them; data that comes along (fi_writedata) is told of by the first context, number 0.
 *
 * What waits for a receive context that is not open is kept. A context that is closed drops its operations without
 * completions; of those that have begun, the memory is in use until they have ended, or the endpoint is closed. Its
 * index can be opened again once they have: nobody takes what an old one has begun for the new one's (-FI_EBUSY).
 */
#ifndef RWK_FI_SCALABLE_H
#define RWK_FI_SCALABLE_H

#include "bindings/libfabric/ep.h"

struct rwk_fi_sep {
	struct fid_ep fid;
	struct rwk_engine *engine; /* NULL: nothing is enabled yet */
	struct rwk_fi_guard lock;
	struct rwk_fi_member member; /* its contexts are bound to it */
	struct rwk_fi_domain *domain;
	struct rwk_fi_av *av;
	bool enabled; /* itself */
	unsigned counts[RWK_FI_SIDES];
	struct rwk_fi_ep *contexts[RWK_FI_SIDES][RWK_ROOMS]; /* under the lock */
	/* What contexts have that ask for nothing else. */
	uint64_t caps;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct rwk_address source; /* to bind to: IP and port, as far as asked for */
};

int rwk_fi_sep_open(struct rwk_fi_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

/** Makes its engine, if there is none: 0; -FI_ENOAV, or what rwk_engine_open says. Under the lock. */
int rwk_fi_sep_start(struct rwk_fi_sep *sep);

/**
 * Accesses of peers to its memory are to be told of from now on if a context counts them, and only then: each costs who
 * makes it a message. Under the lock.
 */
void rwk_fi_sep_want_reached(struct rwk_fi_sep *sep);

/* fi_tx_context, fi_rx_context. */
int rwk_fi_sep_tx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx, void *context);
int rwk_fi_sep_rx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx, void *context);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching by somebody else. An endpoint may take its receives from another provider's shared receive context
 * (fi_peer): then its own tables stay empty, and each message is offered to that owner. Either the owner has a receive
 * for it, or it waits here until the owner starts or drops it.
 *
 *   offer   a message has come --> a receive, which completes like one of the endpoint's own; or none: it is held
 *   held    what is kept of it: the envelope and, of a short one, the payload; against credit, as any that waits
 *
 * What the endpoint does by itself costs nothing more: who finds no receive in its own table looks here before it keeps
 * the message. A message to oneself is offered by the next progress and not by its send, so that offers come from
 * within rwk_engine_progress alone: the owner can know when.
 *
 * The calls of this header are under the endpoint's lock, as those of engine.h.
 */
#ifndef RWK_ENGINE_FOREIGN_H
#define RWK_ENGINE_FOREIGN_H

#include "engine/engine.h"

/** A message that waits for its owner. */
struct rwk_unexpected;

/** What the owner is told of a message. */
struct rwk_offer {
	enum rwk_space space;
	struct rwk_peer *from;
	size_t length;
	uint64_t tag, data;
	bool has_data;
};

/** The receive that a message goes into. */
struct rwk_given {
	void *handle; /* the owner's; the completion's context */
	const struct iovec *iov; /* copied */
	size_t count;            /* at most RWK_ENGINE_IOV_MAX */
	uint32_t flags;          /* from RWK_F_USER on: handed back to `complete`; at least one, so that it is called */
};

/** What the owner must be able to do; `owner` is the engine's. They must call nothing of the engine. */
struct rwk_foreign {
	/**
	 * 0: *g is filled. -ENOENT: nobody waits for it, g->handle is the owner's record of it; `hold` follows, or
	 * `forget`. Others: the message is refused. If it was a peer's, the peer is given up as for want of memory;
	 * one to oneself is offered again by the next progress if its send is complete, which else ends with -ENOMEM.
	 */
	int (*offer)(void *owner, const struct rwk_offer *m, struct rwk_given *g);
	/**
	 * 0: the message of that handle waits as `u`, until started or dropped, or the endpoint is closed. Others: it
	 * is refused, as by `offer`, and the handle is the owner's again.
	 */
	int (*hold)(void *owner, void *handle, struct rwk_unexpected *u);
	/** The message of that handle could not be kept. */
	void (*forget)(void *owner, void *handle);
};

/** From now on, before the first message, receives come from the owner; rwk_engine_recv is not to be called. */
void rwk_engine_set_foreign(struct rwk_engine *e, const struct rwk_foreign *foreign);

/**
 * Gives a held message to that receive: 0, a completion follows or has come; -EINVAL: pieces; -ENOMEM: it
 * is held on.
 */
int rwk_engine_start(struct rwk_unexpected *u, const struct rwk_given *g);

/** Drops a held message; there is no completion. */
void rwk_engine_drop(struct rwk_unexpected *u);

/** Does it hold that message? NULL: any? */
bool rwk_engine_holds(const struct rwk_engine *e, const struct rwk_unexpected *u);

/** What it was offered as, and the owner of the engine that holds it. */
void rwk_held_offer(const struct rwk_unexpected *u, struct rwk_offer *m);
void *rwk_held_owner(const struct rwk_unexpected *u);

#endif

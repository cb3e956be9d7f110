/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reverse of foreign.h: messages that another provider brings, the guest, take the receives of an inbox of ours, in
 * one order with those that come by our engines.
 *
 *   match   the guest has a message --> the receive that it goes into: the guest fills the buffer, tells of it, and
 *           ends it; or there is none, and then
 *   keep    it waits here by its envelope, its payload stays with the guest. Once a receive takes it, or somebody drops
 *           it, it is due: the guest is to be told
 *
 * What is due waits in a list until the caller asks for it: who tells a guest has to let go of the lock first, because
 * the guest calls back from within.
 *
 * The calls of this header are under the lock of the inbox's engines.
 */
#ifndef RWK_ENGINE_GUEST_H
#define RWK_ENGINE_GUEST_H

#include "engine/foreign.h"

struct rwk_rx;

/** A message of a guest's of which it is to be told. */
struct rwk_due {
	void *handle;      /* the guest's */
	struct rwk_rx *rx; /* the receive that it goes into; NULL: it is dropped */
};

/** 0 and *rx set, out of the inbox; -ENOENT: none fits; -ENOMEM. `from` of the message is nobody. */
int rwk_guest_match(struct rwk_inbox *box, const struct rwk_offer *m, struct rwk_rx **rx);

/** What the guest needs to know of such a receive: `handle` is its context, `iov` is good until it is ended. */
void rwk_guest_receive(const struct rwk_rx *rx, struct rwk_given *g);

/**
 * The guest has told of it (status 0), or cannot (negative errno: it ends with that, by the inbox's `complete`). The
 * buffer that it was part of may end with it.
 */
void rwk_guest_end(struct rwk_inbox *box, struct rwk_rx *rx, int status);

/**
 * A message that has found no receive waits, until it is due or withdrawn: 0 and *u set; -ENOMEM. If a receive that
 * fits has been posted since, it is due at once.
 */
int rwk_guest_keep(struct rwk_inbox *box, const struct rwk_offer *m, void *handle, struct rwk_unexpected **u);

/** The guest gives up one that waits, or is due: the receive that it was due for ends with -ECANCELED. */
void rwk_guest_withdraw(struct rwk_unexpected *u);

/** Is something due? */
bool rwk_guest_is_due(const struct rwk_inbox *box);

/** The first that is due; what `keep` said of it is gone. False: none is. */
bool rwk_guest_next(struct rwk_inbox *box, struct rwk_due *due);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that are used after they were destroyed. In debug builds (--enable-debug) the last ones that were destroyed
 * are kept, dead, so that whoever uses one meets its first word and not what another object has put there.
 */
#include "channel_adapter/object.h"

#include "base/log.h"

#include <stdatomic.h>
#include <stdlib.h>

#ifndef NDEBUG
#define KEPT 256u /* a power of 2 */

static _Atomic(void *) kept[KEPT];

/* Adapters of several threads bury here. Without a lock, which a forked child could find held for ever. */
static void *exchange(void *object)
{
	static atomic_uint next;

	return atomic_exchange(&kept[atomic_fetch_add(&next, 1) % KEPT], object);
}

/* Where the library is unloaded, as a provider is. */
__attribute__((destructor)) static void let_go(void)
{
	for (unsigned i = 0; i < KEPT; i++)
		free(kept[i]);
}
#endif

void rwk_ca_free(void *object)
{
#ifndef NDEBUG
	*(uint32_t *)object = RWK_CA_DEAD;
	object = exchange(object);
#endif
	free(object);
}

void rwk_ca_misused(uint32_t found, enum rwk_ca_kind kind, const char *call)
{
	static const char *const names[] = {"adapter", "pd", "mr", "mw", "cq", "SRC domain", "srq", "qp",
		"event channel", "listener", "connection"};

	rwk_warn("%s: %s, where it needs a living %s", call,
		found == RWK_CA_DEAD ? "the object was destroyed before" : "no such object",
		names[kind - RWK_CA_ADAPTER]);
	abort();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that are used after they were destroyed. In debug builds (--enable-debug) the last ones that were destroyed
 * are kept, dead, so that whoever uses one meets its first word and not what another object has put there.
 */
#include "channel_adapter/object.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>

#ifndef NDEBUG
#define KEPT 256u

static void *kept[KEPT];

/* Adapters of several threads bury here. */
static void *exchange(void *object)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static unsigned next;
	void *oldest;

	pthread_mutex_lock(&lock);
	oldest = kept[next];
	kept[next] = object;
	next = (next + 1) % KEPT;
	pthread_mutex_unlock(&lock);
	return oldest;
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

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that sleep on a queue or a counter. Whoever links this has no clock of the provider's that goes on by itself
 * (the look for peers' names, once a second), which would wake them instead of what is to; it exports its symbols.
 */
#ifndef RWK_FI_SLEEPER_H
#define RWK_FI_SLEEPER_H

#include "fi_test.h"

#include <stdatomic.h>
#include <sys/types.h>

#define LONG_SLEEP 20000 /* ms */

struct sleeper {
	struct fid_cq *cq;
	_Atomic pid_t tid; /* of its thread, once that runs */
	struct fid_cntr *cntr;
	uint64_t threshold;
	ssize_t result;
};

/** Threads, with a sleeper: one fi_cq_sread or fi_cntr_wait for LONG_SLEEP at most. */
void *sleep_on_queue(void *arg);
void *sleep_on_counter(void *arg);

/** For so long asleep, at three looks, that it is not a lock for which it waits. */
void wait_until_asleep(struct sleeper *s);

#endif

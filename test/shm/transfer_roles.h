/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests are pairs of roles, each in a process of its own. A role returns 0, or the line of the check that failed. */
#ifndef TEST_SHM_TRANSFER_ROLES_H
#define TEST_SHM_TRANSFER_ROLES_H

#include "transfer_pair.h"

#include <pthread.h>
#include <semaphore.h>

#define CHECK(x)                         \
	do {                             \
		if (!(x))                \
			return __LINE__; \
	} while (0)

typedef int (*tp_role)(struct rwk_shm_channel *ch, const void *arg);

/** Runs both and expects both to end well; `mortal`: the exposer may be killed by a signal. */
void tp_run(tp_role exposer, tp_role reader, const void *arg);
void tp_run_mortal(tp_role exposer, tp_role reader, const void *arg);

/** A thread that sleeps until it is told to end. */
struct tp_sleeper {
	pthread_t thread;
	sem_t end;
	_Atomic pid_t number;
};
/** Comes back when it sleeps. */
bool tp_sleeper_start(struct tp_sleeper *s);
/** Comes back when its number means nothing any more. */
bool tp_sleeper_end(struct tp_sleeper *s);

/** Do exposers have such a thread from the start? */
extern bool tp_exposers_sleep;

void tp_fill(unsigned char *p, size_t n, unsigned seed);
/** Are these the bytes that tp_fill puts at `from` and on? */
bool tp_same(const unsigned char *p, size_t n, uint64_t from, unsigned seed);

/** From now on cross-memory copies of this process fail with `err`. */
int tp_deny_copies(int err);

enum { LARGE = 4 << 20 };

/** Reads buffer 0 of the exposer, of `size` bytes, whole and looks at it. */
int tp_read_large(struct rwk_shm_channel *ch, size_t size);
/** A role: exposes LARGE bytes, and serves. */
int tp_serve_large(struct rwk_shm_channel *ch, const void *arg);

/**
 * A role's body: exposes `count` buffers of `size` bytes in `pieces` pieces each, filled with seeds 0, 1, ..; serves
 * until word 2 is heard.
 */
int tp_expose_and_serve(struct rwk_shm_channel *ch, unsigned count, size_t size, unsigned pieces);

#endif

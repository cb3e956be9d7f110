/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions, and requests that name them, for tests of one-sided operations between engines (world.h).
 *
 *   area  a region of one engine's, with guards around
 */
#ifndef RWK_TEST_AREA_H
#define RWK_TEST_AREA_H

#include "engine/world.h"

#include "engine/rma.h"

#define MEGA      (1u << 20)
#define AREA_FILL 0x5a /* what its memory and the guards have in them at first */

struct area {
	struct world *w;
	unsigned who;
	size_t length;
	unsigned char *bytes, *guarded;
	struct rwk_region *region;
	uint64_t key, base;
	unsigned reached;
	size_t reached_bytes;
};

/** `offsets`: named by offsets, else by addresses. */
void area_open(struct area *a, struct world *w, unsigned who, size_t length, unsigned access, bool offsets);
/** The same, with that key; 0: any. */
void area_open_key(
	struct area *a, struct world *w, unsigned who, size_t length, unsigned access, bool offsets, uint64_t key);
/** Takes the region out, if that has not been done; the memory stays. */
void area_remove(struct area *a);
/** Two engines, and of the second one an area that the first has read into `got`, and asked for, which wants to be told
 * of nothing. */
void area_open_met(struct area *a, struct world *w, void *transport, unsigned char *got, size_t length);
/** A peer with whom there is a choice, as after a direct request: both ways have been measured, and to go directly is far
 * better. */
void area_prefer_direct(struct rwk_peer *p);
/** Looks whether the guards are as they were; frees all. */
void area_close(struct area *a);

/** All bytes are AREA_FILL. */
void area_check_filled(const unsigned char *p, size_t len);

/**
 * A test's state is a transport, or this: the simulated service, which carries out all requests but the shortest by
 * itself.
 */
extern const char area_direct[];
void area_open_world(struct world *w, void *state, unsigned count);

/** A test's entries in a list: as WORLD_EACH, and with area_direct. */
#define AREA_EACH(test)                                                                                                \
	WORLD_EACH(test),                                                                                              \
	{                                                                                                              \
#test ", direct", test, NULL, NULL, (void *)area_direct                                                \
	}

/* These go on while the engine says -EAGAIN, and return what else it says. */
enum area_kind { WRITE, READ };
ssize_t area_request(struct world *w, unsigned from, enum area_kind kind, const struct rwk_rma_args *a);
ssize_t area_atomic(struct world *w, unsigned from, const struct rwk_atomic_args *a);
/** One buffer, one range. */
ssize_t area_simple(struct world *w, unsigned from, const struct area *to, enum area_kind kind, void *buf, size_t at,
	size_t len, uint32_t flags, struct task *t);

/** It has ended once, and well, with these flags. */
void area_check_done(const struct task *t, uint32_t flags);

#endif

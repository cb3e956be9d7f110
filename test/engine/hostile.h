/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer with the job's key that says what it likes: raw messages to a real engine. What must hold (under sanitizers as
 * well): no byte outside what was granted is touched, a request of ours ends once and never as if all were well, and
 * another peer's requests go on.
 *
 *   engine 0   the victim: its regions are asked for, its requests are answered
 *   engine 1   another peer of the victim's
 *   raw        a port of the same service whose messages the test makes up
 */
#ifndef RWK_TEST_HOSTILE_H
#define RWK_TEST_HOSTILE_H

#include "engine/area.h"

#include "base/log.h"

#define LENGTH 4096u
#define SHORT  100u
#define HEARD  64u

struct heard {
	struct rwk_envelope env;
	size_t len;
};

struct raw {
	struct world *w;
	const struct rwk_transport *t;
	struct rwk_port *port;
	struct rwk_address address;
	struct rwk_channel *ch;
	int failed;
	struct heard heard[HEARD];
	unsigned count, no_room; /* of these, refusals because it takes too few answers */
	struct heard coming;
	struct rwk_place nowhere;
};

struct scene {
	struct world w;
	struct raw raw;
	struct area area, read_only, write_only, none, other;
};

/**
 * Goes on until nobody does anything any more: on shared memory, for so many polls. Not for ever: a port whose peer has
 * given it up while much was under way need not hear of it on the simulated network, where no stream ends, and goes on
 * asking.
 */
void settle(struct raw *r);
/** Sends a message of its own making. One who is given up may have learned of it already. */
void say(struct raw *r, const struct rwk_envelope *env, const void *payload, size_t len);

void scene_open(struct scene *s, void *state);
/** Looks whether what it may not write is as it was, and another peer's requests are carried out behind what it did. */
void scene_close(struct scene *s);

/** A sink for the log: what hostile peers are told off with is of no interest. */
void no_log(enum rwk_log_level level, const char *file, int line, const char *text);

#endif

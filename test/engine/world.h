/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Some engines in one process, over the simulated service, over the packet service on the simulated network or over
 * shared memory, for tests of the engine. The same test runs over all.
 *
 *   world  the engines and what carries them
 *   task   one operation under way and what became of it; its address is the operation's context
 *
 * On the simulated network time passes when no engine has anything to do; a wait for what will not come ends when the
 * network is at rest. On shared memory a wait ends after ten seconds, and all is taken to be at rest after some empty
 * polls, which have to go on for a while after a first contact: the service looks for such once a millisecond.
 */
#ifndef RWK_TEST_WORLD_H
#define RWK_TEST_WORLD_H

#include "rwk_test.h"

#include "engine/engine.h"
#include "engine/region.h"
#include "links/sim/service.h"
#include "packet/sim_packet.h"

#include "base/param.h"

#define WORLD_MAX 8

struct world_attr {
	const struct rwk_transport
		*transport; /* &rwk_sim_transport, &sim_packet_transport, &sim_shared_transport or &rwk_shm_transport */
	unsigned count;
	bool strangers;                       /* they do not know each other's addresses: no peer[][] */
	size_t tx_limit, rx_limit, multi_min; /* 0: 10000, none, 64 */
	size_t eager_max, eager_credit;       /* 0: 64 KB, 1 MB */
	size_t inject_limit;                  /* 0: tx_limit */
	uint64_t inject_wait;                 /* nanoseconds */
	unsigned sharing;                     /* so many engines, the first, share the world's inbox */
	unsigned rooms;                       /* of each engine (rwk_engine_attr) */
	unsigned queue;                       /* entries of the queues of completions, a power of two; 0: none */
	struct rwk_sim_attr net;              /* mtu 0: the defaults */
	struct rwk_sim_service service;       /* window 0: the defaults */
};

struct world;

struct world_owner {
	struct world *w;
	unsigned who;
	struct rwk_completions done; /* with attr.queue; emptied by world_poll and before each call of `complete` */
};

struct world {
	struct world_attr attr;
	const struct rwk_transport *transports[2];
	struct rwk_sim *net; /* NULL: not simulated */
	struct rwk_inbox *inbox; /* what it tells of is the first engine's */
	struct rwk_engine *e[WORLD_MAX];
	struct rwk_peer *peer[WORLD_MAX][WORLD_MAX]; /* [who][whom] */
	uint32_t node[WORLD_MAX];                    /* on the simulated network */
	bool dead[WORLD_MAX];
	bool computes[WORLD_MAX]; /* it makes no progress while this is set */
	bool met[WORLD_MAX][WORLD_MAX]; /* who has been asked to talk to whom */
	double contact, looked;         /* on shared memory: seconds left for a first contact, as of `looked` */
	unsigned new_peers[WORLD_MAX];
	unsigned merged[WORLD_MAX]; /* calls of rwk_engine_attr.merged, which changes peer[][] */
	struct rwk_regions *regions[WORLD_MAX];
	unsigned reached[WORLD_MAX];              /* calls of rwk_engine_attr.reached, */
	size_t reached_bytes[WORLD_MAX];          /* and what they told of */
	unsigned writes[WORLD_MAX];               /* peers' writes with data, */
	struct rwk_completion written[WORLD_MAX]; /* and the last of them */
	/* Instead of tasks, if set. */
	void (*on_complete)(struct world *w, unsigned who, const struct rwk_completion *c);
	struct world_owner owner[WORLD_MAX];
};

struct task {
	unsigned times; /* completions */
	struct rwk_completion c;
	unsigned who; /* which engine has told of it */
	uint64_t order; /* of the completion, in its world's life */
};

void world_open(struct world *w, const struct world_attr *attr);
/** Ends what has not died. */
void world_close(struct world *w);
/** The engine's process ends (simulated), or it is closed (shared memory); it makes no progress any more. */
void world_kill(struct world *w, unsigned who);
void world_engine_close(struct world *w, unsigned who);

/** The test has made engines talk that had not; see above. world_send and world_recv notice by themselves. */
void world_contact(struct world *w);

/** Tells what is in an engine's queue of completions, as its next progress would. */
void world_drain(struct world *w, unsigned who);

/**
 * From now on packets take longer on each way of the network, and on one of three are lost, come twice, come broken or
 * are overtaken, as its seed has it. Without a network, nothing.
 */
void world_worsen(struct world *w);

/** One engine's progress; how much was done. */
int world_progress(struct world *w, unsigned who);
/** Each engine's progress once; how much was done. */
int world_poll(struct world *w);
/** Goes on a little: polls, or lets time pass. False: nothing will happen any more. */
bool world_step(struct world *w);
/** Goes on until nothing happens any more. */
void world_settle(struct world *w);
/** Goes on until the task is done; fails the test if that never happens. */
void world_wait(struct world *w, const struct task *t);

/** For a loop around a call that says -EAGAIN: goes on a little; true, or it fails the test. */
struct world_retry {
	double end;
	unsigned quiet;
};
bool world_retry(struct world *w, unsigned from, unsigned to, struct world_retry *retry);

/* These go on while the engine says -EAGAIN, and return what else it says. */
ssize_t world_send(struct world *w, unsigned from, unsigned to, enum rwk_space space, const void *buf, size_t len,
	uint64_t tag, uint32_t flags, void *context);
ssize_t world_sendv(struct world *w, unsigned from, unsigned to, enum rwk_space space, const struct iovec *iov,
	size_t count, uint64_t tag, uint32_t flags, void *context);
/** `from` WORLD_ANY: anyone. */
ssize_t world_recv(struct world *w, unsigned who, unsigned from, enum rwk_space space, void *buf, size_t len,
	uint64_t tag, uint64_t ignore, uint32_t flags, void *context);
#define WORLD_ANY 1000u

/** What messages sent by world_send carry as data with RWK_F_DATA. */
#define WORLD_DATA(tag) (~(uint64_t)(tag)*3)

/** Bytes that depend on a seed, and the check that they came. */
void world_fill(void *buf, size_t len, uint64_t seed);
void world_check(const void *buf, size_t len, uint64_t seed);

/** Two engines, all else as usual. */
void world_open_two(struct world *w, const void *transport);
/** The task is a receive of that message, whole, done once. */
void world_check_receive(struct world *w, const struct task *t, unsigned who, unsigned from, enum rwk_space space,
	size_t len, uint64_t tag, bool data);
/** A length for the i-th message, so that every protocol gets its turn; at most WORLD_MIXED_MAX. */
size_t world_mixed(unsigned i);
#define WORLD_MIXED_MAX 200000

/** A test's entries in a list: over the simulated service, packets, shared connections and shared memory. Its state is
 * the transport. */
#define WORLD_EACH(test)                                                                                               \
	{#test ", simulated", test, NULL, NULL, (void *)&rwk_sim_transport},                                           \
		{#test ", packets", test, NULL, NULL, (void *)&sim_packet_transport},                                  \
		{#test ", shared", test, NULL, NULL, (void *)&sim_shared_transport},                                   \
	{                                                                                                              \
#test ", shared memory", test, NULL, NULL, (void *)&rwk_shm_transport                                  \
	}

/** A number of steps from the environment variable RWK_TEST_STEPS, or `initial`; seed from RWK_TEST_SEED. */
unsigned long world_steps(unsigned long initial);
uint64_t world_seed(uint64_t initial);

#endif

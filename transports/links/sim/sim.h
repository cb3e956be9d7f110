/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network in one process, with a clock of its own. The same seed and the same calls give the same packets at the same
 * times, so that a failure seen once is seen again.
 *
 *   node   a link (transports/link.h): what one endpoint sends and receives by
 *   path   one direction between two nodes, and what happens to packets on it, by chance
 *   rule   what happens to one packet on a path, by its number
 *   event  something at a time: a packet arrives, an alarm rings, word comes that a node is gone
 *
 * Time stands still but for rwk_sim_step and rwk_sim_run_until. A packet that has arrived waits in its node's inbox for
 * the node's progress. A node that dies or is closed loses its inbox; word of that (rwk_sim_hooks.gone) reaches every
 * other node `word` after, and whoever sends to it later, too: what the kernel would tell. Only tests link this.
 */
#ifndef RWK_SIM_H
#define RWK_SIM_H

#include "link.h"

#include <stdbool.h>

struct rwk_sim;

/** One direction between two nodes. Chances are parts in a million, drawn for each packet. */
struct rwk_sim_path {
	rwk_time delay;      /* each packet takes this long */
	rwk_time jitter;     /* and up to this much longer, without overtaking */
	rwk_time reorder_by; /* a reordered packet takes up to this much longer still, and others overtake it */
	uint32_t drop, duplicate, corrupt, reorder;
	size_t most;         /* bytes: what is longer is lost without a word; 0: no limit */
};

enum rwk_sim_fate {
	RWK_SIM_PASS, /* whatever the path's chances say */
	RWK_SIM_DROP,
	RWK_SIM_DUPLICATE,
	RWK_SIM_CORRUPT,
	RWK_SIM_DELAY,         /* by the path's reorder_by, in full */
	RWK_SIM_KILL_SENDER,   /* it dies with the packet just sent */
	RWK_SIM_KILL_RECEIVER, /* it dies before the packet arrives */
};

struct rwk_sim_attr {
	uint64_t seed;
	size_t mtu;    /* bytes */
	uint32_t room; /* packets of one node that may be under way; beyond it send says -EAGAIN; 0: no limit */
	size_t inbox;  /* bytes of packets that wait for a node's progress; what comes beyond is lost; 0: no limit */
	size_t cost;   /* bytes that a packet takes of it beside its own, as a kernel's do */
	rwk_time word; /* how long after a death the other nodes hear of it */
	struct rwk_sim_path path; /* every path to begin with */
};

/** Packets so far, on all paths. sent counts what send took, delivered what progress handed to a user. */
struct rwk_sim_counts {
	uint64_t sent, delivered, dropped, duplicated, corrupted, reordered, refused, overrun, to_the_dead;
};

/** What a node's user hears beside packets. Each may be NULL. */
struct rwk_sim_hooks {
	void (*gone)(void *user, const struct rwk_link_address *who); /* from progress: that node is dead */
	void (*wake)(void *user); /* from rwk_sim_step: there is something for progress, or the alarm rang */
	void (*end)(void *user);  /* from rwk_sim_close: the node still exists; close it */
};

/** An attr to start from: mtu 512, no limit, word 50 us, delay 1 us, jitter 200 ns, nothing lost. */
extern const struct rwk_sim_attr rwk_sim_attr_default;

/** 0 and *s set, or -ENOMEM. */
int rwk_sim_open(const struct rwk_sim_attr *attr, struct rwk_sim **s);
void rwk_sim_close(struct rwk_sim *s);

/**
 * A new node; `packet` and `user` of the link are the caller's to set. 0 and *l set, or -ENOMEM. Ended by the link's
 * close.
 */
int rwk_sim_node(struct rwk_sim *s, struct rwk_link **l);
void rwk_sim_set_hooks(struct rwk_link *l, const struct rwk_sim_hooks *hooks);

/** Numbers count from 1 in the order of rwk_sim_node. */
uint32_t rwk_sim_number(const struct rwk_link *l);
struct rwk_link_address rwk_sim_address(uint32_t number);
uint32_t rwk_sim_address_number(const struct rwk_link_address *a);

/** Has the node been made, and has it not ended? */
bool rwk_sim_alive(const struct rwk_sim *s, uint32_t number);

/** The node's process ends now: what it has sent is still under way, what it has not read is lost. */
void rwk_sim_kill(struct rwk_sim *s, uint32_t number);

/** Sets how packets fare from one node to another from now on; both exist. */
void rwk_sim_set_path(struct rwk_sim *s, uint32_t from, uint32_t to, const struct rwk_sim_path *path);
/** The same for every path, those of nodes still to come as well. */
void rwk_sim_set_paths(struct rwk_sim *s, const struct rwk_sim_path *path);

/** The nth packet from now on (1: the next) on that path has this fate. Of two rules for one packet the first holds. */
void rwk_sim_rule(struct rwk_sim *s, uint32_t from, uint32_t to, uint64_t nth, enum rwk_sim_fate fate);
/**
 * From now on what is sent is held: it neither arrives nor is lost before rwk_sim_release says so. For who wants to see
 * every order. Rules and chances decide as ever when it is sent, but for its time.
 */
void rwk_sim_hold(struct rwk_sim *s);
/** Packets that are held. */
unsigned rwk_sim_held(const struct rwk_sim *s);
/** The nth of them in the order of sending, from 0 on, is lost (RWK_SIM_DROP) or arrives now (any other fate). */
void rwk_sim_release(struct rwk_sim *s, unsigned nth, enum rwk_sim_fate fate);
/** Packets sent on that path so far. */
uint64_t rwk_sim_sent(const struct rwk_sim *s, uint32_t from, uint32_t to);

rwk_time rwk_sim_now(const struct rwk_sim *s);
/** Moves the clock to the next event and lets it happen; false if there is none. */
bool rwk_sim_step(struct rwk_sim *s);
/** All events up to that time; then it is that time. */
void rwk_sim_run_until(struct rwk_sim *s, rwk_time t);
/** Rings the node's `wake` at that time (now, if it is past). */
void rwk_sim_alarm(struct rwk_link *l, rwk_time at);
/** Is there something for the node's progress? */
bool rwk_sim_waiting(const struct rwk_link *l);

/** A number from 0 to below `bound` out of the seed. */
uint64_t rwk_sim_random(struct rwk_sim *s, uint64_t bound);

/** A hash over every packet sent so far: when, from, to, length, fate. */
uint64_t rwk_sim_trace(const struct rwk_sim *s);
const struct rwk_sim_attr *rwk_sim_attr(const struct rwk_sim *s);
const struct rwk_sim_counts *rwk_sim_counts(const struct rwk_sim *s);

#endif

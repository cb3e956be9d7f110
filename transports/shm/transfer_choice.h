/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which method for a transfer of this size to this peer: by what has been measured, never by a threshold of one
 * machine.
 *
 * What is measured is a run of transfers, one after the other without a pause: from the first one's post to the last
 * one's end. So a window of many shows the pipeline's pace, not the queueing. For each class (a power of two in size,
 * and whether the kernel's copies may be slow for where the bytes lie: base/copy.h) and method the cost is the least of
 * its last eight runs, in ns a KB: a process that loses its core and pages touched for the first time do not count
 * against the method in use, and a method that has become slow is found out within eight runs. The first transfer by
 * another method than the one before is a run of its own: it finds lines of memory in the caches of that side to which
 * the other method has brought them. Where parts of several are copied at a time, what has come of those that are not
 * whole counts, too.
 *
 * Rule: each allowed method is tried for four transfers in turn, and up to 64 KB for four more, as all that the first
 * ones touch is cold, and what has been found slow once is not tried again for long. From then on the cheapest is
 * taken, and 1/128 of the time it takes is put aside; when that would pay for another one for as many transfers as have
 * a megabyte, from 4 to 16, that is tried once more: several may come together, which is no more than a first run. So
 * exploring costs less than 1 % and never ends.
 */
#ifndef RWK_SHM_TRANSFER_CHOICE_H
#define RWK_SHM_TRANSFER_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rwk_shm_method {
	RWK_SHM_STAGE, /* first: what is taken before anything is known */
	RWK_SHM_PULL,
	RWK_SHM_BOTH,
	RWK_SHM_METHODS
};

#define RWK_SHM_CLASS_FIRST 12 /* 4 KB and less */
#define RWK_SHM_CLASSES     16 /* 128 MB and more */

#define RWK_SHM_RUNS_KEPT   8

/** What is transferred, as far as the choice goes by it. */
struct rwk_shm_load {
	size_t length;
	bool collides; /* as rwk_copy_collides */
};

struct rwk_shm_choice {
	struct rwk_shm_choice_class {
		struct rwk_shm_choice_method {
			float cost;                      /* ns a KB; 0: not known yet */
			float recent[RWK_SHM_RUNS_KEPT]; /* the same of the last runs */
			uint32_t runs;                   /* measured */
			uint32_t taken;                  /* times chosen */
		} method[RWK_SHM_METHODS];
		float aside; /* ns put aside for trying others */
		enum rwk_shm_method trial; /* the method being tried, */
		unsigned trial_left;       /* and for how many transfers more */
	} class[2 * RWK_SHM_CLASSES]; /* those that collide behind the others */
};

/** What is measured of one kind of transfers; zero at first. */
struct rwk_shm_pace {
	struct rwk_shm_choice choice;
	uint64_t last_done; /* ns: when one was last finished, */
	size_t ahead_then;  /* and `ahead` */
	size_t ahead;       /* bytes that have come already of those that are to be told of next */
	unsigned of_call;   /* more that the same call has brought, to be told of next: it is measured as a whole */
	bool inside;        /* the last one was not the last of its call */
	struct { /* the run that is being measured, or was: finished transfers of one method and class, without a pause */
		uint64_t start; /* ns; */
		size_t ahead;   /* bytes of it, or of what follows, that had come by then */
		struct rwk_shm_load load; /* its first */
		size_t bytes;   /* of all; 0: there is none */
		unsigned transfers;
		enum rwk_shm_method method;
		bool first; /* by another method than the one before */
	} run;
};

/**
 * A transfer that was posted at `started` is whole at `now`, ns; `more`: others are waiting already, so that the run
 * may go on.
 */
void rwk_shm_pace_done(struct rwk_shm_pace *p, enum rwk_shm_method m, struct rwk_shm_load load, uint64_t started,
	uint64_t now, bool more);

/** The method for it among those whose bit (1 << method) is set in `allowed` (not 0). */
enum rwk_shm_method rwk_shm_choice_pick(struct rwk_shm_choice *c, struct rwk_shm_load load, unsigned allowed);

/** Takes m (of two that are allowed) if that is known to be the cheapest and no trial goes on or is due; else false. */
bool rwk_shm_choice_take(struct rwk_shm_choice *c, enum rwk_shm_method m, struct rwk_shm_load load, unsigned allowed);

/** Transfers of about that, `bytes` in all, have taken `ns` by this method. */
void rwk_shm_choice_record(
	struct rwk_shm_choice *c, enum rwk_shm_method m, struct rwk_shm_load load, size_t bytes, uint64_t ns);

/** Do both fall into one class? */
bool rwk_shm_choice_alike(struct rwk_shm_load a, struct rwk_shm_load b);

/** ns that it is expected to take by this method; `otherwise` ns a KB if nothing is known. */
uint64_t rwk_shm_choice_expect(
	const struct rwk_shm_choice *c, enum rwk_shm_method m, struct rwk_shm_load load, float otherwise);

/** ns a KB by the cheapest method of which that is known; 0: of none. */
float rwk_shm_choice_least(const struct rwk_shm_choice *c, struct rwk_shm_load load);

/** The lesser of two costs, of which either may be 0: not known. */
float rwk_shm_cost_least(float a, float b);

/**
 * Writes "  NAME SPEED (TIMES)" into buf, of a cost in ns a KB; nothing if that is not known. Returns the characters that
 * there were to write.
 */
size_t rwk_shm_cost_print(char *buf, size_t len, const char *name, float cost, uint64_t times);

/** Adds what is known of other transfers: how often each method was chosen, and its least cost. Only to be printed. */
void rwk_shm_choice_add(struct rwk_shm_choice *all, const struct rwk_shm_choice *c);

/** Writes the table, a line per class that has been used, into buf (terminated); returns the characters written. */
size_t rwk_shm_choice_print(const struct rwk_shm_choice *c, char *buf, size_t len);

const char *rwk_shm_method_name(enum rwk_shm_method m);

#endif

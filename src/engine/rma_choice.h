/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who should carry out a long request: the service by itself, or messages? Messages copy twice, but two processors
 * share the work, and while the target polls they may be several times faster; a target that does something else does
 * not answer them for long. So both are measured as requests go by, and the faster one is taken; the other is tried
 * now and then, the more seldom the longer it stays the slower one.
 *
 * A trial is several requests in turn, beginning when none is under way and going on to the next pause: the first ones
 * find the data in the caches of that side to which the other way has brought it, and while one way's requests are
 * under way neither processor is free for the other's. One whose first requests show that it is far slower ends.
 *
 * A run is measured from its first request to the end of its last, in parts if it is long. All that go by messages are:
 * a target that does not poll any more is to be noticed. Of direct ones, which wait for nobody, one of eight is, and of
 * one that does not end every other part, as two looks at the clock are a twenty-fifth of a short request. One that is
 * over at once is measured up to the next, if that is behind it: what the program does between two of a window counts
 * where they go by messages, too.
 */
#ifndef RWK_ENGINE_RMA_CHOICE_H
#define RWK_ENGINE_RMA_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rwk_rma_way { RWK_BY_MESSAGES, RWK_DIRECTLY, RWK_RMA_WAYS };

/** Of requests of one kind and about one length; zero at first. */
struct rwk_rma_choice {
	struct {
		uint64_t cost;  /* ns for 64 KB, of late; 0: never tried */
		uint64_t last;  /* of the last run by itself */
		uint64_t since; /* ns: when the run, or its part, began; 0: it is not measured */
		uint64_t bytes; /* that it has moved */
		uint32_t under_way;
	} way[RWK_RMA_WAYS];
	uint32_t trial_in;    /* requests until the slower one is tried again */
	uint32_t trial_taken; /* requests of the trial that goes on; 0: none does */
	uint32_t pause;       /* after the last trial, as a multiple of its requests */
	uint32_t late;        /* requests since a trial was due */
	uint32_t runs;        /* direct ones that were no trial */
	uint64_t alone;       /* ns that a direct one took, which is measured when the next comes; 0: there is none */
	enum rwk_rma_way trial;
};

#define RWK_RMA_LENGTHS 3u /* below 64 KB, below 1 MB, and from there on */

/** By which way long requests to a peer go, where there are two. */
struct rwk_rma_choices {
	struct rwk_rma_choice of[2][2][RWK_RMA_LENGTHS]; /* reads, writes; by rwk_copy_collides */
};

/** A next request comes, `behind` those before it; `now` in ns, to be looked up only where `alone` is not 0. */
void rwk_rma_next(struct rwk_rma_choice *c, bool behind, uint64_t now);
/**
 * Is the next request one that goes directly, while no other does so? Then, and when it has been carried out at once,
 * rwk_rma_went_directly says all that there is to say of it, in place of the calls below. False where a trial begins.
 */
bool rwk_rma_goes_directly(const struct rwk_rma_choice *c);
/** Is the time wanted, before it begins and when it has ended? */
bool rwk_rma_is_measured(const struct rwk_rma_choice *c);
/** `begun` and `now` in ns, 0: were not wanted. */
void rwk_rma_went_directly(struct rwk_rma_choice *c, size_t bytes, uint64_t begun, uint64_t now);

/** The way for the next request. */
enum rwk_rma_way rwk_rma_choose(struct rwk_rma_choice *c);
/** A request is to take that way: is the time wanted? To be asked once. */
bool rwk_rma_way_begins(struct rwk_rma_choice *c, enum rwk_rma_way way);
/** It takes it; `now` in ns, 0: was not wanted. */
void rwk_rma_way_taken(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now);
/** A request of `bytes` ends: is the time wanted? */
bool rwk_rma_way_ends(const struct rwk_rma_choice *c, enum rwk_rma_way way, size_t bytes);
/** It has ended; `now` in ns, 0: was not wanted. */
void rwk_rma_way_ended(struct rwk_rma_choice *c, enum rwk_rma_way way, size_t bytes, uint64_t now);

#endif

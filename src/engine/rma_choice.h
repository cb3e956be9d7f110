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
 */
#ifndef RWK_ENGINE_RMA_CHOICE_H
#define RWK_ENGINE_RMA_CHOICE_H

#include <stddef.h>
#include <stdint.h>

enum rwk_rma_way { RWK_BY_MESSAGES, RWK_DIRECTLY, RWK_RMA_WAYS };

/** Of requests of one kind and about one length; zero at first. */
struct rwk_rma_choice {
	struct {
		uint64_t cost;  /* ns for 64 KB, of late; 0: never tried */
		uint64_t last;  /* of the last run by itself */
		uint64_t since; /* ns: the run that is being measured began, */
		uint64_t bytes; /* and has moved these */
		uint32_t under_way;
	} way[RWK_RMA_WAYS];
	uint32_t trial_in;    /* requests until the slower one is tried again */
	uint32_t trial_taken; /* requests of the trial that goes on; 0: none does */
	uint32_t pause;       /* after the last trial, as a multiple of its requests */
	uint32_t late;        /* requests since a trial was due */
	enum rwk_rma_way trial;
};

#define RWK_RMA_LENGTHS 3u /* below 64 KB, below 1 MB, and from there on */

/** By which way long requests to a peer go, where there are two. */
struct rwk_rma_choices {
	struct rwk_rma_choice of[2][2][RWK_RMA_LENGTHS]; /* reads, writes; by rwk_copy_collides */
};

/** The way for the next request. */
enum rwk_rma_way rwk_rma_choose(struct rwk_rma_choice *c);
/** A request takes that way; `now` in ns. */
void rwk_rma_way_taken(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now);
/** It has ended, having moved `bytes`. */
void rwk_rma_way_ended(struct rwk_rma_choice *c, enum rwk_rma_way way, size_t bytes, uint64_t now);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who should carry out a long request: the service by itself, or messages? Messages copy twice, but two processors
 * share the work, and while the target polls they may be several times faster; a target that does something else does
 * not answer them for long. So both are measured as requests go by, and the faster one is taken; the other is tried
 * now and then, the more seldom the longer it stays the slower one.
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
		uint64_t since; /* ns: the run that is being measured began, */
		uint64_t bytes; /* and has moved these */
		uint32_t under_way;
	} way[RWK_RMA_WAYS];
	uint32_t trial_in, trial_gap; /* requests until the slower one is tried again, and from then on */
};

/** The way for the next request. */
enum rwk_rma_way rwk_rma_choose(struct rwk_rma_choice *c);
/** A request takes that way; `now` in ns. */
void rwk_rma_way_taken(struct rwk_rma_choice *c, enum rwk_rma_way way, uint64_t now);
/** It has ended, having moved `bytes`. */
void rwk_rma_way_ended(struct rwk_rma_choice *c, enum rwk_rma_way way, size_t bytes, uint64_t now);

#endif

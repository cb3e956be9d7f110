/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answer: when the next line of a ring is looked at by somebody who has just sent and waits for what comes back. Each
 * look takes the line into the reader's cache, and a writer who is about to fill it has to get it back first. Without a
 * look from the question to the answer it stays with the writer, who can ask for it as soon as he has read the
 * question, while he works on the answer. MPI, 8 bytes, one way: 200 ns with a look every few ns, 140 without one.
 *
 * So no look is taken for as long as answers have taken so far: `rest`. The first look after it finds the answer
 * (then the rest becomes a little shorter) or does not (longer by EARLY_MORE): of one in sixteen it comes too early.
 * That is good where answers take the same time again and again. Where they do not, one would wait for most of them
 * longer than they take; and one side alone gains nothing by it (8 bytes then take 205 ns), as its answers are what the
 * other looks for too early. Both therefore try it at the same time, by the number of a line of one ring that they
 * agree on: for TRIAL lines of each PERIOD, first to find out how long the rest should be (SETTLE), then in turns of
 * some messages with the rest and without it. Each side measures how long it takes from question to question, and does
 * until the next trial what took less.
 *
 * Nothing is lost by a rest but its time, and that is REST_MAX at most: whoever goes to sleep looks before (wake.c).
 */
#ifndef RWK_SHM_ANSWER_H
#define RWK_SHM_ANSWER_H

#include "base/barrier.h"

#include <stdbool.h>
#include <stdint.h>

#define RWK_SHM_ANSWER_REST_MAX 1000u /* ticks */

enum { RWK_SHM_ANSWER_PERIOD = 8192, RWK_SHM_ANSWER_SETTLE = 64, RWK_SHM_ANSWER_TRIAL = 192 };

/** Of one channel; zero at first. Times are in ticks (rwk_clock_ticks). */
struct rwk_shm_answer {
	uint32_t asked;    /* when the last question went */
	uint32_t rest;     /* so long after it no look is taken */
	bool awaited;      /* after a rest, and no look has been taken so far */
	bool rests;        /* as the last trial has ended */
	bool trial;        /* one is under way: */
	bool measured;     /* from the last question to the next one */
	bool rested;       /* the answer to the last question is, or was, awaited after a rest */
	uint8_t found;     /* a bit for each of the last first looks: the answer was there */
	uint32_t in_a_row; /* first looks that found the answer */
	struct {
		uint32_t n, ticks;
	} took[2];         /* in this trial, without and with a rest */
	uint64_t count[2]; /* first looks so far that came too early, and that found the answer */
};
_Static_assert(sizeof(struct rwk_shm_answer) <= RWK_CACHE_LINE, "awaiting an answer touches one private line");

/**
 * A message is sent that is likely to be answered. `line`: how many lines have been written into the ring that both
 * sides agree on. True: rwk_shm_answer_asked is to be called when it has gone.
 */
static inline bool rwk_shm_answer_matters(const struct rwk_shm_answer *a, uint32_t line)
{
	return a->rests || a->trial || line % RWK_SHM_ANSWER_PERIOD < RWK_SHM_ANSWER_TRIAL;
}

/** A question within a trial, or the first one after it; `at`: in which line of the period. */
void rwk_shm_answer_try(struct rwk_shm_answer *a, uint32_t at, uint32_t now);

/** True: there is to be a rest before the first look. */
static inline bool rwk_shm_answer_asked(struct rwk_shm_answer *a, uint32_t line, uint32_t now)
{
	uint32_t at = line % RWK_SHM_ANSWER_PERIOD;

	if (rwk_unlikely(at < RWK_SHM_ANSWER_TRIAL || a->trial))
		rwk_shm_answer_try(a, at, now);
	a->asked = now;
	a->awaited = a->rested;
	return a->rested;
}

/** Ticks from now on in which no look is to be taken. */
static inline uint32_t rwk_shm_answer_rest(const struct rwk_shm_answer *a, uint32_t now)
{
	uint32_t left = a->asked + a->rest - now;

	/* What was asked long ago may seem to lie ahead: ticks begin again. */
	return a->awaited && left <= RWK_SHM_ANSWER_REST_MAX ? left : 0;
}

/**
 * The first look after a rest is taken, and finds the answer (`there`) or nothing. True: the line of the next message
 * that goes can be asked for, since it is not looked at over there.
 */
bool rwk_shm_answer_look(struct rwk_shm_answer *a, bool there);

#endif

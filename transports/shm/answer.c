/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/answer.h"

#define TURN       32u   /* messages */
#define TRIED      16u   /* either way, at least: fewer decide nothing */
#define LONG       2048u /* ticks: an answer that takes longer is not looked for too early, nor found late by a rest */
#define EARLY_MORE 16u   /* ticks */
#define IN_A_ROW   64u   /* first looks that find the answer, while one of sixteen should not: the rest is too long */

_Static_assert(RWK_SHM_ANSWER_PERIOD % TURN == 0 && RWK_SHM_ANSWER_TRIAL < RWK_SHM_ANSWER_PERIOD, "trials end");

/* What takes about the same is no reason to begin with a rest. */
static void decide(struct rwk_shm_answer *a)
{
	uint64_t without = (uint64_t)a->took[false].ticks * a->took[true].n,
		 with = (uint64_t)a->took[true].ticks * a->took[false].n;

	if (a->took[false].n >= TRIED && a->took[true].n >= TRIED)
		a->rests = with * 32 < without * (a->rests ? 32 : 31);
	for (int rested = 0; rested < 2; rested++)
		a->took[rested].n = a->took[rested].ticks = 0;
	a->trial = a->measured = false;
	a->rested = true; /* if at all */
}

bool rwk_shm_answer_try(struct rwk_shm_answer *a, uint32_t line)
{
	uint32_t at = line % RWK_SHM_ANSWER_PERIOD;

	if (at >= RWK_SHM_ANSWER_TRIAL) {
		decide(a);
		return a->rests;
	}
	a->trial = true;
	a->measured = at >= RWK_SHM_ANSWER_SETTLE;
	a->rested = !a->measured || at / TURN % 2 == 0;
	return true;
}

/* The first look has been taken. */
static void adapt(struct rwk_shm_answer *a, bool there)
{
	uint32_t less = 1;

	a->found = (uint8_t)(a->found << 1 | there);
	a->count[there]++;
	if (!there) {
		a->in_a_row = 0;
		if (a->rest < RWK_SHM_ANSWER_REST_MAX - EARLY_MORE)
			a->rest += EARLY_MORE;
		return;
	}
	if (++a->in_a_row > IN_A_ROW)
		less += a->rest / 64;
	a->rest -= less < a->rest ? less : a->rest;
}

bool rwk_shm_answer_look(struct rwk_shm_answer *a, uint32_t now, bool there)
{
	bool first = a->state == RWK_SHM_ANSWER_RESTS;
	uint32_t took = now - a->asked;

	if (first)
		adapt(a, there);
	if (there && a->measured) {
		a->took[a->rested].n++;
		a->took[a->rested].ticks += took < LONG ? took : LONG;
	}
	a->state = !there && a->measured ? RWK_SHM_ANSWER_TIMED : RWK_SHM_ANSWER_ANY;
	return first && a->found;
}

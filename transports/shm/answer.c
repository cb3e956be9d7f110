/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/answer.h"

#define TURN       32u   /* messages */
#define TRIED      16u   /* either way, at least: fewer decide nothing */
#define LONG       4096u /* ticks: where it takes longer from one question to the next there is little to be gained */
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
}

void rwk_shm_answer_try(struct rwk_shm_answer *a, uint32_t at, uint32_t now)
{
	uint32_t took = now - a->asked;

	if (a->measured) {
		a->took[a->rested].n++;
		a->took[a->rested].ticks += took < LONG ? took : LONG;
	}
	a->trial = at < RWK_SHM_ANSWER_TRIAL;
	a->measured = a->trial && at >= RWK_SHM_ANSWER_SETTLE;
	if (!a->trial)
		decide(a);
	a->rested = !a->trial ? a->rests : !a->measured || at / TURN % 2 == 0;
}

bool rwk_shm_answer_look(struct rwk_shm_answer *a, bool there)
{
	uint32_t less = 1;

	a->awaited = false;
	a->found = (uint8_t)(a->found << 1 | there);
	a->count[there]++;
	if (!there) {
		a->in_a_row = 0;
		if (a->rest < RWK_SHM_ANSWER_REST_MAX - EARLY_MORE)
			a->rest += EARLY_MORE;
		return a->found;
	}
	if (++a->in_a_row > IN_A_ROW)
		less += a->rest / 64;
	a->rest -= less < a->rest ? less : a->rest;
	return true;
}

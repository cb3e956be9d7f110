/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/transfer_border.h"

#define LEAST 32u   /* looks before the border moves, */
#define MOST  8192u /* and where it would go back and forth */
#define MORE  4u    /* times as many after each step back */
#define CLEAR 8u    /* it moves if all but one in so many were alike */

/* How many bits a number below `length` has. */
static unsigned bits(uint64_t length)
{
	return length > 1 ? 64u - (unsigned)__builtin_clzll(length - 1) : 0;
}

/* Of what two chunks are shared in which the border may be. */
static unsigned class_of(uint64_t length)
{
	unsigned first = bits(RWK_SHM_BOTH_LEAST) + 1, log = bits(length);

	return log < first ? 0 : log - first < RWK_SHM_BORDER_CLASSES ? log - first : RWK_SHM_BORDER_CLASSES - 1;
}

int rwk_shm_border_lead(const struct rwk_shm_border *b, uint64_t length)
{
	int most = rwk_shm_lead_most(length), lead = b->class[class_of(length)].lead;

	return lead > most ? most : lead < -most ? -most : lead;
}

static void move(struct rwk_shm_border_class *k, int by)
{
	unsigned wanted = k->wanted ? k->wanted : LEAST;

	if (by == -k->last)
		wanted = MORE * wanted < MOST ? MORE * wanted : MOST;
	else
		wanted = LEAST;
	k->wanted = (uint16_t)wanted;
	k->last = (int16_t)by;
	k->lead = (int16_t)(k->lead + by);
}

void rwk_shm_border_seen(struct rwk_shm_border *b, uint64_t length, bool early)
{
	struct rwk_shm_border_class *k = &b->class[class_of(length)];
	int most = rwk_shm_lead_most(length), lead = rwk_shm_border_lead(b, length);
	unsigned late, unlike;

	if (!most)
		return;
	k->early = (uint16_t)(k->early + early);
	k->looks++;
	if (k->looks < (k->wanted ? k->wanted : LEAST))
		return;
	late = (unsigned)k->looks - k->early;
	unlike = k->looks / CLEAR;
	if (k->early < unlike && lead < most)
		move(k, 1);
	else if (late < unlike && lead > -most)
		move(k, -1);
	k->looks = k->early = 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/slab.h"

#include "base/shared.h"

#include <string.h>

void rwk_shm_slabs_init(struct rwk_shm_slabs *s, unsigned char *base, unsigned side)
{
	*s = (struct rwk_shm_slabs){.base = base, .home = side * RWK_SHM_SLABS};
	s->mine[side] = UINT64_MAX;
}

_Static_assert(RWK_SHM_SLABS == 64, "one word of bits for each side's slabs");

rwk_noinline uint32_t rwk_shm_slab_mint(struct rwk_shm_slabs *s)
{
	uintptr_t at, end;

	if (s->minted == RWK_SHM_SLABS)
		return RWK_SHM_NO_SLAB;
	at = (uintptr_t)rwk_shm_slab(s, s->home + s->minted);
	end = at + RWK_SHM_SLAB_BYTES;
	at &= ~(uintptr_t)(RWK_SHM_PAGE - 1);
	s->lacks = !rwk_shared_populate((void *)at, end - at);
	if (s->lacks)
		return RWK_SHM_NO_SLAB;
	return s->home + s->minted++;
}

bool rwk_shm_slabs_reserve(struct rwk_shm_slabs *s, uint32_t n)
{
	if (rwk_shm_slabs_left(s) < n)
		return false;
	while (s->count < n) {
		uint32_t id = rwk_shm_slab_mint(s);

		if (id == RWK_SHM_NO_SLAB)
			return false;
		s->stack[s->count++] = (uint16_t)id;
	}
	return true;
}

void rwk_shm_slabs_give_back(struct rwk_shm_slabs *s, uint16_t id[RWK_SHM_SLABS_BATCH])
{
	memcpy(id, s->stack, RWK_SHM_SLABS_BATCH * sizeof(id[0]));
	s->count -= RWK_SHM_SLABS_BATCH;
	memmove(s->stack, s->stack + RWK_SHM_SLABS_BATCH, s->count * sizeof(s->stack[0]));
	for (unsigned i = 0; i < RWK_SHM_SLABS_BATCH; i++)
		rwk_shm_slab_sent(s, id[i]);
}

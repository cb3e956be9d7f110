/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/fill.h"

#include "base/clock.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#define CAN_PASS 1
#else
#define CAN_PASS 0
#endif

#define EACH      16u /* one of so many is measured */
#define GAP_LEAST 4u
#define GAP_MOST  64u
#define UNIT      (64u << 10) /* bytes */

/* A copy past the caches; whole when it returns. */
static void copy_past(unsigned char *to, const unsigned char *from, size_t len)
{
#if CAN_PASS
	const size_t step = sizeof(__m128i);
	size_t head = -(uintptr_t)to % step;

	head = head < len ? head : len;
	rwk_copy_short(to, from, head);
	to += head;
	from += head;
	for (len -= head; len >= 4 * step; len -= 4 * step, to += 4 * step, from += 4 * step) {
		for (unsigned i = 0; i < 4; i++)
			_mm_stream_si128(
				(__m128i *)(void *)to + i, _mm_loadu_si128((const __m128i *)(const void *)from + i));
	}
	rwk_copy_short(to, from, len);
	_mm_sfence(); /* such stores are in no order with others */
#else
	memcpy(to, from, len);
#endif
}

enum rwk_shm_fill_way rwk_shm_fill_next(struct rwk_shm_fill *f)
{
	if (!CAN_PASS || !f->cost[RWK_SHM_FILL_ORDINARY])
		return RWK_SHM_FILL_ORDINARY;
	if (!f->cost[RWK_SHM_FILL_PAST])
		return RWK_SHM_FILL_PAST;
	if (f->trial_in) {
		f->trial_in--;
		return (enum rwk_shm_fill_way)f->way;
	}
	f->trial_gap = f->trial_gap < GAP_LEAST ? GAP_LEAST : f->trial_gap < GAP_MOST ? 2 * f->trial_gap : GAP_MOST;
	f->trial_in = f->trial_gap;
	return f->way == RWK_SHM_FILL_PAST ? RWK_SHM_FILL_ORDINARY : RWK_SHM_FILL_PAST;
}

/* A measurement beside others: who loses the core in between has not measured anything, and once is no habit. */
static uint64_t blend(uint64_t before, uint64_t now)
{
	if (!before)
		return now;
	return now < before / 2 ? before / 2 : now > before + before / 4 + 1 ? before + before / 4 + 1 : now;
}

void rwk_shm_fill_measured(struct rwk_shm_fill *f, enum rwk_shm_fill_way way, size_t bytes, uint64_t ns)
{
	const uint64_t *cost = f->cost;
	uint8_t before = f->way;

	f->cost[way] = blend(cost[way], ns * UNIT / bytes + 1);
	f->way = cost[RWK_SHM_FILL_PAST] && 4 * cost[RWK_SHM_FILL_PAST] < 3 * cost[RWK_SHM_FILL_ORDINARY]
			 ? RWK_SHM_FILL_PAST
			 : RWK_SHM_FILL_ORDINARY;
	if (f->way != before)
		f->trial_in = f->trial_gap = GAP_LEAST; /* something has changed, and may change back */
	f->ordinary = f->way == RWK_SHM_FILL_ORDINARY ? EACH - 1 : 0;
	f->past = f->way == RWK_SHM_FILL_PAST ? EACH - 1 : 0;
}

void rwk_shm_fill_chosen(struct rwk_shm_fill *f, void *to, const void *from, size_t len)
{
	enum rwk_shm_fill_way way;
	uint64_t start;

	if (f->past) {
		f->past--;
		copy_past(to, from, len);
		return;
	}
	way = rwk_shm_fill_next(f);
	start = rwk_clock_now();
	if (way == RWK_SHM_FILL_PAST)
		copy_past(to, from, len);
	else
		rwk_copy_away(to, from, len, f->string);
	rwk_shm_fill_measured(f, way, len, rwk_clock_now() - start);
}

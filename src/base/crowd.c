/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crowd.h"

#include <stdatomic.h>
#include <stdbool.h>

#define COUNT_BITS 16

/* A window and who has been counted in it: its number and, in the low bits, how many; and those of the one before. */
static _Atomic uint64_t window;
static atomic_uint before;

static unsigned count_of(uint64_t w)
{
	return w & ((1u << COUNT_BITS) - 1);
}

/* Time does not go back for one who is late. The number of the window in which the thread was counted. */
static uint64_t count_in(uint64_t number)
{
	uint64_t w = atomic_load_explicit(&window, memory_order_relaxed), next;

	do {
		next = w >> COUNT_BITS < number ? number << COUNT_BITS | 1 : w + 1;
	} while (!atomic_compare_exchange_weak_explicit(
		&window, &w, next, memory_order_relaxed, memory_order_relaxed));
	if (next >> COUNT_BITS != w >> COUNT_BITS)
		atomic_store_explicit(&before, w >> COUNT_BITS == number - 1 ? count_of(w) : 0, memory_order_relaxed);
	return next >> COUNT_BITS;
}

unsigned rwk_crowd_count(uint64_t now)
{
	static _Thread_local uint64_t counted_in;
	unsigned here, there;

	if (counted_in < now / RWK_CROWD_WINDOW + 1)
		counted_in = count_in(now / RWK_CROWD_WINDOW + 1);
	here = count_of(atomic_load_explicit(&window, memory_order_relaxed));
	there = atomic_load_explicit(&before, memory_order_relaxed);
	return here > there ? here : there;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random tests that say how to see a failure again: RWK_TEST_SEED=<seed> runs that one alone. Included once by a test
 * program, behind rwk_test.h.
 */
#ifndef RWK_TEST_SEEDED_H
#define RWK_TEST_SEEDED_H

static uint64_t seed_now, random_state;

/** As assert_true, with the seed. */
#define check(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			fail_msg("RWK_TEST_SEED=%llu: %s:%d: %s", (unsigned long long)seed_now, __func__, __LINE__,    \
				#condition);                                                                           \
	} while (0)

/** Begins with that seed. */
static inline void begin_with(uint64_t seed)
{
	seed_now = random_state = seed;
}

/** Less than `bound`. (splitmix64) */
static inline uint32_t pick(uint64_t bound)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % bound);
}

#endif

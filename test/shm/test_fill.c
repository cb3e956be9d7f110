/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How shared memory is filled: the choice against machines of the test's own making, and the bytes of either way.
 */
#include "rwk_test.h"

#include "shm/fill.h"
#include "shm/slab.h"

#include <stdbool.h>
#include <string.h>

#define SLAB 8192u

/* Machines with nothing to choose between have one way. */
#if defined(__SSE2__)
#define HAS_CHOICE true
#else
#define HAS_CHOICE false
#endif

/*
 * Measures `n` times on a machine where a slab takes so many ns by each way; with `lost` the core is lost every seventh
 * time. Returns how often stores past the caches were taken.
 */
static unsigned play(struct rwk_shm_fill *f, const uint64_t ns[RWK_SHM_FILL_WAYS], unsigned n, bool lost)
{
	unsigned past = 0;

	for (unsigned i = 0; i < n; i++) {
		enum rwk_shm_fill_way way = rwk_shm_fill_next(f);

		past += way == RWK_SHM_FILL_PAST;
		rwk_shm_fill_measured(f, way, SLAB, lost && i % 7 == 3 ? 50 * ns[way] : ns[way]);
	}
	return past;
}

static bool takes_past(const struct rwk_shm_fill *f)
{
	return f->way == RWK_SHM_FILL_PAST && f->past && !f->ordinary;
}

/* The faster way is in use before long, and trying the other one is less than a twentieth of what is measured. */
static void takes_the_faster(void **state)
{
	static const uint64_t slow_stores[] = {3600, 500}, quick_stores[] = {250, 460};
	struct rwk_shm_fill f = {0}, g = {0};

	(void)state;
	if (!HAS_CHOICE)
		skip();
	play(&f, slow_stores, 20, true);
	assert_true(takes_past(&f));
	assert_in_range(play(&f, slow_stores, 1000, true), 950, 999);
	play(&g, quick_stores, 20, true);
	assert_false(takes_past(&g));
	assert_in_range(play(&g, quick_stores, 1000, true), 1, 50);
}

/* A small gain is none: the peer reads from memory then. */
static void wants_a_third(void **state)
{
	static const uint64_t little[] = {500, 400}, enough[] = {500, 350};
	struct rwk_shm_fill f = {0}, g = {0};

	(void)state;
	if (!HAS_CHOICE)
		skip();
	play(&f, little, 200, false);
	assert_false(takes_past(&f));
	play(&g, enough, 200, false);
	assert_true(takes_past(&g));
}

/*
 * The two processes are moved: next to one another, and away again. A way in use that becomes slow is left within a
 * few measurements, and one that becomes fast is found.
 */
static void follows_a_move(void **state)
{
	static const uint64_t away[] = {3600, 500}, close[] = {250, 500};
	struct rwk_shm_fill f = {0};

	(void)state;
	if (!HAS_CHOICE)
		skip();
	play(&f, away, 500, true);
	assert_true(takes_past(&f));
	play(&f, close, 500, true);
	assert_false(takes_past(&f));
	play(&f, away, 20, true);
	assert_true(takes_past(&f));
}

/* One measurement is no habit: a lost core, or a lucky one. */
static void stays_calm(void **state)
{
	static const uint64_t slow_stores[] = {3600, 500};
	struct rwk_shm_fill f = {0};

	(void)state;
	if (!HAS_CHOICE)
		skip();
	play(&f, slow_stores, 100, true);
	rwk_shm_fill_measured(&f, RWK_SHM_FILL_ORDINARY, SLAB, 1);
	assert_true(takes_past(&f));
	rwk_shm_fill_measured(&f, RWK_SHM_FILL_PAST, SLAB, 5000000);
	assert_true(takes_past(&f));
}

/* The bytes arrive and no other is touched, wherever both lie in their lines and however many there are. */
static void check_copy(struct rwk_shm_fill f, size_t from_at, size_t to_at, size_t len)
{
	static unsigned char from[3 * 4096] rwk_aligned, to[3 * 4096] rwk_aligned;

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 7 + i / 251);
	memset(to, 0xa5, sizeof(to));
	rwk_shm_fill(&f, to + 64 + to_at, from + from_at, len);
	assert_memory_equal(to + 64 + to_at, from + from_at, len);
	for (size_t i = 0; i < sizeof(to); i++) {
		if (i < 64 + to_at || i >= 64 + to_at + len)
			assert_int_equal(to[i], 0xa5);
	}
}

static void copies_exactly(void **state)
{
	static const size_t lengths[] = {0, 1, 15, 2047, 2048, 2049, 2063, 4096, 4159, 8191, 8192};
	static const size_t ats[] = {0, 1, 8, 15, 16, 17, 63};
	const struct rwk_shm_fill ordinary = {.ordinary = 5}, past = {.past = 5, .way = RWK_SHM_FILL_PAST};

	(void)state;
	for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
		for (size_t i = 0; i < sizeof(ats) / sizeof(*ats); i++) {
			for (size_t j = 0; j < sizeof(ats) / sizeof(*ats); j++) {
				check_copy(ordinary, ats[i], ats[j], lengths[l]);
				check_copy(past, ats[i], ats[j], lengths[l]);
				check_copy((struct rwk_shm_fill){0}, ats[i], ats[j], lengths[l]);
			}
		}
	}
}

/* A slab that was given back has been read by the other side; one that came with a message by us. */
static void knows_the_last_reader(void **state)
{
	static struct rwk_shm_slabs s;

	(void)state;
	rwk_shm_slab_got(&s, 3, true);
	rwk_shm_slab_got(&s, 67, false);
	assert_true(rwk_shm_slab_was_read(&s, 3));
	assert_false(rwk_shm_slab_was_read(&s, 67));
	rwk_shm_slab_got(&s, 3, false);
	rwk_shm_slab_got(&s, 67, true);
	assert_false(rwk_shm_slab_was_read(&s, 3));
	assert_true(rwk_shm_slab_was_read(&s, 67));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_faster),
		cmocka_unit_test(wants_a_third),
		cmocka_unit_test(follows_a_move),
		cmocka_unit_test(stays_calm),
		cmocka_unit_test(copies_exactly),
		cmocka_unit_test(knows_the_last_reader),
	};

	return cmocka_run_group_tests_name("shm/fill", tests, NULL, NULL);
}

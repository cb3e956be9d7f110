/* SPDX-License-Identifier: BSD-3-Clause */
#include "rwk_test.h"

#include "topology/node_map.h"

#define RANKS 1000000

/* Adds ranks one by one, as `node_of` has them, and asks for each again. */
static size_t check(uint32_t ranks, uint32_t (*node_of)(uint32_t rank))
{
	struct rwk_node_map m;
	size_t bytes;

	rwk_node_map_init(&m);
	for (uint32_t r = 0; r < ranks; r++)
		assert_int_equal(rwk_node_map_add(&m, 1, node_of(r)), 0);
	assert_int_equal(rwk_node_map_finish(&m), 0);
	for (uint32_t r = 0; r < ranks; r++) {
		if (rwk_node_map_at(&m, r) != node_of(r))
			fail_msg("rank %u is on %u, not %u", r, rwk_node_map_at(&m, r), node_of(r));
	}
	assert_int_equal(rwk_node_map_at(&m, ranks), RWK_NODE_NONE);
	bytes = rwk_node_map_bytes(&m);
	rwk_node_map_free(&m);
	return bytes;
}

static uint32_t in_blocks(uint32_t r)
{
	return r / 64;
}

static uint32_t in_turn(uint32_t r)
{
	return r % 15625;
}

static uint32_t planes(uint32_t r)
{
	return r / 4 % 1000;
}

static uint32_t scattered(uint32_t r)
{
	return r * 2654435761u >> 12;
}

static uint32_t with_gaps(uint32_t r)
{
	return r % 7 ? r / 100 : RWK_NODE_NONE;
}

static uint32_t uneven(uint32_t r)
{
	static const uint8_t nodes[] = {
		0, 0, 0, 1, 2, 2, 0, 1, 2, 3, 3, 2, 1, 0, 0, 0, 5, 5, 6, 6, 5, 5, 6, 6, 7, 7, 8};

	return nodes[r];
}

/* Regular placements of a million ranks cost next to nothing, any other one 4 bytes a rank. */
static void test_sizes(void **state)
{
	(void)state;
	assert_true(check(RANKS, in_blocks) <= 100);
	assert_true(check(RANKS, in_turn) <= 100);
	assert_true(check(RANKS, planes) <= 100);
	assert_true(check(RANKS, scattered) <= 4 * RANKS);
	assert_true(check(10000, with_gaps) <= 4 * 10000);
}

/* Every length of a placement without much of a pattern: runs end anywhere. */
static void test_uneven(void **state)
{
	(void)state;
	for (uint32_t ranks = 1; ranks <= 27; ranks++)
		check(ranks, uneven);
}

/* Random nodes of a small set, in random lumps, against a plain array. */
static void test_random(void **state)
{
	static uint32_t plain[5000];

	(void)state;
	for (unsigned seed = 0; seed < 500; seed++) {
		uint32_t n = 0, state_bits = seed * 7919 + 1, nodes, most, seen[8] = {0}, distinct = 0, fullest = 0;
		struct rwk_node_map m;

		rwk_node_map_init(&m);
		while (n < 1000) {
			uint32_t lump, node;

			state_bits = state_bits * 1664525 + 1013904223;
			lump = 1 + (state_bits >> 28) % (1 + seed % 4);
			node = seed % 3 ? (state_bits >> 20) % (2 + seed % 6) : n / 3 % (2 + seed % 6);
			assert_int_equal(rwk_node_map_add(&m, lump, node), 0);
			for (uint32_t i = 0; i < lump; i++)
				plain[n++] = node;
		}
		assert_int_equal(rwk_node_map_finish(&m), 0);
		for (uint32_t r = 0; r < n; r++) {
			assert_int_equal(rwk_node_map_at(&m, r), plain[r]);
			distinct += !seen[plain[r]]++;
			fullest = seen[plain[r]] > fullest ? seen[plain[r]] : fullest;
		}
		assert_int_equal(rwk_node_map_count(&m, &nodes, &most), 0);
		assert_int_equal(nodes, distinct);
		assert_int_equal(most, fullest);
		rwk_node_map_free(&m);
	}
}

/* Nothing is counted where something is not known. */
static void test_count_unknown(void **state)
{
	uint32_t nodes = 77, most = 78;
	struct rwk_node_map m;

	(void)state;
	rwk_node_map_init(&m);
	assert_int_equal(rwk_node_map_count(&m, &nodes, &most), -ENODATA);
	assert_int_equal(rwk_node_map_add(&m, 3, 1), 0);
	assert_int_equal(rwk_node_map_add(&m, 3, RWK_NODE_NONE), 0);
	assert_int_equal(rwk_node_map_add(&m, 3, RWK_NODE_NONE), 0);
	assert_int_equal(rwk_node_map_count(&m, &nodes, &most), -ENODATA);
	assert_int_equal(nodes, 77);
	assert_int_equal(rwk_node_map_at(&m, 8), RWK_NODE_NONE);
	assert_int_equal(rwk_node_map_at(&m, 2), 1);
	rwk_node_map_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_count_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many queue pairs a job takes, counted from machines that exist and carry something: each rank sends one message
 * to each rank on another node, by RC and by SRC, over the simulated network. And the formulas that selection and
 * rwk_info have for jobs that do not exist, against what was counted.
 *
 * Links: sim.
 */
#include "rwk_test.h"

#include "bench/scale_job.h"
#include "selection/cost.h"

static struct scale_attr job(uint32_t nodes, uint32_t per_node, bool src)
{
	return (struct scale_attr){.nodes = nodes,
		.per_node = per_node,
		.src = src,
		.size = 100,
		.pmtu = 1024,
		.packet_ns = 300,
		.batch = 32,
		.gbit = 100,
		.seed = 7};
}

/* Runs it: every message arrives once, at the rank that it was for, and its sender comes to know. */
static struct scale_result run(const struct scale_attr *attr)
{
	uint64_t ranks = (uint64_t)attr->nodes * attr->per_node;
	struct scale_result r;

	assert_int_equal(scale_run(attr, &r), 0);
	assert_int_equal(r.messages, ranks * (ranks - attr->per_node));
	assert_int_equal(r.delivered, r.messages);
	assert_int_equal(r.done, r.messages);
	assert_int_equal(r.wrong, 0);
	return r;
}

static void expect_formula(const struct scale_attr *a, const struct scale_result *r)
{
	struct rwk_cost c = rwk_cost_of_node(a->nodes, a->per_node, a->src);

	assert_int_equal(r->queue_pairs, rwk_cost_queue_pairs(a->nodes, a->per_node, a->src));
	assert_int_equal(r->initiators, a->nodes * c.initiators);
	assert_int_equal(r->targets, a->nodes * c.targets);
	assert_int_equal(r->machines, a->nodes * c.machines);
	assert_int_equal(r->timers, a->nodes * c.timers);
}

/*
 * S1-9: with SRC one queue pair of a rank reaches all ranks of a node, and none is there in vain; the formulas say as
 * many as there are.
 */
static void counted(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes <= 5; nodes++) {
		for (uint32_t per_node = 1; per_node <= 8; per_node += per_node > 1 ? 2 : 1) {
			struct scale_attr rc = job(nodes, per_node, false), src = job(nodes, per_node, true);
			struct scale_result by_rc = run(&rc), by_src = run(&src);

			expect_formula(&rc, &by_rc);
			expect_formula(&src, &by_src);
			assert_int_equal(by_rc.initiators_used, by_rc.messages);
			assert_int_equal(by_rc.targets_used, by_rc.messages);
			assert_int_equal(by_src.initiators_used, by_src.initiators);
			assert_int_equal(by_src.targets_used, by_src.targets);
			assert_int_equal(by_src.initiators * per_node, by_src.messages);
			assert_int_equal(by_src.targets * per_node, by_src.messages);
		}
	}
}

/* S1-9: with SRC queue pairs grow with N^2 J, and with RC as (N J)^2. */
static void growth(void **state)
{
	static const uint32_t from[][2] = {{2, 2}, {3, 4}, {4, 1}, {4, 3}};

	(void)state;
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		for (int src = 0; src < 2; src++) {
			uint32_t n = from[i][0], j = from[i][1];
			struct scale_attr a = job(n, j, src), more_ranks = job(n, 2 * j, src),
					  more_nodes = job(2 * n, j, src);
			uint64_t once = run(&a).queue_pairs;

			assert_int_equal(run(&more_ranks).queue_pairs, src ? 2 * once : 4 * once);
			/* N^2 but for oneself. */
			assert_int_equal(run(&more_nodes).queue_pairs * n * (n - 1), once * 2 * n * (2 * n - 1));
		}
	}
}

/* S1-9: it holds while packets are lost; what one queue pair carries for several ranks is still each one's own. */
static void lost_packets(void **state)
{
	(void)state;
	for (int src = 0; src < 2; src++) {
		struct scale_attr a = job(3, 6, src);
		struct scale_result r;

		a.drop = 50000;
		a.size = 3000;
		r = run(&a);
		assert_true(r.dropped > 0);
		assert_true(r.sent_again > 0);
		expect_formula(&a, &r);
	}
}

/* Where SRC acknowledges late as RC does, messages for several ranks of a node are acknowledged together. */
static void acknowledgements(void **state)
{
	struct scale_attr rc = job(4, 16, false), src = job(4, 16, true);
	struct scale_result by_rc, by_src;

	(void)state;
	src.src_lazy = true;
	by_rc = run(&rc);
	by_src = run(&src);
	assert_int_equal(by_rc.acks + by_rc.acks_along, by_rc.messages);
	assert_true(by_src.acks * 8 <= by_src.messages);
	assert_int_equal(by_src.packets, by_src.messages + by_src.acks);
	assert_true(by_src.bytes < by_rc.bytes);
}

/* The same seed gives the same run. */
static void again(void **state)
{
	struct scale_attr a = job(3, 4, true);
	struct scale_result first, second;

	(void)state;
	a.drop = 20000;
	first = run(&a);
	second = run(&a);
	assert_memory_equal(&first, &second, sizeof(first));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted),
		cmocka_unit_test(growth),
		cmocka_unit_test(lost_packets),
		cmocka_unit_test(acknowledgements),
		cmocka_unit_test(again),
	};

	return cmocka_run_group_tests_name("scale, S1-9", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What un-ordered requests gain, on the virtual clock: messages of one packet are posted at a steady pace, and each is
 * timed from there to where it is done at the peer. The network loses packets, or has two ways of different length.
 *
 *     a ---- 10 us, some lost, some up to 8 us later (far apart: 40 us) ----> b
 *       <--- 10 us ------------------------------------------------------------
 *
 *   test_order_gain full    the figures in bench/README.md
 */
#include "rwk_test.h"

#include "rc/end.h"

#define LENGTH 1024u
#define PACE   2000u /* ns between two */
#define MOST   50000u
#define RING   1024u /* requests posted at once, at most */

static const struct {
	const char *name;
	uint32_t drop, reorder;
	rwk_time by;
} networks[] = {
	{"no loss, one way", 0, 0, 0},
	{"0.1 % lost", 1000, 0, 0},
	{"1 % lost", 10000, 0, 0},
	{"two ways", 0, 500000, 8000},
	{"two ways, 0.1 % lost", 1000, 500000, 8000},
	{"two ways, far apart", 0, 500000, 40000},
};

static const struct {
	const char *name;
	unsigned own;
	uint8_t flags;
} ways[] = {
	{"ordered, plain RC", 0, 0},
	{"ordered, selective", RWK_RC_SELECTIVE | RWK_RC_UNORDERED, 0},
	{"un-ordered", RWK_RC_SELECTIVE | RWK_RC_UNORDERED, RWK_WR_UNORDERED},
};

static uint32_t messages, done;
static rwk_time posted_at[MOST], took[MOST];
static uint8_t bytes[RING][LENGTH];
static struct rwk_wr wrs[RING];
static struct iovec iovs[RING];

static void on_effect(struct end *e, unsigned type, uint64_t address, const void *data, size_t len)
{
	uint32_t i;

	(void)type;
	(void)address;
	assert_int_equal(len, LENGTH);
	memcpy(&i, data, sizeof(i));
	assert_in_range(i, 0, messages - 1);
	took[i] = rwk_sim_now(e->sim) - posted_at[i];
	done++;
}

static void post(struct end *a, unsigned type, uint8_t flags, uint32_t i)
{
	uint32_t k = i % RING;

	memcpy(bytes[k], &i, sizeof(i));
	wrs[k] = end_wr(type, &iovs[k], bytes[k], LENGTH);
	wrs[k].remote += k * LENGTH;
	wrs[k].flags = flags;
	posted_at[i] = rwk_sim_now(a->sim);
	end_post(a, &wrs[k]);
}

static int compare(const void *a, const void *b)
{
	const rwk_time *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct times {
	double mean, tail; /* us; 99 of 100 are below it */
};

static struct times measure(unsigned network, unsigned way, unsigned type)
{
	struct rwk_sim_attr sim_attr = rwk_sim_attr_default;
	struct rwk_sim_path back = {.delay = 10000}, there = back;
	struct rwk_rc_attr attr = end_strict();
	struct rwk_sim *sim;
	struct end *a, *b;
	double sum = 0;

	sim_attr.mtu = 4096;
	assert_int_equal(rwk_sim_open(&sim_attr, &sim), 0);
	attr.own = ways[way].own;
	attr.pmtu = LENGTH;
	attr.window = RWK_RC_WINDOW_MAX;
	end_pair(sim, &attr, &a, &b);
	there.drop = networks[network].drop;
	there.reorder = networks[network].reorder;
	there.reorder_by = networks[network].by;
	rwk_sim_set_path(sim, 1, 2, &there);
	rwk_sim_set_path(sim, 2, 1, &back);
	b->on_effect = on_effect;
	done = 0;
	for (uint32_t i = 0; i < messages; i++) {
		rwk_time next = rwk_sim_now(sim) + PACE;

		while (i - a->done_count >= RING)
			end_step(a, b, RWK_NEVER);
		post(a, type, ways[way].flags, i);
		while (end_step(a, b, next))
			;
		rwk_sim_run_until(sim, next);
	}
	assert_true(end_settle(a, b, 10000000000ull));
	assert_int_equal(done, messages);
	assert_int_equal(a->done_count, messages);
	end_close(a);
	end_close(b);
	rwk_sim_close(sim);
	for (uint32_t i = 0; i < messages; i++)
		sum += (double)took[i] / 1000;
	qsort(took, messages, sizeof(took[0]), compare);
	return (struct times){sum / messages, (double)took[messages / 100 * 99] / 1000};
}

/* Un-ordered is never later, and where packets are lost or overtake each other it is earlier; the clock is the
 * simulator's, so that a figure is the same each time. */
static void s2_gain(void **state)
{
	static const char *const names[] = {"Send", "Write"};
	enum { NETWORKS = sizeof(networks) / sizeof(*networks), WAYS = sizeof(ways) / sizeof(*ways) };

	(void)state;
	for (unsigned type = RWK_WR_SEND; type <= RWK_WR_WRITE; type++)
		for (unsigned n = 0; n < NETWORKS; n++) {
			struct times t[WAYS];

			for (unsigned w = 0; w < WAYS; w++) {
				t[w] = measure(n, w, type);
				print_message("%-5s %-20s %-18s %7.1f us, 99 %% below %7.1f us\n", names[type],
					networks[n].name, ways[w].name, t[w].mean, t[w].tail);
			}
			assert_true(t[2].mean <= t[1].mean && t[2].tail <= t[1].tail);
			if (networks[n].drop >= 10000 || networks[n].reorder)
				assert_true(t[2].mean < t[1].mean);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s2_gain),
	};

	messages = argc > 1 && !strcmp(argv[1], "full") ? MOST : 3000;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx answers that no launcher of this machine gives: several nodes, large jobs, and wrong ones. */
#include "rwk_test.h"

#include "base/log.h"
#include "topology/fake_pmix.h"
#include "topology/job_map.h"

#include <dlfcn.h>

static struct fake_pmix *fake;
static char warning[1024];
static int warnings;

static void keep_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level != RWK_LOG_WARN)
		return;
	snprintf(warning, sizeof(warning), "%s", text);
	warnings++;
}

static const char *no_variables(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return NULL;
}

/* Six ranks on three nodes in turn, numbered by a launcher that has more nodes; this is rank 4. */
static void reset(void)
{
	memset(fake, 0, sizeof(*fake));
	fake->initialized = 1;
	fake->nspace = "job-7";
	fake->rank = 4;
	fake->size = 6;
	fake->nodes = 3;
	fake->local = "1,4";
	for (uint32_t r = 0; r < FAKE_RANKS; r++)
		fake->node[r] = r < 6 ? 10 + r % 3 : FAKE_NO_NODE;
	warnings = 0;
}

static struct rwk_job_map *get(void)
{
	static const struct rwk_params params;
	struct rwk_job_env env = {.get = no_variables, .params = &params, .machine = RWK_JOB_NO_MACHINE};
	struct rwk_job_map *map = NULL;

	rwk_log_set_sink(keep_warning);
	assert_int_equal(rwk_job_map_get(&env, &map), 0);
	rwk_log_set_sink(NULL);
	assert_int_equal(fake->initialized, 1);
	assert_int_equal(fake->blocking_gets, 0);
	return map;
}

/* Several nodes, all known. */
static void test_nodes(void **state)
{
	struct rwk_job_map *m;

	(void)state;
	reset();
	m = get();
	assert_int_equal(m->source, RWK_JOB_PMIX);
	assert_string_equal(m->id, "job-7");
	assert_int_equal(m->nodes, 3);
	assert_true(m->nodes_exact);
	assert_int_equal(m->node, 11);
	assert_int_equal(m->local_size, 2);
	assert_int_equal(m->local_index, 1);
	assert_int_equal(rwk_job_map_where(m, 1), RWK_WHERE_NODE);
	assert_int_equal(rwk_job_map_where(m, 3), RWK_WHERE_OTHER);
	assert_int_equal(rwk_job_map_node_of(m, 3), 10);
	assert_int_equal(warnings, 0);
	rwk_job_map_free(m);
}

/* PRRTE names this node's ranks in the order of their places there, not of their numbers. */
static void test_any_order(void **state)
{
	struct rwk_job_map *m;

	(void)state;
	reset();
	fake->local = "4,1";
	m = get();
	assert_int_equal(m->source, RWK_JOB_PMIX);
	assert_int_equal(m->local_size, 2);
	assert_int_equal(m->local_index, 1);
	assert_int_equal(rwk_job_map_where(m, 1), RWK_WHERE_NODE);
	assert_int_equal(warnings, 0);
	rwk_job_map_free(m);
}

/* Some nodes not told: this node's ranks are known all the same. */
static void test_gaps(void **state)
{
	struct rwk_job_map *m;

	(void)state;
	reset();
	fake->node[0] = fake->node[4] = FAKE_NO_NODE;
	fake->nodes = 0;
	m = get();
	assert_int_equal(m->source, RWK_JOB_PMIX);
	assert_int_equal(m->node, RWK_NODE_NONE);
	assert_int_equal(m->nodes, 3);
	assert_false(m->nodes_exact);
	assert_int_equal(rwk_job_map_where(m, 1), RWK_WHERE_NODE);
	assert_int_equal(rwk_job_map_where(m, 0), RWK_WHERE_OTHER);
	assert_int_equal(rwk_job_map_node_of(m, 0), RWK_NODE_NONE);
	rwk_job_map_free(m);
}

/* A large job is not asked for rank by rank, a job of one node not at all. */
static void test_few_gets(void **state)
{
	struct rwk_job_map *m;

	(void)state;
	reset();
	fake->size = FAKE_RANKS;
	fake->nodes = 5000;
	m = get();
	assert_int_equal(m->source, RWK_JOB_PMIX);
	assert_int_equal(m->nodes, 5000);
	assert_int_equal(fake->node_gets, 0);
	assert_int_equal(rwk_job_map_where(m, 1), RWK_WHERE_NODE);
	assert_int_equal(rwk_job_map_where(m, 9999), RWK_WHERE_OTHER);
	rwk_job_map_free(m);
	reset();
	fake->local = "0-5";
	m = get();
	assert_int_equal(m->nodes, 1);
	assert_int_equal(m->local_index, 4);
	assert_int_equal(fake->node_gets, 0);
	rwk_job_map_free(m);
}

static uint64_t hash_in(const char *nspace)
{
	struct rwk_job_map *m;
	uint64_t hash;

	reset();
	fake->nspace = nspace;
	m = get();
	assert_string_equal(m->id, nspace);
	hash = m->hash;
	rwk_job_map_free(m);
	return hash;
}

/* PRRTE counts the jobs of a launch, those that were spawned too, behind an @; other names are whole. */
static void test_launches(void **state)
{
	uint64_t hash = hash_in("prterun-host-4711@1");

	(void)state;
	assert_true(hash_in("prterun-host-4711@12") == hash);
	assert_true(hash_in("prterun-host-4712@1") != hash);
	assert_true(hash_in("prterun-host-4711@") != hash);
	assert_true(hash_in("prterun-host-4711@1b") != hash);
	assert_true(hash_in("131073") != hash_in("131074"));
	assert_true(hash_in("slurm.pmix.9.0") != hash_in("slurm.pmix.9.1"));
}

static void expect_refused(const char *why)
{
	struct rwk_job_map *m = get();

	assert_int_equal(m->source, RWK_JOB_NONE);
	assert_int_equal(m->size, 1);
	assert_int_equal(warnings, 1);
	assert_string_equal(warning, why);
	rwk_job_map_free(m);
}

/* Wrong answers: one warning, and the next source; PMIx is left as it was. */
static void test_wrong(void **state)
{
	(void)state;
	reset();
	fake->size = 0;
	expect_refused(
		"PMIx: rank 4, and pmix.job.size is 0; a number above the rank and up to 16777216 would be right; "
		"this source of the job map is passed over");
	reset();
	fake->size = 4;
	expect_refused(
		"PMIx: rank 4, and pmix.job.size is 4; a number above the rank and up to 16777216 would be right; "
		"this source of the job map is passed over");
	reset();
	fake->local = NULL;
	expect_refused("PMIx: pmix.lpeers=(not there) is not a list of this node's ranks, rank 4 of 6 among them; "
		       "this source of the job map is passed over");
	reset();
	fake->local = "1,3";
	expect_refused("PMIx: pmix.lpeers=1,3 is not a list of this node's ranks, rank 4 of 6 among them; "
		       "this source of the job map is passed over");
	reset();
	fake->local = "4,9";
	expect_refused("PMIx: pmix.lpeers=4,9 is not a list of this node's ranks, rank 4 of 6 among them; "
		       "this source of the job map is passed over");
	reset();
	fake->local = "4,1,4";
	expect_refused("PMIx: pmix.lpeers=4,1,4 is not a list of this node's ranks, rank 4 of 6 among them; "
		       "this source of the job map is passed over");
	reset();
	fake->fail_init = 1;
	expect_refused("PMIx: PMIx_Init says UNREACHABLE; this source of the job map is passed over");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_few_gets),
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_wrong),
	};
	void *library = dlopen("test/topology/libpmix-fake.so", RTLD_NOW);

	if (!library || !(fake = dlsym(library, "fake_pmix"))) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "base/log.h"
#include "topology/machine.h"

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int warned;

static void count_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level == RWK_LOG_WARN && strstr(text, "is not understood by hwloc"))
		warned++;
}

static void load(struct rwk_machine *m, const char *name, const char *value)
{
	unsetenv("HWLOC_SYNTHETIC");
	unsetenv("HWLOC_XMLFILE");
	unsetenv("HWLOC_THISSYSTEM");
	if (name)
		setenv(name, value, 1);
	assert_int_equal(rwk_machine_load(m), 0);
}

/* What two sets of processors share at best, from one thread to different packages. */
static void test_distance(void **state)
{
	static const struct {
		const char *machine;
		uint32_t a_from, a_to, b_from, b_to; /* processors, in hwloc's order */
		enum rwk_locality expected;
	} cases[] = {
		{"pack:2 numa:2 l3:2 l2:2 core:1 pu:2", 0, 0, 0, 0, RWK_LOCALITY_CORE},
		{"pack:2 numa:2 l3:2 l2:2 core:1 pu:2", 0, 0, 1, 1, RWK_LOCALITY_CORE},
		{"pack:2 numa:2 l3:2 l2:2 core:1 pu:2", 0, 0, 2, 2, RWK_LOCALITY_L3},
		{"pack:2 numa:2 l3:2 l2:2 core:1 pu:2", 0, 0, 4, 4, RWK_LOCALITY_NUMA},
		{"pack:2 numa:2 l3:2 l2:2 core:1 pu:2", 0, 0, 8, 8, RWK_LOCALITY_PACKAGE},
		{"pack:2 numa:2 l3:2 l2:2 core:1 pu:2", 0, 0, 16, 16, RWK_LOCALITY_MACHINE},
		{"pack:2 numa:2 l3:2 l2:2 core:1 pu:2", 0, 3, 2, 3, RWK_LOCALITY_L3},
		{"pack:2 numa:2 l3:2 l2:2 core:1 pu:2", 0, 31, 0, 31, RWK_LOCALITY_MACHINE},
		{"pack:1 numa:1 l3:1 l2:2 core:2 pu:1", 0, 0, 1, 1, RWK_LOCALITY_L2},
		{"pack:1 numa:1 core:4 pu:1", 0, 0, 3, 3, RWK_LOCALITY_NUMA},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool a[64] = {false}, b[64] = {false};
		struct rwk_machine m;

		load(&m, "HWLOC_SYNTHETIC", cases[i].machine);
		assert_true(m.known && !m.this_system && m.processors <= 64);
		for (uint32_t p = cases[i].a_from; p <= cases[i].a_to; p++)
			a[p] = true;
		for (uint32_t p = cases[i].b_from; p <= cases[i].b_to; p++)
			b[p] = true;
		if (rwk_machine_distance(&m, a, b) != cases[i].expected)
			fail_msg("case %zu: %s, not %s", i, rwk_locality_text(rwk_machine_distance(&m, a, b)),
				rwk_locality_text(cases[i].expected));
		assert_int_equal(rwk_machine_locality(&m, getpid()), RWK_LOCALITY_UNKNOWN);
		rwk_machine_free(&m);
	}
}

/* hwloc takes this machine in silence if it cannot read the one it was told of; ropewalk says so. */
static void test_wrong_variables(void **state)
{
	static const char *const cases[][2] = {{"HWLOC_SYNTHETIC", "no machine"}, {"HWLOC_XMLFILE", "/nonexistent.xml"},
		{"HWLOC_SYNTHETIC", "core:2 pu:1"}, {NULL, NULL}};
	static const int expected[] = {1, 1, 0, 0};

	(void)state;
	rwk_log_set_sink(count_warning);
	for (int i = 0; i < 4; i++) {
		struct rwk_machine m;

		warned = 0;
		load(&m, cases[i][0], cases[i][1]);
		assert_int_equal(warned, expected[i]);
		assert_true(m.processors >= 1);
		rwk_machine_free(&m);
	}
	rwk_log_set_sink(NULL);
}

/* The first processor that this process may use, and only that from now on. */
static int bind_to_first(void)
{
	cpu_set_t set, one;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set)) {
			CPU_SET(cpu, &one);
			assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
			return cpu;
		}
	}
	fail_msg("no processor below %d", CPU_SETSIZE);
	return -1;
}

/* In a child, so that the test's own binding stays: 0 if all is as it should be. */
static int check_bound(void)
{
	struct rwk_machine m;
	int cpu = bind_to_first();

	load(&m, NULL, NULL);
	if (m.my_processors != 1 || m.my_cores != 1 || m.bound != (m.processors > 1))
		return 1;
	if (rwk_machine_locality(&m, getpid()) != RWK_LOCALITY_CORE)
		return 2;
	rwk_machine_free(&m);
	if (cpu)
		return 0;
	/* The machine in the file has card eno1 beside processor 0 and ens2 in the other package. */
	setenv("HWLOC_THISSYSTEM", "1", 1);
	setenv("HWLOC_XMLFILE", "machine.xml", 1);
	if (rwk_machine_load(&m))
		return 3;
	if (m.nics != 2 || strcmp(m.nic[0], "eno1") || !m.nic_near[0] || strcmp(m.nic[1], "ens2") || m.nic_near[1])
		return 4;
	rwk_machine_free(&m);
	return 0;
}

/* A process bound to one processor: counts, distance to itself, and which network card is near. */
static void test_bound(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(check_bound());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Without hwloc the numbers are the same. */
static void test_count(void **state)
{
	struct rwk_machine whole, counted;

	(void)state;
	load(&whole, NULL, NULL);
	assert_false(rwk_machine_described());
	rwk_machine_count(&counted);
	assert_false(counted.known);
	assert_true(counted.this_system);
	assert_int_equal(counted.processors, whole.processors);
	assert_int_equal(counted.my_processors, whole.my_processors);
	assert_int_equal(counted.bound, whole.bound);
	assert_true(counted.memory && counted.memory == whole.memory);
	rwk_machine_free(&whole);
	setenv("HWLOC_XMLFILE", "machine.xml", 1);
	assert_true(rwk_machine_described());
	unsetenv("HWLOC_XMLFILE");
}

/* The same for a process that is bound to one processor. */
static int check_count_bound(void)
{
	struct rwk_machine m;

	bind_to_first();
	rwk_machine_count(&m);
	return m.my_processors != 1 || m.my_cores != 1 || m.bound != (m.processors > 1);
}

static void test_count_bound(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(check_count_bound());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Writes a file of a stand-in for the system's folders, whose parents it makes. */
static void put(const char *root, const char *path, const char *text)
{
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (char *c = name + strlen(root) + 1; (c = strchr(c, '/')); c++) {
		*c = 0;
		if (mkdir(name, 0700))
			assert_int_equal(errno, EEXIST);
		*c = '/';
	}
	f = fopen(name, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

#define CPUS   "/sys/devices/system/cpu/online"
#define GROUPS "/proc/self/cgroup"
#define V2     "/sys/fs/cgroup"
#define V1     "/sys/fs/cgroup/cpuset"

/* The processors of a container, by what the system's files say. */
static void test_container(void **state)
{
	static const struct {
		uint32_t expected;
		const char *file[4][2];
	} cases[] = {
		{8, {{CPUS, "0-7\n"}}},
		{3, {{CPUS, "0,2-3\n"}}},
		{4, {{CPUS, "0-7\n"}, {GROUPS, "0::/job/step\n"}, {V2 "/job/step/cpuset.cpus.effective", "2-5\n"}}},
		/* The group has no cpuset of its own. */
		{2, {{CPUS, "0-7\n"}, {GROUPS, "0::/job/step\n"}, {V2 "/job/cpuset.cpus.effective", "2,5\n"}}},
		/* The container is at the top of what it sees. */
		{1, {{CPUS, "0-7\n"}, {GROUPS, "0::/\n"}, {V2 "/cpuset.cpus.effective", "6\n"}}},
		{1, {{CPUS, "0-7\n"}, {GROUPS, "0::/../other\n"}, {V2 "/cpuset.cpus.effective", "6\n"}}},
		/* Version 1, alone and beside version 2. */
		{5, {{CPUS, "0-7\n"}, {GROUPS, "4:memory:/a\n3:cpuset,cpu:/b\n"}, {V1 "/b/cpuset.cpus", "0-3,6\n"}}},
		{6, {{CPUS, "0-7\n"}, {GROUPS, "2:cpu,cpuset:/b\n0::/b\n"}, {V1 "/cpuset.cpus", "0-5\n"}}},
		/* Another controller's name begins like it. */
		{8, {{CPUS, "0-7\n"}, {GROUPS, "3:cpusets:/b\n"}, {V1 "/b/cpuset.cpus", "0-3\n"}}},
		/* Nothing, or nothing that can be read, is no limit. */
		{8, {{CPUS, "0-7\n"}, {GROUPS, "0::/job\n"}, {V2 "/job/cpuset.cpus.effective", "\n"}}},
		{8, {{CPUS, "0-7\n"}, {GROUPS, "0::/job\n"}, {V2 "/job/cpuset.cpus.effective", "0-3 or so\n"}}},
		{8, {{CPUS, "0-7\n"}, {GROUPS, "no groups\n:\n\n"}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char root[] = "/tmp/rwk-machine-XXXXXX";
		uint32_t n;

		assert_non_null(mkdtemp(root));
		for (int k = 0; k < 4 && cases[i].file[k][0]; k++)
			put(root, cases[i].file[k][0], cases[i].file[k][1]);
		n = rwk_machine_processors(root);
		assert_int_equal(nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
		if (n != cases[i].expected)
			fail_msg("case %zu: %u processors, not %u", i, n, cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_wrong_variables),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_count_bound),
		cmocka_unit_test(test_container),
	};
	const char *srcdir = getenv("srcdir");
	char maps[4096];

	snprintf(maps, sizeof(maps), "%s/test/topology/maps", srcdir ? srcdir : ".");
	if (chdir(maps)) {
		perror(maps);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

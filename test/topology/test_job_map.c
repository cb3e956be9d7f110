/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Job maps against what is expected of them. Each file maps/<case>.txt is one case: the environment, a line "---", and
 * the text that the map prints, after the warnings that were logged on the way. Beside variables (NAME=value) a case
 * may say
 *     @job_file=<file>       the parameter job_file
 *     @socket_maker=<n>      who made the socket of PMI_FD
 *     @maker_words=<a b ...> its command line
 *     @machine               ask hwloc too; its variables (HWLOC_...) are set for real
 * With RWK_WRITE_EXPECTED=1 the second halves are written anew, to be read with care.
 */
#include "rwk_test.h"

#include "base/log.h"
#include "topology/job_map.h"

#include <dirent.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_VARIABLES 40

struct map_case {
	char name[300];
	char *text;     /* the file, cut into lines */
	char *head;     /* a copy of what stands above the line of dashes */
	char *expected; /* what stands below it */
	struct {
		const char *name, *value;
	} variable[MAX_VARIABLES];
	int variables;
	bool machine;
	uint64_t socket_maker;
	const char *maker_words;
	struct rwk_params params;
};

static FILE *warnings;

static void collect_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level == RWK_LOG_WARN)
		fprintf(warnings, "warning: %s\n", text);
}

static const char *case_getenv(void *arg, const char *name)
{
	const struct map_case *c = arg;

	for (int i = 0; i < c->variables; i++) {
		if (!strcmp(c->variable[i].name, name))
			return c->variable[i].value;
	}
	return NULL;
}

static uint64_t case_socket_maker(void *arg, int fd)
{
	(void)fd;
	return ((const struct map_case *)arg)->socket_maker;
}

static size_t case_maker_words(void *arg, int fd, char *to, size_t room)
{
	const struct map_case *c = arg;
	size_t len;

	(void)fd;
	if (!c->maker_words)
		return 0;
	len = strlen(c->maker_words) + 1;
	assert_true(len <= room);
	for (size_t i = 0; i < len; i++)
		to[i] = c->maker_words[i] == ' ' ? 0 : c->maker_words[i];
	return len;
}

static char *read_all(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = malloc(8192);
	size_t len;

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	assert_non_null(text);
	len = fread(text, 1, 8191, f);
	assert_true(feof(f));
	fclose(f);
	text[len] = 0;
	return text;
}

static void read_variable(struct map_case *c, char *line)
{
	char *value = strchr(line, '=');

	if (!strcmp(line, "@machine")) {
		c->machine = true;
		return;
	}
	if (!value)
		fail_msg("%s: cannot read \"%s\"", c->name, line);
	*value++ = 0;
	if (!strcmp(line, "@job_file")) {
		c->params.job_file = value;
	} else if (!strcmp(line, "@socket_maker")) {
		c->socket_maker = strtoull(value, NULL, 10);
	} else if (!strcmp(line, "@maker_words")) {
		c->maker_words = value;
	} else {
		assert_true(c->variables < MAX_VARIABLES);
		c->variable[c->variables].name = line;
		c->variable[c->variables++].value = value;
	}
}

static void read_case(struct map_case *c, const char *name)
{
	char *end, *save = NULL;

	memset(c, 0, sizeof(*c));
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->text = read_all(name);
	c->expected = "";
	end = strstr(c->text, "\n---\n");
	if (end) {
		end[1] = 0;
		c->expected = end + 5;
	}
	c->head = strdup(c->text);
	for (char *line = strtok_r(c->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (line[0] != '#')
			read_variable(c, line);
	}
}

/* hwloc reads its variables itself. */
static void set_hwloc_variables(const struct map_case *c)
{
	unsetenv("HWLOC_SYNTHETIC");
	unsetenv("HWLOC_XMLFILE");
	unsetenv("HWLOC_THISSYSTEM");
	for (int i = 0; i < c->variables; i++) {
		if (!strncmp(c->variable[i].name, "HWLOC_", 6))
			setenv(c->variable[i].name, c->variable[i].value, 1);
	}
}

/* What the map of the case prints, behind its warnings. */
static char *run_case(struct map_case *c)
{
	static const uid_t uid = 1000;
	struct rwk_job_env env = {.get = case_getenv,
		.arg = c,
		.params = &c->params,
		.no_pmix = true,
		.machine = c->machine ? RWK_JOB_WHOLE : RWK_JOB_NO_MACHINE,
		.uid = &uid,
		.socket_maker = case_socket_maker,
		.socket_maker_words = case_maker_words};
	struct rwk_job_map *map;
	char *text = NULL;
	size_t len;

	set_hwloc_variables(c);
	warnings = open_memstream(&text, &len);
	assert_non_null(warnings);
	rwk_log_set_sink(collect_warning);
	assert_int_equal(rwk_job_map_get(&env, &map), 0);
	rwk_log_set_sink(NULL);
	rwk_job_map_print(map, warnings);
	rwk_job_map_free(map);
	fclose(warnings);
	return text;
}

static void write_case(const struct map_case *c, const char *text)
{
	FILE *f = fopen(c->name, "w");

	assert_non_null(f);
	fprintf(f, "%s---\n%s", c->head, text);
	fclose(f);
}

/* Every case prints what its file expects. */
static void test_cases(void **state)
{
	DIR *dir = opendir(".");
	int cases = 0, wrong = 0;
	struct dirent *e;
	struct map_case c;
	char *text;

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		const char *dot = strrchr(e->d_name, '.');

		if (!dot || strcmp(dot, ".txt"))
			continue;
		read_case(&c, e->d_name);
		text = run_case(&c);
		if (getenv("RWK_WRITE_EXPECTED")) {
			write_case(&c, text);
		} else if (strcmp(text, c.expected)) {
			print_error("%s: expected\n%sbut got\n%s", c.name, c.expected, text);
			wrong++;
		}
		free(text);
		free(c.text);
		free(c.head);
		cases++;
	}
	closedir(dir);
	assert_int_equal(wrong, 0);
	assert_true(cases >= 12);
}

/* The hash of the job that a case describes, as that user. */
static uint64_t hash_of(const char *name, uid_t uid)
{
	struct map_case c;
	struct rwk_job_env env = {.get = case_getenv,
		.arg = &c,
		.params = &c.params,
		.no_pmix = true,
		.machine = RWK_JOB_NO_MACHINE,
		.uid = &uid,
		.socket_maker = case_socket_maker,
		.socket_maker_words = case_maker_words};
	struct rwk_job_map *map;
	uint64_t hash;

	read_case(&c, name);
	assert_int_equal(rwk_job_map_get(&env, &map), 0);
	hash = map->hash;
	rwk_job_map_free(map);
	free(c.text);
	free(c.head);
	return hash;
}

/*
 * Two users' jobs differ, and so do two jobs of a user; ranks of a job agree, whatever names it to them, and so do
 * those that it has spawned.
 */
static void test_hashes(void **state)
{
	uint64_t hash = hash_of("ompi-one-node.txt", 1000);

	(void)state;
	assert_true(hash_of("ompi-no-namespace.txt", 1000) == hash);
	assert_true(hash_of("ompi-spawned.txt", 1000) == hash);
	assert_true(hash_of("ompi-one-node.txt", 1001) != hash);
	assert_true(hash_of("ompi-other-job.txt", 1000) != hash);
	assert_true(hash_of("ompi-other-launch.txt", 1000) != hash);
	hash = hash_of("hydra-told.txt", 1000);
	assert_true(hash_of("hydra-told-spawned.txt", 1000) == hash);
	assert_true(hash_of("hydra-told-other-launch.txt", 1000) != hash);
	hash = hash_of("slurm-block.txt", 1000);
	assert_true(hash_of("slurm-spawned.txt", 1000) == hash);
	assert_true(hash_of("slurm-spawned-again.txt", 1000) == hash);
	assert_true(hash_of("slurm-spawned-elsewhere.txt", 1000) != hash);
}

/* A job's own map counts, and asks hwloc only where its variables describe a machine. */
static void test_counted(void **state)
{
	static const struct rwk_params params;
	struct rwk_job_env env = {.params = &params, .no_pmix = true};
	struct rwk_job_map *map;

	(void)state;
	unsetenv("HWLOC_XMLFILE");
	unsetenv("HWLOC_SYNTHETIC");
	assert_int_equal(rwk_job_map_get(&env, &map), 0);
	assert_true(map->machine.processors && map->machine.memory && !map->machine.known);
	rwk_job_map_free(map);
	setenv("HWLOC_SYNTHETIC", "core:7 pu:1", 1);
	assert_int_equal(rwk_job_map_get(&env, &map), 0);
	assert_true(map->machine.known);
	assert_int_equal(map->machine.processors, 7);
	rwk_job_map_free(map);
	unsetenv("HWLOC_SYNTHETIC");
}

/* Where peers are, with whole, local and no knowledge. */
static void test_where(void **state)
{
	static const struct {
		const char *name;
		uint32_t peer, local_index;
		enum rwk_where where;
	} cases[] = {
		{"slurm-cyclic.txt", 5, 1, RWK_WHERE_SELF},
		{"slurm-cyclic.txt", 1, 0, RWK_WHERE_NODE},
		{"slurm-cyclic.txt", 2, RWK_RANK_NONE, RWK_WHERE_OTHER},
		{"slurm-cyclic.txt", 7, RWK_RANK_NONE, RWK_WHERE_UNKNOWN},
		{"slurm-arbitrary.txt", 0, 0, RWK_WHERE_NODE},
		{"slurm-arbitrary.txt", 1, RWK_RANK_NONE, RWK_WHERE_OTHER},
		{"ompi-three-nodes.txt", 5, 1, RWK_WHERE_SELF},
		{"ompi-three-nodes.txt", 4, RWK_RANK_NONE, RWK_WHERE_UNKNOWN},
		{"file-layout.txt", 0, RWK_RANK_NONE, RWK_WHERE_UNKNOWN},
		{"none.txt", 0, 0, RWK_WHERE_SELF},
		{"none.txt", 1, RWK_RANK_NONE, RWK_WHERE_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct map_case c;
		struct rwk_job_env env = {.get = case_getenv,
			.arg = &c,
			.params = &c.params,
			.no_pmix = true,
			.machine = RWK_JOB_NO_MACHINE};
		struct rwk_job_map *map;

		read_case(&c, cases[i].name);
		assert_int_equal(rwk_job_map_get(&env, &map), 0);
		if (rwk_job_map_where(map, cases[i].peer) != cases[i].where ||
			rwk_job_map_local_index(map, cases[i].peer) != cases[i].local_index)
			fail_msg("%s: peer %u is %d with index %u", cases[i].name, cases[i].peer,
				rwk_job_map_where(map, cases[i].peer), rwk_job_map_local_index(map, cases[i].peer));
		rwk_job_map_free(map);
		free(c.text);
		free(c.head);
	}
}

/* Wrong job files are refused with line and reason. */
static void test_file_errors(void **state)
{
	static const struct {
		const char *content, *why;
	} cases[] = {
		{"", ":0: the file ends without a ranks line"},
		{"ranks 4\n",
			":1: the file ends and rank 0 is on no node; a layout or another node line would be right"},
		{"ranks 0\n", ":1: ranks 0 is not a number from 1 to 16777216"},
		{"ranks 99999999999999999999\n", ":1: ranks 99999999999999999999 is not a number from 1 to 16777216"},
		{"ranks -1\n", ":1: ranks -1 is not a number from 1 to 16777216"},
		{"ranks 4\n\nranks 4\n", ":3: a second ranks line; one is right"},
		{"layout 2x2\n", ":1: layout before ranks; the number of ranks has to come first"},
		{"ranks 4\nlayout 2x\n", ":2: layout 2x is not <nodes>x<ranks a node>, as in 4x8"},
		{"ranks 4\nlayout 2*2\n", ":2: layout 2*2 is not <nodes>x<ranks a node>, as in 4x8"},
		{"ranks 5\nlayout 2x2\n", ":2: layout 2x2 has room for 4 ranks, but there are 5"},
		{"ranks 4\nlayout 2x2 random\n", ":2: layout 2x2 random: block or cyclic would be right"},
		{"ranks 4\nlayout 2x2\nnode a 0\n", ":3: node after layout; either one layout or node lines are right"},
		{"ranks 4\nnode a 0\nlayout 2x2\n",
			":3: layout after another layout or node line; either one layout or node lines are right"},
		{"ranks 4\nnode a 0-1\nnode a 2-3\n", ":3: node a was there before; one line a node is right"},
		{"ranks 4\nnode a 0-4\n",
			":2: cannot read \"0-4\" as ranks below 4; a list as in 0-3,8,10-20:2 would be right"},
		{"ranks 4\nnode a 3-0\n",
			":2: cannot read \"3-0\" as ranks below 4; a list as in 0-3,8,10-20:2 would be right"},
		{"ranks 4\nnode a 0,\n",
			":2: cannot read \"0,\" as ranks below 4; a list as in 0-3,8,10-20:2 would be right"},
		{"ranks 4\nnode a 0-3:0\n",
			":2: cannot read \"0-3:0\" as ranks below 4; a list as in 0-3,8,10-20:2 would be right"},
		{"ranks 4\nnode a 0-2\nnode b 2-3\n", ":3: rank 2 is on a node already"},
		{"ranks 4\nnode a\n", ":2: node takes 2 words, not 1"},
		{"ranks 4\nlayout 2x2\nrank 4\n", ":3: rank 4 is not a number from 0 to 3"},
		{"ranks 4\nlayout 2x2\nrank $ABSENT\nrank 1\n", ":4: a second rank line; one is right"},
		{"ranks 4\nlayout 2x2\nrank $PRESENT\n", ":3: rank $PRESENT = nine is not a number from 0 to 3"},
		{"hosts 4\n", ":1: hosts is not one of: job ranks layout node rank"},
		{"job a b\n", ":1: job takes 1 word, not 2"},
	};
	struct map_case c = {.variable = {{"PRESENT", "nine"}}, .variables = 1};
	struct rwk_job_env env = {.get = case_getenv, .arg = &c, .params = &c.params};
	char path[] = "/tmp/rwk-test-map-XXXXXX", why[512], expected[600];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rwk_job_map *map = NULL;
		ssize_t len = (ssize_t)strlen(cases[i].content);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, cases[i].content, (size_t)len, 0), len);
		snprintf(expected, sizeof(expected), "%s%s", path, cases[i].why);
		assert_int_equal(rwk_job_map_read(path, &env, &map, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, expected);
		assert_null(map);
	}
	close(fd);
	unlink(path);
	assert_int_equal(rwk_job_map_read(path, &env, NULL, why, sizeof(why)), -ENOENT);
}

/* A million ranks: in blocks and in turn the map is one run; the wrong sizes are refused. */
static void test_million(void **state)
{
	struct rwk_job_map *map;

	(void)state;
	assert_int_equal(rwk_job_map_imagine(15625, 64, &map), 0);
	assert_int_equal(map->size, 1000000);
	assert_int_equal(map->nodes, 15625);
	assert_int_equal(map->ranks_per_node, 64);
	assert_int_equal(map->local_size, 64);
	assert_int_equal(rwk_job_map_node_of(map, 999999), 15624);
	assert_int_equal(rwk_job_map_where(map, 63), RWK_WHERE_NODE);
	assert_int_equal(rwk_job_map_where(map, 64), RWK_WHERE_OTHER);
	assert_true(rwk_node_map_bytes(&map->map) <= 100);
	rwk_job_map_free(map);
	assert_int_equal(rwk_job_map_imagine(0, 1, &map), -EINVAL);
	assert_int_equal(rwk_job_map_imagine(1, 0, &map), -EINVAL);
	assert_int_equal(rwk_job_map_imagine(1 << 20, 1 << 20, &map), -EINVAL);
}

/* This program as a daemon of Hydra's: it makes a rank's socket, and says what the rank calls the job. */
static int be_daemon(void)
{
	static const struct rwk_params params;
	struct rwk_job_env env = {.params = &params, .no_pmix = true, .machine = RWK_JOB_NO_MACHINE};
	struct rwk_job_map *map;
	char number[16];
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 1;
	snprintf(number, sizeof(number), "%d", fds[1]);
	setenv("PMI_FD", number, 1);
	setenv("PMI_RANK", "0", 1);
	setenv("PMI_SIZE", "4", 1);
	setenv("MPI_LOCALNRANKS", "2", 1);
	setenv("MPI_LOCALRANKID", "0", 1);
	if (rwk_job_map_get(&env, &map))
		return 1;
	puts(map->id);
	rwk_job_map_free(map);
	return 0;
}

/* The launch is known by what the process that made the socket was told. */
static void test_daemon(void **state)
{
	char command[PATH_MAX + 64], id[256] = "";
	ssize_t n;
	FILE *f;

	(void)state;
	n = readlink("/proc/self/exe", command, PATH_MAX);
	assert_true(n > 0);
	snprintf(command + n, 64, " --control-port alpha:33441 --rmk user");
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(id, sizeof(id), f));
	assert_int_equal(pclose(f), 0);
	assert_string_equal(id, "hydra-alpha:33441\n");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_hashes),
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_file_errors),
		cmocka_unit_test(test_million),
		cmocka_unit_test(test_daemon),
	};
	const char *srcdir = getenv("srcdir");
	char maps[4096];

	if (argc > 1 && !strcmp(argv[1], "--control-port"))
		return be_daemon();
	snprintf(maps, sizeof(maps), "%s/test/topology/maps", srcdir ? srcdir : ".");
	if (chdir(maps)) {
		perror(maps);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

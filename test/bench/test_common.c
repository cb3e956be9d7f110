/* SPDX-License-Identifier: BSD-3-Clause */
/* What all benchmarks rest upon: the check of contents finds what is wrong, sizes are read as written, medians are
 * medians. */
#include "rwk_test.h"

#include "bench/common/cpu.h"
#include "bench/common/data.h"
#include "bench/common/options.h"
#include "bench/common/report.h"
#include "bench/common/stats.h"
#include "bench/common/sweep.h"
#include "bench/common/ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct bench_team team = {.rank = 1, .ranks = 2};

/* How many data of a message of `size` bytes are found wrong against the contents of `seed`. */
static unsigned long wrong(const void *data, size_t size, uint64_t seed)
{
	/* As if one had been found before: only a run's first is printed. */
	struct bench_run r = {.team = &team, .size = size, .touch = BENCH_TOUCH_CHECK, .errors = 1};

	bench_read(&r, data, size, seed);
	return r.errors - 1;
}

/* Contents of every short length pass as they are; a bit flipped anywhere, another message's or sender's contents do
 * not. */
static void contents(void **state)
{
	struct bench_run r = {.team = &team, .touch = BENCH_TOUCH_CHECK};
	unsigned char data[33];

	(void)state;
	for (size_t size = 1; size <= sizeof(data); size++) {
		bench_write(&r, data, size, bench_seed(0, 1, 7));
		assert_int_equal(wrong(data, size, bench_seed(0, 1, 7)), 0);
		for (size_t i = 0; i < size; i++) {
			data[i] ^= 0x10;
			assert_int_equal(wrong(data, size, bench_seed(0, 1, 7)), 1);
			data[i] ^= 0x10;
		}
		assert_int_not_equal(wrong(data, size, bench_seed(0, 1, 8)), 0);
		assert_int_not_equal(wrong(data, size, bench_seed(1, 0, 7)), 0);
	}
}

/* Writing dirties every byte, with another value for the next message, and nothing beyond. */
static void dirty(void **state)
{
	struct bench_run r = {.team = &team, .size = 9, .touch = BENCH_TOUCH_DIRTY};
	unsigned char first[10] = {0}, second[10] = {0};

	(void)state;
	bench_write(&r, first, 9, bench_seed(0, 1, 1));
	bench_write(&r, second, 9, bench_seed(0, 1, 2));
	for (size_t i = 0; i < 9; i++)
		assert_int_not_equal(first[i], second[i]);
	assert_int_equal(first[9], 0);
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		size_t grain;
		size_t count, first, last; /* count 0: refused */
	} good[] = {{"8", 0, 1, 8, 8}, {"0,1:4M", 0, 24, 0, 4 << 20}, {"3:13", 0, 3, 3, 12},
		{"1k,2K", 4, 2, 1024, 2048}, {"1G", 0, 1, 1 << 30, 1 << 30}, {"4:4", 4, 1, 4, 4}, {"", 0, 0, 0, 0},
		{"8,", 0, 0, 0, 0}, {"8x", 0, 0, 0, 0}, {"0:8", 0, 0, 0, 0}, {"8:4", 0, 0, 0, 0}, {"2G", 0, 0, 0, 0},
		{"-1", 0, 0, 0, 0}, {"1:8", 4, 0, 0, 0}, {"99999999999999999999", 0, 0, 0, 0}};
	struct bench_options o;
	char why[120];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int rc = bench_sizes_parse(good[i].text, good[i].grain, &o, why, sizeof(why));

		assert_int_equal(rc, good[i].count ? 0 : -EINVAL);
		if (rc)
			continue;
		assert_int_equal(o.sizes, good[i].count);
		assert_int_equal(o.size[0], good[i].first);
		assert_int_equal(o.size[o.sizes - 1], good[i].last);
	}
}

static void medians(void **state)
{
	double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
	struct bench_stats s = bench_stats_of(odd, 3);

	(void)state;
	assert_true(s.median == 3 && s.min == 1 && s.max == 5);
	s = bench_stats_of(even, 4);
	assert_true(s.median == 2.5 && s.min == 1 && s.max == 4);
	s = bench_stats_of(one, 1);
	assert_true(s.median == 7 && s.min == 7 && s.max == 7);
}

/* Of two ranks the slower takes a second for what takes the other any time. */
static int of_the_slower(struct bench_team *t, double *value)
{
	(void)t;
	*value = *value > 0 ? 1 : 0;
	return 0;
}

/* Four loops of five iterations, of which the first finds out how many fill the time; then the team is broken. */
static int four_loops(struct bench_run *r, double *seconds)
{
	static int loops;

	(void)r;
	*seconds = 1e-6;
	return loops++ < 4 ? 0 : -ECONNRESET;
}

/* What is counted for slices is the time of the slowest rank, as in a table. */
static void counted(void **state)
{
	static const struct bench_test test = {.name = "counted", .messages = 2, .run = four_loops};
	struct bench_team both = {.ranks = 2, .largest = of_the_slower};
	char path[] = "/tmp/rwk_ticks.XXXXXX";
	struct bench_options o = {
		.sizes = 1, .size = {8}, .iterations = 5, .warmup = 1, .window = 1, .seconds = 1, .ticks = path};
	struct bench_ticks ticks;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(ticks)), 0);
	assert_int_equal(bench_sweep(&test, &o, &both), -ECONNRESET);
	assert_int_equal(pread(fd, &ticks, sizeof(ticks), 0), sizeof(ticks));
	close(fd);
	unlink(path);
	assert_int_equal(ticks.messages, 3 * 5 * 2);
	assert_int_equal(ticks.nanoseconds, 3000000000u);
	assert_int_equal(ticks.pid[0], getpid());
}

/* A microsecond an iteration; one of the loops is held up for as long as 20,000 of them. */
static struct {
	unsigned loops, held_up;
	unsigned long iterations; /* of the repeats */
} held;

static int sometimes_held_up(struct bench_run *r, double *seconds)
{
	*seconds = 1e-6 * (double)r->iterations + (held.loops++ == held.held_up ? 0.02 : 0);
	return 0;
}

static void note_iterations(struct bench_run *r)
{
	held.iterations = r->iterations;
}

static int of_this_rank(struct bench_team *t, double *value)
{
	(void)t;
	(void)value;
	return 0;
}

/* One loop that is held up, the first by its connections or any other, does not change how many fill the time. */
static void calibrated(void **state)
{
	static const struct bench_test test = {
		.name = "calibrated", .messages = 1, .run = sometimes_held_up, .after = note_iterations};
	struct bench_team one = {.rank = 1, .ranks = 2, .largest = of_this_rank};
	struct bench_options o = {.sizes = 1, .size = {8}, .warmup = 10, .window = 1, .seconds = 0.05, .repeats = 1};

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		held.loops = 0;
		held.held_up = i;
		assert_int_equal(bench_sweep(&test, &o, &one), 0);
		assert_in_range(held.iterations, 49999, 50000);
	}
}

/* A transport that delivers in the first loops, and nothing after them. */
static unsigned delivers;

static int deliver(struct bench_run *r, double *seconds)
{
	for (unsigned i = 0; i < r->window; i++)
		bench_before_send(r, r->send + bench_slot(r, i), r->size, bench_seed(0, 1, r->base + i));
	if (delivers) {
		memcpy(r->recv, r->send, (size_t)r->slots * r->stride);
		delivers--;
	}
	for (unsigned i = 0; i < r->window; i++)
		bench_after_recv(r, r->recv + bench_slot(r, i), r->size, bench_seed(0, 1, r->base + i));
	*seconds = 1e-6;
	return 0;
}

/* What has come in a loop before is not what is to come in this one, be the loops of one iteration each. */
static void stale(void **state)
{
	static const struct bench_test test = {.name = "stale", .messages = 1, .windowed = true, .run = deliver};
	struct bench_team one = {.rank = 1, .ranks = 2, .largest = of_this_rank};
	struct bench_options o = {.sizes = 1,
		.size = {8},
		.iterations = 1,
		.warmup = 1,
		.window = 4,
		.seconds = 1,
		.repeats = 3,
		.touch = BENCH_TOUCH_CHECK};

	(void)state;
	for (unsigned loops = 0; loops < 5; loops++) {
		delivers = loops;
		assert_int_equal(bench_sweep(&test, &o, &one), loops < 4);
	}
}

/* A file of that length, with `c` at its end, and nothing beside it. */
static void is_there(const char *path, long size, int c)
{
	char part[96];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_int_equal(fseek(f, -1, SEEK_END), 0);
	assert_int_equal(fgetc(f), c);
	assert_int_equal(ftell(f), size);
	fclose(f);
	snprintf(part, sizeof(part), "%s.part", path);
	assert_int_equal(access(part, F_OK), -1);
}

/* Results that do not fit, however much of them does, leave those that were there; and by a link all is as without. */
static void no_room(void **state)
{
	char folder[] = "/tmp/rwk.no-room.XXXXXX", path[64], by_link[64];
	struct rlimit usual, most = {.rlim_cur = 100000};
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/results", folder);
	snprintf(by_link, sizeof(by_link), "%s/link", folder);
	assert_int_equal(symlink("results", by_link), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
	most.rlim_max = usual.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &most), 0);
	for (int size = 50000; size <= 150000; size += 50000) {
		const char *by = size == 100000 ? by_link : path;
		FILE *f;

		assert_int_equal(bench_json_open("no_room", by, &f), 0);
		fprintf(f, "%*d", size, size / 50000);
		assert_int_equal(bench_json_close(f, "no_room", by), size <= 100000 ? 0 : -EFBIG);
		is_there(path, size <= 100000 ? size : 100000, size <= 50000 ? '1' : '2');
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
	assert_int_equal(lstat(by_link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(bench_json_open("no_room", "/tmp/rwk.absent/results", &(FILE *){NULL}), -ENOENT);
	assert_int_equal(unlink(by_link) + unlink(path) + rmdir(folder), 0);
}

/* A table that is still in stdout's buffer, and does not fit the disk, is missed. */
static void no_table(void **state)
{
	int status;
	pid_t child;

	(void)state;
	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (!freopen("/dev/full", "w", stdout))
			_exit(2);
		printf("a row\n");
		_exit(bench_printed("no_table") != -EIO);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(bench_printed("no_table"), 0);
}

/* A /sys in the folder, with CPUs from 0 on, of which the kernel says these siblings. */
static void lay_out(const char *folder, const char *siblings)
{
	char command[512];

	snprintf(command, sizeof(command),
		"cd %s && rm -rf sys && n=0 && for s in %s; do d=sys/devices/system/cpu/cpu$n/topology; "
		"mkdir -p $d && echo $s >$d/thread_siblings_list && n=$((n + 1)); done",
		folder, siblings);
	assert_int_equal(system(command), 0);
}

/* Processes get a core each while there is one, then the cores' second threads, in the order of the CPUs' numbers. */
static void cores_first(void **state)
{
	static const struct {
		const char *siblings; /* as the kernel says them, of each CPU there is */
		int cpu[8], expected[8], count;
	} cases[] = {
		{"0,4 1,5 2,6 3,7 0,4 1,5 2,6 3,7", {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, 8},
		{"0-1 0-1 2-3 2-3 4-5 4-5 6-7 6-7", {0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 4, 6, 1, 3, 5, 7}, 8},
		{"0-3 0-3 0-3 0-3 4 5", {0, 1, 2, 3, 4, 5}, {0, 4, 5, 1, 2, 3}, 6},
		{"0-1 0-1 2-3 2-3 4-5 4-5", {1, 2, 3, 5}, {1, 2, 5, 3}, 4}, /* the others are not ours */
		{"0-1 0-1", {0, 1, 2, 3}, {0, 2, 3, 1}, 4},                 /* of two nothing is known */
	};
	char folder[] = "/tmp/rwk.cores.XXXXXX", command[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int cpu[8];

		lay_out(folder, cases[i].siblings);
		memcpy(cpu, cases[i].cpu, sizeof(cpu));
		bench_order_cpus(folder, cpu, cases[i].count);
		assert_memory_equal(cpu, cases[i].expected, (size_t)cases[i].count * sizeof(*cpu));
	}
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents),
		cmocka_unit_test(dirty),
		cmocka_unit_test(sizes),
		cmocka_unit_test(medians),
		cmocka_unit_test(counted),
		cmocka_unit_test(calibrated),
		cmocka_unit_test(stale),
		cmocka_unit_test(no_room),
		cmocka_unit_test(no_table),
		cmocka_unit_test(cores_first),
	};

	return cmocka_run_group_tests_name("bench/common", tests, NULL, NULL);
}

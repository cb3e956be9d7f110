/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long it takes from nothing to the first message, and what a rank takes at rest then: by ropewalk and by others,
 * one after the other, for 1, 2, 4 and so on ranks of this node. Each rank sends its first message to the next one.
 *
 *   find      from the first call until it is known what there is: fi_getinfo, which asks all that libfabric has,
 *             whichever is wanted; ucp_init
 *   open      from the first call until the endpoint has an address
 *   message   from the first call until a message has come and one has gone; the wait for the others' addresses is part
 *   KiB       PSS, what is shared counted in parts: what the stack has added to the bare process
 *   files, threads  added, likewise
 *
 * The ranks begin together, so that with more ranks than cores each waits for its turn: as in a job that starts.
 */
#include "bench/common/clock.h"
#include "bench/common/report.h"
#include "bench/common/stats.h"
#include "bench/startup/startup.h"
#include "config.h"

#include <argp.h>
#include <dirent.h>
#include <stdbool.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 60 /* seconds that a rank has */

struct counts {
	double kib; /* PSS */
	unsigned files, threads;
};

/** What the ranks share. */
struct team {
	unsigned ranks;
	unsigned arrived; /* at all barriers so far */
	struct startup_address address[STARTUP_RANKS];
	struct result {
		double find, open, message; /* seconds */
		struct counts before, after;
		char why[160]; /* what went wrong; empty: nothing */
	} of[STARTUP_RANKS];
};

static void barrier(struct team *t, unsigned nth)
{
	__atomic_add_fetch(&t->arrived, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&t->arrived, __ATOMIC_ACQUIRE) < nth * t->ranks)
		sched_yield();
}

static unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static struct counts taken(void)
{
	struct counts c = {0, entries("/proc/self/fd"), entries("/proc/self/task")};
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[128];

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Pss: %lf kB", &c.kib) != 1)
		;
	if (f)
		fclose(f);
	return c;
}

static const char *begin(struct team *t, unsigned me, const struct startup_stack *s, const char *name)
{
	struct result *r = &t->of[me];
	double start = bench_now();
	const char *why = s->find(name);

	r->find = bench_now() - start;
	if (!why)
		why = s->open(&t->address[me]);
	r->open = bench_now() - start;
	barrier(t, 3);
	if (!why)
		why = s->meet(t->address, t->ranks);
	if (!why)
		why = s->exchange((me + 1) % t->ranks);
	r->message = bench_now() - start;
	return why;
}

static void run_rank(struct team *t, unsigned me, const struct startup_stack *s, const char *name)
{
	struct result *r = &t->of[me];
	const char *why;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE);
	barrier(t, 1); /* what all share counts less for each, the more there are */
	r->before = taken();
	barrier(t, 2);
	why = begin(t, me, s, name);
	if (why)
		snprintf(r->why, sizeof(r->why), "%s", why);
	barrier(t, 4);
	r->after = taken();
	barrier(t, 5); /* nobody's memory goes before all have counted */
	if (s->end)
		s->end();
	_exit(why ? 1 : 0);
}

/** All ranks of one row; false if one of them did not come through. */
static bool run(struct team *t, unsigned ranks, const struct startup_stack *s, const char *name)
{
	bool well = true;
	int status;

	memset(t, 0, sizeof(*t));
	t->ranks = ranks;
	fflush(stdout);
	for (unsigned i = 0; i < ranks; i++) {
		pid_t child = fork();

		if (!child)
			run_rank(t, i, s, name);
		well = well && child > 0;
	}
	for (unsigned i = 0; i < ranks; i++)
		well = wait(&status) > 0 && !status && well;
	return well;
}

/** The median of a member of all results. */
static double median(const struct team *t, double (*of)(const struct result *))
{
	double v[STARTUP_RANKS];

	for (unsigned i = 0; i < t->ranks; i++)
		v[i] = of(&t->of[i]);
	return bench_stats_of(v, t->ranks).median;
}

static double of_find(const struct result *r)
{
	return 1e3 * r->find;
}

static double of_open(const struct result *r)
{
	return 1e3 * r->open;
}

static double of_message(const struct result *r)
{
	return 1e3 * r->message;
}

static double of_memory(const struct result *r)
{
	return r->after.kib - r->before.kib;
}

static double of_files(const struct result *r)
{
	return (double)r->after.files - r->before.files;
}

static double of_threads(const struct result *r)
{
	return (double)r->after.threads - r->before.threads;
}

static void print_row(const struct team *t, const char *name, bool well)
{
	double last = 0;

	if (!well) {
		const char *why = "a rank has died, or took too long";

		for (unsigned i = t->ranks; i-- > 0;)
			why = t->of[i].why[0] ? t->of[i].why : why;
		printf("%-10s %5u  failed: %s\n", name, t->ranks, why);
		return;
	}
	for (unsigned i = 0; i < t->ranks; i++)
		last = t->of[i].message > last ? t->of[i].message : last;
	printf("%-10s %5u %10.2f %10.2f %12.2f %12.2f %12.0f %8.0f %8.0f\n", name, t->ranks, median(t, of_find),
		median(t, of_open), median(t, of_message), 1e3 * last, median(t, of_memory), median(t, of_files),
		median(t, of_threads));
}

static const struct argp_option options[] = {
	{"ranks", 'n', "N", 0, "ranks at most, 1 to 64 (64)", 0},
	{"stack", 's', "NAME", 0, "this one alone: a libfabric provider, or ucx (ropewalk, shm and ucx)", 0},
	{NULL, 0, NULL, 0, NULL, 0},
};

struct request {
	unsigned ranks;
	const char *stack;
};

static error_t read_option(int key, char *arg, struct argp_state *state)
{
	struct request *r = state->input;

	if (key == 'n') {
		char *end;
		long n = strtol(arg, &end, 10);

		if (*end || end == arg || n < 1 || n > STARTUP_RANKS)
			argp_error(state, "--ranks %s is not a number from 1 to %d", arg, STARTUP_RANKS);
		r->ranks = (unsigned)n;
		return 0;
	}
	if (key == 's') {
		r->stack = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, read_option, NULL,
		"From nothing to the first message, and what a rank takes at rest.", NULL, NULL, NULL};
	static const char *const all[] = {"ropewalk", "shm", "ucx"};
	struct request r = {STARTUP_RANKS, NULL};
	struct team *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool well = true;

	argp_err_exit_status = 2;
	if (argp_parse(&argp, argc, argv, 0, NULL, &r))
		return 2;
	if (t == MAP_FAILED) {
		perror("startup: mmap");
		return 2;
	}
	printf("%-10s %5s %10s %10s %12s %12s %12s %8s %8s\n", "", "ranks", "find ms", "open ms", "message ms",
		"the last ms", "KiB a rank", "files", "threads");
	for (unsigned ranks = 1; ranks <= r.ranks; ranks *= 2) {
		for (unsigned i = 0; i < (r.stack ? 1 : sizeof(all) / sizeof(all[0])); i++) {
			const char *name = r.stack ? r.stack : all[i];
			const struct startup_stack *s = &startup_ofi;
			bool ok;

#ifdef HAVE_UCX
			s = strcmp(name, "ucx") != 0 ? s : &startup_ucx;
#else
			if (!strcmp(name, "ucx")) {
				printf("%-10s %5u  not built: libucx-dev was missing\n", name, ranks);
				well = well && !r.stack;
				continue;
			}
#endif
			ok = run(t, ranks, s, name);
			print_row(t, name, ok);
			well = well && ok;
		}
	}
	return bench_printed("startup") ? 2 : well ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_test.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

static const struct mpi_test *const subjects[] = {sizes_tests, matching_tests, request_tests, flood_tests,
	communicator_tests, collective_tests, datatype_tests, thread_tests, soak_tests, one_sided_tests};

enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]), MAX_OPTIONS = 32 };

int rank, ranks;
static const char *test_name = "?";
static char **arguments;
static bool asked_for[MAX_OPTIONS];

void fail(const char *file, int line, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "FAIL %s, rank %d of %d, %s:%d: %s\n", test_name, rank, ranks, file, line, text);
	fflush(stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	_exit(1);
}

long option(const char *name, long otherwise)
{
	size_t len = strlen(name);
	char *end;
	long v;

	for (int i = 0; arguments[i]; i++) {
		if (strncmp(arguments[i], name, len) || arguments[i][len] != '=')
			continue;
		v = strtol(arguments[i] + len + 1, &end, 10);
		EXPECT(end != arguments[i] + len + 1 && !*end, "'%s' is not NAME=NUMBER", arguments[i]);
		asked_for[i] = true;
		return v;
	}
	return otherwise;
}

/* Whether the test's next run is its last: the file of option until= is there, or there is no such option. */
static bool last_run(void)
{
	int last = 1;

	for (int i = 0; arguments[i]; i++) {
		if (strncmp(arguments[i], "until=", 6))
			continue;
		asked_for[i] = true;
		if (rank == 0)
			last = !access(arguments[i] + 6, F_OK);
		MPI_Bcast(&last, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	return last;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
	return x ^ (x >> 32);
}

void fill(void *buf, size_t len, uint64_t seed)
{
	uint64_t key = mix(seed + 1), word;
	char *p = buf;

	for (size_t i = 0; i < len; i += 8) {
		word = (key + i) * 0x9e3779b97f4a7c15ULL;
		memcpy(p + i, &word, len - i < 8 ? len - i : 8);
	}
}

void expect_filled(const void *buf, size_t len, uint64_t seed, const char *what)
{
	uint64_t key = mix(seed + 1), word;
	const unsigned char *p = buf;

	for (size_t i = 0; i < len; i += 8) {
		size_t n = len - i < 8 ? len - i : 8;

		word = (key + i) * 0x9e3779b97f4a7c15ULL;
		EXPECT(!memcmp(p + i, &word, n), "%s: %zu bytes arrived, but those at %zu are not what was sent", what,
			len, i);
	}
}

void *allocate(size_t len)
{
	void *p = NULL;

	EXPECT(!posix_memalign(&p, 4096, len ? len : 1), "no memory for %zu bytes", len);
	memset(p, 0, len);
	return p;
}

uint64_t roll(struct dice *d, uint64_t sides)
{
	d->state += 0x9e3779b97f4a7c15ULL;
	return sides ? mix(d->state) % sides : 0;
}

size_t roll_size(struct dice *d, size_t max)
{
	unsigned bits = 0;

	while (bits < 63 && ((size_t)1 << bits) <= max)
		bits++;
	bits = (unsigned)roll(d, bits + 1);
	return bits ? roll(d, (uint64_t)1 << bits) % (max + 1) : 0;
}

size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long all = 0, here = 0;

	EXPECT(f && fscanf(f, "%lu %lu", &all, &here) == 2, "/proc/self/statm cannot be read");
	fclose(f);
	return here * (size_t)sysconf(_SC_PAGESIZE);
}

void compute(unsigned usec)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000L + (now.tv_nsec - start.tv_nsec) / 1000 < (long)usec);
}

static const struct mpi_test *find(const char *name)
{
	for (int s = 0; s < SUBJECTS; s++) {
		for (const struct mpi_test *t = subjects[s]; t->name; t++) {
			if (!strcmp(t->name, name))
				return t;
		}
	}
	return NULL;
}

static int usage(void)
{
	fprintf(stderr, "mpi_tests NAME [option=number...] [until=FILE]; until: over and over, once more when the file is "
		"there; the tests:\n");
	for (int s = 0; s < SUBJECTS; s++) {
		for (const struct mpi_test *t = subjects[s]; t->name; t++)
			fprintf(stderr, "  %-14s %s\n", t->name, t->about);
	}
	return 2;
}

int main(int argc, char **argv)
{
	const struct mpi_test *t = argc > 1 ? find(argv[1]) : NULL;
	bool last;
	int level;

	if (!t || argc > MAX_OPTIONS)
		return usage();
	test_name = t->name;
	arguments = argv + 2;
	MPI_Init_thread(&argc, &argv, t->thread, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	EXPECT(level >= t->thread, "MPI gives thread level %d, the test needs %d", level, t->thread);
	EXPECT(ranks >= t->min_ranks, "the test needs %d ranks", t->min_ranks);
	do {
		last = last_run();
		t->run();
	} while (!last);
	for (int i = 0; arguments[i]; i++)
		EXPECT(asked_for[i], "the test has no option '%s'", arguments[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("ok %s, %d ranks\n", t->name, ranks);
	MPI_Finalize();
	return 0;
}

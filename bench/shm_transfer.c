/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers alone, between two processes on two cores: each method by size, one at a time and in windows of 64, with
 * buffers left as they are and rewritten before each read. The methods take turns; medians are printed.
 *
 *   shm_transfer [-r rounds] [-d] [-e]     -d: rewritten buffers   -e: print what the measured choice has learnt
 */
#define _GNU_SOURCE
#include "bench/common/cpu.h"
#include "bench/common/report.h"
#include "bench/common/stats.h"
#include "test/shm/transfer_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WINDOW = 64, ROUNDS_MOST = 1000, WARM_UP = 5, WAYS = 4 };
enum { WORD_ROUND = 1, WORD_END = 2 };

static const size_t sizes[] = {8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 4194304, 16777216};
static const int ways[WAYS] = {RWK_SHM_STAGE, RWK_SHM_PULL, RWK_SHM_BOTH, -1};
static const size_t size_most = 16777216;

static unsigned rounds = 31;
static bool dirty, explain;

static char *buffer(int value)
{
	char *buf = mmap(NULL, size_most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buf == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	memset(buf, value, size_most);
	return buf;
}

/* Serves; before each round that is asked for it rewrites the first `size` bytes and says so. */
static int exposer(struct rwk_shm_channel *ch)
{
	char *buf = buffer(1);
	struct iovec iov = {buf, size_most};

	if (rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]))
		return 1;
	tp_say(ch, WORD_ROUND, 1);
	for (uint64_t round = 2; tp_wait(ch, WORD_ROUND, round); round++) {
		if (tp_heard(ch, WORD_END))
			return 0;
		if (dirty)
			memset(buf, (int)round, tp_heard(ch, 3));
		tp_say(ch, WORD_ROUND, round);
	}
	return 1;
}

/* ns of `count` reads of `size` bytes posted at once; 0 if one fails. */
static uint64_t reads(struct rwk_shm_channel *ch, struct tp_op *op, unsigned count, char *buf, size_t size)
{
	struct iovec iov = {buf, size};
	uint64_t start = rwk_clock_now();

	for (unsigned i = 0; i < count; i++) {
		if (tp_read(ch, &op[i], &tp_side(ch, false)->key[0], 0, &iov, 1, size))
			return 0;
	}
	for (unsigned i = 0; i < count; i++) {
		if (tp_finish(ch, &op[i], 10000))
			return 0;
	}
	return rwk_clock_now() - start;
}

/* One size, all ways in turn: medians in ns a read. */
static int measure(
	struct rwk_shm_channel *ch, unsigned count, char *buf, size_t size, uint64_t *round, double median[WAYS])
{
	static double ns[WAYS][ROUNDS_MOST];
	static struct tp_op op[WINDOW];
	volatile char sum = 0;
	uint64_t took;

	for (unsigned r = 0; r < rounds + WARM_UP; r++) {
		for (unsigned w = 0; w < WAYS; w++) {
			tp_say(ch, 3, size);
			tp_say(ch, WORD_ROUND, ++*round);
			if (!tp_wait(ch, WORD_ROUND, *round))
				return 1;
			tp_force(ch, ways[w]);
			took = reads(ch, op, count, buf, size);
			if (!took)
				return 1;
			if (r >= WARM_UP)
				ns[w][r - WARM_UP] = (double)took;
			for (size_t i = 0; dirty && i < size; i += 64)
				sum = (char)(sum + buf[i]);
		}
	}
	for (unsigned w = 0; w < WAYS; w++)
		median[w] = bench_stats_of(ns[w], rounds).median / count;
	return 0;
}

static int reader(struct rwk_shm_channel *ch)
{
	char *buf = buffer(2), table[4096];
	uint64_t round = 1;
	int rc = 0;

	tp_wait(ch, WORD_ROUND, 1);
	printf("%10s %34s   %34s\n%10s ", "", "one at a time, us", "windows of 64, GB/s", "bytes");
	for (int k = 0; k < 2; k++)
		printf("%8s %8s %8s %8s   ", "stage", "pull", "both", "choice");
	printf("\n");
	for (size_t i = 0; !rc && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double one[WAYS], many[WAYS];

		rc = measure(ch, 1, buf, sizes[i], &round, one);
		if (!rc)
			rc = measure(ch, WINDOW, buf, sizes[i], &round, many);
		if (rc)
			break;
		printf("%10zu ", sizes[i]);
		for (unsigned w = 0; w < WAYS; w++)
			printf("%8.2f ", one[w] / 1000);
		printf("  ");
		for (unsigned w = 0; w < WAYS; w++)
			printf("%8.1f ", (double)sizes[i] / many[w]);
		printf("\n");
		fflush(stdout);
	}
	if (explain && rwk_shm_choice_print(&rwk_shm_transfers_of(ch)->pace.choice, table, sizeof(table)))
		printf("%s", table);
	tp_say(ch, WORD_END, 1);
	tp_say(ch, WORD_ROUND, round + 1);
	return rc;
}

/* Returns 0, or 2 for what it does not know. */
static int read_options(int argc, char **argv)
{
	unsigned long n;
	char *end;
	int c;

	while ((c = getopt(argc, argv, "r:de")) != -1) {
		if (c == 'r') {
			n = strtoul(optarg, &end, 10);
			if (*end || !n || n > ROUNDS_MOST) {
				fprintf(stderr, "shm_transfer: -r %s: a whole number from 1 to %d is needed\n", optarg,
					ROUNDS_MOST);
				return 2;
			}
			rounds = (unsigned)n;
		} else if (c == 'd') {
			dirty = true;
		} else if (c == 'e') {
			explain = true;
		} else {
			fprintf(stderr, "usage: shm_transfer [-r rounds] [-d] [-e]\n");
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "shm_transfer: '%s': there are options alone\n", argv[optind]);
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct tp_shared *s;
	struct rwk_shm_channel *ch;
	int rc, status;
	pid_t pid;

	if (read_options(argc, argv))
		return 2;
	rwk_param_load();
	s = tp_shared_new();
	pid = fork();
	if (pid < 0) {
		perror("fork");
		return 1;
	}
	bench_bind_to_cpu(pid ? 0 : 1);
	ch = tp_open(s, pid ? 0 : 1);
	rc = pid ? reader(ch) : exposer(ch);
	tp_close(ch, -ECANCELED);
	if (!pid)
		_exit(rc);
	if (waitpid(pid, &status, 0) != pid || status)
		rc = 1;
	if (rc)
		fprintf(stderr, "a read failed\n");
	return bench_printed("shm_transfer") ? 2 : rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each process of a job takes once it has talked to all others: sockets, descriptors and resident memory, as /proc
 * shows them, before the first message and after one to and from each rank. A line of JSON for each rank;
 * bench/footprint runs it and makes a table.
 */
#include "bench/common/clock.h"

#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE   1024
#define ROUNDS 4

struct taken {
	long sockets, descriptors;
	long rss, pss, anonymous; /* KiB */
};

static void count_descriptors(struct taken *t)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[300], to[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		if (n <= 0)
			continue;
		to[n] = 0;
		t->descriptors++;
		t->sockets += !strncmp(to, "socket:", 7);
	}
	if (d)
		closedir(d);
}

/* Pss: a page that n processes share counts for an nth. */
static void weigh(struct taken *t)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[200];

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Rss: %ld", &t->rss);
		sscanf(line, "Pss: %ld", &t->pss);
		sscanf(line, "Anonymous: %ld", &t->anonymous);
	}
	if (f)
		fclose(f);
}

static struct taken look(void)
{
	struct taken t = {0};

	MPI_Barrier(MPI_COMM_WORLD);
	count_descriptors(&t);
	weigh(&t);
	return t;
}

static char byte_of(int from, int to, unsigned long number, size_t i)
{
	return (char)((unsigned)from * 7 + (unsigned)to * 13 + number + i);
}

/* To and from each rank by a message of its own, whatever an algorithm of MPI_Alltoall's would do. Wrong bytes. */
static size_t round_of_all(int me, int ranks, unsigned long number, char *out, char *in, MPI_Request *request)
{
	size_t wrong = 0, k;
	int i;

	for (i = 0; i < ranks; i++) {
		for (k = 0; k < SIZE; k++)
			out[(size_t)i * SIZE + k] = byte_of(me, i, number, k);
		MPI_Irecv(in + (size_t)i * SIZE, SIZE, MPI_BYTE, i, 1, MPI_COMM_WORLD, &request[i]);
	}
	for (i = 0; i < ranks; i++)
		MPI_Isend(out + (size_t)i * SIZE, SIZE, MPI_BYTE, i, 1, MPI_COMM_WORLD, &request[ranks + i]);
	MPI_Waitall(2 * ranks, request, MPI_STATUSES_IGNORE);
	for (i = 0; i < ranks; i++)
		for (k = 0; k < SIZE; k++)
			wrong += in[(size_t)i * SIZE + k] != byte_of(i, me, number, k);
	return wrong;
}

static void print(int rank, const char *host, const struct taken *before, const struct taken *after, double seconds)
{
	printf("{\"rank\": %d, \"host\": \"%s\", \"seconds\": %.3f, \"sockets\": %ld, \"descriptors\": %ld, "
	       "\"rss_kib\": %ld, "
	       "\"pss_kib\": %ld, \"anonymous_kib\": %ld, \"sockets_before\": %ld, \"rss_kib_before\": %ld, "
	       "\"pss_kib_before\": %ld, \"anonymous_kib_before\": %ld}\n",
		rank, host, seconds, after->sockets, after->descriptors, after->rss, after->pss, after->anonymous,
		before->sockets, before->rss, before->pss, before->anonymous);
}

int main(int argc, char **argv)
{
	char host[MPI_MAX_PROCESSOR_NAME], *out, *in;
	struct taken before, after;
	int me, ranks, len;
	MPI_Request *request;
	size_t wrong = 0;
	double start;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Get_processor_name(host, &len);
	out = malloc((size_t)ranks * SIZE);
	in = malloc((size_t)ranks * SIZE);
	request = malloc(2 * (size_t)ranks * sizeof(MPI_Request));
	if (!out || !in || !request)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(in, 0, (size_t)ranks * SIZE);
	memset(out, 0, (size_t)ranks * SIZE);
	before = look();
	start = bench_now();
	for (unsigned long i = 0; i < ROUNDS; i++)
		wrong += round_of_all(me, ranks, i, out, in, request);
	start = bench_now() - start;
	after = look();
	print(me, host, &before, &after, start);
	if (wrong)
		fprintf(stderr, "footprint: rank %d: %zu wrong bytes\n", me, wrong);
	MPI_Finalize();
	return wrong ? 1 : 0;
}

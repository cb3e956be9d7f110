/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the MPI library itself takes for each call, in CPU time, over a provider that does nothing: no provider can make
 * messages cheaper. One rank talks to itself; over the null provider its sends vanish and its receives complete at
 * once. Over any other transport the receives would wait for ever, so that is tried first.
 */
#include "bench/common/clock.h"
#include "bench/common/options.h"
#include "bench/common/report.h"
#include "bench/common/stats.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ITERATIONS 2000

enum { ISEND, WAIT_SENDS, IRECV, WAIT_RECEIVES, SEND, RECV, CALLS };

static const char *const call_names[CALLS] = {
	[ISEND] = "MPI_Isend",
	[WAIT_SENDS] = "MPI_Waitall, of sends",
	[IRECV] = "MPI_Irecv",
	[WAIT_RECEIVES] = "MPI_Waitall, of receives",
	[SEND] = "MPI_Send",
	[RECV] = "MPI_Recv",
};

static const struct bench_test test = {
	.name = "own_cost",
	.what = "Nanoseconds of the MPI library's own for each message, over the provider rwk_null that does nothing "
		"(see README.md).",
	.sizes = "8",
	.shape = BENCH_ANY_RANKS,
	.messages = 1,
	.windowed = true,
};

/* Whether a receive completes although nothing was sent. */
static int nothing_is_below(char *buf, int size)
{
	MPI_Request request;
	int done = 0;

	MPI_Irecv(buf, size, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request);
	for (int i = 0; i < 10000 && !done; i++)
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	if (done)
		return 1;
	MPI_Cancel(&request);
	MPI_Request_free(&request);
	return 0;
}

static void lap(double *sum, double *last)
{
	double now = bench_now();

	*sum += now - *last;
	*last = now;
}

static void one_window(const struct bench_options *o, char *buf, int size, MPI_Request *request, double *seconds)
{
	double last = bench_now();
	unsigned i;

	for (i = 0; i < o->window; i++)
		MPI_Isend(buf, size, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request[i]);
	lap(&seconds[ISEND], &last);
	MPI_Waitall((int)o->window, request, MPI_STATUSES_IGNORE);
	lap(&seconds[WAIT_SENDS], &last);
	for (i = 0; i < o->window; i++)
		MPI_Irecv(buf, size, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request[i]);
	lap(&seconds[IRECV], &last);
	MPI_Waitall((int)o->window, request, MPI_STATUSES_IGNORE);
	lap(&seconds[WAIT_RECEIVES], &last);
	for (i = 0; i < o->window; i++)
		MPI_Send(buf, size, MPI_BYTE, 0, 1, MPI_COMM_SELF);
	lap(&seconds[SEND], &last);
	for (i = 0; i < o->window; i++)
		MPI_Recv(buf, size, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	lap(&seconds[RECV], &last);
}

static void print_row(FILE *json, int first, size_t size, const char *name, struct bench_stats s)
{
	printf("%-32s %8zu %10.1f %10.1f %10.1f  ns\n", name, size, s.median, s.min, s.max);
	if (!json)
		return;
	fprintf(json, "%s\n{\"name\": ", first ? "" : ",");
	bench_json_string(json, name);
	fprintf(json, ", \"size\": %zu, \"unit\": \"ns\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g}", size,
		s.median, s.min, s.max);
}

static void one_size(const struct bench_options *o, char *buf, size_t size, FILE *json, int first)
{
	unsigned long iterations = o->iterations ? o->iterations : DEFAULT_ITERATIONS;
	double sample[CALLS][BENCH_MAX_REPEATS];
	MPI_Request request[o->window];

	for (unsigned r = 0; r <= o->repeats; r++) {
		double seconds[CALLS] = {0};

		for (unsigned long i = 0; i < iterations; i++)
			one_window(o, buf, (int)size, request, seconds);
		for (int call = 0; r && call < CALLS; call++) /* the first time warms up */
			sample[call][r - 1] = seconds[call] * 1e9 / ((double)iterations * o->window);
	}
	for (int call = 0; call < CALLS; call++)
		print_row(json, first && !call, size, call_names[call], bench_stats_of(sample[call], o->repeats));
}

static int all_sizes(const struct bench_options *o, FILE *json)
{
	size_t largest = 1;
	char *buf;

	for (size_t i = 0; i < o->sizes; i++)
		largest = o->size[i] > largest ? o->size[i] : largest;
	buf = calloc(1, largest);
	if (!buf) {
		fprintf(stderr, "own_cost: no memory for a buffer of %zu bytes; take smaller sizes\n", largest);
		return 2;
	}
	if (!nothing_is_below(buf, (int)o->size[0])) {
		fprintf(stderr,
			"own_cost: a receive did not complete at once, so this is no job over the null provider. Run "
			"it with\n"
			"FI_PROVIDER_PATH=BUILD/bench/null_provider/.libs mpirun -n 1 --mca pml cm --mca mtl ofi "
			"--mca mtl_ofi_provider_include rwk_null own_cost\n");
		free(buf);
		return 2;
	}
	printf("# median of %u%19s %8s %10s %10s %10s\n", o->repeats, "", "bytes", "median", "min", "max");
	for (size_t i = 0; i < o->sizes; i++)
		one_size(o, buf, o->size[i], json, !i);
	free(buf);
	return 0;
}

static int run(const struct bench_options *o)
{
	char library[MPI_MAX_LIBRARY_VERSION_STRING];
	FILE *json = NULL;
	int rc, len;

	if (o->json) {
		if (bench_json_open("own_cost", o->json, &json))
			return 2;
		MPI_Get_library_version(library, &len);
		fprintf(json, "{\"benchmark\": \"own_cost\", \"library\": ");
		bench_json_string(json, library);
		fprintf(json, ",\n\"results\": [");
	}
	rc = all_sizes(o, json);
	if (bench_printed("own_cost"))
		rc = 2;
	if (!json)
		return rc;
	if (rc) {
		bench_json_discard(json, o->json);
		return rc;
	}
	fprintf(json, "\n]}\n");
	return bench_json_close(json, "own_cost", o->json) ? 2 : 0;
}

int main(int argc, char **argv)
{
	struct bench_options o;
	int rc, rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	rc = bench_options_parse(argc, argv, &test, BENCH_OPTIONS_MPI, !rank, &o);
	if (!rc)
		rc = rank ? 0 : run(&o);
	else
		rc = rc < 0 ? 2 : 0;
	if (rc) {
		/* A receive may be left that never completes, and MPI_Finalize might wait for it. */
		fflush(NULL);
		MPI_Abort(MPI_COMM_WORLD, rc);
	}
	MPI_Finalize();
	return 0;
}

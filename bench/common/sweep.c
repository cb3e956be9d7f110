/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For each size: warm up, find out how many iterations fill the wanted time, repeat, report. All ranks take the same
 * decisions since they decide by values that the team has agreed upon.
 */
#include "bench/common/sweep.h"

#include "bench/common/report.h"
#include "bench/common/stats.h"
#include "bench/common/ticks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Buffers of one side together take no more than this where each message in flight has its own. */
#define MAX_TOUCHED_BYTES ((size_t)64 << 20)

static size_t stride_of(size_t size)
{
	return (size + 63) / 64 * 64 + (size ? 0 : 64);
}

/* Message in flight share one buffer, as in other suites, unless their contents matter. */
static unsigned slots_of(const struct bench_options *o, size_t size)
{
	size_t most = MAX_TOUCHED_BYTES / stride_of(size);

	if (o->touch == BENCH_TOUCH_NONE || o->window == 1)
		return 1;
	return most < 1 ? 1 : most < o->window ? most : o->window;
}

size_t bench_buffer_bytes(const struct bench_test *test, const struct bench_options *o, const struct bench_team *team)
{
	size_t most = 0;

	for (size_t i = 0; i < o->sizes; i++) {
		size_t n =
			stride_of(o->size[i]) * (test->block_per_rank ? (size_t)team->ranks : slots_of(o, o->size[i]));

		most = n > most ? n : most;
	}
	return most;
}

/* A buffer with all its pages present, `at` bytes behind a page's beginning; NULL: no memory. */
static char *buffer_new(size_t bytes, size_t at, int value)
{
	size_t whole = (at + bytes + BENCH_PAGE - 1) / BENCH_PAGE * BENCH_PAGE;
	char *block = aligned_alloc(BENCH_PAGE, whole);

	if (!block)
		return NULL;
	memset(block, value, whole);
	return block + at;
}

static void buffer_free(char *buffer, size_t at)
{
	if (buffer)
		free(buffer - at);
}

static int allocate(struct bench_run *r, const struct bench_options *o, size_t bytes)
{
	r->send = buffer_new(bytes, o->send_at, 1);
	r->recv = buffer_new(bytes, o->recv_at, 2);
	return r->send && r->recv ? 0 : -ENOMEM;
}

static int timed(const struct bench_test *test, struct bench_run *r, double *seconds)
{
	int rc = test->run(r, seconds);

	r->base += (uint64_t)r->iterations * r->window;
	return rc ? rc : r->team->largest(r->team, seconds);
}

/* Times loops of that many iterations; the quicker of two where one looks long enough: anything may have held it up. */
static int timed_long(const struct bench_test *test, struct bench_run *r, double enough, double *seconds)
{
	double again;
	int rc = timed(test, r, seconds);

	if (rc || *seconds < enough)
		return rc;
	rc = timed(test, r, &again);
	*seconds = !rc && again < *seconds ? again : *seconds;
	return rc;
}

/* Warms up, and sets the number of iterations that take about the wanted time. */
static int calibrate(const struct bench_test *test, const struct bench_options *o, struct bench_run *r)
{
	double seconds, enough = o->seconds / 8;
	int rc;

	r->iterations = o->warmup;
	rc = timed(test, r, &seconds); /* says nothing: the first messages make connections */
	if (rc || o->iterations) {
		r->iterations = o->iterations;
		return rc;
	}
	r->iterations = 1;
	rc = timed_long(test, r, enough, &seconds);
	while (!rc && seconds < enough && r->iterations < 100000000) {
		r->iterations *= 4;
		rc = timed_long(test, r, enough, &seconds);
	}
	if (rc)
		return rc;
	r->iterations = r->iterations * (o->seconds / seconds);
	if (!r->iterations)
		r->iterations = 1;
	return 0;
}

/* Of one repeat. */
static double messages_of(const struct bench_test *test, const struct bench_run *r)
{
	double messages = (double)r->iterations * test->messages;

	if (test->windowed)
		messages *= r->window;
	if (test->per_pair)
		messages *= r->team->ranks / 2;
	return messages;
}

static double value_of(const struct bench_test *test, const struct bench_run *r, double seconds)
{
	double messages = messages_of(test, r);

	switch (test->unit) {
	case BENCH_LATENCY:
		return seconds * 1e6 / messages;
	case BENCH_BANDWIDTH:
		return messages * r->size / seconds * 1e-6;
	case BENCH_RATE:
		return messages / seconds;
	}
	return 0;
}

/* Ends when the process is ended, or the team is broken. */
static int count_on(const struct bench_test *test, const struct bench_options *o, struct bench_run *r)
{
	struct bench_ticks *ticks;
	double slowest;
	int rc = bench_ticks_open(o->ticks, r->team, &ticks);

	if (!rc)
		rc = calibrate(test, o, r);
	while (!rc) {
		rc = timed(test, r, &slowest);
		if (!rc && !r->team->rank) {
			atomic_fetch_add(&ticks->nanoseconds, (uint64_t)(slowest * 1e9));
			atomic_fetch_add(&ticks->messages, (uint64_t)messages_of(test, r));
		}
	}
	return rc;
}

static int one_size(
	const struct bench_test *test, const struct bench_options *o, struct bench_run *r, struct bench_report *report)
{
	struct bench_row row = {.size = r->size, .window = r->window, .samples = o->repeats};
	double seconds;
	int rc = calibrate(test, o, r);

	for (unsigned i = 0; !rc && i < o->repeats; i++) {
		bench_report_progress(report, r->size, i);
		rc = timed(test, r, &seconds);
		row.sample[i] = rc ? 0 : value_of(test, r, seconds);
	}
	if (rc)
		return rc;
	row.iterations = r->iterations;
	row.sent = r->sent;
	row.lost = r->lost;
	row.stats = bench_stats_of(row.sample, row.samples);
	bench_report_row(report, &row);
	if (test->after)
		test->after(r);
	return 0;
}

static int all_sizes(
	const struct bench_test *test, const struct bench_options *o, struct bench_run *r, struct bench_report *report)
{
	for (size_t i = 0; i < o->sizes; i++) {
		int rc;

		r->size = o->size[i];
		r->sent = r->lost = 0;
		r->slots = slots_of(o, r->size);
		r->stride = stride_of(r->size);
		r->window = r->slots > 1 || o->touch != BENCH_TOUCH_NONE ? r->slots : o->window;
		rc = o->ticks ? count_on(test, o, r) : one_size(test, o, r, report);
		if (rc)
			return rc;
	}
	return 0;
}

/* Whether the shape of the team suits the test. */
static int check_team(const struct bench_test *test, const struct bench_team *team)
{
	const char *need = NULL;

	if (test->shape == BENCH_TWO_RANKS && team->ranks != 2)
		need = "exactly 2 ranks";
	else if (test->shape == BENCH_PAIRS && (team->ranks < 2 || team->ranks % 2))
		need = "an even number of ranks";
	else if (team->ranks < 2)
		need = "2 ranks or more";
	if (!need)
		return 0;
	if (!team->rank)
		fprintf(stderr, "%s: %d rank%s, but this test needs %s (mpirun -n 2 ...)\n", test->name, team->ranks,
			team->ranks == 1 ? "" : "s", need);
	return -EINVAL;
}

/* Every rank goes on only if all of them can: outputs open at rank 0, memory at each. */
static int prepare(
	const struct bench_test *test, const struct bench_options *o, struct bench_run *r, struct bench_report *report)
{
	size_t bytes = bench_buffer_bytes(test, o, r->team);
	int rc = allocate(r, o, bytes);
	double failed;

	if (rc)
		fprintf(stderr, "%s: no memory for two buffers of %zu bytes; take smaller sizes\n", test->name, bytes);
	if (!rc && !r->team->rank)
		rc = bench_report_open(report, test, o, r->team);
	failed = rc ? 1 : 0;
	if (r->team->largest(r->team, &failed))
		return -ECONNRESET;
	return rc ? rc : failed ? -ECANCELED : 0;
}

int bench_sweep(const struct bench_test *test, const struct bench_options *o, struct bench_team *team)
{
	struct bench_report *report = NULL;
	struct bench_run r = {.team = team, .touch = o->touch, .window = o->window};
	double verdict;
	int rc = check_team(test, team);

	if (rc)
		return rc;
	report = calloc(1, sizeof(*report));
	rc = report ? prepare(test, o, &r, report) : -ENOMEM;
	if (!rc)
		rc = all_sizes(test, o, &r, report);
	if (!rc) {
		verdict = r.errors;
		rc = team->largest(team, &verdict);
	}
	if (!rc && verdict > 0)
		rc = 1;
	if (report) {
		int closed = bench_report_close(report, rc);

		rc = rc ? rc : closed;
	}
	free(report);
	buffer_free(r.recv, o->recv_at);
	buffer_free(r.send, o->send_at);
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The table on stdout, the progress on stderr, the JSON file. On every rank but 0 a report is silent. */
#ifndef BENCH_COMMON_REPORT_H
#define BENCH_COMMON_REPORT_H

#include "bench/common/options.h"
#include "bench/common/stats.h"

#include <stdio.h>

struct bench_report {
	const struct bench_test *test; /* NULL on a silent one */
	const struct bench_options *o;
	FILE *json;
	size_t rows;
	double started, last_line; /* bench_now() */
};

struct bench_row {
	size_t size;
	unsigned window;
	unsigned long iterations;
	unsigned long sent, lost; /* as in bench_run; the JSON has them where `sent` is not 0 */
	struct bench_stats stats;
	unsigned samples;
	double sample[BENCH_MAX_REPEATS];
};

/** Opens what `o` asks for and writes the heads. Returns 0 or a negative errno, reported. */
int bench_report_open(struct bench_report *p, const struct bench_test *test, const struct bench_options *o,
	const struct bench_team *team);

/** Says on stderr how far the run is, if nothing has been said for some seconds. */
void bench_report_progress(struct bench_report *p, size_t size, unsigned repeat);

void bench_report_row(struct bench_report *p, const struct bench_row *row);

/** Ends the outputs; `verdict` as of bench_sweep. A run that broke off leaves no JSON file. Returns 0 or a negative
 * errno, reported. */
int bench_report_close(struct bench_report *p, int verdict);

/** Has all that the program or test `who` has printed come to stdout? Returns 0 or a negative errno, reported. */
int bench_printed(const char *who);

/** Opens a file for the results of the program or test `who`: beside `path`, in place of which it is put when it is
 * closed, unless that is a device. Returns 0 or a negative errno, reported. */
int bench_json_open(const char *who, const char *path, FILE **f);

/** Closes it. What could not be written to its end, as on a disk that is full, is removed, and what was at `path` before
 * stays. Returns 0 or a negative errno, reported. */
int bench_json_close(FILE *f, const char *who, const char *path);

/** Closes and removes the file of a run that broke off; what was at `path` before stays. */
void bench_json_discard(FILE *f, const char *path);

/** Writes `text` as a JSON string, with the quotes. */
void bench_json_string(FILE *f, const char *text);

#endif

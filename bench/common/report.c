/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/common/report.h"

#include "bench/common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRESS_SECONDS 2

static const char *const unit_names[] = {
	[BENCH_LATENCY] = "us",
	[BENCH_BANDWIDTH] = "MB/s",
	[BENCH_RATE] = "msg/s",
};

static const char *const touch_names[] = {
	[BENCH_TOUCH_NONE] = "none",
	[BENCH_TOUCH_DIRTY] = "dirty",
	[BENCH_TOUCH_CHECK] = "check",
};

static const char *const touch_notes[] = {
	[BENCH_TOUCH_NONE] = "",
	[BENCH_TOUCH_DIRTY] = "; times include writing and reading the data",
	[BENCH_TOUCH_CHECK] = "; times include making and checking the data",
};

/** Where results end, malloc'd: not in a link to it, as /dev/stderr is. */
static char *last_place(const char *path)
{
	char *there = realpath(path, NULL);

	return there ? there : strdup(path);
}

/** Where they are written first, malloc'd: beside it, for what is there stays until they are whole. A device has no
 * such place. */
static char *first_place(const char *last)
{
	struct stat st;
	bool device = !stat(last, &st) && !S_ISREG(st.st_mode);
	char *first = malloc(strlen(last) + sizeof(".part"));

	if (first)
		sprintf(first, "%s%s", last, device ? "" : ".part");
	return first;
}

void bench_json_string(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

int bench_printed(const char *who)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "%s: the table could not be written\n", who);
	return -EIO;
}

int bench_json_open(const char *who, const char *path, FILE **f)
{
	char *last = last_place(path), *first = last ? first_place(last) : NULL;
	int err = 0;

	errno = ENOMEM;
	*f = first ? fopen(first, "w") : NULL;
	if (!*f) {
		err = errno;
		fprintf(stderr, "%s: --json %s: %s; name a file that can be written\n", who, path, strerror(err));
	}
	free(first);
	free(last);
	return -err;
}

/** What was written first is moved to its place, or, where `err` says that it is not whole, removed. An errno, or 0. */
static int put_in_place(const char *path, int err)
{
	char *last = last_place(path), *first = last ? first_place(last) : NULL;

	if (!first)
		err = ENOMEM;
	else if (strcmp(first, last) && !err && rename(first, last))
		err = errno;
	if (first && strcmp(first, last) && err)
		unlink(first);
	free(first);
	free(last);
	return err;
}

void bench_json_discard(FILE *f, const char *path)
{
	fclose(f);
	put_in_place(path, ECANCELED);
}

int bench_json_close(FILE *f, const char *who, const char *path)
{
	int err = 0;

	if (ferror(f)) {
		err = EIO;
		fputc('\n', f); /* fails as well, and then there is an errno */
	}
	if (fclose(f))
		err = errno;
	err = put_in_place(path, err);
	if (err)
		fprintf(stderr, "%s: --json %s: %s; the results were not written\n", who, path, strerror(err));
	return -err;
}

static void json_head(
	FILE *f, const struct bench_test *test, const struct bench_options *o, const struct bench_team *team)
{
	fprintf(f, "{\"benchmark\": ");
	bench_json_string(f, test->name);
	fprintf(f, ", \"unit\": \"%s\", \"ranks\": %d, \"touch\": \"%s\", \"at\": [%zu, %zu],\n\"library\": ",
		unit_names[test->unit], team->ranks, touch_names[o->touch], o->send_at, o->recv_at);
	bench_json_string(f, team->library);
	if (o->provider) {
		fprintf(f, ", \"provider\": ");
		bench_json_string(f, o->provider);
	}
	if (o->one_sided)
		fprintf(f, ", \"sync\": \"%s\", \"memory\": \"%s\"", bench_sync_names[o->sync],
			o->own_memory ? "own" : "allocated");
	fprintf(f, ",\n\"results\": [");
}

int bench_report_open(struct bench_report *p, const struct bench_test *test, const struct bench_options *o,
	const struct bench_team *team)
{
	if (o->json) {
		int rc = bench_json_open(test->name, o->json, &p->json);

		if (rc)
			return rc;
		json_head(p->json, test, o, team);
	}
	p->test = test;
	p->o = o;
	p->started = p->last_line = bench_now();
	printf("# %s, %s, %d ranks, median of %u%s\n", test->name, unit_names[test->unit], team->ranks, o->repeats,
		touch_notes[o->touch]);
	printf("%12s %14s %14s %14s\n", "# bytes", unit_names[test->unit], "min", "max");
	fflush(stdout);
	return 0;
}

void bench_report_progress(struct bench_report *p, size_t size, unsigned repeat)
{
	double now = bench_now();

	if (!p->test || now - p->last_line < PROGRESS_SECONDS)
		return;
	p->last_line = now;
	fprintf(stderr, "%s: size %zu (%zu of %zu), repeat %u of %u, %.0f s so far\n", p->test->name, size, p->rows + 1,
		p->o->sizes, repeat + 1, p->o->repeats, now - p->started);
}

static void json_row(FILE *f, const struct bench_row *row, size_t index)
{
	fprintf(f, "%s\n{\"size\": %zu, \"median\": %.9g, \"min\": %.9g, \"max\": %.9g, ", index ? "," : "", row->size,
		row->stats.median, row->stats.min, row->stats.max);
	fprintf(f, "\"iterations\": %lu, \"window\": %u, ", row->iterations, row->window);
	if (row->sent)
		fprintf(f, "\"sent\": %lu, \"lost\": %lu, ", row->sent, row->lost);
	fprintf(f, "\"samples\": [");
	for (unsigned i = 0; i < row->samples; i++)
		fprintf(f, "%s%.9g", i ? ", " : "", row->sample[i]);
	fprintf(f, "]}");
}

void bench_report_row(struct bench_report *p, const struct bench_row *row)
{
	int decimals;

	if (!p->test)
		return;
	decimals = p->test->unit == BENCH_LATENCY ? 3 : p->test->unit == BENCH_BANDWIDTH ? 1 : 0;
	printf("%12zu %14.*f %14.*f %14.*f\n", row->size, decimals, row->stats.median, decimals, row->stats.min,
		decimals, row->stats.max);
	fflush(stdout);
	p->last_line = bench_now();
	if (p->json)
		json_row(p->json, row, p->rows);
	p->rows++;
}

static int close_json(struct bench_report *p, int verdict)
{
	FILE *f = p->json;

	p->json = NULL;
	if (verdict < 0) {
		bench_json_discard(f, p->o->json);
		return 0;
	}
	fprintf(f, "\n], \"data_ok\": %s, \"seconds\": %.3f}\n", verdict ? "false" : "true", bench_now() - p->started);
	return bench_json_close(f, p->test->name, p->o->json);
}

int bench_report_close(struct bench_report *p, int verdict)
{
	int rc = p->json ? close_json(p, verdict) : 0, printed = p->test ? bench_printed(p->test->name) : 0;

	return printed ? printed : rc;
}

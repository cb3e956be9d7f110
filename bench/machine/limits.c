/* SPDX-License-Identifier: BSD-3-Clause */
/* What this machine can do at best between two of its cores. */
#include "bench/common/report.h"
#include "bench/machine/mate.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_JSON = 256, KEY_PROBE, KEY_BETWEEN };

static const struct {
	const char *name;
	void (*run)(struct mate *m);
} groups[] = {{"line", measure_line}, {"copy", measure_copy}, {"ring", measure_ring}, {"cross", measure_cross},
	{"udp", measure_udp}};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static const struct argp_option option_table[] = {
	{"between", KEY_BETWEEN, "PID,PID", 0,
		"Measure UDP between two hosts, which these processes keep, and not over loopback", 0},
	{"json", KEY_JSON, "FILE", 0, "Write the results to FILE", 0},
	{"probe", KEY_PROBE, NULL, 0, "Only print, in 10 ms, the nanoseconds of a line to the other core", 0},
	{"repeats", 'r', "N", 0, "Repeats of each measurement; the median is the result (default 5)", 0},
	{"time", 't', "SECONDS", 0, "Time wanted for one repeat (default 0.02)", 0},
	{0},
};

struct options {
	bool wanted[GROUPS], any, probe;
	const char *json;
	pid_t between[2];
	double seconds;
	unsigned repeats;
};

static error_t want_group(struct argp_state *state, struct options *o, const char *name)
{
	for (size_t i = 0; i < GROUPS; i++) {
		if (!strcmp(groups[i].name, name)) {
			o->wanted[i] = o->any = true;
			return 0;
		}
	}
	argp_error(state, "%s: not a group of measurements; there are: line copy ring cross udp", name);
	return EINVAL;
}

static error_t read_pids(struct argp_state *state, struct options *o, const char *text)
{
	char end;

	if (sscanf(text, "%d,%d%c", &o->between[0], &o->between[1], &end) == 2 && o->between[0] > 0 &&
		o->between[1] > 0)
		return 0;
	argp_error(state, "--between %s: two processes are needed, like 1234,1250", text);
	return EINVAL;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	unsigned long n;
	char *end;

	switch (key) {
	case KEY_JSON:
		o->json = arg;
		return 0;
	case KEY_BETWEEN:
		return read_pids(state, o, arg);
	case KEY_PROBE:
		o->probe = true;
		return 0;
	case 'r':
		n = strtoul(arg, &end, 10);
		if (*end || n < 1 || n > 100)
			argp_error(state, "--repeats %s: a whole number from 1 to 100 is needed", arg);
		o->repeats = (unsigned)n;
		return 0;
	case 't':
		o->seconds = strtod(arg, &end);
		if (end == arg || *end || !isfinite(o->seconds) || o->seconds < 1e-4 || o->seconds > 10)
			argp_error(state, "--time %s: seconds from 0.0001 to 10 are needed", arg);
		return 0;
	case ARGP_KEY_ARG:
		return want_group(state, o, arg);
	case ARGP_KEY_END:
		if (!o->probe || !o->json)
			return 0;
		argp_error(state, "--json %s: --probe has no results to write", o->json);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int open_json(struct mate *m, const char *path)
{
	int rc = bench_json_open("limits", path, &m->json);

	if (rc)
		return rc;
	m->json_path = path;
	fprintf(m->json, "{\"benchmark\": \"limits\",\n\"results\": [");
	fflush(m->json);
	return 0;
}

static int close_json(struct mate *m)
{
	FILE *f = m->json;

	m->json = NULL;
	fprintf(f, "\n]}\n");
	return bench_json_close(f, "limits", m->json_path) ? 2 : 0;
}

static int finish(struct mate *m, int status)
{
	status = mate_finish(m, status);
	return bench_printed("limits") ? 2 : status;
}

int main(int argc, char **argv)
{
	const struct argp argp = {.options = option_table,
		.parser = parse_option,
		.args_doc = "[line] [copy] [ring] [cross] [udp]",
		.doc = "The physical limits of this machine between two of its cores: all of them, or groups."};
	struct options o = {.seconds = 0.02, .repeats = 5};
	struct mate m = {0};
	int status = 0;

	argp_err_exit_status = 2;
	if (argp_parse(&argp, argc, argv, 0, NULL, &o))
		return 2;
	m.seconds = o.seconds;
	m.repeats = o.repeats;
	memcpy(m.between, o.between, sizeof(m.between));
	if (o.json && open_json(&m, o.json))
		return 2;
	if (mate_start(&m)) {
		if (m.json)
			bench_json_discard(m.json, o.json);
		return 2;
	}
	if (o.probe) {
		double ns = measure_probe(&m);

		if (!m.side)
			printf("%.1f\n", ns);
		return finish(&m, 0);
	}
	if (!m.quiet)
		printf("# median of %u%30s %8s %10s %10s %10s\n", o.repeats, "", "bytes", "median", "min", "max");
	for (size_t i = 0; i < GROUPS; i++)
		if (o.wanted[i] || !o.any)
			groups[i].run(&m);
	if (m.json)
		status = close_json(&m);
	return finish(&m, status);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rwk_info: what ropewalk sees, what it would do, and what it does in a running process: version, parameters, devices,
 * job map, and the choice for each kind of peer. For people, and as JSON for programs.
 */
#include "base/param.h"
#include "config.h"
#include "tools/info.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The C library looks for it; hidden, as all is by default, there is no --version. */
__attribute__((visibility("default"))) const char *argp_program_version = "rwk_info " PACKAGE_VERSION;

struct request {
	bool parameters, map, devices, json, svg;
	const char *job;  /* NODESxRANKS */
	const char *file; /* of a job map */
	uint32_t nodes, per_node;
	pid_t pid;    /* 0: none */
	double watch; /* seconds; 0: once */
	unsigned times;
};

enum { SVG = 256, TIMES };

static const struct argp_option options[] = {
	{"parameters", 'p', NULL, 0, "the parameters: values, where they come from, and what they are for", 0},
	{"map", 'm', NULL, 0, "the job map and the machine as this process sees them", 0},
	{"devices", 'd', NULL, 0, "network interfaces, RDMA devices, and limits", 0},
	{"job", 'j', "NODESxRANKS", 0,
		"what would be chosen in a job of that many nodes with that many ranks each, as 4096x64", 0},
	{"file", 'f', "FILE", 0, "check a job map file and print what it says", 0},
	{"pid", 'P', "PID", 0,
		"a running process: its endpoints, counters, peers, and why they are reached as they are", 0},
	{"watch", 'w', "SECONDS", 0, "with --pid: what goes out and in, a line each so many seconds", 0},
	{"times", TIMES, "N", 0, "with --watch: so many lines", 0},
	{"json", 'J', NULL, 0, "all that is printed is one JSON document", 0},
	{"svg", SVG, NULL, 0, "the job map (with --file or --job: that one) as a drawing, SVG", 0},
	{NULL, 0, NULL, 0, NULL, 0},
};

/* "4096x64": two numbers, at least 1 each, not more ranks than a job map holds. */
static bool read_job(struct request *r, const char *text)
{
	unsigned long long n[2];
	char *end;

	for (int i = 0; i < 2; i++) {
		if (!isdigit((unsigned char)*text))
			return false;
		errno = 0;
		n[i] = strtoull(text, &end, 10);
		if (errno || !n[i] || n[i] > RWK_MAX_RANKS || *end != (i ? '\0' : 'x'))
			return false;
		text = end + 1;
	}
	if (n[0] * n[1] > RWK_MAX_RANKS)
		return false;
	r->nodes = (uint32_t)n[0];
	r->per_node = (uint32_t)n[1];
	return true;
}

/* A whole number from 1 to 2^31 - 1; 0: it is none. */
static int read_count(const char *text)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	return errno || !isdigit((unsigned char)*text) || *end || v < 1 || v > INT32_MAX ? 0 : (int)v;
}

static double read_seconds(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	return *end || end == text || !isfinite(v) || v < 0.01 || v > 86400 ? 0 : v;
}

/* What must go together, when all is known. */
static void check(const struct request *r, struct argp_state *state)
{
	bool here = r->parameters || r->map || r->devices;

	if ((r->watch > 0) > (r->pid != 0))
		argp_error(state, "--watch needs --pid");
	if (r->times && !(r->watch > 0))
		argp_error(state, "--times needs --watch");
	if (r->watch > 0 && (r->json || here || r->job || r->file))
		argp_error(state, "--watch goes with --pid and --times alone");
	if (r->svg && (r->json || r->pid || r->parameters || r->devices || (r->job && r->file)))
		argp_error(state, "--svg draws one job map: this process's, or that of --file or --job");
}

static error_t read_option(int key, char *arg, struct argp_state *state)
{
	struct request *r = state->input;

	switch (key) {
	case 'p':
		r->parameters = true;
		return 0;
	case 'm':
		r->map = true;
		return 0;
	case 'd':
		r->devices = true;
		return 0;
	case 'J':
		r->json = true;
		return 0;
	case SVG:
		r->svg = true;
		return 0;
	case 'j':
		r->job = arg;
		if (!read_job(r, arg))
			argp_error(state,
				"--job %s is not <nodes>x<ranks a node> with at most %u ranks in all, as in 4096x64",
				arg, RWK_MAX_RANKS);
		return 0;
	case 'f':
		r->file = arg;
		return 0;
	case 'P':
		r->pid = read_count(arg);
		if (!r->pid)
			argp_error(state, "--pid %s is not the number of a process", arg);
		return 0;
	case 'w':
		r->watch = read_seconds(arg);
		if (!(r->watch > 0))
			argp_error(state, "--watch %s is not a number of seconds from 0.01 to 86400", arg);
		return 0;
	case TIMES:
		r->times = (unsigned)read_count(arg);
		if (!r->times)
			argp_error(state, "--times %s is not a number from 1 on", arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s is not an option; rwk_info takes options alone", arg);
		return 0;
	case ARGP_KEY_END:
		check(r, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The map of a file, of a job that does not exist, or this process's own; an error, or a remark, has been told. */
static int get_map(const char *file, const struct request *imagined, struct rwk_job_map **map)
{
	static const struct rwk_job_env own = {.machine = RWK_JOB_WHOLE};
	char why[512] = "";
	int rc;

	if (file)
		rc = rwk_job_map_read(file, NULL, map, why, sizeof(why));
	else if (imagined)
		rc = rwk_job_map_imagine(imagined->nodes, imagined->per_node, map);
	else
		rc = rwk_job_map_get(&own, map);
	if (rc || why[0])
		fprintf(stderr, "rwk_info: %s%s\n", file ? "" : "no job map: ", why[0] ? why : strerror(-rc));
	return rc;
}

/* As text if there is no document. */
static int print_map(struct rwk_doc *d, const char *name, const char *file)
{
	struct rwk_job_map *map;
	int rc = get_map(file, NULL, &map);

	if (rc)
		return rc;
	if (d)
		rwk_info_map_doc(d, name, map);
	else
		rwk_job_map_print(map, stdout);
	rwk_job_map_free(map);
	return 0;
}

static int print_drawing(const struct request *r)
{
	struct rwk_job_map *map;
	int rc = get_map(r->file, r->job ? r : NULL, &map);

	if (rc)
		return rc;
	if (r->file || r->job)
		rc = rwk_machine_load(&map->machine); /* the choice depends on it, and these maps are without */
	if (rc)
		fprintf(stderr, "rwk_info: %s\n", strerror(-rc));
	else
		rwk_info_draw(map, stdout);
	rwk_job_map_free(map);
	return rc;
}

static bool is_everything(const struct request *r)
{
	return !r->parameters && !r->map && !r->devices && !r->job && !r->file && !r->pid;
}

/* What was asked for, or everything about this process. */
static int print_text(const struct request *r)
{
	bool everything = is_everything(r);
	struct rwk_doc d;
	int rc = 0;

	rwk_doc_open(&d, stdout, false);
	if (everything)
		printf("ropewalk %s\n\n", PACKAGE_VERSION);
	if (everything || r->parameters)
		rwk_info_parameters();
	if (everything)
		printf("\n");
	if (everything || r->map)
		rc = print_map(NULL, NULL, NULL);
	if (everything)
		printf("\n");
	if (everything || r->devices)
		rwk_info_devices(&d);
	if (!rc && r->file)
		rc = print_map(NULL, NULL, r->file);
	if (!rc && r->job)
		rc = rwk_info_job(r->nodes, r->per_node);
	if (!rc && r->pid)
		rc = rwk_info_process(&d, r->pid);
	return rc;
}

static int print_json(const struct request *r, FILE *to)
{
	bool everything = is_everything(r);
	struct rwk_doc d;
	int rc = 0;

	rwk_doc_open(&d, to, true);
	rwk_doc_text(&d, "ropewalk", PACKAGE_VERSION);
	if (everything || r->parameters)
		rwk_info_parameters_doc(&d);
	if (everything || r->map)
		rc = print_map(&d, "map", NULL);
	if (everything || r->devices)
		rwk_info_devices(&d);
	if (!rc && r->file)
		rc = print_map(&d, "file", r->file);
	if (!rc && r->job)
		rc = rwk_info_job_doc(&d, r->nodes, r->per_node);
	if (!rc && r->pid)
		rc = rwk_info_process(&d, r->pid);
	rwk_doc_close(&d);
	return rc;
}

/* Nobody is given a part of a document: it is printed when it is whole. */
static int print_whole_json(const struct request *r)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	int rc;

	if (!to) {
		fprintf(stderr, "rwk_info: %s\n", strerror(errno));
		return -errno;
	}
	rc = print_json(r, to);
	if (fclose(to) && !rc)
		rc = -ENOMEM;
	if (!rc)
		fwrite(text, 1, len, stdout);
	free(text);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, read_option, NULL,
		"Shows what ropewalk sees: its parameters, the job map, the machine and its devices; what it would "
		"choose for a job that does not exist; and what a running process does. Without options: the version, "
		"the parameters, the job map and the devices.",
		NULL, NULL, NULL};
	struct request r = {0};
	int rc;

	if (argp_parse(&argp, argc, argv, 0, NULL, &r))
		return EXIT_FAILURE;
	rwk_param_load();
	if (r.svg)
		rc = print_drawing(&r);
	else if (r.watch > 0)
		rc = rwk_info_watch(r.pid, r.watch, r.times);
	else
		rc = r.json ? print_whole_json(&r) : print_text(&r);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "rwk_info: cannot write: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

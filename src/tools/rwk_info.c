/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rwk_info: what ropewalk sees and what it would do, for people: version, parameters, job map, and the choice for each
 * kind of peer.
 */
#include "base/param.h"
#include "config.h"
#include "selection/cost.h"
#include "selection/selection.h"
#include "topology/job_map.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define EVERY_STRAND ((1u << RWK_STRAND_COUNT) - 1)

const char *argp_program_version = "rwk_info " PACKAGE_VERSION;

struct request {
	bool parameters, map;
	const char *job;  /* NODESxRANKS */
	const char *file; /* of a job map */
	uint32_t nodes, per_node;
};

static const struct argp_option options[] = {
	{"parameters", 'p', NULL, 0, "the parameters: values, where they come from, and what they are for", 0},
	{"map", 'm', NULL, 0, "the job map and the machine as this process sees them", 0},
	{"job", 'j', "NODESxRANKS", 0,
		"what would be chosen in a job of that many nodes with that many ranks each, as 4096x64", 0},
	{"file", 'f', "FILE", 0, "check a job map file and print what it says", 0},
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
	case ARGP_KEY_ARG:
		argp_error(state, "%s is not an option; rwk_info takes options alone", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Whether the value in force is the environment's. A value that was refused is not, and has been warned about. */
static bool from_environment(const struct rwk_param *p, const char *variable)
{
	const char *text = getenv(variable);
	struct rwk_params scratch;
	char why[160];

	return text && !rwk_param_set(&scratch, p, text, why, sizeof(why));
}

static void print_parameter(const struct rwk_param *p)
{
	const char *initial = p->initial ? p->initial : "not set";
	char variable[64], value[4096], good[100];

	rwk_param_variable(p, variable, sizeof(variable));
	rwk_param_good(p, good, sizeof(good));
	rwk_param_show(&rwk_params, p, value, sizeof(value));
	if (from_environment(p, variable))
		printf("%s = %s (from the environment; the default is %s)\n", variable, value, initial);
	else
		printf("%s = %s (the default)\n", variable, value[0] ? value : initial);
	printf("    %s", p->help);
	if (p->type != RWK_PARAM_TEXT || p->form)
		printf("; %s%s", p->type == RWK_PARAM_BOOL || p->type == RWK_PARAM_CHOICE ? "one of: " : "", good);
	printf("\n");
}

static int print_map(void)
{
	struct rwk_job_map *map;
	int rc = rwk_job_map_get(NULL, &map);

	if (rc) {
		fprintf(stderr, "rwk_info: no job map: %s\n", strerror(-rc));
		return rc;
	}
	rwk_job_map_print(map, stdout);
	rwk_job_map_free(map);
	return 0;
}

static int print_file(const char *path)
{
	struct rwk_job_map *map;
	char why[512] = "";
	int rc = rwk_job_map_read(path, NULL, &map, why, sizeof(why));

	if (rc) {
		fprintf(stderr, "rwk_info: %s\n", why[0] ? why : strerror(-rc));
		return rc;
	}
	rwk_job_map_print(map, stdout);
	rwk_job_map_free(map);
	return 0;
}

/* The choice by rights, as if every strand were there, and then whether it is. */
static void print_choice(const char *kind, struct rwk_sel_facts *f)
{
	struct rwk_sel_choice c;

	f->built = EVERY_STRAND;
	rwk_sel_choose(f, &c);
	printf("\n%s: %s\n    because %s\n", kind, c.error ? "refused" : rwk_strand_text(c.strand), c.reason);
	if (c.manner[0])
		printf("    %s\n", c.manner);
	for (enum rwk_strand s = 0; s < RWK_STRAND_COUNT; s++) {
		if (c.lost[s][0])
			printf("    not %s: %s\n", rwk_strand_text(s), c.lost[s]);
	}
}

enum { RANK_RC, RANK_SRC, NODE_RC, NODE_SRC, COSTS };

static void print_row(const char *what, uint64_t (*of)(const struct rwk_cost *), const struct rwk_cost c[COSTS])
{
	printf("%-14s %14" PRIu64 " %12" PRIu64 " %14" PRIu64 " %12" PRIu64 "\n", what, of(&c[RANK_RC]),
		of(&c[RANK_SRC]), of(&c[NODE_RC]), of(&c[NODE_SRC]));
}

static uint64_t queue_pairs(const struct rwk_cost *c)
{
	return c->queue_pairs;
}

static uint64_t initiators(const struct rwk_cost *c)
{
	return c->initiators;
}

static uint64_t targets(const struct rwk_cost *c)
{
	return c->targets;
}

static uint64_t timers(const struct rwk_cost *c)
{
	return c->timers;
}

static uint64_t sockets(const struct rwk_cost *c)
{
	return c->sockets;
}

static void print_memory(const struct rwk_cost c[COSTS])
{
	char text[COSTS][RWK_COST_TEXT];

	for (int i = 0; i < COSTS; i++)
		rwk_cost_bytes(c[i].bytes, text[i]);
	printf("%-14s %14s %12s %14s %12s\n", "memory", text[RANK_RC], text[RANK_SRC], text[NODE_RC], text[NODE_SRC]);
}

/* Without a stream nothing tells of a peer's death: it matters long before memory does where descriptors are few. */
static void print_descriptors(const struct rwk_cost c[COSTS])
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && c[RANK_RC].sockets > limit.rlim_cur)
		printf("RC needs more descriptors than a process may have here; `ulimit -n` is %llu\n",
			(unsigned long long)limit.rlim_cur);
}

/* What it takes to reach all other nodes, and what is chosen by it. */
static void print_costs(const struct request *r, const struct rwk_sel_facts *f)
{
	const struct rwk_cost c[COSTS] = {
		[RANK_RC] = rwk_cost_of_rank(r->nodes, r->per_node, false),
		[RANK_SRC] = rwk_cost_of_rank(r->nodes, r->per_node, true),
		[NODE_RC] = rwk_cost_of_node(r->nodes, r->per_node, false),
		[NODE_SRC] = rwk_cost_of_node(r->nodes, r->per_node, true),
	};
	char memory[RWK_COST_TEXT];

	printf("%u node%s of %u rank%s, %u in all, on nodes like this one", r->nodes, r->nodes == 1 ? "" : "s",
		r->per_node, r->per_node == 1 ? "" : "s", f->size);
	printf("%s%s\n", f->memory ? ", with memory of " : "", f->memory ? rwk_cost_bytes(f->memory, memory) : "");
	if (r->nodes == 1)
		return;
	printf("\n%-14s %27s %27s\n", "to other nodes", "a process", "a node");
	printf("%-14s %14s %12s %14s %12s\n", "", "RC", "SRC", "RC", "SRC");
	print_row("queue pairs", queue_pairs, c);
	print_row("  that send", initiators, c);
	print_row("  that receive", targets, c);
	print_memory(c);
	print_row("timers", timers, c);
	print_row("sockets", sockets, c);
	print_descriptors(c);
	printf("A process's part with SRC: its own, and its share of what the node's processes have in common.\n");
	printf("queue pairs of the whole job, all to all: RC %" PRIu64 ", SRC %" PRIu64 "\n",
		rwk_cost_queue_pairs(r->nodes, r->per_node, false), rwk_cost_queue_pairs(r->nodes, r->per_node, true));
	printf("SRC is taken where RC needs more than %u connections a process\n", f->src_limit);
}

static int print_job(const struct request *r)
{
	struct rwk_sel_facts f;
	struct rwk_job_map *map;
	char kind[80];
	int rc = rwk_job_map_imagine(r->nodes, r->per_node, &map);

	if (!rc) {
		rc = rwk_machine_load(&map->machine);
		if (rc)
			rwk_job_map_free(map);
	}
	if (rc) {
		fprintf(stderr, "rwk_info: --job %s: %s\n", r->job, strerror(-rc));
		return rc;
	}
	rwk_sel_facts_init(&f, map, &rwk_params);
	rwk_job_map_free(map);
	print_costs(r, &f);
	f.self = true;
	print_choice("myself", &f);
	f.self = false;
	if (r->per_node > 1) {
		f.node = RWK_SEL_CLAIMED;
		snprintf(kind, sizeof(kind), "%u peer%s on this node", r->per_node - 1, r->per_node == 2 ? "" : "s");
		print_choice(kind, &f);
	}
	if (r->nodes > 1) {
		f.node = RWK_SEL_OTHER;
		snprintf(kind, sizeof(kind), "%" PRIu64 " peer%s on other nodes", rwk_sel_rc_connections(&f),
			f.size == 2 ? "" : "s");
		print_choice(kind, &f);
	}
	return 0;
}

/* What was asked for, or everything about this process. */
static int print_all(const struct request *r)
{
	bool everything = !r->parameters && !r->map && !r->job && !r->file;
	int rc = 0;

	if (everything)
		printf("ropewalk %s\n\n", PACKAGE_VERSION);
	for (size_t i = 0; (everything || r->parameters) && i < rwk_param_count; i++)
		print_parameter(&rwk_param_table[i]);
	if (everything)
		printf("\n");
	if (everything || r->map)
		rc = print_map();
	if (!rc && r->file)
		rc = print_file(r->file);
	if (!rc && r->job)
		rc = print_job(r);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, read_option, NULL,
		"Shows what ropewalk sees: its parameters, the job map and the machine; and what it would choose for a "
		"job that does not exist. Without options: the version, the parameters and the job map.",
		NULL, NULL, NULL};
	struct request r = {0};
	int rc;

	if (argp_parse(&argp, argc, argv, 0, NULL, &r))
		return EXIT_FAILURE;
	rwk_param_load();
	rc = print_all(&r);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "rwk_info: cannot write: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

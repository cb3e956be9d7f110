/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How RC and SRC grow with a job: jobs of real machines on the simulated network, counted (scale_job.h); and larger
 * ones by the formulas that selection and rwk_info have (selection/cost.h), which are held against what was counted.
 */
#include "base/param.h"
#include "bench/common/clock.h"
#include "bench/common/report.h"
#include "bench/scale_job.h"
#include "selection/cost.h"
#include "selection/selection.h"
#include "topology/job_map.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX 64

enum { KEY_JSON = 256, KEY_PMTU, KEY_RATE, KEY_PACKET_TIME, KEY_LOSS, KEY_SEED, KEY_SRC_LAZY, KEY_BATCH, KEY_MEMORY };

static const struct argp_option option_table[] = {
	{"jobs", 'j', "LIST", 0, "Jobs to make and count, as NODESxRANKS (default 2x4,4x8,8x16,16x32)", 0},
	{"extrapolate", 'x', "LIST", 0, "Jobs to work out (default 64x64,1024x128)", 0},
	{"size", 's', "BYTES", 0, "Of each message (default 1024)", 0},
	{"pmtu", KEY_PMTU, "BYTES", 0, "Of payload in a packet: 256, 512, 1024, 2048 or 4096 (default 4096)", 0},
	{"rate", KEY_RATE, "GBIT", 0, "A second, of each node's cable in each direction (default 100)", 0},
	{"packet-time", KEY_PACKET_TIME, "NS", 0,
		"That a rank's processor works for each packet sent or taken (default 300)", 0},
	{"batch", KEY_BATCH, "N", 0, "Packets that a rank takes at a time, then acknowledges (default 32)", 0},
	{"loss", KEY_LOSS, "PERCENT", 0, "Of packets, by chance (default 0)", 0},
	{"seed", KEY_SEED, "N", 0, "Of that chance (default 1)", 0},
	{"src-lazy", KEY_SRC_LAZY, NULL, 0, "SRC acknowledges late as RC does, which a domain would need a clock for",
		0},
	{"memory", KEY_MEMORY, "GIB", 0, "Of a node, for what selection would take (default: this machine's)", 0},
	{"json", KEY_JSON, "FILE", 0, "Write the results to FILE; scale_plot draws them", 0},
	{0},
};

struct shape {
	uint32_t nodes, per_node;
};

struct options {
	struct shape job[JOBS_MAX], beyond[JOBS_MAX];
	unsigned jobs, beyonds;
	struct scale_attr attr;
	double memory; /* GiB; 0: this machine's */
	const char *json;
};

/* "2x4,16x32", each with at most so many ranks. */
static bool read_shapes(const char *text, uint64_t most, struct shape *to, unsigned *count)
{
	*count = 0;
	for (;; text++) {
		unsigned long long n[2];
		char *end;

		for (int i = 0; i < 2; i++) {
			if (!isdigit((unsigned char)*text))
				return false;
			errno = 0;
			n[i] = strtoull(text, &end, 10);
			if (errno || !n[i] || n[i] > most || (!i && *end != 'x'))
				return false;
			text = i ? end : end + 1;
		}
		if (n[0] * n[1] > most || *count == JOBS_MAX)
			return false;
		to[(*count)++] = (struct shape){(uint32_t)n[0], (uint32_t)n[1]};
		if (*text != ',')
			return !*text;
	}
}

static double read_number(struct argp_state *state, const char *name, const char *text, double least, double most)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= least && v <= most))
		argp_error(state, "--%s %s: a number from %g to %g is needed", name, text, least, most);
	return v;
}

static uint32_t read_whole(struct argp_state *state, const char *name, const char *text, uint32_t most)
{
	double v = read_number(state, name, text, 0, most);

	if (v != floor(v))
		argp_error(state, "--%s %s: a whole number is needed", name, text);
	return (uint32_t)v;
}

static uint32_t read_pmtu(struct argp_state *state, const char *text)
{
	uint32_t v = read_whole(state, "pmtu", text, 4096);

	if (v < 256 || v & (v - 1))
		argp_error(state, "--pmtu %s: it is one of 256, 512, 1024, 2048, 4096", text);
	return v;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'j':
		if (!read_shapes(arg, SCALE_RANKS_MAX, o->job, &o->jobs))
			argp_error(state, "--jobs %s: jobs are like 2x4,16x32, of at most %u ranks, %d at most", arg,
				SCALE_RANKS_MAX, JOBS_MAX);
		return 0;
	case 'x':
		if (!read_shapes(arg, 1 << 24, o->beyond, &o->beyonds))
			argp_error(state,
				"--extrapolate %s: jobs are like 64x64,1024x128, of at most %u ranks, %d at most", arg,
				1 << 24, JOBS_MAX);
		return 0;
	case 's':
		o->attr.size = read_whole(state, "size", arg, 1 << 20);
		return 0;
	case KEY_PMTU:
		o->attr.pmtu = read_pmtu(state, arg);
		return 0;
	case KEY_RATE:
		o->attr.gbit = read_number(state, "rate", arg, 0.001, 1e6);
		return 0;
	case KEY_PACKET_TIME:
		o->attr.packet_ns = read_whole(state, "packet-time", arg, 1000000);
		return 0;
	case KEY_BATCH:
		o->attr.batch = read_whole(state, "batch", arg, SCALE_BATCH_MAX);
		if (!o->attr.batch)
			argp_error(state, "--batch 0: at least one packet is taken at a time");
		return 0;
	case KEY_LOSS:
		o->attr.drop = (uint32_t)(read_number(state, "loss", arg, 0, 50) * 10000);
		return 0;
	case KEY_SEED:
		o->attr.seed = read_whole(state, "seed", arg, UINT32_MAX);
		return 0;
	case KEY_SRC_LAZY:
		o->attr.src_lazy = true;
		return 0;
	case KEY_MEMORY:
		o->memory = read_number(state, "memory", arg, 0.001, 1 << 20);
		return 0;
	case KEY_JSON:
		o->json = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: not an option; --help lists them", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/*
 * One job, by both services.
 */

struct both {
	struct shape shape;
	struct scale_result of[2]; /* RC, SRC */
	bool agrees;               /* with the formulas */
};

/* But for the timers of late acknowledgements, which SRC does not have. */
static bool agrees_with_formula(const struct options *o, const struct shape *s, const struct scale_result *r, bool src)
{
	struct rwk_cost c = rwk_cost_of_node(s->nodes, s->per_node, src);

	return r->queue_pairs == rwk_cost_queue_pairs(s->nodes, s->per_node, src) &&
	       r->initiators == s->nodes * c.initiators && r->targets == s->nodes * c.targets &&
	       r->machines == s->nodes * c.machines &&
	       r->timers == s->nodes * c.timers + (src && o->attr.src_lazy ? r->targets : 0);
}

/* Counts it. False: it broke off, or a message went wrong; that was said. */
static bool count_job(const struct options *o, struct both *b)
{
	static const char *const names[] = {"RC", "SRC"};

	b->agrees = true;
	for (int src = 0; src < 2; src++) {
		struct scale_attr attr = o->attr;
		int rc;

		attr.nodes = b->shape.nodes;
		attr.per_node = b->shape.per_node;
		attr.src = src;
		rc = scale_run(&attr, &b->of[src]);
		if (rc || b->of[src].wrong || b->of[src].delivered != b->of[src].messages) {
			fprintf(stderr,
				"scale: %ux%u over %s: %s; %" PRIu64 " of %" PRIu64 " messages arrived, %" PRIu64
				" errors\n",
				attr.nodes, attr.per_node, names[src], rc ? strerror(-rc) : "not all is right",
				b->of[src].delivered, b->of[src].messages, b->of[src].wrong);
			return false;
		}
		b->agrees = b->agrees && agrees_with_formula(o, &b->shape, &b->of[src], src);
	}
	return true;
}

static void print_row(const char *what, double rc, double src, int decimals)
{
	printf("%-44s %14.*f %14.*f", what, decimals, rc, decimals, src);
	if (rc > 0)
		printf(" %9.4f", src / rc);
	printf("\n");
}

static void print_job(const struct both *b)
{
	const struct scale_result *rc = &b->of[0], *src = &b->of[1];
	double nodes = b->shape.nodes, ranks = nodes * b->shape.per_node;

	printf("\n%u node%s of %u rank%s, %" PRIu64 " messages: each arrived once, where it should\n", b->shape.nodes,
		b->shape.nodes == 1 ? "" : "s", b->shape.per_node, b->shape.per_node == 1 ? "" : "s", rc->messages);
	printf("%-44s %14s %14s %9s\n", "", "RC", "SRC", "SRC / RC");
	print_row("queue pairs of the job", (double)rc->queue_pairs, (double)src->queue_pairs, 0);
	print_row("queue pairs of a node", (double)rc->queue_pairs / nodes, (double)src->queue_pairs / nodes, 0);
	print_row("queue pairs of a rank", (double)rc->queue_pairs / ranks, (double)src->queue_pairs / ranks, 1);
	print_row("  initiators", (double)rc->initiators / ranks, (double)src->initiators / ranks, 1);
	print_row("  targets, its share of the node's", (double)rc->targets / ranks, (double)src->targets / ranks, 1);
	print_row("machines' memory of a rank, KiB", (double)rc->machines / ranks / 1024,
		(double)src->machines / ranks / 1024, 1);
	print_row("machines' memory of a node, KiB", (double)rc->machines / nodes / 1024,
		(double)src->machines / nodes / 1024, 1);
	print_row("timers of a rank", (double)rc->timers / ranks, (double)src->timers / ranks, 1);
	print_row("queue pairs with one set, at most at a time", (double)rc->waiting, (double)src->waiting, 0);
	print_row("packets", (double)rc->packets, (double)src->packets, 0);
	print_row("  acknowledgements by themselves", (double)rc->acks, (double)src->acks, 0);
	print_row("  sent again", (double)rc->sent_again, (double)src->sent_again, 0);
	print_row("acknowledgements along with messages", (double)rc->acks_along, (double)src->acks_along, 0);
	print_row("bytes, with all headers", (double)rc->bytes, (double)src->bytes, 0);
	print_row("all delivered after, virtual us", rc->delivered_us, src->delivered_us, 1);
	print_row("all known to be delivered after, virtual us", rc->done_us, src->done_us, 1);
	printf("queue pairs, memory and timers are %s by the formulas\n", b->agrees ? "as" : "NOT as");
}

/* Whether selection would have the ranks of such a job share their connections. */
static bool is_shared(const struct options *o, const struct shape *s)
{
	struct rwk_sel_choice c;
	struct rwk_sel_facts f;
	struct rwk_job_map *map;
	int rc = rwk_job_map_imagine(s->nodes, s->per_node, &map);

	if (!rc)
		rc = rwk_machine_load(&map->machine);
	if (rc) {
		fprintf(stderr, "scale: no map of %ux%u ranks: %s\n", s->nodes, s->per_node, strerror(-rc));
		exit(2);
	}
	rwk_sel_facts_init(&f, map, &rwk_params);
	rwk_job_map_free(map);
	if (o->memory > 0)
		f.memory = (uint64_t)(o->memory * (1 << 30));
	rwk_sel_set_limit(&f, rwk_params.src_limit);
	f.node = RWK_SEL_OTHER;
	rwk_sel_choose(&f, &c);
	return !c.error && c.strand == RWK_STRAND_SRC_UDP;
}

static void print_bytes(const char *what, uint64_t rc, uint64_t src)
{
	char text[2][RWK_COST_TEXT];

	printf("%-44s %14s %14s", what, rwk_cost_bytes(rc, text[0]), rwk_cost_bytes(src, text[1]));
	if (rc)
		printf(" %9.4f", (double)src / (double)rc);
	printf("\n");
}

static void print_beyond(const struct options *o, const struct shape *s)
{
	struct rwk_cost rank[2], node[2];

	for (int src = 0; src < 2; src++) {
		rank[src] = rwk_cost_of_rank(s->nodes, s->per_node, src);
		node[src] = rwk_cost_of_node(s->nodes, s->per_node, src);
	}
	printf("\n%u nodes of %u ranks, by the formulas\n%-44s %14s %14s %9s\n", s->nodes, s->per_node, "", "RC", "SRC",
		"SRC / RC");
	print_row("queue pairs of the job", (double)rwk_cost_queue_pairs(s->nodes, s->per_node, false),
		(double)rwk_cost_queue_pairs(s->nodes, s->per_node, true), 0);
	print_row("queue pairs of a node", (double)node[0].queue_pairs, (double)node[1].queue_pairs, 0);
	print_row("queue pairs of a rank", (double)rank[0].queue_pairs, (double)rank[1].queue_pairs, 0);
	print_bytes("machines' memory of a rank", rank[0].machines, rank[1].machines);
	print_bytes("machines' memory of a node", node[0].machines, node[1].machines);
	print_bytes("memory of a rank, the kernel's streams included", rank[0].bytes, rank[1].bytes);
	print_bytes("memory of a node, the kernel's streams included", node[0].bytes, node[1].bytes);
	print_row("timers of a rank", (double)rank[0].timers, (double)rank[1].timers, 0);
	print_row("timers of a node", (double)node[0].timers, (double)node[1].timers, 0);
	print_row("sockets of a rank", (double)rank[0].sockets, (double)rank[1].sockets, 0);
	printf("selection takes %s\n", is_shared(o, s) ? "SRC" : "RC");
}

/*
 * JSON.
 */

static void json_counted(FILE *f, const struct both *b, bool src)
{
	const struct scale_result *r = &b->of[src];

	fprintf(f, "{\"nodes\": %u, \"ranks_per_node\": %u, \"service\": \"%s\", \"agrees\": %s, ", b->shape.nodes,
		b->shape.per_node, src ? "SRC" : "RC", b->agrees ? "true" : "false");
	fprintf(f,
		"\"queue_pairs\": %" PRIu64 ", \"initiators\": %" PRIu64 ", \"targets\": %" PRIu64
		", \"machines\": %" PRIu64 ", \"timers\": %" PRIu64 ", \"waiting\": %" PRIu64 ", ",
		r->queue_pairs, r->initiators, r->targets, r->machines, r->timers, r->waiting);
	fprintf(f,
		"\"messages\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"acks\": %" PRIu64 ", \"acks_along\": %" PRIu64
		", \"sent_again\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"bytes\": %" PRIu64 ", ",
		r->messages, r->packets, r->acks, r->acks_along, r->sent_again, r->dropped, r->bytes);
	fprintf(f, "\"delivered_us\": %.3f, \"done_us\": %.3f}", r->delivered_us, r->done_us);
}

static void json_cost(FILE *f, const char *of, const struct rwk_cost *c)
{
	fprintf(f,
		", \"%s_queue_pairs\": %" PRIu64 ", \"%s_machines\": %" PRIu64 ", \"%s_bytes\": %" PRIu64
		", \"%s_timers\": %" PRIu64 ", \"%s_sockets\": %" PRIu64,
		of, c->queue_pairs, of, c->machines, of, c->bytes, of, c->timers, of, c->sockets);
}

static void json_formula(FILE *f, const struct shape *s, bool src, bool taken)
{
	struct rwk_cost node = rwk_cost_of_node(s->nodes, s->per_node, src);
	struct rwk_cost rank = rwk_cost_of_rank(s->nodes, s->per_node, src);

	fprintf(f,
		"{\"nodes\": %u, \"ranks_per_node\": %u, \"service\": \"%s\", \"taken\": %s, \"queue_pairs\": %" PRIu64,
		s->nodes, s->per_node, src ? "SRC" : "RC", taken ? "true" : "false",
		rwk_cost_queue_pairs(s->nodes, s->per_node, src));
	json_cost(f, "node", &node);
	json_cost(f, "rank", &rank);
	fprintf(f, "}");
}

static void json_both(FILE *f, const struct options *o, const struct shape *s)
{
	bool shared = is_shared(o, s);

	json_formula(f, s, false, !shared);
	fprintf(f, ",\n");
	json_formula(f, s, true, shared);
}

/* What was asked for, and enough of N and J to draw lines through. */
static void json_formulas(FILE *f, const struct options *o)
{
	static const uint32_t ranks[] = {1, 8, 32, 128};
	const char *comma = "";

	for (unsigned i = 0; i < o->beyonds; i++) {
		fprintf(f, "%s\n", comma);
		json_both(f, o, &o->beyond[i]);
		comma = ",";
	}
	for (unsigned i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		for (struct shape s = {2, ranks[i]}; s.nodes <= 1024; s.nodes *= 2) {
			fprintf(f, "%s\n", comma);
			json_both(f, o, &s);
			comma = ",";
		}
	}
}

static int write_json(FILE *f, const struct options *o, const struct both *b, double seconds)
{
	fprintf(f,
		"{\"benchmark\": \"scale\", \"size\": %u, \"pmtu\": %u, \"gbit\": %g, \"packet_ns\": %u, \"batch\": "
		"%u, \"loss\": "
		"%g, \"src_lazy\": %s,\n",
		o->attr.size, o->attr.pmtu, o->attr.gbit, o->attr.packet_ns, o->attr.batch, o->attr.drop / 10000.0,
		o->attr.src_lazy ? "true" : "false");
	fprintf(f, "\"results\": [");
	for (unsigned i = 0; i < 2 * o->jobs; i++) {
		fprintf(f, "%s\n", i ? "," : "");
		json_counted(f, &b[i / 2], i % 2);
	}
	fprintf(f, "\n],\n\"formulas\": [");
	json_formulas(f, o);
	fprintf(f, "\n], \"seconds\": %.3f}\n", seconds);
	return bench_json_close(f, "scale", o->json) ? 2 : 0;
}

/* Counts and prints them all: 0, 1 if one is not as by the formulas, or -1 if there is nothing to say of one. */
static int all_jobs(const struct options *o, struct both *b)
{
	bool agrees = true;

	for (unsigned i = 0; i < o->jobs; i++) {
		b[i].shape = o->job[i];
		if (!count_job(o, &b[i]))
			return -1;
		print_job(&b[i]);
		fflush(stdout);
		agrees = agrees && b[i].agrees;
	}
	for (unsigned i = 0; i < o->beyonds; i++)
		print_beyond(o, &o->beyond[i]);
	return agrees ? 0 : 1;
}

int main(int argc, char **argv)
{
	const struct argp argp = {.options = option_table,
		.parser = parse_option,
		.doc = "All-to-all between nodes with RC and with SRC, on a simulated network: one message from each "
		       "rank to "
		       "each rank on another node."};
	struct options o = {
		.attr = {.size = 1024, .pmtu = 4096, .gbit = 100, .packet_ns = 300, .batch = 32, .seed = 1}};
	static struct both b[JOBS_MAX];
	double started = bench_now();
	FILE *json = NULL;
	int rc;

	read_shapes("2x4,4x8,8x16,16x32", SCALE_RANKS_MAX, o.job, &o.jobs);
	read_shapes("64x64,1024x128", 1 << 24, o.beyond, &o.beyonds);
	argp_err_exit_status = 2;
	rwk_param_load();
	if (argp_parse(&argp, argc, argv, 0, NULL, &o))
		return 2;
	if (o.json && bench_json_open("scale", o.json, &json))
		return 2;
	printf("# messages of %u bytes, %u in a packet at most; cables of %g Gbit/s; a packet is %u ns of a rank's "
	       "work; "
	       "%g %% lost\n",
		o.attr.size, o.attr.pmtu, o.attr.gbit, o.attr.packet_ns, o.attr.drop / 10000.0);
	rc = all_jobs(&o, b);
	if (json && rc < 0)
		bench_json_discard(json, o.json);
	else if (json && write_json(json, &o, b, bench_now() - started))
		return 2;
	return bench_printed("scale") ? 2 : rc != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What ropewalk would choose in a job that does not exist, and what that takes. */
#include "selection/cost.h"
#include "selection/selection.h"
#include "tools/info.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#define EVERY_STRAND ((1u << RWK_STRAND_COUNT) - 1)

static void print_choice(const char *kind, const struct rwk_sel_facts *f)
{
	struct rwk_sel_choice c;

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

/* Would SRC carry messages to other nodes, if that were the limit? */
static bool takes_src(const struct rwk_sel_facts *f, uint32_t limit)
{
	struct rwk_sel_facts with = *f;
	struct rwk_sel_choice c;

	with.node = RWK_SEL_OTHER;
	with.src_limit = limit;
	rwk_sel_choose(&with, &c);
	return c.strand == RWK_STRAND_SRC_UDP;
}

/* The limit counts where nothing else decides: a parameter, or that SRC would save nothing. */
static void print_limit(const struct rwk_sel_facts *f)
{
	if (takes_src(f, UINT32_MAX))
		printf("SRC is taken, however few connections RC needs\n");
	else if (takes_src(f, 0))
		printf("SRC is taken where RC needs more than %u connections a process\n", f->src_limit);
	else if (rwk_sel_src_connections(f) == rwk_sel_rc_connections(f))
		printf("SRC is not taken: it would take as many connections as RC\n");
	else
		printf("SRC is not taken, however many connections RC needs: why is said below\n");
}

/* What it takes to reach all other nodes, and what is chosen by it. */
static void print_costs(uint32_t nodes, uint32_t per_node, const struct rwk_sel_facts *f)
{
	const struct rwk_cost c[COSTS] = {
		[RANK_RC] = rwk_cost_of_rank(nodes, per_node, false),
		[RANK_SRC] = rwk_cost_of_rank(nodes, per_node, true),
		[NODE_RC] = rwk_cost_of_node(nodes, per_node, false),
		[NODE_SRC] = rwk_cost_of_node(nodes, per_node, true),
	};
	char memory[RWK_COST_TEXT];

	printf("%u node%s of %u rank%s, %u in all, on nodes like this one", nodes, nodes == 1 ? "" : "s",
		per_node, per_node == 1 ? "" : "s", f->size);
	printf("%s%s\n", f->memory ? ", with memory of " : "", f->memory ? rwk_cost_bytes(f->memory, memory) : "");
	if (nodes == 1)
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
		rwk_cost_queue_pairs(nodes, per_node, false), rwk_cost_queue_pairs(nodes, per_node, true));
	print_limit(f);
}

/** The facts of such a job on nodes like this one. */
static int imagine(uint32_t nodes, uint32_t per_node, struct rwk_sel_facts *f)
{
	struct rwk_job_map *map;
	int rc = rwk_job_map_imagine(nodes, per_node, &map);

	if (!rc) {
		rc = rwk_machine_load(&map->machine);
		if (rc)
			rwk_job_map_free(map);
	}
	if (rc) {
		fprintf(stderr, "rwk_info: --job %ux%u: %s\n", nodes, per_node, strerror(-rc));
		return rc;
	}
	rwk_sel_facts_init(f, map, &rwk_params);
	rwk_job_map_free(map);
	f->udp = rwk_params.udp;
	f->tcp = rwk_params.tcp;
	f->built = EVERY_STRAND; /* the choice by rights, as if every strand were there, and then whether it is */
	return 0;
}

int rwk_info_job(uint32_t nodes, uint32_t per_node)
{
	struct rwk_sel_facts f;
	char kind[80];
	int rc = imagine(nodes, per_node, &f);

	if (rc)
		return rc;
	print_costs(nodes, per_node, &f);
	f.self = true;
	print_choice("myself", &f);
	f.self = false;
	if (per_node > 1) {
		f.node = RWK_SEL_CLAIMED;
		snprintf(kind, sizeof(kind), "%u peer%s on this node", per_node - 1, per_node == 2 ? "" : "s");
		print_choice(kind, &f);
	}
	if (nodes > 1) {
		f.node = RWK_SEL_OTHER;
		snprintf(kind, sizeof(kind), "%" PRIu64 " peer%s on other nodes", rwk_sel_rc_connections(&f),
			f.size == 2 ? "" : "s");
		print_choice(kind, &f);
	}
	return 0;
}

static void choice_doc(struct rwk_doc *d, const char *where, uint64_t peers, const struct rwk_sel_facts *f)
{
	struct rwk_sel_choice c;

	rwk_sel_choose(f, &c);
	rwk_doc_object(d, "kind");
	rwk_doc_text(d, "where", where);
	rwk_doc_number(d, "peers", peers);
	rwk_doc_text(d, "strand", c.error ? NULL : rwk_strand_text(c.strand));
	rwk_doc_text(d, "reason", c.reason);
	rwk_doc_text(d, "manner", c.manner[0] ? c.manner : NULL);
	rwk_doc_object(d, "not");
	for (enum rwk_strand s = 0; s < RWK_STRAND_COUNT; s++) {
		if (c.lost[s][0])
			rwk_doc_text(d, rwk_strand_text(s), c.lost[s]);
	}
	rwk_doc_end(d);
	rwk_doc_end(d);
}

static void cost_doc(struct rwk_doc *d, const char *name, const struct rwk_cost *c)
{
	rwk_doc_object(d, name);
	rwk_doc_number(d, "queue_pairs", c->queue_pairs);
	rwk_doc_number(d, "initiators", c->initiators);
	rwk_doc_number(d, "targets", c->targets);
	rwk_doc_number(d, "bytes", c->bytes);
	rwk_doc_number(d, "timers", c->timers);
	rwk_doc_number(d, "sockets", c->sockets);
	rwk_doc_end(d);
}

static void costs_doc(struct rwk_doc *d, uint32_t nodes, uint32_t per_node)
{
	static const char *const service[] = {"rc", "src"};

	for (int shared = 0; shared < 2; shared++) {
		const struct rwk_cost rank = rwk_cost_of_rank(nodes, per_node, shared);
		const struct rwk_cost node = rwk_cost_of_node(nodes, per_node, shared);

		rwk_doc_object(d, service[shared]);
		cost_doc(d, "process", &rank);
		cost_doc(d, "node", &node);
		rwk_doc_number(d, "queue_pairs_of_the_job", rwk_cost_queue_pairs(nodes, per_node, shared));
		rwk_doc_end(d);
	}
}

int rwk_info_job_doc(struct rwk_doc *d, uint32_t nodes, uint32_t per_node)
{
	struct rwk_sel_facts f;
	int rc = imagine(nodes, per_node, &f);

	if (rc)
		return rc;
	rwk_doc_object(d, "job");
	rwk_doc_number(d, "nodes", nodes);
	rwk_doc_number(d, "ranks_per_node", per_node);
	rwk_doc_number(d, "src_limit", f.src_limit);
	if (nodes > 1)
		costs_doc(d, nodes, per_node);
	rwk_doc_list(d, "kinds");
	f.self = true;
	choice_doc(d, "myself", 1, &f);
	f.self = false;
	f.node = RWK_SEL_CLAIMED;
	if (per_node > 1)
		choice_doc(d, "this node", per_node - 1, &f);
	f.node = RWK_SEL_OTHER;
	if (nodes > 1)
		choice_doc(d, "other nodes", rwk_sel_rc_connections(&f), &f);
	rwk_doc_end(d);
	rwk_doc_end(d);
	return 0;
}

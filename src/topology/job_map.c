/* SPDX-License-Identifier: BSD-3-Clause */
#include "topology/job_map.h"

#include "base/log.h"
#include "topology/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const source_texts[] = {
	[RWK_JOB_NONE] = "none",
	[RWK_JOB_FILE] = "file",
	[RWK_JOB_PMIX] = "PMIx",
	[RWK_JOB_OMPI] = "Open MPI environment",
	[RWK_JOB_HYDRA] = "Hydra environment",
	[RWK_JOB_SLURM] = "Slurm environment",
};

/*
 * In the order in which they are asked. Hydra's processes under Slurm inherit the Slurm variables of Hydra's own
 * daemons, and Open MPI's of theirs: the environment nearest to the process comes first.
 */
static const struct {
	enum rwk_job_source source;
	rwk_job_source_fn ask;
} sources[] = {
	{RWK_JOB_FILE, rwk_job_from_file},
	{RWK_JOB_PMIX, rwk_job_from_pmix},
	{RWK_JOB_OMPI, rwk_job_from_ompi},
	{RWK_JOB_HYDRA, rwk_job_from_hydra},
	{RWK_JOB_SLURM, rwk_job_from_slurm},
};

const char *rwk_job_source_text(enum rwk_job_source source)
{
	return source_texts[source];
}

void rwk_job_map_clear(struct rwk_job_map *draft)
{
	free(draft->id);
	free(draft->local_ranks);
	rwk_node_map_free(&draft->map);
	rwk_machine_free(&draft->machine);
	memset(draft, 0, sizeof(*draft));
	draft->node = RWK_NODE_NONE;
	draft->rank = RWK_RANK_NONE;
}

void rwk_job_map_free(struct rwk_job_map *map)
{
	if (!map)
		return;
	rwk_job_map_clear(map);
	free(map);
}

/* The ranks on my node, from a node map that knows mine. */
static int list_local_ranks(struct rwk_job_map *m)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < m->size; r++)
		n += rwk_node_map_at(&m->map, r) == m->node;
	m->local_ranks = malloc(n * sizeof(*m->local_ranks));
	if (!m->local_ranks)
		return -ENOMEM;
	m->local_size = n;
	n = 0;
	for (uint32_t r = 0; r < m->size; r++) {
		if (rwk_node_map_at(&m->map, r) == m->node)
			m->local_ranks[n++] = r;
	}
	return 0;
}

static int compare_ranks(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

uint32_t rwk_job_map_local_index(const struct rwk_job_map *map, uint32_t rank)
{
	const uint32_t *at;

	if (rank == RWK_RANK_NONE)
		return RWK_RANK_NONE;
	if (!map->local_ranks)
		return rank == map->rank ? map->local_index : RWK_RANK_NONE;
	at = bsearch(&rank, map->local_ranks, map->local_size, sizeof(rank), compare_ranks);
	return at ? (uint32_t)(at - map->local_ranks) : RWK_RANK_NONE;
}

int rwk_job_map_complete(struct rwk_job_map *m)
{
	int rc = rwk_node_map_finish(&m->map);

	if (rc)
		return rc;
	rc = rwk_node_map_count(&m->map, &m->nodes, &m->ranks_per_node);
	if (rc == -ENOMEM)
		return rc;
	if (!rc)
		m->nodes_exact = true;
	if (m->rank != RWK_RANK_NONE)
		m->node = rwk_node_map_at(&m->map, m->rank);
	if (m->node != RWK_NODE_NONE && !m->local_ranks) {
		rc = list_local_ranks(m);
		if (rc)
			return rc;
	}
	if (m->local_ranks)
		m->local_index = rwk_job_map_local_index(m, m->rank);
	if (!m->local_size)
		m->local_size = 1;
	return 0;
}

/* Nobody says anything: one process, whose peers are judged by their addresses. */
static int stand_alone(const struct rwk_job_env *env, struct rwk_job_map *m)
{
	m->size = 1;
	m->rank = 0;
	if (rwk_job_identify(env, m, NULL, NULL) || rwk_job_one_node(m))
		return -ENOMEM;
	return rwk_job_map_complete(m);
}

static int ask_sources(const struct rwk_job_env *env, struct rwk_job_map *m)
{
	int rc;

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		rwk_job_map_clear(m);
		rc = sources[i].ask(env, m);
		if (rc > 0) {
			m->source = sources[i].source;
			return rwk_job_map_complete(m);
		}
		if (rc == -ENOMEM)
			return rc;
	}
	rwk_job_map_clear(m);
	return stand_alone(env, m);
}

/* Open MPI tells what it spawns where the parents wait; Hydra says no more than this. */
static bool is_spawned(const struct rwk_job_env *env)
{
	const char *hydra = rwk_job_getenv(env, "PMI_SPAWNED");

	return rwk_job_getenv(env, "OMPI_PARENT_PORT") || (hydra && !strcmp(hydra, "1"));
}

static int take_machine(const struct rwk_job_env *env, struct rwk_machine *m)
{
	if (env->machine == RWK_JOB_NO_MACHINE)
		return 0;
	if (env->machine == RWK_JOB_WHOLE || rwk_machine_described())
		return rwk_machine_load(m);
	rwk_machine_count(m);
	return 0;
}

int rwk_job_map_get(const struct rwk_job_env *env, struct rwk_job_map **out)
{
	static const struct rwk_job_env own;
	struct rwk_job_map *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	if (!env)
		env = &own;
	rc = ask_sources(env, m);
	if (!rc)
		rc = take_machine(env, &m->machine);
	if (rc) {
		rwk_job_map_free(m);
		return rc;
	}
	m->oversubscribed = m->machine.processors && m->local_size > m->machine.processors;
	m->spawned = m->source != RWK_JOB_NONE && is_spawned(env);
	rwk_info("job map: source %s, job %s, rank %u of %u, %u on this node", rwk_job_source_text(m->source), m->id,
		m->rank, m->size, m->local_size);
	rwk_job_make_key(env, m);
	*out = m;
	return 0;
}

int rwk_job_map_imagine(uint32_t nodes, uint32_t per_node, struct rwk_job_map **out)
{
	static const struct rwk_job_env own;
	struct rwk_job_map *m;
	int rc = 0;

	if (!nodes || !per_node || (uint64_t)nodes * per_node > RWK_MAX_RANKS)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	rwk_job_map_clear(m);
	m->source = RWK_JOB_NONE;
	m->size = nodes * per_node;
	m->rank = 0;
	for (uint32_t n = 0; n < nodes && !rc; n++)
		rc = rwk_node_map_add(&m->map, per_node, n);
	if (!rc)
		rc = rwk_job_identify(&own, m, "imagined", NULL);
	if (!rc)
		rc = rwk_job_map_complete(m);
	if (rc) {
		rwk_job_map_free(m);
		return rc;
	}
	*out = m;
	return 0;
}

uint32_t rwk_job_map_node_of(const struct rwk_job_map *map, uint32_t rank)
{
	return rwk_node_map_at(&map->map, rank);
}

enum rwk_where rwk_job_map_where(const struct rwk_job_map *map, uint32_t rank)
{
	uint32_t node;

	if (rank >= map->size || map->rank == RWK_RANK_NONE)
		return RWK_WHERE_UNKNOWN;
	if (rank == map->rank)
		return RWK_WHERE_SELF;
	if (map->local_ranks)
		return rwk_job_map_local_index(map, rank) != RWK_RANK_NONE ? RWK_WHERE_NODE : RWK_WHERE_OTHER;
	node = rwk_node_map_at(&map->map, rank);
	if (node == RWK_NODE_NONE || map->node == RWK_NODE_NONE)
		return RWK_WHERE_UNKNOWN;
	return node == map->node ? RWK_WHERE_NODE : RWK_WHERE_OTHER;
}

/* Lists of thousands of ranks are cut: the text is for people. */
static void print_local_ranks(const struct rwk_job_map *m, FILE *to)
{
	if (!m->local_ranks) {
		fprintf(to, "local ranks: not known which\n");
		return;
	}
	fprintf(to, "local ranks:");
	for (uint32_t i = 0; i < m->local_size && i < 16; i++)
		fprintf(to, " %u", m->local_ranks[i]);
	fprintf(to, "%s\n", m->local_size > 16 ? " ..." : "");
}

static void print_nodes(const struct rwk_job_map *m, FILE *to)
{
	const char *about = m->nodes_exact ? "" : "about ";

	fprintf(to, "nodes: %s%u, at most %s%u ranks each\n", about, m->nodes, about, m->ranks_per_node);
	fprintf(to, "node of ranks:");
	for (uint32_t r = 0; r < m->size && r < 16; r++) {
		uint32_t node = rwk_job_map_node_of(m, r);

		if (node == RWK_NODE_NONE)
			fprintf(to, " ?");
		else
			fprintf(to, " %u", node);
	}
	fprintf(to, "%s\n", m->size > 16 ? " ..." : "");
}

void rwk_job_map_print(const struct rwk_job_map *m, FILE *to)
{
	fprintf(to, "source: %s\n", rwk_job_source_text(m->source));
	fprintf(to, "job: %s%s\n", m->id, m->spawned ? " (spawned)" : "");
	fprintf(to, "hash: %016" PRIx64 "%s\n", m->hash, m->hash_node_only ? " (this node only)" : "");
	if (m->rank == RWK_RANK_NONE)
		fprintf(to, "rank: none of %u\n", m->size);
	else
		fprintf(to, "rank: %u of %u\n", m->rank, m->size);
	print_nodes(m, to);
	if (m->rank != RWK_RANK_NONE) {
		fprintf(to, "on this node: %u, of %u\n", m->local_index, m->local_size);
		print_local_ranks(m, to);
	}
	if (m->machine.processors) {
		rwk_machine_print(&m->machine, to);
		fprintf(to, "oversubscribed: %s\n", m->oversubscribed ? "yes" : "no");
	}
}

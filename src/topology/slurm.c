/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's environment, as srun gives it to a task. SLURM_TASKS_PER_NODE tells how many tasks each node has ("2(x3),1"),
 * but not which: that follows from SLURM_DISTRIBUTION (block, cyclic) or, for this node, from SLURM_GTIDS. A layout is
 * believed only if it puts this task where Slurm says that it is; without one only this node's tasks are known, or
 * their number.
 *
 * A batch script sees SLURM_PROCID=0 and the whole allocation's variables, but is no task: it has no step of its own.
 */
#include "topology/source.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHO "Slurm environment"

/* Step numbers from here on are Slurm's own: batch script, allocation's shell and the like. */
#define FIRST_SPECIAL_STEP 0xfffffff0u

struct tasks {
	uint32_t *per_node;
	uint32_t nodes, room;
	uint64_t total;
};

/* The step's own variable or, where an older Slurm has none, the job's. */
static const char *first_set(const struct rwk_job_env *env, const char *a, const char *b)
{
	return rwk_job_getenv(env, a) ? a : b;
}

static int tasks_append(struct tasks *t, uint32_t count, uint32_t times)
{
	uint32_t *grown;

	if (times > RWK_MAX_NODES - t->nodes || (uint64_t)count * times > RWK_MAX_RANKS - t->total)
		return -EINVAL;
	if (t->nodes + times > t->room) {
		t->room = t->nodes + times + t->room;
		grown = realloc(t->per_node, t->room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->per_node = grown;
	}
	for (uint32_t i = 0; i < times; i++)
		t->per_node[t->nodes++] = count;
	t->total += (uint64_t)count * times;
	return 0;
}

/* "2(x3),1": three nodes of two tasks, one of one. */
static int tasks_parse(struct tasks *t, const char *at)
{
	uint32_t count, times;
	int rc;

	do {
		times = 1;
		if (rwk_read_number(&at, RWK_MAX_RANKS, &count) || !count)
			return -EINVAL;
		if (!strncmp(at, "(x", 2)) {
			at += 2;
			if (rwk_read_number(&at, RWK_MAX_NODES, &times) || !times || *at++ != ')')
				return -EINVAL;
		}
		rc = tasks_append(t, count, times);
		if (rc)
			return rc;
	} while (*at++ == ',');
	return at[-1] ? -EINVAL : 0;
}

static int lay_blocks(struct rwk_node_map *map, const struct tasks *t)
{
	int rc = 0;

	for (uint32_t n = 0; n < t->nodes && !rc; n++)
		rc = rwk_node_map_add(map, t->per_node[n], n);
	return rc;
}

/* In turn, passing by the nodes that are full. */
static int lay_cyclic(struct rwk_node_map *map, const struct tasks *t)
{
	uint32_t *open = malloc(t->nodes * sizeof(*open)), count = t->nodes;
	int rc = 0;

	if (!open)
		return -ENOMEM;
	for (uint32_t n = 0; n < count; n++)
		open[n] = n;
	for (uint32_t round = 1; count && !rc; round++) {
		uint32_t still = 0;

		for (uint32_t i = 0; i < count && !rc; i++) {
			rc = rwk_node_map_add(map, 1, open[i]);
			if (t->per_node[open[i]] > round)
				open[still++] = open[i];
		}
		count = still;
	}
	free(open);
	return rc;
}

/*
 * Whether the layout puts this task, and the others of its node where they are listed, where Slurm says that they are.
 */
static bool layout_agrees(const struct rwk_job_map *d)
{
	uint32_t index = 0;

	for (uint32_t r = 0; r < d->rank; r++)
		index += rwk_node_map_at(&d->map, r) == d->node;
	if (rwk_node_map_at(&d->map, d->rank) != d->node || index != d->local_index)
		return false;
	for (uint32_t i = 0; d->local_ranks && i < d->local_size; i++) {
		if (rwk_node_map_at(&d->map, d->local_ranks[i]) != d->node)
			return false;
	}
	return true;
}

typedef int (*layout_fn)(struct rwk_node_map *map, const struct tasks *t);

static int lay_out(const struct rwk_job_env *env, struct rwk_job_map *d, const struct tasks *t)
{
	const char *said = rwk_job_getenv(env, "SLURM_DISTRIBUTION");
	layout_fn try[2] = {NULL, NULL};
	int rc;

	if (t->nodes == 1 || (said && !strncmp(said, "block", 5)))
		try[0] = lay_blocks;
	else if (said && !strncmp(said, "cyclic", 6))
		try[0] = lay_cyclic;
	else if (!said && d->local_ranks) {
		try[0] = lay_blocks;
		try[1] = lay_cyclic;
	}
	for (int i = 0; i < 2 && try[i]; i++) {
		rc = try[i](&d->map, t);
		if (rc || layout_agrees(d))
			return rc;
		rwk_node_map_free(&d->map);
	}
	return rwk_node_map_add(&d->map, d->size, RWK_NODE_NONE);
}

/* SLURM_GTIDS lists the tasks of this node. */
static int read_local(const struct rwk_job_env *env, struct rwk_job_map *d)
{
	const char *list = rwk_job_getenv(env, "SLURM_GTIDS");
	uint32_t count;
	int rc;

	if (!list)
		return 0;
	rc = rwk_read_ranks(list, d->size, true, &d->local_ranks, &count);
	if (rc == -ENOMEM)
		return rc;
	if (!rc && count == d->local_size && rwk_job_map_local_index(d, d->rank) == d->local_index)
		return 0;
	rwk_warn("%s: SLURM_GTIDS=%.200s is not an ascending list of this node's %u tasks with task %u in place %u; "
		 "this source of the job map is passed over",
		WHO, list, d->local_size, d->rank, d->local_index);
	return -EINVAL;
}

static int draft_counts(const struct rwk_job_env *env, struct rwk_job_map *d, struct tasks *t)
{
	const char *size_name = first_set(env, "SLURM_STEP_NUM_TASKS", first_set(env, "SLURM_NTASKS", "SLURM_NPROCS"));
	const char *tasks_name = first_set(env, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
	const char *text = rwk_job_getenv(env, tasks_name);
	int rc;

	if (rwk_job_number(env, WHO, size_name, 1, RWK_MAX_RANKS, &d->size) ||
		rwk_job_number(env, WHO, "SLURM_PROCID", 0, d->size - 1, &d->rank))
		return -EINVAL;
	rc = text ? tasks_parse(t, text) : -EINVAL;
	if (rc == -ENOMEM)
		return rc;
	if (rc || t->total != d->size) {
		rwk_warn("%s: %s%s%.200s does not list the %u tasks of %s by nodes, as 2(x3),1 lists 7; "
			 "this source of the job map is passed over",
			WHO, tasks_name, text ? "=" : "", text ? text : " is not set and", d->size, size_name);
		return -EINVAL;
	}
	if (rwk_job_number(env, WHO, "SLURM_NODEID", 0, t->nodes - 1, &d->node))
		return -EINVAL;
	d->local_size = t->per_node[d->node];
	if (rwk_job_number(env, WHO, "SLURM_LOCALID", 0, d->local_size - 1, &d->local_index))
		return -EINVAL;
	d->nodes = t->nodes;
	d->nodes_exact = true;
	for (uint32_t n = 0; n < t->nodes; n++) {
		if (t->per_node[n] > d->ranks_per_node)
			d->ranks_per_node = t->per_node[n];
	}
	return 0;
}

/*
 * What MPI_Comm_spawn starts is a step of its own, but of the launch of the step that called it. PMI-2's name for a
 * spawned job is its parent's and a number: 812.0-1, and 812.0-1-1 for that one's children. Its first step, 0 here;
 * `step` of any other job.
 */
static uint32_t launch_step(const struct rwk_job_env *env, uint32_t job, uint32_t step)
{
	const char *spawned = rwk_job_getenv(env, "PMI_SPAWNED"), *at = rwk_job_getenv(env, "PMI_JOBID");
	uint32_t parent_job, first, number;

	if (!spawned || strcmp(spawned, "1") || !at)
		return step;
	if (rwk_read_number(&at, UINT32_MAX, &parent_job) || parent_job != job || *at++ != '.' ||
		rwk_read_number(&at, UINT32_MAX, &first) || !*at)
		return step;
	while (*at) {
		if (*at++ != '-' || rwk_read_number(&at, UINT32_MAX, &number))
			return step;
	}
	return first;
}

static int identify(const struct rwk_job_env *env, struct rwk_job_map *d, uint32_t step)
{
	char id[32], launch[32];
	uint32_t job;
	int rc;

	if (rwk_job_number(env, WHO, first_set(env, "SLURM_JOB_ID", "SLURM_JOBID"), 0, UINT32_MAX, &job))
		return -EINVAL;
	snprintf(id, sizeof(id), "%u.%u", job, step);
	snprintf(launch, sizeof(launch), "%u.%u", job, launch_step(env, job, step));
	rc = rwk_job_identify(env, d, launch, rwk_job_getenv(env, "SLURM_CLUSTER_NAME"));
	return rc ? rc : rwk_job_rename(d, id);
}

int rwk_job_from_slurm(const struct rwk_job_env *env, struct rwk_job_map *draft)
{
	const char *step_name = first_set(env, "SLURM_STEP_ID", "SLURM_STEPID");
	struct tasks t = {0};
	uint32_t step;
	int rc;

	if (!rwk_job_getenv(env, "SLURM_PROCID") || !rwk_job_getenv(env, step_name))
		return 0;
	if (rwk_job_number(env, WHO, step_name, 0, UINT32_MAX, &step))
		return -EINVAL;
	if (step >= FIRST_SPECIAL_STEP)
		return 0;
	rc = draft_counts(env, draft, &t);
	if (!rc)
		rc = read_local(env, draft);
	if (!rc)
		rc = lay_out(env, draft, &t);
	if (!rc)
		rc = identify(env, draft, step);
	free(t.per_node);
	return rc ? rc : 1;
}

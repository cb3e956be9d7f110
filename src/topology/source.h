/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside src/topology: what the sources of a job map share.
 *
 * A source looks whether it is there, checks everything it was told, and drafts the map: id and hash, size, rank, and
 * as much of who is where as it knows. rwk_job_map_complete derives the rest. A source returns
 *     1        it is there and drafted the map
 *     0        it is not there
 *     -EINVAL  it is there but wrong or half set; it has warned, the next source is asked
 *     -ENOMEM
 * and may leave a half-filled draft behind in the last two cases: the caller throws it away.
 */
#ifndef RWK_TOPOLOGY_SOURCE_H
#define RWK_TOPOLOGY_SOURCE_H

#include "topology/job_map.h"

/**
 * A random number that Open MPI 4's launcher gives to all ranks of a launch; its own job ids come again after a while.
 */
#define RWK_OMPI_NONCE "OMPI_MCA_orte_precondition_transports"

typedef int (*rwk_job_source_fn)(const struct rwk_job_env *env, struct rwk_job_map *draft);

int rwk_job_from_file(const struct rwk_job_env *env, struct rwk_job_map *draft);
int rwk_job_from_pmix(const struct rwk_job_env *env, struct rwk_job_map *draft);
int rwk_job_from_ompi(const struct rwk_job_env *env, struct rwk_job_map *draft);
int rwk_job_from_hydra(const struct rwk_job_env *env, struct rwk_job_map *draft);
int rwk_job_from_slurm(const struct rwk_job_env *env, struct rwk_job_map *draft);

/** A variable's value, NULL if it is not set. An empty one counts as set. */
const char *rwk_job_getenv(const struct rwk_job_env *env, const char *name);

/**
 * A variable that has to be a number from `min` to `max`. Returns 0, or -EINVAL if it is not set or anything else; then
 * a warning that starts with `who` (the source) has named it, its value and what would be right.
 */
int rwk_job_number(
	const struct rwk_job_env *env, const char *who, const char *name, uint32_t min, uint32_t max, uint32_t *out);

/**
 * Names the job: keeps a copy of `id` and makes the hash of user, id and `nonce` (NULL: none). Returns 0 or -ENOMEM.
 */
int rwk_job_identify(const struct rwk_job_env *env, struct rwk_job_map *draft, const char *id, const char *nonce);

/** Keeps a copy of `id` in place of the name before; the hash stays. Returns 0 or -ENOMEM. */
int rwk_job_rename(struct rwk_job_map *draft, const char *id);

/**
 * The same as rwk_job_identify for a PMIx namespace `nspace`, with Open MPI's nonce where there is one. The jobs that
 * MPI_Comm_spawn adds to a job have namespaces of their own, but are of the same launch and get its hash: parents and
 * children are meant to talk.
 */
int rwk_job_identify_launch(const struct rwk_job_env *env, struct rwk_job_map *draft, const char *nspace);

/** Says that all ranks of the draft are on one node. Returns 0 or -ENOMEM. */
int rwk_job_one_node(struct rwk_job_map *draft);

/**
 * Says that the ranks of this node, `local_size` of them, are known in number only, and those of other nodes not at
 * all.
 */
int rwk_job_count_only(struct rwk_job_map *draft);

/** Makes the key of a map that is complete; says at info level what from. The key itself is never logged. */
void rwk_job_make_key(const struct rwk_job_env *env, struct rwk_job_map *map);

/** Derives what follows from the node map and the draft. Returns 0 or -ENOMEM. */
int rwk_job_map_complete(struct rwk_job_map *draft);

/** Frees what a map or draft holds, but not itself. */
void rwk_job_map_clear(struct rwk_job_map *draft);

/**
 * Reads digits at `*at` as a number; on success moves `*at` behind them. Returns 0 or -EINVAL (no digit, or above
 * `max`).
 */
int rwk_read_number(const char **at, uint32_t max, uint32_t *out);

/** Ranks first, first + step, ... up to last. */
struct rwk_range {
	uint32_t first, last, step;
};

/**
 * Reads the next range of a list "0-3,8,10-20:2" at `*at`, its ranks below `ranks`, and moves `*at` behind it and its
 * comma. Returns 1, 0 at the end of the text, or -EINVAL with `*at` at what cannot be read.
 */
int rwk_read_range(const char **at, uint32_t ranks, struct rwk_range *out);

/**
 * Reads such a list, without repetition and, if that is asked for, ascending, into an ascending array for the caller to
 * free.
 * Returns 0, -EINVAL or -ENOMEM.
 */
int rwk_read_ranks(const char *list, uint32_t ranks, bool ordered, uint32_t **out, uint32_t *count);

#endif

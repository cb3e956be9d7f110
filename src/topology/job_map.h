/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job map: which job this process belongs to, who is on which node, and what the node looks like. It is a claim of
 * whoever started the job, good for choosing; that a peer is on this node is proven only by attaching to its memory.
 *
 * Sources, the first that answers completely wins: the file named by the parameter job_file; PMIx, as a guest of a host
 * program that has initialised it (or where the parameter pmix is on); Open MPI's environment; Hydra's; Slurm's; none.
 * A source that is there but wrong or half set gives one warning, with variable, value and what would be right, and the
 * next source is asked.
 *
 * Not every launcher tells everything: Open MPI's and Hydra's environments tell how many ranks share this node, but for
 * a job of several nodes not which; PMIx is asked for the nodes of all ranks only in jobs of up to 8192. What is not
 * known is said to be so (RWK_NODE_NONE, a NULL local_ranks, nodes_exact), never guessed.
 *
 * Job map file, for jobs that do not exist and launchers that say nothing. One directive a line, # starts a comment:
 *
 *     job <id>                    any text without blanks; default: the file's path
 *     ranks <n>                   ranks in all, 1 to 16777216; required
 *     layout <nodes>x<ranks> [block|cyclic]
 *                                 that many nodes of that many ranks each (the last ones may stay short), or
 *     node <name> <ranks>         one line a node; <ranks> is a list of a, a-b, a-b:step with commas: 0-3,8,10-20:2
 *     rank <r> | rank $<VAR>      which one this process is, a number or a variable; without it: none of them
 *
 * Either one layout or node lines; each rank on exactly one node. An error is reported with file, line and what would
 * be right.
 *
 * Threads: a map is read-only once made, and one thread at a time makes one. Nothing here is called from fi_prov_ini or
 * fi_getinfo, only when a domain is opened.
 */
#ifndef RWK_TOPOLOGY_JOB_MAP_H
#define RWK_TOPOLOGY_JOB_MAP_H

#include "base/param.h"
#include "topology/machine.h"
#include "topology/node_map.h"

#include <stdio.h>

#define RWK_RANK_NONE UINT32_MAX

enum rwk_job_source {
	RWK_JOB_NONE, /* no launcher: the process stands alone, peers are judged by their addresses */
	RWK_JOB_FILE,
	RWK_JOB_PMIX,
	RWK_JOB_OMPI,
	RWK_JOB_HYDRA,
	RWK_JOB_SLURM,
};

/** Where a peer is, as far as the map knows. */
enum rwk_where {
	RWK_WHERE_SELF,
	RWK_WHERE_NODE,    /* claimed to be on this node */
	RWK_WHERE_OTHER,   /* on another node */
	RWK_WHERE_UNKNOWN, /* the address decides */
};

/** What a map says of the machine. */
enum rwk_job_machine {
	RWK_JOB_COUNTED, /* processors and memory: what a running job asks for */
	RWK_JOB_WHOLE,   /* all that hwloc knows */
	RWK_JOB_NO_MACHINE,
};

struct rwk_job_map {
	enum rwk_job_source source;
	char *id; /* the job as its launcher names it, never NULL; "none" without one */
	/*
	 * For addresses: of user and job; without a launcher of the user alone, so that two programs started by hand
	 * meet. Equal in all processes of a job, whatever source each of them had (see hash_node_only), and in the jobs
	 * that it has spawned.
	 */
	uint64_t hash;
	bool spawned;        /* by another job (MPI_Comm_spawn), which may have ranks on other nodes than this one's */
	bool hash_node_only; /* no name for the job (a Hydra that gives none): the hash is equal within a node alone */

	/*
	 * What those who may connect have in common: equal in all processes of a job, whatever source each of them had,
	 * and in the jobs that it has spawned. From the parameter job_key, else from a random number of the launcher's
	 * (key_is_secret is true for both), else from the hash, or where that is the node's alone from the user: then
	 * it keeps jobs apart, but anybody can work it out. Never printed or logged. Zero in maps that rwk_job_map_read
	 * and rwk_job_map_imagine make.
	 */
	uint8_t key[32];
	bool key_is_secret;

	uint32_t size; /* ranks in all, at least 1 */
	uint32_t rank; /* mine; RWK_RANK_NONE: a file describes a job that this process is no rank of */

	uint32_t nodes;          /* at least 1 */
	bool nodes_exact;        /* false: `nodes` and `ranks_per_node` are derived, as if all nodes were like mine */
	uint32_t node;           /* mine; RWK_NODE_NONE if not known */
	uint32_t ranks_per_node; /* most ranks on a node */
	struct rwk_node_map map; /* of all ranks */

	uint32_t local_size;   /* ranks on my node, me included; at least 1 */
	uint32_t local_index;  /* mine among them, from 0 */
	uint32_t *local_ranks; /* local_size ranks, ascending; NULL: not known which */

	bool oversubscribed; /* more ranks on this node than processors (hardware threads): spinning steals time */
	struct rwk_machine machine;
};

/**
 * The environment to look at; a test passes its own. Zeroed members mean the process's own: getenv, geteuid, and so on.
 */
struct rwk_job_env {
	const char *(*get)(void *arg, const char *name); /* NULL: getenv; returns NULL for what is not set */
	void *arg;
	const struct rwk_params *params; /* job_file, job_key and pmix; NULL: rwk_params */
	bool no_pmix;                    /* do not look for PMIx in the process */
	enum rwk_job_machine machine;    /* zeroed: RWK_JOB_COUNTED */
	const uid_t *uid;                /* NULL: geteuid() */
	/* A number that names the process which made the socket `fd`, 0 if there is none; NULL: asks the kernel. */
	uint64_t (*socket_maker)(void *arg, int fd);
	/* That process's command line, each word ended by a NUL; returns its length. NULL: asks the kernel. */
	size_t (*socket_maker_words)(void *arg, int fd, char *to, size_t room);
};

/**
 * Makes the map. Blocks for some milliseconds where hwloc is asked, never on the network. `env` may be NULL: the
 * process's own. Wrong or half-set sources are warned about and passed over. Returns 0, or -ENOMEM; `*out` is set only
 * on success.
 */
int rwk_job_map_get(const struct rwk_job_env *env, struct rwk_job_map **out);

/**
 * The map in file `path`, without a machine. For tools: the error is not logged but written to `why` (at most `len`
 * bytes), as "path:line: what is wrong; what would be right". `env` is asked for "rank $VAR", NULL: the process's; a
 * variable that is not set there makes it none of the ranks, which is a remark in `why`. Without remark that is "".
 * Returns 0, -EINVAL (wrong content), -ENOMEM, or what open gave.
 */
int rwk_job_map_read(const char *path, const struct rwk_job_env *env, struct rwk_job_map **out, char *why, size_t len);

/**
 * The map of a job that does not exist: `nodes` of `per_node` ranks, in blocks, seen by rank 0, without a machine.
 * Returns 0, -EINVAL (a zero, or more than 16777216 ranks) or -ENOMEM.
 */
int rwk_job_map_imagine(uint32_t nodes, uint32_t per_node, struct rwk_job_map **out);

/** Frees the map and all it holds; NULL is allowed. */
void rwk_job_map_free(struct rwk_job_map *map);

/** The node of `rank`, RWK_NODE_NONE if it is not known. */
uint32_t rwk_job_map_node_of(const struct rwk_job_map *map, uint32_t rank);

/** Where `rank` of the same job is. */
enum rwk_where rwk_job_map_where(const struct rwk_job_map *map, uint32_t rank);

/** The index of `rank` among the ranks of this node, RWK_RANK_NONE if it is elsewhere or not known. */
uint32_t rwk_job_map_local_index(const struct rwk_job_map *map, uint32_t rank);

/** "none", "file", "PMIx", "Open MPI environment", "Hydra environment", "Slurm environment". */
const char *rwk_job_source_text(enum rwk_job_source source);

/** Writes the map as text, a "name: value" a line; the same map gives the same text. */
void rwk_job_map_print(const struct rwk_job_map *map, FILE *to);

#endif

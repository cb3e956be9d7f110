/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environments of Open MPI's launcher and of Hydra (MPICH, Intel MPI). Both tell rank and size, and how many ranks
 * share this node, but not which: for a job of one node that is everything, for others the map stays open.
 */
#define _GNU_SOURCE
#include "topology/source.h"

#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The four numbers that both have, under their own names. */
struct names {
	const char *who, *size, *rank, *local_size, *local_rank;
};

static int draft_counts(const struct rwk_job_env *env, struct rwk_job_map *draft, const struct names *n)
{
	if (rwk_job_number(env, n->who, n->size, 1, RWK_MAX_RANKS, &draft->size) ||
		rwk_job_number(env, n->who, n->rank, 0, draft->size - 1, &draft->rank) ||
		rwk_job_number(env, n->who, n->local_size, 1, draft->size, &draft->local_size) ||
		rwk_job_number(env, n->who, n->local_rank, 0, draft->local_size - 1, &draft->local_index))
		return -EINVAL;
	return draft->local_size == draft->size ? rwk_job_one_node(draft) : rwk_job_count_only(draft);
}

int rwk_job_from_ompi(const struct rwk_job_env *env, struct rwk_job_map *draft)
{
	static const struct names n = {"Open MPI environment", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"};
	const char *id = rwk_job_getenv(env, "PMIX_NAMESPACE");
	int rc;

	if (!rwk_job_getenv(env, n.size) && !rwk_job_getenv(env, n.rank))
		return 0;
	if (!id)
		id = rwk_job_getenv(env, "OMPI_MCA_ess_base_jobid");
	if (!id || !*id) {
		rwk_warn("%s: neither PMIX_NAMESPACE nor OMPI_MCA_ess_base_jobid names the job, as mpirun would have "
			 "done; this source of the job map is passed over",
			n.who);
		return -EINVAL;
	}
	rc = draft_counts(env, draft, &n);
	if (!rc)
		rc = rwk_job_identify_launch(env, draft, id);
	return rc ? rc : 1;
}

/* Field 22 of /proc/<pid>/stat: when the process started. With it a number that is used again names another process. */
static uint64_t start_time(pid_t pid)
{
	char path[64], line[1024];
	unsigned long long ticks = 0;
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	at = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	if (at)
		sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			&ticks);
	return ticks;
}

/*
 * A socket pair carries the credentials of the process that made it, here the daemon that started all ranks of this
 * node.
 */
static uint64_t socket_maker(int fd)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred c;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len) || c.pid <= 0)
		return 0;
	return start_time(c.pid) << 22 | (uint32_t)c.pid;
}

/*
 * Hydra names no job. PMI_PORT, where it is used, is one address for the whole job. Else the ranks of a node have the
 * daemon in common that made their PMI sockets: good within the node, which is what hash_node_only says if there are
 * others.
 */
static int identify_hydra(const struct rwk_job_env *env, struct rwk_job_map *draft, const char *who)
{
	const char *port = rwk_job_getenv(env, "PMI_PORT"), *fd_text = rwk_job_getenv(env, "PMI_FD"), *at = fd_text;
	uint64_t maker = 0;
	uint32_t fd;
	char id[64];

	if (port && *port)
		return rwk_job_identify(env, draft, port, NULL);
	if (fd_text && !rwk_read_number(&at, INT32_MAX, &fd) && !*at)
		maker = env->socket_maker ? env->socket_maker(env->arg, (int)fd) : socket_maker((int)fd);
	if (!maker) {
		rwk_warn("%s: PMI_FD=%s is not a socket of the launcher's (nor is PMI_PORT set), so nothing tells this "
			 "job from others; this source of the job map is passed over",
			who, fd_text ? fd_text : "");
		return -EINVAL;
	}
	snprintf(id, sizeof(id), "hydra-%" PRIx64, maker);
	draft->hash_node_only = draft->local_size < draft->size;
	return rwk_job_identify(env, draft, id, NULL);
}

int rwk_job_from_hydra(const struct rwk_job_env *env, struct rwk_job_map *draft)
{
	static const struct names n = {
		"Hydra environment", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"};
	int rc;

	if (!rwk_job_getenv(env, n.size) && !rwk_job_getenv(env, n.rank))
		return 0;
	/* Slurm's PMI plug-ins set PMI_RANK and PMI_SIZE too; there Slurm's own variables say more. */
	if (!rwk_job_getenv(env, n.local_size) && rwk_job_getenv(env, "SLURM_PROCID"))
		return 0;
	rc = draft_counts(env, draft, &n);
	if (!rc)
		rc = identify_hydra(env, draft, n.who);
	return rc ? rc : 1;
}

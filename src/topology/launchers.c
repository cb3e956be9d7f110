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
 * node. 0: it is none, or its maker cannot be seen from here.
 */
static pid_t socket_maker(int fd)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred c;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len) || c.pid <= 0 ? 0 : c.pid;
}

/* The words of the command line of `pid`, each ended by a NUL, as far as there is room; returns their length. */
static size_t read_words(pid_t pid, char *to, size_t room)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(to, 1, room, f);
	fclose(f);
	return n;
}

/* What follows the word `option`, NULL if nothing does. */
static const char *word_after(const char *option, const char *words, size_t len)
{
	const char *at = words, *last, *next;

	for (; (last = memchr(at, 0, (size_t)(words + len - at))); at = next) {
		next = last + 1;
		if (!strcmp(at, option))
			return next < words + len && memchr(next, 0, (size_t)(words + len - next)) ? next : NULL;
	}
	return NULL;
}

/*
 * The daemon of each node was told where mpiexec listens, HOST:PORT: that is the name of the launch on all nodes, with
 * Hydra 4.2 and later also in the jobs that MPI_Comm_spawn adds (before, each of them had a port of its own).
 */
static int identify_by_mpiexec(const struct rwk_job_env *env, struct rwk_job_map *draft, int fd)
{
	char words[4096], id[256];
	const char *listens;
	size_t len;

	len = env->socket_maker_words ? env->socket_maker_words(env->arg, fd, words, sizeof(words))
				      : read_words(socket_maker(fd), words, sizeof(words));
	listens = word_after("--control-port", words, len);
	if (!listens || !*listens)
		return 0;
	snprintf(id, sizeof(id), "hydra-%s", listens);
	return rwk_job_identify(env, draft, id, NULL) ? -ENOMEM : 1;
}

/* A number for the daemon of this node, 0 if there is none. */
static uint64_t daemon_number(const struct rwk_job_env *env, int fd)
{
	pid_t pid;

	if (env->socket_maker)
		return env->socket_maker(env->arg, fd);
	pid = socket_maker(fd);
	return pid ? start_time(pid) << 22 | (uint32_t)pid : 0;
}

/*
 * Hydra's environment names no job: its daemon's command line does. Else the ranks of a node have that daemon in
 * common, as the maker of their PMI sockets or by its address (PMI_PORT): good within the node, which is what
 * hash_node_only says if there are others.
 */
static int identify_hydra(const struct rwk_job_env *env, struct rwk_job_map *draft, const char *who)
{
	const char *port = rwk_job_getenv(env, "PMI_PORT"), *fd_text = rwk_job_getenv(env, "PMI_FD"), *at = fd_text;
	bool have_fd;
	uint64_t maker = 0;
	uint32_t fd;
	char id[64];
	int rc;

	have_fd = fd_text && !rwk_read_number(&at, INT32_MAX, &fd) && !*at;
	rc = have_fd ? identify_by_mpiexec(env, draft, (int)fd) : 0;
	if (rc)
		return rc < 0 ? rc : 0;
	draft->hash_node_only = draft->local_size < draft->size;
	if (port && *port)
		return rwk_job_identify(env, draft, port, NULL);
	if (have_fd)
		maker = daemon_number(env, (int)fd);
	if (!maker) {
		rwk_warn("%s: PMI_FD=%s is not a socket of the launcher's (nor is PMI_PORT set), so nothing tells this "
			 "job from others; this source of the job map is passed over",
			who, fd_text ? fd_text : "");
		return -EINVAL;
	}
	snprintf(id, sizeof(id), "hydra-%" PRIx64, maker);
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

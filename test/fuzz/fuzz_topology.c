/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any text as what a job's user and launcher say of it: first lines NAME=VALUE, which are the environment, then, behind
 * a line of %%, the job map file. What must hold: who reads it gets a map or a reason that names the line, a map agrees
 * with itself whichever way it is asked, and the same map comes out if it is made again. Of the largest jobs not every
 * rank is asked about.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "topology/job_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define VARIABLES 40
#define LOOKED_AT 20000u /* ranks, about, at most */
#define WHY       200
#define FILE_MARK "%%\n"

static struct {
	char *text;
	char *name[VARIABLES], *value[VARIABLES];
	unsigned count;
} environment;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void no_log(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)level;
	(void)file;
	(void)line;
	must(strlen(text) > 0);
}

static const char *get(void *arg, const char *name)
{
	(void)arg;
	for (unsigned i = 0; i < environment.count; i++)
		if (!strcmp(environment.name[i], name))
			return environment.value[i];
	return NULL;
}

static uint64_t maker(void *arg, int fd)
{
	(void)arg;
	return fd < 3 ? 0 : (uint64_t)fd;
}

static void read_environment(const uint8_t *bytes, size_t len)
{
	char *save = NULL;

	environment.text = strndup((const char *)bytes, len);
	environment.count = 0;
	must(environment.text != NULL);
	for (char *l = strtok_r(environment.text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(l, '=');

		if (!value || environment.count == VARIABLES)
			continue;
		*value++ = 0;
		environment.name[environment.count] = l;
		environment.value[environment.count++] = value;
	}
}

/* All that is said of a rank agrees. Returns whether it is on this node. */
static bool look_at_rank(const struct rwk_job_map *m, uint32_t rank)
{
	uint32_t node = rwk_job_map_node_of(m, rank), index = rwk_job_map_local_index(m, rank);
	enum rwk_where where = rwk_job_map_where(m, rank);

	must(node == RWK_NODE_NONE || node < RWK_MAX_NODES);
	must(where != RWK_WHERE_SELF || rank == m->rank);
	if (index != RWK_RANK_NONE) {
		must(index < m->local_size);
		must(where == RWK_WHERE_SELF || where == RWK_WHERE_NODE);
		must(!m->local_ranks || m->local_ranks[index] == rank);
	}
	if (m->node != RWK_NODE_NONE && node != RWK_NODE_NONE && where != RWK_WHERE_SELF)
		must((node == m->node) == (where == RWK_WHERE_NODE));
	return node == m->node && node != RWK_NODE_NONE;
}

static void look_at(const struct rwk_job_map *m)
{
	uint32_t step = 1 + m->size / LOOKED_AT, here = 0;

	must(m->id && m->size && m->size <= RWK_MAX_RANKS && m->nodes && m->nodes <= m->size);
	must(m->rank < m->size || (m->rank == RWK_RANK_NONE && m->source == RWK_JOB_FILE));
	must(m->local_size && m->local_size <= m->size && m->local_index < m->local_size);
	must(m->ranks_per_node && m->ranks_per_node <= m->size);
	for (uint32_t r = 0; r < m->size; r += step)
		here += look_at_rank(m, r);
	must(step > 1 || m->node == RWK_NODE_NONE || m->rank == RWK_RANK_NONE || here == m->local_size);
	if (m->local_ranks)
		for (uint32_t i = 1; i < m->local_size; i++)
			must(m->local_ranks[i] > m->local_ranks[i - 1] && m->local_ranks[i] < m->size);
}

static char *print(const struct rwk_job_map *m)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	must(f != NULL);
	rwk_job_map_print(m, f);
	must(!fclose(f));
	return text;
}

static void any_source(const struct rwk_job_env *env)
{
	struct rwk_job_map *m = NULL, *again = NULL;
	char *text, *text_again;

	must(!rwk_job_map_get(env, &m));
	look_at(m);
	must(!rwk_job_map_get(env, &again));
	text = print(m);
	text_again = print(again);
	must(!strcmp(text, text_again) && m->hash == again->hash && !memcmp(m->key, again->key, sizeof(m->key)));
	free(text);
	free(text_again);
	rwk_job_map_free(m);
	rwk_job_map_free(again);
}

static void file_alone(const struct rwk_job_env *env, const char *path)
{
	struct rwk_job_map *m = NULL;
	char why[WHY] = "";
	int rc = rwk_job_map_read(path, env, &m, why, sizeof(why));

	must(rc == 0 || rc == -EINVAL);
	if (!rc) {
		must(m->source == RWK_JOB_FILE && m->nodes_exact);
		look_at(m);
	} else {
		must(!m && !strncmp(why, path, strlen(path)));
	}
	rwk_job_map_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static char path[64];
	static int fd = -1;
	struct rwk_params params = {.job_file = ""};
	uid_t uid = 1000;
	struct rwk_job_env env = {.get = get,
		.params = &params,
		.no_pmix = true,
		.machine = RWK_JOB_NO_MACHINE,
		.uid = &uid,
		.socket_maker = maker};
	const uint8_t *mark = memmem(bytes, len, FILE_MARK, strlen(FILE_MARK));
	size_t head = mark ? (size_t)(mark - bytes) : len;

	if (fd < 0) {
		rwk_log_set_sink(no_log);
		rwk_param_load();
		fd = memfd_create("job map", 0);
		must(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	read_environment(bytes, head);
	if (get(NULL, "KEY"))
		params.job_key = get(NULL, "KEY");
	if (mark) {
		const uint8_t *text = mark + strlen(FILE_MARK);
		size_t n = (size_t)(bytes + len - text);

		must(!ftruncate(fd, 0) && pwrite(fd, text, n, 0) == (ssize_t)n);
		file_alone(&env, path);
		params.job_file = path;
	}
	any_source(&env);
	free(environment.text);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine in numbers, from the operating system. The processors are those that the process's container has: those
 * of its cpuset cgroup, of version 2 or 1, or all that are online. What the process is bound to is another matter.
 */
#define _GNU_SOURCE
#include "topology/machine.h"
#include "topology/source.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A set that is large enough for any kernel that is configured today. */
#define SET_PROCESSORS 8192

/** Of a file with a list as "0-3,8": 0 if it is not there, empty, or something else. */
static uint32_t count_listed(const char *path)
{
	FILE *f = fopen(path, "re");
	struct rwk_range r;
	char *line = NULL;
	const char *at;
	uint32_t n = 0;
	size_t room = 0;
	int more = -1;

	if (!f)
		return 0;
	if (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		for (at = line; (more = rwk_read_range(&at, INT_MAX, &r)) > 0;)
			n += (r.last - r.first) / r.step + 1;
	}
	free(line);
	fclose(f);
	return more < 0 ? 0 : n;
}

/**
 * Of a group, or the nearest above it that says. A container that does not see the way to its own group has it at the
 * top.
 */
static uint32_t count_group(const char *mount, char *group, const char *file)
{
	char path[2 * PATH_MAX];
	char *end;

	for (;;) {
		uint32_t n;

		snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
		n = count_listed(path);
		end = strrchr(group, '/');
		if (n || !end)
			return n;
		*end = 0;
	}
}

static bool names(const char *list, const char *wanted)
{
	size_t len = strlen(wanted);

	for (;; list++) {
		if (!strncmp(list, wanted, len) && (!list[len] || list[len] == ','))
			return true;
		list = strchr(list, ',');
		if (!list)
			return false;
	}
}

/** A line of /proc/self/cgroup, "number:controllers:group"; without a controller it is version 2's. */
static uint32_t count_line(const char *root, char *line)
{
	char mount[PATH_MAX];
	char *list, *group;

	strsep(&line, ":");
	list = strsep(&line, ":");
	group = strsep(&line, "\n");
	if (!list || !group)
		return 0;
	snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup%s", root, *list ? "/cpuset" : "");
	if (*list && !names(list, "cpuset"))
		return 0;
	return count_group(mount, group, *list ? "cpuset.cpus" : "cpuset.cpus.effective");
}

static uint32_t count_allowed(const char *root)
{
	char path[PATH_MAX];
	char *line = NULL;
	uint32_t n = 0;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (!n && getline(&line, &room, f) > 0)
		n = count_line(root, line);
	free(line);
	fclose(f);
	return n;
}

uint32_t rwk_machine_processors(const char *root)
{
	uint32_t n = count_allowed(root);
	char path[PATH_MAX];
	long online;

	if (!n) {
		snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online", root);
		n = count_listed(path);
	}
	if (n)
		return n;
	online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (uint32_t)online : 1;
}

/** Processors that this process may use; 0 if the kernel does not say. */
static uint32_t count_binding(void)
{
	unsigned long set[SET_PROCESSORS / 8 / sizeof(unsigned long)] = {0};
	uint32_t n = 0;

	if (sched_getaffinity(getpid(), sizeof(set), (cpu_set_t *)set) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		n += (uint32_t)__builtin_popcountl(set[i]);
	return n;
}

void rwk_machine_count(struct rwk_machine *m)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	memset(m, 0, sizeof(*m));
	m->this_system = true;
	m->cores = m->processors = rwk_machine_processors("");
	m->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
	m->my_processors = count_binding();
	if (!m->my_processors)
		m->my_processors = m->processors;
	m->my_cores = m->my_processors;
	m->bound = m->my_processors < m->processors;
}

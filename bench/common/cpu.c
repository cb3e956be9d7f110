/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench/common/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* The first of its core's CPUs stands for the core; where it is not known, a CPU is a core of its own. */
static int core_of(const char *root, int cpu)
{
	char path[4096];
	int core;
	FILE *f;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", root, cpu);
	f = fopen(path, "r");
	if (!f)
		return cpu;
	if (fscanf(f, "%d", &core) != 1)
		core = cpu;
	fclose(f);
	return core;
}

void bench_order_cpus(const char *root, int *cpu, int count)
{
	int core[CPU_SETSIZE], thread[CPU_SETSIZE], sorted[CPU_SETSIZE], n = 0;

	for (int i = 0; i < count; i++) {
		core[i] = core_of(root, cpu[i]);
		thread[i] = 0;
		for (int k = 0; k < i; k++)
			thread[i] += core[k] == core[i];
	}
	for (int t = 0; n < count; t++) {
		for (int i = 0; i < count; i++) {
			if (thread[i] == t)
				sorted[n++] = cpu[i];
		}
	}
	memcpy(cpu, sorted, (size_t)count * sizeof(*cpu));
}

int bench_bind_to_cpu(int index)
{
	int cpu[CPU_SETSIZE], count = 0;
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		perror("sched_getaffinity");
		return -1;
	}
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &allowed))
			cpu[count++] = i;
	}
	if (index >= count)
		fprintf(stderr, "process %d shares a CPU with another, there %s only %d: times mean little\n", index,
			count == 1 ? "is" : "are", count);
	bench_order_cpus("", cpu, count);
	CPU_ZERO(&one);
	CPU_SET(cpu[index % count], &one);
	if (sched_setaffinity(0, sizeof(one), &one)) {
		perror("sched_setaffinity");
		return -1;
	}
	return cpu[index % count];
}

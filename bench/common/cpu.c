/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench/common/cpu.h"

#include <sched.h>
#include <stdio.h>

int bench_bind_to_cpu(int index)
{
	cpu_set_t allowed, one;
	int cpu = -1, count;

	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		perror("sched_getaffinity");
		return -1;
	}
	count = CPU_COUNT(&allowed);
	if (index >= count)
		fprintf(stderr, "process %d shares a CPU with another, there %s only %d: times mean little\n", index,
			count == 1 ? "is" : "are", count);
	for (int left = index % count + 1; left; left -= CPU_ISSET(cpu, &allowed) ? 1 : 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one)) {
		perror("sched_setaffinity");
		return -1;
	}
	return cpu;
}

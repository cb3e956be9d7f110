/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPU a process runs on. */
#ifndef BENCH_COMMON_CPU_H
#define BENCH_COMMON_CPU_H

/**
 * Binds the calling process to the CPU of that index among those it may use now, in the order of bench_order_cpus;
 * wraps round, with a warning on stderr, where there are fewer. Returns the CPU's number, or -1 when it stays unbound.
 */
int bench_bind_to_cpu(int index);

/**
 * Puts these CPUs, each greater than the one before, into the order in which processes get them: one of each core, then
 * what cores have more of, so that two processes share no core while there is another. /sys is looked for in `root`.
 */
void bench_order_cpus(const char *root, int *cpu, int count);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPU a process runs on. */
#ifndef BENCH_COMMON_CPU_H
#define BENCH_COMMON_CPU_H

/**
 * Binds the calling process to the CPU of that index among those it may use now; wraps round, with a warning on stderr,
 * where there are fewer. Returns the CPU's number, or -1 when it stays unbound.
 */
int bench_bind_to_cpu(int index);

#endif

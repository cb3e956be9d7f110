/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a process still exists, by /proc: for who knows its pid and when it began, and has no pidfd of it. */
#ifndef RWK_BASE_PROCESS_H
#define RWK_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** When that process began, in the kernel's own ticks: with the pid it names a process for good. 0: no answer. */
uint64_t rwk_process_start(pid_t pid);
/**
 * False: there is no such process, or it is a zombie, or began at another time than `start` (0: not known), so that the
 * pid is a stranger's. True if there is no answer to be had. Of pids of our own PID namespace alone.
 */
bool rwk_process_is_alive(pid_t pid, uint64_t start);

#endif

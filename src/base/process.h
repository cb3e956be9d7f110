/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other processes: whether one still exists, by /proc, for who knows its pid and when it began, and has no pidfd of it;
 * whether it is stopped; which of its threads sleep; that others may look into this one.
 */
#ifndef RWK_BASE_PROCESS_H
#define RWK_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * When that process began, in the kernel's own ticks: with the pid it names a process for good, also to those who see
 * another clock (a time namespace). 0: no answer.
 */
uint64_t rwk_process_start(pid_t pid);
/**
 * False: there is no such process, or it is a zombie with all its threads, or began at another time than `start` (0:
 * not known), so that the pid is a stranger's. True if there is no answer to be had. Of pids of our own PID namespace
 * alone.
 */
bool rwk_process_is_alive(pid_t pid, uint64_t start);
/**
 * Are all its threads stopped? Then none of them is within a copy from or to another process, nor about to make one
 * that it has begun to make (which a tracer can stop at the door). False if there is no answer to be had.
 */
bool rwk_process_is_stopped(pid_t pid);
/** The oldest of its threads that sleeps now, its first thread aside; 0: none does, or there is no answer to be had. */
pid_t rwk_process_idle_thread(pid_t pid);

/**
 * Where Yama lets only ancestors look into a process (scope 1), lets the others of the same user do it, if the user
 * does not forbid it. A child of fork must ask for itself; a stricter scope cannot be loosened.
 */
void rwk_process_let_in(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Was this made in this process? In a child of fork are copies of what its parent has made, and the child must not act
 * for the parent. The pid alone does not tell: the first process of a PID namespace that forks into another one has a
 * child with its own pid.
 */
#ifndef RWK_BASE_THIS_PROCESS_H
#define RWK_BASE_THIS_PROCESS_H

#include <stdint.h>

/**
 * A number that none of those has from whom this process comes by fork, or by a clone that runs no handlers of fork.
 * Never 0. Before Linux 4.14, or without the memory for a page when first asked, it tells no more than the pid.
 */
uint64_t rwk_this_process(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A bell: an eventfd that never blocks, which wakes who sleeps on it. base/cancel.h says why it is rung by syscall. */
#ifndef RWK_BASE_BELL_H
#define RWK_BASE_BELL_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/** From now on it is readable. */
static inline void rwk_bell_ring(int bell)
{
	const uint64_t one = 1;

	syscall(SYS_write, bell, &one, sizeof(one));
}

/** It is no longer. */
static inline void rwk_bell_quiet(int bell)
{
	uint64_t times;

	syscall(SYS_read, bell, &times, sizeof(times));
}

#endif

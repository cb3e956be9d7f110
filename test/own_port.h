/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests that give a port away and take it again: the kernel gives those of its own choice to whoever asks next,
 * such as another test beside this one.
 */
#ifndef RWK_TEST_OWN_PORT_H
#define RWK_TEST_OWN_PORT_H

#include <stdint.h>
#include <unistd.h>

/** Below those of the kernel's choice (32768 and up by default); another one in each process and at each call. */
static inline uint16_t own_port(void)
{
	static unsigned calls;

	return (uint16_t)(10000 + ((unsigned)getpid() * 64 + calls++ % 64) % 22000);
}

#endif

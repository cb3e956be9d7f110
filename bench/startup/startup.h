/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From nothing to the first message, by each of some stacks. The ranks are processes of one node, forked before any
 * library has been used, and find each other's addresses in shared memory.
 */
#ifndef BENCH_STARTUP_H
#define BENCH_STARTUP_H

#include <stddef.h>

#define STARTUP_RANKS   64
#define STARTUP_ADDRESS 2048 /* bytes, at most */

struct startup_address {
	size_t len;
	unsigned char bytes[STARTUP_ADDRESS];
};

/** A stack. Each call returns 0, or what went wrong as text; what a rank has open is the stack's own, and lasts. */
struct startup_stack {
	/** What there is: fi_getinfo, ucp_init. */
	const char *(*find)(const char *name);
	const char *(*open)(struct startup_address *own);
	/** Knows all of `n` ranks from now on. */
	const char *(*meet)(const struct startup_address *all, unsigned n);
	/**
	 * Sends eight bytes to rank `to`, and returns when eight bytes have come from anybody and the
	 * send is complete.
	 */
	const char *(*exchange)(unsigned to);
	/** May be NULL: gives back what the kernel does not, when a process ends. */
	void (*end)(void);
};

extern const struct startup_stack startup_ofi; /* name: a libfabric provider */
extern const struct startup_stack startup_ucx;

#endif

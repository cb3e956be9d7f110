/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at a running process from outside: its endpoints' status pages (engine/status.h), which it
 * does not notice.
 */
#ifndef RWK_TOOLS_ATTACH_H
#define RWK_TOOLS_ATTACH_H

#include "engine/status.h"

#include <sys/types.h>

#define RWK_ATTACH_MAX 64 /* endpoints that are looked at */
#define RWK_ATTACH_WHY 320

struct rwk_attached {
	pid_t pid;
	uint64_t start; /* of the process; 0: not known */
	unsigned count;
	const struct rwk_status *page[RWK_ATTACH_MAX]; /* another process's memory: see rwk_attach_read */
	unsigned more; /* endpoints beyond these */
};

/**
 * Finds the pages of process `pid` and maps them. 0; or a negative errno, and one sentence in `why` (RWK_ATTACH_WHY
 * bytes): -ESRCH there is no such process, -EACCES it is another user's, -ENOENT it has no endpoint that shows itself,
 * -EPROTO its pages are another version's, or damaged.
 */
int rwk_attach(pid_t pid, struct rwk_attached *a, char *why);
void rwk_detach(struct rwk_attached *a);

/** What page `i` says now, made safe: texts end, and counts and indices are within bounds. */
void rwk_attach_read(const struct rwk_attached *a, unsigned i, struct rwk_status *to);

/** Does the process still run? What it had written stays readable when it does not. */
bool rwk_attach_lives(const struct rwk_attached *a);

#endif

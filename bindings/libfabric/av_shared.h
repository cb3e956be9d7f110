/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of addresses that the processes of one user on a host share, by name: a POSIX shared memory object, with
 * mode 0600. Who has it open holds a lock on it, which ends with him however he ends; so who opens it knows whether
 * anybody else has it: if not, what is there is a leftover, and is made anew. The last to close it removes the name.
 *
 *   0 ... 4095         the head: what it is, and the table's counts
 *   4096 ...           entries, `room` of them; then so many hash chains
 *
 * Three of its bytes are locked (open file descriptions' locks, so that they hold within a process, too):
 *
 *   GATE    while it is opened and closed
 *   LIFE    shared, as long as it is open
 *   TABLE   while the table is looked at or changed: a call of the system or two, in calls that are no fast path
 */
#ifndef RWK_FI_AV_SHARED_H
#define RWK_FI_AV_SHARED_H

#include "bindings/libfabric/av_table.h"

#include "base/list.h"

#include <stddef.h>
#include <stdint.h>

struct rwk_fi_av_shared {
	struct rwk_list all;           /* under the lock of base/forked.h, as are fd and map */
	struct rwk_fi_av_table *table; /* whose memory it is */
	uint64_t process;              /* that has opened it */
	int fd;                        /* -1 in a forked child, */
	void *map;                     /* and NULL: either would hold the parent's locks when that has ended */
	size_t size;                   /* mapped */
	int cancel;                    /* while TABLE is locked: what rwk_cancel_hold_off said */
	char name[256];
};

/**
 * Opens the table of that name, or makes it, with `room` entries, and sets up *table, which is the caller's.
 * `existing`: -FI_ENOENT unless somebody has it open. -FI_EINVAL: no such name can be, or another build has it;
 * -FI_EACCES: it is another user's; -FI_ENOMEM; the errno of what it opens. All but the first are logged. Blocks while
 * others open and close it.
 */
int rwk_fi_av_shared_open(
	const char *name, bool existing, uint32_t room, struct rwk_fi_av_table *table, struct rwk_fi_av_shared **out);
void rwk_fi_av_shared_close(struct rwk_fi_av_shared *s);

/**
 * Before the table is used: 0, or -FI_ENOMEM, logged. Repairs what a killed process has left half done. Until the
 * unlock the thread cannot be cancelled (base/cancel.h).
 */
int rwk_fi_av_shared_lock(struct rwk_fi_av_shared *s);
void rwk_fi_av_shared_unlock(struct rwk_fi_av_shared *s);

#endif

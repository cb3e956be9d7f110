/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many threads of this process wait by polling. Nobody says how many there will be, so those that do are counted:
 * where they have less than a processor each, one that waits had better give its own to those who are waited for.
 */
#ifndef RWK_BASE_CROWD_H
#define RWK_BASE_CROWD_H

#include <stdint.h>

#define RWK_CROWD_WINDOW 64 /* ms; each that polls has a turn in it unless there are very many */

/** Counts the calling thread: the threads that have been counted in the window of that time (ms), or in the one before
 * it if these are more. Any thread. */
unsigned rwk_crowd_count(uint64_t now);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that processes share by a descriptor. */
#ifndef RWK_BASE_SHARED_H
#define RWK_BASE_SHARED_H

#include <stdbool.h>
#include <stddef.h>

/**
 * New memory of `size` bytes, zero, which can be sealed: a descriptor, the caller's, closed on exec; or a negative
 * errno. -EFBIG, logged: it counts as a file, and is larger than this process may make one (`ulimit -f`).
 */
int rwk_shared_make(const char *name, size_t size);

/**
 * May this process make a file of that size? 0; -EFBIG, logged under that name: more than the limit is answered by a
 * signal that ends the process (SIGXFSZ).
 */
int rwk_shared_allowed(const char *name, size_t size);

/**
 * Has memory put behind that part of a mapping, and what shares a page with it, now: so that a lack of it is an answer,
 * and not the signal by which the first store ends. False with errno ENOMEM: there is none. An older kernel lets the
 * first store ask.
 */
bool rwk_shared_populate(void *at, size_t size);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that processes share by a descriptor. */
#ifndef RWK_BASE_SHARED_H
#define RWK_BASE_SHARED_H

#include <stddef.h>

/**
 * New memory of `size` bytes, zero, which can be sealed: a descriptor, the caller's, closed on exec; or a negative
 * errno. -EFBIG, logged: it counts as a file, and is larger than this process may make one (`ulimit -f`).
 */
int rwk_shared_make(const char *name, size_t size);

#endif

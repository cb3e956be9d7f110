/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables by key: uthash, as all of us use it. Left alone it ends the process when it finds no memory. Here HASH_ADD
 * then leaves the table as it was, and the caller has to look, with rwk_keyed_is_in, whether the object is in it.
 */
#ifndef RWK_BASE_KEYED_H
#define RWK_BASE_KEYED_H

#include <stdbool.h>
#include <stddef.h>

#define HASH_NONFATAL_OOM 1

#include <uthash.h>

/** After HASH_ADD, of the object's handle: is it in the table? No: there was no memory. */
static inline bool rwk_keyed_is_in(const UT_hash_handle *handle)
{
	return handle->tbl != NULL;
}

#endif

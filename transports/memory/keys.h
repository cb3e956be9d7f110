/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key table: what a peer may reach by RDMA. Fixed-size and without a pointer of its own (the addresses in it are
 * those of the process that owns the region), so that it can lie in a segment mapped at two addresses. One thread at a
 * time, or under its owner's lock.
 *
 * A key is 32 bits drawn at random for each region; a key that is gone is not drawn again for as long as the slot can
 * avoid it, so that a late access finds nothing.
 */
#ifndef RWK_MEMORY_KEYS_H
#define RWK_MEMORY_KEYS_H

#include "machine.h" /* enum rwk_reach */

#define RWK_KEYS_IOV 8u /* pieces of a region */

struct rwk_keys;

/** Bytes of a table for `entries` regions (a power of two). */
size_t rwk_keys_size(uint32_t entries);
/** Makes a table in that memory, 64-byte aligned. The keys come from getrandom: 0, or a negative errno. */
int rwk_keys_init(struct rwk_keys *t, uint32_t entries);

/**
 * Adds a region of protection domain `pd`: `count` pieces that the peer sees as one range from address `base` on,
 * with `reach` of RWK_REACH_*. 0 and *key set; -ENOSPC: the table is full; -EINVAL: too many pieces, or the range
 * wraps.
 */
int rwk_keys_add(struct rwk_keys *t, uint32_t pd, uint64_t base, const struct iovec *iov, uint32_t count,
	unsigned reach, uint32_t *key);
/** Takes it out: 0; -ENOENT. */
int rwk_keys_remove(struct rwk_keys *t, uint32_t key);

/** May [address, address + len) be reached so? 0; -EACCES: wrong key, pd, range or permission (S3-6). */
int rwk_keys_check(const struct rwk_keys *t, uint32_t pd, uint32_t key, uint64_t address, size_t len, unsigned reach);
/** The same, and where it lies: number of pieces put into iov (at most max); -EACCES. */
int rwk_keys_find(const struct rwk_keys *t, uint32_t pd, uint32_t key, uint64_t address, size_t len, unsigned reach,
	struct iovec *iov, int max);

#endif

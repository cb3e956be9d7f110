/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key table: what a peer may reach by RDMA. Fixed-size and without a pointer of its own (the addresses in it are
 * those of the process that owns the region), so that it can lie in a segment mapped at two addresses. One thread at a
 * time, or under its owner's lock.
 *
 * A key is 32 bits: the number of a slot, and at least 16 bits drawn at random for each region. A slot is used again as
 * late as can be, and then with another key than it had before, so that a late access finds nothing.
 */
#ifndef RWK_MEMORY_KEYS_H
#define RWK_MEMORY_KEYS_H

#include "machine.h" /* enum rwk_reach */

#define RWK_KEYS_IOV 8u /* pieces of a region */

struct rwk_keys;

/** Bytes of a table for `entries` regions (a power of two, 2 to 65536). */
size_t rwk_keys_size(uint32_t entries);
/**
 * Makes a table in that memory, 64-byte aligned: 0; -EINVAL: no such number of entries; as rwk_random_next, from which
 * the keys come.
 */
int rwk_keys_init(struct rwk_keys *t, uint32_t entries);

/**
 * Adds a region of protection domain `pd`: `count` pieces that the peer sees as one range from address `base` on,
 * with `reach` of RWK_REACH_*. The pieces are copied, the memory they name stays the caller's. 0 and *key set; -ENOSPC:
 * the table is full; -EINVAL: too many pieces, or the range wraps.
 */
int rwk_keys_add(struct rwk_keys *t, uint32_t pd, uint64_t base, const struct iovec *iov, uint32_t count,
	unsigned reach, uint32_t *key);
/** Takes it out, from now on nobody reaches it: 0; -ENOENT: there is none. */
int rwk_keys_remove(struct rwk_keys *t, uint32_t key);

/** Takes out all regions of a protection domain: a look at each, and at few others. */
void rwk_keys_remove_all(struct rwk_keys *t, uint32_t pd);
/** All regions of protection domain `from` are of `to` from now on. The same looks. */
void rwk_keys_move(struct rwk_keys *t, uint32_t from, uint32_t to);

/** The number of the key's slot, below `entries`: of all regions that are there another one each. */
uint32_t rwk_keys_slot(const struct rwk_keys *t, uint32_t key);
/** Whose region is it? 0 and *pd set; -EACCES: no such key. */
int rwk_keys_pd(const struct rwk_keys *t, uint32_t key, uint32_t *pd);
/** May [address, address + len) be reached so? 0; -EACCES: wrong key, pd, range or permission (S3-6). */
int rwk_keys_check(const struct rwk_keys *t, uint32_t pd, uint32_t key, uint64_t address, size_t len, unsigned reach);
/**
 * The same, and where it lies: number of pieces put into iov (0 for 0 bytes); -EACCES; -EMSGSIZE: it has more than max
 * pieces (never, if max is RWK_KEYS_IOV).
 */
int rwk_keys_find(const struct rwk_keys *t, uint32_t pd, uint32_t key, uint64_t address, size_t len, unsigned reach,
	struct iovec *iov, int max);

#endif

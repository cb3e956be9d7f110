/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions: memory of this process that peers may read, write and change by atomic operations. A table belongs to a
 * domain; the endpoints opened with it (rwk_engine_attr.regions) answer requests that name its keys.
 *
 * A region is up to RWK_ENGINE_IOV_MAX pieces of memory, which peers see as one range of addresses. What a peer asks
 * for is checked on each request: the key, the whole range, the kind of access. What fails is refused as a whole, and
 * nothing is touched.
 *
 * Threads: endpoints that look up regions of a table, each under its own lock, may do so at once where the table was
 * opened for that: what they note in a region has a mutex then. Calls that change the table, or a region, are the
 * caller's to keep apart from all of them, as are those that free either. Nothing blocks.
 */
#ifndef RWK_ENGINE_REGION_H
#define RWK_ENGINE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct rwk_engine;
struct rwk_regions;
struct rwk_region;

/** Kinds of access, as bits: what a region grants, what a request needs. An atomic that stores needs WRITE
 * (rwk_atomic_stores), one that fetches READ. */
enum { RWK_REGION_READ = 1, RWK_REGION_WRITE = 2 };

/** What has been done to a region by a peer, or by this process through the same calls. */
struct rwk_reached {
	struct rwk_region *region; /* NULL, where an endpoint is told of an operation */
	unsigned access; /* RWK_REGION_* of this request: what was done */
	bool atomic;
	size_t length; /* bytes, of that region or of the whole operation */
};

struct rwk_region_attr {
	const struct iovec *iov; /* the memory, in order; copied. One piece at NULL, with a length up to SIZE_MAX, is
				    all memory: of it what is not mapped answers -EFAULT to who touches it */
	size_t count;            /* 1 to RWK_ENGINE_IOV_MAX */
	uint64_t base;           /* the address by which peers name its first byte: that byte's own, or 0 for offsets */
	unsigned access;         /* RWK_REGION_*; 0: none, the key is known and refuses all */
	bool own_key;            /* `key` is asked for; else one is drawn at random */
	uint64_t key;
	struct rwk_engine *only; /* reached through this endpoint alone; NULL: through all of the domain */
	/** Called after each operation of which a part was an access to this region, that has been granted and carried
	 * out, in progress: once, however many ranges it names; NULL: nobody asks. It must not remove regions. */
	void (*reached)(void *owner, const struct rwk_reached *r);
	unsigned told; /* RWK_REGION_*: of these it is called; 0 without it */
	void *owner;
};

/** An empty table, `shared` if its endpoints may be called by several threads at a time: 0 or -ENOMEM. */
int rwk_regions_open(struct rwk_regions **t, bool shared);
/** Frees it; there are no regions in it and no endpoints use it any more. */
void rwk_regions_close(struct rwk_regions *t);

/**
 * Adds a region: 0 and *region set; -ENOKEY: the key asked for is in use; -EINVAL: no pieces or too many, or one
 * of them wraps, or the range of addresses; -ENOMEM.
 */
int rwk_region_add(struct rwk_regions *t, const struct rwk_region_attr *attr, struct rwk_region **region);
uint64_t rwk_region_key(const struct rwk_region *r);
void *rwk_region_owner(const struct rwk_region *r);

/** Sets rwk_region_attr.told; of requests that are under way directly `reached` may not be called. */
void rwk_region_set_told(struct rwk_region *r, unsigned access);

/**
 * Takes a region out and frees it. From then on its key is refused, and what is under way does not touch its memory any
 * more: a long write that has come in part is dropped from there on, and its initiator told -EACCES, also if the key is
 * another region's by then.
 */
void rwk_region_remove(struct rwk_regions *t, struct rwk_region *r);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exposure: which memory of this process the peer of a channel may read and write, and the keys that name it.
 *
 * A key's words:  0 cookie   1 address of the region's record   2 address of the only piece, 0 if there are several
 *                 3 length in the low 48 bits, flags in the next 8, a mark of this transport in the top 8
 * The cookie is 39 random bits above a 24-bit index, fresh for each exposure: a late or a stray request does not match.
 * A length that does not fit (all memory is exposed so) is all ones: to the end of the addresses.
 */
#include "shm/transfer_area.h"

#include "base/process.h"
#include "base/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_VAST  RWK_RKEY_LENGTH_MAX
#define FLAGS_AT     48 /* in the last word */
#define KEY_MARK     0x5au
#define KEY_WRITABLE 1u
#define KEY_DIRECT   2u
#define KEY_ONE      4u /* piece */
#define KEY_UNREAD   8u /* is not to be read */
#define KEY_LISTED   16u /* stands in the area's `valid` */

#define LISTED_FIRST ((RWK_SHM_TRANSFER_BEGIN - offsetof(struct rwk_shm_area, valid)) / sizeof(uint64_t))

/* Once a port, as a child of fork must ask for itself. */
static void let_peers_in(struct rwk_shm_port_transfers *p)
{
	if (p->peers_let_in)
		return;
	p->peers_let_in = true;
	rwk_process_let_in();
}

static struct rwk_shm_region *region_get(struct rwk_shm_regions *r)
{
	struct rwk_shm_region *region = r->free, **bigger;
	uint32_t room;

	if (region) {
		r->free = region->next_free;
		return region;
	}
	if (r->made == 1u << RWK_SHM_INDEX_BITS)
		return NULL;
	if (r->made == r->room) {
		room = r->room ? 2 * r->room : 16;
		bigger = realloc(r->by_index, room * sizeof(struct rwk_shm_region *));
		if (!bigger)
			return NULL;
		r->by_index = bigger;
		r->room = room;
	}
	if (!r->pool.size)
		rwk_pool_init(&r->pool, sizeof(struct rwk_shm_region), 16, 0);
	region = rwk_pool_get(&r->pool);
	if (!region)
		return NULL;
	region->index = r->made;
	r->by_index[r->made++] = region;
	return region;
}

static void region_put(struct rwk_shm_regions *r, struct rwk_shm_region *region)
{
	region->next_free = r->free;
	r->free = region;
}

static void key_pack(const struct rwk_shm_region *region, bool listed, struct rwk_rkey *key)
{
	uint64_t flags = (region->access & RWK_EXPOSE_WRITE ? KEY_WRITABLE : 0) |
			 (region->access & RWK_EXPOSE_READ ? 0 : KEY_UNREAD) | (region->direct ? KEY_DIRECT : 0) |
			 (region->count == 1 ? KEY_ONE : 0) | (listed ? KEY_LISTED : 0);

	key->word[0] = region->cookie;
	key->word[1] = (uint64_t)(uintptr_t)region;
	key->word[2] = region->count == 1 ? (uint64_t)(uintptr_t)region->iov[0].iov_base : 0;
	key->word[3] = (region->length < LENGTH_VAST ? region->length : LENGTH_VAST) | flags << FLAGS_AT |
		       (uint64_t)KEY_MARK << 56;
}

int rwk_shm_key_unpack(const struct rwk_rkey *rkey, struct rwk_shm_key *key)
{
	if (rkey->word[3] >> 56 != KEY_MARK || !rkey->word[0] || !rkey->word[1])
		return -EINVAL;
	key->cookie = rkey->word[0];
	key->region = rkey->word[1];
	key->address = rkey->word[2];
	key->length = rwk_rkey_length(rkey);
	if (key->length == LENGTH_VAST)
		key->length = UINT64_MAX - key->address;
	key->one = rkey->word[3] >> FLAGS_AT & KEY_ONE;
	key->access = (rkey->word[3] >> FLAGS_AT & KEY_WRITABLE ? RWK_EXPOSE_WRITE : 0u) |
		      (rkey->word[3] >> FLAGS_AT & KEY_UNREAD ? 0u : RWK_EXPOSE_READ);
	key->direct = rkey->word[3] >> FLAGS_AT & KEY_DIRECT;
	return 0;
}

bool rwk_shm_key_listed(const struct rwk_rkey *rkey)
{
	return rkey->word[3] >> FLAGS_AT & KEY_LISTED;
}

/* Their bytes in all. -EINVAL: they wrap, or are too long for what a key of several pieces can say. */
static int pieces_length(const struct iovec *iov, uint32_t count, uint64_t *length)
{
	uint64_t all = 0;

	if (!count || count > RWK_EXPOSE_IOV_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].iov_len > UINT64_MAX - (uintptr_t)iov[i].iov_base ||
			(count > 1 && (all >= LENGTH_VAST || iov[i].iov_len >= LENGTH_VAST - all)))
			return -EINVAL;
		all += iov[i].iov_len;
	}
	*length = all;
	return 0;
}

/* Where it is listed, or NULL: there is no place for it, or no memory. */
static _Atomic uint64_t *listing(struct rwk_shm_transfers *t, const struct rwk_shm_region *region)
{
	struct rwk_shm_area *area = rwk_shm_area_of(t, true);

	return area && region->index < t->listed ? &area->valid[region->index] : NULL;
}

/* The list gets memory by pages, from its begin on, up to that region's place if there is any. */
static void list_as_far(struct rwk_shm_transfers *t, const struct rwk_shm_region *region)
{
	struct rwk_shm_area *area = rwk_shm_area_of(t, true);

	if (!area || region->index >= RWK_SHM_LISTED)
		return;
	if (!t->listed)
		t->listed = LISTED_FIRST;
	while (region->index >= t->listed && rwk_shared_populate((void *)&area->valid[t->listed], RWK_SHM_PAGE))
		t->listed += RWK_SHM_PAGE / sizeof(area->valid[0]);
	if (t->listed > RWK_SHM_LISTED)
		t->listed = RWK_SHM_LISTED; /* its last page is not full */
}

/* May the peer reach it directly from now on? 0, or negative errno. */
static int let_reach(struct rwk_shm_transfers *t, const struct rwk_shm_region *region)
{
	if (region->index >= RWK_SHM_LISTED)
		return -ENOSPC;
	if (!rwk_shm_area_of(t, true))
		return -ENOTCONN; /* what the peer looks at before each access is not there yet */
	if (!listing(t, region))
		return -ENOMEM;
	return rwk_shm_guard_up(t);
}

int rwk_shm_expose(
	struct rwk_shm_channel *ch, const struct iovec *iov, uint32_t count, unsigned access, struct rwk_rkey *key)
{
	struct rwk_shm_transfers *t = rwk_shm_transfers_of(ch);
	struct rwk_shm_region *region;
	uint64_t length = 0, random = 0;
	_Atomic uint64_t *listed;
	int rc;

	if (!t)
		return -ENOMEM;
	if (t->stopped)
		return t->stopped;
	rc = pieces_length(iov, count, &length);
	if (rc)
		return rc;
	rc = rwk_random_next(&t->port->random, &random);
	if (rc)
		return rc;
	region = region_get(&t->regions);
	if (!region)
		return -ENOSPC;
	let_peers_in(t->port);
	for (uint32_t i = 0; i < count; i++)
		region->iov[i] = iov[i];
	region->count = count;
	region->length = length;
	region->direct = access & RWK_EXPOSE_WRITE || length >= LENGTH_VAST;
	region->access = (uint8_t)access;
	region->cookie = RWK_SHM_LISTED_WRITABLE | random << RWK_SHM_INDEX_BITS | region->index; /* never 0 */
	list_as_far(t, region);
	rc = region->direct ? let_reach(t, region) : 0;
	if (rc) {
		region->cookie = 0;
		region->direct = false;
		region_put(&t->regions, region);
		return rc;
	}
	listed = listing(t, region);
	if (listed)
		rwk_publish64(listed,
			access & RWK_EXPOSE_WRITE ? region->cookie : region->cookie & ~RWK_SHM_LISTED_WRITABLE);
	key_pack(region, listed, key);
	return 0;
}

struct rwk_shm_region *rwk_shm_region_find(struct rwk_shm_transfers *t, uint64_t cookie)
{
	uint32_t index = rwk_shm_cookie_index(cookie);

	if (!cookie || index >= t->regions.made || t->regions.by_index[index]->cookie != cookie)
		return NULL;
	return t->regions.by_index[index];
}

/* Reads that come late find no cookie, or nothing valid, as writes do that are announced late. */
static void invalidate(struct rwk_shm_transfers *t, struct rwk_shm_region *region)
{
	_Atomic uint64_t *listed = listing(t, region);

	__atomic_store_n(&region->cookie, 0, __ATOMIC_RELAXED);
	if (listed)
		rwk_publish64(listed, 0);
	atomic_thread_fence(memory_order_release); /* whatever its owner writes there now comes later */
}

/* Is the peer writing into the region of that cookie? 0: into any. */
static bool being_written(struct rwk_shm_transfers *t, void *arg)
{
	uint64_t cookie = *(const uint64_t *)arg, writing = rwk_observe64(&rwk_shm_area_of(t, false)->writing.word);

	return cookie ? writing == cookie : writing != 0;
}

void rwk_shm_conceal(struct rwk_shm_channel *ch, const struct rwk_rkey *key)
{
	struct rwk_shm_transfers *t = *rwk_shm_transfer_state(ch);
	struct rwk_shm_region *region = t ? rwk_shm_region_find(t, key->word[0]) : NULL;
	uint64_t cookie = key->word[0];

	if (!region || !rwk_shm_here(ch))
		return;
	invalidate(t, region);
	if (region->direct)
		rwk_shm_guard_wait(t, being_written, &cookie);
	region_put(&t->regions, region);
	rwk_shm_stage_concealed(t, cookie);
	rwk_shm_help_concealed(t, cookie);
}

void rwk_shm_regions_close(struct rwk_shm_transfers *t)
{
	struct rwk_shm_regions *r = &t->regions;
	uint64_t any = 0;

	/* a peer that pulls this very moment must not find a good cookie in memory that has been freed */
	for (uint32_t i = 0; i < r->made && rwk_shm_here(t->ch); i++)
		invalidate(t, r->by_index[i]);
	if (t->guard && rwk_shm_here(t->ch))
		rwk_shm_guard_wait(t, being_written, &any);
	free(r->by_index);
	rwk_pool_close(&r->pool);
	*r = (struct rwk_shm_regions){0};
}

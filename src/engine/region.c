/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* process_vm_readv */

#include "engine/rma_state.h"

#include "base/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux 5.14; glibc has had them since 2.35 */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define CAREFUL_MAX ((size_t)1 << 30) /* bytes that the kernel copies in a call */

struct rwk_regions {
	struct rwk_region *by_key;
	struct rwk_region *_Atomic last; /* asked for last, by whichever engine; NULL: none */
	uint64_t added;                  /* regions, ever */
	bool shared;                     /* by engines that do not have one lock in common: */
	pthread_mutex_t noting;          /* of the regions' lists */
	struct rwk_random random;        /* of drawn keys */
};

int rwk_regions_open(struct rwk_regions **t, bool shared)
{
	*t = calloc(1, sizeof(**t));
	if (!*t)
		return -ENOMEM;
	(*t)->shared = shared;
	pthread_mutex_init(&(*t)->noting, NULL);
	return 0;
}

void rwk_regions_close(struct rwk_regions *t)
{
	pthread_mutex_destroy(&t->noting);
	free(t);
}

static void lock_notes(struct rwk_regions *t)
{
	if (t->shared)
		pthread_mutex_lock(&t->noting);
}

static void unlock_notes(struct rwk_regions *t)
{
	if (t->shared)
		pthread_mutex_unlock(&t->noting);
}

void rwk_region_note(struct rwk_region *r, struct rwk_list *list, struct rwk_list *link)
{
	lock_notes(r->table);
	rwk_list_append(list, link);
	unlock_notes(r->table);
}

void rwk_region_unnote(struct rwk_region *r, struct rwk_list *link)
{
	lock_notes(r->table);
	rwk_list_remove(link);
	unlock_notes(r->table);
}

static struct rwk_region *find(const struct rwk_regions *t, uint64_t key)
{
	struct rwk_region *r;

	HASH_FIND(by_key, t->by_key, &key, sizeof(key), r);
	return r;
}

/** Adds up the pieces: false, if one of them wraps, or there are too many bytes for an address to name. */
static bool measure(struct rwk_region *r)
{
	r->length = 0;
	for (size_t i = 0; i < r->attr.count; i++) {
		if (r->iov[i].iov_len > UINTPTR_MAX - (uintptr_t)r->iov[i].iov_base ||
			r->iov[i].iov_len > UINT64_MAX - r->length)
			return false;
		r->length += r->iov[i].iov_len;
	}
	return !r->length || r->length - 1 <= UINT64_MAX - r->attr.base;
}

/** A key that nobody has, and that nobody guesses: none is used again. */
static int draw_key(struct rwk_regions *t, uint64_t *key)
{
	int rc;

	do {
		rc = rwk_random_next(&t->random, key);
	} while (!rc && (*key == UINT64_MAX || find(t, *key)));
	return rc;
}

int rwk_region_add(struct rwk_regions *t, const struct rwk_region_attr *attr, struct rwk_region **out)
{
	struct rwk_region *r;
	int rc = -EINVAL;

	if (!attr->count || attr->count > RWK_ENGINE_IOV_MAX)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->attr = *attr;
	memcpy(r->iov, attr->iov, attr->count * sizeof(*r->iov));
	r->attr.iov = r->iov;
	r->table = t;
	r->key = attr->key;
	r->serial = t->added++;
	r->careful = attr->count == 1 && !r->iov[0].iov_base;
	rwk_list_init(&r->incoming);
	rwk_list_init(&r->exports);
	if (!measure(r))
		goto fail;
	rc = attr->own_key ? 0 : draw_key(t, &r->key);
	if (!rc && attr->own_key && find(t, r->key))
		rc = -ENOKEY;
	if (rc)
		goto fail;
	HASH_ADD(by_key, t->by_key, key, sizeof(r->key), r);
	if (!rwk_keyed_is_in(&r->by_key)) {
		rc = -ENOMEM;
		goto fail;
	}
	*out = r;
	return 0;

fail:
	free(r);
	return rc;
}

uint64_t rwk_region_key(const struct rwk_region *r)
{
	return r->key;
}

void *rwk_region_owner(const struct rwk_region *r)
{
	return r->attr.owner;
}

void rwk_region_set_told(struct rwk_region *r, unsigned access)
{
	bool more = access & ~r->attr.told;

	r->attr.told = access;
	if (more)
		rwk_rma_revoke(r); /* who asks again learns of it */
}

void rwk_region_remove(struct rwk_regions *t, struct rwk_region *r)
{
	struct rwk_list *l;

	HASH_DELETE(by_key, t->by_key, r);
	if (atomic_load_explicit(&t->last, memory_order_relaxed) == r)
		atomic_store_explicit(&t->last, NULL, memory_order_relaxed);
	while ((l = rwk_list_pop(&r->incoming))) {
		struct rwk_rma_in *in = rwk_container_of(l, struct rwk_rma_in, link);

		in->incoming.place.iov_count = 0; /* what still comes is dropped */
		in->region = NULL;
		in->status = -EACCES;
	}
	rwk_rma_revoke(r);
	free(r);
}

int rwk_region_find(struct rwk_regions *t, const struct rwk_engine *e, uint64_t key, struct rwk_region **region)
{
	struct rwk_region *r, *last;

	if (!t)
		return -EACCES;
	last = atomic_load_explicit(&t->last, memory_order_relaxed);
	r = last && last->key == key ? last : find(t, key);
	if (!r || (r->attr.only && r->attr.only != e))
		return -EACCES;
	if (r != last)
		atomic_store_explicit(&t->last, r, memory_order_relaxed);
	*region = r;
	return 0;
}

int rwk_region_check(struct rwk_regions *t, const struct rwk_engine *e, uint64_t key, uint64_t address, size_t len,
	unsigned access, struct rwk_region **region, uint64_t *at)
{
	struct rwk_region *r;
	int rc = rwk_region_find(t, e, key, &r);

	if (rc)
		return rc;
	*at = address - r->attr.base;
	if (access & ~r->attr.access || *at > r->length || len > r->length - *at)
		return -EACCES;
	*region = r;
	return 0;
}

unsigned rwk_region_slice(const struct rwk_region *r, uint64_t at, size_t len, struct iovec *iov)
{
	if (r->attr.count > 1)
		return rwk_iov_slice(r->iov, r->attr.count, at, &len, iov, RWK_ENGINE_IOV_MAX);
	iov[0] = (struct iovec){(void *)((uintptr_t)r->iov[0].iov_base + at), len};
	return len > 0;
}

/** Linux before 5.14 knows nothing of this. */
static bool can_populate(int how)
{
	static int known; /* 1: no, 2: yes */
	int can = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!can) {
		uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
		char here = 0;

		can = madvise((void *)((uintptr_t)&here & ~(page - 1)), page, how) ? 1 : 2;
		__atomic_store_n(&known, can, __ATOMIC_RELAXED);
	}
	return can == 2;
}

/** Can the pages be read, or with `store` written? On an old Linux: are they there? 0, -EFAULT. */
static int pages_usable(uintptr_t at, size_t len, bool store)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = at & ~(page - 1);
	int how = store ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	unsigned char there[64];

	if (can_populate(how))
		return madvise((void *)from, at + len - from, how) ? -EFAULT : 0;
	for (uintptr_t p = from; p < at + len; p += page * sizeof(there)) {
		size_t most = page * sizeof(there);

		if (mincore((void *)p, at + len - p < most ? at + len - p : most, there))
			return -EFAULT;
	}
	return 0;
}

/**
 * A copy by the kernel, which says -EFAULT where there is no memory instead of ending the process. It stops early at
 * that, and after 2 GB less a page: what it says of the rest tells which it was.
 */
static int careful_copy(char *mine, uintptr_t there, size_t len, bool store)
{
	while (len) {
		struct iovec local = {mine, len < CAREFUL_MAX ? len : CAREFUL_MAX};
		struct iovec remote = {(void *)there, local.iov_len};
		ssize_t n = store ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0)
				  : process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

		if (n <= 0)
			break;
		mine += n;
		there += (size_t)n;
		len -= (size_t)n;
	}
	if (!len)
		return 0;
	if (errno == EFAULT || pages_usable(there, len, store))
		return -EFAULT;
	memmove(store ? (void *)there : mine, store ? mine : (void *)there, len);
	return 0;
}

/** In one step what the peer may have written in one: somebody may be looking at it. */
static void copy(void *to, const void *from, size_t len)
{
	if (rwk_copy_word(to, from, len))
		return;
	if (len <= RWK_COPY_SHORT_MAX) {
		unsigned char bytes[RWK_COPY_SHORT_MAX]; /* from and to may overlap */

		rwk_copy_short(bytes, from, len);
		rwk_copy_short(to, bytes, len);
	} else if ((uintptr_t)to - (uintptr_t)from < len || (uintptr_t)from - (uintptr_t)to < len) {
		memmove(to, from, len);
	} else {
		rwk_copy(to, from, len);
	}
}

int rwk_region_store(const struct rwk_region *r, uint64_t at, const void *from, size_t len)
{
	struct iovec to[RWK_ENGINE_IOV_MAX];
	const unsigned char *p = from;
	unsigned n = rwk_region_slice(r, at, len, to);

	__atomic_thread_fence(__ATOMIC_RELEASE); /* who sees this sees what was stored before */
	for (unsigned i = 0; i < n; i++) {
		if (r->careful && careful_copy((char *)p, (uintptr_t)to[i].iov_base, to[i].iov_len, true))
			return -EFAULT;
		if (!r->careful)
			copy(to[i].iov_base, p, to[i].iov_len);
		p += to[i].iov_len;
	}
	return 0;
}

int rwk_region_load(const struct rwk_region *r, uint64_t at, void *to, size_t len)
{
	struct iovec from[RWK_ENGINE_IOV_MAX];
	unsigned char *p = to;
	unsigned n = rwk_region_slice(r, at, len, from);

	for (unsigned i = 0; i < n; i++) {
		if (r->careful && careful_copy((char *)p, (uintptr_t)from[i].iov_base, from[i].iov_len, false))
			return -EFAULT;
		if (!r->careful)
			copy(p, from[i].iov_base, from[i].iov_len);
		p += from[i].iov_len;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return 0;
}

int rwk_region_usable(const struct rwk_region *r, uint64_t at, size_t len, bool store)
{
	struct iovec iov[RWK_ENGINE_IOV_MAX];
	unsigned n = r->careful ? rwk_region_slice(r, at, len, iov) : 0;

	return n ? pages_usable((uintptr_t)iov[0].iov_base, iov[0].iov_len, store) : 0;
}

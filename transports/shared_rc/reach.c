/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of members that whoever takes a packet may touch, so that a Write or a Read is carried out although the
 * region's owner computes, or is stopped. A key is good for one target; so all that is done by it is done under that
 * target's lock, one thing after the other.
 *
 * Where a region stands follows from target and key; a word makes and ends it, and what belongs to it is written
 * before. A step that finds it has its bytes copied by the kernel (process_vm_writev, process_vm_readv); or by itself,
 * if the region is its own view's, which knows where that lies and does not look at what the segment says. A step that
 * is cut off by a death may have copied and not have happened: it is done again, and a Write is the same the second
 * time.
 *
 * Nothing is to be touched once the owner has withdrawn the region, and no other process than the owner ever:
 *
 *   - Who is going to touch says so in the target (toucher), then looks where the owner's guard is, then whether the
 *     region is still there, and goes there with the guard in front: a page at a random address. The kernel copies
 *     piece after piece and stops at the first that fails; where the guard is not, which is so in every other process,
 *     nothing is copied.
 *   - The owner takes the word away and then waits until nobody is at the target's touching; a full barrier on each
 *     side. One that is dead has left the kernel. One that has been stopped is stopped on its way from or to user
 *     space; so the guard is made inaccessible, another one takes its place, and what the stopped one does when it is
 *     continued fails.
 *
 * (transports/shm/transfer_guard.c is the same among peers of a node.)
 */
#define _GNU_SOURCE /* process_vm_writev */
#include "internal.h"

#include "base/cancel.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/param.h"
#include "base/process.h"
#include "shared_rc/door.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define GUARD    ((size_t)64 << 10) /* bytes: a page, whatever the size of one is */
#define SPINS    64u                /* looks between two that cost a system call */
#define PATIENCE 2u                 /* ms before who is at it is suspected */
#define LONGEST  1000u              /* ms */

/** A region, as it was found. */
struct found {
	_Atomic uint64_t *word;
	uint64_t name;
	struct rwk_src_region *region;
	uint32_t place, owner;
	unsigned count;
	struct iovec iov[RWK_SRC_PIECES];
};

static uint64_t name_of(uint32_t target, uint32_t key)
{
	return (uint64_t)target << 32 | key;
}

/* Where it may stand, the i-th. */
static uint32_t place_of(const struct rwk_src_view *v, uint64_t name, unsigned i)
{
	return ((uint32_t)((name * 0x9e3779b97f4a7c15ull) >> 40) + i) & (v->layout.keys - 1);
}

static void copy_region(struct found *f)
{
	unsigned count = (unsigned)rwk_glance(&f->region->count);

	f->owner = (uint32_t)rwk_glance(&f->region->owner);
	f->count = count < RWK_SRC_PIECES ? count : RWK_SRC_PIECES;
	for (unsigned i = 0; i < f->count; i++)
		f->iov[i] = (struct iovec){(void *)(uintptr_t)rwk_glance(&f->region->piece[i].at),
			rwk_glance(&f->region->piece[i].length)};
}

/* Of one of this view's the segment may say what it likes. False: it has published none. */
static bool copy_own(const struct rwk_src_view *v, struct found *f)
{
	const struct rwk_src_own *own = &v->own[f->place];

	f->count = own->count;
	memcpy(f->iov, own->iov, sizeof(f->iov));
	return own->name == f->name;
}

static bool find(const struct rwk_src_view *v, uint32_t target, uint32_t key, struct found *f)
{
	f->name = name_of(target, key);
	for (unsigned i = 0; i < RWK_SRC_KEY_TRIES; i++) {
		f->place = place_of(v, f->name, i);
		f->word = rwk_src_key_word(v, f->place);
		if (rwk_likely(rwk_observe64(f->word) != f->name))
			continue;
		f->region = rwk_src_region(v, f->place);
		copy_region(f);
		atomic_thread_fence(memory_order_acquire);
		if (rwk_glance(f->word) != f->name)
			return false; /* it is another's by now */
		return f->owner != v->srqn || copy_own(v, f);
	}
	return false;
}

/* By the kernel, from or to a process that has the guard. */
static bool across(pid_t pid, uint64_t guard, const struct iovec *piece, unsigned count, struct iovec here, bool store)
{
	uint8_t knock = 0;
	struct iovec local[2] = {{&knock, 1}, here}, remote[1 + RWK_SRC_PIECES] = {{(void *)(uintptr_t)guard, 1}};
	ssize_t n;

	memcpy(remote + 1, piece, count * sizeof(*piece));
	n = store ? process_vm_writev(pid, local, 2, remote, count + 1, 0)
		  : process_vm_readv(pid, local, 2, remote, count + 1, 0);
	return n == (ssize_t)here.iov_len + 1;
}

static void here(const struct iovec *piece, unsigned count, struct iovec bytes, bool store)
{
	if (store)
		rwk_iov_scatter(piece, count, 0, bytes.iov_base, bytes.iov_len);
	else
		rwk_iov_gather(piece, count, 0, bytes.iov_base, bytes.iov_len);
}

/* Says that this view is at it; false: the region has gone before that was seen. */
static bool begin(struct rwk_src_view *v, const struct found *f, uint64_t *guard)
{
	const struct rwk_src_member *owner = rwk_src_member(v, rwk_src_seat_of(f->owner));

	atomic_store_explicit(&v->step.target->toucher, v->srqn, memory_order_relaxed);
	rwk_barrier_full();
	*guard = rwk_observe64(&owner->guard);
	return rwk_observe64(f->word) == f->name && rwk_src_whose(v, f->owner) == RWK_SRC_LIVING;
}

static bool refuses(const struct found *f)
{
	return rwk_observe64(&f->region->refused) == f->name;
}

/* Copies between `bytes` and that place of the region: false, if it could not all be done. */
static bool touch(struct rwk_src_view *v, const struct found *f, uint64_t at, struct iovec bytes, bool store)
{
	const struct rwk_src_member *owner = rwk_src_member(v, rwk_src_seat_of(f->owner));
	size_t whole = rwk_iov_length(f->iov, f->count), len = bytes.iov_len;
	struct iovec piece[RWK_SRC_PIECES];
	uint64_t guard;
	unsigned n;
	bool done;

	if (at > whole || len > whole - at || refuses(f) || rwk_src_whose(v, f->owner) != RWK_SRC_LIVING)
		return false;
	n = rwk_iov_slice(f->iov, f->count, at, &len, piece, RWK_SRC_PIECES);
	if (f->owner == v->srqn) {
		here(piece, n, bytes, store);
		return true;
	}
	if (!rwk_src_same_pid_space(v, owner))
		return false;
	done = begin(v, f, &guard) && guard && rwk_params.cma != RWK_OFF &&
	       across((pid_t)rwk_glance(&owner->pid), guard, piece, n, bytes, store);
	rwk_publish32(&v->step.target->toucher, 0);
	return done;
}

/*
 * It may have become another's meanwhile: for that one another name says nothing. Nor is a name written over that such
 * a one has written there.
 */
static void refuse(const struct found *f)
{
	uint64_t was = rwk_observe64(&f->region->refused);

	while (was != f->name && rwk_observe64(f->word) == f->name &&
		!atomic_compare_exchange_weak(&f->region->refused, &was, f->name))
		;
}

static bool carry_out(struct rwk_src_view *v, const struct found *f, uint64_t at, struct iovec bytes, bool store)
{
	bool done = touch(v, f, at, bytes, store);

	v->counters.carried_out += done;
	v->counters.not_carried_out += !done;
	if (!done)
		refuse(f);
	return done;
}

void rwk_src_reach_write(struct rwk_src_view *v, uint32_t srqn, const struct rwk_src_piece *p)
{
	struct found f;

	if (find(v, v->step.qpn, p->key, &f) && f.owner == srqn)
		carry_out(v, &f, p->address & ~RWK_SRC_REACH, (struct iovec){(void *)p->bytes, p->len}, true);
	else
		v->counters.not_carried_out++;
}

static uint64_t status_of(struct rwk_src_view *v, uint32_t key)
{
	struct found f;

	if (!find(v, v->step.qpn, key, &f) || rwk_src_whose(v, f.owner) != RWK_SRC_LIVING)
		return EACCES;
	return refuses(&f) ? EOPNOTSUPP : 0;
}

void rwk_src_reach_read(struct rwk_src_view *v, uint32_t key, uint64_t address, void *to, size_t len)
{
	uint64_t status;
	struct found f;

	if (address & RWK_SRC_STATUS) {
		status = status_of(v, key);
		memset(to, 0, len);
		memcpy(to, &status, len < sizeof(status) ? len : sizeof(status));
		return;
	}
	if (!find(v, v->step.qpn, key, &f) ||
		!carry_out(v, &f, address & ~RWK_SRC_REACH, (struct iovec){to, len}, false))
		memset(to, 0, len);
}

/*
 * The owner.
 */

/* Where nobody else has something: the address is drawn. */
static void *new_guard(void)
{
	uint64_t random;
	void *page;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return NULL;
	page = mmap((void *)(uintptr_t)((random >> 18 & ~(uint64_t)(GUARD - 1)) + GUARD), GUARD, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (!madvise(page, GUARD, MADV_DONTFORK))
		return page;
	munmap(page, GUARD);
	return NULL;
}

static void raise_guard(struct rwk_src_view *v)
{
	v->guard = new_guard();
	rwk_publish64(&v->me->guard, (uint64_t)(uintptr_t)v->guard);
}

/* From now on nobody gets past the guard that was. Its place stays taken: what came there could be touched. */
static void replace_guard(struct rwk_src_view *v)
{
	void *old = v->guard;

	raise_guard(v);
	if (old && mprotect(old, GUARD, PROT_NONE))
		rwk_warn("a page cannot be protected (%s): a write that comes late may land", strerror(errno));
}

void rwk_src_guard_down(struct rwk_src_view *v)
{
	if (v->guard)
		munmap(v->guard, GUARD);
	v->guard = NULL;
}

static void nap(void)
{
	const struct timespec ms = {0, 1000000};

	nanosleep(&ms, NULL);
}

/* Nobody can find what was withdrawn any more; but somebody may have found it before. */
static void wait_for_touchers(struct rwk_src_view *v, uint32_t target)
{
	RWK_CANCEL_HELD_OFF;
	struct rwk_src_target *t = rwk_src_target(v, rwk_src_place(v, target));
	uint64_t start = 0, waited;
	bool replaced = false;
	uint32_t who;

	rwk_barrier_full();
	for (unsigned n = 1; (who = rwk_observe32(&t->toucher)) && who != v->srqn; n++) {
		if (n % SPINS) {
			rwk_cpu_relax();
			continue;
		}
		sched_yield();
		if (!rwk_src_is_alive(v, who))
			return;
		start = start ? start : rwk_src_ms();
		waited = rwk_src_ms() - start;
		if (waited < PATIENCE)
			continue;
		if (!replaced)
			replace_guard(v);
		replaced = true;
		if (rwk_process_is_stopped((pid_t)rwk_glance(&rwk_src_member(v, rwk_src_seat_of(who))->pid)))
			return;
		if (waited > LONGEST) {
			rwk_warn("SRC: a process of this node does not end an access to memory of this one, which may "
				 "still change");
			return;
		}
		nap();
	}
}

/* A place for it, and in it nothing. The table's lock is held. */
static int find_place(struct rwk_src_view *v, uint64_t name, uint32_t *place)
{
	int rc = -ENOSPC;

	for (unsigned i = RWK_SRC_KEY_TRIES; i-- > 0;) {
		uint32_t at = place_of(v, name, i);
		uint64_t there = rwk_observe64(rwk_src_key_word(v, at));

		if (there && rwk_src_whose(v, (uint32_t)rwk_glance(&rwk_src_region(v, at)->owner)) == RWK_SRC_LIVING) {
			if (there == name)
				return -EEXIST;
			continue;
		}
		rwk_publish64(rwk_src_key_word(v, at), 0);
		*place = at;
		rc = 0;
	}
	return rc;
}

static void put(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

static void write_region(struct rwk_src_view *v, struct rwk_src_region *r, const struct iovec *iov, uint32_t count)
{
	/* Who still reads what was here sees that the word has changed. */
	atomic_thread_fence(memory_order_release);
	put(&r->owner, v->srqn);
	put(&r->refused, 0);
	put(&r->count, count);
	for (uint32_t i = 0; i < count; i++) {
		put(&r->piece[i].at, (uint64_t)(uintptr_t)iov[i].iov_base);
		put(&r->piece[i].length, iov[i].iov_len);
	}
}

static void forget_own(struct rwk_src_own *own)
{
	rwk_list_remove(&own->link);
	own->name = 0;
}

static struct rwk_list *published_to(const struct rwk_src_view *v, uint32_t target)
{
	return &v->published[rwk_src_place(v, target)];
}

static void note_own(struct rwk_src_view *v, uint32_t place, uint64_t name, const struct iovec *iov, uint32_t count)
{
	struct rwk_list *published = published_to(v, (uint32_t)(name >> 32));
	struct rwk_src_own *own = &v->own[place];

	if (own->name) /* which the segment knew nothing of any more */
		forget_own(own);
	if (!published->next)
		rwk_list_init(published);
	rwk_list_append(published, &own->link);
	own->name = name;
	own->count = count;
	memcpy(own->iov, iov, count * sizeof(*iov));
}

/* Where this view has published something before, there is memory. */
static bool has_memory(struct rwk_src_view *v, uint32_t place)
{
	return v->own[place].count || rwk_src_populate(rwk_src_region(v, place), sizeof(struct rwk_src_region));
}

int rwk_src_publish(struct rwk_src_view *v, uint32_t target, uint32_t key, const struct iovec *iov, uint32_t count)
{
	uint64_t name = name_of(target, key);
	uint32_t place;
	int rc;

	if (!count || count > RWK_SRC_PIECES)
		return -EINVAL;
	if (rwk_params.cma == RWK_OFF)
		return -EOPNOTSUPP;
	if (!v->guard)
		raise_guard(v);
	if (!v->guard)
		return -ENOMEM;
	if (!rwk_src_lock(v, &v->header->lock))
		return -EAGAIN;
	rc = find_place(v, name, &place);
	if (!rc && !has_memory(v, place))
		rc = -ENOSPC;
	if (!rc) {
		note_own(v, place, name, iov, count);
		write_region(v, rwk_src_region(v, place), iov, count);
		rwk_publish64(rwk_src_key_word(v, place), name);
	}
	rwk_src_unlock(&v->header->lock);
	return rc;
}

void rwk_src_withdraw(struct rwk_src_view *v, uint32_t target, uint32_t key)
{
	struct found f;
	bool found = find(v, target, key, &f) && f.owner == v->srqn;

	for (unsigned i = 0; i < RWK_SRC_KEY_TRIES; i++) {
		struct rwk_src_own *own = &v->own[place_of(v, name_of(target, key), i)];

		if (own->name == name_of(target, key))
			forget_own(own);
	}
	if (!found)
		return;
	rwk_publish64(f.word, 0);
	wait_for_touchers(v, target);
}

void rwk_src_withdraw_all(struct rwk_src_view *v, uint32_t target)
{
	struct rwk_list *published = published_to(v, target), *next;

	for (struct rwk_list *l = published->next; l && l != published; l = next) {
		struct rwk_src_own *own = rwk_container_of(l, struct rwk_src_own, link);
		uint32_t place = (uint32_t)(own - v->own);
		_Atomic uint64_t *word = rwk_src_key_word(v, place);

		next = l->next;
		if (own->name >> 32 != target)
			continue;
		if (rwk_observe64(word) == own->name && rwk_glance(&rwk_src_region(v, place)->owner) == v->srqn)
			rwk_publish64(word, 0);
		forget_own(own);
	}
	wait_for_touchers(v, target);
}

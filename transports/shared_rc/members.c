/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seats. An SRQ number is a seat's index in its low bits and in the others how often the seat was taken then, from 1
 * on: so whether a number that is nobody's was once somebody's is to be seen from it. Seats are taken in turn, which
 * puts off the time when a number comes again: after 16,383 members on the same seat.
 *
 * That a member has died is known by the lock that it has on its seat's byte of the memory: an open file description's
 * lock, which goes with the process, wherever that is, and also if it becomes another program. Where it has none, by
 * its process: its pid and when it began, by /proc. One in another PID namespace cannot be seen that way, nor one of
 * which nobody knows in which it is; members of its own namespace see it.
 *
 * For each lock that is asked for the kernel walks the list of all of them, with one lock of its own. So one member
 * looks at all locks for all members, once in a while: whose turn it was, and when, stands in the header. At processes
 * each looks itself, since each may see others.
 */
#define _GNU_SOURCE /* F_OFD_GETLK */
#include "internal.h"

#include "base/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEAT_BITS 10u
#define TIMES     0x3fffu /* the highest count in a number */

static_assert(RWK_SRC_MEMBERS_MAX == 1u << SEAT_BITS, "a seat fits its bits");

static uint32_t number(uint32_t seat, uint32_t taken)
{
	return seat | ((taken - 1) % TIMES + 1) << SEAT_BITS;
}

enum rwk_src_whose rwk_src_whose(const struct rwk_src_view *v, uint32_t srqn)
{
	uint32_t seat = srqn & (RWK_SRC_MEMBERS_MAX - 1), count = srqn >> SEAT_BITS;
	const struct rwk_src_member *m;

	if (seat >= v->size.members || !count || count > TIMES)
		return RWK_SRC_NOBODY;
	m = rwk_src_member(v, seat);
	if (rwk_likely(rwk_observe32(&m->srqn) == srqn))
		return RWK_SRC_LIVING;
	return count <= rwk_observe32(&m->taken) ? RWK_SRC_DEAD : RWK_SRC_NOBODY;
}

bool rwk_src_is_dead(struct rwk_src_view *v, uint32_t srqn)
{
	return rwk_src_whose(v, srqn) == RWK_SRC_DEAD;
}

/* 0: not known, there is no /proc. */
static uint64_t pid_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

static void put64(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

/* Who this process is, for the others. */
struct identity {
	uint32_t pid;
	uint64_t start, pid_space;
};

/* Both locks are held. What the last owner has left in the inbox is dropped. */
static void sit_down(struct rwk_src_view *v, struct rwk_src_member *m, const struct identity *who)
{
	uint32_t taken = rwk_glance(&m->taken) + 1;

	v->head = rwk_glance(&m->tail);
	put64(&m->head, v->head);
	put64(&m->start, who->start);
	put64(&m->pid_space, who->pid_space);
	atomic_store_explicit(&m->pid, who->pid, memory_order_relaxed);
	atomic_store_explicit(&m->asleep, 0, memory_order_relaxed);
	atomic_store_explicit(&m->shows_life, 0, memory_order_relaxed);
	put64(&m->guard, 0);
	v->me = m;
	v->srqn = number(v->seat, taken);
	rwk_publish32(&m->taken, taken);
	rwk_publish32(&m->srqn, v->srqn);
}

/* The table's lock is held. */
static int find_seat(struct rwk_src_view *v, const struct identity *who)
{
	uint32_t first = rwk_glance(&v->header->seat);

	for (uint32_t i = 0; i < v->size.members; i++) {
		struct rwk_src_member *m;

		v->seat = (first + i) % v->size.members;
		m = rwk_src_member(v, v->seat);
		if (rwk_observe32(&m->srqn) || !rwk_src_lock(v, &m->lock))
			continue;
		sit_down(v, m, who);
		rwk_src_unlock(&m->lock);
		atomic_store_explicit(&v->header->seat, v->seat + 1, memory_order_relaxed);
		return 0;
	}
	return -ENOSPC;
}

int rwk_src_seat_take(struct rwk_src_view *v)
{
	struct identity who = {(uint32_t)getpid(), rwk_process_start(getpid()), pid_space()};
	int rc;

	v->pid_space = who.pid_space;
	if (!rwk_src_lock(v, &v->header->lock))
		return -EAGAIN;
	rc = find_seat(v, &who);
	rwk_src_unlock(&v->header->lock);
	return rc;
}

void rwk_src_show_life(struct rwk_src_view *v, int fd)
{
	v->life = fd;
	rwk_publish32(&v->me->shows_life, v->srqn);
}

/* Can this process see by a lock whether that member lives? */
static bool shows_life(const struct rwk_src_view *v, const struct rwk_src_member *m, uint32_t srqn)
{
	return v->life >= 0 && rwk_observe32(&m->shows_life) == srqn;
}

bool rwk_src_same_pid_space(const struct rwk_src_view *v, const struct rwk_src_member *m)
{
	return v->pid_space && rwk_glance(&m->pid_space) == v->pid_space;
}

bool rwk_src_is_seen(const struct rwk_src_view *v, uint32_t srqn)
{
	const struct rwk_src_member *m;

	if (rwk_src_whose(v, srqn) != RWK_SRC_LIVING)
		return false;
	m = rwk_src_member(v, rwk_src_seat_of(srqn));
	return shows_life(v, m, srqn) || rwk_src_same_pid_space(v, m);
}

static bool is_locked(const struct rwk_src_view *v, uint32_t seat)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = seat, .l_len = 1};

	return fcntl(v->life, F_OFD_GETLK, &l) || l.l_type != F_UNLCK;
}

static bool is_alive(const struct rwk_src_view *v, const struct rwk_src_member *m, uint32_t srqn)
{
	if (shows_life(v, m, srqn))
		return is_locked(v, rwk_src_seat_of(srqn));
	if (!rwk_src_same_pid_space(v, m))
		return true;
	return rwk_process_is_alive((pid_t)rwk_glance(&m->pid), rwk_glance(&m->start));
}

bool rwk_src_is_alive(const struct rwk_src_view *v, uint32_t srqn)
{
	return rwk_src_whose(v, srqn) == RWK_SRC_LIVING && is_alive(v, rwk_src_member(v, rwk_src_seat_of(srqn)), srqn);
}

/* Who put something into an inbox may have died before it told the owner. */
static void wake_sleepers(struct rwk_src_view *v)
{
	for (uint32_t i = 0; i < v->size.members; i++) {
		struct rwk_src_member *m = rwk_src_member(v, i);
		uint32_t srqn = rwk_observe32(&m->srqn);

		if (srqn && srqn != v->srqn && rwk_src_seat_of(srqn) == i && rwk_observe32(&m->asleep) &&
			rwk_observe64(&m->tail) != rwk_observe64(&m->head))
			v->host->wake(v->user, srqn);
	}
}

int rwk_src_find_dead(struct rwk_src_view *v, bool by_lock)
{
	int found = 0;

	for (uint32_t i = 0; i < v->size.members; i++) {
		struct rwk_src_member *m = rwk_src_member(v, i);
		uint32_t srqn = rwk_observe32(&m->srqn);

		if (!srqn || srqn == v->srqn || (!by_lock && shows_life(v, m, srqn)))
			continue;
		/* Of several that find it, one is the first; and a seat that was taken again meanwhile is not touched.
		 */
		if (!is_alive(v, m, srqn))
			found += atomic_compare_exchange_strong(&m->srqn, &srqn, 0);
	}
	return found;
}

/*
 * Is it this member's turn to look at the locks? Who has taken it and dies or is stopped over it has taken this one,
 * the next is another's. What is in the future was said by another clock, of a time namespace, or by a sibling gone
 * mad.
 */
static bool takes_turn(struct rwk_src_view *v, rwk_time now)
{
	_Atomic uint64_t *at = &v->header->looked;
	uint64_t last = rwk_observe64(at);

	return v->life >= 0 && now - last >= RWK_SRC_BURY_GAP && atomic_compare_exchange_strong(at, &last, now);
}

int rwk_src_bury(struct rwk_src_view *v, rwk_time now)
{
	int found = rwk_src_find_dead(v, takes_turn(v, now));

	wake_sleepers(v);
	rwk_src_early_tidy(v);
	return found;
}

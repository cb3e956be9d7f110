/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who sleeps while others use what he sleeps on, where the program alone makes progress. Another thread that reads a
 * queue, or sends, takes back what the sleeper had armed, or leaves something to be moved on; and then it may go and
 * compute. So whoever takes a lock stirs those who sleep on what it guards: their descriptors become readable a moment
 * later, and they look and arm their engines anew. Not at once, or a thread that reads again and again would wake
 * sleepers each time: what it finds for them they are told of anyway.
 *
 *   asleep   all that it sleeps on is armed
 *   stirred  it may not be, but its alarm is set
 *
 * Who comes back from a sleep stirs nobody: he arms all that he has looked at, or stirs the others when he goes. And
 * who arms all that a stirred one sleeps on calms him: so two who sleep on the same do not wake one another for ever.
 */
#include "bindings/libfabric/group.h"

#include "base/cancel.h"

#include <sys/timerfd.h>
#include <unistd.h>

#define MOMENT 1000000 /* ns, until who is stirred wakes up */

/* Its descriptor becomes readable when these have passed; 0: not any more. */
static void set_alarm(const struct rwk_fi_wait *w, long ns)
{
	const struct itimerspec when = {.it_value.tv_nsec = ns};

	timerfd_settime(w->alarm_fd, 0, &when, NULL);
}

/* When it is needed first; false: it cannot be. */
static bool make_alarm(struct rwk_fi_wait *w)
{
	RWK_CANCEL_HELD_OFF;

	w->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->alarm_fd < 0)
		return false;
	if (!rwk_fi_wait_hear(w, w->alarm_fd))
		return true;
	close(w->alarm_fd);
	w->alarm_fd = -1;
	return false;
}

bool rwk_fi_wait_set_alarm(struct rwk_fi_wait *w)
{
	if (w->alarm_fd < 0 && !make_alarm(w))
		return false;
	set_alarm(w, MOMENT);
	return true;
}

static struct rwk_fi_wait *engines_of(struct rwk_fi_mutex *lock)
{
	return &rwk_container_of(lock, struct rwk_fi_group, mutex)->engines;
}

/* The progress thread is called at once, and tends to what others sleep on. */
static void stir(struct rwk_fi_mutex *lock, struct rwk_fi_wait *w)
{
	if (w == engines_of(lock) || (w->armed && !rwk_fi_wait_set_alarm(w))) {
		rwk_fi_wait_ring(w);
	} else if (w->armed) { /* else he has been called */
		rwk_list_append(&lock->stirred, &w->of_lock);
	}
}

rwk_noinline void rwk_fi_lock_stir(struct rwk_fi_mutex *lock)
{
	struct rwk_list *l;

	while ((l = rwk_list_pop(&lock->asleep)))
		stir(lock, rwk_container_of(l, struct rwk_fi_wait, of_lock));
}

static bool has_datagrams(const struct rwk_fi_wait *w, const struct rwk_ud *ud)
{
	const struct rwk_fi_datagrams *d = w->datagrams;

	while (d && d->ud != ud)
		d = d->next;
	return d;
}

/*
 * Does `w` arm all that `other` sleeps on? The socket of a datagram endpoint is never disarmed; but of what was taken
 * from it and not yet handed out, and of what waits for room in it, no descriptor tells.
 */
static bool covers(const struct rwk_fi_wait *w, const struct rwk_fi_wait *other)
{
	for (const struct rwk_fi_datagrams *d = other->datagrams; d; d = d->next) {
		if (!has_datagrams(w, d->ud))
			return false;
	}
	for (unsigned i = 0; i < other->count; i++) {
		if (!rwk_fi_wait_has(w, other->engines[i]))
			return false;
	}
	return !other->device || other->device == w->device;
}

/* `w` is one of them, if it was stirred. */
static void calm(struct rwk_fi_mutex *lock, const struct rwk_fi_wait *w)
{
	for (struct rwk_list *l = lock->stirred.next, *next; l != &lock->stirred; l = next) {
		struct rwk_fi_wait *other = rwk_container_of(l, struct rwk_fi_wait, of_lock);

		next = l->next;
		if (!covers(w, other))
			continue;
		set_alarm(other, other->deaf ? MOMENT : 0);
		rwk_list_remove(l);
		rwk_list_append(&lock->asleep, l);
	}
}

bool rwk_fi_wait_sleeps(struct rwk_fi_wait *w, const struct rwk_fi_guard *guard)
{
	struct rwk_fi_mutex *lock = rwk_fi_mutex_of(guard);

	if (!lock)
		return false;
	calm(lock, w); /* also if it was stirred before there was a progress thread */
	rwk_list_remove(&w->of_lock);
	if (engines_of(lock)->object == FI_WAIT_FD)
		return false;
	rwk_list_append(&lock->asleep, &w->of_lock);
	return true;
}

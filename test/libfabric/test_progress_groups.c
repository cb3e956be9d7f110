/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread by itself, with two groups (bindings/libfabric/progress.c): one that the program keeps, and
 * another. Engines are counters of how often they are driven.
 */
#define _GNU_SOURCE /* ppoll */

#include "rwk_test.h"

#include "bindings/libfabric/group.h"
#include "bindings/libfabric/progress.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define KEPT     300   /* ms */
#define PATIENCE 60000 /* ms */

static atomic_uint driven[2];
static atomic_bool busy[2];
static atomic_bool at_work;            /* the program: whenever the thread naps, with the first group */
static atomic_int first_nap, last_nap; /* ms */
static atomic_bool asleep;             /* the thread: without an end, while the program is not at work */

/* What others have for it. */
static unsigned number(const struct rwk_engine *e)
{
	return *(const unsigned char *)e;
}

int rwk_engine_poll(struct rwk_engine *e, bool waits)
{
	(void)waits;
	atomic_fetch_add(&driven[number(e)], 1);
	return atomic_load(&busy[number(e)]);
}

int rwk_fi_device_progress(struct rwk_fi_device *d)
{
	(void)d;
	return 0;
}

int rwk_fi_wait_datagrams(struct rwk_fi_wait *w)
{
	(void)w;
	return 0;
}

int rwk_fi_wait_open(struct rwk_fi_wait *w, enum fi_wait_obj wanted, const char *what)
{
	(void)what;
	*w = (struct rwk_fi_wait){.object = wanted, .epoll_fd = -1, .event_fd = -1, .alarm_fd = -1};
	rwk_list_init(&w->of_lock);
	if (wanted == FI_WAIT_FD)
		w->epoll_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return 0;
}

void rwk_fi_wait_close(struct rwk_fi_wait *w)
{
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	free(w->engines);
}

int rwk_fi_wait_attach(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	w->engines = malloc(sizeof(struct rwk_engine *));
	assert_non_null(w->engines);
	w->engines[0] = e;
	w->count = 1;
	return 0;
}

void rwk_fi_wait_detach(struct rwk_fi_wait *w, struct rwk_engine *e)
{
	(void)e;
	w->count = 0;
}

bool rwk_fi_wait_has(const struct rwk_fi_wait *w, const struct rwk_engine *e)
{
	return w->count && w->engines[0] == e;
}

/* Nothing but rings: there is no alarm. */
int rwk_fi_wait_hear(struct rwk_fi_wait *w, int fd)
{
	(void)w, (void)fd;
	return -EINVAL;
}

bool rwk_fi_wait_drive(struct rwk_fi_wait *w)
{
	(void)w;
	return true;
}

/* Who is rung is rung once. */
int rwk_fi_wait_arm(struct rwk_fi_wait *w)
{
	uint64_t rung;

	return read(w->epoll_fd, &rung, sizeof(rung)) < 0 && errno != EAGAIN ? -errno : 0;
}

void rwk_fi_wait_ring(struct rwk_fi_wait *w)
{
	const uint64_t one = 1;

	assert_int_equal(write(w->epoll_fd, &one, sizeof(one)), sizeof(one));
}

static struct rwk_fi_groups all;
static struct rwk_fi_guard guard[2];
static struct rwk_fi_member member[2];
static unsigned char engine[2] = {0, 1};

static int start(void **state)
{
	(void)state;
	rwk_fi_groups_init(&all, true, false);
	assert_int_equal(rwk_fi_progress_start(&all.first, &all.progress), 0);
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&driven[i], 0);
		atomic_store(&busy[i], false);
		assert_int_equal(rwk_fi_join(&all, &member[i], &guard[i]), 0);
		rwk_fi_enter(&guard[i]);
		assert_int_equal(rwk_fi_group_attach(&all, &member[i], (struct rwk_engine *)&engine[i]), 0);
		rwk_fi_leave(&guard[i]);
	}
	return 0;
}

static int stop(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		rwk_fi_part(&all, &member[i]);
	rwk_fi_groups_close(&all);
	return 0;
}

/* The thread's. A program that is at work takes a lock in each nap: here, so that no other load keeps it from that. */
int poll(struct pollfd *fds, nfds_t count, int ms)
{
	bool works = atomic_load(&at_work);
	int most = ms < 0 && works ? 1 : ms, none = 0, rc;
	const struct timespec t = {most / 1000, most % 1000 * 1000000L};

	if (works && ms > 0) {
		atomic_compare_exchange_strong(&first_nap, &none, ms);
		atomic_store(&last_nap, ms);
	}
	if (works) {
		rwk_fi_enter(&guard[0]);
		rwk_fi_leave(&guard[0]);
	}
	atomic_store(&asleep, most < 0);
	rc = ppoll(fds, count, most < 0 ? NULL : &t, NULL);
	atomic_store(&asleep, false);
	return rc;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is_driven(unsigned i, unsigned times)
{
	unsigned from = atomic_load(&driven[i]);

	for (int64_t end = now() + PATIENCE; atomic_load(&driven[i]) - from < times;) {
		if (now() > end)
			return false;
		sched_yield();
	}
	return true;
}

/* Once, for so long: other load may have the processor at any time. */
static bool is_driven_fast(unsigned i)
{
	unsigned before, times = 0;

	for (int64_t end = now() + PATIENCE; times <= 3 * KEPT && now() < end;) {
		before = atomic_load(&driven[i]);
		usleep(KEPT * 1000);
		times = atomic_load(&driven[i]) - before;
	}
	return times > 3 * KEPT;
}

/* The program keeps the one group's lock; the other one's work goes on as if it did not. */
static void others_go_on(void **state)
{
	(void)state;
	rwk_fi_enter(&guard[1]); /* it may have gone to sleep before */
	atomic_store(&busy[1], true);
	rwk_fi_leave(&guard[1]);
	assert_true(is_driven(1, 100));
	rwk_fi_enter(&guard[0]);
	usleep(50000); /* whoever is patient with it is not any more */
	assert_true(is_driven_fast(1));
	rwk_fi_leave(&guard[0]);
	assert_true(is_driven(0, 1));
}

/*
 * Somebody always waits for the one group's lock: it has its turn all the same, whether the other one has
 * work or not.
 */
static void the_kept_one_has_its_turn(void **state)
{
	struct rwk_fi_mutex *lock = rwk_fi_mutex_of(&guard[0]);

	(void)state;
	for (int work = 0; work < 2; work++) {
		atomic_store(&busy[1], work);
		atomic_fetch_add(&lock->waiting, 1);
		rwk_fi_enter(&guard[0]); /* it may have gone to sleep before */
		rwk_fi_leave(&guard[0]);
		assert_true(is_driven(0, 3));
		atomic_fetch_sub(&lock->waiting, 1);
	}
}

/* In a nap it may have no processor for longer than this looks. */
static void wait_until_asleep(unsigned i)
{
	int64_t end = now() + PATIENCE;
	unsigned before;

	do {
		assert_true(now() < end);
		before = atomic_load(&driven[i]);
		usleep(30000);
	} while (atomic_load(&driven[i]) != before || !atomic_load(&asleep));
}

/* When there is nothing it sleeps; whoever takes a lock wakes it for that group. */
static void sleeps(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		wait_until_asleep(i);
		rwk_fi_enter(&guard[i]);
		atomic_store(&busy[i], true);
		rwk_fi_leave(&guard[i]);
		assert_true(is_driven(i, 10));
		atomic_store(&busy[i], false);
	}
}

static void begin_to_work(void)
{
	atomic_store(&first_nap, 0);
	atomic_store(&last_nap, 0);
	atomic_store(&at_work, true);
	rwk_fi_enter(&guard[0]);
	rwk_fi_leave(&guard[0]);
}

static bool naps_for(int ms)
{
	for (int64_t end = now() + PATIENCE; atomic_load(&last_nap) < ms;) {
		if (now() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/* A program that is at work for long has the thread in its way more seldom; one that begins anew, as often again. */
static void who_works_is_left_alone(void **state)
{
	(void)state;
	for (int times = 0; times < 2; times++) {
		begin_to_work();
		assert_true(naps_for(8));
		usleep(150000);
		assert_int_equal(atomic_load(&first_nap), 1);
		assert_int_equal(atomic_load(&last_nap), 8);
		atomic_store(&at_work, false);
		wait_until_asleep(0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(others_go_on, start, stop),
		cmocka_unit_test_setup_teardown(the_kept_one_has_its_turn, start, stop),
		cmocka_unit_test_setup_teardown(sleeps, start, stop),
		cmocka_unit_test_setup_teardown(who_works_is_left_alone, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

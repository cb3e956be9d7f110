/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* gettid */

#include "fi_sleeper.h"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The provider's as well; a timer that goes on by itself is its look for peers' names. */
__attribute__((visibility("default"))) int timerfd_settime(
	int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	if (value->it_interval.tv_sec || value->it_interval.tv_nsec)
		return 0;
	return (int)syscall(SYS_timerfd_settime, fd, flags, value, old);
}

void *sleep_on_queue(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry e;

	atomic_store(&s->tid, gettid());
	s->result = fi_cq_sread(s->cq, &e, 1, NULL, LONG_SLEEP);
	return NULL;
}

void *sleep_on_counter(void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, gettid());
	s->result = fi_cntr_wait(s->cntr, s->threshold, LONG_SLEEP);
	return NULL;
}

void wait_until_asleep(struct sleeper *s)
{
	int64_t end = t_now() + T_PATIENCE;
	char path[64], state;

	while (!atomic_load(&s->tid))
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)atomic_load(&s->tid));
	for (int looks = 0; looks < 3; looks = state == 'S' ? looks + 1 : 0) {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
		assert_true(t_now() < end);
		usleep(10000);
	}
}

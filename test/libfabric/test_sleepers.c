/* SPDX-License-Identifier: BSD-3-Clause */
/* Those who sleep while others use what they sleep on, by themselves (bindings/libfabric/sleepers.c). */
#include "rwk_test.h"

#include "bindings/libfabric/group.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define PATIENCE 60000 /* ms */

/* What they sleep on is compared alone. */
static char things[4];
static struct rwk_engine *const engine = (struct rwk_engine *)(void *)&things[0];
static struct rwk_fi_device *const device = (struct rwk_fi_device *)(void *)&things[1];
static struct rwk_ud *const ud = (struct rwk_ud *)(void *)&things[2];
static struct rwk_ud *const other_ud = (struct rwk_ud *)(void *)&things[3];

static unsigned rung;

void rwk_fi_wait_ring(struct rwk_fi_wait *w)
{
	w->armed = false;
	rung++;
}

bool rwk_fi_wait_has(const struct rwk_fi_wait *w, const struct rwk_engine *e)
{
	return w->count && w->engines[0] == e;
}

int rwk_fi_wait_hear(struct rwk_fi_wait *w, int fd)
{
	return w->alarm_fd == fd ? 0 : -EINVAL;
}

static struct rwk_fi_group group;
static struct rwk_fi_guard guard;
static struct rwk_engine *engines[] = {engine};

static int fresh(void **state)
{
	(void)state;
	rwk_fi_mutex_init(&group.mutex);
	atomic_init(&guard.mutex, &group.mutex);
	rung = 0;
	return 0;
}

/** What one sleeps on. */
struct on {
	bool engine, device;
	bool deaf;
	struct rwk_ud *ud[2];
};

struct asleep {
	struct rwk_fi_wait wait;
	struct rwk_fi_datagrams datagrams[2];
};

/* Arms what it sleeps on, and sleeps. */
static void sleep_on(struct asleep *s, const struct on *on)
{
	*s = (struct asleep){.wait = {.engines = engines, .count = on->engine, .armed = true, .alarm_fd = -1}};
	s->wait.device = on->device ? device : NULL;
	s->wait.deaf = on->deaf;
	rwk_list_init(&s->wait.of_lock);
	for (int i = 0; i < 2 && on->ud[i]; i++) {
		s->datagrams[i] = (struct rwk_fi_datagrams){s->wait.datagrams, &s->wait, on->ud[i]};
		s->wait.datagrams = &s->datagrams[i];
	}
	assert_true(rwk_fi_wait_sleeps(&s->wait, &guard));
}

static void use(void)
{
	rwk_fi_lock(&group.mutex);
	rwk_fi_unlock(&group.mutex);
}

static void awake(struct asleep *s)
{
	rwk_list_remove(&s->wait.of_lock);
	if (s->wait.alarm_fd >= 0)
		close(s->wait.alarm_fd);
}

/* Is it called, now or in a moment? */
static bool is_called(const struct asleep *s)
{
	struct pollfd p = {.fd = s->wait.alarm_fd, .events = POLLIN};
	struct itimerspec left;

	assert_int_equal(timerfd_gettime(s->wait.alarm_fd, &left), 0);
	if (left.it_value.tv_sec || left.it_value.tv_nsec)
		assert_int_equal(poll(&p, 1, PATIENCE), 1);
	return poll(&p, 1, 0);
}

/* Whoever takes the lock calls who is asleep, and rings nobody; who has been rung for is not called once more. */
static void stirred(void **state)
{
	struct asleep a;

	(void)state;
	sleep_on(&a, &(struct on){.engine = true});
	use();
	assert_true(is_called(&a));
	awake(&a);
	sleep_on(&a, &(struct on){.engine = true});
	a.wait.armed = false;
	use();
	assert_int_equal(a.wait.alarm_fd, -1);
	assert_int_equal(rung, 0);
	awake(&a);
}

/* Who has been called need not come if another one has armed all that he sleeps on, and not if that was a part. */
static void calmed(void **state)
{
	const struct {
		struct on one, other;
		bool calm;
	} cases[] = {
		{{.engine = true}, {.engine = true}, true},
		{{.engine = true, .deaf = true}, {.engine = true}, false},
		{{.engine = true}, {.device = true}, false},
		{{.engine = true}, {.ud = {ud}}, false},
		{{.device = true}, {.device = true, .ud = {ud}}, true},
		{{.device = true}, {.engine = true}, false},
		{{.ud = {ud}}, {.ud = {ud}}, true},
		{{.ud = {ud}}, {.ud = {other_ud, ud}}, true},
		{{.ud = {ud}}, {.ud = {other_ud}}, false},
		{{.ud = {other_ud, ud}}, {.ud = {ud}}, false},
		{{.ud = {ud, other_ud}}, {.ud = {ud}}, false},
		{{.ud = {ud}}, {.engine = true}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct asleep one, other;

		sleep_on(&one, &cases[i].one);
		use();
		sleep_on(&other, &cases[i].other);
		assert_int_equal(is_called(&one), !cases[i].calm);
		awake(&one);
		awake(&other);
	}
}

/* Who was called before there was a progress thread sleeps again after that, and is called no more. */
static void called_before_progress(void **state)
{
	struct asleep a;

	(void)state;
	sleep_on(&a, &(struct on){.engine = true});
	use();
	assert_true(is_called(&a));
	group.engines.object = FI_WAIT_FD;
	assert_false(rwk_fi_wait_sleeps(&a.wait, &guard));
	assert_false(is_called(&a));
	use();
	assert_false(is_called(&a));
	awake(&a);
	group.engines.object = FI_WAIT_NONE;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stirred, fresh),
		cmocka_unit_test_setup(calmed, fresh),
		cmocka_unit_test_setup(called_before_progress, fresh),
	};

	return cmocka_run_group_tests_name("libfabric/sleepers", tests, NULL, NULL);
}

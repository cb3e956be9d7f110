/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits for a slab, for which there is no memory: nobody is kept awake by it, and it does not wait for ever. */
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { FEW = 3, MANY = 30 }; /* slabs that the peer has: so few it keeps, of so many it gives some back */

static bool no_memory;

int madvise(void *at, size_t size, int advice)
{
	if (no_memory && advice == MADV_POPULATE_WRITE) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_madvise, at, size, advice);
}

static void turn(struct end *e)
{
	for (int i = 0; i < 200; i++)
		rwk_shm_transport.progress(e->port);
}

/* One who sleeps is woken now and then, and tries again. */
static void slept_over(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_meet(a, b);
	struct pollfd fd = {.fd = rwk_shm_transport.wait_fd(a->port), .events = POLLIN};

	(void)state;
	assert_true(turn_both(a, b, &p->done, 1));
	no_memory = true;
	assert_int_equal(end_post(a, p, 1000, 1, 0), 0);
	turn(a);
	assert_int_equal(rwk_shm_transport.arm(a->port), 0);
	assert_in_range(a->port->timer_set, 1, 100);
	no_memory = false;
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_true(turn_both(a, b, &b->peer[0].received, 2));
	assert_int_equal(p->failed, 0);
	end_close(a);
	end_close(b);
}

/* Without memory for long, that is an error, whether or not the peer has a few slabs. */
static void given_up(void **state)
{
	(void)state;
	for (unsigned had = 0; had <= FEW; had += FEW) {
		struct end *a = end_open(0, false), *b = end_open(0, false);
		struct end_peer *p = end_meet(a, b);
		struct rwk_shm_channel *ch = rwk_shm_channel(p->ch);

		for (unsigned i = 0; i < had; i++)
			assert_true(end_push(a, p, 1000, 0));
		assert_true(turn_both(a, b, &b->peer[0].received, 1 + had));
		no_memory = true;
		assert_int_equal(end_post(a, p, 1000, 1, 0), 0);
		turn(a);
		assert_true(ch->lacking_since);
		assert_int_equal(p->failed, 0);
		ch->lacking_since -= RWK_SHM_LACKING_MAX + 1;
		assert_true(turn_until_failed(a, b, p, 10000));
		assert_int_equal(p->failed, -ENOMEM);
		assert_int_equal(p->done_error, 1);
		assert_true(turn_until_failed(b, NULL, &b->peer[0], 10000));
		assert_int_equal(b->peer[0].received, 1 + had);
		no_memory = false;
		end_close(a);
		end_close(b);
	}
}

/* A peer that has many of them gives some back, however late. */
static void given_back(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_meet(a, b);

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(end_send(a, p, 1000, 0, false), 0);
	no_memory = true;
	assert_int_equal(end_post(a, p, 1000, 1, 0), 0);
	turn(a);
	assert_int_equal(rwk_shm_channel(p->ch)->lacking_since, 0);
	assert_true(turn_both(a, b, &b->peer[0].received, 1 + MANY + 1));
	no_memory = false;
	assert_int_equal(a->wrong + b->wrong, 0);
	end_close(a);
	end_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slept_over),
		cmocka_unit_test(given_up),
		cmocka_unit_test(given_back),
	};

	return cmocka_run_group_tests_name("shm/no_slabs", tests, NULL, NULL);
}

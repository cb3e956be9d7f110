/* SPDX-License-Identifier: BSD-3-Clause */
/* A moment without memory while two ports connect is waited out, whichever step it meets; for good it is an error. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALWAYS = 1000000 };

static int mapped;       /* segments */
static unsigned granted; /* mappings until there is no memory */
static unsigned denied;  /* mappings after those */

void *mmap_here(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (granted) {
		granted--;
	} else if (denied) {
		denied--;
		errno = ENOMEM;
		return MAP_FAILED;
	}
	mapped++;
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

int munmap_here(void *at, size_t size)
{
	mapped--;
	return (int)syscall(SYS_munmap, at, size);
}

struct two {
	struct end *low, *high; /* the low one offers */
};

static struct two open_two(void)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	bool swap = a->address.nonce_port > b->address.nonce_port;

	return (struct two){swap ? b : a, swap ? a : b};
}

static void close_two(const struct two *t)
{
	end_close(t->low);
	end_close(t->high);
	assert_int_equal(mapped, 0);
}

/* What is mapped: the pair by who offers, then the inbox and the pair by who accepts, then the inbox by the first. */
enum { MADE, INBOX_OFFERED, PAIR_OFFERED, INBOX_ACCEPTED, MAPPINGS };

static void for_a_moment(void **state)
{
	(void)state;
	for (unsigned step = MADE; step < MAPPINGS; step++) {
		struct two t = open_two();

		granted = step;
		denied = 2;
		end_meet(t.low, t.high);
		assert_int_equal(granted + denied, 0);
		close_two(&t);
	}
}

/* Until the channel has missed it; then as if that had been long ago. */
static void miss_for_long(const struct two *t, struct rwk_shm_channel *ch)
{
	for (uint64_t end = now_ms() + 10000; !ch->lacking_since && now_ms() < end;) {
		rwk_shm_transport.progress(t->low->port);
		rwk_shm_transport.progress(t->high->port);
	}
	assert_int_not_equal(ch->lacking_since, 0);
	ch->lacking_since = 1;
}

static void for_good(void **state)
{
	(void)state;
	for (unsigned step = MADE; step < MAPPINGS; step++) {
		struct two t = open_two();
		bool of_high = step == INBOX_OFFERED || step == PAIR_OFFERED;
		struct end_peer *p = end_connect(t.low, &t.high->address), *q = &t.high->peer[0];
		struct end_peer *lacks = of_high ? q : p;

		granted = step;
		denied = ALWAYS;
		assert_true(end_until_peers(t.high, 1, 10000));
		miss_for_long(&t, rwk_shm_channel(lacks->ch));
		assert_true(turn_until_failed(of_high ? t.high : t.low, of_high ? t.low : t.high, lacks, 10000));
		assert_int_equal(lacks->failed, -ENOMEM);
		granted = denied = 0;
		close_two(&t);
	}
}

/* A client that has no memory for a peer now is asked again. */
static void for_the_peer(void **state)
{
	struct two t = open_two();

	(void)state;
	t.high->lacks = 3;
	end_meet(t.low, t.high);
	assert_int_equal(t.high->lacks, 0);
	close_two(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(for_a_moment),
		cmocka_unit_test(for_good),
		cmocka_unit_test(for_the_peer),
	};

	return cmocka_run_group_tests_name("shm/connect_no_memory", tests, NULL, NULL);
}

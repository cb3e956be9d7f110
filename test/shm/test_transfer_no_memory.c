/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of an exposer's transfer area only a part has memory; a store beyond it would end the process by a signal. What cannot
 * be had is an error, or is done without.
 */
#include "rwk_test.h"

#include "transfer_roles.h"

#include <errno.h>
#include <unistd.h>

enum { SIZE = 100000, REGIONS = 200 }; /* more than the area's first page lists */

#define AREA (offsetof(struct tp_shared, side[1]) + offsetof(struct tp_side, area))

static unsigned char bytes[SIZE];

static int expose(struct rwk_shm_channel *ch, unsigned access, struct rwk_rkey *key)
{
	const struct iovec iov = {bytes, SIZE};

	return rwk_shm_expose(ch, &iov, 1, access, key);
}

static int waits(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	return 0;
}

static int exposes_nothing(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_rkey key;

	(void)arg;
	CHECK(expose(ch, RWK_EXPOSE_READ, &key) == -ENOMEM);
	tp_say(ch, 1, 1);
	return 0;
}

/* There is not even memory for what every transfer needs. */
static void no_begin(void **state)
{
	(void)state;
	tp_memory = AREA;
	tp_run(exposes_nothing, waits, NULL);
}

static int exposes_many(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_rkey key;

	(void)arg;
	for (unsigned i = 0; i < REGIONS; i++) {
		CHECK(!expose(ch, RWK_EXPOSE_READ, &key));
		CHECK(i || rwk_shm_key_listed(&key));
	}
	CHECK(!rwk_shm_key_listed(&key));
	CHECK(expose(ch, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &key) == -ENOMEM);
	tp_say(ch, 1, 1);
	return 0;
}

/* The list of regions does not grow: who reads what is not in it looks elsewhere, but nobody else may write. */
static void no_list(void **state)
{
	(void)state;
	tp_memory = AREA + RWK_SHM_TRANSFER_BEGIN;
	tp_run(exposes_many, waits, NULL);
}

/* As tp_wait, but nothing is taken or done meanwhile. */
static bool stands_until(struct rwk_shm_channel *ch, unsigned word)
{
	for (unsigned ms = 0; tp_heard(ch, word) < 1 && ms < 10000 && rwk_shm_peer_alive(ch); ms++)
		usleep(1000);
	return tp_heard(ch, word) >= 1;
}

static int serves(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_rkey *key = &tp_side(ch, true)->key[0];

	(void)arg;
	tp_fill(bytes, SIZE, 0);
	CHECK(!expose(ch, RWK_EXPOSE_READ, key));
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	CHECK(stands_until(ch, 3)); /* it has asked again: that is refused before it looks */
	for (int i = 0; i < 10; i++)
		tp_progress(ch);
	tp_say(ch, 2, 1);
	CHECK(tp_wait(ch, 4, 1));
	rwk_shm_conceal(ch, key);
	return 0;
}

static int reads(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	struct iovec iov = {bytes, SIZE};
	struct tp_op o;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_STAGE);
	CHECK(!tp_read(ch, &o, key, 0, &iov, 1, SIZE));
	CHECK(tp_finish(ch, &o, 10000) == -ENOMEM);
	tp_say(ch, 2, 1);
	CHECK(!tp_read(ch, &o, key, 0, &iov, 1, SIZE));
	tp_progress(ch);
	CHECK(rwk_shm_read_of(&o.op)->asked);
	tp_say(ch, 3, 1);
	CHECK(stands_until(ch, 2));
	tp_force(ch, -1);
	CHECK(tp_finish(ch, &o, 10000) == 0);
	CHECK(tp_same(bytes, SIZE, 0, 0));
	tp_say(ch, 4, 1);
	return 0;
}

/* There are no blocks to stage in: the reader hears of it, and reads by itself if it may. */
static void no_blocks(void **state)
{
	(void)state;
	tp_memory = AREA + RWK_SHM_TRANSFER_BEGIN;
	tp_run(serves, reads, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_begin),
		cmocka_unit_test(no_list),
		cmocka_unit_test(no_blocks),
	};

	return cmocka_run_group_tests_name("shm/transfer_no_memory", tests, NULL, NULL);
}

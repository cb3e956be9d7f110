/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers from an exposer that is killed: the right bytes or an error, never a hang, and never
 * another process's bytes.
 */
#include "rwk_test.h"

#include "transfer_roles.h"

#include <signal.h>
#include <unistd.h>

static int mortal_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	if (!ch)
		return 1;
	tp_serve_large(ch, NULL);
	return 0;
}

static int killer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(1, LARGE);
	struct iovec iov = {buf, LARGE};
	unsigned when = *(const unsigned *)arg;
	struct tp_op o[4];
	int good = 0;

	CHECK(buf && tp_wait(ch, 1, 1));
	tp_force(ch, (int)(when % RWK_SHM_METHODS));
	for (int i = 0; i < 4; i++)
		CHECK(!tp_read(ch, &o[i], &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	for (unsigned i = 0; i < when / RWK_SHM_METHODS; i++)
		tp_progress(ch);
	CHECK(!kill(tp_side(ch, false)->pid, SIGKILL));
	for (int i = 0; i < 4; i++) {
		int status = tp_finish(ch, &o[i], 20000);

		CHECK(status == 0 || status == -ECONNRESET);
		CHECK(status || good == i); /* in order: after the first error there is no success */
		good += !status;
	}
	if (good)
		CHECK(tp_same(buf, LARGE, 0, 0));
	free(buf);
	return 0;
}

/* Killed at any moment: good bytes or an error within 3 s, never a hang. */
static void exposer_killed(void **state)
{
	(void)state;
	for (unsigned when = 0; when < 60; when++)
		tp_run_mortal(mortal_exposer, killer, &when);
}

static int stranger_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(1, LARGE);
	struct iovec iov = {buf, LARGE};
	struct rwk_rkey key;
	struct tp_op o;
	pid_t peer;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	key = tp_side(ch, false)->key[0];
	key.word[2] = (uint64_t)(uintptr_t)buf;                /* memory that is there in both */
	key.word[1] = (uint64_t)(uintptr_t)(buf + LARGE - 256); /* and no cookie in it */
	peer = tp_side(ch, false)->pid;
	tp_side(ch, false)->pid = getpid(); /* the number now belongs to somebody else */
	tp_force(ch, RWK_SHM_PULL);
	CHECK(!tp_read(ch, &o, &key, 0, &iov, 1, 65536));
	CHECK(tp_finish(ch, &o, 20000) == -EACCES);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	CHECK(tp_finish(ch, &o, 20000) < 0);
	tp_side(ch, false)->pid = peer;
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* The process number belongs to another process by now: its bytes are never taken for the peer's. */
static void stranger_with_the_same_pid(void **state)
{
	(void)state;
	tp_run(tp_serve_large, stranger_reader, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exposer_killed),
		cmocka_unit_test(stranger_with_the_same_pid),
	};

	return cmocka_run_group_tests_name("shm/transfer_death", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers from an exposer that is stopped: the reader goes on alone, or waits; nothing is lost when it wakes up. */
#include "rwk_test.h"

#include "transfer_roles.h"

#include "base/process.h"

#include <signal.h>
#include <unistd.h>

/* A moment and a method. */
struct plan {
	size_t after;
	int method;
};

/* Exposes, and is stopped after it has copied at least so many bytes. */
static int stopped_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	size_t after = ((const struct plan *)arg)->after;
	unsigned char *buf = malloc(LARGE);
	struct iovec iov = {buf, LARGE};

	CHECK(buf);
	tp_fill(buf, LARGE, 0);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	while (tp_counts(ch)->staged + tp_counts(ch)->pushed < after)
		tp_progress(ch);
	raise(SIGSTOP);
	CHECK(tp_wait(ch, 2, 1));
	free(buf);
	return 0;
}

static int stopped_reader(struct rwk_shm_channel *ch, const void *arg)
{
	size_t after = ((const struct plan *)arg)->after;
	int method = ((const struct plan *)arg)->method, rc;
	uint64_t pulled;
	pid_t peer;

	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, method);
	peer = tp_side(ch, false)->pid;
	/* it stops in one of these reads, in the first one if its core is left to it */
	for (int i = 0; !rwk_process_is_stopped(peer) && i < 20000; i++) {
		rc = after ? tp_read_large(ch, LARGE) : usleep(1000);
		CHECK(!rc);
	}
	CHECK(rwk_process_is_stopped(peer));
	pulled = tp_counts(ch)->pulled;
	rc = tp_read_large(ch, LARGE);
	CHECK(!rc);
	CHECK(rwk_process_is_stopped(peer) && tp_counts(ch)->pulled == pulled + LARGE);
	CHECK(method >= 0 || tp_counts(ch)->takeovers > 0);
	CHECK(!kill(peer, SIGCONT));
	/* its late blocks are for a read that is over: the next one gets its own */
	for (int i = 0; i < 8; i++) {
		rc = tp_read_large(ch, LARGE);
		CHECK(!rc);
	}
	CHECK(!tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	return 0;
}

/*
 * With the exposer stopped before it stages anything, or in the middle, the reader copies the rest; it may wake up
 * later.
 */
static void exposer_stopped(void **state)
{
	static const struct plan plans[] = {
		{0, -1}, {1, -1}, {LARGE / 8, -1}, {0, RWK_SHM_BOTH}, {1, RWK_SHM_BOTH}, {LARGE / 2, RWK_SHM_BOTH}};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		tp_run(stopped_exposer, stopped_reader, &plans[i]);
}

static int denied_alone_reader(struct rwk_shm_channel *ch, const void *arg)
{
	pid_t peer;
	unsigned char *buf = calloc(1, LARGE);
	struct iovec iov = {buf, LARGE};
	struct tp_op o;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	peer = tp_side(ch, false)->pid;
	for (int i = 0; !rwk_process_is_stopped(peer) && i < 20000; i++)
		usleep(1000);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	while (!tp_counts(ch)->pulled)
		tp_progress(ch);
	CHECK(!tp_deny_copies(EPERM));
	CHECK(tp_finish(ch, &o, 50) == 1); /* nobody is there to stage: it waits */
	CHECK(!kill(peer, SIGCONT));
	CHECK(tp_finish(ch, &o, 20000) == 0);
	CHECK(tp_same(buf, LARGE, 0, 0));
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* Denied while the reader goes on alone for an exposer that is stopped: it waits for it. */
static void denied_while_alone(void **state)
{
	static const struct plan plan = {0, -1};

	(void)state;
	tp_run(stopped_exposer, denied_alone_reader, &plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exposer_stopped),
		cmocka_unit_test(denied_while_alone),
	};

	return cmocka_run_group_tests_name("shm/transfer_stopped", tests, NULL, NULL);
}

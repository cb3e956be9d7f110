/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers where the system denies cross-memory copies, to one side or to both, at once or later: all bytes arrive. */
#include "rwk_test.h"

#include "transfer_roles.h"

struct denial {
	int err, method;
};

static int denied_reader(struct rwk_shm_channel *ch, const void *arg)
{
	int rc;

	CHECK(tp_wait(ch, 1, 1));
	CHECK(!tp_deny_copies(((const struct denial *)arg)->err));
	tp_force(ch, ((const struct denial *)arg)->method);
	rc = tp_read_large(ch, LARGE);
	CHECK(!rc);
	CHECK(tp_counts(ch)->denials == 1 && tp_counts(ch)->pulled == 0 && tp_counts(ch)->unstaged == LARGE);
	rc = tp_read_large(ch, LARGE);
	CHECK(!rc);
	CHECK(tp_counts(ch)->denials == 1);
	tp_say(ch, 2, 1);
	return 0;
}

/*
 * Cross-memory copies denied from the start: the transfer goes through shared memory, and so does each later one at
 * once.
 */
static void denied_at_start(void **state)
{
	static const struct denial errors[] = {{EPERM, RWK_SHM_PULL}, {ENOSYS, RWK_SHM_PULL}, {EACCES, RWK_SHM_PULL},
		{ESRCH, RWK_SHM_PULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		tp_run(tp_serve_large, denied_reader, &errors[i]);
}

static int denied_midway_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(2, LARGE);
	struct iovec iov[2] = {{buf, LARGE}, {buf + LARGE, LARGE}};
	struct tp_op o[2];

	CHECK(buf && tp_wait(ch, 1, 1));
	tp_force(ch, ((const struct denial *)arg)->method);
	for (int i = 0; i < 2; i++)
		CHECK(!tp_read(ch, &o[i], &tp_side(ch, false)->key[0], 0, &iov[i], 1, LARGE));
	while (!tp_counts(ch)->pulled)
		tp_progress(ch);
	CHECK(tp_counts(ch)->pulled < LARGE);
	CHECK(!tp_deny_copies(((const struct denial *)arg)->err));
	for (int i = 0; i < 2; i++) {
		CHECK(tp_finish(ch, &o[i], 20000) == 0);
		CHECK(tp_same(iov[i].iov_base, LARGE, 0, 0));
	}
	/* where both copy, the exposer may have done the rest before the denial was noticed */
	if (((const struct denial *)arg)->method == RWK_SHM_PULL)
		CHECK(tp_counts(ch)->unstaged > 0 && tp_counts(ch)->pulled + tp_counts(ch)->unstaged == 2 * LARGE);
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* Denied between two pieces: goes on from where it was. */
static void denied_in_the_middle(void **state)
{
	static const struct denial errors[] = {
		{EPERM, RWK_SHM_PULL}, {ENOSYS, RWK_SHM_PULL}, {EPERM, RWK_SHM_BOTH}, {ENOSYS, RWK_SHM_BOTH}};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		tp_run(tp_serve_large, denied_midway_reader, &errors[i]);
}

static int denied_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	int rc;

	CHECK(!tp_deny_copies(EPERM));
	rc = tp_serve_large(ch, arg);
	CHECK(!rc);
	CHECK(tp_counts(ch)->pushed == 0);
	return 0;
}

static int both_alone_reader(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	for (int i = 0; i < 20; i++) {
		int rc = tp_read_large(ch, LARGE);

		CHECK(!rc);
	}
	CHECK(tp_counts(ch)->pulled == 20 * LARGE);
	tp_say(ch, 2, 1);
	return 0;
}

/* The exposer may not push: the reader copies what it had claimed, too. */
static void denied_to_the_exposer(void **state)
{
	(void)state;
	tp_run(denied_exposer, both_alone_reader, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denied_at_start),
		cmocka_unit_test(denied_in_the_middle),
		cmocka_unit_test(denied_to_the_exposer),
	};

	return cmocka_run_group_tests_name("shm/transfer_denied", tests, NULL, NULL);
}

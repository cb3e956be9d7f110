/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the peer is there, both sides of a transfer copy. */
#include "rwk_test.h"

#include "transfer_roles.h"

#include <unistd.h>

static int share_reader(struct rwk_shm_channel *ch, const void *arg)
{
	int rc;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_STAGE);
	rc = tp_read_large(ch, LARGE);
	CHECK(!rc);
	CHECK(tp_counts(ch)->unstaged == LARGE);
	tp_say(ch, 2, 1);
	return 0;
}

static int share_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	int rc = tp_serve_large(ch, arg);

	CHECK(!rc);
	CHECK(tp_counts(ch)->staged >= LARGE * 3 / 10);
	return 0;
}

static int halves_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	struct iovec iov = {buf, LARGE};

	(void)arg;
	CHECK(buf);
	tp_fill(buf, LARGE, 0);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	while (!tp_heard(ch, 2)) {
		tp_progress(ch);
		tp_say(ch, 4, tp_counts(ch)->pushed);
	}
	free(buf);
	return 0;
}

static int halves_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const uint64_t least = LARGE * 3 / 10;
	uint64_t pulled = 0, pushed = 0;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	/* a core may be busy with something else: then the other side does more, and it is tried again */
	for (int i = 0; i < 500 && (pulled < least || pushed < least); i++) {
		uint64_t before = tp_counts(ch)->pulled;
		int rc = tp_read_large(ch, LARGE);

		CHECK(!rc);
		pulled = tp_counts(ch)->pulled - before;
		pushed = LARGE - pulled;
	}
	CHECK(pulled >= least && pushed >= least);
	CHECK(tp_counts(ch)->unstaged == 0);
	for (int i = 0; i < 1000 && tp_heard(ch, 4) < pushed; i++)
		usleep(1000);
	CHECK(tp_heard(ch, 4) >= pushed);
	tp_say(ch, 2, 1);
	return 0;
}

/* Where the peer is there, each side copies at least 30 % of a transfer of 4 MB. */
static void both_sides_copy(void **state)
{
	(void)state;
	tp_run(share_exposer, share_reader, NULL);
	tp_run(halves_exposer, halves_reader, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_copy),
	};

	return cmocka_run_group_tests_name("shm/transfer_sides", tests, NULL, NULL);
}

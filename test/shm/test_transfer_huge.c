/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers beyond 4 GB. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "transfer_roles.h"

#include <sys/mman.h>

enum { MARKS = 5 };
static const uint64_t huge = ((uint64_t)9 << 29) + 4097; /* 4.5 GB */
static const uint64_t mark[MARKS] = {
	0, (uint64_t)1 << 31, ((uint64_t)1 << 32) - 8, ((uint64_t)1 << 32) + 1, ((uint64_t)9 << 29) + 4089};

static int huge_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	char *buf = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct iovec iov = {buf, huge};

	(void)arg;
	CHECK(buf != MAP_FAILED);
	for (int i = 0; i < MARKS; i++)
		memcpy(buf + mark[i], &mark[i], 8);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	for (int i = 0; i < 4 && !tp_wait(ch, 2, 1); i++)
		; /* the reader may take 50 seconds */
	CHECK(tp_wait(ch, 2, 1));
	munmap(buf, huge);
	return 0;
}

static int far_reader(struct rwk_shm_channel *ch, const void *arg)
{
	tp_force(ch, *(const int *)arg);
	CHECK(tp_wait(ch, 1, 1));
	for (int i = 0; i < MARKS; i++) {
		uint64_t got = 77;
		struct iovec iov = {&got, sizeof(got)};
		struct tp_op o;

		CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], mark[i], &iov, 1, sizeof(got)));
		CHECK(tp_finish(ch, &o, 20000) == 0);
		CHECK(got == mark[i]);
	}
	tp_say(ch, 2, 1);
	return 0;
}

/* Offsets beyond 4 GB are what they say. */
static void far_offsets(void **state)
{
	static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_PULL, RWK_SHM_BOTH};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(huge_exposer, far_reader, &methods[i]);
}

/* All of it into a target as large, of which only the marks' pages are kept in mind: the rest is zeros. */
static int huge_reader(struct rwk_shm_channel *ch, const void *arg)
{
	char *buf = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct iovec iov = {buf, huge};
	struct tp_op o;

	CHECK(buf != MAP_FAILED);
	tp_force(ch, *(const int *)arg);
	CHECK(tp_wait(ch, 1, 1));
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, huge));
	CHECK(tp_finish(ch, &o, 50000) == 0);
	for (int i = 0; i < MARKS; i++)
		CHECK(!memcmp(buf + mark[i], &mark[i], 8));
	CHECK(!memcmp(buf + 8, buf + 16, 1 << 20));
	if (*(const int *)arg != RWK_SHM_BOTH) /* there the exposer copies its share */
		CHECK(tp_counts(ch)->pulled + tp_counts(ch)->unstaged == huge);
	tp_say(ch, 2, 1);
	munmap(buf, huge);
	return 0;
}

/* More than 4 GB in one read; needs as much memory, so only where RWK_TEST_SLOW is set. */
static void more_than_4_gb(void **state)
{
	static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_PULL, RWK_SHM_BOTH};

	(void)state;
	if (!getenv("RWK_TEST_SLOW"))
		skip();
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(huge_exposer, huge_reader, &methods[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_offsets),
		cmocka_unit_test(more_than_4_gb),
	};

	return cmocka_run_group_tests_name("shm/transfer_huge", tests, NULL, NULL);
}

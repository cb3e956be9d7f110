/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct reads and writes: what one process writes into a region of another stands there, what it reads is what stands
 * there, and the other one need not do anything for it. Each test forks an exposer and a user of its memory.
 *
 * Links: shm.
 */
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_area.h"

#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 64 };

/* One operation on `length` bytes in one piece: its status, or post's refusal. */
static int run(
	struct rwk_shm_channel *ch, bool write, const struct rwk_rkey *key, uint64_t offset, void *buf, size_t length)
{
	struct iovec iov = {buf, length};
	struct tp_op o;
	int rc = write ? tp_write(ch, &o, key, offset, &iov, 1, length) : tp_read(ch, &o, key, offset, &iov, 1, length);

	return rc ? rc : tp_finish(ch, &o, 10000);
}

/* Waits for a word without making any progress: whoever copies gets no help from here. */
static bool idle_wait(struct rwk_shm_channel *ch, unsigned word, uint64_t value)
{
	for (int i = 0; i < 40000 && tp_heard(ch, word) < value; i++)
		usleep(250);
	return tp_heard(ch, word) >= value;
}

/*
 * Sizes and shapes.
 */

static const size_t sizes[] = {
	1, 2, 7, 8, 63, 64, 4095, 4096, 4097, 65535, 65536, 65537, 262143, 1048575, 1048576, 1048577, 5000003};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LARGEST = 5000003 };

/* Exposes one region of so many pieces; looks at it after each write, and at what lies around it. */
static int sizes_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned pieces = *(const unsigned *)arg;
	unsigned char *buf = malloc(LARGEST + 2 * GUARD);
	struct iovec iov[RWK_EXPOSE_IOV_MAX];

	CHECK(buf);
	memset(buf, 0xee, LARGEST + 2 * GUARD);
	for (size_t k = 0, at = 0; k < pieces; k++) {
		size_t end = (size_t)LARGEST * (k + 1) / pieces;

		iov[k] = (struct iovec){buf + GUARD + at, end - at};
		at = end;
	}
	CHECK(!rwk_shm_expose(ch, iov, pieces, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	for (unsigned i = 0; i < SIZES; i++) {
		size_t from = (LARGEST - sizes[i]) / 2 + GUARD;

		CHECK(idle_wait(ch, 3, i + 1));
		CHECK(tp_same(buf + from, sizes[i], 0, i));
		memset(buf + from, 0xee, sizes[i]);
		for (size_t k = 0; k < LARGEST + 2 * GUARD; k++)
			CHECK(buf[k] == 0xee);
		tp_fill(buf + from, sizes[i], i + 100);
		tp_say(ch, 3, i + 1);
		CHECK(idle_wait(ch, 4, i + 1));
		memset(buf + from, 0xee, sizes[i]);
		tp_say(ch, 4, i + 1);
	}
	CHECK(tp_counts(ch)->staged == 0 && tp_counts(ch)->pushed == 0);
	free(buf);
	return 0;
}

static int sizes_user(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGEST + 2 * GUARD);
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	for (unsigned i = 0; i < SIZES; i++) {
		size_t n = sizes[i], cut = n / 3;
		struct iovec iov[4] = {{buf + GUARD, cut}, {buf, 0}, {buf + GUARD + cut, n - cut - n / 5},
			{buf + GUARD + n - n / 5, n / 5}};
		struct tp_op o;

		tp_fill(buf + GUARD, n, i);
		CHECK(!tp_write(ch, &o, key, (LARGEST - n) / 2, iov, 4, n));
		CHECK(tp_finish(ch, &o, 10000) == 0);
		CHECK(tp_same(buf + GUARD, n, 0, i));
		tp_say(ch, 3, i + 1);
		CHECK(tp_wait(ch, 3, i + 1));
		memset(buf, 0xdd, n + 2 * GUARD);
		CHECK(!tp_read(ch, &o, key, (LARGEST - n) / 2, iov, 4, n));
		CHECK(n > 1 << 20 || o.status == 0); /* at once */
		CHECK(tp_finish(ch, &o, 10000) == 0);
		CHECK(tp_same(buf + GUARD, n, 0, i + 100));
		for (int k = 0; k < GUARD; k++)
			CHECK(buf[k] == 0xdd && buf[GUARD + n + (size_t)k] == 0xdd);
		tp_say(ch, 4, i + 1);
		CHECK(tp_wait(ch, 4, i + 1));
	}
	CHECK(tp_counts(ch)->written == tp_counts(ch)->pulled && !tp_busy(ch));
	free(buf);
	return 0;
}

/* S3-2, S3-3, S4-5, S4-15: every size, to and from several pieces, with the exposer asleep; not a byte beside it. */
static void all_sizes(void **state)
{
	static const unsigned pieces[] = {1, 3, RWK_EXPOSE_IOV_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		tp_run(sizes_exposer, sizes_user, &pieces[i]);
}

/*
 * Several long ones.
 */

enum { LONG = 5 << 20, LONGS = 6 };

static int queue_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(LONGS, LONG);
	struct iovec iov = {buf, (size_t)LONGS * LONG};

	(void)arg;
	CHECK(buf);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(idle_wait(ch, 2, 1));
	for (unsigned i = 0; i < LONGS; i++) {
		bool there = tp_same(buf + (size_t)i * LONG, LONG, 0, i / 2 * 2);

		CHECK(there == (i % 2 == 0 && i != 4)); /* odd ones read, number 4 was withdrawn */
	}
	free(buf);
	return 0;
}

static int queue_user(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc((size_t)LONGS * LONG);
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	struct iovec iov[LONGS];
	struct tp_op o[LONGS];
	unsigned done = 0;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	for (unsigned i = 0; i < LONGS; i++) {
		iov[i] = (struct iovec){buf + (size_t)i * LONG, LONG};
		tp_fill(iov[i].iov_base, LONG, i);
		if (i % 2) /* reads what the one before it has written */
			CHECK(!tp_read(ch, &o[i], key, (uint64_t)(i - 1) * LONG, &iov[i], 1, LONG));
		else
			CHECK(!tp_write(ch, &o[i], key, (uint64_t)i * LONG, &iov[i], 1, LONG));
		CHECK(o[i].status == 1);
	}
	CHECK(rwk_shm_transfer_withdraw(ch, &o[0].op) == -EBUSY);
	CHECK(!rwk_shm_transfer_withdraw(ch, &o[4].op));
	while (done < LONGS) {
		size_t before = tp_counts(ch)->written + tp_counts(ch)->pulled;

		tp_progress(ch);
		CHECK(tp_counts(ch)->written + tp_counts(ch)->pulled - before <= 2 << 20);
		for (unsigned i = done + 1; i < LONGS; i++)
			CHECK(o[done].status != 1 || o[i].status == 1);
		while (done < LONGS && (o[done].status == 0 || done == 4))
			done++;
	}
	CHECK(o[4].status == 1 && !tp_busy(ch));
	CHECK(tp_same(iov[1].iov_base, LONG, 0, 0) && tp_same(iov[3].iov_base, LONG, 0, 2));
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* Six long ones at once: in order, a bounded piece a progress; one that has not begun can be taken back. */
static void in_order(void **state)
{
	(void)state;
	tp_run(queue_exposer, queue_user, NULL);
}

/*
 * Keys.
 */

static int keys_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct tp_side *mine = tp_side(ch, true);
	static unsigned char buf[4][8192];
	struct iovec iov[4] = {{buf[0], 8192}, {buf[1], 8192}, {buf[2], 8192}, {buf[3], 8192}},
		     wraps = {buf[0], SIZE_MAX - (uintptr_t)buf[0] + 1},
		     long_ones[2] = {{buf[0], 1ull << 47}, {buf[0], 1ull << 47}};

	(void)arg;
	tp_fill(buf[0], sizeof(buf[0]), 0);
	CHECK(rwk_shm_expose(ch, iov, 0, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &mine->key[0]) == -EINVAL);
	CHECK(rwk_shm_expose(ch, &wraps, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &mine->key[0]) == -EINVAL);
	CHECK(rwk_shm_expose(ch, long_ones, 2, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &mine->key[0]) == -EINVAL);
	CHECK(!rwk_shm_expose(ch, &iov[0], 1, RWK_EXPOSE_READ, &mine->key[0]));
	CHECK(!rwk_shm_expose(ch, &iov[1], 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &mine->key[1]));
	CHECK(!rwk_shm_expose(ch, &iov[2], 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &mine->key[2]));
	CHECK(!rwk_shm_expose(ch, &iov[3], 1, RWK_EXPOSE_WRITE, &mine->key[3]));
	rwk_shm_conceal(ch, &mine->key[1]);
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	CHECK(tp_same(buf[0], 8192, 0, 0));
	for (int i = 0; i < 8192; i++)
		CHECK(!buf[1][i] && buf[2][i] == (i >= 10 && i < 14 ? 0x11 : 0) && buf[3][i] == buf[2][i]);
	return 0;
}

static int flipped(struct rwk_shm_channel *ch, bool write, unsigned key, unsigned word, uint64_t flip)
{
	struct rwk_rkey k = tp_side(ch, false)->key[key];
	unsigned char four[4] = {0x11, 0x11, 0x11, 0x11};

	k.word[word] ^= flip;
	return run(ch, write, &k, 10, four, sizeof(four));
}

static int keys_user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = tp_side(ch, false)->key;
	unsigned char byte[2] = {0x11, 0x11};
	struct rwk_rkey forged;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	CHECK(flipped(ch, true, 0, 0, 0) == -EACCES);          /* to be read only */
	CHECK(flipped(ch, true, 0, 3, 3ull << 48) == -EACCES); /* though somebody says otherwise */
	forged = key[0]; /* as its region is listed */
	forged.word[0] ^= RWK_SHM_LISTED_WRITABLE;
	forged.word[3] ^= 3ull << 48;
	CHECK(run(ch, true, &forged, 10, byte, sizeof(byte)) == -EACCES);
	CHECK(flipped(ch, false, 3, 0, 0) == -EACCES); /* to be written only */
	CHECK(flipped(ch, true, 3, 0, 0) == 0);
	CHECK(flipped(ch, true, 1, 0, 0) == -EACCES);
	CHECK(flipped(ch, false, 1, 0, 0) == -EACCES);
	for (int write = 0; write < 2; write++) {
		CHECK(flipped(ch, write, 2, 0, 1ull << 30) == -EACCES);
		CHECK(flipped(ch, write, 2, 0, 1) == -EACCES);          /* another region's place */
		CHECK(flipped(ch, write, 2, 0, 1ull << 20) == -EACCES); /* a place beyond the table */
		CHECK(flipped(ch, write, 2, 3, 1ull << 60) == -EINVAL); /* another transport's mark */
		CHECK(run(ch, write, &key[2], 8191, byte, 2) == -EINVAL);
		CHECK(run(ch, write, &key[2], UINT64_MAX, byte, 2) == -EINVAL);
		CHECK(run(ch, write, &key[2], 8192, byte, 0) == 0);
	}
	CHECK(flipped(ch, true, 2, 0, 0) == 0);
	CHECK(!tp_protocol_error(ch) && ((struct rwk_channel *)ch)->direct_min);
	tp_say(ch, 2, 1);
	return 0;
}

/* S3-6, S4-4: keys that were concealed, forged or stretched, or are for the other access: nothing is touched. */
static void keys(void **state)
{
	(void)state;
	tp_run(keys_exposer, keys_user, NULL);
}

/*
 * Memory that is not there.
 */

enum { PAGE = 4096, PAGES = 1000, HOLE = 700, READ_ONLY = 800 };

static int holes_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	char *buf = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[2] = {{buf, 10 * PAGE}, {buf + 10 * PAGE, (PAGES - 10) * PAGE}};
	unsigned pieces = *(const unsigned *)arg;

	CHECK(buf != MAP_FAILED);
	memset(buf, 1, PAGES * PAGE);
	if (pieces == 1)
		iov[0].iov_len = PAGES * PAGE;
	CHECK(!munmap(buf + HOLE * PAGE, PAGE) && !mprotect(buf + READ_ONLY * PAGE, PAGE, PROT_READ));
	CHECK(!rwk_shm_expose(ch, iov, pieces, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(idle_wait(ch, 2, 1));
	for (int i = 0; i < PAGE; i++)
		CHECK(buf[READ_ONLY * PAGE + i] == 1 && buf[(READ_ONLY + 1) * PAGE + i] == 1);
	return 0;
}

static int holes_user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	unsigned char *buf = malloc(PAGES * PAGE);
	struct iovec iov = {buf, PAGES * PAGE};
	struct tp_op o;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	memset(buf, 2, PAGES * PAGE);
	for (int write = 0; write < 2; write++) {
		CHECK(run(ch, write, key, HOLE * PAGE, buf, 1) == -EFAULT);
		CHECK(run(ch, write, key, HOLE * PAGE - 100, buf, 8192) == -EFAULT);
		CHECK(run(ch, write, key, (HOLE - 1) * PAGE, buf, PAGE) == 0);
		CHECK(run(ch, write, key, 0, (void *)16, 64) == -EFAULT);
		/* in the middle of a long one: others behind it go on */
		CHECK(!(write ? tp_write : tp_read)(ch, &o, key, 0, &iov, 1, PAGES * PAGE));
		CHECK(o.status == 1 && tp_finish(ch, &o, 10000) == -EFAULT);
		CHECK(run(ch, write, key, (HOLE + 1) * PAGE, buf, PAGE) == 0);
	}
	CHECK(run(ch, true, key, READ_ONLY * PAGE, buf, 8) == -EFAULT);
	CHECK(run(ch, false, key, READ_ONLY * PAGE, buf, 8) == 0 && buf[0] == 1);
	CHECK(((struct rwk_channel *)ch)->direct_min && !tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* Pages that are not mapped, or not writable: the operation fails, and nothing else does. */
static void holes(void **state)
{
	static const unsigned pieces[] = {1, 2};

	(void)state;
	for (int i = 0; i < 2; i++)
		tp_run(holes_exposer, holes_user, &pieces[i]);
}

/*
 * Much memory.
 */

#define SPARSE ((size_t)300 << 30)

static const uint64_t mark[] = {0, (1ull << 32) - 4, 77ull << 30, SPARSE - 8};
enum { MARKS = sizeof(mark) / sizeof(mark[0]) };

/* Key 0: sparse memory. 1 and 2: all of it, writable and not. */
static int vast_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	char *buf = mmap(NULL, SPARSE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct iovec sparse = {buf, SPARSE}, all = {NULL, SIZE_MAX};
	struct tp_side *mine = tp_side(ch, true);

	(void)arg;
	CHECK(buf != MAP_FAILED);
	CHECK(!rwk_shm_expose(ch, &sparse, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &mine->key[0]));
	CHECK(!rwk_shm_expose(ch, &all, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &mine->key[1]));
	CHECK(!rwk_shm_expose(ch, &all, 1, RWK_EXPOSE_READ, &mine->key[2]));
	tp_say(ch, 5, (uint64_t)(uintptr_t)buf);
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	for (int i = 0; i < 100; i++)
		tp_progress(ch); /* what it is asked for last, too */
	for (int i = 0; i < MARKS; i++)
		CHECK(!memcmp(buf + mark[i], &mark[i], 8));
	CHECK(tp_counts(ch)->staged == 0 && tp_counts(ch)->pushed == 0);
	CHECK(!munmap(buf, SPARSE));
	return 0;
}

static int vast_user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = tp_side(ch, false)->key;
	struct rwk_shm_ask stage = {.length = 8192, .id = 1000};
	struct rwk_shm_help_ask push = {.length = 65536, .id = 1001};
	uint64_t base, got;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	base = tp_heard(ch, 5);
	for (int i = 0; i < MARKS; i++) {
		uint64_t m = mark[i];

		CHECK(run(ch, true, &key[i % 2], mark[i] + (i % 2 ? base : 0), &m, 8) == 0);
		for (int k = 0; k < 3; k++) {
			got = 77;
			CHECK(run(ch, false, &key[k], mark[i] + (k ? base : 0), &got, 8) == 0 && got == mark[i]);
		}
	}
	CHECK(run(ch, true, &key[2], base, &base, 8) == -EACCES);
	CHECK(run(ch, false, &key[1], 0, &got, 8) == -EFAULT && run(ch, true, &key[1], 0, &got, 8) == -EFAULT);
	CHECK(run(ch, false, &key[2], SIZE_MAX - 8, &got, 8) == -EFAULT);
	CHECK(run(ch, false, &key[2], SIZE_MAX - 7, &got, 8) == -EINVAL);
	/* nobody makes its owner touch what is not mapped */
	for (int i = 1; i < 3; i++) {
		stage.cookie = push.cookie = key[i].word[0];
		CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_STAGE_ASK, &stage, sizeof(stage)));
		CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_PUSH_ASK, &push, sizeof(push)));
	}
	tp_say(ch, 2, 1);
	return 0;
}

/* A region of 300 GB, and one that is all memory. */
static void vast(void **state)
{
	(void)state;
	tp_run(vast_exposer, vast_user, NULL);
}

/*
 * Many regions.
 */

enum { MANY = 5000 };

static struct rwk_rkey *many_keys;

static int many_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	uint32_t *buf = calloc(MANY, sizeof(*buf));
	struct rwk_rkey key, last;
	struct iovec iov;
	unsigned made = MANY;
	int rc;

	(void)arg;
	CHECK(buf);
	for (unsigned i = 0; i < MANY; i++) {
		iov = (struct iovec){&buf[i], sizeof(buf[i])};
		CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &many_keys[i]));
	}
	tp_say(ch, 1, 1);
	CHECK(idle_wait(ch, 2, 1));
	for (unsigned i = 0; i < MANY; i++)
		CHECK(buf[i] == i + 1);
	while (!(rc = rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &last)))
		made++;
	CHECK(rc == -ENOSPC && made == RWK_SHM_LISTED);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &key));
	rwk_shm_conceal(ch, &many_keys[7]);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &key));
	CHECK(rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &last) == -ENOSPC);
	free(buf);
	return 0;
}

static int many_user(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	for (uint32_t i = MANY; i-- > 0;) {
		uint32_t value = i + 1;

		CHECK(!run(ch, true, &many_keys[i], 0, &value, sizeof(value)));
	}
	tp_say(ch, 2, 1);
	return 0;
}

/* Thousands of regions at once, and what is told when there are too many. */
static void many(void **state)
{
	(void)state;
	many_keys = mmap(NULL, MANY * sizeof(*many_keys), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(many_keys, MAP_FAILED);
	tp_run(many_exposer, many_user, NULL);
	munmap(many_keys, MANY * sizeof(*many_keys));
}

/* What is measured is a power of two above 1 KB, up to 64, or 1025; none where cross-memory copies are forbidden. */
static void least(void **state)
{
	size_t n = rwk_shm_direct_least();
	int before = rwk_params.cma;

	(void)state;
	assert_true(n == 1025 || (n > 1024 && n <= 64 << 10 && !(n & (n - 1))));
	rwk_params.cma = RWK_OFF;
	assert_int_equal(rwk_shm_direct_least(), 0);
	rwk_params.cma = before;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sizes),
		cmocka_unit_test(in_order),
		cmocka_unit_test(keys),
		cmocka_unit_test(holes),
		cmocka_unit_test(vast),
		cmocka_unit_test(many),
		cmocka_unit_test(least),
	};

	rwk_param_load();
	return cmocka_run_group_tests_name("shm/direct", tests, NULL, NULL);
}

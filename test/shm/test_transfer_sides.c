/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the peer is there, both sides of a transfer copy, each its half. */
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_claim.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE 20000000000u /* ns */

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

/* Without progress; false after ten seconds. */
static bool hear(struct rwk_shm_channel *ch, unsigned word, uint64_t value)
{
	for (int i = 0; i < 100000 && tp_heard(ch, word) < value; i++)
		usleep(100);
	return tp_heard(ch, word) >= value;
}

/* Exposes LARGE bytes and says so. */
static int expose(struct rwk_shm_channel *ch, unsigned char *buf)
{
	struct iovec iov = {buf, LARGE};

	CHECK(buf);
	tp_fill(buf, LARGE, 0);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	return 0;
}

/* Word 4: bytes that it has copied. 5: how often it has looked for something to do. */
static int halves_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	int rc = expose(ch, buf);

	(void)arg;
	CHECK(!rc);
	for (uint64_t looks = 1; !tp_heard(ch, 2); looks++) {
		tp_progress(ch);
		tp_say(ch, 4, tp_counts(ch)->pushed);
		tp_say(ch, 5, looks);
	}
	free(buf);
	return 0;
}

static int halves_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const uint64_t least = LARGE * 3 / 10, end = rwk_clock_now() + PATIENCE;
	uint64_t pulled = 0, pushed = 0;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	/* a core may be busy with something else: then the other side does more, and it is tried again */
	while ((pulled < least || pushed < least) && rwk_clock_now() < end) {
		uint64_t before = tp_counts(ch)->pulled;
		int rc = tp_read_large(ch, LARGE);

		CHECK(!rc);
		pulled = tp_counts(ch)->pulled - before;
		pushed = LARGE - pulled;
	}
	CHECK(pulled >= least && pushed >= least);
	CHECK(tp_counts(ch)->unstaged == 0);
	CHECK(hear(ch, 4, pushed));
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

static const size_t chunk = 1 << 20; /* of LARGE */

static int alone_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(1, LARGE);
	struct iovec iov = {buf, LARGE};
	struct tp_op o;

	(void)arg;
	CHECK(buf);
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	tp_progress(ch); /* asks, and copies its first chunk */
	CHECK(hear(ch, 4, 2 * chunk));
	CHECK(hear(ch, 5, tp_heard(ch, 5) + 100)); /* it could take a third */
	CHECK(tp_heard(ch, 4) == 2 * chunk);
	CHECK(tp_finish(ch, &o, 20000) == 0);
	CHECK(tp_same(buf, LARGE, 0, 0));
	CHECK(tp_counts(ch)->pulled == 2 * chunk);
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* A helper copies no more than its half, however late the reader is: the rest is in the reader's caches. */
static void helper_copies_half(void **state)
{
	(void)state;
	tp_run(halves_exposer, alone_reader, NULL);
}

/* Chunks are whole pages, of a megabyte at most; of one pair the first may have one more. */
static void chunks_are_halves(void **state)
{
	static const uint64_t lengths[] = {(32 << 10) + 1, 40 << 10, 48 << 10, 64 << 10, 1000000, 2 << 20, (2 << 20) + 1,
		4 << 20, 5000000, (uint64_t)1 << 32};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		uint64_t length = lengths[i], c = rwk_shm_chunk_for(length), n = rwk_shm_chunks_in(length);
		uint64_t border = rwk_shm_chunk_at(length, 0, 1);

		assert_true(c % 4096 == 0 && c <= RWK_SHM_CHUNK_MOST);
		assert_true((n - 1) * c < length && length <= n * c);
		assert_int_equal(rwk_shm_chunks_to_help(length), n / 2);
		assert_true(!rwk_shm_chunk_at(length, 0, 0) && rwk_shm_chunk_at(length, 0, n) == length);
		assert_int_equal(border, c);
		assert_true(n > 2 || 2 * border - length < 2 * 4096);
		assert_true(n == 2 || rwk_shm_chunk_at(length, 0, n - 1) == (n - 1) * c);
	}
	for (unsigned less = 0; less < 3; less++) /* a peer may say what it likes */
		assert_true(rwk_shm_chunks_in(UINT64_MAX - less) > RWK_SHM_CHUNKS_MOST);
}

static int away_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	int rc = expose(ch, buf);

	(void)arg;
	CHECK(!rc);
	while (!tp_heard(ch, 2)) /* without progress */
		usleep(1000);
	free(buf);
	return 0;
}

static int two_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(2, LARGE), *second = buf + LARGE;
	struct iovec iov[2] = {{buf, LARGE}, {second, LARGE}};
	struct tp_op o[2];

	(void)arg;
	CHECK(buf);
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	for (int i = 0; i < 2; i++)
		CHECK(!tp_read(ch, &o[i], &tp_side(ch, false)->key[0], 0, &iov[i], 1, LARGE));
	for (int i = 0; i < 1000 && tp_counts(ch)->pulled < LARGE; i++)
		tp_progress(ch); /* a chunk each; again after one that was slow enough to prove nothing */
	for (int i = 0; i < 2; i++) {
		unsigned char *half = (unsigned char *)iov[i].iov_base + LARGE / 2;

		CHECK(tp_same(half, LARGE / 2, LARGE / 2, 0));
		CHECK(!half[-1] && !half[-2] && !half[-3]);
	}
	for (int i = 0; i < 2; i++)
		CHECK(tp_finish(ch, &o[i], 20000) == 0);
	CHECK(tp_same(buf, LARGE, 0, 0) && tp_same(second, LARGE, 0, 0));
	CHECK(tp_counts(ch)->pulled == 2 * LARGE);
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* Before it takes of the first what the helper has not begun, the reader copies its half of the second. */
static void own_halves_first(void **state)
{
	(void)state;
	tp_run(away_exposer, two_reader, NULL);
}

enum { FEW = 4, ASKED = 1, DONE = 2, PUSHED = 3, ENDED = 4, SOME = 40 << 10 };

/* Serves in one go, when it is told that all has been asked for. */
static int one_go_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	int rc = expose(ch, buf);

	(void)arg;
	CHECK(!rc);
	for (unsigned round = 1; round <= 3; round++) {
		CHECK(hear(ch, ASKED, round));
		CHECK(tp_progress(ch) > 0 && !tp_busy(ch));
		tp_say(ch, PUSHED, tp_counts(ch)->pushed);
		tp_say(ch, DONE, round);
		CHECK(hear(ch, ENDED, round));
	}
	free(buf);
	return 0;
}

/* Asks for all of them in one go, which must have moved so many bytes here, and waits until they have been served. */
static int ask_in_one_go(
	struct rwk_shm_channel *ch, struct tp_op o[FEW], unsigned char *to[FEW], unsigned round, uint64_t moves)
{
	static struct iovec iov[FEW]; /* for as long as the reads are under way */
	uint64_t before = tp_counts(ch)->pulled;

	for (int i = 0; i < FEW; i++) {
		iov[i] = (struct iovec){to[i], SOME};
		CHECK(!tp_read(ch, &o[i], &tp_side(ch, false)->key[0], (uint64_t)i * SOME, &iov[i], 1, SOME));
	}
	for (int i = 0; i < 1000 && tp_counts(ch)->pulled - before < moves; i++)
		tp_progress(ch); /* again after one that was slow enough to prove nothing */
	CHECK(tp_counts(ch)->pulled - before == moves);
	tp_say(ch, ASKED, round);
	CHECK(hear(ch, DONE, round));
	return 0;
}

static int few_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const size_t front = rwk_shm_chunk_at(SOME, 0, 1);
	unsigned char *room = mmap(NULL, FEW * 2 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *to[FEW];
	struct tp_op o[FEW];
	int rc;

	(void)arg;
	CHECK(room != MAP_FAILED);
	for (int i = 0; i < FEW; i++)
		to[i] = room + (size_t)i * 2 * 65536;
	CHECK(hear(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	for (unsigned round = 1; round <= 3; round++) {
		/* of the second one nothing can come to the front, or to the back */
		unsigned char *hole = round == 1 ? NULL : to[1] + (round == 2 ? 0 : front);
		bool broken_off = round == 3;

		memset(room, 0, FEW * 2 * 65536);
		CHECK(!hole || !mprotect(hole, 4096, PROT_NONE));
		rc = ask_in_one_go(ch, o, to, round, (broken_off ? 1 : FEW) * (SOME - front));
		CHECK(!rc);
		CHECK(tp_heard(ch, PUSHED) == (round == 1 ? FEW : round == 2 ? FEW + 1 : 2 * FEW + 1) * front);
		for (int i = 0; i < FEW; i++)
			CHECK(tp_finish(ch, &o[i], 20000) == (hole && i == 1 ? -EFAULT : 0));
		CHECK(!hole || !mprotect(hole, 4096, PROT_READ | PROT_WRITE));
		for (int i = 0; i < FEW; i++)
			CHECK((hole && i == 1) || tp_same(to[i], SOME, (uint64_t)i * SOME, 0));
		tp_say(ch, ENDED, round);
	}
	munmap(room, FEW * 2 * 65536);
	return 0;
}

/*
 * Of several reads each side copies its halves with one call. One that cannot be copied ends in error by itself, and
 * the others as they should.
 */
static void several_at_once(void **state)
{
	(void)state;
	tp_run(one_go_exposer, few_reader, NULL);
}

enum { MANY = 1000, ALONE = 1, BACK = 2, SHARED = 3, HELPED = 4 }; /* MANY: fewer than records that the pair holds */

static int returning_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	int rc = expose(ch, buf);

	(void)arg;
	CHECK(!rc);
	CHECK(hear(ch, ALONE, 1));
	for (int i = 0; i < 3; i++)
		tp_progress(ch);
	CHECK(!tp_protocol_error(ch) && !tp_busy(ch) && !tp_counts(ch)->pushed);
	tp_say(ch, BACK, 1);
	while (!tp_heard(ch, SHARED) && rwk_shm_peer_alive(ch)) {
		tp_progress(ch);
		tp_say(ch, HELPED, tp_counts(ch)->pushed);
	}
	free(buf);
	return 0;
}

static int impatient_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = calloc(1, LARGE);
	struct iovec iov = {buf, SOME};
	struct tp_op o;

	(void)arg;
	CHECK(buf);
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	for (int i = 0; i < MANY; i++) {
		CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, SOME));
		CHECK(tp_finish(ch, &o, 20000) == 0);
	}
	CHECK(tp_counts(ch)->pulled == MANY * SOME);
	tp_say(ch, ALONE, 1);
	CHECK(hear(ch, BACK, 1));
	for (uint64_t end = rwk_clock_now() + PATIENCE; !tp_heard(ch, HELPED) && rwk_clock_now() < end;)
		CHECK(!tp_read_large(ch, LARGE));
	CHECK(tp_heard(ch, HELPED));
	free(buf);
	tp_say(ch, SHARED, 1);
	return 0;
}

/* Who is asked again and again while it computes finds nothing left to help with, and helps from then on. */
static void asked_in_vain(void **state)
{
	(void)state;
	tp_run(returning_exposer, impatient_reader, NULL);
}

enum { SERVED = 2, PULLING, LOOKED, PULLING_ONE, LOOKED_AGAIN, PULLING_NONE }; /* words that the roles say */

/* Has begun two reads that it copies by itself, ends one, and then the other. */
static int pulling_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(2 * LARGE), *in = buf + LARGE;
	struct iovec iov = {in, LARGE};
	struct tp_op o[2];
	int rc = expose(ch, buf);

	(void)arg;
	CHECK(!rc);
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_PULL);
	for (int i = 0; i < 2; i++)
		CHECK(!tp_read(ch, &o[i], &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	tp_say(ch, PULLING, 1);
	CHECK(hear(ch, LOOKED, 1));
	CHECK(tp_finish(ch, &o[0], 20000) == 0);
	CHECK(o[1].status == 1);
	tp_say(ch, PULLING_ONE, 1);
	CHECK(hear(ch, LOOKED_AGAIN, 1));
	CHECK(tp_finish(ch, &o[1], 20000) == 0);
	tp_say(ch, PULLING_NONE, 1);
	CHECK(tp_wait(ch, SERVED, 1));
	free(buf);
	return 0;
}

/* Reads the peer's buffer; 0 if by that method. */
static int read_by(struct rwk_shm_channel *ch, unsigned char *in, enum rwk_shm_method method)
{
	struct iovec iov = {in, LARGE};
	struct tp_op o;

	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	CHECK(rwk_shm_read_of(&o.op)->method == method);
	CHECK(tp_finish(ch, &o, 20000) == 0);
	return 0;
}

static int choosing_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(2 * LARGE), *in = buf + LARGE;
	int rc = expose(ch, buf);

	(void)arg;
	CHECK(!rc);
	rwk_params.cma = RWK_ON; /* nothing is staged: either way is tried in its turn */
	CHECK(tp_wait(ch, PULLING, 1));
	for (int i = 0; i < 6; i++)
		CHECK(!read_by(ch, in, RWK_SHM_PULL));
	tp_say(ch, LOOKED, 1);
	CHECK(hear(ch, PULLING_ONE, 1));
	CHECK(!read_by(ch, in, RWK_SHM_PULL));
	tp_say(ch, LOOKED_AGAIN, 1);
	CHECK(hear(ch, PULLING_NONE, 1));
	CHECK(!read_by(ch, in, RWK_SHM_BOTH));
	tp_say(ch, SERVED, 1);
	free(buf);
	return 0;
}

/* Who copies what he reads by himself is not asked to help, until he has done. */
static void no_time_to_help(void **state)
{
	(void)state;
	tp_run(pulling_exposer, choosing_reader, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_copy),
		cmocka_unit_test(helper_copies_half),
		cmocka_unit_test(chunks_are_halves),
		cmocka_unit_test(own_halves_first),
		cmocka_unit_test(several_at_once),
		cmocka_unit_test(asked_in_vain),
		cmocka_unit_test(no_time_to_help),
	};

	return cmocka_run_group_tests_name("shm/transfer_sides", tests, NULL, NULL);
}

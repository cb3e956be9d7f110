/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long direct reads and writes, of which the target copies a part: both shares make up the whole. A post copies 1 MB at
 * most, so while its caller makes no more progress a longer one stays open for the other side.
 */
#include "direct_help.h"

#include "bench/common/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MARGIN = 64 };

/*
 * Shares.
 */

static const size_t sizes[] = {32769, 65536, 65537, 300001, 1 << 20, LONG};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Word 6: bytes that it has copied. */
static int helper(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *p = arg;
	unsigned char *buf = malloc(LONG + 2 * MARGIN);
	struct iovec iov[RWK_EXPOSE_IOV_MAX];

	CHECK(buf);
	memset(buf, 0xee, LONG + 2 * MARGIN);
	for (size_t k = 0, at = 0; k < p->pieces; k++) {
		size_t end = (size_t)LONG * (k + 1) / p->pieces;

		iov[k] = (struct iovec){buf + MARGIN + at, end - at};
		at = end;
	}
	CHECK(!rwk_shm_expose(ch, iov, p->pieces, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	for (unsigned i = 0; i < SIZES; i++) {
		memset(buf + MARGIN, 0xee, LONG);
		if (!p->write)
			tp_fill(buf + MARGIN, sizes[i], i);
		tp_say(ch, 1, i + 1);
		while (tp_heard(ch, 3) < i + 1 && rwk_shm_peer_alive(ch)) {
			tp_progress(ch);
			tp_say(ch, 6, helped(ch));
		}
		tp_progress(ch); /* else what was done without it would stay unseen, and the next one not asked for */
		CHECK(tp_same(buf + MARGIN, sizes[i], 0, i) && is(buf, MARGIN, 0xee));
		CHECK(is(buf + MARGIN + sizes[i], LONG + MARGIN - sizes[i], 0xee));
	}
	free(buf);
	return 0;
}

static int user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *p = arg;
	struct rwk_shm_transfer_counts *mine = tp_counts(ch);
	unsigned char *buf = malloc(LONG + 2 * MARGIN);

	CHECK(buf);
	for (unsigned i = 0; i < SIZES; i++) {
		struct iovec iov = {buf + MARGIN, sizes[i]};
		uint64_t before = tp_heard(ch, 6), alone = mine->written + mine->pulled, shared;
		struct tp_op o;

		memset(buf, 0xdd, LONG + 2 * MARGIN);
		CHECK(tp_wait(ch, 1, i + 1));
		if (p->write)
			tp_fill(iov.iov_base, sizes[i], i);
		CHECK(!begin(ch, &o, p, &iov));
		if (sizes[i] == LONG)
			CHECK(o.status == 1 && tp_wait_deaf(ch, 6, before + 1));
		CHECK(tp_finish(ch, &o, 20000) == 0);
		CHECK(tp_same(iov.iov_base, sizes[i], 0, i) && is(buf, MARGIN, 0xdd));
		CHECK(is(buf + MARGIN + sizes[i], MARGIN, 0xdd));
		shared = sizes[i] - (mine->written + mine->pulled - alone);
		CHECK(tp_wait_deaf(ch, 6, before + shared) && tp_heard(ch, 6) == before + shared);
		tp_say(ch, 3, i + 1);
	}
	CHECK(p->write ? !mine->pulled : !mine->written);
	CHECK(!tp_protocol_error(ch));
	free(buf);
	return 0;
}

/* Each byte is copied once, by one of the two, and of a long one both have copied some. */
static void shared_out(void **state)
{
	static const struct plan plans[] = {{true, 1, false}, {false, 1, false}, {true, 3, false}, {false, 3, false}};

	(void)state;
	for (int i = 0; i < 4; i++)
		tp_run(helper, user, &plans[i]);
}

/*
 * Several at a time.
 */

enum { FEW = 6, BAD = 3, SOME = 64 << 10 };

/*
 * Word 7: its processor, and one more. On a busy machine two processes may well share one for as long as they live:
 * then who helps comes too late each time.
 */
static int window_helper(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[FEW * SOME];
	struct iovec iov = {buf, sizeof(buf)};

	(void)arg;
	tp_say(ch, 7, (uint64_t)bench_bind_to_cpu(0) + 1);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	while (!tp_heard(ch, 2) && rwk_shm_peer_alive(ch)) {
		tp_progress(ch);
		tp_say(ch, 6, helped(ch));
	}
	return 0;
}

/* Posts them all, and waits: 0, or a line. Of one, a page cannot be had if there is a `hole`: that one fails alone. */
static int one_window(struct rwk_shm_channel *ch, bool write, unsigned char *buf, unsigned char *hole)
{
	static struct iovec iov[FEW];
	struct tp_op o[FEW];

	CHECK(!hole || !mprotect(hole, 4096, PROT_NONE));
	for (int i = 0; i < FEW; i++) {
		int rc;

		iov[i] = (struct iovec){buf + (size_t)i * SOME, SOME};
		rc = (write ? tp_write : tp_read)(
			ch, &o[i], &tp_side(ch, false)->key[0], (uint64_t)i * SOME, &iov[i], 1, SOME);
		o[i].status = rc ? rc : o[i].status;
	}
	for (int i = 0; i < FEW; i++)
		CHECK(tp_finish(ch, &o[i], 20000) == (hole && i == BAD ? -EFAULT : 0));
	CHECK(!hole || !mprotect(hole, 4096, PROT_READ | PROT_WRITE));
	return 0;
}

static bool window_same(const unsigned char *buf, unsigned seed, bool but_one)
{
	for (int i = 0; i < FEW; i++) {
		if ((!but_one || i != BAD) && !tp_same(buf + (size_t)i * SOME, SOME, (uint64_t)i * SOME, seed))
			return false;
	}
	return true;
}

static int window_user(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = mmap(NULL, FEW * SOME, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const size_t front = rwk_shm_chunk_at(SOME, 0, 1), enough = FEW * front * 8;
	const uint64_t end = rwk_clock_now() + 20000000000u;
	int cpu = bench_bind_to_cpu(1);
	bool apart;

	(void)arg;
	CHECK(buf != MAP_FAILED && tp_wait(ch, 1, 1));
	apart = cpu >= 0 && tp_heard(ch, 7) && tp_heard(ch, 7) != (uint64_t)cpu + 1;
	for (unsigned i = 0; i < 30 || (apart && rwk_clock_now() < end && tp_heard(ch, 6) < enough); i++) {
		unsigned char *bad = buf + BAD * SOME, *hole = i % 3 == 0 ? NULL : bad + (i % 3 == 1 ? 0 : front);
		int rc;

		tp_fill(buf, FEW * SOME, i);
		tp_force(ch, RWK_SHM_BOTH);
		rc = one_window(ch, true, buf, hole);
		CHECK(!rc);
		memset(buf, 0, FEW * SOME);
		rc = one_window(ch, false, buf, i % 6 < 3 ? NULL : hole);
		CHECK(!rc && window_same(buf, i, hole));
	}
	CHECK(!apart || tp_heard(ch, 6) >= enough);
	CHECK(!tp_protocol_error(ch));
	munmap(buf, FEW * SOME);
	tp_say(ch, 2, 1);
	return 0;
}

/* Each byte of each comes where it belongs, whoever copies it; one that cannot be had fails alone. */
static void several_at_once(void **state)
{
	(void)state;
	tp_run(window_helper, window_user, NULL);
}

/* The first's own half is done, and its helper slow; behind it waits one that cannot be had. */
struct innocent {
	bool write;
	bool concealed; /* the region by then, of two pieces; else the other's memory is not there */
};

enum { FIRST = 8 << 20 };

/* By hand: it has claimed its half of the first, as the user says, and ends it when it hears the id in word 4. */
static int slow_helper(struct rwk_shm_channel *ch, const void *arg)
{
	const struct innocent *in = arg;
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true);
	struct rwk_rkey *key = &tp_side(ch, true)->key[0];
	struct iovec iov[2] = {{shared_place, in->concealed ? SOME : FIRST}, {shared_place + SOME, FIRST - SOME}};

	CHECK(!rwk_shm_expose(ch, iov, 1u + in->concealed, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, key));
	tp_say(ch, 1, 1);
	CHECK(tp_wait_deaf(ch, 2, 1));
	if (in->concealed)
		rwk_shm_conceal(ch, key);
	tp_say(ch, 3, 1);
	CHECK(tp_wait_deaf(ch, 4, 1));
	mine->pushed[PLACE].word =
		rwk_shm_claim_pack((uint32_t)tp_heard(ch, 4), 0, (uint32_t)rwk_shm_chunks_to_help(FIRST));
	tp_say(ch, 5, 1);
	CHECK(tp_wait_deaf(ch, 6, 1));
	return 0;
}

static int innocent_user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct innocent *in = arg;
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	unsigned char *none = mmap(NULL, SOME, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec good = {shared_place, FIRST}, bad = {none, SOME};
	_Atomic uint64_t *claim = &((struct rwk_shm_area *)rwk_shm_transfer_area(ch, true))->claim[PLACE].word;
	struct tp_op first, other;

	CHECK(none != MAP_FAILED && tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	CHECK(!(in->write ? tp_write : tp_read)(ch, &first, key, 0, &good, 1, FIRST) && first.status == 1);
	*claim += (uint64_t)rwk_shm_chunks_to_help(FIRST) << 16;
	for (int i = 0; i < 20; i++)
		tp_progress(ch);
	tp_say(ch, 2, 1);
	CHECK(tp_wait_deaf(ch, 3, 1));
	CHECK(!(in->write ? tp_write : tp_read)(ch, &other, key, 0, &bad, 1, SOME) && other.status == 1);
	for (int i = 0; i < 20; i++)
		tp_progress(ch);
	tp_say(ch, 4, rwk_shm_claim_unpack(*claim).id);
	CHECK(tp_wait_deaf(ch, 5, 1));
	CHECK(tp_finish(ch, &first, 20000) == 0);
	CHECK(tp_finish(ch, &other, 20000) == (in->concealed ? -EACCES : -EFAULT));
	CHECK(!tp_protocol_error(ch));
	munmap(none, SOME);
	tp_say(ch, 6, 1);
	return 0;
}

/* One that waits for its helper does not end with the error of the one behind it. */
static void behind_an_innocent(void **state)
{
	static const struct innocent cases[] = {{true, false}, {false, false}, {true, true}, {false, true}};

	(void)state;
	for (int i = 0; i < 4; i++)
		tp_run(slow_helper, innocent_user, &cases[i]);
}

/* Was the peer asked to help when a write of that length was posted? Negative: it has failed. */
static int asks_for(struct rwk_shm_channel *ch, struct tp_op *o, size_t length)
{
	static unsigned char buf[SOME];
	static struct iovec iov = {buf, SOME};
	uint64_t before = tp_side(ch, true)->posted;

	tp_force(ch, RWK_SHM_BOTH);
	if (tp_write(ch, o, &tp_side(ch, false)->key[0], 0, &iov, 1, length))
		return -1;
	return tp_side(ch, true)->posted != before;
}

/* What would be too short to be shared if it came alone is shared behind others. */
static int short_window_user(struct rwk_shm_channel *ch, const void *arg)
{
	const uint64_t end = rwk_clock_now() + 20000000000u;
	struct tp_op o;
	int shared = 0;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	while (shared < 3 && rwk_clock_now() < end) {
		int asked;

		tp_behind(ch, false);
		CHECK(asks_for(ch, &o, RWK_SHM_BOTH_LONE) == 0 && o.status == 0);
		tp_behind(ch, true);
		CHECK(asks_for(ch, &o, RWK_SHM_BOTH_LEAST) == 0 && o.status == 0);
		asked = asks_for(ch, &o, RWK_SHM_BOTH_LONE);
		CHECK(asked >= 0 && tp_finish(ch, &o, 20000) == 0);
		shared += asked; /* not each time: the peer may not have seen what it was asked last */
	}
	CHECK(shared == 3);
	tp_say(ch, 2, 1);
	return 0;
}

static void short_ones_behind_another(void **state)
{
	(void)state;
	tp_run(window_helper, short_window_user, NULL);
}

/*
 * Who is asked.
 */

static int deaf_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct iovec iov = {shared_place, 65536};

	(void)arg;
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait_deaf(ch, 3, 1));
	CHECK(is(shared_place, 65536, 3));
	tp_progress(ch);
	tp_say(ch, 3, 1);
	CHECK(tp_wait_deaf(ch, 3, 2));
	tp_progress(ch);
	tp_say(ch, 15, 1);
	tp_say(ch, 3, 2);
	CHECK(tp_wait_deaf(ch, 2, 1));
	CHECK(is(shared_place, 65536, 5));
	return 0;
}

static int write_some(struct rwk_shm_channel *ch, unsigned char value)
{
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;

	memset(buf, value, sizeof(buf));
	return begin(ch, &o, &(struct plan){.write = true}, &iov) || o.status; /* at once */
}

static int asking_user(struct rwk_shm_channel *ch, const void *arg)
{
	_Atomic uint64_t *posted = &tp_side(ch, true)->posted;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	for (unsigned char i = 1; i <= 3; i++)
		CHECK(!write_some(ch, i) && *posted == 1); /* it has not seen the first ask */
	tp_say(ch, 3, 1);
	CHECK(tp_wait_deaf(ch, 3, 1));
	CHECK(!write_some(ch, 4) && *posted == 2);
	tp_say(ch, 3, 2);
	CHECK(tp_wait_deaf(ch, 3, 2));
	CHECK(!write_some(ch, 5) && *posted == 2); /* it sleeps */
	CHECK(tp_counts(ch)->written == 5 * 65536);
	tp_say(ch, 2, 1);
	return 0;
}

/* One that computes is asked once and delays nobody; one that sleeps is not asked. */
static void computing(void **state)
{
	(void)state;
	tp_run(deaf_exposer, asking_user, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_out),
		cmocka_unit_test(several_at_once),
		cmocka_unit_test(behind_an_innocent),
		cmocka_unit_test(short_ones_behind_another),
		cmocka_unit_test(computing),
	};

	rwk_param_load();
	return cmocka_run_group_tests_name("shm/direct_help", tests, NULL, NULL);
}

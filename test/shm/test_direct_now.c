/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct reads and writes that are carried out here and now, or not at all: then nothing is left of them, and what is
 * posted in their place tells why.
 */
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_state.h"

#include <errno.h>
#include <sys/mman.h>

enum { LENGTH = 32 << 10, PAGE = 4096, HOLE = 3, LONG = 5 << 20, GUARD = 64, SHARED = 64 << 10 };

#define SECOND 1000000000u               /* ns */
#define KNOWN  (SECOND / (SHARED >> 10)) /* ns a KB */

/* The exposer's regions. */
enum { PLAIN, READ_ONLY, WRITE_ONLY, IN_PIECES, WITH_HOLE, CONCEALED, ENDLESS, REGIONS };

static int now(
	struct rwk_shm_channel *ch, bool write, const struct rwk_rkey *key, uint64_t offset, void *buf, size_t length)
{
	const struct rwk_direct_access a = {
		.type = write ? RWK_OP_WRITE : RWK_OP_READ,
		.here = buf,
		.length = length,
		.rkey = key,
		.offset = offset,
	};

	return rwk_shm_transfer_access(ch, &a);
}

static int posted(struct rwk_shm_channel *ch, bool write, const struct rwk_rkey *key, void *buf, size_t length)
{
	const struct iovec iov = {buf, length};
	struct tp_op o;
	int rc = (write ? tp_write : tp_read)(ch, &o, key, 0, &iov, 1, length);

	return rc ? rc : tp_finish(ch, &o, 10000);
}

static int exposer(struct rwk_shm_channel *ch, const void *arg)
{
	static const unsigned access[REGIONS] = {[READ_ONLY] = RWK_EXPOSE_READ, [WRITE_ONLY] = RWK_EXPOSE_WRITE};
	struct rwk_rkey *key = tp_side(ch, true)->key;
	unsigned char *buf[REGIONS];

	(void)arg;
	for (int r = 0; r < REGIONS; r++) {
		size_t length = r == ENDLESS ? LONG : LENGTH;
		struct iovec iov[2] = {{NULL, length}, {NULL, 0}};

		buf[r] = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(buf[r] != MAP_FAILED);
		memset(buf[r], 0xee, length);
		iov[0].iov_base = buf[r];
		if (r == IN_PIECES) {
			iov[0].iov_len = PAGE;
			iov[1] = (struct iovec){buf[r] + PAGE, LENGTH - PAGE};
		}
		CHECK(!rwk_shm_expose(ch, iov, iov[1].iov_len ? 2 : 1,
			access[r] ? access[r] : RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &key[r]));
	}
	rwk_shm_conceal(ch, &key[CONCEALED]);
	CHECK(!munmap(buf[WITH_HOLE] + HOLE * PAGE, PAGE));
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	CHECK(tp_same(buf[PLAIN] + GUARD, LENGTH - 2 * GUARD, 0, LENGTH - 2 * GUARD));
	for (int i = 0; i < GUARD; i++)
		CHECK(buf[PLAIN][i] == 0xee && buf[PLAIN][LENGTH - GUARD + i] == 0xee);
	for (int i = 0; i < LENGTH; i++)
		CHECK(buf[READ_ONLY][i] == 0xee && buf[CONCEALED][i] == 0xee && buf[IN_PIECES][i] == 0xee);
	CHECK(tp_counts(ch)->staged == 0 && tp_counts(ch)->pushed == 0);
	return 0;
}

/* Of each size there, and back again; not a byte beside it. */
static int there_and_back(struct rwk_shm_channel *ch, const struct rwk_rkey *key, unsigned char *buf)
{
	static const size_t sizes[] = {1, 8, 4095, 16 << 10, LENGTH - 2 * GUARD};
	uint64_t moved = 0, before = tp_counts(ch)->written;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i];

		tp_fill(buf + GUARD, n, (unsigned)n);
		CHECK(!now(ch, true, key, GUARD, buf + GUARD, n));
		memset(buf, 0xdd, LENGTH);
		CHECK(!now(ch, false, key, GUARD, buf + GUARD, n));
		CHECK(tp_same(buf + GUARD, n, 0, (unsigned)n));
		CHECK(buf[GUARD - 1] == 0xdd && buf[GUARD + n] == 0xdd);
		moved += n;
	}
	CHECK(tp_counts(ch)->written - before == moved && tp_counts(ch)->pulled == moved);
	return 0;
}

/* What is refused ends so, and the same when it is posted. */
static int refused(struct rwk_shm_channel *ch, const struct rwk_rkey *key, unsigned char *buf)
{
	for (int write = 0; write < 2; write++) {
		struct rwk_rkey forged = key[PLAIN], stretched = key[PLAIN];

		forged.word[0] ^= 1ull << 30;
		stretched.word[3] ^= 1ull << 60;
		CHECK(now(ch, write, &forged, 0, buf, 8) == -EAGAIN && posted(ch, write, &forged, buf, 8) == -EACCES);
		CHECK(now(ch, write, &stretched, 0, buf, 8) == -EAGAIN);
		CHECK(now(ch, write, &key[CONCEALED], 0, buf, 8) == -EAGAIN);
		CHECK(now(ch, write, &key[PLAIN], LENGTH - 1, buf, 2) == -EAGAIN);
		CHECK(now(ch, write, &key[PLAIN], UINT64_MAX, buf, 2) == -EAGAIN);
		CHECK(now(ch, write, &key[IN_PIECES], 0, buf, 8) == -EAGAIN);
		CHECK(now(ch, write, &key[WITH_HOLE], (HOLE - 1) * PAGE, buf, 2 * PAGE) == -EAGAIN);
		CHECK(posted(ch, write, &key[WITH_HOLE], buf, LENGTH) == -EFAULT);
	}
	CHECK(now(ch, true, &key[READ_ONLY], 0, buf, 8) == -EAGAIN);
	CHECK(now(ch, false, &key[WRITE_ONLY], 0, buf, 8) == -EAGAIN);
	CHECK(!now(ch, true, &key[WRITE_ONLY], 0, buf, 8));
	return 0;
}

/*
 * Makes it known which of two methods is the cheaper one for that length; what it takes is so much that one real call
 * takes less even if it loses its processor.
 */
static void know(struct rwk_shm_channel *ch, bool write, enum rwk_shm_method cheaper)
{
	struct rwk_shm_choice *c = &rwk_shm_transfers_of(ch)->direct_pace[write].choice;

	memset(c, 0, sizeof(*c));
	for (int collides = 0; collides < 2; collides++) {
		struct rwk_shm_load load = {SHARED, collides};

		for (int i = 0; i < 16; i++) {
			enum rwk_shm_method m = rwk_shm_choice_pick(c, load, 1u << RWK_SHM_PULL | 1u << RWK_SHM_BOTH);

			rwk_shm_choice_record(c, m, load, SHARED, m == cheaper ? SECOND : 2 * SECOND);
		}
	}
}

/* Of what two could share: if one alone is quicker, and then it is measured. */
static int longer(struct rwk_shm_channel *ch, const struct rwk_rkey *key, unsigned char *buf)
{
	for (int write = 0; write < 2; write++) {
		const struct rwk_shm_pace *pace = &rwk_shm_transfers_of(ch)->direct_pace[write];

		know(ch, write, RWK_SHM_BOTH);
		CHECK(now(ch, write, key, 0, buf, SHARED) == -EAGAIN);
		know(ch, write, RWK_SHM_PULL);
		CHECK(rwk_shm_choice_least(&pace->choice, (struct rwk_shm_load){SHARED, false}) > 1000);
		CHECK(!now(ch, write, key, 0, buf, SHARED));
		CHECK(rwk_shm_choice_least(&pace->choice, (struct rwk_shm_load){SHARED, false}) < KNOWN ||
			rwk_shm_choice_least(&pace->choice, (struct rwk_shm_load){SHARED, true}) < KNOWN);
		tp_force(ch, RWK_SHM_PULL);
		CHECK(now(ch, write, key, 0, buf, SHARED) == -EAGAIN);
		tp_force(ch, -1);
	}
	return 0;
}

static int user(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = tp_side(ch, false)->key;
	unsigned char *buf = calloc(1, LONG);
	struct iovec all = {buf, LONG};
	struct tp_op o;
	int line;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	CHECK(now(ch, true, &key[ENDLESS], 0, buf, 8) == -EAGAIN); /* the first is posted */
	CHECK(!posted(ch, true, &key[ENDLESS], buf, 8));
	line = there_and_back(ch, &key[PLAIN], buf);
	line = line ? line : refused(ch, key, buf);
	if (line)
		return line;
	line = longer(ch, &key[ENDLESS], buf);
	if (line)
		return line;
	/* others are under way: it would overtake them */
	CHECK(!tp_write(ch, &o, &key[ENDLESS], 0, &all, 1, LONG) && o.status == 1);
	CHECK(now(ch, true, &key[ENDLESS], 0, buf, 8) == -EAGAIN);
	CHECK(now(ch, false, &key[ENDLESS], 0, buf, 8) == -EAGAIN);
	CHECK(!tp_finish(ch, &o, 10000));
	CHECK(!now(ch, true, &key[ENDLESS], 0, buf, 8));
	CHECK(!tp_deny_copies(EPERM));
	for (int i = 0; i < 2; i++) {
		CHECK(now(ch, i, &key[ENDLESS], 0, buf, 8) == -EAGAIN);
		CHECK(posted(ch, i, &key[ENDLESS], buf, 8) == -EOPNOTSUPP);
	}
	CHECK(tp_counts(ch)->denials == 1 && !tp_protocol_error(ch) && !tp_busy(ch));
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

static void now_or_not_at_all(void **state)
{
	(void)state;
	tp_run(exposer, user, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(now_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

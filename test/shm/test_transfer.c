/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers between two processes: what arrives is what was exposed, by every method, at every size and shape; and who
 * copied it. Each test forks an exposer and a reader; a reader's check that fails is reported by its line.
 */
#include "rwk_test.h"

#include "transfer_roles.h"

enum { GUARD = 64 };

/*
 * Sizes around the limits of blocks, pieces and calls, by each method.
 */

static const size_t sizes[] = {1, 2, 63, 64, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 32767, 32768, 32769, 65535,
	65536, 65537, 131071, 131073, 262143, 262145, 1048575, 1048576, 1048577, 4194305, 20000003};
static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_PULL, RWK_SHM_BOTH, -1};

static int sizes_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	tp_force(ch, RWK_SHM_STAGE);
	return tp_expose_and_serve(ch, 1, 20000003, 1);
}

static int sizes_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(20000003 + 2 * GUARD);
	const struct rwk_rkey *key = &tp_side(ch, false)->key[0];
	const int *method = arg;

	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, *method);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i];
		struct iovec iov = {buf + GUARD, n};
		struct tp_op o;

		memset(buf, 0xee, n + 2 * GUARD);
		CHECK(!tp_read(ch, &o, key, 0, &iov, 1, n));
		CHECK(tp_finish(ch, &o, 10000) == 0);
		CHECK(tp_same(buf + GUARD, n, 0, 0));
		for (int k = 0; k < GUARD; k++)
			CHECK(buf[k] == 0xee && buf[GUARD + n + (size_t)k] == 0xee);
	}
	if (*method == RWK_SHM_STAGE)
		CHECK(tp_counts(ch)->unstaged > 0 && tp_counts(ch)->pulled == 0);
	if (*method == RWK_SHM_PULL)
		CHECK(tp_counts(ch)->pulled > 0 && tp_counts(ch)->unstaged == 0);
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* Every size arrives whole, and not a byte beside it. */
static void all_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(sizes_exposer, sizes_reader, &methods[i]);
}

/*
 * Shapes: pieces on both sides, parts of the region, many at once.
 */

enum { SHAPE_SIZE = 300007, SHAPE_COUNT = 150, SHAPE_PIECES = 20 };

static int shapes_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	return tp_expose_and_serve(ch, SHAPE_COUNT, SHAPE_SIZE, RWK_EXPOSE_IOV_MAX);
}

struct shape {
	struct tp_op o;
	unsigned char *buf;
	size_t offset, length;
	struct iovec iov[SHAPE_PIECES];
};

/* Cuts the target into pieces of random lengths, some empty; the iov holds more than is read. */
static int shape_post(struct rwk_shm_channel *ch, struct shape *s, unsigned i)
{
	size_t at = 0;

	s->offset = (size_t)rand() % SHAPE_SIZE;
	s->length = (size_t)rand() % (SHAPE_SIZE - s->offset + 1);
	if (i % 3 == 0)
		s->length = SHAPE_SIZE - s->offset;
	s->buf = malloc(s->length + 1);
	CHECK(s->buf);
	s->buf[s->length] = 0xee;
	for (unsigned k = 0; k < SHAPE_PIECES; k++) {
		size_t left = s->length - at, n = k == SHAPE_PIECES - 1 ? left
						  : left                ? (size_t)rand() % (left / 4 + 2)
									: 0;

		if (n > left)
			n = left;
		s->iov[k] = (struct iovec){s->buf + at, n};
		at += n;
	}
	s->iov[SHAPE_PIECES - 1].iov_len++;
	return tp_read(ch, &s->o, &tp_side(ch, false)->key[i], s->offset, s->iov, SHAPE_PIECES, s->length);
}

static int shapes_reader(struct rwk_shm_channel *ch, const void *arg)
{
	struct shape *s = calloc(SHAPE_COUNT, sizeof(*s));

	CHECK(s && tp_wait(ch, 1, 1));
	tp_force(ch, *(const int *)arg);
	srand(5);
	for (unsigned i = 0; i < SHAPE_COUNT; i++)
		CHECK(!shape_post(ch, &s[i], i));
	for (unsigned i = 0; i < SHAPE_COUNT; i++) {
		CHECK(tp_finish(ch, &s[i].o, 10000) == 0);
		CHECK(tp_same(s[i].buf, s[i].length, s[i].offset, i) && s[i].buf[s[i].length] == 0xee);
		free(s[i].buf);
	}
	CHECK(!tp_busy(ch));
	tp_say(ch, 2, 1);
	free(s);
	return 0;
}

/* 150 reads at once, of random parts, out of eight pieces into twenty. */
static void shapes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(shapes_exposer, shapes_reader, &methods[i]);
}

/*
 * What the kernel may copy slowly for where it lies is measured by itself.
 */

enum { ASKEW_SIZE = 65536, ASKEW_PAGE = 4096 };

static int askew_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	return tp_expose_and_serve(ch, 1, ASKEW_SIZE + ASKEW_PAGE, 1);
}

/* Reads into what lies so many bytes ahead of its source, pages aside, in so many pieces. */
static int askew_read(struct rwk_shm_channel *ch, size_t ahead, uint32_t pieces)
{
	const struct rwk_rkey *rkey = &tp_side(ch, false)->key[0];
	unsigned char *buf = aligned_alloc(ASKEW_PAGE, ASKEW_SIZE + 2 * ASKEW_PAGE), *to;
	const size_t offset = 100, first = pieces == 1 ? ASKEW_SIZE : 1000;
	struct rwk_shm_key key;
	struct iovec iov[2];
	struct tp_op o;

	CHECK(buf && !rwk_shm_key_unpack(rkey, &key) && key.one);
	to = buf + (key.address + offset + ahead) % ASKEW_PAGE;
	iov[0] = (struct iovec){to, first};
	iov[1] = (struct iovec){to + first, ASKEW_SIZE - first};
	CHECK(!tp_read(ch, &o, rkey, offset, iov, pieces, ASKEW_SIZE));
	CHECK(tp_finish(ch, &o, 10000) == 0 && tp_same(to, ASKEW_SIZE, offset, 0));
	free(buf);
	return 0;
}

static int askew_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_shm_choice *choice;
	char table[1000];

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	choice = &rwk_shm_transfers_of(ch)->pace.choice;
	CHECK(!askew_read(ch, 0, 1) && !askew_read(ch, 64, 1) && !askew_read(ch, ASKEW_PAGE - 16, 1));
	CHECK(!askew_read(ch, 16, 2));
	rwk_shm_choice_print(choice, table, sizeof(table));
	CHECK(strstr(table, "to      64 KB: ") && !strstr(table, "askew"));
	CHECK(!askew_read(ch, 16, 1));
	rwk_shm_choice_print(choice, table, sizeof(table));
	CHECK(strstr(table, "to      64 KB askew: ") != NULL || !rwk_copy_collides(table + 16, table));
	tp_say(ch, 2, 1);
	return 0;
}

static void askew(void **state)
{
	(void)state;
	tp_run(askew_exposer, askew_reader, NULL);
}

static int told_reader(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};
	char text[4096] = "";
	int fd[2], kept = dup(STDERR_FILENO);
	struct tp_op o;

	(void)arg;
	CHECK(tp_wait(ch, 1, 1));
	rwk_params.stats = true;
	tp_force(ch, RWK_SHM_PULL);
	for (int i = 0; i < 3; i++)
		CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, sizeof(buf)) &&
			!tp_finish(ch, &o, 10000));
	CHECK(!pipe(fd) && dup2(fd[1], STDERR_FILENO) >= 0);
	tp_tell(ch, 7);
	CHECK(dup2(kept, STDERR_FILENO) >= 0 && read(fd[0], text, sizeof(text) - 1) > 0);
	CHECK(strstr(text, "ropewalk: rank 7: memory of this node: bytes copied for reads of its own 196608,"));
	CHECK(strstr(text, "ropewalk: rank 7: messages fetched on this node to      64 KB: pull   pull "));
	CHECK(strstr(text, " GB/s (3)\n") && !strstr(text, "reads on this node") &&
		!strstr(text, "writes on this node"));
	tp_say(ch, 2, 1);
	return 0;
}

static int told_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	(void)arg;
	return tp_expose_and_serve(ch, 1, 65536, 1);
}

/* FI_ROPEWALK_STATS says how much was copied, and how, for each length of which there was any. */
static void statistics(void **state)
{
	(void)state;
	tp_run(told_exposer, told_reader, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sizes),
		cmocka_unit_test(shapes),
		cmocka_unit_test(askew),
		cmocka_unit_test(statistics),
	};

	return cmocka_run_group_tests_name("shm/transfer", tests, NULL, NULL);
}

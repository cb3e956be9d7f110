/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers with a peer that lies or scribbles: an error, or the right bytes; no byte is written outside the target,
 * and nothing hangs.
 */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_area.h"
#include "shm/transfer_claim.h"

/* Serves, and in between scribbles over the heads of its area (the first 4 KB), with a different seed each time. */
static int scribbler(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE), *area = rwk_shm_transfer_area(ch, true);
	struct iovec iov = {buf, LARGE};
	struct tp_side *mine = tp_side(ch, true);

	CHECK(buf);
	srand(*(const unsigned *)arg);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &mine->key[0]));
	tp_say(ch, 1, 1);
	for (unsigned i = 0; !tp_heard(ch, 2); i++) {
		tp_progress(ch);
		if (i % 16 == 15)
			area[rand() % 1024] ^= (unsigned char)(1 << rand() % 8);
	}
	free(buf);
	return 0;
}

static int scribbled_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE + 2 * 4096);
	struct iovec iov = {buf + 4096, LARGE};
	struct tp_op o;
	int status = 1;

	(void)arg;
	CHECK(buf && tp_wait(ch, 1, 1));
	memset(buf, 0xee, LARGE + 2 * 4096);
	tp_force(ch, RWK_SHM_STAGE);
	for (int i = 0; i < 20 && !tp_protocol_error(ch); i++) {
		CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
		status = tp_finish(ch, &o, 20);
		if (status == 1)
			break; /* a block was lost in the scribble: the peer harms only itself */
		CHECK(status == 0 || status == -EPROTO || status == -EACCES || status == -EIO);
	}
	for (int i = 0; i < 4096; i++)
		CHECK(buf[i] == 0xee && buf[4096 + LARGE + i] == 0xee);
	tp_say(ch, 2, 1);
	if (status == 1) {
		tp_close(ch, -ECANCELED);
		CHECK(o.status == -ECANCELED);
		exit(0);
	}
	free(buf);
	return 0;
}

/* A peer that scribbles over its transfer area: no byte is written outside the target. */
static void area_scribbled(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 20; seed++)
		tp_run(scribbler, scribbled_reader, &seed);
}

/* One lie each about a staged block, or about blocks given back. */
enum lie { LIE_LENGTH, LIE_EMPTY, LIE_OFFSET, LIE_CLAIM, LIE_PUSHED, LIES };

static int lying_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true), *theirs = rwk_shm_transfer_area(ch, false);
	enum lie lie = *(const enum lie *)arg;
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};

	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait_deaf(ch, 3, 1));
	switch (lie) {
	case LIE_CLAIM:
		theirs->claim[0].word = 0; /* the reader has taken none */
		break;
	case LIE_PUSHED:
		theirs->claim[0].word = 1 << 16 | 1; /* one chunk taken, and the reader's */
		mine->pushed[0].word = 2;            /* two finished */
		break;
	default:
		mine->head[0].offset = lie == LIE_OFFSET ? 4096 : 0;
		mine->head[0].id = 0;
		mine->head[0].length = lie == LIE_LENGTH ? 65536 : lie == LIE_EMPTY ? 0 : 8192;
		mine->head[0].number = 1;
	}
	tp_say(ch, 4, 1);
	CHECK(tp_wait_deaf(ch, 2, 1));
	return 0;
}

static int lied_to_reader(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;

	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, *(const enum lie *)arg >= LIE_CLAIM ? RWK_SHM_BOTH : RWK_SHM_STAGE);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, sizeof(buf)));
	if (*(const enum lie *)arg >= LIE_CLAIM)
		CHECK(rwk_shm_both_ask(rwk_shm_transfers_of(ch)));
	tp_say(ch, 3, 1);
	CHECK(tp_wait_deaf(ch, 4, 1));
	CHECK(tp_finish(ch, &o, 20000) == -EPROTO);
	CHECK(tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	return 0;
}

/* A block too long, empty or out of place breaks the channel, and so do claims and copies that cannot be. */
static void blocks_that_lie(void **state)
{
	(void)state;
	for (enum lie lie = 0; lie < LIES; lie++)
		tp_run(lying_exposer, lied_to_reader, &lie);
}

static int holding_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true), *theirs = rwk_shm_transfer_area(ch, false);
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};

	(void)arg;
	tp_fill(buf, sizeof(buf), 0);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait_deaf(ch, 3, 1));
	theirs->claim[0].word = 1 << 16 | 1; /* the other is the reader's */
	tp_say(ch, 4, 1);
	CHECK(tp_wait_deaf(ch, 5, 1));
	mine->pushed[0].word = 1 << 16; /* none finished, gave up */
	CHECK(tp_wait_deaf(ch, 2, 1));
	return 0;
}

/* Reads a buffer that both are to copy; comes back when the exposer has answered by hand. 0, or a line. */
static int read_by_both(struct rwk_shm_channel *ch, struct tp_op *o, struct iovec *iov)
{
	CHECK(tp_wait(ch, 1, 1));
	tp_force(ch, RWK_SHM_BOTH);
	CHECK(!tp_read(ch, o, &tp_side(ch, false)->key[0], 0, iov, 1, iov->iov_len));
	CHECK(rwk_shm_both_ask(rwk_shm_transfers_of(ch)));
	tp_say(ch, 3, 1);
	CHECK(tp_wait_deaf(ch, 4, 1));
	return 0;
}

static int held_reader(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;
	int rc = read_by_both(ch, &o, &iov);

	(void)arg;
	CHECK(!rc);
	CHECK(tp_finish(ch, &o, 50) == 1);
	CHECK(tp_counts(ch)->pulled == sizeof(buf) - rwk_shm_chunk_at(sizeof(buf), 0, 1));
	tp_say(ch, 5, 1);
	CHECK(tp_finish(ch, &o, 20000) == 0);
	CHECK(tp_same(buf, sizeof(buf), 0, 0));
	tp_say(ch, 2, 1);
	return 0;
}

/* A chunk that the exposer has claimed is waited for; if it gives up, the reader copies it. */
static void claim_held(void **state)
{
	(void)state;
	tp_run(holding_exposer, held_reader, NULL);
}

/* Its record of the region loses a piece, and it says that it has copied its half. */
static int short_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct rwk_shm_area *mine = rwk_shm_transfer_area(ch, true);
	static unsigned char buf[65536];
	struct iovec iov[2] = {{buf, 40 << 10}, {buf + (40 << 10), 24 << 10}};
	struct rwk_shm_key key;

	(void)arg;
	CHECK(!rwk_shm_expose(ch, iov, 2, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	CHECK(!rwk_shm_key_unpack(&tp_side(ch, true)->key[0], &key));
	((struct rwk_shm_region *)(uintptr_t)key.region)->count = 1;
	tp_say(ch, 1, 1);
	CHECK(tp_wait_deaf(ch, 3, 1));
	mine->pushed[0].word = 1;
	tp_say(ch, 4, 1);
	CHECK(tp_wait_deaf(ch, 2, 1));
	return 0;
}

static int short_reader(struct rwk_shm_channel *ch, const void *arg)
{
	static unsigned char buf[65536];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;
	int rc = read_by_both(ch, &o, &iov);

	(void)arg;
	CHECK(!rc);
	CHECK(tp_finish(ch, &o, 20000) == -EFAULT);
	tp_say(ch, 2, 1);
	return 0;
}

/* A half of which the exposer has less than it said does not come, and is not taken for come. */
static void half_that_is_short(void **state)
{
	(void)state;
	tp_run(short_exposer, short_reader, NULL);
}

static int garbage_sender(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned how = *(const unsigned *)arg;
	char body[RWK_SHM_CONTROL_MAX] = {0};
	struct rwk_shm_ask ask = {.offset = 0, .length = LARGE};
	struct rwk_shm_help_ask help = {.length = UINT64_MAX};
	uint64_t *given_back = rwk_shm_transfer_area(ch, true);

	CHECK(tp_wait(ch, 1, 1));
	ask.cookie = tp_side(ch, false)->key[0].word[0];
	switch (how) {
	case 0: /* a kind that does not exist */
		CHECK(!rwk_shm_control(ch, RWK_SHM_TRANSFER_LAST, body, sizeof(body)));
		break;
	case 1: /* a record cut short */
		CHECK(!rwk_shm_control(ch, (enum rwk_shm_control)RWK_SHM_STAGE_ASK, &ask, sizeof(ask) - 1));
		break;
	case 2: /* more reads at once than agreed */
		for (uint32_t i = 0; i < 2 * RWK_SHM_SERVES; i++) {
			ask.id = i;
			CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_STAGE_ASK, &ask, sizeof(ask)));
		}
		break;
	case 3: /* blocks given back that never were */
		*given_back = 1000;
		CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_STAGE_ASK, &ask, sizeof(ask)));
		break;
	case 4: /* help with more than there are addresses */
		CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_PUSH_ASK, &help, sizeof(help)));
		break;
	case 5: /* and with a part before its beginning, */
	case 6: /* or behind its end */
		help.length = 64 << 10;
		help.lead = how == 5 ? 5 : -5;
		CHECK(!rwk_shm_tell(rwk_shm_transfers_of(ch), RWK_SHM_PUSH_ASK, &help, sizeof(help)));
		break;
	}
	CHECK(tp_wait_deaf(ch, 3, 1));
	tp_say(ch, 2, 1);
	return 0;
}

static int garbage_taker(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	struct iovec iov = {buf, LARGE};

	(void)arg;
	CHECK(buf);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	for (uint64_t end = rwk_clock_now() + 20000000000u; !tp_protocol_error(ch) && rwk_clock_now() < end;)
		tp_progress(ch);
	CHECK(tp_protocol_error(ch));
	tp_say(ch, 3, 1);
	CHECK(tp_wait(ch, 2, 1));
	free(buf);
	return 0;
}

/* Records that make no sense break the channel at once. */
static void garbage_records(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 7; how++)
		tp_run(garbage_taker, garbage_sender, &how);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(area_scribbled),
		cmocka_unit_test(blocks_that_lie),
		cmocka_unit_test(claim_held),
		cmocka_unit_test(half_that_is_short),
		cmocka_unit_test(garbage_records),
	};

	return cmocka_run_group_tests_name("shm/transfer_hostile", tests, NULL, NULL);
}

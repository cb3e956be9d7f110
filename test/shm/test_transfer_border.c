/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the border lies of what both sides copy: on machines of the test's own making, and what two processes make of
 * one that is not in the middle.
 */
#include "rwk_test.h"

#include "transfer_roles.h"

#include "shm/transfer_area.h"
#include "shm/transfer_border.h"

#include "bench/common/cpu.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* What a page takes the one who asks and the one who helps, who begins `late`: ns. */
struct machine {
	int asker, helper, late;
};

static const struct machine machines[] = {
	{150, 150, 0}, {150, 150, 900}, {300, 150, 0}, {150, 300, 100}, {90, 60, 2000}};

static int pages_of_asker(uint64_t length, int lead)
{
	return (int)((length - rwk_shm_chunk_at(length, lead, 1)) / 4096);
}

/* Until both are done. */
static int takes(const struct machine *m, uint64_t length, int lead, bool *early)
{
	int mine = pages_of_asker(length, lead), asker = mine * m->asker;
	int helper = m->late + ((int)(length / 4096) - mine) * m->helper;

	*early = helper <= asker;
	return *early ? asker : helper;
}

static int best(const struct machine *m, uint64_t length)
{
	int least = 0;
	bool early;

	for (int lead = -rwk_shm_lead_most(length); lead <= rwk_shm_lead_most(length); lead++) {
		int ns = takes(m, length, lead, &early);

		least = !least || ns < least ? ns : least;
	}
	return least;
}

/* So many transfers, of which each ninth is disturbed. Returns how often the border moved. */
static unsigned play(struct rwk_shm_border *b, const struct machine *m, uint64_t length, unsigned transfers)
{
	unsigned moves = 0;

	for (unsigned i = 0; i < transfers; i++) {
		int lead = rwk_shm_border_lead(b, length);
		bool early;

		takes(m, length, lead, &early);
		rwk_shm_border_seen(b, length, i % 9 == 4 ? !early : early);
		moves += rwk_shm_border_lead(b, length) != lead;
	}
	return moves;
}

/* At the end within a page of the best place, wherever it was before. */
static void found_on_each_machine(void **state)
{
	static const uint64_t lengths[] = {(32 << 10) + 1, 64 << 10, 200 << 10, 1 << 20};
	struct rwk_shm_border b = {0};
	bool early;

	(void)state;
	for (size_t i = 0; i < 4 * sizeof(machines) / sizeof(*machines); i++) {
		const struct machine *m = &machines[i / 4];
		uint64_t length = lengths[i % 4];
		int slower = m->asker > m->helper ? m->asker : m->helper;

		play(&b, m, length, 20000);
		assert_true(takes(m, length, rwk_shm_border_lead(&b, length), &early) <= best(m, length) + slower);
	}
}

/* Where it is between two pages it goes back and forth, but less and less. */
static void rests(void **state)
{
	struct rwk_shm_border b = {0};

	(void)state;
	play(&b, &machines[1], 64 << 10, 20000);
	assert_in_range(play(&b, &machines[1], 64 << 10, 200000), 1, 200000 / 4096);
}

/* Where now this side is late, now that, there is nothing to mend. */
static void stays_where_nothing_is_clear(void **state)
{
	struct rwk_shm_border b = {0};

	(void)state;
	for (unsigned i = 0; i < 10000; i++)
		rwk_shm_border_seen(&b, 64 << 10, i % 4 == 0);
	assert_int_equal(rwk_shm_border_lead(&b, 64 << 10), 0);
}

/* Of two chunks neither vanishes, and each length has a border by itself; of more chunks, or long ones, it is fixed. */
static void bounded(void **state)
{
	static const uint64_t lengths[] = {(16 << 10) + 1, (24 << 10) + 1, 40 << 10, 100000, (1 << 20) - 1, 1 << 20};
	static const uint64_t fixed[] = {1, 4096, (1 << 20) + 1, 2 << 20, (2 << 20) + 1, (uint64_t)1 << 40, UINT64_MAX};

	(void)state;
	for (int up = 0; up < 2; up++) {
		struct rwk_shm_border b = {0};

		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			uint64_t length = lengths[i], border;
			int lead, most = rwk_shm_lead_most(length);

			for (unsigned n = 0; n < 100000; n++)
				rwk_shm_border_seen(&b, length, !up);
			lead = rwk_shm_border_lead(&b, length);
			border = rwk_shm_chunk_at(length, lead, 1);
			assert_int_equal(lead, up ? most : -most);
			assert_true(most >= 1 && border % 4096 == 0 && border > 0 && border < length);
			assert_int_equal(rwk_shm_border_lead(&b, 16 << 20), 0);
		}
	}
	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		static const struct rwk_shm_border none;
		struct rwk_shm_border b = {0};

		rwk_shm_border_seen(&b, fixed[i], true);
		assert_memory_equal(&b, &none, sizeof(b)); /* and they say nothing of others */
		assert_int_equal(rwk_shm_lead_most(fixed[i]), 0);
	}
}

/* Lengths of one class have the lead of that class as far as each of them can. */
static void lengths_of_a_class(void **state)
{
	struct rwk_shm_border b = {0};

	(void)state;
	for (unsigned n = 0; n < 1000; n++)
		rwk_shm_border_seen(&b, 64 << 10, false);
	assert_int_equal(rwk_shm_border_lead(&b, 64 << 10), 4);
	assert_int_equal(rwk_shm_border_lead(&b, (32 << 10) + 1), rwk_shm_lead_most((32 << 10) + 1));
	assert_int_equal(rwk_shm_border_lead(&b, (64 << 10) + 1), 0);
	assert_int_equal(rwk_shm_border_lead(&b, 32 << 10), 0);
}

/*
 * Two processes.
 */

enum { LENGTH = 64 << 10 };

static const uint64_t patience = 20000000000u; /* ns */

struct plan {
	bool direct, write;
};

/*
 * Word 6: bytes that it has copied. 7: its processor, and one more: where both have the same one, as in a container
 * that has but one, who helps comes too late each time.
 */
static int helper(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *p = arg;
	unsigned char *buf = malloc(LENGTH);
	struct iovec iov = {buf, LENGTH};
	unsigned access = RWK_EXPOSE_READ | (p->direct ? RWK_EXPOSE_WRITE : 0);

	CHECK(buf);
	tp_fill(buf, LENGTH, 1);
	tp_say(ch, 7, (uint64_t)bench_bind_to_cpu(0) + 1);
	CHECK(!rwk_shm_expose(ch, &iov, 1, access, &tp_side(ch, true)->key[0]));
	tp_say(ch, 1, 1);
	while (!tp_heard(ch, 2) && rwk_shm_peer_alive(ch)) {
		tp_progress(ch);
		tp_say(ch, 6, tp_counts(ch)->pushed + tp_counts(ch)->fetched);
	}
	CHECK(!p->write || tp_same(buf, LENGTH, 0, 2));
	free(buf);
	return 0;
}

/* One transfer: the bytes that this side has copied of it; 0: it failed. */
static uint64_t transfer(struct rwk_shm_channel *ch, const struct plan *p, unsigned char *buf)
{
	struct iovec iov = {buf, LENGTH};
	struct rwk_shm_transfer_counts *mine = tp_counts(ch);
	uint64_t before = mine->written + mine->pulled;
	struct tp_op o;

	if (p->write)
		tp_fill(buf, LENGTH, 2);
	else
		memset(buf, 0, LENGTH);
	if ((p->write ? tp_write : tp_read)(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LENGTH))
		return 0;
	if (tp_finish(ch, &o, 20000) || !tp_same(buf, LENGTH, 0, p->write ? 2 : 1))
		return 0;
	return mine->written + mine->pulled - before;
}

/*
 * Tries until the helper was there: with that lead each side copies up to the border, and who was early is noted. Where
 * it never is the bytes are right all the same.
 */
static int with_lead(struct rwk_shm_channel *ch, const struct plan *p, unsigned char *buf, int lead, bool apart)
{
	struct rwk_shm_transfers *t = rwk_shm_transfers_of(ch);
	struct rwk_shm_border *b = p->direct ? &t->direct_border[p->write] : &t->border;
	uint64_t helped = rwk_shm_chunk_at(LENGTH, lead, 1), mine = LENGTH, end = rwk_clock_now() + patience;
	unsigned looks = 0;

	while (mine != LENGTH - helped && rwk_clock_now() < end) {
		memset(b, 0, sizeof(*b));
		b->class[1].lead = (int16_t)lead;
		mine = transfer(ch, p, buf);
		looks = b->class[1].looks;
		CHECK(mine);
		if (!apart)
			return 0;
	}
	CHECK(mine == LENGTH - helped);
	CHECK(looks == 1);
	return 0;
}

/* One of several says nothing: what it waits for is behind others. */
static int not_by_itself(struct rwk_shm_channel *ch, const struct plan *p, unsigned char *buf)
{
	struct rwk_shm_border *b = &rwk_shm_transfers_of(ch)->direct_border[p->write];

	memset(b, 0, sizeof(*b));
	tp_behind(ch, true);
	for (int i = 0; i < 20; i++)
		CHECK(transfer(ch, p, buf));
	tp_behind(ch, false);
	CHECK(!b->class[1].looks && !b->class[1].wanted);
	return 0;
}

static int asker(struct rwk_shm_channel *ch, const void *arg)
{
	const struct plan *p = arg;
	unsigned char *buf = malloc(LENGTH);
	int cpu = bench_bind_to_cpu(1);
	bool apart;

	CHECK(buf);
	CHECK(tp_wait(ch, 1, 1));
	apart = cpu >= 0 && tp_heard(ch, 7) && tp_heard(ch, 7) != (uint64_t)cpu + 1;
	tp_force(ch, RWK_SHM_BOTH);
	for (int lead = -4; lead <= 4; lead++) {
		int rc = with_lead(ch, p, buf, lead, apart);

		CHECK(!rc);
	}
	if (p->direct) {
		int rc = not_by_itself(ch, p, buf);

		CHECK(!rc);
	}
	CHECK(!tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	free(buf);
	return 0;
}

/* Reads of what was exposed for once, direct reads and writes: the bytes are right, and each side copies its part. */
static void both_go_by_it(void **state)
{
	static const struct plan plans[] = {{false, false}, {true, false}, {true, true}};

	(void)state;
	for (int i = 0; i < 3; i++)
		tp_run(helper, asker, &plans[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_on_each_machine),
		cmocka_unit_test(rests),
		cmocka_unit_test(stays_where_nothing_is_clear),
		cmocka_unit_test(bounded),
		cmocka_unit_test(lengths_of_a_class),
		cmocka_unit_test(both_go_by_it),
	};

	return cmocka_run_group_tests_name("shm/transfer_border", tests, NULL, NULL);
}

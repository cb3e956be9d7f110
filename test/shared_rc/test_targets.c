/* SPDX-License-Identifier: BSD-3-Clause */
/* A domain's targets: who has one, who holds it, who comes next. Links: none: packets are handed over by hand. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "shared_rc/two.h"

#include <sys/mman.h>

/* Targets: one for each initiator, known to all members, gone when it has ended. */
static void targets(void **state)
{
	struct rwk_src_initiator i = speaker_initiator(0, PMTU), found, bad;
	uint32_t qpn, qpns[4] = {f.qpn};

	(void)state;
	i.pmtu = 512; /* what was agreed first stays */
	assert_int_equal(rwk_src_target_make(f.listener[1].view, &i, &qpn), 0);
	assert_int_equal(qpn, f.qpn);
	assert_int_equal(rwk_src_target_find(f.listener[1].view, qpn, &found), 0);
	assert_int_equal(found.pmtu, PMTU);
	assert_int_equal(found.nonce, 1000);
	assert_int_equal(found.about[1], 0x5a);
	for (unsigned n = 1; n < 4; n++) {
		i = speaker_initiator(n, PMTU);
		assert_int_equal(rwk_src_target_make(f.listener[n % 2].view, &i, &qpns[n]), 0);
		assert_in_range(qpns[n], 2, 0xfffffe);
		for (unsigned m = 0; m < n; m++)
			assert_int_not_equal(qpns[m] % 4, qpns[n] % 4);
	}
	i = speaker_initiator(5, PMTU);
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &i, &qpn), -ENOSPC);
	rwk_src_target_end(f.listener[0].view, qpns[2]);
	assert_int_equal(rwk_src_target_find(f.listener[1].view, qpns[2], &found), -ENOENT);
	assert_int_equal(rwk_src_target_make(f.listener[1].view, &i, &qpn), 0);
	assert_int_equal(qpn % 4, qpns[2] % 4);
	assert_int_not_equal(qpn, qpns[2]);
	/* Whoever says it later ends nobody else. */
	rwk_src_target_end(f.listener[1].view, qpns[2]);
	assert_int_equal(rwk_src_target_find(f.listener[0].view, qpn, &found), 0);
	bad = i;
	bad.nonce = 0;
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &bad, &qpn), -EINVAL);
	bad = i;
	bad.pmtu = 300;
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &bad, &qpn), -EINVAL);
	bad = i;
	bad.psn = 1 << 24;
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &bad, &qpn), -EINVAL);
}

/* Who holds a target: one at a time, who lives, and of this target, not of the one before it on its place. */
static void holders(void **state)
{
	struct rwk_src_initiator i = speaker_initiator(0, PMTU);
	struct rwk_src_view *a = f.listener[0].view, *b = f.listener[1].view;
	uint32_t next;

	(void)state;
	assert_int_equal(rwk_src_holder(a, f.qpn), 0);
	rwk_src_hold(a, f.qpn);
	assert_int_equal(rwk_src_holder(a, f.qpn), rwk_src_srqn(a));
	assert_int_equal(rwk_src_holder(b, f.qpn), rwk_src_srqn(a));
	rwk_src_hold(b, f.qpn);
	rwk_src_let_go(a, f.qpn);
	assert_int_equal(rwk_src_holder(a, f.qpn), rwk_src_srqn(b));
	rwk_src_let_go(b, f.qpn);
	assert_int_equal(rwk_src_holder(a, f.qpn), 0);

	rwk_src_hold(b, f.qpn);
	assert_true(rwk_src_target_lives(a, f.qpn));
	rwk_src_target_end(a, f.qpn);
	assert_false(rwk_src_target_lives(b, f.qpn));
	assert_int_equal(rwk_src_target_make(a, &i, &next), 0);
	assert_int_equal(rwk_src_holder(a, next), 0);
	rwk_src_hold(b, f.qpn); /* too late */
	assert_int_equal(rwk_src_holder(a, next), 0);
	rwk_src_hold(b, next);
	assert_int_equal(rwk_src_holder(a, next), rwk_src_srqn(b));
	rwk_src_view_close(b);
	f.listener[1].view = NULL;
	assert_int_equal(rwk_src_holder(a, next), 0);
}

/* The next initiator on a target's place is heard from its first packet on, though the count goes on. */
static void next_at_the_place(void **state)
{
	struct rwk_src_initiator i = speaker_initiator(2, PMTU);

	(void)state;
	post(1, 3);
	serve_all(0);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 3);
	check_heard(1);
	rwk_src_target_end(f.listener[0].view, f.qpn);
	serve(0, 0);
	assert_int_equal(count(0)->unknown_target, 1);
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &i, &f.qpn), 0);
	speaker_close(&f.speaker);
	open_speaker(2);
	f.speaker.srqn[1] = rwk_src_srqn(f.listener[1].view);
	speaker_post(&f.speaker, 1);
	speaker_speak(&f.speaker, 0, 1000);
	serve_all(0);
	while (rwk_src_drain(f.listener[1].view, 10))
		;
	assert_int_equal(f.ear[1].heard[2], 1);
	assert_int_equal(f.ear[1].wrong + count(1)->repeated, 0);
}

#define MANY 4096u

/* The longest chain; each target that is known is in one, once. */
static uint32_t longest_chain(struct rwk_src_view *v, const uint32_t *qpn)
{
	uint32_t longest = 0, found = 0, known = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t n = 0;

		known += qpn[i] != 0;
		for (uint32_t next = *rwk_src_chain(v, i); next; next = rwk_src_entry(v, next - 1)->next) {
			assert_in_range(next, 1, MANY);
			assert_true(++n <= MANY);
			found += rwk_src_entry(v, next - 1)->qpn != 0;
		}
		longest = n > longest ? n : longest;
	}
	assert_int_equal(found, known);
	return longest;
}

/*
 * Many initiators come and go, as a list says: each has one target as long as it lives, whichever member asks; a place
 * that has become free is used before one that never was, and there is room as long as there is a place. Looking for
 * one takes a few steps.
 */
static void many_targets(void **state)
{
	static uint32_t qpn[MANY];
	void *m = segment(2, MANY, 65536);
	uint32_t seed = 1, most = 0, now = 0;
	struct ear e[2] = {0};
	struct listener l[2];

	(void)state;
	memset(qpn, 0, sizeof(qpn));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(listener_open(&l[i], m, &e[i]), 0);
	for (unsigned step = 0; step < 6 * MANY; step++) {
		uint32_t i = chance(&seed) % MANY, got = 0;
		struct rwk_src_initiator who = speaker_initiator(0, PMTU);
		struct rwk_src_view *v = l[step & 1].view;

		who.nonce = (i + 1) * 0x100000001ull;
		if (step > MANY && !(chance(&seed) % 3) && qpn[i]) {
			rwk_src_target_end(v, qpn[i]);
			rwk_src_target_end(l[0].view, qpn[i]);
			qpn[i] = 0;
			now--;
			continue;
		}
		assert_int_equal(rwk_src_target_make(v, &who, &got), 0);
		if (qpn[i])
			assert_int_equal(got, qpn[i]);
		now += !qpn[i];
		qpn[i] = got;
		most = now > most ? now : most;
		assert_int_equal(l[0].view->header->directed, most);
	}
	assert_in_range(longest_chain(l[0].view, qpn), 2, 16);
	for (uint32_t i = 0; i <= MANY; i++) { /* all there is room for */
		struct rwk_src_initiator who = speaker_initiator(0, PMTU);
		uint32_t got = 0;

		who.nonce = (i + 1) * 0x100000001ull;
		assert_int_equal(rwk_src_target_make(l[1].view, &who, &got), i < MANY ? 0 : -ENOSPC);
		if (i < MANY && qpn[i])
			assert_int_equal(got, qpn[i]);
		if (i < MANY)
			qpn[i] = got;
	}
	/* Whoever ended one died before it was counted. */
	atomic_store(&rwk_src_entry(l[0].view, rwk_src_place(l[0].view, qpn[77]))->qpn, 0);
	for (unsigned n = 0; n < 2; n++) {
		struct rwk_src_initiator who = speaker_initiator(0, PMTU);
		uint32_t got;

		who.nonce = UINT64_MAX - n;
		assert_int_equal(rwk_src_target_make(l[1].view, &who, &got), n ? -ENOSPC : 0);
	}
	for (unsigned i = 0; i < 2; i++)
		rwk_src_view_close(l[i].view);
	munmap(m, rwk_src_segment_size(&(struct rwk_src_size){2, MANY, 65536}));
}

/* A packet for no target, and one that does not come from where its initiator is. */
static void strangers(void **state)
{
	(void)state;
	post(1, 1);
	f.queue[0].speaker = 3;
	serve(0, 0);
	assert_int_equal(count(0)->wrong_sender, 1);
	f.queue[0].speaker = 0;
	f.queue[0].w.qpn = f.qpn ^ 0x800000;
	serve(0, 0);
	f.queue[0].w.qpn = 0;
	serve(0, 0);
	assert_int_equal(count(0)->unknown_target, 2);
	assert_int_equal(rwk_src_pump(f.listener[0].view, 1000), 0);
	f.queue[0].w.qpn = f.qpn;
	serve_all(0);
	assert_int_equal(rwk_src_drain(f.listener[1].view, 10), 1);
	check_heard(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_two(targets),
		with_two(holders),
		with_two(next_at_the_place),
		cmocka_unit_test(many_targets),
		with_two(strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

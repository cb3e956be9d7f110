/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP link between two ends of one process: reaching each other, and meeting half-way. */
#include "links/tcp_peers.h"

#include <unistd.h>

#define LOOKS 7

/* Nobody listens: refused. Another nonce is there: stale, and nothing opens at either end. */
static void nobody_and_another(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);

	(void)state;
	assert_int_equal(rwk_tcp_reach(a->l, &b->at, 23), 0);
	assert_int_equal(rwk_tcp_reach(a->l, &b->at, 24), -EEXIST);
	until_words(a, b, 1);
	assert_int_equal(last_word(a), -ESTALE);
	assert_memory_equal(&a->word_of[0], &b->at, sizeof(b->at));
	run_for(a, b, 20);
	assert_int_equal(b->word_count, 0);
	close_peer(b);
	b = NULL;
	assert_int_equal(rwk_tcp_reach(a->l, &a->word_of[0], 22), 0);
	until_words(a, NULL, 2);
	assert_int_equal(last_word(a), -ECONNREFUSED);
	close_peer(a);
}

/*
 * An end that was away for longer than its patience, with more that has happened than one look at its sockets shows:
 * what has happened counts, not that time has passed.
 */
static void away(void **state)
{
	enum { MANY = 80 };
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	uint64_t end = now_ms() + 20000;
	struct peer *a, *b[MANY];
	unsigned opened = 0;

	(void)state;
	attr_a.connect_ms = 50;
	a = open_peer(&attr_a);
	for (int i = 0; i < MANY; i++) {
		attr_b.nonce = 100 + (unsigned)i;
		b[i] = open_peer(&attr_b);
		assert_int_equal(rwk_tcp_reach(a->l, &b[i]->at, attr_b.nonce), 0);
	}
	usleep(100000);
	while (opened < MANY) {
		assert_true(now_ms() < end);
		a->word_count = 0;
		a->l->ops->progress(a->l, 16);
		for (unsigned i = 0; i < a->word_count; i++)
			assert_int_equal(a->words[i], 0);
		opened += a->word_count;
		for (int i = 0; i < MANY; i++)
			b[i]->l->ops->progress(b[i]->l, 16);
	}
	close_peer(a);
	for (int i = 0; i < MANY; i++)
		close_peer(b[i]);
}

/* Reaching again what is open tells that it is; another nonce at its address is refused while it is. */
static void reach_again(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);

	(void)state;
	connect_peers(a, b);
	assert_int_equal(rwk_tcp_reach(b->l, &a->at, 11), 0);
	until_words(b, a, 2);
	assert_int_equal(last_word(b), 0);
	assert_int_equal(rwk_tcp_reach(b->l, &a->at, 12), -EEXIST);
	assert_int_equal(rwk_tcp_counts(a->l)->opened, 1);
	assert_int_equal(rwk_tcp_counts(b->l)->opened, 1);
	close_peer(a);
	close_peer(b);
}

/*
 * A stream that the peer began is known by the address that it came from. Reached under another of the peer's addresses
 * it is the same stream, and known by that from then on.
 */
static void another_address(void **state)
{
	static const uint8_t second[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};

	(void)state;
	for (uint64_t nonce = 0; nonce <= 11; nonce += 11) {
		struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
		struct rwk_link_address by_first;
		struct peer *a, *b;

		memset(attr_a.ip, 0, 16);
		a = open_peer(&attr_a);
		b = open_peer(&attr_b);
		connect_peers(a, b);
		by_first = a->at;
		a->at = rwk_tcp_address(second, rwk_tcp_port(a->l));
		assert_int_equal(rwk_tcp_reach(b->l, &a->at, nonce), 0);
		until_words(b, a, 2);
		assert_int_equal(b->words[1], 0);
		assert_memory_equal(&b->word_of[1], &a->at, sizeof(a->at));
		assert_int_equal(rwk_tcp_counts(b->l)->opened, 1);
		assert_int_equal(send_number(b, &by_first, 0), -ENOTCONN);
		exchange(a, b, 100);
		assert_int_equal(a->word_count, 1);
		close_peer(a);
		close_peer(b);
	}
}

/*
 * Both begin at the same time, and each knows the other by an address that it does not come from: by its nonce it is
 * found all the same, and each keeps the name that it asked for.
 */
static void meeting_elsewhere(void **state)
{
	static const uint8_t second[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
		struct peer *a, *b;

		memset(attr_a.ip, 0, 16);
		memset(attr_b.ip, 0, 16);
		a = open_peer(&attr_a);
		b = open_peer(&attr_b);
		a->at = rwk_tcp_address(second, rwk_tcp_port(a->l));
		assert_int_equal(rwk_tcp_reach(a->l, &b->at, 22), 0);
		assert_int_equal(rwk_tcp_reach(b->l, &a->at, 11), 0);
		until_words(a, b, 1);
		until_words(b, a, 1);
		assert_int_equal(rwk_tcp_nonce(a->l, &b->at), 22);
		assert_int_equal(rwk_tcp_nonce(b->l, &a->at), 11);
		assert_int_equal(rwk_tcp_counts(a->l)->opened, 1);
		exchange(a, b, 10);
		close_peer(a);
		close_peer(b);
	}
}

/*
 * Both begin at the same time, one of them at an address of which it does not know whose it is, so that it cannot tell
 * that they meet. In whatever order they look: one stream remains, and neither hears that the other has left one.
 */
static void meeting_unknown(void **state)
{
	static const uint8_t second[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};

	(void)state;
	for (unsigned i = 0; i < 2u << LOOKS; i++) {
		struct rwk_tcp_attr attr_a = tcp_attr(i & 1 ? 33 : 11), attr_b = tcp_attr(22);
		struct rwk_link_address other;
		struct peer *a, *b, *ends[2];

		memset(attr_a.ip, 0, 16);
		memset(attr_b.ip, 0, 16);
		attr_b.stranger_ms = 60000; /* who waits for what has come waits longer than this test */
		ends[0] = a = open_peer(&attr_a);
		ends[1] = b = open_peer(&attr_b);
		other = rwk_tcp_address(second, rwk_tcp_port(b->l));
		assert_int_equal(rwk_tcp_reach(a->l, &other, 0), 0);
		assert_int_equal(rwk_tcp_reach(b->l, &a->at, a->nonce), 0);
		for (unsigned n = 0; n < LOOKS; n++)
			ends[i >> (n + 1) & 1]->l->ops->progress(ends[i >> (n + 1) & 1]->l, 16);
		until_words(b, a, 1);
		while (rwk_tcp_nonce(a->l, &other) != b->nonce)
			until_words(a, b, a->word_count + 1);
		for (unsigned n = 0; n < a->word_count; n++)
			assert_int_equal(a->words[n], 0);
		assert_int_equal(last_word(b), 0);
		assert_int_equal(rwk_tcp_counts(a->l)->opened, 1);
		assert_int_equal(rwk_tcp_counts(b->l)->opened, 1);
		close_peer(a);
		close_peer(b);
	}
}

/*
 * Both begin at the same time, at every offset of their progress: one stream remains, nobody hears of the other, and
 * packets sent the moment that a stream is open arrive.
 */
static void meeting(void **state)
{
	unsigned meetings = 0;

	(void)state;
	for (unsigned i = 0; i < 600; i++) {
		struct rwk_tcp_attr attr_a = tcp_attr(i & 1 ? 33 : 11), attr_b = tcp_attr(22);
		struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);
		bool sent_a = false, sent_b = false;
		uint64_t end = now_ms() + 20000;

		assert_int_equal(rwk_tcp_reach(a->l, &b->at, i & 2 ? 22 : 0), 0);
		for (unsigned n = 0; n < i / 4 % 5; n++)
			a->l->ops->progress(a->l, 16);
		for (unsigned n = 0; n < i / 20 % 5; n++)
			b->l->ops->progress(b->l, 16);
		assert_int_equal(rwk_tcp_reach(b->l, &a->at, i & 2 ? a->nonce : 0), 0);
		for (unsigned n = 0; n < i / 100 % 3; n++)
			b->l->ops->progress(b->l, 16);
		while (!a->got || !b->got) {
			assert_true(now_ms() < end);
			a->l->ops->progress(a->l, 16);
			if (a->word_count && !sent_a)
				sent_a = send_number(a, &b->at, 0) == 0;
			a->l->ops->flush(a->l);
			b->l->ops->progress(b->l, 16);
			if (b->word_count && !sent_b)
				sent_b = send_number(b, &a->at, 0) == 0;
			b->l->ops->flush(b->l);
		}
		run_for(a, b, 2);
		for (unsigned n = 0; n < a->word_count; n++)
			assert_int_equal(a->words[n], 0);
		for (unsigned n = 0; n < b->word_count; n++)
			assert_int_equal(b->words[n], 0);
		assert_int_equal(rwk_tcp_counts(a->l)->opened, 1);
		assert_int_equal(rwk_tcp_counts(b->l)->opened, 1);
		meetings += rwk_tcp_counts(a->l)->meetings + rwk_tcp_counts(b->l)->meetings;
		close_peer(a);
		close_peer(b);
	}
	assert_true(meetings > 100);
}

static struct rwk_link_address nowhere(uint16_t port)
{
	static const uint8_t everybody[16] = {[10] = 0xff, [11] = 0xff, [12] = 255, [13] = 255, [14] = 255, [15] = 255};

	return rwk_tcp_address(everybody, port);
}

static unsigned discontents;

/* Leaves the other, whose word is the next, and tries again, as long as that is not a loop for ever. */
static void never_content(void *user, const struct rwk_link_address *who, int status)
{
	struct rwk_link_address other = nowhere(2);
	struct rwk_link *l = user;

	assert_true(status < 0);
	assert_memory_not_equal(who, &other, sizeof(other));
	rwk_tcp_leave(l, &other);
	if (++discontents < 100)
		assert_int_equal(rwk_tcp_reach(l, who, 33), 0);
}

/* What is begun in a word, and fails at once, is told by the next progress; what is left in a word, not at all. */
static void words_of_words(void **state)
{
	struct rwk_link_address first = nowhere(1), second = nowhere(2);
	struct rwk_tcp_attr attr = tcp_attr(11);
	struct rwk_link *l;

	(void)state;
	assert_int_equal(rwk_tcp_open(&attr, &l), 0);
	l->word = never_content;
	l->user = l;
	discontents = 0;
	assert_int_equal(rwk_tcp_reach(l, &first, 33), 0);
	assert_int_equal(rwk_tcp_reach(l, &second, 44), 0);
	l->ops->progress(l, 16);
	assert_int_equal(discontents, 1);
	l->ops->progress(l, 16);
	assert_int_equal(discontents, 2);
	l->ops->close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_and_another),
		cmocka_unit_test(away),
		cmocka_unit_test(reach_again),
		cmocka_unit_test(another_address),
		cmocka_unit_test(meeting_unknown),
		cmocka_unit_test(meeting),
		cmocka_unit_test(meeting_elsewhere),
		cmocka_unit_test(words_of_words),
	};

	return cmocka_run_group_tests_name("links/tcp_reach", tests, NULL, NULL);
}

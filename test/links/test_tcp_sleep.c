/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP link between two ends of one process: what wakes who sleeps, and what an epoll set says. */
#include "full_sets.h"
#include "links/tcp/internal.h"
#include "links/tcp_peers.h"

#include "base/log.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

/* To sleep: nothing readable while nothing happens; a packet makes wait_fd readable, a timer of the link as well. */
static void sleeping(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);
	struct pollfd p;

	(void)state;
	connect_peers(a, b);
	run_for(a, b, 20);
	p = (struct pollfd){.fd = b->l->ops->wait_fd(b->l, 0), .events = POLLIN};
	assert_int_equal(b->l->ops->arm(b->l), 0);
	assert_int_equal(poll(&p, 1, 50), 0);
	assert_int_equal(send_number(a, &b->at, 0), 0);
	a->l->ops->flush(a->l);
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(b->l->ops->progress(b->l, 16), 1);

	/* What was read and not delivered, and a word not told yet, are something to do. */
	for (uint32_t n = 1; n < 20; n++)
		assert_int_equal(send_number(a, &b->at, n), 0);
	a->l->ops->flush(a->l);
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(b->l->ops->progress(b->l, 1), 1);
	assert_int_equal(b->l->ops->arm(b->l), -EAGAIN);
	until_got(a, b, b, 20);
	assert_int_equal(rwk_tcp_reach(b->l, &a->at, 0), 0);
	assert_int_equal(b->l->ops->arm(b->l), -EAGAIN);
	close_peer(a);
	close_peer(b);
}

static int warnings;

static void count_warnings(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	(void)text;
	warnings += level == RWK_LOG_WARN;
}

static const struct stream *only_stream(const struct peer *p)
{
	const struct link *l = rwk_container_of(p->l, struct link, pub);

	assert_true(l->all.next != &l->all && l->all.next->next == &l->all);
	return rwk_container_of(l->all.next, struct stream, all);
}

/* b sleeps; a packet to it wakes it, though maybe only because it looks from time to time. */
static void assert_woken(struct peer *a, struct peer *b)
{
	struct pollfd p = {.fd = b->l->ops->wait_fd(b->l, 0), .events = POLLIN};
	uint64_t before = b->got, end = now_ms() + 20000;

	b->next = 0;
	run_for(a, b, 5);
	assert_int_equal(send_number(a, &b->at, 0), 0);
	a->l->ops->flush(a->l);
	while (b->got == before) {
		assert_true(now_ms() < end);
		if (b->l->ops->arm(b->l))
			continue;
		assert_int_equal(poll(&p, 1, 20000), 1);
		b->l->ops->progress(b->l, 16);
	}
}

/*
 * Sockets that no epoll set takes are served all the same, and who sleeps wakes for them; once there is room again they
 * wake at once. One line of log for a link.
 */
static void unheard(void **state)
{
	struct rwk_tcp_attr attr_a = tcp_attr(11), attr_b = tcp_attr(22);
	struct peer *a = open_peer(&attr_a), *b = open_peer(&attr_b);

	(void)state;
	rwk_log_set_sink(count_warnings);
	warnings = 0;
	sets_are_full = true;
	connect_peers(a, b);
	assert_woken(a, b);
	exchange(a, b, 200);
	assert_false(only_stream(a)->watched || only_stream(b)->watched);
	sets_are_full = false;
	for (uint64_t end = now_ms() + 20000; !only_stream(a)->watched || !only_stream(b)->watched; run_for(a, b, 1))
		assert_true(now_ms() < end);
	assert_int_equal(b->l->ops->arm(b->l), 0);
	assert_woken(a, b);
	rwk_tcp_leave(a->l, &b->at);
	until_words(b, a, 2);

	sets_are_full = true;
	connect_peers(a, b);
	rwk_tcp_leave(a->l, &b->at);
	until_words(b, a, 4);
	assert_int_equal(last_word(b), -ESHUTDOWN);
	run_for(a, b, 20);
	sets_are_full = false;
	assert_int_equal(warnings, 2);
	rwk_log_set_sink(NULL);
	close_peer(a);
	close_peer(b);
}

static int epoll;
static uint64_t seen_with_word;
static int word_seen;

/* What an epoll set of the caller's says: the key of the stream that has ended; 0: none has. */
static uint64_t watched(void)
{
	struct epoll_event e[2];
	int n = epoll_wait(epoll, e, 2, 0);

	assert_in_range(n, 0, 1);
	return n ? e[0].data.u64 : 0;
}

static void on_word(void *user, const struct rwk_link_address *who, int status)
{
	(void)user;
	(void)who;
	word_seen = status;
	seen_with_word = watched();
}

/*
 * A watched stream shows its end until the word is told, whatever comes by it before; one that is
 * left shows nothing.
 */
static void watching(void **state)
{
	struct rwk_tcp_attr one = tcp_attr(1), two = tcp_attr(2);
	struct peer *a = open_peer(&one), *b = open_peer(&two);
	void (*word)(void *, const struct rwk_link_address *, int) = a->l->word;

	(void)state;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(rwk_tcp_watch(a->l, &b->at, epoll, 7), -ENOTCONN);
	connect_peers(a, b);
	assert_int_equal(rwk_tcp_watch(a->l, &b->at, epoll, 7), 0);
	assert_int_equal(rwk_tcp_watch(a->l, &b->at, epoll, 8), 0);
	assert_int_equal(send_number(b, &a->at, 0), 0);
	b->l->ops->flush(b->l);
	run_for(b, NULL, 20);
	assert_int_equal(watched(), 0);
	until_got(a, b, a, 1);
	rwk_tcp_leave(b->l, &a->at);
	assert_int_equal(poll(&(struct pollfd){.fd = epoll, .events = POLLIN}, 1, 20000), 1);
	assert_int_equal(watched(), 8);
	assert_int_equal(watched(), 8);
	a->l->word = on_word;
	for (uint64_t end = now_ms() + 20000; !word_seen && now_ms() < end;)
		run_for(a, b, 1);
	assert_int_equal(word_seen, -ESHUTDOWN);
	assert_int_equal(seen_with_word, 8);
	assert_int_equal(watched(), 0);

	a->l->word = word;
	connect_peers(a, b);
	assert_int_equal(rwk_tcp_watch(a->l, &b->at, epoll, 9), 0);
	rwk_tcp_leave(a->l, &b->at);
	run_for(b, a, 20);
	assert_int_equal(watched(), 0);
	close_peer(a);
	close_peer(b);
	close(epoll);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeping),
		cmocka_unit_test(unheard),
		cmocka_unit_test(watching),
	};

	return cmocka_run_group_tests_name("links/tcp_sleep", tests, NULL, NULL);
}

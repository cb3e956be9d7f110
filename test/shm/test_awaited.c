/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that nobody waits for stay where they are, for a few polls, once all that waited have got theirs. */
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"

#include <signal.h>
#include <unistd.h>

#define OTHER 5 /* a kind that is never left */

static size_t waiting; /* for kind 0 */

static void takes(struct end *e, struct end_peer *p, const struct rwk_envelope *env, const void *payload, size_t len)
{
	(void)e;
	(void)p;
	(void)payload;
	(void)len;
	if (env->kind == 0 && waiting)
		waiting--;
}

static struct end *open_one_who_waits(void)
{
	struct end *e = end_open(0, false);

	e->tolerant = true;
	e->seen = takes;
	e->port->awaited[0] = &waiting;
	return e;
}

/* Short ones, and some of each other way that a message has. */
static void send_some(struct end *e, struct end_peer *p, const uint8_t *kinds, unsigned count)
{
	static const size_t lengths[] = {8, 60, 4000};
	static unsigned char payload[4000];

	for (unsigned i = 0; i < count; i++) {
		const struct rwk_envelope env = {.kind = kinds[i]};

		assert_int_equal(rwk_shm_transport.send(p->ch, &env, payload, lengths[i % 3]), 0);
	}
	rwk_shm_transport.progress(e->port);
}

struct pair {
	struct end *from, *to;
	struct end_peer *there, *here;
};

static void connect_pair(struct pair *x)
{
	x->from = end_open(0, false);
	x->to = open_one_who_waits();
	x->there = end_meet(x->from, x->to);
	x->here = &x->to->peer[0];
	x->here->received = 0;
	x->to->port->leave_until[0] = x->to->port->polls;
}

static void close_pair(struct pair *x)
{
	end_close(x->from);
	end_close(x->to);
}

static uint64_t received_after(struct pair *x, unsigned polls)
{
	while (polls--)
		rwk_shm_transport.progress(x->to->port);
	return x->here->received;
}

static const uint8_t zeros[6];

/* Each that waits gets one, the next waits for its own, and after a few polls all come. */
static void one_after_the_other(void **state)
{
	struct pair x;

	(void)state;
	connect_pair(&x);
	send_some(x.from, x.there, zeros, 6);
	for (unsigned i = 1; i <= 3; i++) {
		waiting = 1;
		assert_int_equal(received_after(&x, 1), i);
		assert_int_equal(received_after(&x, 1), i);
	}
	assert_int_equal(received_after(&x, 10), 6);
	close_pair(&x);
}

/* Who looks for what nobody waits for finds all of it, at once. */
static void looked_for(void **state)
{
	static const bool looks = true;
	struct pair x;

	(void)state;
	connect_pair(&x);
	send_some(x.from, x.there, zeros, 6);
	waiting = 1;
	assert_int_equal(received_after(&x, 1), 1);
	x.to->port->looks = &looks;
	assert_int_equal(received_after(&x, 1), 6);
	close_pair(&x);
}

/* Where nobody has waited, and so behind one that was left for long enough, nothing is left. */
static void nobody_waits(void **state)
{
	struct pair x;

	(void)state;
	connect_pair(&x);
	waiting = 0;
	send_some(x.from, x.there, zeros, 6);
	assert_int_equal(received_after(&x, 1), 6);
	close_pair(&x);
}

/* Other kinds are handed over whoever waits, up to the first that is left. */
static void other_kinds(void **state)
{
	static const uint8_t kinds[] = {OTHER, 0, OTHER, OTHER, 0, OTHER};
	struct pair x;

	(void)state;
	connect_pair(&x);
	waiting = 1;
	send_some(x.from, x.there, kinds, 6);
	assert_int_equal(received_after(&x, 1), 4);
	assert_int_equal(received_after(&x, 10), 6);
	close_pair(&x);
}

/* The numbers of polls come again after hours, and what was left long ago has nothing to do with it. */
static void long_ago(void **state)
{
	struct pair x;

	(void)state;
	connect_pair(&x);
	x.to->port->polls += 0x90000000u;
	waiting = 0;
	send_some(x.from, x.there, zeros, 6);
	assert_int_equal(received_after(&x, 1), 6);
	close_pair(&x);
}

/* Who sleeps is woken by nothing for what is left: so he does not fall asleep. */
static void sleepers(void **state)
{
	struct pair x;

	(void)state;
	connect_pair(&x);
	waiting = 1;
	send_some(x.from, x.there, zeros, 6);
	assert_int_equal(received_after(&x, 1), 1);
	assert_true(end_sleep_until(x.to, &x.here->received, 6, 10000));
	close_pair(&x);
}

/* The last piece of a message may come many polls after the first: what counts is whether it is awaited then. */
static void behind_pieces(void **state)
{
	(void)state;
	for (unsigned awaited = 0; awaited < 2; awaited++) {
		struct pair x;

		connect_pair(&x);
		waiting = 0;
		x.there->sent = 10; /* the number is the kind, too */
		for (unsigned i = 0; i < RWK_SHM_SLABS - 4; i++)
			assert_int_equal(end_send(x.from, x.there, RWK_SHM_SLAB_BYTES, 0, true), 0);
		x.there->sent = 0;
		assert_int_equal(end_send(x.from, x.there, 100000, 0, true), 0);
		x.there->sent = 0;
		assert_int_equal(end_send(x.from, x.there, 8, 0, true), 0);
		assert_int_equal(received_after(&x, 10), RWK_SHM_SLABS - 4);
		x.to->place.awaited = awaited;
		rwk_shm_transport.progress(x.from->port);
		assert_int_equal(received_after(&x, 1), RWK_SHM_SLABS - 3 + !awaited);
		assert_int_equal(received_after(&x, 10), RWK_SHM_SLABS - 2);
		close_pair(&x);
	}
}

static int dying_child(int fd, void *arg)
{
	struct end *e = end_open(0, false);
	struct rwk_address to;
	struct end_peer *p;
	char done;

	(void)arg;
	if (!hear(fd, &to, sizeof(to)))
		return 101;
	p = end_connect(e, &to);
	if (!end_push(e, p, 8, 0) || !hear(fd, &done, 1))
		return 102;
	send_some(e, p, zeros, 6);
	tell(fd, &done, 1);
	pause();
	return 0;
}

/* All that a peer has sent comes before it is told that he is dead, also if that is noticed while some is left. */
static void of_the_dead(void **state)
{
	struct end *e = open_one_who_waits();
	pid_t child;
	int fd;
	char done = 0;

	(void)state;
	waiting = 0;
	child = child_run(dying_child, NULL, &fd);
	assert_true(tell(fd, &e->address, sizeof(e->address)));
	assert_true(end_until(e, &e->peer[0].received, 1, 10000));
	assert_true(tell(fd, &done, 1));
	assert_true(hear(fd, &done, 1));
	kill(child, SIGKILL);
	assert_int_equal(child_wait(child), 128 + SIGKILL);
	usleep(20000);
	waiting = 1;
	e->port->polls = 63; /* it looks for deaths: once in 64 times, if the clock has ticked */
	rwk_shm_transport.progress(e->port);
	assert_true(end_until_failed(e, &e->peer[0], 10000));
	assert_int_equal(e->peer[0].received, 7);
	close(fd);
	end_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(looked_for),
		cmocka_unit_test(nobody_waits),
		cmocka_unit_test(other_kinds),
		cmocka_unit_test(long_ago),
		cmocka_unit_test(behind_pieces),
		cmocka_unit_test(sleepers),
		cmocka_unit_test(of_the_dead),
	};

	return cmocka_run_group_tests_name("shm/awaited", tests, NULL, NULL);
}

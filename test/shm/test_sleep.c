/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping: whoever arms and waits is woken by whatever comes, each time, and by nothing that has been dealt with. */
#include "rwk_test.h"

#include "ends.h"

#include "shm/channel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

struct task {
	uint64_t messages;
	size_t len;
	bool pauses; /* at random: at times the other is asleep, at times it is about to be */
};

/* Echoes, sleeping whenever there is nothing to do. */
static int sleeping_echo(int fd, void *arg)
{
	const struct task *t = arg;
	struct end *e = end_open(0, false);

	e->echo = true;
	if (!tell(fd, &e->address, sizeof(e->address)))
		return 100;
	while (!e->peers)
		rwk_shm_transport.progress(e->port);
	if (!end_sleep_until(e, &e->peer[0].received, t->messages, 20000))
		return 101;
	/* What is queued goes on sleeping too. */
	if (!end_sleep_until(e, &e->peer[0].done, rwk_shm_port_counters(e->port)->queued, 10000))
		return 102;
	while (!e->peer[0].failed) {
		struct pollfd p = {.fd = rwk_shm_transport.wait_fd(e->port), .events = POLLIN};

		if (!rwk_shm_transport.arm(e->port) && poll(&p, 1, 10000) != 1)
			return 103;
		rwk_shm_transport.progress(e->port);
	}
	return e->wrong ? 104 : rwk_shm_port_counters(e->port)->sleeps == 0;
}

static void both_sleep(struct task *t, unsigned at_once)
{
	struct end *e = end_open(0, false);
	struct end_peer *p;
	struct rwk_address a;
	unsigned seed = 5;
	pid_t child;
	int fd;

	child = child_run(sleeping_echo, t, &fd);
	assert_true(hear(fd, &a, sizeof(a)));
	p = end_connect(e, &a);
	while (p->sent < t->messages) {
		for (unsigned i = 0; i < at_once; i++)
			assert_int_equal(end_send(e, p, t->len, 0, true), 0);
		if (t->pauses) {
			for (int k = rand_r(&seed) % 3000; k > 0; k--)
				__asm__ volatile("" ::: "memory");
		}
		assert_true(end_sleep_until(e, &p->received, p->sent, 10000));
	}
	assert_int_equal(e->wrong, 0);
	assert_true(rwk_shm_port_counters(e->port)->sleeps > 0);
	assert_true(rwk_shm_port_counters(e->port)->wakes > 0);
	end_close(e);
	assert_int_equal(child_wait(child), 0);
	close(fd);
}

/* One message at a time to and fro, both sides sleeping in between: thousands of times, never is a wake-up lost. */
static void ping_pong(void **state)
{
	struct task t = {.messages = 10000, .len = 8, .pauses = true};

	(void)state;
	both_sleep(&t, 1);
}

/* Far more than ring and slabs hold: both sides sleep with sends queued, and are woken when there is room again. */
static void full_rings(void **state)
{
	struct task small = {.messages = 40000, .len = 200}, large = {.messages = 1000, .len = 20000};

	(void)state;
	both_sleep(&small, 8000);
	both_sleep(&large, 200);
}

/* wait_fd: not readable when all is handled, readable after a message to a sleeper, not readable after progress. */
static void wait_fd(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_connect(a, &b->address);
	struct pollfd poll_b = {.fd = rwk_shm_transport.wait_fd(b->port), .events = POLLIN};

	(void)state;
	assert_int_equal(end_send(a, p, 8, 0, true), 0);
	for (int i = 0; i < 100000 && !p->done; i++) {
		rwk_shm_transport.progress(a->port);
		rwk_shm_transport.progress(b->port);
	}
	for (int i = 0; i < 1000; i++)
		rwk_shm_transport.progress(b->port);
	for (int i = 0; i < 20; i++) {
		uint64_t before = b->peer[0].received;

		assert_int_equal(rwk_shm_transport.arm(b->port), 0);
		assert_int_equal(poll(&poll_b, 1, 0), 0);
		assert_int_equal(end_send(a, p, 8, 0, false), 0);
		assert_int_equal(end_send(a, p, 8, 0, false), 0);
		assert_int_equal(poll(&poll_b, 1, 20000), 1);
		rwk_shm_transport.progress(b->port);
		assert_int_equal(b->peer[0].received, before + 2);
		assert_int_equal(poll(&poll_b, 1, 0), 0);
		/* Something to do already: no sleep. */
		assert_int_equal(end_send(a, p, 8, 0, false), 0);
		assert_int_equal(rwk_shm_transport.arm(b->port), -EAGAIN);
		rwk_shm_transport.progress(b->port);
		while (rwk_shm_transport.arm(b->port))
			rwk_shm_transport.progress(b->port);
		rwk_shm_transport.progress(b->port);
	}
	/* One datagram for two messages. */
	assert_int_equal(rwk_shm_port_counters(a->port)->wakes, 20);
	end_close(a);
	end_close(b);
}

/* Who sleeps with sends queued is rung for when there is room, though nothing is sent to it. */
static void room_wakes(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_connect(a, &b->address);
	uint64_t wakes;

	(void)state;
	assert_int_equal(end_send(a, p, 8, 0, true), 0);
	while (!p->done || rwk_shm_port_counters(a->port)->queued < 2) {
		if (p->done) /* in the ring itself: no slab comes back, which would wake, too */
			assert_int_equal(end_send(a, p, 8, 0, true), 0);
		else
			rwk_shm_transport.progress(b->port);
		rwk_shm_transport.progress(a->port);
	}
	while (rwk_shm_transport.arm(a->port))
		rwk_shm_transport.progress(a->port);
	wakes = rwk_shm_port_counters(b->port)->wakes;
	for (int i = 0; i < 1000; i++)
		rwk_shm_transport.progress(b->port);
	assert_int_equal(rwk_shm_port_counters(b->port)->wakes, wakes + 1);
	assert_true(end_sleep_until(a, &p->done, rwk_shm_port_counters(a->port)->queued, 10000));
	end_close(a);
	end_close(b);
}

/* A sleeper is woken by a connection, and by the death of its peer. */
static int die_soon(int fd, void *arg)
{
	struct end *e = end_open(0, false);
	struct end_peer *p = end_connect(e, arg);

	if (end_send(e, p, 8, 0, true) || !end_until(e, &p->done, 1, 20000))
		return 1;
	poll(NULL, 0, 100);
	raise(SIGKILL);
	return fd;
}

static void woken_by_death(void **state)
{
	struct end *e = end_open(0, false);
	struct pollfd p = {.fd = rwk_shm_transport.wait_fd(e->port), .events = POLLIN};
	pid_t child;
	int fd;

	(void)state;
	child = child_run(die_soon, &e->address, &fd);
	for (uint64_t end = now_ms() + 20000; now_ms() < end && (!e->peers || !e->peer[0].failed);) {
		if (!rwk_shm_transport.arm(e->port))
			assert_int_equal(poll(&p, 1, 20000), 1);
		rwk_shm_transport.progress(e->port);
	}
	assert_int_equal(e->peers, 1);
	assert_int_equal(e->peer[0].received, 1);
	assert_int_equal(e->peer[0].failed, -ECONNRESET);
	assert_int_equal(child_wait(child), 128 + SIGKILL);
	close(fd);
	end_close(e);
}

/* Who waits for what its only peer says hears that it has gone. */
static void hears_of_end(struct end *e)
{
	struct pollfd p = {.fd = rwk_shm_transport.wait_fd(e->port), .events = POLLIN};

	e->port->evidence_at = UINT64_MAX; /* not because it happens to look just now */
	for (int i = 0; i < 1000 && !(e->peers && e->peer[0].failed); i++) {
		if (!rwk_shm_transport.arm(e->port))
			assert_int_equal(poll(&p, 1, 20000), 1);
		rwk_shm_transport.progress(e->port);
	}
	assert_int_equal(e->peers, 1);
	assert_int_equal(e->peer[0].failed, -ECONNRESET);
}

/* A peer closes, and its process lives on. Its ring is full, so that its good-bye is not in there. */
static void woken_by_good_bye(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_meet(a, b);

	(void)state;
	assert_true(turn_both(a, b, &p->done, 1));
	while (!end_send(a, p, 8, 0, false))
		;
	end_close(a);
	hears_of_end(b);
	end_close(b);
}

/* Two who have got so far that the upper one has taken the pair, and the lower one does not know of it. */
static void half_open(struct end **lower, struct end **upper)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	uint64_t end = now_ms() + 10000;

	*lower = a->address.nonce_port < b->address.nonce_port ? a : b;
	*upper = *lower == a ? b : a;
	end_connect(*lower, &(*upper)->address);
	while (now_ms() < end) {
		rwk_shm_transport.progress((*upper)->port);
		if ((*upper)->peers && rwk_shm_channel((*upper)->peer[0].ch)->state == RWK_SHM_OPEN)
			return;
		rwk_shm_transport.progress((*lower)->port);
	}
	fail_msg("no pair was taken within ten seconds");
}

/* The lower one goes before it knows that it is connected. */
static void woken_by_lower(void **state)
{
	struct end *lower, *upper;

	(void)state;
	half_open(&lower, &upper);
	while (rwk_shm_transport.arm(upper->port))
		rwk_shm_transport.progress(upper->port);
	end_close(lower);
	hears_of_end(upper);
	end_close(upper);
}

/* The upper one does, and its ring is full. */
static void woken_by_upper(void **state)
{
	struct end *lower, *upper;

	(void)state;
	half_open(&lower, &upper);
	while (!end_send(upper, &upper->peer[0], 8, 0, false))
		;
	end_close(upper);
	hears_of_end(lower);
	end_close(lower);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ping_pong),
		cmocka_unit_test(full_rings),
		cmocka_unit_test(wait_fd),
		cmocka_unit_test(room_wakes),
		cmocka_unit_test(woken_by_death),
		cmocka_unit_test(woken_by_good_bye),
		cmocka_unit_test(woken_by_lower),
		cmocka_unit_test(woken_by_upper),
	};

	return cmocka_run_group_tests_name("shm/sleep", tests, NULL, NULL);
}

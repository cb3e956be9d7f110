/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many peers: three hundred ports in a few processes that all talk to one, and to each other; polled ones, and ones
 * that ring the bell.
 */
#include "rwk_test.h"

#include "ends.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum { PROCESSES = 3, PORTS = 100, ROUNDS = 20, LONGEST = 100000 /* ms, of which a busy machine may take half */ };

/* A hundred ports that each send to the one and wait for the echo, round after round. */
static int crowd(int fd, void *arg)
{
	struct end *e[PORTS];
	unsigned seed = (unsigned)getpid();
	uint64_t end = now_ms() + LONGEST;

	for (int i = 0; i < PORTS; i++) {
		e[i] = end_open(0, true);
		end_connect(e[i], arg);
	}
	for (int round = 0; round < ROUNDS; round++) {
		int back = 0;

		for (int i = 0; i < PORTS; i++) {
			if (end_send(e[i], &e[i]->peer[0], (size_t)rand_r(&seed) % 2000, 0, true))
				return 100;
		}
		while (back < PORTS) {
			back = 0;
			for (int i = 0; i < PORTS; i++) {
				rwk_shm_transport.progress(e[i]->port);
				back += e[i]->peer[0].received > (uint64_t)round;
			}
			if (now_ms() > end)
				return 101;
		}
	}
	for (int i = 0; i < PORTS; i++) {
		if (e[i]->wrong)
			return 102;
		end_close(e[i]);
	}
	return fd < 0;
}

/*
 * All to one: the one polls 16 rings and hears the bells of the others; each message is echoed; in the end all are
 * gone.
 */
static void one_and_all(bool sleeps)
{
	struct end *e = end_open(0, true);
	const struct rwk_shm_port_counters *count = rwk_shm_port_counters(e->port);
	uint64_t received = 0, gone = 0, end = now_ms() + LONGEST;
	pid_t child[PROCESSES];
	int fd[PROCESSES];

	e->echo = true;
	for (int i = 0; i < PROCESSES; i++)
		child[i] = child_run(crowd, &e->address, &fd[i]);
	while (gone < PROCESSES * PORTS && now_ms() < end) {
		struct pollfd p = {.fd = rwk_shm_transport.wait_fd(e->port), .events = POLLIN};

		if (sleeps && !rwk_shm_transport.arm(e->port))
			assert_int_equal(poll(&p, 1, 20000), 1);
		rwk_shm_transport.progress(e->port);
		gone = received = 0;
		for (unsigned i = 0; i < e->peers; i++) {
			gone += e->peer[i].failed == -ECONNRESET;
			received += e->peer[i].received;
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(child_wait(child[i]), 0);
		close(fd[i]);
	}
	assert_int_equal(e->peers, PROCESSES * PORTS);
	assert_int_equal(received, PROCESSES * PORTS * ROUNDS);
	assert_int_equal(e->wrong, 0);
	assert_int_equal(count->channels, PROCESSES * PORTS);
	assert_true(!sleeps || count->sleeps > 0);
	end_close(e);
}

static void all_to_one(void **state)
{
	(void)state;
	one_and_all(false);
}

static void all_to_a_sleeper(void **state)
{
	(void)state;
	one_and_all(true);
}

enum { TEAM = 30 };

/*
 * Thirty ports in one process, all to all: more than are polled, so bells are rung, and with changing traffic they
 * change places.
 */
static void all_to_all(void **state)
{
	struct end *e[TEAM];
	uint64_t bells = 0, demotions = 0, end = now_ms() + LONGEST;
	unsigned seed = 8;

	(void)state;
	for (int i = 0; i < TEAM; i++)
		e[i] = end_open(0, false);
	for (int i = 0; i < TEAM; i++) {
		for (int k = 0; k < i; k++)
			end_connect(e[i], &e[k]->address);
	}
	for (int round = 0; round < 40; round++) {
		bool all = false;

		for (int i = 0; i < TEAM; i++) {
			/* Some peers talk much in one round, others in the next. */
			for (unsigned k = 0; k < e[i]->peers; k++) {
				for (unsigned n = (k + (unsigned)round / 10 * 7) % TEAM < 8 ? 20 : 1; n; n--)
					assert_int_equal(
						end_send(e[i], &e[i]->peer[k], (size_t)rand_r(&seed) % 400, 0, true),
						0);
			}
		}
		while (!all && now_ms() < end) {
			uint64_t sent = 0, received = 0;

			for (int i = 0; i < TEAM; i++) {
				rwk_shm_transport.progress(e[i]->port);
				for (unsigned k = 0; k < e[i]->peers; k++) {
					sent += e[i]->peer[k].sent;
					received += e[i]->peer[k].received;
				}
			}
			all = sent == received;
		}
		assert_true(all);
	}
	for (int i = 0; i < TEAM; i++) {
		assert_int_equal(e[i]->peers, TEAM - 1);
		assert_int_equal(e[i]->wrong, 0);
		bells += rwk_shm_port_counters(e[i]->port)->bells;
		demotions += rwk_shm_port_counters(e[i]->port)->demotions;
	}
	assert_true(bells > 0);
	assert_true(demotions > 0);
	for (int i = 0; i < TEAM; i++)
		end_close(e[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_to_one),
		cmocka_unit_test(all_to_a_sleeper),
		cmocka_unit_test(all_to_all),
	};

	return cmocka_run_group_tests_name("shm/many", tests, NULL, NULL);
}

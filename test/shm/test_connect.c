/* SPDX-License-Identifier: BSD-3-Clause */
/* How channels come to be: both at once, by a partial address, again after an end, and accepted unheard. */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "ends.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LONGEST 20000u /* ms that a thousand rounds may take: far too few where two processes have one processor */

/* Shared by the processes of a test. */
struct board {
	struct rwk_address address[2];
	_Atomic uint32_t turn[2];
	uint32_t channels[2];
	uint32_t rounds; /* that they have been through */
	bool over;       /* as the first one says in time for the last turn of a round */
};

static struct board *board_new(void)
{
	struct board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(b, MAP_FAILED);
	return b;
}

static bool meet(struct board *b, int rank, uint32_t turn)
{
	uint64_t end = now_ms() + 10000;

	atomic_store(&b->turn[rank], turn);
	while (atomic_load(&b->turn[!rank]) < turn) {
		if (now_ms() > end)
			return false;
		sched_yield();
	}
	return true;
}

/*
 * One side of a simultaneous connect: both open a port, exchange addresses, connect after a random pause (or not at
 * all, but never both not), send one message, and see the other's.
 */
static int at_once(struct board *b, int rank, unsigned rounds)
{
	uint64_t end = now_ms() + LONGEST;
	unsigned seed = 77;

	for (unsigned i = 1; i <= rounds && !b->over; i++) {
		unsigned pause[2] = {(unsigned)rand_r(&seed) % 2000, (unsigned)rand_r(&seed) % 2000};
		int who = rand_r(&seed) % 4; /* 0: only the first connects, 1: only the second, else both */
		struct end *e = end_open(0, true);
		struct end_peer *p;
		bool ok;

		b->address[rank] = e->address;
		if (!meet(b, rank, 3 * i))
			return 101;
		for (unsigned k = 0; k < pause[rank]; k++) {
			if (k % 16 == 0)
				rwk_shm_transport.progress(e->port);
		}
		if (who >= 2 || who == rank)
			end_connect(e, &b->address[!rank]);
		if (!end_until_peers(e, 1, 10000))
			return 102;
		p = &e->peer[0];
		ok = end_send(e, p, 20, 0, true) == 0 && end_until(e, &p->received, 1, 10000) && !e->wrong;
		b->channels[rank] += (uint32_t)rwk_shm_port_counters(e->port)->channels;
		if (!ok || e->peers != 1 || p->failed)
			return 103;
		/* The message may still be queued: it must go before we do. */
		while (rwk_shm_transport.progress(e->port) || atomic_load(&b->turn[!rank]) < 3 * i + 1) {
			atomic_store(&b->turn[rank], 3 * i + 1);
			sched_yield();
		}
		if (rank == 0) {
			b->rounds = i;
			b->over = now_ms() > end;
		}
		if (!meet(b, rank, 3 * i + 2))
			return 104;
		end_close(e);
	}
	return 0;
}

static int at_once_child(int fd, void *arg)
{
	(void)fd;
	return at_once(arg, 1, 1000);
}

/*
 * Two connect to each other at the same moment, a thousand times, or fewer where that takes long: always one channel on
 * each side, and it works both ways.
 */
static void both_at_once(void **state)
{
	struct board *b = board_new();
	int fd;
	pid_t child = child_run(at_once_child, b, &fd);

	(void)state;
	assert_int_equal(at_once(b, 0, 1000), 0);
	assert_int_equal(child_wait(child), 0);
	assert_true(b->rounds > 0);
	assert_int_equal(b->channels[0], b->rounds);
	assert_int_equal(b->channels[1], b->rounds);
	munmap(b, sizeof(*b));
	close(fd);
}

/*
 * IP and port are enough; the full address is learned, whichever of the two has the lower nonce, also when both know
 * only that.
 */
static void partial_address(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		struct end *a = end_open(0, false), *b = end_open(0, false);
		struct rwk_address pa = partial(&a->address), pb = partial(&b->address);
		struct end_peer *p = end_connect(a, &pb), *q = NULL;

		if (i & 1)
			q = end_connect(b, &pa);
		assert_int_equal(end_send(a, p, 100, 0, true), 0);
		if (!q)
			q = &b->peer[0];
		assert_true(turn_both(a, b, &q->received, 1));
		assert_int_equal(p->address.nonce_port, b->address.nonce_port);
		assert_int_equal(q->address.nonce_port, a->address.nonce_port);
		assert_int_equal(end_send(b, q, 5000, 0, true), 0);
		assert_true(turn_both(a, b, &p->received, 1));
		assert_int_equal(a->peers + b->peers, 2);
		assert_int_equal(a->wrong + b->wrong, 0);
		end_close(a);
		end_close(b);
	}
}

/* Before the peer has answered a region that stays cannot be exposed, another one can; afterwards both. */
static void exposed_early(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	struct end_peer *p = end_connect(a, &b->address);
	struct iovec iov = {state, sizeof(*state)}, all = {NULL, SIZE_MAX};
	struct rwk_rkey key, early;

	assert_int_equal(rwk_shm_transport.expose(p->ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &key), -ENOTCONN);
	assert_int_equal(rwk_shm_transport.expose(p->ch, &all, 1, RWK_EXPOSE_READ, &key), -ENOTCONN);
	assert_int_equal(rwk_shm_transport.expose(p->ch, &iov, 1, RWK_EXPOSE_READ, &early), 0);
	assert_int_equal(end_send(a, p, 100, 0, true), 0);
	assert_true(turn_both(a, b, &p->sent, 1) && turn_both(a, b, &b->peer[0].received, 1));
	assert_int_equal(rwk_shm_transport.expose(p->ch, &iov, 1, RWK_EXPOSE_READ | RWK_EXPOSE_WRITE, &key), 0);
	rwk_shm_transport.conceal(p->ch, &key);
	rwk_shm_transport.conceal(p->ch, &early);
	end_close(a);
	end_close(b);
}

/* A port number asked for is had, and cannot be had twice. */
static void port_numbers(void **state)
{
	struct end *a = end_open(0, false);
	struct rwk_port_attr attr = {.address = a->address};
	struct rwk_port *port;
	uint16_t number = rwk_address_port(&a->address);

	(void)state;
	assert_int_not_equal(number, 0);
	assert_int_equal(rwk_shm_transport.open(&attr, NULL, NULL, &port), -EADDRINUSE);
	end_close(a);
	a = end_open(number, false);
	assert_int_equal(rwk_address_port(&a->address), number);
	end_close(a);
}

/* A channel ended by one side fails at the other after all messages were delivered, and a new one can be made. */
static void again_and_again(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct end_peer *p = end_connect(a, &b->address), *q;

		assert_int_equal(end_send(a, p, 8, 0, true), 0);
		assert_true(turn_both(a, b, &p->done, 1));
		for (int k = 0; k < 30; k++)
			assert_int_equal(end_send(a, p, 700, 0, false), 0);
		rwk_shm_transport.disconnect(p->ch);
		p->failed = 1;
		q = &b->peer[i];
		assert_true(turn_until_failed(b, a, q, 10000));
		assert_int_equal(q->failed, -ECONNRESET);
		assert_int_equal(q->received, 31);
		rwk_shm_transport.disconnect(q->ch);
	}
	assert_int_equal(a->wrong + b->wrong, 0);
	end_close(a);
	end_close(b);
}

/*
 * One accepts what the other has offered, sends, and closes, but its acceptance finds the other's socket full: what it
 * has sent comes all the same, before the report of its end.
 */
static void accepted_unheard(void **state)
{
	struct end *a = end_open(0, false), *b = end_open(0, false);
	bool swap = a->address.nonce_port > b->address.nonce_port;
	struct end *low = swap ? b : a, *high = swap ? a : b;
	struct end_peer *p = end_connect(high, &low->address);
	struct sockaddr_un name;
	socklen_t len = socket_name(&name, low);
	int fd = raw_socket();
	uint64_t sent;

	(void)state;
	assert_true(end_until_peers(low, 1, 10000)); /* the offer has gone */
	while (sendto(fd, "full", 4, MSG_DONTWAIT, (struct sockaddr *)&name, len) == 4)
		;
	assert_int_equal(errno, EAGAIN);
	assert_true(end_push(high, p, 8, 0));
	while (!end_send(high, p, p->sent * 100 % 5000, 0, false))
		;
	sent = p->sent;
	/* It goes with something queued, asleep: one who reads its ring would wake it, and has not got its inbox. */
	assert_int_equal(end_post(high, p, 8, 1, 0), 0);
	assert_int_equal(rwk_shm_transport.arm(high->port), 0);
	end_close(high);
	assert_true(end_until_failed(low, &low->peer[0], 10000));
	assert_int_equal(low->peer[0].failed, -ECONNRESET);
	assert_int_equal(low->peer[0].received, sent);
	assert_int_equal(low->wrong, 0);
	close(fd);
	end_close(low);
}

/*
 * A handshake takes a few turns, however rare they are: who gives his core away after each empty poll has one a time
 * slice. Both connect; or one does, where processes are known to be more than processors.
 */
static void test_few_turns(void **state)
{
	(void)state;
	for (int both = 0; both < 2; both++) {
		struct end *a = end_open(0, !both), *b = end_open(0, !both);
		struct end_peer *p = end_connect(a, &b->address);
		unsigned turns = 0;

		if (both)
			end_connect(b, &a->address);
		assert_int_equal(end_send(a, p, 20, 0, true), 0);
		for (; turns < 32 && !(b->peers && b->peer[0].received); turns++) {
			rwk_shm_transport.progress(a->port);
			rwk_shm_transport.progress(b->port);
			usleep(5000);
		}
		if (turns == 32)
			fail_msg("no message after %u turns; %s", turns, both ? "both connect" : "one connects");
		end_close(a);
		end_close(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_at_once),
		cmocka_unit_test(partial_address),
		cmocka_unit_test(exposed_early),
		cmocka_unit_test(port_numbers),
		cmocka_unit_test(again_and_again),
		cmocka_unit_test(accepted_unheard),
		cmocka_unit_test(test_few_turns),
	};

	return cmocka_run_group_tests_name("shm/connect", tests, NULL, NULL);
}

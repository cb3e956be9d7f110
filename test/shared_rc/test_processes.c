/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members that are processes, and share one socket: whoever comes first takes a packet. They are killed at random and
 * others come in their place, or are stopped; what was sent to those that live is heard by them, once and in order.
 *
 *   this process: speakers <---- datagrams ----> one socket: members 0 to 3 (4 processes)
 *
 * With the argument `full` thousands are killed.
 *
 * Links: none: datagrams of a Unix socket, in place of those of UDP.
 */
#define _GNU_SOURCE /* MSG_DONTWAIT with unix sockets' flags, ppoll */
#include "rwk_test.h"

#include "shared_rc/traffic.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HERE      4u /* speakers */
#define PROCESSES 4u
#define LASTING   2u  /* members that are not killed: the first ones */
#define PATIENCE  120 /* seconds */

struct board {
	struct ear ear[PROCESSES];
	_Atomic uint32_t srqn[PROCESSES];
	struct rwk_src_counters counters[PROCESSES];
};

static struct board *board;
static void *memory;
static int net[2], bell[PROCESSES]; /* [0]: the speakers' end */
static pid_t pid[PROCESSES];
static struct speaker speaker[HERE];
static uint32_t seed = 4711;
static bool full;
static uint64_t die_after; /* ns of its own processor time that a process to be started has; 0: for ever */

static rwk_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (rwk_time)t.tv_sec * 1000000000ull + (rwk_time)t.tv_nsec;
}

static int emit(void *user, const struct packet *p)
{
	int fd = *(int *)user;

	return send(fd, p, offsetof(struct packet, bytes) + p->len, MSG_DONTWAIT) < 0 ? -EAGAIN : 0;
}

static bool take(int fd, struct packet *p)
{
	return recv(fd, p, sizeof(*p), MSG_DONTWAIT) > 0;
}

/* A sibling that sleeps: as its seat is known, so is its bell. */
static void ring(uint32_t srqn)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		if (atomic_load(&board->srqn[i]) == srqn && eventfd_write(bell[i], 1))
			_exit(3);
}

static void go_to_sleep(struct listener *l, unsigned member)
{
	struct pollfd p[2] = {{net[1], POLLIN, 0}, {bell[member], POLLIN, 0}};
	eventfd_t ignored;

	if (rwk_src_sleep(l->view))
		return;
	poll(p, 2, 1000);
	if (p[1].revents & POLLIN)
		eventfd_read(bell[member], &ignored);
}

/* The kernel kills it when it has run so long: so it is always in the middle of something. */
static void set_end(void)
{
	struct itimerspec end = {.it_value = {.tv_nsec = (long)die_after}};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	timer_t timer;

	if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &e, &timer) || timer_settime(timer, 0, &end, NULL))
		_exit(2);
}

static void member_process(unsigned member)
{
	struct listener l = {.emit = emit, .user = &net[1]};
	rwk_time buried = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (die_after)
		set_end();
	board->ear[member] = (struct ear){.member = member};
	board->counters[member] = (struct rwk_src_counters){0};
	if (listener_join(&l, memory, &board->ear[member]))
		_exit(1);
	atomic_store(&board->srqn[member], rwk_src_srqn(l.view));
	for (;;) {
		struct packet p;
		unsigned n = 0;

		while (n < 16 && take(net[1], &p)) {
			listener_packet(&l, &p, now());
			n++;
		}
		n += (unsigned)rwk_src_pump(l.view, now());
		n += (unsigned)rwk_src_drain(l.view, 100);
		if (l.woken) {
			ring(l.last_woken);
			l.woken = 0;
		}
		if (now() - buried > 20000000) {
			rwk_src_bury(l.view, now());
			buried = now();
		}
		board->counters[member] = *rwk_src_get_counters(l.view);
		if (!n)
			go_to_sleep(&l, member);
	}
}

/* Has it been killed? */
static bool has_ended(unsigned member)
{
	int status;

	if (!waitpid(pid[member], &status, WNOHANG))
		return false;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	if (board->ear[member].wrong)
		fail_msg("%s", board->ear[member].why);
	return true;
}

/* Starts it and waits until it is a member. Returns false if its time was over before: on a slow machine it may be. */
static bool becomes_member(unsigned member)
{
	rwk_time until = now() + PATIENCE * 1000000000ull;

	atomic_store(&board->srqn[member], 0);
	pid[member] = fork();
	assert_true(pid[member] >= 0);
	if (!pid[member])
		member_process(member);
	while (!atomic_load(&board->srqn[member])) {
		assert_true(now() < until);
		poll(NULL, 0, 1);
		if (has_ended(member))
			return false;
	}
	return true;
}

static void start(unsigned member)
{
	while (!becomes_member(member)) {
		assert_true(die_after);
		die_after *= 2;
	}
	for (unsigned i = 0; i < HERE; i++) {
		speaker[i].srqn[member] = atomic_load(&board->srqn[member]);
		speaker[i].posted[member] = 0;
	}
}

static int setup(void **state)
{
	struct listener maker;
	struct ear none = {0};

	(void)state;
	board = shared_memory(sizeof(*board), NULL);
	memory = segment(16, 16, 1 << 20);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, net), 0);
	assert_int_equal(listener_open(&maker, memory, &none), 0);
	for (unsigned i = 0; i < HERE; i++) {
		struct rwk_src_initiator initiator = speaker_initiator(i, 1024);
		uint32_t qpn;

		assert_int_equal(rwk_src_target_make(maker.view, &initiator, &qpn), 0);
		speaker_open(&speaker[i], i, qpn, 1024);
		speaker[i].emit = emit;
		speaker[i].user = &net[0];
	}
	/* Targets outlive who has made them. */
	rwk_src_view_close(maker.view);
	for (unsigned i = 0; i < PROCESSES; i++) {
		bell[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		assert_true(bell[i] >= 0);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		start(i);
	return 0;
}

static int teardown(void **state)
{
	struct rwk_src_size size = {16, 16, 1 << 20};

	(void)state;
	for (unsigned i = 0; i < PROCESSES; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
		close(bell[i]);
	}
	for (unsigned i = 0; i < HERE; i++)
		speaker_close(&speaker[i]);
	close(net[0]);
	close(net[1]);
	munmap(memory, rwk_src_segment_size(&size));
	munmap(board, sizeof(*board));
	return 0;
}

/* Speaks and listens for that long, or until all have posted `total`, and everything is acknowledged. */
static bool converse(uint32_t total, rwk_time until)
{
	while (now() < until) {
		unsigned idle = 0;
		struct packet p;

		for (unsigned n = 0; n < 32 && take(net[0], &p); n++)
			speaker_answer(&speaker[p.speaker], &p, now());
		for (unsigned i = 0; i < HERE; i++) {
			speaker_speak(&speaker[i], total, now());
			idle += speaker_idle(&speaker[i]) && speaker_posted(&speaker[i]) >= total;
			assert_int_equal(speaker[i].failed, 0);
		}
		if (idle == HERE)
			return true;
		poll(&(struct pollfd){net[0], POLLIN, 0}, 1, 1);
	}
	return false;
}

/* Members may still have something in their inboxes. */
static void check_heard(unsigned members)
{
	rwk_time until = now() + PATIENCE * 1000000000ull;

	for (unsigned i = 0; i < members; i++)
		for (unsigned j = 0; j < HERE; j++) {
			const struct ear *e = &board->ear[i];

			while (__atomic_load_n(&e->heard[j], __ATOMIC_ACQUIRE) != speaker[j].posted[i] && !e->wrong &&
				now() < until)
				poll(NULL, 0, 1);
			if (e->wrong)
				fail_msg("%s", e->why);
			assert_int_equal(e->heard[j], speaker[j].posted[i]);
			assert_int_equal(e->at[j], 0);
		}
}

/* S1-5, S1-7: processes of a node take packets for each other. */
static void all_live(void **state)
{
	(void)state;
	assert_true(converse(400, now() + PATIENCE * 1000000000ull));
	check_heard(PROCESSES);
}

static void add(struct rwk_src_counters *sum, unsigned member)
{
	const struct rwk_src_counters *c = &board->counters[member];

	sum->recovered += c->recovered;
	sum->repeated += c->repeated;
	assert_int_equal(c->corrupt, 0);
}

/* Locks that have been taken over from the dead, by those that have ended and those that are there. */
static uint64_t taken_over(const struct rwk_src_counters *ended)
{
	uint64_t n = ended->recovered;

	for (unsigned i = 0; i < PROCESSES; i++)
		n += board->counters[i].recovered;
	return n;
}

/* In place of one that has ended comes another, that has as little time. */
static void replace(unsigned member)
{
	die_after = 200000 + chance(&seed) % 5000000;
	start(member);
	die_after = 0;
}

/*
 * Members are killed while they serve, others take their seats; nobody else notices. One in twenty or so has a lock
 * then: if a hundred had none there are more.
 */
static void killed(void **state)
{
	rwk_time until = now() + (full ? 1000 : 60) * 1000000000ull;
	unsigned kills = 0, wanted = full ? 3000 : 100;
	struct rwk_src_counters sum = {0};

	(void)state;
	for (unsigned i = LASTING; i < PROCESSES; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
		replace(i);
	}
	while ((kills < wanted || !taken_over(&sum)) && now() < until) {
		converse(UINT32_MAX, now() + 300000);
		for (unsigned i = LASTING; i < PROCESSES; i++)
			if (has_ended(i)) {
				kills++;
				add(&sum, i);
				replace(i);
			}
	}
	for (unsigned i = LASTING; i < PROCESSES; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
		add(&sum, i);
		start(i);
	}
	assert_true(converse(0, now() + PATIENCE * 1000000000ull));
	check_heard(LASTING);
	for (unsigned i = 0; i < PROCESSES; i++)
		add(&sum, i);
	print_message("%u kills; %lu locks were taken over, %lu pieces came again\n", kills,
		(unsigned long)sum.recovered, (unsigned long)sum.repeated);
	assert_true(kills > 10 && sum.recovered > 0);
}

/* Messages that the lasting members have heard of that speaker. */
static uint32_t heard_of(unsigned i)
{
	return __atomic_load_n(&board->ear[0].heard[i], __ATOMIC_RELAXED) +
	       __atomic_load_n(&board->ear[1].heard[i], __ATOMIC_RELAXED);
}

/*
 * A member is stopped for two seconds, wherever it is: its siblings' traffic goes on, but for an initiator whose target
 * it had locked. If it was in the middle of an inbox, that is so for more; then it is stopped once more.
 */
static void stopped(void **state)
{
	unsigned went_on = 0;

	(void)state;
	for (unsigned i = 0; i < HERE; i++)
		speaker[i].srqn[3] = 0;
	for (unsigned tries = 0; tries < 5 && went_on < HERE - 1; tries++) {
		uint32_t before[HERE];

		converse(UINT32_MAX, now() + 50000000 + chance(&seed) % 1000000);
		assert_int_equal(kill(pid[3], SIGSTOP), 0);
		for (unsigned i = 0; i < HERE; i++)
			before[i] = heard_of(i);
		converse(UINT32_MAX, now() + 2000000000);
		went_on = 0;
		for (unsigned i = 0; i < HERE; i++)
			went_on += heard_of(i) > before[i] + 2 * speaker[i].most;
		assert_int_equal(kill(pid[3], SIGCONT), 0);
	}
	assert_true(went_on >= HERE - 1);
	assert_true(converse(0, now() + PATIENCE * 1000000000ull));
	check_heard(3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_live, setup, teardown),
		cmocka_unit_test_setup_teardown(killed, setup, teardown),
		cmocka_unit_test_setup_teardown(stopped, setup, teardown),
	};

	full = argc > 1 && !strcmp(argv[1], "full");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
